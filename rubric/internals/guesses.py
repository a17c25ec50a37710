"""
What people type, and what they mean: names, attributes and keys. `guesses.toml` beside this file has the words.

Calls are answered by `rubric.internals.wrong_calls`.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import tomllib
from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module, resources
from itertools import product
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

from rubric.errors import CallError, DefinitionError
from rubric.internals.cure_lines import imports_of, lines_in, sound
from rubric.internals.fields import as_share, misspelt, nearest, suggest
from rubric.internals.secrets import is_secret, redact
from rubric.internals.text import shorten

SHORT, _MOST_NAMED = 60, 14  # the longest value that a cure repeats, and the most names


@cache
def table() -> dict[str, dict[str, Any]]:
    """Return the tables of `guesses.toml`: in each, the words by the cure."""
    return tomllib.loads(resources.files("rubric.internals").joinpath("guesses.toml").read_text("utf-8"))


def cures_in(part: str, *owners: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the cures of *owners* in a *part* of the table, each with its words; a section may have several owners."""
    for owner in owners:
        for section, cures in table()[part].items():
            if owner in section.split():
                yield from ((cure, words.split()) for cure, words in cures.items())


@cache
def roles(section: str) -> dict[str, str]:
    """Return what each word in a *section* of the table stands for."""
    return {word: role for role, words in table()[section].items() for word in words.split()}


def forms_of(name: str) -> list[str]:
    """Return *name*, and what it is without the words that people put before or after such a name."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    filler = table()["filler"]
    bare = parts[:-1] if len(parts) > 1 and parts[-1] in filler["last"] else parts
    while len(bare) > 1 and bare[0] in filler["first"]:
        bare = bare[1:]
    return list(dict.fromkeys(["_".join(parts), "_".join(bare)]))


def term_of(name: str) -> str:
    """Return the term of the field that the last word of *name* is: `retries` of `n_retry_attempts`; '' if none."""
    words = re.split("_(?:per|by|for|of|in|on)_", forms_of(name)[0])[0].split("_")
    while len(words) > 1 and words[-1] in table()["filler"]["last"]:
        words.pop()
    tails = ["_".join(words[first:]) for first in range(len(words))]
    meant = [term for tail in tails for term, known in table()["terms"].items() if tail in (term, *known.split())]
    return meant[0] if meant else ""


def argument_for(owner: str, name: str, allowed: Collection[str]) -> str:
    """Return which of the arguments *allowed* in a call of *owner* is meant by *name*, a word of the table."""
    for form, section in [(form, section) for form in forms_of(name) for section in (owner, "every")]:
        words = dict(cures_in("arguments", section))
        if found := [field for field in allowed if form in words.get(field, ()) or (form == field != name)]:
            return found[0]
    return ""


def variable_of(value: object) -> str:
    """Return the name that people give to a *value* of ours; a grade that could not be made is one too."""
    if isinstance(value, list | tuple) and value:
        return re.sub("criterions$", "criteria", f"{variable_of(value[0])}s")
    kind = value if isinstance(value, type) else type(value)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", table()["parents"].get(kind.__name__, kind.__name__)).lower()


def source_of(name: str, value: object, place: str = "", *, most: int = SHORT, is_made: bool = False) -> str:
    """Return *value* as one would type it, never a secret; a long one by its *place*, one of ours by its variable."""
    if name and is_secret(name):
        return "..."
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Mapping) and name.endswith("headers"):  # any of them may let one in
        return repr(dict.fromkeys(value, "..."))
    value = getattr(value, "function", value) if type(value).__name__ == "Holds" else value
    if isinstance(value, type | FunctionType | BuiltinFunctionType) and value.__name__.isidentifier():
        return value.__name__
    if isinstance(value, FunctionType):
        return f"lambda {', '.join(inspect.signature(value).parameters)}: ..."
    if isinstance(value, list) and any(isinstance(each, FunctionType) for each in value):
        return f"[{', '.join(source_of('', each) for each in value)}]"
    is_ours = type(value).__module__.startswith("rubric.")
    is_made |= is_ours and "<Check<" in kind_of(value)  # which has no name, as a rubric or a judge has one
    if isinstance(value, list | tuple) and value and type(value[0]).__module__.startswith("rubric."):
        place = place if variable_of(value).startswith(place) else variable_of(value)
    if isinstance(value, str | list | tuple | dict | range) or (is_ours and is_made):
        plain = re.sub(r"<function (?:[\w<>]+\.)*([\w<>]+) at \w+>", r"\1", repr(value))
        text = redact(plain.replace("<lambda>", "lambda candidate: ..."))
        if isinstance(value, str) and len(text) > SHORT and not place.isidentifier():
            return repr(shorten(redact(value), SHORT))
        return text if len(text) <= most and "<" not in text else place or "..."
    return variable_of(value) if is_ours else place or "..."


def kind_of(value: object) -> str:
    """Return the kind of *value*, as the patterns of the table have it: `mapping(text=Tphrase,weight=number)`."""
    if isinstance(value, str):
        return "Tphrase" if " " in value else "Tpath" if "/" in value else "Tdigits" if value.isdigit() else "Tword"
    if isinstance(value, Mapping):
        return f"mapping({','.join(f'{name}={kind_of(each)}' for name, each in [*value.items()][:9])})".replace(" ", "")
    if isinstance(value, list | tuple):
        return f"{'list' if isinstance(value, list) else 'tuple'}({','.join(map(kind_of, value[:9]))})"
    many = "<Iterable" if isinstance(value, Iterable | AsyncIterable) and not isinstance(value, bytes) else ""
    names = "<".join(each.__name__ for each in type(value).__mro__[:-1])
    return "number" if isinstance(value, int | float) else names + many


def instead(place: str, value: object, kind: str = "") -> str:
    """Return the end of the message on *value*, whose *kind* does not fit at a *place*; '' if no cure is known."""
    for pattern, line in table()["instead"][place].items():
        if re.fullmatch(pattern, kind or ("namedtuple" if hasattr(value, "_asdict") else kind_of(value))):
            rows = criteria_of(value) if isinstance(value, Mapping) and "{rows}" in line else []
            if None in rows:
                return ""
            path = os.fspath(value) if isinstance(value, os.PathLike) else value
            return f"; {line.format(shorten(repr(path), 120), rows=rows)}"
    return ""


def criteria_of(values: Mapping[Any, Any]) -> list[dict[Any, Any] | None]:
    """Return criteria by their ids or texts as mappings of their fields; None for one that is neither."""
    if isinstance(values.get("text"), str):
        return [dict(values)]
    rows = list[dict[Any, Any] | None]()
    for name, value in values.items():
        if isinstance(value, Mapping):
            cures = (word_cure("keys", "Criterion", str(key), ["text"]) for key in value)
            is_named = {"text", "type"} & value.keys() or any("; did you mean 'text'" in cure for cure in cures)
            rows.append({("id" if is_named else "text"): name, **value})
        elif value is None or isinstance(value, int | float):
            rows.append({"text": name} | ({} if value is None or value is True else {"weight": value}))
        else:
            rows.append({"id": name, "text": value} if isinstance(value, str) else None)
    return rows


# -- attributes ------------------------------------------------------------------------------------------


def attribute_cure(kind: type, name: str, value: object = None) -> str:
    """Return the end of the message that *kind*, of *value*, has no attribute *name*: an expression that works."""
    if (holder := _holder_of(value)) is not None:
        cure = f"; write {variable_of(holder)}.{name}" if name in _public(holder) else attribute_cure(holder, name)
        return "; it is a tuple, which never changes" if cure.startswith("; it has ") else cure
    own = _public(kind)
    if place := _place_of(value, name):
        return f"; write {variable_of(kind)}.{place}[{name!r}]"
    if meant := _of_value(_expression(kind, name), kind, value):
        return sound(f"; {meant}", own=kind.__name__)
    filler = table()["filler"]
    words = forms_of(name)[0].split("_")
    if meant := _composed(kind, words, value):
        return f"; write {meant}"
    if near := misspelt(name, own):
        return f"; did you mean .{near}?"
    first = next((n for n, word in enumerate(words) if word not in filler["attributes"]), len(words) - 1)
    last = next((n for n in range(len(words), first, -1) if words[n - 1] not in filler["endings"]), len(words))
    bare = "_".join(words[first:last])
    if bare in own and bare != name and words[0] not in filler["counts"]:
        return f"; did you mean .{bare}?"
    if (meant := _expression(kind, bare)) and words[0] not in filler["counts"]:
        return sound(f"; {meant}", own=kind.__name__)
    items = {str(getattr(kind, "_id", str)(each)) for each in getattr(value, getattr(kind, "_items", ""), ())}
    if near := misspelt(name, items):
        return f"; write {variable_of(kind)}[{near!r}]"
    guesses = {word for _, words in cures_in("attributes", *_lineage(kind)) for word in words}
    if (near := misspelt(name, guesses)) and words[0] not in filler["counts"]:
        return sound(f"; {_expression(kind, near)}", own=kind.__name__)
    listed = nearest(name, own, 0.0, most=_MOST_NAMED)
    return f"; it has {', '.join(listed)}{', ...' if len(own) > len(listed) else ''}"


def _place_of(value: object, name: str) -> str:
    """Return the attribute of *value* that holds a variable, or metadata, called *name*; '' if none does."""
    for place in ("variables", "candidate.variables", "metadata"):
        with suppress(AttributeError, TypeError, DefinitionError):  # a case may make no candidate
            if name in attrgetter(place)(value):
                return place
    return ""


def _of_value(cure: str, kind: type, value: object) -> str:
    """Return *cure* with what stands in *value* in the places of the table's examples, and of parts that it lacks."""
    standing = [table()["standing"].get(each, {}) for each in _lineage(kind)] if value is not None else []
    for placeholder, form in (pair for each in standing for pair in each.items()):
        if placeholder in cure and getattr(value, placeholder.rpartition(".")[2], None) is None:
            with suppress(LookupError):  # of results there may be none
                cure = cure.replace(placeholder, form.format(value))
    return cure


def _composed(kind: type, words: Sequence[str], value: object) -> str:
    """Return the figure that *words* ask of *value*, as `avg cost` or `failed count` do; '' if there is none."""
    variable, whole = variable_of(kind), "_".join(words)
    if not whole.isidentifier():  # a name from elsewhere may be code, and what is composed is evaluated
        return ""
    words = ["avg", *whole.partition("_per_")[0].split("_")] if "_per_" in whole else words
    for part, rest in ((words[0], words[1:]), (words[-1], words[:-1])):
        forms = [form for role, forms in table()["composed"].items() if part in role.split() for form in forms]
        noun_of = re.sub("criterion$", "criteria", "_".join(rest)).__add__
        for noun in map(noun_of, ("", "s", "ed") if rest and forms else ()):
            base = f"{variable}.{noun}" if noun in _public(kind) else _expression(kind, noun).removeprefix("write ")
            if base.endswith((".mean", ".pass_rate")):  # it is that figure already
                return base
            is_total = ".usage." in base and kind.__name__ == "Grades"
            for form in forms if is_total or "/ len" not in forms[0] or "len({0})" in forms[0] else ():
                line = form.format(base, variable, noun)
                with suppress(Exception):  # it is no expression, or not one of this value
                    found = None if "..." in line else eval(line, {variable: value})  # noqa: S307 - the table's words
                    if isinstance(found, int | float) and not isinstance(found, bool):
                        return ast.unparse(ast.parse(line)) if line.startswith("(") else line
    return ""


def _lineage(kind: type) -> Iterable[str]:
    names = [each.__name__ for each in kind.__mro__]
    return dict.fromkeys([*names, *(table()["parents"][name] for name in names if name in table()["parents"])])


def _expression(kind: type, name: str) -> str:
    """Return the expression that *name* means for *kind*; '' if it is in no table."""
    for expression, words in cures_in("attributes", *_lineage(kind)):
        if name in words:
            if expression.startswith("rubric = "):
                return f"a rubric never changes, so keep what it returns: {expression}"
            return _with_verb(expression)
    for each in _lineage(kind):
        for where, expression in table()["related"].get(each, {}).items():
            module, _, related = where.partition(":")
            try:
                of = getattr(import_module(module), related)
            except ImportError:  # pandas is optional
                continue
            cure = next((cure for cure, words in cures_in("attributes", *_lineage(of)) if name in words), "")
            if "{}" in expression and cure.startswith(f"{variable_of(of)}.") and "(" not in cure:
                return _with_verb(str(expression).format(cure.partition(".")[2]))
            if ".collect()" in expression and name not in _public(of) and (meant := _expression(of, name)):
                return f"the results are read first: grades = {expression[expression.index(':') + 2 : -3]}; {meant}"
            if name in _public(of) and not (related == "Rubric" and inspect.isroutine(getattr(of, name))):
                return _with_verb(str(expression).format(f"{name}()" if inspect.isroutine(getattr(of, name)) else name))
    return ""


def _with_verb(cure: str) -> str:
    """Return *cure*, of the table, with the word before code; prose has its own."""
    with suppress(SyntaxError):
        ast.parse(cure.removeprefix("await "))
        return f"write {cure}"
    return cure


def _public(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def held_in(value: object, field: str) -> Iterator[tuple[str, object]]:
    """Yield what a *value* of ours holds by the name *field*, or as its number: the expression, and its value."""
    names = [name for name in ("value", "score", "mean") if hasattr(type(value), name)]
    for name in (field, *names) if type(value).__module__.startswith("rubric.") else ():
        code = item_cure(value, name).rpartition("write ")[2]
        with suppress(Exception):  # it is prose, or not one of this value
            yield code, eval(code, {variable_of(value): value})  # noqa: S307 - the table's words


def item_cure(value: object, name: str) -> str:
    """Return the end of the message that *value* has no item *name*, if that is an attribute, or a word for one."""
    if not name.startswith("_") and hasattr(type(value), name):
        return f"; write {variable_of(value)}.{name}"
    if name in getattr(value, "groups", ()):
        return f"; write {variable_of(value)}.groups[{name!r}]"
    if name in getattr(value, "systems", ()):
        return f"; write {{one.name: one for one in {variable_of(value)}.strengths}}[{name!r}]"
    return f"; {meant}" if (meant := _expression(type(value), name)) else ""


def _holder_of(items: object) -> type | None:
    """Return the class of the values that hold *items* such as these; None if they are no such items."""
    first = type(items[0]).__name__ if isinstance(items, tuple) and items else ""
    where = next((where for where, kinds in table()["holders"].items() if first in kinds.split()), "")
    return getattr(import_module(where.partition(":")[0]), where.partition(":")[2]) if where else None


def place_cure(items: tuple[Any, ...], at: str) -> str:
    """Return the end of the message that *items*, each with an id, are asked for the one that has the id *at*."""
    holder = _holder_of(items)
    ids = [str(id_) for each in items if (id_ := getattr(holder, "_id", str)(each))]
    near = at if at in ids else misspelt(at, ids)
    return f"; write {variable_of(holder)}[{near!r}]" if near and holder else suggest(shorten(at, 40), ids)


def change_cure(kind: type, name: str, value: str, of: str) -> str:
    """Return the expression that makes a value of *kind*, with the id *of*, with another *name*: the code *value*."""
    lines = table()["changes"]
    line = lines.get(f"{kind.__name__}.{name}") or lines.get(kind.__name__, lines["every"])
    code = str(line).format(name=name, value=value, of=repr(of), variable=variable_of(kind))
    return imports_of(code) + code


# -- names of the package ----------------------------------------------------------------------------------


def name_cure(name: str, module: str, homes: Mapping[str, str]) -> str:
    """Return the end of the message on *name*, which *module* does not have; *homes* are the modules of all names."""
    home = homes.get(name, "")
    elsewhere = f"it is in {home}: from {home} import {name}" if home else ""
    if meant := _name_cure(name, homes, module):
        return f"; {meant}" + (f"; or {elsewhere}" if home else "")
    if home:
        return f"; {elsewhere}"
    if module == "rubric" and (adapter := _adapter_cure(name)):
        return adapter
    opposite = re.sub("^(not|no|non)_?(?=[A-Z]|_)", "", name, flags=re.IGNORECASE)
    if opposite != name and (check := misspelt(opposite, _checks())):
        example = table()["examples"].get(check, f"{check}()")
        line = f"write Rubric('reply').checks({example}, polarity='guard')"
        return f"; it is the opposite of a check; {_with_imports(line)}"
    # Names of the surface for embedders are plain words: `Reader` is not a slip of `read`.
    own, others = [each for each, at in homes.items() if at == module], [each for each in homes if each[:1].isupper()]
    near = misspelt(name, own) or misspelt(name, [each for each in others if each[:4].lower() == name[:4].lower()])
    if near and homes[near] != "rubric.embed":
        return f"; did you mean {homes[near]}.{near}?"
    kinds = [means for ending, means in table()["endings"].items() if name.endswith(ending) and name != ending]
    return f"; {_name_cure(kinds[0], homes)}" if kinds else ""


def module_cure(module: str, wanted: Collection[str], homes: Mapping[str, str]) -> str:
    """Return the end of the message on *module*, which there is not, from which *wanted* names are imported."""
    last = module.rpartition(".")[2]
    for name in (*wanted, last, last.title()):
        if cure := _adapter_cure(last) or name_cure(name, "rubric", homes):
            return cure
    if module.startswith("rubric.integrations."):
        return f"; there are {', '.join(_adapters())}; in any other tool, a function calls grade"
    return "; names are in rubric itself: from rubric import Rubric, grade; its error for any other name has the module"


def _adapters() -> list[str]:
    """Return the tools that have a module in `rubric.integrations`."""
    found = {each.name.removesuffix(".py") for each in resources.files("rubric.integrations").iterdir()}
    return sorted(name for name in found - {"mapping"} if name[0] != "_")


def _adapter_cure(name: str) -> str:
    """Return the end of the message on *name*, of a tool, if there is a module for it; else ''."""
    near = next((each for each in _adapters() if each == name or each.startswith(f"{name}_")), "")
    return f"; it is rubric.integrations.{near}" if near else ""


def _name_cure(name: str, homes: Mapping[str, str], module: str = "") -> str:
    """Return what the table of names has for *name*, with the line that works; '' if it has nothing."""
    meant = _named(name, module)
    if not meant.replace(".", "_").isidentifier():
        return _with_imports(meant)
    home, example = homes.get(meant, "rubric"), table()["examples"].get(meant, "")
    line = f"{imports_of(example.split(', or ')[0], whole=True)}{example}" if meant in homes else ""
    return f"use {home}.{meant}" + (f"; write {line}" if line else "")


def _named(name: str, module: str = "") -> str:
    """Return the name of ours, or the line, that the table of names, or that of metrics, has for *name*; or ''."""
    meant = next((cure for cure, words in cures_in("names", module, "every") if name in words), "")
    text = "" if meant else metric_text(name)
    return f"it is a criterion here; write Rubric('reply', [{text!r}])" if text else meant


def _with_imports(cure: str) -> str:
    """Return *cure*, of a name that is not there, with the imports of all that its lines call."""
    told = f"; {cure}"
    for found, code in lines_in(told):
        told = told.replace(found + code, f"{found}{imports_of(code, whole=True)}{code}", 1)
    return told.removeprefix("; ")


def metric_text(name: str) -> str:
    """Return what the metric *name* asks: `FaithfulnessMetric`, or `RAG_GROUNDEDNESS_PROMPT`; '' if it is unknown."""
    name = _in_words(name)
    bare = re.sub("^(rag|llm|custom)_|_(metric|prompt|evaluator|scorer?)$", "", name)
    return next((text for text, words in table()["metrics"].items() if {name, bare} & {*words.split()}), "")


def metric_cure(name: str) -> str:
    """Return the criterion that a metric's *name* stands for, as a text in quotes; else the words of the name."""
    words = _in_words(name).removesuffix("_metric").replace("_", " ")
    return f'"{metric_text(name) or words.capitalize()}"'


def _in_words(name: str) -> str:
    """Return *name* as `answer_relevancy`, also where it is `AnswerRelevancy`."""
    return re.sub("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _checks() -> list[str]:
    return str(table()["held"]["check"]).split()


def refuse_named_check(name: str, value: object) -> None:
    """Refuse `rubric.checks("regex", "[0-9]+")`, or `{"icontains": "day"}`, where a *name* stands for a check."""
    plain = name.strip().lower().replace("-", "_")
    bare = plain.removeprefix("i") if plain.startswith("icontains") else plain
    same = (kind for kind in _checks() if kind.lower() == bare.replace("_", ""))
    if (kind := next(same, "") or _named(bare)) in _checks():
        more = ", ignore_case=True" if bare != plain else ""
        line = f"rubric.checks({kind}({source_of('', value, 'text')}{more}))"
        raise CallError("check", f"a check is a value; write {line}")


# -- keys of files, and the command line ------------------------------------------------------------------------


def key_cure(owner: str, key: object, allowed: Iterable[str], value: object = None) -> str:
    """Return the end of the message on *key*, unknown to *owner*, a class; it shows a *value* that is one word."""
    names = [*allowed]
    of_kind = f"{owner}.{kind_in_files(value)}"  # a key may mean another thing with another kind of value
    means = table()["keys"].get(of_kind, {}).values()
    owner = of_kind if any(str(key) in words.split() for words in means) else owner
    near = [] if key in names else nearest(shorten(str(key), 40), names, 0.75)
    said = table()["otherwise"].get(owner, "")
    other = f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(names)}{said and f'; {said}'}"
    cure = word_cure("keys", owner, str(key), names) or other
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(one, dict) and "{value|" in cure:  # of several, the one that has a word for the same
        named = [name for name in one if word_cure("keys", owner, str(name), names) == cure]
        left = [str(name) for name in one if [name] != named]
        one = one[named[0]] if len(named) == 1 else None
        cure += f"; no option is for {', '.join(left)}" if named and left else ""
    plain = str(one).strip("$€£ ")
    is_one = isinstance(one, str | int | float) and not isinstance(one, bool) and re.fullmatch(r"[\w./:%-]+", plain)
    return re.sub(r"\{value\|(.*?)\}", plain if is_one and len(plain) <= SHORT else r"\1", cure)


def kind_in_files(value: object) -> str:
    """Return what a *value* in a file is: `offline`, a `verdict`, a `sentence`, `texts`, `cases`, `mapping`, ..."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "texts"
    if isinstance(value, bool) or value in ("pass", "fail", "passed", "failed", "failure"):
        return "verdict"
    if isinstance(value, str):
        is_expression = re.search(r"[=!<>]=|\$\{|^\w+\.\w+", value)
        kind = "sentence" if " " in value.strip() else ""
        return "offline" if value == "offline" else "expression" if is_expression else kind
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return "mapping" if isinstance(value, dict) else ""
    return "cases" if {"input", "inputs", "output", "outputs", "question"} & value[0].keys() else "rows"


def form_cure(message: str) -> str:
    """Return the end of *message*, on a value in a file, with the form of what was expected; '' if it has a cure."""
    rows = re.search(r"got '(?:file://)?([\w./-]+\.(?:csv|json|jsonl|tsv))'", message)
    lines = ((sign, line.replace("rows.jsonl", rows[1]) if rows else line) for sign, line in table()["files"].items())
    forms = (f"; {line}" for sign, line in lines if sign in message)
    return "" if re.search(r"; (write|such as|did you mean|take|quote|\d\S* is )", message) else next(forms, "")


def word_cure(part: str, owner: str, word: str, known: Collection[str], seen: Collection[str] = ()) -> str:
    """Return the end of the message on *word*, a key or option: a *known* word or a line that was not *seen*; or ''."""
    bare = word.lstrip("-").replace("-", "_")
    term = "" if bare.startswith("no_") else term_of(bare)
    dashes = word[: len(word) - len(word.lstrip("-"))]
    one = {word.removesuffix("s")} if part == "commands" else set[str]()
    forms = ({word, word.lower()}, one, {f"{dashes}{term}"})
    for meant, (cure, words) in product(forms, [*cures_in(part, owner, "every")]):
        option = re.search(r"(?:^|such as )(--[\w-]+)", cure)
        fits = option[1] in known if option else cure in known or " " in cure
        joined = [f"--{each.replace('-', '')}" for each in words if dashes == each[:2] == "--"]
        said = f"; did you mean {cure!r}?" if " " not in cure or cure.startswith("--") else f"; {cure}"
        if fits and said not in seen and meant & {*words, *joined}:
            return said
    names = {name.lstrip("-").replace("-", "_"): name for name in known}
    near = names.get(argument_for(owner, bare, names), "") or names.get(term, "") or misspelt(word, known)
    return said if near and (said := f"; did you mean {near!r}?") not in seen else ""


_FEWEST_PERCENT = 10  # a smaller number may as well be one of a scale from 1 to 5


_PATH = re.compile(
    r"""(?:(?:candidate\.)?(?:output|json)(?=[.\[])|\$(?=[.\[]))?\.?([\w$]*(?:\.\w+|\[(\d+|'\w+'|"\w+")\])*)"""
)


def _field_cure(path: str, before: str) -> str:
    """Return what is written for `on`, the *path* of a field of JSON: a function in Python, a transform in a file."""
    keys = re.findall(r"\w+", path)
    if before:
        code = "".join(f"[{key}]" if key.isdigit() else f"[{key!r}]" for key in keys)
        read = f"lambda it: attrs.evolve(it, output=str(json.loads(it.output){code}))"
        return f"; of an output that is JSON, write {before}{read}"
    said = "output" + "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in keys)
    shown = f"'{said}'" if "[" in said else said
    return f"; a field of an output that is JSON is a transform, such as on: {{transform: {shown}}}"


def value_cure(found: object, message: str, before: str = "", *, is_threshold: bool = False) -> str:
    """Return the end of *message* on a value that was *found* in another form: "80%", "4/5", "2", 80, "negative"."""
    text = str(found).strip()
    if "sub-agent NAME" in message and re.search(r"[.\[]", text) and (place := _PATH.fullmatch(text)):
        return _field_cure(place[1], before)
    for cure, words in cures_in("values", "every") if message.startswith("unknown value") else ():
        is_near = text in words or ("did you mean" not in message and misspelt(text, words))
        if is_near and {*(re.findall(r"'(\w+)'", cure) or [cure])} <= {*re.findall(r"\w+", message)}:
            return f"; {cure}" if " " in cure else f"; did you mean {cure!r}?"
    if "sub-agent NAME" in message and text.isidentifier() and "did you mean" not in message:
        return _field_cure(text, before)
    if isinstance(found, str) and re.fullmatch(r"(?a)-?\d{1,9}(\.\d{1,9})?|true|false", text):
        shown = f": {text.capitalize()}" if before else ""  # in a file it stands on the line
        return f"; take the quotes off{shown}" if re.search("number|True or False", message) else ""
    if message.startswith("expected True or False") and text in {"yes", "on", "no", "off"}:
        return f"; write {before}{text in {'yes', 'on'}}"
    number: float = found if type(found) in (int, float) and " 0 to 1" in message else 0  # type: ignore[assignment]
    if is_threshold and 2 <= number < _FEWEST_PERCENT:  # noqa: PLR2004 - the second level of a scale
        top = 5 if number <= 5 else 10  # noqa: PLR2004 - as most scales end
        scaled = f"{before}{(number - 1) / (top - 1):.3g}"
        points = f"{before}{number / top:g}"
        return f"; {text} on a scale from 1 to {top} is {scaled}, and {text} of {top} points are {points}"
    is_percent = _FEWEST_PERCENT <= number <= 100  # noqa: PLR2004
    share = as_share(f"{text}%" if is_percent else text) if "finite" in message else None
    return "" if share is None else f"; {text}{'%' * is_percent} is {before}{share:g}"


def refuse_option(given: Mapping[str, object], allowed: Collection[str]) -> NoReturn:
    """Refuse the first option of those *given* that no adapter has, with what was meant; they have those *allowed*."""
    name = next(name for name in given if name not in allowed)
    names = [*allowed, "judge", "candidate"]
    cure = word_cure("notes", "adapter", name, names) or suggest(name, names)
    field = re.search(r"(\w+)=\{value\}", cure)
    worth = table()["quantities"].get(field[1] if field else "", {}).get(str(given[name]).lower(), given[name])
    raise DefinitionError(name, f"unknown option{cure.replace('{value}', source_of(name, worth))}")
