"""Under the judge `offline` nothing is sent, whatever a file says, and whatever keys are at hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rubric import Suite
from rubric.formats.suites import loads_suite

ROOT = Path(__file__).parent.parent.parent
CORPUS = ROOT.parent / "shared" / "corpus"

SCRIPT = """
import os, sys
os.environ |= {f"{name}_API_KEY": "not-a-real-key-1" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL", "VOYAGE")}
sent = []

def hook(event, args):
    if event == "socket.connect" and not isinstance(args[1], (str, bytes)) or event == "socket.getaddrinfo":
        sent.append((event, args[-1] if event == "socket.connect" else args[0]))
        raise OSError("nothing may leave")

sys.addaudithook(hook)
from rubric import RubricError, load_suite

graded = 0
for path in sys.stdin.read().splitlines():
    try:
        suite = load_suite(path)
    except RubricError:
        continue
    graded += len(suite.run("offline", deferred="pass"))
    if sent:
        sys.exit(f"{path}: {sent}")
print(graded)
"""


def offline(paths: list[Path]) -> int:
    """Run the suites at *paths* in a process in which every connection is refused and told; return their rows."""
    command = [sys.executable, "-c", SCRIPT]
    given = "\n".join(map(str, paths))
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


EVERY_WAY = """
prompts: ['{{ q }}']
providers: [openai:gpt-5, anthropic:messages:claude-sonnet-4-5, https://example.com/chat]
defaultTest: {options: {provider: openai:gpt-5-mini}}
tests:
  - vars: {q: Hi}
    providerOutput: Hello
    assert:
      - {type: similar, value: Hi}
      - {type: not-similar, value: Hi, provider: voyage:voyage-3}
      - {type: llm-rubric, value: Is polite, provider: anthropic:messages:claude-sonnet-4-5}
      - {type: factuality, value: It greets}
      - {type: moderation}
      - {type: answer-relevance, threshold: 0.5}
      - {type: g-eval, value: Is it kind}
      - {type: classifier, value: polite, provider: huggingface:text-classification:x/y}
      - {type: webhook, value: 'https://example.com/hook'}
      - {type: select-best, value: the kindest}
      - {type: model-graded-closedqa, value: Is it short}
"""

MATRIX = """
suite: matrix
judge: openai/gpt-5
cases:
  - id: one
    output: Hello
    judges: {polite: anthropic/claude-sonnet-4-5}
    rubric: {criteria: [{id: polite, text: Is polite}, {id: alike, text: Alike, check: {similar: {texts: [Hi]}}}]}
"""


def test_no_kind_of_grader_sends_anything_under_offline(tmp_path: Path) -> None:
    """Similarities, graders with providers of their own, moderation, factuality, addresses: none is asked."""
    (tmp_path / "promptfooconfig.yaml").write_text(EVERY_WAY)
    (tmp_path / "native.yaml").write_text(MATRIX)
    assert offline(sorted(tmp_path.iterdir())) >= 2


def test_no_example_sends_anything_under_offline() -> None:
    """Every suite of the documentation and of the tests is graded without a connection."""
    found = [*(ROOT / "docs" / "examples").rglob("*.y*ml"), *(ROOT / "tests" / "files").rglob("*.y*ml")]
    assert offline(found) > 0


def test_no_file_of_the_corpus_sends_anything_under_offline() -> None:
    """Nor do files of other systems, of all their generations."""
    if not CORPUS.exists():
        pytest.skip("the corpus of other systems' files is not here")
    found = [path for path in sorted(CORPUS.rglob("*")) if path.suffix in (".yaml", ".yml", ".json", ".jsonl")]
    assert offline(found) > 100


CELLS = """
evals:
  - {name: short, prompt: Sum it up, response: It is done, rubric: Is short, matrix: {models: [gpt-5, gpt-5-mini]}}
"""


def test_cells_of_a_matrix_over_judges_are_deferred_under_offline() -> None:
    """Their own judges would be asked, and the row says how they are."""
    suite: Suite = loads_suite(CELLS, "mcptest")
    rows = suite.run("offline")
    assert {row.status for row in rows} == {"deferred"}
    assert all("would be asked over the network" in row.reason for row in rows)
