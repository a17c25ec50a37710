"""
Answer a command line that does not fit with the one that was meant; `guesses.toml` has the words that people try.

A line that is printed has all that was typed, or says what it leaves out, and its command takes it; else there is none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import click

from rubric import DefinitionError, RubricError
from rubric.embed import Wording, clean, rows_in, shorten, source_of
from rubric.engine.sources import holds_many
from rubric.errors import Problem
from rubric.formats.projects import is_rubric
from rubric.internals.guesses import word_cure

TYPED = "rubric.typed"
"""Where a context has the words that were typed for its command."""

_LONGEST = 600  # of a line that is printed: a pattern of a shell may stand for a thousand files
_HELD = {"file": "rubric", "files": "rubric *", "results": "results", "rubric": "rubric"}
_TREES, _LARGEST = (".yaml", ".yml", ".json"), 10**7  # the kinds of rubrics, and what is too large for one
_ACTION = re.compile(r"; (rubric|FILE|TEXT|without)(?: ([\w-]+))?: ")
"""Begins a cure that is more than another word: a command, the place of a file, a piped text, an option too many."""

Unit = tuple[str, Sequence[str]]  # words: "" an argument, a parameter, FILE 1, ARGUMENTS, COMMAND, TEXT, without


class WrongLineError(click.UsageError):
    """A wrong call, with the *change* that makes the line that was meant of the typed one: words by what they are."""

    def __init__(self, message: str, change: Mapping[str, Sequence[str]]) -> None:
        super().__init__(message)
        self.change = change


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
        said, command = "options come behind the command", command.get_command(context, found[0]) or command
        typed.remove(found[0])
    group = context if command is not context.command else context.parent or context
    rest = _units(_options_of(command, context), typed)
    before = [word for _, words in sorted(rest, key=lambda unit: bool(unit[0])) for word in words]
    before += ["another command"] * (group is context)
    if command.name == "grade" and isinstance(group.command, click.Group) and _are_many(rest):
        command, before = group.command.get_command(group, "grade-many") or command, []
        said = f"{said}; grade-many grades many candidates".removeprefix("; ").replace("?; ", "? ")
    about, units, is_whole = [said] * bool(said), list[Unit](), not isinstance(command, click.Group)
    rest = _units(own := _options_of(command, context), typed)
    while rest:
        unit = rest.pop(0)
        option, _, value = unit[1][0].partition("=")
        if unit[0] or not option.startswith("-") or option == "-":
            units.append(unit)
            continue
        cure = _option_cure(context, command, option)
        about.append(f"no such option {option}{_ACTION.sub('; ', cure, count=1)}")
        added = _guessed(cure, own, option, value, rest)
        units, is_whole = units + added, is_whole and bool(added)
    said = "; ".join(dict.fromkeys(about)).replace("?; ", "? ")
    return _with_line(said, group, command, _changed(units, change or {}), before) if is_whole else said


def _guessed(cure: str, own: Mapping[str, click.Option], option: str, value: str, rest: list[Unit]) -> list[Unit]:
    """Return what the *cure* of an unknown *option* asks for, with its *value*, or that of *rest*; [] of a sentence."""
    kind, what = action.groups() if (action := _ACTION.match(cure)) else ("", "")
    new = shlex.split(meant_in(cure))
    known, takes = own.get(new[0]) if new else None, kind in ("FILE", "TEXT")
    if known is not None:
        takes = not known.is_flag and (len(new) == 1 or new[-1][-1] == "=")
    if not value and rest and not rest[0][0] and rest[0][1][0][:1] != "-":
        value = rest.pop(0)[1][0] if takes or (kind and not Path(rest[0][1][0]).exists()) else ""
    given: Sequence[str] = [value] * bool(value)
    if known is not None:
        return [(known.name or "", [*new[:-1], f"{new[-1]}{value}"] if new[-1][-1] == "=" else [*new, *given])]
    if kind == "FILE" and "out" in option and "--out" in own and value and not Path(value).exists():
        return [(own["--out"].name or "", ["--out", value])]  # a file that is not there is written
    if kind == "FILE":
        return [(f"FILE {what}", given)] * bool(given)
    if kind == "TEXT":
        return [("TEXT", given), ("FILE 2", ["-"])] * bool(given)
    found: list[Unit] = [("COMMAND", [what])] * bool(what)
    return found + [("without", [*[option] * (kind == "without"), *given])] * bool(kind)


def _changed(units: Sequence[Unit], change: Mapping[str, Sequence[str]]) -> list[Unit]:
    return [unit for unit in (*units, *change.items()) if unit[1] and unit[1] == change.get(unit[0], unit[1])]


def _with_line(said: str, group: click.Context, command: click.Command, units: list[Unit], typed: list[str]) -> str:
    """Return what is *said* with the line of *units*, if a parser takes it and it is not the one that was *typed*."""
    files = [*dict(units).get("ARGUMENTS", [words[0] for name, words in units if not name])]
    for name, words in sorted(unit for unit in units if unit[0][:5] == "FILE "):
        if int(name[5:]) > len(files) + 1:
            return said
        files.insert(int(name[5:]) - 1, words[0])
    files = _in_order(command, files)
    kinds = [*map(_kind, files)]
    names = {words[0] for name, words in units if name == "COMMAND"}
    if isinstance(group.command, click.Group):
        command = group.command.get_command(group, "".join(names)) or command
    if command.name in {"grade-many", "label", "plan", "probe"} and all(kinds[:2]) and len(files) > 1:
        units = _columns(command, units, Path(files[command.name != "label"]))
    own = {*_options_of(command, group)}
    given = [words for name, words in units if name and not name[0].isupper()]
    words = [*files, *(word for each in given if own & {each[0].partition("=")[0], each[0][:2]} for word in each)]
    lost = [word for each in given if not own & {each[0].partition("=")[0], each[0][:2]} for word in each]
    piped = [f"echo {shlex.quote(words[0])} | " for name, words in units if name == "TEXT"]
    line = f"{''.join(piped)}{group.command_path} {command.name} {shlex.join(words)}".rstrip()
    cure = f"without {shlex.join(lost)}, write {line}" if lost else f"write {line}"
    is_new = words != typed or piped or names
    if not is_new or {"--", "--help", "-h"} & {*words} or len(line) > _LONGEST or clean(line) != line:
        return said
    try:
        click.Command.make_context(command, command.name, words, group).close()
    except click.UsageError as problem:
        if not (change := getattr(problem, "change", None) or _piped(problem, {} if "-" in words else dict(units))):
            return said
        said = f"{said}; {problem.message}".replace("?; ", "? ")
        return _with_line(said, group, command, _changed(units, change), typed)
    except (click.ClickException, RubricError):
        return said
    return f"{said} {cure[0].upper()}{cure[1:]}" if said.endswith("?") else f"{said}; {cure}"


def _piped(problem: click.UsageError, given: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the change that pipes the text which is *given* to an option in place of a file; {} at another problem."""
    param = problem.param if isinstance(problem, click.BadParameter) else None
    text = given.get(param.name or "", ())[-1:] if param is not None and isinstance(param.type, click.File) else ()
    return {param.name or "": (param.opts[0], "-"), "TEXT": text} if param is not None and text else {}


def _columns(command: click.Command, units: list[Unit], data: Path) -> list[Unit]:
    """Return *units* with options that name the columns of *data*, where they do not name all."""
    given = [words[-1].removeprefix("--column=") for name, words in units if name == "columns"]
    found = named = [each for each in given if "=" in each]
    with suppress(click.UsageError, OSError, ValueError, ImportError, TypeError):
        try:
            next(iter(cast("Iterable[Any]", source_of(data, columns_of(named)).items)), None)
        except DefinitionError as problem:
            cure: dict[str, list[str]] = {}
            in_options(problem, command, cure)
            found = cure.get("columns", [])[1::2] or named
    bare = [each for each in given if "=" not in each and not any(one.endswith(f"={each}") for one in found)]
    found = [*found, *(f"output={each}" for each in bare)]
    if found == given:
        return units
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


def _option_cure(context: click.Context, command: click.Command, name: str) -> str:
    """Return the end of the message that *command* has no option *name*."""
    if cure := word_cure("options", command.name or "", name.replace("_", "-"), _options_of(command, context)):
        return cure
    root = context.find_root().command
    every = root.list_commands(context) if isinstance(root, click.Group) else []
    ones = [(each, root.get_command(context, each)) for each in every if isinstance(root, click.Group)]
    having = [each for each, one in ones if one is not None and name in _options_of(one, context)]
    return f"; it belongs to rubric {shorten(', '.join(having), 60)}" if having else ""


def holds_results(path: Path) -> bool:
    """True if the first line of the file at *path* is a result, or the end of a shard without any."""
    _, first = next(rows_in("results", path, ".jsonl", broken=lambda _: None), ("", None))
    return isinstance(first, dict) and not {"findings", "end_of_shard"}.isdisjoint(first)


def columns_of(given: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
    """Return the column of each field, from `FIELD=COLUMN`; `COLUMN=` skips one; `variables` has several."""
    named: dict[str, str | Sequence[str] | None] = {}
    kept: list[str] = []
    for text in given:
        name, sign, column = text.partition("=")
        if not name or not sign:
            raise click.UsageError(f"--column {text}: expected FIELD=COLUMN: output=answer; question= passes over")
        if name == "variables" and column:
            kept.append(column)
            named[name] = kept
            continue
        if name in named:
            raise click.UsageError(f"--column {text}: {name} is given twice; give it once")
        named[name] = column or None
    return named


def _kind(file: str) -> str:
    """Return what *file* holds: a `rubric`, `results`, or `*` for another thing; '' if there is none."""
    with suppress(RubricError, OSError):
        if Path(file).is_file():
            is_small = Path(file).stat().st_size < _LARGEST
            return "rubric" if is_small and is_rubric(file) else "results" if holds_results(Path(file)) else "*"
    return "*" if Path(file).exists() else ""


def _places(command: click.Command) -> list[str]:
    """Return what the arguments of *command* hold, in their order: a `rubric`, `results`, or `*` for another thing."""
    names = (param.name or "" for param in command.params if isinstance(param, click.Argument))
    return " ".join(_HELD.get(name, "*") for name in names).split()


def _are_many(units: Sequence[Unit]) -> bool:
    """True if the arguments in *units* are a rubric and many candidates: a file or a folder of them, or several."""
    files = [words[0] for name, words in units if not name]
    is_sure = not any(file[:1] == "-" != file for file in files)  # else one may be the value of an unknown option
    rubrics = [file for file in files if Path(file).suffix in _TREES[:2] and _kind(file) == "rubric"]
    others = [Path(each) for each in files if each not in rubrics and _kind(each) not in ("", "results")]
    are_many = any(map(holds_many, others)) or (is_sure and len(others) > 1)
    return are_many and len(rubrics) == 1 and not {each.suffix for each in others} & {*_TREES[:2]}


def check_order(*files: object) -> None:
    """Refuse *files* in another order than that in which the command takes them."""
    command, given = click.get_current_context().command, [*map(str, files)]
    places = _places(command)
    first, where = (places[1], "last") if places[0] == "*" else (places[0], "first")
    if Path(given[places.index(first)]).suffix.lower() not in _TREES and _in_order(command, given) != given:
        raise click.UsageError(f"the {first} come{'s' * (first == 'rubric')} {where}")


def _in_order(command: click.Command, files: list[str]) -> list[str]:
    """Return *files* in the order in which *command* takes them; as they are, if one that it needs is not there."""
    places = _places(command)
    kinds = [*map(_kind, files)] if len(files) >= len(places) else []
    found = {place: kinds.index(place) for place in places if place in kinds and place != "*"}
    if len(found) < len(places) - 1 or not found:
        return files
    others = [file for n, file in enumerate(files) if n not in found.values()]
    return [*(files[found[place]] if place in found else others.pop(0) for place in places), *others]


# -- arguments as options ----------------------------------------------------------------------------------------

_PYTHON = re.compile(r"; write [\w.]+\(.*")  # a cure that the command line cannot take
_PARAMETERS = {"calls": "max_calls", "environ": "names", "format": "source"}
"""Parameters of commands that have another name than those of functions."""


def in_options(
    said: RubricError | Problem, command: click.Command | None = None, cure: dict[str, list[str]] | None = None
) -> str:
    """Return *said* with options of *command*, else the one that runs, as arguments; note the first in *cure*."""
    command = command or click.get_current_context().command
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}

    def word(argument: str, value: Any) -> str:
        option = options.get(name := _PARAMETERS.get(argument, argument))
        if option is None or value is ...:
            return ""
        if value is None:
            return f"{option.opts[0]} {option.metavar or ''}".rstrip()
        pairs = value.items() if isinstance(value, Mapping) else [(value, ...)]
        given = [(key, each) for key, of in pairs for each in (of if isinstance(of, list | tuple) else [of])]
        words = [w for key, of in given for w in (option.opts[0], str(key) if of is ... else f"{key}={of or ''}")]
        if cure is not None and (not cure or name == "judge"):  # the last one needs no key
            cure[name] = words
        return shlex.join(words)

    if isinstance(said, DefinitionError):
        name, _, part = said.field.partition(".")
        if name in options and was_given(name):
            text = _PYTHON.sub("", Wording(said.message).render(word))
            return f"{options[name].opts[0]} {part}".rstrip() + f": {text}"
    return said.text.render(word)


def was_given(name: str) -> bool:
    """True if the command line gives the option *name*."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
