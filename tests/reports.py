"""Reports for the tests of reporters: one as people have them, one by an enemy, and any at all."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from rubric.internals.frozen_map import FrozenMap
from rubric.results.report_rows import Entry, Row, Vote
from rubric.suites.report import Report
from rubric.values.findings import Evidence, Step
from rubric.values.places import Place
from rubric.values.requests import Usage
from tests.strategies import any_texts, free_maps

OUTPUT = "Hello Ada, your parcel is in Oslo and arrives on Friday. You get the full price back whatever happens."


def quote(text: str, within: str = OUTPUT) -> Evidence:
    """Return *text* as evidence at its place."""
    return Evidence(text, within.index(text), within.index(text) + len(text))


def entry(id: str, contribution: float | None, text: str = "", **fields: Any) -> Entry:
    """Return a scored entry."""
    return Entry(id, text or f"About {id}", "scored", score=contribution, contribution=contribution, **fields)


ENTRIES = (
    entry("answers", 1.0, reason="It says where and when.", evidence=(quote("in Oslo"),), answer="yes or no"),
    entry("refund", 0.0, gated=True, reason="It promises it all.", evidence=(quote("the full price"), Evidence("x"))),
    entry("style", 0.5, weight=2, parts=(entry("greets", 1.0), entry("slang", 0.0, gated=True))),
    entry("escalation", 1.0, path=(Step("Is it required?", yes=False, score=0.2, reason="Not listed."),)),
    entry("clarity", 0.8, value="8", level="with effort", votes=(entry("clarity", 0.9, judge="one"),)),
    Entry("json", "is JSON", "not_applicable"),
    Entry("year", "the right year", "abstained", reason="It names none."),
)

FAILED = Row(
    "late",
    "failed",
    score=0.62,
    verdict="fail",
    shown="3.5/5",
    threshold=0.8,
    bounds=(0.62, 0.62),
    reason="'refund' failed it",
    rubric="support",
    judge="a panel",
    input="Where is it?",
    output=OUTPUT,
    run=("track(4471) → Oslo",),
    entries=ENTRIES,
    votes=(Vote("one", 0.7, passed=False, verdict="fail"), Vote("two", None, passed=None, verdict="ungraded")),
    gates=("refund",),
    warnings=("a hidden character",),
    usage=Usage(14, 12_400, 9_800, 2_210, 0.0187),
    tags=("shipping",),
    place=Place("suites/support.yaml", 12, 5),
)
PASSED = Row("found", "passed", score=0.9, verdict="pass", shown="0.90", threshold=0.7, bounds=(0.9, 0.9), output="Hi!")
JUDGED = Row(
    "kept",
    "passed",
    score=1.0,
    verdict="pass",
    shown="1.00",
    threshold=0.7,
    bounds=(1.0, 1.0),
    output=OUTPUT,
    path=(Step("Is it urgent?", yes=True, score=1.0, reason=""),),
    entries=(
        entry("place", 1.0, reason="It says where.", evidence=(quote("in Oslo"),)),
        entry("steps", 1.0, path=(Step("Is it required?", yes=False, score=0.2, reason="Not listed."),)),
        entry("style", 1.0, parts=(entry("greets", 1.0, reason="By name.", evidence=(quote("Hello Ada"),)),)),
    ),
)
NOTHING = (Entry("json", "is JSON", "not_applicable"),)
VACUOUS = Row("free", "passed", score=1.0, verdict="pass", shown="1.00", threshold=0.7, entries=NOTHING, vacuous=True)
UNJUDGED = Entry("b", "Offers help", "unjudged", reason="rate_limited: 429")
UNGRADED = Row("limited", "ungraded", bounds=(0.2, 0.9), threshold=0.7, reason="429", entries=(UNJUDGED,), output="Hi!")
DEFERRED = Row("serverless", "deferred", reason="there is no server", threshold=0.7)

REPORT = Report(
    "support", (FAILED, PASSED, UNGRADED, DEFERRED), warnings=("a.yaml:3:1: x",), version="0.1", duration=2.5
)

# -- any at all ------------------------------------------------------------------------------------------

NASTY = (
    "<script>document.title='pwned'</script>", "<img src=x onerror=\"document.title='pwned'\">",
    "</title><script>document.title='pwned'</script>", "</style><script>document.title='pwned'</script>",
    "</pre></details><svg onload=\"document.title='pwned'\">", "\" autofocus onfocus=\"document.title='pwned'\" x=\"",
    "' onmouseover='x' ", "javascript:document.title='pwned'", "]]>", "<!--", "-->", "<![CDATA[", "{{ 7 * 7 }}", "{% x %}",
    "a|b", "`", "```", "\n# head", "* item", "[x](javascript:x)", "@team", "#12", "ok 7 - x", "not ok", "x # SKIP",
    "# TODO", "1..0", "Bail out!", "  ...", "  ---", "\x1b[31mred\x1b[0m", "\x00", "\ud800", "\u202egnp.exe", "\u2028", "\x85",
    "[bold]x[/bold]", ":smile:", "a\r\nb", "\r", "\ufeff", "\uffff", "../../etc/passwd", "C:\\x y\\z.yaml", "é" * 9,
)  # fmt: skip
"""Texts at which readers of reports have stumbled, or that would do harm."""

texts = st.one_of(any_texts(), st.sampled_from(NASTY))
units = st.one_of(st.sampled_from([0.0, 1.0, 0.7]), st.floats(0, 1))
maybe = st.one_of(st.none(), units)
evidence = st.builds(
    Evidence, texts, st.one_of(st.none(), st.integers(0, 40)), st.one_of(st.none(), st.integers(0, 40)), texts
)
steps = st.lists(st.builds(Step, texts, st.booleans(), units, texts), max_size=2).map(tuple)
votes = st.lists(st.builds(Vote, texts, maybe, st.sampled_from([None, True, False]), texts), max_size=2).map(tuple)
leaves = st.builds(
    Entry,
    texts,
    texts,
    st.sampled_from(["scored", "not_applicable", "abstained", "unjudged"]),
    score=maybe,
    contribution=maybe,
    weight=st.one_of(st.just(1), st.just(0), st.floats(0, 1e9), st.just(10**300)),
    answer=texts,
    value=texts,
    level=texts,
    gated=st.booleans(),
    reason=texts,
    evidence=st.lists(evidence, max_size=2).map(tuple),
    path=steps,
    judge=texts,
)


def _with_children(leaf: Entry, parts: list[Entry], votes: list[Entry]) -> Entry:
    from attrs import evolve

    return evolve(leaf, parts=tuple(parts), votes=tuple(votes))


few = st.lists(leaves, max_size=2)
entries = st.one_of(leaves, st.builds(_with_children, leaves, few, few))
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 4, st.one_of(st.none(), st.floats(0, 1e6)), st.integers(0, 9))
places = st.one_of(st.none(), st.builds(Place, texts, st.integers(1, 10**6), st.integers(1, 10**4)))
rows = st.builds(
    Row,
    texts,
    st.sampled_from(["passed", "failed", "ungraded", "deferred"]),
    score=maybe,
    verdict=st.one_of(st.sampled_from(["pass", "fail", "borderline", ""]), texts),
    shown=texts,
    threshold=maybe,
    bounds=st.tuples(units, units),
    reason=texts,
    rubric=texts,
    judge=texts,
    input=texts,
    output=texts,
    run=st.lists(texts, max_size=2).map(tuple),
    entries=st.lists(entries, max_size=2).map(tuple),
    votes=votes,
    gates=st.lists(texts, max_size=2).map(tuple),
    path=steps,
    warnings=st.lists(texts, max_size=2).map(tuple),
    usage=usages,
    cell=st.one_of(st.just(FrozenMap()), free_maps.map(FrozenMap)),
    tags=st.lists(texts, max_size=2).map(tuple),
    place=places,
    vacuous=st.booleans(),
)
reports = st.builds(
    Report,
    texts,
    st.lists(rows, max_size=3).map(tuple),
    deferred=st.sampled_from(["pass", "fail", "error"]),
    warnings=st.lists(texts, max_size=2).map(tuple),
    version=st.one_of(st.just("1.2.3"), st.text(string.printable, max_size=5)),
    duration=st.floats(0, 1e6),
)

# -- by an enemy -----------------------------------------------------------------------------------------

PAYLOADS = [text for text in NASTY if "pwned" in text]


def hostile(payload: str) -> Report:
    """Return a report with *payload* in every text field."""
    p = payload
    proof = (Evidence(p, 0, len(p)), Evidence(p), Evidence(p, 0, 1, p))
    path = (Step(p, yes=True, score=0.5, reason=p),)
    leaf = Entry(p, p, "scored", 0.5, 0.5, 1, p, p, p, gated=True, reason=p, evidence=proof, path=path, judge=p)
    whole = Entry(
        p, p, "scored", 0.5, 0.5, 1, p, p, p, gated=True, reason=p, evidence=proof, parts=(leaf,), votes=(leaf,)
    )
    row = Row(
        p, "failed", 0.5, p, p, 0.7, (0.1, 0.9), p, p, p, p, p, (p,), (whole,), (Vote(p, 0.5, passed=True, verdict=p),),
        (p,), path, (p,), Usage(), FrozenMap({p: p}), (p,), Place(p, 1, 1),
    )  # fmt: skip
    return Report(p, (row,), warnings=(p,), version=p)
