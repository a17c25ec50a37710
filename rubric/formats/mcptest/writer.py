"""A suite as an mcptest file, with a sentence for each thing that the file cannot hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attrs import evolve

from rubric import (
    Cascade,
    Choices,
    Criterion,
    DecisionTree,
    DefinitionError,
    Judge,
    Jury,
    Leaf,
    Levels,
    Likert,
    Panel,
    Rubric,
    Unit,
    When,
    YesNo,
)
from rubric.embed import fields, thaw
from rubric.formats.losses import Held, Losses, averaged
from rubric.formats.mcptest.reader import Axes, cells, model_name
from rubric.formats.mcptest.rubrics import FIELDS, OPTIONS, SCALES
from rubric.formats.mcptest.scorers import scorer_of
from rubric.models.registry import EnvironmentModel
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values import AnyJudge

Data = dict[str, Any]
Shared = dict[str, tuple[Rubric, Any]]
"""The named rubrics that have been written, each with its data."""

_THRESHOLD = 0.7
"""What mcptest takes where no threshold is given."""


_PLACELESS = {"": "mcptest has no place for it"}

_HOLDS = {
    Suite: Held({"name", "cases", "judge", "format", "source", "warnings"}, _PLACELESS),
    Case: Held(
        {"id", "rubric", "input", "output", "judge", "server", "cell", "place", "providers", "unasked"}, _PLACELESS
    ),
    Rubric: Held({"name", "criteria", "text", "tree", *OPTIONS}, _PLACELESS),
    Criterion: Held({*FIELDS, "answer"}, _PLACELESS),
    Judge: Held({"model"}, _PLACELESS),
    Jury: Held({"judge", "size", "consensus"}, _PLACELESS),
    Panel: Held({"judges", "aggregate", "tie_break"}, _PLACELESS),
}


def plain_rubric(losses: Losses, rubric: Rubric) -> Rubric:
    """Return *rubric* without what no mcptest rubric has."""
    rubric = averaged(rubric)
    inner = losses.within("rubric")
    inner.fields(rubric)
    if rubric.threshold is None:
        inner.add("threshold: null", f"mcptest's rubrics pass from a score, here {_THRESHOLD}")
    return Rubric(
        rubric.name,
        criteria=rubric.criteria,
        text=rubric.text,
        tree=rubric.tree,
        **{name: getattr(rubric, name) for name in OPTIONS if getattr(rubric, name) is not None},
    )


def rubric_keys(losses: Losses, rubric: Rubric) -> Data | None:
    """Return the keys of an eval that say *rubric*; None if mcptest could judge nothing of it."""
    options = _options(rubric)
    if rubric.text and options.keys() <= {"threshold"}:
        return {"rubric": rubric.text, **options}
    if rubric.tree is not None:
        return {"rubric": {**options, "tree": _tree(rubric.tree)}}
    if rubric.text:
        kept = "the text of its rubric is written as one criterion, to keep the rest of it"
        losses.sentences.append(f"{losses.whose}: {kept}")
    written = [_criterion(losses.within(f"criterion {c.id!r}"), rubric, c) for c in rubric.judged]
    criteria = [data for data in written if data is not None]
    return {"rubric": {**options, "criteria": criteria}} if any(c.get("weight", 1) for c in criteria) else None


def _options(rubric: Rubric) -> Data:
    given = {f.name for f in fields.shown_fields(rubric)}
    values = {key: getattr(rubric, name) for name, key in OPTIONS.items() if name in given}
    scale = values.get("scale")
    if isinstance(scale, Likert):
        values["scale"] = {"likert": {"min": scale.low, "max": scale.high}}
    elif scale is not None:
        values["scale"] = next(name for name, kind in SCALES.items() if isinstance(scale, kind))
    return values


def _tree(node: DecisionTree | Leaf) -> Data:
    if isinstance(node, Leaf):
        return {"score": node.score, **({"reason": node.reason} if node.reason else {})}
    return {"ask": node.question, "yes": _tree(node.yes), "no": _tree(node.no)}


def _criterion(losses: Losses, rubric: Rubric, criterion: Criterion) -> Data | None:
    if not isinstance(criterion.answer, YesNo | Unit | Levels | Choices):
        losses.add("the criterion", "mcptest has no checks, trees or rubrics among its criteria")
        return None
    if criterion.polarity == "penalty":
        losses.add("the criterion", "mcptest subtracts nothing")
        return None
    if criterion.answer != Unit():
        losses.add("its kind of answer", "mcptest's judge says a number from 0 to 1")
    # Evidence as the whole rubric asks for it is not lost: the option holds for all its criteria.
    losses.fields(evolve(criterion, evidence=None) if criterion.evidence == rubric.evidence else criterion)
    if criterion.polarity not in ("satisfy", "guard"):
        losses.add(f"the polarity {criterion.polarity}", "mcptest knows guards and no others")
    if any(anchor.reason for anchor in criterion.anchors):
        losses.add("the reason of an example", _PLACELESS[""])
    guard = criterion.polarity == "guard"
    values = {
        "name": criterion.id,
        "description": criterion.text,
        "weight": criterion.weight if criterion.weight != 1 else None,
        "required": criterion.required or (criterion.min_score is not None and not guard) or None,
        "guard": guard or None,
        "threshold": criterion.min_score,
        "when": _when(losses, criterion.when),
        "examples": [{"response": a.response, "score": float(a.score)} for a in criterion.anchors] or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _when(losses: Losses, when: When | None) -> Data | None:
    if when is None:
        return None
    found = {key: getattr(when, key) for key in ("contains", "regex") if getattr(when, key) is not None}
    if not found:
        losses.add("when", "mcptest's conditions are contains and regex")
    return found or None


def write(suite: Suite) -> tuple[Data, list[str]]:
    """
    Return *suite* as the plain data of an mcptest file, and what was dropped on the way.

    A case is dropped whole if mcptest could judge nothing of its rubric.
    """
    losses = Losses(_HOLDS, "{}: {} is left out{}", mark=";", whose="the suite")
    losses.fields(suite)
    evals: list[Data] = []
    shared: Shared = {}
    scorers = [scorer_of(case) for case in suite.cases]
    cases = [case for case, scorer in zip(suite.cases, scorers, strict=True) if scorer is None]
    named = {str(scorer["name"]): scorer for scorer in scorers if scorer is not None}
    if len(scorers) - len(cases) != len(named) * len(cases):
        losses.sentences.append("the suite: its scorers grade some cases; in an mcptest file they grade each eval")
    while cases:
        case, axes, taken = _gathered(cases)
        row = _eval(losses.of(f"case {case.id!r}"), case, axes, suite.judge, shared)
        evals += [] if row is None else [row]
        cases = cases[taken:]
    rubrics = {"rubrics": {name: data for name, (_, data) in shared.items()}} if shared else {}
    own = {"scorers": [*named.values()]} if named else {}
    return thaw({**rubrics, "evals": evals, **own}), losses.sentences


def _eval(losses: Losses, case: Case, axes: Axes, judge: AnyJudge | None, shared: Shared) -> Data | None:
    if case.rubric.negate:
        losses.within("rubric").add("negate", "it would say the opposite, so the case is left out")
        return None
    rubric = _rubric(losses, plain_rubric(losses, case.rubric), shared)
    if rubric is None:
        losses.sentences.append(f"{losses.whose}: it is left out; mcptest can judge nothing of its rubric")
        return None
    losses.fields(case)
    if case.cell:
        losses.add("cell", "its matrix is not whole")
    judged = _judge(losses, case.judge or judge, varied=bool(axes.models))
    matrix = {"models": [name for name, _ in axes.models], "prompts": [*axes.prompts]}
    matrix = {axis: found for axis, found in matrix.items() if found}
    return {**_plain(case, axes), **rubric, **judged, **({"matrix": matrix} if matrix else {})}


def _rubric(losses: Losses, rubric: Rubric, shared: Shared) -> Data | None:
    """Return the keys of an eval that say *rubric*; one with a name is written once, into *shared*, and referred to."""
    if not rubric.name:
        return rubric_keys(losses, rubric)
    known = shared.get(rubric.name)
    start = known[0] if known else Rubric(rubric.name, text=rubric.text) if rubric.text else rubric
    overrides = {key: getattr(rubric, key) for key in ("threshold", "strict")}
    changed = {key: value for key, value in overrides.items() if value != getattr(start, key)}
    if evolve(start, **changed) != rubric:
        losses.add("the name of its rubric", "another one has it, or it cannot be named as it is")
        return rubric_keys(losses, rubric)
    if known is None:
        keys = rubric_keys(losses, start)
        if keys is None:
            return None
        shared[rubric.name] = (start, keys["rubric"])
    return {"rubric": {"ref": rubric.name, **changed}}


def _judge(losses: Losses, judge: AnyJudge | None, *, varied: bool) -> Data:
    """Return the judge of an eval; *varied* says that a matrix names the models."""
    data: Data = {}
    match judge:
        case Judge() if not varied:
            data = _model(losses, judge)
        case Jury(judge=Judge() as member):
            losses.within("jury").fields(judge)
            own = varied or isinstance(member.model, EnvironmentModel)
            rule = {"size": judge.size, "consensus": judge.consensus}
            data = {**({} if own else _model(losses, member)), "jury": rule}
        case Panel():
            data = _panel(losses, judge)
        case Jury():
            losses.add("judge", "mcptest has no juries of panels")
        case Cascade():
            losses.add("judge", "mcptest has no cascades")
    return {"judge": data} if data else {}


def _panel(losses: Losses, panel: Panel) -> Data:
    names = [_model(losses, m).get("model") if isinstance(m, Judge) else None for m in panel.judges]
    if None in names:
        losses.add("judge", "a panel names its models, and one of its members is none that has a name")
        return {}
    losses.within("panel").fields(panel)
    rules = {"aggregate": panel.aggregate, "tie_break": panel.tie_break}
    defaults = {"aggregate": "mean", "tie_break": "fail"}
    return {"panel": names, **{key: rule for key, rule in rules.items() if rule != defaults[key]}}


def _model(losses: Losses, judge: Judge) -> Data:
    name = None
    if isinstance(judge.model, str):
        with suppress(DefinitionError):
            name = model_name(judge.model)
    if name is None or name != judge.model:
        losses.add("judge", f"an mcptest file cannot name the model {judge.name!r}")
        return {}
    losses.within("judge").fields(judge)
    return {"model": name}


def _plain(case: Case, axes: Axes) -> Data:
    """Return the plain keys of an eval; a live run needs a prompt, if need be the last message."""
    last = case.messages[-1].content if case.messages else ""
    prompt = case.input or (last if case.output is None else "")
    needed = case.output is None and not axes.prompts
    return {
        "name": case.id,
        **({"server": case.server} if case.server else {}),
        **({"prompt": prompt} if prompt or needed else {}),
        **({} if case.output is None else {"response": case.output}),
    }


# -- cells -------------------------------------------------------------------------------------------------

_CELL = re.compile(r"(.+) \[[^\[\]]*\]", re.DOTALL)
"""The id of a cell: the name of its eval, and its label."""


def _gathered(cases: Sequence[Case]) -> tuple[Case, Axes, int]:
    """Return the eval that the first of *cases* comes from, its axes, and how many of *cases* are its cells."""
    first = cases[0]
    name = _CELL.fullmatch(first.id)
    if name and first.cell and first.cell.keys() <= {"model", "prompt"}:
        siblings = [case for case in cases if case.cell and case.id.startswith(f"{name[1]} [")]
        for group in (siblings, [first]):
            whole, axes = _whole(name[1], group)
            expected = [*cells(whole, axes)]
            if [*cases[: len(expected)]] == expected:
                return whole, axes, len(expected)
    return first, Axes(), 1


def _whole(name: str, group: Sequence[Case]) -> tuple[Case, Axes]:
    """Return the eval whose cells *group* may be, and its axes."""
    first = group[0]
    models = dict.fromkeys(str(case.cell["model"]) for case in group if "model" in case.cell)
    prompts = dict.fromkeys(str(case.cell["prompt"]) for case in group if "prompt" in case.cell)
    judge = first.judge if not models or isinstance(first.judge, Jury) else None
    whole = evolve(first, id=name, cell={}, judge=judge, input="" if prompts else first.input)
    return whole, Axes(tuple((model, _named(model)) for model in models), tuple(prompts))


def _named(model: str) -> Judge:
    try:
        return Judge(model_name(model))
    except DefinitionError:
        return Judge("unknown")
