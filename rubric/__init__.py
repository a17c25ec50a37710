"""
Grade text against a rubric, with any LLM as the judge.

`__init__.pyi` lists the public names. Each is imported when it is first used: `import rubric` costs next to nothing.
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

_find, __all__ = attach(__name__, __file__, renamed={"clusters": "rubric.dask"})


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reads a file

        return version("rubric-grade")
    if name == "presets":  # a module, read on first use like the names
        from importlib import import_module  # noqa: PLC0415 - as above

        return import_module("rubric.presets")
    value = globals()[name] = _find(name)
    return value


def __dir__() -> list[str]:
    return __all__
