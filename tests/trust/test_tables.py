"""Each interval that is printed has a table of how often it covers."""

from __future__ import annotations

import ast
import re

from tests.places import ROOT

_MAKERS = {
    *("share_interval", "mean_interval", "paired_mean", "unit_interval", "exact_interval", "Logistic"),
    *("paired_contrast", "unpaired_contrast", "contrast", "coefficient", "share", "among_many"),
}
_TABLES = {
    "results/summary.py": "means rates_of_one",
    "suites/baseline.py": "drops two_runs",
    "suites/repetition.py": "several_runs",
    "view/comparison_page.py": "paired",
    "quality/coalitions.py": "rates_of_one",  # a share of 4,000 orders
    "quality/cross_fitting.py": "aligned",
    "quality/edit_effects.py": "paired",
    "quality/generating.py": "rates_of_one means",
    "quality/item_statistics.py": "means items",
    "quality/probing.py": "rates_of_one",  # Clopper and Pearson's, which is exact
    "trust/annotators.py": "juries",
    "trust/assumptions.py": "numbers coefficients",
    "trust/coefficients.py": "coefficients numbers",
    "trust/criterion_agreement.py": "coefficients rates numbers uneven ceilings weighted by_weight",
    "trust/cutoffs.py": "chosen",
    "trust/differences.py": "paired corrected_differences",
    "trust/drift.py": "drifts",
    "trust/estimates.py": "estimates estimated_means grouped_estimates rogan_gladen clustered drawn ungraded divided",
    "trust/inference.py": "means paired",
    "trust/label_plan.py": "rates_of_one estimates",
    "trust/pairwise/win_rates.py": "won",
    "trust/pairwise/logistic.py": "strengths",
    "trust/rates.py": "rates",
    "trust/slices.py": "paired slices",
}


def _makes_intervals(text: str) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Name) and one.id in _MAKERS for one in calls)


def test_each_interval_has_a_table() -> None:
    """A module that makes intervals is listed with its tables, and the page has each of them."""
    files = {str(path.relative_to(ROOT / "rubric")): path for path in sorted((ROOT / "rubric").rglob("*.py"))}
    skipped = {"scoring/intervals.py", "suites/assignment.py", "suites/suite_plan.py", "formats/native/suite.py"}
    makers = {name for name, path in files.items() if _makes_intervals(path.read_text("utf-8"))} - skipped
    assert makers <= _TABLES.keys()
    page = (ROOT / "docs" / "explanation" / "simulations.md").read_text("utf-8")
    named = set(re.findall(r"\(`(\w+)`", page))
    assert {name for names in _TABLES.values() for name in names.split()} <= named
