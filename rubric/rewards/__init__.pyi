from .audit import Alarm as Alarm
from .audit import Audit as Audit
from .rows import dropped as dropped
from .rows import reward_of as reward_of
from .rows import rubric_of_row as rubric_of_row
