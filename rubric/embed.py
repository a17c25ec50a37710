"""
What harnesses, adapters and plug-ins build on, beside the public names of `rubric`: one list of the kernel's names.

`embed.pyi` has the names by what they are for: to drive a grade, to send requests, to read rows and chats, to judge in
code, to show results, to define values, to read files, and to plug in. Each is documented where it is defined, and is
imported when it is first used. These names change with a line in the changelog; all other modules may change without.
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
