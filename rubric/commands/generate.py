"""The command `generate`: criteria from a description, a task, good answers or examples; also for whole suites."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

from rubric import Anchor, DefinitionError, ModelError, dump, dumps
from rubric.commands import options, output
from rubric.commands.file_arguments import WrongLineError, kind_of
from rubric.commands.running import describe_plan
from rubric.embed import Options, counted, fields, run, shorten
from rubric.quality import Generation
from rubric.quality.drafting import FEWEST, MOST_OF_PAIRS, Material, plan_answers, plan_drafts
from rubric.quality.generating import collect, generate_all, generate_from
from rubric.quality.material import Gathered, gather
from rubric.quality.suite_drafts import Sheet, sheet
from rubric.suites.suite import fits

FAILED = 1

_UNTESTED = "; no criterion is tested by these answers: rows of chosen and rejected test it, as --pairs pairs.jsonl"

_MATERIAL = ("outcome", "task", "references", "sources", "pairs", "good", "bad")
_OF_ONE = (*_MATERIAL, "name", "form")
_OF_SUITES = ("patterns", "source", "names", "base")


@frozen
class Generating:
    """The options that say how criteria are generated."""

    judge: str | None
    writer: str | None
    store: Path | None
    max_cost: float | None
    max_calls: int | None
    concurrency: int
    plan: bool
    quiet: bool

    @property
    def options(self) -> Options:
        return Options(self.concurrency, self.store, options.budget_of(self.max_cost, self.max_calls))

    def print_plan(self, given: Iterable[Material], what: str, more: str = "") -> bool:
        """Print what the writing takes; return whether that is all that is wanted."""
        if self.plan or not self.quiet:
            planned = plan_drafts(given, self.writer or self.judge)
            output.print_line(f"{what}: {describe_plan(planned)}{more}", problem=not self.plan)
            options.check_prices([planned])
        return self.plan


def _check(context: click.Context) -> None:
    """Refuse a call without anything to draft from, and a file that is no suite: an outcome, or a rubric to write."""
    if not any(context.params[name] for name in ("files", *_MATERIAL)):
        message = "there is nothing to draft from; give --outcome TEXT, --task, --reference, --source, --pairs, --good"
        raise click.UsageError(f"{message} or --bad, or the FILE of a suite")
    if len(context.params["files"]) != 1:
        return
    (file,), outcome, out = (context.params[name] for name in ("files", "outcome", "out"))
    if not (Path(file).exists() or outcome or Path(file).suffix):
        raise WrongLineError("what replies should do is an option", {"": (), "outcome": ("--outcome", file)})
    if outcome and not Path(file).exists() and not out:
        raise WrongLineError("the file to write is an option", {"": (), "out": ("--out", file)})
    if outcome and kind_of(file) == "rubric":
        raise click.UsageError(f"{file} is a rubric, which no draft replaces; name another, such as --out draft.yaml")


@click.command(cls=output.Command, check=_check)
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@options.take(
    "outcome task references good bad sources pairs name out judge writer form store max_cost max_calls prices "
    f"concurrency plan patterns {options.FROM} quiet color",
    judge=options.as_model,
    writer=options.as_model,
)
def generate(files: Sequence[str], out: Path | None, form: str, **given: Any) -> None:
    """
    Draft criteria, for one rubric or for every case of suites.

    Without FILE, the criteria are made from --outcome, --task, --reference, --source, --good and --bad, and printed as
    a rubric. With --pairs, the judge grades the chosen and rejected answers, and only criteria that tell them apart
    stay.

    FILE... are suites of AgentV, of promptfoo or of ours. Each case without criteria gets its own, in the file, from
    what it says of a good answer, its task and its reference. All else in the file stays as it is. Read the criteria
    before you use them: they are a draft.

    Exit codes: 0 all was drafted, 1 the rubric ranks held-out pairs no better than chance, 2 a draft failed or the
    input is wrong, 130 interrupted.
    """
    is_word = files[:1] in (("rubrics",), ("rubric",)) and not Path(files[0]).exists()  # as in AgentV's command
    files = files[1:] if is_word else files
    generating = Generating(**fields.fields_in(Generating, given))
    try:
        if files:
            options.refuse_given(_OF_ONE, "is for one rubric; the cases of a suite have their own")
            _for_suites(files, out, given, generating)
        else:
            options.refuse_given(_OF_SUITES, "is for suites; name the FILE of one")
            _for_one(out, form, given, generating)
    except KeyboardInterrupt:
        cure = "" if generating.store else "; with --store FILE, the next run pays for no draft again"
        raise KeyboardInterrupt(f": nothing was written{cure}") from None


def _for_one(out: Path | None, form: str, given: dict[str, Any], generating: Generating) -> None:
    references, good, bad = ([*map(options.read_stream, given[each])] for each in ("references", "good", "bad"))
    sources = [*given["sources"], *(Anchor(text, 1) for text in good), *(Anchor(text, 0) for text in bad)]
    name, texts = given["name"], {"input": given["task"], "references": references, "name": given["name"]}
    one = gather(given["outcome"] or None, sources, given["pairs"], **texts)
    if out is not None and out.exists():
        raise output.Refusal(f"--out {out}: this file exists; name another one, since a draft replaces no rubric")
    if generating.print_plan([one.material], name or "rubric", _grading(one, generating)):
        return
    try:
        made = run(generate_from(one, generating.judge, generating.writer, generating.options))
    except ModelError as error:
        raise output.Refusal(f"nothing was drafted: {error.failure}") from error
    _print_one(made, out, form, quiet=generating.quiet)
    if made.ok is False:
        sys.exit(FAILED)


def _grading(one: Gathered, generating: Generating) -> str:
    """Describe the calls that grade the answers of pairs; "" without pairs, or where the output is quiet."""
    if not one.pairs or (generating.quiet and not generating.plan):
        return _UNTESTED if not one.pairs and {0, 1} <= {each.score for each in one.material.examples} else ""
    calls = describe_plan(plan_answers(one.answers, generating.judge))
    return f"; then {len(one.answers):,} answers are graded by {FEWEST} to {MOST_OF_PAIRS} criteria: {calls}"


def _print_one(made: Generation, out: Path | None, form: str, *, quiet: bool) -> None:
    """Write the rubric to *out* or standard output; what is known of it goes to standard error, unless asked for."""
    if form != "yaml":
        output.print_result(made, form, quiet=quiet)
    elif not quiet:
        output.print_markdown(made._repr_markdown_(), problem=True)
    if made.rubric is not None and out is not None:
        dump(made.rubric, out)
    elif made.rubric is not None and form == "yaml":
        output.print_text(dumps(made.rubric))


def _for_suites(files: Sequence[str], out: Path | None, given: dict[str, Any], generating: Generating) -> None:
    if out is not None and len(files) > 1:
        raise click.UsageError(f"--out {out} is for one file, and {len(files)} are given; give one, or leave it out")
    reading = {"base": given["base"], "environ": options.read_environment(given["names"])}
    sheets = [sheet(file, given["source"], **reading) for file in files]
    patterns = given["patterns"]
    slots = [[slot for slot in one.slots if fits(patterns or ("*",), slot.id, slot.tags)] for one in sheets]
    wanted = [evolve(one, slots=tuple(some)) for one, some in zip(sheets, slots, strict=True)]
    if patterns and not any(slots):
        patterns = ", ".join(map(repr, patterns))
        raise DefinitionError("--filter", f"no case without criteria fits {patterns}")
    drafted = [_draft_into(one, out, generating, reading) for one in wanted]
    if not all(drafted):
        sys.exit(output.REFUSED)


def _draft_into(one: Sheet, out: Path | None, generating: Generating, reading: dict[str, Any]) -> bool:
    """Generate the criteria of a suite and write them; return whether all were made."""
    for other in one.elsewhere:
        output.print_line(f"{one.path}: cases in {other} are left out; name that file", problem=True)
    if not one.slots:
        output.print_line(f"{one.path}: no case lacks criteria")
        return True
    if generating.print_plan((slot.material for slot in one.slots), f"{one.path}: {counted(len(one.slots), 'case')}"):
        return True
    with output.progress(len(one.slots), "drafts", quiet=generating.quiet) as advance:
        drafts = run(generate_all(one.slots, generating.writer or generating.judge, generating.options, advance))
    made = collect(drafts, one.kept, None, one)
    if made.rubrics:
        made.save(out, **reading)
    kept = f", {counted(len(one.kept), 'case')} kept as they are" if one.kept else ""
    output.print_line(f"{out or one.path}: criteria for {counted(len(made.rubrics), 'case')}{kept}")
    for id_, each in made.made.items():
        for dropped in each.dropped:
            output.print_line(f"{one.path}: {id_}: {dropped.id} is left out: {dropped.why}", problem=True)
    for said, times in Counter(map(str, made.failures.values())).items():
        ids = shorten(", ".join(id_ for id_, why in made.failures.items() if str(why) == said), 200)
        output.print_line(f"{one.path}: nothing was drafted for {counted(times, 'case')} ({ids}): {said}", problem=True)
    return not made.failures
