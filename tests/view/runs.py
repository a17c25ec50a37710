"""Runs as people have them, of any size, for the tests and pictures of pages."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric import Candidate, Grade, Grades, Judge, Panel, Rubric, Ungraded, ask, evaluate
from rubric.driving import Failure
from rubric.testing import Says, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

SUPPORT = (
    Rubric("support reply", threshold=0.7)
    .requires("Answers the question that was asked", id="answers")
    .expects("Cites a help-centre article", id="cites", weight=2, evidence=True)
    .scores("Warm without being familiar", id="warm")
    .rates("A newcomer could act on it", {0: "no way in", 5: "with effort", 10: "at once"}, id="clarity")
    .chooses("Which tone?", {"hostile": 0, "neutral": 0.6, "warm": 1}, id="tone")
    .forbids("Promises a refund the policy does not grant", id="refund")
    .decides("escalation", by=ask("Does policy require it?").yes(ask("Is a person named?").yes(1.0).no(0.3)).no(1.0))
    .expects("Names the next step", id="next step")
)
"""Every kind of answer."""

_PLACES = ("Oslo", "Rome", "Lima", "Pune", "Cork", "Bonn")
_WHY = {
    "cites": ("It names no article and gives no link.", "There is no article, although three would fit the question."),
    "refund": ("It promises a full refund after 40 days.", "It offers a voucher as if it were a refund."),
    "answers": ("It answers another question.", "The question about the invoice is left open."),
    "next step": ("It ends without a next step.", "The customer is not told what happens next."),
    "warm": ("It is correct but cold.", "The greeting is missing, and so is any thanks."),
}
_GOOD = "It does what the criterion asks, and says so in plain words near the start of the reply."


def text_of(random_: random.Random, number: int) -> str:
    """Return a reply in Markdown."""
    place = random_.choice(_PLACES)
    return (
        f"## Your parcel {4400 + number}\n\nHello Ada, your parcel is in **{place}** and arrives on Friday.\n\n"
        f"1. Track it with the link in our mail.\n2. If it is late, write to us: we send a *voucher* of 10 %.\n\n"
        f"> Order {number} was sent on Monday.\n\nThe full price comes back if it is lost.\n"
    )


def _named(name: str, script: Any) -> ScriptedModel:
    """Return a model with a *name* that people read."""
    model = ScriptedModel(script)
    model.__name__ = name  # type: ignore[attr-defined]
    return model


def one(
    number: int,
    *,
    rubric: Rubric = SUPPORT,
    seed: int = 1,
    better: float = 0.0,
    jury: int = 1,
    judged: int = 0,
    store: Path | None = None,
) -> Any:
    """
    Return the result of the candidate with a *number*.

    Args:
        number: The candidate's.
        rubric: The rubric.
        seed: Of the texts.
        better: Raises how often a criterion is met.
        jury: The number of judges.
        judged: Another judge says something else of the same texts.
        store: Keeps the replies.
    """
    output = text_of(random.Random(f"{seed} {number}"), number)
    own = random.Random(f"{seed} {number} {judged}")

    def lines(_: int) -> dict[str, Says | Failure]:
        said: dict[str, Says | Failure] = {}

        def good(share: float) -> bool:
            return own.random() < share + better

        def why(id_: str, met: bool) -> str:
            return _GOOD if met else own.choice(_WHY.get(id_, ("It does not.",)))

        for id_, share in (("answers", 0.93), ("cites", 0.6), ("next step", 0.8)):
            met = good(share)
            quoted = ("your parcel is in", "Track it with the link in our mail.")[: 2 if id_ == "cites" else 1]
            said[id_] = Says(met, reason=why(id_, met), evidence=quoted if met else ())
        bad = not good(0.92)
        said["refund"] = Says(
            bad, reason=why("refund", not bad), evidence=("The full price comes back",) if bad else ()
        )
        warm = round(min(1, own.random() * 0.6 + 0.4), 2)
        said["warm"] = Says(warm, reason=why("warm", warm > 0.7) if warm < 1 else _GOOD)
        said["clarity"] = Says(own.choice([3, 5, 7, 8, 10]), reason=_GOOD)
        said["tone"] = Says(own.choice(["neutral", "warm", "warm"]), reason=_GOOD)
        said["escalation"] = Says(own.choice([0.0, 1.0]), reason="The policy lists it.")
        if number % 37 == 5:
            said["cites"] = Failure("rate_limited", "429: slow down")
        return {each.id: said.get(each.id) or Says(good(0.8), reason=_GOOD) for each in rubric.criteria}

    names = ("strict", "lenient", "kind") if not judged else ("other", "another", "a third")
    own_name = f"run {number}" if store else None
    judges = [Judge(_named(names[n], lines(n)), repairs=0, retries=0, identity=own_name) for n in range(jury)]
    judge: Any = judges[0] if jury == 1 else Panel(judges, level="criterion")
    candidate = Candidate(
        output, input=f"Where is my parcel {4400 + number}?", key=f"ticket-{number:05}", group=f"day {number % 5}"
    )
    return evaluate(candidate, rubric, judge, store=store)


def run(count: int, **how: Any) -> Grades:
    """Return a run of so many candidates; every seventh is judged by a panel of three."""
    return Grades(evolve(one(n, jury=3 if n % 7 == 2 else 1, **how), index=n) for n in range(count))


def large(count: int) -> Grades:
    """Return a run of so many candidates, made of the results of 300."""
    some = run(min(count, 120))

    def again(result: Grade | Ungraded, number: int) -> Any:
        given = result.candidate or Candidate("")
        return evolve(
            result,
            index=number,
            key=f"ticket-{number:05}",
            candidate=evolve(given, output=f"{given.output}\nNo. {number}"),
        )

    return Grades(again(some[n % len(some)], n) for n in range(count))


def wide(criteria: int, count: int = 40) -> Grades:
    """Return a run with so many criteria."""
    rubric = Rubric("wide", threshold=0.7)
    for n in range(criteria):
        rubric = rubric.expects(f"Criterion number {n + 1} holds in this reply", id=f"criterion-{n + 1}")
    return run(count, rubric=rubric)
