"""Validators and converters for fields: each raises a `DefinitionError` with the field, the value and the cure."""

from __future__ import annotations

import math
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rubric.errors import DefinitionError
from rubric.internals.frozen_map import FrozenMap, scalar, thaw
from rubric.internals.guided import Guided
from rubric.internals.text import shorten

if TYPE_CHECKING:
    from pathlib import Path

    from attrs import Attribute


class Shown(Guided):
    """
    Gives a frozen attrs class the `repr` that one would type.

    The fields named in `_positional`, without it those that are not keyword-only, come first and bare. A field that has
    its default value is left out.
    """

    __slots__ = ()
    _positional: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kind: Any = type(self)
        order = self._positional or [f.name for f in attrs.fields(kind) if f.init and not f.kw_only]
        fields = {f.alias or f.name: getattr(self, f.name) for f in shown_fields(self)}
        last = max((n for n, name in enumerate(order, 1) if name in fields), default=0)
        bare = [repr(thaw_plain(getattr(self, name))) for name in order[:last]]
        named = [f"{name}={thaw_plain(value)!r}" for name, value in fields.items() if name not in order]
        return f"{kind.__name__}({', '.join(bare + named)})"


def thaw_plain(value: Any) -> Any:
    """Return a plain `FrozenMap` as a dict, so that a repr can be typed back; settings have their own."""
    return thaw(value) if type(value) is FrozenMap else value


def shown_fields(value: Any) -> list[attrs.Attribute[Any]]:
    """Return the fields of *value* that are set, and differ from their defaults."""
    return [f for f in attrs.fields(type(value)) if f.init and getattr(value, f.name, d := default_of(f, value)) != d]


def fields_in(kind: type[attrs.AttrsInstance], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of *kind* among what an `__init__` of its own was *given*: the `locals()` of that one."""
    return {one.name: given[one.name] for one in attrs.fields(kind) if one.name in given}


def default_of(field: attrs.Attribute[Any], value: Any) -> Any:
    """Return the default of *field*, as *value* would hold it."""
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types Factory as a function
        made = default.factory(value) if default.takes_self else default.factory()
        return field.converter(made) if callable(field.converter) else made
    return default


Validator = Callable[[Any, "Attribute[Any]", Any], None]
T = TypeVar("T")


def refuse(field: str, found: object, allowed: str) -> DefinitionError:
    """Return (not raise) the error for *field*, which holds *found* and may hold what is *allowed*."""
    return DefinitionError(field, f"expected {allowed}, got {as_found(found)}")


def as_found(value: object) -> str:
    """Return *value* as errors quote it."""
    from rubric.internals.secrets import redact  # noqa: PLC0415 - its patterns are needed for errors alone

    return shorten(redact(repr(value)))


def is_missing(value: object) -> bool:
    """True for an empty cell of a frame: None, NaN, and pandas' NA and NaT, whose comparisons have no truth."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.startswith("pandas.")


def suggest(found: str, allowed: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` where a name in *allowed* is near *found*, else what is allowed."""
    names = [*allowed]
    near = nearest(found, names, 0.65)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(names)}" if names else ""


def nearest(found: str, names: Collection[str], cutoff: float = 0.6, *, most: int = 1) -> list[str]:
    """Return the *most* of *names* that are nearest to *found*, the nearest first; an empty list if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed for errors alone

    return get_close_matches(found, names, n=most, cutoff=cutoff)


# Patterns in this module are compiled on first use: `import rubric` needs none of them.
_INFLECTED = r"(?<=.{3})(?:ions?|s|ed|ing)$"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def misspelt(found: object, allowed: Iterable[str]) -> str:
    """
    Return the name in *allowed* that *found* misspells; empty if it is just another name.

    Near are names that differ by a letter, by the order of their letters, by case and separators (`rubric_prompt`,
    `rubricPrompt`) or by an ending (`assertions`, `assert`).
    """
    if not isinstance(found, str):
        return ""
    letters = _letters(found)
    opposites = {f"no{letters}", f"not{letters}", re.sub("^not?", "", letters)} - {letters}
    names = {plain: name for name in allowed if (plain := _letters(name)) not in opposites}
    same = [name for name in names if re.sub(_INFLECTED, "", name) == re.sub(_INFLECTED, "", letters)]
    shuffled = [name for name in names if sorted(name) == sorted(letters) and len(name) > 3]  # noqa: PLR2004 - not id, di
    # A slip of the keys seldom takes the first letter: `provenance` is another word than `governance`.
    alike = [name for name in names if name[:1] == letters[:1]]
    near = same or shuffled or nearest(letters, alike, cutoff=0.8) or nearest(letters, names, cutoff=0.85)
    return names[near[0]] if near else ""


def keeping(check: Callable[[str, object], object]) -> Validator:
    """
    Return a validator by *check*, which returns the value to keep.

    NumPy's scalars are allowed as the numbers that they are. Kept as they are, they would show in every repr, and JSON
    and YAML would refuse some. attrs runs validators last, on the finished object, so the field is set anew.
    """

    def validate(instance: Any, attribute: Attribute[Any], given: object) -> None:
        if (plain := check(attribute.name, given)) is not given:
            object.__setattr__(instance, attribute.name, plain)

    return validate


def check_text(field: str, value: object) -> str:
    """Return *value*; refuse all but text with something in it, for *field*."""
    if isinstance(value, bool):
        said = "yes" if value else "no"
        raise DefinitionError(field, f'expected text, got the boolean {value}; quote it: "{said}"')
    if not isinstance(value, str):
        raise refuse(field, value, "text")
    if not value.strip():
        raise DefinitionError(field, "expected text, got an empty one; write what is to be judged")
    return value


text = keeping(check_text)


def string(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but text; it may be empty."""
    if not isinstance(value, str):
        raise refuse(attribute.name, value, "text")


@keeping
def flag(field: str, value: object) -> bool:
    """Refuse all but True and False."""
    if not isinstance(found := scalar(value), bool):
        raise refuse(field, value, "True or False")
    return found


def plain_number(value: object) -> object:
    """Return *value*, a number of any library, as an int or a float; anything else as it is, booleans too."""
    value = scalar(value)
    if type(value) in (bool, int, float):
        return value
    from numbers import Complex, Integral, Number, Real  # noqa: PLC0415 - for the numbers of other libraries alone

    if isinstance(value, Integral):
        return int(value)
    is_decimal = isinstance(value, Number) and not isinstance(value, Complex)  # without the import of `decimal`
    return float(value) if is_decimal or isinstance(value, Real) else value  # type: ignore[arg-type]


def number(low: float = 0.0, high: float = math.inf, *, above: bool = False) -> Validator:
    """Return a validator for finite numbers from *low* (or just *above* it) to *high*."""
    return keeping(lambda name, value: check_number(name, value, low, high, above=above))


def check_number(field: str, value: object, low: float, high: float = math.inf, *, above: bool = False) -> float:
    """Return *value* as Python's own number; refuse all but finite ones from *low* (or just *above* it) to *high*."""
    start = f"above {low:g}" if above else f"from {low:g}"
    allowed = f"a finite number {start}" + ("" if math.isinf(high) else f" to {high:g}")
    found = plain_number(value)
    if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
        raise refuse(field, value, allowed)
    if abs(found) > sys.float_info.max or (above and found == low):  # `math.isfinite` raises for huge whole numbers
        raise refuse(field, value, allowed)
    return found


_SHARE = r"(?a)\s*(\d{1,3}(?:\.\d+)?)\s*(%|/\s*[1-9]\d{0,2}|out of\s+[1-9]\d{0,2})\s*"


def as_share(value: str) -> float | None:
    """Return the share in 0..1 that *value*, such as "80%" or "4/5", means; None if it means none."""
    if (written := re.fullmatch(_SHARE, value)) is None:
        return None
    share = float(written[1]) / (100 if written[2] == "%" else int(re.sub(r"\D", "", written[2])))
    return share if share <= 1 else None


def count(low: int = 1, other: str = "") -> Validator:
    """Return a validator for whole numbers of at least *low*; *other* is what else the error says is allowed."""
    return keeping(lambda name, value: check_count(name, value, low, other))


def check_count(field: str, value: object, low: int = 1, other: str = "") -> int:
    """Return *value* as Python's own number; refuse all but whole ones of at least *low*."""
    found = value if type(value) is int else plain_number(value)
    if isinstance(found, bool) or not isinstance(found, int) or found < low:
        raise refuse(field, value, f"a whole number of at least {low}{other}")
    return found


def one_of(*names: str) -> Validator:
    """Return a validator for one of *names*."""
    return lambda _, attribute, value: check_name(attribute.name, value, names)


def check_name(field: str, value: object, names: Collection[str]) -> None:
    """Refuse all but one of *names*, for *field*."""
    if not isinstance(value, str) or value not in names:
        hint = suggest(value, names) if isinstance(value, str) else f"; allowed: {', '.join(names)}"
        raise DefinitionError(field, f"unknown value {shorten(repr(value))}{hint}")


def check_fields(kind: type, called: str, given: Iterable[str]) -> None:
    """Refuse a name in *given* that no field of *kind*, which is *called* so, has."""
    known = [f.name for f in attrs.fields(kind)]
    for name in given:
        if name not in known:
            raise DefinitionError(name, f"{called} has no such field{suggest(name, known)}")


optional: Callable[[Validator], Validator] = attrs.validators.optional


def identifier(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse text that looks like another: with invisible characters, or white space at its ends."""
    said = check_text(attribute.name, value)
    if said != said.strip() or not (said.isprintable() or all(unicodedata.category(c)[0] != "C" for c in said)):
        message = f"{said!r} has white space at its ends or invisible characters; take them out"
        raise DefinitionError(attribute.name, message)


def as_map(field: str, value: object, allowed: str = "a mapping") -> FrozenMap:
    """Return *value*, a mapping, as one that does not change; all else is refused."""
    found = frozen(value)  # type: ignore[arg-type]
    if type(found) is FrozenMap:
        return found
    raise refuse(field, value, allowed)


def as_settings(field: str, value: object, *, hidden: bool = False) -> FrozenMap:
    """Return *value*, a mapping, as settings whose `repr` shows no secret; *hidden*, all of them are secrets."""
    from rubric.internals.secrets import Hidden, Settings  # noqa: PLC0415 - as in `refuse`

    return (Hidden if hidden else Settings)(as_map(field, value))


def frozen(value: Mapping[str, Any]) -> FrozenMap:
    """Return *value*, a mapping, as one that does not change; all else as it is, for `mapping` to refuse."""
    is_made = type(value) is FrozenMap or not (type(value) is dict or isinstance(value, Mapping))
    return value if is_made else FrozenMap(value)  # type: ignore[return-value]


def mapping(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but mappings, as `frozen` leaves them."""
    if type(value) is not FrozenMap:
        raise refuse(attribute.name, value, "a mapping")


def listed(value: Iterable[str]) -> tuple[str, ...]:
    """Return *value*, a list or the like, as a tuple; all else as it is, for `texts` to refuse."""
    if type(value) is tuple:
        return value
    is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | AbstractSet)
    return tuple(value) if is_several else value  # type: ignore[return-value]


def texts(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but lists of texts."""
    as_tuple(attribute.name, value, str, "texts")


def as_tuple(field: str, value: object, kind: type[T], what: str) -> tuple[T, ...]:
    """Return *value*, an iterable of *kind*, as a tuple; a lone text, a mapping or a set is refused."""
    if type(value) is tuple and not value:
        return value
    if not isinstance(value, tuple | list) and (
        isinstance(value, str | bytes | Mapping | AbstractSet) or not isinstance(value, Iterable)
    ):
        raise refuse(field, value, f"a list of {what}")
    items = tuple(value)
    for index, item in enumerate(items):
        if not isinstance(item, kind):
            raise refuse(f"{field}[{index}]", item, what)
    return items


# -- paths -----------------------------------------------------------------------------------------------

_FILES = frozenset(
    """
    cfg conf csv diff doc docx eml gif gz htm html ini ipynb java jpeg jpg json jsonl log md markdown ndjson odt parquet
    patch pdf pkl png pptx py rst rtf sh sql tex toml ts tsv tsx txt webp xlsx xml yaml yml zip
    """.split()  # noqa: SIM905 - a list of its own lines would be a page
)
"""Suffixes of files. Not "js" and "net", in which names of products end (Node.js, ASP.NET)."""

_ROOTED = r"~?[/\\](?!/)|\.\.?[/\\]|[A-Za-z]:[/\\]"
_LONGEST_PATH = 1_024


def refuse_path(field: str, text: str, cure: str) -> None:
    """Refuse *text*, given as the text of *field*, if it looks like the path of a file."""
    if names_a_file(text):
        raise DefinitionError(field, f"{text!r} looks like the path of a file, and is not text; {cure}")


def wording(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but text that is not a path; it may be empty."""
    string(_, attribute, value)
    refuse_path(attribute.name, str(value), f"give Path({value!r}).read_text()")


def names_a_file(text: str) -> bool:
    """
    True if *text* looks like the path of a file.

    It is one line that ends in the suffix of a known kind of file. Beside that, it has no white space in it, or it
    begins as a path does (`/`, `./`, `~/`, `C:\\`), or there is such a file: "See notes.txt" is a sentence.
    """
    line = text.strip() if len(text) <= _LONGEST_PATH else ""
    name, _, suffix = line.rpartition(".")
    if not name or suffix.lower() not in _FILES or len(line.splitlines()) > 1:
        return False
    if not any(map(str.isspace, line)) or re.match(_ROOTED, line):
        return True
    # Only a relative path is looked up. The text may be untrusted, and to look up \\host\share or //host/share on
    # Windows would send that host the credentials of this process.
    return not line.startswith(("/", "\\")) and os.path.isfile(line)  # noqa: PTH113 - it raises for no text


def as_path(field: str, value: object) -> Path:
    """Return *value*, the path of a file, as a `Path`; all else is refused."""
    from pathlib import Path  # noqa: PLC0415 - building a rubric needs none

    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise refuse(field, value, "the path of a file, as a text or a Path")
    return Path(value)
