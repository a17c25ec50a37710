"""The page on compatibility names every rule by which the tests of recorded cases depart from the record."""

from __future__ import annotations

from tests.formats.agentv import test_upstream as test_upstream_agentv
from tests.formats.promptfoo import test_upstream as test_upstream_promptfoo
from tests.places import ROOT
from tests.rows import each_row

PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text("utf-8")

SAID = {
    # AgentV
    "numbers and booleans as text": "numbers and booleans as text",
    "several objects in a reply": "several verdicts in a reply",
    "a reply without its reasoning": "a verdict without a reason",
    "an id that the judge repeats": "an id that the judge repeats",
    "an id with two verdicts": "verdicts that disagree are unreadable",
    "a min_score that no score can meet": "a `min_score` that no score can meet",
    "an omitted criterion": "a criterion that the judge leaves out",
    "a failed judge": "a judge that fails",
    "an id that stands twice": "duplicate ids",
    "a negative weight": "negative weights",
    "texts in a rubric evaluator": "plain texts in a `type: rubric` evaluator",
    "criteria of both kinds": "checklist items beside items with score ranges",
    "min_score on a checklist item": "`min_score` on a checklist item",
    "required on an item with bands": "`required` on an item with score ranges",
    "a score out of range": "a score outside of its range",
    "a judge with tools": "a judge with tools",
    "no judgement in a reply": "no verdict in a reply at all",
    "an inline item that an evaluator may not have": "an inline item with impossible bands or gates",
    "what was proposed to be refused": "duplicate ids, negative weights",
    "two gates that differ": "`min_score` and `required_min_score` that differ",
    "a verdict without its score": "`passed`, a verdict without a reason",
    "a weight that is not a number, a flag that is not a boolean": "a weight or a flag of the wrong type",
    # promptfoo
    "verdict not first": "the last one with a verdict",
    "failure among others": "a judge that fails",
    "float": "means and thresholds",
    "no verdict": "a reply without a pass flag",
    "two verdicts": "several verdicts in a reply that disagree",
    "a key twice": "a key given twice",
    "score no number": "or that is not a number",
    "score out of range": "a score outside of its range",
    "flag unclear": "a flag that is neither yes nor no",
    "another yes": "`passed`, or a yes with white space",
    "old not-": "no effect before 0.121.10",
}
"""What the page says of each rule."""


@each_row("name", [*test_upstream_agentv.DEVIATIONS, *test_upstream_promptfoo.DEVIATIONS])
def test_a_rule_is_on_the_page(name: str) -> None:
    """Whoever departs from another system says so where its users look."""
    assert SAID.get(name, name) in PAGE
