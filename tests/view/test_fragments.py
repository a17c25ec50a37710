"""How the kernel reaches its HTML: not at all until something is drawn, and by one way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rubric import Rubric
from rubric.view.fragments import fragment_of


def test_a_grade_loads_no_html() -> None:
    """Grading and printing load neither `rubric.view` nor Jinja2; a card does."""
    code = (
        "import sys; from rubric import Rubric, grade; result = grade('warm', Rubric('r').expects('warm'), 'offline'); "
        "str(result), result.to_markdown(), result.to_dict(); "
        "names = lambda: [name for name in sys.modules if name.startswith(('rubric.view', 'jinja2'))]; "
        "assert names() == [], names(); result._repr_html_(); assert 'rubric.view.cards' in names()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_value_without_a_drawing_is_an_error() -> None:
    """What `rubric.view` does not know is refused by the name of its type."""
    assert fragment_of(Rubric("r").expects("a")).startswith("<div")
    with pytest.raises(TypeError, match="does not draw int"):
        fragment_of(1)
