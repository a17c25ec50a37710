from rubric.grading.planning import Plan as Plan

from .budget import Amount as Amount
from .bulk import AsyncGrading as AsyncGrading
from .bulk import Grading as Grading
from .columns import PairColumns as PairColumns
from .grade import CandidateLike as CandidateLike
from .progress import SPENT as SPENT
from .progress import Progress as Progress
from .progress import Spent as Spent
from .shards import Shard as Shard
from .shards import merge_results as merge_results
from .shared_limits import Share as Share
from .sources import Candidates as Candidates
from .sources import Placed as Placed
