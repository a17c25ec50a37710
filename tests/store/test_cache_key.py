"""What a reply is kept under: everything that determines it, and nothing else, and no secret."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, Judge, Jury, Panel, Rubric, evaluate, grade_many, judge_function
from rubric.errors import DefinitionError
from rubric.grading.prompting import compose, shared_prompt
from rubric.store import cache_key
from rubric.store.cache_key import request_of
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.answers import Unit
from rubric.values.requests import Ask

SECRET = "sk-0123456789abcdefghij"  # noqa: S105 - it opens nothing


def ask(judge: Judge | None = None, candidate: Candidate | str = "Good morning!", **changes: Any) -> Ask:
    """Return an ask of *judge* about *candidate*."""
    rubric = Rubric("polite", criteria=[Criterion("Is polite")])
    about = shared_prompt(Candidate.of(candidate), rubric)
    return evolve(compose(about, rubric, judge or Judge("openai/gpt-5.6"), rubric.criteria), **changes)


def key(judge: Judge | None = None, candidate: Candidate | str = "Good morning!", **changes: Any) -> str:
    """Return the key of such an ask."""
    return request_of(ask(judge, candidate, **changes)).key


OTHERS: dict[str, Callable[[], str]] = {
    "model": lambda: key(Judge("openai/gpt-5.5")),
    "candidate": lambda: key(candidate="Good evening!"),
    "task": lambda: key(candidate=Candidate("Good morning!", input="Greet me")),
    "temperature": lambda: key(Judge("openai/gpt-5.6", temperature=0)),
    "seed": lambda: key(Judge("openai/gpt-5.6", seed=1)),
    "effort": lambda: key(Judge("openai/gpt-5.6", params={"reasoning_effort": "low"})),
    "nested parameter": lambda: key(Judge("openai/gpt-5.6", params={"thinking": {"budget_tokens": 1024}})),
    "list of tokens": lambda: key(Judge("openai/gpt-5.6", params={"stop_token_ids": [1, 2]})),
    "address": lambda: key(Judge("openai/gpt-5.6", params={"api_base": "http://localhost:1/v1"})),
    "another address": lambda: key(Judge("openai/gpt-5.6", params={"base_url": "http://localhost:2/v1"})),
    "way": lambda: key(Judge("openai/gpt-5.6", via="http")),
    "probabilities": lambda: key(Judge("openai/gpt-5.6", logprobs=True)),
    "reason": lambda: key(Judge("openai/gpt-5.6", reasoning="after")),
    "schema": lambda: key(schema=ask().schema.__class__({"type": "object"})),
    "longest reply": lambda: key(Judge("openai/gpt-5.6", max_tokens=8192)),
    "vote": lambda: key(vote=1),
    "repair": lambda: key(repair=1),
    "choices": lambda: key(n=3),
    "media": lambda: key(candidate=Candidate("Good morning!", images=["https://example.org/a.png"])),
}


def test_everything_that_determines_a_reply_changes_the_key() -> None:
    """No two of nineteen asks that may be answered differently share a key (E7, E9)."""
    found = {name: make() for name, make in OTHERS.items()} | {"plain": key()}
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("change", [{"timeout": 5}, {"retries": 7}, {"repairs": 3}, {"per_call": 4}], ids=str)
def test_how_an_ask_is_handled_is_no_part_of_its_key(change: dict[str, Any]) -> None:
    """Deadlines and retries may change between two runs, and everything is still there."""
    assert key(Judge("openai/gpt-5.6", **change)) == key()


def test_every_field_of_an_ask_is_in_the_key_or_known_to_make_no_difference() -> None:
    """A field that is added later changes the key when it is not what it is by default; none is forgotten."""
    names = {f.name for f in attrs.fields(Ask)} | {f.name for f in attrs.fields(Judge)}
    skipped = cache_key._IN_REQUEST | cache_key._READING | cache_key._HANDLING
    assert skipped <= names
    assert names - skipped >= {"media", "n", "repair", "schema", "seed", "temperature", "via", "vote"}


@given(st.sampled_from(["api_key", "aws_session_token", "client_secret", "azure_ad_token", "vertex_credentials"]))
def test_a_secret_is_neither_kept_nor_part_of_the_key(name: str) -> None:
    """A key that is renewed changes nothing, and none is in the file."""
    one = Judge("openai/gpt-5.6", params={name: SECRET, "top_p": 0.5})
    other = Judge("openai/gpt-5.6", params={"top_p": 0.5})
    assert request_of(ask(one)) == request_of(ask(other))


@pytest.mark.parametrize("headers", [{}, {"X-Team-Key": SECRET, "X-Route": "canary"}], ids=["none", "some"])
def test_headers_are_no_part_of_the_key_nor_of_the_digest(headers: dict[str, str]) -> None:
    """What was recorded with a header of a team's is replayed in CI, where nobody has it."""
    judge, plain = Judge("openai/gpt-5.6", params={"extra_headers": headers}), Judge("openai/gpt-5.6")
    assert request_of(ask(judge)) == request_of(ask(plain))
    assert (judge.digest, cache_key.fingerprint(judge)) == (plain.digest, cache_key.fingerprint(plain))


@pytest.mark.parametrize(
    "params",
    [
        {"extra_headers": {"Authorization": f"Bearer {SECRET}", "X-Route": "canary"}},
        {"extra_body": {"api_key": SECRET}},
        {"api_base": f"https://user:{SECRET}@example.org/v1"},
    ],
    ids=str,
)
def test_a_secret_within_a_parameter_is_not_kept(params: dict[str, Any]) -> None:
    """Headers, nested settings and addresses may hold one."""
    assert SECRET not in request_of(ask(Judge("openai/gpt-5.6", params=params))).text


def test_a_password_in_an_address_is_no_part_of_the_key() -> None:
    """The endpoint is the same, whoever asks."""
    one = {"api_base": "https://me:old@example.org/v1"}
    other = {"api_base": "https://me:new@example.org/v1/"}
    assert key(Judge("openai/gpt-5.6", params=one)) == key(Judge("openai/gpt-5.6", params=other))


@pytest.mark.parametrize("name", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_an_address_in_the_environment_is_part_of_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server is another one, however it was named."""
    before = key()
    monkeypatch.setenv(name, "http://localhost:4000")
    assert key() != before


@given(st.text(st.characters()), st.booleans())
def test_a_key_is_the_digest_of_the_whole_request(text: str, own: bool) -> None:
    """The parts that are kept make the whole again, whatever stands in them; with a prompt of the user's own too."""
    prompt = "Look at {{output}}, then at {{criterion}}: {{output}} {{reply}}" if own else None
    asked = ask(Judge("openai/gpt-5.6", prompt=prompt), f"{text}.", vote=1)
    request = request_of(asked)
    whole = json.loads(request.text)
    assert whole["messages"] == [[message.role, message.text] for message in asked.messages]
    assert (whole["vote"], whole["model"]) == (1, "openai/gpt-5.6")
    assert request.text == json.dumps(whole, sort_keys=True, separators=(",", ":"))
    assert request.key == hashlib.sha256(request.text.encode()).hexdigest()


def test_equal_judges_have_equal_keys() -> None:
    """A judge says the same with 1 and with 1.0."""
    one, other = (Judge("openai/gpt-5.6", temperature=1, params={"top_p": number}) for number in (1, 1.0))
    assert one == other
    assert key(one) == key(other)


@given(st.text())
def test_any_text_has_a_key(text: str) -> None:
    """Also one with half surrogates and line breaks of every sort."""
    assert key(candidate=text) == key(candidate=text)


def test_a_key_is_the_same_in_every_process() -> None:
    """The mark and the nonce are derived from the texts, and nothing depends on hashes that differ between runs."""
    script = "from tests.store.test_cache_key import key; print(key())"
    outcomes = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert outcomes == [key(), key()]


def answering(_: list[dict[str, Any]]) -> str:
    """Stand for a judge that is a function."""
    raise AssertionError


class Client:
    """A model of one's own, with an address and a key."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, messages: list[dict[str, Any]]) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (answering, "Judge(answering, identity='v1')"),
        (lambda _: "", "Judge(function, identity='v1')"),
        (functools.partial(answering), "Judge(function, identity='v1')"),
        (Client("a").ask, "Judge(ask, identity='v1')"),
        (judge_function(lambda c, k: True), "judge_function(function, identity='v1')"),
        (Panel(["offline", Jury(answering, 2)]), "Judge(answering, identity='v1')"),
    ],
    ids=["function", "lambda", "partial", "method", "judge_function", "panel"],
)
def test_a_store_refuses_a_function_that_nobody_identifies(function: Any, cure: str, tmp_path: Path) -> None:
    """What it calls cannot be known: the error has the line that works, before anything is asked."""
    for door in (evaluate, lambda *given, **more: grade_many([given[0]], *given[1:], **more).collect()):
        with pytest.raises(DefinitionError, match=re.escape(cure)):
            door("Good morning!", Rubric(["Is polite"]), function, store=tmp_path / "s.db")


def test_a_function_is_told_by_its_identity(tmp_path: Path) -> None:
    """Under the same text it is the same judge, whatever its code; under another one it is asked again."""
    said: list[str] = []

    def judged(verdict: str, identity: str) -> float | None:
        def judge(_: list[dict[str, Any]]) -> str:
            said.append(verdict)
            return f'{{"verdict": {verdict}}}'

        return evaluate(
            "Good morning!", Rubric(["Is polite"]), Judge(judge, identity=identity), store=tmp_path / "s.db"
        ).score

    assert [judged("true", "v1"), judged("false", "v1"), judged("false", "v2")] == [1, 1, 0]
    assert said == ["true", "false"]


def test_an_object_may_say_who_it_is() -> None:
    """What it says stands for it."""
    one, other = Judge(ScriptedModel([])), Judge(ScriptedModel([]))
    assert key(one) != key(other)
    assert key(evolve(one, identity="the same")) != key(other)
    assert key(evolve(one, identity="the same")) == key(evolve(other, identity="the same"))


@pytest.mark.parametrize("model", ["openai/gpt-5.6", "offline"])
def test_a_name_needs_no_identity(model: str) -> None:
    """An identity beside a name would do nothing."""
    with pytest.raises(DefinitionError, match="is known by it"):
        Judge(model, identity="v1")


def test_a_criterion_with_another_answer_is_another_ask() -> None:
    """The same text, asked for a number instead of a yes, is not answered from the yes (E9)."""
    rubric = Rubric("polite", criteria=[Criterion("Is polite", answer=Unit())])
    asked = compose(shared_prompt(Candidate("Good morning!"), rubric), rubric, Judge("openai/gpt-5.6"), rubric.criteria)
    assert request_of(asked).key != key()
