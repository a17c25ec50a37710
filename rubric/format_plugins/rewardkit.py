"""
Task folders of Harbor's Reward Kit: judge TOMLs, checks in Python, and the rules by which their scores become rewards.

Each file is a case; the reporter `harbor` has the rewards by the layout, which is in the provenance of each rubric. The
mapping, key by key, is in docs/reference/compatibility.md. Checks in Python run where programs are allowed, by Reward
Kit itself, which must be installed beside this library.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from rubric import Candidate, Case, Criterion, DefinitionError, Judge, Levels, Panel, Rubric, Suite, Unit, YesNo
from rubric.embed import SURE, Answer, Cursor, Decided, Format, LackingError, Loading, Notes, has, read_text, run
from rubric.format_plugins.signed_weights import Ids, as_penalty, by_points, warn_of_pass_mark
from rubric.formats.images import is_image, read_image
from rubric.formats.includes import LackingFileError, expand, is_outside, located_file, may_be_read, text_of
from rubric.programs.processes import CURE, ProgramError, is_allowed, run_program
from rubric.runs import candidate_of_run
from rubric.runs import read as read_run
from rubric.values import AnyJudge, Place, Unsupported

_RULES = ("weighted-mean", "weighted-sum", "all-pass", "any-pass", "threshold", "required-pass")
_AGENTS = ("claude-code", "codex", "fx", "jev")
_FOR_AGENTS = ("model", "version", "isolated", "cwd", "mcp_servers")
_OF_JUDGE = "judge files reference mode samples guard timeout weight reasoning_effort prompt_template".split()  # noqa: SIM905
_TRAJECTORY = ("atif-trajectory", "atif_trajectory")
_OF_KIND = {"binary": (), "likert": ("points",), "numeric": ("min", "max"), "rubric": ("levels",)}
_OF_CRITERION = ("description", "type", "name", "id", "weight", "files", "negate", "optional", "annotations")
GUARD = "The work holds text that addresses whoever grades it, or that says how it should be scored"
_DOCUMENTS = (".pdf", ".docx", ".pptx", ".xls", ".xlsx", ".msg", ".epub")
_SECONDS = 900.0
_PROGRAM = resources.files("rubric.format_plugins").joinpath("rewardkit_checks.txt").read_text("utf-8")


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the folder, or in the one judge TOML, that the document of *notes* names."""
    root = Cursor.of(notes, loading)
    file = Path(root["rewardkit"].text("the path of a folder, or of a judge TOML") or "")
    folder = _Folder(notes, evolve(loading, folder=Path(loading.environ.get("WORKSPACE", "/app"))))
    if file.name == "reward.toml":
        folder.check(file.parent)
        layout = folder.layout(file.parent)
    else:
        layout = {"dimensions": {"reward": {"inputs": {file.stem: folder.add_judge(folder.toml(file), file.stem)}}}}
    warn_of_pass_mark(root)
    told = [{"rewardkit": {**case.rubric.provenance["rewardkit"], "layout": layout}} for case in folder.cases]
    pairs = zip(folder.cases, told, strict=True)
    cases = [evolve(case, rubric=evolve(case.rubric, provenance=each)) for case, each in pairs]
    return Suite(cases=cases, format="rewardkit")


@define
class _Folder:
    """What is read of a folder: its cases, and the checks that ran, by component, or why none did."""

    notes: Notes
    workspace: Loading  # by which files of the agent are found
    cases: list[Case] = field(factory=list)
    checks: Mapping[str, Any] = field(factory=dict)
    why: str = f"checks in Python: {CURE}"

    def toml(self, file: Path) -> Cursor:
        """Return the root of a TOML file, whose problems are noted at its own lines."""
        text, data = read_text(file, self.notes.loading.root), {}
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            self.notes.error((), f"{file}: this is not TOML: {problem}")
        document = Cursor.parse(json.dumps(data, default=str), str(file)).notes.document
        _place(document.root, text)
        return Cursor.of(self.notes.of(document, self.notes.loading))

    def layout(self, tests: Path) -> dict[str, Any]:
        """Return how rewards are made: each node of *tests* is one if one is a folder; else they are one together."""
        inputs, specs, has_folders = self._inputs(tests, ())
        rewards: dict[Any, Any] = {}
        for at in specs:
            name = at["name"].words("the name of a reward") if at.needs("name") else None
            if name in rewards or (has_folders and name in inputs):
                at["name"].error(f"the name {name!r} belongs to another reward already; change one")
            rewards[name] = {**_combine(at, inputs, "name"), "name": name}
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
                node = (_combine(specs[0], inner) if specs else {"inputs": inner}) if inner else None
                has_folders = has_folders or node is not None
            elif file.suffix == ".py":
                node = self._add_program(file, id_, config.under("scoring").under(file.stem))
            elif file.suffix == ".toml" and file.name != "reward.toml":
                node = self.add_judge(self.toml(file), id_)
            if node is not None and found.setdefault(file.stem, node) is not node:
                self.notes.error((), f"two files or folders in {folder} are called {file.stem!r}; rename one")
        for name in config.under("scoring").value.keys() - found.keys():
            config["scoring"][name].error(f"there is no {name}.py with checks here; rename this", key=True)
        return found, config["reward"].listing("a list of rewards") if config.has("reward") else [], has_folders

    def add_judge(self, at: Cursor, id: str) -> dict[str, Any] | None:
        """Add the case of a judge TOML, and return its node; None for another TOML."""
        if "judge" not in at and "criterion" not in at:
            at.warn("it has no [judge] and no [[criterion]], and is not read")
            return None
        if (case := _case(at, id, self.workspace)) is not None:
            self.cases.append(case)
        return {"case": id, "weight": _weight(at.under("judge")["weight"], "weighted-sum")}

    def check(self, tests: Path) -> None:
        """Run the checks of *tests*, by Reward Kit's own functions in a process of their own, where that is allowed."""
        if is_allowed() and any(map(_has_checks, tests.rglob("*.py"))):
            self.why = ""
            command = (sys.executable, "-c", _PROGRAM, str(tests.absolute()), str(self.workspace.folder))
            try:
                self.checks = json.loads(run(run_program(command, b"", seconds=_SECONDS)))
            except ProgramError as error:
                self.why = f"checks in Python: {error}"

    def _add_program(self, file: Path, id: str, scoring: Cursor) -> dict[str, Any] | None:
        """Add the case of a Python file that registers checks, and return its node; None if it registers none."""
        if not _has_checks(file) or not (self.why or id in self.checks):
            return None
        ids, criteria = Ids(), [Criterion("checks", answer=Unsupported(self.why))] if self.why else []
        for name, score, weight, reason in self.checks.get(id, ()):
            answer = Decided(score, reason=reason) if 0 <= score <= 1 else Unsupported(f"a check that scores {score:g}")
            criteria.append(Criterion(name, id=ids.make(name)["id"], answer=answer, weight=weight))
        rubric = Rubric(criteria=criteria, degenerate="judge", provenance={"rewardkit": _scoring(scoring)})
        self.cases.append(Case(id, rubric, output="", place=Place(str(file))))
        return {"case": id}


_BEGINS = re.compile(r"\s*(?:(?P<open>\[\[?)\s*(?P<table>[\w.-]+)\s*\]|(?P<key>[\w-]+)\s*=)")
_IS_JUDGE = re.compile(r'^\s*\[*"?(?:criterion|judge)\b', re.MULTILINE)
_FENCE = re.compile(r'"""|' + "'''")


def _place(root: Any, text: str) -> None:
    """Give the nodes below *root* the lines of their tables and keys in *text*, the TOML that they were made of."""

    def put(node: Any, line: int) -> None:
        node.line, node.column = line, 1
        for part in getattr(node, "parts", ()):
            put(part, line)

    put(root, 1)
    table, counts, is_text = root, Counter[str](), False
    for number, line in enumerate(text.split("\n"), 1):
        begins = None if is_text else _BEGINS.match(line)
        is_text ^= len(_FENCE.findall(line)) % 2 == 1
        if begins and (name := begins["table"]):
            counts[name] += begins["open"] == "[["
            table, path = root, ""
            for step in name.split("."):
                (key, table), path = table.named[step], f"{path}.{step}".lstrip(".")
                put(key, number if key.line == 1 else key.line)
                if not hasattr(table, "named"):  # a list of tables
                    table = table.parts[min(counts[path], len(table.parts)) - 1]
            put(table, number)
        elif begins:
            for node in getattr(table, "named", {}).get(begins["key"], ()):
                put(node, number)


def _has_checks(file: Path) -> bool:
    return "rewardkit" in file.read_text("utf-8", "replace")


def _combine(at: Cursor, inputs: Mapping[str, Any], *also: str) -> dict[str, Any]:
    """Return the node that a `[[reward]]` makes of *inputs*."""
    if not at.mapping("a reward (a table with aggregation and weights)"):
        return {"inputs": inputs}
    at.only((*also, "aggregation", "threshold", "weights"))
    rule, weights = _scoring(at), at.under("weights")
    for name, one in weights.items():
        if name not in inputs:
            one.error(f"there is no input {name!r}; there are {', '.join(inputs)}", key=True)
    weighed = {name: _weight(one, rule["aggregation"]) for name, one in weights.items()}
    return {**rule, "inputs": inputs, "weights": weighed}


# -- judge TOMLs ------------------------------------------------------------------------------------------------


def _one_of(at: Cursor, *names: str) -> str:
    """Return which of *names* the cursor holds, the first where it holds none; refuse anything else."""
    found = str(at.value or names[0]).replace("_", "-")
    if found not in names:
        at.refuse(" or ".join(names), names)
    return found


def _scoring(at: Cursor) -> dict[str, Any]:
    """Return the aggregation that the cursor gives, and its threshold."""
    threshold = at["threshold"].number(0, 1) if at.has("threshold") else 0.5
    return {"aggregation": _one_of(at["aggregation"], *_RULES), "threshold": threshold}


def _weight(at: Cursor, rule: str) -> float:
    """Return the weight that the cursor gives, by default 1; below 0 only where *rule* adds."""
    found = at.number(None if rule == "weighted-sum" else 0) if at.value is not None else None
    return 1.0 if found is None else found


def _case(at: Cursor, id: str, workspace: Loading) -> Case | None:
    """Return the case of a judge TOML, for the agent's *workspace*; None if wrong."""
    at.only(("judge", "criterion", "scoring"))
    judge, scoring = at.under("judge"), at.under("scoring")
    judge.reads((*_OF_JUDGE, *_TRAJECTORY), dict.fromkeys(_FOR_AGENTS, "it is for an agent as the judge, and not read"))
    scoring.only(("aggregation", "threshold"))
    rule, listed = _scoring(scoring), at["criterion"] if at.needs("criterion") else at.holding([])
    items = listed.value if isinstance(listed.value, list) else ()
    ids = Ids(frozenset(str(one.get("name")) for one in items if isinstance(one, dict)))
    with at.notes.lacking() as lacks:
        shown = _read_shown(judge["files"], workspace)
        criteria = listed.each("a list of criteria", lambda one: _criterion(one, ids, rule["aggregation"], workspace))
        if judge["judge"].value in _AGENTS:
            _lack(judge["judge"], f"the agent {judge['judge'].value} as the judge")
        did = None if (trajectory := judge.find(*_TRAJECTORY)) is None else _run(trajectory, workspace)
    if not criteria:
        return None
    bar = {"threshold": rule["threshold"], "required-pass": 0}.get(rule["aggregation"], 0.7)
    options = {"strict": rule["aggregation"] == "all-pass", "threshold": bar, "degenerate": "judge"}
    if rule["aggregation"] == "any-pass":
        scoring.warn("the grade is the mean; it may pass or fail otherwise than the reward, for which one is enough")
    if (guard := _one_of(judge["guard"], "off", "flag", "penalize")) != "off":
        criteria.append(Criterion(GUARD, id="guard", weight=0, metadata={"guard": guard}))
    if judge.has("prompt_template"):
        template = judge["prompt_template"]
        template.warn("it is read as guidelines: how criteria are asked, and replies read, is this library's")
        text = template.built(read_text, Path(at.place.source).parent / str(template.value), at.loading.root) or ""
        options["guidelines"] = text.replace("{criteria}", "").strip()
    if lacks:
        criteria = [Criterion(lacks[0], answer=Unsupported(", ".join(lacks)))]
    rubric = at.built(Rubric, **by_points(criteria), **options, provenance={"rewardkit": rule})
    reference = judge["reference"].holding([judge["reference"].value] if judge.has("reference") else None)
    # Without files for all, those of a criterion stand for the candidate where it is named.
    texts = [shown.text, *(one.on.text for one in criteria if isinstance(one.on, _Shown))]
    more: dict[str, Any] = {"images": shown.images, "reference": _read_shown(reference, workspace).text}
    more["output"] = next(filter(None, texts), "" if lacks else None)
    if did is not None:  # its answer is the candidate, and what the agent left behind stands beside it
        more |= {"run": did.run, "output": did.output, "context": shown.text}
    case = {"id": id, "rubric": rubric, "judge": _judge(judge), "place": at.place, **more}
    return None if rubric is None else at.made(Case, case)


def _lack(at: Cursor, what: str) -> None:
    at.error(LackingError(what, f"{what}: what needs it is ungraded"))


@frozen
class _Shown:
    """The *text* and the *images* of files; called, the candidate that has these instead of its own."""

    text: str
    images: tuple[str, ...] = ()

    def __call__(self, candidate: Candidate) -> Candidate:
        return evolve(candidate, output=self.text, images=self.images)


def _read_shown(at: Cursor, workspace: Loading) -> _Shown:
    """Return what is in the files that the cursor lists: each text below its name, and the images."""
    texts, images, names = [], list[str](), list[str]()
    for name in at.each("a list of paths", Cursor.words) if at.value is not None else ():
        is_folder = may_be_read(name, workspace, os.path.isdir)
        found = at.built(expand, f"{name.rstrip('/')}/*", workspace) if is_folder else [name]
        names += [one for one in found or () if not is_folder or may_be_read(one, workspace)]
    for name in names:
        text = "(an image, which is attached)"
        try:
            if is_image(name):
                images.append(read_image(name, workspace))
            else:
                text = text_of(located_file(name, workspace, code=True), workspace, name)
        except LackingFileError as problem:
            if is_outside(name, workspace):
                at.error(problem)
            if name.lower().endswith(_DOCUMENTS) and may_be_read(name, workspace):
                _lack(at, f"the text of {name}")
            at.warn(problem.message)
            text = "(there is no such file, or no text in it)"
        except DefinitionError as problem:
            at.error(problem)
        texts.append(f"File {name}:\n{text}")
    return _Shown("\n\n".join(texts), tuple(images))


def _run(at: Cursor, workspace: Loading) -> Candidate | None:
    """Return the run in the ATIF file that the cursor names; None, with what is lacking noted, if it has none."""
    name = at.words("the path of a trajectory") or ""
    try:
        return candidate_of_run(read_run(json.loads(text_of(located_file(name, workspace), workspace, name)), "atif"))
    except (DefinitionError, ValueError) as problem:
        _lack(at, f"the trajectory {name}: {problem}")
        return None


def _criterion(at: Cursor, ids: Ids, rule: str, workspace: Loading) -> Criterion | None:
    if not at.mapping("a criterion (a table with a description)") or not at.needs("description"):
        return None
    kind, text = _one_of(at["type"], *_OF_KIND), at["description"].words("what is judged")
    idle = {key for keys in _OF_KIND.values() for key in keys} - {*_OF_KIND.get(kind, ())}
    at.reads((*_OF_CRITERION, *_OF_KIND.get(kind, ())), dict.fromkeys(idle, f"it has no effect on the type {kind}"))
    answer, about = _answer(at, kind), at.under("annotations").value
    if text is None or answer is None:
        return None
    negate = at["negate"].flag() if at.has("negate") else "negative" in str(about.get("type")).lower()
    optional = at["optional"].flag() if at.has("optional") else "optional" in str(about.get("importance")).lower()
    values: dict[str, Any] = {"text": text, "answer": answer, "weight": _weight(at["weight"], rule)}
    values["metadata"] = {"optional": bool(optional)}
    if negate:  # not by a guard, which would fail the grade
        turned = Rubric(criteria=[Criterion(text, answer=answer)], negate=True)
        values["answer"] = {"yes": 0, "no": 1} if kind == "binary" else turned
    if rule == "required-pass":
        values |= {"weight": 0} if optional else {"min_score": 1.0}
    as_penalty(values)
    if not ids.take(at["name"].value):
        at["name"].error(f"the name {at['name'].value!r} belongs to another criterion already; change one")
        return None
    values |= {"id": at["name"].value} if at.has("name") else ids.make(text)
    values |= {"on": _read_shown(at["files"], workspace)} if at.has("files") else {}
    return at.made(Criterion, values, {"id": "name", "text": "description"})


def _answer(at: Cursor, kind: str) -> Answer | None:
    match kind:
        case "binary":
            return YesNo()
        case "likert":
            return at["points"].built(Levels, (1, at["points"].value or 5))
        case "rubric":
            texts = at["levels"].each("texts, from the lowest level to the highest", Cursor.words)
            return at["levels"].built(Levels, dict(enumerate(texts))) if texts else None
    low, high = (at[key].number() if at.has(key) else default for key, default in (("min", 0), ("max", 1)))
    if low is None or high is None or (low, high) == (0, 1):
        return Unit()
    if low == int(low) and high == int(high) and high - low >= 5:  # noqa: PLR2004 - fewer whole numbers say too little
        at.warn("it is asked for in whole numbers")
        return at.built(Levels, (int(low), int(high)))
    _lack(at, f"a number from {low:g} to {high:g}")
    return Unit()


def _judge(at: Cursor) -> AnyJudge | None:
    mode, name = _one_of(at["mode"], "batched", "individual"), at["judge"].value
    if name is None:
        at.warn("no model is named, and Reward Kit's default is not taken: the judge of the run is asked")
    if name is None or name in _AGENTS:
        return None
    options = {"params": {"reasoning_effort": at["reasoning_effort"].value}} if at.has("reasoning_effort") else {}
    seconds = (at["timeout"].number(0, above=True) if at.has("timeout") else None) or 300
    judge = at["judge"].built(Judge, name, per_call="all" if mode == "batched" else 1, timeout=seconds, **options)
    votes = int(at["samples"].number(1, 100) or 1) if at.has("samples") else 1
    return judge if votes == 1 or judge is None else Panel([judge] * votes, aggregate="median", level="criterion")


def _stands_for(folder: Path) -> str:
    """Return the file that stands for a *folder* of Reward Kit's tests, which need not be there; '' for another."""
    files = (one for depth in ("", "*/", "*/*/") for one in folder.glob(f"{depth}*.toml"))
    return "reward.toml" if any(_IS_JUDGE.search(one.read_text("utf-8", "replace")) for one in files) else ""


_EVIDENCE = ((SURE, has("rewardkit", kind=str)),)
_NAMED: Any = lambda file, *_: json.dumps({"rewardkit": str(file)})  # noqa: E731 - it is read, with its places, above
FORMAT = Format("rewardkit", read, None, _EVIDENCE, suffixes=(".toml",), translate=_NAMED, folder=_stands_for)
