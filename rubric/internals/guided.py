"""
Answer wrong guesses at the API with the call that works: unknown attributes, arguments that do not fit.

This is the hook alone, which every value and function has. The names that people try, and the calls that they meant,
are in `rubric.internals.guesses` and `wrong_calls`, which are loaded by the first wrong guess.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Coroutine, Mapping
from functools import partial, update_wrapper, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from attrs.exceptions import FrozenInstanceError

from rubric.errors import CallError, DefinitionError, RubricError

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
K = TypeVar("K", bound=type)


class UnknownAttributeError(AttributeError):
    """An attribute that a class of ours lacks; the message is made when it is read, so `hasattr` stays quick."""

    def __init__(self, kind: type, attribute: str, value: object = None) -> None:
        super().__init__(kind, attribute)
        self.kind = kind
        self.attribute = attribute
        self._value = value

    def __reduce__(self) -> tuple[type[Self], tuple[type, str]]:
        return type(self), (self.kind, self.attribute)  # the value may hold what has no pickle

    def __str__(self) -> str:
        from rubric.internals.guesses import attribute_cure  # noqa: PLC0415 - needed for errors alone

        cure = attribute_cure(self.kind, self.attribute, self._value)
        return f"{self.kind.__name__!r} object has no attribute {self.attribute!r}{cure}"


class UnchangeableError(FrozenInstanceError):
    """An attribute that was set on a value that never changes."""

    def __init__(self, kind: type, attribute: str, given: str = "...", of: str = "id") -> None:
        AttributeError.__init__(self, kind, attribute, given, of)  # the class between takes no arguments
        self.kind = kind
        self.attribute = attribute

    def __str__(self) -> str:
        from rubric.internals.guesses import change_cure  # noqa: PLC0415 - needed for errors alone

        return f"a {self.kind.__name__} never changes; make a new one: {change_cure(*self.args)}"


class GuidedType(type):
    """The type of classes whose unknown class attributes, such as `Rubric.load_yaml`, are answered as well."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> object:
            if name.startswith("__get_pydantic_"):  # what a field of a model asks of its class
                return partial(getattr(import_module("rubric.integrations.pydantic"), name.strip("_")), cls)
            if name.startswith("_"):
                raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
            raise UnknownAttributeError(cls, name)


class Guided(metaclass=GuidedType):
    """Gives a class the hook: an unknown attribute is answered with the one that was meant."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            # An attribute that the class has is one whose own code raised, or a slot that is not filled yet.
            if name.startswith("_") or hasattr(type(self), name):
                return object.__getattribute__(self, name)
            raise UnknownAttributeError(type(self), name, self) from None  # of attrs' own look-up

        __invert__, __and__, __or__ = (
            lambda *values, word=word: import_module("rubric.internals.wrong_calls").refuse_operator(word, *values)
            for word in ("not", "and", "or")
        )


class GuidedABC(GuidedType, ABCMeta):
    """The type of classes with an abstract base, such as a sequence."""


@overload
def guided(function: F) -> F: ...
@overload
def guided(*, waits_for: Callable[P, Coroutine[Any, Any, T]]) -> Callable[[Callable[..., Any]], Callable[P, T]]: ...
def guided(function: Any = None, *, waits_for: Any = None) -> Any:
    """
    Return *function*, or an attrs class, with the hook: wrong arguments are answered with the call that works.

    With *waits_for*, a decorator: the function, which returns a call of that coroutine, waits for it. Editors read
    its parameters from the call in its body.
    """
    if waits_for is not None:
        return partial(_waiting, waits_for)
    return guided_class(function) if isinstance(function, type) else _hook(function)


def _hook(function: F) -> F:
    switches = frozenset(name for name, default in (function.__kwdefaults__ or {}).items() if isinstance(default, bool))

    if iscoroutinefunction(function):

        async def acall(*args: Any, **named: Any) -> Any:
            try:
                _check_switches(switches, named)
                return await function(*args, **named)
            except (TypeError, RubricError) as error:
                raise _answer(function, args, named, error)  # noqa: B904 - it is the same error

        return cast("F", update_wrapper(acall, function))

    def call(*args: Any, **named: Any) -> Any:
        __tracebackhide__ = True  # of pytest's reports, as in `assert_grade`
        try:
            _check_switches(switches, named)
            return function(*args, **named)
        except (TypeError, RubricError) as error:
            raise _answer(function, args, named, error)  # noqa: B904 - as above

    return cast("F", update_wrapper(call, function))


def _waiting(coroutine: Callable[..., Coroutine[Any, Any, Any]], documented: Callable[..., Any]) -> Any:
    """Return *documented* as the function that runs *coroutine* on the background loop, with its parameters."""

    @wraps(coroutine)
    def run(*args: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        from rubric.internals import background_loop  # noqa: PLC0415 - values need no loop

        try:
            return background_loop.run(documented(*args, **named))
        except CallError as error:  # it has the name of *coroutine*, which nobody typed
            said, call, line = error.message.partition("there is a call for it; ")  # the one that is awaited
            said = said.replace("await ", "").replace(f"{coroutine.__name__}(", f"{documented.__name__}(") + call + line
            field = documented.__name__ if error.field == coroutine.__name__ else error.field
            raise CallError(field, said) from None
        except RubricError as error:
            raise _without_frames(error)  # noqa: B904 - it is the same error

    run.__name__, run.__qualname__, run.__doc__ = documented.__name__, documented.__qualname__, documented.__doc__
    return run


def _answer(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: TypeError | RubricError
) -> RubricError:
    """Return the error to raise for *error*; raise a `TypeError` that is the function's own."""
    if not isinstance(error, RubricError):
        try:
            _again(function, args, named, error)
        except RubricError as found:
            return _without_frames(found)
        raise error
    if type(error) is DefinitionError:
        from rubric.internals.wrong_calls import order_error  # noqa: PLC0415 - needed for errors alone

        error = order_error(function, args, named, error) or error
    return _without_frames(error)


def _without_frames(error: RubricError) -> RubricError:
    """Return *error* without the frames below: its message names the argument, and the caller knows the line."""
    error.__suppress_context__ |= isinstance(error.__context__, TypeError)  # that of the call, which the error explains
    return error.with_traceback(None)


def _check_switches(names: frozenset[str], given: Mapping[str, Any]) -> None:
    """Refuse a text or a number for an option that is True or False: any text but an empty one would turn it on."""
    for name in names & given.keys():
        if isinstance(given[name], str | bytes | int | float) and not isinstance(given[name], bool):
            raise DefinitionError(name, f"expected True or False, got {given[name]!r}")


_IN_LOOPS = frozenset({"band", "derive", "fits", "gate_of", "is_kin", "is_sealed", "nearest", "place", "policy"})
"""Methods that grading calls for each event, candidate or finding; the hook would take as long as they do."""


def guided_methods(kind: K) -> K:
    """Give each public method of *kind* the hook; those of its bases keep what they have."""
    for name in [name for name in vars(kind) if name[0] != "_" and name not in _IN_LOOPS]:
        each = vars(kind)[name]
        function = each.__func__ if isinstance(each, classmethod | staticmethod) else each
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            hooked = guided(function)
            setattr(kind, name, hooked if function is each else type(each)(hooked))
    return kind


def guided_init(kind: K) -> K:
    """Give the constructor of *kind* the hook."""
    of: Any = kind  # the method is that of this very class
    made: Callable[..., None] = of.__init__

    @wraps(made)
    def __init__(self: object, *args: Any, **named: Any) -> None:  # noqa: N807 - it becomes a method
        try:
            return made(self, *args, **named)
        except (TypeError, DefinitionError) as error:
            try:
                args, named = _again(made, (self, *args), named, error)
            except DefinitionError as found:
                raise _without_frames(found) from None
        return made(*args, **named)

    of.__init__ = __init__
    return kind


def guided_class(kind: K) -> K:
    """Give the constructor and methods of *kind*, an attrs class, the hook, and changes of fields a cure."""
    of: Any = guided_init(guided_methods(kind))

    def refuse_change(self: object, name: str, *given: object) -> None:
        from rubric.internals.guesses import source_of  # noqa: PLC0415 - needed for errors alone

        value = source_of(name, given[0]) if given else "..."  # it is set, or deleted
        raise UnchangeableError(type(self), name, value, getattr(self, "id", "id"))

    of.__setattr__ = of.__delattr__ = refuse_change  # as attrs does, with a cure
    return kind


def _again(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: TypeError | DefinitionError
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that were meant; raise *error* if it is the function's own, else one with the cure."""
    began = error.__traceback__ is None or error.__traceback__.tb_next is not None  # else the arguments did not fit
    if isinstance(error, TypeError) and began:
        raise error
    from rubric.internals.wrong_calls import answer_call  # noqa: PLC0415 - needed for errors alone

    return answer_call(function, args, named, error)
