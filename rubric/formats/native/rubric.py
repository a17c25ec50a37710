"""Rubrics in files: criteria, trees, conditions, scales. What has its default is not written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats import fields
from rubric.formats.document import KeyPath
from rubric.formats.fields import WRITERS, Data, Gathering, mismatch
from rubric.formats.files import read_text as read_text_of
from rubric.formats.native.answers import ANSWERS, AnswerKey, write_answer
from rubric.formats.native.checks import read_check
from rubric.formats.native.meant import CONDITIONS, meant_criterion, meant_tree, read_or_tell, reads, trying
from rubric.formats.native.meant_rubrics import criteria_apart, meant_test
from rubric.formats.native.meant_whole import has_all
from rubric.formats.native.runs import read_candidate
from rubric.formats.notes import Loading
from rubric.formats.yaml import on_a_line, short_line
from rubric.internals.fields import as_share, check_number, names_a_file, refuse_path
from rubric.internals.guesses import criteria_of, word_cure
from rubric.internals.text import shorten
from rubric.values.answers import Answer, Boolean, Letter, Likert, Scale, UnitScale, YesNo
from rubric.values.building import check_gate
from rubric.values.candidates import Candidate, as_images
from rubric.values.checks import Check, is_matcher
from rubric.values.criteria import Anchor, Criterion, When, names_a_metric, refuse_metric
from rubric.values.rubric_tests import RubricTest, is_reference, show_range
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree, Leaf

KINDS = ("criteria", "text", "tree")
"""The keys of which a rubric has one."""

_NAMED_SCALES: dict[str, Callable[[], Scale]] = {"unit": UnitScale, "boolean": Boolean, "letter": Letter}


def read_branch(data: Any) -> DecisionTree | Leaf:
    """Return the branch of an answer: a question, a score, or `{score, reason}`."""
    if isinstance(data, dict):
        return _read_leaf(data) if "score" in data or "reason" in data else read_tree(data)
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise mismatch("a score from 0 to 1, {score, reason}, or a question {ask, yes, no}", data)
    check_number("", data, 0, 1)
    return Leaf(data)


def read_tree(data: Any) -> DecisionTree:
    """Return a question with its branches; true and false stand for yes and no, as YAML 1.1 had it."""
    return read_or_tell(_read_tree, data, lambda given: meant_tree(given, _read_tree))


def _read_tree(data: Any) -> DecisionTree:
    node = fields.as_dict(data, "a question {ask, yes, no}")
    for boolean, name in ((True, "yes"), (False, "no")):
        if any(key is boolean for key in node) and name not in node:
            node = {(name if key is boolean else key): value for key, value in node.items()}
    return _read_question(node)


# -- criteria and rubrics -------------------------------------------------------------------------


def words_of(answer: Answer) -> str:
    """Return the text of a criterion that has none of its own; only checks and rubrics need none."""
    if isinstance(answer, Check):
        return str(answer)
    if isinstance(answer, Rubric):
        return answer.name if answer.name.strip() else shorten(answer.text, 80) or "included"
    return ""


def read_when(data: Any) -> When | None:
    """Return the condition under which a criterion applies."""
    if data is None:
        return None
    given = [key for key in fields.as_dict(data, _CONDITION) if key in _CONDITIONS]
    if len(given) > 1 or not {*data} - {"negated"}:
        raise mismatch(_CONDITION, " and ".join(given) or None)
    return _read_when(data)


_CONDITIONS = ("contains", "regex", "tool_called")
_CONDITION = f"a mapping with one of {', '.join(_CONDITIONS)}"


def meant_row(data: Any) -> dict[str, Any] | None:
    """Return the criterion that is meant by *data*, or None."""
    if isinstance(data, list) and [*map(type, data)] in ([str, int], [str, float]):
        data = {"text": data[0], "weight": data[1]}
    with suppress(TypeError, ValueError):  # of a value that has no place in any form
        return meant_criterion(data, _read_one, [*ANSWERS, *fields.KEYS[Criterion].values()])
    return None


def _read_one(data: Any) -> Criterion:
    if isinstance(data, str):
        refuse_path("", data, f"copy its criteria, or, to ask by this text, write {{text: {data}}}")
        refuse_metric("", data, f"{{text: {data}}}")
        data = {"text": data}
    given = fields.as_dict(data, "a criterion (its text, or a mapping)")
    gathering = Gathering()
    answer: Answer = YesNo()
    answers = [key for key in given if key in ANSWERS]
    for key in answers:
        with gathering.at(key):
            if key != answers[0]:
                why = f"a criterion has one answer, and here is {answers[0]} too; keep one of them"
                raise fields.WrongKeyError("", why)
            answer = ANSWERS[key].read(given[key])
    rest = {key: value for key, value in given.items() if key not in ANSWERS}
    if {"check", "rubric"} & {*answers}:
        rest.setdefault("text", words_of(answer) or "unknown")
    unknown = [key for key in rest if key not in fields.KEYS[Criterion].values()]
    if "text" not in rest and unknown and isinstance(rest[unknown[0]], str | int | float):
        meant = next((key for key in unknown if word_cure("keys", "Criterion", str(key), ["text"])), None)
        if meant is None and (len(unknown) > 1 or word_cure("keys", "Criterion", str(unknown[0]), ["id", "check"])):
            gathering.problems.append(((), fields.MissingKeyError("text")))
        elif meant is None:
            key, value = str(unknown[0]), rest[unknown[0]]
            quoted = f"if the colon is in the text, quote it: {shorten(f'{key}: {value}', 100)!r}"
            weighed = f"for a weight, write {{text: {key}, weight: {value}}}; "
            cure = weighed if isinstance(value, int | float) else "add it, or "
            raise DefinitionError("", f"the key 'text' is missing; {cure}{quoted}")
        with gathering.at(meant):
            if meant is not None:
                raise fields.UnknownKeyError(meant, fields.KEYS[Criterion].values(), "Criterion")
        rest["text"] = str(rest.pop(meant, "unknown"))  # so that the other keys are read
    with gathering.at():
        check_gate(rest.get("polarity"), rest)
        criterion = _read_criterion({**rest, "answer": answer})
    gathering.finish()
    return criterion


def read_criteria(data: Any) -> list[Criterion]:
    """Return a list of criteria, no two of which share an id."""
    gathering = Gathering()
    seen: dict[str, int] = {}
    criteria = []
    if isinstance(data, dict):
        is_scale = all(re.fullmatch(r"score_?\d+\w*", str(key)) for key in data)  # as in ragas
        meant = [*map(meant_row, [{"text": "How good is it?", "levels": data}] if is_scale else criteria_of(data))]
        line = f"; {'such as' if is_scale else 'write'} criteria: {on_a_line(meant)}" if None not in meant else ""
        raise DefinitionError("", f"expected a list of criteria, got a mapping{line}")
    rows = [each for each in fields.as_list(data, "a list of criteria") if isinstance(each, dict)]
    named = (each for each in rows if isinstance(each.get("id"), str) and isinstance(each.get("text"), str))
    texts = {each["id"]: each["text"] for each in named}
    for index, item in enumerate(data):
        with gathering.at(index):
            row: Any = item
            for key in CONDITIONS if isinstance(item, dict) else ():  # it may be another criterion, by its id
                one = item.get(key)
                name = str(one[0] if isinstance(one, list) and len(one) == 1 else one)
                row = {**row, key: texts[name]} if one and name in texts else row
            criterion = read_or_tell(_read_one, row, meant_row)
            criteria.append(criterion)
            first = seen.setdefault(criterion.id, index)
            if first != index:
                message = f"the id {criterion.id!r} belongs to criteria[{first}] already; give one of them another"
                raise DefinitionError("id", message)
    gathering.finish()
    return criteria


def read_scale(data: Any) -> Scale:
    """Return how scores are shown: `unit`, `boolean`, `letter` or `{likert: {min: 1, max: 5}}`."""
    if isinstance(data, dict) and [*data] == ["likert"]:
        return fields.read_inner(data, "likert", _read_likert)
    return fields.read_named(data, _NAMED_SCALES, "{likert: {min: 1, max: 5}}")


def read_rubric(data: Any) -> Rubric:
    """Return a rubric: a mapping with one of `criteria`, `text` and `tree`; something in it counts."""
    given = _as_mapping(data)
    gathering = Gathering()
    given = _with_apart(given, gathering)
    kinds = [key for key in given if key in KINDS]
    known = {*KINDS, *fields.KEYS[Rubric].values()}
    one = next(iter(given.values())) if len(given) == 1 and not given.keys() & known else None
    if isinstance(one, str) and " " not in one:
        if names_a_file(one):
            cure = f"in a case, write rubric: file://{one.removeprefix('file://')}"
            raise DefinitionError("", f"no file is read so; {cure}")
        cure = f"a rubric with a name, under `rubrics`, is that of a case; there, write rubric: {{ref: {one}}}"
        raise DefinitionError("", f"{cure}; elsewhere its criteria are written out")
    if given and not given.keys() & known:  # criteria by their ids, or weights by texts
        rows = [*map(meant_row, criteria_of(given))]
        if None not in rows and not any(word_cure("keys", "Rubric", str(key), KINDS) for key in given):
            raise DefinitionError("", f"a rubric has criteria, text or tree; write {{criteria: {on_a_line(rows)}}}")
    if not kinds and not any(word_cure("keys", "Rubric", str(key), KINDS) for key in given.keys() - known):
        message = "a rubric has criteria, text or tree, and here is none; write one"
        gathering.problems.append(((), DefinitionError("", message)))
    for key in kinds[1:]:
        with gathering.at(key):
            raise fields.WrongKeyError("", f"a rubric has {kinds[0]} or {key}, not both; nest one in the other")
    with gathering.at():
        try:
            rubric = _read_rubric({key: value for key, value in given.items() if key not in kinds[1:]})
        except fields.SeveralError as problem:
            problem.problems = [(path, _threshold_problem(path, error, given)) for path, error in problem.problems]
            raise
        rubric.check_weights()
        for index, test in enumerate(rubric.tests):
            test.check(rubric, f"tests[{index}]")
    gathering.finish()
    return rubric


def _as_mapping(data: Any) -> Data:
    """Return *data*, a rubric, which is a mapping."""
    if isinstance(data, str) and names_a_file(data):
        cure = f"copy its criteria, such as rubric: {{criteria: [Is polite]}}; in Python it is includes(load({data!r}))"
        raise DefinitionError("", f"expected a rubric, got {data!r}; no other file is read here; {cure}")
    if (whole := _whole_in(data)) is not None:
        raise DefinitionError("", f"a rubric is one mapping; write the whole as {on_a_line(whole)}")
    return fields.as_dict(data, "a rubric (a mapping with criteria, text or tree)")


def _whole_in(data: Any) -> dict[str, Any] | None:
    """Return the rubric that a list of criteria is, or one under its own name with the keys beside it; None if none."""
    held = data.get("rubric") if isinstance(data, dict) else None
    fields_of = held.items() if isinstance(held, dict) else ()
    own = {"rubric" if key in ("name", "title", "id") else key: each for key, each in fields_of}
    beside = {key: each for key, each in data.items() if key != "rubric"} if own else {}
    rows = data if isinstance(data, list) else own.get("criteria", beside.get("criteria")) if own else None
    if not isinstance(rows, list) or own.keys() & beside.keys() or trying.get():
        return None
    meant = [meant_row(each) or each if isinstance(each, dict) else each for each in rows]
    whole = {**own, **beside, "criteria": meant}
    return whole if reads(read_rubric, whole) and (line := short_line(whole)) and has_all(data, line) else None


def _with_apart(given: Data, gathering: Gathering) -> Data:
    """Return the rubric *given*; refuse fields of criteria that stand apart from them, and read these with them."""
    if given.keys() <= {*fields.KEYS[Rubric].values()}:
        return given
    used, rows = criteria_apart(given, meant_row)
    meant = [meant_row(each) or (each if reads(_read_one, each) else None) for each in rows if used]
    line = short_line(meant) if used and None not in meant else ""
    if not line or not has_all({key: each for key, each in given.items() if key in ("criteria", *used)}, line):
        return given
    also = f", and leave out {', '.join(map(repr, used[1:]))}" if used[1:] else ""
    with gathering.at(used[0]):
        raise fields.WrongKeyError("", f"unknown key; each criterion says it itself; write criteria: {line}{also}")
    return {**{key: each for key, each in given.items() if key not in used}, "criteria": meant}


def _threshold_problem(path: KeyPath, error: DefinitionError, given: Data) -> DefinitionError:
    """Return *error* on the threshold of a rubric, or on a word for it, with the one that is meant."""
    if isinstance(error, fields.UnknownKeyError) and error.meant == "threshold" and "threshold" not in given:
        cure = _threshold_cure({**given, "threshold": error.value})
        return fields.WrongKeyError("", f"unknown key; a score is from 0 to 1{cure}") if cure else error
    return DefinitionError("", error.message + _threshold_cure(given)) if path == ("threshold",) else error


def _threshold_cure(given: Data) -> str:
    """Return the end of the message on the threshold of a rubric, *given* in points, or with a second one; or ''."""
    match given:
        case {"threshold": dict(ends), "criteria": list(rows)} if {*ends} & {
            word for row in rows if isinstance(row, dict) for word in (row.get("id"), *(row.get("tags") or ()))
        }:
            first = next(iter(ends))
            group = {"id": first, "required": True, "rubric": {"threshold": ends[first], "criteria": ["Is polite"]}}
            return f"; a group with a threshold of its own is a rubric within, such as criteria: {on_a_line([group])}"
        case {"threshold": dict(ends)} if 0 < len(ends) < 3:  # noqa: PLR2004 - bars
            parts = (each if isinstance(each, float) else f"{each}%".replace("%%", "%") for each in ends.values())
            shares = [as_share(each) if isinstance(each, str) else each for each in parts]
            if any(each is None or not 0 < each <= 1 for each in shares):
                return ""
            *low, high = sorted(map(float, filter(None, shares)))
            said = "what lies between them is borderline, which does not pass"
            return f"; write threshold: {high:g}" + "".join(f" and borderline: {each:g}; {said}" for each in low)
        case {"threshold": int() | float() as least, "criteria": list(rows)}:
            held = [(meant_row(each) or each).get("levels") if isinstance(each, dict) else None for each in rows]
            scale = re.fullmatch(r"(?a)(\d{1,3})\.\.(\d{1,3})", str(held[0])) if len({*map(str, held)}) == 1 else None
            if scale and (first := int(scale[1])) < least <= (last := int(scale[2])):
                share = (least - first) / (last - first)
                return f"; {least} on the scale from {first} to {last} is threshold: {share:.3g}"
            points = [each.get("points", each.get("weight", 1)) if isinstance(each, dict) else 1 for each in rows]
            whole = sum(each for each in points if isinstance(each, int | float) and each > 0)
            if 1 < least <= whole != len(points):
                return f"; {least} of the {whole} points of its criteria is threshold: {least / whole:.3g}"
    return ""


_loading: ContextVar[Loading] = ContextVar("_loading")


@contextmanager
def reading_from(loading: Loading) -> Iterator[None]:
    """Let values that are `file://` names (replies to tests, images) be read with *loading* within the block."""
    token = _loading.set(loading)
    try:
        yield
    finally:
        _loading.reset(token)


def loading_of() -> Loading:
    """Return what is read with, as `reading_from` was told."""
    return _loading.get(Loading())


def _read_reply(data: Any) -> Any:
    loading = loading_of()
    output = data.get("output") if isinstance(data, dict) else data
    if loading.folder is None or not isinstance(output, str) or not is_reference(output):
        return read_candidate(data) if isinstance(data, dict) else data
    from rubric.formats.includes import bare  # noqa: PLC0415 - it brings templates, which few rubrics need

    file = loading.folder / bare(output)
    if isinstance(data, dict):
        if file.is_file():
            cure = f"write the text of the file here, or the file alone: reply: {output}"
            raise DefinitionError("output", f"the output of a mapping is text, and no file is read for it; {cure}")
        return read_candidate(data)
    try:
        return Candidate(read_text_of(file, loading.root))
    except LoadError as error:
        raise DefinitionError("", error.problems[0].message) from None


def _read_image(image: Any) -> str:
    if not isinstance(image, str) or not is_reference(image):
        (read,) = fields.read_bare(as_images, [image])
        return read
    from rubric.formats.images import read_image  # noqa: PLC0415 - as above

    return read_image(image, _loading.get(Loading()))


def read_images(data: Any) -> Any:
    """Return the images of a case, those that are files in the place of their `file://` names."""
    return [*fields.read_each(dict(enumerate(data)), _read_image).values()] if isinstance(data, list) else data


_read_leaf = fields.reader_of(Leaf)
_read_likert = fields.reader_of(Likert, {"low": "min", "high": "max"})
_read_anchor = fields.reader_of(Anchor)
_read_question = fields.reader_of(DecisionTree, {"question": "ask"}, yes=read_branch, no=read_branch)
_read_when = fields.reader_of(When, holds=None)


def _read_on(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    from rubric.formats.assertions.table import read_view  # noqa: PLC0415 - it brings code that few rubrics need

    return read_view(fields.read_free(data))


_read_criterion = fields.reader_of(
    Criterion,
    beside=ANSWERS,
    on=_read_on,
    when=read_when,
    anchors=lambda data: fields.read_all(data, "anchor", _read_anchor),
)

_read_test = fields.reader_of(RubricTest, reply=_read_reply)

_read_rubric = fields.reader_of(
    Rubric,
    {"name": "rubric"},
    tests=lambda data: fields.read_all(
        data, "test", lambda one: read_or_tell(_read_test, one, lambda given: meant_test(given, _read_test))
    ),
    criteria=read_criteria,
    text=fields.read_text,
    tree=read_tree,
    aggregation=lambda data: "min" if data == "worst" else data,
    scale=read_scale,
)


# -- writing ------------------------------------------------------------------------------------------------


def as_data(rubric: Rubric) -> Data:
    """Return *rubric* as plain data in the spelling of files."""
    data: Data = fields.write(rubric)
    return data


_CRITERION = ("id", "text", "weight", "required", "polarity", "min_score", "evidence", "abstain", "when", "answer")
_RUBRIC = (
    "name", "reviewed", "provenance", "threshold", "borderline", "strict", "aggregation", "evidence", "abstain",
    "scale", "negate",
)  # fmt: skip


def _when(when: When) -> Data:
    if when.holds is None:
        return fields.fields_of(when)
    raise DumpError("its `when` is a Python function; use contains, regex or tool_called")


class _NamedError(DumpError):
    """A `DumpError` that names the innermost criterion already."""


def _on(on: Any) -> Any:
    if is_matcher(on):
        raise DumpError(f"it is on {on}, which no file can hold")
    if not callable(on):
        return on
    from rubric.formats.assertions.table import write_transform  # noqa: PLC0415 - as for reading
    from rubric.formats.javascript import Transform  # noqa: PLC0415 - as above

    if not isinstance(on, Transform) or on.scripts:
        raise DumpError(f"it is on a function, {on!r}, which no file can hold")
    said = write_transform(on)
    return fields.free({**said.data, **said.own})


def _criterion(criterion: Criterion) -> Data | str:
    try:
        data = fields.fields_of(evolve(criterion, on="conversation"), first=_CRITERION, without="answer")
        data |= {"on": _on(criterion.on)} if criterion.on != "conversation" else {}
        answer = write_answer(criterion.answer)
    except _NamedError:
        raise
    except DumpError as problem:
        raise _NamedError(f"criterion {criterion.id!r}: {problem}") from None
    first: tuple[str, ...] = _CRITERION
    if criterion.text == words_of(criterion.answer):
        del data["text"]
        first = ("id",)
    head = {key: data.pop(key) for key in first if key in data}
    data = {**head, **answer, **data}
    is_bare = [*data] == ["text"] and not names_a_file(criterion.text) and not names_a_metric(criterion.text)
    return str(criterion.text) if is_bare else data


def _rubric(rubric: Rubric) -> Data:
    data = fields.fields_of(rubric, first=_RUBRIC, last=(*KINDS, "tests"))
    return data if any(key in data for key in KINDS) else {**data, "criteria": []}


ANSWERS |= {
    "tree": AnswerKey((DecisionTree,), read_tree),
    "check": AnswerKey((Check,), read_check),
    "rubric": AnswerKey((Rubric,), read_rubric),
}

WRITERS |= {
    **dict.fromkeys((DecisionTree, Anchor), fields.fields_of),
    Leaf: lambda leaf: fields.fields_of(leaf) if leaf.reason else fields.free(leaf.score),
    Rubric: _rubric,
    Criterion: _criterion,
    RubricTest: lambda test: fields.fields_of(test) | ({} if test.score is None else {"score": show_range(test.score)}),
    When: _when,
    UnitScale: lambda _: "unit",
    Boolean: lambda _: "boolean",
    Letter: lambda _: "letter",
    Likert: lambda likert: {"likert": {"min": fields.free(likert.low), "max": fields.free(likert.high)}},
}
