"""
What small local models make of each kind of answer: graded, right, and how long their replies are.

    python -m tests.benchmarks.local_models NAME=ADDRESS [NAME=ADDRESS ...] [--texts 8]

Each NAME is a model behind a server of OpenAI's protocol, as `docs/how-to/local_models.md` starts one:
`SmolLM2-135M=http://127.0.0.1:8080/v1`. The judge is the one of that page. Half of the texts say on which day a refund
arrives, and none is rude, so the rows about these two can say how many verdicts are right. A row for each model takes
minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from attrs import define

from rubric import Grade, Judge, Jury, Rubric, Ungraded, ask, evaluate

DAYS = ("Monday", "Tuesday", "Friday")
DAY = "Says on which day the refund arrives"
LEVELS = {0: "no", 5: "some", 10: "yes"}
TONES = {"rude": 0, "neutral": 0.5, "warm": 1}
ROWS: dict[str, tuple[Rubric, dict[str, Any]]] = {
    "yes or no": (Rubric("r").expects(DAY), {}),
    'yes or no, `reasoning="none"`': (Rubric("r").expects(DAY), {"reasoning": "none"}),
    "guard": (Rubric("r").forbids("Is rude to the customer"), {}),
    "levels": (Rubric("r").rates("Is clear", LEVELS), {}),
    "number from 0 to 1": (Rubric("r").scores("Is polite"), {}),
    "choice": (Rubric("r").chooses("Which tone?", TONES), {}),
    "evidence": (Rubric("r").requires(DAY, evidence=True), {}),
    "tree": (Rubric("r").decides("e", by=ask("Is a day named?").yes(1.0).no(0.0)), {}),
    'three criteria, `per_call="all"`': (
        Rubric("r").expects(DAY, id="day").expects("Is polite").expects("Is short"),
        {"per_call": "all"},
    ),
    "jury of 3, `one_request`": (Rubric("r").expects(DAY), {"jury": 3, "temperature": 0.7}),
}
TRUE = {"yes or no", 'yes or no, `reasoning="none"`', "guard", "tree", "jury of 3, `one_request`"}


def texts(count: int) -> list[tuple[str, bool]]:
    """Return so many replies to a customer, and whether each says when the refund arrives."""
    dated = "Your refund of {} dollars arrives on {}. Kind regards, team {}."
    vague = "We will look into order {} and come back to you."
    return [(dated.format(10 + n, DAYS[n % 3], n), True) if n % 2 else (vague.format(n), False) for n in range(count)]


@define
class Row:
    """What became of one kind of answer."""

    candidates: int = 0
    graded: int = 0
    right: int = 0
    questions: int = 0
    replies: int = 0
    longest: int = 0
    tokens: int = 0

    def count(self, result: Grade | Ungraded, truth: bool) -> None:
        """Count one result."""
        asks = {(each.ask.criteria, each.ask.vote) for each in result.exchanges}
        self.candidates += 1
        self.graded += isinstance(result, Grade)
        self.right += isinstance(result, Grade) and result.passed == truth
        self.questions += len(asks)
        self.replies += len(result.exchanges)
        self.longest = max(self.longest, *(each.usage.completion_tokens for each in result.exchanges), 0)
        self.tokens += result.usage.completion_tokens

    def cells(self, name: str) -> str:
        """Return the cells of the row in a table."""
        right = f"{self.right} of {self.candidates}" if name in TRUE else ""
        again = self.replies / max(self.questions, 1)
        mean = self.tokens / self.candidates
        return f"{self.graded} of {self.candidates} | {right} | {again:.2f} | {self.longest} | {mean:.0f}"


def measured(name: str, address: str, count: int) -> Row:
    """Return what the model at *address* makes of the row called *name*."""
    rubric, options = ROWS[name][0], dict(ROWS[name][1])
    size = options.pop("jury", 0)
    judge = Judge("m", via=address, **{"temperature": 0.0, "max_tokens": 400, "timeout": 300.0, **options})
    row = Row()
    for text, dated in texts(count):
        asked = Jury(judge, size, one_request=True) if size else judge
        row.count(evaluate(text, rubric, asked, keep=True), dated or name == "guard")
    return row


def main(*words: str) -> int:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=ADDRESS")
    parser.add_argument("--texts", type=int, default=8)
    given = parser.parse_args(words)
    for model in given.models:
        title, _, address = model.partition("=")
        print(f"| {title} | graded | right | replies a question | longest reply | tokens back a grade |")
        print("|---|---|---|---|---|---|")
        for name in ROWS:
            print(f"| {name} | {measured(name, address, given.texts).cells(name)} |", flush=True)
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
