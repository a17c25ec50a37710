"""A log that is given as a text is refused, with the line that reads it, and never graded as the answer."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, DefinitionError, Rubric, call, grade, grade_many
from tests.command_line import run
from tests.rows import each_row

CALL = {"id": "a", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Refund 7."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "ok"},
    {"role": "assistant", "content": "Done."},
]
RULE = Rubric("refunds").checks(call("refund").needs("lookup"))
LINES = "\n".join(map(json.dumps, CHAT))


@each_row(
    ("text", "said"),
    [
        (json.dumps(CHAT), "write grade({'messages': json.loads(text)}, rubric, judge)"),
        (json.dumps({"messages": CHAT}), "write grade(json.loads(text), rubric, judge)"),
        (json.dumps({"log": CHAT}), "write grade({'messages': json.loads(text)['log']}, rubric, judge)"),
        (json.dumps({"data": {"messages": CHAT}}), "json.loads(text)['data']['messages']}, rubric, judge)"),
        (LINES, "[json.loads(line) for line in text.splitlines()]}, rubric, judge)"),
        (json.dumps({"chats": [CHAT, CHAT]}), "it holds 2 chats, and is in none of the formats"),
        (json.dumps(CHAT)[:200], "it is no JSON, or cut off"),
    ],
)
def test_the_text_of_a_log_is_answered_with_the_call_that_reads_it(text: str, said: str) -> None:
    """The rule is broken in each of them, and kept by their texts."""
    with pytest.raises(DefinitionError) as caught:
        grade(text, RULE, "offline")
    assert said in str(caught.value)
    assert said in str(grade_many([text], RULE, "offline").collect()[0])
    if made := re.search(r"write (grade\(.*\))(?=; as a text)", str(caught.value)):
        result = eval(made[1], {"grade": grade, "json": json, "text": text, "rubric": RULE, "judge": "offline"})  # noqa: S307 - a line of our own
        assert result.verdict == "fail"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.txt", json.dumps(CHAT), "a file whose name ends in .json, such as log.json"),
        ("a b.json", json.dumps({"log": CHAT}), "jq '{messages: .log}' 'a b.json' > run.json"),
        ("x.json", json.dumps({"my log": CHAT}), """jq '{messages: .["my log"]}' x.json > run.json"""),
        ("x.json", LINES, "jq -s '{messages: .}' x.json > run.json"),
        ("-", json.dumps(CHAT), "a file whose name ends in .json, such as run.json"),
        ("-", json.dumps({"log": CHAT}), "jq '{messages: .log}' log.json > run.json"),
    ],
)
def test_the_file_of_a_log_is_answered_with_the_line_that_makes_it_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    """At a terminal, and in Python by its path."""
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text(
        "criteria: [{text: Looks up first, check: {run: {every: refund, needs: lookup}}}]", "utf-8"
    )
    if name != "-":
        Path(name).write_text(text, "utf-8")
        with pytest.raises(DefinitionError, match=re.escape(said)):
            grade(Path(name), RULE, "offline")
    done = run("grade", "rules.yaml", name, "-j", "offline", stdin=text)
    assert (done.exit_code, said in done.stderr) == (2, True)
    if said.startswith("jq") and name != "-" and shutil.which("jq"):
        subprocess.run(["bash", "-c", said], check=True)
        assert run("grade", "rules.yaml", "run.json", "-j", "offline").exit_code == 1
        as_text = re.search(r"as a text, (jq .*)", done.stderr)
        assert as_text
        subprocess.run(["bash", "-c", as_text[1]], check=True)
        assert shlex.split(as_text[1])[-1] == "rows.jsonl"
        assert json.loads(Path("rows.jsonl").read_text("utf-8"))["output"] == text


@each_row(
    "text", ['{"role": "user", "name": "Dana"}', "He said: " + json.dumps(CHAT), '[{"role": "admin", "content": 1}]']
)
def test_other_json_is_a_text(text: str) -> None:
    """So is a log in words, and a candidate that is made of one."""
    assert grade(text, Rubric("r").checks("a"), "offline").verdict
    assert grade(Candidate(json.dumps(CHAT)), Rubric("r").checks("a"), "offline").verdict
