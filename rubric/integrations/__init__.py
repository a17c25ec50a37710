"""Adapters for other harnesses, a module for each; a name that one lacks is answered with those that it has."""

from __future__ import annotations

import sys
from dis import opname
from functools import partial
from types import ModuleType
from typing import NoReturn


class _Adapters(ModuleType):
    """This package, which Python gives each module in it as an attribute when that is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType):
            value.__getattr__ = partial(_refuse, value)  # type: ignore[method-assign]


def _refuse(module: ModuleType, wanted: str) -> NoReturn:
    asking = sys._getframe(1)  # noqa: SLF001 - why an `AttributeError` said no is lost by `from module import name`
    if opname[asking.f_code.co_code[asking.f_lasti]] != "IMPORT_FROM":
        raise AttributeError(f"module {module.__name__!r} has no attribute {wanted!r}", name=wanted, obj=module)
    own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
    shown = sorted((name for name in own if not name.startswith(("_", "pytest_"))), key=len)
    near = [name for name in shown if wanted.lower().replace("_", "") in name.lower().replace("_", "")]
    cure = f"write from {module.__name__} import {near[0]}" if near else f"it has {', '.join(shown)}"
    raise ImportError(f"cannot import name {wanted!r} from {module.__name__!r}; {cure}", name=wanted)


sys.modules[__name__].__class__ = _Adapters
