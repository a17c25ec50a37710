"""A suite: cases that are graded together, as files of several systems hold them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, get_args

from attrs import evolve, field, frozen
from attrs.converters import optional

from rubric import DefinitionError, Judge
from rubric.embed import FrozenMap, Listed, counted, fields, guided, shorten
from rubric.errors import Problem
from rubric.suites.cases import Case, cells
from rubric.values import AnyJudge, as_judge

if TYPE_CHECKING:
    from os import PathLike

    from attrs import Attribute

    from rubric import Budget
    from rubric.embed import JudgeLike, Limiter, StoreLike
    from rubric.suites.missing_judges import Otherwise
    from rubric.suites.report import Deferred, Report
    from rubric.suites.runner import OnRow
    from rubric.suites.suite_plan import SuitePlan
    from rubric.suites.targets.base import TargetLike


def _as_cases(value: Iterable[Case]) -> tuple[Case, ...]:
    given = fields.as_tuple("cases", value, object, "cases")
    for index, one in enumerate(given):
        if isinstance(one, Mapping):
            rubric = "" if "rubric" in one else "rubric=rubric, "  # which fits rows with an id as well
            row = f"Case({rubric}**row) for row in rows" if "id" in one else ""
            row = row or f"Case(f'{{n}}', {rubric}**row) for n, row in enumerate(rows)"
            raise fields.refuse(f"cases[{index}]", one, f"a Case; rows become cases by [{row}]")
        if not isinstance(one, Case):
            raise fields.refuse(f"cases[{index}]", one, "a Case, such as Case('refund', rubric, output='...')")
    return cast("tuple[Case, ...]", given)


def _unique(_: Any, __: Attribute[Any], cases: tuple[Case, ...]) -> None:
    seen: set[str] = set()
    for index, case in enumerate(cases):
        if case.id in seen:
            raise DefinitionError(f"cases[{index}].id", f"the id {case.id!r} is used twice; rename one of them")
        seen.add(case.id)


def _apart(given: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(each for one in given for each in (one if isinstance(one, list | tuple) else [one]))


def is_wanted(id: str, tags: Iterable[str], patterns: Collection[str], excluded: Collection[str]) -> bool:
    """True if a case fits one of *patterns*, or there are none, and none of the *excluded* ones."""
    return (not patterns or fits(patterns, id, tags)) and not fits(excluded, id, tags)


def fits(patterns: Iterable[str], id: str, tags: Iterable[str] = ()) -> bool:
    """True if one of *patterns* fits the *id* or one of the *tags* of a case, see `Suite.filter`."""
    names, name = [tag.lower() for tag in (id, *tags)], id.lower()
    for pattern in map(str.lower, patterns):
        if "*" not in pattern and "?" not in pattern:
            if pattern in name or pattern in names:
                return True
            continue
        glob = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
        if any(re.fullmatch(glob, each, re.DOTALL) for each in names):
            return True
    return False


@guided
@frozen(repr=False)
class Suite(fields.Shown, Listed[Case]):
    """
    Cases that are graded together.

    Args:
        name: For people.
        cases: In order, with unique ids.
        judge: The judge of cases for which neither the caller nor the case names one.
        format: The format of the file that it was loaded from: `native`, `promptfoo`, `agentv-2`, ...
        source: The file.
        warnings: Parts of the file that this library does not support, each with its place.
        metadata: Free data.
    """

    _kind = "case"
    _items = "cases"

    name: str = field(default="", validator=fields.string)
    cases: tuple[Case, ...] = field(default=(), converter=_as_cases, validator=_unique)
    judge: AnyJudge | None = field(default=None, kw_only=True, converter=optional(as_judge))
    format: str = field(default="native", kw_only=True)
    source: str = field(default="", kw_only=True, eq=False)
    warnings: tuple[Problem, ...] = field(default=(), kw_only=True, eq=False)
    metadata: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=fields.frozen, validator=fields.mapping)

    def __repr__(self) -> str:
        return f"<Suite {self.name!r}: {counted(len(self.cases), 'case')}, {self.format}>"

    def only(self, *ids: str | list[str]) -> Suite:
        """Return the suite with only the cases *ids*, one by one or in a list."""
        return evolve(self, cases=[self[id_] for id_ in _apart(ids)])

    def filter(self, *patterns: str | list[str]) -> Suite:
        """
        Return the suite with only the cases whose id or one of whose tags fits one of the *patterns*.

        A pattern with `*` or `?` is compared with all of an id or a tag, any other with a part of an id or a whole tag;
        capital letters make no difference.

        Raises:
            DefinitionError: No case fits.
        """
        wanted = _apart(patterns)
        if others := [each for each in wanted if not isinstance(each, str)]:
            cure = "by a function, write attrs.evolve(suite, cases=[case for case in suite if keep(case)])"
            raise DefinitionError("filter", f"expected texts, got {others[0]!r}; {cure}")
        kept = [case for case in self.cases if fits(wanted, case.id, case.tags)]
        if not kept:
            known = shorten(", ".join(case.id for case in self.cases), 300)
            raise DefinitionError("filter", f"no case fits {', '.join(map(repr, wanted))}; the cases are {known}")
        return evolve(self, cases=kept)

    def without(self, *patterns: str | list[str]) -> Suite:
        """
        Return the suite without the cases whose id or one of whose tags fits one of the *patterns*, as of `filter`.

        Raises:
            DefinitionError: No case fits, or no other is left.
        """
        left_out = {case.id for case in self.filter(*patterns)}
        if not (kept := [case for case in self.cases if case.id not in left_out]):
            raise DefinitionError(
                "without", f"all cases fit {', '.join(map(repr, _apart(patterns)))}, so that none is left"
            )
        return evolve(self, cases=kept)

    def unsupported_as(self, otherwise: Otherwise, /) -> Suite:
        """
        Return the suite with graders that this library lacks skipped, failed or (as by default) ungraded.

        Skipping is your word, not the file's: a skipped grader does not count, `coverage` is the share of the weight
        that was judged, and the row of its case warns of it. A case of which no grader would be left stays ungraded.

        Args:
            otherwise: `skip`, `fail` (such a grader scores 0) or `ungraded`.
        """
        from rubric.suites.missing_judges import Otherwise, treat_unsupported  # noqa: PLC0415 - as in run

        fields.check_name("unsupported", otherwise, get_args(Otherwise))
        cases = [evolve(case, rubric=treat_unsupported(case.rubric, otherwise)) for case in self.cases]
        return evolve(self, cases=cases)

    def answered(self, replies: str | PathLike[str] | Iterable[Any], /) -> Suite:
        """
        Return the suite with *replies* that were made elsewhere as the responses of its cases.

        A reply belongs to the case with its id; without an id, to the one with its variables (and its provider and
        prompt, in a matrix); with neither, to the one in its place. Several replies to one case are its runs.
        `warnings` lists the replies without a case and the cases without a reply.

        Args:
            replies: A file of promptfoo's or AgentV's results, or any JSONL, JSON or CSV file of texts or objects with
                `output` (and `id`, `vars`, `tool_calls`); or these texts and objects themselves.

        Raises:
            DefinitionError: None of them belongs to a case, or they have neither ids nor variables, and are not as many
                as the cases.
        """
        from rubric.suites.outputs import answer_cases  # noqa: PLC0415 - as in run

        return answer_cases(self, replies)

    def matrix(self, *, judges: Iterable[Any] = (), prompts: Iterable[str] = ()) -> Suite:
        """
        Return the suite with each case once for each of the *judges* and each of the *prompts*, to compare them.

        Args:
            judges: Judges, juries, panels or model names; a cell keeps its own, whatever judge `run` gets.
            prompts: The inputs of the cells, in place of the case's: `{{ name }}` shows a variable of the case, and
                `{{ input }}` its own input.

        Raises:
            DefinitionError: Two judges share a name, and so would the ids of their cells; or a slot names no variable.
        """
        given: tuple[Any, ...] = fields.as_tuple("judges", judges, object, "judges")
        named = [(judge.name if isinstance(judge, Judge) else repr(judge), judge) for judge in map(as_judge, given)]
        texts = fields.as_tuple("prompts", prompts, str, "texts")
        if not named and not texts:
            raise DefinitionError("matrix", "expected judges, prompts or both, got neither")
        return evolve(self, cases=[cell for case in self.cases for cell in cells(case, named, texts)])

    @guided
    async def arun(
        self,
        judge: JudgeLike | None = None,
        *,
        target: TargetLike | None = None,
        deferred: Deferred = "error",
        allow_scripts: bool = False,
        concurrency: int = 8,
        budget: Budget | None = None,
        store: StoreLike | None = None,
        limits: Limiter | None = None,
        repeat: int = 1,
        runs: int | None = None,
        fail_fast: bool = False,
        on_row: OnRow | None = None,
    ) -> Report:
        """Grade every case like `run`, without blocking the event loop."""
        given: dict[str, Any] = {name: value for name, value in locals().items() if name != "self"}
        from rubric.suites.runner import run_suite  # noqa: PLC0415 - a suite that is only loaded needs none of this

        return await run_suite(self, **given)

    @guided(waits_for=arun)
    def run(self, *args: Any, **named: Any) -> Any:
        """
        Grade every case and return the report: a row for each, in order.

        Like `grade`, it may be called anywhere, also inside a running event loop. A case that cannot be judged does not
        stop the others: its row is `ungraded`, or `deferred` if it has no candidate or no judge.

        Args:
            judge: Grades every case, in place of all judges that the suite names; only the cells of a matrix over
                judges keep theirs. Left out: the case's judge, the suite's, or the one that the environment has a key
                for.
            target: Makes the candidates of cases without a fixed response: a function (sync or async) from the `Case`
                to a text or a `Candidate`, the name of a model, or a `Target`. `"providers"` asks the models that the
                file itself names.
            deferred: What a deferred case counts as in the report: `pass`, `fail` or `error`.
            allow_scripts: Whether to run the programs that the suite names as graders. They run with your rights, so
                nothing runs them unless you say so: a suite is a file, and files come from others.
            concurrency: How many cases are in flight at once.
            budget: What the judges, and a target that is a model, may take, never overspent: a `Budget`, which suites
                may share. A case whose planned cost does not fit into the rest is ungraded, and so is one whose retries
                and re-asks do not fit. What a function reports is charged; once a limit is reached, it is not called.
            store: A `Store`, or the path of one: keeps every reply of the judges, and answers from what it has.
            limits: The rate limits of the judges' models: `Limits`.
            repeat: How many times each candidate is graded, each a row of its own: `flips(report)` says how often the
                verdicts differ. A target is asked once for all of them.
            runs: How many candidates the target makes for each case, each a row of its own: `pass_rates(report)` has
                pass@k and pass^k. None: as many as the case says, usually one.
            fail_fast: Whether no further case starts once one failed or was not graded. The report has no rows for
                the cases that were not run.
            on_row: Called with each row as soon as its case is finished.

        Raises:
            DefinitionError: An argument that no run can have, such as a budget for a judge without a known price.
        """
        return self.arun(*args, **named)

    def expanded(self, target: TargetLike | None = None, runs: int | None = None) -> Suite:
        """
        Return the suite as `run` grades it: a case for each provider that *target* asks, and for each of the *runs*.

        Raises:
            DefinitionError: There are to be several runs, and no case that a target answers.
        """
        from rubric.suites.histories import settle  # noqa: PLC0415 - as in run
        from rubric.suites.repetition import several  # noqa: PLC0415 - as in run
        from rubric.suites.targets.providers import as_target, over_providers  # noqa: PLC0415 - as in run

        if runs is not None:
            fields.check_count("runs", runs)
            if runs > 1 and (target is None or all(case.output is not None for case in self.cases)):
                message = "there is no case that a target answers; to grade responses several times, use repeat"
                raise DefinitionError("runs", message)
        suite = self if target is None else over_providers(self, as_target(target))
        cases = suite.cases if target is None else [run for case in suite.cases for run in several(case, runs)]
        return evolve(suite, cases=settle(cases))

    def plan(
        self,
        judge: JudgeLike | None = None,
        *,
        target: TargetLike | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
    ) -> SuitePlan:
        """
        Plan a run without sending anything: the source of each candidate, its judge, calls, tokens and cost.

        Args:
            judge: As for `run`.
            target: As for `run`. Its responses are planned with about 2,000 characters each.
            prices: Of models by their names, as for `plan`.

        Raises:
            DefinitionError: The price of a model that no case asks.
        """
        from rubric.suites.suite_plan import plan_suite  # noqa: PLC0415 - as in run

        by = None if judge is None else as_judge(judge)
        planned = plan_suite(self, by, target=target)
        if prices:
            from rubric import Budget  # noqa: PLC0415 - as in run

            with Budget(prices=prices).priced(ask.judge.name for ask in planned.total.asks):
                planned = plan_suite(self, by, target=target)
        return planned
