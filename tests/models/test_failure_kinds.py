"""From statuses, headers and messages to kinds of failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.models.failure_kinds import failure_of, failure_of_status, words_of
from rubric.values.requests import FailureKind
from tests.rows import each_row


@each_row(
    ("status", "said", "kind"),
    [
        (400, "Your credit balance is too low to access the API", "quota"),
        (402, "Payment required", "quota"),
        (429, "You exceeded your current quota, please check your plan and billing details", "quota"),
        (429, "You exceeded your current quota, check your billing. Please retry in 21.5s.", "rate_limited"),
        (500, "billing service down", "overloaded"),
        (400, "prompt is too long: 300000 tokens > 200000 maximum", "context_window"),
        (400, "The response was filtered due to Azure's content management policy", "refusal"),
        (418, "I am a teapot", "bad_request"),
        (599, "?", "overloaded"),
    ],
)
def test_kinds(status: int, said: str, kind: FailureKind) -> None:
    """The status decides, and the message where the status leaves it open."""
    assert failure_of_status(status, said).kind == kind


def test_a_wait_in_the_message() -> None:
    """Gemini's way of asking to wait, in the message, is read."""
    assert failure_of_status(429, '"retryDelay": "13s"').retry_after == 13


def test_a_wait_as_a_date() -> None:
    """A Retry-After that is an HTTP date is the time until then."""
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    wait = failure_of_status(429, "", {"retry-after": then}).retry_after
    assert wait is not None
    assert 60 < wait <= 90


@pytest.mark.parametrize("value", ["soon", "", "Fri, 99 Foo 1999"])
def test_a_wait_that_is_neither(value: str) -> None:
    """A Retry-After that is neither a number nor a date is as good as none."""
    assert failure_of_status(429, "", {"retry-after": value}).retry_after is None


@given(st.integers(100, 999), st.text(), st.text())
def test_any_answer_has_a_kind(status: int, said: str, header: str) -> None:
    """Whatever a server answers becomes a failure, and a wait is never negative."""
    failure = failure_of_status(status, said, {"retry-after": header})
    assert failure.retry_after is None or failure.retry_after >= 0


def test_a_missing_package_is_a_bad_request() -> None:
    """A vendor's package that is not installed is nothing that another attempt may cure."""
    assert failure_of(ImportError("no module named boto3")).kind == "bad_request"


def test_causes_that_go_in_a_circle() -> None:
    """Errors that name one another as their causes do not go round for ever."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert failure_of(one).kind == "bad_response"


def test_the_message_is_what_the_vendor_said() -> None:
    """Names of classes before the message, and advice after it, are left out."""
    error = ValueError("litellm.RateLimitError: RateLimitError: OpenAIException - Slow down. Handle with `litellm`.")
    assert failure_of(error).message.endswith("completion: Slow down")


@each_row("unit", [" ", "\t\n", "eyJaaaaaaaa-", "://a:", '"message": "', "Error: "])
def test_no_message_holds_up_the_loop(unit: str) -> None:
    """An error of many megabytes is cut before patterns look through it, which took minutes for 64 kB of spaces."""
    assert len(words_of(unit * (2**24 // len(unit)) + "x")) <= 200


def test_the_message_of_a_json_answer() -> None:
    """Of an answer in JSON the message and the code are kept."""
    error = ValueError('X - {"error": {"message": "No such model", "code": "gone"}}')
    assert failure_of(error).message.endswith("completion: No such model (gone)")


@pytest.mark.parametrize(
    "body",
    [
        "{" + ",".join(f'"{number}":"{{"' for number in range(9000)) + "}",
        '{"error":' * 9000,
        '{"message":"' + '{\\"message\\":' * 4000,
        '{"error":[' + '{"message":"x"},' * 4000 + "0]}",
        '{"message":"' + "input token " * 5000 + '"}',
    ],
    ids=["texts", "deep", "nested texts", "many messages", "words"],
)
def test_no_json_holds_up_the_loop(body: str) -> None:
    """An error in JSON is read to a depth, a number of messages and a length that cost a few milliseconds."""
    began = process_time()
    assert failure_of_status(400, body).kind in ("bad_request", "context_window")
    assert process_time() - began < 0.5
