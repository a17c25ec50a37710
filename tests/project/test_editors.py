"""What editors show: completions, signatures, and names without the modules behind them."""

from __future__ import annotations

import inspect
from pathlib import Path

import jedi

import rubric
from tests.rows import each_row

HERE = Path(__file__)


def completed(code: str) -> list[str]:
    script = jedi.Script(f"from rubric import *\n{code}", path=HERE.with_name("typed_here.py"))
    return [completion.name for completion in script.complete()]


@each_row(
    ("code", "name"),
    [
        ('Rubric("x").expects("a", we', "weight="),
        ('Rubric("x").expects("a").requires("b", evi', "evidence="),
        ('Rubric("x").rates("a", 1, 5).chooses("b", ["c", "d"], min_', "min_score="),
        ('Rubric("x").penalizes("a", po', "points="),
        ('Rubric("x").exp', "expects"),
        ('grade("x", Rubric("x"), "offline", inp', "input="),
        ('grade("x", Rubric("x"), "offline").sco', "score"),
        ('grade_many([], Rubric("x")).coll', "collect"),
        ("Rubric.fro", "from_yaml"),
        ('evaluate("x", Rubric("x"), "offline", inp', "input="),
        ('prefer("x", "y", Rubric("x"), both', "both_orders="),
        ("prefer_many([], Rubric('x'), both", "both_orders="),
        ('Suite("x").run("offline", fail', "fail_fast="),
        ("import rubric.quality\nrubric.quality.generate('x', pref", "preferred="),
        ("import rubric.batches\nrubric.batches.grade_in_batches([], 'x', 'offline', colu", "columns="),
        ("import rubric.batches\nrubric.batches.cancel_batches(jud", "judge="),
    ],
)
def test_an_editor_completes(code: str, name: str) -> None:
    """Keywords, verbs, fields and methods are completed on chained calls."""
    assert name in completed(code)


VERBS = "requires expects scores rates chooses forbids penalizes checks decides includes".split()  # noqa: SIM905


@each_row("verb", VERBS)
def test_a_verb_writes_its_options_out(verb: str) -> None:
    """Those of a criterion, but for those that the verb itself sets or that would do nothing."""
    options = inspect.signature(getattr(rubric.Rubric, verb)).parameters
    assert not [each for each in options.values() if each.kind is each.VAR_KEYWORD]
    assert {"id", "when", "tags", "metadata"} <= {*options} <= {*inspect.signature(rubric.Criterion).parameters} | {
        "self", "high", "points", "by", "rubric",
    }  # fmt: skip


def test_modules_are_not_among_the_names_of_the_package() -> None:
    """`dir(rubric)` lists no module, also after one was imported."""
    import rubric.engine.grade

    assert not [name for name in dir(rubric) if inspect.ismodule(getattr(rubric, name))]
