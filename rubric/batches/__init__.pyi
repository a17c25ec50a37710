from .grading import acancel_batches as acancel_batches
from .grading import agrade_in_batches as agrade_in_batches
from .grading import cancel_batches as cancel_batches
from .grading import grade_in_batches as grade_in_batches
