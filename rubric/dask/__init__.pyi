from rubric.errors import ClusterError as ClusterError

from .cluster import grade_on_cluster as grade_on_cluster
