"""Slots in texts that several cases share: `{{ name }}` shows a variable of the case."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from rubric import DefinitionError
from rubric.embed import fields, thaw

SLOT = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")
LIKE_SLOT = re.compile(
    r"\$?\{\{\s*(?:[\w-]+\.)*([\w-]+)\s*(?:\|[^{}]*)?\}\}|\$?\{(?:(?<=\$\{)(?:[\w-]+\.)+)?([\w-]+)\}"
)
"""What other systems fill in."""

_SEEN = ("input", "output", "reference", "context", "messages")
"""What a judge is shown of each case."""

VARIABLES = "{{variables}}"
"""What stands in a rubric for all variables of its case, where they are data of a check."""


def text_of(value: Any) -> str:
    """Return the text that a slot shows; the line end that a block of YAML has is not a part of it."""
    return value.removesuffix("\n") if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)


def fill_slots(value: Any, variables: Any) -> Any:
    """
    Return *value* with the *variables* of its case in the slots of its texts and keys; a slot without one stays.

    Raises:
        DefinitionError: Two keys, such as labels of a choice, become one.
    """
    if isinstance(value, list):
        return [fill_slots(inner, variables) for inner in value]
    shown = variables if isinstance(variables, Mapping) else {}
    if isinstance(value, str):
        return SLOT.sub(lambda slot: text_of(shown[slot[1]]) if slot[1] in shown else slot[0], value)
    if not isinstance(value, dict):
        return value
    found = {fill_slots(key, shown): fill_slots(inner, shown) for key, inner in value.items()}
    if len(found) < len(value):
        keys = ", ".join(str(key) for key in value if fill_slots(key, shown) != key)
        raise DefinitionError("", f"its variables make the same text of two keys ({keys}); give them other values")
    return found


def check_slots(
    value: Any,
    names: Collection[str],
    field: str,
    line: Callable[[str, str], str],
    braces: str,
    *,
    given: Callable[[str], str] = lambda _: "",
) -> None:
    """
    Refuse a text in *value* with a slot that would not be filled, with the text that is meant.

    Args:
        names: Of the variables of the case.
        line: Returns what to write for a whole text, given as it is and as it is meant.
        braces: What to write for braces in the text itself.
        given: Returns what to write in the case for the name of a field that it has; or ''.

    Raises:
        DefinitionError: There is such a text.
    """
    for text in texts_in(value):
        whole, wrong, is_lost, own = text, "", False, ""
        for slot in [*LIKE_SLOT.finditer(text)][::-1] if text != VARIABLES else ():
            name, inner = slot[1] or slot[2], SLOT.fullmatch(slot[0])
            if inner and inner[1] in names:
                continue
            near = [name] if name in names else fields.nearest(name, names) if slot[1] else []
            if name in names and (not inner or "." in inner[1]):
                wrong = f"{slot[0]} would stay as it is: a slot is {{{{ name }}}}"
            elif slot[1]:
                wrong = f"unknown slot {slot[0]}"
            is_lost = is_lost or (bool(slot[1]) and not near)
            own = own or ("" if near else given(name))
            if near:
                whole = f"{whole[: slot.start()]}{{{{ {near[0]} }}}}{whole[slot.end() :]}"
        if wrong:
            known = f"variables of the case: {', '.join(names)}" if names else "the case has no variables"
            seen = [name for name in _SEEN if re.search(rf"\{{ *{name} *\}}", text)]
            is_checked = text in texts_in([*checks_in(value)])  # which no judge is shown
            if own and (not seen or is_checked):
                known = f"a slot shows a variable; in the case, write {own}"
            elif seen and not is_checked:
                known = f"a judge is shown the {seen[0]} of its case, so leave the slot out, or say what it stands for"
            raise DefinitionError(field, f"{wrong}; {known if is_lost else f'write {line(text, whole)}'}; {braces}")


def checks_in(value: Any) -> Iterator[Any]:
    """Yield the checks in *value*, a rubric as plain data."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from (inner,) if key == "check" else checks_in(inner)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in *value*, plain data; keys are none of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inside: Iterable[Any] = value if isinstance(value, list) else value.values()
        for inner in inside:
            yield from texts_in(inner)
