"""A judge for the local server: reads the form that a prompt asks for, and fills it in from a table by criterion text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.servers import prompt_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORM = re.compile(r"Answer with one JSON object: (\{.*\})")
_NONCE = re.compile(r'"nonce": "(\w+)"')
_KEYS = re.compile(r'"(\w+)": [<\["]')


class JudgeLike:
    """
    Answers like a model that obeys: by the text of the criterion, in the form that is asked for, with the nonce.

    Args:
        verdicts: What to say to a criterion with this text; unknown ones get *otherwise*.
        evidence: What to quote.
    """

    def __init__(self, verdicts: Mapping[str, Any], *, otherwise: Any = True, evidence: str = "") -> None:
        self.verdicts = verdicts
        self.otherwise = otherwise
        self.evidence = [evidence] if evidence else []

    def __call__(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        form = _FORM.findall(prompt)[-1]
        nonce = _NONCE.search(form)
        criteria = self._asked(prompt, many='"verdicts"' in form)
        seal = {"nonce": nonce[1]} if nonce else {}
        entries = [self._entry(id_, value, _KEYS.findall(form)) | seal for id_, value in criteria]
        return json.dumps({"verdicts": entries} if '"verdicts"' in form else entries[0])

    def _asked(self, prompt: str, *, many: bool) -> list[tuple[str, Any]]:
        """Return the id and the verdict of each criterion that the end of *prompt* asks about."""
        if many:
            found = re.findall(r'^Criterion "(.*?)":\n(.*)$', prompt, re.MULTILINE)
            return [(id_, self._say(text)) for id_, text in found]
        return [("", self._say(re.findall(r"^Criterion:\n(.*)$", prompt, re.MULTILINE)[-1]))]

    def _say(self, text: str) -> Any:
        return self.verdicts.get(text.strip(), self.otherwise)

    def _entry(self, id_: str, value: Any, keys: list[str]) -> dict[str, Any]:
        known = {"id": id_, "reason": "as the table says", "evidence": self.evidence, "pass": value is not False}
        return {key: known.get(key, value) for key in keys if key not in ("nonce", "verdicts")}
