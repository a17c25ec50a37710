"""
A promptfoo configuration as a suite: a case for each test, prompt, provider and combination of variables.

A feature that this library does not have is never dropped in silence: if the graded text would differ, the case gets a
criterion that stays unjudged; if not, there is a warning.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError, LoadError
from rubric.formats.cursor import Cursor, LackingError, Loading, Notes
from rubric.formats.document import plain
from rubric.formats.files import parse
from rubric.formats.images import Attached, image_in, is_address, is_image
from rubric.formats.includes import expand_at, is_code, is_reference, read_document_at, read_text_at
from rubric.formats.promptfoo.assertions import Graded, graded, program_of
from rubric.formats.promptfoo.parts import unsupported
from rubric.formats.promptfoo.tests import (
    OPTIONS,
    OWN,
    Test,
    combinations,
    is_test,
    scenarios_of,
    test_of,
    tests_of,
)
from rubric.formats.promptfoo.texts import (
    Context,
    Slots,
    as_json_list,
    as_text,
    check_keys,
    compact,
    each_text,
    fields,
    filled,
    listed,
    named,
    with_environment,
)
from rubric.formats.providers import read_provider, runs_of
from rubric.formats.templates.render import is_template, names_in
from rubric.internals.javascript import Program
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.providers import Provider
from rubric.suites.suite import Suite
from rubric.values.candidates import Message

# -- the columns of promptfoo's table: prompts and providers -----------------------------------------------

_PROMPT_FILE = re.compile(r"[^\s{}]+\.(?:txt|json|jsonl|ya?ml|md|j2|csv|[cm]?[jt]s|py)(?::\w+)?")
_YAML_CHAT = re.compile(r"\s*-\s+role:")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_OF_PROMPTS = frozenset({"id", "raw", "label", "display", "template"})
_PROMPT_FATES = {
    "config": "the configuration of a prompt is not used",
    "function": "a prompt that a function makes is not read; the input of its cases is empty",
}


@frozen
class Prompt:
    """
    A prompt: its *template*, and what it is called.

    *missing* says what this library lacks to show it, a file or a conversation: its cases are ungraded. A prompt that
    code makes is empty: what answers it is graded all the same.
    """

    template: str
    label: str
    at: Cursor
    missing: str = ""


@frozen
class Asked:
    """The input of a target: a text, or the messages of a chat, and their images; *lacks* names one that is missing."""

    input: str = ""
    messages: tuple[Message, ...] = ()
    images: tuple[str, ...] = ()
    lacks: str = ""


def prompts_of(at: Cursor | None) -> list[Prompt]:
    """Return the prompts of the configuration, in order; one that cannot be read is noted."""
    if at is None:
        return []
    if isinstance(at.value, str):
        found = _of_text(at, "")
    elif isinstance(at.value, dict):
        found = [p for name, label in named(at) for p in _of_text(label.holding(name), as_text(label.value))]
    else:
        found = [prompt for item in listed(at, "prompts") for prompt in _of_item(item)]
    return [evolve(_known(p), label=p.label or f"prompt-{n}") for n, p in enumerate(found, 1)]


def _known(prompt: Prompt) -> Prompt:
    """Return *prompt* with what the load lacks to show it: an environment variable, or a filter that is code."""
    at = prompt.at

    def look(text: str) -> None:
        shown = with_environment(at, text)
        try:
            names_in(shown)
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
    check_keys(at, _OF_PROMPTS, _PROMPT_FATES)
    label = as_text(at.value.get("label") or at.value.get("display"))
    raw = at.find("raw", "template")
    if raw is not None:
        text = raw.text("the text of a prompt")
        return [] if text is None else [Prompt(text, label or as_text(at.value.get("id")), raw)]
    source = at.find("id")
    if source is None or source.text("the file of a prompt") is None:
        if source is None and not at.has("function"):
            at.error("a prompt has a text; write it as `raw`")
        return [Prompt("", label, at)]
    return _of_text(source, label)


def _of_text(at: Cursor, label: str) -> list[Prompt]:
    """Return the prompts of a text: itself, or those in the files that it names."""
    text = at.value
    if not is_reference(text) and not _PROMPT_FILE.fullmatch(text):
        return [Prompt(text, label, at)]
    name = text.removeprefix("file://")
    if is_code(name):
        at.warn(f"{shorten(name, 80)} is code, which is not run; the input of its cases is empty")
        return [Prompt("", label or name, at)]
    references = expand_at(text, at, ("**/*.*",))
    return [prompt for reference in references for prompt in _of_file(at.holding(reference), label)]


def _of_file(at: Cursor, label: str) -> list[Prompt]:
    name = PurePosixPath(at.value.removeprefix("file://"))
    label = label or name.name
    if is_code(name.name):
        at.warn(f"{shorten(str(name), 80)} is code, which is not run; the input of its cases is empty")
        return [Prompt("", label, at)]
    before = at.notes.failures
    found = _read_file(at, name, label)
    if found is not None or at.notes.failures > before:
        return found or []
    return [Prompt("", label, at, f"a prompt in a file ({shorten(str(name), 80)}) that is not within reach")]


def _read_file(at: Cursor, name: PurePosixPath, label: str) -> list[Prompt] | None:
    """Return the prompts of the file *name*; None where it is not to be had, which is noted."""
    if name.suffix in (".yaml", ".yml", ".csv", ".jsonl"):
        whole = read_document_at(at.value, at, lacking=at.warn)
        if whole is None:
            return None
        if name.suffix in (".yaml", ".yml"):
            chat = compact(whole.value) if isinstance(whole.value, list) else as_text(whole.value)
            return [Prompt(chat, label, whole)]
        rows = listed(whole, "prompts")
        return [_of_row(row, _numbered(label, n, len(rows))) for n, row in enumerate(rows, 1)]
    text = read_text_at(at.value, at, lacking=at.warn)
    if text is None:
        return None
    pieces = [piece.strip() for piece in _SEPARATOR.split(text)] if name.suffix == ".txt" else [text]
    kept = [piece for piece in pieces if piece]
    return [Prompt(piece, _numbered(label, n, len(kept)), at) for n, piece in enumerate(kept, 1)]


def _of_row(row: Cursor, label: str) -> Prompt:
    if row.has("prompt"):
        return Prompt(as_text(row.value["prompt"]), as_text(row.value.get("label")) or label, row["prompt"])
    return Prompt(as_text(row.value), label, row)


def _numbered(label: str, number: int, count: int) -> str:
    return label if count == 1 else f"{label} {number}"


def ask(
    prompt: Prompt,
    variables: Mapping[str, Any],
    prefix: str = "",
    suffix: str = "",
    *,
    places: Mapping[str, Cursor] | None = None,
) -> Asked:
    """
    Return the input that *prompt* makes of *variables*; a broken template is noted, and asks nothing.

    *places* has the cursors of the variables, from whose files the images that they name are looked for.
    """
    images = Images(
        prompt.at, {variables[name]: at for name, at in (places or {}).items() if is_reference(variables.get(name))}
    )
    try:
        messages = as_json_list(prompt.template) or _as_yaml_list(prompt.template)
        if messages is not None:
            # Each text by itself, so that no value can break the JSON around it.
            return _messages(images, each_text(messages, lambda text: filled(prompt.at, text, variables)))
        text = filled(prompt.at, f"{prefix}{prompt.template}{suffix}", variables)
    except DefinitionError as problem:
        prompt.at.error(problem)
        return Asked()
    chat = as_json_list(text)
    return Asked(text) if chat is None else _messages(images, chat, text)


def _as_yaml_list(text: str) -> list[Any] | None:
    """Return the messages of a text that is a YAML list of them; None for any other text."""
    if not _YAML_CHAT.match(text):
        return None
    try:
        found = plain(parse(text, "prompt").root, lambda *_: None)
    except LoadError:
        return None
    return found if isinstance(found, list) and all(isinstance(message, dict) for message in found) else None


@frozen
class Images:
    """
    The images that a prompt attaches.

    Args:
        at: The prompt.
        places: The cursor of each variable that names a file, by that name.
        attached: The images.
    """

    at: Cursor
    places: Mapping[str, Cursor]
    attached: Attached = field(factory=Attached)

    def take(self, block: Any) -> bool:
        """Take the image in a content *block*; False where there is none to be sent."""
        image = image_in(block)
        known = image is not None and (is_address(image) or is_reference(image))
        return known and self.attached.take(image, self.places.get(str(image), self.at))


def _messages(images: Images, chat: list[Any], text: str = "") -> Asked:
    """Return *chat* as messages; a list that is no chat is a text like any other."""
    if not is_chat(chat):
        return Asked(text or json.dumps(chat, ensure_ascii=False))
    messages = tuple(Message(m["role"], _content(images, m["content"])) for m in chat)
    return Asked(messages=messages, images=tuple(images.attached.found), lacks=images.attached.lacks)


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
    """One column of promptfoo's table: a prompt and a provider, and their names where there are several."""

    prompt: Prompt | None
    provider: str
    names: dict[str, str]
    at: Cursor | None = None


_OF_PROVIDERS = frozenset({"id", "config", "label", "prompts", "transform", "delay", "env", "inputs"})


def providers_of(whole: Cursor) -> list[Cursor]:
    """Return the providers (or targets) that a configuration lists."""
    at = whole.find("providers", "targets")
    if at is None:
        return []
    found = [*at] if isinstance(at.value, list) else [at]
    for provider in found:
        if isinstance(provider.value, dict) and "id" in provider.value:
            check_keys(provider, _OF_PROVIDERS)
    return found


def cells_of(prompts: list[Prompt], providers: list[Cursor]) -> list[Cell]:
    """Return a cell for each provider and each prompt that it takes; one cell where there are none."""
    found: list[Cell] = []
    rows: list[Prompt | None] = [*prompts] or [None]
    columns: list[Cursor | None] = [*providers] or [None]
    for provider in columns:
        name, wanted = _named(provider)
        for prompt in rows:
            if prompt is not None and wanted and not _is_among(prompt.label, wanted):
                continue
            names = {"prompt": prompt.label} if prompt is not None and len(prompts) > 1 else {}
            names |= {"provider": name} if len(providers) > 1 else {}
            found.append(Cell(prompt, name, names, provider))
    return found


def _named(provider: Cursor | None) -> tuple[str, list[str]]:
    """Return the name of a provider, and the prompts that it is limited to."""
    value = None if provider is None else provider.value
    if not isinstance(value, dict):
        return as_text(value), []
    if len(value) == 1 and "id" not in value:
        ((id_, inner),) = value.items()
        value = {"id": id_, **(inner if isinstance(inner, dict) else {})}
    wanted = value.get("prompts")
    name = as_text(value.get("label") or value.get("id"))
    return name, [as_text(label) for label in wanted] if isinstance(wanted, list) else []


def _is_among(name: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}:") for pattern in wanted)


def cells_for(test: Test, cells: list[Cell]) -> list[Cell]:
    """Return the cells that *test* runs in."""
    for key in ("providers", "prompts"):
        at = test.fields.get(key)
        if at is not None and isinstance(at.value, list):
            wanted = [as_text(value) for value in at.value]
            names = [
                cell.provider if key == "providers" else cell.prompt.label if cell.prompt else "" for cell in cells
            ]
            cells = [cell for cell, name in zip(cells, names, strict=True) if _is_among(name, wanted)]
    own = test.fields.get("provider")
    if own is None:
        return cells
    name, _ = _named(own)
    kept = {cell.prompt.label if cell.prompt else "": cell for cell in cells}.values()
    return [Cell(cell.prompt, name, {**cell.names, "provider": name}, own) for cell in kept]


# -- the configuration -------------------------------------------------------------------------------------

MOST_CASES = 50_000
_KNOWN_KEYS = frozenset({
    "description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "assert",
    "assertionTemplates", "env", "metadata",
})  # fmt: skip
_QUIET_KEYS = frozenset({
    "$schema", "outputPath", "sharing", "writeLatestResults", "commandLineOptions", "evaluateOptions", "tags",
    "tracing", "version", "author", "id", "$id", "license",
})  # fmt: skip
_FATES = {
    "derivedMetrics": "derivedMetrics are not computed",
    "extensions": "extensions are code, which is not run; what they would change stays as it is",
    "redteam": "redteam is not read: no tests are generated",
    "nunjucksFilters": "nunjucksFilters are code, which is not run; what uses one is ungraded",
}

_OF_TESTS = "it belongs to a test; for all tests, write it under `defaultTest`"
_ELSEWHERE = dict.fromkeys(("vars", "options", "threshold", "assertScoringFunction"), _OF_TESTS) | dict.fromkeys(
    ("rubricPrompt", "transform"), "it belongs under `defaultTest.options`"
)
_UNUSED_OPTIONS = frozenset({"storeOutputAs"})
_BESIDE_OPTIONS = dict.fromkeys(("assert", "threshold", "vars", "metadata"), "it belongs to the test, beside `options`")

_CHANGING = ("transform", "postprocess")
"""Options that change the graded text by code; a test has one of them."""


def read(notes: Notes, loading: Loading) -> Suite:
    """
    Return the suite that a promptfoo configuration describes.

    Errors are noted in *notes*, and raised by `notes.finish()`; the suite then lacks the cases that have them.
    """
    whole = Cursor.of(notes, loading)
    if not isinstance(whole.value, list):
        if not whole.mapping("a configuration of promptfoo (a mapping)"):
            return Suite(format="promptfoo")
        env = whole.find("env")
        if env is not None and env.mapping("environment variables (a mapping)"):
            env.warn("env is not set for anything that runs; only templates see it")
            declared = {name: as_text(value.value) for name, value in named(env)}
            # Templates see what the file itself declares; what the caller declares wins.
            notes.loading = evolve(loading, environ={**declared, **loading.environ})
        if whole.has("nunjucksFilters"):
            filters = fields(whole["nunjucksFilters"], "filters of templates (a mapping)")
            notes.loading = evolve(notes.loading, filters=frozenset(filters))
        if not is_test(whole):
            check_keys(whole, _KNOWN_KEYS, _FATES, _ELSEWHERE, _QUIET_KEYS)
    cases = _unique(_cases(whole))
    if not cases and not notes.errors:
        whole.error("there are no tests in it; a configuration of promptfoo has `tests`")
    description, metadata = whole.find("description"), whole.find("metadata")
    return Suite(
        as_text(description.value) if description is not None else "",
        cases,
        format="promptfoo",
        source=notes.document.source,
        warnings=tuple(notes.warnings),
        metadata=metadata.value if metadata is not None and metadata.mapping("metadata (a mapping)") else {},
    )


def _cases(whole: Cursor) -> Iterator[Case]:
    default = whole.find("defaultTest")
    (test,) = (test_of(default) if default is not None else []) or [Test(whole)]
    defaults = test.as_defaults()
    for name in ("evaluateOptions", "commandLineOptions") if isinstance(whole.value, dict) else ():
        if (repeat := whole.under(name).find("repeat")) is not None:
            defaults = evolve(defaults, options={"repeat": repeat, **defaults.options})
    cells = cells_of(prompts_of(whole.find("prompts")), providers_of(whole))
    for number, test in enumerate(_tests(whole, defaults), 1):
        yield from _of_test(test, number, cells)


def _tests(whole: Cursor, defaults: Test) -> list[Test]:
    if isinstance(whole.value, list):  # a file of tests by themselves
        return tests_of(whole)
    if is_test(whole):  # an example of the documentation: one test by itself, or no more than assertions
        return test_of(whole)
    tests = [test.on(defaults) for test in tests_of(whole.find("tests"))]
    tests += scenarios_of(whole.find("scenarios"), defaults)
    fragment = listed(whole["assert"], "assertions")
    if fragment and "tests" not in whole.value and not tests:
        return [Test(whole, asserts=tuple(fragment)).on(defaults)]
    if whole.has("assert"):
        message = "assertions beside `tests` belong to no test, and nothing is asserted by them"
        whole["assert"].error(f"{message}; write them under `defaultTest`, or in each test", key=True)
    alone = defaults.asserts or whole.has("prompts") or whole.has("redteam")
    if not tests and not whole.value.keys() & {"tests", "scenarios"} and alone:
        return [Test(whole).on(defaults)]  # one test without variables, as promptfoo has it
    return tests


# -- cases -------------------------------------------------------------------------------------------------


def _of_test(test: Test, number: int, cells: list[Cell]) -> Iterator[Case]:
    options = test.options
    for name, at in options.items():
        if name not in OPTIONS:
            at.unknown(f"the option {name} is not used", OPTIONS, _BESIDE_OPTIONS)
        elif name in _UNUSED_OPTIONS:
            at.warn(f"the option {name} is not used")
    expand = "disableVarExpansion" not in options or options["disableVarExpansion"].value is not True
    with test.at.notes.lacking() as lacks:
        found = combinations(test.variables, expand=expand)
    if lacks:
        test = evolve(test, lacks=test.lacks or f"variables with {lacks[0]}")
    columns = cells_for(test, cells)
    if len(found) * len(columns) > MOST_CASES:
        test.at.error(f"this test stands for more than {MOST_CASES} cases; split the file")
        return
    for variables in found:
        slots = Slots(variables)
        alike = {_likeness(cell): cell for cell in columns}
        rubrics = {key: _graded(test, slots, cell) for key, cell in alike.items()}
        name = _name(test, number, variables, several=len(found) > 1)
        for cell in columns:
            rubric = rubrics[_likeness(cell)]
            case = None if rubric is None else _case(test, name, cell, rubric, slots)
            if case is not None:
                yield case


SIMULATED = "promptfoo:simulated-user"
_SIMULATED = "a simulated user, and so a conversation of many turns"
_CONVERSATION = re.compile(r"\{[{%][^{}]*\b_conversation\b")


def _lacks(cell: Cell) -> str:
    """Return what this library lacks to ask as *cell* does; '' where it lacks nothing."""
    if cell.provider.startswith(SIMULATED):
        return _SIMULATED
    if cell.prompt is None:
        return ""
    return cell.prompt.missing or (
        "the turns before, as _conversation" if _CONVERSATION.search(cell.prompt.template) else ""
    )


def _tools(cell: Cell) -> dict[str, Cursor]:
    """Return the lists of what the provider of *cell* can call."""
    at = cell.at
    if at is None or not isinstance(at.value, dict):
        return {}
    if len(at.value) == 1 and "id" not in at.value:  # `openai:gpt-5: {config: ...}`
        ((_, at),) = named(at)
    config = at["config"] if isinstance(at.value, dict) else at
    return {key: config[key] for key in ("tools", "functions") if config.has(key)}


def _likeness(cell: Cell) -> tuple[str, int]:
    """Return a key that cells have in common whose cases are graded alike."""
    return _lacks(cell), id(cell.at) if _tools(cell) else 0


def _graded(test: Test, slots: Slots, cell: Cell) -> Graded | None:
    lacks, provider = _lacks(cell), test.options.get("provider")
    if provider is not None and _named(provider)[0].startswith(SIMULATED):
        lacks, provider = _SIMULATED, None
    scores = test.options.get("factuality")
    given = scores.value if scores is not None and isinstance(scores.value, dict) else {}
    context = Context(slots, provider, test.options.get("rubricPrompt"), factuality=given, tools=_tools(cell))
    with test.at.notes.lacking() as needed:
        transforms = [program_of(at, context, name) for name, at in test.options.items() if name in _CHANGING]
    transforms += [f"a transform with {lack}" for lack in needed[:1]]
    context = evolve(context, transforms=tuple(one for one in transforms if isinstance(one, Program)))
    # What would change the variables or the score by code.
    changing = [(name, at) for name, at in test.options.items() if name == "transformVars"]
    changing += [("vars", at) for at in test.variables.values() if is_reference(at.value) and is_code(at.value)]
    if (scoring := test.fields.get("assertScoringFunction")) is not None:
        changing.append(("assertScoringFunction", scoring))
    more = [unsupported(name, as_text(at.value), at) for name, at in changing]
    more += [
        unsupported(what, "", test.at) for what in (lacks, test.lacks, *transforms) if isinstance(what, str) and what
    ]
    return graded(test.asserts, context, test.threshold, test.at, more)


def _name(test: Test, number: int, variables: Mapping[str, Any], *, several: bool) -> str:
    name = clean(test.description) or f"test-{number}"
    if not several:
        return name
    listed = [key for key, at in test.variables.items() if isinstance(at.value, list)]
    varying = [f"{key}={shorten(as_text(variables[key]), 40)}" for key in listed if isinstance(variables[key], str)]
    return clean(f"{name} ({', '.join(varying)})") if varying else name


def clean(text: str) -> str:
    """Return *text* on one line, fit to be an id."""
    if text.isascii() and text.isprintable():
        return shorten(text, 160)
    plain = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return shorten(plain, 160)


def _case(test: Test, name: str, cell: Cell, rubric: Graded, slots: Slots) -> Case | None:
    prompt, asked = cell.prompt, Asked()
    if prompt is not None and not _lacks(cell):
        around = (as_text(test.options[key].value) if key in test.options else "" for key in ("prefix", "suffix"))
        asked = ask(prompt, slots.variables, *around, places=test.variables)
    if asked.lacks:
        rubric = _graded(evolve(test, lacks=test.lacks or asked.lacks), slots, cell) or rubric
    _warn_of_names(test, slots.variables, asked)
    # The variable that holds an input that our own writer wrote is the input again, and no variable.
    own = prompt is not None and prompt.template == f"{{{{ {OWN} }}}}"
    shown = {name: as_text(value) for name, value in slots.variables.items() if name != OWN or not own}
    return test.at.built(
        Case,
        " / ".join([name, *map(clean, cell.names.values())]),
        rubric.rubric,
        input=asked.input,
        messages=asked.messages,
        images=asked.images,
        context=_context(test, slots),
        output=_output(test, cell, asked),
        variables={**shown, **slots.extra},
        judge=rubric.judge,
        judges=rubric.judges,
        cell=cell.names,
        metadata=test.metadata,
        place=test.at.place,
        runs=runs_of(test.options["repeat"].value if "repeat" in test.options else None),
        providers=_providers(cell, asked, slots),
    )


def _warn_of_names(test: Test, variables: Mapping[str, Any], asked: Asked) -> None:
    """Warn of each variable that names an image, where the prompt attaches none."""
    for name, at in () if asked.images or asked.lacks else test.variables.items():
        value = variables.get(name)
        if isinstance(value, str) and is_reference(value) and is_image(value):
            at.warn("an image is read where a prompt attaches it (image_url); this stays the name of the file")


def _context(test: Test, slots: Slots) -> str:
    """Return the variable `context`, where an assertion of the test asks about it: a judge is shown it as such."""
    types = [at.value.get("type") for at in test.asserts if isinstance(at.value, dict)]
    if not any(isinstance(kind, str) and kind.removeprefix("not-").startswith("context-") for kind in types):
        return ""
    context = slots.variables.get("context")
    return "\n".join(map(as_text, context)) if isinstance(context, list) else as_text(context)


def _providers(cell: Cell, asked: Asked, slots: Slots) -> list[Provider]:
    if cell.at is None or not cell.provider:
        return []
    text = asked.input or compact([{"role": m.role, "content": m.content} for m in asked.messages])
    at, values = cell.at, {**slots.variables, "prompt": text}
    provider = read_provider(at, lambda template: filled(at, template, values))
    if asked.images and provider.request is not None:
        at.once("an address is sent the texts of a prompt, not its images")
    return [provider]


def _output(test: Test, cell: Cell, asked: Asked) -> str | None:
    """Return the response that the file fixes, or that promptfoo's `echo` gives: the prompt itself."""
    fixed = test.fields.get("providerOutput")
    if fixed is not None:
        return as_text(fixed.value)
    if cell.provider != "echo" or cell.prompt is None:
        return None
    return asked.input or compact([{"role": m.role, "content": m.content} for m in asked.messages])


def _unique(cases: Iterator[Case]) -> list[Case]:
    """Number the cases that share an id, from the second on."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    found: list[Case] = []
    for case in cases:
        id_ = case.id
        while id_ in taken:
            numbers[case.id] = numbers.get(case.id, 1) + 1
            id_ = f"{case.id} #{numbers[case.id]}"
        taken.add(id_)
        found.append(case if id_ == case.id else evolve(case, id=id_))
    return found
