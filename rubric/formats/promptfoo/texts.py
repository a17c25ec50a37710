"""
Values of a promptfoo configuration: shown as texts, filled with variables, followed to the files that they name.

A `rubricPrompt` becomes a template of ours. Its plain slots, such as `{{output}}` and `{{question}}`, stay slots: their
values are put in once, when a candidate is graded, and none of them is ever read as a template. Anything else is
rendered while loading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from attrs import field, frozen

from rubric import Choices, DefinitionError
from rubric.embed import Cursor, FrozenMap, fields, shorten, thaw
from rubric.formats.images import Attached, image_in, names_image
from rubric.formats.includes import is_code, is_reference, read_file_at, read_text_at
from rubric.formats.javascript_modules import is_javascript_file
from rubric.formats.json_values import each_text, javascript_data, javascript_number
from rubric.formats.keys import keys_of
from rubric.formats.promptfoo.functions import call_at, why_not
from rubric.formats.python import PythonTransform
from rubric.formats.templates.environment import show_environment
from rubric.formats.templates.render import is_template, names_in, render
from rubric.programs.javascript import Program

_PROVIDED = frozenset({"env", "output", "rubric", "context", "vars", "prompt"})
"""Names that promptfoo gives a template itself."""

_MINDED = re.compile(r"\{%|\bor\b|default|\bd\(")
"""How a template looks that minds whether a variable is there."""

_ENVIRONMENT = re.compile(r"\{\{-?\s*(?:process\.)?env\b")


def as_text(value: Any) -> str:
    """Return *value* as promptfoo shows it in a text: lists and mappings as JSON, nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return javascript_number(value)
    return compact(value)


def compact(value: Any) -> str:
    """Return *value* as JSON without white space, as JavaScript writes it."""
    return json.dumps(javascript_data(value), ensure_ascii=False, separators=(",", ":"), default=str)


def items_of(at: Cursor) -> Iterator[tuple[str, Cursor]]:
    """Yield the keys, as texts, and the values of a mapping."""
    return ((str(key), part) for key, part in at.items())


def values_in(at: Cursor, what: str) -> dict[str, Cursor]:
    """Return the values of a mapping, *what* is expected, by their keys as texts; nothing is an empty one."""
    return dict(items_of(at)) if at.value is not None and at.mapping(what) else {}


def list_items(at: Cursor, what: str) -> list[Cursor]:
    """Return the items of a list of *what*, none where nothing is; anything else is noted as an error."""
    return [] if at.value is None else at.listing(f"a list of {what}")


_INCLUDE = re.compile(
    r"(?P<raw>\{%-?\s*raw\b.*?(?:\bendraw\s*-?%\}|\Z))"
    r"|\{%(?P<left>-?)\s*include\s+(['\"])(?P<name>[^'\"\n]+)\3(?P<missing>\s+ignore\s+missing)?\s*(?P<right>-?)%\}",
    re.DOTALL,
)
_MOST_INCLUDED, _DEEPEST = 100, 8


def include_files(at: Cursor, text: str) -> str:
    """
    Return the template *text*, found at the cursor, with the texts of the files that it includes by their names.

    promptfoo looks for them in its working folder, which is that of the configuration here. A tag whose file is not
    within reach stays: what needs the template is ungraded.
    """
    return _include(at, text, count(), 0) if "include" in text else text


def _include(at: Cursor, text: str, taken: Iterator[int], depth: int) -> str:
    def show(tag: re.Match[str]) -> str:
        if tag["raw"] or depth >= _DEEPEST or next(taken) >= _MOST_INCLUDED:
            return tag[0]
        found = read_text_at(f"file://{tag['name']}", at, code=True, lacking=at.warn)
        if found is None and not tag["missing"]:
            return tag[0]
        # A condition that always holds leaves the white space around the tag as it was.
        inner = _include(at, found or "", taken, depth + 1)
        return f"{{%{tag['left']} if true %}}{inner}{{% endif {tag['right']}%}}"

    return _INCLUDE.sub(show, text)


def with_environment(at: Cursor, text: str) -> str:
    """Return *text*, found at the cursor, with declared environment variables in their places."""
    return show_environment(text, at) if _ENVIRONMENT.search(text) else text


def fill_slots(at: Cursor, text: str, variables: Mapping[str, Any]) -> str:
    """Return *text*, found at the cursor, with *variables* and declared environment variables in their places."""
    text = with_environment(at, include_files(at, text))
    if not is_template(text):
        return text
    if (plain := _fill_plain(text, variables)) is not None:
        return plain
    known = {*variables, *_PROVIDED}
    unknown = frozenset[str]() if _MINDED.search(text) else names_in(text, at.loading.filters) - known
    for name in sorted(name for name in unknown if not name.startswith("_")):
        hint = fields.suggest(name, [*variables]) if variables else ""
        at.warn(f"there is no variable {name!r}, so nothing stands in its place{hint}")
    return render(text, variables, filters=at.loading.filters)


_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
_MOST_SLOTS, _LONGEST = 8, 200_000


def _fill_plain(text: str, variables: Mapping[str, Any]) -> str | None:
    """Return *text* with its slots filled, where it has plain ones for texts and nothing else; else None."""
    # The straight path: a metered Jinja environment costs more than the rest of a case. Whatever Jinja would change
    # (line ends), compute, or refuse for its size goes the long way round.
    rest, count = _SLOT.subn("", text)
    if count > _MOST_SLOTS or "{" in rest or "}" in rest or "\r" in rest:
        return None
    names = {*_SLOT.findall(text)}
    if names & _WORDS or not all(isinstance(variables.get(name), str) for name in names):
        return None
    filled = _SLOT.sub(lambda match: variables[match[1]], text)
    return filled if len(filled) <= _LONGEST else None


# -- templates of assertions -------------------------------------------------------------------------------

_BUILT_IN = frozenset({"output", "rubric"})

_OURS = keys_of("promptfoo", "slots", "ours")
"""Slots of ours that promptfoo does not have: a variable of that name gets another name."""

SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_RAW_OR_PLAIN = re.compile(r"\{%\s*raw\s*%\}(.*?)(?:\{%\s*endraw\s*%\}|(\Z))|\{\{-?\s*([^\W\d]\w*)\s*-?\}\}", re.DOTALL)

_BOUND = re.compile(r"\{%-?\s*(?:for\s+([^%\s][^%]*?)\sin\s|set\s+([^=%\s][^=%]*)=)")
"""What a loop or a `set` gives a name to."""

_COMMENT = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


class UnsupportedPromptError(Exception):
    """A prompt that this library cannot send as it is meant; the text says what it needs."""


@frozen
class Slots:
    """The variables of a test, *extra* ones for its prompts, and *aliases* of our slots in a grader's own prompt."""

    variables: dict[str, Any]
    extra: dict[str, str] = field(factory=dict)
    aliases: Mapping[str, str] = {}

    def _slot_name(self, name: str) -> str:
        """Return the slot for the variable *name*, or for promptfoo's own of that name."""
        if name in _BUILT_IN or name not in _OURS:
            return name
        self.extra[f"vars.{name}"] = as_text(self.variables[name])
        return f"vars.{name}"

    def _verbatim(self, text: str) -> str:
        """Return *text* with a slot in the place of each part that looks like one."""

        def hold(part: re.Match[str]) -> str:
            held = (name for name, said in self.extra.items() if said == part[0] and name.startswith("verbatim."))
            name = next(held, f"verbatim.{len(self.extra)}")
            self.extra[name] = part[0]
            return f"{{{{ {name} }}}}"

        return SLOT.sub(hold, text)

    def fill(self, template: str) -> str:
        """Return *template* with only plain slots left in it."""
        whole, mark = as_text([template, self.variables]), "\ue000"
        while mark in whole:  # for private use, and nowhere in the texts
            mark += "\ue000"
        own = _bound(template)
        kept: list[str] = []

        def keep(match: re.Match[str]) -> str:
            raw, unended, name = match.groups()
            if unended is not None or name in own:
                return match[0]
            if raw is None and name in self.aliases and name not in self.variables:
                kept.append(f"{{{{ {self.aliases[name]} }}}}")
                return f"{mark}{len(kept) - 1}{mark}"
            if raw is None and name not in _BUILT_IN and name not in self.variables:
                return ""
            kept.append(self._verbatim(raw) if raw is not None else f"{{{{ {self._slot_name(name)} }}}}")
            return f"{mark}{len(kept) - 1}{mark}"

        held = _RAW_OR_PLAIN.sub(keep, template)
        if is_template(held):
            for name in _BUILT_IN & names_in(held):
                message = (
                    f"a template that computes with {name} is not read; only a plain {{{{ {name} }}}} is filled in"
                )
                raise DefinitionError("", message)
            held = self._verbatim(render(held, self.variables))
        return re.sub(f"{mark}(\\d+){mark}", lambda match: kept[int(match[1])], held)


def _bound(template: str) -> frozenset[str]:
    """Return the names that *template* itself gives to something: those are not slots."""
    found = (name for pair in _BOUND.findall(template) for part in pair for name in part.split(","))
    return frozenset(name.strip() for name in found if name.strip())


def template_of(at: Cursor, slots: Slots, images: Attached | None = None) -> str | None:
    """Return a `rubricPrompt` as a template of ours, whose images *images* takes; None where an error was noted."""
    found = _open(at, is_prompt=True)
    if found is None:
        return None
    messages = as_json_list(found.value) if isinstance(found.value, str) else found.value

    def whole(text: str) -> str:
        return with_environment(found, include_files(found, text))

    if messages is None and isinstance(found.value, str):
        return found.built(slots.fill, whole(found.value))

    def take(piece: Any) -> bool:
        image = image_in(piece) or ""
        if images is None or names_in(image) & _BUILT_IN:  # an image that the candidate names is known in the run alone
            return False
        shown = render(image, slots.variables) if is_template(image) else image
        return names_image(shown) and images.take(shown, found)

    return found.built(_of_messages, each_text(messages, whole), slots, take)


def raw_template_of(at: Cursor) -> str | None:
    """Return the `rubricPrompt` *at* as promptfoo's template, messages as JSON; None where an error was noted."""
    found = _open(at, is_prompt=True)
    if found is None:
        return None
    text = found.value if isinstance(found.value, str) else json.dumps(found.value, ensure_ascii=False)
    return found.built(lambda: with_environment(found, include_files(found, text)))


@frozen
class OverOutputs:
    """The prompt of a comparison whose *template* goes through the `outputs`, which are known in the run alone."""

    template: str
    variables: FrozenMap = field(converter=FrozenMap)

    def __call__(self, outputs: Sequence[str], criteria: str) -> str:
        """Return the prompt for *outputs*: a text, or messages as JSON; one that fails is a `DefinitionError`."""
        data = {**thaw(self.variables), "outputs": [*outputs], "criteria": criteria}
        messages = as_json_list(self.template)
        if messages is None:
            return render(self.template, data)
        return json.dumps(each_text(messages, lambda text: render(text, data)), ensure_ascii=False)


_MENU = re.compile(r"category\W{1,20}A\s*[/|,]\s*B\s*[/|,]\s*C\s*[/|,]\s*D\s*[/|,]\s*E\b")
_OFF_TOPIC = re.compile(r"\bE\W{1,5}(?:\w+\W+){0,3}?(?:irrelevant|unrelated|off.topic)", re.IGNORECASE)


def categories_of(template: str | None) -> Choices | None:
    """
    Return the categories A to E of factuality, if *template* asks for one of them instead of a score.

    A is a subset, B a superset and C the same as the reference; D contradicts it. E differs where it does not matter,
    unless the prompt calls it irrelevant.
    """
    if template is None or not _MENU.search(template):
        return None
    return Choices({"A": 1, "B": 1, "C": 1, "D": 0, "E": 0 if _OFF_TOPIC.search(template) else 1})


def _open(at: Cursor, *, is_prompt: bool) -> Cursor | None:
    """Return the file that *at* names, if it is a reference, else *at*; None if it could not be read."""
    if not is_reference(at.value):
        return at
    if is_code(at.value):
        return at.holding(_run_program(at, is_prompt=is_prompt))
    found = read_file_at(at.value, at, (".yaml", ".yml") if is_prompt else (".yaml", ".yml", ".json"))
    is_text = found is not None and found.notes is at.notes and (not is_prompt or at.value.endswith(".txt"))
    return at.holding(found.value.strip()) if found is not None and is_text else found


def _run_program(at: Cursor, *, is_prompt: bool) -> str | list[Any]:
    """Return the prompt that the JavaScript makes which *at* names, called without arguments."""
    if not is_prompt or not is_javascript_file(at.value):
        raise UnsupportedPromptError(f"code: {at.value}")
    if not (why := why_not(at.value)):
        prompt, failure = call_at(at.value, at, "")
        if prompt and isinstance(prompt, str | list):
            return prompt
        why = f"which returned {shorten(repr(prompt), 60)}, no text or list of messages"
        why = f"which failed ({shorten(failure, 160)})" if failure else why
    raise UnsupportedPromptError(f"code: {at.value}, {why}")


def as_json_list(text: str) -> list[Any] | None:
    """Return the JSON list that *text* is, with or without `//` comments in it; None for any other text."""
    if not text.lstrip().startswith("["):
        return None
    bare = _COMMENT.sub("", text)
    for attempt in (text, bare, bare.replace('\\\\"', '\\"')):
        try:
            found = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, list) and found and isinstance(found[0], dict) else None
    return None


def _of_messages(messages: Any, slots: Slots, take: Callable[[Any], bool]) -> str:
    if not isinstance(messages, list) or not messages:
        raise DefinitionError("", "expected a prompt: a text, or a list of messages with role and content")
    made = [_message(index, message, slots, take) for index, message in enumerate(messages)]
    return json.dumps(made, ensure_ascii=False)


def _message(index: int, message: Any, slots: Slots, take: Callable[[Any], bool]) -> dict[str, str]:
    role, content = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
    role = "system" if role == "developer" else role
    if role not in ("system", "user", "assistant") or not isinstance(content, str | list):
        allowed = "a message with a role (system, user, assistant) and a content"
        raise DefinitionError("", f"message {index + 1}: expected {allowed}, got {shorten(repr(message), 60)}")
    return {"role": role, "content": slots.fill(content if isinstance(content, str) else _join(content, take))}


def _join(content: list[Any], take: Callable[[Any], bool]) -> str:
    found: list[str] = []
    for piece in content:
        if isinstance(piece, dict) and piece.get("type") == "text" and isinstance(piece.get("text"), str):
            found.append(piece["text"])
        elif not take(piece):
            kind = piece.get("type") if isinstance(piece, dict) else piece
            raise UnsupportedPromptError(f"{shorten(str(kind), 40)} in its rubricPrompt")
    return "\n".join(found)


@frozen
class Context:
    """
    The test around assertions: its *slots*, grader, `rubricPrompt`, transforms and scores of `factuality`.

    *tools* are the `tools` and `functions` of its provider. *test* is what the cases have in common whose outputs are
    compared: those of one test and one set of variables.
    """

    slots: Slots
    provider: Cursor | None = None
    prompt: Cursor | None = None
    transforms: tuple[Program | PythonTransform, ...] = ()
    factuality: Mapping[str, Any] = {}
    tools: Mapping[str, Cursor] = {}
    test: str = ""


def content_of(at: Cursor, context: Context) -> Cursor | None:
    """Return the value with templates rendered, all the way down, in a file too; None if it was noted why not."""
    found = _open(at, is_prompt=False)
    if found is None:
        return None

    def fill_found() -> Cursor:
        return found.holding(each_text(found.value, lambda text: fill_slots(found, text, context.slots.variables)))

    return fill_found() if is_reference(at.value) else at.built(fill_found)


def value_of(at: Cursor, context: Context) -> Cursor | None:
    """Return the value of an assertion, or None; as in promptfoo, templates in mappings and files stay as written."""
    if isinstance(at.value, list):
        items = [value_of(item, context) if isinstance(item.value, str) else item for item in at]
        return None if None in items else at.holding([item.value for item in items if item is not None])
    if isinstance(at.value, str) and not is_reference(at.value):
        return content_of(at, context)
    found = _open(at, is_prompt=False)
    if found is not None and is_template(as_text(found.value)):
        at.warn("a template in a mapping, or in a file, is taken as it stands, as in promptfoo; write it as a text")
    return found
