"""Judges, juries, panels and cascades in files; no file has an address, a key or a header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import fields_dict

from rubric.errors import DefinitionError, DumpError
from rubric.formats import fields
from rubric.formats.fields import WRITERS, mismatch
from rubric.formats.yaml import on_a_line
from rubric.values.criteria import Criterion
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel, as_judge
from rubric.values.registered_judges import name_of, registered_judge


def read_any_judge(data: Any) -> AnyJudge | None:
    """Return a judge: a name, or fields, `{jury: ...}`, `{panel: ...}`, `{cascade: ...}`, or a list (a panel)."""
    match data:
        case None:
            return None
        case str():
            return registered_judge(as_judge, data) or _read_judge({"model": data})
        case list():
            return Panel(_read_members(data))
        case dict() if len(data.keys() & _KINDS) == 1:
            (kind,) = data.keys() & _KINDS
            if len(data) > 1 or not isinstance(data[kind], dict):
                raise DefinitionError("", _within(data, kind))
            return fields.read_inner(data, kind, _KINDS[kind])
        case dict() if data.keys() & _KINDS:
            found = " and ".join(sorted(data.keys() & _KINDS))
            raise DefinitionError("", f"expected a judge, a jury, a panel or a cascade, got {found}; keep one of them")
        case {"judges": [*_]} | {"models": [*_]} | {"members": [*_]}:
            raise DefinitionError("", f"several judges are a panel{_line({'panel': _panel_of(data)})}")
        case {"params": _}:
            message = "a file sets no parameters of the vendor's; give them in code: Judge(params=...)"
            raise fields.SeveralError([(("params",), fields.WrongKeyError("", message))])
        case dict():
            _refuse_meant(data)
            return _read_judge(data)
        case _:
            raise mismatch("a model's name, or a mapping with model, jury, panel or cascade", data)


def _refuse_meant(data: dict[Any, Any]) -> None:
    """Refuse a vendor, settings or votes beside the name of a model, with the judge that is meant."""
    if (jury := _jury_of(data)) is not data and (line := _line(jury)):
        raise DefinitionError("", f"several votes of one judge are a jury{line}")
    vendor, model = data.get("provider"), data.get("model")
    if isinstance(model, str) and registered_judge(as_judge, model) is not None:
        others = ", ".join(str(key) for key in data if key != "model")
        settings = f", and {others} would have no effect" if others else ""
        raise DefinitionError("", f"{model!r} is registered with its settings{settings}; write judge: {model}")
    if isinstance(vendor, str) and isinstance(model, str):
        rest = {key: value for key, value in data.items() if key not in ("provider", "model")}
        name = model if "/" in model else f"{vendor}/{model}"
        raise DefinitionError("", f"provider and model are one name{_line({'model': name, **rest})}")


def _jury_of(judge: Any) -> Any:
    """Return the jury that *judge* is meant for, if it says how often it votes; else itself."""
    votes = next((key for key in _VOTES if isinstance(judge, dict) and type(judge.get(key)) is int), "")
    if not votes:
        return judge
    own = {key: each for key, each in judge.items() if key in fields_dict(Jury) and key != votes}
    rest = {key: each for key, each in judge.items() if key not in (votes, *own)}
    return {"jury": {"judge": rest["model"] if [*rest] == ["model"] else rest, "size": judge[votes], **own}}


_VOTES = ("votes", "size", "samples", "n_samples", "n", "n_votes", "num_votes", "repeat", "repeats")


def refuse_named_judges(data: dict[Any, Any]) -> None:
    """Refuse judges that the criteria of *data*, a suite, name, with those of the criteria by their ids."""
    rubric, named = data.get("rubric"), data.get("judges")
    listed = rubric.get("criteria") if isinstance(rubric, dict) else rubric
    rows = [each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict) and "judge" in each]
    names = [each["judge"] for each in rows if isinstance(each["judge"], str) and isinstance(each.get("text", ""), str)]
    if not names or len(names) != len(rows) or not isinstance(named, dict) or {*names} != named.keys():
        return
    ids = [str(each.get("id") or Criterion(each.get("text") or "x").id) for each in rows]
    every = {id_: _jury_of(named[name]) for id_, name in zip(ids, names, strict=True)}
    juries = {on_a_line(each): each for each in every.values() if isinstance(each, dict) and "jury" in each}
    own = {id_: each for id_, each in every.items() if each not in juries.values()}
    shared = dict(zip(["judge"], juries.values(), strict=False))  # a criterion's own judge votes once
    line = {**shared, **({"defaults": {"judges": own}} if own else {})}
    try:
        read_judges(every)
    except (DefinitionError, fields.SeveralError):
        return
    if len(juries) > 1 or (juries and ("judge" in data or len(rows) != len(listed or ()))):
        return  # a criterion that names no judge has that of the suite
    said = "unknown key; judges of single criteria belong to cases, by the ids of the criteria, and vote once"
    cure = f"write {' and '.join(on_a_line({key: each})[1:-1] for key, each in line.items())}"
    raise fields.WrongKeyError("judges", f"{said}; {cure}, and leave judge out of the criteria")


def _within(data: dict[Any, Any], kind: str) -> str:
    """Return why *data* is refused, whose *kind* of judge is no mapping, or has fields beside it."""
    held, rest = data[kind], {key: value for key, value in data.items() if key != kind}
    if kind == "jury" and isinstance(held, list):  # of several models
        return f"several judges are a panel{_line({'panel': _panel_of({'judges': held, **rest})})}"
    if kind == "panel" and "default" in rest and isinstance(held, dict):
        lines = f"judge: {on_a_line(rest['default'])} and defaults: {on_a_line({'judges': held})}"
        return f"those of single criteria stand beside it; write {lines}"
    name, of = _FIRST[kind]
    if kind == "cascade" and isinstance(held, list) and len(held) == 2:  # noqa: PLR2004 - judges
        held = {"first": held[0], "then": held[1], **({} if "when" in rest else {"when": "borderline"})}
    elif not isinstance(held, dict) or name not in held:  # it is a judge
        held = {name: [held] if name == "judges" and not isinstance(held, list) else held}
    if kind == "panel" and "default" not in rest:
        held = _panel_of({**held, **rest})
        rest = {}
    if surplus := [key for key in {**held, **rest} if key not in fields_dict(of)]:
        return f"{surplus[0]} is no field of a {kind}, which has {', '.join(fields_dict(of))}"
    return f"what a {kind} has is a mapping{_line({kind: {**held, **rest}})}"


def _panel_of(data: dict[Any, Any]) -> dict[str, Any]:
    """Return the fields of the panel that *data* is meant for: judges with weights, and how their votes count."""
    panel = {_PANEL.get(str(key), str(key)): value for key, value in data.items()}
    given = panel.get("judges")
    listed = given if isinstance(given, list) else [given]
    members = [each if isinstance(each, dict) else {"model": each} for each in listed]
    weights = [each.get("weight", 1) for each in members] if any("weight" in each for each in members) else []
    bare = [{key: value for key, value in each.items() if key != "weight"} for each in members]
    panel["judges"] = [each["model"] if [*each] == ["model"] else each for each in bare]
    return {**panel, "weights": weights} if weights else panel


def refuse_votes(data: dict[Any, Any]) -> None:
    """Refuse how judges vote where it stands in *data*, a suite, with the panel that is meant."""
    held: dict[Any, Any] = next((data[key] for key in ("jury", "panel") if isinstance(data.get(key), dict)), {})
    if isinstance(held.get("judges", held.get("models")), list):
        key = next(key for key in ("jury", "panel") if data.get(key) is held)
        line = _line({"panel": _panel_of(held)}, "judge: ")
        raise fields.WrongKeyError(key, f"unknown key; several judges are a panel{line}")
    pooled = ("aggregate", "aggregation") if "judges" not in data else ()  # else they may be the rubric's
    votes = {key: value for key, value in data.items() if key in _PANEL and key not in pooled}
    several = data.get("judge") if isinstance(data.get("judge"), list) else None
    if votes and (several or isinstance(votes.get("judges", votes.get("models")), list)):
        panel = _panel_of(votes if several is None else {"judges": several, **votes})
        if line := _line({"panel": panel}, "judge: "):
            raise fields.WrongKeyError(next(iter(votes)), f"unknown key; several judges are a panel{line}")


def _line(judge: dict[str, Any], key: str = "") -> str:
    """Return the cure that writes *judge*, behind its *key*; '' if it cannot be read."""
    try:
        read_any_judge(judge)
    except (DefinitionError, fields.SeveralError):
        return ""
    return f"; write {key}{on_a_line(judge)}"


def _read_members(data: Any) -> list[AnyJudge]:
    return fields.read_all(data, "judge", read_member)


def read_member(data: Any) -> AnyJudge:
    """Return a judge as `read_any_judge` does; refuse nothing."""
    member = read_any_judge(data)
    if member is None:
        raise mismatch("a model's name", None)
    return member


def read_judges(data: Any) -> dict[str, AnyJudge | None]:
    """Return the judges of single criteria, by their ids."""
    return fields.read_each(fields.as_dict(data, "a mapping from the ids of criteria to judges"), read_any_judge)


def _only(kinds: tuple[type, ...], what: str) -> fields.Read:
    """Return a reader that refuses all but *kinds* of data with *what* was expected: a file holds no code."""

    def read(data: Any) -> Any:
        if not isinstance(data, kinds):
            raise mismatch(what, data)
        return data

    return read


_read_when = _only((str, list), "fails, borderline, ungraded, disagrees, or a pair of scores")
_read_reader = _only((str, dict, type(None)), "rating, or a mapping from verdicts to patterns")
_read_judge = fields.reader_of(Judge, reader=_read_reader, params=None, threads=None, via=None, embedder=None)

_FIRST: dict[str, tuple[str, type]] = {
    "jury": ("judge", Jury),
    "panel": ("judges", Panel),
    "cascade": ("first", Cascade),
}
"""The field that a judge alone is given for, and the class."""

_PANEL = {
    **dict.fromkeys(("judges", "models", "members", "graders", "evaluators"), "judges"),
    **dict.fromkeys(("aggregate", "aggregation", "vote", "votes", "voting", "decision"), "aggregate"),
    **dict.fromkeys(("tie_break", "tie_breaker", "tiebreak", "on_tie", "ties", "tie"), "tie_break"),
    **dict.fromkeys(("weights", "weighting"), "weights"),
    "quorum": "quorum",
}
"""The words for the fields of a panel."""

_KINDS: dict[Any, Callable[[Any], AnyJudge]] = {
    "jury": fields.reader_of(Jury, judge=read_any_judge),
    "panel": fields.reader_of(Panel, judges=_read_members, weights=lambda data: data),
    "cascade": fields.reader_of(Cascade, first=read_member, then=read_member, when=_read_when),
}


def _write_judge(judge: Judge) -> Any:
    for stays, why in (
        (
            not isinstance(judge.model, str),
            "is a function; name a model, or register it as an entry point of rubric.judges",
        ),
        (judge.params, "has params, which stay in code: a file could send a key to another party"),
        (judge.embedder is not None, "has an embedder, which the run names and no file does"),
        (judge.via != "litellm", f"is asked via={judge.via!r}, which stays in code, as its address does"),
        (callable(judge.reader), "has a function as its reader, which stays in code; use a mapping of patterns"),
    ):
        if stays and (name := name_of(judge, as_judge)):
            return name
        if stays:
            raise DumpError(f"the judge {judge.name!r} {why}")
    data = fields.fields_of(judge, first=("model",))
    return judge.model if [*data] == ["model"] else data


def _write_cascade(cascade: Cascade) -> Any:
    if not isinstance(cascade.when, str | tuple):
        raise DumpError("the cascade's `when` is a function; use a word or a pair of scores")
    return {"cascade": fields.fields_of(cascade)}


WRITERS |= {
    Judge: _write_judge,
    Jury: lambda jury: {"jury": fields.fields_of(jury)},
    Cascade: _write_cascade,
    Panel: lambda panel: {"panel": fields.fields_of(panel)},
}
