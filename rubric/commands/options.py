"""The options that several commands share, and checks of options."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from rubric import Budget, DefinitionError, Judge
from rubric.commands.file_arguments import WrongLineError
from rubric.commands.messages import was_given
from rubric.commands.output import Refusal, print_line
from rubric.embed import CONCURRENCY, JudgeLike, fields, judge_or_default
from rubric.engine import Plan
from rubric.formats.registry import find_format, format_names
from rubric.suites.report import Deferred
from rubric.suites.reporters.registry import reporter, reporter_names

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*given: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return one decorator that adds all options *given*."""

    def add(command: Command) -> Command:
        for option in reversed(given):
            command = option(command)
        return command

    return add


def names_in(added: Callable[[Any], Any]) -> frozenset[str]:
    """Return the names of the options that a decorator adds, as the functions of commands take them."""
    found: list[click.Parameter] = getattr(added(lambda: None), "__click_params__", [])
    return frozenset(option.name for option in found if option.name is not None and option.expose_value)


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


TEXT = click.File(encoding="utf-8")
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="Print for people, or for machines."
)


FROM = options(
    click.option("--from", "source", type=Name(format_names, find_format), help="Read the files as this format."),
    click.option("--env", "names", multiple=True, metavar="NAME", help="Let {{ env.NAME }} show this variable."),
    click.option(
        "--base",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Let files include from this folder instead of their own.",
    ),
)


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


PATH, FILE = click.Path(path_type=Path), click.Path(exists=True, dir_okay=False, path_type=Path)
STORE = click.option("--store", type=PATH, metavar="FILE", help="Keep every reply in FILE, and answer from it.")


A_COUNT, RISK = click.IntRange(min=1), click.FloatRange(1e-6, 0.5)
CONCURRENT = click.option("--concurrency", type=A_COUNT, metavar="N", help="Keep N cases (or calls) in flight.")
MAX_COST = click.option("--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="Spend no more.")
MAX_CALLS = click.option("--max-calls", type=A_COUNT, metavar="N", help="Pay for no more requests.")


def _keep_prices(ctx: click.Context, _: click.Parameter, given: Sequence[str]) -> None:
    """Let the prices of `--price` hold until the command ends."""
    try:
        parts = [(model_called(model), pair.split(",")) for model, _, pair in (text.rpartition("=") for text in given)]
        prices = {model: (float(there), float(back)) for model, (there, back) in parts}
        budget = ctx.meta[PRICES] = Budget(prices=prices)
    except ValueError:  # also of one below 0
        meaning = "in dollars for a million tokens that are sent, and that come back"
        raise click.BadParameter(f"expected MODEL=IN,OUT {meaning}: openai/my-7b=0.10,0.40") from None
    if len(prices) < len(given):
        raise click.BadParameter("a model is given twice; give it once")
    ctx.with_resource(budget.priced(prices))


PRICES = "rubric.prices"
PRICE = click.option(
    "--price",
    "prices",
    multiple=True,
    expose_value=False,
    callback=_keep_prices,
    metavar="MODEL=IN,OUT",
    help="The price of an unlisted model: dollars for a million tokens sent, and back; repeatable.",
)
PAYING = options(STORE, MAX_COST, MAX_CALLS, PRICE, CONCURRENT)
"""The options of commands that ask a judge; `calls_of` makes arguments of them."""


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
    return {"store": given["store"], "budget": budget, "concurrency": given["concurrency"] or CONCURRENCY}


COLUMN, LABEL_COLUMN, BOTH_COLUMNS, PAIR_COLUMN = (
    click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN", help=f"Read a field {about}.")
    for about in (
        "from this column, such as output=answer; question= skips that column; variables=topic keeps it",
        "of the labels from this column, such as value=verdict",
        "of the labels or the candidates from this column, such as value=verdict, output=answer",
        "of a pair from this column, such as a=old, b=new, input=question; question= skips that column",
    )
)
FILTER = click.option(
    "--filter",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Take only cases whose id has PATTERN in it, or that have this tag; with * or ?, all of it is compared.",
)


def _set_color(ctx: click.Context, _: click.Parameter, when: str) -> None:
    """Set what `click.echo` and `rubric.commands.output` go by; None is up to the terminal."""
    ctx.color = {"auto": None, "always": True, "never": False}[when]


COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    callback=_set_color,
    expose_value=False,
    is_eager=True,
    help="Use colours: by default on a terminal alone.",
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print the totals alone.")
VERBOSE = click.option("--verbose", "-v", is_flag=True, help="Print every criterion, its text, reason and evidence.")

ALLOW_SCRIPTS = click.option(
    "--allow-scripts", is_flag=True, help="Run the programs that a suite names: graders, prompts, tests, providers."
)

BY = click.option("--by", metavar="KEY", help="Show the figures of each group, too: of a column, tag, key, judge, ...")
KEEP = click.option(
    "--keep/--no-keep", default=True, help="Keep the run below .rubric/runs, for view and compare; 50 are kept."
)
RERUN = click.option(
    "--rerun", type=click.Choice(["ungraded", "failed"]), help="Ask again for these alone of the last kept run."
)

TO_RUN = options(
    click.option(
        "--deferred", type=click.Choice(get_args(Deferred)), default="error", help="Count a deferred case as this."
    ),
    ALLOW_SCRIPTS,
    click.option("--repeat", type=A_COUNT, default=1, metavar="N", help="Grade N times; show how often verdicts flip."),
    click.option("--runs", type=A_COUNT, metavar="N", help="Let the target answer N times; show pass@k and pass^k."),
    click.option(
        "--fail-fast",
        is_flag=True,
        help="Start no case after the first that fails or is not graded; those in flight end.",
    ),
)
"""The options that `Suite.run` gets as they are: each has the name of its parameter."""

MIN_PASS_RATE = click.option("--min-pass-rate", type=Share(), metavar="R", help="Fail only if a smaller share passes.")

RUNNING = options(
    click.option("--reporter", type=Name(reporter_names, reporter), help="Write a suite's report in this form."),
    click.option(
        "--out", "outs", type=PATH, multiple=True, metavar="FILE", help="Write it here, by ending; repeatable."
    ),
    MAX_COST,
    PRICE,
    click.option("--baseline", type=click.Path(), metavar="FILE", help="Compare with an earlier report (json)."),
    click.option("--largest-drop", type=Share(), metavar="D", help="Fail if a score falls by more."),
    click.option("--risk", type=RISK, metavar="R", help="Let a drop fail only beyond chance, at this rate of alarms."),
    MIN_PASS_RATE,
    FILTER,
    VERBOSE,
    BY,
    KEEP,
    RERUN,
    TO_RUN,
)
"""The options of `grade` that one candidate has no use for. A new one is a line here, and a field of `RunOptions`."""


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
    if apart := [model for model in models if "," in model]:
        judge = [word for model in models for each in model.split(",") for word in ("-j", each.strip())]
        raise WrongLineError(f"--judge {apart[0]}: each judge of a panel has an option of its own", {"judge": judge})
    names = [model_called(model) for model in models]
    judges = [Judge(name, **settings) if settings else name for name in names]
    return judges if len(judges) > 1 else next(iter(judges), None)


def model_called(name: str) -> str:
    """Return LiteLLM's name of a model, also where *name* is promptfoo's, such as `openai:gpt-5-mini`."""
    found = re.fullmatch(r"([\w/.-]*?)(\w+)(\.py)?(?:::?(\w+))?", name)
    if found and (found[3] or (found[4] and Path(f"{found[1]}{found[2]}.py").is_file())):
        function = found[4] or "judge"
        code = f"from {found[2]} import {function}; from rubric import grade, load"
        code += f"; print(grade(open('reply.txt').read(), load('rubric.yaml'), {function}))"
        cure = f'such as python -c "{code}"; here it is a model, such as openai/gpt-5.6'
        raise click.UsageError(f"{name}: a function is given in Python alone, {cure}")
    if ":" not in name or "/" in name:
        return name
    from rubric.formats.model_names import VENDORS, litellm_name  # noqa: PLC0415 - few names have a colon

    return litellm_name(name) if name.partition(":")[0] in VENDORS else name


def _keep_setting(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        kept: Any = int(value) if value.isdecimal() else value
        ctx.meta.setdefault(SETTINGS, {})[option.name] = kept


SETTINGS = "rubric.judge"
JUDGE = options(
    click.option(
        "--judge",
        "-j",
        multiple=True,
        callback=_as_judge,
        metavar="MODEL",
        help="Judge by this model; several: a panel.",
    ),
    click.option(
        "--embedder",
        is_eager=True,  # the judge needs it
        expose_value=False,
        callback=_keep_setting,
        metavar="MODEL",
        help="Let this model make the embeddings for checks of similarity.",
    ),
    click.option(
        "--per-call",
        is_eager=True,
        expose_value=False,
        callback=_keep_setting,
        metavar="N|all",
        help="Ask for N criteria in one request: fewer requests, and verdicts that may sway each other.",
    ),
)
THRESHOLD = click.option("--threshold", "-t", type=Share(), help="Pass from this score in 0..1, not the rubric's.")

OUTPUTS = click.option(
    "--outputs",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Grade the replies in FILE, by the ids, variables or order of cases.",
)


def as_model(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    """Return LiteLLM's name of the model that an option names; None if it is not given."""
    return model_called(name) if name else name


GRADING = options(
    JUDGE,
    THRESHOLD,
    click.option(
        "--unsupported",
        type=click.Choice(["ungraded", "skip", "fail"]),
        help="Count graders that this library lacks as ungraded (by default), skip them, or fail them.",
    ),
    click.option("--input", "question", type=TEXT, metavar="FILE", help="Read what the candidate answers."),
    click.option("--reference", type=TEXT, metavar="FILE", help="Read a reference answer."),
    click.option("--context", type=TEXT, metavar="FILE", help="Read material on which the candidate should rest."),
    click.option(
        "--target",
        callback=as_model,
        metavar="MODEL",
        help="Answer cases without a response with this model; 'providers', those that the file names, as by default; "
        "'none' asks nothing.",
    ),
    click.option(
        "--allow-host", "hosts", multiple=True, metavar="HOST", help="Let --target providers ask this address."
    ),
    OUTPUTS,
    click.option(
        "--server",
        "servers",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Give the target an MCP server: a command, or an address.",
    ),
    FROM,
    FORMAT,
)


def read_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the variables *names* of the environment; refuse one that it does not have."""
    for name in names:
        if name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable in the environment; set it")
    return {name: os.environ[name] for name in names}


def refuse_folder(out: Path | None) -> None:
    """Refuse `--out` if it names a folder."""
    if out is not None and out.is_dir():
        raise click.UsageError(f"--out {out} is a folder; name a file in it")


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
