"""
Progress of a run: rate, spend, failures, time left.

A bar on a terminal and in a notebook; elsewhere (CI) a line of text now and then, if it was asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TextIO

from attrs import define, field, frozen

from rubric.internals.fields import refuse
from rubric.internals.notebooks import as_html, notebook
from rubric.internals.text import counted
from rubric.results.result import Grade, Ungraded
from rubric.values.requests import Usage

_SECONDS_A_LINE = 10.0
_SECONDS_A_BAR = 0.1
_MINUTE, _HOUR = 60, 3_600


@define(eq=False)
class Spent:
    """
    What requests have taken so far, whether or not the candidates that they are for have ended.

    Args:
        usage: Of all requests that were answered, or failed.
        in_flight: Requests that were cancelled in flight; the vendor may charge them all the same.
    """

    usage: Usage = Usage()
    in_flight: int = 0

    def add(self, usage: Usage, in_flight: int = 0) -> None:
        """Count *usage*, and requests that were cancelled *in_flight*; they count in `SPENT` too."""
        self.usage, self.in_flight = self.usage + usage, self.in_flight + in_flight
        if self is not SPENT:
            SPENT.add(usage, in_flight)

    def __str__(self) -> str:
        flying = f"; {counted(self.in_flight, 'request')} in flight may be charged as well"
        return f"{self.usage}{flying * bool(self.in_flight)}"


SPENT = Spent()
"""What this process has spent: a command says so when it ends early."""


@frozen
class Progress:
    """
    The progress of a run.

    Args:
        done: Results that have been handed out.
        total: How many there will be; None if that is not known.
        passed: Of the results, grades that pass.
        ungraded: Of the results, those that are not grades.
        usage: Of all results.
        seconds: Since the run began.
        ended: True of the last state: all results have been handed out, or the run was left.
    """

    done: int = 0
    total: int | None = None
    passed: int = 0
    ungraded: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0
    ended: bool = False

    @property
    def rate(self) -> float:
        """Results a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end, at this rate; None if that is not known."""
        if self.total is None or not self.done or not self.seconds:
            return None
        return max(0, self.total - self.done) / self.rate

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,} ({self.done / max(1, self.total):.0%})"
        parts = [f"graded {self.done:,}{of}", *self.details()]
        parts += [f"in {_clock(self.seconds)}"] if self.ended else []
        return ", ".join([*parts, *([] if self.left is None or self.ended else [f"{_clock(self.left)} left"])])

    def details(self) -> list[str]:
        """Return the rate, the spend and the failures, as texts."""
        spent = "cost unknown" if self.usage.cost is None else f"${self.usage.cost:.4f}"
        rate = f"{self.rate:.1f}/s" if self.rate < _MINUTE else f"{self.rate:,.0f}/s"
        return [rate, spent, f"{self.ungraded:,} ungraded"]

    @staticmethod
    def reporting(
        wanted: bool | OnProgress | None,  # noqa: FBT001 - it is what the user gave
        total: int | None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> AbstractContextManager[Tell]:
        """
        Return a context that yields a function for each result, and shows progress.

        Args:
            wanted: True for always, False for never, None if somebody looks: in a notebook, or if standard error is a
                terminal; or a function to call.
            stream: Where it is shown; None for standard error.

        Raises:
            DefinitionError: *wanted* is something else.
        """
        if not (wanted is None or isinstance(wanted, bool) or callable(wanted)):
            raise refuse("progress", wanted, "True, False, None, or a function of a Progress")
        display = notebook() if stream is None and wanted is not False else None
        if display is not None and not callable(wanted):
            return _in_notebook(total, clock, display)
        stream = stream or sys.stderr
        is_terminal = stream is not None and stream.isatty()
        if wanted is False or (wanted is None and not is_terminal) or (stream is None and wanted is True):
            return nullcontext(lambda _: None)
        if callable(wanted):
            return _announce(total, clock, wanted, 0.0)
        if is_terminal and stream is not None:
            return _on_bar(total, clock, stream)
        return _announce(total, clock, lambda state: print(state, file=stream, flush=True), _SECONDS_A_LINE)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    minutes, rest = whole % _HOUR // _MINUTE, whole % _MINUTE
    return f"{whole // _HOUR}:{minutes:02}:{rest:02}" if whole >= _HOUR else f"{minutes}:{rest:02}"


OnProgress = Callable[[Progress], object]
"""Called with each new state, in the thread that reads the results."""

Tell = Callable[[Grade | Ungraded], None]


@define(eq=False)
class _Tally:
    """Counts results, and shows the state: after each if *every* is 0, else every so many seconds."""

    _total: int | None
    _clock: Callable[[], float]
    _show: OnProgress
    _every: float
    _began: float = field(init=False)
    _shown: float = field(init=False)
    _done: int = 0
    _passed: int = 0
    _ungraded: int = 0
    _usage: Usage = Usage()

    def __attrs_post_init__(self) -> None:
        self._began = self._shown = self._clock()

    def tell(self, result: Grade | Ungraded) -> None:
        self._done += 1
        self._passed += isinstance(result, Grade) and result.passed
        self._ungraded += isinstance(result, Ungraded)
        self._usage += result.usage
        now = self._clock()
        if now - self._shown >= self._every:
            self._shown = now
            self.show()

    def show(self, *, ended: bool = False) -> None:
        seconds = self._clock() - self._began
        self._show(Progress(self._done, self._total, self._passed, self._ungraded, self._usage, seconds, ended))


@contextmanager
def _announce(total: int | None, clock: Callable[[], float], show: OnProgress, every: float) -> Iterator[Tell]:
    tally = _Tally(total, clock, show, every)
    try:
        yield tally.tell
    finally:
        if every:
            tally.show(ended=True)


@contextmanager
def _in_notebook(total: int | None, clock: Callable[[], float], display: Any) -> Iterator[Tell]:
    """Show a bar in the output of the running cell: one that is updated in place."""
    shown = display.display(display.HTML("grading…"), display_id=True)

    def show(state: Progress) -> None:
        shown.update(display.HTML(as_html(state)))

    with _announce(total, clock, show, _SECONDS_A_BAR) as tell:
        yield tell


@contextmanager
def _on_bar(total: int | None, clock: Callable[[], float], stream: TextIO) -> Iterator[Tell]:
    from rich import progress  # noqa: PLC0415 - only a bar needs it
    from rich.console import Console  # noqa: PLC0415

    details = progress.TextColumn("{task.fields[details]}")
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), details, progress.TimeRemainingColumn())
    with progress.Progress("{task.description}", *columns, console=Console(file=stream)) as bar:
        task = bar.add_task("grading", total=total, details="")

        def show(state: Progress) -> None:
            total = state.done if state.ended and state.total is None else state.total
            bar.update(task, completed=state.done, total=total, details=" · ".join(state.details()))

        with _announce(total, clock, show, _SECONDS_A_BAR) as tell:
            yield tell
