"""Judges, juries and panels in files: who judges, and never an address, a key or a header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric.errors import DefinitionError, DumpError
from rubric.formats.converters import Gathering, WrongKeyError, as_list, reader_of, wanted
from rubric.formats.unstructuring import WRITERS, fields_of
from rubric.judges import Bench, Judge, Jury, Panel

__all__ = ["read_bench", "read_judges"]


def read_bench(data: Any) -> Bench | None:
    """Return who judges: a model's name, the fields of a judge, `{jury: ...}`, `{panel: ...}`, or a list (a panel)."""
    match data:
        case None:
            return None
        case str():
            return _read_judge({"model": data})
        case list():
            return Panel(_read_members(data))
        case {"jury": _} | {"panel": _} if len(data) == 1:
            ((kind, given),) = data.items()
            gathering = Gathering(Judge)
            found: list[Bench] = []
            with gathering.at(kind):
                found.append(_KINDS[kind](given))
            gathering.finish()
            return found[0]
        case dict() if data.keys() & _KINDS:
            kinds = " and ".join(str(key) for key in data)
            raise DefinitionError("", f"expected a judge, a jury or a panel, got {kinds}; keep one of them")
        case dict():
            _refuse_params(data)
            return _read_judge(data)
        case _:
            raise wanted("a model's name, or a mapping with model, jury or panel", data)


def _refuse_params(data: dict[Any, Any]) -> None:
    if "params" in data:
        gathering = Gathering(Judge)
        with gathering.at("params"):
            raise WrongKeyError("", "a file sets no parameters of the vendor's; give them in code: Judge(params=...)")
        gathering.finish()


def _read_members(data: Any) -> list[Bench]:
    gathering = Gathering(Panel)
    members: list[Bench] = []
    for index, item in enumerate(as_list(data, "a list of judges")):
        with gathering.at(index):
            member = read_bench(item)
            if member is None:
                raise wanted("a model's name", None)
            members.append(member)
    gathering.finish()
    return members


def read_judges(data: Any) -> dict[str, Bench | None]:
    """Return who judges single criteria, by their ids."""
    if not isinstance(data, dict):
        raise wanted("a mapping from the ids of criteria to judges", data)
    gathering = Gathering(Judge)
    found: dict[str, Bench | None] = {}
    for key, value in data.items():
        with gathering.at(key):
            found[key] = read_bench(value)
    gathering.finish()
    return found


_read_judge = reader_of(Judge, params=None)
_KINDS: dict[Any, Callable[[Any], Bench]] = {
    "jury": reader_of(Jury, judge=read_bench),
    "panel": reader_of(Panel, judges=_read_members, weights=lambda data: data),
}


def _write_judge(judge: Judge) -> Any:
    if not isinstance(judge.model, str):
        msg = f"the judge {judge.name!r} is a function; name a model"
        raise DumpError(msg)
    if judge.params:
        msg = f"the judge {judge.name!r} has params, which stay in code: a file could send a key to a stranger"
        raise DumpError(msg)
    data = fields_of(judge, first=("model",))
    return judge.model if [*data] == ["model"] else data


WRITERS[Judge] = _write_judge
WRITERS[Jury] = lambda jury: {"jury": fields_of(jury)}
WRITERS[Panel] = lambda panel: {"panel": fields_of(panel)}
