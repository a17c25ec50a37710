"""
Answer a call whose arguments do not fit with the call that works. It is loaded by the first wrong call.

The words that people try are in `guesses.toml`; here are the rules, and the shapes of some calls.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

from attrs import define

from rubric.errors import CallError, DefinitionError
from rubric.internals.fields import misspelt
from rubric.internals.guesses import (
    SHORT,
    argument_for,
    cures_in,
    example_of,
    forms_of,
    number_cure,
    source_of,
    table,
    variable_of,
)
from rubric.internals.text import counted

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_ONE_TEXT = frozenset({"context", "input", "reference", "output"})
_WITH_FORMS = frozenset({"Rubric", "Criterion", "Levels", "Choices", "Budget"})
_OWN = frozenset({"text", "name", "tree", "criteria", "id"})


def answer_call(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: TypeError | DefinitionError
) -> Arguments:
    """Return the arguments of `Rubric([...])`, which is documented; refuse other calls with the line that works."""
    owner = function.__name__ if function.__name__ != "__init__" else type(args[0]).__name__
    given = args if _is_free(function) else args[1:]
    make: Callable[..., object] | None = None
    bare: Callable[..., object] | None = None
    if function.__name__ == "__init__":
        make = kind = type(args[0])
        bare = lambda *args, **named: function(object.__new__(kind), *args, **named)  # noqa: E731 - one expression
    if owner in table()["criteria"]["calls"] and make is None:  # a verb of a rubric, which changes nothing
        make = bare = partial(function, args[0])
    elif make is None and given is not args and type(args[0]).__name__ == "Rubric" and owner != "save":
        bare = partial(function, args[0])
    call = _Call(owner, _callee(function, args), _parameters(function), given, dict(named), make, bare)
    for shape in _SHAPES.get(owner, ()):
        if (meant := shape(call)) is not None:
            return (args[0], *meant[0]), meant[1]
    if isinstance(error, DefinitionError):
        cure = call.cure_of(error)
        raise DefinitionError(error.field, error.message + ("" if cure in error.message else cure)) from None
    return call.refuse()


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
    return "." not in function.__qualname__ or next(iter(inspect.signature(function).parameters), "") not in (
        "self",
        "cls",
    )


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
    make: Callable[..., object] | None
    bare: Callable[..., object] | None  # without the hook, which would try its cures within this one

    def __attrs_post_init__(self) -> None:
        self.alike = str(table()["alike"].get(self.owner, self.owner))
        self.sections = (self.alike, "criterion") if self.owner in table()["criteria"]["calls"] else (self.alike,)
        parts = {name: (each.kind, each.default is each.empty) for name, each in self.parameters.items()}
        of = inspect.Parameter
        self.names = [n for n, (kind, _) in parts.items() if kind not in (of.VAR_KEYWORD, of.POSITIONAL_ONLY)]
        self.places = [n for n, (kind, _) in parts.items() if kind <= of.POSITIONAL_OR_KEYWORD]
        self.positional_only = [n for n, (kind, _) in parts.items() if kind is of.POSITIONAL_ONLY]
        self.is_variadic = any(kind is of.VAR_POSITIONAL for kind, _ in parts.values())
        lacking = [
            n for n, (kind, is_due) in parts.items() if is_due and kind not in (of.VAR_POSITIONAL, of.VAR_KEYWORD)
        ]
        self.required = [name for name in lacking if name not in self.positional_only]
        self.unknown = [name for name in self.named if name not in self.names]
        self.given = {**dict(zip(self.places, self.args, strict=False)), **self.named}
        self.missing = [name for name in lacking if name not in self.given]

    def cure_of(self, error: DefinitionError) -> str:
        """Return the end of the message of *error*: the form of a value, or a number that is meant in another way."""
        field, is_of_form = error.field, error.message.startswith("expected")
        if self.owner == "Jury" and field == "size" and not str(self.given.get(field)).isdigit() and len(self.args) > 1:
            return f"; different judges are a panel: Panel({', '.join(source_of('', each) for each in self.args)})"
        head = re.split(r"[.\[]", field)[0]
        if is_of_form and self.owner in _WITH_FORMS and (form := table()["forms"].get(head)):
            return f"; write {form}"
        given = self.given.get(field)
        if isinstance(given, Mapping) and given and given.keys() <= {*self.names} and isinstance(self.make, type):
            return f"; its fields are given by their names: {self.called}(**{source_of('', dict(given), 'fields')})"
        for meant, words in cures_in("values", "every"):
            if isinstance(given, str) and given in words and f" {meant}," in f"{error.message},":
                return f"; did you mean {meant!r}?"
        if self.owner == "Judge" and field == "reasoning":
            effort = given.get("effort") if isinstance(given, Mapping) else given
            return f"; for a model that thinks first, write params={{'reasoning_effort': {effort!r}}}"
        if field not in self.given and (quoted := re.search("got '([^']*)'$", error.message)):  # it is within one
            given, head = quoted[1], ""
        if number := number_cure(given, error.message, f"{head and field + '='}"):
            return number
        return _cure_of_value(self.owner, field, given, is_text=error.message.startswith("expected text"))

    def refuse(self) -> NoReturn:
        """Raise the error for the first argument that does not fit."""
        if self.unknown and set(self.unknown) <= set(self.positional_only):
            raise CallError(self.unknown[0], f"{self.called}() takes it without its name. {self._line({})}")
        if not self.unknown or not (self.names or self.positional_only):
            raise CallError(self.owner, f"{self._misfit()}; write {self._example()}")
        for name, value in ((name, self.named[name]) for name in self.unknown):
            for note, words in cures_in("notes", *self.sections):
                if not set(forms_of(name)).isdisjoint(words):
                    said = note.replace("{value}", source_of(name, value)).replace("{name}", name)
                    raise CallError(name, self._as_typed(said))
        for name in self.unknown:
            if name not in self.positional_only and not self._word(name) and (cure := self._elsewhere(name)):
                raise CallError(name, cure)
        by_place = dict(zip(self.positional_only, self.positional_only, strict=True))
        meant = {each: by_place.get(each) or self._word(each) or misspelt(each, self.names) for each in self.unknown}
        if foreign := [each for each in self.unknown if not meant[each]]:
            if self.owner == "Judge":
                params = f"{{{foreign[0]!r}: {source_of(foreign[0], self.named[foreign[0]])}}}"
                line = f"write Judge('openai/gpt-5', params={params})"
                raise CallError(foreign[0], f"Judge() has no such option; if the vendor takes it, {line}")
            allowed = ", ".join(n for n in self.names if n not in self.positional_only)
            allowed = f"; allowed: {allowed}" if allowed else ""
            raise CallError(foreign[0], f"{self.called}() has no such option{allowed}; write {self._example()}")
        name = next((each for each in self.unknown if each not in by_place), self.unknown[0])
        raise CallError(name, f"{self.called}() has no such option; did you mean {meant[name]!r}? {self._line(meant)}")

    def _word(self, name: str) -> str:
        names = [*self.names, *(n for n in self.positional_only if n not in self.names)]
        return argument_for(self.alike, name, names)

    def _elsewhere(self, name: str) -> str:
        """Return the end of the message on *name*, an argument of another call; '' if it is of none."""
        for section, lines in table()["elsewhere"].items():
            for kind, line in lines.items() if not {self.owner, *self.sections}.isdisjoint(section.split()) else ():
                of = getattr(import_module("rubric"), kind)
                names = [*_parameters(of.__init__)]
                if field := name if name in names else argument_for(kind, name, {*names} - _OWN):
                    value = self.named[name]
                    if problem := _problem_with(kind, field, value):  # the line would be refused, for the same reason
                        return f"{line.partition(';')[0]}; {problem}"
                    return self._as_typed(
                        str(line).replace("{name}", field).replace("{value}", source_of(field, value))
                    )
        return ""

    def _as_typed(self, line: str) -> str:
        """Return *line*, a cure, with the short values that were typed in the places of those of the table."""
        for name, placeholders in table()["placeholders"].items():
            typed = self.given.get(name)
            is_plain = (isinstance(typed, str) and (name != "model" or "/" in typed or " via=" in line)) or (
                isinstance(typed, list) and all(isinstance(e, str) for e in typed)
            )
            if is_plain and typed and len(source := source_of(name, typed, "...")) <= SHORT and source != "...":
                for placeholder in placeholders:
                    line = line.replace(placeholder, source)
        return line

    def _misfit(self) -> str:
        """Return why the arguments do not fit: there are too many of them, or one is missing."""
        most = len(self.places)
        if len(self.args) > most:
            return f"it takes {counted(most, 'argument')} without a name, got {len(self.args)}"
        missing = " and ".join(map(repr, self.missing))
        are = "is" if len(self.missing) == 1 else "are"
        return f"{missing} {are} missing" if missing else "these arguments do not fit"

    def _example(self) -> str:
        """Return a call that works: what was given, and the example of the table for what is missing."""
        example = example_of(self.owner, f"{self.called}({', '.join(self.missing)})")
        awaited = "await " if example.startswith("await ") else ""
        call = ast.parse(example.partition(", or ")[0].removeprefix(awaited), mode="eval").body
        if self.missing and self.owner in table()["whole"]:
            return example
        rest = self.args[len(self.places) :]
        known = {name: value for name, value in self.given.items() if name in self.names or name in self.places}
        free = [name for name in self.names if name not in self.places and name not in known]
        more = dict(zip(free, rest, strict=False))
        if self.bare is not None and self.places and len(rest) <= len(free) and self._works(known | more):
            known |= more
        names_it = isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == self.owner
        if self.is_variadic and self.args and not set(known) < set(self.named):
            shown = [*(source_of("", each) for each in self.args), *(f"{n}={_text_of(n, v)}" for n, v in known.items())]
            return f"{self.called}({', '.join(shown)})"
        if not isinstance(call, ast.Call) or not names_it or self.is_variadic:
            return example
        of_example = dict(zip(self.places, map(ast.unparse, call.args), strict=False))
        of_example |= {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
        if not self.missing and not self._works(known):
            known = {}
        ours = {name for name, value in known.items() if type(value).__module__.startswith("rubric.")}
        values = {n: of_example.get(n, _text_of(n, v)) if n in ours else _text_of(n, v) for n, v in known.items()}
        for name, code in of_example.items():
            if not known or name in self.required or (name in self.places and self.missing):
                values.setdefault(name, code)
        values |= {name: name for name in self.missing if name not in values}
        bare = {*self.places[: max(len(self.args), len(call.args))]} - (self.named.keys() - self.positional_only)
        in_place = [*takewhile(lambda name: name in values and name in bare, self.places)]
        shown = [values.pop(name) for name in in_place]
        return f"{awaited}{self.called}({', '.join([*shown, *(f'{name}={code}' for name, code in values.items())])})"

    def _works(self, values: Mapping[str, Any]) -> bool:
        """Return whether the call takes *values*; only a value can be made to see it."""
        if self.bare is None:
            return True
        named = {**values}
        try:
            in_place = [named.pop(name) for name in takewhile(values.__contains__, self.places)]
            self.bare(*in_place, **named)
        except (TypeError, DefinitionError):
            return False
        return True

    def _line(self, meant: Mapping[str, str]) -> str:
        """Return the call with each wrong name replaced by the one that was meant, in the order of the parameters."""
        if clash := next((field for name, field in meant.items() if field in self.given and field != name), ""):
            self.named = {name: value for name, value in self.named.items() if name not in meant}
            return f"{clash!r} is given already; write {self._example()}"
        self.named = {meant.get(name) or name: value for name, value in self.named.items()}
        self.given = {**dict(zip(self.places, self.args, strict=False)), **self.named}
        self.missing = [name for name in self.missing if name not in self.given]
        if self.make is not None:  # a value is made at once, and its line is printed if it can be
            try:
                self.make(*self.args, *(v for n, v in self.named.items() if n in self.positional_only), **{
                    name: value for name, value in self.named.items() if name not in self.positional_only
                })  # fmt: skip
            except DefinitionError as problem:  # the line would be refused, so its error says how the value is given
                return str(problem)
            except TypeError:
                return f"Write {example_of(self.owner, self.called + '(...)')}"
        for field in meant.values() if self.make is None else ():  # a function is not run: its options are tried alone
            if refused := _problem_with(table()["tried"].get(field, ""), field, self.named.get(field)):
                return refused
        return f"Write {self._example()}"


def _cure_of_value(owner: str, field: str, value: object, *, is_text: bool = False) -> str:
    """Return the end of the message on a *value* of *field* that was meant in another way: a list, or a number."""
    if isinstance(value, list | tuple):
        if any(isinstance(each, Mapping) for each in value):
            is_chat = field in {"output", "input", "context"}
            return "; a chat is one candidate: write grade({'messages': messages}, rubric, judge)" if is_chat else ""
        if owner == "Contains":
            listed = source_of("", value)
            return f"; for all of them, write ContainsAll({listed}); for one of them, write ContainsAny({listed})"
        return f"; write {field}={_text_of(field, value, is_text=is_text)}" if is_text or field in _ONE_TEXT else ""
    if owner == "Equals" and field == "text":
        return f"; write Equals({source_of('', str(value))})"
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        if field == "weight":
            return f"; to take points off, write rubric.penalizes(text, points={-value:g})"
        if field == "concurrency":
            return "; without it as many run as fit: leave it out"
    return ""


def _problem_with(kind: str, field: str, value: object) -> str:
    """Return what a *kind* made with *value* for the *field* alone is refused with; '' if it can be made."""
    if kind not in table()["alone"]:
        return ""
    try:
        getattr(import_module("rubric"), kind)(*table()["alone"][kind], **{field: value})
    except DefinitionError as problem:
        return str(problem)
    return ""


def _text_of(name: str, value: object, *, is_text: bool = False) -> str:
    """Return *value* as `source_of` does; documents for a field that is one text are joined."""
    source = source_of(name, value, name)
    are_texts = isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
    return f"'\\n\\n'.join({source})" if are_texts and (is_text or name in _ONE_TEXT) else source


def order_error(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any], error: DefinitionError
) -> CallError | None:
    """Return the error for *args* in a wrong order, or of a wrong kind, which *error* does not tell; else None."""
    more = table()["checked"].get(function.__name__)
    if more is not None and "Check" in {kind.__name__ for kind in type(args[1]).__mro__}:
        line = f"rubric.checks({args[1]!r}{more})"
        return CallError("text", f"a check is decided by code, and no judge is asked its text; write {line}")
    signature = inspect.signature(function)
    parameters, names = signature.parameters, [*signature.parameters]
    given = signature.bind_partial(*args, **named).arguments.get(error.field)
    if (cure := number_cure(given, error.message, f"{error.field}=")) and "; " not in error.message:
        return CallError(error.field, error.message + cure)
    if error.field in names and error.message.startswith("expected") and (form := table()["forms"].get(error.field)):
        return CallError(error.field, f"{error.message}; write {form}")
    if " comes first" in error.message and names[0].startswith("candidate"):
        return None
    for name, value in zip(names, args, strict=False):
        kind = type(value).__name__
        meant = [each for each in names if kind in table()["held"].get(each, "").split()]
        is_own = "judge" in meant and "JudgeLike" in str(parameters[name].annotation)  # a judge may be a writer
        if meant and not is_own and name not in (*meant, "self", "cls"):
            line = f"{_callee(function, args)}({', '.join(each for each in names[: len(args)] if each != 'self')})"
            return CallError(name, f"got a {kind}, which is the {meant[0]}; the order is {line}")
    return None


# -- shapes ----------------------------------------------------------------------------------------------


def _rubric_of_criteria(call: _Call) -> Arguments | None:
    """Read `Rubric([...])`; name the call for `Rubric(Criterion(...), ...)` and `Rubric('r', 'a', 'b')`."""
    args = call.args
    if not args or "criteria" in call.named:
        return None
    first, *rest = args
    if isinstance(first, Mapping):
        raise CallError("name", "expected text, got a mapping; what a file would hold is Rubric.from_dict(data)")
    if not rest and isinstance(first, list | tuple) and not call.unknown:
        return (), {"criteria": first, **call.named}
    if all(type(each).__name__ == "Criterion" for each in args):
        raise CallError("criteria", f"expected a list of criteria; write Rubric({_items(args)})")
    if isinstance(first, str) and rest and all(type(each).__name__ in ("str", "Criterion") for each in rest):
        line = f"Rubric({source_of('', first)}, {_items(rest)})"
        raise CallError("criteria", f"expected a list of criteria; write {line}: a name, and a list")
    return None


def _items(values: Sequence[object]) -> str:
    """Return *values* as one would type a list of criteria."""
    return f"[{', '.join(source_of('', each) if isinstance(each, str) else repr(each) for each in values)}]"


def _criterion_of_two(call: _Call) -> None:
    """Name the call for `Criterion('polite', 'Is polite')`, in which the id may come first or last."""
    texts = [each for each in call.args if isinstance(each, str)]
    if call.args and isinstance(call.args[0], list | tuple):
        several = ", ".join(source_of("", each) for each in call.args[0])
        raise CallError("text", f"a criterion has one text; several are rubric.adding({several})")
    if len(call.args) == 2 and len(texts) == 2:  # noqa: PLR2004 - a pair
        name, text = sorted(texts, key=len)
        raise CallError("text", f"a criterion has one text; write Criterion({text!r}, id={name!r})")
    if len(texts) == 1 and "description" in call.unknown:
        both = f"Criterion({source_of('', call.named['description'])}, id={texts[0]!r})"
        raise CallError("description", f"a criterion has one text, which the judge reads; write {both}")


def _judge_of_two(call: _Call) -> None:
    """Name the call for `Judge(client, model='m')`, `Judge(['a', 'b'])`, `Judge('openai', 'gpt-5')` and its like."""
    if call.args and not isinstance(call.args[0], str) and isinstance(model := call.named.get("model"), str):
        raise CallError("model", f"a client is given with its model; write rubric.model(client, {model!r})")
    if len(call.args) == 1 and isinstance(call.args[0], list | tuple):
        raise CallError("model", f"several judges are a panel; write Panel({source_of('', call.args[0], 'judges')})")
    if len(call.args) == 2 and all(isinstance(each, str) for each in call.args):  # noqa: PLR2004 - a pair
        first, second = call.args
        if "/" not in first and " " not in second:
            raise CallError(
                "model", f"the provider is the first part of the name; write Judge({first + '/' + second!r})"
            )
        line = f"Rubric('reply', ['Is polite'], guidelines={source_of('', second)})"
        raise CallError("model", f"what holds for all criteria is in the rubric; write {line}")


def _check_of_several(call: _Call) -> None:
    """Name the call for `Contains('price', 'date')`."""
    if len(call.args) > 1 and all(isinstance(each, str) for each in call.args):
        raise CallError("text", f"a check has one text{_cure_of_value('Contains', 'text', [*call.args])}")


def _scores_on_a_scale(call: _Call) -> None:
    """Name the call for `rubric.scores('Is warm', 1, 5)`."""
    text, *ends = call.args or ("",)
    if ends and all(isinstance(each, int | tuple | list | dict) for each in ends):
        line = ", ".join(source_of("", each) for each in (text, *ends))
        raise CallError(
            "text", f"a score is in 0..1; for whole numbers, write {call.called.replace('scores', 'rates')}({line})"
        )


_SHAPES: dict[str, tuple[Callable[[_Call], Arguments | None], ...]] = {
    "Rubric": (_rubric_of_criteria,),
    "Criterion": (_criterion_of_two,),
    "Judge": (_judge_of_two,),
    "Contains": (_check_of_several,),
    "scores": (_scores_on_a_scale,),
}
