"""
mcptest files: their evals as cases, and the matchers of other blocks that grade by rubric.

docs/how-to/from_mcptest.md maps what stands in a file.
See "Rubric scoring" and the reference of the `evals` block in mcptest's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from rubric import DefinitionError, Judge, Jury, Panel
from rubric.embed import Cursor, Loading, Notes, shorten
from rubric.formats.mcptest.rubrics import Shared, overridden, read_rubric, read_shared
from rubric.formats.mcptest.scorers import read_scorers, score_by
from rubric.formats.model_names import litellm_name
from rubric.models.registry import EnvironmentModel
from rubric.suites.cases import Case
from rubric.suites.cases import cells as fanned_out
from rubric.suites.suite import Suite
from rubric.values import AnyJudge

# -- judges ------------------------------------------------------------------------------------------------

_JUDGE = ("model", "jury", "panel", "aggregate", "tie_break")
_RULE = {"size": "size", "consensus": "consensus"}
_PANEL = {"aggregate": "aggregate", "tie_break": "tie_break"}


def model_name(name: str) -> str:
    """Return LiteLLM's name for the model *name*: a bare name is one already, `vendor:model` is another system's."""
    vendor = name.partition(":")[0]
    return litellm_name(name) if vendor != name and "/" not in vendor else name


def read_model(at: Cursor) -> Judge | None:
    """Return the judge that *at* names."""
    name = at.value
    if isinstance(name, str):
        try:
            name = model_name(str(Judge(name).model))
        except DefinitionError as problem:
            at.error(problem.message)
            return None
    elif name is None:
        at.error("expected the name of a model, got nothing")
        return None
    return at.parent.made(Judge, {"model": name}, {"model": at.step}) if at.parent else None


def read_judge(at: Cursor) -> AnyJudge | None:
    """Return the judge of a block: a model, a jury of one model, or a panel of several."""
    if not at.mapping("a mapping with model, jury or panel"):
        return None
    at.only(_JUDGE)
    if "jury" in at and "panel" in at:
        message = "a judge is a jury (one model, several times) or a panel (several models), not both; keep one of them"
        at["panel"].error(message, key=True)
        return None
    if "panel" in at:
        return _read_panel(at)
    for key in (key for key in _PANEL if key in at):
        at[key].error("this belongs to a panel, and here is none; give one, or take it out", key=True)
    judge = read_model(at["model"]) if "model" in at else None
    if "jury" not in at:
        return judge
    member = judge or Judge(EnvironmentModel(), sealed=True)
    if not at["jury"].mapping("a mapping with size and consensus"):
        return None
    at["jury"].only(_RULE)
    return at["jury"].made(Jury, {"judge": member, **at["jury"].given(_RULE)})


def _read_panel(at: Cursor) -> Panel | None:
    if "model" in at:
        at["model"].warn("a panel names its own models; this one is left out", key=True)
    judges = [read_model(name) for name in at["panel"].listing("a list of models")]
    if not isinstance(at["panel"].value, list) or None in judges:
        return None
    rules = dict(_PANEL)
    if at.value.get("aggregate", "mean") != "majority" and "tie_break" in at:
        at["tie_break"].warn("only a majority has ties; this does nothing, and is left out", key=True)
        del rules["tie_break"]
    return at.made(Panel, {"judges": judges, **at.given(rules)}, {"judges": "panel"})


_AXES = ("models", "prompts")


@frozen
class Axes:
    """The models (as the file names them, with their judges) and the prompts of a matrix; an axis may be empty."""

    models: tuple[tuple[str, Judge], ...] = ()
    prompts: tuple[str, ...] = ()


def read_matrix(at: Cursor, judge: AnyJudge | None) -> Axes | None:
    """Return the axes of a matrix for an eval that *judge* judges."""
    if not at.mapping("a mapping with models, prompts or both"):
        return None
    at.only(_AXES)
    if at.value.keys().isdisjoint(_AXES):
        at.error("a matrix has models, prompts or both, and here is neither; give one")
        return None
    if "models" in at and isinstance(judge, Panel):
        message = "the models of a matrix vary the judge, and a panel names its own; keep the models or the panel"
        at["models"].error(message, key=True)
    models = [(name.value, read_model(name)) for name in _axis(at, "models")]
    prompts = tuple(prompt.value for prompt in _axis(at, "prompts") if prompt.passes())
    return Axes(tuple((name, judge) for name, judge in models if judge is not None), prompts)


def _axis(at: Cursor, axis: str) -> list[Cursor]:
    if axis not in at:
        return []
    if at.value[axis] == []:
        at[axis].error(f"expected at least one of the {axis}, got none; give one, or take the key out")
    found: list[Cursor] = []
    for item in at[axis].listing(f"a list of {axis}"):
        if any(item.value == other.value for other in found):
            item.error("this stands in the list already; each cell is there once")
        else:
            found.append(item)
    return found


def cells(case: Case, axes: Axes) -> Iterator[Case]:
    """Yield *case* once for each cell: a model varies the judge, a prompt the input."""
    whole = case.judge
    judges = [(name, evolve(whole, judge=own) if isinstance(whole, Jury) else own) for name, own in axes.models]
    return fanned_out(case, judges, axes.prompts)


# -- cases -------------------------------------------------------------------------------------------------

_KEYS = {
    "llm-judge": ("rubric", "threshold", "model"),
    "llm-jury": ("rubric", "threshold", "quorum", "jurors"),
    "eval.rubric": ("rubric", "threshold", "judge"),
}
"""The keys of each matcher that grades by rubric."""

QUORUM = 0.5
"""The share of passing jurors from which an `llm-jury` passes by default (mcptest, jury consensus)."""

_KEPT = ("tool", "args", "target")
"""What a case keeps of the test around it, in its metadata."""

FIELDS = {"id": "name", "server": "server", "input": "prompt", "output": "response"}
"""For each plain field of a case that an mcptest file can give, its key there."""

_EVAL = (*FIELDS.values(), "rubric", "threshold", "judge", "matrix")
_BLOCKS = ("evals", "rubrics", "judge", "scorers")

Found = tuple["Cursor", Case | None]
"""The place of a case's name, and the case; None if it could not be read."""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*; errors are noted there."""
    root = Cursor.of(notes, loading)
    if not root.mapping("a mapping with evals"):
        return Suite(format="mcptest")
    shared = read_shared(root["rubrics"]) if "rubrics" in root else {}
    found: list[Found] = []
    for item in root["evals"].listing("a list of evals") if "evals" in root else ():
        cases = _read_eval(item, shared)
        found += [(item["name"], case) for case in cases] if cases else [(item["name"], None)]
    if root.has("scorers"):
        graded, scorers = [case for _, case in found if case is not None], read_scorers(root["scorers"])
        found += [(root["scorers"], case) for case in score_by(graded, scorers)]
    for key, block in root.items():
        if key not in _BLOCKS:
            found += _read_other(block, shared)
    return Suite(cases=_unique(found), judge=read_judge(root["judge"]) if root.has("judge") else None, format="mcptest")


def _unique(found: list[Found]) -> list[Case]:
    """Return the cases with names of their own; note the others."""
    lines: dict[str, int] = {}
    kept = []
    for name, case in found:
        id_ = name.value if case is None else case.id
        if not isinstance(id_, str):
            continue
        if id_ in lines:
            name.error(f"the name {id_!r} belongs to what line {lines[id_]} starts already; give one another")
            continue
        lines[id_] = name.place.line if case is None or case.place is None else case.place.line
        kept += [] if case is None else [case]
    return kept


# -- evals -------------------------------------------------------------------------------------------------


def _read_eval(at: Cursor, shared: Shared) -> list[Case]:
    if not at.mapping("an eval (a mapping with name, prompt and rubric)"):
        return []
    at.only(_EVAL)
    values = at.given(FIELDS, blank=("response",))
    if "name" not in at:
        values["id"] = f"eval {at.step + 1}"
        at.warn(f"this eval has no name; it is called {values['id']!r} here")
    judge = read_judge(at["judge"]) if "judge" in at else None
    axes = read_matrix(at["matrix"], judge) if "matrix" in at else None
    if not (values.keys() & {"input", "output"} or (axes and axes.prompts)):
        at.error("nothing to grade: an eval has a prompt for a live run, or a fixed response; give one")
    rubric = read_rubric(at["rubric"], shared) if at.needs("rubric") else None
    if rubric is None:
        at.fits(Case, {"rubric": "unknown", **values}, FIELDS)
        return []
    values |= {"rubric": overridden(at, rubric), "judge": judge, "place": at.place}
    case = at.made(Case, values, FIELDS)
    return [] if case is None else [case] if axes is None else [*cells(case, axes)]


# -- matchers of the other blocks --------------------------------------------------------------------------


def _read_other(block: Cursor, shared: Shared) -> list[Found]:
    """Read the matchers that grade by rubric out of a block that is not about rubrics, and tell the rest."""
    if block.is_slip(_BLOCKS):
        return []
    if block.step == "servers":
        names = [str(name) for name in block.value] if isinstance(block.value, Mapping) else []
        how = " ".join(f"--server {shorten(name, 60)}=COMMAND" for name in names[:5] or ["NAME"])
        block.warn(f"a file starts and reaches no server: give those of a live run, {how}", key=True)
        return []
    found = [*_read_matchers(block, shared)]
    what = "only its rubrics are read" if found else "this is not about rubrics, and is left out"
    plays = "; the target that you give plays the agent" if block.step == "agents" and found else ""
    block.warn(f"{what}; mcptest itself runs the rest{plays}", key=True)
    return found


def _read_matchers(block: Cursor, shared: Shared) -> Iterator[Found]:
    """Yield a case for each rubric among the tests of a block."""
    for test in block if isinstance(block.value, list) else ():
        matchers = [*_matchers(test)]
        own = test["name"].value
        called = " ".join(own.split()) if isinstance(own, str) and own.strip() else f"{block.step} {test.step + 1}"
        for number, (matcher, kept) in enumerate(matchers, 1):
            case = _read_matcher(matcher, kept, test, shared)
            name = f"{called} [{matcher.step} {number}]" if len(matchers) > 1 else called
            if case is not None and test.fits(Case, {"id": name, "rubric": case.rubric}, {"id": "name"}):
                yield test["name"], evolve(case, id=name)


def _of_test(test: Cursor) -> dict[str, Any]:
    """Return the fields of a case that a test of another block says."""
    servers = test["servers"].value
    one = servers[0] if isinstance(servers, list) and len(servers) == 1 else test["server"].value
    texts = {"server": one, "input": test["prompt"].value}
    values: dict[str, Any] = {name: text for name, text in texts.items() if isinstance(text, str)}
    runs = test["runs"].value
    return values if runs is None else {**values, "runs": runs or 1}


def _matchers(test: Cursor) -> Iterator[tuple[Cursor, dict[Any, Any]]]:
    """Yield each matcher of *test* in file order, with what the mappings around it keep; note misspelt ones."""
    stack: list[tuple[Cursor, dict[Any, Any]]] = [(test, {})]
    while stack:
        at, kept = stack.pop()
        if isinstance(at.value, list):
            stack += [(item, kept) for item in reversed([*at])]
        elif isinstance(at.value, dict):
            kept = {**kept, **{key: at.value[key] for key in _KEPT if key in at}}
            inner = [*at.items()]
            yield from ((part, kept) for key, part in inner if key in _KEYS)
            nested = [part["rubric"] for key, part in inner if key == "eval" and part.has("rubric")]
            for part in nested:  # `eval: {rubric: ...}` is `eval.rubric: ...`
                yield Cursor(part.value, part.notes, part.parent, "eval.rubric"), kept
            inner = [(key, part) for key, part in inner if key != "eval" or not part.has("rubric")]
            others = [(key, part) for key, part in inner if key not in _KEYS]
            for _, part in others:
                part.is_slip(_KEYS)
            stack += [(part, kept) for key, part in reversed(others) if key != "args"]


def _read_matcher(at: Cursor, kept: dict[Any, Any], test: Cursor, shared: Shared) -> Case | None:
    kind = at.step
    bare = isinstance(at.value, str) or (
        kind == "eval.rubric" and isinstance(at.value, dict) and "rubric" not in at.value
    )
    if bare:
        at, said = at.holding({"rubric": at.value}), at
    elif at.mapping():
        said = at["rubric"]
    else:
        return None
    at.only(_KEYS[kind])
    if not at.needs("rubric"):
        return None
    rubric = read_rubric(said, shared)
    judge = _read_judge(at)
    if rubric is None:
        return None
    values = {**_of_test(test), "id": "unnamed", "rubric": overridden(at, rubric), "judge": judge, "place": at.place}
    return at.made(Case, {**values, "metadata": kept})


def _read_judge(at: Cursor) -> AnyJudge | None:
    if "judge" in at:
        return read_judge(at["judge"])
    if "model" in at:
        return read_model(at["model"])
    return _read_jurors(at) if "jurors" in at or "quorum" in at else None


_JURY = {"size": "jurors", "consensus": "quorum"}


def _read_jurors(at: Cursor) -> AnyJudge | None:
    """Return the jury: one judge several times where all jurors are the same model, else a panel with its consensus."""
    if not at.needs("jurors"):
        return None
    jurors: list[Judge | None] = []
    for item in at["jurors"].listing("a list of models"):
        if isinstance(item.value, dict):
            item.only(["model"])
        jurors.append(read_model(item["model"] if isinstance(item.value, dict) else item))
    quorum = at.given({"consensus": "quorum"}).get("consensus", QUORUM)
    judges = [juror for juror in jurors if juror is not None]
    if not judges:
        at["jurors"].error("a jury has at least one juror, this one has none")
        return None
    jury = at.made(Jury, {"judge": judges[0], "size": len(judges), "consensus": quorum}, _JURY)
    if jury is None or all(judge == judges[0] for judge in judges):
        return jury
    needed, size = jury.needed, jury.size
    if needed not in (size // 2 + 1, (size + 1) // 2):
        return Panel(judges, aggregate="majority", consensus=quorum)
    return Panel(judges, aggregate="majority", tie_break="pass" if needed * 2 <= size else "fail")
