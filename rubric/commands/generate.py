"""The command `generate`: criteria from a description, a task, good answers or examples; also for whole suites."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve, fields, frozen
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from rubric.commands.options import (
    A_COUNT,
    COLOR,
    FILTER,
    FROM,
    PATH,
    QUIET,
    STORE,
    TEXT,
    declared,
    read_stream,
    refuse_folder,
    refuse_given,
)
from rubric.commands.output import INTERRUPTED, REFUSED, Command, Refusal, console, print_line, print_text
from rubric.commands.running import counted, projected
from rubric.engine.budget import Budget
from rubric.engine.drafting import Material, draft_all, material, plan_drafts
from rubric.engine.pipeline import Options
from rubric.errors import DefinitionError
from rubric.formats.drafts import Sheet, sheet
from rubric.formats.files import write_text
from rubric.formats.rubrics import dump, dumps
from rubric.internals import background_loop
from rubric.internals.text import shorten
from rubric.suites.suite import fits
from rubric.values.criteria import Anchor
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric

WORD = "rubrics"
"""May come before the files of suites, as in AgentV's `generate rubrics FILE`."""

_OF_ONE = ("outcome", "task", "references", "good", "bad", "name")
_OF_SUITES = ("patterns", "source", "names", "base")


@frozen
class Drafting:
    """The options that say how drafts are made."""

    judge: str | None
    store: Path | None
    max_cost: float | None
    max_calls: int | None
    concurrency: int
    plan: bool
    quiet: bool

    def drafts(self, given: dict[str, Material], what: str) -> dict[str, Rubric | Failure] | None:
        """Return a draft or a failure for each material; None if this is only a plan."""
        if self.plan or not self.quiet:
            planned = plan_drafts(given.values(), self.judge)
            print_line(f"{what}: {projected(planned)}", problem=not self.plan)
        if self.plan:
            return None
        is_capped = self.max_cost is not None or self.max_calls is not None
        budget = Budget(cost=self.max_cost, calls=self.max_calls) if is_capped else None
        options = Options(self.concurrency, self.store, budget)
        is_shown = sys.stderr.isatty() and not self.quiet
        columns = (MofNCompleteColumn(), "drafts", TimeElapsedColumn())
        with Progress(*columns, console=console(problem=True), transient=True, disable=not is_shown) as progress:
            task = progress.add_task("", total=len(given))
            made = background_loop.run(draft_all(given, self.judge, options, lambda: progress.advance(task)))
        return dict(zip(given, made, strict=True))


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@click.option("--outcome", default="", metavar="TEXT", help="What a good answer does.")
@click.option("--task", default="", metavar="TEXT", help="What is to be answered.")
@click.option("--reference", "references", type=TEXT, multiple=True, metavar="FILE", help="Read a good answer.")
@click.option("--good", type=TEXT, multiple=True, metavar="FILE", help="Read an example that should pass.")
@click.option("--bad", type=TEXT, multiple=True, metavar="FILE", help="Read an example that should fail.")
@click.option("--name", default="", metavar="TEXT", help="Name the rubric.")
@click.option("--out", type=PATH, metavar="FILE", help="Write here, not to standard output or into the suite's file.")
@click.option("--judge", "-j", metavar="MODEL", help="Have this model write.")
@STORE
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="Spend no more.")
@click.option("--max-calls", type=A_COUNT, metavar="N", help="Pay for no more requests.")
@click.option("--concurrency", type=A_COUNT, default=8, metavar="N", help="Keep so many drafts in flight.")
@click.option("--plan", is_flag=True, help="Count calls and cost; send nothing.")
@FILTER
@FROM
@QUIET
@COLOR
def generate(files: Sequence[str], out: Path | None, **given: Any) -> None:
    """
    Draft criteria, for one rubric or for every case of suites.

    Without FILE, the criteria are made from --outcome, --task, --reference, --good and --bad, and printed as a rubric.

    FILE... are suites of AgentV, of promptfoo or of ours. Each case without criteria gets its own, in the file, from
    what it says of a good answer, its task and its reference. All else in the file stays as it is. Read the criteria
    before you use them: they are a draft.

    Exit codes: 0 all was drafted, 2 a draft failed or the input is wrong, 130 interrupted.
    """
    files = files[1:] if files[:1] == (WORD,) and not Path(WORD).exists() else files
    drafting = Drafting(**{each.name: given[each.name] for each in fields(Drafting)})
    if out is not None:
        refuse_folder(out)
    try:
        if files:
            refuse_given(_OF_ONE, "is for one rubric; the cases of a suite have their own")
            _for_suites(files, out, given, drafting)
        else:
            refuse_given(_OF_SUITES, "is for suites; name the FILE of one")
            _for_one(out, given, drafting)
    except KeyboardInterrupt:
        cure = "" if drafting.store else "; with --store FILE, the next run pays for no draft again"
        print_line(f"interrupted: nothing was written{cure}", problem=True)
        raise SystemExit(INTERRUPTED) from None


def _for_one(out: Path | None, given: dict[str, Any], drafting: Drafting) -> None:
    references, good, bad = ([read_stream(file) for file in given[name]] for name in ("references", "good", "bad"))
    examples = [*(Anchor(text, 1) for text in good), *(Anchor(text, 0) for text in bad)]
    try:
        one = material(given["outcome"], given["task"], references, examples)
    except DefinitionError as problem:
        if problem.field == "expected_outcome" and not given["outcome"]:
            message = "there is nothing to draft from; give --outcome TEXT, --task, --reference, --good or --bad"
            raise click.UsageError(f"{message}, or the FILE of a suite") from problem
        raise
    if out is not None and out.exists():
        raise Refusal(f"--out {out}: this file exists; name another one, since a draft replaces no rubric")
    name = given["name"]
    made = drafting.drafts({name: one}, name or "rubric")
    if made is None:
        return
    draft = made[name]
    if isinstance(draft, Failure):
        raise Refusal(f"nothing was drafted: {draft}")
    if out is None:
        print_text(dumps(draft))
    else:
        dump(draft, out)


def _for_suites(files: Sequence[str], out: Path | None, given: dict[str, Any], drafting: Drafting) -> None:
    if out is not None and len(files) > 1:
        raise click.UsageError(f"--out {out} is for one file, and {len(files)} are given; give one, or leave it out")
    options = {"base": given["base"], "environ": declared(given["names"])}
    sheets = [sheet(file, given["source"], **options) for file in files]
    wanted = [_wanted(one, given["patterns"]) for one in sheets]
    if given["patterns"] and not any(one.slots for one in wanted):
        patterns = ", ".join(map(repr, given["patterns"]))
        raise DefinitionError("--filter", f"no case without criteria fits {patterns}")
    failed = False
    for one in wanted:
        failed = not _draft_into(one, out, drafting, options) or failed
    if failed:
        sys.exit(REFUSED)


def _wanted(one: Sheet, patterns: Sequence[str]) -> Sheet:
    slots = [slot for slot in one.slots if not patterns or fits(patterns, slot.id, slot.tags)]
    return evolve(one, slots=tuple(slots))


def _draft_into(one: Sheet, out: Path | None, drafting: Drafting, options: dict[str, Any]) -> bool:
    """Draft the criteria of a suite and write them; return whether every draft was made."""
    for other in one.elsewhere:
        print_line(f"{one.path}: cases in {other} are left out; name that file", problem=True)
    if not one.slots:
        print_line(f"{one.path}: no case lacks criteria")
        return True
    made = drafting.drafts(
        {slot.id: slot.material for slot in one.slots}, f"{one.path}: {counted(len(one.slots), 'case')}"
    )
    if made is None:
        return True
    drafts = {id_: draft for id_, draft in made.items() if isinstance(draft, Rubric)}
    failures = [draft for draft in made.values() if isinstance(draft, Failure)]
    if drafts:
        text = one.filled(drafts)
        one.check(text, **options)
        write_text(out or one.path, text)
    kept = f", {counted(len(one.kept), 'case')} kept as they are" if one.kept else ""
    print_line(f"{out or one.path}: criteria for {counted(len(drafts), 'case')}{kept}")
    for said, times in Counter(map(str, failures)).items():
        ids = shorten(", ".join(id_ for id_, draft in made.items() if str(draft) == said), 200)
        print_line(f"{one.path}: nothing was drafted for {counted(times, 'case')} ({ids}): {said}", problem=True)
    return not failures
