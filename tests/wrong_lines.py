"""Wrong command lines of every command, made of the parsers; and what a printed line must have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import combinations
from random import Random

import click

from rubric import Rubric, grade_many
from rubric.internals.guesses import cures_in
from tests.command_line import commands
from tests.wrong_calls import TABLE

RUBRICS = {
    "polite.yaml": "rubric: polite\ncriteria:\n  - Says thank you\n",
    "other.yaml": "rubric: b\ncriteria: [Is kind]\n",
}
FILES = {
    **RUBRICS,
    "reply.txt": "Thank you.\n",
    "other.txt": "No.\n",
    "rows.jsonl": '{"output": "Thank you.", "key": "a"}\n{"output": "No.", "key": "b"}\n',
    "pairs.jsonl": '{"a": "Thank you.", "b": "No."}\n',
    "replies.csv": "question,answer,topic\nWhere?,Thank you.,a\nWhen?,No.,b\n",
    "ids.csv": "id,question,answer\na,Where?,Thank you.\nb,When?,No.\n",
    "suites/one.yaml": "suite: one\nrubric: {criteria: [Is kind]}\ncases:\n  - {id: a, output: Thank you}\n",
    "suites/two.yaml": "suite: two\nrubric: {criteria: [Is kind]}\ncases:\n  - {id: b, output: Thank you}\n",
    "sides.csv": "id,old,new\na,No it is not.,Thank you for that.\n",
    "broken.jsonl": "not json\n",
    "rubrics/kind.yaml": "rubric: kind\ncriteria: [Is kind]\n",
    "people.csv": "id,verdict\na,true\nb,false\n",
    "labels.csv": "key,value\na,true\nb,false\n",
    "written.csv": "index,score,passed\n0,1.0,true\n",
    "suite.yaml": "suite: s\nrubric: {criteria: [Says thank you]}\ncases:\n  - {id: a, output: Thank you}\n",
}
FILES["results.jsonl"] = (
    grade_many(
        [{"output": "Thank you.", "key": "a"}, {"output": "No.", "key": "b"}],
        Rubric("polite", ["Says thank you"]),
        "offline",
    )
    .collect()
    .to_jsonl()
)
FILES["keyless.jsonl"] = FILES["results.jsonl"].replace('"key":', '"was":')
FILES["before.jsonl"] = FILES["found.json"] = FILES["results.jsonl"]
_OF_ARGUMENTS = {
    "results": "results.jsonl", "new": "results.jsonl", "old": "results.jsonl", "others": "labels.csv",
    "labels": "labels.csv", "rubric": "polite.yaml", "file": "polite.yaml", "before": "polite.yaml",
    "after": "other.yaml", "files": "polite.yaml", "candidates": "rows.jsonl", "data": "rows.jsonl",
    "pairs": "pairs.jsonl", "parts": "results.jsonl", "folder": "new", "what": "rubric",
}  # fmt: skip
_OF_COMMANDS = {"grade": ["polite.yaml", "reply.txt"], "generate": ["--outcome", "thanks"], "view": ["results.jsonl"]}
_OF_METAVARS = {
    "MODEL": "offline", "MODEL=IN,OUT": "openai/a=1,2", "FIELD=COLUMN": "output=output", "NAME": "HOME", "N|all": "all",
    "NAME=COMMAND": "a=b", "K/N": "1/2", "KEY": "verdict", "FOLDER": ".", "SHAPE": "repeats", "EDIT": "anchors",
}  # fmt: skip
WORDS = {
    name: sorted({word for _, words in cures_in("options", name, "every") for word in words}) for name in commands()
}
"""What the table has for options of each command."""


def options_of(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def value_of(option: click.Option) -> list[str]:
    """Return what follows the name of *option*; nothing follows a flag."""
    kind = option.type
    if option.is_flag:
        return []
    if isinstance(kind, click.Choice):
        return [str(kind.choices[0])]
    if isinstance(kind, click.IntRange):
        return ["3"]
    if isinstance(kind, click.FloatRange):
        return ["0.3"]
    return [
        _OF_METAVARS.get(option.metavar or "", "polite.yaml" if isinstance(kind, click.File | click.Path) else "0.3")
    ]


def right_line(name: str) -> list[str]:
    """Return the shortest line of the command *name* that has all its arguments."""
    command = commands()[name]
    if name in _OF_COMMANDS:
        return [name, *_OF_COMMANDS[name]]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    needed = [part for each in options_of(command) if each.required for part in (each.opts[0], "new.jsonl")]
    return [name, *(_OF_ARGUMENTS[str(each.name)] for each in arguments), *needed]


def wrong_options(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every wrong option of the command *name*, with the kind of mistake that it is."""
    own = {n for each in options_of(commands()[name]) for n in (*each.opts, *each.secondary_opts)}
    yield "unknown", ["--zebra"]
    yield "unknown", ["--zebra", "w-17"]
    yield "unknown", ["--zebra=w-17"]
    for word in WORDS[name]:
        if word not in own:
            yield "synonym", [word]
            yield "synonym", [word, "17"]
            yield "synonym", [f"{word}=17"] if word.startswith("--") else [word, "w-17"]
    for other, command in commands().items():
        for option in options_of(command) if other != name else ():
            if not own & {*option.opts}:
                yield "of another command", [option.opts[0], *value_of(option)]
    for option in options_of(commands()[name]):
        yield "slip", [f"{option.opts[0]}{option.opts[0][-1]}", *value_of(option)]
        if not option.is_flag and not isinstance(option.type, click.types.StringParamType):
            yield "kind", [option.opts[0], "w-17"]
            yield "kind", [option.opts[0], "-3"]
        if not option.is_flag:
            yield "no value", [option.opts[0]]
            if not option.multiple:
                yield "twice", [option.opts[0], *value_of(option), option.opts[0], *value_of(option)]


def wrong_lines(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield lines of the command *name* with one mistake; of options that exclude one another, with none in each."""
    right = right_line(name)
    given = [[each.opts[0], *value_of(each)] for each in options_of(commands()[name])]
    for first, second in combinations(given, 2):
        yield "pair", [*right, *first, *second]
    for kind, wrong in wrong_options(name):
        yield kind, [*right, *wrong]
    for place in range(1, len(right)):
        yield "missing argument", right[:place] + right[place + 1 :]
        yield "no file", [*right[:place], "not-there.txt", *right[place + 1 :]]
    yield "one more", [*right, "one-more.txt"]
    yield "turned round", [name, *right[:0:-1]]
    for word, cure in ((word, cure) for cure, words in TABLE["commands"]["every"].items() for word in words.split()):
        if cure == name:
            yield "command", [word, *right[1:]]


def right_option(name: str, random: Random) -> list[str]:
    option = random.choice([each for each in options_of(commands()[name]) if each.name != "quiet"] or [None])
    return [option.opts[0], *value_of(option)] if option else []


_LINE = rf"(?:echo (?:'[^']*'|\S+) \| )?(?<![\w`])rubric (?=(?:{'|'.join(sorted(commands(), key=len, reverse=True))})\b)[^;]*"


def lines_of(said: str) -> list[str]:
    """Return the command lines in *said*, a message, that are not examples."""
    said = re.sub(r"; see rubric [\w -]*--help$", "", said.strip())
    found = []
    for each in re.finditer(_LINE, said):
        clause = said[: each.start()].rpartition(";")[2]
        if "such as" not in clause and "belongs to" not in clause:
            found.append(each[0].strip())
    return found


def lost_in(said: str, typed: list[str]) -> list[str]:
    """Return what breaks the law in *said*, the message for a line *typed*; nothing, if it holds."""
    broken = []
    told = {
        *(name for names in re.findall(r"no such option (-[\w-]+(?:, -[\w-]+)*)", said) for name in names.split(", ")),
        *re.findall(r"no such command '([^']*)'", said),
        *re.findall(r"(\S+): there is no such file; did you mean", said),
        *re.findall(r"(--\w+) \S+ is not a format", said),
        *re.findall(r"for (\S+) % write", said),
        *re.findall(r"(\S+) is a file; name a folder", said),
        *re.findall(r"--(?:out|html) (\S+): it is a (?:page|table)", said),
        *re.findall(r"(\S+) is a file; name a folder", said),
        *re.findall(r"while sleep (\S+);", said),
        *re.findall(r"'\[rubric\|suite\]': '([^']*)' is not one of", said),
    }
    told |= {part for each in re.findall(r"[Ww]ithout ([^;]*?), write", said) for part in shlex.split(each)}
    if "is a command" in said:  # another than the typed one
        told.add(typed[0])
    parts = [
        part for each in typed for part in (each.split("=", 1) if each.startswith("--") and "=" in each else [each])
    ]
    for line in lines_of(said):
        try:
            words = shlex.split(line)
        except ValueError:
            broken.append(f"not a line: {line}")
            continue
        if ">" in words[-2:]:  # a shell writes what is printed
            words, told = words[:-2], {*told, "--out", words[-1]}
        have = [
            part for each in words for part in (each.split("=", 1) if each.startswith("--") and "=" in each else [each])
        ]
        have += [part.partition("=")[2] for part in have]  # a column has its field before it
        broken += [f"{part} is not in: {line}" for part in parts if part not in have and part not in told]
        if "..." not in line and (problem := problem_in(words)):
            broken.append(f"{problem}: {line}")
    for each in re.finditer(
        r"[Ww]rite (--[\w-]+)(?: ([^\s;]+))?|[Ww]rite (judge: [^;]*)", re.sub(r"; see rubric.*$", "", said)
    ):
        value = each[2]
        if value and value not in parts and not value.isupper():
            broken.append(f"{value} was not typed: {each[0]}")
        if each[3]:
            broken.append(f"an example that is none: {each[0]}")
    return broken


def moved_in(said: str, typed: list[str]) -> list[str]:
    """Return the lines in *said* that have options in another order than *typed*."""
    moved = []
    for line in lines_of(said):
        words = shlex.split(line)
        options = [each for each in typed if re.match("-[-a-z]", each) and typed.count(each) == words.count(each) == 1]
        moved += [line] * (options != [each for each in words if each in options])
    return moved


def problem_in(words: list[str]) -> str:
    """Return why the parser does not take *words*, a command line; '' if it does."""
    words = words[words.index("rubric") + 1 :]  # behind what is piped into it
    if words[0] not in commands():
        return "no such command"
    try:
        words = words[: words.index(">")] if ">" in words else words
        with commands()[words[0]].make_context(f"rubric {words[0]}", words[1:]):
            return ""
    except click.ClickException as problem:
        return problem.format_message()
