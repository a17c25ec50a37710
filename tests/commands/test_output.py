"""Errors at a terminal: each names options that the command has, and what it advises helps."""

from __future__ import annotations

import ast
import io
import pickle
import re
import shlex
from pathlib import Path

import click
import pytest
from rich.console import Console

from rubric import DefinitionError, Rubric, evaluate, grade_many, load
from rubric.__main__ import run as run_program
from rubric.commands import output
from rubric.embed import Wording
from tests.command_line import REPLY, RUBRIC, commands, run
from tests.places import ROOT

CONTAINS = "assert: [{type: contains, value: Thank}]"
FILES = {
    "polite.yaml": "rubric: polite\ncriteria:\n  - Says thank you\n",
    "reply.txt": "Thank you.\n",
    "texts.jsonl": '"Thank you."\n',
    "rows.jsonl": '{"answer": "Thank you.", "question": "Why?"}\n',
    "pairs.jsonl": '{"reply_1": "Thank you so much.", "reply_2": "No, it is not."}\n',
    "results.jsonl": "",
    "labels.csv": "index,verdict\n0,true\n",
    "hello.yaml": "tests: you\n",
    "two.yaml": "defaultTest: {threshold: 0.5}\ngovernance: {owner: a}\ntests: [{assert: [{type: is-json}]}]",
    "env.yaml": f"prompts: ['{{{{ env.HOME }}}}']\nproviders: [echo]\ndefaultTest: {{{CONTAINS}}}\n",
    "inner/out.yaml": f"prompts: [a]\nproviders: [echo]\ntests: [{{vars: {{x: file://../reply.txt}}, {CONTAINS}}}]\n",
    "open.yaml": "suite: open\nrubric: {criteria: [Says thank you]}\ncases:\n  - {id: a, input: Hi}\n",
    "people.csv": "index,value\n" + "".join(f"{n},{('pass', 'fail')[n % 2]}\n" for n in range(24)),
    "scored.csv": "index,value\n" + "".join(f"{n},{5 - n % 4}\n" for n in range(24)),
    "named.csv": "index,says-thank-you\n" + "".join(f"{n},{('pass', 'fail')[n % 2]}\n" for n in range(24)),
    "replies.jsonl": '{"id": "a", "output": "Thank you."}\n',
}

OFFLINE = "--judge offline"
MANY = "grade-many polite.yaml texts.jsonl"
OPENED = f"grade open.yaml {OFFLINE}"
COLUMNS = "--column output=answer --column input=question"
TOLD = [
    (
        "columns",
        f"grade-many polite.yaml rows.jsonl {OFFLINE}",
        COLUMNS,
        f"grade-many polite.yaml rows.jsonl {OFFLINE} {COLUMNS}",
    ),
    (
        "columns",
        "label rows.jsonl polite.yaml --html p.html",
        COLUMNS,
        f"label rows.jsonl polite.yaml --html p.html {COLUMNS}",
    ),
    (
        "columns",
        f"prefer pairs.jsonl polite.yaml {OFFLINE}",
        "--column a=reply_1 --column b=reply_2",
        f"prefer pairs.jsonl polite.yaml {OFFLINE} --column a=reply_1 --column b=reply_2",
    ),
    ("judge", "grade polite.yaml reply.txt", OFFLINE, f"grade polite.yaml reply.txt {OFFLINE}"),
    ("judge", MANY, OFFLINE, f"{MANY} {OFFLINE}"),
    (
        "writer",
        f"generate --outcome thanks --plan {OFFLINE}",
        "--writer MODEL",
        "generate --outcome thanks --plan --writer x/y",
    ),
    ("outputs", f"{OPENED} --target offline", "--outputs FILE", f"{OPENED} --outputs replies.jsonl"),
    (
        "prices",
        f"{MANY} --judge nobody/knows --max-cost 1",
        "--price MODEL=IN,OUT",
        f"{MANY} --judge nobody/knows --max-cost 1 --price nobody/knows=1,2",
    ),
    ("calls", f"{MANY} --judge nobody/knows --max-cost 1", "--max-calls N", f"{MANY} {OFFLINE} --max-calls 1"),
    ("format", "validate hello.yaml", "--from", "validate hello.yaml --from promptfoo"),
    ("format", "validate two.yaml", "--from promptfoo or --from agentv-2", "validate two.yaml --from promptfoo"),
    ("environ", "validate env.yaml", "--env HOME", "validate env.yaml --env HOME"),
    (
        "at",
        "thresholds polite.yaml graded.jsonl people.csv --for TPR",
        "--at 0.95",
        "thresholds polite.yaml graded.jsonl people.csv --for TPR --at 0.95",
    ),
    (
        "passes_from",
        "thresholds polite.yaml graded.jsonl scored.csv",
        "--passes-from 4",
        "thresholds polite.yaml graded.jsonl scored.csv --passes-from 4",
    ),
    (
        "criteria",
        "agree graded.jsonl named.csv --column value=says-thank-you",
        "--criteria says-thank-you",
        "agree graded.jsonl named.csv --column value=says-thank-you --criteria says-thank-you",
    ),
    ("base", "validate inner/out.yaml", "--base FOLDER", "validate inner/out.yaml --base ."),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with `FILES`, without any key."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    graded = grade_many(["Thank you.", "No."] * 12, load(tmp_path / "polite.yaml"), "offline", progress=False)
    graded.collect().to_jsonl(tmp_path / "graded.jsonl")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.long
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("argument", "line", "cure", "helps"), TOLD)
def test_a_cure_names_options_of_the_command_and_helps(argument: str, line: str, cure: str, helps: str) -> None:
    """The message has no argument of Python's, its options exist, and with them the same error does not come back."""
    command = commands()[line.split(maxsplit=1)[0]]
    options = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    done = run(*shlex.split(line))
    said = " ".join(done.stderr.split())
    assert done.exit_code == 2
    assert cure in said
    assert {*re.findall(r"(?<!\S)--[a-z-]+", said)} <= {*options, "--help"}
    assert not re.search(rf"\b{argument}=[{{'\"](?!.*or --)", said)
    again = run(*shlex.split(helps))
    assert cure not in " ".join(again.stderr.split())


@pytest.mark.usefixtures("folder")
def test_a_cure_that_a_command_lacks_is_left_out() -> None:
    """`agree` has `--column`, and `grade` no `--max-calls`, so it names what else helps."""
    Path("results.jsonl").write_text(run_results(), encoding="utf-8")
    said = " ".join(run("agree", "results.jsonl", "labels.csv").stderr.split())
    assert "there is none; name it: --column value=verdict or call it value in the file" in said
    assert said.endswith("; write rubric agree results.jsonl labels.csv --column value=verdict")
    said = " ".join(
        run(
            "grade", "open.yaml", "--judge", "nobody/knows", "--max-cost", "1", "--outputs", "replies.jsonl"
        ).stderr.split()
    )
    assert "its cost cannot be capped; give the price: --price MODEL=IN,OUT or leave out the cost" in said


@pytest.mark.usefixtures("folder")
def test_edits_that_grade_anew_name_the_file_of_candidates() -> None:
    """A file of results has none."""
    Path("judged.jsonl").write_text(run_results(), encoding="utf-8")
    Path("labels.csv").write_text("key,value\n", encoding="utf-8")
    said = run("align", "polite.yaml", "judged.jsonl", "labels.csv", "--edit", "anchors").stderr
    assert "--edit anchors grades the candidates anew, and RESULTS has none; name their file: --candidates FILE" in said


def run_results() -> str:
    """Return the results of `texts.jsonl`."""
    run("grade-many", "polite.yaml", "texts.jsonl", "--judge", "offline", "--out", "out.jsonl")
    return Path("out.jsonl").read_text("utf-8")


def test_every_argument_that_a_message_names_is_tried() -> None:
    """Those in the source are those in `TOLD`; none is written for a person to find out."""
    texts = [path.read_text("utf-8") for path in (ROOT / "rubric").rglob("*.py")]
    taken = re.compile(r"^from rubric\.(embed|errors) import [^)]*?\bWording\b", re.MULTILINE)
    calls = [
        node for text in texts if taken.search(text) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
    ]
    named = {
        keyword.arg
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Wording"
        for keyword in call.keywords
        if keyword.arg and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is ...)
    }
    assert named == {argument for argument, *_ in TOLD}


def test_a_message_keeps_its_arguments_in_another_process() -> None:
    """Workers of a cluster raise errors too."""
    error = pickle.loads(pickle.dumps(DefinitionError("rows", Wording("name it: ", columns={"a": "b"}))))  # noqa: S301 - our own
    assert str(error) == "rows: name it: columns={'a': 'b'}"
    assert error.text.render(lambda name, value: f"--{name} {value['a']}") == "rows: name it: --columns b"


@pytest.mark.parametrize(
    ("typed", "cure"),
    [
        (("grade", "r.yaml", "a.txt", "--model", "offline"), "did you mean '--judge'?"),
        (("grade", "r.yaml", "a.txt", "--dry-run"), "rubric plan"),
        (("grade", "r.yaml", "Thanks a lot"), "echo 'Thanks a lot' | rubric grade r.yaml -"),
        (("grade", "a.txt", "r.yaml"), "the rubric comes first; write rubric grade r.yaml a.txt"),
        (("probe", "a.jsonl", "r.yaml"), "the rubric comes first; write rubric probe r.yaml a.jsonl"),
        (("prefer", "r.yaml", "a.txt"), "the rubric comes last; write rubric prefer a.txt r.yaml"),
        (("label", "r.yaml", "a.jsonl"), "write rubric label a.jsonl r.yaml --out labels.csv"),
        (("eval", "x"), "did you mean 'grade'?"),
        (("cache", "clear"), "did you mean 'store'?"),
        (("convert", "r.yaml", "--format", "x"), "did you mean '--to'?"),
    ],
)
def test_a_wrong_command_line_is_answered_with_the_right_one(
    typed: tuple[str, ...], cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other tools call a command or an option is told in our words, and so are files in the wrong order."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text("rubric: r\ncriteria: [Is polite]\n")
    (tmp_path / "a.txt").write_text("Thanks a lot")
    (tmp_path / "a.jsonl").write_text('{"output": "Thanks a lot"}\n')
    done = run(*typed)
    assert done.exit_code == 2
    assert cure in done.output


def test_the_opposite_of_an_option_is_never_proposed() -> None:
    """`--browser` is what `--no-browser` turns off."""
    assert "did you mean" not in run("label", "--browser").output


def test_help_lists_the_options_in_groups_each_once() -> None:
    """Every option of every command stands under one head, and none of the heads is empty."""
    shown = run("grade", "--help").output
    heads = ["What is graded:", "Judges and targets:", "The run:", "Results:", "Options:"]
    assert [line for line in shown.splitlines() if line in heads] == heads
    for name, command in commands().items():
        told = run(*name.split(), "--help").output
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert len(re.findall(rf"^  .*{re.escape(option.opts[-1])}\b", told, re.MULTILINE)) >= 1


def test_each_row_of_the_table_of_options_is_one_that_a_command_takes() -> None:
    """A name, or that of a command behind it, which nothing has would be a slip; so would one in two groups."""
    every = [one for each in commands().values() for one in (each, *getattr(each, "commands", {}).values())]
    found = {str(each.name).replace("-", "_"): {param.name for param in each.params} for each in every}
    found[""] = {name for names in found.values() for name in names}
    homes: dict[str, set[str]] = {}
    for group, rows in output.groups().items():
        for name, *of in map(str.split, rows):
            homes.setdefault(name, set()).add(group)
            assert all(name in found[command] for command in of or [""]), (name, of)
    assert [name for name in homes if len(homes[name]) > 1] == []


class _Narrow(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("width", "is_table"), [(60, False), (400, True)])
def test_a_result_that_is_wider_than_the_terminal_is_stacked(
    width: int, is_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line a criterion in place of a table whose cells would wrap."""
    screen = Console(file=_Narrow(), width=width)
    monkeypatch.setattr(output, "console", lambda **_: screen)
    output.print_result(
        evaluate("Thank you", Rubric().expects("Says thank you to the customer " * 3), "offline"), "table"
    )
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert ("evidence" in text) == is_table  # the head of a column
    assert ("✗ Says" in text or "~ Says" in text) != is_table


def test_an_option_before_the_command_is_told_where_it_goes() -> None:
    """The line that is printed has it behind a command that knows it."""
    said = run("--judge", "offline", "grade", RUBRIC, REPLY).stderr
    assert f"options come behind the command; write rubric grade --judge offline {RUBRIC} {REPLY}; see" in said
    for typed, cure in (
        ("grade r.yaml x.txt --temperature 0", "judge: {model: openai/gpt-5, temperature: 0}"),
        ("probe r.yaml x.csv --limit 2", "head -n 2 "),
    ):
        assert cure in run(*typed.split()).stderr
    assert run("--nonsense").stderr.startswith("no such option --nonsense; see")


def test_labels_before_the_results_are_told_the_order(tmp_path: Path) -> None:
    """The printed line works."""
    results, labels = tmp_path / "results.jsonl", tmp_path / "labels.csv"
    (replies := tmp_path / "replies.jsonl").write_text('"Hello"\n"Go"\n')
    run("grade-many", RUBRIC, str(replies), "-j", "offline", "--out", str(results))
    labels.write_text("index,value\n0,1\n1,0\n")
    said = run("agree", str(labels), str(results)).stderr
    assert f"the results come first; write rubric agree {results} {labels}" in said
    assert run("agree", str(results), str(labels)).exit_code == 0


def test_an_error_of_a_plug_in_is_no_failed_candidate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python ends with 1 after a traceback, which means "failed" here; a crash says nothing of the candidate."""

    def crash() -> None:
        raise ValueError("boom")

    monkeypatch.setattr("rubric.__main__.main", crash)
    with pytest.raises(SystemExit) as ended:
        run_program()
    assert ended.value.code == 2
    assert "ValueError: boom" in capsys.readouterr().err
