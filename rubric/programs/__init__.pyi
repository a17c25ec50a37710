from rubric.values.rubrics import programs_in as programs_in

from .processes import ProgramError as ProgramError
from .scripts import allowing as allowing
