"""
What was sent to a vendor's batch API, in a small JSON file: so nothing is sent again after a crash or a reboot.

A batch is written down before it is created, with a mark by which it is found if nobody lived to hear its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import define, field

from rubric.errors import DefinitionError
from rubric.replacing import replacing

__all__ = ["BatchList", "Sent"]

_FORMAT = 1


@define
class Sent:
    """A batch that was sent: the *mark* it is found by, its *id* once that is known, the *keys* of its requests."""

    mark: str
    id: str
    keys: list[str]


@define
class BatchList:
    """
    The batches that were sent, and are in the file at *path*.

    Args:
        sent: In the order in which they were.
    """

    path: Path
    sent: list[Sent] = field(factory=list)

    @classmethod
    def read(cls, path: Path) -> BatchList:
        """
        Return what *path* holds; nothing, if there is no such file yet.

        Raises:
            DefinitionError: It holds something else.
        """
        try:
            data = json.loads(path.read_text("utf-8"))
            found = [Sent(str(one["mark"]), str(one["id"]), list(one["keys"])) for one in data["batches"]]
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _no_list(path) from None
        if data.get("format") != _FORMAT:
            raise _no_list(path)
        return cls(path, found)

    def write(self) -> None:
        """Replace the file as a whole, so that there is no half of it."""
        batches = [{"mark": one.mark, "id": one.id, "keys": one.keys} for one in self.sent if one.keys]
        with replacing(self.path) as file:
            json.dump({"format": _FORMAT, "batches": batches}, file)

    def keys(self) -> set[str]:
        """Return the keys of all requests that were sent."""
        return {key for one in self.sent for key in one.keys}

    def forget(self, keys: Iterable[str]) -> None:
        """Strike out *keys*, which got no reply, so that they are sent again."""
        gone = {*keys}
        if not gone:
            return
        for one in self.sent:
            one.keys = [key for key in one.keys if key not in gone]
        self.sent = [one for one in self.sent if one.keys]
        self.write()


def _no_list(path: Path) -> DefinitionError:
    return DefinitionError("path", f"{path} is no list of batches; name another file")
