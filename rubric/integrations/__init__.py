"""Adapters for other harnesses, a module for each; a name that one lacks is answered with those that it has."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType

from rubric.embed import refuse_name


class _Adapters(ModuleType):
    """This package, which Python gives each module in it as an attribute when that is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType):
            value.__getattr__ = partial(refuse_name, value.__name__)  # type: ignore[method-assign]


sys.modules[__name__].__class__ = _Adapters
__getattr__ = partial(refuse_name, __name__)
