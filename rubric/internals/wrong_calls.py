"""
Answer a call whose arguments do not fit with the call that works. It is loaded by the first wrong call.

The words that people try are in `guesses.toml`; here are the rules, and the shapes of some calls.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import islice, permutations, takewhile
from pathlib import Path
from typing import Any, NoReturn, cast

import attrs
from attrs import define

from rubric.errors import CallError, DefinitionError
from rubric.internals.conversions import conversions, meant_value
from rubric.internals.cure_lines import OPTION, lines_in, merge, problem_in, sound, with_argument
from rubric.internals.fields import as_found, misspelt, suggest
from rubric.internals.guesses import (
    SHORT,
    argument_for,
    cures_in,
    forms_of,
    held_in,
    kind_of,
    metric_cure,
    source_of,
    table,
    term_of,
    value_cure,
    variable_of,
)
from rubric.internals.row_files import rows_in
from rubric.internals.secrets import is_secret
from rubric.internals.text import counted

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_ONE_TEXT = frozenset({"context", "input", "reference", "output", "guidelines"})
_LONGEST, _MOST_ORDERS = 300, 24  # of a value that is written anew, and of arguments in another order
_ANSWERS = frozenset({"answer", "levels", "choices", "check", "tree"})
_OWN = frozenset({"text", "name", "tree", "criteria", "id"})


def answer_call(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: TypeError | DefinitionError
) -> Arguments:
    """Return the arguments of `Rubric([...])`, which is documented; refuse other calls with the line that works."""
    call = _call_of(function, args, named)
    if call.owner == "Rubric" and [*map(type, call.args)] in ([list], [tuple]) and "criteria" not in named:
        args, named = args[:1], {"criteria": call.args[0], **named}
        if not call.unknown:
            return args, named
        call = _call_of(function, args, named)
    _refuse_shape(call)
    if isinstance(error, DefinitionError):
        raise call.in_order(error.field) or call.with_cures(error) from None
    return call.refuse()


def _call_of(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> _Call:
    owner = function.__name__ if function.__name__ != "__init__" else type(args[0]).__name__
    given = args if _is_free(function) else args[1:]
    bare: Callable[..., object] | None = None
    if function.__name__ == "__init__" and owner != "Store":  # which opens a file
        bare = lambda *given, **named: function(object.__new__(type(args[0])), *given, **named)  # noqa: E731
    elif given is not args and type(args[0]).__name__ == "Rubric" and owner not in ("save", "Store"):
        bare = partial(function, args[0])  # a verb of a rubric, which changes nothing
    return _Call(owner, _callee(function, args), _parameters(function), given, dict(named), bare)


def _callee(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return what stands before the bracket of a call: `Criterion`, `rubric.expects`, `grade`."""
    if function.__name__ == "__init__":
        return type(args[0]).__name__
    if _is_free(function):
        public = {parent: name for name, parent in [*table()["parents"].items()][::-1]}  # of a base: a class that is
        kind, _, name = function.__qualname__.rpartition(".")
        return f"{public.get(kind, kind)}.{name}".lstrip(".")
    return f"{args[0].__name__ if isinstance(args[0], type) else variable_of(args[0])}.{function.__name__}"


def _is_free(function: Callable[..., Any]) -> bool:
    return "." not in function.__qualname__ or len(_parameters(function)) == len(inspect.signature(function).parameters)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: each for name, each in found.items() if name not in ("self", "cls")}


@define(slots=False)
class _Call:
    """A call that does not fit: its name, what it would take, and what it was given."""

    owner: str
    called: str
    parameters: Mapping[str, inspect.Parameter]
    args: tuple[Any, ...]
    named: dict[str, Any]
    bare: Callable[..., object] | None  # without the hook, which would try its cures within this one

    def __attrs_post_init__(self) -> None:
        self.meant = dict[str, Any]()  # by the arguments whose cures have another value than was typed
        is_async = self.owner[:1] == "a" and self.owner[1:] in table()["examples"]
        sync = self.owner[is_async:]
        self.alike = str(table()["alike"].get(sync, sync))
        is_of = any(each in _ANSWERS or argument_for("Criterion", each, _ANSWERS) for each in self.named)
        kinds = ["criterion"] * (self.owner in table()["criteria"]["calls"]) + [f"{self.called}_yes_no"] * (not is_of)
        self.sections = (self.alike, *kinds)
        parts = {name: (each.kind, each.default is each.empty) for name, each in self.parameters.items()}
        of = inspect.Parameter
        self.names = [n for n, (kind, _) in parts.items() if kind not in (of.VAR_KEYWORD, of.POSITIONAL_ONLY)]
        self.places = [n for n, (kind, _) in parts.items() if kind <= of.POSITIONAL_OR_KEYWORD]
        self.positional_only = [n for n, (kind, _) in parts.items() if kind is of.POSITIONAL_ONLY]
        self.is_variadic = any(kind is of.VAR_POSITIONAL for kind, _ in parts.values())
        many = (of.VAR_POSITIONAL, of.VAR_KEYWORD)
        lacking = [n for n, (kind, is_due) in parts.items() if is_due and kind not in many]
        self.required = [name for name in lacking if name not in self.positional_only]
        self.unknown = [name for name in self.named if name not in self.names]
        self.twice = [name for name in self.places[: len(self.args)] if name in self.named and name in self.names]
        in_place = dict(zip(self.places, self.args, strict=False))
        self.given = {**in_place, **self.named}
        for name in self.twice:  # `agreement(labels, grades=grades)`: the first is another argument
            is_target = name == "judge" and "target" in {*self.names} - self.given.keys()  # what is judged comes first
            other = self._holder(in_place[name]) or "target" * is_target
            self.given |= {other: in_place[name]} if other else {}
        self.missing = [name for name in lacking if name not in self.given]

    def in_order(self, field: str) -> CallError | None:
        """Return the error with another order of the arguments, in which each is taken; None if there is none."""
        for order in islice(permutations(self.args), 1, _MOST_ORDERS) if self.bare and not self.is_variadic else ():
            known = {**dict(zip(self.places, order, strict=False)), **self.named}
            moved = [{type(a), type(b)} for a, b in zip(order, self.args, strict=True) if a is not b]
            if {str} not in moved and not self._refusal(known):
                return CallError(field, f"the order is another; write {self._written(known)}")
        return None

    def with_cures(self, error: DefinitionError) -> DefinitionError:
        """Return *error* with its cure, and with those of the other values that would be refused next."""
        first, field, said, values = error, error.field, "", {**self.given}
        while True:
            cure = self.cure_of(error)
            told = error.message if cure in error.message else _with_cure(error.message, cure)
            said += f"; {error.field}: {told}" if said else told
            if error.field not in values or error.field in self.required or not self.names:
                break
            del values[error.field]
            found = self._refusal(values)
            if not isinstance(found, DefinitionError) or found.field not in values:
                break
            error = found
        left = dict.fromkeys({field.partition("[")[0], *(self.given.keys() - values)})
        whole = self.checked(said, left)
        return first if whole == first.message else DefinitionError(field, whole)  # with its words of the shell

    def checked(self, said: str, also: Mapping[str, Any] | None = None) -> str:
        """Return *said* without the lines that fit nothing, or lack what was typed: the arguments, and *also* these."""
        told = {n: v for n, v in {**self.given, **(also or {})}.items() if f"got {as_found(v)}" not in said}
        more = {f"+{place}": value for place, value in enumerate(self.args[len(self.places) :])}
        return sound(said, partial(_lost_in, told | more), self.called)

    def cure_of(self, error: DefinitionError) -> str:
        """Return the end of the message of *error*: the value that was meant, or the form of one that works."""
        field = error.field
        head = re.split(r"[.\[]", field)[0]
        wrong = found[1] if (found := re.search("got (.{1,80}?)(?:; |$)", error.message)) else ""
        many = {n: v for n, v in self.given.items() if isinstance(v, Mapping | list | tuple)}
        held = (n for n, v in self.given.items() if wrong == as_found(v) or (n in many and wrong in repr(v)))
        head = head if head in self.given else next(held, head)
        given, is_place = self.given.get(field), head in self.positional_only
        if isinstance(given, type) and (example := table()["examples"].get(given.__name__)):
            line = example if given.__name__ == self.owner else self._written(self.given, **{field: example})
            return f"; a class is not yet a value; write {line}"
        is_of_form = error.message.startswith("expected") and ("; write" not in error.message or is_place)
        before, is_threshold = "" if is_place else f"{field}=", field in ("threshold", "min_score", "score")
        cure = value_cure(given, error.message, before, is_threshold=is_threshold) if field in self.given else ""
        if cure:
            return cure
        is_open = error.message.startswith(("expected", "unknown value"))
        of = getattr(self.given.get(head), "__self__", self.given.get(head))  # of a method that was not called
        for code, value in held_in(of, head) if is_open else ():
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and self.bare is not None
            is_held = type(value).__name__ in table()["held"].get(head, "").split()
            if is_held or (is_number and not self._refusal({**self.given, head: value})):
                return f"; write {self._written(self.given, **{head: code})}"
        if is_open and head in self.given and (meant := self._meant(head, error)):
            return f"; write {self._written(self.given, **{head: meant}) if is_place else f'{head}={meant}'}"
        lists = [each for each in self.args if isinstance(each, list) and wrong == as_found(each)]
        if self.is_variadic and lists:
            return f"; write {self.called}({', '.join(map(partial(source_of, ''), lists[0]))})"
        if isinstance(given, Mapping) and given and given.keys() <= {*self.names} and self.owner[0].isupper():
            return f"; its fields are given by their names: {self.called}(**{source_of('', dict(given), 'fields')})"
        if field not in self.given and (quoted := re.search("got '([^']*)'$", error.message)):  # it is within one
            given, head = quoted[1], ""
            cure = value_cure(given, error.message)
        cure = cure or self.completed(self._wrong(field, given) or self._wrong(head, self.given.get(head)))
        joined = _text_of(field, given) if isinstance(given, list | tuple) else ""
        cure = cure or (f"; write {field}={joined}" if ".join(" in joined else "")
        form = table()["forms"].get(field if field in self.names else head, "") if is_of_form else ""
        if form.startswith(f"{head}=") and is_place:
            form = self._written(self.given, **{head: re.split(r", (?=in|one)", form)[0].partition("=")[2]})
        return cure or (form and f"; {'such as' if re.match('[a-zA-Z_.]+[=(]', form) else 'write'} {form}")

    def _written(self, values: Mapping[str, Any], **shown: str) -> str:
        """Return the call with these *values* by their arguments, some *shown* as this code."""
        shown = {name: _text_of(name, value) for name, value in values.items()} | shown
        return f"{self.called}({', '.join(v if n in self.places else f'{n}={v}' for n, v in shown.items())})"

    def _wrong(self, field: str, given: object) -> str:
        """Return the end of the message on what was *given* for *field*, if the table has its kind; else ''."""
        if (at := re.fullmatch(r"(\w+)\[(\d+)\]", field)) and isinstance(self.given.get(at[1]), list | tuple):
            given = self.given[at[1]][int(at[2])]
        kind, source = kind_of(given), source_of("", given, is_made=True)
        source = "..." if kind == "function" else source
        for pattern, line in table()["wrong"].items():
            if found := re.fullmatch(pattern, f"{self.owner}.{field}={kind if source == '...' else source}"):
                # What was typed may hold a placeholder, and stays as it is.
                cure = re.sub(r"\\(\d)", lambda part, of=found: str(of[int(part[1])]), self._as_typed(line))  # type: ignore[misc]
                return f"; {cure}"
        return ""

    def _meant(self, field: str, error: DefinitionError) -> str:
        """Return the one value that was meant for *field*, which *error* refuses, as one would type it; or ''."""
        given, default = self.given[field], self.parameters[field].default if field in self.parameters else None

        def fits(value: object) -> bool:
            is_text = isinstance(given, str | re.Pattern) or error.message.startswith("expected text")
            if isinstance(value, str) and not is_text:
                return False  # the text of a number is one, and means nothing
            if self.bare is None:
                return isinstance(default, int | float) and type(value) is type(default)
            found = self._refusal({**self.given, field: value})
            return found is None or (isinstance(found, DefinitionError) and found.field in {*self.given} - {field})

        found = meant_value(field, given, fits)
        source = "".join(map(partial(source_of, field, place="...", most=_LONGEST, is_made=True), found))
        return "" if "..." in source else source

    def refuse(self) -> NoReturn:
        """Raise the error for all arguments that do not fit, with one line in which each of them has its place."""
        takes = self.names or self.positional_only or [n for n in self.unknown if self._note(n, forms_of(n))]
        if not self.unknown or not takes:
            line = self.chained()
            is_one = line and (self.owner == "checks" or any(" " in text for text in self.args[1:]))
            ways = [line] if is_one else [self._example(), line]
            raise CallError(self.owner, self.checked(f"{self._misfit()}; write {', or '.join(filter(None, ways))}"))
        tried = {n: v for n, v in self.named.items() if n not in self.unknown and self.bare is None}
        cures, words = {n: cure[2:] for n, v in tried.items() if (cure := self._wrong(n, v))}, dict[str, str]()
        wrong = [*cures]
        near = [w for of, ws in cures_in("arguments", self.alike, "every") if of in self.names for w in ws]
        for name in self.unknown:
            value, term = self.named[name], term_of(name)
            of_term = term if term in self.names else self._word(term)
            is_off = value is (name in table()["filler"]["inverted"]) and self.owner != "filter"
            said = self._wrong(name, value)[2:]
            known = "" if value is None else said or self._column(name) or self._note(name, forms_of(name))
            note = "" if is_off and not said else known
            is_idle = value is None or (is_off and (known or self._elsewhere(name, term or name)))
            cure = note or ("nothing changes without it; leave it out" if is_idle else "")
            own = name if name in self.positional_only else self._word(name)
            guess = misspelt(name, self.names) or of_term or self._holder(value) or self._word(misspelt(name, near))
            fits_own = type(value).__name__ in table()["held"].get(own, "").split()
            word = own if fits_own else self._holder(value) or own  # of a value whose kind one argument alone takes
            if word and not note and value is not None:
                words[name] = word
            elif cure := cure or self._elsewhere(name, name) or self._note(name, [term]):
                cures[name] = cure
            elif guess:
                words[name] = guess
            else:
                cures[name] = self._elsewhere(name, term) or self._unknown(name)
        names = [name for name in self.unknown if words.get(name) != name] or self.unknown
        placed = table()["placed"].get(self.alike, "") if self.args and isinstance(self.args[0], str) else ""
        field, _, said = self._together([*names, *wrong], cures, words).partition(": ")
        raise CallError(field, said + placed)

    def _column(self, name: str) -> str:
        """Return the cure of an option that names a column: by its own name, `id_col`, or by that of a column here."""
        value, rows = self.named[name], self.given.get("candidates", self.given.get("frame", self.given.get("path")))
        first = rows[0] if isinstance(rows, list) and rows else None
        if isinstance(rows, str | os.PathLike):
            with suppress(DefinitionError, OSError, ValueError):
                first = next(rows_in("path", Path(rows)), (None, None))[1]
        there = getattr(rows, "columns", first if isinstance(first, Mapping) else ())
        candidate, label = ("rubric", "Candidate", "output"), ("rubric.trust", "Label", "value")
        home, kind, whole = label if self.called.startswith("Labels.") else candidate
        of = re.sub("_?(col|column|field)(_?name)?$", "", name.lower()) or whole
        if "columns" not in self.names or not isinstance(value, str) or (of == name and value not in there):
            return ""
        if len(there) and value not in there:
            return f"there is no column {value!r}{suggest(value, map(str, there))}"
        fields = [*_parameters(getattr(import_module(home), kind).__init__)]
        field = of if of in fields else argument_for(kind, of, fields)
        return field and f"a column is named by its field; write columns={{{field!r}: {value!r}}}"

    def _with_columns(self, line: str) -> tuple[str, str]:
        """Return *line* with all columns that the rows of this call need; or what is wrong with those that it has."""
        found = re.search(r"columns=(\{[^{}]*\})", line)
        try:
            columns = ast.literal_eval(found[1]) if found else None
            if columns and "candidates" in self.given:
                import_module("rubric.engine.sources").source_of(self.given["candidates"], columns)
            elif columns and self.called.startswith("Labels."):
                getattr(import_module("rubric.trust").Labels, self.owner)(**self.given | {"columns": columns})
        except DefinitionError as problem:
            more = re.search(r"columns=(\{[^{}]*\})", problem.message)
            whole = line.replace(found[1], more[1]) if more and found else line
            return self._with_columns(whole) if whole != line else (line, str(problem))
        except (ValueError, TypeError):  # a name stands in it, or the rows are none
            pass
        return line, ""

    def _holder(self, value: object) -> str:
        """Return the argument that is not given yet and takes values of the kind of this *value*."""
        kind, held = type(value).__name__, table()["held"]
        return next((n for n in self.names if kind in held.get(n, "").split() and n not in self.given), "")

    def _together(self, names: Sequence[str], cures: Mapping[str, str], words: Mapping[str, str]) -> str:
        """Return the message on the arguments with these *names*, with one line that has all *cures* of this call."""
        also = {n: value for n in cures if not isinstance(value := self.meant.get(n, self.named[n]), bool)}
        kept = {**also}  # by the line of this call
        clashes = {name for name, word in words.items() if word in self.given and word not in self.unknown}
        clashes |= {name for n, name in enumerate(words) if words[name] in [*words.values()][:n]}
        self.named = {words.get(n, n): v for n, v in self.named.items() if n not in cures and n not in clashes}
        self.given = {**dict(zip(self.places, self.args, strict=False)), **self.named}
        self.missing = [name for name in self.missing if name not in self.given]
        line, is_changed, is_merged = self._example(), bool(words), False
        said, apart, without, told = list[str](), list[str](), list[str](), dict[str, list[str]]()
        for name in names:
            if (cure := cures.get(name, "")) in told:
                told[cure].append(f"{name}: likewise")
                continue
            reason, code, *_ = [*re.split("(?:^|[;,] )write ", cures.get(name, ""), maxsplit=1), ""]
            reason = reason or "its value is of another kind"
            merged, is_one = "", bool(code) and "; " not in code
            if is_one and name in also and _lost_in({name: also[name]}, code):
                cures = {**cures, name: f"{reason}, such as {code}"}
            elif is_one:
                merged = self._merged(line, code)
            line, is_merged = merged or line, is_merged or bool(merged)
            if word := words.get(name):
                is_same = f"{self.called}() takes it without its name" if word == name else ""
                reason = is_same or f"{self.called}() has no such option; did you mean {word!r}?"
                reason += f" {word!r} is given already; leave {name!r} out" if name in clashes else ""
            is_idle = reason.endswith("leave it out")
            if name in cures and not merged:
                kept.pop(name, None)
                without += [] if is_idle else [repr(name)]
            is_changed |= bool(merged or word or is_idle or (self.positional_only and not code))
            is_apart = bool(code) and not merged
            told[cure or name] = apart if is_apart else said
            told[cure or name].append(f"{name}: {cures[name] if is_apart else reason}")
        is_changed &= not (without and self.missing)  # else an example would stand for what is left out
        problem = None if self.missing else self._refusal(self.given)
        if is_merged and getattr(problem, "field", "") not in self.given:  # which may be what the line adds
            problem = None
        line, misfit = self._with_columns(line)
        tried = [f"{kind}({n}={source_of(n, v)})" for n, v in self.named.items() if (kind := table()["tried"].get(n))]
        misfit = misfit or "".join(map(problem_in, tried))
        refused = self.with_cures(problem) if isinstance(problem, DefinitionError) else misfit
        left = f"without {' and '.join(without)}, " if without else ""
        whole = (str(refused) or self.checked(f"; {left}write {line}", kept)[2:]) if is_changed or refused else ""
        is_within = any(self._merged(line, code) for each in apart for _, code in lines_in(each))
        apart = [self.completed(each, line=line) for each in apart]
        is_said = not (whole.startswith("such as") and apart and not is_merged) and not is_within
        lines = [whole * is_said, *(self.checked(each, also) for each in apart)]
        text = "; ".join(filter(None, [*said, *lines]))
        return re.sub("(?<=[?.]); write", " Write", text).replace("?; ", "? ")

    def completed(self, cure: str, typed: Mapping[str, Any] | None = None, line: str = "") -> str:
        """Return *cure* with what was *typed*, or this call was given, in the calls of its lines that take it too."""
        for before, code in lines_in(cure):
            more = self._merged(line, code) or code
            for name, value in (self.given if typed is None else typed).items() if "(" in more else ():
                if not re.match(OPTION, more) and _lost_in({name: value}, more):
                    more = with_argument(more, name, _text_of(self._word(name) or name, value), argument_for)
            cure = cure.replace(before + code, before + more, 1)
        return cure

    def _merged(self, line: str, code: str) -> str:
        return merge(line, code, self.alike, self.places or ["judges"] * (self.owner == "Panel"))

    def with_more(self, line: str, name: str, value: object) -> str:
        """Return *line*, which calls another type, with one argument more if it takes that; else what is said of it."""
        more, codes = self.completed(line, {name: value}), [code for _, code in lines_in(line) if code]
        if not codes or more != line or not _lost_in({name: value}, line):
            return more
        kind = codes[-1].rpartition("; ")[2].partition("(")[0]
        note = "" if name in self.names else self._note(name, forms_of(name))
        note = note if note or self._word(name) else self._elsewhere(name, name)
        return f"{line}; {name}: {note or f'{kind or self.called}() has no such option'}"

    def _note(self, name: str, forms: Sequence[str]) -> str:
        """Return what the table says of an argument with one of these *forms*; '' if it says nothing."""
        for note, words in cures_in("notes", self.owner, *self.sections, "every"):
            if not set(forms).isdisjoint(words):
                found = re.search(r"(\w+)=\{value\}", note)
                field = found[1] if found else "threshold" if "passing_at({value}" in note else name
                return self._filled(note, name, field, name)
        return ""

    def _elsewhere(self, typed: str, name: str) -> str:
        """Return the end of the message on *name*, which was *typed*, an argument of another call; '' if of none."""
        for kind, words in cures_in("elsewhere", self.owner, *self.sections) if name else ():
            names = [*_parameters(getattr(import_module("rubric"), kind).__init__)]
            if field := name if name in names else argument_for(kind, name, {*names} - _OWN):
                return self._filled(" ".join(words), typed, field, field)
        return ""

    def _filled(self, line: str, typed: str, field: str, name: str) -> str:
        """Return *line* with the value that was *typed*, or what it was meant as; or else why it would be refused."""
        arguments = {each: self._word(each) if each in self.unknown else each for each in self.given if each != typed}
        known = {argument: self.given[each] for each, argument in arguments.items() if argument}
        refused = ""
        line = line.replace("{call}", self._example()) if "{call}" in line else line
        line = re.sub(r"\{arguments\|(.*?)\}", self._arguments, line)
        line = line.replace("*{value}", "{value}") if isinstance(self.named[typed], str) else line
        if isinstance(self.named[typed], Mapping):  # which is what the line would make of it
            line = line.replace("{'{name}': {value}}", "{value}")
        ends = {argument_for("every", each, ("low", "high")): value for each, value in self.named.items()} | {"": 0}
        line = line.replace("1, 5", f"{ends['low']}, {ends['high']}") if len(ends) > 2 else line  # noqa: PLR2004 - both
        anew = {name: head for name, head in table()["anew"].items() if head in line and name in self.given}
        for each, head in anew.items():
            if head.startswith(f"{type(self.given[each]).__name__}("):
                line = line.replace(head, f"attrs.evolve({each}, ")
        meant = [*conversions(field, self.named[typed])]
        is_other = str(self.named[typed]).lower() in table()["quantities"].get(field, {})  # `verdict="failed"`
        for value in meant if is_other else (self.named[typed], *meant):
            cure = self._as_typed(line.replace("{name}", name)).replace("{value}", source_of(name, value))
            is_own = field in self.names and f"{field}={{value}}" in line
            own = self._refusal(known | {field: value}) if is_own else None
            ours = {variable_of(value): value} | {each: self.given[each] for each in anew}
            problem = str(own or "") or "".join(problem_in(code, **ours) for _, code in lines_in(cure))
            if not problem:
                self.meant[typed] = value
                return cure
            refused = refused or f"{line.partition(';')[0]}; {problem.partition('; write')[0]}"
        return refused

    def _unknown(self, name: str) -> str:
        """Return the end of the message on *name*, which means nothing here: what there is, and what it is for."""
        if self.owner == "Judge":
            line = f"write Judge('openai/gpt-5', params={{{name!r}: {source_of(name, self.named[name])}}})"
            return f"Judge() has no such option; if the vendor takes it, {self._as_typed(line)}"
        if name != next(each for each in self.unknown if not self._word(each)):
            return f"{self.called}() has no such option"
        what_for = table()["meanings"]
        allowed = [name for name in self.names if name not in self.positional_only]
        said = ", ".join(f"{name} ({what_for[name]})" if name in what_for else name for name in allowed)
        return f"{self.called}() has no such option{said and f'; allowed: {said}'}"

    def _word(self, name: str) -> str:
        names = [*self.names, *(n for n in self.positional_only if n not in self.names)]
        return argument_for(self.alike, name, names) if name else ""

    def _as_typed(self, line: str) -> str:
        """Return *line*, a cure, with the short values that were typed in the places of those of the table."""
        typed_as = {self._word(name): self.named[name] for name in self.unknown if name in self.named} | self.given
        for name, placeholders in table()["placeholders"].items():
            typed = typed_as.get(name)
            if name == "model" and isinstance(provider := self.named.get("provider"), str) and isinstance(typed, str):
                typed = f"{provider}/{typed}"
            texts = typed if isinstance(typed, list) and name != "judge" else [typed]
            is_plain = all(isinstance(text, str) for text in texts)
            if is_plain and typed and len(source := source_of(name, typed, "...")) <= SHORT and source != "...":
                for placeholder in placeholders:
                    line = line.replace(placeholder, source)
        return line

    def _misfit(self) -> str:
        """Return why the arguments do not fit: there are too many of them, or one is missing."""
        if len(self.args) > len(self.places):
            return f"it takes {counted(len(self.places), 'argument')} without a name, got {len(self.args)}"
        missing = " and ".join(map(repr, self.missing))
        if self.twice:
            return f"{self.twice[0]!r} is given twice, by its place and by its name"
        if missing:
            return f"{missing} {'is' if len(self.missing) == 1 else 'are'} missing"
        return "these arguments do not fit" if self.parameters else "it takes no arguments"

    def chained(self) -> str:
        """Return a call for each of several texts or checks, where a method of a rubric takes one; '' otherwise."""
        given = self.args[0] if len(self.args) == 1 and isinstance(self.args[0], list | tuple) else self.args
        if all(isinstance(each, str) for each in given):
            takes_each = self.places == ["text"]
        else:
            takes_each = self.owner == "checks" and not any(self._refusal({"check": each}) for each in given)
        is_verb = self.owner in table()["criteria"]["calls"] and "." in self.called
        if not (is_verb and takes_each) or "id" in self.named or len(given) < 2:  # noqa: PLR2004 - several
            return ""
        also = "".join(f", {name}={source_of(name, value, name)}" for name, value in self.named.items())
        return self.called + f".{self.owner}".join(f"({_check_as_typed(each)}{also})" for each in given)

    def _example(self) -> str:
        """Return a call that works: what was given, and the example of the table for what is missing."""
        example = str(table()["examples"].get(self.owner, f"{self.called}({', '.join(self.missing)})"))
        awaited = "await " if example.startswith("await ") else ""
        call = ast.parse(example.partition(", or ")[0].removeprefix(awaited), mode="eval").body
        if self.missing and self.owner in table()["whole"]:
            return example
        rest = self.args[len(self.places) :]
        known = {name: value for name, value in self.given.items() if name in self.names or name in self.places}
        free = [name for name in self.names if name not in self.places and name not in known]
        for value in rest if self.bare is not None and self.places and not self.missing else ():
            takes = [name for name in free if name not in known and not self._refusal({**known, name: value})]
            known |= {name: value for name in takes[:1] if len(takes) == 1 or name == free[0]}
        names_it = isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == self.owner
        if self.is_variadic and (self.args or known) and not set(known) < set(self.named):
            shown = [*(source_of("", each) for each in self.args), *(f"{n}={_text_of(n, v)}" for n, v in known.items())]
            return f"{self.called}({', '.join(shown)})"
        if not isinstance(call, ast.Call) or not names_it or self.is_variadic:
            return example
        of_example = dict(zip(self.places, map(ast.unparse, call.args), strict=False))
        of_example |= {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
        if not self.missing and self._refusal(known):
            known = {}
        texts = {name: _text_of(name, value) for name, value in known.items()}
        ours = {n for n, each in known.items() if texts[n] == variable_of(each) and not isinstance(each, list | tuple)}
        values = {name: of_example.get(name, text) if name in ours else text for name, text in texts.items()}
        for name, code in of_example.items():
            if not known or name in self.required or (name in self.places and self.missing):
                values.setdefault(name, code)
        values |= {name: name for name in self.missing if name not in values}
        bare = {*self.places[: max(len(self.args), len(call.args))]} - (self.named.keys() - self.positional_only)
        in_place = [*takewhile(lambda name: name in values and name in bare, self.places)]
        shown = [values.pop(name) for name in in_place]
        return f"{awaited}{self.called}({', '.join([*shown, *(f'{name}={code}' for name, code in values.items())])})"

    def _arguments(self, taken: re.Match[str]) -> str:
        """Return the arguments of a call that works, but for those by a name that another call has not *taken*."""
        call = cast("ast.Call", ast.parse(self._example().removeprefix("await "), mode="eval").body)
        named = [each for each in call.keywords if each.arg in taken[1].split()]
        return ast.unparse(ast.Call(ast.Name(""), call.args, named))[1:-1]

    def _refusal(self, values: Mapping[str, Any]) -> Exception | None:
        """Return what the call is refused with for *values*; None if it takes them."""
        named = {**values}
        try:
            in_place = [named.pop(name) for name in takewhile(values.__contains__, self.places)]
            if self.bare:
                self.bare(*(self.args if self.is_variadic else in_place), **named)
        except (DefinitionError, TypeError) as problem:
            return problem
        return None


def _lost_in(typed: Mapping[str, Any], code: str) -> list[str]:
    """Return which of the arguments *typed* the line *code* has neither as they are, or were meant, nor by name."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", code)
    names = {*re.findall(r"(?<![.\w])[a-z]\w*(?![\w(]|=[^=])", bare)}

    def has(value: Any) -> bool:
        if isinstance(value, Mapping | list | tuple) and variable_of(value) not in names:
            return all(map(has, value.values() if isinstance(value, Mapping) else value))
        plain = os.fspath(value) if isinstance(value, os.PathLike) else value
        if value is None or (isinstance(plain, str) and len(plain) > 3 and plain in code):  # noqa: PLR2004 - shorter ones are in any line
            return True
        is_theirs = type(value).__module__.partition(".")[0] not in ("builtins", "rubric")
        called = getattr(getattr(value, "function", value), "__name__", "").strip("<>")
        if {variable_of(value), called} & names or (is_theirs and "client" in names):
            return True
        return re.search(rf"(?<![\w.]){re.escape(repr(plain))}(?![\w.])", code) is not None

    def is_lost(name: str, value: Any) -> bool:
        is_short = isinstance(value, str | int | float) and len(str(value)) <= SHORT  # and so written out
        if (name in names and not is_short) or ("..." in code and (is_secret(name) or not is_short)):
            return False
        return not any(map(has, (value, *conversions(name, value), *conversions(term_of(name), value))))

    return [name for name, value in typed.items() if is_lost(name, value)]


def _with_cure(message: str, cure: str) -> str:
    """Return *message* with *cure*, in the place of the form that it ends with, if it does."""
    before = "; such as " if cure.startswith("; such as ") else cure.partition("write ")[0].rstrip("; ") or "; write"
    return f"{message.partition(before)[0] if re.search(' write |^; such as ', cure) else message}{cure}"


def _check_as_typed(value: Any) -> str:
    """Return *value*, a text or a check, as one would type it: a function by its name, a lambda by its parameters."""
    value = getattr(value, "function", value)
    place = variable_of(value) if type(value).__module__.startswith("rubric.") else repr(value)
    return source_of("", value, place, most=_LONGEST, is_made=True)


def refuse_operator(word: str, *values: Any) -> Any:
    """Refuse `~check`, `check & other`, and those of conditions, with what they are here; others as Python does."""
    kinds = [{each.__name__ for each in type(value).__mro__} for value in values]
    for kind, lines in table()["operators"].items():
        is_other = kind == "Check" and kind in kinds[0] and callable(values[-1])  # `check & function`
        if word not in lines or not (is_other or all(kind in each for each in kinds)):
            continue
        if kind != "Contains" or len({attrs.evolve(each, text="-") for each in values}) == 1:
            line = lines[word].format(*map(_check_as_typed, values), *values)
            raise CallError("when" if kind == "When" else "check", line)
    if len(values) == 1:
        raise TypeError(f"bad operand type for unary ~: {type(values[0]).__name__!r}")
    return NotImplemented  # the other value may take it


def _text_of(name: str, value: Any) -> str:
    """Return *value* as `source_of` does; documents for a field that is one text are joined."""
    if name == "columns" and isinstance(value, Mapping):  # by the fields of a candidate, whatever they are called
        known = attrs.fields_dict(import_module("rubric").Candidate)
        value = {argument_for("Candidate", str(each), known) or each: column for each, column in value.items()}
    source = source_of("" if name == "key" else name, value, name)  # ours is that of a row; a judge's is `api_key`
    are_texts = isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
    if name == "rubric" and source == "rubrics" and len(value) == 1:  # a list has this name
        return "rubric"
    if name == "rubric" and are_texts:
        texts = [metric_cure(each).strip('"') for each in value]
        source = repr([text if text in table()["metrics"] else each for text, each in zip(texts, value, strict=True)])
    if (made := table()["made"].get(name)) and (are_texts if name == "rubric" else isinstance(value, int | float)):
        return str(made).replace("{value}", source)
    return f"'\\n\\n'.join({source})" if are_texts and name in _ONE_TEXT else source


def order_error(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any], error: DefinitionError
) -> CallError | None:
    """Return the error for *args* in a wrong order, or of a wrong kind, which *error* does not tell; else None."""
    call = _call_of(function, args, named)
    names = [*call.parameters]
    if order := call.in_order(error.field):
        return order
    if line := call.chained():
        return CallError(names[0], f"a criterion has one {names[0]}; several are criteria; write {line}")
    message = error.message
    if error.field in call.positional_only:  # a call within takes it by its name
        message = message.replace(f" {error.field}=", " ")
    cure = call.completed(call.cure_of(error)) if re.search(", got |^unknown value", message) else ""
    if cure and (cure not in message or message != error.message):
        said = message if cure in message else _with_cure(message, cure)
        return CallError(error.field, call.checked(said, {error.field: None}))
    is_alone = sum(each is not None for each in args) == 1
    is_told = is_alone or (" comes first" in error.message and names[0].startswith("candidate"))
    for name, value in () if is_told else zip(names, call.args, strict=False):
        kind = type(value).__name__
        meant = [each for each in names if kind in table()["held"].get(each, "").split()]
        is_own = "judge" in meant and "JudgeLike" in str(call.parameters[name].annotation)  # a judge may be a writer
        if meant and not is_own and name not in meant:
            line = f"{call.called}({', '.join(names[: len(call.args)])})"
            return CallError(name, f"got a {kind}, which is the {meant[0]}; the order is {line}")
    return None


# -- shapes ----------------------------------------------------------------------------------------------


def _refuse_shape(call: _Call) -> None:
    """Refuse a call whose arguments are of kinds that the table knows: `Rubric('r', 'a', 'b')`, `Judge(['a', 'b'])`."""
    kinds = [*map(kind_of, call.args), *(f"{name}={kind_of(value)}" for name, value in call.named.items())]
    own, shapes = {call.owner, call.owner.removeprefix("a")}, table()["shapes"].items()
    for pattern, said in (each for section, found in shapes if own & {*section.split()} for each in found.items()):
        if re.fullmatch(rf"{pattern}( \w+=\S+)*", " ".join(kinds)):
            places = [*call.places, *["..."] * len(call.args)]  # what a long text or list is called, and a client so
            sources = [
                repr(each) if type(each).__name__ == "Criterion" else source_of("", each, at)
                for each, name in zip(call.args, places, strict=False)
                for at in [name if isinstance(each, Iterable) else "client"]
            ]
            twice = {each for each in sources if each.isidentifier() and sources.count(each) > 1}  # two of one kind
            sources = [place if each in twice else each for each, place in zip(sources, places, strict=False)] or [""]
            one = call.args[0] if call.args and isinstance(call.args[0], Iterable) else ()
            held = {"within": one, "values": one.values() if isinstance(one, Mapping) else ()}
            parts = {name: ", ".join(map(partial(source_of, ""), each)) for name, each in held.items() if name in said}
            parts |= {"all": ", ".join(sources), "rest": ", ".join(sources[1:]), "called": call.called}
            parts |= {"named": source_of("", dict(call.named), most=_LONGEST)}
            held_in = (*call.args, *call.named.values())
            labels = next((each for each in held_in if isinstance(each, list | tuple | dict)), ())
            parts |= {"labels": source_of("", [*labels], most=_LONGEST)}
            best = {each: int(each in call.named.values()) for each in labels} if "{best}" in said else {}
            parts |= {"best": source_of("", best, most=_LONGEST), "insensitive": repr(f"(?i){[*call.args, ''][0]}")}
            ends = {"first": sources[0][:-1], "last": sources[-1][1:]}
            parts |= ends | {"short": min(sources, key=len), "long": max(sources, key=len)}
            if "{paired}" in said:  # labels, and a number for each
                names, numbers = [e for e in (*call.args, *call.named.values()) if isinstance(e, list | tuple)][:2]
                parts["paired"] = source_of("", dict(zip(names, numbers, strict=False)), most=_LONGEST)
                if len(names) != len(numbers):
                    continue
            field, _, message = said.partition(": ")
            named = {name: source_of(name, value, name) for name, value in call.named.items()}
            line = message.format(*sources, **named | parts)
            for name, value in call.named.items():
                if not (re.search(f"{{({name}|paired|named)}}", said) or re.search(rf"\b{name}\b", pattern)):
                    line = call.with_more(line, name, value)
            raise CallError(field, call.checked(line))
