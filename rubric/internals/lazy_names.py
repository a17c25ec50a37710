"""
Public names that are imported when they are first used.

A package or a module lists its names once, in the type stub beside it, as for `lazy_loader`; that library is not taken,
since it would be the only one besides attrs that building a rubric loads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType

_EXTRAS = {"numpy": "stats", "scipy": "stats"}


def attach(name: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """
    Return `__getattr__` and `__dir__` of the module *name*, whose stub beside *file* lists its public names.

    A package's modules are imported on first use, too. The error for any other name has the line that works.
    """
    is_package = file.endswith("__init__.py")
    package = name if is_package else name.rpartition(".")[0]
    homes = cache(lambda: _names_in(f"{file}i"))

    def find(wanted: str) -> object:
        if wanted == "__all__":
            return names()
        if wanted == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - reads a file

            return version("rubric-grade")
        if wanted in homes():
            home = _import(homes()[wanted], package, f"{name}.{wanted}")
            value = getattr(home, wanted, None) or import_module(f"{home.__name__}.{wanted}")  # a module
            setattr(sys.modules[name], wanted, value)
            return value
        cure = ""
        if not wanted.startswith("_"):  # Python's own questions, such as `__path__`
            from importlib.util import find_spec  # noqa: PLC0415 - public names are found without it

            if is_package and find_spec(f"{name}.{wanted}"):
                return import_module(f"{name}.{wanted}")
            from rubric.internals.guesses import name_cure  # noqa: PLC0415 - needed for errors alone

            cure = name_cure(wanted, name, public_names()) or f"; dir({name}) lists its names"
        # `from rubric import X` asks first whether X is there; why an `AttributeError` said no is lost.
        is_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"  # noqa: SLF001 - only the frame tells
        error = ImportError if cure and is_import else AttributeError
        raise error(f"module {name!r} has no attribute {wanted!r}{cure}", name=wanted)

    def names() -> list[str]:
        return sorted(homes())

    return find, names


class ModuleGuesses:
    """
    The last finder of modules: it answers `from rubric.metrics import X`, a module that no other finder has found.

    It finds nothing, and says nothing where it is asked whether a module is there.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004 - Python's protocol
        asking = sys._getframe(2)  # noqa: SLF001 - an import statement and `find_spec` ask alike
        if not name.startswith("rubric.") or asking.f_code.co_name != "_find_and_load_unlocked":
            return
        from rubric.internals.guesses import module_cure  # noqa: PLC0415 - needed for errors alone

        cure = module_cure(name, _imported_names(asking), public_names())
        raise ModuleNotFoundError(f"No module named {name!r}{cure}", name=name)


def _imported_names(asking: FrameType | None) -> tuple[str, ...]:
    """Return the names that the import statement above *asking* takes from its module."""
    from dis import get_instructions  # noqa: PLC0415 - needed for errors alone

    while asking is not None and asking.f_code.co_filename.startswith("<frozen importlib"):
        asking = asking.f_back
    before = None
    for each in get_instructions(asking.f_code) if asking is not None else ():
        if each.offset == asking.f_lasti and each.opname == "IMPORT_NAME" and before is not None:  # type: ignore[union-attr]
            return tuple(before.argval or ())
        before = each
    return ()


def public_names() -> dict[str, str]:
    """Return all public names, each with the module that lists it."""
    from pathlib import Path  # noqa: PLC0415 - needed for errors alone

    root = Path(__file__).parents[1]
    modules = {
        stub: ".".join(["rubric", *stub.relative_to(root).with_suffix("").parts]) for stub in root.rglob("*.pyi")
    }
    return {name: module.removesuffix(".__init__") for stub, module in modules.items() for name in _names_in(str(stub))}


def _names_in(stub: str) -> dict[str, str]:
    """Return the names that the file *stub* lists, each with the module that defines it, relative to the package."""
    with open(stub, encoding="utf-8") as opened:  # noqa: PTH123 - pathlib would double the time of the import
        lines = [line.split() for line in opened if line.startswith(("from .", "from rubric."))]
    return {name: module for _, module, _, name, *_ in lines}  # from .module import name as name


def _import(home: str, package: str, wanted: str) -> ModuleType:
    try:
        return import_module(home, package)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        message = f"{wanted} takes numpy and scipy: pip install 'rubric-grade[{_EXTRAS[error.name]}]'"
        raise ImportError(message, name=error.name) from error
