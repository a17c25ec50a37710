"""
Task folders for Harbor's Reward Kit: its kinds of criteria, its aggregations, its layouts, with a judge's answers.

The rewards are those that Reward Kit 0.2.3 wrote for them, with the same answers of the same local server;
`tests/formats/test_rewardkit.py` asks it again wherever it is installed.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rubric.format_plugins.rewardkit import GUARD
from tests.judging import JudgeLike
from tests.places import ROOT
from tests.servers import prompt_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JUDGE = '[judge]\njudge = "openai/gpt-5-mini"\nfiles = ["main.py"]\n'


def toml(*criteria: str, judge: str = JUDGE, scoring: str = "") -> str:
    """Return a judge TOML with *criteria*, each a description and, after a bar, further keys."""
    parts = [judge]
    for each in criteria:
        text, _, keys = each.partition(" | ")
        parts.append("\n".join(["[[criterion]]", f'description = "{text}"', *filter(None, keys.split("; ")), ""]))
    return "\n".join([*parts, f"[scoring]\n{scoring}\n" if scoring else ""])


@frozen
class Task:
    """
    A folder of tests and one of work.

    Args:
        tests: The files of the tests, by their paths.
        answers: What the judge says, by the description; a list is one answer a request.
        rewards: What Reward Kit writes.
        app: The files of the agent.
        programs: Whether checks in Python are among the tests.
    """

    tests: Mapping[str, str]
    answers: Mapping[str, Any]
    rewards: Mapping[str, float]
    app: Mapping[str, str] = field(factory=lambda: {"main.py": "print('hello')\n"})

    @property
    def has_programs(self) -> bool:
        return any(name.endswith(".py") for name in self.tests)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write it into *folder*, and return the folders of the tests and of the work."""
        for top, files in (("tests", self.tests), ("app", self.app)):
            for name, text in files.items():
                path = folder / top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return folder / "tests", folder / "app"


class BothWays(JudgeLike):
    """Answers our prompts, and those of Reward Kit, from one table by description."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__({**answers, GUARD: answers.get("guard", "no")})
        self._turns = {text: count() for text in self.verdicts}

    def __call__(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        if "Respond with a JSON object. Example:" not in prompt:
            return super().__call__(body)
        asked = re.findall(r"^- '([\w-]+)': (.*) \(score: .*\)$", prompt, re.MULTILINE)
        said = {
            name: {"score": self._say("guard" if name == "guard" else text), "reasoning": "so"} for name, text in asked
        }
        return json.dumps(said if len(said) > 1 else next(iter(said.values())))

    def _say(self, text: str) -> Any:
        said = super()._say(GUARD if text == "guard" else text)
        return said[next(self._turns[text.strip()]) % len(said)] if isinstance(said, list) else said


CHECKS = """
from rewardkit import criteria

criteria.file_exists("main.py", weight=2.0)
criteria.file_contains("main.py", "goodbye")
"""

TASKS = {
    "one binary criterion": Task({"judge.toml": toml("Is it short?")}, {"Is it short?": "yes"}, {"reward": 1.0}),
    "binary criteria with weights": Task(
        {"judge.toml": toml("Is it short?", "Is it tested? | weight = 3.0")},
        {"Is it short?": "yes", "Is it tested?": "no"},
        {"reward": 0.25},
    ),
    "a likert criterion": Task(
        {"judge.toml": toml('Is it clear? | type = "likert"; points = 5')}, {"Is it clear?": 4}, {"reward": 0.75}
    ),
    "a number from 0 to 1": Task(
        {"judge.toml": toml('How done is it? | type = "numeric"')}, {"How done is it?": 0.35}, {"reward": 0.35}
    ),
    "a number from 0 to 10": Task(
        {"judge.toml": toml('How done is it? | type = "numeric"; min = 0; max = 10')},
        {"How done is it?": 7},
        {"reward": 0.7},
    ),
    "levels with texts": Task(
        {"judge.toml": toml('Its tests | type = "rubric"; levels = ["none", "some", "most", "all"]')},
        {"Its tests": 2},
        {"reward": 0.6667},
    ),
    "all kinds together": Task(
        {
            "judge.toml": toml(
                "Is it short?",
                'Is it clear? | type = "likert"; points = 7; weight = 2.0',
                'How done is it? | type = "numeric"; weight = 0.5',
                'Its tests | type = "rubric"; levels = ["none", "some", "all"]; name = "tests"',
            )
        },
        {"Is it short?": "no", "Is it clear?": 6, "How done is it?": 0.9, "Its tests": 1},
        {"reward": 0.5815},
    ),
    "a weighted sum with a negative weight": Task(
        {
            "judge.toml": toml(
                "Is it short? | weight = 0.6",
                "Does it work? | weight = 0.4",
                "Does it delete files? | weight = -0.3",
                scoring='aggregation = "weighted-sum"',
            )
        },
        {"Is it short?": "yes", "Does it work?": "no", "Does it delete files?": "yes"},
        {"reward": 0.3},
    ),
    "all pass": Task(
        {"judge.toml": toml("Is it short?", "Does it work?", scoring='aggregation = "all-pass"')},
        {"Is it short?": "yes", "Does it work?": "yes"},
        {"reward": 1.0},
    ),
    "not all pass": Task(
        {"judge.toml": toml("Is it short?", 'Is it clear? | type = "likert"', scoring='aggregation = "all_pass"')},
        {"Is it short?": "yes", "Is it clear?": 4},
        {"reward": 0.0},
    ),
    "any pass": Task(
        {"judge.toml": toml("Is it short?", 'Is it clear? | type = "likert"', scoring='aggregation = "any-pass"')},
        {"Is it short?": "no", "Is it clear?": 5},
        {"reward": 1.0},
    ),
    "a threshold that is met": Task(
        {"judge.toml": toml("Is it short?", "Does it work?", scoring='aggregation = "threshold"\nthreshold = 0.5')},
        {"Is it short?": "yes", "Does it work?": "no"},
        {"reward": 1.0},
    ),
    "a threshold that is not met": Task(
        {"judge.toml": toml("Is it short?", "Does it work?", scoring='aggregation = "threshold"\nthreshold = 0.6')},
        {"Is it short?": "yes", "Does it work?": "no"},
        {"reward": 0.0},
    ),
    "required and optional": Task(
        {
            "judge.toml": toml(
                "Is it short?", "Is it famous? | optional = true", scoring='aggregation = "required-pass"'
            )
        },
        {"Is it short?": "yes", "Is it famous?": "no"},
        {"reward": 1.0},
    ),
    "turned over": Task(
        {
            "judge.toml": toml(
                "Does it delete files? | negate = true",
                'Is it obscure? | type = "likert"; negate = true',
                'How slow is it? | type = "numeric"; negate = true; weight = 2.0',
            )
        },
        {"Does it delete files?": "no", "Is it obscure?": 4, "How slow is it?": 0.2},
        {"reward": 0.7125},
    ),
    "annotations of a data set": Task(
        {
            "judge.toml": toml(
                'Does it delete files? | annotations = { type = "negative hli verifier", importance = "must have" }',
                'Is it famous? | annotations = { type = "positive", importance = "optional" }',
                scoring='aggregation = "required-pass"',
            )
        },
        {"Does it delete files?": "yes", "Is it famous?": "yes"},
        {"reward": 0.0},
    ),
    "the median of three": Task(
        {"judge.toml": toml("Is it short?", 'Is it clear? | type = "likert"', judge=JUDGE + "samples = 3\n")},
        {"Is it short?": ["yes", "no", "yes"], "Is it clear?": [2, 5, 3]},
        {"reward": 0.75},
    ),
    "the lower median of two": Task(
        {"judge.toml": toml('Is it clear? | type = "likert"', judge=JUDGE + "samples = 2\n")},
        {"Is it clear?": [2, 5]},
        {"reward": 0.25},
    ),
    "a guard that penalizes": Task(
        {"judge.toml": toml("Is it short?", judge=JUDGE + 'guard = "penalize"\n')},
        {"Is it short?": "yes", "guard": "yes"},
        {"reward": 0.0},
    ),
    "a guard that flags": Task(
        {"judge.toml": toml("Is it short?", judge=JUDGE + 'guard = "flag"\n')},
        {"Is it short?": "yes", "guard": "yes"},
        {"reward": 1.0},
    ),
    "one call for each criterion, with files of its own": Task(
        {
            "judge.toml": toml(
                "Is it short?", 'Is it honest? | files = ["notes"]', judge=JUDGE + 'mode = "individual"\n'
            )
        },
        {"Is it short?": "yes", "Is it honest?": "no"},
        {"reward": 0.5},
        {"main.py": "print()\n", "notes/a.md": "Done.\n", "notes/b.md": "All tests pass.\n"},
    ),
    "a reference, and a prompt of its own": Task(
        {
            "judge.toml": toml("Is it short?", judge=JUDGE + 'reference = "best.py"\nprompt_template = "strict.md"\n'),
            "strict.md": "Be strict.\n\n{criteria}\n",
        },
        {"Is it short?": "yes"},
        {"reward": 1.0},
        {"main.py": "print()\n", "best.py": "print(1)\n"},
    ),
    "a trajectory beside the files": Task(
        {"judge.toml": toml("Did it look first?", judge=JUDGE + 'atif-trajectory = "run.json"\n')},
        {"Did it look first?": "yes"},
        {"reward": 1.0},
        {"main.py": "print()\n", "run.json": (ROOT / "docs" / "examples" / "refund_run.json").read_text()},
    ),
    "folders as rewards, and their mean": Task(
        {
            "style/judge.toml": toml("Is it short?", "Is it tested?"),
            "works/judge.toml": toml("Does it work?"),
            "reward.toml": '[[reward]]\nname = "reward"\nweights = { style = 2.0, works = 1.0 }\n',
        },
        {"Is it short?": "yes", "Is it tested?": "no", "Does it work?": "yes"},
        {"style": 0.5, "works": 1.0, "reward": 0.6667},
    ),
    "a file beside a folder": Task(
        {
            "whole.toml": toml("Is it short?", "Is it tested?", "Does it work?"),
            "style/clear.toml": toml('Is it clear? | type = "likert"', judge=JUDGE + "weight = 3.0\n"),
            "style/other.toml": toml("Is it famous?"),
            "reward.toml": '[[reward]]\nname = "good"\naggregation = "threshold"\nthreshold = 0.6\n',
        },
        {
            "Is it short?": "yes",
            "Is it tested?": "no",
            "Does it work?": "yes",
            "Is it clear?": 4,
            "Is it famous?": "no",
        },
        {"style": 0.5625, "whole": 0.6666666666666666, "good": 1.0},
    ),
    "a folder in a folder, with a rule": Task(
        {
            "all/deep/judge.toml": toml("Is it short?"),
            "all/judge.toml": toml("Is it tested?"),
            "all/reward.toml": '[[reward]]\naggregation = "any-pass"\n',
        },
        {"Is it short?": "yes", "Is it tested?": "no"},
        {"all": 1.0},
    ),
    "two files, and two rewards of them": Task(
        {
            "a.toml": toml("Is it short?"),
            "b.toml": toml("Does it work?"),
            "reward.toml": (
                '[[reward]]\nname = "reward"\nweights = { a = 3.0 }\n'
                '[[reward]]\nname = "strict"\naggregation = "all-pass"\n'
                '[[reward]]\nname = "sum"\naggregation = "weighted-sum"\nweights = { a = 0.5, b = -0.25 }\n'
            ),
        },
        {"Is it short?": "yes", "Does it work?": "yes"},
        {"reward": 1.0, "strict": 1.0, "sum": 0.25},
    ),
    "checks in Python": Task(
        {"checks.py": CHECKS, "judge.toml": toml("Is it short?")}, {"Is it short?": "yes"}, {"reward": 0.8333}
    ),
    "checks in Python that must all pass": Task(
        {
            "checks.py": CHECKS,
            "judge.toml": toml("Is it short?"),
            "reward.toml": '[scoring.checks]\naggregation = "all-pass"\n',
        },
        {"Is it short?": "yes"},
        {"reward": 0.5},
    ),
}
"""Task folders by what they show."""
