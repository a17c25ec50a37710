"""What the library says of arguments, said of the options of the command that runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import click

from rubric import DefinitionError, RubricError
from rubric.embed import Wording
from rubric.errors import Problem

_PYTHON = re.compile(r"; (?:write|such as) [\w.]+\(.*?(?=; in a file, run |$)")  # a cure that no command takes
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
        if option is None and name == "source":  # of a command that reads a format by its content
            file, form = click.get_current_context().params.get("file", "FILE"), value or "FORMAT"
            return f"rubric convert {shlex.quote(str(file))} --from {form} --out native.yaml, which is then read"
        if option is None or value is ... or (value == "offline" and command.name == "generate"):  # which writes
            return ""
        if value is None:
            return f"{option.opts[0]} {option.metavar or ''}".rstrip()
        several = value if isinstance(value, list) else [value]
        pairs = value.items() if isinstance(value, Mapping) else [(each, ...) for each in several]
        given = [(key, each) for key, of in pairs for each in (of if isinstance(of, list | tuple) else [of])]
        words = [w for key, of in given for w in (option.opts[0], str(key) if of is ... else f"{key}={of or ''}")]
        if cure is not None and (not cure or name in ("judge", "criteria", "raters")):  # a judge that needs no key
            cure[name] = words
        return shlex.join(words)

    if isinstance(said, DefinitionError):
        name, _, part = said.field.partition(".")
        if name in options and was_given(name):
            text = _PYTHON.sub("", Wording(said.message).render(word))
            return f"{options[name].opts[0]} {part}".rstrip() + f": {text}"
    return _PYTHON.sub("", said.text.render(word))


def was_given(name: str) -> bool:
    """True if the command line gives the option *name*."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
