from rubric.errors import DumpError as DumpError

from .rubrics import schema as schema
from .suites import Converted as Converted
from .suites import dumps_suite as dumps_suite
