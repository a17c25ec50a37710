"""
A suite as a promptfoo configuration, with a sentence for each thing that promptfoo cannot hold.

A rubric becomes the assertions that come nearest to it; a rubric that is one assertion, that assertion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from rubric import Criterion, DefinitionError, FitsSchema, Holds, Judge, Levels, Matches, Rubric, Unit, YesNo
from rubric.embed import NOTHING, Answer, Check, shorten, thaw
from rubric.formats.assertions.table import write_check, write_transform
from rubric.formats.assertions.texts import KNOWN, without_spaces
from rubric.formats.conversion_losses import Losses, as_averaged, provider_of, without
from rubric.formats.includes import is_reference
from rubric.formats.javascript import Transform, Transformed
from rubric.formats.json_values import each_text
from rubric.formats.model_names import SETTINGS, embedding_name
from rubric.formats.promptfoo.columns import is_chat
from rubric.formats.promptfoo.graders import model_assertion
from rubric.formats.promptfoo.reader import clean, default_name
from rubric.formats.promptfoo.tests import OWN, fill_nested
from rubric.formats.promptfoo.texts import SLOT, as_json_list, as_text, compact
from rubric.formats.rubric_items import free_name
from rubric.formats.templates.render import is_template
from rubric.grading.prompting import level_lines
from rubric.suites.cases import Case
from rubric.suites.missing_judges import unsupported_graders
from rubric.suites.suite import Suite
from rubric.values import Similar, Unsupported

_HOLDS: dict[type, set[str]] = {
    Case: {"id", "rubric", "input", "output", "messages", "images", "variables", "judge", "judges", "metadata", "place",
           "columns", "providers", "unasked"},
    Rubric: {"name", "criteria", "text", "tree", "threshold", "prompt", "negate", "binding", "degenerate"},
    Criterion: {"text", "id", "answer", "weight", "polarity", "tags"},
    Judge: {"model", *SETTINGS},
}  # fmt: skip
"""What promptfoo has a place for; for the rest it has none."""


@frozen
class Assertions:
    """A rubric as written: the *asserts* of a test with *threshold*, and the *ids* of their criteria, in order."""

    asserts: list[dict[str, Any]]
    threshold: float | None
    ids: list[str]


def assertions_of(rubric: Rubric, variables: Mapping[str, Any], losses: Losses) -> Assertions:
    """Return the assertions for *rubric*; *losses* take each thing that they do not hold."""
    alone = _alone(rubric, variables, losses)
    if alone is not None:
        return Assertions([alone], None, [rubric.judged[0].id])
    if rubric.negate:
        losses.add("the rubric", "promptfoo turns over no more than one assertion")
        return Assertions([], rubric.threshold, [])
    losses.fields(as_averaged(rubric), after=" of the rubric")
    if rubric.prompt is not None:
        losses.add("prompt of the rubric")
    made = [(criterion.id, _criterion(criterion, variables, losses)) for criterion in rubric.judged]
    kept = [(id_, assertion) for id_, assertion in made if assertion is not None]
    _name([assertion for _, assertion in kept], [id_ for id_, _ in kept])
    return Assertions([a for _, a in kept], rubric.threshold, [id_ for id_, _ in kept])


def _name(asserts: list[dict[str, Any]], ids: list[str]) -> None:
    """Give an assertion its criterion's id as metric, where reading would give it another."""
    taken: set[str] = set()
    for assertion, id_ in zip(asserts, ids, strict=True):
        own = free_name(Criterion(assertion.get("metric") or assertion["type"]).id, taken)
        if own != id_ and "metric" not in assertion:
            assertion["metric"] = id_
        taken.add(id_)


# -- rubrics that are one assertion ------------------------------------------------------------------------


def _alone(rubric: Rubric, variables: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    if (named := model_assertion(rubric)) is not None:
        return {key: value if key == "type" else escape(value) for key, value in named.items()}
    if len(rubric.judged) != 1 or rubric.tree is not None:
        return None
    (only,) = rubric.judged
    turned_check = isinstance(only.answer, Check) and rubric.negate and rubric.threshold is None
    named_otherwise = only.id != "overall" and not turned_check
    if rubric.criteria and (named_otherwise or only.tags or only.weight != 1 or only.is_unwanted):
        return None
    if isinstance(only.answer, Check):
        turned = turned_check and only.text == _words(only.answer)
        made = _check(only.answer, negated=True) if turned else None
        if made is None or made["type"].endswith(("javascript", "python")):  # they turn their own verdicts over
            return None
        losses.fields(as_averaged(rubric), after=" of the rubric")
        return {**made, "type": f"not-{made['type']}"}
    if not isinstance(only.answer, Unit):
        return None
    losses.fields(as_averaged(rubric), after=" of the rubric")
    _add_losses(only, losses)
    if rubric.threshold is not None and only.answer != Unit(flag=True):
        losses.add("that the score alone decides", "promptfoo's graders also have a pass flag")
    made = {"type": "not-llm-rubric" if rubric.negate else "llm-rubric", "value": escape(only.text)}
    if rubric.threshold is not None:
        made["threshold"] = rubric.threshold
    if rubric.prompt is not None:
        made["rubricPrompt"] = _prompt(rubric.prompt, variables, losses)
    return made


def _transform(criterion: Criterion) -> dict[str, Any]:
    """Return the keys for the transform that *criterion* is on; none where promptfoo does not have it so."""
    on = criterion.on
    said = write_transform(on) if isinstance(on, Transform) and not on.scripts else None
    keys = {} if said is None or "promptfoo" not in said.systems else said.data
    return {key: escape(code) for key, code in keys.items()}


def _add_losses(criterion: Criterion, losses: Losses) -> None:
    function = criterion.answer.function if isinstance(criterion.answer, Holds) else None
    transform = function.transform if isinstance(function, Transformed) else criterion.on
    if isinstance(transform, Transform) and transform.shared:
        losses.add(
            f"that the transform of {criterion.id!r} is the test's", "finished outputs would go through it again"
        )
    if _transform(criterion):
        criterion = evolve(criterion, on="conversation")
    losses.fields(criterion, after=f" of the criterion {criterion.id!r}")
    if criterion.polarity in ("contradiction", "correctness"):
        losses.add(f"polarity of the criterion {criterion.id!r}")
    if len(criterion.tags) > 1:
        losses.add(f"tags of the criterion {criterion.id!r}, but for the first")


# -- criteria ------------------------------------------------------------------------------------------------


def _criterion(criterion: Criterion, variables: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    if criterion.polarity == "penalty":
        losses.add(f"the penalty {criterion.id!r}", "promptfoo subtracts nothing")
        return None
    made = _write_answer(criterion, variables, losses)
    if made is None:
        losses.add(f"the criterion {criterion.id!r}", _why(criterion.answer))
        return None
    _add_losses(criterion, losses)
    made |= _transform(criterion)
    if criterion.polarity == "guard":
        made["type"] = made["type"].removeprefix("not-") if made["type"].startswith("not-") else f"not-{made['type']}"
        losses.add(f"that the criterion {criterion.id!r} fails the grade by itself")
    if criterion.weight != 1:
        made["weight"] = criterion.weight
    if criterion.tags:
        made["metric"] = criterion.tags[0]
    return made


def _why(answer: Answer) -> str:
    """Return why promptfoo cannot hold a criterion with *answer*."""
    if isinstance(answer, Check):
        kind, _, code = _words(answer).partition(": ")
        if kind.endswith("javascript") and is_reference(code):
            return f"its code is in a file; in a configuration beside that, write {{type: {kind}, value: {code!r}}}"
        return f"promptfoo has nothing like {_words(answer)!r}"
    if not isinstance(answer, Rubric):
        return f"promptfoo has nothing like {shorten(repr(answer))}"
    if answer.tree is not None:
        return "promptfoo has nothing like a decision tree"
    return "promptfoo turns over no more than one assertion" if answer.negate else "nothing is left of it to grade by"


def _words(check: Check) -> str:
    """Return *check* in words, those of what it looks for in the output after a transform."""
    function = check.function if isinstance(check, Holds) else None
    return str(function.check if isinstance(function, Transformed) else check)


def _write_answer(criterion: Criterion, variables: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    match criterion.answer:
        case Rubric() as inner:
            return _nest(criterion, inner, variables, losses)
        case Unsupported() as check:
            if criterion.text not in (check.type, str(check)):
                losses.add(f"all but the type of the criterion {criterion.id!r}, whose grader is not ours")
            return _check(check)
        case Check() as check:
            made = _check(check)
            if made is not None and criterion.text != _words(check):
                losses.add(f"the text of the criterion {criterion.id!r}", "a check says what it looks for")
            return made
        case Unit(flag=True):
            return {"type": "llm-rubric", "value": escape(criterion.text)}
        case Unit() | YesNo() | Levels():
            losses.add(
                f"the answer of the criterion {criterion.id!r}", "a grader gives a score in 0..1 and a pass flag"
            )
            words = [criterion.text]
            if isinstance(criterion.answer, Levels):
                low, high = criterion.answer.low, criterion.answer.high
                words += [f"Of a score of 1, {low} is worth 0 and {high} is worth 1.", *level_lines(criterion.answer)]
            return {"type": "llm-rubric", "value": escape("\n".join(words))}
        case _:
            return None


def _nest(criterion: Criterion, inner: Rubric, variables: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    alone = _alone(inner, variables, losses)
    if alone is not None:
        return alone
    if inner.tree is not None or inner.negate:
        return None
    losses.fields(as_averaged(inner), after=f" of the criterion {criterion.id!r}")
    if inner.prompt is not None:
        losses.add(f"prompt of the criterion {criterion.id!r}")
    made = [_criterion(part, variables, losses) for part in inner.judged]
    kept = [assertion for assertion in made if assertion is not None]
    if not any(assertion.get("weight", 1) for assertion in kept):
        return None
    _name(kept, [part.id for part, assertion in zip(inner.judged, made, strict=True) if assertion is not None])
    assertions: dict[str, Any] = {"type": "assert-set", "assert": kept}
    return assertions if inner.threshold is None else {**assertions, "threshold": inner.threshold}


# -- checks --------------------------------------------------------------------------------------------------


def _check(check: Check, *, negated: bool = False) -> dict[str, Any] | None:
    match check:
        case FitsSchema(schema={"const": tuple() | Mapping() as const}) if len(check.schema) == 1:
            return {"type": "equals", "value": escape(thaw(const))}
        case Unsupported() if check.type.removeprefix("not-") in KNOWN - {"llm-rubric", "assert-set"}:
            return {"type": check.type}
        case Similar():
            return _similar(check)
        case Matches() if _RE2.search(without_spaces(check.pattern)):
            return None
    said = write_check(check, negated=negated)
    if said is None or "promptfoo" not in said.systems:
        return None
    data = {key: value if key == "type" else escape(value) for key, value in said.data.items()}
    return data | ({"value": without_spaces(data["value"])} if data["type"] == "regex" else {})


_RE2 = re.compile(r"\A\(\?[a-zA-Z-]+\)|\(\?P<|\\[AzQC]|\[\[:|\\x\{")
"""Parts of a pattern that RE2 has, and JavaScript has not."""

_DEFAULT = Similar("x")
_KINDS = {"huggingface": "feature-extraction:", "voyage": ""}
"""What promptfoo puts before models of embeddings, where it is not `embedding:`."""


def _similar(check: Similar) -> dict[str, Any] | None:
    if not isinstance(check.model, str):
        return None
    made: dict[str, Any] = {"type": "similar" if check.measure == "cosine" else f"similar:{check.measure}"}
    made["value"] = escape(check.texts[0] if len(check.texts) == 1 else [*check.texts])
    if check.threshold != _DEFAULT.threshold:
        made["threshold"] = check.threshold
    if check.model == _DEFAULT.model:
        return made
    vendor, _, model = check.model.partition("/")
    id_ = f"{vendor}:{_KINDS.get(vendor, 'embedding:')}{model}"
    try:
        return {**made, "provider": id_} if embedding_name(id_) == check.model else None
    except DefinitionError:
        return None


# -- texts -----------------------------------------------------------------------------------------------------


def escape(value: Any) -> Any:
    """Return *value* with every text in it written so that promptfoo shows it as it is."""
    return each_text(value, lambda text: _raw(text) if is_template(text) or is_reference(text) else text)


def _raw(text: str) -> str:
    return f"{{{{ {json.dumps(text)} }}}}" if "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"


_THEIRS = {"candidate": "output", "criterion": "rubric", "output": "output", "rubric": "rubric"}


def _prompt(template: str, variables: Mapping[str, Any], losses: Losses) -> str:
    """Return a template of ours as a `rubricPrompt`."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("verbatim.") and name in variables:
            return json.dumps(_raw(str(variables[name])))[1:-1] if chat else _raw(str(variables[name]))
        if name in _THEIRS:
            return f"{{{{ {_THEIRS[name]} }}}}"
        if name.removeprefix("vars.") not in variables:
            losses.add(f"the slot {{{{ {name} }}}} of the prompt")
            return ""
        return f"{{{{ {name.removeprefix('vars.')} }}}}"

    chat = template.lstrip().startswith("[")
    return SLOT.sub(fill, template)


def write(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """Return *suite* as the data of a promptfoo configuration, and a sentence for each thing that was dropped."""
    losses = Losses(_HOLDS, "The suite")
    written: dict[str, Any] = {"description": suite.name} if suite.name else {}
    if suite.metadata:
        written["metadata"] = thaw(suite.metadata)
    written["prompts"] = [f"{{{{ {OWN} }}}}"]
    grader = provider_of(suite.judge, losses)
    if grader is not None:
        written["defaultTest"] = {"options": {"provider": grader}}
    tests = [_test(case, number, losses.of(f"The case {case.id!r}")) for number, case in enumerate(suite, 1)]
    written["tests"] = [test for test in tests if test is not None]
    return written, list(dict.fromkeys(losses.sentences))


def _test(case: Case, number: int, losses: Losses) -> dict[str, Any] | None:
    nothing = [criterion.answer for criterion in case.rubric.judged] == [NOTHING]  # and so the test asserts nothing
    lacking = () if nothing else unsupported_graders(case.rubric)
    if (lost := next((one for one in lacking if one.otherwise != "skip" and _check(one) is None), None)) is not None:
        losses.add("all of it", without(lost))
        return None
    graded = Assertions([], None, []) if nothing else assertions_of(case.rubric, case.variables, losses)
    if not nothing and not any(assertion.get("weight", 1) for assertion in graded.asserts):
        losses.add("all of it, since nothing is left to grade it by,")
        return None
    losses.fields(case)
    for assertion, id_ in zip(graded.asserts, graded.ids, strict=True):
        grader = provider_of(case.judges.get(id_), losses)
        for inner in assertion.get("assert", [assertion]) if grader is not None else ():
            inner["provider"] = grader
    grader = provider_of(case.judge, losses)
    if clean(case.id) != case.id:
        losses.add("its id", "it is put on one short line")
    variables = _variables(case, losses)
    row = {
        "description": None if case.id == default_name([*variables.values()], number) else case.id,
        "vars": variables or None,
        "providerOutput": case.output,
        "options": None if grader is None else {"provider": grader},
        "threshold": graded.threshold,
        "metadata": thaw(case.metadata) or None,
        "assert": None if nothing else graded.asserts,
    }
    return {key: value for key, value in row.items() if value is not None}


def _variables(case: Case, losses: Losses) -> dict[str, Any]:
    asked = _write_input(case, losses)
    found = {OWN: asked} if asked else {}
    for name, value in case.variables.items():
        if name.startswith(("vars.", "verbatim.")):
            continue  # made from a prompt when it was read, and made again
        if name == OWN:
            losses.add(f"the variable {name!r}", "the input has this name")
            continue
        if not isinstance(value, str):
            losses.add(f"that the variable {name!r} is not text")
        found[name] = as_text(thaw(value))
    shown = fill_nested(found)
    for name, value in found.items():
        if is_reference(value):
            losses.add(f"the variable {name!r}", "promptfoo would read it as the name of a file")
        elif shown[name] != value:
            losses.add(f"that other variables named in {'the input' if name == OWN else repr(name)} are not put in")
    return {name: value for name, value in found.items() if not is_reference(value)}


def _write_input(case: Case, losses: Losses) -> str:
    """Return the input of *case*, or its chat as JSON, with its images in the user's last message."""
    chat: list[dict[str, Any]] = [{"role": message.role, "content": message.content} for message in case.messages]
    if chat and case.input:
        losses.add("input", "it has messages")
    if not chat and not case.images:
        if (looked := as_json_list(case.input)) is not None and is_chat(looked):
            losses.add("that its input is a text and not the messages that it looks like")
        return case.input
    if not chat:
        losses.add("that its input is a text", "with images it is a chat")
        chat = [{"role": "user", "content": case.input}]
    last = next((message for message in reversed(chat) if message["role"] == "user"), None)
    if case.images and last is None:
        losses.add("images", "there is no message of the user to hold them")
    elif case.images and last is not None:
        text = [{"type": "text", "text": last["content"]}] if last["content"] else []
        last["content"] = [*text, *({"type": "image_url", "image_url": {"url": image}} for image in case.images)]
    return compact(chat)
