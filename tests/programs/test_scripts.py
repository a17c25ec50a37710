"""Programs as graders: real processes, with permission only, and never a score that they did not give."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rubric import (
    Budget,
    Candidate,
    Criterion,
    DefinitionError,
    Holds,
    Judge,
    Jury,
    Rubric,
    Suite,
    ToolCall,
    When,
    evaluate,
    grade,
    grade_many,
    plan,
)
from rubric.programs import ProgramError, allowing
from rubric.programs.scripts import Runner
from rubric.results.report_rows import Row
from rubric.suites.cases import Case
from rubric.values import Script
from rubric.values.places import Place
from rubric.values.rubrics import programs_in
from tests.rows import each_row
from tests.suite_help import GOOD, asks_of, one, saying

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are a matter of POSIX")


def python(code: str, **options: Any) -> Script:
    """Return a script that is Python *code*, with what it was given as `given`."""
    return Script([sys.executable, "-c", f"import json, os, sys; given = json.load(sys.stdin); {code}"], **options)


def says(data: object) -> Script:
    """Return a script that says *data* as JSON."""
    return python(f"print({json.dumps(data)!r})")


def by(script: Script, **options: Any) -> Rubric:
    """Return a rubric of one criterion that *script* decides."""
    return Rubric(criteria=[Criterion("The script agrees", id="script", answer=script, **options)])


def graded(script: Script, **fields: Any) -> Row:
    """Return the row of a case that *script* decides alone."""
    return one(by(script), **fields).run(allow_scripts=True)["a"]


def test_a_script_decides_its_criterion() -> None:
    """With its score and its reason; no judge and no call."""
    row = graded(says({"score": 0.75, "reason": "three of four"}))
    entry = row.entries[0]
    assert (row.status, row.score, row.usage.calls) == ("passed", 0.75, 0)
    assert (entry.score, entry.reason) == (0.75, "three of four")
    assert entry.answer.startswith("check: script ")


def test_without_permission_nothing_runs(tmp_path: Path) -> None:
    """The case is ungraded, and says why; the other criteria are judged."""
    script = python(f"open({str(tmp_path / 'ran')!r}, 'w'); print('{{\"score\": 1}}')")
    row = one(by(script).expects("Is good", id="good")).run(saying(good=True))["a"]
    assert [entry.status for entry in row.entries] == ["unjudged", "scored"]
    assert row.status == "ungraded"
    assert "allow_scripts=True" in row.reason
    assert not (tmp_path / "ran").exists()


SAID: list[tuple[dict[str, Any], float, str]] = [
    ({"score": 1, "reasoning": "r"}, 1.0, "r"),
    ({"score": 0.5, "explanation": "r", "reason": "first"}, 0.5, "first"),
    ({"pass": True}, 1.0, ""),
    ({"passed": False, "reason": "r"}, 0.0, "r"),
    ({"verdict": "PASS", "cost_usd": 0.25}, 1.0, ""),
    ({"verdict": "fail", "score": 0.25}, 0.25, ""),
    ({"score": 0.5, "hits": ["a"], "misses": ["b", "c"]}, 0.5, "failed: b; failed: c"),
    ({"score": 0.5, "assertions": [{"text": "x", "passed": False}, {"text": "y", "passed": True}]}, 0.5, "failed: x"),
    ({"score": 0, "reason": "r", "checks": [{"text": "x", "pass": False, "reason": "y"}]}, 0.0, "r; failed: x: y"),
    ({"score": 1, "pass": False}, 1.0, "contradictory: the script itself says fail"),
]


@each_row(("data", "score", "reason"), SAID)
def test_what_scripts_say_is_read(data: dict[str, Any], score: float, reason: str) -> None:
    """Both generations of the protocol, and a bare verdict."""
    row = graded(says(data))
    assert (row.score, row.entries[0].reason) == (score, reason)
    assert row.usage.cost == data.get("cost_usd", 0.0)


UNREADABLE = [
    ("", "expected one JSON object"),
    ("print('fine')", "got 'fine'"),
    ('print(\'{"score": 1} {"score": 0}\')', "expected one JSON object"),
    ("print('[1]')", "got list"),
    ("print('{}')", "expected a 'score'"),
    ('print(\'{"verdict": "perhaps"}\')', "expected a 'score'"),
    ("print('{\"score\": 1.5}')", "expected a score from 0 to 1, got 1.5"),
    ("print('{\"score\": -0.1}')", "expected a score from 0 to 1"),
    ("print('{\"score\": true}')", "expected a score from 0 to 1, got True"),
    ('print(\'{"score": "1"}\')', "expected a score from 0 to 1, got '1'"),
    ("print('{\"score\": NaN}')", "NaN is not JSON"),
    ("print('{\"score\": 1e999}')", "got inf"),
    ('print(\'{"score": null, "pass": true}\')', "got None"),
    ("print('[' * 100000)", "expected one JSON object"),
    ("sys.stdout.buffer.write(bytes([255, 254]))", "expected one JSON object"),
    ("print('{\"score\": 1}'); sys.exit(3)", "ended with exit code 3"),
    ("print('{\"score\": 1}'); sys.exit('it broke')", "ended with exit code 1: it broke"),
    ("print('{\"score\": 1}', flush=True); os.kill(os.getpid(), 9)", "ended by signal 9"),
    ("print('x' * (1 << 21))", "wrote more than 1024 KiB"),
    ("sys.stderr.write('key sk-0123456789abcdef'); sys.exit(1)", "key [secret]"),
]


@each_row(("code", "said"), UNREADABLE)
def test_whatever_else_it_does_is_a_failure_and_no_score(code: str, said: str) -> None:
    """The case is ungraded, and the reason says what happened."""
    row = graded(python(code))
    entry = row.entries[0]
    assert (row.status, entry.status, entry.score) == ("ungraded", "unjudged", None)
    assert said in entry.reason


@pytest.mark.parametrize("command", [["./no-such-program"], ["no\0such"], ["/"]])
def test_a_program_that_is_not_there_is_a_failure(command: list[str]) -> None:
    """It names the trouble."""
    assert "could not be started" in graded(Script(command)).entries[0].reason


def test_a_script_need_not_read_what_it_is_given() -> None:
    """A pipe that nobody reads breaks; that is not a trouble of the script's."""
    script = Script([sys.executable, "-c", "import sys; sys.stdin.close(); print('{\"score\": 1}')"])
    assert graded(script, output=GOOD * 10_000).status == "passed"


def test_noise_on_standard_error_does_not_hold_it_up() -> None:
    """However much it is."""
    assert graded(python("sys.stderr.write('x' * (1 << 20)); print('{\"score\": 1}')")).status == "passed"


# -- deadlines, children, cancellation -------------------------------------------------------------------

FAMILY = (
    "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "open({path!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); {then}"
)


def family(path: Path, then: str) -> str:
    """Return code that starts a child, writes both process ids to *path*, and goes on with *then*."""
    return FAMILY.format(path=str(path), then=then)


def is_gone(pid: int) -> bool:
    """Say whether the process *pid* has ended; give it a moment to be reaped by whoever has it now."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_script_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    """On its deadline, the whole group."""
    pids = tmp_path / "pids"
    row = graded(python(family(pids, "import time; time.sleep(600)"), timeout=1.5))
    assert "did not end within 1.5 seconds" in row.entries[0].reason
    assert all(is_gone(int(pid)) for pid in pids.read_text().split())


def test_children_do_not_outlive_a_script_that_is_through(tmp_path: Path) -> None:
    """What it leaves running in its group is ended with it."""
    pids = tmp_path / "pids"
    code = FAMILY.replace("time.sleep(600)'])", "time.sleep(600)'], stdout=-3, stderr=-3)")
    row = graded(python(code.format(path=str(pids), then="print('{\"score\": 1}')")))
    assert row.status == "passed"
    assert all(is_gone(int(pid)) for pid in pids.read_text().split())


def test_a_cancelled_script_is_stopped(tmp_path: Path) -> None:
    """Whoever cancels waits for its end."""
    pids = tmp_path / "pids"
    suite = one(by(python(family(pids, "import time; time.sleep(600)"))))

    async def main() -> None:
        task = asyncio.create_task(suite.arun(allow_scripts=True))
        while not (pids.exists() and pids.read_text()):  # noqa: ASYNC110 - a process tells when it is there
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert all(is_gone(int(pid)) for pid in pids.read_text().split())


# -- what it is given ------------------------------------------------------------------------------------


def test_a_script_sees_the_candidate_and_the_case(tmp_path: Path) -> None:
    """As messages and as texts, with its own configuration."""
    seen = tmp_path / "seen.json"
    case = Case(
        "a",
        by(python(f"json.dump(given, open({str(seen)!r}, 'w')); print('{{\"score\": 1}}')", config={"k": [1]})),
        input="What is new?",
        output=GOOD + " \ud800",
        reference="Rate limits.",
        tool_calls=[ToolCall("read", arguments={"path": "a.py"}, result="x = 1")],
        file_changes="+x",
        metadata={"topic": "news"},
    )
    assert Suite("s", [case]).run(allow_scripts=True)["a"].status == "passed"
    given = json.loads(seen.read_text())
    assert given["input"] == [{"role": "user", "content": "What is new?"}]
    assert (given["output"], given["question"]) == (GOOD + " \ud800", "What is new?")
    assert given["expected_output"] == [{"role": "assistant", "content": "Rate limits."}]
    assert given["messages"][0]["tool_calls"] == [{"tool": "read", "input": {"path": "a.py"}, "output": "x = 1"}]
    assert given["trace_summary"]["tool_calls"] == {"read": 1}
    assert (given["criteria"], given["file_changes"]) == ("The script agrees", "+x")
    assert (given["config"], given["metadata"]) == ({"k": [1]}, {"topic": "news"})


def test_a_script_sees_no_secret_and_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the environment it gets the path and how to write text."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.setenv("HARMLESS", "or so it seems")
    row = graded(python("print(json.dumps({'score': 1, 'reason': ' '.join(sorted(os.environ))}))"))
    names = set(row.entries[0].reason.split())
    assert "PATH" in names
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}


def test_a_script_runs_where_the_file_lies(tmp_path: Path) -> None:
    """Or in its own folder, if it has one."""
    (tmp_path / "inner").mkdir()
    where = "print(json.dumps({'score': 1, 'reason': os.getcwd()}))"
    place = Place(str(tmp_path / "suite.yaml"))
    here = graded(python(where), place=place).entries[0].reason
    there = [graded(python(where, folder=f), place=place).entries[0].reason for f in ("inner", str(tmp_path / "inner"))]
    assert Path(here) == tmp_path.resolve()
    assert {Path(path) for path in there} == {(tmp_path / "inner").resolve()}


def test_a_relative_program_is_found_beside_the_file(tmp_path: Path) -> None:
    """As the file says it."""
    program = tmp_path / "grade.sh"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho '{\"score\": 1}'\n")
    program.chmod(0o755)
    assert graded(Script(["./grade.sh"]), place=Place(str(tmp_path / "suite.yaml"))).status == "passed"


def test_no_shell_reads_the_command() -> None:
    """What looks like one to a shell is an argument like any other."""
    script = Script([sys.executable, "-c", "import json, sys; print(json.dumps({'score': 1, 'reason': sys.argv[1]}))"])
    told = Script([*script.command, "$(id); `id` && id"])
    assert graded(told).entries[0].reason == "$(id); `id` && id"


# -- scripts among other criteria ------------------------------------------------------------------------


def test_scripts_and_judges_make_one_grade() -> None:
    """Weights and gates hold for both; the rubric of the result is the suite's, and can be rescored under."""
    rubric = by(says({"score": 0}), required=True).expects("Is good", id="good", weight=3)
    suite = one(rubric)
    row = suite.run(Jury(saying(good=True), 2), allow_scripts=True)["a"]
    assert (row.status, row.score, row.gates) == ("failed", 0.75, ("script",))
    assert row.result is not None
    assert row.result.rubric == rubric
    freed = rubric.revising("script", required=False)
    assert row.result.rescore(freed).passed is True


def test_a_script_in_a_nested_rubric_runs_too() -> None:
    """However deep it stands; and a failure leaves the outer criterion unjudged."""
    inner = by(says({"score": 1}))
    row = one(Rubric().includes(Rubric().includes(inner, id="mid"), id="top")).run(allow_scripts=True)["a"]
    assert row.entries[0].parts[0].parts[0].status == "scored"
    failing = one(Rubric().includes(by(python("sys.exit(1)")), id="top")).run(allow_scripts=True)["a"]
    assert (failing.status, failing.entries[0].parts[0].status) == ("ungraded", "unjudged")


def test_a_function_with_an_attribute_scripts_is_a_function_like_any_other() -> None:
    """Nothing but its type makes a function one that starts programs."""

    def is_good(candidate: Candidate) -> bool:
        return "2.3.0" in candidate

    def shout(candidate: Candidate) -> Candidate:
        return Candidate(candidate.output.upper())

    is_good.scripts = shout.scripts = ["rm", "-rf"]  # type: ignore[attr-defined]
    rubric = Rubric(criteria=[Criterion("Is good", answer=Holds(is_good)), Criterion("Shouts", check="THE", on=shout)])
    row = one(rubric).run(allow_scripts=True)["a"]
    assert (row.status, row.score) == ("passed", 1.0)
    assert [*programs_in(rubric)] == []


def test_grade_runs_programs_as_suites_do(tmp_path: Path) -> None:
    """Within `allowing()`, once for all votes of a jury, and by every door; elsewhere not at all."""
    ran = tmp_path / "ran"
    script = python(f"open({str(ran)!r}, 'a').write('x'); print('{{\"score\": 0.75, \"cost_usd\": 0.5}}')")
    rubric, judge = by(script).expects("Is good", id="good"), Jury(saying(good=True), 3, early_stop=False)
    refused = evaluate(GOOD, rubric, judge)
    assert (refused.score, ran.exists()) == (None, False)
    assert "rubric.programs.allowing()" in refused.failures[0].message
    with allowing():
        result = grade(GOOD, rubric, judge, keep=True)
        (streamed,) = grade_many([GOOD], rubric, judge)
    assert (result.score, streamed.score, ran.read_text()) == (0.875, 0.875, "xx")
    assert (result.usage.cost, result.usage.calls, len(result.exchanges)) == (0.5, 3, 3)
    assert result["script"] == one(rubric).run(judge, allow_scripts=True)["a"].result["script"]  # type: ignore[index]


def test_the_cost_of_a_program_is_charged_to_the_budget() -> None:
    """It is spent before the judge is asked, who then finds no money left."""
    rubric = by(says({"score": 1, "cost_usd": 0.5})).expects("Is good", id="good")
    judge = saying(good=True)
    budget = Budget(cost=0.25, prices={judge.name: (1e-6, 1e-6)})
    with allowing():
        result = evaluate(GOOD, rubric, judge, budget=budget)
    assert budget.spent.cost == 0.5
    assert result.failures[0].kind == "budget"


def test_one_request_for_all_votes_takes_the_programs_apart() -> None:
    """A jury that asks once for its votes shares the verdict of a program among them."""
    rubric, judge = by(says({"score": 1})).expects("Is good", id="good"), saying(good=True)
    with allowing():
        result = grade(GOOD, rubric, Jury(judge, 2, one_request=True, early_stop=False))
    assert [vote["script"].score for vote in result.votes] == [1.0, 1.0]


def test_a_script_that_does_not_apply_does_not_run(tmp_path: Path) -> None:
    """Nor one about a candidate that is answered without a call."""
    script = python(f"open({str(tmp_path / 'ran')!r}, 'w'); print('{{\"score\": 0}}')")
    rubric = by(script, when=When(contains="not there")).expects("Is good", id="good")
    judge = saying(good=True)
    assert one(rubric).run(judge, allow_scripts=True)["a"].status == "passed"
    assert one(by(script), output="").run(allow_scripts=True)["a"].status == "failed"
    assert not (tmp_path / "ran").exists()
    assert len(asks_of(judge)) == 1


def test_a_script_error_can_be_caught() -> None:
    """Whoever runs one alone gets an error of ours."""
    with allowing(), pytest.raises(ProgramError, match="exit code 1"):
        asyncio.run(Runner().run(python("sys.exit(1)"), Candidate(GOOD), ""))


@each_row(
    ("on", "score"),
    [
        ("conversation", 1.0),
        ("each turn", 0.5),
        ("worst turn", 0.0),
        ("last turn", 1.0),
        (1, 0.0),
        (2, 1.0),
        ("tools", 0.0),
    ],
)
@each_row("nested", [False, True])
def test_a_script_reads_the_part_that_it_is_asked_of(on: Any, score: float, nested: bool) -> None:
    """Alone it scores each part; nested it is refused for several turns."""
    script: Any = python("print(json.dumps({'score': float('good' in given['output'])}))")
    if nested:
        script = Rubric(criteria=[Criterion("It agrees", answer=script)])
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "bad"},
        {"role": "user", "content": "So"},
    ]
    case = Case("a", by(script, on=on), output="good", messages=said)
    row = Suite("s", [case]).run(allow_scripts=True)["a"]
    if nested and "turn" in str(on) and on != "last turn":
        assert row.status == "ungraded"
        assert "ask it of one turn" in row.reason
    else:
        assert row.score == score


def test_a_script_that_fails_for_a_turn_leaves_all_of_them_unjudged() -> None:
    """One exit code other than 0 makes the case ungraded with that code."""
    script = python("print(json.dumps({'score': 1})) if given['output'] == 'good' else sys.exit(3)")
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "bad"},
        {"role": "user", "content": "So"},
    ]
    case = Case("a", by(script, on="each turn"), output="good", messages=said)
    row = Suite("s", [case]).run(allow_scripts=True)["a"]
    assert row.status == "ungraded"
    assert "exit code 3" in row.reason


def test_many_candidates_are_not_paid_for_where_a_program_may_not_start() -> None:
    """`grade_many` refuses before the first call, the plan says so, and the line that is printed works."""
    rubric, asked = by(python("print('{\"pass\": true}')")).expects("Is polite", id="polite"), list[object]()

    def answer(messages: object) -> str:
        asked.append(messages)
        return '{"verdict": true}'

    judge = Judge(answer, identity="v1")
    with pytest.raises(DefinitionError, match=r"with rubric\.programs\.allowing\(\): grades = grade_many"):
        grade_many(["Hi"], rubric, judge)
    assert asked == []
    assert "certain to stay unjudged" in plan("Hi there", rubric, judge).line()
    with allowing():
        grades = grade_many(["Hi"], rubric, judge).collect()
        assert plan("Hi there", rubric, judge).unjudged == ()
    assert (grades.pass_rate, len(asked)) == (1.0, 1)
