"""
How many tokens a text has, as far as can be known without asking a vendor, and how many a request has at most.

The tokenisers are two encodings of tiktoken, with their files in LiteLLM's package: its import would take seconds. As
there, texts are counted in parts, since the time for a long run of one character grows with its square.

Bounds hold before a request leaves. Counts are exact for OpenAI's models; for others they are taken half as much again,
and all that is not ASCII as a token a byte.
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.models.litellm_library import library, ready, vendor_of
from rubric.models.pricing import dearest, entry_for, entry_of, litellm_folder, model_name

if TYPE_CHECKING:
    from tiktoken import Encoding

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask

# -- counts ------------------------------------------------------------------------------------------------

_USUAL = "o200k_base"
_FILES = {_USUAL: "fb374d419588a4632f3f557e76b4b70aebbca790", "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"}
"""The files of the encodings, under the names that tiktoken's cache gives them."""

_PART = 1_024


def count_tokens(judge: Judge, text: str, /) -> int:
    """Return about how many tokens *text* has for *judge*."""
    return count(model_name(judge), text)


@lru_cache(maxsize=64)  # the part that all asks about a candidate share is counted once
def count(model: str, text: str) -> int:
    """Return about how many tokens *text* has for *model*, by its name in LiteLLM's list; it may have none."""
    if not model:
        return -(-len(text) // 4)  # about as many characters have a token
    encoding = encoding_of(model)
    if encoding is None:
        tokeniser = vendor_of(model)[0] if is_exact(model) else "gpt-4o"
        return int(library().token_counter(model=tokeniser, text=text))
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    return sum([len(encoding.encode(part, disallowed_special=())) for part in parts])


@lru_cache(maxsize=256)
def encoding_of(model: str) -> Encoding | None:
    """Return the encoding of *model*, loaded from LiteLLM's files; None if LiteLLM alone knows which it is."""
    import tiktoken  # noqa: PLC0415 - a module of C, for those who count

    name: str | None = _USUAL
    if is_exact(model) and "gpt-4o" not in model:
        name = (
            None if "ft:" in model else _tiktokens_name(model)
        )  # a tuned model has the name of its base within its own
    folder = litellm_folder() / "litellm_core_utils" / "tokenizers"
    if (
        name is None or name not in _FILES or not (folder / _FILES[name]).is_file()
    ):  # another release may keep it elsewhere
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)  # as LiteLLM's import does: tiktoken knows no other way
    return tiktoken.get_encoding(name)


def _tiktokens_name(model: str) -> str | None:
    """Return the name of the encoding that tiktoken has for *model*; None if it knows no such model."""
    import tiktoken  # noqa: PLC0415 - as above

    try:
        return tiktoken.encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return None


@lru_cache(maxsize=256)
def is_exact(model: str) -> bool:
    """
    True if the tokeniser of *model* comes with LiteLLM, so that its tokens are counted exactly.

    Of a name that neither a list nor tiktoken has, nobody knows the tokeniser, though its server speaks as OpenAI's.
    """
    vendor = model.partition("/")[0] if "/" in model else entry_of(model).get("litellm_provider")
    if "ft:" in model:
        return (vendor or vendor_of(model)[1]) in ("openai", "azure")
    return vendor in ("openai", "azure") and bool(entry_for(model) or _tiktokens_name(model))


async def load_tokeniser(model: str) -> None:
    """Load the tokeniser of *model* in a thread, with LiteLLM where it alone knows which it is."""
    if await asyncio.to_thread(encoding_of, model) is None:
        await ready()


# -- upper bounds -----------------------------------------------------------------------------------------

_A_REQUEST = 64  # the frame of a chat
_NONCE = 32  # a text of 16 letters and digits, or its pattern
_A_TOOL = 600  # some vendors take a schema as a tool, with a prompt of their own about tools
_BOUNDS = 48  # of keys, which OpenAI is sent
_A_MESSAGE = 8
_AN_IMAGE = 50_000  # the most that is known is gpt-4o-mini's
_LARGE = 50_000  # characters that take some milliseconds

_warm: set[str] = set()
"""Models whose tokeniser is loaded."""


async def most_tokens(ask: Ask) -> tuple[int, int]:
    """Return how many tokens *ask* sends and may receive, at most; long counts run in a thread."""
    model = model_name(ask.judge)
    if not model:
        return _most("", ask)
    if model not in _warm:
        await load_tokeniser(model)
    parts = [part for message in ask.messages for part in message.parts]
    if model in _warm and sum(map(len, (*parts, *ask.turns))) < _LARGE:
        return _most(model, ask)
    most = await asyncio.to_thread(_most, model, ask)
    _warm.add(model)
    return most


def worst_cost(ask: Ask, more: int = 0) -> float | None:
    """Return the most that *ask*, with *more* tokens, may cost in US dollars; None if unknown."""
    sent, back = _most(model_name(ask.judge), ask)
    sent += more
    found = dearest(ask.judge, sent)
    return None if found is None else sent * found[0] + back * found[1]


def _most(model: str, ask: Ask) -> tuple[int, int]:
    sent = sum(_bound(model, part) for message in ask.messages for part in message.parts) + max(
        _schema(model, ask.schema), _exact(model, ask.exact)
    )
    sent += sum(_bound(model, turn) + _A_MESSAGE for turn in ask.turns)
    sent += _bound(model, ask.tools) + _A_TOOL if ask.tools else 0
    sent += _A_REQUEST + _A_MESSAGE * len(ask.messages)
    sent += sum(_AN_IMAGE if media.kind == "image" else _AN_IMAGE + len(media.address) for _, media in ask.media)
    return sent, ask.max_tokens * ask.n


@lru_cache(maxsize=64)
def _schema(model: str, schema: FrozenMap) -> int:
    if not schema:
        return 0
    return _bound(model, json.dumps(thaw(schema))) + _BOUNDS + (0 if is_exact(model) else _A_TOOL)


@lru_cache(maxsize=1024)  # one a criterion
def _exact(model: str, schema: str) -> int:
    return _bound(model, json.dumps(json.loads(schema))) + _NONCE if schema else 0  # with the spaces that clients write


def _bound(model: str, text: str) -> int:
    """Return a number of tokens that *text* does not exceed."""
    size = len(text.encode("utf-8", "surrogatepass"))
    counted = count(model, text)
    if not is_exact(model):
        counted += counted // 2 + (size - len(text)) + 1
    return min(counted, size)
