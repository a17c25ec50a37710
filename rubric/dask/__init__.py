"""
Grading on a Dask cluster (extra `dask`): every shard is a task, with a store of its own.

| where         | what                                                                                       |
|---------------|--------------------------------------------------------------------------------------------|
| client        | shares the candidates out, hands the shards over, puts the results in order                |
| worker        | grades a shard, past a store in a folder that outlives it                                  |
| scheduler     | lets each request of the run leave: the limits and the budget of all workers are kept there |
"""

from __future__ import annotations

from rubric.dask.cluster import grade_on_cluster

__all__ = ["grade_on_cluster"]
