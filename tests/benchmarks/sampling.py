"""Where the processor time of this thread goes: a look at the stack each millisecond of it, which slows nothing down."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from tests.benchmarks.instant import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SECONDS = 0.001


@frozen
class Samples:
    """How often what was seen at work: functions, by where they stand."""

    functions: Counter[tuple[str, str]] = field(factory=Counter)

    def take(self, _: int, frame: FrameType | None) -> None:
        """Count the function at work; one of the standard library counts for itself, not for who called it."""
        if frame is not None:
            self.functions[place_of(frame.f_code.co_filename), frame.f_code.co_qualname] += 1

    def by_module(self) -> Counter[str]:
        """Return the counts by module."""
        found: Counter[str] = Counter()
        for (module, _), count in self.functions.items():
            found[module] += count
        return found


def place_of(path: str) -> str:
    """Return a short name of the module at *path*."""
    if path.startswith("<attrs"):
        return f"attrs: {path.rpartition(' ')[2].rstrip('>').rpartition('.')[0]}"
    file = Path(path)
    if file.is_relative_to(ROOT):
        return ".".join(file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(file.with_suffix("").parts[-2:]).replace("python3.11.", "")


@contextmanager
def sampling() -> Iterator[Samples]:
    """Take samples for the length of the block, on the main thread."""
    samples = Samples()
    before = signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
