"""
A promptfoo configuration as a suite: a case for each test, prompt, provider and combination of variables.

A feature that this library does not have is never dropped in silence: if the graded text would differ, the case gets a
criterion that stays unjudged; if not, there is a warning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from attrs import evolve, frozen

from rubric import DefinitionError, RubricError
from rubric.embed import Cursor, FrozenMap, Loading, Notes, shorten
from rubric.formats.images import is_image
from rubric.formats.includes import is_code, is_reference
from rubric.formats.javascript_modules import is_javascript_file
from rubric.formats.keys import part_of
from rubric.formats.promptfoo.assertions import Graded, read_assertions, transform_of
from rubric.formats.promptfoo.columns import (
    CONVERSATION,
    SIMULATED,
    SIMULATION,
    Asked,
    Cell,
    Prompt,
    ask,
    cells_for,
    cells_of,
    input_after,
    lacks_of,
    name_of,
    prompts_of,
    providers_of,
    run_program,
    tools_of,
)
from rubric.formats.promptfoo.functions import call_at, filter_at, why_not
from rubric.formats.promptfoo.parts import placeholder
from rubric.formats.promptfoo.tests import (
    OWN,
    Test,
    assertions_of,
    combinations,
    fill_nested,
    is_test,
    scenarios_of,
    test_of,
    tests_of,
)
from rubric.formats.promptfoo.texts import Context, Slots, as_text, fill_slots, items_of, values_in
from rubric.formats.providers import fields_of, read_provider, runs_of
from rubric.programs.javascript import JavaScriptError, ThrownError
from rubric.programs.processes import ProgramError
from rubric.suites.cases import Case, History
from rubric.suites.providers import Provider
from rubric.suites.suite import Suite

# -- the configuration -------------------------------------------------------------------------------------

MOST_CASES = 50_000
_OPTIONS = part_of("promptfoo", "options")

_CHANGING = ("transform", "postprocess")
"""Options that change the graded text by code; a test has one of them."""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite that a promptfoo configuration describes."""
    loading = evolve(loading, first=loading.folder)
    whole = Cursor.of(notes, loading)
    if not isinstance(whole.value, list):
        if not whole.mapping("a configuration of promptfoo (a mapping)"):
            return Suite(format="promptfoo")
        env = whole.find("env")
        if env is not None and env.mapping("environment variables (a mapping)"):
            env.warn("env is not set for anything that runs; only templates see it")
            declared = {name: as_text(value.value) for name, value in items_of(env)}
            # Templates see what the file itself declares; what the caller declares wins.
            notes.loading = evolve(loading, environ={**declared, **loading.environ})
        if whole.has("nunjucksFilters"):
            filters = values_in(whole["nunjucksFilters"], "filters of templates (a mapping)")
            notes.loading = evolve(notes.loading, filters={name: filter_at(name, at) for name, at in filters.items()})
        if not is_test(whole):
            whole.reads(**part_of("promptfoo", "file"))
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
    with whole.notes.lacking() as lacks:
        (test,) = (test_of(default) if default is not None else []) or [Test(whole)]
    defaults = evolve(test.as_defaults(), lacks=test.lacks or (f"a defaultTest with {lacks[0]}" if lacks else ""))
    for name in ("evaluateOptions", "commandLineOptions") if isinstance(whole.value, dict) else ():
        if (repeat := whole.under(name).find("repeat")) is not None:
            defaults = evolve(defaults, options={"repeat": repeat, **defaults.options})
    # Without prompts, promptfoo asks what the variable of that name holds.
    prompts = prompts_of(whole.find("prompts")) if whole.has("prompts") else [Prompt("{{prompt}}", "", whole)]
    providers = providers_of(whole)
    if len(prompts) * len(providers) > MOST_CASES:
        whole.error(f"its prompts and providers come to more than {MOST_CASES} columns; split the file")
        return
    cells = cells_of(prompts, providers)
    turns, stored = Counter[str](), list[str]()
    faults, sound = whole.notes.faults, False
    for number, test in enumerate(_tests(whole, defaults), 1):
        count = len(faults)
        yield from _of_test(_without_stored(test, stored, cells), number, cells, turns, defaults)
        sound = sound or (len(faults) == count and not test.lacks.startswith(Notes.FAULT))
        if "storeOutputAs" in test.options:
            stored.append(as_text(test.options["storeOutputAs"].value))
    if faults and not sound:  # what is wrong with all tests is wrong with the file
        whole.notes.errors += dict.fromkeys(faults)


def _without_stored(test: Test, stored: Sequence[str], cells: list[Cell]) -> Test:
    """Return *test*, unasked where its prompts show an output that is *stored*, ungraded where anything else does."""
    values = [*test.asserts, *test.variables.values(), *test.options.values()] if stored else []
    prompts = [cell.prompt.template for cell in cells_for(test, cells) if cell.prompt is not None] if stored else []
    shown, asked = _first_shown([at.value for at in values], stored), _first_shown(prompts, stored)
    lack = "an output that another test stores (storeOutputAs: {})"
    lacks, unasked = (lack.format(name) if name else "" for name in (shown, asked))
    return evolve(test, lacks=test.lacks or lacks, unasked=unasked) if shown or asked else test


def _first_shown(texts: Sequence[Any], names: Sequence[str]) -> str:
    """Return the first of *names* that stands in a tag of *texts*; '' if none does."""
    tags = re.findall(r"\{[{%][^}]*", "\n".join(map(as_text, texts))) if names else []
    words = {word for tag in tags for word in re.findall(r"\w+", tag)}
    return next((name for name in names if name in words), "")


def _tests(whole: Cursor, defaults: Test) -> list[Test]:
    if isinstance(whole.value, list):  # a file of tests by themselves
        return tests_of(whole)
    if is_test(whole):  # an example of the documentation: one test by itself, or no more than assertions
        return test_of(whole)
    tests = [test.on(defaults) for test in tests_of(whole.find("tests"))]
    tests += scenarios_of(whole.find("scenarios"), defaults)
    fragment = assertions_of(whole["assert"])
    if fragment and "tests" not in whole.value and not tests:
        return [Test(whole, asserts=tuple(fragment)).on(defaults)]
    if whole.has("assert"):
        message = "assertions beside `tests` belong to no test, and nothing is asserted by them, in promptfoo either"
        whole["assert"].warn(f"{message}; write them under `defaultTest`, or in each test", key=True)
    alone = defaults.asserts or whole.has("prompts") or whole.has("redteam")
    if not tests and not whole.value.keys() & {"tests", "scenarios"} and alone:
        return [Test(whole).on(defaults)]  # one test without variables, as promptfoo has it
    return tests


# -- cases -------------------------------------------------------------------------------------------------


_TESTS = ""
"""The key of the number of promptfoo's tests before this one: one for each combination of variables, and repeat."""


def _of_test(test: Test, number: int, cells: list[Cell], turns: Counter[str], defaults: Test) -> Iterator[Case]:
    options = test.options
    with test.at.notes.lacking() as strays:
        for name, at in options.items():
            if name not in _OPTIONS["known"]:
                at.unknown(f"the option {name} is not used", _OPTIONS["known"], _OPTIONS["elsewhere"])
    expand = test.option("disableVarExpansion") is not True
    test = _with_transformed(test, number)
    with test.at.notes.lacking(whole=True) as lacks:
        found = combinations(test.variables, expand=expand)
    missing = [*strays, *(f"variables with {lack}" for lack in lacks)]
    if missing:
        test = evolve(test, lacks=test.lacks or missing[0])
    columns = cells_for(test, cells)
    if len(found) * len(columns) > MOST_CASES:
        test.at.error(f"this test stands for more than {MOST_CASES} cases; split the file")
        return
    first, repeats = turns[_TESTS], runs_of(test.option("repeat")) or 1
    turns[_TESTS] += len(found) * repeats
    for row, variables in enumerate(found, 1):
        rows = range(first + row - 1, turns[_TESTS], len(found))
        rubrics, shared = dict[Any, Graded | None](), Slots(variables)
        name = _name(test, number, variables, defaults, several=len(found) > 1)
        for cell in columns:
            # As in promptfoo, a program makes variables for each prompt anew: it is shown it.
            one, slots = _with_made(test, shared, cell)
            # Cells have it in common whose cases are graded alike.
            key = lacks_of(cell), id(cell.at) if tools_of(cell) else 0, id(cell) if one is not test else 0
            if key not in rubrics:
                rubrics[key] = _read_graded(one, slots, cell, f"{number}.{row}")
            rubric = rubrics[key]
            if rubric is None:
                continue
            # A test with a provider of its own is in the columns of all others.
            among = [c for c in cells if cell.number == c.number or (cell.number is None and cell.prompt is c.prompt)]
            numbers = [c.number for c in among if c.number is not None]
            case = _case(one, name, cell, rubric, slots, columns=tuple((test_, n) for test_ in rows for n in numbers))
            if case is not None:
                shows = cell.prompt is not None and cell.prompt.is_continued
                yield evolve(case, history=_history(case, one, cell, slots, turns)) if shows else case


def _history(case: Case, test: Test, cell: Cell, slots: Slots, turns: Counter[str]) -> History:
    """Return the place of *case* in the conversation of its prompt and provider, whose turns *turns* counts."""
    assert cell.prompt is not None  # noqa: S101 - it shows the turns
    column = cell.provider if cell.number is None else cell.number
    conversation = f"{column} / {cell.prompt.label} / {test.conversation}"
    turns[conversation] += 1
    is_apart = test.option("disableConversationVar") is True  # its prompts do not see the turns before
    shown = None if is_apart else _Continued(test, cell, slots, case.output)
    return History(conversation, turns[conversation], shown)


def _made_names(test: Test) -> list[str]:
    """Return the names of the variables of *test* that a program makes which may be run."""
    return [name for name, at in test.variables.items() if is_reference(at.value) and not why_not(at.value)]


def _with_made(test: Test, slots: Slots, cell: Cell) -> tuple[Test, Slots]:
    """Return *test*, and its variables in *slots*, with those that programs make for *cell*."""
    names = _made_names(test)
    if not names:
        return test, slots
    variables, places = dict(slots.variables), dict(test.variables)
    for name in names:
        at, shown = places[name], cell.prompt.template if cell.prompt is not None else ""
        said, why = call_at(at.value, at, "get_var", name, shown, variables)
        why = why or f"expected {{'output': its value}} of {shorten(at.value, 80)}"
        made = said if isinstance(said, dict) else {}
        output = made.get("output")
        if not output or made.get("error") or not (isinstance(output, str) or is_javascript_file(at.value)):
            told = shorten(str(made.get("error") or why), 160)
            lacks = test.lacks or f"variables that a program makes, which failed ({told})"
            return evolve(test, lacks=lacks), Slots(variables)
        variables[name] = output if is_javascript_file(at.value) else output.strip()
        places[name] = at.holding(variables[name])
    return evolve(test, variables=places), Slots(fill_nested(variables))


def _with_transformed(test: Test, number: int) -> Test:
    """Return *test* with the variables that its `transformVars` makes; it is ungraded where they cannot be made."""
    at = test.options.get("transformVars")
    if at is None:
        return test
    given = {name: one.value for name, one in test.variables.items()}
    with at.notes.lacking() as needed:
        program = transform_of(at, Context(Slots({})), "transformVars")
    why = program if isinstance(program, str) else f"transformVars with {needed[0]}" if needed else ""
    if not isinstance(program, str) and not why:
        # The same at each load: a store answers a case by its texts.
        unique = str(uuid5(NAMESPACE_URL, f"{test.at.notes.document.source}#{number}"))
        try:
            made = program.run(given, {"vars": given, "prompt": {}, "uuid": unique})
        except (JavaScriptError, ThrownError, ProgramError) as problem:
            why = f"transformVars that failed ({shorten(str(problem), 80)})"
        else:
            if isinstance(made, dict):
                return evolve(test, variables=test.variables | {key: at.holding(one) for key, one in made.items()})
            why = "transformVars that returned no variables"
    return evolve(test, lacks=test.lacks or why)


def _read_graded(test: Test, slots: Slots, cell: Cell, compared: str = "") -> Graded | None:
    lacks, provider = lacks_of(cell), test.options.get("provider")
    if provider is not None and name_of(provider)[0].startswith(SIMULATED):
        provider = None
    scores = test.options.get("factuality")
    given = scores.value if scores is not None and isinstance(scores.value, dict) else {}
    prompt, tools = test.options.get("rubricPrompt"), tools_of(cell)
    context = Context(slots, provider, prompt, factuality=given, tools=tools, test=compared)
    with test.at.notes.lacking() as needed:
        transforms = [transform_of(at, context, name) for name, at in test.options.items() if name in _CHANGING]
    transforms += [f"a transform with {lack}" for lack in needed[:1]]
    programs = tuple(one for one in transforms if not isinstance(one, str))
    context = evolve(context, transforms=programs) if programs else context
    # What would change the variables or the score by code.
    made = _made_names(test)  # what becomes of these is known
    coded = [(key, at) for key, at in test.variables.items() if is_reference(at.value) and is_code(at.value)]
    calls = [at for key, at in coded if key not in made]
    cure = "{}; or write its values into the file, as YAML, JSON or CSV"
    more = [placeholder("vars", as_text(at.value), at, cure.format(why_not(at.value))) for at in calls]
    if (scoring := test.fields.get("assertScoringFunction")) is not None:
        more.append(placeholder("assertScoringFunction", as_text(scoring.value), scoring))
    more += [
        placeholder(what, "", test.at) for what in (lacks, test.lacks, *transforms) if isinstance(what, str) and what
    ]
    return read_assertions(test.asserts, context, test.threshold, test.at, more)


def _name(test: Test, number: int, variables: Mapping[str, Any], defaults: Test, *, several: bool) -> str:
    """Return the description of *test*; without one, what its own variables hold: a number moves with other tests."""
    varying = {key for key, at in test.variables.items() if isinstance(at.value, list) and several}
    varying = {key for key in varying if isinstance(variables[key], str)}
    if name := clean(test.description):
        listed = [f"{key}={shorten(variables[key], 40)}" for key in test.variables if key in varying]
        return clean(f"{name} ({', '.join(listed)})") if listed else name
    own = {key: at for key, at in test.variables.items() if defaults.variables.get(key) is not at}
    return default_name([variables[key] if key in varying else at.value for key, at in own.items()], number)


_NAMING, _LONGEST = 3, 40
"""How many variables name a test without a description, and with how many characters each."""


def default_name(values: Sequence[Any], number: int) -> str:
    """Return the name of the test *number* that has no description, whose variables are *values* in the file."""
    shown = (clean(shorten(as_text(value), _LONGEST)) for value in values)
    return ", ".join([text for text in shown if text][:_NAMING]) or f"test-{number}"


def clean(text: str) -> str:
    """Return *text* on one line, fit to be an id."""
    if text.isascii() and text.isprintable():
        return shorten(text, 160)
    plain = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return shorten(plain, 160)


def _unasked(test: Test, cell: Cell) -> str:
    """Return why *cell* cannot be asked, though what answers it can be graded; '' if it can."""
    grader = test.options.get("provider")
    if test.unasked:
        return f"{test.unasked}; give its value as a variable, or the answers: --outputs FILE"
    if any(name.startswith(SIMULATED) for name in (cell.provider, "" if grader is None else name_of(grader)[0])):
        return SIMULATION
    return ""


def _case(
    test: Test, name: str, cell: Cell, rubric: Graded, slots: Slots, *, columns: tuple[tuple[int, int], ...]
) -> Case | None:
    prompt, asked, unasked = cell.prompt, Asked(), _unasked(test, cell)
    if prompt is not None and not lacks_of(cell) and not unasked:
        known = {CONVERSATION: [], **slots.variables} if prompt.is_continued else slots.variables
        around = _around(test)
        if prompt.program is not None:  # as in promptfoo, a made prompt has nothing around it
            prompt, around = run_program(prompt, slots.variables, cell.provider), []
            cell = evolve(cell, prompt=prompt)
        with prompt.at.notes.lacking() as lacks:
            asked = ask(prompt, known, *around, places=test.variables)
        why = f"a prompt with {lacks[0]}" if lacks else prompt.missing
        asked = evolve(asked, lacks=why) if why else asked
    output, providers, why = _output(test, cell, asked), _providers(cell, asked, slots), asked.lacks
    if output is not None and providers:
        try:
            output = providers[0].transform_output(output, slots.variables, asked.text)
        except RubricError as problem:
            why = why or f"a provider's transform that failed ({shorten(str(problem), 120)})"
    if unasked:
        test.at.once(f"no target is asked for {unasked}")
    if why:
        rubric = _read_graded(evolve(test, lacks=test.lacks or why), slots, cell) or rubric
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
        context=_context(test, slots, asked),
        output=output,
        variables={**shown, **slots.extra},
        judge=rubric.judge,
        judges=rubric.judges,
        cell=cell.names,
        metadata=test.metadata,
        place=test.at.place,
        columns=columns,
        runs=runs_of(test.option("repeat")),
        providers=providers,
        unasked=why or unasked or (prompt.unmade if prompt is not None else ""),
    )


@frozen(eq=False)
class _Continued:
    """Makes the case of a *test* in a *cell* after the earlier ones of its conversation; *echoed* is its own input."""

    test: Test
    cell: Cell
    slots: Slots
    echoed: str | None

    def __call__(self, case: Case, earlier: Sequence[Case]) -> Case:
        test, cell = self.test, self.cell
        assert cell.prompt is not None  # noqa: S101 - it shows the turns
        turns = [(one.input, one.messages, one.output or "") for one in earlier]
        around = _around(test)
        asked = input_after(
            cell.prompt,
            self.slots.variables,
            turns,
            cell.provider,
            prefix=around[0],
            suffix=around[1],
            places=test.variables,
        )
        output, providers = case.output, _providers(cell, asked, self.slots)
        if output == self.echoed and (made := _output(test, cell, asked)) is not None:
            try:
                output = providers[0].transform_output(made, self.slots.variables, asked.text) if providers else made
            except RubricError as problem:
                raise DefinitionError("providers", f"a provider's transform: {problem}") from None
        return evolve(
            case, input=asked.input, messages=asked.messages, images=asked.images, output=output, providers=providers
        )


def _around(test: Test) -> list[str]:
    return [as_text(test.option(key)) for key in ("prefix", "suffix")]


def _warn_of_names(test: Test, variables: Mapping[str, Any], asked: Asked) -> None:
    """Warn of each variable that names an image, where the prompt attaches none."""
    for name, at in () if asked.images or asked.lacks else test.variables.items():
        value = variables.get(name)
        if isinstance(value, str) and is_reference(value) and is_image(value):
            at.warn("an image is read where a prompt attaches it (image_url); this stays the name of the file")


def _context(test: Test, slots: Slots, asked: Asked) -> str:
    """Return the variable `context`, where an assertion of the test asks about it: a judge is shown it as such."""
    types = {str(at.value.get("type")).removeprefix("not-") for at in test.asserts if isinstance(at.value, dict)}
    context = slots.variables.get("context")
    if not context and "context-recall" in types:
        return asked.text
    if not any(kind.startswith("context-") for kind in types):
        return ""
    return "\n".join(map(as_text, context)) if isinstance(context, list) else as_text(context)


def _providers(cell: Cell, asked: Asked, slots: Slots) -> list[Provider]:
    if cell.at is None or not cell.provider:
        return []
    at, values = cell.at, {**slots.variables, "prompt": asked.text}
    config = cell.prompt.config if cell.prompt is not None else {}
    provider = read_provider(at, lambda template: fill_slots(at, template, values), config)
    if asked.images and provider.request is not None:
        at.once("an address is sent the texts of a prompt, not its images")
    return [provider if provider.program is None else evolve(provider, variables=FrozenMap(slots.variables))]


def _output(test: Test, cell: Cell, asked: Asked) -> str | None:
    """Return the response that the file fixes, or that promptfoo's `echo` gives: the prompt itself."""
    fixed = test.fields.get("providerOutput")
    if fixed is not None:
        return as_text(fixed.value)
    named = fields_of(None if cell.at is None else cell.at.value).get("id")
    if "echo" not in (cell.provider, named) or cell.prompt is None:
        return None
    return asked.text or None


def _unique(cases: Iterator[Case]) -> list[Case]:
    """Number the tests that share an id in a column, from the second on."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    found: list[Case] = []
    for case in cases:
        id_, column = case.id, "".join(f" / {clean(name)}" for name in case.cell.values())
        while id_ in taken:
            numbers[case.id] = numbers.get(case.id, 1) + 1
            id_ = f"{case.id.removesuffix(column)} #{numbers[case.id]}{column}"
        taken.add(id_)
        found.append(case if id_ == case.id else evolve(case, id=id_))
    return found
