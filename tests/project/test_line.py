"""
The line round the kernel: how many of its private names are taken by what lies beside it.

    python -m tests.project.test_line

prints each private name with the packages that take it. A name is public if `rubric` has it, or one of the modules that list
their names in a stub, such as `rubric.trust`. A count may fall,
and is then lowered here; it does not rise.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict

import pytest

from rubric import embed
from rubric.internals.lazy_names import public_names
from tests.places import ROOT

KERNEL = frozenset(
    "engine errors grading internals models prompts results runs scoring store values".split()  # noqa: SIM905
)
NATIVE = frozenset("native rubrics suites document yaml json files cursor notes fields editing insertion".split())  # noqa: SIM905
"""The modules of `rubric.formats` that read and write our own files."""

MOST = {
    "suites": 16,
    "formats": 9,
    "quality": 9,
    "batches": 1,
    "trust": 3,
    "dask": 1,
    "commands": 4,
    "integrations": 2,
    "testing": 1,
    "labelling": 1,
    "programs": 1,
}
"""The most private names that each package beside the kernel takes of it."""

KEPT = {
    (
        "rubric.engine.sources",
        "holds_many",
    ): "`rubric grade FILE` grades a file as one text, and says where it holds many",
    (
        "rubric.internals.row_files",
        "csv_text",
    ): "labels and reports are written as `rows_in` reads them, quoted for spreadsheets",
    ("rubric.internals.guesses", "cures_in"): "what an option means beside another one stands in that table too",
    ("rubric.internals.guesses", "term_of"): "a setting of a judge is named as in Python, in the line of a suite",
    ("rubric.internals.guesses", "word_cure"): "an unknown command or option is answered from the one table of guesses",
    ("rubric.models.chat_turns", "PAYING"): "what a target spends passes the budget, as what a judge spends",
    ("rubric.values.chats", "listed"): "a prompt of a finished output is a chat where a candidate's would be one",
    ("rubric.values.requests", "PROGRAMS"): "`allowing` says that programs may run; the pipeline asks for it",
    ("rubric.formats.fields", "Gathering"): "an assertion type tells all that is wrong with its keys at once",
    (
        "rubric.formats.fields",
        "UnknownKeyError",
    ): "an unknown key of an assertion type is answered as one of our own files",
    ("rubric.formats.fields", "read_all"): "the fields of `field-accuracy` are read as lists in our own files",
    ("rubric.formats.fields", "reader_of"): "the fields of `field-accuracy` are read as those of our own classes",
    ("rubric.formats.files", "read_bytes"): "images are read within the bounds of all files",
    ("rubric.grading.prompting", "level_lines"): "a grader of promptfoo's is told the levels in a judge's words",
    ("rubric.internals.secrets", "is_secret"): "a secret in a provider's configuration is told as such",
    ("rubric.models.registry", "EnvironmentModel"): "a jury of mcptest's without a model is of the one that keys name",
    ("rubric.values.runs", "is_address"): "an image is an address, or names a file",
    ("rubric.engine.bulk", "session"): "pairs are graded as candidates are, and no plug-in grades anything else",
    ("rubric.engine.grade", "plan_asks"): "a draft is planned by its request, where no candidate is there yet",
    ("rubric.formats.insertion", "Page"): "criteria are drafted into files, and `lint` shows places in them",
    ("rubric.formats.yaml", "to_yaml"): "a baseline is written as our other files are",
    ("rubric.grading.lacking", "without"): "`lint` and `plan` warn of one thing in one sentence",
    ("rubric.grading.prompting", "text_of_candidate"): "responses and transcripts are shown as judges see them",
    ("rubric.grading.writing", "Writing"): "drafts and new texts are asked for and repaired as verdicts are",
    ("rubric.scoring.outcomes", "Part"): "what `Rules` returns of a criterion",
    (
        "rubric.scoring.outcomes",
        "Rules",
    ): "influence and `lint` follow from how answers are scored, by one arithmetic",
    ("rubric.values.aggregations", "exact"): "sums that influence compares are those of scoring",
    ("rubric.runs.logs", "promptfoo_candidate"): "promptfoo hands its assertion what it writes into its log",
    ("rubric.models.later_replies", "Service"): "batches go to the server that answers for a judge",
    ("rubric.store.cache_key", "check_identity"): "a judge is refused before it is sent to the workers, not there",
    ("rubric.engine.grade", "in_span"): "a case has a span of its own, as a candidate that is graded has",
    ("rubric.grading.candidate_parts", "asked_parts"): "outputs are compared as a judge of each would be shown it",
    ("rubric.internals.secrets", "masked_command"): "how an MCP server is started is shown, and may hold keys",
    ("rubric.models.api_keys", "why_keyless"): "a case whose judge lacks a key is deferred, before its target is paid",
    (
        "rubric.models.chat_turns",
        "ChatModel",
    ): "a target asks its model over the library's way to LiteLLM, with retries",
    ("rubric.models.chat_turns", "ToolRequest"): "what an agent's model wants to call; its arguments may be broken",
    ("rubric.models.http_client", "fetch"): "an application is asked over the library's own client, with retries",
    ("rubric.prompts.render", "fill"): "slots in a request are filled as those in a prompt",
    ("rubric.results.result", "merge"): "findings of several judges are scored together, and in each vote",
    ("rubric.values", "candidates"): "the fields of a case are converted as those of its candidate",
    ("rubric.values.chats", "candidate_of_chat"): "a report may hold an answer within its chat, or beside it",
    ("rubric.values.chats", "text_of"): "harnesses give any data where a text is wanted",
    ("rubric.values.readers", "write_reply"): "a scripted reply is one that the judge's reader takes",
}
"""The names that are taken though they are neither public nor on the surface, and why."""


def is_kernel(module: str) -> bool:
    """True if *module* lies within the line."""
    root, package, *rest = [*module.split("."), "", ""]
    return root == "rubric" and (package in KERNEL or (package == "formats" and rest[0] in NATIVE))


def private_names() -> dict[tuple[str, str], set[str]]:
    """Return each private name of the kernel, by its module, with the packages beside the kernel that take it."""
    public = {name for name, module in public_names().items() if module != "rubric.embed"}
    taken: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sorted((ROOT / "rubric").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        package = module.split(".")[1]
        if is_kernel(module) or path.with_suffix(".pyi").exists():  # which only lists names
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and is_kernel(node.module):
                for name in node.names:
                    if name.name not in public:
                        taken[node.module, name.name].add(package)
    return taken


@pytest.mark.long
def test_no_package_takes_more_private_names_of_the_kernel() -> None:
    """What lies beside the kernel stands on public names; the private ones that it takes become fewer."""
    counts = Counter(package for packages in private_names().values() for package in packages)
    assert {package: count for package, count in counts.items() if count > MOST.get(package, 0)} == {}


@pytest.mark.long
def test_private_names_are_listed_with_their_reasons() -> None:
    """What neither is on the surface nor has moved to its user is listed with the reason, and nothing else is."""
    assert private_names().keys() == KEPT.keys()


def test_the_surface_is_small_and_all_of_it_is_there() -> None:
    """`rubric.embed` has at most 70 names, and each is found."""
    names = dir(embed)
    assert len(names) <= 70
    assert [name for name in names if getattr(embed, name, None) is None] == []


def main() -> None:
    """Print the private names that are taken, those that most packages take first."""
    taken = private_names()
    for (module, name), packages in sorted(taken.items(), key=lambda each: (-len(each[1]), each[0])):
        sys.stdout.write(f"{module}.{name}: {', '.join(sorted(packages))}\n")
    counts = Counter(package for packages in taken.values() for package in packages)
    shares = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    sys.stdout.write(f"{len(taken)} private names: {shares}\n")


if __name__ == "__main__":
    main()
