"""The options of commands, which `options.toml` lists, and checks of options."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar, get_args

import click
from attrs import evolve
from click.shell_completion import CompletionItem

from rubric import Budget, DefinitionError, Judge, Store
from rubric.commands.file_arguments import WrongLineError
from rubric.commands.messages import was_given
from rubric.commands.output import Refusal, groups, print_line
from rubric.commands.wrong_options import refuse_function
from rubric.embed import CONCURRENCY, JudgeLike, fields, judge_or_default
from rubric.engine import Plan
from rubric.formats.registry import find_format, format_names
from rubric.suites.report import Deferred
from rubric.suites.reporters.registry import reporter, reporter_names

Command = TypeVar("Command", bound=Callable[..., Any])


class Name(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """One of the names that *known* returns when help is shown or a name is refused; plug-ins may have added some."""

    name = "name"

    def __init__(self, known: Callable[[], Sequence[str]], find: Callable[[str], object]) -> None:
        self._known, self._find = known, find

    @property
    def choices(self) -> Sequence[str]:
        """The names, as of `click.Choice`."""
        return self._known()

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        return f"[{'|'.join(self._known())}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - as above
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            self._find(value)
        except DefinitionError as problem:
            self.fail(problem.message, param, ctx)
        return value


class Share(click.FloatRange):
    """A share from 0 to 1, which may be written as 80% or 4/5, too."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share; a number above 1 is answered with the one that is meant by it in per cent."""
        share = fields.as_share(value) if isinstance(value, str) else None
        if share is None and isinstance(value, str) and (part := fields.as_share(f"{value}%")) and part > 0.01:  # noqa: PLR2004 - 1 %
            self.fail(f"expected a share from 0 to 1, found {value}; for {value} % write {part:g}", param, ctx)
        chosen: Any = value if share is None else share
        return float(super().convert(chosen, param, ctx))


def _keep_prices(ctx: click.Context, _: click.Parameter, given: Sequence[str]) -> None:
    """Let the prices of `--price` hold until the command ends."""
    try:
        parts = [(model_called(model), pair.split(",")) for model, pair in (text.rsplit("=", 1) for text in given)]
        prices = {model: (float(there), float(back)) for model, (there, back) in parts}
        budget = ctx.meta[PRICES] = Budget(prices=prices)
    except ValueError:  # also of one below 0
        meaning = "in dollars for a million tokens that are sent, and that come back"
        raise click.BadParameter(f"expected MODEL=IN,OUT {meaning}: openai/my-7b=0.10,0.40") from None
    if len(prices) < len(given):
        raise click.BadParameter("a model is given twice; give it once")
    ctx.with_resource(budget.priced(prices))


PRICES = "rubric.prices"


def check_prices(plans: Iterable[Plan] | None = None) -> Mapping[str, Any]:
    """Return what `--price` gives; refuse a model that nobody asks, by *plans* or options, and tell what is lacking."""
    context, every = click.get_current_context(), [] if plans is None else [*plans]
    names = {ask.judge.name for plan in every for ask in plan.asks}
    if plans is None and was_given("prices"):
        asked = [context.params["judge"], *filter(None, [context.params.get("writer")])]
        names = {each.name for by in asked for each in judge_or_default(by).single_judges()}
    if lacking := dict.fromkeys(name for plan in every for name in plan.unpriced):
        cure = " ".join(f"--price {shlex.quote(name)}=IN,OUT" for name in lacking)
        print_line(f"in dollars for a million tokens that are sent, and that come back, give {cure}", problem=True)
    budget: Budget = context.meta[PRICES]
    budget.priced(names - {"offline"})
    return budget.prices


def budget_of(cost: float | None, calls: int | None, plans: Iterable[Plan] | None = None) -> Budget | None:
    """Return the budget of `--max-cost`, `--max-calls` and `--price`, if one is given; *plans* as `check_prices`."""
    prices = check_prices(plans)
    return None if cost is None and calls is None and not prices else Budget(cost=cost, calls=calls, prices=prices)


def calls_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `PAYING` has *given*, as arguments of functions that ask a judge."""
    budget = budget_of(given["max_cost"], given["max_calls"])
    return {"store": store_of(given["store"]), "budget": budget, "concurrency": given["concurrency"] or CONCURRENCY}


NO_STORE = "is for a store; name one with --store FILE"


def store_of(file: Path | None, **how: Any) -> Store | None:
    """Return the store at *file*, open until the command ends; with `--replay` it is only read."""
    if file is None:
        refuse_given({"replay"}, NO_STORE)
        return None
    how |= {"mode": "replay"} if was_given("replay") else {}
    return click.get_current_context().with_resource(Store(file, **how))


def _set_color(ctx: click.Context, _: click.Parameter, when: str) -> None:
    """Set what `click.echo` and `rubric.commands.output` go by; None is up to the terminal."""
    ctx.color = {"auto": None, "always": True, "never": False}[when]


def _as_judge(ctx: click.Context, _: click.Parameter, models: Sequence[str]) -> JudgeLike | None:
    """Return several models as a panel, each with its settings; None is the environment's judge."""
    settings = ctx.meta.get(SETTINGS, {})
    for name in settings if not models else ():
        option = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{option} belongs to the judge of the run; name that too: --judge MODEL", ctx)
    if {*models} & {"mock", "dummy", "fake", "none", "test", "local", "stub"}:
        raise WrongLineError(f"--judge {models[0]}: the judge without a key is offline", {"judge": ("-j", "offline")})
    if number := next((model for model in models if model.isdecimal()), ""):  # of make's and pytest's `-j`
        others = [word for model in models if model != number for word in ("-j", model)]
        change = {"judge": others, "concurrency": ("--concurrency", number)}
        raise WrongLineError(f"--judge {number}: a number is no model; so many at once is --concurrency", change)
    from rubric.formats.model_names import VENDORS  # noqa: PLC0415 - a table that is read

    if len(models) == 2 and models[0] in VENDORS and "/" not in models[1]:  # noqa: PLR2004 - a vendor, and its model
        change = {"judge": ("-j", f"{VENDORS[models[0]]}/{models[1]}")}
        raise WrongLineError(f"--judge {models[0]}: the vendor and the model are one name", change)
    if apart := [model for model in models if "," in model]:
        judge = [word for model in models for each in model.split(",") for word in ("-j", each.strip())]
        raise WrongLineError(f"--judge {apart[0]}: each judge of a panel has an option of its own", {"judge": judge})
    names = [model_called(model) for model in models]
    judges = [_with_settings(name, settings) if settings else name for name in names]
    return judges if len(judges) > 1 else next(iter(judges), None)


def _with_settings(name: str, settings: Mapping[str, Any]) -> Judge:
    judge = judge_or_default(name)
    if not isinstance(judge, Judge):  # a registered one
        raise click.UsageError(
            f"--judge {name} is {judge.name}, and {', '.join(settings)} is of one judge; leave it out"
        )
    return evolve(judge, **settings)


def model_called(name: str, *, answers: bool = False) -> str:
    """Return LiteLLM's name of a model that judges, or *answers*, also where *name* is promptfoo's, `openai:gpt-5`."""
    refuse_function(name, answers=answers)
    if ":" not in name or "/" in name:
        return name
    from rubric.formats.model_names import VENDORS, litellm_name  # noqa: PLC0415 - few names have a colon

    return litellm_name(name) if name.partition(":")[0] in VENDORS else name


def _keep_setting(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        kept: Any = int(value) if value.isdecimal() else value
        ctx.meta.setdefault(SETTINGS, {})[option.name] = kept


SETTINGS = "rubric.judge"


def as_model(_: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return LiteLLM's name of the model that an option names; None if it is not given."""
    return model_called(name, answers=option.name == "target") if name else name


# -- the table ----------------------------------------------------------------------------------------------

TEXT, PATH = click.File(encoding="utf-8"), click.Path(path_type=Path)
TYPES: Mapping[str | None, Any] = {
    "count": click.IntRange(min=1),
    "deferred": click.Choice(get_args(Deferred)),
    "dollars": click.FloatRange(min=0),
    "file": click.Path(exists=True, dir_okay=False),
    "folder": click.Path(exists=True, file_okay=False),
    "format": Name(format_names, find_format),
    "name": click.Path(),
    "number": float,
    "path": PATH,
    "port": click.IntRange(0, 65_535),
    "reporter": Name(reporter_names, reporter),
    "risk": click.FloatRange(1e-6, 0.5),
    "share": Share(),
    "text": TEXT,
}
"""The types of options, by their names in `options.toml`."""

_CALLBACKS = {
    "color": _set_color,
    "embedder": _keep_setting,  # eager, as is the next one: the judge needs them
    "per_call": _keep_setting,
    "judge": _as_judge,
    "prices": _keep_prices,
    "target": as_model,
}

FROM, JUDGE = "source names base", "judge embedder per_call"
PAYING = "store replay max_cost max_calls prices concurrency"
"""The options of commands that ask a judge; `calls_of` makes arguments of them."""

GRADING = f"{JUDGE} threshold unsupported question reference context target hosts outputs servers {FROM} form"
TO_RUN = "deferred allow_scripts repeat runs fail_fast"
"""The options that `Suite.run` gets as they are: each has the name of its parameter."""

RUNNING = (
    "reporter outs max_cost prices baseline largest_drop risk min_pass_rate patterns excluded verbose by keep rerun "
    + TO_RUN
)
"""The options of `grade` that one candidate has no use for. A new one is a word here, and a field of `RunOptions`."""


def take(names: str, **own: Any) -> Callable[[Command], Command]:
    """Return what gives a command the options *names*, rows of the table; *own* are callbacks and types by name."""

    def add(command: Command) -> Command:
        for name in reversed(names.split()):
            command = _option(name, command.__name__, own.get(name, _CALLBACKS.get(name)))(command)
        return command

    return add


def _option(name: str, command: str, own: Any) -> Callable[[Command], Command]:
    rows = {key: row for group in groups().values() for key, row in group.items() if key.split()[0] == name}
    row = {**rows[next((key for key in rows if command in key.split()[1:]), name)]}
    words, kind = row.pop("option", f"--{name.replace('_', '-')}").split(), row.pop("type", None)
    kind = click.Choice(kind) if isinstance(kind, list) else TYPES.get(kind)
    called: dict[str, Any] = {"type": own} if isinstance(own, click.ParamType) else {"type": kind, "callback": own}
    return click.option(*words, name, **row, **called)


def names_in(names: str) -> frozenset[str]:
    """Return those of the options *names* that the functions of commands take."""
    rows = [pair for group in groups().values() for pair in group.items()]
    return frozenset(names.split()) & {key.split()[0] for key, row in rows if row.get("expose_value", True)}


def read_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the variables *names* of the environment; refuse one that it does not have."""
    for name in names:
        if name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable in the environment; set it")
    return {name: os.environ[name] for name in names}


def refuse_inputs(file: Path, read: Iterable[Path | None], option: str = "--out") -> None:
    """Refuse *option* if its *file* is one of those that are *read*."""
    if file.exists() and any(other is not None and other.exists() and other.samefile(file) for other in read):
        raise click.UsageError(f"{option} {file}: this file is read; name another one")


def refuse_given(names: Collection[str], why: str) -> None:
    """Refuse the options *names*, which would do nothing here, if the command line gives one."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and was_given(option.name):
            raise WrongLineError(f"{option.opts[0]} {why}", {"WITHOUT": [option.name]})


def read_stream(stream: IO[str] | None) -> str:
    """Return the text of the file of an option; empty if it is not given."""
    if stream is None:
        return ""
    try:
        return stream.read()
    except UnicodeDecodeError as problem:
        raise Refusal(f"{stream.name}: not UTF-8 text ({problem.reason} at byte {problem.start})") from problem
