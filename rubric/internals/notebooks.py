"""Tell whether this process is the kernel of a notebook, and ask `rubric.view` for the HTML that it shows."""

from __future__ import annotations

import sys
from typing import Any


def notebook() -> Any:
    """Return the module `IPython.display` in the kernel of a notebook; None in a script, a test, IPython's terminal."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return None if module is None or getattr(shell, "kernel", None) is None else module.display


def as_html(value: Any) -> str:
    """Return *value* as HTML for the output of a notebook's cell: the kernel's `_repr_html_`."""
    from rubric.view.fragments import fragment_of  # noqa: PLC0415 - HTML is not a part of the kernel

    return fragment_of(value)


def draw(how: str, *values: Any) -> Any:
    """Return what the function *how* of `rubric.view.fragments` makes of *values*: a page, a chart."""
    from rubric.view import fragments  # noqa: PLC0415 - as above

    return getattr(fragments, how)(*values)
