"""
The matchers of mcptest's other blocks that grade by rubric: `llm-judge`, `llm-jury` and `eval.rubric`.

Where a tool or an agent is tested, one of these may stand among what is expected. It becomes a case without an
output: the library makes no calls of tools, so a target, or whoever answers the case, has to bring the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric.checks import Unsupported
from rubric.criteria import Criterion
from rubric.formats.locating import fits, given, listing, made, mapping, only
from rubric.formats.mcptest.judges import read_judge, read_model
from rubric.formats.mcptest.rubrics import Shared, overridden, read_rubric
from rubric.judges import Bench, Judge, Jury, Panel, passes_needed
from rubric.rubrics import Rubric
from rubric.suites.cases import Case
from rubric.validating import misspelt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes

__all__ = ["Found", "read_matchers"]

Found = tuple["Path", Case]
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


def read_matchers(notes: Notes, path: Path, value: object, shared: Shared) -> Iterator[Found]:
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


def _name(path: Path, test: dict[Any, Any]) -> str:
    name = test.get("name")
    return " ".join(name.split()) if isinstance(name, str) and name.strip() else f"{path[0]} {path[-1] + 1}"


@frozen
class Matcher:
    """A matcher of a *kind* at *path*: what it says, and what the mappings around it keep."""

    path: Path
    kind: str
    data: object
    kept: dict[Any, Any]


def _matchers(notes: Notes, path: Path, value: object) -> Iterator[Matcher]:
    """Yield each matcher below *path*, in the order of the file; one that is misspelt is noted, or it would be lost."""
    stack: list[tuple[Path, object, dict[Any, Any]]] = [(path, value, {})]
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


def _read_judge(notes: Notes, path: Path, block: dict[Any, Any]) -> Bench | None:
    if "judge" in block:
        return read_judge(notes, (*path, "judge"), block["judge"])
    if "model" in block:
        return read_model(notes, (*path, "model"), block["model"])
    return _read_jurors(notes, path, block) if "jurors" in block or "quorum" in block else None


def _read_jurors(notes: Notes, path: Path, block: dict[Any, Any]) -> Bench | None:
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


def _read_juror(notes: Notes, path: Path, item: object) -> Judge | None:
    if isinstance(item, dict):
        only(notes, path, item, ["model"])
        return read_model(notes, (*path, "model"), item.get("model"))
    return read_model(notes, path, item)


def _answerable(notes: Notes, path: Path, case: Case, block: dict[Any, Any]) -> Case:
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
