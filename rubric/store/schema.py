"""
The file: its tables, how it is opened, and what may be wrong with it, in words.

| state of a call | means |
|---|---|
| claimed | somebody is about to send it |
| sent | it has left, or is about to; if whoever sent it is gone, it is in doubt |
| in_doubt | it was sent, and what came of it will never be known: cancelled, timed out, or the connection broke |
| done | answered; this is what is served |
| unreadable | answered, but the reply says nothing about any criterion |
| failed | not answered |
| replaced | answered once, and since then again |
| resent | it was in doubt, and was sent again as another call |
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rubric.errors import RubricError, StoreError
from rubric.internals.text import shorten

APPLICATION = 0x52554247
"""What marks a SQLite file as a reply store: `RUBG`."""

VERSION = 1
"""Of the tables."""

_MOMENT = 0.02

_TABLES = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, mode TEXT NOT NULL, started_at REAL NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0, is_open INTEGER NOT NULL DEFAULT 1,
    hits INTEGER NOT NULL DEFAULT 0, saved_calls INTEGER NOT NULL DEFAULT 0, saved_cost REAL NOT NULL DEFAULT 0
);
CREATE TABLE requests (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, model TEXT NOT NULL, text BLOB NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request INTEGER NOT NULL REFERENCES requests (id),
    session INTEGER NOT NULL REFERENCES sessions (id),
    state TEXT NOT NULL CHECK (
        state IN ('claimed', 'sent', 'in_doubt', 'done', 'unreadable', 'failed', 'replaced', 'resent')
    ),
    kind TEXT, sent_at REAL, ended_at REAL, outcome TEXT
);
CREATE UNIQUE INDEX one_answer ON calls (request) WHERE state = 'done';
CREATE UNIQUE INDEX one_under_way ON calls (request) WHERE state IN ('claimed', 'sent', 'in_doubt');
CREATE INDEX calls_of_request ON calls (request, id);
"""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """
    Return a connection to the store at *path*, which is made if there is none.

    Args:
        patience: Seconds to wait for another process that writes.

    Raises:
        StoreError: It cannot be opened, or is something else.
    """
    _refuse_place(path)
    with explained(path):
        connection = _opened(f"{path.absolute().as_uri()}?mode=rwc", patience)
        try:
            _prepare(connection, path, patience)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_to_read(path: Path, patience: float) -> sqlite3.Connection:
    """
    Return a connection to the store at *path* that changes nothing; the folder may be one that cannot be written to.

    Raises:
        StoreError: There is none, or it is something else.
    """
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file")
    with explained(path):
        for options in ("mode=ro", "mode=ro&immutable=1"):
            connection = _opened(f"{path.absolute().as_uri()}?{options}", patience)
            try:
                _refuse_empty(connection, path)
            except sqlite3.OperationalError:
                connection.close()
                # A folder that cannot be written to has no room for the shared memory of a write-ahead log.
                if "immutable" in options or _has_log(path):
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                return connection
    raise AssertionError(path)


def _refuse_empty(connection: sqlite3.Connection, path: Path) -> None:
    if not _check(connection, path):
        raise StoreError(f"{path}: this is not a reply store: it is empty")


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _opened(uri: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)


def _refuse_place(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path}: this is a folder; name a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path}: it cannot be written to; mode='replay' needs no more than reading")


def _prepare(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    if not _check(connection, path):
        with written(connection):
            if not _check(connection, path):  # another process may have been faster
                for statement in _TABLES.split(";")[:-1]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    _log_ahead(connection, time.monotonic() + patience)
    connection.execute("PRAGMA synchronous = NORMAL")


def _log_ahead(connection: sqlite3.Connection, deadline: float) -> None:
    """Switch to the write-ahead log; SQLite does not wait here for others that do the same, so this does."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_MOMENT)
        else:
            return


def _check(connection: sqlite3.Connection, path: Path) -> bool:
    """Say whether this is a store; an empty file may become one, anything else is refused."""
    application, version, tables = _seen(connection)
    if not tables and not application:
        return False
    if application != APPLICATION:
        raise StoreError(f"{path}: this is a SQLite file of another program, not a reply store")
    if version != VERSION:
        newer = "newer" if version > VERSION else "older"
        raise StoreError(f"{path}: its tables are of version {version}, of a {newer} rubric; this one knows {VERSION}")
    return True


def _seen(connection: sqlite3.Connection) -> list[int]:
    """Return what the file says it is, and how many tables it has, at one moment: another process may be making it."""
    asked = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    begun = not connection.in_transaction
    if begun:
        connection.execute("BEGIN")
    try:
        return [connection.execute(each).fetchone()[0] for each in asked]
    finally:
        if begun:
            connection.execute("ROLLBACK")


@contextmanager
def written(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all of it or nothing; the lock is taken at once, so that waiting for it is all that can go wrong later."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_CURES = (
    ("not a database", "this is not a reply store: it is no SQLite file"),
    ("locked", "another process keeps it locked; wait for that one to end, or give more patience"),
    ("full", "the disk is full; make room and start again: what is kept is whole"),
    (
        "disk i/o",
        "the disk does not take what is written (full, over a quota, or gone); what is kept is whole",
    ),
    ("readonly", "it cannot be written to; mode='replay' needs no more than reading"),
    ("unable to open", "it cannot be opened"),
    ("malformed", "the file is damaged; `python -m rubric store verify` tells more"),
    ("could not decode", "the file is damaged; `python -m rubric store verify` tells more"),
)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite raises, and what comes of damage unseen by it, into a `StoreError` that says what to do."""
    try:
        yield
    except (RubricError, OSError):
        raise
    except Exception as error:  # the bytes of a damaged file can be anything, so what reading them raises can be too
        raise as_store_error(path, error) from error


def as_store_error(path: Path, error: Exception) -> StoreError:
    """Return *error* with the file's name, and in words that say what to do."""
    if isinstance(error, StoreError):
        return error
    if not isinstance(error, sqlite3.Error):
        cure = "`python -m rubric store verify` tells more"
        return StoreError(f"{path}: what is kept cannot be used: {shorten(str(error)) or type(error).__name__}; {cure}")
    said = str(error)
    cure = next((cure for sign, cure in _CURES if sign in said.lower()), "SQLite cannot go on")
    return StoreError(f"{path}: {cure} ({said})")
