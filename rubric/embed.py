"""
What harnesses, adapters and plug-ins build on, beside the public names of `rubric`: one list of the kernel's names.

`embed.pyi` has the names by what they are for: to drive a grade, to send requests, to read rows and chats, to judge in
code, to show results, to define values, to read files, and to plug in. Each is documented where it is defined, and is
imported when it is first used. These names change with a line in the changelog; all other modules may change without.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dis import opmap
from typing import NoReturn

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)


def refuse_name(module: str, wanted: str, own: Collection[str] = ()) -> NoReturn:
    """Raise the error for a name that a *module* lacks: with the nearest of its *own*, and what `rubric` says of it."""
    asking, of = sys._getframe(1), vars(sys.modules[module])  # noqa: SLF001 - only the frame tells an import
    while asking.f_back and asking.f_globals is of:
        asking = asking.f_back
    is_import = asking.f_code.co_code[asking.f_lasti] == opmap["IMPORT_FROM"]  # which loses an `AttributeError`
    there = own or [n for n, each in of.items() if n[0] != "_" and getattr(each, "__module__", "") == module]
    near = [each for each in there if wanted.lower() in each.lower()]
    cure = f"; did you mean {near[0]!r}?" if near else __getattr__("fields").suggest(wanted, there) if there else ""  # type: ignore[attr-defined]
    try:
        sys.modules["rubric"].__getattr__(wanted if is_import and not near else "grade")
    except AttributeError as error:
        listed = f"; it has {', '.join(there)}" if there else ""
        cure = f"; {str(error).partition('; ')[2]}{listed}" if " write " in str(error) else cure
    raise (ImportError if is_import else AttributeError)(f"{module} has no name {wanted!r}{cure}", name=wanted)
