"""
The columns of promptfoo's table: prompts, the providers that answer them, and what both come to for one test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, frozen

from rubric import DefinitionError, Message
from rubric.embed import Cursor, LackingError, shorten
from rubric.formats.assertions.texts import yaml_of
from rubric.formats.images import Attached, image_in, names_image
from rubric.formats.includes import expand_at, follow, is_code, is_pattern, is_reference, may_be_read, read_file_at
from rubric.formats.javascript_files import FileProgram
from rubric.formats.javascript_modules import is_javascript_file
from rubric.formats.json_values import each_text
from rubric.formats.keys import keys_of, part_of
from rubric.formats.promptfoo.functions import function_at, why_not
from rubric.formats.promptfoo.tests import Test
from rubric.formats.promptfoo.texts import (
    as_json_list,
    as_text,
    compact,
    fill_slots,
    include_files,
    items_of,
    list_items,
    with_environment,
)
from rubric.formats.providers import DATA, fields_of
from rubric.formats.python import executable, is_python_file, python_script_file
from rubric.formats.templates.render import is_template, names_in
from rubric.programs.javascript import JavaScriptError, ThrownError
from rubric.programs.processes import Executable, ProgramError, PythonFunction

_PROMPT_FILE = re.compile(r"[^\s{}]+\.(?:txt|json|jsonl|ya?ml|md|j2|csv|[cm]?[jt]s|py)(?::\w+)?")
_YAML_CHAT = re.compile(r"\s*-\s+role:")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)


@frozen
class Prompt:
    """
    A prompt: its *template*, and what it is called.

    *missing* says what this library lacks to show it, a file or a conversation: its cases are ungraded. One that code
    makes which could not be run is empty, and *unmade* says why: what answers it is graded all the same. One that
    *is_continued* shows the turns before, under the name `CONVERSATION`. *names* are what a provider's `prompts` may
    call it, besides its label: the label of all that its file has, and its id. A *program* makes the template of a
    case, and is given *config*, see `made_for`.
    """

    template: str
    label: str
    at: Cursor
    missing: str = ""
    unmade: str = ""
    names: tuple[str, ...] = ()
    is_continued: bool = False
    program: FileProgram | PythonFunction | Executable | None = None
    config: Mapping[str, Any] = {}


CONVERSATION = "promptfoo_conversation"
"""Our name for promptfoo's variable `_conversation`: no template shows a name with an underscore before it."""

_TURNS = "_conversation"

_TAG = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)
"""A tag; one that does not end goes on to the end of the text, so that each part is read once."""


@frozen
class Asked:
    """The input of a target: a text, or the messages of a chat, and their images; *lacks* names one that is missing."""

    input: str = ""
    messages: tuple[Message, ...] = ()
    images: tuple[str, ...] = ()
    lacks: str = ""

    @property
    def text(self) -> str:
        """All of it as one text: the input, or the messages as JSON."""
        if not self.messages:
            return self.input
        return compact([{"role": m.role, "content": m.content} for m in self.messages])


def prompts_of(at: Cursor | None) -> list[Prompt]:
    """Return the prompts of the configuration, in order; one that cannot be read is noted."""
    if at is None:
        return []
    if isinstance(at.value, str):
        found = _of_text(at, "")
    elif isinstance(at.value, dict):
        found = [p for name, label in items_of(at) for p in _of_text(label.holding(name), as_text(label.value))]
    else:
        items = ((item, item.under("config").value) for item in list_items(at, "prompts"))
        found = [evolve(p, names=_names(item), config=config) for item, config in items for p in _of_item(item)]
    return [evolve(_note_lacks(p), label=p.label or f"prompt-{n}") for n, p in enumerate(found, 1)]


def _names(item: Cursor) -> tuple[str, ...]:
    found = item.value if isinstance(item.value, dict) else {"id": as_text(item.value).removeprefix("file://")}
    return tuple(as_text(found[key]) for key in ("label", "id") if found.get(key))


def _note_lacks(prompt: Prompt) -> Prompt:
    """Return *prompt* with what the load lacks to show it: an environment variable, or a filter that is code."""
    template = _TAG.sub(lambda tag: re.sub(r"\b_conversation\b", CONVERSATION, tag[0]), prompt.template)
    prompt, at = (
        evolve(prompt, template=template, is_continued=prompt.is_continued or template != prompt.template),
        prompt.at,
    )

    def look(text: str) -> None:
        shown = with_environment(at, include_files(at, text))
        try:
            names_in(shown, at.loading.filters)
        except LackingError as lack:
            at.error(lack)
        except DefinitionError:
            return  # noted when it is asked

    if not is_template(prompt.template):
        return prompt
    with at.notes.lacking() as lacks:
        messages = as_json_list(prompt.template) or _as_yaml_list(prompt.template)
        each_text(prompt.template if messages is None else messages, look)
    return evolve(prompt, missing=f"a prompt with {lacks[0]}") if lacks else prompt


def _of_item(at: Cursor) -> list[Prompt]:
    if isinstance(at.value, str):
        return _of_text(at, "")
    if not at.mapping("a prompt: a text, or a mapping with raw and label"):
        return []
    at.reads(**part_of("promptfoo", "prompt"))
    label = as_text(at.value.get("label") or at.value.get("display"))
    raw = at.find("raw", "template")
    if raw is not None:
        text = raw.text("the text of a prompt")
        return [] if text is None else _of_text(raw, label or as_text(at.value.get("id")))
    source = at.find("id")
    if source is None or source.text("the file of a prompt") is None:
        if source is None and not at.has("function"):
            at.error("a prompt has a text; write it as `raw`")
        return [Prompt("", label, at, unmade="a function makes its prompt, which no file holds")]
    return _of_text(source, label)


def _of_text(at: Cursor, label: str) -> list[Prompt]:
    """Return the prompts of a text: itself, or those in the files that it names."""
    text = at.value
    if text.startswith("exec:"):
        return [_of_code(at, text, label)]
    if not is_reference(text) and not _PROMPT_FILE.fullmatch(text):
        return [Prompt(text, label, at)]
    name = text.removeprefix("file://")
    if is_code(name) and not is_pattern(name):
        return [_of_code(at, name, label)]
    return [prompt for file in expand_at(at, ("**/*.*",)) for prompt in _of_file(file, label)]


def _of_file(at: Cursor, label: str) -> list[Prompt]:
    name = PurePosixPath(at.value.removeprefix("file://"))
    label = label or name.name
    if is_code(name.name):
        return [_of_code(at, str(name), label)]
    before = at.notes.failures
    whole = read_file_at(at.value, at, (".yaml", ".yml", ".csv", ".jsonl"), at.warn)
    if whole is None:
        missing = f"a prompt in a file ({shorten(str(name), 80)}) that is not within reach"
        return [] if at.notes.failures > before else [Prompt("", label, at, missing)]
    if name.suffix in (".yaml", ".yml"):
        return [Prompt(as_text(whole.value), label, whole)]
    if whole.notes is not at.notes:
        rows = list_items(whole, "prompts")
        return [_of_row(row, _label(label, n, len(rows))) for n, row in enumerate(rows, 1)]
    text = whole.value
    pieces = [piece.strip() for piece in _SEPARATOR.split(text)] if name.suffix == ".txt" else [text]
    kept = [piece for piece in pieces if piece]
    return [Prompt(piece, _label(label, n, len(kept)), at) for n, piece in enumerate(kept, 1)]


_COMMANDS = re.compile(r"\.(?:sh|bash|exe|bat|cmd|ps1|rb|pl)$")


def _of_code(at: Cursor, name: str, label: str) -> Prompt:
    """Return the prompt that a program makes; where it cannot be run, given outputs are graded all the same."""
    label, words = label or name, name.removeprefix("exec:")
    is_command = words != name or _COMMANDS.search(name) is not None
    program: FileProgram | PythonFunction | Executable | None = None
    why = why_not(name, command=is_command)
    try:
        if is_command:
            program = executable(words if words != name else f"./{name}", at)
        elif is_python_file(name) and name.endswith(".py"):
            program = python_script_file(name, at)
        elif is_python_file(name) or not why:
            program = function_at(name, at, "")
    except DefinitionError as problem:
        if not is_javascript_file(name):
            at.warn(problem.message)
            return Prompt("", label, at, f"a prompt in a file ({shorten(name, 80)}) that is not within reach")
        why = problem.message
    if why:
        unmade = f"{shorten(name, 80)} makes no prompt: {why}"
        at.warn(f"{unmade}; the input of its cases is empty")
        return Prompt("", label, at, unmade=unmade)
    shows = isinstance(program, FileProgram) and program.shows(_TURNS)
    return Prompt("", label, at, is_continued=shows, program=program)


def run_program(prompt: Prompt, variables: Mapping[str, Any], provider: str, turns: Sequence[Any] = ()) -> Prompt:
    """
    Return *prompt* with the template that its program makes of *variables*, and of the *turns* before where it shows
    them; it is *missing* where it fails.

    As in promptfoo, that is a text, `{"prompt": ...}`, or any other data as JSON, and may have slots of its own.
    """
    if prompt.program is None:
        return prompt
    shown = {**variables, _TURNS: [*turns]} if prompt.is_continued else dict(variables)
    given = {"vars": shown, "provider": {"id": provider, "label": provider}, "config": dict(prompt.config)}
    try:
        said = prompt.program.call(given)
        why = "" if isinstance(said, str | dict | list) else f"it returned {shorten(repr(said), 60)}"
    except (JavaScriptError, ThrownError, ProgramError) as problem:
        said, why = None, str(problem)
    if why:
        return evolve(prompt, missing=f"a prompt that a program makes, which failed ({shorten(why, 160)})")
    if isinstance(said, dict) and "prompt" in said:
        config = said.get("config")
        prompt = evolve(prompt, config={**prompt.config, **(config if isinstance(config, dict) else {})})
        said = said["prompt"]
    return evolve(_note_lacks(evolve(prompt, template=as_text(said))), is_continued=prompt.is_continued, program=None)


def _of_row(row: Cursor, label: str) -> Prompt:
    if row.has("prompt"):
        return Prompt(as_text(row.value["prompt"]), as_text(row.value.get("label")) or label, row["prompt"])
    return Prompt(as_text(row.value), label, row)


def _label(label: str, number: int, count: int) -> str:
    return label if count == 1 else f"{label} {number}"


def ask(prompt: Prompt, variables: Mapping[str, Any], *around: str, places: Mapping[str, Cursor]) -> Asked:
    """Return the input that `asked` makes of *variables*; a broken template asks nothing."""
    try:
        return input_of(prompt, variables, *around, places=places)
    except LackingError as lack:
        prompt.at.error(lack)
    except DefinitionError as problem:  # promptfoo finds that out when it asks, and other prompts are asked
        prompt.at.error(LackingError(f"a broken template: {problem.message}", problem.message))
    return Asked()


def input_of(
    prompt: Prompt,
    variables: Mapping[str, Any],
    prefix: str = "",
    suffix: str = "",
    *,
    places: Mapping[str, Cursor] | None = None,
) -> Asked:
    """
    Return the input that *prompt* makes of *variables*; a broken template is a `DefinitionError`.

    As in promptfoo, the newline that ends a block of YAML is not shown. *places* has the cursors of the variables, from
    whose files the images that they name are looked for.
    """
    images = Images(
        prompt.at, {variables[name]: at for name, at in (places or {}).items() if is_reference(variables.get(name))}
    )
    variables = {name: v.removesuffix("\n") if isinstance(v, str) else v for name, v in variables.items()}
    messages = as_json_list(prompt.template) or _as_yaml_list(prompt.template)
    if messages is not None:
        # Each text by itself, so that no value can break the JSON around it.
        return _messages(images, each_text(messages, lambda text: fill_slots(prompt.at, text, variables)))
    text = _fill_text(prompt.at, f"{prefix}{prompt.template}{suffix}", variables)
    chat = as_json_list(text)
    return Asked(text) if chat is None else _messages(images, chat, text)


_PARTIAL = re.compile(r"\{%[^%]*$|\{\{[^}]*$|\{#[^#]*$", re.MULTILINE)
_RAW = re.compile(r"\{%\s*(?:end)?raw\s*%\}")


def _fill_text(at: Cursor, text: str, variables: Mapping[str, Any]) -> str:
    """Fill *variables* into *text*, as in promptfoo: not into a text with an open tag; templates among them first."""
    if _PARTIAL.search(text) and not _RAW.search(text):
        at.once("a tag of this prompt does not end on its line, so it is shown as it is, as in promptfoo")
        return with_environment(at, text)
    made = {
        name: fill_slots(at, value, variables)
        for name, value in variables.items()
        if isinstance(value, str) and _is_filled(value, variables, at.loading.filters)
    }
    return fill_slots(at, text, {**variables, **made})


def _is_filled(value: str, variables: Mapping[str, Any], filters: Collection[str]) -> bool:
    """True if a variable is a template in which no name is unknown."""
    if not is_template(value) or (_PARTIAL.search(value) and not _RAW.search(value)):
        return False
    try:
        return names_in(value, filters) <= variables.keys()
    except LackingError:
        # promptfoo fills it in; one with a name that is not a variable, such as that of a `set`, it shows as it is.
        if {name for name in _NAME.findall(_QUOTED.sub("", value)) if name not in _WORDS} <= variables.keys():
            raise
        return False
    except DefinitionError:
        return False


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\{#.*?#\}|\A[^{]*|[}%]\}[^{]*", re.DOTALL)
_NAME = re.compile(r"(?<![\w.|])(?<!\| )[^\W\d]\w*")
_WORDS = keys_of("promptfoo", "tags", "words")


def _as_yaml_list(text: str) -> list[Any] | None:
    """Return the messages of a text that is a YAML list of them; None for any other text."""
    if not _YAML_CHAT.match(text):
        return None
    found = yaml_of(text)
    return found if isinstance(found, list) and all(isinstance(message, dict) for message in found) else None


@frozen
class Images:
    """The images that a prompt attaches; *places* has the cursor of each variable that names a file, by that name."""

    at: Cursor
    places: Mapping[str, Cursor]
    attached: Attached = field(factory=Attached)

    def take(self, block: Any) -> bool:
        """Take the image in a content *block*; False where there is none to be sent."""
        image = image_in(block)
        return names_image(image) and self.attached.take(image, self.places.get(str(image), self.at))


def _messages(images: Images, chat: list[Any], text: str = "") -> Asked:
    """Return *chat* as messages; a list that is not a chat is a text like any other."""
    if not is_chat(chat):
        return Asked(text or json.dumps(chat, ensure_ascii=False))
    messages = tuple(Message(m["role"], _content(images, m["content"])) for m in chat)
    return Asked(messages=messages, images=tuple(images.attached.found), lacks=images.attached.lacks)


def input_after(
    prompt: Prompt,
    variables: Mapping[str, Any],
    turns: Iterable[tuple[str, tuple[Message, ...], str]],
    provider: str,
    **around: Any,
) -> Asked:
    """
    Return the input that *prompt* makes for *provider* after *turns*, each with its input or messages, and its output.

    Where a quote in a turn breaks the JSON of a chat, the turns are put in as JSON has texts; where that does not help,
    and of a broken template, there is a `DefinitionError`.
    """
    said = [
        {
            "prompt": [{"role": m.role, "content": m.content} for m in messages] if messages else text,
            "input": messages[-1].content if messages else text,
            "output": output,
        }
        for text, messages, output in turns
    ]
    if prompt.program is not None:
        made = run_program(prompt, variables, provider, said)
        if made.missing:
            raise DefinitionError("prompts", made.missing)
        return input_of(made, variables, places=around["places"])
    escaped = each_text(said, lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
    for shown in (said, escaped):
        found = input_of(prompt, {**variables, CONVERSATION: shown}, **around)
        text = found.input.lstrip()
        if not text.startswith("[") or '"role"' not in text or as_json_list(text) is not None:  # no broken messages
            return found
    message = "the turns before leave this prompt no JSON; write each as {{ completion.output | dump }}, without quotes"
    raise DefinitionError("prompts", message)


def is_chat(found: list[Any]) -> bool:
    """True if a JSON list is the messages of a chat."""
    return all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in found)


def _content(images: Images, content: Any) -> str:
    if not isinstance(content, list):
        return as_text(content)
    texts = []
    for piece in content:
        if isinstance(piece, dict) and isinstance(piece.get("text"), str):
            texts.append(piece["text"])
        elif not images.take(piece):
            kind = piece.get("type") if isinstance(piece, dict) else piece
            cure = "an image is a file://, https:// or data: address" if image_in(piece) is not None else _ATTACHED
            images.at.once(f"content of the type {shorten(repr(kind), 40)} in a prompt is not attached: {cure}")
    return "\n".join(texts)


_ATTACHED = "only its texts and images are"


@frozen
class Cell:
    """One column of promptfoo's table: a prompt and a provider, their names where there are several, and its number."""

    prompt: Prompt | None
    provider: str
    names: dict[str, str]
    at: Cursor | None = None
    number: int | None = None


def providers_of(whole: Cursor) -> list[Cursor]:
    """Return the providers (or targets) that a configuration lists."""
    at = whole.find("providers", "targets")
    if at is None:
        return []
    found = [one for item in ([*at] if isinstance(at.value, list) else [at]) for one in _from_file(item)]
    for provider in found:
        if isinstance(provider.value, dict) and ("id" in provider.value or len(provider.value) > 1):
            provider.reads(**part_of("promptfoo", "provider"))
    return found


def _from_file(at: Cursor) -> list[Cursor]:
    """Return the provider at the cursor, or those in the file of YAML or JSON that it names."""
    if not is_reference(at.value) or not at.value.lower().endswith(DATA) or not may_be_read(at.value, at.loading):
        return [at]
    whole = follow(at)
    return [] if whole is None else [*whole] if isinstance(whole.value, list) else [whole]


def cells_of(prompts: list[Prompt], providers: list[Cursor]) -> list[Cell]:
    """Return a cell for each provider and each prompt that it takes; one cell where there are none."""
    found: list[Cell] = []
    rows: list[Prompt | None] = [*prompts] or [None]
    columns: list[Cursor | None] = [*providers] or [None]
    for provider in columns:
        name, wanted = name_of(provider)
        for prompt in rows:
            if prompt is not None and wanted and not _is_among((prompt.label, *prompt.names), wanted):
                continue
            names = {"prompt": prompt.label} if prompt is not None and len(prompts) > 1 else {}
            names |= {"provider": name} if len(providers) > 1 else {}
            found.append(Cell(prompt, name, names, provider, len(found)))
    return found


def name_of(provider: Cursor | None) -> tuple[str, list[str]]:
    """Return the name of a provider, and the prompts that it is limited to."""
    value = fields_of(None if provider is None else provider.value)
    wanted = value.get("prompts")
    name = as_text(value.get("label") or value.get("id"))
    return name, [as_text(label) for label in wanted] if isinstance(wanted, list) else []


def _is_among(names: Iterable[str], wanted: list[str]) -> bool:
    return any(fnmatchcase(name, one) or name.startswith(f"{one}:") for name in names for one in wanted)


def _names_of(cell: Cell, key: str) -> tuple[str, ...]:
    if key == "providers":
        return (cell.provider,)
    return (cell.prompt.label, *cell.prompt.names) if cell.prompt is not None else ("",)


def cells_for(test: Test, cells: list[Cell]) -> list[Cell]:
    """Return the cells that *test* runs in."""
    for key in ("providers", "prompts"):
        at = test.fields.get(key)
        if at is not None and isinstance(at.value, list):
            wanted = [as_text(value) for value in at.value]
            cells = [cell for cell in cells if _is_among(_names_of(cell, key), wanted)]
    own = test.fields.get("provider")
    if own is None:
        return cells
    name, _ = name_of(own)
    kept = {cell.prompt.label if cell.prompt else "": cell for cell in cells}.values()
    return [Cell(cell.prompt, name, {**cell.names, "provider": name}, own) for cell in kept]


SIMULATED = "promptfoo:simulated-user"
SIMULATION = "a simulated user, and so a conversation of many turns; let it run elsewhere: --outputs FILE"


def lacks_of(cell: Cell) -> str:
    """Return what this library lacks to ask as *cell* does; '' where it lacks nothing."""
    return "" if cell.prompt is None else cell.prompt.missing


def tools_of(cell: Cell) -> dict[str, Cursor]:
    """Return the lists of what the provider of *cell* can call."""
    at = cell.at
    if at is None or not isinstance(at.value, dict):
        return {}
    if len(at.value) == 1 and "id" not in at.value:  # `openai:gpt-5: {config: ...}`
        ((_, at),) = items_of(at)
    config = at["config"] if isinstance(at.value, dict) else at
    return {key: config[key] for key in ("tools", "functions") if config.has(key)}
