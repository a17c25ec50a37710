"""
Public names of a package that are imported when they are first used.

The names are listed once, in the package's type stub `__init__.pyi`, as for `lazy_loader`; that library is not taken,
since it would be the only one besides attrs that building a rubric loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def attach(package: str, file: str, renamed: Mapping[str, str]) -> tuple[Callable[[str], object], dict[str, str]]:
    """
    Return the `__getattr__` of a package whose stub lists its public names, and the module of each, sorted by name.

    Args:
        package: Its name.
        file: Its `__file__`.
        renamed: Names of earlier versions, each with its replacement, which the `AttributeError` for it names.
    """
    with open(f"{file}i", encoding="utf-8") as opened:  # noqa: PTH123 - pathlib would double the time of the import
        stub = opened.read()
    lines = (line.split() for line in stub.splitlines() if line.startswith("from ."))
    homes = {name: module for _, module, _, name, *_ in lines}  # from .module import name as name

    def find(name: str) -> object:
        if name in homes:
            return getattr(import_module(homes[name], package), name)
        hint = f"; it is now called `{renamed[name]}`" if name in renamed else _hint(name, homes)
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    return find, dict(sorted(homes.items()))


def _hint(name: str, known: Mapping[str, str]) -> str:
    if name.startswith("_"):  # Python's own questions, such as `__path__`
        return ""
    from rubric.internals.guesses import name_cure  # noqa: PLC0415 - needed for errors alone

    return name_cure(name, known)
