"""Assertions that a judge decides: `llm-rubric`."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from rubric.answers import Unit
from rubric.criteria import Criterion
from rubric.errors import DefinitionError
from rubric.formats.agentv.items import read_items
from rubric.formats.agentv.scopes import Scope
from rubric.formats.promptfoo.criteria import Made, unsupported
from rubric.formats.promptfoo.graders import judge_of
from rubric.formats.promptfoo.parts import Part, compact
from rubric.formats.promptfoo.rubric_prompts import UnsupportedPromptError, template_of
from rubric.formats.promptfoo.values import Context, content_of
from rubric.rubrics import Rubric
from rubric.showing import shorten

__all__ = ["judged"]

_WITHOUT_VALUE = "as the rubric prompt says"
"""What stands for the text of a rubric that has none beside a prompt of its own."""


def judged(part: Part, context: Context, kind: str) -> Made | None:
    """Return what the `llm-rubric` (or `not-llm-rubric`: *kind*) *part* comes to; None where an error was noted."""
    provider, prompt = part.find("provider") or context.provider, part.find("rubricPrompt") or context.prompt
    judge = judge_of(provider)
    try:
        template = None if prompt is None else template_of(prompt, context.slots)
        content = _rubric_text(part, context, has_prompt=prompt is not None)
    except UnsupportedPromptError as why:
        return unsupported(f"{kind} with {why}", "", part)
    bar = part.at("threshold").number() if part.has("threshold") else None
    if content is None or (prompt is not None and template is None) or (part.has("threshold") and bar is None):
        return None
    try:
        rubric = _rubric(content, bar)
        rubric = evolve(rubric, prompt=template)
        if kind.startswith("not-"):
            rubric = evolve(rubric, negate=True, degenerate="judge")
    except DefinitionError as problem:
        (part.find("threshold") or part).error(problem)
        return None
    if not rubric.judged:
        return None  # why its items are none has been noted
    words = content.value if isinstance(content.value, str) else ", ".join(c.text for c in rubric.criteria)
    return Made(f"not: {words}" if rubric.negate else words, rubric, kind=kind, judges=frozenset({judge}))


def _rubric(content: Part, bar: float | None) -> Rubric:
    if isinstance(content.value, list):
        return Rubric(criteria=_items(content), threshold=bar)
    if bar is None:
        return Rubric.of(content.value, threshold=None)
    return Rubric(criteria=[Criterion(content.value, id="overall", answer=Unit(flag=True))], threshold=bar)


def _items(content: Part) -> list[Criterion]:
    """Return the criteria that a list of texts or mappings is: as in AgentV, each has a verdict of its own."""
    scope = Scope(content.notes, content.loading, "agentv-2")
    paths = [(*content.path, index) for index in range(len(content.value))]
    return read_items([_verbatim(item) for item in content.value], scope, paths)


def _verbatim(item: Any) -> Any:
    """Keep what was rendered already from being read as a template again."""
    if isinstance(item, dict):
        return {key: _verbatim(inner) if key in ("outcome", "criteria") else inner for key, inner in item.items()}
    return f"{{% raw %}}{item}{{% endraw %}}" if isinstance(item, str) else item


def _rubric_text(part: Part, context: Context, *, has_prompt: bool) -> Part | None:
    """Return the rendered text of a rubric, or the list of its criteria; None if it was noted that there is none."""
    value = part.at("value")
    if value.value is None and has_prompt:
        return value.holding(_WITHOUT_VALUE)
    content = None if value.value is None else content_of(value, context)
    if content is None:
        if value.value is None:
            part.error("a rubric needs text; write it as `value`")
        return None
    if isinstance(content.value, dict):
        return content.holding(compact(content.value))
    if not isinstance(content.value, str | list) or not content.value or not str(content.value).strip():
        value.error(f"a rubric needs text: expected a text or a list of them, got {shorten(repr(value.value), 60)}")
        return None
    return content
