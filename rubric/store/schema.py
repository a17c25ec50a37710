"""
The file of a store: its tables, how it is opened, and errors that say what to do.

docs/explanation/requests.md has the states of a call. `sent` is committed before a request leaves, and `done` before
its reply is used. With `PRAGMA synchronous = NORMAL` and a write-ahead log, a commit outlives the process (`kill -9`)
at once, and a power failure from the next checkpoint on: what is lost then is asked again, and no reply is served for
another.

A prompt is kept in parts, each of them once: the skeleton, which is the same for every candidate of a criterion, the
part that all criteria of a candidate share, and the nonce (`rubric.store.cache_key.Request`).
"""

from __future__ import annotations

import os
import sqlite3
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from rubric.errors import RubricError, StoreError
from rubric.internals.text import shorten

APPLICATION = 0x52554247
"""Marks a SQLite file as a reply store: `RUBG`."""

# Of the tables, in `PRAGMA user_version`. An older file is brought to this version when it is opened for writing, in
# one transaction; keys and checksums stay, so its replies are still served. A newer file is refused: this version would
# write rows that the newer one takes for something else.
VERSION = 2

PATIENCE = 30.0
"""Seconds to wait for another process that keeps the file locked."""


def sql(name: str) -> str:
    """Return the statements in the file *name* beside this one, with those of the tables in their place."""
    folder = files("rubric.store")
    text, tables = (folder.joinpath(f"{each}.sql").read_text("utf-8") for each in (name, "tables"))
    return text.replace("-- tables.sql", tables)


@cache
def words(part: str) -> dict[str, str]:
    """Return a *part* of `words.toml`: `cures` by what SQLite says, or the meanings of `states`."""
    found: dict[str, str] = tomllib.loads(files("rubric.store").joinpath("words.toml").read_text("utf-8"))[part]
    return found


_CREATE, _FROM_1 = sql("sessions"), sql("from_version_1")
"""Version 1 kept the whole text of each request: that is now a skeleton without gaps, and its key is its digest."""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Return a connection to the store at *path*, made if it is not there; wait *patience* seconds for a writer."""
    if path.is_dir():
        raise StoreError(f"{path}: this is a folder; name a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path}: it cannot be written to; mode='replay' needs no more than reading")
    with explain(path):
        connection = _connect(path, "mode=rwc", patience)
        try:
            _prepare(connection, path, patience)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_beside(path: Path) -> sqlite3.Connection:
    """Return another connection, to a store that is open for writing; it waits for no lock, and changes nothing."""
    with explain(path):
        return _connect(path, "mode=ro", 0.0)


def connect_to_read(path: Path, patience: float) -> sqlite3.Connection:
    """Return a connection to the store at *path*, whose folder may be read-only, that changes nothing."""
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file")
    with explain(path):
        for options in ("mode=ro", "mode=ro&immutable=1"):
            connection = _connect(path, options, patience)
            try:
                version = _version(connection, path)
            except BaseException as error:
                connection.close()
                # A read-only folder has no room for the shared memory of a write-ahead log. `immutable` does without,
                # but it ignores the log: where there is one, it would serve an old state of the file.
                log = path.with_name(f"{path.name}-wal")
                has_log = log.exists() and log.stat().st_size > 0
                if not isinstance(error, sqlite3.OperationalError) or "immutable" in options or has_log:
                    raise
                continue
            if version == VERSION:
                return connection
            connection.close()
            if not version:
                raise StoreError(f"{path}: this is not a reply store: it is empty")
            cure = "open it once for writing, with Store(path), to bring it to this version"
            raise StoreError(f"{path}: its tables are of version {version}, of an older rubric; {cure}")
    raise AssertionError(path)


def _connect(path: Path, options: str, patience: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)


def _prepare(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    if _version(connection, path) != VERSION:
        with transaction(connection):
            version = _version(connection, path)  # another process may have been faster
            if version != VERSION:
                connection.create_function("bytes_of", 1, bytes.fromhex)
                for statement in (_FROM_1 if version else _CREATE).split(";")[:-1]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait for others that switch to the write-ahead log too, so this does.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = NORMAL")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables; 0 for an empty file, which may become a store. Refuse anything else."""
    marks = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    begins = not connection.in_transaction
    if begins:  # read in one transaction: another process may be making the file
        connection.execute("BEGIN")
    try:
        application, version, tables = map(int, (connection.execute(each).fetchone()[0] for each in marks))
    finally:
        if begins:
            connection.execute("ROLLBACK")
    if not tables and not application:
        return 0
    if application != APPLICATION:
        raise StoreError(f"{path}: this is a SQLite file of another program, not a reply store")
    if not 1 <= version <= VERSION:
        raise StoreError(f"{path}: its tables are of version {version}, of a newer rubric; this one knows {VERSION}")
    return version


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all changes of the block, or none."""
    # IMMEDIATE takes the write lock at once. A transaction that reads first and locks later cannot wait for another
    # writer: SQLite fails it without patience, since what it has read may be outdated.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explain(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, and of damage that SQLite does not see, into a `StoreError` that says what to do."""
    try:
        yield
    except (RubricError, OSError):
        raise
    except Exception as error:  # the bytes of a damaged file can be anything, so reading them may raise anything
        raise as_store_error(path, error) from error


def as_store_error(path: Path, error: Exception) -> StoreError:
    """Return *error* as one that names the file and says what to do."""
    if isinstance(error, StoreError):
        return error
    if not isinstance(error, sqlite3.Error):
        what = shorten(str(error)) or type(error).__name__
        return StoreError(f"{path}: what is kept cannot be used: {what}; `rubric store verify` tells more")
    message = str(error)
    cure = next((cure for sign, cure in words("cures").items() if sign in message.lower()), "SQLite cannot go on")
    return StoreError(f"{path}: {cure} ({message})")
