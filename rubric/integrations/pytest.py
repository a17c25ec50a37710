"""
A pytest plug-in: `assert_grade`, the fixture `rubric_judge`, and a summary of grades, calls and cost.

pytest loads it with every run, so it imports nothing of the engine before the first grade. docs/integrations/pytest.md
has its options.

A failing grade fails its test with a line a criterion. An ungraded one has a category of its own, `U`, an `<error>` in
JUnit's XML, and the exit status 1, since nothing is known of the candidate.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from rubric.embed import counted, guided

if TYPE_CHECKING:
    from rubric import Candidate, Grade, Rubric
    from rubric.embed import JudgeLike, Mapped
    from rubric.values import AnyJudge

_PROPERTY = "rubric"
_UNGRADED = ("rubric_ungraded", "true")
"""The property in JUnit's XML of a test with a candidate that could not be graded."""


class UngradedTest(AssertionError):  # noqa: N818 - pytest shows the name
    """The candidate of a test could not be graded."""


class _Run:
    """What the tests of this process share: the options, the open store, the budget, and the test that runs."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.item: pytest.Item | None = None

    @cached_property
    def options(self) -> dict[str, Any]:
        """What `evaluate` takes besides candidate, rubric and judge; a store is opened at the first grade."""
        from rubric import Budget, Store

        options: dict[str, Any] = {}
        store, replay = self.config.getoption("--rubric-store"), self.config.getoption("--rubric-replay")
        if replay is not None:
            options["store"] = Store(replay, mode="replay")
        elif store is not None:
            options["store"] = Store(store)
        if (most := self.config.getoption("--rubric-budget")) is not None:
            options["budget"] = Budget(cost=most)
        return options


_run: _Run | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rubric", "grading with rubrics")
    group.addoption("--rubric-judge", metavar="MODEL", help="the judge of tests that name none")
    group.addoption("--rubric-store", metavar="FILE", help="cache replies in this file")
    group.addoption("--rubric-replay", metavar="FILE", help="grade from this file alone, without a request")
    group.addoption("--rubric-budget", metavar="USD", type=_dollars, help="the most that each process may spend")


def _dollars(said: str) -> float:
    try:
        amount = float(said)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"expected dollars from 0, found {said!r}")
    return amount


def pytest_configure(config: pytest.Config) -> None:
    """Remember the options, and refuse wrong ones before the first test."""
    global _run  # noqa: PLW0603 - assert_grade is a plain function, which pytest hands nothing
    store, replay = config.getoption("--rubric-store"), config.getoption("--rubric-replay")
    if store and replay:
        raise pytest.UsageError("--rubric-store and --rubric-replay exclude each other")
    for option, path in (("--rubric-store", store), ("--rubric-replay", replay)):
        if path == "":
            raise pytest.UsageError(f"{option}: expected the path of a file, found ''")
        if path is not None and Path(path).is_dir():
            raise pytest.UsageError(f"{option}: {path} is a folder, and a file in it was expected")
    if replay is not None and not Path(replay).is_file():
        raise pytest.UsageError(f"--rubric-replay: there is no file {replay}; --rubric-store {replay} records one")
    _run = _Run(config)


def pytest_unconfigure() -> None:
    """Close the store."""
    global _run  # noqa: PLW0603
    if _run is not None and "store" in (opened := vars(_run).get("options", {})):
        opened["store"].close()
    _run = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Remember which test runs, so that its grades are recorded with it."""
    if _run is not None:
        _run.item = item
    try:
        return (yield)
    finally:
        if _run is not None:
            _run.item = None


@pytest.fixture(scope="session")
def rubric_judge(request: pytest.FixtureRequest) -> AnyJudge:
    """The judge that `--rubric-judge` names; without it, the one that the environment has a key for."""
    return _default_judge(request.config.getoption("--rubric-judge"))


def _default_judge(named: str | None) -> AnyJudge:
    from rubric import NoJudgeError
    from rubric.embed import judge_or_default

    __tracebackhide__ = True
    try:
        return judge_or_default(named)
    except NoJudgeError as problem:
        raise pytest.UsageError(f"run pytest with --rubric-judge MODEL; {problem}") from None


@guided
def assert_grade(
    candidate: Candidate | str, rubric: Rubric | str, judge: JudgeLike | None = None, *, at_least: float | None = None
) -> Grade:
    """
    Grade *candidate* and fail the test unless it passes.

    Args:
        candidate: What is graded.
        rubric: A rubric, a free-form text, or the path of a file.
        judge: Who judges; None takes `--rubric-judge`.
        at_least: The score in 0..1 that suffices; None leaves the verdict to the rubric. Gates decide as well.

    Returns:
        The grade.

    Raises:
        AssertionError: It fails; the message has a line a criterion.
        UngradedTest: It could not be graded.
    """
    __tracebackhide__ = True
    from rubric import Grade, evaluate
    from rubric.embed import TOLERANCE, fields
    from rubric.integrations.mapping import mapped, rubric_of

    if at_least is not None:
        fields.check_number("at_least", at_least, 0, 1)
    named = _run.config.getoption("--rubric-judge") if _run is not None else None
    options = _run.options if _run is not None else {}
    by = judge if judge is not None else _default_judge(named)
    result = evaluate(candidate, rubric_of(rubric), by, **options)
    _record(mapped(result))
    if not isinstance(result, Grade):
        told, replay = result.explain(), _run.config.getoption("--rubric-replay") if _run is not None else None
        raise UngradedTest(
            told.replace("mode='read-write' (without --replay)", f"--rubric-store {replay}") if replay else told
        )
    gated = bool(result.gates) and not result.rubric.negate  # in a negated rubric a failed gate is welcome
    if result.passed if at_least is None else not gated and result.score >= at_least - TOLERANCE:
        return result
    least = "" if at_least is None else f", at least {at_least:g} expected"
    raise AssertionError(f"{result.verdict}, score {result.score:.3f}{least}\n{result.explain()}")


def _record(result: Mapped) -> None:
    if _run is None or _run.item is None:
        return
    usage = result.metadata["rubric"]["usage"]
    said = {
        "digest": result.metadata["rubric"].get("digest"),
        "verdict": result.label,
        "score": result.score,
        "calls": usage["calls"],
        "cost": result.cost,
        "reason": result.reason,
    }
    _run.item.user_properties.append((_PROPERTY, json.dumps(said)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """
    Mark the report of a test whose candidate could not be graded; the mark goes along with xdist.

    What is known to fail (xfail) is not known to be ungraded, so such a test fails all the same, unless it says that
    `UngradedTest` is what it raises.
    """
    report = yield
    if call.excinfo is not None and _is_ungraded(call.excinfo.value):
        if hasattr(report, "wasxfail"):
            expected = [each.kwargs.get("raises") for each in item.iter_markers("xfail")]
            if any(UngradedTest in (each if isinstance(each, tuple) else (each,)) for each in expected):
                return report
            del report.wasxfail
            report.outcome = "failed"
        report.rubric_ungraded = True
        if _UNGRADED not in item.user_properties:
            item.user_properties.append(_UNGRADED)
    return report


def _is_ungraded(raised: BaseException) -> bool:
    """True if nothing else than `UngradedTest` was raised, alone or by the tasks of a group."""
    if isinstance(raised, BaseExceptionGroup):
        return all(map(_is_ungraded, raised.exceptions))
    return isinstance(raised, UngradedTest)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    """Make an `<error>` of each ungraded test in JUnit's XML, once pytest has written it."""
    result = yield
    path = session.config.getoption("xmlpath", None)
    if path and not hasattr(session.config, "workerinput"):  # the workers of xdist write none
        _mark_errors(Path(os.path.expandvars(path)).expanduser())
    return result


def _mark_errors(path: Path) -> None:
    content = path.read_text("utf-8") if path.is_file() else ""
    if _UNGRADED[0] not in content:
        return
    tree = ET.fromstring(content)  # noqa: S314 - it is pytest's
    for suite in tree.iter("testsuite"):
        ungraded = [
            failure
            for case in suite.iter("testcase")
            if any(each.get("name") == _UNGRADED[0] for each in case.iter("property"))
            for failure in case.iter("failure")
            if UngradedTest.__name__ in f"{failure.get('message')} {failure.text}"
        ]
        for each in ungraded:
            each.tag = "error"
        for name, more in (("failures", -len(ungraded)), ("errors", len(ungraded))):
            suite.set(name, str(int(suite.get(name, "0")) + more))
    ET.ElementTree(tree).write(path, "utf-8", xml_declaration=True)


@pytest.hookimpl(tryfirst=True)  # before pytest's own for subtests
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Give an ungraded test a category of its own; it still fails the run."""
    if getattr(report, "rubric_ungraded", False):
        return "ungraded", "U", ("UNGRADED", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show the tests that could not be graded, and sum grades, calls and cost over all workers."""
    ungraded: Sequence[pytest.TestReport] = terminalreporter.stats.get("ungraded", ())
    if ungraded:
        terminalreporter.section("ungraded")
        for report in ungraded:
            terminalreporter.write_line(f"{report.nodeid}")
            crash = getattr(report.longrepr, "reprcrash", None)
            told = str(report.longrepr) if crash is None else crash.message
            told = told.removeprefix(f"{__name__}.{UngradedTest.__name__}: ")
            terminalreporter.write_line(f"  {told}".replace("\n", "\n  "))
    kept: dict[str, list[Any]] = {}  # a report of a subtest has the grades of its test so far
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                said = [value for name, value in report.user_properties if name == _PROPERTY]
                kept[report.nodeid] = max(kept.get(report.nodeid, []), said, key=len)
    grades = [json.loads(str(value)) for said in kept.values() for value in said]
    if grades:
        terminalreporter.section("rubric")
        terminalreporter.write_line(_summary(grades))


def _summary(grades: Sequence[dict[str, Any]]) -> str:
    verdicts = [grade["verdict"] for grade in grades]
    names = ("pass", "borderline", "fail", "ungraded")
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in names if name in verdicts)
    costs = [grade["cost"] for grade in grades]
    cost = "cost unknown" if None in costs else f"${sum(costs):.4f}"
    calls = counted(sum(grade["calls"] for grade in grades), "call")
    return f"{counted(len(grades), 'grade')} ({counts}), {calls}, {cost}"
