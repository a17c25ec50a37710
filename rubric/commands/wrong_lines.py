"""
Answer a command line that does not fit with the one that was meant; `guesses.toml` has the words that people try.

A line that is printed has all that was typed, and its command takes it; else the message has none, or an example.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice

import click

from rubric import RubricError
from rubric.embed import clean, shorten
from rubric.internals.guesses import word_cure

_LONGEST = 600  # of a line that is printed: a pattern of a shell may stand for a thousand files


def mended(context: click.Context, command: click.Command, typed: Sequence[str], *said: str) -> str:
    """Return what was *said*, what is said of options in *typed* that *command* lacks, and the line that was meant."""
    options, words = _options_of(command, context), list[str]()
    is_whole = not isinstance(command, click.Group) and not {"--", "--help", "-h"} & {*typed}
    rest = iter(typed)
    for word in rest:
        name, sign, value = word.partition("=")
        if not name.startswith("-") or name == "-" or name in options or name[:2] in options:
            words += [word, *islice(rest, int(word in options and not options[word].is_flag))]
            continue
        cure = _option_cure(context, command, name)
        said = (*said, f"no such option {name}{cure}")
        meant = meant_in(cure)
        is_whole &= bool(meant)
        words += [f"{meant}={value}"] if sign else shlex.split(meant)
    text = "; ".join(dict.fromkeys(said)).replace("?; ", "? ")
    path = context.command_path if command is context.command else f"{context.command_path} {command.name}"
    line = f"{path} {shlex.join(words)}"
    if not is_whole or not said or len(line) > _LONGEST or clean(line) != line:
        return text
    with suppress(click.ClickException, RubricError):
        click.Command.make_context(command, command.name, words, context).close()
        text += f" Write {line}"
    return text


def meant_in(cure: str) -> str:
    """Return the word, or the option with its value, that *cure* asks for; '' if it is a sentence."""
    return cure.removeprefix("; did you mean ").strip("'?") if cure.startswith("; did you mean ") else ""


def _options_of(command: click.Command, context: click.Context) -> Mapping[str, click.Option]:
    given = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return {name: each for each in given for name in (*each.opts, *each.secondary_opts)}


def _option_cure(context: click.Context, command: click.Command, name: str) -> str:
    """Return the end of the message that *command* has no option *name*."""
    if cure := word_cure("options", command.name or "", name, _options_of(command, context)):
        return cure
    root = context.find_root().command
    every = root.list_commands(context) if isinstance(root, click.Group) else []
    ones = [(each, root.get_command(context, each)) for each in every if isinstance(root, click.Group)]
    having = [each for each, one in ones if one is not None and name in _options_of(one, context)]
    return f"; it belongs to rubric {shorten(', '.join(having), 60)}" if having else ""
