"""Conversions: what a file of another system holds comes back, losses are told, and a proof replays a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from rubric import Criterion, Judge, Rubric, Store
from rubric.__main__ import main
from rubric.errors import DefinitionError, DumpError
from rubric.formats.suites import convert, dump_suite, load_suite, loads_suite
from rubric.suites.cases import Case
from rubric.suites.proof import prove
from rubric.suites.suite import Suite
from rubric.values import Script
from tests.suite_help import GOOD, TWO, one


@pytest.mark.parametrize("form", ["promptfoo", "agentv-2", "native"])
@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x"])
def test_a_value_that_no_file_can_hold_is_refused(form: str, value: object) -> None:
    """Whatever the format is, it is a `DumpError` that says what can be written."""
    case = Case("a", Rubric(criteria=[Criterion("Is warm")]), output=GOOD, metadata={"note": value})
    with pytest.raises(DumpError, match="use texts, finite numbers, booleans, lists and mappings"):
        convert(Suite("s", [case]), form)


@pytest.mark.parametrize("form", ["promptfoo", "mcptest"])
def test_a_file_that_would_grade_nothing_is_refused(form: str) -> None:
    """It would not load; the reason is that of the first loss."""
    rubric = Rubric(criteria=[Criterion("Blames the reader", id="blames", polarity="penalty")])
    with pytest.raises(DumpError, match="nothing is left of it to grade by"):
        convert(Suite("s", [Case("a", rubric, output=GOOD)]), form)


def stored(folder: Path, suite: Suite) -> Path:
    """Return the store of a run of *suite* by the offline judge."""
    file = folder / "replies.db"
    suite.run("offline", store=file)
    return file


def test_a_conversion_that_keeps_each_verdict_is_proven(tmp_path: Path) -> None:
    """Each case is graded again from the store; the model is not asked."""
    suite = one()
    file = stored(tmp_path, suite)
    again = loads_suite(str(convert(suite)))
    with Store(file, mode="replay") as store:
        proof = prove(suite, again, store, Judge("offline"))
    assert (proof.same, proof.changes, proof.unproven) == (1, (), ())


def test_a_verdict_that_changes_is_listed(tmp_path: Path) -> None:
    """HealthBench has no threshold, so a case that needs all passes with a part of it."""
    rubric = Rubric(criteria=[Criterion("release", id="a", weight=9), Criterion("quantum", id="b")], threshold=1)
    suite = one(rubric)
    file = stored(tmp_path, suite)
    after = Suite("one", [Case("a", Rubric(criteria=rubric.criteria), output=GOOD)])
    with Store(file, mode="replay") as store:
        (change,) = prove(suite, after, store, Judge("offline"))
        assert (change.before, change.after) == ("fail (0.9)", "pass (0.9)")
        (left_out,) = prove(suite, Suite("none", []), store, Judge("offline"))
        assert left_out.after == "left out"


def test_a_case_that_is_asked_in_other_words_is_no_proof(tmp_path: Path) -> None:
    """Nobody knows what the judge would have said; a case that was never run is not proven either."""
    suite = one()
    file = stored(tmp_path, suite)
    other = one(Rubric("two", criteria=["Says something else"]))
    with Store(file, mode="replay") as store:
        (change,) = prove(suite, other, store, Judge("offline"))
        assert change.after == "asked in other words, so not known"
        assert prove(other, suite, store, Judge("offline")).unproven == ("a",)


def test_a_case_with_images_is_proven_with_them(tmp_path: Path) -> None:
    """A replay finds the stored replies of a case with images."""
    suite = Suite("one", [evolve(case, images=["data:image/png;base64,AAAA"]) for case in one()])
    file = stored(tmp_path, suite)
    with Store(file, mode="replay") as store:
        assert prove(suite, suite, store, Judge("offline")).same == 1


def test_a_case_that_is_never_graded_is_not_proven(tmp_path: Path) -> None:
    """A case whose script may not run counts as unproven, not as the same."""
    suite = one(Rubric(criteria=[Criterion("It agrees", answer=Script(["true"]))]))
    file = stored(tmp_path, suite)
    with Store(file, mode="replay") as store:
        proof = prove(suite, suite, store, Judge("offline"))
    assert (proof.same, proof.unproven) == (0, ("a",))


def test_a_proof_refuses_a_store_that_could_send(tmp_path: Path) -> None:
    """Opened for a replay, a store sends nothing."""
    with Store(tmp_path / "new.db") as store, pytest.raises(DefinitionError, match="mode='replay'"):
        prove(one(), one(), store)


def test_the_command_proves_a_conversion(tmp_path: Path) -> None:
    """It exits with 0 where all is as before, and with 1 where a verdict changes."""
    guard = Rubric(criteria=[Criterion("release", id="a", weight=9), Criterion("quantum", id="b", min_score=0.9)])
    for name, own, code in (("same", TWO, 0), ("changed", guard, 1)):
        suite, file = one(own), tmp_path / f"{name}.yaml"
        dump_suite(suite, file)
        (tmp_path / name).mkdir()
        store = stored(tmp_path / name, load_suite(file))
        form = "native" if not code else "mcptest"
        command = ["convert", str(file), "--to", form, "--prove", str(store), "--judge", "offline"]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == code, result.output
        assert ("1 case graded as before" if not code else "changed: a: fail (0.9) before") in result.output


def test_the_responses_of_a_target_are_given_for_the_proof(tmp_path: Path) -> None:
    """The store has the replies of judges; the file of outputs has what they judged."""
    file, outputs = tmp_path / "a.yaml", tmp_path / "outputs.jsonl"
    suite = Suite("one", [Case("a", TWO)])
    dump_suite(suite, file)
    outputs.write_text(json.dumps({"id": "a", "output": GOOD}), "utf-8")
    store = stored(tmp_path, load_suite(file).answered(outputs))
    command = ["convert", str(file), "--prove", str(store), "--judge", "offline"]
    assert CliRunner().invoke(main, command).exit_code == 1
    result = CliRunner().invoke(main, [*command, "--outputs", str(outputs)])
    assert result.exit_code == 0, result.output
    assert "1 case graded as before" in result.output


def test_a_judge_without_a_proof_is_refused(tmp_path: Path) -> None:
    """It would do nothing."""
    file = tmp_path / "a.yaml"
    dump_suite(one(), file)
    result = CliRunner().invoke(main, ["convert", str(file), "--judge", "offline"])
    assert result.exit_code == 2
    assert "--prove" in result.output
