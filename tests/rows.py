"""
Tests of tables: one test goes over all rows, and names each row that fails.

`@each_row` is written as `@pytest.mark.parametrize` is, for tests that take nothing but the row. To collect, set up and
report a test takes longer than most such rows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest
from attrs import frozen

_OF_ONE_TEST = {"caplog", "capfd", "capsys", "file", "monkeypatch", "pytester", "recwarn", "request", "tmp_path"}
_PARAM = type(pytest.param())

only = ""
"""What the name of a row contains if it is to be run, from `--row`."""


class FailedRowsError(AssertionError):
    """Some rows of a table failed: `rows` has the name of each, and its error."""

    def __init__(self, rows: list[tuple[str, BaseException]], count: int) -> None:
        self.rows = rows
        told = [f"{name}\n{type(error).__name__}: {error}".replace("\n", "\n    ") for name, error in rows]
        super().__init__("\n\n".join([f"{len(rows)} of {count} rows failed", *told]))


@frozen
class _Row:
    cells: dict[str, Any]
    title: object
    show: Callable[[Any], object]

    def name(self) -> str:
        """Return the title, or the cells by their columns: only where it is asked for, as some are large."""
        shown = {column: self.show(cell) for column, cell in self.cells.items()}
        named = [f"{column}={repr(self.cells[column]) if said is None else said}" for column, said in shown.items()]
        return ", ".join(named) if self.title is None else str(self.title)


def each_row(
    names: str | tuple[str, ...],
    rows: Iterable[Any],
    *,
    ids: Iterable[Any] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """
    Run a test with each of *rows*, as one test that fails with the names and the errors of all rows that fail.

    Raises:
        TypeError: The test takes what pytest makes anew for each test, such as `tmp_path`, which the rows would share.
    """
    columns = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    one = isinstance(names, str) and len(columns) == 1
    params = [row if isinstance(row, _PARAM) else pytest.param(*[row] if one else row) for row in rows]
    skips = [mark for param in params for mark in param.marks if mark.name == "skip" and len(params) == 1]
    why = skips[0].args[0] if skips else "there are no rows"  # a skipped row alone stands for all
    table = rows_of(columns, [] if skips else params, ids)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if shared := _OF_ONE_TEST.intersection(signature.parameters).difference(columns):
            msg = f"{test.__name__}: its rows would share {', '.join(sorted(shared))}; use @pytest.mark.parametrize"
            raise TypeError(msg)

        @functools.wraps(test)
        def run(*given: Any, **fixtures: Any) -> None:
            if not table:
                pytest.skip(why)
            failed: list[tuple[str, BaseException]] = []
            for row in table:
                if not only or only in row.name():
                    failed += failures_of(row, functools.partial(test, *given, **fixtures, **row.cells))
            if failed:
                raise FailedRowsError(failed, len(table)) from failed[0][1]

        left = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        # Pytest asks it which fixtures the test takes.
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def rows_of(columns: list[str], params: list[Any], ids: Iterable[Any] | Callable[[Any], object] | None) -> list[_Row]:
    """Return the rows of a table, with the names that `parametrize` would give them."""
    assert not any(param.marks for param in params), "a row has no marks of its own; use @pytest.mark.parametrize"
    titles = [param.id for param in params] if ids is None or callable(ids) else [*islice(ids, len(params))]
    cells = [dict(zip(columns, param.values, strict=True)) for param in params]
    return [_Row(*row, ids if callable(ids) else repr) for row in zip(cells, titles, strict=True)]


def failures_of(row: _Row, run: Callable[[], None]) -> list[tuple[str, BaseException]]:
    """Run *row*, and return its error or those of the rows within it, each with its name; a row cannot skip."""
    try:
        run()
    except FailedRowsError as error:
        return [(f"{row.name()}, {name}", cause) for name, cause in error.rows]
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever ends a test ends a row
        return [(row.name(), error)]
    except pytest.skip.Exception as error:
        return [(row.name(), AssertionError(f"a row cannot skip; use @pytest.mark.parametrize: {error}"))]
    return []
