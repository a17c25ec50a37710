"""
A `Suite` as an AgentV file of generation 1 or 1.5: as that of generation 2, in the words of the older one.

| generation 2 | 1.5 | 1 |
|---|---|---|
| `tests`, `criteria` | the same | `evalcases`, `expected_outcome` |
| `assert` of a test | `assertions` | `rubrics` for plain items, else `execution.evaluators` |
| `llm-rubric` with items in `value` | `rubrics`, `criteria` | `rubric`, `rubrics` |
| `outcome`, `min_score` of an item | the same | `expected_outcome`, `required_min_score` from 0 to 10 |
| `llm-rubric` with a text | `llm-grader` | `llm_judge` |
| `script`, `assert-set` | `code-grader`, `composite` | `code_judge`, `composite` |
| `metric`, `provider` of a grader | `name`, `target` | `name`, `target` |
| `threshold` of a test | `execution.threshold` | `execution.threshold` |

Neither has variables, a judge of a test or of a file, or a judge with tools; generation 1 has no polarities and no
conversations, and calls a failed case borderline from a score of 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from rubric.formats.agentv.graders import Grader, renamed
from rubric.formats.agentv.prompts import is_file
from rubric.formats.agentv.scope import THRESHOLD, quoted
from rubric.formats.agentv.tests import BORDERLINE
from rubric.formats.agentv.writer import KIND, file_of, losses_without
from rubric.formats.losses import Losses
from rubric.formats.rubric_items import HIGHEST
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.checks import NOTHING
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

_JUDGED = (KIND, "agent-rubric")


@frozen
class Dialect:
    """
    The words of a generation.

    Args:
        name: Of the generation, in messages.
        cases, context: The keys of the tests, and of what a test says of a good answer.
        graders, items, text: The keys of the graders of a set, of the items of a grader, and of the text of an item.
        listed, judged, script: The types of graders.
        lost: The fields that it has no place for, though generation 2 has, by class.
    """

    name: str
    cases: str
    context: str
    graders: str
    items: str
    text: str
    listed: str
    judged: str
    script: str
    lost: Mapping[type, frozenset[str]]

    @property
    def is_first(self) -> bool:
        """True for generation 1."""
        return self.cases != "tests"

    def losses(self) -> Losses:
        """Return the losses of a file, by the table of generation 2 without what is lost here."""
        return losses_without(self.lost, f"generation {self.name} of AgentV does not have it")


_NEITHER: dict[type, frozenset[str]] = {Case: frozenset({"variables"}), Rubric: frozenset({"max_steps"})}

FIRST = Dialect(
    "1", "evalcases", "expected_outcome", "evaluators", "rubrics", "expected_outcome", "rubric", "llm_judge",
    "code_judge", {**_NEITHER, Criterion: frozenset({"polarity"})},
)  # fmt: skip
BETWEEN = Dialect(
    "1.5", "tests", "criteria", "assertions", "criteria", "outcome", "rubrics", "llm-grader", "code-grader", _NEITHER
)


def write_first(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """Return *suite* as the plain data of a file of generation 1, and what it cannot hold: a sentence each."""
    return _write(suite, FIRST)


def write_between(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """Return *suite* as the plain data of a file of generation 1.5, and what it cannot hold: a sentence each."""
    return _write(suite, BETWEEN)


def _write(suite: Suite, dialect: Dialect) -> tuple[dict[str, Any], list[str]]:
    losses = dialect.losses()
    data = file_of(evolve(suite, cases=[_prepared(case) for case in suite]) if dialect.is_first else suite, losses)
    if data.pop("default_test", None):
        losses.add("judge", f"a file of generation {dialect.name} names none")
    cases = {quoted(case.id): case for case in suite}
    tests = data.pop("tests")
    data[dialect.cases] = []
    for test in tests:
        case = cases[test["id"]]
        own = losses.of(f"case {case.id!r}")
        if dialect.is_first and case.turns:
            own.add("turns", "generation 1 of AgentV has no conversations; the test is left out")
            continue
        if dialect.is_first and case.rubric.borderline is None and _usual(case.rubric) is not None:
            own.add("rubric.borderline", f"generation 1 of AgentV calls a score from {BORDERLINE} borderline")
        data[dialect.cases].append(_test(test, dialect, own))
    return data, losses.sentences


def _usual(rubric: Rubric) -> float | None:
    """Return where the borderline band of *rubric* begins in generation 1."""
    return BORDERLINE if (THRESHOLD if rubric.threshold is None else rubric.threshold) >= BORDERLINE else None


def _prepared(case: Case) -> Case:
    """Return *case* without a borderline that every case of generation 1 has."""
    rubric = case.rubric
    return evolve(case, rubric=evolve(rubric, borderline=None)) if rubric.borderline == _usual(rubric) else case


def _test(test: dict[str, Any], dialect: Dialect, losses: Losses) -> dict[str, Any]:
    threshold = test.get("threshold", THRESHOLD)
    rows = _rows(test.get("assert", ()), threshold, dialect, losses)
    if (judge := test.get("options", {}).get("provider")) is not None:
        if len(rows) == 1 and rows[0]["type"] in (dialect.listed, dialect.judged) and _is_plain(rows[0]):
            rows[0]["target"] = judge
        else:
            losses.add("judge", f"a test of generation {dialect.name} names none; its graders do")
    execution: dict[str, Any] = {} if threshold == THRESHOLD else {"threshold": threshold}
    if len(rows) == 1 and rows[0].keys() == {"type", dialect.items}:
        graders = {"rubrics" if dialect.is_first else "assertions": rows[0][dialect.items]}
        if not dialect.is_first and not all(isinstance(item, str) for item in rows[0][dialect.items]):
            graders = {"assertions": rows}
    elif dialect.is_first:
        graders, execution = {}, execution | {"evaluators": rows}
    else:
        graders = {"assertions": rows}
    made: dict[str, Any] = {}
    for key, value in test.items():
        if key == "assert":
            made |= {name: listed for name, listed in graders.items() if listed}
        elif key == "turns":
            made["turns"] = [
                {name: one for name, one in turn.items() if name != "assert"}
                | ({"assertions": _rows(turn["assert"], threshold, dialect, losses)} if "assert" in turn else {})
                for turn in value
            ]
        elif key not in ("vars", "options", "threshold"):
            made[dialect.context if key == "criteria" else key] = value
    return made | ({"execution": execution} if execution else {})


def _is_plain(row: Mapping[str, Any]) -> bool:
    """True if the case has the judge of a grader like *row*, its only one."""
    return not ({"required", "negate", "target"} & row.keys()) and ("min_score" not in row or "prompt" in row)


# -- graders ---------------------------------------------------------------------------------------------------


def _rows(graders: Sequence[Any], threshold: float, dialect: Dialect, losses: Losses) -> list[dict[str, Any]]:
    texts = [grader for grader in graders if isinstance(grader, str)]
    rows = [{"type": KIND, "value": texts}] if texts else graders
    return [_row(row, threshold, dialect, losses) for row in rows]


def _row(row: Mapping[str, Any], threshold: float, dialect: Dialect, losses: Losses) -> dict[str, Any]:
    """Return a grader of generation 2 in the words of the *dialect*."""
    kind, name = row["type"], row.get("metric", row["type"])
    rest = {key: value for key, value in row.items() if key not in ("type", "metric")}
    if kind in _JUDGED:
        made = _judged(rest, row.get("min_score", threshold), dialect, losses)
    elif kind == "assert-set":
        members = [*_members(_rows(rest.pop("assert"), threshold, dialect, losses))]
        weights = {member["name"]: member.pop("weight") for member in members if "weight" in member}
        if "threshold" not in rest:
            losses.add(f"{name}.threshold", "a composite has one; 1.0 is written for `all must pass`")
        aggregator = {"type": "weighted_average", **({"weights": weights} if weights else {})}
        made = {"type": "composite", dialect.graders: members, "aggregator": aggregator, "threshold": 1.0} | rest
    else:
        made = {"type": dialect.script if kind == "script" else kind, **rest}
    return made if made["type"] == name else {"name": name, **made}


def _members(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the graders of a composite, each with a name of its own, by which the composite weighs it."""
    graders = renamed([Grader(row.get("name", row["type"]), NOTHING) for row in rows])
    for row, grader in zip(rows, graders, strict=True):
        yield {**row, "name": grader.name}


def _judged(rest: dict[str, Any], threshold: float, dialect: Dialect, losses: Losses) -> dict[str, Any]:
    value = rest.pop("value")
    rest.pop("max_steps", None)
    if (judge := rest.pop("provider", None)) is not None:
        rest["target"] = judge
    if isinstance(value, list):
        items = [_item(item, number, threshold, dialect, losses) for number, item in enumerate(value, 1)]
        return {"type": dialect.listed, **rest, dialect.items: items}
    # A plain text is the `prompt`, as the pages have it; one that would be taken for something else is not.
    key = "prompt" if "prompt" not in rest and "{" not in value and not is_file(value) else "criteria"
    return {"type": dialect.judged, **rest, key: value}


def _item(item: Any, number: int, threshold: float, dialect: Dialect, losses: Losses) -> Any:
    """Return an item of a grader; one that says no more than a text as that text."""
    if isinstance(item, str):
        return item
    if item == {"id": f"rubric-{number}", "outcome": item["outcome"], "required": True}:
        return item["outcome"]
    made = {dialect.text if key == "outcome" else key: value for key, value in item.items()}
    if not dialect.is_first:
        return made
    made.pop("operator", None)
    if "score_ranges" in item and item["required"] and "min_score" not in item:
        made["min_score"] = threshold
        losses.add(f"{item['id']}.min_score", f"bands have a gate of their own; {threshold:g} is written")
    gate = made.get("min_score", 0)
    if gate and round(gate * HIGHEST) / HIGHEST == gate:
        made["required_min_score"] = round(made.pop("min_score") * HIGHEST)
    return made
