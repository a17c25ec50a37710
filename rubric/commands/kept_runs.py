"""
The runs that the command line keeps, each in a folder of its own below `.rubric/runs`, the newest fifty.

`run.json` is what was asked, `report.json` the report with all secrets masked, written anew as the run goes on, and
`results.jsonl` the results as `agree`, `compare` and `align` take them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from attrs import asdict, define, evolve, field

from rubric import Candidate
from rubric.commands.output import Refusal, print_line
from rubric.driving import Usage
from rubric.embed import clean, counted, replacing
from rubric.results import Row
from rubric.suites import Report
from rubric.suites.report import dump_json, summary

MOST, LARGEST = 50, 10_000
"""The runs that are kept, and the rows of a report; `results.jsonl` has all results."""


def folder_of_runs() -> Path | None:
    """Return the folder of the kept runs: `.rubric/runs`, or what `RUBRIC_RUNS` names; None if that is empty."""
    named = os.environ.get("RUBRIC_RUNS", ".rubric/runs")
    return Path(named) if named else None


def kept_runs(folder: Path | None) -> list[tuple[Path, dict[str, Any]]]:
    """Return the folder of each run in *folder* with what was asked, the newest first."""
    found = []
    for each in sorted(folder.iterdir(), reverse=True) if folder is not None and folder.is_dir() else ():
        with suppress(OSError, ValueError):
            about = json.loads((each / "run.json").read_bytes())
            found += [(each, about)] if isinstance(about, dict) and {"name", "files"} <= about.keys() else []
    return found


def last_runs(count: int, files: Iterable[str | Path] = ()) -> list[Path]:
    """Return the folders of the newest *count* runs that have ended, of the same *files*, or those of the newest."""
    ended = [(each, about["files"]) for each, about in kept_runs(folder_of_runs()) if "ended" in about]
    names = [*map(str, files)] or (ended[0][1] if ended else [])
    alike = [each for each, asked in ended if asked == names][:count]
    if len(alike) < count:
        of = f" of {', '.join(names)}" if names else ""
        newest = " ".join(shlex.quote(str(each)) for each, _ in ended[:count])
        cure = f"; to compare with another file's, such as rubric compare {newest}" if len(ended) >= count > 1 else ""
        found = counted(len(alike), "kept run")
        raise Refusal(f"{folder_of_runs()}: {found}{of}, and this takes {count}; run it first{cure}")
    return alike


def candidate_digest(candidate: Candidate | None) -> str:
    """Return 16 hexadecimal digits of all that *candidate* holds: a result of other digits is of another one."""
    return hashlib.sha256(repr(candidate).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@define(eq=False)
class Keeper:
    """Keeps a run while it goes on. Where its *folder* cannot be written to, that is told, and the run goes on."""

    folder: Path | None
    about: dict[str, Any]
    _results: IO[str] | None = None
    _rows: list[Row] = field(factory=list)
    _beyond: Counter[str] = field(factory=Counter)  # how many have each status, of the rows after LARGEST
    _usage: Usage = field(factory=Usage)
    _next: float = 0.0

    @classmethod
    def of(cls, name: str, files: Sequence[str | Path], *, keep: bool = True, store: Path | None = None) -> Keeper:
        """Return the keeper of a run of *files* with a *store* of replies; it keeps nothing unless *keep*."""
        where, now = folder_of_runs() if keep else None, datetime.now().astimezone()
        about = {"name": clean(name), "files": [*map(str, files)], "command": clean(" ".join(sys.argv[1:]))}
        about |= {"store": str(store.resolve())} if store is not None else {}
        keeper = cls(where and where / f"{now:%Y-%m-%d_%H-%M-%S-%f}-{os.getpid()}", about)
        with keeper._writing() as folder:
            if folder is not None and where is not None:
                folder.mkdir(parents=True)
                if where.parent.name == ".rubric":  # another folder is the user's own, with rules of its own
                    (where.parent / ".gitignore").write_text("*\n")
                keeper._stamp("started")
                keeper._results = (folder / "results.jsonl").open("w", encoding="utf-8", buffering=1)
                for old, _ in kept_runs(where)[MOST:]:
                    shutil.rmtree(old, ignore_errors=True)
        return keeper

    def add(self, row: Row) -> None:
        """Keep *row* and its result, and from time to time the report of all rows so far."""
        if self.folder is None or self._results is None:
            return
        if len(self._rows) < LARGEST:
            self._rows.append(row)
        else:
            self._beyond[row.status] += 1
            self._usage += row.usage
        with self._writing():
            if (result := row.result) is not None:
                data = {"index": result.index, **result.to_dict(), "key": result.key or row.id}
                data |= {"candidate": candidate_digest(result.candidate)}
                self._results.write(f"{clean(dump_json(data))}\n")
            if (began := time.monotonic()) >= self._next:
                so_far = Report(self.about["name"], tuple(self._rows), warnings=("this run has not ended",))
                self._save("report.json", so_far.render("json"))
                self._next = time.monotonic() + max(1.0, 20 * (time.monotonic() - began))

    def carry(self, earlier: Path, again: Iterable[str]) -> None:
        """Keep the results of an *earlier* run, without those whose keys are asked *again*."""
        asked = {*again}
        with self._writing() as folder, (earlier / "results.jsonl").open(encoding="utf-8") as lines:
            if folder is not None and self._results is not None:
                self._results.writelines(line for line in lines if json.loads(line)["key"] not in asked)

    def end(self, report: Report | None = None) -> None:
        """Keep the *report*, or that of the rows."""
        with self._writing() as folder:
            if folder is not None and self._results is not None:
                self._results.close()
                report = Report(self.about["name"], tuple(self._rows)) if report is None else report
                self.about["summary"] = self._summary(report)
                if beyond := self._beyond.total():
                    told = f"the first {LARGEST:,} of {LARGEST + beyond:,} candidates; results.jsonl has all"
                    report = evolve(report, warnings=(*report.warnings, told))
                self._save("report.json", report.render("json"))
                self._stamp("ended")

    def _summary(self, report: Report) -> dict[str, Any]:
        """Return the summary of *report*, and of the rows that it does not have."""
        found, beyond = summary(report), self._beyond
        if beyond:
            code = max(report.exit_code, 2 if beyond["ungraded"] else 1 if beyond["failed"] else 0)
            counts = {status: number + beyond[status] for status, number in found["counts"].items()}
            found |= {"passed": code == 0, "exit_code": code, "counts": counts, "cases": sum(counts.values())}
            found["usage"] = asdict(report.usage + self._usage)
        return found

    def _stamp(self, name: str) -> None:
        self.about[name] = datetime.now().astimezone().isoformat(timespec="seconds")
        self._save("run.json", dump_json(self.about, indent=2))

    def _save(self, name: str, text: str) -> None:
        if self.folder is not None:
            with replacing(self.folder / name) as file:
                file.write(text)

    @contextmanager
    def _writing(self) -> Iterator[Path | None]:
        try:
            yield self.folder
        except OSError as problem:
            print_line(f"warning: {self.folder}: not kept: {problem.strerror or problem}", problem=True)
            self.folder = None
