"""
Programs of several files: a module of JavaScript with all that it imports below the base, read when it is loaded.

`./near.js`, `../data.json` and packages in a `node_modules` below the base are found as Node finds them, and become one
text that imports nothing: the engine never asks for a file. Modules of Node's own are not there.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, evolve, field

from rubric import DefinitionError
from rubric.embed import Cursor, Loading, shorten
from rubric.formats.includes import located_file, may_be_read, read_at, text_of
from rubric.formats.javascript_syntax import Rewritten, rewritten
from rubric.programs.javascript import JavaScriptError, Program

T = TypeVar("T")

LARGEST = 2_000_000
"""Characters of one program, with all that it imports."""

MOST_MODULES = 200
"""Files of one program."""

MOST_IMPORTS = 2_000
"""Names of modules in them: each may be that of a dozen files, which are looked for."""

SUFFIXES = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
"""The files that are run."""

_ENDINGS = ("", *SUFFIXES, ".json", *(f"/index{suffix}" for suffix in SUFFIXES))
_TYPED = {".js": ".ts", ".mjs": ".mts", ".cjs": ".cts"}
_NAMED = re.compile(r"(.*\.[cm]?[jt]s):([\w$]+)")
_PACKAGE = re.compile(r"((?:@[\w.~-]+/)?[\w~-][\w.~-]*)(/.+)?")

_OF_NODE = re.compile(
    r"(?:assert|async_hooks|buffer|child_process|cluster|console|constants|crypto|dgram|dns|events|fs|https?|http2|module|net"
    r"|os|path|perf_hooks|process|punycode|querystring|readline|stream|string_decoder|timers|tls|tty|url|util|v8|vm"
    r"|worker_threads|zlib)(?:/|$)"
)
"""Modules that Node brings along; no package takes their place."""

_RUNTIME = "\n" + files("rubric.formats").joinpath("javascript_modules.js").read_text("utf-8")
_NO_NODE = "const $modules = {};\n"


def bare_module(reference: str) -> tuple[str, str]:
    """Return the file and the function (empty: its own) that `file://checks.js:isShort` names."""
    match = _NAMED.fullmatch(reference.strip())
    return (match[1], match[2]) if match else (reference.strip(), "")


def is_javascript_file(value: Any) -> bool:
    """True if *value* names a file in JavaScript or TypeScript, or a function in one."""
    return isinstance(value, str) and bare_module(value)[0].endswith(SUFFIXES)


def program_at(reference: str, at: Cursor, make: Callable[[str, Loading, str], T]) -> T:
    """Return what *make* makes of the module that *reference*, at the cursor, names, or say why there is none."""
    path, function = bare_module(reference)
    if not path.endswith(SUFFIXES):
        suffix = os.path.splitext(path)[1] or "a file"  # noqa: PTH122
        raise DefinitionError("", f"{suffix}: only JavaScript and TypeScript are run")
    before = at.notes.failures
    try:
        made = read_at(path, at, lambda name: make(name, at.loading, function), at.warn)
    except JavaScriptError as lacking:
        raise DefinitionError("", f"{shorten(path, 60)}: {lacking}") from None
    if made is None:
        lost = "may not be read" if at.notes.failures > before else "is not within reach"
        raise DefinitionError("", f"a file that {lost}")
    return made


def program_of_file(name: str, loading: Loading, function: str = "") -> Program:
    """Return the program of the module in the file *name*, with its imports; a file that may not be read is refused."""
    bundle = Bundle.of(name, loading)
    (first, *others) = bundle.modules.values()
    if not others and not first.is_es and not first.names and "$import" not in first.body:
        return Program(first.body, module=True, name=function)
    return Program(bundle.text(), module=True, name=function)


@define
class Bundle:
    """The modules of one program by their real paths, and their calls; Node's own in `text` are *provided*."""

    loading: Loading
    provided: frozenset[str] = frozenset()
    modules: dict[Path, Rewritten] = field(factory=dict)
    links: dict[Path, dict[str, str]] = field(factory=dict)
    size: int = 0
    imports: int = 0

    @classmethod
    def of(cls, name: str, loading: Loading, provided: frozenset[str] = frozenset()) -> Bundle:
        """Return the module in the file *name*, with all that it imports."""
        located = located_file(name, loading, code=True)
        bundle = cls(loading, provided)
        bundle.add(located.real, text_of(located, loading, name))
        return bundle

    def require(self, source: str, name: str) -> None:
        """Add the module that *source*, which is one of these, calls *name* as it runs."""
        path = next((path for path, called in self._names(self._root()).items() if called == source), None)
        if path is None or (found := self._find(name, path.parent)) is None:
            raise JavaScriptError(_why(name, self.provided))
        self.links[path][name] = str(found[0])
        if found[0] not in self.modules:
            self.add(*found)

    def add(self, first: Path, text: str) -> None:
        """Add the module *first* and all that it imports."""
        waiting = [(first, text)]
        while waiting:
            path, text = waiting.pop()
            self.size += len(text)
            self._check(len(self.modules) < MOST_MODULES and self.size <= LARGEST)
            self.modules[path] = module = _rewritten(path, text)
            self.links[path] = {}
            self.imports += len(module.names)
            self._check(self.imports <= MOST_IMPORTS)
            for name in dict.fromkeys(module.names):
                if name in self.provided:
                    continue
                found = self._find(name, path.parent)
                if found is None:
                    if name in module.needed:
                        raise JavaScriptError(_why(name, self.provided))
                    continue
                self.links[path][name] = str(found[0])
                if found[0] not in self.modules and all(found[0] != one for one, _ in waiting):
                    waiting.append(found)

    def _check(self, holds: bool) -> None:  # noqa: FBT001 - a limit
        if not holds:
            most = f"{MOST_MODULES} files, {LARGEST} characters or {MOST_IMPORTS} imports"
            raise JavaScriptError(f"it and what it imports are more than {most}")

    def _root(self) -> str:
        return os.path.realpath(self.loading.root or "")

    def _names(self, top: str) -> dict[Path, str]:
        return {path: os.path.relpath(path, top).replace(os.sep, "/") for path in self.modules}

    def text(self, node: str = "") -> str:
        """Return the whole program, whose module is that of the first file; *node* has what is provided of Node's."""
        first = next(iter(self.modules))
        called = self._names(self._root() if node else os.path.commonpath([path.parent for path in self.modules]))
        parameters = "module, exports, require, $scope, $export, $all, $from, $import"
        parameters += ", __filename, __dirname" if node else ""
        files = [
            f"{json.dumps(called[path])}: [{json.dumps({n: called[Path(p)] for n, p in self.links[path].items()})}, "
            f"{json.dumps(module.is_es)}, function ({parameters}) {{\n{module.body}\n}}]"
            for path, module in self.modules.items()
        ]
        end = f"module.exports = $load({json.dumps(called[first])}).module.exports;"
        joined = ",\n".join(files)
        return f"{node or _NO_NODE}const $files = {{\n{joined}\n}};{_RUNTIME}{end}"

    def _find(self, name: str, folder: Path) -> tuple[Path, str] | None:
        """Return the file that *name* leads to from *folder*, and its text; None where none may be read."""
        for candidate in self._candidates(name, folder):
            if (text := self._read(candidate, folder)) is not None:
                return text
        return None

    def _read(self, name: str, folder: Path) -> tuple[Path, str] | None:
        near = evolve(self.loading, folder=folder, base=self.loading.root, first=None, climbs=False)
        if not may_be_read(name, near):
            return None
        try:
            located = located_file(name, near, code=True)
            return located.real, text_of(located, near, name)
        except DefinitionError as error:
            raise JavaScriptError(error.message) from None

    def _candidates(self, name: str, folder: Path) -> Iterator[str]:
        if re.match(r"\.{1,2}(?:/|$)", name):
            stem, suffix = posixpath.splitext(name)
            yield from (name.rstrip("/") + ending for ending in _ENDINGS)
            if suffix in _TYPED:
                yield stem + _TYPED[suffix]
            return
        if self.provided and name.startswith("/"):
            yield from (name + ending for ending in _ENDINGS)
            return
        match = None if _OF_NODE.match(name) else _PACKAGE.fullmatch(name)
        top = Path(os.path.realpath(self.loading.root or folder))
        if match is None:
            return
        for parent in (folder, *folder.parents):
            if not parent.is_relative_to(top):
                return
            package = f"{os.path.relpath(parent, folder)}/node_modules/{match[1]}"
            own = self._read(f"{package}/package.json", folder)
            yield from (f"{package}/{path}{ending}" for path in _mains(own, match[2] or "") for ending in _ENDINGS)


def _why(name: str, provided: frozenset[str]) -> str:
    shown = repr(shorten(name, 60))
    if name.startswith((".", "/") if provided else "."):
        return f"it imports {shown}, which is not within reach"
    if _OF_NODE.match(name.removeprefix("node:")) or not _PACKAGE.fullmatch(name):
        rest = (
            "of Node's modules has fs (for reading), path and url alone"
            if provided
            else "is run without Node's modules"
        )
        return f"it imports {shown}, and {rest}"
    return f"it imports {shown}, which is not installed: npm install {shorten(name, 60)}, in the project's folder"


def _rewritten(path: Path, text: str) -> Rewritten:
    if path.suffix == ".json":
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            raise JavaScriptError(f"it imports {path.name}, which is not JSON") from None
        return Rewritten(f"module.exports = JSON.parse({json.dumps(text)});", (), ())
    if path.suffix not in SUFFIXES:
        raise JavaScriptError(f"it imports {path.name}, and only JavaScript, TypeScript and JSON are read")
    return rewritten(text, typescript=path.suffix.endswith("ts"))


def _mains(package: tuple[Path, str] | None, inner: str) -> list[str]:
    """Return the files that a package, whose package.json is given, may be meant by: its own, or *inner* of it."""
    try:
        data = {} if package is None else json.loads(package[1])
    except (ValueError, RecursionError):
        data = {}
    data = data if isinstance(data, dict) else {}
    exports = data.get("exports")
    if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
        chosen = exports.get(f".{inner}")
    else:
        chosen = None if inner else exports
    tried = [_condition(chosen), inner, *([] if inner else [data.get("main"), "index"])]
    return [path.removeprefix("./").lstrip("/") for path in tried if isinstance(path, str) and path]


def _condition(chosen: Any) -> Any:
    """Return the path among the conditions of an export: that for `require`, else another."""
    for _ in range(10):
        if isinstance(chosen, list):
            chosen = next(iter(chosen), None)
        elif isinstance(chosen, dict):
            chosen = next((chosen[key] for key in ("require", "node", "import", "default") if key in chosen), None)
        else:
            break
    return chosen
