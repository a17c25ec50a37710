"""The pytest plug-in, in real runs of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from attrs import frozen

from rubric import CallError, DefinitionError, Rubric
from rubric.integrations.pytest import assert_grade
from rubric.testing import ScriptedModel
from tests.command_line import OVER_HTTP
from tests.harnesses import BAD, GOOD, KEY, ODD, respond
from tests.places import ROOT
from tests.servers import Endpoint, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_INSTALLED = any(point.value == "rubric.integrations.pytest" for point in entry_points(group="pytest11"))
TESTS = f"""
from rubric import Judge, Rubric
from rubric.integrations.pytest import assert_grade

JUDGE = Judge("openai/gpt-4o-mini", via="http", repairs=0)
POLITE = Rubric("polite").expects("Is polite", id="polite").expects("Names a day", id="day", weight=3).passing_at(0.5)

def test_good():
    assert assert_grade({GOOD!r}, POLITE, JUDGE).passed

def test_bad():
    assert_grade({BAD!r}, POLITE, JUDGE)

def test_odd():
    assert_grade({ODD!r}, POLITE, JUDGE)

def test_low_bar():
    assert_grade({BAD!r}, POLITE, JUDGE, at_least=0.2)
"""
BY_OPTION = """
from rubric.integrations.pytest import assert_grade

def test_fixture(rubric_judge):
    assert rubric_judge.name == "openai/gpt-4o-mini"

def test_no_judge_given():
    assert_grade("A good reply: Friday.", "Names a day")
"""


ODDITIES = f"""
import asyncio
import pytest
from test_replies_base import JUDGE, POLITE
from rubric.integrations.pytest import UngradedTest, assert_grade

@pytest.mark.xfail(strict=True, raises=AssertionError, reason="known")
def test_known_failure():
    assert_grade({BAD!r}, POLITE, JUDGE)

@pytest.mark.xfail(strict=True, raises=AssertionError, reason="known")
def test_ungraded_is_no_known_failure():
    assert_grade({ODD!r}, POLITE, JUDGE)

@pytest.mark.xfail(raises=UngradedTest, reason="no judge reads this")
def test_ungraded_as_is_expected():
    assert_grade({ODD!r}, POLITE, JUDGE)

def test_another_failure():
    assert_grade({GOOD!r}, POLITE, JUDGE)
    assert 0, "UngradedTest is a word of this test"

def test_in_a_group():
    raise ExceptionGroup("tasks", [UngradedTest("not graded: no reply")])

def test_in_a_mixed_group():
    raise ExceptionGroup("tasks", [UngradedTest("not graded: no reply"), AssertionError("wrong")])

def test_parts(subtests):
    for reply in ({GOOD!r}, {BAD!r}, {ODD!r}):
        with subtests.test(reply=reply):
            assert_grade(reply, POLITE, JUDGE)
"""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Yield an endpoint of the judging server."""
    with Server(respond=respond) as server:
        yield server.at("ok")


def run(folder: Path, endpoint: Endpoint, *options: str, tests: str = TESTS) -> subprocess.CompletedProcess[str]:
    """Run pytest on the tests above, in a process of its own."""
    (folder / "test_replies.py").write_text(tests)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY, "NO_COLOR": "1"}
    environ.pop("PYTEST_ADDOPTS", None)
    environ["OPENAI_BASE_URL"] = endpoint.openai
    plugin = [] if IS_INSTALLED else ["-p", "rubric.integrations.pytest"]
    needless = ["cacheprovider", "asyncio", "anyio", "hypothesispytest"]  # the last two take a third of the time
    command = [sys.executable, "-m", "pytest", *plugin, *(f"-pno:{name}" for name in needless), *options]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


@frozen
class Whole:
    """A run of all tests above: what it printed, its JUnit, and the options for workers, if any."""

    done: subprocess.CompletedProcess[str]
    junit: ET.Element
    workers: tuple[str, ...]


@pytest.fixture(scope="module", params=[(), ("-n", "2")], ids=["alone", "xdist"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Run all tests once, in one process and with xdist: several tests read what came of it."""
    folder = tmp_path_factory.mktemp("whole")
    with Server(respond=respond) as server:
        done = run(folder, server.at("ok"), "--junitxml", "out.xml", *request.param)
    return Whole(done, ET.parse(folder / "out.xml").getroot(), request.param)  # noqa: S314 - it is pytest's


def test_a_run_tells_passed_failed_and_ungraded(whole: Whole) -> None:
    """A line a criterion for the failed test, a category of its own for the ungraded one, exit status 1, a sum."""
    done = whole.done
    assert done.returncode == 1, done.stdout + done.stderr
    assert whole.workers or "test_replies.py .FU." in done.stdout
    assert "✗ Names a day: So it is." in done.stdout
    assert "1 failed, 2 passed, 1 ungraded" in done.stdout
    assert "\ntest_replies.py::test_odd\n  not graded: the score could be 0.000 to 1.000" in done.stdout
    assert "4 grades (1 pass, 2 fail, 1 ungraded)" in done.stdout


def test_an_option_names_the_judge(tmp_path: Path, endpoint: Endpoint) -> None:
    """`--rubric-judge` is what the fixture gives, and who judges where a test names nobody."""
    (tmp_path / "conftest.py").write_text(OVER_HTTP)
    done = run(tmp_path, endpoint, "--rubric-judge", "openai/gpt-4o-mini", tests=BY_OPTION)
    assert "1 grade (1 pass), 1 call," in done.stdout, done.stdout


def test_only_an_ungraded_test_fails_the_run_too(tmp_path: Path, endpoint: Endpoint) -> None:
    """Nothing is known of the candidate, so the run is not a success."""
    done = run(tmp_path, endpoint, "-k", "odd")
    assert done.returncode == 1, done.stdout
    assert "1 ungraded" in done.stdout


def test_junit_holds_the_grade(whole: Whole) -> None:
    """A property of the test has digest, verdict, score, cost and reasons, as JSON."""
    properties = {
        case.get("name"): [json.loads(each.get("value") or "") for each in case.iter("property")]
        for case in whole.junit.iter("testcase")
    }
    (said,) = properties["test_bad"]
    assert (said["verdict"], said["score"], len(said["digest"])) == ("fail", 0.25, 16)
    assert said["cost"] > 0


def test_junit_tells_failed_from_ungraded(whole: Whole) -> None:
    """An ungraded test is an `<error>`, as in the XML of a suite, and the counts say so."""
    (suite,) = whole.junit.iter("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    (error,) = suite.iter("error")
    (failure,) = suite.iter("failure")
    assert "not graded" in error.get("message", "")
    assert "Names a day" in (failure.text or "")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_what_is_ungraded_is_told_in_each_kind_of_test(
    tmp_path: Path, endpoint: Endpoint, workers: tuple[str, ...]
) -> None:
    """Known failures, groups of exceptions, subtests and other messages: only what could not be graded is an `<error>`."""
    (tmp_path / "test_replies_base.py").write_text(TESTS.partition("def test_good")[0])
    done = run(tmp_path, endpoint, "--junitxml", "out.xml", *workers, tests=ODDITIES)
    assert done.returncode == 1
    assert "4 failed, 2 xfailed, 3 ungraded" in done.stdout, done.stdout
    assert "7 grades (2 pass, 2 fail, 3 ungraded)" in done.stdout
    root = ET.parse(tmp_path / "out.xml").getroot()  # noqa: S314 - it is pytest's
    errors = [case.get("name") for case in root.iter("testcase") for _ in case.iter("error")]
    assert sorted(map(str, errors)) == ["test_in_a_group", "test_parts", "test_ungraded_is_no_known_failure"]
    (suite,) = root.iter("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("4", "3")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--rubric-budget", "-1", "expected dollars from 0, found '-1'"),
        ("--rubric-budget", "nan", "expected dollars from 0, found 'nan'"),
        ("--rubric-replay", "nope.db", "--rubric-replay: there is no file nope.db"),
        ("--rubric-store", "", "--rubric-store: expected the path of a file"),
        ("--rubric-store", ".", "--rubric-store: . is a folder"),
    ],
)
def test_a_wrong_option_ends_the_run_before_the_first_test(
    tmp_path: Path, endpoint: Endpoint, option: str, value: str, said: str
) -> None:
    """The status is that of wrong usage, and no test fails for it."""
    done = run(tmp_path, endpoint, f"{option}={value}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr


def test_a_store_answers_the_second_run_and_a_replay_asks_nobody(tmp_path: Path, endpoint: Endpoint) -> None:
    """`--rubric-store` caches, `--rubric-replay` grades from the cache alone."""
    run(tmp_path, endpoint, "-k", "good or bad", "--rubric-store", "replies.db")
    sent = len(endpoint.requests)
    again = run(tmp_path, endpoint, "-k", "good or bad", "--rubric-store", "replies.db")
    assert "0 calls" in again.stdout, again.stdout
    replay = run(tmp_path, endpoint, "-k", "good or bad", "--rubric-replay", "replies.db")
    assert "1 failed, 1 passed" in replay.stdout
    assert len(endpoint.requests) == sent
    other = run(tmp_path, endpoint, "-k", "odd", "--rubric-replay", "replies.db")  # as after a change of the rubric
    assert "has no reply to this ask; record it with --rubric-store replies.db" in other.stdout
    assert "mode=" not in other.stdout


def test_a_budget_that_is_spent_leaves_tests_ungraded(tmp_path: Path, endpoint: Endpoint) -> None:
    """What the budget refuses is not sent, and no verdict."""
    done = run(tmp_path, endpoint, "-k", "good", "--rubric-budget", "0.0000001")
    assert "1 ungraded" in done.stdout
    assert endpoint.requests == []


def test_options_that_exclude_each_other_are_refused(tmp_path: Path, endpoint: Endpoint) -> None:
    """A usage error, before any test runs."""
    done = run(tmp_path, endpoint, "--rubric-store", "a.db", "--rubric-replay", "b.db")
    assert done.returncode == 4
    assert "exclude each other" in done.stderr


def test_loading_the_plug_in_imports_no_engine() -> None:
    """Every pytest run loads it, so it must cost next to nothing."""
    code = (
        "import sys, rubric.integrations.pytest; "
        "print([m for m in ('litellm', 'aiohttp', 'rubric.engine.grade', 'rubric.values.rubrics') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "[]"


def test_without_a_plug_in_it_is_a_plain_assertion() -> None:
    """`assert_grade` works in any code; the default judge needs a key, or `--rubric-judge`."""
    from rubric import Rubric

    assert assert_grade("Says hello.", Rubric().expects("Says hello"), "offline").passed
    with pytest.raises(AssertionError, match="✗ Names a zebra"):
        assert_grade("Says hello.", Rubric().expects("Names a zebra"), "offline")


def test_a_missing_judge_is_told_at_the_line_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest shows none of the library's own lines."""
    from rubric import NoJudgeError, Rubric

    def none_is_named(named: str | None) -> None:
        raise NoJudgeError("no judge was given")

    monkeypatch.setattr("rubric.embed.judge_or_default", none_is_named)
    monkeypatch.setattr("rubric.integrations.pytest._run", None)
    with pytest.raises(pytest.UsageError, match="run pytest with --rubric-judge") as caught:
        assert_grade("Says hello.", Rubric(criteria=["Says hello"]))
    assert [Path(entry.path).name for entry in caught.traceback.filter(caught)] == ["test_pytest.py"]


def test_a_least_score_is_met_as_a_threshold_is() -> None:
    """A mean that misses it by a rounding of its last digit meets it, and a gate of a negated rubric is not a hindrance."""
    rubric = Rubric().scores("Short", id="a", weight=6).scores("Warm", id="b", weight=4)
    result = assert_grade(GOOD, rubric, ScriptedModel({"a": 0.0, "b": 0.7}), at_least=0.28)
    assert result.score < 0.28
    refusal = Rubric("answers", negate=True).requires("Answers", id="a")
    assert assert_grade(GOOD, refusal, ScriptedModel({"a": False}), at_least=1).gates


def test_a_misspelt_option_is_told_the_right_one() -> None:
    """Like those of `grade`."""
    with pytest.raises(CallError, match="did you mean 'at_least'"):
        assert_grade(GOOD, "Is polite", "offline", at_last=0.5)  # type: ignore[call-arg]


@pytest.mark.parametrize("at_least", [20, -1, "0.5"])
def test_a_least_score_outside_0_to_1_is_refused(at_least: object) -> None:
    """Percentages, negative numbers and texts are definition errors."""
    with pytest.raises(DefinitionError, match="at_least: expected a finite number from 0 to 1"):
        assert_grade(GOOD, "Is polite", "offline", at_least=at_least)  # type: ignore[arg-type]
