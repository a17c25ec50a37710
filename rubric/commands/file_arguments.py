"""The files that a command is called with: what they hold, where they belong, and which are meant by a wrong name."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import click

from rubric import Rubric, RubricError, load, load_suite
from rubric.embed import fields, rows_in, shorten
from rubric.engine.sources import holds_many
from rubric.formats.projects import is_rubric
from rubric.formats.registry import find_format, format_names

Change = Mapping[str, Sequence[str]]
"""What makes the line that was meant of the one that was typed: words by what they are; see `wrong_lines`."""

_HELD = {"file": "rubric", "files": "rubric *", "results": "results", "rubric": "rubric"}
_TREES, _LARGEST = (".yaml", ".yml", ".json"), 10**7  # the kinds of rubrics, and what is too large for one
TEXTS, _ROWS = (".txt", ".md"), (".jsonl", ".ndjson", ".csv")
_WRITTEN = {"init", "generate", "schema"}  # commands whose arguments may name what is not there
MODEL = re.compile(
    r"(?!.*\.[a-z]+$)(offline|(gpt|claude|gemini|mistral|llama|o\d)[\w.-]*"  # no suffix of a file
    r"|[\w./-]+\.py:\w+"  # a function, which a judge at a terminal is not
    r"|(openai|anthropic|gemini|azure|bedrock|vertex_ai|mistral|groq|ollama|openrouter|xai|deepseek)[/:][\w.:/-]+)"
)
_REVISION = re.compile(r"(HEAD|@|main|master|origin/[\w/-]+|v\d+(\.\d+)+|[0-9a-f]{7,40})([~^]\d*)*")
_LABELLED = {"value", "label", "verdict", "human", "gold", "passed", "rating"}  # columns of labels

MISSING = "there is no such file"
SUCH_AS: Change = {"EXAMPLE": ("such as",)}
"""Makes a line that has names of files which are not there."""

TRIAL = "rubric.trial"
"""Is in the `meta` of a context whose command does not run: a line is tried that would be printed."""


@cache
def file_table() -> dict[str, dict[str, str]]:
    """Return what `files.toml` says of the files that commands take and write."""
    return tomllib.loads(resources.files("rubric.commands").joinpath("files.toml").read_text("utf-8"))


class WrongLineError(click.UsageError):
    """A wrong call, with the *change* that makes the line that was meant of the typed one."""

    def __init__(self, message: str, change: Change) -> None:
        super().__init__(message)
        self.change = change


def holds_results(path: Path) -> bool:
    """True if the first line of the file at *path* is a result, or the end of a shard without any."""
    return not {"findings", "end_of_shard"}.isdisjoint(first_row(path, ".jsonl"))


def is_report(path: Path) -> bool:
    """True if the file at *path* is a report of a suite in JSON."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return '"rubric-report/' in file.read(60)


def first_row(path: Path, kind: str = "") -> Mapping[str, Any]:
    """Return the first row of the file at *path*, by *kind* or its suffix; {} if it has none, or is broken."""
    with suppress(RubricError, OSError, ImportError):
        _, first = next(rows_in("file", path, kind, broken=lambda _: None), ("", None))
        return first if isinstance(first, dict) else {}
    return {}


def kind_of(file: str = "") -> str:
    """Return what *file* holds: a `rubric`, `results`, or `*` for another thing; '' if there is none."""
    with suppress(OSError, ValueError):
        stat = Path(file).stat() if file else None
        return _kind_of(file, stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat else ""
    return ""


@lru_cache(maxsize=256)  # a line with one mistake asks twenty times what its files hold
def _kind_of(file: str, *state: int) -> str:
    with suppress(RubricError, OSError):
        is_small = Path(file).is_file() and state[-1] < _LARGEST
        if is_small and is_rubric(file) and (Path(file).suffix != ".json" or load(file) is not None):  # of any JSON
            return "rubric"
    return "results" if Path(file).is_file() and holds_results(Path(file)) else "*"


def rubrics_in(folder: Path) -> dict[Path, Rubric]:
    """Return the rubrics of the YAML files in *folder*, but for hidden ones."""
    found = {}
    for path in sorted(folder.glob("[!.]*.y*ml")):
        with suppress(RubricError):
            if is_rubric(path):
                found[path] = load(path)
    return found


def suites_in(folder: Path) -> list[str]:
    """Return the suites of the YAML files in *folder*, but for hidden ones."""
    found, rubrics = list[str](), rubrics_in(folder)
    for path in sorted(folder.glob("[!.]*.y*ml")):
        with suppress(RubricError):
            found += [str(path)] * (path not in rubrics and bool(load_suite(path).cases))
    return found


def rubric_of(results: str) -> str:
    """Return the file, here or beside *results*, of the rubric that they are of; '' if there is none."""
    digest = first_row(Path(results), ".jsonl").get("digest")
    found = {path: each for folder in (Path(), Path(results).parent) for path, each in rubrics_in(folder).items()}
    return next((str(path) for path, rubric in found.items() if rubric.digest == digest), "")


def arguments_of(command: click.Command) -> list[click.Argument]:
    return [param for param in command.params if isinstance(param, click.Argument)]


def places_of(command: click.Command) -> list[str]:
    """Return what the arguments of *command* hold, in their order: a `rubric`, `results`, or `*` for another thing."""
    return " ".join(_HELD.get(each.name or "", "*") for each in arguments_of(command)).split()


def put_in_order(command: click.Command, files: list[str]) -> list[str]:
    """Return *files* in the order in which *command* takes them; as they are, if one that it needs is not there."""
    places = places_of(command)
    kinds = [*map(kind_of, files)] if len(files) >= len(places) else []
    found = {place: kinds.index(place) for place in places if place in kinds and place != "*"}
    if len(found) < len(places) - 1 or not found:
        return files
    others = [file for n, file in enumerate(files) if n not in found.values()]
    return [*(files[found[place]] if place in found else others.pop(0) for place in places), *others]


def is_fit(command: click.Command, files: Sequence[str]) -> bool:
    """False if a rubric is where *command* takes results, no file is missing, and no other command is meant."""
    if len(files) < len(places_of(command)) or f"{command.name} rubric" in file_table()["other_commands"]:
        return True
    return ("results", "rubric") not in zip(places_of(command), map(kind_of, files), strict=False)


def ungraded_first(command: click.Command, files: Sequence[str]) -> str:
    """Return what is said of a rubric where *command* takes results, beside labels of people; '' if there is none."""
    results = [file for held, file in zip(places_of(command), files, strict=False) if held == "results"]
    rubrics = [file for file in results if kind_of(file) == "rubric"]
    held = {file: {*first_row(Path(file))} for file in files} if rubrics else {}
    labels = [file for file, names in held.items() if _LABELLED & names]
    if command.name == "estimate":  # what rows with answers would cost is meant
        labels = [file for file in labels if held[file].isdisjoint({"output", "answer", "response"})]
    if not rubrics or not (labels or command.name == "agree"):
        return ""
    graded = f"rubric grade-many {shlex.quote(rubrics[0])} answers.jsonl --out results.jsonl"
    then = f"rubric {command.name} results.jsonl {shlex.quote((labels or ['labels.csv'])[0])}"
    return f"{rubrics[0]} holds a rubric; its results come first, such as {graded}, and then {then}"


def fill_places(command: click.Command, files: Sequence[str]) -> list[str]:
    """Return *files* at their places in *command*, with names for missing ones; as they are, if one fits none."""
    rest, named, places = [*files], list[str](), places_of(command)
    for name, held in zip((each.name for each in arguments_of(command)), places, strict=False):
        fits = [file for file in rest if kind_of(file) in (held, "") or (held == "*" and kind_of(file) not in places)]
        example = file_table()["missing_files"][name or ""].split()[: 1 + (command.name == "grade")]
        stores = [str(each) for each in Path().glob("*.db")] if name == "store" else []
        example = stores if len(stores) == 1 else example
        named += [rest.pop(rest.index(fits[0]))] if fits else example
    return [*files] if rest else named


def are_many(files: Sequence[str]) -> bool:
    """True if *files* are a rubric and many candidates: a file or a folder of them, or several."""
    # After an unknown option, one may be its value.
    is_sure = not any(file[:1] == "-" != file and after[:1] != "-" for file, after in pairwise(files))
    rubrics = [file for file in files if Path(file).suffix in _TREES[:2] and kind_of(file) == "rubric"]
    others = [Path(each) for each in files if each not in rubrics and kind_of(each) not in ("", "results")]
    are_several = any(map(holds_many, others)) or (is_sure and len(others) > 1)
    return are_several and len(rubrics) == 1 and not {each.suffix for each in others} & {*_TREES[:2]}


def find_command(command: click.Command, files: Sequence[str], values: Collection[str]) -> tuple[str, str, Change]:
    """
    Return the command that is meant by *files*, if it is another one, what is said of it, and the change; or ''.

    Some may be *values* of options that there are not.
    """
    if command.name == "grade" and files[:1] == ["many"]:
        return "grade-many", "grade-many is one word", {"ARGUMENTS": files[1:]}
    if command.name == "grade" and are_many(files):
        are_texts = sum(Path(file).suffix in TEXTS and Path(file).exists() for file in files) > 1
        fails = {"min_pass_rate": ("--min-pass-rate", "1")} if are_texts else {}  # as one that fails ends with 1
        return "grade-many", "grade-many grades many candidates", fails
    if command.name == "grade-many" and (alone := pick_alone(files)):
        return "grade", "grade grades one candidate, or a suite", {"ARGUMENTS": alone}
    is_variadic = any(each.nargs < 0 for each in arguments_of(command))
    places = () if ungraded_first(command, files) else places_of(command)
    for place, file in zip([*places, *places[-1:] * (len(files) * is_variadic)], files, strict=False):
        if file not in values and (other := _elsewhere(command, place, file, files))[0]:
            return other
    return "", "", {}


def _elsewhere(command: click.Command, place: str, file: str, files: Sequence[str]) -> tuple[str, str, Change]:
    """Return the command for a *file* of another kind than *command* takes at a *place*, what is said, and a change."""
    if Path(file).suffix.lower() not in _ROWS and command.name not in ("compare", "view", "estimate", "check"):
        return "", "", {}  # to tell a suite from a rubric, it is read whole
    if command.name == "compare" and "results" in map(kind_of, files):  # beside which no other command takes it
        return "", "", {}
    kind = held = "folder" if Path(file).is_dir() else kind_of(file)
    if command.name in ("estimate", "view") and kind == "*" and Path(file).suffix in _TREES[:2]:
        kind = "rubric"  # or a suite
    shown = "view: shows results" * ((kind, place) == ("results", "rubric"))
    words, _, does = file_table()["other_commands"].get(f"{command.name} {kind}", shown).partition(": ")
    other, *judge = words.split() or [""]
    held = {"results": "holds results", "rubric": "holds a rubric", "folder": "is a folder"}.get(held, "holds a suite")
    return other, f"{file} {held}; {other} {does}", {"judge": judge} if judge else {}


def are_enough(command: click.Command, files: Sequence[str]) -> bool:
    """True if *command* needs no more than *files*, and they are there; a suite is enough for `grade`."""
    kinds = [*map(kind_of, files)]
    own = arguments_of(command)
    is_suite = command.name in ("grade", "plan") and kinds[:1] == ["*"] and Path(files[0]).suffix in _TREES
    is_whole = is_suite or (not kinds and len(own) == 1 and not own[0].required)
    return all(kinds) and (is_whole or len(kinds) >= len(places_of(command)))


def pick_alone(files: Sequence[str]) -> list[str]:
    """Return the suite in *files*, which is graded alone, with or without a rubric before it; or []."""
    path = Path(files[-1]) if files and len(files) <= 2 and kind_of(files[-1]) == "*" else Path()  # noqa: PLR2004
    return [str(path)] if path.suffix in _TREES[:2] else []


def find_near(command: click.Command, files: Sequence[str]) -> dict[str, list[str]]:
    """
    Return what is meant by those of *files* that are not there.

    They are those of a pattern, the one of the same stem or the like, or a file and an option with the part of it that
    is named behind a colon.
    """
    taken = len(files) if any(each.nargs < 0 for each in arguments_of(command)) else len(arguments_of(command))
    found = {}
    for file in files[:taken] if command.name not in _WRITTEN else ():
        path = Path(file)
        if file[:1] == "-" or " " in file or not path.name or path.exists():
            continue
        first, _, second = file.partition("..")
        if kind_of(first) and kind_of(second):
            found[file] = [second, first] if command.name == "compare" else [first, second]  # the new run comes first
            continue
        if kind_of(file.partition("@")[0]):  # which is told elsewhere
            continue
        whole, _, part = file.partition(":")
        if part and path.suffix[:3] != ".py" and kind_of(whole) == "*":
            is_suite = Path(whole).suffix in _TREES
            found[file] = [whole, *(["--filter", part.lstrip(":")] if is_suite else ["--column", f"output={part}"])]
            continue
        with suppress(OSError, ValueError):
            given = {Path(each) for each in files}
            others = [each.name for each in path.parent.glob("*") if each.is_file() and each not in given]
            kinds = [kind for kind in (_TREES, (*_ROWS, ".tsv", ".json"), TEXTS) if path.suffix in ("", *kind)]
            endings = {ending for kind in kinds for ending in kind}
            same = [name for name in others if Path(name).stem == path.stem and Path(name).suffix in endings]
            alike = same if len(same) == 1 else filter(None, [fields.misspelt(path.name, others)])
            of_pattern = sorted(each.name for each in path.parent.glob(path.name))
            names = of_pattern or [*alike]
            if not names and places_of(command)[:1] == ["rubric"] and file == files[0] and path.suffix in _TREES[:2]:
                rubrics = [each.name for each in rubrics_in(path.parent)]
                names = rubrics * (len(rubrics) == 1)
            if names:
                found[file] = [str(path.with_name(name)) for name in names]
    return found


def take_files(words: Sequence[str]) -> Sequence[str]:
    """Return the files among *words* that `find_near` has found: all, or the one before an option."""
    return words[:1] if any(word[:1] == "-" for word in words) else words


def from_git(command: click.Command, files: Sequence[str]) -> tuple[str, Change]:
    """Return what is said of *files* that are revisions of the one that is there, and the change that writes them."""
    there = [file for file in files if Path(file).is_file()]
    old = [file for file in files if _REVISION.fullmatch(file) and not Path(file).exists()]
    if command.name not in ("diff", "compare") or len(there) != 1 or len(old) not in (1, 2):
        return "", {}
    names = dict(zip(old, (f"{name}{Path(there[0]).suffix}" for name in ("old", "new")), strict=False))
    shown = [f"git show {shlex.quote(f'{each}:{there[0]}')} > {name}" for each, name in names.items()]
    files = [names.get(file, file) for file in files if file in old or len(old) == 1]
    files = files[:: -1 if command.name == "compare" and files[0] == "old.jsonl" else 1]  # the new one comes first
    return f"{old[0]} is a revision; it is a file first", {"ARGUMENTS": files, "FIRST": shown, **SUCH_AS}


def mend_surplus(command: click.Command, files: Sequence[str]) -> tuple[str, Change]:
    """Return what is said of a *command* with more *files* than it takes, and the change that mends it, or {}."""
    if (found := _misplaced(command, files))[0]:
        return found
    own = {option: each.name or "" for each in command.params for option in each.opts}
    takes = " ".join(command.collect_usage_pieces(click.Context(command))[1:])
    said = f"{command.name} takes {takes or 'no file'}: {command.get_short_help_str(200).rstrip('.')}"
    rubrics, last = [file for file in files if kind_of(file) == "rubric"], files[-1]
    for param in command.params:  # such as a format
        for file in set(files) & {*getattr(param.type, "choices", ())} if isinstance(param, click.Option) else ():
            rest = [each for each in files if each != file]
            return f"{file!r} is given with an option", {"ARGUMENTS": rest, param.name or "": (param.opts[0], file)}
    if command.name == "prefer" and (kind_of(files[0]) == "*" or Path(files[0]).suffix in TEXTS):
        return _as_pairs(command, files)
    if "--out" in own and Path(last).suffix and not Path(last).exists() and all(map(kind_of, files[:-1])):
        return f"{said}, and writes by an option", {"ARGUMENTS": files[:-1], own["--out"]: ("--out", last)}
    does = file_table()["of_rubrics"].get(command.name or "")
    if does and len(files) == 2 and rubrics == files[:1] and kind_of(last):  # noqa: PLR2004
        other = "grade-many" if are_many(files) else "grade"
        return f"{command.name} {does}, and {other} grades replies, with their reasons", {"COMMAND": [other]}
    places, existing = places_of(command), [file for file in files if Path(file).exists()]
    if len(existing) == len(places):
        return said, {"ARGUMENTS": existing, "without": [file for file in files if file not in existing]}
    if len(rubrics) != 1 or "rubric" in places:
        return said, {"ARGUMENTS": files[: len(places)], "without": files[len(places) :]}
    moved = {own["--rubric"]: ("--rubric", *rubrics)} if "--rubric" in own else {"without": rubrics}
    return said, {"ARGUMENTS": [file for file in files if file not in rubrics], **moved}


def _as_pairs(command: click.Command, files: Sequence[str]) -> tuple[str, Change]:
    """Return what is said of *files* that are two texts where *command* takes pairs, and the change that pairs them."""
    takes = " ".join(command.collect_usage_pieces(click.Context(command))[1:])
    if runs := [file for file in files if kind_of(file) == "results"]:
        there = shlex.join(runs[1::-1])
        return f"{runs[0]} holds results without answers; two runs are compared, such as rubric compare {there}", {}
    texts, pairs = [file for file in files if kind_of(file) == "*"], "pair.jsonl"
    rubric = next((file for file in files if kind_of(file) == "rubric"), "rubric.yaml")
    written = "jq -nc --rawfile a {} --rawfile b {} '{{a: $a, b: $b}}' > " + pairs
    first = [written.format(*map(shlex.quote, texts))] if len(texts) == 2 else []  # noqa: PLR2004 - one of each
    said = f"prefer takes {takes}: lines that have a and b each"
    return said, {"ARGUMENTS": [pairs if first else "pairs.jsonl", rubric], "FIRST": first, **SUCH_AS}


def _misplaced(command: click.Command, files: Sequence[str]) -> tuple[str, Change]:
    """Return what is said of the last of *files* that are judges, of runs, and of revisions, and the change; or ''."""
    models = [*takewhile(lambda file: not Path(file).exists() and MODEL.fullmatch(file), reversed(files[1:]))][::-1]
    if models and any(each.name == "judge" for each in command.params):
        judges = [word for model in models for word in ("-j", model)]
        return "a judge is an option", {"ARGUMENTS": files[: -len(models)], "+judge": judges}
    if command.name == "prefer" and kind_of(files[0]) == "results":
        return _as_pairs(command, files)
    return from_git(command, files)


def check_files(context: click.Context) -> None:
    """
    Refuse files of the command in *context* that are not there, in another order, or of another kind than it takes.

    Raises:
        click.UsageError: One is; some have the change that makes the line that was meant.
    """
    command, places = context.command, places_of(context.command)
    given = [context.params[each.name or ""] for each in arguments_of(command)]
    files = [str(file) for each in given for file in (each if isinstance(each, tuple) else [each]) if file is not None]
    if not files or command.name in _WRITTEN:
        return
    _check_words(command, files)
    first, where = (places[1], "last") if places[:1] == ["*"] and len(places) > 1 else (places[0], "first")
    if put_in_order(command, files) != files and Path(files[places.index(first)]).suffix.lower() not in _TREES:
        raise click.UsageError(f"the {first} come{'s' * (first == 'rubric')} {where}")
    there = [file for file in files[1:] if command.name == "grade-many" and Path(file).is_file()]
    rows = [file for file in there if holds_many(Path(file))]
    if rows and (texts := [file for file in there if file not in rows]):
        said = "of a table, each row is a candidate, and a text is one itself; the texts are graded by the same line"
        change = {"ARGUMENTS": [file for file in files if file not in texts], "without": texts}
        raise WrongLineError(f"{said} with {shlex.join(texts)} alone, and the rows by another", change)
    are_texts = command.name == "grade" and files[2:] and are_many(files)
    if are_texts or (command.name == "grade-many" and pick_alone(files)):
        raise click.UsageError("grade grades one candidate, or a suite")
    for place, file in zip([*places, *places[-1:] * len(files)], files, strict=False):
        if context.meta.get(TRIAL) and not Path(file).exists() and " " not in file and file != "-":
            continue  # what is not there is told when it is read
        if file == "-" or Path(file).is_fifo() or Path(file).is_char_device():
            _check_pipe(command, place, file, files)
        else:
            _check_file(command, place, file, files)


def _check_words(command: click.Command, files: Sequence[str]) -> None:
    """Refuse words among *files* that name none: judges, revisions of a file, and options without dashes."""
    if (found := _misplaced(command, files))[0]:
        raise WrongLineError(*found)
    own = {option.removeprefix("--"): each.name or "" for each in command.params for option in each.opts}
    names = [each for each in files[1:] if re.fullmatch(r"[\w*-]*\w[\w*-]*", each) and not Path(each).exists()]
    if names and "filter" in own and pick_alone(files[:1]):
        words = [word for each in names for word in ("--filter", each)]
        change = {"ARGUMENTS": [each for each in files if each not in names], "+patterns": words}
        raise WrongLineError(f"{names[0]} is no file; cases are named by an option", change)
    for word in files:
        name, _, value = word.partition("=")
        if value and name in own and not Path(word).exists():
            change = {"ARGUMENTS": [each for each in files if each != word], own[name]: [f"--{name}", value]}
            raise WrongLineError(f"{word}: an option begins with two dashes", change)


def _check_pipe(command: click.Command, place: str, file: str, files: Sequence[str]) -> None:
    """Refuse standard input, or another pipe, where it is not the text of a candidate."""
    if command.name not in ("grade", "plan") or place == "rubric":
        name = "rubric.yaml" if place == "rubric" else "rows.jsonl"
        name = f"piped.{name.partition('.')[2]}" if Path(name).exists() else name  # which holds something else
        named = [name if each == file else each for each in files]
        change = {"ARGUMENTS": named, "FIRST": [f"cat > {name}"], **SUCH_AS}
        raise WrongLineError(f"{file}: no pipe is read here; a file is, behind the pipe", change)


def _check_missing(command: click.Command, place: str, file: str, files: Sequence[str]) -> None:
    """Refuse a *file* that is not there, unless *command* takes it for a text, a pattern, or reads it itself."""
    if command.name in ("label", "plan", "probe") and any(Path(file).parent.glob(Path(file).name or "-")):
        return
    name, _, version = file.partition("@")
    if version and Path(name).suffix in _TREES and kind_of(name) == "*" and not _REVISION.fullmatch(version):
        change = {"ARGUMENTS": [name if each == file else each for each in files]}
        raise WrongLineError(f"{file}: cases are named by an option", {**change, "+patterns": ("--filter", version)})
    if version and kind_of(name):
        shown = f"git show {shlex.quote(f'{version}:{name}')} > old.yaml"
        raise click.UsageError(f"{file}: {MISSING}; an earlier version is a file of its own, such as {shown}")
    if re.match(r"\w{2,}:/", file):
        raise click.UsageError(f"{file}: no address is read; save what is there in a file, and name that")
    if place == "rubric" and " " in file and Path(file).suffix not in _TREES:
        text = shlex.quote(f"criteria: [{json.dumps(file, ensure_ascii=False)}]")
        names = ("rubric.yaml", "asked.yaml", f"asked-{abs(hash(file))}.yaml")
        name = next(each for each in names if not Path(each).exists())
        change = {"ARGUMENTS": [name if each == file else each for each in files], "FIRST": [f"echo {text} > {name}"]}
        raise WrongLineError(f"{file!r} is a text, and a rubric is a file", {**change, **SUCH_AS})
    if file == "help":
        raise click.UsageError("help is an option")
    if command.name == "explain" and re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", file):  # a key, as `kubectl explain` has it
        cure = f"rubric schema rubric | jq '.. | objects | .properties.{file.rpartition('.')[2]} // empty'"
        raise click.UsageError(f"{file}: {MISSING}; what a key may be is in the schema, such as {cure}")
    is_variadic = any(each.nargs < 0 for each in arguments_of(command))
    if place == "rubric":
        near = [*map(str, rubrics_in(Path(file).parent))]
        there = f"; there are {shorten(', '.join(near), 120)}" * (len(near) > 1 and not find_near(command, [file]))
        raise WrongLineError(f"{file}: {MISSING}{there}", {})
    if find_near(command, [file]) or not (command.name == "view" or is_variadic):
        raise WrongLineError(f"{file}: {MISSING}", {})


def _check_folder(command: click.Command, folder: str, files: Sequence[str]) -> None:
    """Refuse a *folder*, one of *files*, where *command* takes a rubric or a suite, with those that are in it."""
    if command.name == "grade" and [folder] == [*files] and (suites := suites_in(Path(folder))):
        raise WrongLineError(f"{folder} is a folder; its suites are named", {"ARGUMENTS": suites})
    if rubrics := [*map(str, rubrics_in(Path(folder)))]:
        change: Change = {"ARGUMENTS": [rubrics[0], *(files[1:] or ["answer.txt"])]}
        said = f"{folder} is a folder; a rubric is named, of {shorten(', '.join(rubrics), 120)}"
        raise WrongLineError(said, change if len(rubrics) == 1 and files[1:] else {**change, **SUCH_AS})


def _check_file(command: click.Command, place: str, file: str, files: Sequence[str]) -> None:
    """Refuse a *file*, one of *files*, that is not what *command* takes at its *place*."""
    if not Path(file).exists():
        _check_missing(command, place, file, files)
    elif place == "rubric" and command.name in ("grade", "grade-many") and Path(file).is_dir():
        _check_folder(command, file, files)
    elif command.name == "convert" and Path(file).suffix.lower() in _ROWS and kind_of(file) == "results":
        cure = "a table is made of them in Python: Grades.read_jsonl(path, rubric, judge).to_csv(path)"
        raise click.UsageError(f"{file} holds results; {cure}")
    elif place == "results" and (said := ungraded_first(command, files)):
        raise click.UsageError(said)
    elif (other := _elsewhere(command, place, file, files))[0]:
        raise WrongLineError(other[1], {"COMMAND": other[:1], **other[2]})
    elif Path(file).suffix.lower() in TEXTS:
        _check_text(command, place, file, files)
    elif (place == "results" or command.name == "compare") and Path(file).suffix in _ROWS and kind_of(file) == "*":
        if (command.name == "agree" and len(files) == 1) or not first_row(Path(file)):
            return  # labels of several people are compared, too, and a broken line has a message of its own
        cure = f"rows are graded first, such as rubric grade-many rubric.yaml {shlex.quote(file)} --out results.jsonl"
        if len(files) < len(places_of(command)):
            change = {"ARGUMENTS": fill_places(command, files), **SUCH_AS}
            raise WrongLineError(f"{file} holds no results; they come first", change)
        raise click.UsageError(f"{file} holds no results; {cure}")


def _check_text(command: click.Command, place: str, file: str, files: Sequence[str]) -> None:
    """Refuse the *file* of a text, one of *files*, where *command* takes none at its *place*."""
    found = sorted(Path(file).parent.glob("*.yaml"))
    rubric = str(found[0]) if len(found) == 1 else "rubric.yaml"
    if command.name == "grade" and pick_alone(files[:1]):
        message = f"{files[0]} is a suite, whose cases have their candidates, or rows of answers: --outputs rows.jsonl"
        change: Change = {"ARGUMENTS": files[:1], "without": files[1:]}
        if all(case.output is None and case.run is None and not case.providers for case in load_suite(files[0])):
            beside = ("question", "reference", "context")  # of one candidate; a row has them
            change = {**change, "outputs": ("--outputs", "rows.jsonl"), "WITHOUT": beside, **SUCH_AS}
        raise WrongLineError(message, change)
    if place == "rubric" and not any(Path(file).suffix in find_format(name).suffixes for name in format_names()):
        if command.name == "prefer":
            raise WrongLineError(*_as_pairs(command, files))
        named = [rubric, file] if command.name == "grade" else [rubric if each == file else each for each in files]
        change = {"ARGUMENTS": named, **SUCH_AS}
        raise WrongLineError(f"{file} is a text, where a rubric is expected", change)
    if command.name == "view":
        raise WrongLineError(f"{file} is a text; view shows results", {"ARGUMENTS": ["results.jsonl"], **SUCH_AS})
    if command.name in ("probe", "label"):
        named = ["answers.jsonl" if each == file else each for each in files]
        change = {"ARGUMENTS": put_in_order(command, named), **SUCH_AS}
        raise WrongLineError(f"{file} is one text; candidates are a folder, or rows of a file", change)
