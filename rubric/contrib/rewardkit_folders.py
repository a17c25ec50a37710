"""
A folder of Reward Kit's tests: its cases, and the layout by which their scores become rewards.

Checks in Python run where programs are allowed, by Reward Kit itself, which must be installed beside this library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from rubric import Case, Criterion, DefinitionError, Rubric, Suite
from rubric.contrib.rewardkit import case_of, scoring_of, weight_at
from rubric.contrib.rewardkit_toml import as_json
from rubric.contrib.signed_weights import Ids, warn_of_pass_mark
from rubric.embed import SURE, Cursor, Decided, Format, Loading, Notes, has, read_text, run
from rubric.programs.processes import CURE, ProgramError, is_allowed, run_program
from rubric.values import Place, Unsupported

WORKSPACE = "/app"
"""Where the agent has worked, unless the caller declares the variable `WORKSPACE`."""

_SECONDS = 900.0
_PROGRAM = """
import json, os, sys
written = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
from rewardkit import discover
found = {}
for reward in discover(*sys.argv[1:]):
    if reward.judge is None:
        found[reward.name] = [[s.name, s.value, s.weight, s.reasoning or s.description] for s in reward.run()]
written.write(json.dumps(found))
written.close()
"""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the folder, or in the one judge TOML, that the document of *notes* names."""
    root = Cursor.of(notes, loading)
    file = Path(root["rewardkit"].text("the path of a folder, or of a judge TOML") or "")
    folder = _Folder(notes, loading)
    if file.name == "reward.toml":
        folder.check(file.parent)
        layout = folder.layout(file.parent)
    else:
        layout = {"dimensions": {"reward": {"inputs": {file.stem: folder.judged(folder.toml(file), file.stem)}}}}
    warn_of_pass_mark(root)
    told = [{"rewardkit": {**case.rubric.provenance["rewardkit"], "layout": layout}} for case in folder.cases]
    pairs = zip(folder.cases, told, strict=True)
    cases = [evolve(case, rubric=evolve(case.rubric, provenance=each)) for case, each in pairs]
    return Suite(cases=cases, format="rewardkit")


@define
class _Folder:
    """
    What is read of a folder.

    Args:
        checks: Those that ran, by component, each with its name, score, weight and reason.
        why: Why none ran.
    """

    notes: Notes
    loading: Loading
    cases: list[Case] = field(factory=list)
    checks: Mapping[str, Any] = field(factory=dict)
    why: str = f"checks in Python: {CURE}"

    @property
    def workspace(self) -> Loading:
        """The loading by which files of the agent are found."""
        return evolve(self.loading, folder=Path(self.loading.environ.get("WORKSPACE", WORKSPACE)))

    def toml(self, file: Path) -> Cursor:
        """Return the root of a TOML file, whose problems are noted at its own lines."""
        try:
            text = as_json(read_text(file, self.loading.root))
        except DefinitionError as problem:
            self.notes.error((), f"{file}: {problem.message}")
            text = "{}"
        return Cursor.of(self.notes.of(Cursor.parse(text, str(file)).notes.document, self.loading))

    def layout(self, tests: Path) -> dict[str, Any]:
        """Return how rewards are made: each node of *tests* is one if one is a folder; else they are one together."""
        inputs, specs, has_folders = self._inputs(tests, ())
        rewards: dict[Any, Any] = {}
        for at in specs:
            name = at["name"].words("the name of a reward") if at.needs("name") else None
            if name in rewards or (has_folders and name in inputs):
                at["name"].error(f"the name {name!r} belongs to another reward already; change one")
            rewards[name] = {**_combined(at, inputs, "name"), "name": name}
        whole = inputs if has_folders else {"reward": rewards.pop("reward", {"inputs": inputs})}
        return {"dimensions": whole, "rewards": [*rewards.values()]}

    def _inputs(self, folder: Path, path: tuple[str, ...]) -> tuple[dict[str, Any], list[Cursor], bool]:
        """Return the nodes in *folder* by name, the rewards of its `reward.toml`, and whether one is a folder."""
        config = self.toml(folder / "reward.toml") if (folder / "reward.toml").is_file() else Cursor({}, self.notes)
        config.only(("reward", "scoring"))
        found: dict[str, Any] = {}
        has_folders = False
        for file in sorted(folder.iterdir(), key=lambda one: one.stem):
            node, id_ = None, "/".join((*path, file.stem))
            if file.is_dir() and not file.name.startswith((".", "__")):
                inner, specs, _ = self._inputs(file, (*path, file.name))
                for other in specs[1:]:
                    other.error("a folder within the tests has one score; keep one [[reward]]")
                node = (_combined(specs[0], inner) if specs else {"inputs": inner}) if inner else None
                has_folders = has_folders or node is not None
            elif file.suffix == ".py":
                node = self._programmed(file, id_, config.under("scoring").under(file.stem))
            elif file.suffix == ".toml" and file.name != "reward.toml":
                node = self.judged(self.toml(file), id_)
            if node is not None and found.setdefault(file.stem, node) is not node:
                self.notes.error((), f"two files or folders in {folder} are called {file.stem!r}; rename one")
        for name in config.under("scoring").value.keys() - found.keys():
            config["scoring"][name].error(f"there is no {name}.py with checks here; rename this", key=True)
        return found, config["reward"].listing("a list of rewards") if config.has("reward") else [], has_folders

    def judged(self, at: Cursor, id: str) -> dict[str, Any] | None:
        """Add the case of a judge TOML, and return its node; None for another TOML."""
        if "judge" not in at and "criterion" not in at:
            at.warn("it has no [judge] and no [[criterion]], and is not read")
            return None
        if (case := case_of(at, id, self.workspace)) is not None:
            self.cases.append(case)
        return {"case": id, "weight": weight_at(at.under("judge")["weight"], "weighted-sum")}

    def check(self, tests: Path) -> None:
        """Run the checks of *tests*, by Reward Kit's own functions in a process of their own, where that is allowed."""
        if is_allowed() and any(map(_has_checks, tests.rglob("*.py"))):
            self.why = ""
            where = (os.path.abspath(tests), str(self.workspace.folder))  # noqa: PTH100 - no links are followed
            try:
                self.checks = json.loads(
                    run(run_program((sys.executable, "-c", _PROGRAM, *where), b"", seconds=_SECONDS))
                )
            except ProgramError as error:
                self.why = f"checks in Python: {error}"

    def _programmed(self, file: Path, id: str, scoring: Cursor) -> dict[str, Any] | None:
        """Add the case of a Python file that registers checks, and return its node; None if it registers none."""
        if not _has_checks(file) or not (self.why or id in self.checks):
            return None
        ids, criteria = Ids(), [Criterion("checks", answer=Unsupported(self.why))] if self.why else []
        for name, score, weight, reason in self.checks.get(id, ()):
            answer = Decided(score, reason=reason) if 0 <= score <= 1 else Unsupported(f"a check that scores {score:g}")
            criteria.append(Criterion(name, id=ids.make(name)["id"], answer=answer, weight=weight))
        rubric = Rubric(criteria=criteria, degenerate="judge", provenance={"rewardkit": scoring_of(scoring)})
        self.cases.append(Case(id, rubric, output="", place=Place(str(file))))
        return {"case": id}


def _has_checks(file: Path) -> bool:
    return "rewardkit" in file.read_text("utf-8", "replace")


def _combined(at: Cursor, inputs: Mapping[str, Any], *also: str) -> dict[str, Any]:
    """Return the node that a `[[reward]]` makes of *inputs*."""
    if not at.mapping("a reward (a table with aggregation and weights)"):
        return {"inputs": inputs}
    at.only((*also, "aggregation", "threshold", "weights"))
    rule, weights = scoring_of(at), at.under("weights")
    for name, one in weights.items():
        if name not in inputs:
            one.error(f"there is no input {name!r}; there are {', '.join(inputs)}", key=True)
    weighed = {name: weight_at(one, rule["aggregation"]) for name, one in weights.items()}
    return {**rule, "inputs": inputs, "weights": weighed}


def _stands_for(folder: Path) -> str:
    """Return the file that stands for a *folder* of Reward Kit's tests, which need not be there; '' for another."""
    return "reward.toml" if any("[[criterion]]" in read_text(file) for file in folder.rglob("*.toml")) else ""


def _translated(file: Path, text: str, _: Loading) -> str:
    as_json(text)
    return json.dumps({"rewardkit": str(file)})


FORMAT = Format(
    "rewardkit",
    read,
    evidence=((SURE, has("rewardkit", kind=str)),),
    suffixes=(".toml",),
    translate=_translated,
    folder=_stands_for,
)
