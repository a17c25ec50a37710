"""Every exception that the library raises on purpose; docs/reference/errors.md has them as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from rubric.results.result import Ungraded
    from rubric.values.requests import Failure


@frozen
class _Argument:
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name}=" + ("" if self.value is None else repr(self.value).replace("Ellipsis", "..."))


class Wording(str):
    """
    A text that knows which arguments it names: `columns={'output': 'answer'}`, or `--column output=answer` in a shell.

    Args:
        parts: Texts and wordings; a tuple has several cures, and a door leaves out those whose arguments it lacks.
        arguments: What the text ends with. None leaves the value to the reader, `...` is an object of the program.
    """

    __slots__ = ("parts",)

    parts: list[str | _Argument | tuple[str, ...]]

    def __new__(cls, *parts: str | tuple[str, ...], **arguments: Any) -> Self:
        """Join *parts*; a wording among them gives its own parts."""
        own: list[str | _Argument | tuple[str, ...]] = []
        for part in parts:
            own += part.parts if isinstance(part, Wording) else [part]
        own += [_Argument(name, value) for name, value in arguments.items()]
        self = super().__new__(cls, "".join(" or ".join(one) if isinstance(one, tuple) else str(one) for one in own))
        self.parts = own
        return self

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Self:
        """Return those of *lines* that are not empty, one below the other."""
        return cls(*[part for line in lines if line for part in ("\n", line)][1:])

    def render(self, word: Callable[[str, Any], str]) -> str:
        """Return the text with the *word* for the name and value of each argument; "" if the door lacks it."""
        said = []
        for part in self.parts:
            if isinstance(part, _Argument):
                said.append(word(part.name, part.value) or str(part))
            elif isinstance(part, tuple):
                said.append(" or ".join(way.render(word) for way in map(Wording, part) if way.is_open(word)))
            else:
                said.append(part)
        return "".join(said)

    def is_open(self, word: Callable[[str, Any], str]) -> bool:
        """True if each argument has a *word*."""
        return all(word(part.name, part.value) for part in self.parts if isinstance(part, _Argument))


class RubricError(Exception):
    """The parent of every error that the library raises on purpose."""

    @property
    def text(self) -> Wording:
        """What is wrong, and the cure; its arguments are known."""
        first = self.args[0] if self.args else ""
        return first if isinstance(first, Wording) else Wording(str(self))


class DefinitionError(RubricError, ValueError):
    """
    A value that was refused at construction.

    The message names the field, the value, the allowed ones and the cure. With *field*, such as `"weight"` or
    `"criteria[2].id"`, a loader points at the line.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(Wording(f"{field}: " if field else "", message))
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[type[DefinitionError], tuple[str, str]]:
        return type(self), (self.field, self.message)


class CallError(DefinitionError, TypeError):
    """Arguments that a call does not take, or lacks; the message has the call that works."""


@frozen
class Problem:
    """One fault of a document and its place: lines and columns count from 1, and are 0 in data that is not text."""

    source: str
    line: int
    column: int
    path: str
    message: str

    @property
    def text(self) -> Wording:
        """Its place and its message."""
        where = f"{self.source}:{self.line}:{self.column}: " if self.line else f"{self.source}: "
        return Wording(f"{where}{self.path}: " if self.path else where, self.message)

    def __str__(self) -> str:
        return str(self.text)


class LoadError(RubricError, ValueError):
    """
    A document that holds no rubric, or no suite.

    `problems` lists every fault, in the order of the file; `format` is the format it was read as, empty if unknown;
    `remark` is the last line of the message, which names that format.
    """

    def __init__(self, problems: Sequence[Problem], format: str = "", remark: str = "") -> None:
        super().__init__(Wording.of_lines([*(problem.text for problem in problems), remark]))
        self.problems = tuple(problems)
        self.format = format
        self.remark = remark

    def __reduce__(self) -> tuple[type[LoadError], tuple[tuple[Problem, ...], str, str]]:
        return type(self), (self.problems, self.format, self.remark)


class DumpError(RubricError, ValueError):
    """A rubric that cannot be written down, such as one whose `when` is a Python function."""


class NoJudgeError(RubricError, LookupError):
    """No judge was given, and no API key in the environment names one."""


class ModelError(RubricError, RuntimeError):
    """A model that did not answer, with a typed `failure`. A model raises it; a driver retries or records it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure

    def __reduce__(self) -> tuple[type[ModelError], tuple[Failure]]:
        return type(self), (self.failure,)


class ProtocolError(RubricError, RuntimeError):
    """
    Replies that a flow does not expect: of another number or type, or after its end.

    `state` is that of the flow: `new`, `waiting`, `ended` or `closed`. The flow is left as it was.
    """

    def __init__(self, message: str, state: str) -> None:
        super().__init__(f"the flow is {state}: {message}")
        self.message = message
        self.state = state

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, str]]:
        return type(self), (self.message, self.state)


class StoreError(RubricError, RuntimeError):
    """A reply store that cannot be opened, read or written; the message names the file and the cure."""


class ClusterError(RubricError, RuntimeError):
    """A cluster that was lost, or on which a shard cannot be graded; paid replies are in the store folder."""


class UnreviewedWarning(UserWarning):
    """Unreviewed generated criteria grade a candidate; given once for each rubric."""

    @classmethod
    def of(cls, names: Sequence[str]) -> UnreviewedWarning:
        """Return the warning that the rubrics with these *names* were generated and not reviewed."""
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")  # noqa: PLR2004
        cure = "read the criteria, then write `reviewed: true`, or take `reviewed: false` out"
        return cls(f"unreviewed generated criteria: {shown}; {cure}")


class UngradedError(RubricError, RuntimeError):
    """
    Raised by `grade` when something could not be judged.

    `result` is the `Ungraded`: its bounds, its coverage and the typed failures.
    """

    def __init__(self, result: Ungraded) -> None:
        super().__init__(result.explain())
        self.result = result

    def __reduce__(self) -> tuple[type[UngradedError], tuple[Ungraded]]:
        return type(self), (self.result,)

    def __getattr__(self, name: str) -> Any:
        result = vars(self).get("result")
        where = f"; write error.result.{name}" if result is not None and hasattr(result, name) else ""
        raise AttributeError(f"'UngradedError' object has no attribute {name!r}{where}", name=name, obj=self)
