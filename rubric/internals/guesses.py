"""
What people type, and what they mean: the rules. `guesses.toml` beside this file has the words.

It answers for Python, for names of the package, for keys of rubric files and for the command line, and is loaded for
errors alone.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module, resources
from itertools import takewhile
from typing import Any, NoReturn

import attrs

from rubric.errors import CallError, DefinitionError
from rubric.internals.fields import FEWEST_PERCENT, as_share, misspelt, suggest
from rubric.internals.secrets import is_secret, redact
from rubric.internals.text import counted, shorten

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_SHORT, _MOST_NAMED = 60, 14
_UNFIT = "these arguments do not fit"
_KINDS = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD")


@cache
def _words() -> dict[str, dict[str, Any]]:
    """Return the tables of `guesses.toml`: in each, the words by the cure."""
    return tomllib.loads(resources.files("rubric.internals").joinpath("guesses.toml").read_text("utf-8"))


def _cures(table: str, *owners: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the cures of *owners* in *table*, each with its words; a section may have several owners."""
    for owner in owners:
        for section, cures in _words()[table].items():
            if owner in section.split():
                yield from ((cure, words.split()) for cure, words in cures.items())


def _example(owner: str, default: str) -> str:
    return str(_words()["examples"].get(owner, default))


# -- arguments -------------------------------------------------------------------------------------------

_SHARES = frozenset({"threshold", "borderline", "min_score", "consensus", "score", "abstain"})
_ONE_TEXT = frozenset({"context", "input", "reference", "output"})
_WITH_FORMS = frozenset({"Criterion", "Levels", "Choices", "Budget"})
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
    if owner in _words()["criteria"]["calls"] and make is None:  # a verb of a rubric, which changes nothing
        make = bare = partial(function, args[0])
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
        public = {parent: name for name, parent in [*_words()["parents"].items()][::-1]}  # of a base: a class that is
        kind, _, name = function.__qualname__.rpartition(".")
        return f"{public.get(kind, kind)}.{name}".lstrip(".")
    return f"{args[0].__name__ if isinstance(args[0], type) else variable_of(args[0])}.{function.__name__}"


def _is_free(function: Callable[..., Any]) -> bool:
    return "." not in function.__qualname__ or next(iter(inspect.signature(function).parameters), "") not in (
        "self",
        "cls",
    )


def variable_of(value: object) -> str:
    """Return the name that people give to a *value* of ours; a grade that could not be made is one too."""
    kind = value if isinstance(value, type) else type(value)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _words()["parents"].get(kind.__name__, kind.__name__)).lower()


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: each for name, each in found.items() if name not in ("self", "cls")}


@attrs.define(slots=False)
class _Call:
    """A call that does not fit: its name, what it would take, and what it was given."""

    owner: str
    called: str
    parameters: Mapping[str, inspect.Parameter]
    args: tuple[Any, ...]
    named: dict[str, Any]
    make: Callable[..., object] | None = None
    bare: Callable[..., object] | None = None  # without the hook, which would try its cures within this one

    def __attrs_post_init__(self) -> None:
        kinds = {name: each.kind for name, each in self.parameters.items()}
        only, either, rest, keyword, more = (getattr(inspect.Parameter, kind) for kind in _KINDS)
        lacking = [name for name, each in self.parameters.items() if each.default is each.empty]
        self.alike = str(_words()["alike"].get(self.owner, self.owner))
        is_criterion = self.owner in _words()["criteria"]["calls"]
        self.sections = (self.alike, "criterion") if is_criterion else (self.alike,)
        self.names = [name for name, kind in kinds.items() if kind not in (more, only)]
        self.places = [name for name, kind in kinds.items() if kind in (only, either)]
        self.unknown = [name for name in self.named if name not in self.names]
        self.given = {**dict(zip(self.places, self.args, strict=False)), **self.named}
        self.required = [name for name in lacking if kinds[name] in (either, keyword)]
        self.is_variadic = rest in kinds.values()
        self.positional_only = [name for name, kind in kinds.items() if kind is only]
        self.missing = [name for name in lacking if kinds[name] not in (rest, more) and name not in self.given]

    def cure_of(self, error: DefinitionError) -> str:
        """Return the end of the message of *error*: the form of a value, or a number that is meant in another way."""
        field, is_of_form = error.field, error.message.startswith("expected")
        if self.owner == "Jury" and field == "size" and len(self.args) > 1 and isinstance(self.args[1], str):
            return f"; different judges are a panel: Panel({', '.join(source_of('', each) for each in self.args)})"
        head = re.split(r"[.\[]", field)[0]
        if is_of_form and self.owner in _WITH_FORMS and (form := _words()["forms"].get(head)):
            return f"; write {form}"
        given = self.given.get(field)
        for meant, words in _cures("values", "every"):
            if isinstance(given, str) and given in words and f" {meant}," in f"{error.message},":
                return f"; did you mean {meant!r}?"
        if self.owner == "Judge" and field == "reasoning":
            effort = given.get("effort") if isinstance(given, Mapping) else given
            return f"; for a model that thinks first, write params={{'reasoning_effort': {effort!r}}}"
        return _cure_of_value(self.owner, field, given)

    def refuse(self) -> NoReturn:
        """Raise the error for the first argument that does not fit."""
        if self.unknown and set(self.unknown) <= set(self.positional_only):
            raise CallError(self.unknown[0], f"{self.called}() takes it without its name. {self._line({})}")
        if not self.unknown or not (self.names or self.positional_only):
            raise CallError(self.owner, f"{self._misfit()}; write {self._example()}")
        for name, value in ((name, self.named[name]) for name in self.unknown):
            for note, words in _cures("notes", *self.sections):
                if name in words:
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
        return _argument(self.alike, name, names)

    def _elsewhere(self, name: str) -> str:
        """Return the end of the message on *name*, an argument of another call; '' if it is of none."""
        for section, lines in _words()["elsewhere"].items():
            for kind, line in lines.items() if not {self.owner, *self.sections}.isdisjoint(section.split()) else ():
                of = getattr(import_module("rubric"), kind)
                names = [*_parameters(of.__init__)]
                if field := name if name in names else _argument(kind, name, {*names} - _OWN):
                    value = self.named[name]
                    try:
                        if kind in _words()["alone"]:
                            of(*_words()["alone"][kind], **{field: value})
                    except DefinitionError as problem:  # the line would be refused, for the same reason
                        return f"{line.partition(';')[0]}; {problem}"
                    return self._as_typed(
                        str(line).replace("{name}", field).replace("{value}", source_of(field, value))
                    )
        return ""

    def _as_typed(self, line: str) -> str:
        """Return *line*, a cure, with the short values that were typed in the places of those of the table."""
        for name, placeholders in _words()["placeholders"].items():
            typed = self.given.get(name)
            is_plain = (isinstance(typed, str) and (name != "model" or "/" in typed)) or (
                isinstance(typed, list) and all(isinstance(e, str) for e in typed)
            )
            if is_plain and typed and len(source := source_of(name, typed, "...")) <= _SHORT and source != "...":
                for placeholder in placeholders:
                    line = line.replace(placeholder, source)
        return line

    def _misfit(self) -> str:
        """Return why the arguments do not fit: there are too many of them, or one is missing."""
        most = len(self.places)
        if len(self.args) > most:
            return f"it takes {counted(most, 'argument')} without a name, got {len(self.args)}"
        missing = [repr(name) for name in self.missing]
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else _UNFIT

    def _example(self) -> str:
        """Return a call that works: what was given, and the example of the table for what is missing."""
        example = _example(self.owner, f"{self.called}({', '.join(self.missing)})")
        awaited = "await " if example.startswith("await ") else ""
        call = ast.parse(example.partition(", or ")[0].removeprefix(awaited), mode="eval").body
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
                return f"Write {_example(self.owner, self.called + '(...)')}"
        return f"Write {self._example()}"


def _argument(owner: str, name: str, allowed: Collection[str]) -> str:
    """Return which of the arguments *allowed* in a call of *owner* is meant by *name*, a word of the table."""
    for section in (owner, "every"):
        words = dict(_cures("arguments", section))
        for field in allowed:
            if name.lower() in words.get(field, ()):
                return field
    return ""


def _cure_of_value(owner: str, field: str, value: object) -> str:
    """Return the end of the message on a *value* of *field* that was meant in another way: a list, or a number."""
    if isinstance(value, list | tuple):
        if any(isinstance(each, Mapping) for each in value):
            is_chat = field in {"output", "input", "context"}
            return "; a chat is one candidate: write grade({'messages': messages}, rubric, judge)" if is_chat else ""
        if owner == "Contains":
            listed = source_of("", value)
            return f"; for all of them, write ContainsAll({listed}); for one of them, write ContainsAny({listed})"
        return rf"; write {field}='\n\n'.join({field})" if field in _ONE_TEXT else ""
    if owner == "Equals" and field == "text":
        return f"; write Equals({source_of('', str(value))})"
    if isinstance(value, str) and (share := as_share(value)) is not None:
        return f"; {value} is {field}={share:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if field == "weight" and value < 0:
        return f"; to take points off, write rubric.penalizes(text, points={-value:g})"
    if field in _SHARES and FEWEST_PERCENT <= value <= 100:  # noqa: PLR2004 - per cent
        return f"; {value:g} % is {field}={value / 100:g}"
    return ""


def _text_of(name: str, value: object) -> str:
    """Return *value* as `source_of` does; documents for a field that is one text are joined."""
    source = source_of(name, value, name)
    are_texts = isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
    return f"'\\n\\n'.join({source})" if are_texts and name in _ONE_TEXT else source


def source_of(name: str, value: object, place: str = "") -> str:
    """Return *value* as one would type it, never a secret; what is long goes by the name of its *place*."""
    if name and is_secret(name):
        return "..."
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, str | list | tuple | dict | range):
        text = redact(repr(value))
        if isinstance(value, str) and len(text) > _SHORT and not place.isidentifier():
            return repr(shorten(redact(value), _SHORT))
        return text if len(text) <= _SHORT and "<" not in text else place or "..."
    return variable_of(value) if type(value).__module__.startswith("rubric.") else place or "..."


def order_error(function: Callable[..., Any], args: tuple[Any, ...], error: DefinitionError) -> CallError | None:
    """Return the error for *args* in a wrong order, which *error* does not tell; None if each is in its place."""
    parameters = inspect.signature(function).parameters
    names = [*parameters]
    if " comes first" in error.message and names[0].startswith("candidate"):
        return None
    for name, value in zip(names, args, strict=False):
        kind = type(value).__name__
        meant = [each for each in names if kind in _words()["held"].get(each, "").split()]
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


def _client_with_a_name(call: _Call) -> None:
    """Name the call for `Judge(client, model='m')`."""
    if call.args and not isinstance(call.args[0], str) and isinstance(model := call.named.get("model"), str):
        raise CallError("model", f"a client is given with its model; write rubric.model(client, {model!r})")


def _judge_of_two(call: _Call) -> None:
    """Name the call for `Judge('openai', 'gpt-5')` and `Judge('openai/gpt-5', 'Be strict')`."""
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


def _range_of_one(call: _Call) -> None:
    """Name the call for `ScoreRange(5)`."""
    if len(call.args) == 1 and isinstance(high := call.args[0], int) and high > 1 and not call.named:
        raise CallError("high", f"a range has two ends; write ScoreRange(1, {high})")


_SHAPES: dict[str, tuple[Callable[[_Call], Arguments | None], ...]] = {
    "Rubric": (_rubric_of_criteria,),
    "Criterion": (_criterion_of_two,),
    "Judge": (_client_with_a_name, _judge_of_two),
    "Contains": (_check_of_several,),
    "ScoreRange": (_range_of_one,),
    "scores": (_scores_on_a_scale,),
}


# -- attributes ------------------------------------------------------------------------------------------


def attribute_cure(kind: type, name: str, value: object = None) -> str:
    """
    Return the end of the message that *kind* has no attribute *name*: with the expression that works.

    What the *value* holds is looked through as well: `difference.p_value` is `difference['pass rate'].p`.
    """
    own = _public(kind)
    if meant := _expression(kind, name):
        return f"; {meant}".replace(
            "call('search')", repr(value) if "Matcher" in _lineage(kind) and value else "call('search')"
        )
    if near := misspelt(name, own):
        return f"; did you mean .{near}?"
    words = name.split("_")
    for bare in ["_".join(words[n:]) for n in range(1, len(words))]:  # `get_score`, `score_reason`
        if meant := f"did you mean .{bare}?" if bare in own else _expression(kind, bare):
            return f"; {meant}"
    if below := _below(value, name):
        return f"; write {below}"
    guesses = {word for _, words in _cures("attributes", *_lineage(kind)) for word in words}
    if near := misspelt(name, guesses):
        return f"; {_expression(kind, near)}"
    names = own[:_MOST_NAMED]
    return f"; it has {', '.join(names)}{'' if len(names) == len(own) else ', ...'}"


def _below(value: object, name: str) -> str:
    """Return the expression for *name*, an attribute of what is in a field of *value*, or the id of an item; or ''."""
    kind, variable = type(value), variable_of(value)
    of_items = getattr(kind, "_items", "")
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        held, path = getattr(value, field.name), f"{variable}.{field.name}"
        if isinstance(held, tuple) and held and field.name == of_items:
            ids = {str(each.id): each for each in held}
            if id_ := misspelt(name, ids):
                return f"{variable}[{id_!r}]"
            first, held = next(iter(ids.items()))
            path = f"{variable}[{first!r}]"
        elif isinstance(held, tuple) and held:
            held, path = held[0], f"{path}[0]"
        if field.name.startswith("_") or not type(held).__module__.startswith("rubric."):
            continue
        of = type(held)
        if near := misspelt(name, _public(of)):
            return f"{path}.{near}"
        for expression, words in _cures("attributes", *_lineage(of)):
            if name in words and expression.startswith(f"{variable_of(of)}."):
                return f"{path}{expression.removeprefix(variable_of(of))}"
    return ""


def _lineage(kind: type) -> Iterable[str]:
    names = [each.__name__ for each in kind.__mro__]
    return dict.fromkeys([*names, *(_words()["parents"][name] for name in names if name in _words()["parents"])])


def _expression(kind: type, name: str) -> str:
    """Return the expression that *name* means for *kind*; '' if it is in no table."""
    for expression, words in _cures("attributes", *_lineage(kind)):
        if name in words:
            if expression.startswith("rubric = "):
                return f"a rubric never changes, so keep what it returns: {expression}"
            return expression if " " in expression.split("(")[0] or ":" in expression else f"write {expression}"
    for each in _lineage(kind):
        for where, expression in _words()["related"].get(each, {}).items():
            module, _, related = where.partition(":")
            try:
                of = getattr(import_module(module), related)
            except ImportError:  # pandas is optional
                continue
            if name in _public(of) and not (related == "Rubric" and inspect.isroutine(getattr(of, name))):
                return str(expression).format(f"{name}()" if inspect.isroutine(getattr(of, name)) else name)
    return ""


def _public(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def change_cure(kind: type, name: str, value: str, of: str) -> str:
    """Return the expression that makes a value of *kind*, with the id *of*, with another *name*: the code *value*."""
    variable = variable_of(kind)
    verbs = {"threshold": f"passing_at({value})", "criteria": "adding(Criterion('...'))"}
    if kind.__name__ == "Rubric" and (verb := (verbs | {"guidelines": f"guided_by({value})"}).get(name)):
        return f"rubric = rubric.{verb}"
    if kind.__name__ == "Criterion":
        return f"rubric = rubric.revising({of!r}, {name}={value}), or attrs.evolve(criterion, {name}={value})"
    return f"{variable} = attrs.evolve({variable}, {name}={value})"


# -- names of the package ----------------------------------------------------------------------------------


_CHECKS = ("Calls", "Contains", "ContainsAll", "ContainsAny", "EndsWith", "Equals", "FitsSchema", "IsJSON", "Matches")


def name_cure(name: str, module: str, homes: Mapping[str, str]) -> str:
    """Return the end of the message on *name*, which *module* does not have; *homes* are the modules of all names."""
    home = homes.get(name, "")
    elsewhere = f"it is in {home}: from {home} import {name}" if home else ""
    if meant := _name_cure(name, homes, module):
        return f"; {meant}" + (f"; or {elsewhere}" if home else "")
    if home:
        return f"; {elsewhere}"
    opposite = re.sub("^(not|no|non)_?(?=[A-Z]|_)", "", name, flags=re.IGNORECASE)
    if opposite != name and (check := misspelt(opposite, _CHECKS)):
        example = _example(check, f"{check}()")
        return f"; it is the opposite of a check; write Rubric('reply').checks({example}, polarity='guard')"
    # Names of the surface for embedders are plain words: `Reader` is no slip of `read`.
    for known in ([each for each, at in homes.items() if at == module], [each for each in homes if each[:1].isupper()]):
        near = misspelt(name, known)
        if near and homes[near] != "rubric.embed":
            return f"; did you mean {homes[near]}.{near}?"
    kinds = [means for ending, means in _words()["endings"].items() if name.endswith(ending) and name != ending]
    return f"; {_name_cure(kinds[0], homes)}" if kinds else ""


def module_cure(module: str, wanted: Collection[str], homes: Mapping[str, str]) -> str:
    """Return the end of the message on *module*, which there is not, from which *wanted* names are imported."""
    last = module.rpartition(".")[2]
    if resources.files("rubric.integrations").joinpath(f"{last}.py").is_file():
        return f"; it is rubric.integrations.{last}"
    for name in (*wanted, last, last.title()):
        if cure := name_cure(name, "rubric", homes):
            return cure
    return "; names are in rubric itself: from rubric import Rubric, grade; its error for any other name has the module"


def _name_cure(name: str, homes: Mapping[str, str], module: str = "") -> str:
    """Return what the table of names has for *name*: a name of ours, or a line; '' if it has none."""
    for cure, words in _cures("names", module, "every"):
        if name in words:
            return f"use {homes.get(cure, 'rubric')}.{cure}" if cure.replace(".", "_").isidentifier() else cure
    return ""


def refuse_named_check(name: str, text: str) -> None:
    """Refuse `rubric.checks('regex', '[0-9]+')`, in which the *name* of a check stands for it."""
    kind = _name_cure(name, {}).removeprefix("use rubric.")
    if kind in _CHECKS:
        raise CallError("check", f"a check is a value; write rubric.checks({kind}({source_of('', text, 'text')}))")


# -- keys of files, and the command line ------------------------------------------------------------------------


def key_cure(owner: str, key: object, allowed: Iterable[str]) -> str:
    """Return the end of the message on *key*, which *owner*, a class, does not have; it has those *allowed*."""
    names = [*allowed]
    return word_cure("keys", owner, str(key), names) or suggest(shorten(str(key), 40), names)


def word_cure(table: str, owner: str, word: str, known: Collection[str]) -> str:
    """
    Return the end of the message on *word*, which *owner* does not know: a key, a command or an option.

    A cure that is one of the *known* words is proposed; so is a line, which has blanks. '' if there is neither.
    """
    for cure, words in _cures(table, owner, "every"):
        if word in words and (cure in known or " " in cure):
            return f"; {cure}" if " " in cure else f"; did you mean {cure!r}?"
    near = misspelt(word, known)
    return f"; did you mean {near!r}?" if near else ""


def option_cure(name: str, value: object, allowed: Collection[str]) -> str:
    """Return the end of the message on an option that no adapter has; it has those *allowed*."""
    for note, words in _cures("notes", "adapter"):
        if name in words:
            return f"; {note.replace('{value}', source_of(name, value))}"
    meant = _argument("adapter", name, allowed)
    return f"; did you mean {meant!r}?" if meant else suggest(name, allowed)
