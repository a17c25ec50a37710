"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from rubric.__main__ import main
from rubric.internals.atomic_write import replacing


def test_the_old_text_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """Whoever reads it meanwhile has the old one; afterwards the new one alone is there."""
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as file:
        file.write("new\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n"
    assert [*tmp_path.iterdir()] == [path]


def test_an_error_leaves_all_as_it_was(tmp_path: Path) -> None:
    """The old file stays, and nothing lies beside it."""
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(path) as file:
        file.write("new \ud800")
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and pipes are those of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    """The file is another, and who may read it is not; a link still leads to it."""
    path, link = tmp_path / "file.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert link.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and pipes are those of POSIX")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """As a shell gives one, to hand the lines on."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with replacing(pipe) as file:
        file.write("handed on")
    reader.join(10)
    assert read == ["handed on"]
    assert pipe.is_fifo()


def test_an_export_of_no_store_leaves_the_old_one(tmp_path: Path) -> None:
    """The error names the store that is not there, and last night's export stays."""
    out, store = tmp_path / "calls.jsonl", tmp_path / "none.db"
    out.write_text("last night's\n")
    result = CliRunner().invoke(main, ["store", "export", str(store), "--out", str(out)])
    assert result.exit_code == 2
    assert f"{store}: there is no such file" in result.output
    assert out.read_text() == "last night's\n"
