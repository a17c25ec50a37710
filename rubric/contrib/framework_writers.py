"""
Suites as files of Google's ADK, deepeval, MLflow, ragas and verifiers: one rubric, as far as each can say it.

| format | the rubric that it holds |
|---|---|
| adk | yes/no criteria that count alike, with a threshold; or several such, each a gate |
| deepeval | one criterion from 0 to 10 (`GEval`), or a tree (a graph); or several such, each a gate |
| mlflow | yes/no criteria that count alike (`make_judge`), required ones (`Guidelines`), numbers in 0..1 |
| ragas | one criterion with a text for each score, or one of yes or no; of each case, with its texts |
| verifiers | criteria of yes or no, or of choices that are evenly spaced, with weights |

What would change a verdict is refused: these formats say too little for a file that holds the rest. What the judge is
not graded by (candidates, ids, tags) is left out, and told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import Factory, evolve, field, frozen

from rubric import (
    Case,
    Choices,
    Criterion,
    DecisionTree,
    DefinitionError,
    Judge,
    Leaf,
    Levels,
    Rubric,
    Suite,
    Unit,
    YesNo,
)
from rubric.contrib.adk import PREFIX
from rubric.contrib.deepeval import HIGHEST
from rubric.contrib.mlflow import shown_as_slots
from rubric.contrib.ragas import SAMPLE, TEXT
from rubric.embed import Answer
from rubric.formats import DumpError
from rubric.formats.losses import Held, Losses, averaged
from rubric.formats.model_names import litellm_name
from rubric.values import AnyJudge

Data = dict[str, Any]
Written = tuple[Data, list[str]]

_THRESHOLD = Rubric().threshold
"""That of a rubric that says nothing; files without a pass mark are read with it."""


@frozen
class _Writing:
    """
    The losses of a file of *name*: those that are *told*, and those for which it is *refused*.

    Args:
        kinds: The answers that its criteria may have.
        criterion: The fields of a criterion that it holds, beside text, id and answer.
        rubric: The fields of a rubric that it holds, beside name and criteria.
        usual: The id of its only case when it is read.
        case: The fields of a case that it holds.
    """

    name: str
    usual: str
    kinds: tuple[type[Answer], ...]
    criterion: tuple[str, ...] = ()
    rubric: tuple[str, ...] = ()
    case: tuple[str, ...] = ()
    told: Losses = field(init=False, default=Factory(lambda self: self._told(), takes_self=True))
    refused: Losses = field(init=False, default=Factory(lambda self: self._refused(), takes_self=True))

    def _told(self) -> Losses:
        kept = Held({"id", "rubric", "judge", "judges", "place", "providers", "unasked", *self.case})
        judge = Held({"model"}, {"": f"a file of {self.name} names a model and no more"})
        return Losses({Case: kept, Judge: judge}, "{}: {} is left out{}")

    def _refused(self) -> Losses:
        kept = Held({"text", "id", "answer", *self.criterion}, {"weight": f"in {self.name} all count alike"})
        rubric = Held({"name", "criteria", *self.rubric})
        return Losses({Criterion: kept, Rubric: rubric}, "{} has {}{}")

    def criteria(self, rubric: Rubric, name: str = "the rubric") -> tuple[Criterion, ...]:
        """Return the criteria of *rubric*; all that the format lacks of them and of it is noted."""
        plain = averaged(rubric)
        self.refused.of(name).fields(evolve(plain, threshold=_THRESHOLD) if "threshold" in self.rubric else plain)
        if "threshold" in self.rubric and rubric.threshold is None:
            self.refused.of(name).add("no threshold", f"{self.name} passes from one; write it")
        for criterion in rubric.judged:
            own = self.refused.of(f"the criterion {criterion.id!r}")
            own.fields(criterion)
            if not isinstance(criterion.answer, self.kinds):
                known = " or ".join(kind.__name__ for kind in self.kinds)
                own.add(f"an answer of {type(criterion.answer).__name__}", f"{self.name} has {known}")
        return tuple(rubric.judged)

    def only(self, suite: Suite) -> tuple[Rubric, AnyJudge | None, Mapping[str, Any]]:
        """Return the rubric of all cases of *suite*, their judge, and the judges of single criteria."""
        rubrics = {case.rubric for case in suite}
        if len(rubrics) != 1:
            found = f"a file of {self.name} holds one rubric, and the cases of this suite have {len(rubrics)}"
            raise DumpError(f"{found}; convert those of one rubric, or to native, which holds all")
        first = suite.cases[0]
        for case in suite:
            own = self.told.of(f"case {case.id!r}")
            own.fields(case)
            if len(suite) > 1 or case.id != self.usual:
                own.add("its id", f"a file of {self.name} has a rubric and no cases")
            if (case.judge, case.judges) != (first.judge, first.judges):
                own.add("its judge", "the file has one judge")
        return first.rubric, first.judge or suite.judge, first.judges

    def model(self, judge: AnyJudge | None, spell: Callable[[str], str] = str) -> str | None:
        """Return the name of *judge* as the framework's files *spell* it; None, and told, where they cannot."""
        if judge is None:
            return None
        own = self.told.of("the judge")
        if not isinstance(judge, Judge) or not isinstance(judge.model, str):
            own.add(repr(judge), "a file names one model")
            return None
        own.fields(judge)
        for name in (spell(judge.model), judge.model):
            try:
                if litellm_name(name.replace(":/", ":")) == judge.model:
                    return name
            except DefinitionError:
                continue
        own.add(repr(judge.model), "no file can name it")
        return None

    def done(self, data: Data) -> Written:
        """Return *data* and what was told; where something is refused, raise it all."""
        if self.refused.sentences:
            cure = "leave these out of the suite, or convert it to native, which holds all"
            raise DumpError(f"{self.name} cannot hold it: {'; '.join(self.refused.sentences)}; {cure}")
        return data, self.told.sentences


def _gates(rubric: Rubric) -> list[tuple[str, Rubric]]:
    """Return the rubrics that *rubric* is made of, each a gate by its own threshold; or itself, alone."""
    inner = [(c.id, c.answer, c) for c in rubric.criteria if isinstance(c.answer, Rubric)]
    gates = all(c == Criterion(id_, id=id_, answer=one, min_score=one.threshold or None) for id_, one, c in inner)
    whole = gates and inner and rubric == Rubric(criteria=[c for _, _, c in inner], threshold=0)
    return [(id_, one) for id_, one, _ in inner] if whole else [("", rubric)]


# -- Google's ADK ------------------------------------------------------------------------------------------


def write_adk(suite: Suite) -> Written:
    """Return the rubric of *suite* as an evaluation config of ADK, and what is lost."""
    writing = _Writing("adk", "test", (YesNo,), rubric=("threshold",))
    rubric, judge, judges = writing.only(suite)
    criteria: Data = {}
    for id_, one in _gates(rubric):
        called = one.name if one.name.startswith(PREFIX) else f"{PREFIX}final_response_quality_v1"
        if called != one.name:
            writing.told.of("the rubric").add(f"its name {one.name!r}", f"it is called {called}")
        listed = writing.criteria(one)
        found: Data = {"threshold": one.threshold}
        if model := writing.model(judges.get(id_, judge), lambda model: model.removeprefix("gemini/")):
            found["judge_model_options"] = {"judge_model": model}
        found["rubrics"] = [{"rubric_id": c.id, "rubric_content": {"text_property": c.text}} for c in listed]
        if called in criteria:
            writing.refused.of(f"the rubric {id_!r}").add("the name of another", f"begin its name with {PREFIX}")
        criteria[called] = found
    return writing.done({"criteria": criteria})


# -- deepeval ----------------------------------------------------------------------------------------------

_STEPS = ", by these steps:"
_STEP = re.compile(r"\d+\. ")


def write_deepeval(suite: Suite) -> Written:
    """Return the rubric of *suite* as the metrics of deepeval, and what is lost."""
    writing = _Writing("deepeval", "metric", (Levels, DecisionTree), rubric=("threshold", "tree"))
    rubric, judge, judges = writing.only(suite)
    params = ["input", "actual_output", *(["expected_output"] if any(case.reference for case in suite) else [])]
    metrics = []
    for id_, one in _gates(rubric):
        criteria = writing.criteria(one)
        if len(criteria) != 1:
            what = f"{len(criteria)} criteria"
            writing.refused.of("the rubric").add(what, "a metric has one; make each a rubric with a threshold")
            continue
        (criterion,) = criteria
        name = one.name or criterion.id
        told = writing.told.of("the rubric")
        if isinstance(criterion.answer, DecisionTree):
            metric: Data = {"name": name, "dag": {"nodes": _nodes(criterion.answer, told)}}
        else:
            if name != criterion.id:
                told.add(f"the id {criterion.id!r} of its criterion", f"it is called {name!r}")
            metric = {"name": name, **_g_eval(criterion, name, writing), "evaluation_params": params}
        metric["threshold"] = one.threshold
        model = writing.model(judges.get(id_, judge))
        metrics.append({**metric, "model": model} if model else metric)
    return writing.done(metrics[0] if len(metrics) == 1 else {"metrics": metrics})


def _g_eval(criterion: Criterion, name: str, writing: _Writing) -> Data:
    levels = criterion.answer
    first, *steps = str(criterion.text).split("\n")
    listed = first == f"{name}{_STEPS}" and steps and all(step.startswith(f"{n}. ") for n, step in enumerate(steps, 1))
    said: Data = {"evaluation_steps": [_STEP.sub("", step, 1) for step in steps]} if listed else {}
    said = said or {"criteria": criterion.text}
    if isinstance(levels, Levels) and levels.ranges:
        bands = [{"score_range": [band.low, band.high], "expected_outcome": band.text} for band in levels.ranges]
        said["rubric"] = bands
        if (levels.low, levels.high) != (0, HIGHEST) or not all(band.text for band in levels.ranges):
            own = writing.refused.of(f"the criterion {criterion.id!r}")
            own.add(f"the levels {levels.low} to {levels.high}", f"GEval's go from 0 to {HIGHEST}, with a text each")
    return said


def _nodes(tree: DecisionTree, told: Losses) -> Data:
    """Return the nodes of the graph that is *tree*, the first of which is its root."""
    nodes: Data = {}

    def add(node: DecisionTree) -> str:
        id_ = f"question-{len(nodes) + 1}"
        nodes[id_] = {"type": "BinaryJudgementNode", "criteria": node.question, "children": []}
        for verdict, branch in ((False, node.no), (True, node.yes)):
            found: Data = {"type": "VerdictNode", "verdict": verdict}
            if isinstance(branch, Leaf):
                found["score"] = branch.score * HIGHEST
                if branch.reason:
                    told.add(f"the reason {branch.reason!r} of a leaf", "graphs have none")
                name = f"{id_}-{'yes' if verdict else 'no'}"
            else:
                found["child"] = {"type": "node", "ref": add(branch)}
                name = f"to-{found['child']['ref']}"
            nodes[name] = found
            nodes[id_]["children"].append(name)
        return id_

    add(tree)
    return nodes


# -- MLflow ------------------------------------------------------------------------------------------------


def write_mlflow(suite: Suite) -> Written:
    """Return the rubric of *suite* as judges of MLflow, and what is lost."""
    writing = _Writing("mlflow", "judge", (YesNo, Unit), ("required",))
    rubric, judge, judges = writing.only(suite)
    scorers = []
    if rubric.name:
        writing.told.of("the rubric").add(f"its name {rubric.name!r}", "judges have names, and their list has none")
    for criterion in writing.criteria(rubric):
        own = writing.refused.of(f"the criterion {criterion.id!r}")
        scorer: Data = {"name": criterion.id}
        if isinstance(criterion.answer, Unit) and (criterion.required or criterion.answer.flag):
            own.add("a gate or a pass flag beside its number", "write it as yes or no")
        if criterion.required:
            scorer["guidelines"] = criterion.text
        else:
            instructions = shown_as_slots(str(criterion.text))
            if "{{ outputs }}" not in instructions:
                told = writing.told.of(f"the criterion {criterion.id!r}")
                told.add("its text as it was", "instructions show the answer, so it is put at their end")
                instructions = f"{instructions}\n\n{{{{ outputs }}}}"
            scorer |= {"instructions": instructions}
            scorer["feedback_value_type"] = "bool" if isinstance(criterion.answer, YesNo) else "float"
        model = writing.model(judges.get(criterion.id, judge), lambda model: model.replace("/", ":/", 1))
        scorers.append({**scorer, "model": model} if model else scorer)
    return writing.done(scorers[0] if len(scorers) == 1 else {"scorers": scorers})


# -- ragas -------------------------------------------------------------------------------------------------


def write_ragas(suite: Suite) -> Written:
    """Return *suite* as rubrics of ragas, a sample for each case with an output, and what is lost."""
    writing = _Writing("ragas", "sample-1", (Levels, YesNo), case=("input", "output", "reference"))
    samples = [_sample(case, number, writing) for number, case in enumerate(suite, 1)]
    if suite.judge is not None or any(case.judge is not None for case in suite):
        writing.told.of("the suite").add("judge", "the format names none")
    return writing.done(samples[0] if len(samples) == 1 else {"examples": samples})


def _sample(case: Case, number: int, writing: _Writing) -> Data:
    own, refused = writing.told.of(f"case {case.id!r}"), writing.refused.of(f"case {case.id!r}")
    own.fields(case)
    criteria = writing.criteria(case.rubric)
    if len(criteria) != 1:
        refused.add(f"{len(criteria)} criteria", "ragas scores one; convert each by itself")
        return {}
    (criterion,), shown = criteria, {key: getattr(case, name) for name, key in SAMPLE.items()}
    named = {} if case.id == f"sample-{number}" else {"name": case.id}
    if isinstance(criterion.answer, YesNo):
        about: Data = {"name": case.id, "definition": criterion.text}
        usual = case.id
    else:
        about, usual = {**named, "rubrics": _descriptions(criterion, refused)}, named.get("name", "quality")
        if criterion.text != TEXT:
            own.add(f"the text of {criterion.id!r}", "scores have descriptions, and what is scored has none")
    if criterion.id != usual:
        own.add(f"the id {criterion.id!r} of its criterion", f"it is called {usual!r}")
    if case.rubric.name:
        own.add(f"the name {case.rubric.name!r} of its rubric", "the format has none")
    return {**about, **{key: said for key, said in shown.items() if said}}


def _descriptions(criterion: Criterion, refused: Losses) -> Data:
    levels = criterion.answer
    ranges = levels.ranges if isinstance(levels, Levels) else ()
    if not ranges or ranges[0].low < 0 or not all(band.is_anchor and band.text for band in ranges):
        refused.add(f"the levels of {criterion.id!r}", "ragas has a text for each score, from 0 up")
    return {f"score{band.low}_description": band.text for band in ranges}


# -- verifiers ---------------------------------------------------------------------------------------------


def write_verifiers(suite: Suite) -> Written:
    """Return the rubric of *suite* as a rubric file of verifiers, and what is lost."""
    writing = _Writing("verifiers", "rubric", (YesNo, Choices), ("weight",))
    rubric, judge, judges = writing.only(suite)
    if judge is not None or judges:
        writing.told.of("the suite").add("judge", "the format names none")
    if rubric.name:
        writing.told.of("the rubric").add(f"its name {rubric.name!r}", "the format has none")
    return writing.done({"criteria": [*_listed(writing.criteria(rubric), writing)]})


def _listed(criteria: Sequence[Criterion], writing: _Writing) -> Iterator[Data]:
    for criterion in criteria:
        row: Data = {"name": criterion.id, "text": criterion.text}
        row |= {} if criterion.weight == 1 else {"weight": criterion.weight}
        if isinstance(criterion.answer, Choices):
            row["choices"] = [choice.label for choice in criterion.answer.choices]
            even = [label.lower() for label in row["choices"]] != ["no", "yes"]
            if not even or criterion.answer != Choices.in_steps(row["choices"]):
                own = writing.refused.of(f"the criterion {criterion.id!r}")
                own.add("choices with scores of their own", "verifiers spaces them evenly, from the worst to the best")
        yield row
