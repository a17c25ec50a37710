"""Secrets are masked by value and by shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.internals.secrets import MASK, redact
from tests.rows import each_row

SHAPES = [
    "sk-proj-abcdefghijklmnop",
    "sk-ant-api03-abcdefghijklmnop",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0123456789",
    "xoxb-123456789012-abcdefghij",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz012345",
    "gsk_abcdefghijklmnop",
    "hf_abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijk",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----",
]


@each_row("secret", SHAPES)
def test_known_shapes_are_masked(secret: str) -> None:
    """What looks like a key is masked, whoever issued it."""
    assert redact(f"before {secret} after", environ={}) == f"before {MASK} after"


@pytest.mark.parametrize("text", ["Authorization: Bearer 0123456789abcdef", "https://host/?api_key=0123456789abcdef"])
def test_what_is_said_to_be_a_key_is_masked(text: str) -> None:
    """A value that is introduced as a credential is masked, whatever its shape."""
    assert "0123456789abcdef" not in redact(text, environ={})


def test_passwords_in_addresses_are_masked() -> None:
    """User and password of an address are masked; the host is not."""
    assert redact("https://me:hunter2@host/", environ={}) == f"https://{MASK}@host/"


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=8), st.text(), st.text())
def test_a_given_secret_never_stays(secret: str, before: str, after: str) -> None:
    """A secret that is known by value is nowhere in the result, unless the mask itself holds it."""
    masked = redact(before + secret + after, [secret], environ={})
    assert secret in MASK or secret not in masked.replace(MASK, "\0")


def test_secrets_of_the_environment_are_masked() -> None:
    """Values of variables that are named like secrets are masked; short ones, such as flags, are not."""
    environ = {"MY_API_KEY": "opensesame", "TOKEN_LIMIT": "100", "HOME": "somewhere"}
    assert redact("opensesame 100 somewhere", environ=environ) == f"{MASK} 100 somewhere"


def test_a_change_of_the_environment_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets are kept between calls, and no longer than the environment stays as it was."""
    said = "opensesame or letmeinnow"
    assert redact(said) == said
    monkeypatch.setenv("MY_API_KEY", "opensesame")
    assert redact(said) == redact(said) == f"{MASK} or letmeinnow"
    monkeypatch.setenv("MY_API_KEY", "letmeinnow")
    assert redact(said) == f"opensesame or {MASK}"
    monkeypatch.setenv("MY_API_KEY_2", "opensesame")
    assert redact(said) == f"{MASK} or {MASK}"
    monkeypatch.delenv("MY_API_KEY")
    assert redact(said) == f"{MASK} or letmeinnow"
    assert redact(said, ["letmeinnow"]) == f"{MASK} or {MASK}"


def test_a_secret_that_begins_like_another_is_masked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longer one goes first, wherever each of them comes from."""
    monkeypatch.setenv("MY_API_KEY", "opensesame")
    assert redact("opensesame-street opensesame", ["opensesame-street"]) == f"{MASK} {MASK}"
