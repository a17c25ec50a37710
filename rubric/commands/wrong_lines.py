"""
Answer a command line that does not fit with the one that was meant; `guesses.toml` has the words that people try.

A line that is printed has all that was typed, or says what it leaves out, and its command takes it; else there is none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import click
from attrs import frozen

from rubric import RubricError
from rubric.commands.file_arguments import (
    MISSING,
    MODEL,
    SUCH_AS,
    TEXTS,
    TRIAL,
    Change,
    are_enough,
    columns_of,
    fill_places,
    find_command,
    find_near,
    first_row,
    is_fit,
    kind_of,
    mend_surplus,
    put_in_order,
    take_files,
    ungraded_first,
)
from rubric.commands.messages import in_options
from rubric.embed import clean, source_of
from rubric.internals.guesses import cures_in, term_of, word_cure

TYPED = "rubric.typed"
"""Where a context has the words that were typed for its command."""

_FIELDS = ("output", "input", "reference", "context", "key")
_LONGEST = 600  # of a line that is printed: a pattern of a shell may stand for a thousand files
_ACTION = re.compile(r"; (rubric|FILE|TEXT|without)(?: ([\w-]+))?: ")
"""Begins a cure that is more than another word: a command, the place of a file, a piped text, an option too many."""

_UNITS = re.compile(
    r"[$€£_\s]|(?<!^0),(?=\d{3}(?!\d))|usd|dollars?|eur(os?)?|(/|per)?min(ute)?s?|/m|rpm|tpm|s(ec(ond)?s?)?$"
)
"""What people put before, behind or in a number; a comma before other than three digits may be a decimal one."""

_DELIMITERS = (";", "|", ":", "\t", "\\t", "tab")
_PRINTED = (".json", ".jsonl", ".log", ".md", ".out", ".txt", ".yaml", ".yml")  # as which what is printed may be kept

_ELSEWHERE = "; it belongs to rubric "
_SOME, _SOME_ROWS = (".jsonl", ".ndjson", ".csv"), "some.jsonl"  # rows, and the file of those that are chosen before
_PLACEHOLDERS = {"rubric.yaml": "rubric", "results.jsonl": "results", "rows.jsonl": "*", "answer.txt": "*"}
_SETTINGS = {"timeout": "60", "retries": "3", "seed": "1", "temperature": "0", "max_tokens": "1000"}  # of a judge

Unit = tuple[str, Sequence[str]]
"""Words, and what they are: "" an argument, a parameter, FILE 1, ARGUMENTS, COMMAND, TEXT, without."""


def meant(
    said: str,
    context: click.Context | None,
    command: click.Command | None = None,
    typed: Sequence[str] | None = None,
    change: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """
    Return what is *said*, what is said of options that there are not, and the line that was meant.

    Args:
        said: The message; '' if it is about options alone.
        context: That of the command with what was typed, or of its group.
        command: The command that was meant, if it is another one, and the words that were *typed* for it.
        change: As for `WrongLineError`.
    """
    if context is None or (said and command is None and isinstance(context.command, click.Group)):
        return said
    command = command or context.command
    typed = [*(context.meta.get(TYPED, ()) if typed is None else typed)]
    if isinstance(command, click.Group) and (found := [each for each in typed if command.get_command(context, each)]):
        if command is context.command:
            said = "options come behind the command"
        else:  # as in `cache stats`
            context = click.Context(command, context, command.name)
        command = command.get_command(context, found[0]) or command
        typed.remove(found[0])
    group = context if command is not context.command else context.parent or context
    rest = _units(_options_of(command, context), typed)
    before = [word for _, words in sorted(rest, key=lambda unit: bool(unit[0])) for word in words]
    before += ["another command"] * (group is context)
    files = [words[0] for name, words in rest if not name]
    values = {one[0] for last, (_, one) in pairwise(rest) if _is_unknown(last)}  # maybe of an unknown option
    moved = {*(change or {}).get("ARGUMENTS", files)}  # else what is written may be like a file that is there
    if near := find_near(command, [file for file in files if file not in values and file in moved]):
        said = _joined("" if said.endswith(MISSING) else said, *_remarks_on(near))
        typed = [new for word in typed for new in near.get(word, [word])]
        files = _moved(files, near)
        if change and "ARGUMENTS" in change:
            change = {**change, "ARGUMENTS": _moved(change["ARGUMENTS"], near)}
    if isinstance(group.command, click.Group):
        other, about_files, changed = find_command(command, files, values)
        if other:
            command, before = group.command.get_command(group, other) or command, []
            said, change = _joined(said, about_files), {**changed, **(change or {})}
            change.pop("WITHOUT", None)
    said, units = _read_options(said, context, command, typed)
    said = said if units is None else _with_line(said, group, command, _changed(units, change or {}), before)
    for placeholder, kind in _PLACEHOLDERS.items():
        own = [file for file in files if kind_of(file) == kind and re.fullmatch(r"[\w./-]+", file)]
        is_read = len(own) == 1 and placeholder not in typed and command.name != "init"
        suffixes = TEXTS if placeholder == "answer.txt" else _SOME[: 3 - ("jq " in said)]
        if is_read and (kind != "*" or Path(own[0]).suffix in suffixes):
            said = re.sub(rf"(?<![\w./-])(?<!> )(?<!--out ){re.escape(placeholder)}(?!\w)", own[0], said)
            said = said.replace(_SOME_ROWS, f"some{Path(own[0]).suffix}") if placeholder == "rows.jsonl" else said
    return said


def _remarks_on(near: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what is said of each file that is not there, and of what is *near* it."""
    for file, words in near.items():
        found = words if take_files(words) == words else [shlex.join(words)]
        more = f" and {len(found) - 3} more" * (len(found) > 3)  # noqa: PLR2004 - three are named
        yield f"{file}: {MISSING}; did you mean {', '.join(map(repr, found[:3]))}{more}?"


def _moved(files: Sequence[str], near: Mapping[str, Sequence[str]]) -> list[str]:
    """Return *files* with those that are *near* in the place of missing ones."""
    return [new for file in files for new in take_files(near.get(file, [file]))]


def _read_options(
    said: str, context: click.Context, command: click.Command, typed: Sequence[str]
) -> tuple[str, list[Unit] | None]:
    """Return what is *said*, also of unknown options, and the units *typed*; None where one is a sentence."""
    units, is_whole, by_cure = list[Unit](), not isinstance(command, click.Group), dict[str, list[str]]()
    rest = _units(own := _options_of(command, context), typed)
    values = {}
    for (_, words), (kind, (after, *_)) in pairwise([*rest, ("", [""])]):
        name, _, value = words[0].partition("=")
        values[name] = value or " ".join(words[1:]) or after * (not kind and after[:1] != "-")
    settings, model = dict[str, str](), values.get("-j") or values.get("--judge") or ""
    while rest:
        unit = rest.pop(0)
        option, _, value = unit[1][0].partition("=")
        if not _is_unknown(unit):
            is_pair = bool(units) and units[-1][0] == "columns" and not unit[0] and "=" in unit[1][0]
            units.append(("columns", ["--column", *unit[1]]) if is_pair else unit)
            continue
        given = value or (rest[0][1][0] if rest else "")
        is_number = option == "-r" and given.isdigit() and "--repeat" in own
        is_form = option in ("-f", "-F", "--type", "--fmt") and given in _forms(own)
        others = [words[0] for name, words in (*units, *rest[1:]) if not name and words[0][:1] != "-"]
        cure = _option_cure(context, command, "--delimiter" if given in _DELIMITERS else option, others)
        cure = "; did you mean '--format'?" if is_form else "; did you mean '--repeat'?" if is_number else cure
        if option == "-m" and given and "--filter" in own and not MODEL.fullmatch(given):  # a mark, and no model
            cure = "; did you mean '--filter'?"
        if cure == "; did you mean '--filter'?" and re.search(r"\b(and|not|or)\b", given):
            cure = _option_cure(context, command, "--exclude", others)
        besides = (
            (other, f"; {cure}") for other in values for cure, words in cures_in("options", other) if option in words
        )
        beside, cure = next(besides, ("", cure))
        for name, filled in (("value", given), ("beside", values.get(beside, ""))):
            cure = re.sub(rf"\{{{name}\|(.*?)\}}", lambda found, by=filled: _like(found[1], by), cure)  # type: ignore[misc]
        if "{settings}" in cure:
            setting = term_of(option.strip("-").replace("-", "_")) or "temperature"
            settings[setting] = _like(_SETTINGS[setting], given)
        by_cure.setdefault(_ACTION.sub("; ", cure, count=1), []).append(option)
        typed_already = {name for name, _ in (*units, *rest)}
        added = _Unknown(option, value, cure, command, own, others, typed_already).units(rest)
        units, is_whole = units + added, is_whole and bool(added)
    yaml, code = (", ".join(map(sign.join, settings.items())) for sign in (": ", "="))
    for cure, names in by_cure.items():
        told = re.sub(r"(Judge\('.*?', )\{settings\}", rf"\1{code}", cure).replace("{settings}", yaml)
        told = told.replace("openai/gpt-5", model) if model and told != cure else told
        said = _joined(said, f"no such option {', '.join(dict.fromkeys(names))}{told}")
    return said, units if is_whole else None


def _like(default: str, value: str) -> str:
    """Return the *value* that was typed, if it is of the kind of *default*, which stands for it in a cure."""
    plain = _UNITS.sub("", value)
    if default.replace(".", "", 1).isdigit():
        return plain if plain.replace("." * (not default.isdigit()), "", 1).isdigit() else default
    return value if re.fullmatch(r"[\w./:%,-]+", value) else default


def _forms(own: Mapping[str, click.Option]) -> Collection[str]:
    """Return the forms in which a command with its *own* options prints."""
    return getattr(own["--format"].type, "choices", ()) if "--format" in own else ()


def _is_unknown(unit: Unit) -> bool:
    """True if *unit* is an option that the command does not have."""
    return not unit[0] and unit[1][0][:1] == "-" != unit[1][0]


def _joined(*said: str) -> str:
    """Return sentences as one, each once."""
    text = "; ".join(dict.fromkeys(filter(None, said)))
    return re.sub(r"(?<=['e])\?; (write |without )?", lambda found: f"? {(found[1] or '').capitalize()}", text)


@frozen
class _Unknown:
    """
    An option that there is not.

    Args:
        name: As it was typed, and the *value* behind a sign of equality.
        cure: What is said of it.
        command: The command that was meant, and its *own* options by their names.
        files: The other arguments.
        given: The parameters that were typed.
    """

    name: str
    value: str
    cure: str
    command: click.Command
    own: Mapping[str, click.Option]
    files: Sequence[str]
    given: Collection[str]

    @property
    def action(self) -> tuple[str, str]:
        """What the cure begins with, or ends with: what to do, and with what; ">" writes what is printed."""
        if action := _ACTION.match(self.cure):
            return action[1], action[2] or ""
        if self.cure and not self.cure.startswith(_ELSEWHERE):
            example = re.search(r"; (?!did you).*such as ((--[\w-]+)( [\w.-]+)?)", self.cure)
            known = self.own.get(example[2]) if example else None
            if example and known is not None and known.name not in self.given:
                is_one = self.cure.count("such as") == 1 and self.cure.endswith(example[1])
                return "such as" * is_one, example[1] * is_one
            return ("without" if known is not None else ""), ""
        if not self.cure and _narrows(self.name):
            return "", ""
        prints = "--out" not in self.own and self.command.name not in ("init", "view")
        return ">" if prints and word_cure("options", "", self.name, ["--out"]) else "without", ""

    def units(self, rest: list[Unit]) -> list[Unit]:
        """
        Return what the cure asks for, with the value, or that of *rest*; [] of a sentence.

        A file that is there is the value of an option that is left out, if the command needs no more files.
        """
        kind, what = ("SOME", _SOME_ROWS) if _SOME_ROWS in self.cure else self.action
        new = shlex.split(meant_in(self.cure))
        known, takes = self.own.get(new[0]) if new else None, kind in ("FILE", "TEXT")
        if known is not None:
            takes = not known.is_flag and (len(new) == 1 or new[-1][-1] == "=")
        value = self.value
        if not value and rest and not rest[0][0] and rest[0][1][0][:1] != "-":
            is_left = (kind or new) and not Path(rest[0][1][0]).exists()
            is_left = is_left or ((kind == "without" or len(new) > 1) and are_enough(self.command, self.files))
            value = rest.pop(0)[1][0] if takes or is_left else ""
        given: Sequence[str] = [value] * bool(value)
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
        if kind == ">" and value in _forms(self.own):
            return [("form", ["--format", value])]
        if kind == ">" and Path(value).suffix in _PRINTED and not Path(value).exists():
            return [(">", given)]
        found: list[Unit] = [("SOME" if kind == "SOME" else "COMMAND", [what])] * bool(what)
        given = [*[self.name] * (kind in ("without", ">")), *given]
        return found + [("without", given)] * (bool(kind) and kind != "SOME")

    def _as_option(self, known: click.Option, new: list[str], value: str, *, takes: bool) -> list[Unit]:
        """Return the words *new*, of an option that is *known*, with the *value* if it *takes* one."""
        if new[0] == "--out" and value in _forms(self.own):
            return [("form", ["--format", value])]
        if len(new) == 1 and value not in getattr(known.type, "choices", [value]) and Path(value).exists():
            return [("", [value])]
        if takes or not value:
            words = [*new[:-1], f"{new[-1]}{value}"] if new[-1][-1] == "=" else [*new, *[value] * bool(value)]
            return [(known.name or "", words)]
        if Path(value).suffix and "--out" in self.own and new[0] == "--format":  # as in `--json results.json`
            return [(self.own["--out"].name or "", ["--out", value])]
        return [(known.name or "", new), ("without", [self.name, value])]

    def _as_file(self, place: str, value: str) -> list[Unit]:
        """Return the *value* as the file at a *place*; one that is not there, as what it may be."""
        if not Path(value).exists():
            is_more = bool(self.files) and are_enough(self.command, self.files)
            is_written = "out" in self.name or (is_more and place != "1" and Path(value).suffix)
            if is_written and "--out" in self.own:
                return [(self.own["--out"].name or "", ["--out", value])]  # it is written
            column = meant_in(word_cure("options", "every", f"--{value}-column", self.own)).removeprefix("--column ")
            if column.endswith("="):
                return [("columns", ["--column", f"{column}{value}"])]
            if is_more:
                return [("without", [self.name, value])]
        return [(f"FILE {place}", [value])]


def _changed(units: Sequence[Unit], change: Change) -> list[Unit]:
    """Return *units* as *change* has them; WITHOUT names the options that are left out."""
    left = {*change.get("WITHOUT", ())}
    moved = [] if "ARGUMENTS" not in change else [name for name, _ in units if name[:5] == "FILE "]
    units = [("without" if name in left else name, words) for name, words in units if name not in moved]
    new = [(name.lstrip("+"), words) for name, words in change.items() if name != "WITHOUT"]  # "+" is one more
    kept = [unit for unit in units if unit[0] == "without" or unit[1] == change.get(unit[0], unit[1])]
    return [unit for unit in (*kept, *(unit for unit in new if unit not in kept)) if unit[1]]


def _with_line(said: str, group: click.Context, command: click.Command, units: list[Unit], typed: list[str]) -> str:
    """Return what is *said* with the line of *units*, if a parser takes it and it is not the one that was *typed*."""
    files = _files_in(units)
    names = {words[0] for name, words in units if name == "COMMAND"}
    if isinstance(group.command, click.Group):
        command = group.command.get_command(group, "".join(names)) or command
    if files is None or not is_fit(command, files := put_in_order(command, files)):
        return _joined(said, ungraded_first(command, files or []))
    units = _columns(command, files, units)
    is_some, typed_files = "SOME" in dict(units), files
    some = [f"some{Path(file).suffix}" if kind_of(file) and Path(file).suffix in _SOME else file for file in files]
    files = some if is_some else files
    said, units = _printed(said, command, files, units)
    if "report" in dict(units) and isinstance(group.command, click.Group):
        command = group.command.get_command(group, "grade-many") or command
    own = {*_options_of(command, group)}
    given = [
        (words, name != "without" and bool(own & {words[0].partition("=")[0], words[0][:2]}))
        for name, words in units
        if name and not name[0].isupper() and name != ">"
    ]
    words = [*files, *(word for each, is_own in given if is_own for word in each)]
    lost = [word for each, is_own in given if not is_own for word in each]
    piped = [f"echo {shlex.quote(words[0])} | " for name, words in units if name == "TEXT"]
    written = "".join(f" > {shlex.quote(words[0])}" for name, words in units if name == ">")
    line = f"{''.join(piped)}{group.command_path} {command.name} {shlex.join(words)}".rstrip() + written
    is_new = words != typed or piped or names or written
    is_odd = {"--", "--help", "-h"} & {*words} or len(line) > _LONGEST or clean(line) != line
    if is_odd or (is_some and files == typed_files):
        return said
    left = f"without {shlex.join(lost)}, " * bool(lost)
    if is_some:
        return _joined(said, f"then {left}write a line such as {line}")
    is_example = "EXAMPLE" in dict(units)
    if is_example and SUCH_AS.items() <= dict(units).items():
        return _with_example(said, left, line)
    try:
        with click.Command.make_context(command, command.name, [*words], group) as made:
            made.meta[TRIAL] = True
            getattr(command, "check", bool)(made)
    except click.MissingParameter as problem:
        named = _fill_places(command, problem.param, files)
        line = f"{group.command_path} {command.name} {shlex.join((*named, *words[len(files) :]))}"
        return said if len(named) == len(files) else _with_example(said, left, line)
    except click.UsageError as problem:
        plain = _joined(problem.format_message().rstrip("."))
        message, change = _mended(problem, plain, command, files, units)
        said = _joined(said.replace(plain, message), "" if plain in said else message)
        changed = _changed(units, change)
        return said if changed == units else _with_line(said, group, command, changed, typed)
    except (click.ClickException, RubricError):
        return said
    return _with_example(said, left, line) if is_example else _joined(said, f"{left}write {line}") if is_new else said


def _files_in(units: Sequence[Unit]) -> list[str] | None:
    """Return the arguments in *units*, those of options at their places; None if one before is missing."""
    files = [*dict(units).get("ARGUMENTS", [words[0] for name, words in units if not name])]
    for name, words in sorted(unit for unit in units if unit[0][:5] == "FILE "):
        if int(name[5:]) > len(files) + 1 and Path(words[0]).suffix not in (".yaml", ".yml"):  # a suite comes first
            return None
        files.insert(int(name[5:]) - 1, words[0])
    return files


def _printed(said: str, command: click.Command, files: list[str], units: list[Unit]) -> tuple[str, list[Unit]]:
    """Return *said* and *units* with a file for what is printed: the result of one candidate, or its report."""
    outs = [words[-1].removeprefix("--out=") for name, words in units if name == "outs" and words[-1] != "--out"]
    told = "" if "is printed" in said else "it is printed"
    if command.name != "grade" or [*map(kind_of, files)] != ["rubric", "*"] or len(outs) != 1:
        return _joined(said, told * any(name == ">" for name, _ in units)), units
    rest = [unit for unit in units if unit[0] not in ("outs", "form")]
    forms = ("table", "json")
    if form := outs[0] if outs[0] in forms else meant_in(word_cure("choices", "", outs[0], forms)):
        told = "" if form == outs[0] else "it is printed for people, or as JSON"
        return _joined(said, told), [*rest, ("form", ["--format", form])]
    if Path(outs[0]).suffix not in ("", ".json", ".jsonl", ".txt"):
        return _joined(said, "a report is of many, or of a file of one"), [*rest, ("report", ["--report", *outs])]
    return _joined(said, told), [*rest, ("form", ["--format", "json"]), (">", outs)]


def _with_example(said: str, left: str, line: str) -> str:
    """Return what is *said* with an example of a *line*, with its options, which says what is *left* out."""
    said = re.sub(r", such as (--[\w-]+( [\w.-]+)?)(?=;|$)", lambda found: found[0] * (found[1] not in line), said)
    if left:
        return _joined(said, f"{left}write a line such as {line}")
    return f"{said.removesuffix('?')}, such as {line}{'?' * said.endswith('?')}"


def _fill_places(command: click.Command, missing: click.Parameter | None, files: list[str]) -> list[str]:
    """Return *files* with names for those that are missing, and for the file of an option that is *missing*."""
    named = fill_places(command, files)
    if isinstance(missing, click.Option) and missing.metavar == "FILE":
        named += [missing.opts[0], "all.jsonl"]
    return named


def _mended(
    problem: click.UsageError, said: str, command: click.Command, files: list[str], units: list[Unit]
) -> tuple[str, Change]:
    """Return what is *said* of a *problem* of *command* with *files* and *units*, and the change that mends it."""
    if change := getattr(problem, "change", None):
        return said, change
    if said.startswith("Got unexpected extra"):
        return mend_surplus(command, files)
    if isinstance(problem, click.BadOptionUsage) and said.endswith("requires an argument"):
        option = _options_of(command, click.Context(command))[problem.option_name]
        named = {"MODEL": "openai/gpt-5", "N": "4"}.get(option.metavar or "", option.metavar or "VALUE")
        values = [*getattr(option.type, "choices", ()), named]
        return f"{said}, such as {problem.option_name} {values[0]}", {}
    param = problem.param if isinstance(problem, click.BadParameter) else None
    if isinstance(param, click.Argument) and len(files) == 1:
        cure = word_cure("choices", command.name or "", files[0], [*getattr(param.type, "choices", ())])
        if command.name == "schema" and Path(files[0]).suffix == ".json" and not Path(files[0]).exists():
            of = "suite" if "suite" in files[0] else "rubric"
            return f"{said}; it is printed", {"ARGUMENTS": [of], ">": [files[0]]}
        held = kind_of(files[0]) if Path(files[0]).suffix in (".yaml", ".yml", ".json") else ""
        meant_kind = {"rubric": "rubric", "*": "suite"}.get(held, meant_in(cure))
        return f"{said}{cure}", {"ARGUMENTS": [meant_kind]} if meant_kind else {}
    if param is None or not param.opts or not (words := dict(units).get(param.name or "")):
        return said, {}
    value = words[-1].removeprefix(f"{param.opts[0]}=")
    if isinstance(param.type, click.File) and Path(value).suffix and " " not in value:
        return said, {}  # a file that is not there
    if isinstance(param.type, click.File):  # a text; only one can be piped
        if "-" in files or "TEXT" in dict(units):
            written = f"echo {shlex.quote(value)} > {param.opts[0][2:]}.txt"
            return f"{said}; one text is piped, and more are files, such as {written}", {}
        return said, {param.name or "": (param.opts[0], "-"), "TEXT": (value,)}
    given = dict(units)  # an option that is typed already keeps its value
    said, change = _mended_value(said, param, value, command, units)
    return said, {name: words for name, words in change.items() if name == param.name or name not in given or not words}


def _mended_value(
    said: str, param: click.Parameter, value: str, command: click.Command, units: list[Unit]
) -> tuple[str, Change]:
    """Return what is *said* of the *value* of an option of *command* with *units*, and the change that mends it."""
    files = _files_in(units) or []
    name, first = param.name or "", param.opts[0]
    if isinstance(param.type, click.IntRange | click.FloatRange) and (bare := _UNITS.sub("", value.lower())) != value:
        return said, {name: (first, bare)}
    if share := re.search(r" % write ([\d.]+)$", said):
        return said, {name: (first, share[1])}
    choices, own = [*getattr(param.type, "choices", ())], _options_of(command, click.Context(command))
    if choices and param.multiple and {*value.split(",")} <= {*choices}:
        return said, {name: [word for each in value.split(",") for word in (first, each)]}
    if choices and Path(value).exists():
        return said, {name: (), "ARGUMENTS": (*files, value)}
    form, _, file = value.partition("=")
    if file and form in choices and "--out" in own:
        return said, {name: (), f"+{own['--out'].name}": ("--out", file)}
    is_file = "outs" in dict(units) or {*map(kind_of, files)} == {"rubric", "*"}  # that of a suite may be printed
    known = {*choices, *own} - {"--reporter" * is_file}
    cure = word_cure("choices", command.name or "", value, known) if choices else ""
    new = shlex.split(meant_in(cure))
    if not new or new[0] in choices:
        change: dict[str, Sequence[str]] = {name: (first, *new)} if new else {}
        return f"{said}{cure}", change or ({name: ()} if cure.startswith("; without it, ") else {})
    return f"{said}{cure}", {name: (), own[new[0]].name or "": new}


def once(context: click.Context, option: click.Option, typed: Sequence[str]) -> Change:
    """Return the change of words *typed* that gives an *option* for a form once, and other forms as files; or {}."""
    own = _options_of(context.command, context)
    given = [words[-1].removeprefix(f"{option.opts[0]}=") for name, words in _units(own, typed) if name == option.name]
    named, bare = [form for form in given if "=" in form], [form for form in given if "=" not in form]
    kept = ["github"] if "github" in bare else bare[-1:]  # which is printed for its reader
    cures = [
        word_cure("choices", context.command.name or "", form, {*own} - {"--reporter"})
        for form in bare
        if form not in kept
    ]
    outs = [word for form in named for word in ("--out", form.partition("=")[2])]
    outs += [word for cure in cures for word in shlex.split(meant_in(cure))]
    is_whole = option.name == "reporter" and outs.count("--out") == len(given) - len(kept)
    return {"reporter": [word for form in kept for word in ("--reporter", form)], "+outs": outs} if is_whole else {}


def _columns(command: click.Command, files: Sequence[str], units: list[Unit]) -> list[Unit]:
    """Return *units* with options that name the columns of candidates, or labels, in *files*, if they do not so yet."""
    if command.name in {"agree", "estimate", "thresholds"}:
        bare = [unit for unit in units if unit[0] == "columns" and "=" not in unit[1][-1]]
        units = [(unit[0], ["--column", f"value={unit[1][-1]}"]) if unit in bare else unit for unit in units]
        given = _columns_in(units)
        is_read = files[1:] and kind_of(files[-1]) == "*"
        labels = import_module("rubric.trust").Labels if is_read else None  # its libraries are an extra
        found = _named_by(command, given, lambda columns: labels.read(files[-1], columns=columns)) if labels else given
        return units if found == given or {*given} - {*found} else _with_columns(units, found)
    if command.name in {"grade-many", "label", "plan", "probe"} and "rubric" in map(kind_of, files[:2]) and files[1:]:
        return _columns_of(command, Path(files[command.name != "label"]), units)
    return units


def _columns_of(command: click.Command, data: Path, units: list[Unit]) -> list[Unit]:
    """Return *units* with options that name the columns of *data*, where they do not name all."""
    given = _columns_in(units)
    parts = [part for each in given for part in (each.split(",") if each.count("=") == each.count(",") + 1 else [each])]
    parts = [re.sub(rf"^({'|'.join(_FIELDS)}):|:({'|'.join(_FIELDS)})$", r"\1=\2", part) for part in parts]
    outs = [words[-1] for name, words in units if name in ("out", "outs") and not Path(words[-1]).suffix]
    if outs and outs[-1] in first_row(data):
        parts, units = [*parts, f"output={outs[-1]}"], [unit for unit in units if unit[0] not in ("out", "outs")]

    def read(columns: Mapping[str, Any]) -> None:
        next(iter(cast("Iterable[Any]", source_of(data, columns).items)), None)

    found = _named_by(command, [each for each in parts if "=" in each], read)
    bare = [each for each in parts if "=" not in each and not any(one.endswith(f"={each}") for one in found)]
    found = [*found, *(f"output={each}" for each in bare)]
    return units if found == given else _with_columns(units, found)


def _named_by(command: click.Command, named: list[str], read: Callable[[dict[str, Any]], object]) -> list[str]:
    """Return the columns *named*, or those that the options of *command* must name so that a file can be *read*."""
    with suppress(click.UsageError, OSError, ValueError, ImportError, TypeError):
        try:
            read(columns_of(named))
        except RubricError as problem:
            cure: dict[str, list[str]] = {}
            in_options(problem, command, cure)
            return cure.get("columns", [])[1::2] or named
    return named


def _columns_in(units: Sequence[Unit]) -> list[str]:
    typed = [word for name, words in units if name == "columns" for word in words]
    return [word.removeprefix("--column=") for word in typed if word != "--column"]


def _with_columns(units: Sequence[Unit], found: Sequence[str]) -> list[Unit]:
    return [*(unit for unit in units if unit[0] != "columns"), *(("columns", ["--column", each]) for each in found)]


def meant_in(cure: str) -> str:
    """Return the word, or the option with its value, that *cure* asks for; '' if it is a sentence."""
    return cure.removeprefix("; did you mean ").strip("'?") if cure.startswith("; did you mean ") else ""


def _options_of(command: click.Command, context: click.Context) -> Mapping[str, click.Option]:
    given = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return {name: each for each in given for name in (*each.opts, *each.secondary_opts)}


def _units(own: Mapping[str, click.Option], typed: Sequence[str]) -> list[Unit]:
    """Return the words *typed*, each option that a command has as its *own* with its value."""
    rest, units = [*typed], list[Unit]()
    while rest:
        word = rest.pop(0)
        option = own.get(word.partition("=")[0]) or (own.get(word[:2]) if word[1:2] != "-" else None)
        count = option.nargs if option is not None and not option.is_flag and word in own else 0
        units.append((option.name or "" if option is not None else "", [word, *rest[:count]]))
        rest = rest[count:]
    return units


def _narrows(name: str) -> str:
    """Return the part of an option's *name* by which it narrows what is asked for; '' if there is none."""
    return next((part for part in name.strip("-").split("-") if word_cure("narrowing", "", part, ["narrows"])), "")


def _option_cure(context: click.Context, command: click.Command, name: str, files: Sequence[str]) -> str:
    """Return the end of the message that *command* has no option *name*; others that have it must take *files*."""
    name = re.sub("-(col|field)$", "-column", name.replace("_", "-"))
    own, kebab = _options_of(command, context), re.sub("(?<=[a-z])[A-Z]", lambda found: f"-{found[0].lower()}", name)
    other = name[1:] if re.fullmatch("--\\w", name) else re.sub("^--to-", "--", name)
    for each in (name, other, kebab, *([f"--{part}"] if (part := _narrows(kebab)) else ())):
        while cure := word_cure("options", command.name or "", each, own):
            example = re.search(r"such as (--[\w. -]+)$|'(--[\w-]+(?: [\w.-]+)?)'\?$", cure)
            words = (example[1] or example[2]).split() if example else []
            known = own.get(words[0]) if len(words) == 1 else None
            tried = [*files, *words, *["1"] * (known is not None and not known.is_flag)]
            problem = _problem_of(command, tried, context)
            if known is not None and known.name not in getattr(problem, "change", {}).get("WITHOUT", ()):
                return cure
            if not words or problem is None or _problem_of(command, files, context) is not None:
                return cure
            own = {option: known for option, known in own.items() if option != words[0]}
    root = context.find_root().command
    every = root.list_commands(context) if isinstance(root, click.Group) else []
    ones = [(each, root.get_command(context, each)) for each in every if isinstance(root, click.Group)]
    having = [each for each, one in ones if one and name in _options_of(one, context)]
    return f"{_ELSEWHERE}{', '.join(having)}" if having else ""


def _problem_of(command: click.Command, files: Sequence[str], context: click.Context) -> Exception | None:
    """Return why *command* does not take *files*, whatever options it needs; also where there are none."""
    if find_command(command, files, ())[0]:
        return click.UsageError("")
    try:
        with click.Command.make_context(command, command.name, [*files], context.find_root()) as made:
            made.meta[TRIAL] = True
            getattr(command, "check", bool)(made)
    except click.MissingParameter as problem:
        return None if isinstance(problem.param, click.Option) else problem
    except (click.ClickException, RubricError) as problem:
        return problem if files else None
    return None
