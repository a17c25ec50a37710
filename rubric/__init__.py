"""
Grade text against a rubric, with any LLM as the judge.

`__init__.pyi` lists the public names. Each is imported when it is first used: `import rubric` costs next to nothing.
Names that are seldom typed are in `rubric.trust`, `rubric.suites` and others; `rubric.X` says where X is.
"""

from __future__ import annotations

import sys

from rubric.internals.lazy_names import ModuleGuesses, attach

__getattr__, __dir__ = attach(__name__, __file__)
if ModuleGuesses not in sys.meta_path:
    sys.meta_path.append(ModuleGuesses)
