"""
PDF files (extra `pdf`): their text, and their pages as images; `report.pdf#page=2-4` names three of these.

Pages are drawn here and sent as PNG images, which many more models take than take a PDF. Each keeps its name, so that
the prompt and the record say which page of which file it is.
"""

from __future__ import annotations

import base64
import re
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from rubric import DefinitionError

if TYPE_CHECKING:
    from pypdfium2 import PdfBitmap, PdfDocument

LARGEST = 30_000_000
"""Bytes of a PDF file."""

MOST_PAGES = 20
"""Pages that one reference names."""

MOST_TEXTS = 1_000
"""Pages of a file whose text is read."""

LONGEST_SIDE = 1_500
"""Pixels of the longer side of a page. Vendors scale larger images down."""

START = b"%PDF-"

_FRAGMENT = re.compile(r"(?P<name>.*)#page=(?P<pages>[0-9,-]*)", re.DOTALL)
_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_lock = threading.Lock()  # PDFium takes one call at a time in a process


def split(name: str) -> tuple[str, str]:
    """Return *name* without `#page=...`, and the pages that this names; '' for all."""
    match = _FRAGMENT.fullmatch(name)
    return (name, "") if match is None else (match["name"], match["pages"] or "-")


def images_of(data: bytes, name: str, pages: str) -> list[str]:
    """
    Return the *pages* (`2`, `2-4`, `1,3`; '' for all) of the PDF in *data* as `data:` URLs that name them.

    Raises:
        DefinitionError: It is no PDF, it has no such page, or too many are named.
        ImportError: pypdfium2 is not installed.
    """
    with _opened(data) as document:
        return [_image(document, number, name) for number in _numbers(pages, len(document))]


def text_of(data: bytes) -> str:
    """
    Return the text of the PDF in *data*, page after page with an empty line between; '' where it has pictures alone.

    Raises:
        DefinitionError: It is no PDF, or has too many pages; or pypdfium2 is not installed.
    """
    with _opened(data) as document:
        if len(document) > MOST_TEXTS:
            raise DefinitionError("", f"the text of at most {MOST_TEXTS} pages is read; split the file")
        pages = [document[number].get_textpage().get_text_range() for number in range(len(document))]
    return "\n\n".join(page.replace("\r\n", "\n").strip() for page in pages).strip()


@contextmanager
def _opened(data: bytes) -> Iterator[PdfDocument]:
    try:
        from pypdfium2 import PdfDocument, PdfiumError  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DefinitionError("", "a PDF needs pypdfium2: pip install rubric-grade[pdf]") from error
    with _lock:
        try:
            document = PdfDocument(data)
            try:
                yield document
            finally:
                document.close()
        except PdfiumError as error:
            raise DefinitionError("", f"this PDF cannot be read: {error}; save it anew, without a password") from None


def _numbers(pages: str, count: int) -> list[int]:
    """Return the numbers that *pages* names, from 1, of a file with *count* pages."""
    numbers: list[int] = []
    for part in pages.split(",") if pages else [f"1-{count}"]:
        match = _PART.fullmatch(part)
        if match is None:
            raise DefinitionError("", f"expected pages such as #page=2, #page=2-4 or #page=1,3, got #page={pages}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= count:
            raise DefinitionError("", f"it has the pages 1 to {count}, and no {part}")
        if len(numbers) + last - first + 1 > MOST_PAGES:
            raise DefinitionError("", f"at most {MOST_PAGES} pages are attached; name them, as in #page=1-{MOST_PAGES}")
        numbers += range(first, last + 1)
    return numbers


def _image(document: PdfDocument, number: int, name: str) -> str:
    page = document[number - 1]
    try:
        width, height = page.get_size()
        bitmap = page.render(scale=LONGEST_SIDE / max(width, height, 1), rev_byteorder=True)
        try:
            png = _png(bitmap)
        finally:
            bitmap.close()
    finally:
        page.close()
    data = base64.b64encode(png).decode("ascii")
    return f"data:image/png;name={quote(f'{name}, page {number}', safe='')};base64,{data}"


def _png(bitmap: PdfBitmap) -> bytes:
    """Return *bitmap*, of red, green and blue, as a PNG file (RFC 2083), without a library of images."""
    row, channels = bitmap.width * bitmap.n_channels, bitmap.n_channels
    pixels = memoryview(bitmap.buffer)
    lines = b"".join(b"\0" + pixels[at : at + row] for at in range(0, bitmap.height * bitmap.stride, bitmap.stride))
    colours = {1: 0, 3: 2, 4: 6}[channels]  # grey; red, green, blue; these and opacity
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, colours, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    framed = (struct.pack(">I", len(of)) + kind + of + struct.pack(">I", zlib.crc32(kind + of)) for kind, of in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
