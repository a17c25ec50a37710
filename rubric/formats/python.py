"""
Python in files of other systems: assertions of promptfoo and AgentV, as programs that a run must allow.

An assertion is an expression, a body with its own `return`, or `file://checks.py:function` (by default `get_assert`),
of `output` and `context`. It returns a bool; a number, which passes above 0 or from the threshold; or a mapping with
`pass`, `score` and `reason`. An error that it raises fails it, as in both systems.

It becomes a `Script`: a process of its own with a deadline, without keys in its environment, and only where the caller
allows scripts.
"""

from __future__ import annotations

import re
from typing import Any

from rubric.internals.frozen_map import thaw
from rubric.values.checks import Script

FUNCTION = "get_assert"
"""What a file's function is called unless its name follows a colon."""

_AS_DATA = re.compile(r"\boutput\s*(?:\.(?:get|items|keys|values)\(|\[\s*['\"])|\bin\s+output\.(?:keys|values|items)\b")
_FILE = re.compile(r"(?:file://)?(.+?\.py)(?::([^\W\d]\w*))?")

_WORKER = """
import contextlib, importlib.util, json, os, sys, textwrap

given = json.load(sys.stdin)
config = given["config"]
output = given["output"]
if config.get("data"):
    with contextlib.suppress(ValueError):
        output = json.loads(output)
context = {
    "prompt": given["question"], "vars": given["variables"], "test": {"vars": given["variables"]},
    "config": config.get("config"), "input": given["input"], "expected_output": given["expected_output"],
    "criteria": given["criteria"], "metadata": given["metadata"], "file_changes": given["file_changes"],
    "tool_calls": given["messages"][0]["tool_calls"],
}


def function():
    if "file" in config:
        path = os.path.abspath(config["file"])
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location("assertion", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, config["function"])
    code = config["code"]
    body = textwrap.indent(code, "    ") if chr(10) in code else "    return " + code
    names = {"json": json}
    exec("def main(output, context):" + chr(10) + body, names)
    return names["main"]


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def verdict(said):
    bar = config.get("threshold")
    if hasattr(said, "__dataclass_fields__"):
        said = dict(vars(said))
    if isinstance(said, str):
        said = {"true": True, "false": False}.get(said.strip().lower(), said)
    if isinstance(said, str):
        said = json.loads(said)
    if isinstance(said, bool):
        return said, None, ""
    if number(said):
        return (said > 0 if bar is None else said >= bar), said, ""
    passed = said.get("pass", said.get("pass_"))
    score = said.get("score", float(bool(passed)))
    if not isinstance(passed, bool) or not number(score):
        raise TypeError("expected pass (a bool) and score (a number)")
    return passed and (bar is None or score >= bar), score, str(said.get("reason") or "")


written = sys.stdout
try:
    with contextlib.redirect_stdout(sys.stderr):
        said = function()(output, context)
    try:
        passed, score, reason = verdict(said)
    except Exception:
        allowed = "expected a bool, a number, or {pass, score, reason}; it returned "
        raise ValueError(allowed + repr(said)[:200]) from None
    negate = bool(config.get("negate"))
    passed = passed != negate
    score = float(passed) if score is None else score
    if not 0 <= score <= 1:
        reason += " (its score {:g} is cut)".format(score)
    score = min(max(score, 0), 1)
except Exception as error:
    passed, score, reason = False, 0, "it raised {}: {}".format(type(error).__name__, error)
reason = reason.strip() or ("yes" if passed else "no")
json.dump({"pass": passed, "score": score, "reason": reason, "decides": True}, written)
"""


def named_file(value: str) -> tuple[str, str] | None:
    """Return the file and the function that *value* names, such as `file://checks.py:is_short`; None if it is code."""
    match = _FILE.fullmatch(value.strip())
    if match is None or not (value.strip().startswith("file://") or " " not in value.strip()):
        return None
    return match[1], match[2] or FUNCTION


def python_script(
    value: str, *, source: str = "", threshold: float | None = None, negate: bool = False, config: Any = None
) -> Script:
    """
    Return the program that decides as the Python of *value* does.

    Args:
        value: The code, or the name of its file, from the folder of the case's file.
        source: The text of that file; where it takes the output for data, JSON is read for it.
        threshold: The number from which it passes; None: above 0.
        negate: Whether its verdict is turned over.
        config: Of the assertion.
    """
    named = named_file(value)
    given: dict[str, Any] = {"code": value.strip("\n")} if named is None else {"file": named[0], "function": named[1]}
    given |= {"data": True} if _AS_DATA.search(source or value) else {}
    given |= {} if threshold is None else {"threshold": threshold}
    given |= {"negate": True} if negate else {}
    given |= {} if config is None else {"config": config}
    return Script(("python", "-c", _WORKER), config=given)


def is_python(script: Script) -> bool:
    """True if *script* is the program of a Python assertion."""
    return script.command == ("python", "-c", _WORKER)


def python_data(script: Script) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the assertion that `python_script` makes *script* of, and what else only our own format says of it."""
    given = thaw(script.config)
    named = "file" in given
    function = "" if given.get("function", FUNCTION) == FUNCTION else f":{given['function']}"
    value = f"file://{given['file']}{function}" if named else str(given["code"])
    data = {"type": "not-python" if given.get("negate") else "python", "value": value}
    data |= {key: given[key] for key in ("threshold", "config") if key in given}
    told = bool(given.get("data")) and not _AS_DATA.search(value)
    return data, {"data": True} if told else {}
