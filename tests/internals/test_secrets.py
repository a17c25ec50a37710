"""One rule says what is a secret, and everything that people read is masked by it."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Judge, Jury, Panel, Rubric, grade_many
from rubric.errors import DefinitionError
from rubric.grading.prompting import compose, shared_prompt
from rubric.internals import secrets
from rubric.internals.secrets import HIDDEN, MASK, is_secret, mask_settings, redact, values_of
from rubric.models.failure_kinds import failure_of
from rubric.models.openai_http import endpoint_of
from rubric.store.cache_key import request_of
from rubric.suites.targets.mcp_servers import StdioServer
from tests.rows import each_row

SECRET = "correct-horse-battery-7"  # noqa: S105 - made up

NAMES = [
    "api_key", "apiKey", "APIKEY", "api_key_2", "key", "x-api-key", "Ocp-Apim-Subscription-Key", "aws_access_key_id",
    "aws_secret_access_key", "aws_session_token", "token", "hf_token", "azure_ad_token", "session-token", "secret",
    "client_secret", "password", "passwd", "pwd", "PGPASSWORD", "authorization", "Proxy-Authorization", "auth", "cookie",
    "Set-Cookie", "credential", "vertex_credentials", "private_key", "private", "bearer", "signature", "X-Amz-Signature",
    "sig", "sas_token", "AccountKey", "MYSQL_PWD", "SENTRY_DSN", "connection_string", "db_pw", "otp",
]  # fmt: skip
PLAIN = [
    "max_tokens", "max_completion_tokens", "token_count", "tokens", "prompt_tokens", "cached_tokens", "tokenizer",
    "stop_token_ids", "eos_token", "logit_bias", "input_cost_per_token", "prompt_cache_key", "public_key", "key_points",
    "keyword", "monkey", "secretary", "author", "auth_type", "temperature", "model", "session_id", "passes",
]  # fmt: skip

PARAMS: list[dict[str, Any]] = [
    *({name: SECRET} for name in NAMES),
    {"extra_body": {"deep": [{"api_key": SECRET}]}},
    {"extra_headers": {"X-Anything": SECRET}},
    {"metadata": {"note": f"Bearer {SECRET}"}},
    {"api_base": f"https://me:{SECRET}@example.org/v1"},
    {"api_base": f"https://{SECRET}@example.org/v1"},
    {"api_base": f"https://example.org/v1?api-version=1&api_key={SECRET}"},
]


@each_row("name", NAMES)
def test_a_name_that_says_so_is_secret(name: str) -> None:
    """In any spelling."""
    assert is_secret(name)


@each_row("name", PLAIN)
def test_a_name_that_only_looks_like_one_is_not_secret(name: str) -> None:
    """Counts of tokens, tokens that models know, keys that all may see, and longer words."""
    assert not is_secret(name)


@each_row("params", PARAMS, ids=str)
def test_a_judge_shows_no_secret_anywhere(params: dict[str, Any]) -> None:
    """Neither it, nor its parameters, nor a jury or a panel of it, nor its table."""
    judge = Judge("openai/gpt-5.6", params={**params, "top_p": 0.5})
    shown = [
        repr(judge),
        str(judge),
        repr(judge.params),
        judge._repr_markdown_(),
        repr(Jury(judge)),
        repr(Panel([judge])),
    ]
    assert not [text for text in shown if SECRET in text or "battery" in text]
    assert all("top" in text and "0.5" in text for text in shown)
    assert pickle.loads(pickle.dumps(judge)) == judge  # noqa: S301 - our own


@each_row("params", PARAMS, ids=str)
def test_no_secret_is_in_what_the_store_keeps(params: dict[str, Any]) -> None:
    """Nor in the key, which is made of it."""
    rubric, candidate = Rubric().expects("Is polite"), Candidate("Hello")
    judge = Judge("openai/gpt-5.6", params=params)
    asked = compose(shared_prompt(candidate, rubric), rubric, judge, rubric.criteria)
    assert SECRET not in request_of(asked).text


@each_row("params", PARAMS, ids=str)
def test_no_secret_of_a_judge_is_in_an_error_that_repeats_it(params: dict[str, Any]) -> None:
    """Servers send back what they were sent, in JSON and in addresses."""
    known = values_of(params)
    if known:
        said = failure_of(RuntimeError(f"refused: {SECRET}, {json.dumps({'x': SECRET})}"), known).message
        assert SECRET not in said


def test_no_secret_of_the_environment_is_in_the_line_for_a_wrong_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has what was typed, but no key, wherever that stands in the call."""
    monkeypatch.setenv("TEAM_API_KEY", "hunter2-plain-words")
    with pytest.raises(DefinitionError, match="did you mean 'columns'") as problem:
        grade_many(["a"], Rubric.of("Is polite"), "offline", colums={"output": "hunter2-plain-words"})  # type: ignore[call-arg]
    assert "hunter2" not in str(problem.value)


def test_an_endpoint_shows_no_secret() -> None:
    """Its address may have a password and a key."""
    judge = Judge("m", via=f"https://me:{SECRET}@example.org/v1?api_key={SECRET}")
    endpoint = endpoint_of(judge, {})
    assert SECRET not in repr(endpoint)
    assert SECRET in endpoint.secrets


def test_an_address_that_is_refused_shows_no_secret() -> None:
    """A slip in its scheme does not print the password."""
    with pytest.raises(DefinitionError) as caught:
        Judge("m", via=f"htps://me:{SECRET}@example.org/v1?key={SECRET}")
    assert SECRET not in str(caught.value)


def test_a_value_of_the_environment_is_masked_where_its_variable_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parameter is called; the working folder is not a password."""
    monkeypatch.setenv("MY_CLIENT_SECRET", SECRET)
    monkeypatch.setenv("PWD", "/home/somebody")
    assert repr(Judge("m", params={"user": SECRET, "end": "/home/somebody"})) == (
        "Judge('m', params={'user': '[secret]', 'end': '/home/somebody'})"
    )


def test_masking_keeps_what_is_no_secret() -> None:
    """Numbers, flags and names stand as they are."""
    plain = {"max_tokens": 5, "logit_bias": {"50256": -100}, "stop": ["a", "b"], "api_key": None, "user": "me"}
    assert mask_settings(plain) == plain
    assert mask_settings({"api_key": "x", "n": [{"token": "y"}]}) == {"api_key": HIDDEN, "n": [{"token": HIDDEN}]}


@each_row(
    "text",
    [f'{{"api_key": "{SECRET}"}}', f"x-api-key: {SECRET}", f"password={SECRET}", f"Authorization: Token {SECRET}",
     f"see https://example.org/?sv=1&sig={SECRET}", f'{{\\"client_secret\\": \\"{SECRET}\\"}}'],
)  # fmt: skip
def test_a_secret_that_is_introduced_by_its_name_is_masked_in_a_text(text: str) -> None:
    """In JSON, in headers, in queries."""
    assert SECRET not in redact(text, environ={})


@pytest.mark.parametrize("text", ["Answer key: photosynthesis", "Key: chapter-12", "max_tokens=123456789", "a@b.org"])
def test_what_people_write_stays(text: str) -> None:
    """A report that hides words of the candidate is not a report."""
    assert redact(text, environ={}) == text


@given(st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    """A mask is not a secret."""
    once = redact(text, environ={})
    assert redact(once, environ={}) == once


def test_an_argument_after_a_secret_flag_is_masked() -> None:
    """As in `--api-key abc`."""
    assert repr(StdioServer("serve", ["--api-key", "abc", "--port", "80"])) == (
        f"StdioServer('serve', ('--api-key', '{MASK}', '--port', '80'))"
    )


def test_a_judge_that_is_changed_keeps_its_parameters() -> None:
    """Masking is for showing alone."""
    judge = Judge("m", params={"api_key": SECRET})
    assert evolve(judge, temperature=1).params["api_key"] == SECRET


@given(before=st.from_regex(r"(?:[A-Za-z]{1,8}[_.-])?", fullmatch=True), name=st.sampled_from(NAMES))
def test_a_value_after_any_name_of_a_secret_is_masked_in_a_sentence(before: str, name: str) -> None:
    """The words that are looked for first, for speed, leave out no name that announces a secret."""
    whole = before + name
    if secrets._introduces(whole):
        assert SECRET not in redact(f"It uses {whole}={SECRET} now.")


def test_a_text_that_held_nothing_is_masked_once_its_words_are_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts without a secret are kept, and the environment may change after that."""
    text = f"It logs in with {SECRET} now."
    monkeypatch.delenv("MY_CLIENT_SECRET", raising=False)
    assert redact(text) == text == redact(text)
    monkeypatch.setenv("MY_CLIENT_SECRET", SECRET)
    assert redact(text) == f"It logs in with {MASK} now."
    monkeypatch.delenv("MY_CLIENT_SECRET")
    assert redact(text) == text
    assert redact(text, [SECRET]) == f"It logs in with {MASK} now."


ENDLESS = ["a=", "a:", "eyJ-", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "://a", "?a=", "key=", "password=", "password:", "https://x?", "aaaaaaaa:", "-----BEGIN ", "sk-", "\\", '"']  # fmt: skip


@each_row("part", ENDLESS)
def test_a_long_text_of_one_word_is_masked_as_fast_as_any(part: str) -> None:
    """Read anew from each sign in it, as it once was, each of these would take a minute."""
    text = f"key {part * (100_000 // len(part))} and the password: {SECRET}"
    assert redact(text).endswith(f"and the password: {MASK}")


def test_no_text_with_a_secret_is_kept() -> None:
    """What is kept for speed holds nothing that is masked, and no long text."""
    for text in (f"password={SECRET}", "Bearer abcdefgh1234", "x" * 2_000):
        redact(text)
        assert text not in secrets._known_in(None)[1]
    for number in range(3_000):
        redact(f"the reason number {number}")
    assert len(secrets._known_in(None)[1]) <= 1024
