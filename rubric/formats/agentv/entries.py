"""An entry of a list of graders, as it is read: its fields, and what it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from rubric.formats.agentv.scopes import THRESHOLD, Scope
from rubric.formats.documents import Path

__all__ = ["Entry", "Task"]

_ELSEWHERE = dict.fromkeys(("vars", "options", "input", "expected_output"), "it belongs to the test")


@frozen
class Task:
    """
    What the graders of a case share.

    Args:
        threshold: The score from which the case passes.
        criteria: What a good answer does, in the case's own words; for a grader that has none.
        borderline: The score from which a failed case is borderline.
    """

    threshold: float = THRESHOLD
    criteria: str = ""
    borderline: float | None = None


@frozen
class Entry:
    """
    A grader as a file has it.

    Args:
        kind: Its type, without `not-`.
        name: Of its own (`metric`, `name` or `id`), or its type.
        fields: All that it says.
        scope: Where it is read.
        path: Where it stands.
        task: What the graders of the case share.
    """

    kind: str
    name: str
    fields: Mapping[Any, Any]
    scope: Scope
    path: Path
    task: Task

    def at(self, key: Any) -> Path:
        """Return where the field *key* stands."""
        return (*self.path, key)

    def get(self, key: str) -> Any:
        """Return the field *key*; None where it is not given."""
        return self.fields.get(key)

    def warn(self, message: str, key: str = "") -> None:
        """Warn of the entry, or of its field *key*."""
        if key:
            self.scope.warn(self.at(key), message, key=True)
        else:
            self.scope.warn(self.path, f"{self.name}: {message}")

    def least(self) -> float | None:
        """Return the score that the grader itself asks for: `min_score` in (0, 1], or `threshold`."""
        for key in ("min_score", "threshold"):
            if self.get(key) is not None:
                score = self.scope.number(self.get(key), self.at(key), above=key == "min_score", high=1)
                return score or None
        return None

    def gate(self) -> float | None:
        """Return the score below which the case fails: `required`, with `min_score` or the case's threshold."""
        required = self.get("required")
        if isinstance(required, int | float) and not isinstance(required, bool) and not self.scope.is_current:
            return self.scope.number(required, self.at("required"), above=True, high=1)
        if required is None or not self.scope.flag(required, self.at("required")):
            return None
        return self.least() or self.task.threshold or None

    def check_keys(self, known: frozenset[str]) -> None:
        """Warn of fields that are not *known*."""
        for key in self.fields:
            if key not in known:
                self.scope.unknown(self.at(key), f"{self.kind} has no such field", known, _ELSEWHERE)
