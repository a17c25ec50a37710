"""Messages in the form that chat APIs take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rubric.models.chat_completions import chat
from rubric.values import Media
from rubric.values.judges import Judge
from rubric.values.requests import Outgoing
from tests.sendables import ask_of

PICTURE = "data:image/png;base64,AAAA"


def test_plain_texts() -> None:
    """Without marks and images each content is one text."""
    ask = ask_of(Judge("offline"))
    assert chat(ask) == ask.chat()


def test_the_shared_part_is_marked() -> None:
    """With cache control the shared part is a block with the mark, and the tail one without."""
    ask = ask_of(Judge("offline"), messages=(Outgoing("user", ("shared", "tail", "!")),))
    assert chat(ask, cache_control=True)[-1]["content"] == [
        {"type": "text", "text": "shared", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "tail!"},
    ]


def test_each_part_that_other_candidates_share_is_marked() -> None:
    """With cache control the shared part is cut where candidates may begin to differ, and each piece has the mark."""
    ask = ask_of(Judge("offline"), messages=(Outgoing("user", ("task, run, output", "tail"), (6, 11)),))
    *shared, tail = chat(ask, cache_control=True)[-1]["content"]
    assert [block["text"] for block in shared] == ["task, ", "run, ", "output"]
    assert all(block["cache_control"] for block in shared)
    assert tail == {"type": "text", "text": "tail"}


def test_nothing_is_shared() -> None:
    """A message of one part has nothing to mark."""
    ask = ask_of(Judge("offline"), messages=(Outgoing("user", ("all",)),))
    assert chat(ask, cache_control=True)[-1]["content"] == "all"


def test_images_come_first() -> None:
    """Images stand before the text, at the same place in each ask about a candidate."""
    content = chat(ask_of(Judge("offline"), media=(("", Media("image", PICTURE)),)))[-1]["content"]
    assert [block["type"] for block in content] == ["image_url", "text"]
    assert content[0]["image_url"]["url"] == PICTURE


@given(st.text(), st.text(), st.booleans(), st.booleans())
def test_asks_of_one_candidate_share_all_but_the_tail(
    one: str, other: str, cache_control: bool, with_image: bool
) -> None:
    """Two asks that differ in their tails have the same contents up to there."""
    media = (("", Media("image", PICTURE)),) if with_image else ()
    texts = []
    for tail in (one, other):
        ask = ask_of(Judge("offline"), messages=(Outgoing("user", ("shared", tail)),), media=media)
        content = chat(ask, cache_control=cache_control)[-1]["content"]
        blocks = [content] if isinstance(content, str) else [b.get("text", PICTURE) for b in content]
        texts.append("".join(blocks))
    start = PICTURE + "shared" if with_image else "shared"
    assert all(text.startswith(start) for text in texts)
