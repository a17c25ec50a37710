"""The assertion for promptfoo: by its protocol, and in real evaluations of promptfoo's where that is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric import Budget, DefinitionError, Limits, dump, grade_many
from rubric.integrations.promptfoo import default_candidate, get_assert, rubric_assert
from rubric.models.api_keys import vendors
from tests.harnesses import BAD, GOOD, ODD, POLITE, judging
from tests.places import ROOT

PROMPTFOO = os.environ.get("PROMPTFOO") or shutil.which("promptfoo")
CALL = {"id": "1", "type": "function", "function": {"name": "orders", "arguments": '{"id": 7}'}}


def context_of(**given: Any) -> dict[str, Any]:
    """Return the context that promptfoo gives to an assertion."""
    return {"prompt": "When?", "vars": {}, "test": {"assert": []}, "config": {}, **given}


def test_a_pass_a_fail_and_an_ungraded_output() -> None:
    """The named scores are of the graded ones alone, and the ungraded one says what it is."""
    with judging() as judge:
        assertion = rubric_assert(POLITE, judge)
        good, bad, odd = (assertion(text, context_of()) for text in (GOOD, BAD, ODD))
    assert (good["pass"], good["score"], bad["pass"], bad["score"]) == (True, 1, False, 0.25)
    assert bad["namedScores"] == {"polite": 0.25, "polite/polite": 1, "polite/day": 0}
    assert "✗ Names a day" in bad["reason"]
    assert (odd["pass"], odd["score"], "namedScores" in odd) == (False, 0, False)
    assert odd["reason"].startswith("UNGRADED: not graded: the score could be 0.000 to 1.000")
    assert odd["metadata"]["rubric"]["digest"] == POLITE.digest
    assert odd["tokensUsed"]["total"] > 0
    json.dumps([good, bad, odd], allow_nan=False)


def test_an_inverted_assertion_makes_no_pass_of_an_ungraded_output() -> None:
    """promptfoo turns `pass` over for `not-python`."""
    context = context_of(test={"assert": [{"type": "not-python", "value": "file://grade.py"}]})
    with judging() as judge, pytest.raises(DefinitionError, match="negate=True"):
        rubric_assert(POLITE, judge)(ODD, context)


def test_without_a_judge_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """promptfoo would show the last line of what is raised."""
    for vendor in vendors().values():
        for name in (*vendor.keys, *vendor.deployments):
            monkeypatch.delenv(name, raising=False)
    result = rubric_assert(POLITE)(GOOD, context_of())
    assert (result["pass"], result["reason"].startswith("UNGRADED: "), "namedScores" in result) == (False, True, False)


def test_the_config_of_an_assertion_names_rubric_and_judge() -> None:
    """No Python is needed but the import; a key without an effect is refused."""
    config = {"rubric": "Thanks the customer", "judge": "offline"}
    assert get_assert("We thank you, dear customer.", context_of(config=config))["pass"]
    with pytest.raises(DefinitionError, match=r"config\.judges: is not a key of it; did you mean 'judge'"):
        get_assert("x", context_of(config={**config, "judges": "offline"}))
    with pytest.raises(DefinitionError, match=r"config\.rubric: is not there"):
        get_assert("x", context_of())


def test_the_config_of_an_assertion_may_name_a_store(tmp_path: Path) -> None:
    """The replies are kept in that file, for the next process."""
    config = {"rubric": "Thanks the customer", "judge": "offline", "store": str(tmp_path / "replies.db")}
    assert get_assert("We thank you, dear customer.", context_of(config=config))["pass"]
    assert (tmp_path / "replies.db").exists()


@pytest.mark.parametrize("option", [{"budget": Budget(calls=3)}, {"limits": Limits(rpm=60)}, {"concurrency": 2}])
def test_what_cannot_span_processes_is_refused(option: dict[str, Any]) -> None:
    """A budget of each assertion's own would bound no evaluation; promptfoo's own option is named."""
    with pytest.raises(
        DefinitionError, match=r"since promptfoo starts a process for each; leave it out; `promptfoo eval"
    ):
        rubric_assert(POLITE, "offline", **option)


def test_chats_and_tool_calls_are_kept() -> None:
    """A prompt may be a chat in JSON, an output a list of calls."""
    chat = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When?"}]
    context = context_of(prompt=json.dumps(chat), vars={"answer": "Friday", "context": "The timetable."})
    made = default_candidate([CALL], context, "answer")
    assert (made.output, made.input, made.reference, made.context) == ("", "When?", "Friday", "The timetable.")
    assert [(call.name, dict(call.arguments)) for call in made.tool_calls] == [("orders", {"id": 7})]
    assert [message.content for message in made.messages] == ["Be kind."]
    said = {
        "messages": [{"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "assistant", "content": GOOD}]
    }
    assert default_candidate(said, context_of()).output == GOOD
    assert len(default_candidate(said, context_of()).tool_calls) == 1
    with pytest.raises(DefinitionError, match="no variable 'anwser'; there are: answer, context"):
        default_candidate("x", context, "anwser")


def evaluated(folder: Path, script: str, **config: Any) -> subprocess.CompletedProcess[str]:
    """Run promptfoo over a good, a bad and an odd output, with *script* as `grade.py`; it writes `out.json`."""
    assert PROMPTFOO is not None
    (folder / "grade.py").write_text(script)
    whole = {"prompts": ["{{reply}}"], "providers": ["echo"], **config}
    whole["tests"] = [{"vars": {"reply": text}} for text in (GOOD, BAD, ODD)]
    (folder / "promptfooconfig.json").write_text(json.dumps(whole))
    quiet = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION", "SELF_HOSTED")
    env = {
        **os.environ,
        **{f"PROMPTFOO_{name}": "true" for name in quiet},
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        "PROMPTFOO_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    command = [*(["node"] if PROMPTFOO.endswith(".js") else []), PROMPTFOO, "eval", "--no-cache", "--no-write"]
    return subprocess.run(
        [*command, "-c", "promptfooconfig.json", "-o", "out.json"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(PROMPTFOO is None, reason="promptfoo is not installed; `nox -s integrations` has it")
def test_a_real_evaluation(tmp_path: Path) -> None:
    """promptfoo's report has the reasons and the digest, and its metric is the mean of the graded outputs."""
    dump(POLITE, tmp_path / "polite.yaml")
    with judging() as judge:
        script = (
            "from rubric import Judge\nfrom rubric.integrations.promptfoo import rubric_assert\n"
            f"judge = Judge({judge.model!r}, repairs=0, via='http', params={dict(judge.params)!r})\n"
            "get_assert = rubric_assert('polite.yaml', judge)\n"
        )
        done = evaluated(tmp_path, script, defaultTest={"assert": [{"type": "python", "value": "file://grade.py"}]})
        again = {result.outcome.score for result in grade_many(tmp_path / "out.json", POLITE, judge)}
    assert again == {1, 0.25, None}  # its report is a source of candidates, in the order in which they ended
    assert (tmp_path / "out.json").exists(), done.stdout + done.stderr
    report = json.loads((tmp_path / "out.json").read_text())["results"]
    metrics = report["prompts"][0]["metrics"]
    assert metrics["namedScores"]["polite"] / metrics["namedScoresCount"]["polite"] == (1 + 0.25) / 2
    assert metrics["tokenUsage"]["assertions"]["total"] > 0
    found = {row["vars"]["reply"]: row["gradingResult"] for row in report["results"]}
    assert [found[text]["pass"] for text in (GOOD, BAD, ODD)] == [True, False, False]
    assert found[ODD]["reason"].startswith("UNGRADED: ")
    said = found[BAD]["componentResults"][0]
    assert "✗ Names a day" in said["reason"]
    assert said["metadata"]["rubric"]["digest"] == POLITE.digest


@pytest.mark.skipif(PROMPTFOO is None, reason="promptfoo is not installed; `nox -s integrations` has it")
@pytest.mark.parametrize("hooked", [True, False])
def test_a_broken_rubric_file_is_one_error_with_the_hook(tmp_path: Path, hooked: bool) -> None:
    """With `extension_hook` the evaluation does not begin; without it each reason has the place in the file."""
    (tmp_path / "polite.yaml").write_text("rubric: polite\ncriteria:\n  - {text: Is polite, wieght: 2}\n")
    asserted = {"type": "python", "value": "file://grade.py", "config": {"rubric": "polite.yaml", "judge": "offline"}}
    script = "from rubric.integrations.promptfoo import extension_hook, get_assert\n"
    hooks = {"extensions": ["file://grade.py:extension_hook"]} if hooked else {}
    done = evaluated(tmp_path, script, defaultTest={"assert": [asserted]}, **hooks)
    assert done.returncode != 0
    if hooked:
        assert not (tmp_path / "out.json").exists()
        assert "polite.yaml:3:" in done.stdout + done.stderr
        return
    rows = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    reasons = [row["gradingResult"]["componentResults"][0]["reason"] for row in rows]
    assert all(each.startswith("UNGRADED: polite.yaml:3:") for each in reasons)
