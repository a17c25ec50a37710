"""
Grade text against a rubric, with any LLM as the judge.

`__init__.pyi` lists the public names. Each is imported when it is first used: `import rubric` costs next to nothing.
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

_find, _homes = attach(__name__, __file__, renamed={"clusters": "rubric.dask"})


_WITH_STATS = (
    ".quality.align",
    ".quality.items",
    ".trust.agreement",
    ".trust.calibration",
    ".trust.differences",
    ".trust.drift",
    ".trust.estimates",
    ".trust.selective",
)
"""The modules that need numpy and scipy."""


def __getattr__(name: str) -> object:
    if name == "__all__":
        return _importable()
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reads a file

        return version("rubric-grade")
    if name == "presets":  # a module, read on first use like the names
        from importlib import import_module  # noqa: PLC0415 - as above

        return import_module("rubric.presets")
    try:
        value = globals()[name] = _find(name)
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "scipy"):
            raise
        message = f"rubric.{name} takes numpy and scipy: pip install rubric-grade[stats]"
        raise ImportError(message, name=error.name) from error
    return value


def __dir__() -> list[str]:
    return _importable()


def _importable() -> list[str]:
    """Return the public names, without those of the extra `stats` where it is missing: `import *` would fail."""
    from importlib.util import find_spec  # noqa: PLC0415 - looks for files

    has_stats = find_spec("scipy") is not None
    return [name for name, home in _homes.items() if has_stats or home not in _WITH_STATS]
