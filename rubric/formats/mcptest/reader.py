"""
The matchers of mcptest's other blocks that grade by rubric: `llm-judge`, `llm-jury` and `eval.rubric`.

Where a tool or an agent is tested, one of these may stand among what is expected. It becomes a case without an
output: the library makes no calls of tools, so a target, or whoever answers the case, has to bring the text.

mcptest files: their evals as cases ("Rubric scoring", and the reference of the `evals` block).

| in the file                          | here                                                             |
|--------------------------------------|------------------------------------------------------------------|
| `rubric:` text, criteria, tree       | `Case.rubric`; criteria are judged in 0..1                       |
| `ref`, `preset`, `rubrics`           | the rubric they name, under that name                            |
| threshold of the eval, inline, named | the first that is given, else 0.7                                |
| `prompt`, `response`                 | `Case.input`, `Case.output`; no response: a live target makes it |
| `judge`, `matrix`                    | `Case.judge`; a case for each cell                               |
| `server`                             | `Case.server`                                                    |
| matchers `llm-judge`, `llm-jury`     | cases too; their calls of tools are not made                     |
| everything else                      | a warning for each block                                         |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric.formats.cursor import fits, given, listing, made, mapping, only
from rubric.formats.mcptest.judges import cells, read_judge, read_matrix, read_model
from rubric.formats.mcptest.rubrics import Shared, overridden, read_rubric, read_shared
from rubric.internals.fields import misspelt
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.checks import Unsupported
from rubric.values.criteria import Criterion
from rubric.values.judges import AnyJudge, Judge, Jury, Panel, passes_needed
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.cursor import Loading, Notes
    from rubric.formats.document import KeyPath


Found = tuple["KeyPath", Case]
"""A case, and where its name stands."""

QUORUM = 0.5
"""The share of passing jurors from which an `llm-jury` passes, where it says none (mcptest, jury consensus)."""

_KEYS = {
    "llm-judge": ("rubric", "threshold", "model"),
    "llm-jury": ("rubric", "threshold", "quorum", "jurors"),
    "eval.rubric": ("rubric", "threshold", "judge"),
}

_KEPT = ("tool", "args", "target")
"""What a case keeps of the test around it, in its metadata."""


def read_matchers(notes: Notes, path: KeyPath, value: object, shared: Shared) -> Iterator[Found]:
    """Yield a case for each rubric in *value*, the tests of a block at *path*."""
    if not isinstance(value, list):
        return
    for index, test in enumerate(value):
        here = (*path, index)
        matchers = [*_matchers(notes, here, test)]
        for number, matcher in enumerate(matchers, 1):
            case = _read_case(notes, matcher, test, shared)
            name = _name(here, test) + (f" [{matcher.kind} {number}]" if len(matchers) > 1 else "")
            if case is not None and fits(notes, here, Case, {"id": name, "rubric": case.rubric}, {"id": "name"}):
                yield (*here, "name"), evolve(case, id=name)


def _name(path: KeyPath, test: dict[Any, Any]) -> str:
    name = test.get("name")
    return " ".join(name.split()) if isinstance(name, str) and name.strip() else f"{path[0]} {path[-1] + 1}"


@frozen
class Matcher:
    """A matcher of a *kind* at *path*: what it says, and what the mappings around it keep."""

    path: KeyPath
    kind: str
    data: object
    kept: dict[Any, Any]


def _matchers(notes: Notes, path: KeyPath, value: object) -> Iterator[Matcher]:
    """Yield each matcher below *path*, in the order of the file; one that is misspelt is noted, or it would be lost."""
    stack: list[tuple[KeyPath, object, dict[Any, Any]]] = [(path, value, {})]
    while stack:
        here, node, kept = stack.pop()
        if isinstance(node, list):
            stack += [((*here, index), item, kept) for index, item in reversed([*enumerate(node)])]
        elif isinstance(node, dict):
            kept = {**kept, **{key: node[key] for key in _KEPT if key in node}}
            yield from (Matcher((*here, key), key, node[key], kept) for key in node if key in _KEYS)
            others = {key: inner for key, inner in node.items() if key not in _KEYS}
            for key in others:
                if near := misspelt(key, _KEYS):
                    notes.error((*here, key), f"unknown key {key!r}; did you mean {near!r}?", key=True)
            stack += [((*here, key), inner, kept) for key, inner in reversed(others.items()) if key != "args"]


def _read_case(notes: Notes, matcher: Matcher, test: dict[Any, Any], shared: Shared) -> Case | None:
    path, data = matcher.path, matcher.data
    bare = isinstance(data, str) or _is_rubric(matcher.kind, data)
    block = {"rubric": data} if bare else mapping(notes, path, data)
    if block is None:
        return None
    only(notes, path, block, _KEYS[matcher.kind])
    if "rubric" not in block:
        notes.error(path, "the key 'rubric' is missing; add it")
        return None
    rubric = read_rubric(notes, path if bare else (*path, "rubric"), block["rubric"], shared)
    judge = _read_judge(notes, path, block)
    if rubric is None:
        return None
    if "threshold" in block:
        rubric = overridden(notes, (*path, "threshold"), rubric, block["threshold"])
    values = {"id": "unnamed", "rubric": rubric, "judge": judge, "place": notes.place(path)}
    case = made(notes, path, Case, {**values, **_of_test(test), "metadata": matcher.kept})
    return _answerable(notes, path, case, block) if case else None


def _is_rubric(kind: str, data: object) -> bool:
    return kind == "eval.rubric" and isinstance(data, dict) and "rubric" not in data


def _of_test(test: dict[Any, Any]) -> dict[str, str]:
    """Return what the case takes from the test around its matcher."""
    texts = {"server": test.get("server"), "input": test.get("prompt")}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _read_judge(notes: Notes, path: KeyPath, block: dict[Any, Any]) -> AnyJudge | None:
    if "judge" in block:
        return read_judge(notes, (*path, "judge"), block["judge"])
    if "model" in block:
        return read_model(notes, (*path, "model"), block["model"])
    return _read_jurors(notes, path, block) if "jurors" in block or "quorum" in block else None


def _read_jurors(notes: Notes, path: KeyPath, block: dict[Any, Any]) -> AnyJudge | None:
    """
    Return the jury: one judge several times where all jurors are the same model, else a panel.

    A panel decides by majority, so a quorum that needs another number of passes has none: see `_answerable`.
    """
    here = (*path, "jurors")
    if "jurors" not in block:
        notes.error(path, "the key 'jurors' is missing; add it")
        return None
    items = listing(notes, here, block["jurors"], "a list of models")
    jurors = [_read_juror(notes, (*here, index), item) for index, item in enumerate(items)]
    quorum = given(notes, path, block, {"consensus": "quorum"}).get("consensus", QUORUM)
    judges = [juror for juror in jurors if juror is not None]
    if not judges:
        notes.error(here, "a jury has at least one juror, this one has none")
        return None
    jury = made(notes, path, Jury, {"judge": judges[0], "size": len(judges), "consensus": quorum}, _JURY)
    if jury is None or all(judge == judges[0] for judge in judges):
        return jury
    half = passes_needed(jury.consensus, jury.size) * 2 <= jury.size
    return Panel(judges, aggregate="majority", tie_break="pass" if half else "fail")


_JURY = {"size": "jurors", "consensus": "quorum"}


def _read_juror(notes: Notes, path: KeyPath, item: object) -> Judge | None:
    if isinstance(item, dict):
        only(notes, path, item, ["model"])
        return read_model(notes, (*path, "model"), item.get("model"))
    return read_model(notes, path, item)


def _answerable(notes: Notes, path: KeyPath, case: Case, block: dict[Any, Any]) -> Case:
    """Return *case*, or the case as one that stays ungraded where its quorum is no majority of its panel."""
    if not isinstance(case.judge, Panel) or "jurors" not in block:
        return case
    size, quorum = len(case.judge.judges), block.get("quorum")
    needed = passes_needed(QUORUM if quorum is None else quorum, size)
    if needed in (size // 2 + 1, (size + 1) // 2):
        return case
    what = f"llm-jury of {size} different models, of which {needed} must pass"
    notes.warn((*path, "quorum"), f"{what}: a panel decides by majority, so this case stays ungraded")
    criterion = Criterion(str(Unsupported(what)), id="quorum", answer=Unsupported(what))
    return evolve(case, rubric=Rubric(case.rubric.name, criteria=[*case.rubric.judged, criterion]))


FIELDS = {"id": "name", "server": "server", "input": "prompt", "output": "response"}
"""For each plain field of a case that an mcptest file can give, its key there."""

_EVAL = (*FIELDS.values(), "rubric", "threshold", "judge", "matrix")
_BLOCKS = ("evals", "rubrics")


def read(notes: Notes, loading: Loading) -> Suite:  # noqa: ARG001 - every dialect is read with both
    """Return the suite in the document of *notes*; what is wrong with it is noted there."""
    data = mapping(notes, (), notes.data(), "a mapping with evals")
    if data is None:
        return Suite(format="mcptest")
    shared = read_shared(notes, ("rubrics",), data["rubrics"]) if "rubrics" in data else {}
    found: list[Found] = []
    for index, item in enumerate(listing(notes, ("evals",), data.get("evals", []), "a list of evals")):
        path = ("evals", index)
        found += [((*path, "name"), case) for case in _read_eval(notes, path, item, shared)]
    for key in data:
        if key not in _BLOCKS:
            found += _read_other(notes, key, data[key], shared)
    return Suite(cases=_unique(notes, found), format="mcptest")


def _read_eval(notes: Notes, path: KeyPath, data: object, shared: Shared) -> list[Case]:
    item = mapping(notes, path, data, "an eval (a mapping with name, prompt and rubric)")
    if item is None:
        return []
    only(notes, path, item, _EVAL)
    values = _values(notes, path, item)
    judge = read_judge(notes, (*path, "judge"), item["judge"]) if "judge" in item else None
    axes = read_matrix(notes, (*path, "matrix"), item["matrix"], judge) if "matrix" in item else None
    if not (values.keys() & {"input", "output"} or (axes and axes.prompts)):
        notes.error(path, "nothing to grade: an eval has a prompt for a live run, or a fixed response; give one")
    if "rubric" not in item:
        notes.error(path, "the key 'rubric' is missing; add it")
    rubric = read_rubric(notes, (*path, "rubric"), item["rubric"], shared) if "rubric" in item else None
    if rubric is None:
        fits(notes, path, Case, {"rubric": "unknown", **values}, FIELDS)
        return []
    if "threshold" in item:
        rubric = overridden(notes, (*path, "threshold"), rubric, item["threshold"])
    values |= {"rubric": rubric, "judge": judge, "place": notes.place(path)}
    case = made(notes, path, Case, values, FIELDS)
    if case is None:
        return []
    return [case] if axes is None else [*cells(case, axes)]


def _values(notes: Notes, path: KeyPath, item: dict[Any, Any]) -> dict[str, Any]:
    """Return the plain fields; `response:` without a value is no response."""
    present = {key: value for key, value in item.items() if value is not None or key != "response"}
    values = given(notes, path, present, FIELDS)
    if "name" not in item:
        values["id"] = f"eval {path[-1] + 1}"
        notes.warn(path, f"this eval has no name; it is called {values['id']!r} here")
    return values


def _read_other(notes: Notes, key: Any, value: object, shared: Shared) -> list[Found]:
    """Read the matchers that grade by rubric out of a block that is not about rubrics, and tell the rest."""
    if misspelt(key, _BLOCKS):
        notes.unknown((key,), "", _BLOCKS)
        return []
    found = [*read_matchers(notes, (key,), value, shared)]
    what = "only its rubrics are read" if found else "this is not about rubrics, and is left out"
    notes.warn((key,), f"{what}; mcptest itself runs the rest", key=True)
    return found


def _unique(notes: Notes, found: list[Found]) -> list[Case]:
    """Return the cases with names of their own; note the others."""
    seen: dict[str, Case] = {}
    for path, case in found:
        first = seen.setdefault(case.id, case)
        if first is not case:
            line = first.place.line if first.place else 1
            notes.error(path, f"the name {case.id!r} belongs to what line {line} starts already; give one another")
    return [*seen.values()]
