"""
Seven rubrics that are ready to use, each with examples that must pass and that must fail.

    from rubric import grade, presets

    grade(answer, presets.helpfulness, "openai/gpt-5.6")

Each is a file beside this module, a suite: its rubric, and cases with the verdicts that a good judge gives them. It is
read on first use.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from rubric.embed import fields, refuse_name
from rubric.errors import DefinitionError
from rubric.formats.suites import loads_suite
from rubric.suites.suite import Suite
from rubric.values.rubrics import Rubric

NAMES = (
    "agent", "code_review", "conversation_quality", "groundedness", "helpfulness", "instruction_following", "safety",
)  # fmt: skip
"""The names of the rubrics."""

agent: Rubric
code_review: Rubric
conversation_quality: Rubric
groundedness: Rubric
helpfulness: Rubric
instruction_following: Rubric
safety: Rubric


@cache
def examples(name: str) -> Suite:
    """
    Return the examples of the rubric *name*: cases with the tag `must-pass` or `must-fail`.

    Their `metadata["verdicts"]` has the answer that a good judge gives to each criterion. Run them with your judge to
    see whether it can be trusted with this rubric: `presets.examples("safety").run(judge)`.

    Raises:
        DefinitionError: There is no such rubric.
    """
    return loads_suite(text_of(name), "native", source=f"{name}.yaml")


def text_of(name: str) -> str:
    """Return the text of the file of the rubric *name*; raise `DefinitionError` if there is none."""
    known = name.replace("-", "_").replace(" ", "_")
    if known not in NAMES:
        near = fields.suggest(known, NAMES).partition("; allowed")[0]
        raise DefinitionError("preset", f"there is no ready rubric {name!r}{near}; there are {', '.join(NAMES)}")
    return files(__name__).joinpath(f"{known}.yaml").read_text("utf-8")


def __getattr__(name: str) -> Rubric:
    if name not in NAMES:
        refuse_name(__name__, name, NAMES)
    return examples(name)[0].rubric


def __dir__() -> list[str]:
    return sorted([*NAMES, "NAMES", "examples"])
