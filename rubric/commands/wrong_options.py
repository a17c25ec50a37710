"""What is meant by an option that its command does not have; `guesses.toml` has the words that people try."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import click
from attrs import frozen

from rubric import RubricError
from rubric.commands.file_arguments import MODEL, TRIAL, Change, are_enough, are_many, find_command, first_row, kind_of
from rubric.commands.written_files import written_by
from rubric.internals.guesses import cures_in, term_of, word_cure

Unit = tuple[str, Sequence[str]]
"""
Words of a line, and what they are: "" an argument, the name of a parameter, or, in capitals, what a change is made of.

FILE 1 is the argument at a place, ARGUMENTS all of them, COMMAND another command, TEXT what is piped, FIRST what the
shell does before, > the file for what is printed; SENTENCE says that none is printed; "without" has what is left out.
"""

UNITS = re.compile(
    r"[$€£_\s]|^-?(ba|z)?sh(?=\.)|(?<!^0),(?=\d{3}(?!\d))|usd|dollars?|eur(os?)?|(/|per)?min(ute)?s?|/m|rpm|tpm"
    r"|s(ec(ond)?s?)?$"
)
"""What people put before, behind or in a number, or a shell for `$0`; a comma may be a decimal one."""

TYPED = "rubric.typed"
"""Where a context has the words that were typed for its command."""

SOME_ROWS = "some.jsonl"  # the file of rows that are chosen before
_EXPRESSION = re.compile(r"(?i)\b(and|or|not)\b|[&|!~()]")  # of tags, as pytest has it
_ACTION = re.compile(r"; (rubric|FILE|TEXT|without)(?: ([\w-]+))?: ")
"""Begins a cure that is more than another word: a command, the place of a file, a piped text, an option too many."""

_DELIMITERS = (";", "|", ":", "\t", "\\t", "tab")
_SETS = ("--set", "--override", "--overrides", "--param-override", "-D")
_PRINTED = (".json", ".jsonl", ".log", ".md", ".out", ".txt", ".yaml", ".yml")  # as which what is printed may be kept
_ELSEWHERE = "; it belongs to rubric "
_OF_RUN = ("target", "deferred", "allow_scripts", "concurrency", "store", "repeat", "runs", "fail_fast")
_OF_MANY = ("concurrency", "store", "repeats")  # options that are arguments of the same name, as of `Suite.run`
_MARKS = {
    "patterns": "{filters}",
    "excluded": "{filters}",
    "outs": "{outs}",
    "out": "{jsonl}",
    "min_pass_rate": "{exit_code}",
    "columns": "{columns}",
    "store": "{store}",
    "max_cost": "{budget}",
}
_SETTINGS = {"timeout": "60", "retries": "3", "seed": "1", "temperature": "0.0", "max_tokens": "1000"}  # of a judge


def options_of(command: click.Command, context: click.Context) -> Mapping[str, click.Option]:
    """Return the options of *command* by each of their names."""
    given = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return {name: each for each in given for name in (*each.opts, *each.secondary_opts)}


def units_of(own: Mapping[str, click.Option], typed: Sequence[str]) -> list[Unit]:
    """Return the words *typed*, each option that a command has as its *own* with its value."""
    rest, units = [*typed], list[Unit]()
    while rest:
        word = rest.pop(0)
        option = own.get(word.partition("=")[0]) or (own.get(word[:2]) if word[1:2] != "-" else None)
        count = option.nargs if option is not None and not option.is_flag and word in own else 0
        units.append((option.name or "" if option is not None else "", [word, *rest[:count]]))
        rest = rest[count:]
    return units


def values_of(units: Sequence[Unit], name: str) -> list[str]:
    """Return the values of the option *name* in *units*; [] also of a switch."""
    words = [
        word for of, given in units if of == name for word in given if word[:1] != "-" or "=" in word or word == "-"
    ]
    return [word.partition("=")[2] if word[:1] == "-" != word else word for word in words]


def changed_units(units: Sequence[Unit], change: Change) -> list[Unit]:
    """Return *units* as *change* has them; WITHOUT names the options that are left out."""
    left = {*change.get("WITHOUT", ())}
    moved = [] if "ARGUMENTS" not in change else [name for name, _ in units if name[:5] == "FILE "]
    units = [("without" if name in left else name, words) for name, words in units if name not in moved]
    new = {name: words for name, words in change.items() if name != "WITHOUT"}
    kept = [(name, words if name == "without" or name not in change else new.pop(name, ())) for name, words in units]
    added = [(name.lstrip("+"), words) for name, words in new.items()]  # "+" is one more
    return [unit for unit in (*kept, *(unit for unit in added if unit not in kept)) if unit[1]]


def is_unknown(unit: Unit) -> bool:
    """True if *unit* is an option that the command does not have."""
    return not unit[0] and unit[1][0][:1] == "-" != unit[1][0]


def forms_of(own: Mapping[str, click.Option]) -> Collection[str]:
    """Return the forms in which a command with its *own* options prints."""
    return getattr(own["--format"].type, "choices", ()) if "--format" in own else ()


def meant_in(cure: str) -> str:
    """Return the word, or the option with its value, that *cure* asks for; '' if it is a sentence."""
    return cure.removeprefix("; did you mean ").strip("'?") if cure.startswith("; did you mean ") else ""


def label_column(command: click.Command, word: str, held: Collection[str]) -> str:
    """Return a *word* of `--column` with a field of labels for what is named so, also where the sides are turned."""
    parts = word.split("=")
    for field, column in (parts, parts[::-1]) if len(parts) == 2 else ():  # noqa: PLR2004 - a pair
        meant = meant_in(word_cure("options", command.name or "", f"--{field}", ["--column"]))
        if column in held and (name := meant.removeprefix("--column ")) != meant:
            return f"{name}{column}"
    return word


def joined(*said: str) -> str:
    """Return sentences as one, each once."""
    text = "; ".join(dict.fromkeys(filter(None, said)))
    return re.sub(r"(?<=['e])\?; (write |without )?", lambda found: f"? {(found[1] or '').capitalize()}", text)


def read_options(
    said: str, context: click.Context, command: click.Command, typed: Sequence[str]
) -> tuple[str, list[Unit]]:
    """Return what is *said*, also of unknown options, and the units *typed*, with SENTENCE where one is answered so."""
    units, is_whole, by_cure = list[Unit](), True, dict[str, list[str]]()
    rest = units_of(own := options_of(command, context), typed)
    values, settings = dict[str, str](), dict[str, str]()
    for (_, words), (kind, (after, *_)) in pairwise([*rest, ("", [""])]):
        name, _, value = words[0].partition("=")
        values[name] = value or " ".join(words[1:]) or after * (not kind and after[:1] != "-")
    while rest:
        unit = rest.pop(0)
        option, _, value = unit[1][0].partition("=")
        if not is_unknown(unit):
            is_pair = bool(units) and units[-1][0] == "columns" and not unit[0] and "=" in unit[1][0]
            units.append(("columns", ["--column", *unit[1]]) if is_pair else unit)
            continue
        given = value or (rest[0][1][0] if rest else "")
        field, _, worth = given.partition("=")
        if worth and option in _SETS and field.replace(".", "").replace("_", "").isalnum():  # `--set threshold=0.9`
            rest = rest[not value :]
            said = joined(said, f"no such option {option}; a setting is an option of its own")
            rest = [*units_of(own, [f"--{field.rpartition('.')[2].replace('_', '-')}", worth]), *rest]
            continue
        besides = [each for each in (*units, *rest[1:]) if not each[0] or each[0][:5] == "FILE "]
        others = [words[0] for _, words in besides if words[0][:1] != "-"]
        cure = _cure(context, command, "--delimiter" if given in _DELIMITERS else option, others, given)
        told = _filled(cure, option, given, values, settings)
        by_cure.setdefault(_ACTION.sub("; ", told, count=1), []).append(option)
        found = _Unknown(option, value, told, command, own, others, {name for name, _ in (*units, *rest)}).units(rest)
        if not found and rest and not rest[0][0] and rest[0][1][0][:1] != "-" and not Path(rest[0][1][0]).exists():
            rest.pop(0)  # its value
        units, is_whole = [*units, *(each for each in found if each not in units)], is_whole and bool(found)
    yaml, code = (", ".join(map(sign.join, settings.items())) for sign in (": ", "="))
    model = values.get("-j") or values.get("--judge") or ""
    for cure, names in by_cure.items():
        told = re.sub(r"(Judge\('.*?', )\{settings\}", rf"\1{code}", cure).replace("{settings}", yaml)
        told = re.sub(r"(?<!--target )openai/gpt-5(?![.\w-])", model, told) if model else told
        said = joined(said, f"no such option {', '.join(dict.fromkeys(names))}{told}")
    if ("form", ["--format", "json"]) in units and ("form", ["--format", "json"]) not in units_of(own, typed):
        said = joined(said, (own["--format"].help or "").partition("; ")[2].rstrip("."))  # what JSON has
    return said, units if is_whole else [*units, ("SENTENCE", ["said"])]


def _filled(cure: str, option: str, given: str, values: Mapping[str, str], settings: dict[str, str]) -> str:
    """Return the *cure* of an *option* with what was *given*, also beside it; note those of its judge in *settings*."""
    besides = ((each, said) for each in values for said, words in cures_in("options", each) if option in words)
    beside, said = next(besides, ("", "")) if not cure.startswith("; without") else ("", "")  # which leaves it out
    cure = (f"; did you mean {said!r}?" if said[:2] == "--" else f"; {said}") if said else cure
    cure = re.sub(r"\{tests\|(.*?)\}", lambda found: _as_test(given or found[1]), cure)
    pair = re.fullmatch(r"([\w.-]+)(?:=(?!=)|: ?)(.+)", given, re.DOTALL)
    field, equals = pair.groups() if pair else ("", "")
    named = ("beside", values.get(beside, "")), ("field", field), ("equals", equals)
    for name, filled in (("value", given), *named):
        cure = re.sub(rf"\{{{name}\|(.*?)\}}", lambda found, by=filled: like(found[1], by), cure)  # type: ignore[misc]
    cure = re.sub(r"\{text\|(.*?)\}", lambda found: shlex.quote(given) if given else found[1], cure)
    if "{settings}" in cure:
        setting = term_of(option.strip("-").replace("-", "_")) or "temperature"
        settings[setting] = like(_SETTINGS[setting], given)
    return cure


def as_python(context: click.Context, option: str, expression: str) -> str:
    """Return the cure of an *expression* where *option* takes a pattern, with what else is typed; '' of none."""
    if not _EXPRESSION.search(expression):
        return ""
    if option == "excluded":
        expression = f"not ({expression})"
    cure = _filled(word_cure("options", "grade", "-k", ["--filter"]), "-m", expression, {}, {})
    typed = units_of(options_of(context.command, context), context.meta[TYPED])
    return with_run(cure, [unit for unit in typed if unit[0] != option])


def with_run(cure: str, units: Sequence[Unit]) -> str:
    """Return the *cure* of a run in Python with what *units* have for it, and what it leaves out."""
    if "{judge}" not in cure and "{options}" not in cure:
        return cure
    values = {name: values_of(units, name) for name, _ in units}
    functions = dict(filter(None, map(function_in, [*values.get("judge", ()), *values.get("target", ())])))

    def code(words: Sequence[str]) -> str:
        named = [found[0] if (found := function_in(word)) else word for word in words]
        parts = [word if word in functions or like("1.0", word) == word else repr(word) for word in named]
        return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]" if parts else "True"

    taken = [name for name in (_OF_RUN if "{outs}" in cure else _OF_MANY) if name in values and "{options}" in cure]
    chosen = {
        call: [part for word in values.get(name, ()) for part in word.split(",")]
        for call, name in (("filter", "patterns"), ("without", "excluded"))
    }
    pairs = [word.partition("=")[::2] for word in values.get("columns", ())]
    of = {field: [each for name, each in pairs if name == field] for field, _ in pairs}  # `variables` may have several
    columns = {field: several if several[1:] else several[0] or None for field, several in of.items()}
    kept = {"", "judge", *taken, *(name for name, mark in _MARKS.items() if mark in cure)}
    made = {
        "judge": code(values.get("judge") or ["openai/gpt-5"]),
        "imports": "".join(f"from {module} import {name}; " for name, module in functions.items())
        + "from rubric import Budget; " * ("{budget}" in cure and "max_cost" in values),
        "options": "".join(f", {name}={code(values[name])}" for name in taken),
        "filters": "".join(f".{call}({', '.join(map(repr, words))})" for call, words in chosen.items() if words),
        "outs": "".join(f"; r.write({out!r})" for out in values.get("outs", ())),
        "columns": f", columns={columns}" if columns else "",
        "store": f", store={file[-1]!r}" if (file := values.get("store")) else "",
        "budget": f", budget=Budget(cost={cost[-1]})" if (cost := values.get("max_cost")) else "",
        "jsonl": "".join(f"; r.to_jsonl({out!r})" for out in values.get("out", ())),
        "exit_code": f"exit_code_at({code(least)})" if (least := values.get("min_pass_rate")) else "exit_code",
    }
    for name, text in made.items():
        cure = cure.replace(f"{{{name}}}", text)
    lost = [word for name, words in units if name not in kept and not name[:1].isupper() for word in words]
    return cure + f"; it is without {shlex.join(lost)}" * bool(lost)


def refuse_function(name: str, *, answers: bool) -> None:
    """Refuse the *name* of a function in a file, which judges or *answers*, with the line in Python that takes it."""
    if answers and re.match(r"exec:|.*\.(sh|js|mjs|ts)$", name):
        said = f"{name}: a program is no target; have it write a line of JSON for each case, with its id and its output"
        raise click.UsageError(f"{said}, and give these in its place: --outputs replies.jsonl")
    if not function_in(name):
        return
    context = click.get_current_context()
    words, command = context.meta.get(TYPED, ()), context.command.name or ""
    if command == "grade":
        is_suite = answers or any(kind_of(word) == "*" and word.endswith((".yaml", ".yml")) for word in words)
        command = "suite" if is_suite else "grade-many" if are_many(words) else command
    code = next((line for line, _ in cures_in("functions", command)), "")
    cure = f', such as python -c "{{imports}}{code}"' if code else ", as the judge of a call"
    said = f"{name}: a function is given in Python alone{cure}; here it is a model, such as openai/gpt-5.6"
    raise click.UsageError(said)


def function_in(word: str) -> tuple[str, str] | None:
    """Return the name and the module of the function that *word* names, as `judge.py:strict`; None if it is a model."""
    found = re.fullmatch(r"(?:file://|python:)?([\w/.-]*?\w+)(\.py)?(?:(?:::?|@)(\w+))?", word)
    file = Path(f"{found[1]}.py") if found else Path()
    if not found or not (found[2] or (found[3] and file.is_file())):
        return None
    defined = re.search(r"(?m)^(?:async )?def (\w+)", file.read_text("utf-8")) if file.is_file() else None
    return found[3] or (defined[1] if defined else "judge"), found[1].removeprefix("./").replace("/", ".")


def _as_test(expression: str) -> str:
    """Return an *expression* of names and tags as one of Python, about the text `name`; one that is none as a text."""
    parts = [each.rpartition("::")[2] for each in re.findall(r"[()]|[^\s()]+", expression.replace(",", " or "))]
    code = " ".join(each.lower() if _EXPRESSION.fullmatch(each) else f"{each!r} in name" for each in parts)
    with suppress(SyntaxError):
        ast.parse(code)
        return code
    return f"{expression!r} in name"


def like(default: str, value: str) -> str:
    """Return the *value* that was typed, if it is of the kind of *default*, which stands for it in a cure."""
    plain = UNITS.sub("", value)
    if default.replace(".", "", 1).isdigit():
        return plain if plain.replace("." * (not default.isdigit()), "", 1).isdigit() else default
    form = r"[a-z,]+(-[a-z,]+)+" if re.fullmatch(r"[a-z]+-[a-z]+", default) else r"[\w./:%,-]+"  # a rule of `lint`
    return value if re.fullmatch(form, value) else default


@frozen
class _Unknown:
    """An option that a *command* does not have, as it was typed, and what the table says of it."""

    name: str
    value: str
    """Behind a sign of equality, else behind the option, once it is taken from there."""
    cure: str
    command: click.Command
    own: Mapping[str, click.Option]
    files: Sequence[str]
    given: Collection[str]
    """The parameters that were typed."""

    @property
    def action(self) -> tuple[str, str]:
        """What the cure begins with, or ends with: what to do, and with what; ">" writes what is printed."""
        if SOME_ROWS in self.cure:
            return "SOME", SOME_ROWS
        if action := _ACTION.match(self.cure):
            return action[1], action[2] or ""
        if self.cure and not self.cure.startswith(_ELSEWHERE):
            example = re.search(r"; (?!did you).*such as ((--[\w-]+)( [\w.-]+)?)", self.cure)
            known = self.own.get(example[2]) if example else None
            if example and known is not None and known.name not in self.given:
                is_one = self.cure.count("such as") == 1 and self.cure.endswith(example[1])
                return "such as" * is_one, example[1] * is_one
            return "without" if known is not None else "", ""
        if not self.cure and _narrows(self.name):
            return "", ""
        prints = "--out" not in self.own and self.command.name not in ("init", "view")
        return ">" if prints and word_cure("options", "", self.name, ["--out"]) else "without", ""

    def units(self, rest: list[Unit]) -> list[Unit]:
        """
        Return what the cure asks for, with the value, or that of *rest*; [] of a sentence.

        A file that is there is the value of an option that is left out, if the command needs no more files.
        """
        (kind, what), new = self.action, shlex.split(meant_in(self.cure))
        known, takes, value = self.own.get(new[0]) if new else None, kind in ("FILE", "TEXT"), self.value
        if known is not None:
            takes = not known.is_flag and (len(new) == 1 or new[-1][-1] == "=")
        if not value and rest and not rest[0][0] and rest[0][1][0][:1] != "-":
            is_left = (kind or new) and not Path(rest[0][1][0]).exists()
            is_left = is_left or ((kind == "without" or len(new) > 1) and are_enough(self.command, self.files))
            value = rest.pop(0)[1][0] if takes or is_left else ""
        given = [value] * bool(value)
        if known is not None:
            return self._as_option(known, new, value, takes=takes)
        if kind == "such as":
            return [(self.own[what.partition(" ")[0]].name or "", what.split()), ("EXAMPLE", ["tried"])]
        if kind == "FILE":
            return self._as_file(what, value) if value else []
        if kind == "TEXT" and value and Path(value).exists():
            return [("FILE 2", given)]
        if kind == "TEXT":
            return [*[("TEXT", given)] * bool(given), ("FILE 2", ["-"])] if given or self.name == "--stdin" else []
        is_form, is_new = value in forms_of(self.own), Path(value).suffix in _PRINTED and not Path(value).exists()
        if kind == ">" and (is_form or is_new):
            return [("form", ["--format", value])] if is_form else [(kind, given)]
        if kind == "SOME":
            return [(kind, [what])]
        kept = self.cure.startswith(_ELSEWHERE)  # another command may be meant, which has it
        left = ("elsewhere" if kept else "without", [*[self.name] * (kind in ("without", ">")), *given])
        return [*[("COMMAND", [what])] * bool(what), *[left] * bool(kind)]

    def _as_option(self, known: click.Option, new: list[str], value: str, *, takes: bool) -> list[Unit]:
        """Return the words *new*, of an option that is *known*, with the *value* if it *takes* one."""
        if new[0] == "--out" and value in forms_of(self.own):
            return [("form", ["--format", value])]
        if len(new) == 1 and value not in getattr(known.type, "choices", [value]) and Path(value).exists():
            return [("", [value])]
        if takes or value in ("", new[-1]):
            value = value if takes else ""
            is_folder = "dir" in self.name and value[-1:].isalnum() and written_by(self.command, known.name or "")[0]
            value += "/" * bool(is_folder)
            words = [*new[:-1], f"{new[-1]}{value}"] if new[-1][-1] == "=" else [*new, *[value] * bool(value)]
            named = units_of(self.own, words)  # what is typed beside it stays as it is
            return [unit for unit in named if unit[0] == known.name or unit[0] not in self.given]
        if Path(value).suffix and "--out" in self.own and new[0] == "--format":  # as in `--json results.json`
            return [(self.own["--out"].name or "", ["--out", value])]
        return [(known.name or "", new), ("without", [self.name, value])]

    def _as_file(self, place: str, value: str) -> list[Unit]:
        """Return the *value* as the file at a *place*; one that is not there, as what it may be."""
        if value in self.files or Path(value).suffix in (".toml", ".ini", ".cfg", ".env"):  # settings are typed
            return [("without", [self.name, value])]
        if not Path(value).exists():
            is_more = bool(self.files) and are_enough(self.command, self.files)
            if "--out" in self.own and is_more and place != "1" and Path(value).suffix:
                return [(self.own["--out"].name or "", ["--out", value])]  # it is written
            if place != "1" and "out" in self.name and Path(value).suffix in _PRINTED:
                return [(">", [value])]
            column = meant_in(word_cure("options", "every", f"--{value}-column", self.own)).removeprefix("--column ")
            if column.endswith("="):
                return [("columns", ["--column", f"{column}{value}"])]
            if is_more:
                return [("without", [self.name, value])]
        return [(f"FILE {place}", [value])]


def _narrows(name: str) -> str:
    """Return the part of an option's *name* by which it narrows what is asked for; '' if there is none."""
    return next((part for part in name.strip("-").split("-") if word_cure("narrowing", "", part, ["narrows"])), "")


def _cure(context: click.Context, command: click.Command, name: str, files: Sequence[str], value: str) -> str:
    """Return what is meant by an unknown option: of several, the first that takes *value*, else the first."""
    first = ""
    for cure in _cures(context, command, name, files):
        if _takes(cure, name, value, options_of(command, context), files):
            return cure
        first = first or cure
    root = context.find_root().command
    if first or not isinstance(root, click.Group):
        return first
    every = ((each, root.get_command(context, each)) for each in root.list_commands(context))
    having = ", ".join(each for each, one in every if one and name in options_of(one, context))
    return having and f"{_ELSEWHERE}{having}"


def _takes(cure: str, name: str, value: str, own: Mapping[str, click.Option], files: Sequence[str]) -> bool:
    """True if what a *cure* of the option *name* asks for takes *value*, as far as its kind and *files* tell."""
    new, place = shlex.split(meant_in(cure)), _ACTION.match(cure)
    known = own.get(new[0]) if len(new) == 1 else None
    if place and value:
        is_written = "out" in name and "--out" in own and not Path(value).exists()
        if place[2] == "2" and "--report" in own and any(kind_of(each) == "*" for each in files):
            held = {*first_row(Path(value))}  # of another table than one of ours, rows may be meant
            is_written |= not held or {"score", "passed"} <= held
        return value not in forms_of(own) and not (place[1] == "FILE" and (value.isdigit() or is_written))
    if new[:1] == ["--column"]:
        rows = [row for file in files if kind_of(file) == "*" and (row := first_row(Path(file)))]
        return any(value in row for row in rows) or not (rows or kind_of(value))
    if "{equals|" in cure:
        return "=" in value
    if new[2:]:  # as in `--maxfail 3`, which has a number of its own
        return not value.isdigit() or value == new[-1]
    if "{tests|" in cure or (known is not None and known.name in ("patterns", "excluded")):
        return bool(_EXPRESSION.search(value)) == ("{tests|" in cure)
    if known is not None and known.name == "judge" and "--filter" in own:  # a mark may be meant
        return not value or bool(MODEL.fullmatch(value))
    return known is None or not isinstance(known.type, click.IntRange) or value.isdigit()


def _cures(context: click.Context, command: click.Command, name: str, files: Sequence[str]) -> Iterator[str]:
    """Yield the ends of the message that *command* has no option *name*; other options must take *files*."""
    name = re.sub(r"(?<=\w)-(col|field|key)$", "-column", name.replace("_", "-"))
    own, kebab = options_of(command, context), re.sub("(?<=[a-z])[A-Z]", lambda found: f"-{found[0].lower()}", name)
    other, seen = name[1:] if re.fullmatch("--\\w", name) else re.sub("^--to-", "--", name), set[str]()
    for each in (name, other, kebab, *([f"--{part}"] if (part := _narrows(kebab)) else ())):
        while cure := word_cure("options", command.name or "", each, own, seen):
            seen.add(cure)
            example = re.search(r"such as (--[\w. -]+)$|'(--[\w-]+(?: [\w.-]+)?)'\?$", cure)
            words = (example[1] or example[2]).split() if example else []
            known = own.get(words[0]) if len(words) == 1 else None
            tried = [*files, *words, *["1"] * (known is not None and not known.is_flag)]
            problem = _problem_of(command, tried, context)
            is_taken = known is not None and known.name not in getattr(problem, "change", {}).get("WITHOUT", ())
            if is_taken or not words or problem is None or _problem_of(command, files, context) is not None:
                yield cure


def _problem_of(command: click.Command, files: Sequence[str], context: click.Context) -> Exception | None:
    """Return why *command* does not take *files*, whatever options it needs; also where there are none."""
    if find_command(command, files, ())[0]:
        return click.UsageError("")
    problem = problem_in(command, files, context.find_root())
    if isinstance(problem, click.MissingParameter):
        return None if isinstance(problem.param, click.Option) else problem
    return problem if files else None


def problem_in(command: click.Command, words: Sequence[str], parent: click.Context) -> Exception | None:
    """Return why *command* does not take *words*, or would refuse them before it runs; None if it takes them."""
    try:
        with click.Command.make_context(command, command.name, [*words], parent) as made:
            made.meta[TRIAL] = True
            getattr(command, "check", bool)(made)
    except (click.ClickException, RubricError) as problem:
        return problem
    return None
