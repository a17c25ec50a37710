from rubric.values.findings import Abstained as Abstained
from rubric.values.findings import Evidence as Evidence
from rubric.values.findings import NotApplicable as NotApplicable
from rubric.values.findings import Scored as Scored
from rubric.values.findings import Step as Step
from rubric.values.findings import Unjudged as Unjudged

from .collection import places_by as places_by
from .plain_data import Plain as Plain
from .plain_data import Record as Record
from .report_rows import Entry as Entry
from .report_rows import Row as Row
from .rubric_diff import RubricChange as RubricChange
from .rubric_diff import RubricDiff as RubricDiff
from .summary import Counts as Counts
from .summary import CriterionSummary as CriterionSummary
from .summary import Summary as Summary
