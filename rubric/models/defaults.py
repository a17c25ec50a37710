"""The judge that the environment names, for whoever gives none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rubric.errors import NoJudgeError
from rubric.judges import Judge
from rubric.models.credentials import VENDORS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["default_judge"]


def default_judge(environ: Mapping[str, str] = os.environ) -> Judge:
    """
    Return the judge of the first vendor that *environ* has a key for, in promptfoo's order of vendors.

    Raises:
        NoJudgeError: There is none; the message names the variables.
    """
    for vendor in VENDORS:
        if model := vendor.model_in(environ):
            return Judge(model)
    variables = "; ".join(str(vendor) for vendor in VENDORS)
    message = (
        f"no judge was given, and the environment names none. Give one, such as judge='openai/gpt-5.6', or set one of "
        f'these: {variables}. To try things out without a key, say judge="offline" (it counts words, it does not judge)'
    )
    raise NoJudgeError(message)
