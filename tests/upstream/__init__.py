"""
This library beside the systems whose files it reads: both run the same files, and their verdicts are compared.

    nox -s upstream                     # or: python -m tests.upstream [--newest] [SIDE ...]

| part | what it has |
|---|---|
| `npm` | the other system, installed from npm into a folder, and Node.js, where the machine's is too old |
| `verdicts` | the verdicts of both sides, their comparison, and the differences that the documentation names |
| `judge` | a local server in the place of OpenAI, whose verdicts stand in what it is shown |
| `promptfoo` | the side of promptfoo; `promptfoo_gradings` and `promptfoo_files` have what it is run on |
| `agentv` | the side of AgentV; `agentv_gradings` has what it is run on |

Another system is a module of its own with `NAME`, `PINNED` and `compared`, and a line in `__main__`. No part of it is
in the ordinary suite: what it found is kept there as tests of the packages.
"""
