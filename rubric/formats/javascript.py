"""
JavaScript in files of other systems: assertions and transforms, as promptfoo has them.

An assertion is a body with `output` and `context`, or a module that exports a function of both. It returns a boolean;
a number, which passes above 0 or from the threshold; or `{pass, score, reason}`. An error that it throws fails it. What
the engine lacks, or a limit that it meets, leaves its case ungraded: see `rubric.programs.javascript`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from attrs import evolve, field, frozen

from rubric import Candidate, Criterion, Holds
from rubric.driving import Failure
from rubric.embed import Check, Cursor, Decided, FrozenMap, decide, shorten, thaw
from rubric.formats.python import PythonTransform
from rubric.programs.javascript import EXTRA, UNDEFINED, JavaScriptError, Program, ThrownError, is_installed
from rubric.results import Scored, Unjudged
from rubric.values import Launcher

# -- from a text to a program ------------------------------------------------------------------------------

RETURNS = re.compile(r"\breturn\b")
"""Code that returns by itself; a line with it is a body for AgentV."""

_DECLARES = re.compile(r"(?:const|let|var)\s")
_RETURNS = re.compile(r"\s*return\b")
# Comments, texts and patterns, whose brackets and semicolons are none. One that nothing ends goes on to the end: each
# part is read once.
_QUOTED = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|'(?:\\.?|[^'\\])*(?:'|\Z)|"(?:\\.?|[^"\\])*(?:"|\Z)|`(?:\\.?|[^`\\])*(?:`|\Z)"""
    r"""|(?<=[(,=:\[!&|?{};])\s*/(?![/*])(?:\\.?|\[(?:\\.?|[^\]\\])*(?:\]|\Z)|[^/\\\n\[])+(?:/|\Z)""",
    re.DOTALL,
)


def inline(code: str) -> Program:
    """
    Return the program of *code* in a file: one line is an expression, several are a body with its own `return`.

    One line that begins with a declaration returns what follows its last statement; one that returns is a body.
    """
    code = code.rstrip()
    if "\n" in code or _RETURNS.match(code):
        return Program(code)
    line = code.strip().rstrip("; \t")
    if not _DECLARES.match(line):
        return Program(f"return {line}")
    last = _last_semicolon(line)
    return Program(f"{line[: last + 1]} return {line[last + 1 :].strip()}" if last >= 0 else line)


def _last_semicolon(line: str) -> int:
    """Return the place of the last semicolon that ends a statement of the line itself; -1 if there is none."""
    bare, depth, last = _QUOTED.sub(lambda match: "_" * len(match[0]), line), 0, -1
    for index, letter in enumerate(bare):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ";" and not depth:
            last = index
    return last


def tell_engine(at: Cursor) -> None:
    """Say once that JavaScript needs an engine, if there is none; a run that has one can grade what was loaded."""
    if not is_installed():
        at.once(f"JavaScript needs an engine, so what it decides is not graded here; {EXTRA}")


# -- what a program is given -------------------------------------------------------------------------------

_FIRST = re.compile(r"\bfunction\b[^({]*\(\s*([\w$]+)|\(\s*([\w$]+)\s*(?:[,:][^()]*)?\)\s*(?::[^=;]*)?=>|([\w$]+)\s*=>")
"""The first parameter of a function: in a module, that of what is exported is the output, whatever it is called."""


@lru_cache(1024)
def _looks_at(program: Program) -> tuple[bool, bool, frozenset[str]]:
    """Return if *program* parses its output, if it takes it for data, and the keys of it that it asks for."""
    body = program.body.partition("const $cache = new Map();")[0]  # without the loader of modules
    found = _FIRST.findall(body) if program.module else ()
    name = "(?:" + "|".join(map(re.escape, sorted({"output", *(one for each in found for one in each if one)}))) + ")"
    as_data = (
        rf"(?<![\w$.]){name}\s*(?:\?\.)?\[|=\s*{name}\s*(?:;|$)|Array\.isArray\(\s*{name}\s*\)"
        rf"|Object\.(?:keys|values|entries)\(\s*{name}\s*\)|\bin\s+{name}\b|\bof\s+{name}\b"
        rf"|(?<![\w$.]){name}\??\.(?:map|filter|some|every|find|findIndex|forEach|reduce|flatMap|hasOwnProperty)\("
    )
    as_data += "" if program.module else r"|\((?:\s*)output\s*\)\s*=>"
    keys = re.findall(rf"(?<![\w$.]){name}\??\.([\w$]+)", body)
    parses = re.search(rf"JSON\.parse\(\s*{name}\s*\)", body) is not None
    return parses, re.search(as_data, body) is not None, frozenset(keys)


_LONGEST_PARSED = 1_000_000


def output_for(program: Program | PythonTransform, candidate: Candidate) -> Any:
    """
    Return what *program* is given as `output`: the text, or the data that it is.

    For promptfoo the target says which; here the text is JSON data where the program takes it for that: it asks for
    one of its keys or items. A candidate without a text is its tool calls, in OpenAI's form.
    """
    text = candidate.output
    if not text.strip() and candidate.tool_calls:
        functions = [{"name": c.name, "arguments": json.dumps(thaw(c.arguments))} for c in candidate.tool_calls]
        return [{"type": "function", "function": function} for function in functions]
    if not isinstance(program, Program):
        return text
    if not text.lstrip().startswith(("{", "[")) or len(text) > _LONGEST_PARSED:
        return text
    parses, takes_data, keys = _looks_at(program)
    if parses:
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return data if takes_data or (isinstance(data, dict) and keys.intersection(data)) else text


@frozen
class JavaScript:
    """A function for `Holds`: `javascript` that passes from *threshold* on (None: above 0); *negate* turns it over."""

    source: str = field(eq=False)
    program: Program = field()
    variables: FrozenMap = field(default=FrozenMap(), converter=FrozenMap)
    config: FrozenMap | None = None
    threshold: float | None = None
    negate: bool = False

    @property
    def __name__(self) -> str:
        return shorten(f"{'not-' if self.negate else ''}javascript: {self.source}", 80)

    @property
    def lacks(self) -> str:
        """What must be installed before it can decide; empty where it is."""
        return "" if is_installed() else EXTRA

    def __call__(self, candidate: Candidate) -> Decided:
        """Return its verdict on *candidate*."""
        return self.decide(output_for(self.program, candidate), candidate)

    def decide(self, output: Any, candidate: Candidate) -> Decided:
        """Return its verdict on *output*, which a transform may have made of *candidate*."""
        try:
            said = self.program.run(output, context_of(candidate, self.variables, self.config))
        except ThrownError as error:
            return Decided(0.0, reason=f"{self.__name__} threw {shorten(str(error), 200)}", passed=False)
        return self._decide(said)

    def _decide(self, said: Any) -> Decided:
        given = said.get("reason") if isinstance(said, dict) else None
        reason = shorten(given, 400) if isinstance(given, str) else ""
        found = said.get("pass") if isinstance(said, dict) else said
        score = said.get("score", float(found)) if isinstance(said, dict) and isinstance(found, bool) else found
        if said is UNDEFINED or not isinstance(score, bool | int | float) or isinstance(found, str):
            what = "nothing that is a value" if said is UNDEFINED else shorten(json.dumps(said), 80)
            allowed = "expected a boolean, a number, or {pass, score, reason}"
            return Decided(0.0, reason=f"{self.__name__} returned {what}; {allowed}", passed=False)
        if isinstance(found, bool):
            passed = found != self.negate
        else:
            passed = (score > 0 if self.threshold is None else score >= self.threshold) != self.negate
        if isinstance(said, bool):
            score = passed
        cut = min(max(float(score), 0.0), 1.0)
        if cut != score:  # a number of the author's own making, such as a length, is told and cut, not refused
            reason = f"{reason or self.__name__} (its score {float(score):g} is cut to {cut:g})"
        return Decided(cut, reason=reason or f"{self.__name__}: {'yes' if passed else 'no'}", passed=passed)


_UNKNOWN = (
    "provider",
    "trace",
    *(f"test.{key}" for key in ("assert", "description", "metadata", "options", "provider")),
)
"""What promptfoo's context has besides: code that asks for it is not run to its end, and its case is ungraded."""


def context_of(candidate: Candidate, variables: FrozenMap, config: FrozenMap | None) -> dict[str, Any]:
    """Return what a program is given as `context`, under promptfoo's names and AgentV's."""
    asked = [{"role": message.role, "content": message.content} for message in candidate.messages]
    expected = [{"role": "assistant", "content": candidate.reference}] if candidate.reference else []
    shown = {**thaw(candidate.variables), **thaw(variables)}
    return {
        "prompt": candidate.input or (json.dumps(asked, ensure_ascii=False) if asked else ""),
        "vars": shown,
        "test": {"vars": shown},
        "config": None if config is None else thaw(config),
        "providerResponse": {"output": candidate.output},
        "metadata": {},
        "input": asked or [{"role": "user", "content": candidate.input}],
        "expectedOutput": expected,
        "criteria": candidate.context,
        "$unknown": _UNKNOWN,
    }


# -- transforms --------------------------------------------------------------------------------------------


@frozen
class Transform(Launcher):
    """
    A function for `Criterion.on`: the candidate with what *programs*, one after the other, make of its output.

    The first *shared* of them are the test's. A program *context* makes the context, of the output before them. A judge
    sees *images* besides those of the candidate.
    """

    programs: tuple[Program | PythonTransform, ...]
    variables: FrozenMap = field(default=FrozenMap(), converter=FrozenMap)
    shared: int = field(default=0, eq=False)
    context: Program | PythonTransform | None = None
    images: tuple[str, ...] = ()

    @property
    def __name__(self) -> str:
        if self.images and not (self.programs or self.context):
            return "the output beside the images of the prompt"
        return "the output after a transform" if self.programs else "a context made of the output"

    @property
    def scripts(self) -> Sequence[str]:
        """The programs among them that only a run which allows it may start."""
        return [one.reference for one in (*self.programs, self.context) if isinstance(one, PythonTransform)]

    def value(self, candidate: Candidate) -> Any:
        """Return what the programs make of the output: a text, or data; raise `JavaScriptError`, or what they throw."""
        value: Any = candidate.output
        for number, program in enumerate(self.programs):
            given = value if number else output_for(program, candidate)
            value = program.run(given, context_of(candidate, self.variables, None))
            if value is UNDEFINED or value is None:
                raise JavaScriptError("the transform made nothing of the output")
        return value

    def __call__(self, candidate: Candidate) -> Candidate:
        """Return the candidate that is judged."""
        images = [*dict.fromkeys((*candidate.images, *self.images))]
        changed = evolve(candidate, output=as_output(self.value(candidate)), images=images)
        if self.context is None:
            return changed
        made = self.context.run(output_for(self.context, candidate), context_of(candidate, self.variables, None))
        if not isinstance(made, str) or not made:
            raise JavaScriptError("the contextTransform made no text; it must return one")
        return evolve(changed, context=made)

    def remainder(self) -> Transform | None:
        """Return what is left to do for an output that went through the test's transforms already."""
        own = self.programs[self.shared :]
        return evolve(self, programs=own, shared=0) if own or self.context is not None or self.images else None


def as_output(value: Any) -> str:
    """Return what a program made, *value*, as the text of an output: data as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@frozen
class Transformed(Launcher):
    """A function for `Holds`: a *check* of what a *transform* makes of the output."""

    check: Check
    transform: Transform

    @property
    def __name__(self) -> str:
        return f"{self.check}, after a transform"

    @property
    def scripts(self) -> Sequence[str]:
        """The programs of the transform that only a run which allows it may start."""
        return self.transform.scripts

    def __call__(self, candidate: Candidate) -> Decided | Failure:
        """Return the verdict of the check, or why it has none."""
        value = self.transform.value(candidate)
        changed = evolve(candidate, output=as_output(value))
        if isinstance(self.check, Holds) and isinstance(self.check.function, JavaScript):
            return self.check.function.decide(value, changed)
        finding = decide(Criterion(str(self.check), id="transformed", answer=self.check), changed)
        if isinstance(finding, Unjudged):
            return finding.failure
        if not isinstance(finding, Scored):
            raise JavaScriptError(getattr(finding, "reason", "") or "the check could not be decided")
        return Decided(finding.score, reason=finding.reason, passed=finding.flag)

    def remainder(self) -> Check | Transformed:
        """Return what is left to check of an output that went through the test's transforms already."""
        left = self.transform.remainder()
        return self.check if left is None else evolve(self, transform=left)
