from .formats import candidate_of_run as candidate_of_run
from .formats import is_run as is_run
from .formats import read as read
from .formats import write as write
from .log_texts import refuse_log as refuse_log
