"""Suites as mcptest files, and what such a file cannot hold: a sentence for each thing, with its case and its field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric.errors import DefinitionError
from rubric.formats.mcptest.dumping import Data, Losses, named, plain_rubric, rubric_keys
from rubric.formats.mcptest.judges import model_name
from rubric.formats.mcptest.matrix import Axes, gathered
from rubric.formats.unstructuring import free
from rubric.judges import Bench, Cascade, Judge, Jury, Panel
from rubric.models.environment import EnvironmentModel
from rubric.rubrics import Rubric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rubric.suites.cases import Case
    from rubric.suites.suites import Suite

__all__ = ["write"]

_SUITE = ("name", "cases", "judge", "format", "source", "warnings")
_CASE = ("id", "rubric", "input", "output", "judge", "server", "cell", "place")


def write(suite: Suite) -> tuple[Data, list[str]]:
    """
    Return *suite* as the plain data of an mcptest file, and what was dropped on the way.

    A case whose rubric comes to nothing that mcptest could judge is dropped whole.
    """
    writer = Writer(suite.judge)
    writer.losses.fields("the suite", suite, _SUITE)
    cases = suite.cases
    while cases:
        cases = cases[writer.add(cases) :]
    shared = {name: data for name, (_, data) in writer.shared.items()}
    return free({**({"rubrics": shared} if shared else {}), "evals": writer.evals}), writer.losses.sentences


@define
class Writer:
    """
    What has been written of a suite.

    Args:
        judge: Who judges cases that name nobody.
        evals: The evals so far.
        shared: The named rubrics, each with its data.
        losses: What was left out.
    """

    judge: Bench | None = None
    evals: list[Data] = field(factory=list)
    shared: dict[str, tuple[Rubric, Any]] = field(factory=dict)
    losses: Losses = field(factory=Losses)

    def add(self, cases: Sequence[Case]) -> int:
        """Write the first of *cases*, with the rest of its matrix if it has one; return how many that were."""
        case, axes, taken = gathered(cases)
        whose = f"case {case.id!r}"
        if case.rubric.negate:
            self.losses.add(f"{whose}: rubric", "negate", "unturned it says the opposite, so the case is left out")
            return taken
        rubric = self._rubric(whose, plain_rubric(self.losses, whose, case.rubric))
        if not rubric:
            self.losses.sentences.append(f"{whose}: it is left out; mcptest can judge nothing of its rubric")
            return taken
        self.losses.fields(whose, case, _CASE)
        if case.cell:
            self.losses.add(whose, "cell", "its matrix is not whole")
        judge = self._judge(whose, case.judge or self.judge, varied=bool(axes.models))
        self.evals.append({**_plain(case, axes), **rubric, **judge, **_matrix(axes)})
        return taken

    def _rubric(self, whose: str, rubric: Rubric) -> Data | None:
        """Return the keys of an eval that say *rubric*; one with a name is written once, and referred to."""
        if not rubric.name:
            return rubric_keys(self.losses, whose, rubric)
        reference = self._reference(whose, rubric)
        if reference is None:
            self.losses.add(whose, "the name of its rubric", "another one has it, or it cannot be named as it is")
            return rubric_keys(self.losses, whose, rubric)
        return reference and {"rubric": reference}

    def _reference(self, whose: str, rubric: Rubric) -> Data | None:
        """Return the reference to the shared rubric that says *rubric*: None if none can, empty if nothing is left."""
        if rubric.name in self.shared:
            return named(rubric, self.shared[rubric.name][0])
        start = Rubric(rubric.name, text=rubric.text) if rubric.text else rubric
        reference = named(rubric, start)
        if reference is not None:
            keys = rubric_keys(self.losses, whose, start)
            if keys is None:
                return {}
            self.shared[rubric.name] = (start, keys["rubric"])
        return reference

    def _judge(self, whose: str, bench: Bench | None, *, varied: bool) -> Data:
        """Return who judges; *varied* says that a matrix names the models."""
        data: Data = {}
        match bench:
            case Judge() if not varied:
                data = self._model(whose, bench)
            case Jury(judge=Judge() as member):
                self.losses.fields(f"{whose}: jury", bench, ("judge", "size", "consensus"))
                own = varied or isinstance(member.model, EnvironmentModel)
                rule = {"size": bench.size, "consensus": bench.consensus}
                data = {**({} if own else self._model(whose, member)), "jury": rule}
            case Panel():
                data = self._panel(whose, bench)
            case Jury():
                self.losses.add(whose, "judge", "mcptest has no juries of panels")
            case Cascade():
                self.losses.add(whose, "judge", "mcptest has no cascades")
        return {"judge": data} if data else {}

    def _panel(self, whose: str, panel: Panel) -> Data:
        names = [self._model(whose, m).get("model") if isinstance(m, Judge) else None for m in panel.judges]
        if None in names:
            self.losses.add(whose, "judge", "a panel names its models, and one of its members is none that has a name")
            return {}
        self.losses.fields(f"{whose}: panel", panel, ("judges", "aggregate", "tie_break"))
        rules = {"aggregate": panel.aggregate, "tie_break": panel.tie_break}
        defaults = {"aggregate": "mean", "tie_break": "fail"}
        return {"panel": names, **{key: rule for key, rule in rules.items() if rule != defaults[key]}}

    def _model(self, whose: str, judge: Judge) -> Data:
        if not isinstance(judge.model, str) or not _is_nameable(judge.model):
            self.losses.add(whose, "judge", f"an mcptest file cannot name the model {judge.name!r}")
            return {}
        self.losses.fields(f"{whose}: judge", judge, ("model",))
        return {"model": judge.model}


def _is_nameable(model: str) -> bool:
    try:
        return model_name(model) == model
    except DefinitionError:
        return False


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


def _matrix(axes: Axes) -> Data:
    values = {"models": [name for name, _ in axes.models], "prompts": [*axes.prompts]}
    matrix = {axis: found for axis, found in values.items() if found}
    return {"matrix": matrix} if matrix else {}
