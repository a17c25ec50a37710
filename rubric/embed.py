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

from rubric.internals.lazy_names import attach, public_names

__getattr__, __dir__ = attach(__name__, __file__)


def refuse_name(module: str, wanted: str, own: Collection[str] = ()) -> NoReturn:
    """Raise the error for a name that a *module* lacks: with its *own* that has the word, or what is meant by it."""
    from rubric.internals.guesses import cures_in, name_cure  # noqa: PLC0415 - needed for errors alone

    asking, of = sys._getframe(1 + bool(own)), vars(sys.modules[module])  # noqa: SLF001 - only the frame tells an import
    is_import = asking.f_code.co_code[asking.f_lasti] == opmap["IMPORT_FROM"]  # which loses an `AttributeError`
    there = own or [n for n, each in of.items() if n[0] != "_" and getattr(each, "__module__", "") == module]
    near = [each for each in there if wanted.lower() in each.lower()]
    near += [each for each, words in cures_in("names", module) if each in there and wanted.lower() in words]
    meant = name_cure(wanted, "rubric", public_names()) if is_import and not near else ""  # others may only ask
    cure = f"; did you mean {near[0]!r}?" if near else meant + f"; it has {', '.join(there)}" * bool(there)
    raise (ImportError if is_import else AttributeError)(f"{module} has no name {wanted!r}{cure}", name=wanted)
