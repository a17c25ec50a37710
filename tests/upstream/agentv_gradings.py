"""What AgentV's side is run on: graders of generation 1.5, each with outputs that pass, fail and are odd."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from attrs import field, frozen

Data = dict[str, Any]


@frozen
class Grading:
    """A test: its *graders*, the *output* that the target gives, and what else the test says."""

    kind: str
    graders: list[Any]
    output: str
    more: Data = field(factory=dict)

    def test(self, number: int) -> Data:
        """Return the test of AgentV's file; the local server gives back what its input says."""
        asked = {"id": f"t{number}", "input": f"output: {self.output}", "criteria": "Is as it should be"}
        return {**asked, "assertions": self.graders, **self.more}


TEXTS: dict[str, list[Any]] = {
    "contains": ["hello", "Hello", ""],
    "icontains": ["HELLO", "zzz"],
    "starts-with": ["Hello", "world"],
    "ends-with": ["world", "Hello"],
    "equals": ["Hello world", "hello world", "Hello"],
    "regex": [r"^Hello\b", r"wor.d$", r"\d+\s?km", "^[a-z]+$", r"l{2}", "(?:a|b)c", r"^\s*$"],
}
LISTS: dict[str, list[Any]] = {
    "contains-any": [["zzz", "world"], ["zzz"]],
    "contains-all": [["Hello", "world"], ["Hello", "zzz"]],
    "icontains-any": [["WORLD"], ["zzz"]],
    "icontains-all": [["HELLO", "WORLD"], ["hello", "zzz"]],
}
OUTPUTS = ["Hello world", "a hello to the world, twelve km: 10\u00a0km", '{"a": 1}', "  Hello world"]
JSON = ['{"a": 1}', "[1]", "no JSON", '```json\n{"a": 1}\n```', "12", "{a: 1}", '"text"', "null"]


def gradings() -> Iterator[Grading]:
    """Yield what both sides grade."""
    yield from _of_texts()
    yield from _of_fields()
    yield from _of_several()
    yield from _of_judges()


def _of_texts() -> Iterator[Grading]:
    for kind, value, output in ((k, v, o) for k, vs in {**TEXTS, **LISTS}.items() for v, o in product(vs, OUTPUTS)):
        if value != "":
            yield Grading(kind, [{"type": kind, "value": value}], output)
    for kind, values in {**TEXTS, **LISTS}.items():
        yield Grading(f"not-{kind}", [{"type": kind, "value": values[0], "negate": True}], OUTPUTS[0])
        yield Grading(f"not-{kind}", [{"type": kind, "value": values[0], "negate": True}], OUTPUTS[2])
    for output, negate in product(JSON, (False, True)):
        yield Grading("is-json", [{"type": "is-json", **({"negate": True} if negate else {})}], output)
    for flags in ("i", "m", "s", "is"):
        yield Grading("regex", [{"type": "regex", "value": "^hello.world$", "flags": flags}], "x\nHello\nworld")


DATES = ["2024-01-02", "Jan 2, 2024", "2 January 2024", "01/02/2024", "2024/1/2", "02-JAN-2024", "Jan 3, 2024", "soon"]


def _of_fields() -> Iterator[Grading]:
    def graded(output: str, expected: str, *, how: str = "", **rule: Any) -> Grading:
        grader = {"type": "field-accuracy", "fields": [{"path": "a", "match": "exact", **rule}]}
        grader |= {"aggregation": how} if how else {}
        expects = {"expected_output": [{"role": "assistant", "content": expected}]}
        return Grading("field-accuracy", [grader], output, expects)

    for date in DATES:
        yield graded(f'{{"a": "{date}"}}', '{"a": "2024-01-02"}', match="date")
    for given, expected in (
        ("1", "1"),
        ("1", "2"),
        ('"1"', "1"),
        ("[1,2]", "[1,2]"),
        ('{"b":1}', '{"b":1}'),
        ("null", "1"),
    ):
        yield graded(f'{{"a": {given}}}', f'{{"a": {expected}}}')
    for given, relative in product(("100", "101", "106", '"100.5 USD"', '"many"'), (False, True)):
        tolerance = 0.05 if relative else 1
        yield graded(
            f'{{"a": {given}}}', '{"a": 100}', match="numeric_tolerance", tolerance=tolerance, relative=relative
        )
    for output in ("{}", '{"a": 1}', "text", '```json\n{"a": 1}\n```'):
        yield graded(output, '{"a": 1}', required=False)
        yield graded(output, '{"a": 1}', how="all_or_nothing")


def _of_several() -> Iterator[Grading]:
    yes, no = {"type": "contains", "value": "Hello"}, {"type": "contains", "value": "zzz"}
    for weight, threshold in product((1, 3, 4, 9, 0), (None, 0.5, 0.75, 0.9)):
        more = {} if threshold is None else {"execution": {"threshold": threshold}}
        yield Grading("weights", [{**yes, "weight": weight}, no], "Hello world", more)
    for required, least in product((True, False), (None, 0.5)):
        gate = {"required": required, **({} if least is None else {"min_score": least})}
        yield Grading("required", [{**yes, "weight": 9}, {**no, **gate}], "Hello world")
        yield Grading("required", [{**yes, **gate}, {**no, "weight": 0.1}], "Hello world")
    yield Grading("threshold", [yes, no], "Hello world", {"threshold": 0.5})
    for members in ([yes, yes], [yes, no], [no, no]):
        named = [{**one, "name": f"g{n}"} for n, one in enumerate(members)]
        for rule in ({"type": "weighted_average", "weights": {"g0": 4}}, {"type": "threshold", "threshold": 0.5}):
            yield Grading(
                "composite", [{"type": "composite", "name": "c", "assertions": named, "aggregator": rule}], "Hello"
            )
    for mode in ("exact", "in_order", "superset", "subset"):
        yield Grading("tool-trajectory", [{"type": "tool-trajectory", "mode": mode, "expected": []}], "Hello")
        yield Grading(
            "tool-trajectory", [{"type": "tool-trajectory", "mode": mode, "expected": [{"tool": "x"}]}], "Hello"
        )
    yield Grading("tool-trajectory", [{"type": "tool-trajectory", "mode": "any_order", "minimums": {"x": 1}}], "Hello")


def _item(said: str, **more: Any) -> Data:
    return {"id": f"i{said}", "outcome": f"Is good [[pass={said}; score={float(said == 'yes')}]]", **more}


def _of_judges() -> Iterator[Grading]:
    for saids, weight, required in product((("yes", "yes"), ("yes", "no"), ("no", "no")), (1, 4), (True, False)):
        items = [{**_item(said, required=required), "id": f"i{n}"} for n, said in enumerate(saids)]
        items[0]["weight"] = weight
        yield Grading("rubrics", [{"type": "rubrics", "criteria": items}], "Hello")
        yield Grading("not-rubrics", [{"type": "rubrics", "criteria": items, "negate": True}], "Hello")
    bands = {0: "bad", 5: "fair", 8: "good"}
    for score, weight, least in product((0, 3, 5, 8, 10), (1, 3), (None, 0.5)):
        gate = {} if least is None else {"min_score": least}
        first = {"id": "a", "outcome": f"Is so [[score={score / 10}]]", "score_ranges": bands, "weight": weight, **gate}
        last = {"id": "b", "outcome": "Is so [[score=0.9]]", "score_ranges": bands}
        yield Grading("rubrics of bands", [{"type": "rubrics", "criteria": [first, last]}], "Hello")
    for said, share in product(("yes", "no"), (0.2, 0.79, 0.8, 1.0)):
        text = f"Is good [[pass={said}; score={share}]]"
        yield Grading("llm-grader", [{"type": "llm-grader", "prompt": text}], "Hello")
        yield Grading(
            "llm-grader", [{"type": "llm-grader", "prompt": text}, {"type": "contains", "value": "Hello"}], "Hello"
        )
