"""Images and other media: which addresses a judge can be sent, and how they are sent."""

from __future__ import annotations

import re
from typing import Any

from rubric.values.runs import Media

_ADDRESS = re.compile(r"https://[^\s/?#]")
_DATA = re.compile(r"data:image/[\w.+-]+(?:;[^,]*)?;base64,[A-Za-z0-9+/_-]")
_ENDS = re.compile(r"[\sA-Za-z0-9+/_-]*[\s=]*")


def is_address(image: str) -> bool:
    """True if *image* is an `https://` address with a host, or a `data:` URL of an image in base 64."""
    if not image.startswith("data:"):
        return _ADDRESS.match(image) is not None
    start = image.find(",") + 1
    # Both ends are looked at: images have megabytes, and are checked in each candidate.
    ends = image[start : start + 60], image[max(start, len(image) - 60) :]
    return _DATA.match(image) is not None and all(map(_ENDS.fullmatch, ends))


def part_of(media: Media) -> dict[str, Any] | None:
    """Return *media* as a part of a message, as OpenAI's protocol and LiteLLM have it; None if it is elsewhere."""
    address, is_data = media.address, media.address.startswith("data:")
    head, _, data = address.partition(",")
    if not (is_data and data) and not (_ADDRESS.match(address) and media.kind != "audio"):
        return None
    if media.kind == "audio":
        form = head.removeprefix("data:").partition(";")[0].rpartition("/")[2]
        form = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "": "wav"}.get(form, form)
        return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    if media.kind == "document":
        name = {"filename": media.name or "document.pdf"} if is_data else {}
        return {"type": "file", "file": {"file_data" if is_data else "file_id": address, **name}}
    kind = f"{media.kind}_url"
    return {"type": kind, kind: {"url": address}}
