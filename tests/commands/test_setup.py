"""The commands to begin with: files to start from, and completion in real shells."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rubric import load, load_suite
from tests.command_line import run
from tests.places import ROOT

# -- init -------------------------------------------------------------------------------------------------


def test_the_starters_are_valid_and_run_without_a_key(tmp_path: Path) -> None:
    """The files that `init` writes validate and grade with the offline judge, as its own text says."""
    folder = tmp_path / "evals"
    made = run("init", str(folder))
    assert made.exit_code == 0
    assert run("validate", str(folder)).exit_code == 0
    assert run("grade", str(folder / "suite.yaml"), "--judge", "offline").exit_code == 0
    reply = next(re.findall(r'echo "(.*?)" \|', line) for line in made.stdout.splitlines() if "echo" in line)[0]
    assert run("grade", str(folder / "rubric.yaml"), "-", "--judge", "offline", stdin=reply).exit_code == 0
    assert (len(load(folder / "rubric.yaml")), len(load_suite(folder / "suite.yaml"))) == (5, 2)


def test_a_starter_never_overwrites_a_file(tmp_path: Path) -> None:
    """`init` refuses a folder that holds one of its files, and writes none of the others."""
    (tmp_path / "suite.yaml").write_text("mine")
    refused = run("init", str(tmp_path))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "exist already" in refused.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["suite.yaml"]
    assert run("init", str(tmp_path / "suite.yaml")).exit_code == 2


# -- completion -------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a search path whose first folder has the console script, as an installer writes it."""
    script = tmp_path / "bin" / "rubric"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom rubric.__main__ import run\nsys.exit(run())\n")
    script.chmod(0o755)
    return f"{script.parent}{os.pathsep}{os.environ['PATH']}"


def environ(path: str, home: Path) -> dict[str, str]:
    return {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def needs(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


def typed(command: list[str], lines: list[str], env: dict[str, str], until: str, folder: Path) -> str:
    """Type *lines* into an interactive shell on a terminal, and return what it shows up to *until*."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child
        os.chdir(folder)
        os.execve(command[0], command, env)  # noqa: S606 - a shell itself
    shown = ""
    deadline = time.monotonic() + 60
    try:
        for index, line in enumerate(lines):
            os.write(terminal, line.encode())
            wanted = until if index == len(lines) - 1 else f"READY{index}"
            while wanted not in shown.replace(f"echo {wanted}", "").replace("'", ""):
                ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
                assert ready, f"no {wanted!r} in {shown!r}"
                shown += os.read(terminal, 4096).decode(errors="replace")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


def test_bash_completes_a_command_and_an_option(path: str, tmp_path: Path) -> None:
    """A tab after `valid` and one after `--form` complete both in a real bash."""
    lines = [
        'eval "$(_RUBRIC_COMPLETE=bash_source rubric)"; echo READY"0"\n',
        "rubric valid\t",
        "--form\t",
    ]
    shell = [needs("bash"), "--norc", "--noprofile", "-i"]
    shown = typed(shell, [lines[0], lines[1] + lines[2] + "\n"], environ(path, tmp_path), "validate --format", tmp_path)
    assert "rubric validate --format" in shown


def test_zsh_completes_a_command_and_an_option(path: str, tmp_path: Path) -> None:
    """A tab after `valid` and one after `--form` complete both in a real zsh."""
    setup = 'autoload -Uz compinit && compinit -u -D; eval "$(_RUBRIC_COMPLETE=zsh_source rubric)"; echo READY"0"\n'
    shell = [needs("zsh"), "-f", "-i"]
    shown = typed(shell, [setup, "rubric valid\t--form\t\n"], environ(path, tmp_path), "--format", tmp_path)
    assert "validate" in shown.rpartition("READY0")[2]


def test_fish_completes_commands_options_and_choices(path: str, tmp_path: Path) -> None:
    """Fish completes `gra`, `--fil` and the reporters that begin with `ju`."""
    fish = needs("fish")
    script = (
        "_RUBRIC_COMPLETE=fish_source rubric | source\n"
        "complete -C 'rubric gra'\necho ====\ncomplete -C 'rubric grade --fil'\necho ====\n"
        "complete -C 'rubric grade --reporter ju'\n"
    )
    done = subprocess.run(
        [fish, "--no-config", "-c", script], env=environ(path, tmp_path), capture_output=True, text=True, check=True
    )
    commands, options, choices = done.stdout.split("====\n")
    assert [line.split("\t")[0] for line in commands.splitlines()] == ["grade", "grade-many"]
    assert "--filter" in options
    assert choices.split()[0] == "junit"


def test_what_an_edit_moves_is_shown_by_group(tmp_path: Path) -> None:
    """`diff --candidates` grades these by both files; options of a judge are refused without them."""
    pytest.importorskip("scipy", reason="the extra `stats` has it")
    files = [tmp_path / name for name in ("a.yaml", "b.yaml", "replies.jsonl")]
    files[0].write_text("rubric: tone\ncriteria: [{id: a, text: Says thank you for waiting}]\n")
    files[1].write_text("rubric: tone\ncriteria: [{id: a, text: Says goodbye}]\n")
    rows = [{"output": f"{n}: I thank you for waiting.", "group": "new" if n % 2 else "old"} for n in range(20)]
    files[2].write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["diff", *map(str, files[:2])]
    result = run(*command, "--candidates", str(files[2]), "--judge", "offline", "--format", "json")
    assert result.exit_code == 1
    assert "0 of 20 verdicts move up and 20 down" in json.loads(result.stdout)["sentence"]
    as_markdown = run(*command, "--format", "md")
    assert (as_markdown.exit_code, "| for the | what | before | after |" in as_markdown.stdout) == (1, True)
    refused = run(*command, "--judge", "offline")
    assert refused.exit_code == 2
    assert "--judge is for --candidates" in refused.stderr


def test_a_file_that_is_no_rubric_cannot_be_compared(tmp_path: Path) -> None:
    """A file that does not exist is a usage error, never "no difference"."""
    assert run("diff", str(tmp_path / "none.yaml"), str(tmp_path / "none.yaml")).exit_code == 2
