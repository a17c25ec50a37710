from rubric.errors import StoreError as StoreError

from .audit import Problem as Problem
from .audit import Stats as Stats
from .audit import export as export
from .audit import stats as stats
from .audit import verify as verify
from .database import Tally as Tally
