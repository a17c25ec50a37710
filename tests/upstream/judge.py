"""
A model for both sides: what it says stands in what it is shown, so that both are told the same.

A judge that is shown `[[pass=no; score=0.4]]` gives that verdict, in whatever form it was asked; `[[choice=B]]` picks,
and `[[flaw]]` gives a reply without a verdict. Without a mark its verdict is yes, with 1.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.servers import nonce_of, prompt_of

_MARK = re.compile(r"\[\[([^\[\]]*)\]\]")


def said_in(text: str) -> dict[str, str]:
    """Return the settings of the first mark in *text*."""
    found = _MARK.search(text)
    pairs = (part.partition("=") for part in (found[1].split(";") if found else ()))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def respond(body: dict[str, Any]) -> str:
    """Answer what a test asks, or give the verdict in its marks."""
    shown, said = prompt_of(body), said_in(prompt_of(body))
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if "flaw" in said:
        return "I cannot say."
    passed, score = said.get("pass", "yes") == "yes", float(said.get("score", said.get("pass", "yes") == "yes"))
    if schema is not None:
        nonce = nonce_of(body)
        found = _fitting(schema, {"passed": passed, "score": score, "choice": said.get("choice", "")})
        return json.dumps({**found, **({"nonce": nonce} if nonce else {})})
    if "ANSWER: A" in shown or "(A)" in shown or '"category"' in shown:
        return json.dumps({"category": said.get("choice", "C"), "reason": "so"})
    if "Y or N" in shown or '"Y"' in shown:
        return f"It is so.\n{'Y' if passed else 'N'}"
    if "JSON" in shown or "json" in shown:
        return json.dumps({"reason": "so", "score": score, "pass": passed})
    return "A short answer: Paris, 42, yes."


def _fitting(schema: dict[str, Any], said: dict[str, Any], name: str = "") -> Any:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _fitting(schema[key][0], said, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _picked([value for value in schema["enum"] if value is not None], said)
    match schema.get("type"):
        case "object":
            return {key: _fitting(inner, said, key) for key, inner in schema.get("properties", {}).items()}
        case "array":
            return [_fitting(item, said, name) for item in schema.get("prefixItems", ())]
        case "boolean":
            return said["passed"]
        case "integer":
            return round(said["score"] * schema.get("maximum", 1))
        case "number":
            return said["score"]
        case _:
            return "so"


def _picked(values: list[Any], said: dict[str, Any]) -> Any:
    """Return the one of *values* that is *said*: a choice, a flag, or the nearest of numbers."""
    if said["choice"] in values:
        return said["choice"]
    if all(isinstance(value, bool) for value in values):
        return said["passed"]
    numbers = [value for value in values if isinstance(value, int | float)]
    return min(numbers, key=lambda value: abs(value - said["score"] * max(numbers))) if numbers else values[0]
