"""
What it takes to import each library, in CPU time and memory of a fresh process: medians.

    python -m tests.benchmarks.imports [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median

from tests.benchmarks.homes import environment, python_of

IMPORTS = {
    "rubric": ("", "import rubric"),
    "rubric, over HTTP": ("", "import rubric.models.openai_http"),
    "LiteLLM": ("", "import litellm"),
    "autorubric": ("autorubric", "import autorubric"),
    "LLM Data Co rubric": ("ldc", "import rubric"),
    "deepeval": ("deepeval", "from deepeval.metrics import GEval"),
    "inspect_ai": ("inspect", "from inspect_ai.scorer import model_graded_qa"),
    "openevals": ("openevals", "from openevals.llm import create_async_llm_as_judge"),
}

PROBE = """
import json, resource, sys, time
cpu, before = time.process_time(), len(sys.modules)
{statement}
cpu = time.process_time() - cpu
mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(); print(json.dumps([cpu, len(sys.modules) - before, mib]))
"""


def probe(home: str, statement: str) -> list[float]:
    """Return seconds of CPU time, modules and MiB of the process, for *statement* in a fresh process."""
    command = [str(python_of(home)), "-P", "-c", PROBE.format(statement=statement)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(home), check=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(*words: str) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(words)
    there = {name: case for name, case in IMPORTS.items() if python_of(case[0]) is not None}
    for case in there.values():
        probe(*case)  # the bytecode is written
    runs = {name: [probe(*case) for _ in range(given.runs)] for name, case in there.items()}
    print("| import | seconds of CPU | modules | peak MiB |\n|---|---|---|---|")
    for name, found in runs.items():
        cpu, modules, mib = (median(column) for column in zip(*found, strict=True))
        print(f"| {name} | {cpu:.2f} | {modules:,.0f} | {mib:.0f} |")
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
