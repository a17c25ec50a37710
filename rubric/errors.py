"""
Every exception that the library raises on purpose.

    RubricError
    ├── DefinitionError (ValueError)   a value that no rubric, candidate or judge can have
    │   └── CallError (TypeError)      arguments that a call does not take; the message has the call that works
    ├── LoadError (ValueError)         a document with problems, each with its place in the file
    ├── DumpError (ValueError)         a value that exists in code but cannot be written down
    ├── NoJudgeError (LookupError)     no judge was given and the environment names none
    ├── ModelError (RuntimeError)      a model that did not answer; raised by models, seen by drivers
    ├── ProtocolError (RuntimeError)   replies that a flow does not wait for; `.state` is that of the flow
    ├── StoreError (RuntimeError)      a reply store that cannot be opened, read or written
    ├── ClusterError (RuntimeError)    a cluster that was lost, or on which a shard cannot be graded
    └── UngradedError (RuntimeError)   something could not be judged; `.result` says what
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rubric.results.result import Ungraded
    from rubric.values.requests import Failure


class RubricError(Exception):
    """The parent of every error in this module."""


class DefinitionError(RubricError, ValueError):
    """
    A value that was refused at construction.

    The message names the field, the value, the allowed ones and the cure. With *field*, such as `"weight"` or
    `"criteria[2].id"`, a loader points at the line.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[type[DefinitionError], tuple[str, str]]:
        return type(self), (self.field, self.message)


class CallError(DefinitionError, TypeError):
    """Arguments that a call does not take, or lacks; the message has the call that works."""


@frozen
class Problem:
    """One fault of a document and its place: lines and columns count from 1, and are 0 in data that is no text."""

    source: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}:{self.column}: " if self.line else f"{self.source}: "
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class LoadError(RubricError, ValueError):
    """
    A document that holds no rubric, or no suite.

    `problems` lists every fault, in the order of the file; `format` is the format it was read as, empty if unknown;
    `remark` is the last line of the message, which names that format.
    """

    def __init__(self, problems: Sequence[Problem], format: str = "", remark: str = "") -> None:
        super().__init__("\n".join([*(str(problem) for problem in problems), *filter(None, [remark])]))
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
    Replies that a flow does not wait for: another number of them, another type, or after its end.

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
