"""The behavioural cases of promptfoo's `llm-rubric`: each is loaded from a configuration, graded, and compared."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from rubric.engine.grade import grade
from rubric.errors import LoadError, UngradedError
from rubric.formats.assertions.texts import assertion_of
from rubric.formats.suites import load_suite
from rubric.results.result import Grade, Ungraded
from rubric.suites.cases import Case
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Reply
from rubric.values.rubrics import Rubric
from tests.places import SHARED

FILE = SHARED / "upstream_cases.json"
ALL: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []

pytestmark = pytest.mark.skipif(not ALL, reason="the behavioural cases are not beside the project")

Spec = dict[str, Any]

GRADED = [case for case in ALL if case["format"].startswith("promptfoo") and "assert" in case["rubric"]]
SHORT = [case for case in ALL if case["format"] == "promptfoo-csv" and "__expected" in case["rubric"]]


# -- replies, as the rules below see them --------------------------------------------------------------


def objects(spec: Spec) -> list[list[dict[str, Any]]]:
    """Return the verdicts (JSON objects) in each reply, Python literals included, thinking not."""
    replies = [reply if isinstance(reply, str) else json.dumps(reply) for reply in spec["judge_replies"]]
    return [list(_objects(re.sub("<think>.*</think>", "", reply, flags=re.DOTALL))) for reply in replies]


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(), 0
    reply = reply.replace("True", "true").replace("False", "false").replace("None", "null")
    reply = reply if '"' in reply else reply.replace("'", '"')
    while (position := reply.find("{", position)) >= 0:
        try:
            found, position = decoder.raw_decode(reply, position)
        except ValueError:
            position += 1
        else:
            if not found.keys().isdisjoint({"pass", "score"}):
                yield found


def first_objects(spec: Spec) -> Iterator[dict[str, Any]]:
    """Yield the first JSON object of each reply that has one, whatever is in it."""
    for reply in spec["judge_replies"]:
        try:
            found, _ = json.JSONDecoder().raw_decode(reply, reply.index("{")) if isinstance(reply, str) else (reply, 0)
        except ValueError:
            continue
        if isinstance(found, dict) and "__error" not in found and "__raw" not in found:
            yield found


def verdicts(spec: Spec) -> list[dict[str, Any]]:
    """Return the verdicts of all replies."""
    return [found for reply in objects(spec) for found in reply]


def is_number(value: Any) -> bool:
    """Say whether *value* is a number, or is written as one."""
    if isinstance(value, str):
        return re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


NO_WORDS = frozenset({"false", "no", "fail", "failed", "n", "unsatisfied", "unmet", "incorrect"})
THEIR_YES = frozenset({"true", "yes", "pass", "y"})
OUR_YES = frozenset({"passed", "satisfied", "met", "correct"})


def word(verdict: dict[str, Any]) -> str | None:
    """Return the pass flag of a *verdict* as a word; None where there is none."""
    flag = verdict.get("pass")
    return None if flag is None else str(flag).lower() if isinstance(flag, bool | str) else repr(flag)


def has_no_verdict(spec: Spec) -> bool:
    """Say whether the pass flag is missing, and no threshold with a score stands in for it."""
    bar = any("threshold" in assertion for assertion in spec["rubric"].get("assert", ()))
    if not verdicts(spec) and any(True for _ in first_objects(spec)):
        return True
    return any(word(v) is None and ("pass" in v or not bar or v.get("score") is None) for v in verdicts(spec))


def has_two_verdicts(spec: Spec) -> bool:
    """Say whether a reply holds two verdicts that disagree."""
    return any(len({(word(v), str(v.get("score"))) for v in reply}) > 1 for reply in objects(spec))


def starts_with_another_object(spec: Spec) -> bool:
    """Say whether the verdict of a reply is not the first object in it."""
    thinks = any("<think>" in str(reply) for reply in spec["judge_replies"])
    notes = any(first.keys().isdisjoint({"pass", "score"}) for first in first_objects(spec))
    return bool(verdicts(spec)) and (thinks or notes)


def does_not_end(spec: Spec) -> bool:
    """Say whether an object in a reply is not closed."""
    bare = [re.sub(r'"(?:\\.|[^"\\])*"', "", reply) for reply in spec["judge_replies"] if isinstance(reply, str)]
    return any(text.count("{") > text.count("}") for text in bare)


def fails_to_grade(spec: Spec) -> bool:
    """Say whether promptfoo itself makes of some reply a grader failure: nothing was said, or nothing with braces."""
    said = [reply for reply in spec["judge_replies"] if not isinstance(reply, dict)]
    return any("__error" in reply for reply in spec["judge_replies"] if isinstance(reply, dict)) or any(
        not isinstance(reply, str) or "{" not in reply for reply in said
    )


def has_a_key_twice(spec: Spec) -> bool:
    """Say whether a verdict has its flag or its score twice."""
    texts = [reply for reply in spec["judge_replies"] if isinstance(reply, str)]
    return any(len(pairs) > len(dict(pairs)) for text in texts for pairs in _pairs(text))


def _pairs(text: str) -> list[list[tuple[str, Any]]]:
    """Return the flags and the scores of the objects of *text*, keys that stand twice in one of them twice."""
    found: list[list[tuple[str, Any]]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.append([pair for pair in pairs if pair[0] in ("pass", "score")])
        return dict(pairs)

    with contextlib.suppress(ValueError):
        json.JSONDecoder(object_pairs_hook=keep).raw_decode(text, text.index("{"))
    return found


def is_at_the_threshold(spec: Spec) -> bool:
    """Say whether the score misses the threshold of the test by no more than a float does."""
    least = spec["rubric"].get("threshold")
    return least is not None and 0 < float(least) - spec["expected"].get("score", 1) < 1e-9


def has_a_negative_weight(spec: Spec) -> bool:
    """Say whether an assertion weighs less than nothing."""
    return re.search(r'"weight": -', json.dumps(spec["rubric"])) is not None


def has_no_number(spec: Spec) -> bool:
    """Say whether a score is there and is not a number."""
    return any("score" in v and not is_number(v["score"]) for v in verdicts(spec))


def is_out_of_range(spec: Spec) -> bool:
    """Say whether a score lies outside 0..1."""
    return any(is_number(v.get("score")) and not 0 <= float(v["score"]) <= 1 for v in verdicts(spec))


def has_no_clear_flag(spec: Spec) -> bool:
    """Say whether a pass flag is neither a yes nor a no."""
    words = [word(v) for v in verdicts(spec)]
    return any(w is not None and w.strip() not in THEIR_YES | OUR_YES | NO_WORDS for w in words)


def has_another_yes(spec: Spec) -> bool:
    """Say whether a pass flag is a yes that promptfoo does not know."""
    words = [word(v) for v in verdicts(spec)]
    return any(w is not None and w not in THEIR_YES and w.strip() in THEIR_YES | OUR_YES for w in words)


def is_old_negation(spec: Spec) -> bool:
    """Say whether `not-` is read as by versions in which it had no effect."""
    return "<=" in spec["format"] and any(a["type"].startswith("not-") for a in spec["rubric"]["assert"])


@frozen
class Deviation:
    """
    Where we do otherwise on purpose: *why*, and what is checked instead.

    It is `ungraded`, `refused` while loading, `passes` or `inverted`, or its own verdict is `read`.
    """

    applies: Callable[[Spec], bool]
    becomes: str
    why: str


DEVIATIONS = {
    "no verdict": Deviation(has_no_verdict, "ungraded", "a reply without a pass flag is not a pass"),
    "two verdicts": Deviation(has_two_verdicts, "ungraded", "which one holds is a guess; promptfoo takes the first"),
    "a key twice": Deviation(has_a_key_twice, "ungraded", "which one holds is a guess; promptfoo takes the last"),
    "score no number": Deviation(has_no_number, "ungraded", "a score would be made up; promptfoo takes the flag's"),
    "score out of range": Deviation(is_out_of_range, "ungraded", "it was meant on another scale; promptfoo keeps it"),
    "flag unclear": Deviation(has_no_clear_flag, "ungraded", "neither yes nor no; promptfoo reads a no"),
    "another yes": Deviation(has_another_yes, "passes", "`passed` and outer white space mean yes; promptfoo: no"),
    "verdict not first": Deviation(starts_with_another_object, "read", "an object without a verdict is none"),
    "cut off": Deviation(does_not_end, "ungraded", "what is missing may have said otherwise; promptfoo closes it"),
    "failure among others": Deviation(fails_to_grade, "ungraded", "a judge that failed said nothing, not even 0"),
    "float": Deviation(is_at_the_threshold, "meets", "a mean of exactly the threshold meets it"),
    "negative weight": Deviation(has_a_negative_weight, "refused", "promptfoo adds it up; no mean is meant so"),
    "old not-": Deviation(is_old_negation, "inverted", "`not-` turns the outcome over, as since promptfoo 0.121.10"),
}


# -- the adapter -----------------------------------------------------------------------------------------


def loaded(test: dict[str, Any], folder: Path) -> Case:
    """Return the case of a configuration with one *test*."""
    options = {**test.get("options", {}), "disableVarExpansion": True}
    file = folder / "promptfooconfig.json"
    file.write_text(json.dumps({"prompts": ["Say it."], "tests": [{**test, "options": options}]}), encoding="utf-8")
    suite = load_suite(file)
    assert suite.format == "promptfoo"
    (case,) = suite
    return case


def line_of(reply: Any) -> Any:
    """Return a reply of the file as a line of a script."""
    if isinstance(reply, dict) and "__error" in reply:
        return Failure("exception", reply["__error"])
    if isinstance(reply, dict) and "__raw" in reply:
        return reply["__raw"] if isinstance(reply["__raw"], dict) else Reply(reply["__raw"])
    return reply


def graded(spec: Spec, folder: Path) -> tuple[Grade | Ungraded, list[Ask]]:
    """Return the result of *spec*, and what the judge was asked. One reply serves however many asks there are."""
    case = loaded(spec["rubric"], folder).answered(spec["candidate"])
    assert case.candidate is not None
    replies = [line_of(reply) for reply in spec["judge_replies"]]
    model = ScriptedModel((lambda _: replies[0]) if len(replies) == 1 else replies)
    try:
        return grade(case.candidate, case.rubric, Judge(model, repairs=0, retries=0)), model.asks
    except UngradedError as problem:
        return problem.result, model.asks


def components(rubric: Rubric, findings: Sequence[Any]) -> Iterator[tuple[float | None, bool | None]]:
    """Yield the score and the verdict of each assertion, sets before their parts; weight 0 has no verdict."""
    for criterion, finding in zip(rubric.judged, findings, strict=True):
        inner = criterion.answer
        holds = finding.reason.partition(",")[0] == "pass" if isinstance(inner, Rubric) else finding.flag is not False
        yield finding.score, holds if criterion.weight else None
        if isinstance(inner, Rubric) and len(inner.judged) > 1:
            yield from components(inner, finding.parts)


def check_components(result: Grade, wanted: Sequence[dict[str, Any]]) -> None:
    """Compare what became of each assertion; sets come before their parts in both."""
    found = list(components(result.rubric, result.findings))
    if len(found) == len(wanted) - 1 and len(result.rubric.judged) == len(found):
        wanted = wanted[1:]  # one set, and nothing beside it, is the rubric itself
    assert [score for score, _ in found] == [part["score"] for part in wanted]
    assert all(holds in (None, part["pass"]) for (_, holds), part in zip(found, wanted, strict=True))


def reasons(findings: Sequence[Any]) -> Iterator[str]:
    """Yield the reasons of *findings*, and of all that is nested in them."""
    for finding in findings:
        yield finding.reason
        yield from reasons(finding.parts)


def shows_data(spec: Spec) -> bool:
    """Say whether a list or a mapping is shown in a text: ours is JSON, promptfoo's is what JavaScript makes of it."""
    data = [name for name, value in spec["rubric"].get("vars", {}).items() if isinstance(value, list | dict)]
    texts = json.dumps([spec["rubric"]["assert"], spec["rubric"].get("options", {})])
    return any(re.search(rf"\{{\{{\s*{re.escape(name)}\b", texts) for name in data)


def check_prompt(spec: Spec, asks: Sequence[Ask]) -> None:
    """The candidate, as it is, and the rendered rubric stand in what was sent; messages of one's own are sent."""
    expected = spec["expected"]
    sent = "\n".join(message.text for ask in asks for message in ask.messages)
    if "prompt_user" in expected:
        assert spec["candidate"] in sent
        rubric = expected["prompt_user"].rpartition("<Rubric>\n")[2].removesuffix("\n</Rubric>")
        assert shows_data(spec) or is_listed(spec) or rubric.strip() in sent
    if "prompt" in expected and not shows_data(spec):
        text = re.sub(r"^\s*//.*$", "", expected["prompt"], flags=re.MULTILINE)
        wanted = json.loads(text) if text.startswith("[") else [{"role": "user", "content": text}]
        assert [{"role": m.role, "content": m.text} for m in asks[0].messages] == wanted


def is_listed(spec: Spec) -> bool:
    """Say whether a rubric is a list: ours are criteria, promptfoo's one text with commas."""
    return any(isinstance(assertion.get("value"), list) for assertion in spec["rubric"]["assert"])


def check_items(spec: Spec, asks: Sequence[Ask]) -> None:
    """A list is asked one by one; each of its texts stands in an ask of its own."""
    (assertion,) = spec["rubric"]["assert"]
    assert len(asks) == len(assertion["value"])
    for ask, item in zip(asks, assertion["value"], strict=True):
        text = item if isinstance(item, str) else item["outcome"]
        assert text.partition("{{")[0].strip() in ask.messages[-1].text


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec["id"]) for spec in GRADED])
def test_a_case_grades_as_promptfoo_does_or_as_a_rule_says(spec: Spec, tmp_path: Path) -> None:
    """Score, verdict, reason, calls and prompt are promptfoo's, or what is proposed, but for the listed deviations."""
    expected, proposed = spec["expected"], str(spec.get("proposed", ""))
    becomes = {deviation.becomes for deviation in DEVIATIONS.values() if deviation.applies(spec)}
    refused = proposed.startswith("load error") or "refused" in becomes
    if refused or expected.get("error") not in (None, "judge_error"):
        with pytest.raises(LoadError, match=r"promptfooconfig\.json:1:"):
            loaded(spec["rubric"], tmp_path)
        return
    result, asks = graded(spec, tmp_path)
    read_better = proposed.startswith("score ")  # a reply that promptfoo cannot read, and a JSON decoder can
    if "ungraded" in becomes or proposed.startswith("judge error") or (expected.get("error") and not read_better):
        assert isinstance(result, Ungraded)
        return
    assert isinstance(result, Grade)
    if is_listed(spec):
        check_items(spec, asks)
    else:
        assert len(asks) == expected.get("judge_calls", len(spec["judge_replies"]))
    score, passed = expected.get("score", result.score), expected.get("pass", result.passed)
    if "inverted" in becomes:
        score, passed = 1 - score, not passed
    if becomes & {"passes", "read"}:
        (said,) = verdicts(spec)
        passed = "passes" in becomes or word(said) in THEIR_YES
        score = said.get("score", int(passed))
    if "meets" in becomes:
        passed = True
    if figures := re.match(r"score ([\d.]+), pass (true|false)", proposed):
        score, passed = float(figures[1]), figures[2] == "true"
    assert result.score == pytest.approx(score)
    assert result.passed == passed
    if expected.get("components"):
        check_components(result, expected["components"])
    given = {v["reason"].strip() for v in verdicts(spec) if isinstance(v.get("reason"), str)}
    assert given <= set(reasons(result.findings))
    check_prompt(spec, asks)


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec["id"]) for spec in SHORT])
def test_a_shorthand_stands_for_its_assertion(spec: Spec) -> None:
    """
    What stands in an `__expected` column is the assertion that promptfoo makes of it.

    A threshold that is written in brackets is kept where promptfoo drops it, and one that is not is not made up.
    """
    text, wanted = spec["rubric"]["__expected"], spec["expected"].get("assertion")
    found = assertion_of(text)
    written = re.match(r"[\w-]+\((\d+(?:\.\d+)?)\)", text)
    if wanted is None or (written and wanted == {"type": "equals", "value": text}):
        assert found["type"]
        return
    assert found.get("threshold") == (float(written[1]) if written else None)
    assert {**found, "threshold": None} == {**wanted, "threshold": None}


def test_every_deviation_is_met_by_a_case() -> None:
    """No deviation is listed that no case needs."""
    # cases of these are among those that are kept for acceptance
    unclear = {"flag unclear", "verdict not first", "float", "negative weight", "cut off"}
    assert {
        name for name, d in DEVIATIONS.items() if any(d.applies(spec) for spec in GRADED)
    } >= DEVIATIONS.keys() - unclear
