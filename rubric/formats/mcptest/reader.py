"""
mcptest files: their evals as cases, and the matchers of other blocks that grade by rubric.

| in the file                          | here                                                             |
|--------------------------------------|------------------------------------------------------------------|
| `rubric:` text, criteria, tree       | `Case.rubric`; criteria are judged in 0..1                       |
| `ref`, `preset`, `rubrics`           | the rubric they name, under that name                            |
| threshold of the eval, inline, named | the first that is given, else 0.7                                |
| `prompt`, `response`                 | `Case.input`, `Case.output`; no response: a live target makes it |
| `judge`, `matrix`                    | `Case.judge`; a case for each cell                               |
| `server`                             | `Case.server`                                                    |
| matchers `llm-judge`, `llm-jury`,    | cases too, without an output: no tool is called, so a target     |
| `eval.rubric`                        | has to bring the text                                            |
| everything else                      | a warning for each block                                         |

See "Rubric scoring" and the reference of the `evals` block in mcptest's documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric.formats.cursor import Cursor
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
_BLOCKS = ("evals", "rubrics")

Found = tuple["Cursor", Case]
"""The place of a case's name, and the case."""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*; errors are noted there."""
    root = Cursor.of(notes, loading)
    if not root.mapping("a mapping with evals"):
        return Suite(format="mcptest")
    shared = read_shared(root["rubrics"]) if "rubrics" in root else {}
    found: list[Found] = []
    for item in root["evals"].listing("a list of evals") if "evals" in root else ():
        found += [(item["name"], case) for case in _read_eval(item, shared)]
    for key, block in root.items():
        if key not in _BLOCKS:
            found += _read_other(block, shared)
    return Suite(cases=_unique(found), format="mcptest")


def _unique(found: list[Found]) -> list[Case]:
    """Return the cases with names of their own; note the others."""
    seen: dict[str, Case] = {}
    for name, case in found:
        first = seen.setdefault(case.id, case)
        if first is not case:
            line = first.place.line if first.place else 1
            name.error(f"the name {case.id!r} belongs to what line {line} starts already; give one another")
    return [*seen.values()]


# -- evals --------------------------------------------------------------------------------------------------


def _read_eval(item: Cursor, shared: Shared) -> list[Case]:
    if not item.mapping("an eval (a mapping with name, prompt and rubric)"):
        return []
    item.only(_EVAL)
    values = item.given(FIELDS, blank=("response",))
    if "name" not in item:
        values["id"] = f"eval {item.step + 1}"
        item.warn(f"this eval has no name; it is called {values['id']!r} here")
    judge = read_judge(item["judge"]) if "judge" in item else None
    axes = read_matrix(item["matrix"], judge) if "matrix" in item else None
    if not (values.keys() & {"input", "output"} or (axes and axes.prompts)):
        item.error("nothing to grade: an eval has a prompt for a live run, or a fixed response; give one")
    rubric = read_rubric(item["rubric"], shared) if item.needs("rubric") else None
    if rubric is None:
        item.fits(Case, {"rubric": "unknown", **values}, FIELDS)
        return []
    values |= {"rubric": overridden(item, rubric), "judge": judge, "place": item.place}
    case = item.made(Case, values, FIELDS)
    return [] if case is None else [case] if axes is None else [*cells(case, axes)]


# -- matchers of the other blocks -----------------------------------------------------------------------------


def _read_other(block: Cursor, shared: Shared) -> list[Found]:
    """Read the matchers that grade by rubric out of a block that is not about rubrics, and tell the rest."""
    if misspelt(block.step, _BLOCKS):
        block.unknown("", _BLOCKS)
        return []
    found = [*_read_matchers(block, shared)]
    what = "only its rubrics are read" if found else "this is not about rubrics, and is left out"
    block.warn(f"{what}; mcptest itself runs the rest", key=True)
    return found


def _read_matchers(block: Cursor, shared: Shared) -> Iterator[Found]:
    """Yield a case for each rubric among the tests of a block."""
    for test in block if isinstance(block.value, list) else ():
        matchers = [*_matchers(test)]
        for number, matcher in enumerate(matchers, 1):
            case = _read_matcher(matcher, test, shared)
            name = _name(block, test) + (f" [{matcher.at.step} {number}]" if len(matchers) > 1 else "")
            if case is not None and test.fits(Case, {"id": name, "rubric": case.rubric}, {"id": "name"}):
                yield test["name"], evolve(case, id=name)


def _name(block: Cursor, test: Cursor) -> str:
    name = test["name"].value
    return " ".join(name.split()) if isinstance(name, str) and name.strip() else f"{block.step} {test.step + 1}"


@frozen
class Matcher:
    """A matcher, and what the mappings around it keep; its key says its kind."""

    at: Cursor
    kept: dict[Any, Any]


def _matchers(test: Cursor) -> Iterator[Matcher]:
    """Yield each matcher of *test*, in the order of the file; one that is misspelt is noted, or it would be lost."""
    stack: list[tuple[Cursor, dict[Any, Any]]] = [(test, {})]
    while stack:
        at, kept = stack.pop()
        if isinstance(at.value, list):
            stack += [(item, kept) for item in reversed([*at])]
        elif isinstance(at.value, dict):
            kept = {**kept, **{key: at.value[key] for key in _KEPT if key in at}}
            inner = [*at.items()]
            yield from (Matcher(part, kept) for key, part in inner if key in _KEYS)
            others = [(key, part) for key, part in inner if key not in _KEYS]
            for key, part in others:
                if near := misspelt(key, _KEYS):
                    part.error(f"unknown key {key!r}; did you mean {near!r}?", key=True)
            stack += [(part, kept) for key, part in reversed(others) if key != "args"]


def _read_matcher(matcher: Matcher, test: Cursor, shared: Shared) -> Case | None:
    at, kind = matcher.at, matcher.at.step
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
    texts = {"server": test["server"].value, "input": test["prompt"].value}
    values: dict[str, Any] = {name: text for name, text in texts.items() if isinstance(text, str)}
    values |= {"id": "unnamed", "rubric": overridden(at, rubric), "judge": judge, "place": at.place}
    case = at.made(Case, {**values, "metadata": matcher.kept})
    return None if case is None else _answerable(at, case)


def _read_judge(at: Cursor) -> AnyJudge | None:
    if "judge" in at:
        return read_judge(at["judge"])
    if "model" in at:
        return read_model(at["model"])
    return _read_jurors(at) if "jurors" in at or "quorum" in at else None


_JURY = {"size": "jurors", "consensus": "quorum"}


def _read_jurors(at: Cursor) -> AnyJudge | None:
    """
    Return the jury: one judge several times where all jurors are the same model, else a panel.

    A panel decides by majority, so a quorum that needs another number of passes has none: see `_answerable`.
    """
    if not at.needs("jurors"):
        return None
    jurors = [_read_juror(item) for item in at["jurors"].listing("a list of models")]
    quorum = at.given({"consensus": "quorum"}).get("consensus", QUORUM)
    judges = [juror for juror in jurors if juror is not None]
    if not judges:
        at["jurors"].error("a jury has at least one juror, this one has none")
        return None
    jury = at.made(Jury, {"judge": judges[0], "size": len(judges), "consensus": quorum}, _JURY)
    if jury is None or all(judge == judges[0] for judge in judges):
        return jury
    half = passes_needed(jury.consensus, jury.size) * 2 <= jury.size
    return Panel(judges, aggregate="majority", tie_break="pass" if half else "fail")


def _read_juror(item: Cursor) -> Judge | None:
    if isinstance(item.value, dict):
        item.only(["model"])
        return read_model(item["model"])
    return read_model(item)


def _answerable(at: Cursor, case: Case) -> Case:
    """Return *case*; where its quorum is no majority of its panel, as one that stays ungraded."""
    if not isinstance(case.judge, Panel) or "jurors" not in at:
        return case
    size, quorum = len(case.judge.judges), at["quorum"].value
    needed = passes_needed(QUORUM if quorum is None else quorum, size)
    if needed in (size // 2 + 1, (size + 1) // 2):
        return case
    what = f"llm-jury of {size} different models, of which {needed} must pass"
    at["quorum"].warn(f"{what}: a panel decides by majority, so this case stays ungraded")
    criterion = Criterion(str(Unsupported(what)), id="quorum", answer=Unsupported(what))
    return evolve(case, rubric=Rubric(case.rubric.name, criteria=[*case.rubric.judged, criterion]))
