"""Tell whether this process is the kernel of a notebook, which shows HTML."""

from __future__ import annotations

import sys
from typing import Any


def notebook() -> Any:
    """Return the module `IPython.display` in the kernel of a notebook; None in a script, a test, IPython's terminal."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return None if module is None or getattr(shell, "kernel", None) is None else module.display
