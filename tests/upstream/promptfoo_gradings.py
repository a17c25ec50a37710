"""Assertions of all types of promptfoo, each on outputs that pass, that fail and that are odd: one test for each pair."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import field, frozen

Data = dict[str, Any]


@frozen
class Grading:
    """One *assertion*, or several, on one *output*; *more* are the other keys of the test."""

    assertions: list[Data]
    output: str
    more: Data = field(factory=dict)

    @property
    def kind(self) -> str:
        """The type of the first assertion."""
        return str(self.assertions[0]["type"])

    def test(self, number: int) -> Data:
        """Return it as a test of a file, with a prompt of its own."""
        more = {**self.more, "vars": {"n": str(number), **self.more.get("vars", {})}}
        if not self.output:  # an output that is empty in the file is none: promptfoo asks the provider
            more["options"] = {"transform": "''", **more.get("options", {})}
        return {"providerOutput": self.output or "-", "assert": self.assertions, **more}


NBSP, SEPARATOR = "\u00a0", "\u2028"
TEXTS = (
    "", "   ", "Hello, World!", "hello world", "HELLO", "42", f"10{NBSP}km", f"a{SEPARATOR}b", "see [1] and {1,2}",
    "naïve café 😀 straße", "one\ntwo\r\nthree", "a,b", "null", "x" * 300,
)  # fmt: skip
JSONS = (
    '{"a": 1}', '[1, 2]', "1", '"text"', "true", "", "{1,2}", "see [1]", 'so: {"a": 2} and {"a": "x"}',
    '```json\n{"a": 3}\n```', "{a: 1}", '{"a": 1', "{name}", '{"a": NaN}', "{'a': 1,}", '{"mail": "no", "day": "x"}',
    '{"mail": "me@example.org", "day": "2024-02-29"}', '{"mail": "me@example.org", "day": "2023-02-29"}',
)  # fmt: skip
XMLS = (
    "<a><b>1</b></a>", "<a><b/></a> and more", "text <a><b>1</b></a>", "<a>", "<a>1 & 2</a>", "", "plain",
    '<?xml version="1.0"?>\n<a><b>x</b></a>', "<a><b></a></b>",
)  # fmt: skip
HTMLS = (
    "<!DOCTYPE html><html><body><p>Hi</p></body></html>", "<div>Hi</div>", "text <p>Hi</p> more", "plain", "",
    "<a><b>1</b></a>", "a < b and c > d", "&lt;p&gt;", "<br>", "<p>Hi",
)  # fmt: skip
SQLS = (
    "SELECT a FROM t", "SELECT a, b FROM t WHERE c = 1", "DELETE FROM users", "not sql at all", "SELECT FROM", "",
    "```sql\nSELECT a FROM t\n```", "INSERT INTO t (a) VALUES (1)", "SELECT * FROM t; SELECT b FROM u",
)  # fmt: skip
SENTENCES = (
    "Hola", "hola", "The cat sat", "the cat sat on the mat", "The cat sat on the mat.", "a dog ran off", "", "cat",
    "the the the the", "The cat sat on the mat and then it slept for a long time on the mat",
)  # fmt: skip
MARKS = (
    "fine [[pass=yes; score=0.9]]", "bad [[pass=no; score=0.2]]", "mixed [[pass=yes; score=0.4]]",
    "odd [[pass=no; score=0.8]]",
)  # fmt: skip
CHOICES = tuple(f"an answer [[choice={letter}]]" for letter in "ABCDE")
CALLS = (
    '[{"type": "function", "function": {"name": "find", "arguments": "{}"}}]',
    '{"tool_calls": [{"function": {"name": "find", "arguments": "{}"}}, {"function": {"name": "buy"}}]}',
    '[{"type": "tool_use", "name": "find", "input": {}}]', "no calls", "", "[]",
)  # fmt: skip

SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}
FORMATTED = {"type": "object", "properties": {"mail": {"format": "email"}, "day": {"type": "string", "format": "date"}}}
AS_TEXT = "type: object\nrequired: [a]\nproperties:\n  a: {type: number}\n"

FORMATS: dict[str, Sequence[str]] = {
    "date": ("2024-02-29", "2023-02-29", "2024-1-1", "x", "2024-12-31"),
    "date-time": ("2024-01-02T03:04:05Z", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05", "2024-01-02T25:00:00Z", "x"),
    "time": ("03:04:05Z", "03:04:05+01:00", "03:04:05", "24:00:00Z", "23:59:60Z"),
    "email": ("me@example.org", "me", "me@x", "a b@example.org", "Me <me@example.org>"),
    "uri": ("https://example.org/a?b#c", "example.org", "urn:isbn:1", "http://a b", "/a"),
    "uri-reference": ("/a/b", "#c", "http://a b", "a\\b"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "urn:uuid:123e4567-e89b-12d3-a456-426614174000", "123e4567", "x"),
    "hostname": ("example.org", "-a.org", "a_b", "a" * 64),
    "ipv4": ("127.0.0.1", "256.0.0.1", "1.2.3", "01.2.3.4"),
    "ipv6": ("::1", "fe80::1%eth0", "1::2::3", "2001:db8::8a2e:370:7334"),
    "duration": ("P1D", "PT1H30M", "P", "1D", "P1W"),
    "regex": ("a+", "(", "[a-z]"),
    "json-pointer": ("/a/b", "", "a", "/a~2"),
    "url": ("https://example.org", "example", "ftp://a.b/c"),
    "byte": ("YWJj", "%%%"),
    "colour": ("red",),
}  # fmt: skip


def _both(*kinds: str) -> list[str]:
    return [name for kind in kinds for name in (kind, f"not-{kind}")]


def _each(kinds: Sequence[str], values: Sequence[Any], outputs: Sequence[str], **more: Any) -> Iterator[Grading]:
    """Yield each type with each of *values* (a mapping with a `type` key of its own is more keys) on each output."""
    for kind in kinds:
        for value in values:
            keys = value["keys"] if isinstance(value, dict) and value.keys() == {"keys"} else {"value": value}
            for output in outputs:
                yield Grading([{"type": kind, **keys}], output, dict(more))


def _keys(**keys: Any) -> Data:
    return {"keys": keys}


def gradings() -> Iterator[Grading]:
    """Yield all of them."""
    yield from _code()
    yield from _judged()
    yield from _together()


def _code() -> Iterator[Grading]:
    """Yield what code decides."""
    text = _both("contains", "icontains", "starts-with", "equals")
    yield from _each(text, ["hello", "World", 42, ""], TEXTS)
    yield from _each(["contains", "equals"], ["{{word}}", "{{gone}}"], TEXTS[:5], vars={"word": "hello"})
    yield from _each(["equals"], [{"a": 1}, [1, 2], True, 1.0], JSONS[:6])
    lists = _both("contains-any", "contains-all", "icontains-any", "icontains-all")
    yield from _each(lists, [["hello", "world"], "hello, world", '"a,b", x', [42, "x"]], TEXTS[2:])
    yield from _each(lists, ["{{words}}", ["{{words}}"], "{{word}}"], TEXTS[2:5], vars={"words": "a", "word": "hello"})
    listed = {"vars": {"words": ["hello", "world"]}, "options": {"disableVarExpansion": True}}
    yield from _each(lists, ["{{words}}"], TEXTS[2:5], **listed)
    patterns = [r"\d+\s?km", r"a\sb", "^hello", "(?i)hello", "(", r"\bWorld\b", "(?<=He)llo", r"\S{5}", r"^\W+$", "é."]
    yield from _each(_both("regex"), patterns, TEXTS)
    yield from _each(_both("is-json", "contains-json"), [_keys(), SCHEMA, FORMATTED, AS_TEXT], JSONS)
    for name, samples in FORMATS.items():
        yield from _each(["is-json"], [{"type": "string", "format": name}], [json.dumps(one) for one in samples])
    yield from _each(["is-json"], [{"type": "strin"}, "a: [", False, {"typ": "x"}, {}], JSONS[:2])
    wanted = [_keys(), {"requiredElements": ["a.b"]}, "a, a.b", ["a.c"]]
    yield from _each(_both("is-xml", "contains-xml"), wanted, XMLS)
    yield from _each(_both("is-html", "contains-html"), [_keys()], HTMLS)
    limited = {"databaseType": "MySQL", "allowedTables": ["select::null::t"]}
    yield from _each(_both("is-sql"), [_keys(), limited], SQLS)
    yield from _each(_both("contains-sql"), [_keys()], SQLS)
    yield from _each(_both("levenshtein"), ["hello", "Hello, World", _keys(value="hello", threshold=1)], TEXTS)
    references = ["Hola", "The cat sat on the mat", "the cat sat", _keys(value="cat", threshold=0.1)]
    yield from _each(_both("rouge-n", "bleu", "gleu"), references, SENTENCES)
    yield from _each(["bleu", "gleu"], [["the cat", "the cat sat on the mat"]], SENTENCES)
    yield from _each(_both("word-count"), [3, "2", {"min": 2}, {"max": 2}, {"min": 1, "max": 3}], TEXTS[:8])
    yield from _each(["word-count"], [_keys(), {"min": 3, "max": 1}, "many", {}], TEXTS[:3])
    code = [
        "output.length > 3", "return output === '42'", "output.includes('hello') ? 0.7 : 0.2",
        "const n = output.length;\nreturn {pass: n > 3, score: n / 300, reason: 'so'};", "output.nope()", "context.vars.n > 0",
    ]  # fmt: skip
    yield from _each(_both("javascript"), code, TEXTS[:6])
    yield from _each(["javascript"], [_keys(value="output.length / 10", threshold=0.5)], TEXTS[:6])
    shown = ["context.test.metadata.tags.length === 2", "context.provider ? 1 : 0", "({pass: true})", "await true"]
    yield from _each(["javascript"], shown, TEXTS[3:5], metadata={"tags": ["a", "b"]})
    yield from _each(["contains"], ["hello"], TEXTS[3:5], threshold=1.5)
    yield from _each(["tool-call-f1"], ["find", ["find", "buy"], _keys(value="find", threshold=0.5)], CALLS)
    yield from _each(["latency", "cost", "perplexity"], [_keys()], TEXTS[3:4])
    yield from _each(_both("latency"), [_keys(threshold=100_000)], TEXTS[3:5])
    yield from _each(_both("cost"), [_keys(threshold=0.01)], TEXTS[3:5])
    yield from _each(_both("perplexity", "perplexity-score"), [_keys(threshold=0.5)], TEXTS[3:4])
    yield from _each(_both("finish-reason"), ["stop"], TEXTS[3:5])
    kinds = ("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call")
    yield from _each(kinds, [_keys()], CALLS[:2])
    for bar in (0, 0.5, 1.5):
        yield from _each(["contains", "regex", "is-json"], [_keys(value="zzz", threshold=bar)], TEXTS[3:5])
    yield from _each(
        ["contains", "regex", "equals", "starts-with", "bleu", "levenshtein", "word-count", "contains-any"],
        [_keys()],
        TEXTS[3:4],
    )
    unknown = ("guardrails", "classifier", "webhook", "moderation", "human", "pi", "ruby", "search-rubric", "nonsense")
    yield from _each(unknown, ["x"], TEXTS[3:4])
    yield from _each(["trace-span-count", "trace-error-spans", "trace-span-duration", "meteor"], ["x"], TEXTS[3:4])


def _judged() -> Iterator[Grading]:
    """Yield what a judge decides; its verdicts stand in the outputs."""
    bars = [_keys(value="polite"), *(_keys(value="polite", threshold=bar) for bar in (0, 0.5, 1))]
    yield from _each(_both("llm-rubric"), bars, [*MARKS, "broken [[flaw]]", "plain"])
    yield from _each(["llm-rubric"], [{"tone": "polite"}, _keys(), 5], MARKS[:2])
    yield from _each(_both("model-graded-closedqa"), ["polite"], MARKS)
    yield from _each(_both("factuality", "model-graded-factuality"), ["Paris is in France"], CHOICES)
    yield from _each(_both("similar", "similar:cosine"), ["hello world"], ["hello world", "xyz", "aaaa bbbb iiii"])
    yield from _each(["similar"], [["xyz", "hello world"]], ["hello world", "aaaa"])
    yield from _each(["similar:dot", "similar:euclidean"], ["hello world"], ["hello world", "aaaa bbbb"])
    yield from _each(_both("is-refusal"), [_keys()], ["I cannot help with that", "[[pass=no]] Sure, here it is", ""])
    yield from _each(["trajectory:goal-success", "agent-rubric"], ["book a flight"], MARKS[:2])


def _together() -> Iterator[Grading]:
    """Yield several assertions of a test: weights, thresholds, sets, metrics, transforms, scopes of keys."""
    yes, no = {"type": "contains", "value": "hello"}, {"type": "contains", "value": "absent"}
    part = {"type": "javascript", "value": "0.6"}
    for weights in ((1, 1), (2, 1), (0, 1), (1, 0), (0, 0)):
        for more in ({}, {"threshold": 0.5}, {"threshold": 0.7}, {"threshold": 0}):
            pair = [{**yes, "weight": weights[0]}, {**no, "weight": weights[1]}]
            yield Grading(pair, "hello", dict(more))
    for bar in (None, 0.4, 0.5, 0.9):
        bars = {} if bar is None else {"threshold": bar}
        for weight in (1, 0, 3):
            yield Grading([{"type": "assert-set", "assert": [yes, no], "weight": weight, **bars}, yes], "hello")
            yield Grading([{"type": "assert-set", "assert": [yes, part], "weight": weight, **bars}], "hello")
    yield Grading([{"type": "assert-set", "assert": []}, yes], "hello")
    for assertion in ({**yes, "transform": "output.toUpperCase()"}, {**yes, "transform": "output + ' hello'"}):
        yield Grading([assertion], "hello")
        yield Grading([assertion], "bye")
    for code in ("output.split(' ')[1]", "({a: output})", "output.nope()", "JSON.stringify({a: 1})"):
        options = {"options": {"transform": code}}
        yield Grading([{"type": "equals", "value": "world"}], "hello world", options)
        yield Grading([{"type": "is-json"}], "hello world", options)
    yield Grading([{**yes, "metric": "{{n}}"}], "hello")
