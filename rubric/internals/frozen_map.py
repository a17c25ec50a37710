"""
Immutable mappings, so that values that hold one can be hashed; and a cache by identity.

`immutabledict` is not taken: it freezes only the outermost level, so one that holds a list has no hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import ref

K = TypeVar("K")
P = ParamSpec("P")
V = TypeVar("V")


class FrozenMap(Mapping[str, Any]):
    """A mapping that cannot change, and so can be hashed; what is nested in it is frozen too."""

    __slots__ = ("_hash", "_items")

    _hash: int

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        if type(items) is not dict and isinstance(items, FrozenMap):  # to ask of an ABC takes as long as all of this
            self._items: dict[str, Any] = items._items  # noqa: SLF001 - never changed, so shared
        else:
            self._items = {k: v if type(v) in _PLAIN else freeze(v) for k, v in dict(items).items()}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if type(other) is FrozenMap else super().__eq__(other)

    def get(self, key: str, default: Any = None) -> Any:  # that of `Mapping` looks the key up by an exception
        return self._items.get(key, default)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # kept from the first time on: rules over runs look arguments up twice a call
            self._hash = hash(frozenset(self._items.items()))
            return self._hash

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, Any]]]:
        return type(self), (self._items,)


def freeze(value: Any) -> Any:
    """Return *value* frozen all the way down: mappings as `FrozenMap`, lists as tuples; NumPy's scalars as Python's."""
    kind = type(value)
    if kind in _PLAIN or kind is FrozenMap:  # exact types first: an `isinstance` of an ABC costs as much as all of this
        return value
    if kind is dict or isinstance(value, Mapping):
        return FrozenMap(value)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return frozenset(value) if isinstance(value, set) else scalar(value)


def scalar(value: Any) -> Any:
    """Return a scalar of NumPy's, or an array without dimensions, as the Python value that it holds."""
    if type(value) in _PLAIN or getattr(value, "shape", None) != ():
        return value
    return value.item() if callable(getattr(value, "item", None)) else value


_PLAIN = frozenset({str, int, float, bool, type(None)})


def thaw(value: Any) -> Any:
    """Undo `freeze`: plain dicts and lists, as JSON and YAML want them."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


class Memo(Generic[K, P, V]):
    """
    A function of one value, computed once for each value and forgotten with it.

    `functools.cache` keeps its last values alive, and with a judge its API key; and it hashes them, which takes as long
    as the work for a finding with a thousand parts. So values are told apart by identity and held weakly. Further
    arguments are a context: it is kept with the result, which serves for an equal context alone.

    Args:
        make: What it returns must not hold the value, or neither would ever go.
    """

    def __init__(self, make: Callable[Concatenate[K, P], V], /) -> None:
        self._make = make
        self._known: dict[int, tuple[ref[K], tuple[object, ...], V]] = {}

    def __call__(self, value: K, /, *context: P.args, **named: P.kwargs) -> V:
        place = id(value)
        known = self._known.get(place)
        if known is None or known[1] != context:
            # The callback removes the entry before the memory of *value* is free: without it, the next object with the
            # same id would be served the result of this one.
            forget = ref(value, lambda _: self._known.pop(place, None))
            known = self._known[place] = (forget, context, self._make(value, *context, **named))
        return known[2]
