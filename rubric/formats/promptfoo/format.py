"""promptfoo's format of suites: how a file is recognised, parsed, read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rubric import DefinitionError, Rubric
from rubric.embed import SURE, Format, Loading, shorten
from rubric.formats import recognition as rules
from rubric.formats.assertions.texts import KNOWN
from rubric.formats.keys import keys_of
from rubric.formats.recognition import BUILT_IN, HINT, LIKELY, NAME, NEAR, OF_TYPE, STRONG, Evidence, Seen
from rubric.formats.registry import Drafts

_BOTH_HAVE = keys_of("promptfoo", "types", "agentv")
"""Types of assertions that AgentV has of promptfoo."""

_LATELY = frozenset({"javascript", "similar", "webhook"})
"""Types of promptfoo's that AgentV took over last, and that hardly a file of AgentV's has."""

_VENDOR = re.compile(rf"{BUILT_IN}|(?!file:)[\w.-]+:.+", re.DOTALL)
"""How promptfoo names a provider: `openai:gpt-5`, `exec:...`, `https://...`, and a few without a colon."""

_CONFIGS = tuple(f"promptfooconfig.{suffix}" for suffix in ("yaml", "yml", "json", "js", "cjs", "mjs", "ts"))
_PROGRAM = re.compile(r"file://(?!.*\.(?:ya?ml|json)\Z).*", re.DOTALL)
_names_its_own = rules.asks(rules.ids, NAME, "the provider {!r} is a name of the project's")
"""Look for a provider that is a name alone; promptfoo has no such names, also beside those of vendors."""


_uses_negation = rules.finds(OF_TYPE, lambda seen: (kind for kind in rules.types(seen) if kind.startswith("not-")))
"""Look for a type that begins with `not-`, for which AgentV writes `negate`."""


def _lists_of_texts(seen: Seen) -> Iterator[Any]:
    """Yield the variables that are lists of texts, which makes a case of each in promptfoo alone."""
    for variables in rules.maps([test.get("vars") for test in seen.tests]):
        for name, value in variables.items():
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                yield name


_EVIDENCE: Evidence = (
    (SURE, rules.schema_has("promptfoo")),
    (SURE, rules.uses(lambda kind: kind.startswith("promptfoo:"))),
    (LIKELY, rules.has("scenarios")),
    (STRONG, rules.has("defaultTest", "assertionTemplates", "derivedMetrics", "evaluateOptions")),
    (STRONG, rules.has("redteam", "nunjucksFilters", "commandLineOptions", "writeLatestResults")),
    (
        STRONG + LIKELY,
        lambda seen: "" if _names_its_own(seen) else rules.asks(rules.ids, _VENDOR, "it asks the provider {!r}")(seen),
    ),
    (STRONG, rules.asks(rules.grader_ids, _VENDOR, "an assertion has the provider {!r}")),
    (STRONG, rules.uses(lambda kind: kind in KNOWN - _BOTH_HAVE - _LATELY)),
    (LIKELY, rules.uses(lambda kind: kind in _LATELY)),
    (STRONG, rules.asserts("rubricPrompt", "contextTransform", "$ref")),
    (STRONG, rules.option("rubricPrompt", "transformVars", "storeOutputAs", "disableVarExpansion")),
    (STRONG, rules.case_has("providerOutput", "assertScoringFunction")),
    (SURE, rules.name_fits("promptfoo*.y*ml", "promptfoo*.json*", "promptfoo*.[jt]s", "promptfoo*.[cm][jt]s")),
    (NEAR, rules.stands_by(*_CONFIGS)),
    (LIKELY, rules.finds("the variable {!r} lists texts", _lists_of_texts)),
    (HINT, _uses_negation),
    (NEAR, rules.asks(rules.ids, _PROGRAM, "it asks the provider {!r}")),
    (LIKELY, rules.has("targets", kind=list)),
    (LIKELY, lambda seen: rules.case_has("description")(seen) if seen.tests != [seen.data] else ""),
    (HINT, rules.shared_words),
)


_NODE = "node -p 'JSON.stringify(require(\"./{}\"))'"
_TSX = "npx tsx -e 'import c from \"./{}\"; console.log(JSON.stringify(c))'"
_WRITTEN_OUT = {".js": _NODE, ".cjs": _NODE, ".mjs": _TSX, ".ts": _TSX, ".mts": _TSX, ".cts": _TSX}
"""Commands that write out the configuration that a program makes, by its suffix."""


def _translate(file: Path, _: str, loading: Loading) -> str:
    """Return the configuration whose tests are the rows of a table, or the one that the program in *file* makes."""
    if file.suffix.lower() == ".csv":
        return json.dumps({"tests": f"file://{file.name}"})
    # An engine is for programs alone.
    from rubric.formats.javascript_files import file_program  # noqa: PLC0415
    from rubric.programs.javascript import JavaScriptError, ThrownError  # noqa: PLC0415

    try:
        made = file_program(file.name, loading).data(f"file://a function of {file.name}.js")
    except (JavaScriptError, ThrownError) as problem:
        command = f"{_WRITTEN_OUT[file.suffix.lower()].format(file.name)} > {file.stem}.json"
        message = f"{file.name} is a program, and cannot be run here: {shorten(str(problem), 200)}"
        raise DefinitionError("", f"{message}; write out what it makes, and load that: {command}") from None
    return json.dumps(made, indent=2) if isinstance(made, dict | list) else "null"


def _draft(rubric: Rubric) -> list[dict[str, Any]]:
    """Return the assertions for *rubric*; promptfoo has no gates, so all of its must hold."""
    return [
        {"type": "llm-rubric", "metric": c.id, "value": c.text} | ({} if c.weight == 1 else {"weight": c.weight})
        for c in rubric.criteria
    ]


PROMPTFOO = Format(
    "promptfoo", "rubric.formats.promptfoo.reader:read", "rubric.formats.promptfoo.writer:write", _EVIDENCE,
    mark={"$schema": "https://promptfoo.dev/config-schema.json"},
    suffixes=(".csv", *_WRITTEN_OUT),
    translate=_translate,
    marks=_CONFIGS,
    bare="rows without assertions (no column `__expected`)",
    drafts=Drafts("assert", _draft, ("description",)),
)  # fmt: skip
