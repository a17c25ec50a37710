"""
Images that files name: read within the base into `data:` URLs, or passed on by their addresses.

An address is never fetched here: the vendor of the model fetches it. A file's type is told by its first bytes, not by
its name, so that no other file of the project is sent to a vendor because a case calls it an image.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from attrs import define, field

from rubric import DefinitionError
from rubric.embed import Cursor, Loading, shorten
from rubric.formats.includes import LackingFileError, bare, bytes_of, is_reference, located_file, quote, read_at
from rubric.values.runs import is_address

LARGEST = 10_000_000
"""Bytes of one image."""

MOST_BYTES = 100_000_000
"""Bytes of the different images that one load reads."""

TYPES: dict[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
"""The types that vendors read, with the bytes that their files begin with."""

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
"""How such files are called."""


def is_image(name: str) -> bool:
    """True if a file called *name* should be an image that vendors read."""
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def names_image(text: str | None) -> bool:
    """True if *text* is an address, or a `file://` name: what a chat may attach."""
    return text is not None and (is_address(text) or is_reference(text))


def read_image(reference: str, loading: Loading) -> str:
    """Return the image in the file that *reference* names as a `data:` URL, or raise a `DefinitionError`."""
    name = bare(reference)
    located = located_file(name, loading)
    found = loading.library.images
    if located.real not in found:
        data = bytes_of(located, loading, name, LARGEST + 1)
        try:
            image = _image(data)
        except DefinitionError as error:
            raise LackingFileError("", f"{quote(name)}: {error.message}") from None
        if sum(map(_size, [*found.values(), image])) > MOST_BYTES:
            message = f"the images come to more than {MOST_BYTES // 1_000_000} MB; split the suite, or name addresses"
            raise DefinitionError("", f"{quote(name)}: {message}")
        found[located.real] = image
    return found[located.real]


def _size(image: str) -> int:
    return (len(image) - image.find(",") - 1) * 3 // 4 - image[-2:].count("=")


def _image(data: bytes) -> str:
    if len(data) > LARGEST:
        raise DefinitionError("", f"an image has at most {LARGEST // 1_000_000} MB; scale it down")
    kind = next((kind for kind, start in TYPES.items() if start.match(data)), None)
    if kind is None:
        raise DefinitionError("", "this is not a PNG, JPEG, GIF or WebP image; convert it to one")
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


@define
class Attached:
    """The images of a case that is being read: the addresses that were found, and the names of missing ones."""

    found: list[str] = field(factory=list)
    missing: list[str] = field(factory=list)

    def take(self, image: str | None, at: Cursor) -> bool:
        """Add *image*, an address or a file's name; False where it is neither. An unreadable file is missing."""
        if image is None or (not is_address(image) and ":" in image.removeprefix("file://")):
            return False
        found = image if is_address(image) else read_at(image, at, lambda name: read_image(name, at.loading), at.warn)
        if found is None:
            self.missing.append(image)
        else:
            self.found.append(found)
        return True

    @property
    def lacks(self) -> str:
        """What the case lacks, so that it is ungraded; '' if it lacks nothing."""
        return f"an image ({shorten(self.missing[0], 80)}) that is not within reach" if self.missing else ""


_WRAPPED = re.compile(r"data:[\w/+.-]*;base64,\s*(?=file://|https://|data:image/)", re.IGNORECASE)


def image_in(block: Any) -> str | None:
    """
    Return the address, the `data:` URL or the `file://` name in a content *block* of a chat; None if it has no image.

    The shapes are those of OpenAI's two interfaces (`image_url`, `input_image`), and of Anthropic's (`image` with a
    `source`). A `data:` URL around the name of a file, or around an address, is that: templates put the content there.
    """
    if not isinstance(block, Mapping):
        return None
    kind, found = block.get("type"), None
    if kind in ("image_url", "input_image"):
        found = block.get("image_url")
        found = found.get("url") if isinstance(found, Mapping) else found
    elif kind == "image" and isinstance(source := block.get("source"), Mapping):
        found = source.get("url", source.get("data"))
        if isinstance(found, str) and source.get("type") == "base64":
            found = f"data:{source.get('media_type')};base64,{found}"
    return _WRAPPED.sub("", found.strip()) if isinstance(found, str) else None
