"""Progress: a bar on a terminal, lines elsewhere, a function of one's own."""

from __future__ import annotations

import io

import pytest

from rubric import DefinitionError, Judge, Rubric
from rubric.engine.bulk import grade_many
from rubric.engine.progress import Progress
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.requests import Usage
from rubric.view.fragments import fragment_of

POLITE = Rubric().expects("Is polite", id="polite")


def instant() -> Judge:
    return Judge(ScriptedModel(lambda _: True))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(wanted: bool | None, stream: io.StringIO, n: int = 3) -> str:
    """Return what is shown of *n* results that come 6 seconds after one another."""
    ticks = iter(range(0, 10_000, 6))
    results = list(grade_many(["x y", None, "z"][:n], POLITE, instant()))
    with Progress.reporting(wanted, 3, stream=stream, clock=lambda: float(next(ticks))) as tell:
        for result in results:
            tell(result)
    return stream.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    """Asked for, it is a line now and then, and one at the end."""
    lines = shown(True, io.StringIO()).splitlines()
    assert lines[0] == "graded 2 of 3 (67%), 0.1/s, $0.0000, 1 ungraded, 0:09 left"
    assert lines[-1] == "graded 3 of 3 (100%), 0.1/s, $0.0000, 1 ungraded, in 0:36"


def test_nothing_where_nobody_looks() -> None:
    """Left alone, nothing is written to what is not a terminal; and with False, to nothing at all."""
    assert shown(None, io.StringIO()) == shown(False, Terminal()) == ""


@pytest.mark.parametrize("wanted", [None, True])
def test_a_bar_on_a_terminal(wanted: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a bar shows the count, the rate, the spend and the failures."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    text = shown(wanted, Terminal())
    assert "grading" in text
    assert "3/3" in text
    assert "$0.0000 · 1 ungraded" in text


def test_a_bar_of_unknown_length_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the number of candidates is not known, the last bar is full, on a terminal and in a notebook."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with Progress.reporting(True, None, stream=stream) as tell:
        tell(next(iter(grade_many(["x"], POLITE, instant()))))
    assert "1/1" in stream.getvalue()
    assert '<progress value="1" max="1">' in fragment_of(Progress(1, ended=True))
    assert "left" not in fragment_of(Progress(1, 3, seconds=1.0, ended=True))


def test_what_is_no_way_to_show_progress_is_refused() -> None:
    """A word is neither a yes nor a no."""
    with pytest.raises(DefinitionError, match="progress: expected True, False, None, or a function"):
        list(grade_many(["x"], POLITE, instant(), progress="no"))  # type: ignore[arg-type]


def test_nothing_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """Progress is for standard error; a run writes nothing to standard output."""
    list(grade_many(["x", "y"], POLITE, instant(), progress=True))
    out, err = capfd.readouterr()
    assert (out, err.count("graded 2 of 2")) == ("", 1)


def test_a_function_is_told_of_each_result() -> None:
    """It gets the state after each result, in the thread that reads."""
    states: list[Progress] = []
    list(grade_many(["x", None, "y"], POLITE, instant(), progress=states.append))
    assert [(s.done, s.total, s.passed, s.ungraded) for s in states] == [(1, 3, 1, 0), (2, 3, 1, 1), (3, 3, 2, 1)]


def test_a_function_that_raises_ends_the_stream() -> None:
    """An error of the function's is the reader's, and leaves nothing running."""

    def stop(state: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(grade_many(["x"], POLITE, instant(), progress=stop))


def test_the_state_in_words() -> None:
    """Unknown totals and costs are said to be unknown, large numbers are readable."""
    state = Progress(12_000, None, 9_000, 3, Usage(12_000, cost=None), 10.0)
    assert str(state) == "graded 12,000, 1,200/s, cost unknown, 3 ungraded"
    assert str(Progress(10, 4_010, seconds=10.0)) == "graded 10 of 4,010 (0%), 1.0/s, $0.0000, 0 ungraded, 1:06:40 left"
