"""
Judge TOMLs of Harbor's Reward Kit; `rewardkit_folders` reads the folders that hold them.

| in the file                                 | here                                                               |
|---------------------------------------------|--------------------------------------------------------------------|
| `files`, `reference`                        | what the judge is shown, read within the base                      |
| `judge`, `timeout`, `reasoning_effort`      | the judge of the case; without `judge`, that of the run            |
| `mode`; `samples`                           | all criteria in one call, or one each; a panel, by the median      |
| `type`: binary, likert, rubric, numeric     | yes or no; whole numbers, bare or with texts; 0..1                 |
| `negate`, `optional`, `annotations`         | turned over; left out by `required-pass`                           |
| `guard`                                     | one more criterion, of no weight                                   |
| `prompt_template`                           | guidelines                                                         |
| `[scoring]`                                 | `Rubric.provenance`, by which the reporter `harbor` has the reward |
| an agent as the judge, a trajectory         | ungraded, with the reason                                          |
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from rubric import Candidate, Case, Choices, Criterion, DefinitionError, Judge, Levels, Panel, Rubric, Unit, YesNo
from rubric.contrib.signed_weights import Ids, as_penalty, by_points
from rubric.embed import Answer, Cursor, LackingError, Loading, read_text
from rubric.formats.images import is_image, read_image
from rubric.formats.includes import LackingFileError, expand, is_outside, located_file, may_be_read, text_of
from rubric.values import AnyJudge, Unsupported

_RULES = ("weighted-mean", "weighted-sum", "all-pass", "any-pass", "threshold", "required-pass")
_AGENTS = ("claude-code", "codex", "fx", "jev")
_FOR_AGENTS = ("model", "version", "isolated", "cwd", "mcp_servers")
_OF_JUDGE = "judge files reference mode samples guard timeout weight reasoning_effort prompt_template".split()  # noqa: SIM905
_TRAJECTORY = ("atif-trajectory", "atif_trajectory")
_OF_KIND = {"binary": (), "likert": ("points",), "numeric": ("min", "max"), "rubric": ("levels",)}
_OF_CRITERION = ("description", "type", "name", "id", "weight", "files", "negate", "optional", "annotations")
GUARD = "The work holds text that addresses whoever grades it, or that says how it should be scored"
_DOCUMENTS = re.compile(r".*\.(?:pdf|docx|pptx|xlsx?|msg|epub)", re.IGNORECASE)


def one_of(at: Cursor, *names: str) -> str:
    """Return which of *names* the cursor holds, the first where it holds none; refuse anything else."""
    found = str(at.value or names[0]).replace("_", "-")
    if found not in names:
        at.refuse(" or ".join(names), names)
    return found


def scoring_of(at: Cursor) -> dict[str, Any]:
    """Return the aggregation that the cursor gives, and its threshold."""
    threshold = at["threshold"].number(0, 1) if at.has("threshold") else 0.5
    return {"aggregation": one_of(at["aggregation"], *_RULES), "threshold": threshold}


def weight_at(at: Cursor, rule: str) -> float:
    """Return the weight that the cursor gives, by default 1; below 0 only where *rule* adds."""
    found = at.number(None if rule == "weighted-sum" else 0) if at.value is not None else None
    return 1.0 if found is None else found


def case_of(at: Cursor, id: str, workspace: Loading) -> Case | None:
    """
    Return the case of the judge TOML at the cursor; None, with what is wrong noted, if it has none.

    Args:
        workspace: The loading whose folder is the one that the agent worked in.
    """
    at.only(("judge", "criterion", "scoring"))
    judge, scoring = at.under("judge"), at.under("scoring")
    judge.reads((*_OF_JUDGE, *_TRAJECTORY), dict.fromkeys(_FOR_AGENTS, "it is for an agent as the judge, and not read"))
    scoring.only(("aggregation", "threshold"))
    rule, ids = scoring_of(scoring), Ids()
    with at.notes.lacking() as lacks:
        shown = _shown(judge["files"], workspace)
        listed = at["criterion"] if at.needs("criterion") else at.holding([])
        criteria = listed.each("a list of criteria", lambda one: _criterion(one, ids, rule["aggregation"], workspace))
        if judge["judge"].value in _AGENTS:
            _lack(judge["judge"], f"the agent {judge['judge'].value} as the judge")
        if (trajectory := judge.find(*_TRAJECTORY)) is not None:
            _lack(trajectory, "a trajectory")
    if not criteria:
        return None
    options: dict[str, Any] = {"degenerate": "judge", "strict": rule["aggregation"] == "all-pass"}
    if rule["aggregation"] in ("threshold", "required-pass"):
        options["threshold"] = rule["threshold"] if rule["aggregation"] == "threshold" else 0
    if rule["aggregation"] == "any-pass":
        scoring.warn("the grade is the mean; it may pass or fail otherwise than the reward, for which one is enough")
    if rule["aggregation"] == "required-pass" and all(one.metadata["optional"] for one in criteria):
        listed.error("all criteria are optional, so that none is required; let one be required")
    if (guard := one_of(judge["guard"], "off", "flag", "penalize")) != "off":
        criteria.append(Criterion(GUARD, id="guard", weight=0, metadata={"guard": guard}))
    if judge.has("prompt_template"):
        options["guidelines"] = _template(judge["prompt_template"])
    if lacks:
        criteria = [Criterion(lacks[0], answer=Unsupported(", ".join(lacks)))]
    rubric = at.built(Rubric, **by_points(criteria), **options, provenance={"rewardkit": rule})
    reference = judge["reference"].holding([judge["reference"].value] if judge.has("reference") else None)
    # Without files for all, those of a criterion stand for the candidate where it is named.
    texts = [shown.text, *(one.on.text for one in criteria if isinstance(one.on, _Shown))]
    values = {"id": id, "rubric": rubric, "judge": _judge(judge), "place": at.place, "images": shown.images}
    values |= {
        "reference": _shown(reference, workspace).text,
        "output": next(filter(None, texts), "" if lacks else None),
    }
    return None if rubric is None else at.made(Case, values)


def _lack(at: Cursor, what: str) -> None:
    at.error(LackingError(what, f"{what}: what needs it is ungraded"))


@frozen
class _Shown:
    """The *text* and the *images* of files; called, the candidate that has these instead of its own."""

    text: str
    images: tuple[str, ...] = ()

    def __call__(self, candidate: Candidate) -> Candidate:
        return evolve(candidate, output=self.text, images=self.images)


def _shown(at: Cursor, workspace: Loading) -> _Shown:
    """Return what is in the files that the cursor lists: each text below its name, and the images."""
    texts, images, names = [], list[str](), list[str]()
    for name in at.each("a list of paths", Cursor.words) if at.value is not None else ():
        is_folder = may_be_read(name, workspace, os.path.isdir)
        found = at.built(expand, f"{name.rstrip('/')}/*", workspace) if is_folder else [name]
        names += [one for one in found or () if not is_folder or may_be_read(one, workspace)]
    for name in names:
        text = f"(in {name})"
        try:
            if is_image(name):
                images.append(read_image(name, workspace))
            else:
                text = text_of(located_file(name, workspace, code=True), workspace, name)
        except LackingFileError as problem:
            if is_outside(name, workspace):
                at.error(problem)
            if _DOCUMENTS.fullmatch(name) and may_be_read(name, workspace):
                _lack(at, f"the text of {name}")
            at.warn(problem.message)
            text = "(there is no such file, or no text in it)"
        except DefinitionError as problem:
            at.error(problem)
        texts.append(f"File {name}:\n{text}")
    return _Shown("\n\n".join(texts), tuple(images))


def _criterion(at: Cursor, ids: Ids, rule: str, workspace: Loading) -> Criterion | None:
    if not at.mapping("a criterion (a table with a description)") or not at.needs("description"):
        return None
    kind, text = one_of(at["type"], *_OF_KIND), at["description"].words("what is judged")
    idle = {key for keys in _OF_KIND.values() for key in keys} - {*_OF_KIND.get(kind, ())}
    at.reads((*_OF_CRITERION, *_OF_KIND.get(kind, ())), dict.fromkeys(idle, f"it has no effect on the type {kind}"))
    answer, about = _answer(at, kind), at.under("annotations").value
    if text is None or answer is None:
        return None
    negate = at["negate"].flag() if at.has("negate") else "negative" in str(about.get("type")).lower()
    optional = at["optional"].flag() if at.has("optional") else "optional" in str(about.get("importance")).lower()
    if negate:  # not by a guard, which would fail the grade
        turned = Rubric(criteria=[Criterion(text, answer=answer)], negate=True)
        answer = Choices({"yes": 0, "no": 1}) if kind == "binary" else turned
    values = {"text": text, "answer": answer, "weight": weight_at(at["weight"], rule)}
    values["metadata"] = {"optional": bool(optional)}
    if rule == "required-pass":
        values |= {"weight": 0} if optional else {"min_score": 1}
    as_penalty(values)
    if not ids.take(at["name"].value):
        at["name"].error(f"the name {at['name'].value!r} belongs to another criterion already; change one")
        return None
    values |= {"id": at["name"].value} if at.has("name") else ids.make(text)
    values |= {"on": _shown(at["files"], workspace)} if at.has("files") else {}
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
    mode, name = one_of(at["mode"], "batched", "individual"), at["judge"].value
    if name is None:
        at.warn("no model is named, and Reward Kit's default is not taken: the judge of the run is asked")
    if name is None or name in _AGENTS:
        return None
    effort = {"reasoning_effort": at["reasoning_effort"].value} if at.has("reasoning_effort") else {}
    seconds = at["timeout"].number(0, above=True) if at.has("timeout") else 300
    judge = at["judge"].built(
        Judge, name, per_call="all" if mode == "batched" else 1, timeout=seconds or 300, params=effort
    )
    votes = int(at["samples"].number(1, 100) or 1) if at.has("samples") else 1
    return judge if votes == 1 or judge is None else Panel([judge] * votes, aggregate="median", level="criterion")


def _template(at: Cursor) -> str:
    at.warn("it is read as guidelines: how criteria are asked, and replies read, is this library's")
    text = at.built(read_text, Path(at.place.source).parent / str(at.value), at.loading.root)
    return (text or "").replace("{criteria}", "").strip()
