"""`--price MODEL=IN,OUT`: one meaning wherever a command knows a cost, and refused where it would have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rubric import Judge, Rubric, plan
from rubric.__main__ import main
from tests.rows import each_row

MODEL = "openai/nobody-lists-it"
PRICED = ("--price", f"{MODEL}=1,2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a rubric, a suite, candidates, and pairs; nothing answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    (tmp_path / "r.yaml").write_text("rubric: kind\ncriteria: [Is kind]\n")
    (tmp_path / "s.yaml").write_text("suite: s\ncases: [{id: a, output: Hello, rubric: Is kind}]\n")
    (tmp_path / "reply.txt").write_text("Hello")
    (tmp_path / "many.jsonl").write_text('{"output": "Hello"}\n{"output": "Bye"}\n')
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


@each_row("words", [
    ("plan", "r.yaml", "-j", MODEL),
    ("plan", "r.yaml", "many.jsonl", "-j", MODEL),
    ("plan", "s.yaml", "-j", MODEL),
    ("probe", "r.yaml", "many.jsonl", "-j", MODEL, "--plan"),
    ("generate", "--outcome", "Is kind", "-j", MODEL, "--plan"),
])  # fmt: skip
def test_a_plan_has_the_cost_by_the_price_and_says_where_it_is_lacking(words: tuple[str, ...]) -> None:
    """The line on standard error is one that works."""
    without, found = run(*words), run(*words, *PRICED)
    assert (without.exit_code, found.exit_code) == (0, 0)
    assert "cost unknown" in without.output
    assert f"give --price {MODEL}=IN,OUT" in without.stderr
    assert "prices=" not in without.output
    assert "$0.0" in found.output
    assert "unknown" not in found.output
    assert "--price" not in found.output


def test_it_is_the_price_of_prices_in_python() -> None:
    """A million tokens that are sent, and a million that come back; it ends with its command."""
    text = run("plan", "r.yaml", "many.jsonl", "-j", MODEL, *PRICED).stdout
    rubric = Rubric("kind", ["Is kind"])
    assert repr(plan(["Hello", "Bye"], rubric, MODEL, prices={MODEL: (1, 2)})).strip("<>") == text.strip()
    assert plan(["Hello", "Bye"], rubric, MODEL).cost is None
    assert Judge(MODEL).name == MODEL


@each_row("words", [
    ("grade", "r.yaml", "reply.txt", "-j", MODEL),
    ("grade", "s.yaml", "-j", MODEL, "--max-cost", "0"),
    ("grade-many", "r.yaml", "many.jsonl", "-j", MODEL, "--max-cost", "0"),
])  # fmt: skip
def test_a_budget_holds_by_it(words: tuple[str, ...]) -> None:
    """A cap in dollars is refused without the price, and the refusal names the option."""
    if "--max-cost" in words:
        without = run(*words, "--no-keep")
        assert without.exit_code == 2
        assert "give the price: --price MODEL=IN,OUT" in without.stderr
        assert "over the budget of $0" in run(*words, *PRICED, "--no-keep").output
    assert "no judge has this model" not in run(*words, *PRICED, "--no-keep").output


@each_row("words", [
    ("plan", "r.yaml"),
    ("plan", "s.yaml"),
    ("grade", "r.yaml", "reply.txt"),
    ("grade", "s.yaml", "--quiet"),
    ("grade-many", "r.yaml", "many.jsonl"),
    ("probe", "r.yaml", "many.jsonl", "--plan"),
    ("check", "r.yaml"),
])  # fmt: skip
def test_the_price_of_a_model_that_is_not_asked_is_refused(words: tuple[str, ...]) -> None:
    """Before anything is sent, with the name that was meant; the offline judge is free."""
    found = run(*words, "-j", f"{MODEL}s", *PRICED)
    assert found.exit_code == 2
    assert f"--price {MODEL}: no judge has this model; did you mean '{MODEL}s'?" in found.stderr
    assert "no judge has this model" in run(*words, "-j", "offline", "--price", "offline=1,2").stderr


@each_row("price", [f"{MODEL}=1", f"{MODEL}=1,2,3", f"{MODEL}=a,b", "1", MODEL])
def test_what_is_no_price_is_refused_with_one_that_works(price: str) -> None:
    """So is a model that is given twice, and a price below 0."""
    found = run("plan", "r.yaml", "-j", MODEL, "--price", price)
    assert (found.exit_code, "openai/my-7b=0.10,0.40" in found.stderr) == (2, True)


def test_a_model_that_is_given_twice_and_a_price_below_0_are_refused() -> None:
    """One of two prices would have no effect."""
    assert "given twice" in run("plan", "r.yaml", "-j", MODEL, *PRICED, *PRICED).stderr
    assert "openai/my-7b=0.10,0.40" in run("plan", "r.yaml", "-j", MODEL, "--price", f"{MODEL}=-1,2").stderr


def test_it_is_refused_where_nobody_is_asked() -> None:
    """Two rubrics are compared without a judge."""
    assert "--price is for --candidates" in run("diff", "r.yaml", "r.yaml", *PRICED).stderr
