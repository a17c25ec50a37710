"""
What the cases of a suite share, said once: `defaults`, a `matrix`, and named rubrics.

docs/reference/suite_format.md says what the keys mean, and how slots and ids are filled in. `share` writes plain data
so, and `spread` reads it; what would not be read as it was is written out.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.document import steps_of
from rubric.formats.fields import KEYS, SeveralError, UnknownKeyError, WrongKeyError, mismatch
from rubric.formats.json_values import each_text
from rubric.formats.native.meant import field_of
from rubric.formats.rubric_items import free_name
from rubric.formats.yaml import on_a_line, short_line, to_yaml
from rubric.internals.guesses import key_cure
from rubric.suites.cases import Case
from rubric.suites.slots import LIKE_SLOT, SLOT, VARIABLES, check_slots, checks_in, fill_slots, text_of, texts_in

Data = dict[str, Any]

_FILLED = ("input", "messages", "output", "reference", "context", "rubric")

# -- reading ------------------------------------------------------------------------------------------------


def spread(data: Data) -> tuple[Data, list[int]]:
    """
    Return *data* of a suite with each case written out, and for each the index of the case that it was written as.

    Raises:
        DefinitionError: `defaults` or `matrix` cannot be read.
        SeveralError: They have keys that no case has.
    """
    rest = {key: value for key, value in data.items() if key not in ("defaults", "matrix")}
    cases = data.get("cases")
    _refuse_matrices(data, cases if isinstance(cases, list) else [])
    if not isinstance(cases, list) or len(data) == len(rest):
        return rest, [*range(len(cases))] if isinstance(cases, list) else []
    defaults = _check("defaults", data.get("defaults", {}), ("id", "cell"))
    rows = [_check(f"matrix[{n}]", row) for n, row in enumerate(_rows(data.get("matrix", [{}])))]
    crossed = [isinstance(case, dict) and "cell" not in case and "matrix" in data for case in cases]
    if not rows or (not any(crossed or [True]) and "matrix" in data):
        raise DefinitionError("matrix", "no case is crossed with it: it has no rows, or each case has a `cell`")
    made: list[Any] = []
    origin: list[int] = []
    for index, case in enumerate(cases):
        for row in rows if crossed[index] else [{}]:
            try:
                one = _case({"id": f"case-{index + 1}", **case}, defaults, row) if isinstance(case, dict) else case
            except DefinitionError as problem:
                field = ".".join(filter(None, (f"cases[{index}]", problem.field)))
                raise DefinitionError(field, problem.message) from None
            made.append(one)
            origin.append(index)
    return {**rest, "cases": made}, origin


_MOST_CELLS = 100
_MATRICES = {"matrix", "strategy", "parametrize", "parameterize", "parametrise", "parameters", "each", "with_items"}
"""Where other systems have the rows of one case."""


def _refuse_matrices(data: Data, cases: list[Any]) -> None:
    """Refuse a matrix in one of the *cases*, or under another key of *data*, a suite, with the one that is meant."""
    for place, given in [("", data), *((f"cases[{index}].", case) for index, case in enumerate(cases))]:
        names = _MATRICES & given.keys() if isinstance(given, dict) else set()
        for key in sorted(names) if place or "matrix" not in data else ():
            typed = given[key]
            held = typed.get("matrix", typed) if isinstance(typed, dict) else typed
            within = [*held.values()] if isinstance(held, dict) else held if place and isinstance(held, list) else []
            if any(isinstance(each, list | dict if place else list) for each in within):
                said = "a matrix is that of the suite, beside its cases" if place else "jobs are the rows of a matrix"
                beside = {} if held is typed else {name: key_cure("Suite", name, ["cases"])[2:] for name in typed}
                others = "".join(f"; {name}: {cure}" for name, cure in beside.items() if name != "matrix")
                raise WrongKeyError(f"{place}{key}", f"unknown key; {said}; {_meant_rows(held)}{others}")


_ROWS = "a list of mappings with fields of a case"


def _rows(matrix: Any) -> list[Any]:
    if not isinstance(matrix, list):
        raise DefinitionError("matrix", f"{mismatch(_ROWS, matrix).message}; {_meant_rows(matrix)}")
    return matrix


def _meant_rows(matrix: Any) -> str:
    """Return the rows that a mapping of values, as CI systems have it, is meant for; or an example of rows."""
    example = "such as matrix: [{cell: {tone: warm}, variables: {tone: warm}}]"
    if isinstance(matrix, dict) and _MODELS & matrix.keys():
        said = "each model that answers has a run of its own, such as rubric grade suite.yaml --target openai/gpt-5"
        return f"{said}; what else differs is a row, {example}"
    if isinstance(matrix, list) and all(isinstance(row, dict) for row in matrix):
        cells = matrix
    elif isinstance(matrix, dict) and all(isinstance(values, list) for values in matrix.values()):
        axes = {name: values for name, values in matrix.items() if name not in ("exclude", "include")}
        left, more = (matrix.get(key, []) for key in ("exclude", "include"))
        is_large = math.prod(map(len, axes.values())) > _MOST_CELLS  # a file may be anybody's
        are_cells = all(isinstance(cell, dict) for cell in [*left, *more])
        if is_large or not are_cells or any(cell.keys() != axes.keys() for cell in more):
            return example
        crossed = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        cells = [cell for cell in crossed if not any(cell.items() >= each.items() for each in left)] + more
    else:
        return example
    line = short_line({"matrix": [*map(_row_of, cells)]})[1:-1] if cells else ""
    return f"write {line}" if line else example


_MODELS = {"model", "models", "target", "targets", "provider", "providers", "llm"}
_AXES = {"judge": "judge", "rubric": "rubric"} | dict.fromkeys(
    ("input", "inputs", "prompt", "prompts", "question", "questions", "query", "queries"), "input"
)
"""The fields of a case that the values of an axis may be; those of others are variables."""


def _row_of(cell: Data) -> Data:
    """Return the row of a matrix that a *cell* of a CI system's stands for."""
    fields = {_AXES[axis]: value for axis, value in cell.items() if axis in _AXES}
    variables = {axis: value for axis, value in cell.items() if axis not in _AXES}
    return {"cell": cell, **fields, **({"variables": variables} if variables else {})}


def _check(key: str, data: Any, refused: Sequence[str] = ()) -> Data:
    """Return *data*, fields of a case at *key*, none of which is *refused*."""
    if not isinstance(data, dict):
        is_one = isinstance(data, list) and len(data) == 1 and isinstance(data[0], dict)
        line = f"; write {on_a_line({key: data[0]})[1:-1]}" if is_one else ""
        raise DefinitionError(key, mismatch("a mapping with fields of a case", data).message + line)
    known = [name for name in KEYS[Case].values() if name not in refused]
    if unknown := [UnknownKeyError(name, known, "Case", value) for name, value in data.items() if name not in known]:
        raise SeveralError([((*steps_of(key), each.key), each) for each in unknown])
    return data


def _case(case: Data, defaults: Data, row: Data) -> Data:
    given = [each["variables"] for each in (defaults, row, case) if isinstance(each.get("variables"), dict)]
    variables = {name: value for each in given for name, value in each.items()}
    case = {**case, "variables": variables} if len(given) > 1 else case
    if "input" in row and "input" in case:
        said = "a case's own input counts before the input of its row, which would have no effect"
        line = on_a_line({"variables": {"question": case["input"]}})[1:-1]
        raise DefinitionError("input", f"{said}; write {line} in its place, and {{{{ question }}}} in the row")
    shared = {**defaults, **row}
    shown = {key: fill_shared(key, shared[key], variables) for key in _FILLED if key in shared and key not in case}
    own_id = str(fill_slots(case["id"], variables) if row else case["id"])
    id_ = SLOT.sub(lambda slot: own_id if slot[1] == "id" else slot[0], row.get("id", _id_of(row)))
    if not row:
        return {**shared, **shown, **case}
    own = {key: fill_shared(key, case[key], variables) for key in _FILLED if key in case}
    return {**shared, **shown, **case, **own, "id": id_}


def fill_shared(key: str, value: Any, variables: Any, case: Data | None = None) -> Any:
    """Return *value*, shared at *key*, with the *variables* of a *case*; refuse a slot that none fills."""
    names, given = [*_mapping(variables)], partial(_variables_with, case or {})

    def line(text: str, meant: str) -> str:
        known = {name: f"{{{{ {name} }}}}" for name in names}
        whole = each_text(value, lambda each: meant if each == text else _with_values(known, each))
        shared = short_line({key: whole})[1:-1] or on_a_line(meant)
        return f"{shared}, which all cases share" if case is not None else shared

    check_slots(value, names, key, line, _braces(key), given=given)
    return fill_slots(value, variables)


def _variables_with(case: Data, name: str) -> str:
    """Return the variables of *case* with its field that *name* is, or is a word for; '' if it has none."""
    value = _field_for(case, name)
    line = short_line({"variables": {**_mapping(case.get("variables")), name: value}})[1:-1]
    return "" if value is None else line


def _field_for(case: Data, name: str) -> Any:
    """Return the text of *case* in its field that *name* is, or is a word for; None if it has none."""
    keys = KEYS[Case].values()
    fields = {"input", "output", "reference"} & {field_of("Case", name, keys)}
    found = [each for key, each in case.items() if field_of("Case", str(key), keys) in fields]
    texts = [[*each.values()] if isinstance(each, dict) else [each] for each in found]
    return next((each[0] for each in texts if len(each) == 1 and isinstance(each[0], str)), None)


def _braces(key: str) -> str:
    file = f"file://{'rubric.yaml' if key == 'rubric' else 'text.md'}"
    return f"for braces in the text itself, have it in a file: {key}: {file}"


def refuse_unfilled(case: Data) -> None:
    """
    Refuse own texts of a *case* in which one of its variables seems to stand, with the text that is meant.

    Raises:
        DefinitionError: It has such a text.
    """
    own = {**_mapping(case.get("cell")), **_mapping(case.get("variables"))}
    for name, value in _mapping(case.get("variables")).items():
        if isinstance(value, str) and re.fullmatch(r"\$[A-Z_]\w*|\$\{[^}]*\}|\$?\{\{[^}]*\}\}", value):
            said = f"{value} would stay as it is: nothing is filled into a variable, as of the environment"
            cures = f"write the value itself, or, for this text, one with a blank behind it: {json.dumps(value + ' ')}"
            raise DefinitionError(f"variables.{name}", f"{said}; {cures}")
    for key in ("id", *_FILLED):
        found = [slot for text in texts_in(case.get(key)) for slot in LIKE_SLOT.finditer(text)]
        checked = [name for text in texts_in([*checks_in(case.get(key))]) for name in SLOT.findall(text)]
        fields = {name: _field_for(case, name) for name in checked}
        known = {name: text for name, text in fields.items() if text is not None} | own
        slots = [slot[0] for slot in found if (slot[1] or slot[2]) in known]
        for slot in found:
            if slot[0].startswith("${{") and slot[1] not in known:  # which no text of its own has
                said = f"{slot[0]} would stay as it is, and no variable of the case is called {slot[1]}"
                raise DefinitionError(key, f"{said}; write what it stands for; {_braces(key)}")
        if lists := {name: known[name] for slot in found if isinstance(known.get(name := slot[1] or slot[2]), list)}:
            said = "would stay as it is: several values of a variable are the rows of the suite's matrix"
            raise DefinitionError(key, f"{found[0][0]} {said}; {_meant_rows(lists)}, and leave them out of the case")
        if slots:
            line = short_line({key: each_text(case[key], partial(_with_values, known))})[1:-1]
            said = f"{slots[0]} would stay as it is: a case's own texts have no slots"
            other = "" if key == "id" else f"; {_braces(key)}"
            raise DefinitionError(key, f"{said}; write {line or 'what it stands for'}{other}")


def _with_values(known: Data, text: str) -> str:
    """Return *text* with the values *known* in what looks like their slots."""
    return LIKE_SLOT.sub(lambda slot: text_of(known[name]) if (name := slot[1] or slot[2]) in known else slot[0], text)


def _mapping(value: Any) -> Data:
    return value if isinstance(value, dict) else {}


def _id_of(row: Data) -> str:
    cell = row.get("cell")
    return " / ".join(["{{id}}", *map(str, cell.values())]) if isinstance(cell, dict) else "{{id}}"


def with_variables(value: Any, new: Any, old: Any = VARIABLES) -> Any:
    """Return *value*, a rubric as plain data, with *new* at each key `variables` of a check that holds *old*."""
    if isinstance(value, list):
        return [with_variables(inner, new, old) for inner in value]
    if not isinstance(value, dict):
        return value
    checks = {key: inner for key, inner in value.items() if key != "metadata"}
    return value | {k: new if k == "variables" and v == old else with_variables(v, new, old) for k, v in checks.items()}


# -- writing ------------------------------------------------------------------------------------------------


def _refer(case: Data) -> Data:
    """Return *case* whose rubric refers to its variables, where a check repeats them."""
    own = case.get("variables")
    return case if not own or "variables" in own else case | {"rubric": with_variables(case["rubric"], VARIABLES, own)}


def share(data: Data) -> Data:
    """Return *data* of a suite, each case written out, with what its cases share said once."""
    data = {**data, "cases": [_refer(case) for case in data["cases"]]}
    ways = [_share(data, data["cases"], []), *([_share(data, *found)] if (found := _cross(data["cases"])) else [])]
    return min(ways, key=lambda way: to_yaml(way).count("\n"))


def _share(data: Data, cases: Sequence[Data], matrix: list[Data]) -> Data:
    taken = {key for row in matrix for key in row} | {"id", "cell"}
    keys = [key for key in (cases[0] if len(cases) > 1 else ()) if key not in taken]
    defaults = {key: found[0] for key in keys if (found := _template(key, cases)) and found[0] != ""}
    own, rubrics = _name_rubrics([{key: case[key] for key in case if key not in defaults} for case in cases])
    said = {**rubrics, "defaults": defaults, "matrix": matrix}
    rest = {key: value for key, value in {**data, **said}.items() if key != "cases" and (value or key not in said)}
    return {**rest, "cases": own}


def _cross(cases: Sequence[Data]) -> tuple[list[Data], list[Data]] | None:
    """Return the *cases* of a matrix, each written once, and its rows; None where they are none."""
    cells = [*{json.dumps(case.get("cell")): case.get("cell") for case in cases}.values()]
    groups = [cases[n : n + len(cells)] for n in range(0, len(cases), max(len(cells), 1))]
    if len(cells) < 2 or not all(cells) or any([case.get("cell") for case in group] != cells for group in groups):  # noqa: PLR2004
        return None
    keys = {
        key for group in groups for case in group for key in case if any(_differs(key, case, group) for case in group)
    }
    ends = _ends([[str(case["id"]) for case in group] for group in groups])
    matrix: list[Data] = []
    for cell, end, *column in zip(cells, ends, *groups, strict=True) if ends else ():
        row: Data = {"cell": cell} if end == _id_of({"cell": cell})[6:] else {"id": f"{{{{id}}}}{end}", "cell": cell}
        found = {key: _template(key, column) for key in keys - {"id", "cell"}}
        matrix.append(row | {key: value for key, values in found.items() for value in values})
    held = [{key: group[0][key] for key in group[0] if key not in keys} for group in groups]
    named = [
        {"id": group[0]["id"].removesuffix(ends[0]), **case} for group, case in zip(groups, held, strict=True) if ends
    ]
    try:
        again = [_case(case, {}, row) for case in named for row in matrix]
    except DefinitionError:  # its texts have slots of their own
        return None
    return (named, matrix) if again == [*cases] else None


_BOUNDARY = re.compile(r" (?=/ |\[)")


def _ends(ids: Sequence[Sequence[str]]) -> list[str]:
    """Return the end of *ids* in each row, behind the id of their case; nothing if they have no such ends."""
    for cut in (found.start() for found in _BOUNDARY.finditer(ids[0][0])):
        ends = [id_.removeprefix(ids[0][0][:cut]) for id_ in ids[0]]
        parted = [{id_.removesuffix(end) for id_, end in zip(group, ends, strict=True)} for group in ids]
        if all(len(bases) == 1 for bases in parted) and all(ends):
            return ends
    return []


def _differs(key: str, case: Data, group: Sequence[Data]) -> bool:
    return key not in case or case[key] != group[0].get(key)


def _template(key: str, cases: Sequence[Data]) -> list[Any]:
    """Return what each of *cases* has at *key*, or makes of its variables there, as a list; empty if that differs."""
    if not all(key in case for case in cases):
        return []
    found = [cases[0][key], *(_with_slots(case[key], case) for case in cases[:5] if key in _FILLED)]
    return [value for value in found if all(_becomes(value, key, case) for case in cases)][:1]


def _becomes(value: Any, key: str, case: Data) -> bool:
    """True if *value*, said for several cases, is what *case* has at *key*."""
    try:
        return bool((fill_shared(key, value, case.get("variables")) if key in _FILLED else value) == case[key])
    except DefinitionError:
        return False


def _with_slots(value: Any, case: Data) -> Any:
    """Return *value* of *case* with slots in place of the texts of its variables."""
    names = {text_of(said): name for name, said in case.get("variables", {}).items() if text_of(said).strip()}
    if not names or not all(map(str.isidentifier, names.values())):
        return value
    texts = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return each_text(value, lambda text: texts.sub(lambda found: f"{{{{{names[found[0]]}}}}}", text))


def _name_rubrics(cases: list[Data]) -> tuple[list[Data], Data]:
    """Return *cases* that name each rubric that several have, and those; the most frequent one is the suite's own."""
    texts = [json.dumps(case["rubric"]) if isinstance(case.get("rubric"), dict) else "" for case in cases]
    slotted = [_slotted(case) if text else "" for text, case in zip(texts, cases, strict=True)]
    counts = Counter(text for pair in zip(texts, slotted, strict=True) for text in {*pair} if text)
    own = next(iter([text for text, count in Counter(filter(None, texts)).most_common(1) if count > 1]), None)
    said = {*texts_in(json.loads(own or "[]"))} - {VARIABLES}
    is_plain = not any(map(LIKE_SLOT.search, said))  # what has slots would be filled
    own = own if is_plain and all("rubric" in case for case in cases) else None
    names: dict[str, str] = {}
    asked = [case["rubric"] for case in cases if isinstance(case.get("rubric"), str)]  # would be taken for references
    for case, text, template in zip(cases, texts, slotted, strict=True):
        if not text:
            continue
        if text == own:
            del case["rubric"]
        elif counts[shared := max(text, template, key=counts.__getitem__)] > 1 and _becomes(
            json.loads(shared), "rubric", case
        ):
            name = names.setdefault(shared, free_name(_name(json.loads(shared)), [*names.values(), *asked]))
            case["rubric"] = {"ref": name}
    named = {name: json.loads(text) for text, name in names.items()}
    return cases, {"rubrics": named, "rubric": json.loads(own) if own else None}


def _slotted(case: Data) -> str:
    template = _with_slots(case["rubric"], case)
    return json.dumps(template) if _becomes(template, "rubric", case) else ""


def _name(rubric: Data) -> str:
    first = next(iter(rubric.get("criteria") or [{}]))
    name = str(rubric.get("rubric") or (first.get("id") if isinstance(first, dict) else first) or "rubric")
    return SLOT.sub(r"\1", name)[:40]
