"""The file: what is refused, what is survived, and in what words."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rubric import Candidate, Criterion, Grade, Judge, Rubric, Ungraded
from rubric.driving import flow
from rubric.errors import RubricError, StoreError
from rubric.store.audit import export, stats, verify
from rubric.store.cache_key import request_of
from rubric.store.database import Mode
from rubric.store.store import Store
from rubric.values.requests import Ask, Usage
from tests.places import ROOT
from tests.store.test_cache_key import ask
from tests.storing import POLITE, Counted, carried, graded, is_odd, scores, told


def filled(file: Path, texts: int = 3) -> Path:
    """Return *file* with answers about so many texts in it."""
    with Store(file) as store:
        for number in range(texts):
            graded(store, Judge(Counted()), f"Good morning, number {number}!")
    return file


def spoil(file: Path, *statements: str) -> None:
    """Change a store behind its back."""
    connection = sqlite3.connect(file)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def not_sqlite(file: Path) -> None:
    file.write_bytes(b"This is a text, and a long one at that. " * 200)


def of_another_program(file: Path) -> None:
    spoil(file, "CREATE TABLE birds (name TEXT)")


def of_another_version(file: Path) -> None:
    filled(file)
    spoil(file, "PRAGMA user_version = 99")


def a_folder(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (not_sqlite, "not a reply store: it is not a SQLite file"),
        (of_another_program, "a SQLite file of another program"),
        (of_another_version, "version 99, of a newer rubric; this one knows 2"),
        (a_folder, "this is a folder"),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
@pytest.mark.parametrize("mode", ["read-write", "replay", "refresh"])
def test_what_is_no_store_is_refused(file: Path, make: Callable[[Path], None], words: str, mode: str) -> None:
    """The message names the file, and it is left as it is."""
    make(file)
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(StoreError, match="no such file" if file.is_dir() and mode == "replay" else words) as error:
        Store(file, mode=mode)  # type: ignore[arg-type]
    assert str(file) in str(error.value)
    assert isinstance(error.value, RubricError)
    assert (file.read_bytes() if file.is_file() else b"") == before


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    """A slip in a path makes no folders."""
    with pytest.raises(StoreError, match="does not exist"):
        Store(tmp_path / "no" / "replies.db")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "look",
    [lambda f: Store(f, mode="replay"), stats, verify, lambda f: list(export(f))],
    ids=["replay", "stats", "verify", "export"],
)
def test_looking_makes_no_file(file: Path, look: Callable[[Path], object]) -> None:
    """To replay and to count, there must be a store."""
    with pytest.raises(StoreError, match="no such file"):
        look(file)
    assert not file.exists()


def test_an_empty_file_becomes_a_store_but_is_none_to_replay(file: Path) -> None:
    """What `mktemp` leaves may be used."""
    file.touch()
    with pytest.raises(StoreError, match="it is empty"):
        Store(file, mode="replay")
    filled(file)
    assert verify(file) == []


def test_a_closed_store_is_one_file(file: Path) -> None:
    """It can be copied, and put under version control."""
    filled(file)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


AS_NOBODY = """
import os, sys, tempfile
from rubric import Judge
from rubric import Store
from tests.storing import POLITE, Counted, graded

def calls(file, mode):
    with Store(file, mode=mode) as store:
        return graded(store, Judge(Counted()), "Good morning, number 0!").usage.calls

with tempfile.TemporaryDirectory() as folder:
    calls(f"{folder}/replies.db", "read-write")  # imports all that it takes
if os.geteuid() == 0:  # whom permissions do not bind
    os.setresuid(65534, 65534, 65534)
print(calls(sys.argv[1], sys.argv[2]))
"""


def run_as_nobody(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Grade in a process whom permissions bind."""
    command = [sys.executable, "-c", AS_NOBODY, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def read_only(file: Path) -> Iterator[Path]:
    """Return a store in a folder that nobody may write to."""
    folder = Path("/tmp") / f"rubric-store-{os.getpid()}"  # noqa: S108 - pytest's own is closed to others
    folder.mkdir()
    filled(folder / file.name)
    folder.chmod(0o555)
    (folder / file.name).chmod(0o444)
    yield folder / file.name
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of folders are POSIX's")
def test_a_folder_that_cannot_be_written_to_can_be_replayed(read_only: Path) -> None:
    """A checkout in CI may be read-only; to record there is refused in words."""
    replayed = run_as_nobody(read_only, "replay")
    assert replayed.stdout == "0\n", replayed.stderr
    refused = run_as_nobody(read_only, "read-write")
    assert "it cannot be written to; mode='replay' needs no more than reading" in refused.stderr


def test_a_file_that_stays_locked_is_told(file: Path) -> None:
    """After the patience that it was given, and nothing has been sent."""
    filled(file)
    model = Counted()
    with Store(file, patience=0.1) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process keeps it locked"):
            asyncio.run(carried(store, ask(Judge(model))))
        other.execute("ROLLBACK")
        other.close()
        assert not model.asks
        assert graded(store, Judge(model)).usage.calls == 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Linux alone lists the files that are open")
def test_a_file_that_cannot_be_opened_is_left_closed(file: Path) -> None:
    """Its tables are damaged, which shows late; Windows could not remove a file that is still open."""
    filled(file)
    spoil(file, "DROP TABLE sessions")
    with pytest.raises(StoreError):
        Store(file)
    opened = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert [one for one in opened if str(one).startswith(str(file.resolve()))] == []


def test_what_is_kept_is_served_while_the_file_is_locked(file: Path) -> None:
    """Reading waits for nobody."""
    filled(file)
    with Store(file, patience=0.1) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert graded(store, Judge(Counted()), "Good morning, number 0!").usage == Usage()
        other.execute("ROLLBACK")
        other.close()


def test_a_reply_that_cannot_be_written_at_once_is_written_later(file: Path) -> None:
    """The file is locked when the reply arrives: the asker is told, and the reply is not lost."""
    other = sqlite3.connect(file, isolation_level=None)

    def locking(_: object) -> bool:
        other.execute("BEGIN IMMEDIATE")
        return True

    with Store(file, patience=0.1) as store:
        with pytest.raises(StoreError, match="locked"):
            asyncio.run(carried(store, ask(Judge(Counted(locking)))))
        other.execute("ROLLBACK")
    other.close()
    assert {str(name): number for name, number in stats(file).states.items()} == {"done": 1}


FULL = """
import asyncio, resource, sys
from rubric import Judge
from rubric.errors import StoreError
from rubric import Store
from tests.storing import POLITE, Counted, carried
from tests.store.test_cache_key import ask
store = Store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
model = Counted()
async def fill():
    for number in range(1000):
        print(number, flush=True)
        await carried(store, ask(Judge(model), f"{number} " * 3000))
try:
    asyncio.run(fill())
except StoreError as problem:
    print("told:", problem, len(model.asks))
"""


def test_a_full_disk_is_told_and_loses_nothing(file: Path) -> None:
    """At a limit of the file's size nothing more is sent; what was answered before is there, and it goes on later."""
    command = [sys.executable, "-c", FULL, str(file)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    *numbers, told = ended.stdout.splitlines()
    assert told.startswith(f"told: {file}: the disk"), ended.stderr
    sent = int(told.rpartition(" ")[2])
    assert verify(file) == []
    done = int(stats(file).states.get("done", 0))
    assert sent - 1 <= done <= sent <= len(numbers)
    with Store(file) as store:
        assert asyncio.run(carried(store, ask(Judge(Counted()), "0 " * 3000))).usage == Usage()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


KILLED = """
import os, signal, sys
from rubric import Judge
from rubric import Store
from tests.storing import POLITE, Counted, graded, is_odd, scores, told
store = Store(sys.argv[1])
for number in range(20):
    graded(store, Judge(Counted(is_odd)), f"Good morning, number {number}!")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store whose process was killed, so that its log is not in the file yet."""
    file = tmp_path_factory.mktemp("killed") / "replies.db"
    subprocess.run([sys.executable, "-c", KILLED, str(file)], cwd=ROOT, check=False)
    return file


@pytest.mark.parametrize("seed", range(12))
def test_a_torn_log_costs_its_end_and_nothing_else(unfinished: Path, file: Path, seed: int) -> None:
    """
    Wherever the power went: the file is whole, what is lost is asked again, and no reply is served for another.

    The log is cut at a random byte; of every second one the rest is there, and nonsense.
    """
    chance = random.Random(seed)
    shutil.copy(unfinished, file)
    log = unfinished.with_name(f"{unfinished.name}-wal").read_bytes()
    cut = chance.choice([0, 1, 31, len(log) - 1, chance.randrange(len(log)), chance.randrange(len(log))])
    rest = chance.randbytes(len(log) - cut) if seed % 2 else b""
    file.with_name(f"{file.name}-wal").write_bytes(log[:cut] + rest)
    model = Counted(is_odd)
    with Store(file) as store:
        results = [graded(store, Judge(model), f"Good morning, number {number}!") for number in range(20)]
    assert scores(results) == [0.0, 1.0] * 10
    assert verify(file) == []


def test_a_whole_log_costs_nothing(unfinished: Path, file: Path) -> None:
    """What a killed process had written is all there."""
    for end in ("", "-wal"):
        shutil.copy(f"{unfinished}{end}", f"{file}{end}")
    model = Counted(is_odd)
    with Store(file) as store:
        results = [graded(store, Judge(model), f"Good morning, number {number}!") for number in range(20)]
    assert scores(results) == [0.0, 1.0] * 10
    assert not model.asks


def test_a_damaged_file_is_told(file: Path) -> None:
    """Pages that hold nonsense are found by `verify`, and by whoever asks, in words."""
    filled(file, 30)
    whole = bytearray(file.read_bytes())
    whole[4096:] = os.urandom(len(whole) - 4096)
    file.write_bytes(whole)
    assert any("damaged" in str(problem) or "Tree" in str(problem) for problem in verify(file))
    with pytest.raises(StoreError, match="damaged"):
        Store(file)


def test_an_answer_that_cannot_be_read_is_told_and_stops_nobody_else(file: Path) -> None:
    """The store goes on for other asks."""
    filled(file)
    spoil(file, "UPDATE calls SET result = '{'")
    with Store(file) as store:
        with pytest.raises(StoreError, match="what is kept cannot be used"):
            asyncio.run(carried(store, again()))
        assert isinstance(graded(store, Judge(Counted()), "Good night!"), Grade)
    with Store(file, mode="refresh") as store:
        assert isinstance(graded(store, Judge(Counted()), "Good morning, number 0!"), Grade)


def again() -> Ask:
    """Return the ask that `filled` has sent first."""
    model = Counted()
    steps = flow(Candidate("Good morning, number 0!"), POLITE, Judge(model))
    return next(steps)[0]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE calls SET key = x'00' WHERE id = 1", "call 1: the request is not the one of its key"),
        (
            "UPDATE texts SET body = x'00' WHERE id = (SELECT shared FROM calls WHERE id = 2)",
            "call 2: the request cannot be read",
        ),
        ("UPDATE calls SET result = '{}' WHERE id = 3", "call 3: its reply cannot be read"),
        ("UPDATE calls SET result = NULL WHERE id = 3", "call 3: its reply cannot be read"),
    ],
)
def test_verify_tells_each_row_that_is_not_as_it_was_written(file: Path, statement: str, words: str) -> None:
    """A changed request, a torn text, an answer that is none."""
    filled(file)
    spoil(file, statement)
    (problem,) = verify(file)
    assert str(problem).startswith(words)


def test_a_file_that_is_being_made_is_seen_whole(tmp_path: Path) -> None:
    """Many that open a new store at the same moment all get it: none takes it for another program's."""
    failed: list[BaseException] = []

    def open_together(file: Path, barrier: threading.Barrier) -> None:
        barrier.wait()
        try:
            Store(file).close()
        except StoreError as error:
            failed.append(error)

    for number in range(12):
        barrier = threading.Barrier(6)
        threads = [threading.Thread(target=open_together, args=(tmp_path / f"{number}.db", barrier)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []


def _flip(data: bytearray, chance: random.Random, times: int) -> None:
    for _ in range(times):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _page(data: bytearray, chance: random.Random, page: bytes) -> None:
    at = 4096 * chance.randrange(len(data) // 4096)
    data[at : at + 4096] = page


def _in_value(data: bytearray, chance: random.Random) -> None:
    """Change a byte where a reply stands: SQLite sees nothing of that."""
    found = [match.start() for match in re.finditer(rb'"reply"|verdict|reason|"usage"|"sum"|done', bytes(data))]
    data[chance.choice(found) + chance.randrange(12)] = chance.choice([0x30, 0x61, 0x22, 0xC3, 0xFF])


DAMAGE: dict[str, Callable[[bytearray, random.Random], None]] = {
    "a bit": lambda data, chance: _flip(data, chance, 1),
    "bytes": lambda data, chance: _flip(data, chance, 300),
    "a page of zeros": lambda data, chance: _page(data, chance, bytes(4096)),
    "a page of noise": lambda data, chance: _page(data, chance, chance.randbytes(4096)),
    "its end": lambda data, chance: data.__delitem__(slice(chance.randrange(len(data)), None)),
    "a value": _in_value,
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_store_that_lost_something_serves_what_was_written_or_says_so(file: Path, what: str) -> None:
    """Whatever became of its bytes: no error but `StoreError`, and no reply that is another one."""
    filled(file, 8)
    whole, chance = file.read_bytes(), random.Random(what)
    texts = [f"Good morning, number {number}!" for number in range(8)]
    with Store(file, mode="replay") as store:
        written = [told(graded(store, Judge(Counted()), text)) for text in texts]

    def served(mode: Mode) -> None:
        with Store(file, mode=mode, patience=0.1) as store:
            for text, before in zip(texts, written, strict=True):
                with suppress(StoreError):
                    result = graded(store, Judge(Counted()), text)
                    assert told(result) == before or isinstance(result, Ungraded)

    uses: list[Callable[[], object]] = [
        lambda: served("replay"),
        lambda: served("read-write"),
        lambda: stats(file),
        lambda: verify(file),
        lambda: [*export(file)],
    ]
    for _ in range(8):
        data = bytearray(whole)
        DAMAGE[what](data, chance)
        for use in uses:
            for left in file.parent.glob("replies.db*"):
                left.unlink()
            file.write_bytes(data)
            with suppress(StoreError):
                use()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE calls SET result = replace(result, 'as scripted', 'as forged')",
        "UPDATE calls SET result = replace(result, 'true', 'false')",
        "UPDATE calls SET result = (SELECT result FROM calls AS other WHERE other.id = 4 - calls.id)",
        "UPDATE calls SET result = CAST(x'ff' AS TEXT)",
    ],
)
def test_a_reply_that_is_not_the_one_that_was_written_is_not_served(file: Path, statement: str) -> None:
    """Neither a changed one, nor that of another request; `verify` tells of it."""
    with Store(file) as store:
        for number in range(3):
            graded(store, Judge(Counted(lambda ask: '{"reason": "as scripted", "verdict": true}')), f"Number {number}!")
    spoil(file, "DROP INDEX one_answer", statement)
    assert verify(file)
    with Store(file, mode="replay") as store, pytest.raises(StoreError, match="store verify"):
        graded(store, Judge(Counted()), "Number 0!")


def test_a_store_of_before_there_were_checksums_still_serves(file: Path) -> None:
    """What has none cannot be looked at, and is served as it was."""
    filled(file)
    spoil(file, """UPDATE calls SET result = substr(result, 1, instr(result, ',"sum":') - 1) || '}'""")
    model = Counted()
    with Store(file) as store:
        graded(store, Judge(model), "Good morning, number 0!")
    assert (model.asks, verify(file)) == ([], [])


_VERSION_1 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, mode TEXT NOT NULL, started_at REAL NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0, is_open INTEGER NOT NULL DEFAULT 1,
    hits INTEGER NOT NULL DEFAULT 0, saved_calls INTEGER NOT NULL DEFAULT 0, saved_cost REAL NOT NULL DEFAULT 0
);
CREATE TABLE requests (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, model TEXT NOT NULL, text BLOB NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request INTEGER NOT NULL REFERENCES requests (id), session INTEGER NOT NULL REFERENCES sessions (id),
    state TEXT NOT NULL, kind TEXT, sent_at REAL, ended_at REAL, outcome TEXT
);
CREATE UNIQUE INDEX one_answer ON calls (request) WHERE state = 'done';
CREATE UNIQUE INDEX one_under_way ON calls (request) WHERE state IN ('claimed', 'sent', 'in_doubt');
CREATE INDEX calls_of_request ON calls (request, id);
PRAGMA application_id = 1381319239;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""


@pytest.fixture
def of_version_1(file: Path) -> Path:
    """Return a file as the version before wrote it: an answer with all its fields, and a call left in doubt."""
    connection = sqlite3.connect(file)
    connection.executescript(_VERSION_1)
    connection.execute("INSERT INTO sessions (host, pid, mode, started_at, hits) VALUES ('h', 1, 'read-write', 1.0, 7)")
    usage = '{"calls":1,"prompt_tokens":9,"cached_tokens":0,"completion_tokens":1,"cost":0.5,"unmetered":0}'
    body = (
        '{"reply":{"text":"{\\"verdict\\": true, \\"reason\\": \\"\\"}","finish":"stop","refusal":"",'
        f'"usage":{usage},"model":"","unsent":[],"logprobs":null,"choices":[],"remarks":[]}}}}'
    )
    judge = Judge(Counted(), sealed=False)
    for number, state in enumerate(("done", "sent"), 1):
        request = request_of(next(flow(Candidate(f"Text number {number}."), POLITE, judge))[0])
        whole = zlib.compress(request.text.encode(), 1)
        connection.execute("INSERT INTO requests VALUES (?, ?, 'Counted', ?)", (number, request.key, whole))
        checksum = hashlib.sha256(f"{request.key}\n{body}".encode()).hexdigest()[:16]
        outcome = f'{body[:-1]},"sum":"{checksum}"}}' if state == "done" else None
        row = (number, number, state, outcome)
        connection.execute("INSERT INTO calls VALUES (?, ?, 1, ?, NULL, 1.0, 2.0, ?)", row)
    connection.commit()
    connection.close()
    return file


def test_a_store_of_the_version_before_is_brought_to_this_one(of_version_1: Path) -> None:
    """Its replies are served, its calls in doubt are still in doubt, and what it cost is still counted."""
    model = Counted()
    judge = Judge(model, sealed=False)
    with Store(of_version_1, in_doubt="hold") as store:
        served = graded(store, judge, "Text number 1.")
        held = graded(store, judge, "Text number 2.")
        graded(store, judge, "Text number 3.")
    assert isinstance(served, Grade)
    assert isinstance(held, Ungraded)
    assert ([failure.kind for failure in held.failures], len(model.asks)) == (["in_doubt"], 1)
    found = stats(of_version_1)
    assert (dict(found.states), found.calls, found.cost, found.hits) == ({"done": 2, "sent": 1}, 2, 0.75, 8)
    assert verify(of_version_1) == []
    assert next(export(of_version_1))["request"]["messages"][1][0] == "user"


@pytest.mark.parametrize(
    "look",
    [lambda f: Store(f, mode="replay"), stats, verify, lambda f: list(export(f))],
    ids=["replay", "stats", "verify", "export"],
)
def test_looking_into_a_store_of_the_version_before_tells_the_cure(
    of_version_1: Path, look: Callable[[Path], object]
) -> None:
    """Who only reads a file does not change it."""
    before = of_version_1.read_bytes()
    with pytest.raises(StoreError, match=r"of version 1, of an older rubric; open it once for writing"):
        look(of_version_1)
    assert of_version_1.read_bytes() == before


def test_a_prompt_is_kept_in_parts_each_of_them_once(file: Path) -> None:
    """Five criteria of three candidates: five skeletons and three candidates, from which each request is restored."""
    rubric = Rubric("polite", criteria=[Criterion(f"Is polite {n}", id=f"c{n}") for n in range(5)])
    with Store(file) as store:
        for number in range(3):
            graded(store, Judge(Counted(), sealed=True), f"Good morning, number {number}!", rubric)
    connection = sqlite3.connect(file)
    parts = "SELECT count(DISTINCT skeleton), count(DISTINCT shared), count(DISTINCT nonce), count(*) FROM calls"
    assert connection.execute(parts).fetchone() == (5, 3, 15, 15)
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (8,)
    connection.close()
    assert verify(file) == []
    assert "Good morning, number 2!" in list(export(file))[-1]["request"]["messages"][1][1]
