"""Containers of items with ids: iterated, and taken by id, by place or as a slice; and values that refuse `bool`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import get_annotations
from operator import attrgetter, index
from typing import Any, ClassVar, Generic, NoReturn, SupportsIndex, TypeVar, overload

import attrs

from rubric.internals.fields import nearest, suggest
from rubric.internals.guided import Guided

T = TypeVar("T")
_MOST_NAMED = 10


class NoTruth(Guided):
    """
    Refuses `bool`: `assert grade(...)` would hold for a fail as well, as it holds for every object.

    A list of results (`Grades`) is not a verdict, and stays true where there is something in it.
    """

    __slots__ = ()
    _truth: ClassVar[str] = ".passed"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is neither true nor false; ask for {self._truth}")


class Unchanging(tuple[T, ...], Guided):
    """The items of a value of ours: a tuple that names that value where an id, or what a list has, is asked of it."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, str):
            return tuple.__getitem__(self, place)
        from rubric.internals.guesses import place_cure  # noqa: PLC0415 - needed for errors alone

        raise TypeError(f"items have places here, and no ids{place_cure(self, place)}")


class Listed(Generic[T]):
    """
    Holds items in order, each with an id: iterated, counted, and taken by id, by place or as a slice.

    They are in the field `_items`, `_id` gets the id of one, and errors call each a `_kind`.
    """

    __slots__ = ()
    _kind: ClassVar[str] = "criterion"
    _items: ClassVar[str] = "criteria"
    _id: ClassVar[Any] = attrgetter("id")

    def __init_subclass__(cls) -> None:
        # Before `attrs` makes the class: its field becomes one of `Unchanging` items. A class with slots is made twice.
        if cls._items in get_annotations(cls) and "__attrs_attrs__" not in vars(cls):
            given = vars(cls).get(cls._items, attrs.NOTHING)
            own: Any = given if hasattr(given, "converter") else attrs.field(default=given)
            own.converter = attrs.converters.pipe(own.converter, Unchanging) if own.converter else Unchanging
            setattr(cls, cls._items, own)

    @property
    def _listed(self) -> Sequence[T]:
        items: Sequence[T] = getattr(self, self._items)
        return items

    def __iter__(self) -> Iterator[T]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, item: object) -> bool:
        """True if *item* is one of the items, or the id of one."""
        return any(item in (self._id(one), one) for one in self._listed)

    @overload
    def __getitem__(self, at: str | SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: str | SupportsIndex | slice) -> T | tuple[T, ...]:
        """
        Return the item with an id, or at a place (from 0; from -1 backwards); for a slice, the items there.

        Raises:
            KeyError: No item has that id.
            IndexError: There is no such place.
            TypeError: It is neither of these.
        """
        items = self._listed
        if isinstance(at, str):
            for one in items:
                if self._id(one) == at:
                    return one
            names = [name for one in items if (name := self._id(one))]
            near = suggest(at, names) if names and (len(names) <= _MOST_NAMED or nearest(at, names)) else ""
            from rubric.internals.guesses import item_cure  # noqa: PLC0415 - needed for errors alone

            raise KeyError(f"no {self._kind} {at!r} among {len(names)}{item_cure(self, at) or near}")
        if isinstance(at, slice):
            return tuple(items[at])
        if isinstance(at, bool) or not hasattr(at, "__index__"):
            raise TypeError(f"expected an id, a place or a slice, got {at!r}")
        if not -len(items) <= index(at) < len(items):
            raise IndexError(f"there is no {self._kind} at place {index(at)} among {len(items)}")
        return items[index(at)]
