"""
Grading on a Dask cluster (extra `dask`): each shard is a task with a store of its own.

| where         | what                                                                                       |
|---------------|--------------------------------------------------------------------------------------------|
| client        | splits the candidates, submits the shards, puts the results in order                       |
| worker        | grades a shard, with a store in a folder that outlives the worker                          |
| scheduler     | grants each request a permit: it keeps the limits and the budget of all workers            |
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
