"""
Print the line that was meant by a command line that does not fit.

The law: the printed line is the typed one in which only what was wrong is replaced. Every other word stands as it was
typed, quoted for the shell, in its place; files may be turned round, and what is left out is named. Our own parser
takes the line before it is printed; where it does not, a sentence says what is allowed.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from rubric.commands.file_arguments import (
    MISSING,
    MODEL,
    SUCH_AS,
    TEXTS,
    Change,
    fill_places,
    find_command,
    find_near,
    is_fit,
    kind_of,
    mend_surplus,
    put_in_order,
    rubric_of,
    take_files,
    ungraded_first,
)
from rubric.commands.named_columns import with_columns
from rubric.commands.written_files import folder_first, in_folder
from rubric.commands.wrong_options import (
    SOME_ROWS,
    TYPED,
    UNITS,
    Unit,
    changed_units,
    is_unknown,
    joined,
    meant_in,
    options_of,
    problem_in,
    read_options,
    units_of,
    values_of,
    with_run,
)
from rubric.embed import clean
from rubric.internals.guesses import word_cure

_LONGEST = 600  # of a line that is printed: a pattern of a shell may stand for a thousand files
_SOME = (".jsonl", ".ndjson", ".csv")
_PAGES = (".csv", ".html", ".md", ".xml")
_PIPE = re.compile(r"/(dev/fd|proc/\w+/fd)/\d+")  # of `<(...)`, which ends with the line


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
    typed = first = [word for word in typed if word != "--"]  # as git has it before files
    if isinstance(command, click.Group) and (found := [each for each in typed if command.get_command(context, each)]):
        if command is context.command:
            said = "options come behind the command"
        else:  # as in `cache stats`
            context = click.Context(command, context, command.name)
        command = command.get_command(context, found[0]) or command
        typed.remove(found[0])
    group = context if command is not context.command else context.parent or context
    rest = units_of(options_of(command, context), typed)
    before = [word for _, words in rest for word in words] + ["another command"] * (group is context)
    files = [words[0] for name, words in rest if not name]
    values = {one[0] for last, (_, one) in pairwise(rest) if is_unknown(last)}  # maybe of an unknown option
    moved = {*(change or {}).get("ARGUMENTS", files)}  # else what is written may be like a file that is there
    if near := find_near(command, [file for file in files if file not in values and file in moved]):
        said = joined("" if said.endswith(MISSING) else said, *_remarks_on(near))
        typed = [new for word in typed for new in near.get(word, [word])]
        files = _moved(files, near)
        if change and "ARGUMENTS" in change:
            change = {**change, "ARGUMENTS": _moved(change["ARGUMENTS"], near)}
    if isinstance(group.command, click.Group):
        other, about_files, changed = find_command(command, files, values)
        if other:
            command, before = group.command.get_command(group, other) or command, []
            said, change = joined(said, about_files), {**changed, **(change or {})}
            change.pop("WITHOUT", None)
    said, units = read_options(said, context, command, typed)
    if not isinstance(command, click.Group):
        said = _with_line(said, group, command, changed_units(units, change or {}), before)
    said = with_run(said, units)
    return with_own(said, files if command.name != "init" else [], [*first, *typed])


def with_own(said: str, files: Iterable[str], typed: Collection[str]) -> str:
    """Return what is *said* with *files* in the place of names that stand for them, but for names that were *typed*."""
    held = {file: kind_of(file) for file in files if re.fullmatch(r"[\w./-]+", file)}
    rubrics, results, rest = ([file for file, kind in held.items() if kind == of] for of in ("rubric", "results", "*"))
    graded = rubric_of(results[0]) if len(results) == 1 else ""
    if (is_code := "_many('rows.jsonl'" in said or "_batches('rows.jsonl'" in said) and len(rest) > 1:
        said = said.replace("'rows.jsonl'", f"[*map(Path, {rest})]").replace('-c "', '-c "from pathlib import Path; ')
    own = {
        "rubric.yaml": [graded] if graded else rubrics,
        "lenient.yaml": [file for file in rubrics if graded and file != graded],
        "results.jsonl": results,
        "suite.yaml": [file for file in rest if Path(file).suffix in (".yaml", ".yml")],
        "rows.jsonl": [file for file in rest if is_code or Path(file).suffix in _SOME[: 3 - ("jq " in said)]],
        "answer.txt": [file for file in rest if Path(file).suffix in TEXTS],
    }
    for word in typed:  # where results are written, or the form of it
        if Path(word).suffix in _PAGES[Path(word).exists() :] or f".{word}" in _PAGES:
            said = said.replace("--out results.csv", f"--out {word if '.' in word else f'results.{word}'}")
    said = re.sub(r",? such as [^;]*\{line\|[^;]*", "", said)
    models = [word for word in dict.fromkeys(typed) if MODEL.fullmatch(word) and word != "gpt-5"]  # after its vendor
    written = [file for file in (*rubrics, *own["suite.yaml"]) if Path(file).is_file()]  # whose own models are kept
    if len(models) == 1 and not any(b"openai/gpt-5" in Path(file).read_bytes() for file in written):
        said = re.sub(r"(?<!--target )openai/gpt-5(?![.\w-])", models[0], said)
    for name, given in own.items():
        if len(given) == 1 and name not in typed:
            said = re.sub(rf"(?<![\w./-])(?<!> )(?<!--out ){re.escape(name)}(?!\w)", given[0], said)
            said = said.replace(SOME_ROWS, f"some{Path(given[0]).suffix}") if name == "rows.jsonl" else said
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


def _is_piped() -> bool:
    """True if another command writes to standard input."""
    with suppress(OSError, ValueError, AttributeError):  # a test's, or one that is closed
        return Path(f"/dev/fd/{sys.stdin.fileno()}").is_fifo()
    return False


def _with_line(said: str, group: click.Context, command: click.Command, units: list[Unit], typed: list[str]) -> str:
    """Return what is *said* with the line of *units*, if a parser takes it and it is not the one that was *typed*."""
    files = _files_in(units)
    said, units = _printed(said, command, files or [], units)
    units = _into_file(command, units)
    held = dict(units)
    if isinstance(group.command, click.Group):
        command = group.command.get_command(group, "".join(held.get("COMMAND", ""))) or command
    if files is None or not is_fit(command, files := put_in_order(command, files)):
        return joined(said, ungraded_first(command, files or []))
    units = with_columns(command, files, units, typed)
    words, lost = _words_of(units, files, options_of(command, group))
    left, line = f"without {shlex.join(lost)}, " * bool(lost), _line_of(group, command, words, units)
    if {"--", "--help", "-h"} & {*words} or len(line) > _LONGEST or clean(line) != line:
        return said
    is_sentence = "SENTENCE" in held  # other problems are told, and no line is printed
    if SUCH_AS.items() <= held.items() and not is_sentence:
        return _with_example(said, left, line)
    problem = problem_in(command, words, group)
    if is_sentence and (isinstance(problem, click.MissingParameter) or not isinstance(problem, click.UsageError)):
        return said
    if isinstance(problem, click.MissingParameter):
        return _with_missing(said, group, command, units, typed=typed, missing=problem.param)
    if isinstance(problem, click.UsageError):
        plain = joined(problem.format_message().rstrip("."))
        message, change = _mended(problem, plain, command, files, units)
        said = joined(said.replace(plain, message), "" if plain in said else message)
        changed = changed_units(units, change)
        return said if changed == units else _with_line(said, group, command, changed, typed)
    if pipes := [word for word in words if _PIPE.fullmatch(word)]:
        said = joined(said, f"{pipes[0]} is a pipe, which ends with this line; write what it gives to a file first")
    other = {file: f"some{Path(file).suffix}" for file in files if "SOME" in held and Path(file).suffix in _SOME}
    if other := {**other, **dict.fromkeys(pipes, "saved.json")}:
        line = _line_of(group, command, [other.get(word, word) for word in words], units)
        return said if problem else joined(said, f"then {left}write a line such as {line}")
    is_new = words != typed or not held.keys().isdisjoint({"FIRST", "TEXT", ">", "COMMAND"})
    return said if problem or "SOME" in held else _with_checked_line(said, left, line, held, is_new=is_new)


def _with_missing(
    said: str, group: click.Context, command: click.Command, units: list[Unit], *, typed: list[str], missing: Any
) -> str:
    """Return what is *said* with an example that has what is *missing*, or the pipe that is there for it."""
    files = _files_in(units) or []
    named, own = fill_places(command, files), options_of(command, group)
    is_candidate = len(named) == len(files) + 1
    if isinstance(missing, click.Argument) and command.name != "grade" and is_candidate and _is_piped():
        return _with_line(said, group, command, [*units, ("", ["-"])], typed)
    more = [missing.opts[0], "all.jsonl"] if isinstance(missing, click.Option) and missing.metavar == "FILE" else []
    words, lost = _words_of(units, named, own)
    left, line = f"without {shlex.join(lost)}, " * bool(lost), _line_of(group, command, [*words, *more], units)
    return _with_example(said, left, line) if more or named != files else said


def _with_checked_line(said: str, left: str, line: str, held: Collection[str], *, is_new: bool) -> str:
    """Return what is *said* with a *line* that the parser takes: at `{line|...}`, as an example, or behind."""
    if "{line|" in said:
        form = " --format json" * (" --format " not in line)
        return re.sub(r"\{line\|.*?\}( --format json)?", lambda found: line + form * bool(found[1]), said)
    if "EXAMPLE" in held:
        return _with_example(said, left, line)
    return joined(said, f"{left}write {line}") if is_new else said


def _words_of(units: Sequence[Unit], files: Sequence[str], own: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the words of a line, its *files* in the places of arguments, and the words that it leaves out."""
    words, lost, rest = list[str](), list[str](), [*files]
    last = max((place for place, (name, _) in enumerate(units) if not name or name[:5] == "FILE "), default=-1)
    words, rest = (rest, []) if last < 0 else (words, rest)
    for place, (name, given) in enumerate(units):
        if not name or name[:5] == "FILE ":
            count = len(rest) if place == last else 1
            words, rest = [*words, *rest[:count]], rest[count:]
        elif name != "without" and not name[0].isupper() and name != ">":
            (words if {given[0].partition("=")[0], given[0][:2]} & {*own} else lost).extend(given)
        elif name == "without":
            lost += given
    return words, lost


def _line_of(group: click.Context, command: click.Command, words: Sequence[str], units: Sequence[Unit]) -> str:
    """Return the line of *command* with *words*, with what comes before it and the file of what it prints."""
    piped = "".join(f"echo {shlex.quote(given[0])} | " for name, given in units if name == "TEXT")
    written = "".join(f" > {shlex.quote(given[0])}" for name, given in units if name == ">")
    first = "".join(f"{word} && " for name, given in units if name == "FIRST" for word in given)
    return f"{first}{piped}{group.command_path} {command.name} {shlex.join(words)}".rstrip() + written


def _printed(said: str, command: click.Command, files: list[str], units: list[Unit]) -> tuple[str, list[Unit]]:
    """Return *said* and *units* with a file for what is printed: the result of one candidate, or its report."""
    outs = values_of(units, "outs")
    told = "" if "is printed" in said else "it is printed"
    if command.name != "grade" or sorted(map(kind_of, files)) != ["*", "rubric"] or len(outs) != 1:
        return joined(said, told * any(name == ">" for name, _ in units)), units
    forms, new = ("table", "json"), list[Unit]()
    if form := outs[0] if outs[0] in forms else meant_in(word_cure("choices", "", outs[0], forms)):
        told, new = "" if form == outs[0] else "it is printed for people, or as JSON", [("form", ["--format", form])]
    elif Path(outs[0]).suffix not in ("", ".json", ".jsonl", ".txt"):
        told = "a report is of many, or of a file of one"
        new = [("report", ["--report", *outs]), ("COMMAND", ["grade-many"])]
    else:
        new = [(">", outs)]
    return joined(said, told), [*(unit for unit in units if unit[0] not in ("outs", "form")), *new]


def _into_file(command: click.Command, units: list[Unit]) -> list[Unit]:
    """Return *units* with the form of the file into which a shell writes what is printed, and its folder."""
    held, own = dict(units), options_of(command, click.Context(command))
    file = in_folder(held.get(">", [""])[0], f"{command.name}.json")
    as_json = {"form": ["--format", "json"]} if file.endswith(".json") and "--format" in own else {}
    more = {**as_json, **folder_first(file)}
    new = {name: words for name, words in more.items() if name not in held}
    return changed_units(units, {**new, ">": [file]}) if file else units


def _files_in(units: Sequence[Unit]) -> list[str] | None:
    """Return the arguments in *units*, those of options at their places; None if one before is missing."""
    files = [*dict(units).get("ARGUMENTS", [words[0] for name, words in units if not name])]
    for name, words in sorted(unit for unit in units if unit[0][:5] == "FILE "):
        if int(name[5:]) > len(files) + 1 and Path(words[0]).suffix not in (".yaml", ".yml"):  # a suite comes first
            return None
        files.insert(int(name[5:]) - 1, words[0])
    return files


def _with_example(said: str, left: str, line: str) -> str:
    """Return what is *said* with an example of a *line*, with its options, which says what is *left* out."""
    said = re.sub(r", such as (--[\w-]+( [\w.-]+)?)(?=;|$)", lambda found: found[0] * (found[1] not in line), said)
    if left:
        return joined(said, f"{left}write a line such as {line}")
    return f"{said.removesuffix('?')}, such as {line}{'?' * said.endswith('?')}"


def _mended(
    problem: click.UsageError, said: str, command: click.Command, files: list[str], units: list[Unit]
) -> tuple[str, Change]:
    """Return what is *said* of a *problem* of *command* with *files* and *units*, and the change that mends it."""
    if change := getattr(problem, "change", None):
        return said, change
    if said.startswith("Got unexpected extra"):
        return mend_surplus(command, files)
    if isinstance(problem, click.BadOptionUsage) and said.endswith("requires an argument"):
        option = options_of(command, click.Context(command))[problem.option_name]
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
    name, first, own = param.name or "", param.opts[0], options_of(command, click.Context(command))
    choices = [*getattr(param.type, "choices", ())]
    if name == "threshold" and " " in value and len(files) == 1 and kind_of(files[0]) == "rubric":
        return f"{said}; a text is piped", {name: (), "ARGUMENTS": [*files, "-"], "TEXT": (value,)}
    if name == "threshold" and value[:1].isalpha() and "--filter" in own:
        return f"{said}; cases are named by another option", {name: (), "+patterns": ("--filter", value)}  # as jest's
    if isinstance(param.type, click.IntRange | click.FloatRange) and (bare := UNITS.sub("", value.lower())) != value:
        return said, {name: (first, bare)}
    if share := re.search(r" % write ([\d.]+)$", said):
        return said, {name: (first, share[1])}
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
    own = options_of(context.command, context)
    given = values_of(units_of(own, typed), option.name or "")
    named, bare = [form for form in given if "=" in form], [form for form in given if "=" not in form]
    kept = ["github"] if "github" in bare else bare[-1:]  # which is printed for its reader
    outs = [word for form in named for word in ("--out", form.partition("=")[2])]
    for form in bare:
        cure = "" if form in kept else word_cure("choices", context.command.name or "", form, {*own} - {"--reporter"})
        outs += shlex.split(meant_in(cure))
    is_whole = option.name == "reporter" and outs.count("--out") == len(given) - len(kept)
    return {"reporter": [word for form in kept for word in ("--reporter", form)], "+outs": outs} if is_whole else {}
