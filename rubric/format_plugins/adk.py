"""Evaluation configurations of Google's ADK: the criteria with rubrics, as docs/how-to/from_frameworks.md maps them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rubric import Criterion, Judge, Rubric, Suite
from rubric.embed import SURE, Cursor, Format, Loading, Notes
from rubric.format_plugins.judges import judged_case, read_judge
from rubric.formats.recognition import Seen, finds
from rubric.values import Unsupported

_PREFIX = "rubric_based_"
_OPTIONS = ("judge_model_options", "judgeModelOptions")
_OF_OPTIONS = ("judge_model", "judgeModel", "num_samples", "numSamples")
_OF_RUBRICS = ("rubric_id", "rubricId", "rubric_content", "rubricContent")
_TEXT = ("text_property", "textProperty")
_QUIET = ("judge_model_config", "judgeModelConfig", "description", "type")


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one case, whose candidate a target makes."""
    root = Cursor.of(notes, loading)
    has_metrics = root.mapping("an eval config (a mapping with criteria)") and root.needs("criteria")
    if not has_metrics or not root["criteria"].mapping():
        return Suite(format="adk")
    judges: dict[str, Judge] = {}
    made = [one for name, at in root["criteria"].items() if (one := _metric(str(name), at, judges)) is not None]
    for key in root.value.keys() - {"criteria"}:
        root[key].warn(f"{key!r} is not used: it is about how runs are made", key=True)
    rubric = made[0].answer if len(made) == 1 else None
    if made and not isinstance(rubric, Rubric):
        rubric = root.built(Rubric, criteria=made, threshold=0)
    cases = [judged_case("test", root, rubric, judges, len(made))] if isinstance(rubric, Rubric) else []
    return Suite(cases=cases, format="adk")


def _metric(name: str, at: Cursor, judges: dict[str, Judge]) -> Criterion | None:
    if not name.startswith(_PREFIX) or not isinstance(at.value, dict):
        why = "its rubrics are in the eval set" if name.startswith(_PREFIX) else "there is no such grader here"
        at.warn(f"{name}: {why}, so the case is ungraded", key=True)
        return Criterion(name, id=name, answer=Unsupported(name), required=True)
    at.reads(("threshold", "rubrics", *_OPTIONS), quiet=_QUIET)
    threshold = at["threshold"].number(0, 1) if at.needs("threshold") else None
    items = at["rubrics"].each("a list of rubrics", _rubric) if at.needs("rubrics") else []
    options = at.find(*_OPTIONS)
    if options is not None and options.mapping():
        options.reads(_OF_OPTIONS, quiet=_QUIET)
        if (named := options.find("judge_model", "judgeModel")) and (judge := read_judge(named)):
            judges[name] = judge
        if samples := options.find("num_samples", "numSamples"):
            samples.warn("the number of samples is not used; Jury(judge, size=...) asks a judge several times")
    if at.value.get("rubrics") == []:
        at.error("there are no rubrics to judge by; give it some")
    if threshold is None or not items:
        return None
    rubric = at.built(Rubric, name, criteria=items, threshold=threshold)
    return None if rubric is None else Criterion(name, id=name, answer=rubric, min_score=threshold or None)


def _rubric(at: Cursor) -> Criterion | None:
    if not at.mapping("a rubric (a mapping with rubric_id and rubric_content)"):
        return None
    at.reads(_OF_RUBRICS, quiet=_QUIET)
    id_, content = at.first("rubric_id", "rubricId"), at.first("rubric_content", "rubricContent")
    if isinstance(content.value, dict):
        content.reads(_TEXT)
    said = content.first(*_TEXT) if isinstance(content.value, dict) else content
    text, name = said.words("the text of a rubric"), id_.text("the id of a rubric")
    return None if text is None or name is None else at.built(Criterion, text, id=name)


# -- recognition --------------------------------------------------------------------------------------------------

_ADK_METRIC = re.compile(
    r"rubric_based_\w+|\w+_v[12]|tool_trajectory_avg_score|response_match_score|response_evaluation_score"
)


def _adk_metrics(seen: Seen) -> Iterator[str]:
    criteria = seen.keys.get("criteria")
    return filter(_ADK_METRIC.fullmatch, map(str, criteria) if isinstance(criteria, Mapping) else ())


FORMAT = Format("adk", read, evidence=((SURE, finds("its criteria name ADK's metric {!r}", _adk_metrics)),))
