"""Metrics of deepeval: `GEval`, and graphs as `dag_to_dict` writes them; from_frameworks.md maps their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from rubric import Criterion, Judge, Levels, Rubric, ScoreRange, Suite
from rubric.embed import SURE, Cursor, Format, Loading, Notes
from rubric.format_plugins.judges import judged_case, metrics, read_judge
from rubric.formats.recognition import Seen, finds, in_any
from rubric.values import Unsupported

_HIGHEST = 10
_THRESHOLD = 0.5
_CURE = "write it as a tree in our own format"
_OF_METRICS = ("name", "criteria", "evaluation_steps", "rubric", "threshold", "strict_mode", "model", "dag", "nodes")
_PARAMS = "evaluation_params"
_QUIET = ("async_mode", "verbose_mode", "include_reason", "root_nodes", "output_label", "label")
_FIELDS = {
    "input": "input", "actual_output": "", "expected_output": "reference", "context": "context",
    "retrieval_context": "context", "tools_called": "tool_calls",
}  # fmt: skip
"""What a metric may name of a test case, and the field of a candidate; an output is always there."""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one case, whose candidate a target makes."""
    root = Cursor.of(notes, loading)
    listed = root.find("metrics") or root
    if listed is not root:
        root.reads(("metrics",))
    metrics = listed.listing() if isinstance(listed.value, list) else [listed]
    made = [one for number, at in enumerate(metrics, 1) if (one := _metric(at, number)) is not None]
    rubrics = [rubric for rubric, _ in made]
    named = {rubric.name: judge for rubric, judge in made if judge is not None}
    rubric = rubrics[0] if len(rubrics) == 1 else None
    if len(rubrics) > 1:
        gates = [Criterion(each.name, id=each.name, answer=each, min_score=each.threshold) for each in rubrics]
        rubric = root.built(Rubric, criteria=gates, threshold=0)  # each metric has a threshold of its own
    parameters = [each for at in metrics if at.has(_PARAMS) for each in at[_PARAMS].listing("a list of parameters")]
    needs = [_FIELDS.get(str(each.value).rpartition(".")[2].lower()) for each in parameters]
    for each in (each for each, need in zip(parameters, needs, strict=True) if need is None):
        each.warn(f"{each.value!r} is not shown to judges here")
    if rubric is None or notes.errors:
        return Suite(format="deepeval")
    case = judged_case("metric", root, rubric, named, len(made))
    return Suite(cases=[evolve(case, needs=[*dict.fromkeys(filter(None, needs))])], format="deepeval")


def _metric(at: Cursor, number: int) -> tuple[Rubric, Judge | None] | None:
    if not at.mapping("a metric (a mapping with criteria or evaluation_steps, or a graph with nodes)"):
        return None
    at.reads((*_OF_METRICS, _PARAMS), quiet=_QUIET)
    name = at.value.get("name")
    name = name if isinstance(name, str) and name.strip() else f"metric-{number}"
    bar = at["threshold"].number(0, 1) if at.has("threshold") else _THRESHOLD
    bar = 1.0 if at["strict_mode"].value is True else bar
    if _is_graph(at.value):
        at.warn("a graph is not read; write it as a tree in our own format. The case is ungraded")
        criterion: Criterion | None = Criterion(name, id=name, answer=Unsupported("a graph of deepeval", cure=_CURE))
    else:
        criterion = _criterion(at, name)
    rubric = None if criterion is None else at.built(Rubric, name, criteria=[criterion], threshold=bar)
    return None if rubric is None else (rubric, read_judge(at.find("model")))


def _criterion(at: Cursor, name: str) -> Criterion | None:
    steps = at["evaluation_steps"].each("a list of steps", Cursor.words) if at.has("evaluation_steps") else []
    if not steps and not at.needs("criteria"):
        return None
    said = "" if steps else at["criteria"].words("the criteria of a metric") or ""
    numbered = [f"{n}. {step}" for n, step in enumerate(steps, 1)]
    text = "\n".join([f"{name}, by these steps:", *numbered]) if steps else said
    if steps and at.has("criteria"):
        at["criteria"].warn("deepeval goes by the steps where a metric has both, and so is this one read", key=True)
    ranges = at["rubric"].each("a list of {score_range, expected_outcome}", _band) if at.has("rubric") else []
    bands = sorted(ranges, key=lambda band: band.low)
    levels = at["rubric"].built(Levels, *bands) if bands else Levels()
    if levels is not None and (levels.low, levels.high) != (0, _HIGHEST):
        at["rubric"].error(f"the score_ranges go from {levels.low} to {levels.high}; cover 0 to {_HIGHEST}")
        return None
    return None if levels is None or not text else at.built(Criterion, text, id=name, answer=levels)


def _band(at: Cursor) -> ScoreRange | None:
    if not at.mapping("a band (a mapping with score_range and expected_outcome)"):
        return None
    at.only(("score_range", "expected_outcome"))
    ends, text = at["score_range"].value, at["expected_outcome"].text("what its scores mean")
    if not isinstance(ends, list) or len(ends) != 2 or not all(type(end) is int for end in ends):  # noqa: PLR2004
        at["score_range"].refuse("a list of two whole numbers")
        return None
    return None if text is None else at.built(ScoreRange, *ends, text)


# -- recognition --------------------------------------------------------------------------------------------------

_NODE_TYPES = frozenset({"TaskNode", "BinaryJudgementNode", "NonBinaryJudgementNode", "VerdictNode"})


def _is_graph(metric: Mapping[Any, Any]) -> bool:
    """True if *metric* is a graph of deepeval's."""
    graph = metric.get("dag") if isinstance(metric.get("dag"), Mapping) else metric
    nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
    inner = [*nodes.values()] if isinstance(nodes, Mapping) else []
    return bool(inner) and all(isinstance(node, Mapping) and node.get("type") in _NODE_TYPES for node in inner)


def _metrics(seen: Seen) -> Iterable[Any]:
    """Yield the metrics of a file; a rubric that is a name is one of ours."""
    return () if isinstance(seen.keys.get("rubric"), str) else metrics(seen)


_EVIDENCE = (
    (SURE, finds("it has the nodes of deepeval's graphs", lambda seen: filter(_is_graph, metrics(seen)))),
    (SURE, in_any(_metrics, "its metric has the key", ("evaluation_steps", _PARAMS))),
    (SURE, in_any(metrics, "its metric has the key", (_PARAMS,))),  # twice: AgentV's tests have criteria too
)

FORMAT = Format("deepeval", read, evidence=_EVIDENCE)
