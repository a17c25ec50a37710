from .scripted_model import Says as Says
from .scripted_model import ScriptedModel as ScriptedModel
from .scripted_model import reply_to as reply_to
