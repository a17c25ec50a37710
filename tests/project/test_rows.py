"""Tables of one test: each row is run, and each that fails is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import rows
from tests.rows import FailedRowsError, each_row


def told_by(test: object) -> list[str]:
    """Return the names of the rows of *test* that fail."""
    assert callable(test)
    with pytest.raises(FailedRowsError) as caught:
        test()
    return [name for name, _ in caught.value.rows]


def test_every_row_is_run_and_each_that_fails_is_named_with_its_error() -> None:
    """A row that fails keeps no other from being run, and the message has all of them."""
    seen = []

    @each_row("number", [1, 2, 3, 4])
    def table(number: int) -> None:
        seen.append(number)
        assert number % 2, f"{number} is even"

    with pytest.raises(FailedRowsError, match=r"(?s)^2 of 4 rows failed.*number=2\n.*2 is even.*number=4\n.*4 is even"):
        table()
    assert seen == [1, 2, 3, 4]


def test_tables_above_each_other_are_multiplied() -> None:
    """As those of `parametrize` are; the name of a row has the cells of both."""

    @each_row("upper", ["a", "b"], ids=str)
    @each_row(("lower", "other"), [(1, 2), (3, 4)])
    def table(upper: str, lower: int, other: int) -> None:
        assert (upper, lower, other) != ("b", 3, 4)

    assert told_by(table) == ["upper=b, lower=3, other=4"]


def test_the_titles_of_rows_are_their_names() -> None:
    """Given one for each row, they stand in the place of the cells."""

    @each_row("number", [0, 1], ids=["none", "one"])
    def table(number: int) -> None:
        assert number

    @each_row("number", [pytest.param(0, id="none"), pytest.param(1, id="one")])
    def other(number: int) -> None:
        assert number

    assert told_by(table) == told_by(other) == ["none"]


def test_a_row_that_skips_fails() -> None:
    """What was left out would be seen nowhere; a table without rows is skipped as a whole."""

    @each_row("number", [0])
    def skips(number: int) -> None:
        pytest.skip(f"no {number}")

    @each_row("number", [])
    def empty(number: int) -> None:
        assert number

    assert told_by(skips) == ["number=0"]
    with pytest.raises(pytest.skip.Exception, match="there are no rows"):
        empty()


def test_a_test_with_a_folder_of_its_own_is_refused() -> None:
    """Its rows would find what the rows before have left."""
    with pytest.raises(TypeError, match="table: its rows would share tmp_path"):

        @each_row("number", [1])
        def table(number: int, tmp_path: Path) -> None: ...


def test_one_row_is_run_alone_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pytest --row TEXT` does."""

    @each_row("number", [1, 12, 3])
    def table(number: int) -> None:
        assert not number

    monkeypatch.setattr(rows, "only", "=1")
    assert told_by(table) == ["number=1", "number=12"]


def test_a_skipped_row_that_stands_for_all_skips_the_test_with_its_reason() -> None:
    """A table of files that are not beside the checkout has one, and is collected all the same."""

    @each_row("path", [pytest.param(None, marks=pytest.mark.skip("no files"))])
    def run(path: object) -> None:
        raise AssertionError(path)

    with pytest.raises(pytest.skip.Exception, match="no files"):
        run()
