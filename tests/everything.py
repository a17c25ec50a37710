"""One rubric with every answer type, gate and option, a candidate for it, and what a judge says to it."""

from __future__ import annotations

from rubric import (
    Anchor,
    Calls,
    Candidate,
    Contains,
    Criterion,
    FitsSchema,
    IsJSON,
    Likert,
    Matches,
    Rubric,
    ToolCall,
    Unit,
    When,
    ask,
)

CANDIDATE = Candidate(
    "Hello Ada, your parcel (ticket #4471) is in Oslo and arrives on Friday. Sorry for the delay!",
    input="Where is my parcel?",
    reference="It is in Oslo; Friday.",
    context="Parcels from Oslo take two days.",
    tool_calls=[ToolCall("track", arguments={"id": 4471}, result={"city": "Oslo"})],
    file_changes="+ note: customer asked",
)

HOUSE_STYLE = (
    Rubric("house style")
    .expects("Greets by name")
    .forbids("Uses slang")
    .guided_by("A greeting is any salutation with a name.")
    .passing_at(0.9)
)

EVERYTHING = (
    Rubric("everything")
    .requires("Answers the question that was asked", evidence=True)
    .expects("Cites a help-centre article", weight=2)
    .scores("Warm without being familiar", anchors=[Anchor("Hi!", 0.5), Anchor("Go away.", 0.0, reason="rude")])
    .rates("A newcomer could act on it", {0: "no way in", 5: "with effort", 10: "at once"}, id="clarity", min_score=0.5)
    .chooses("Which tone?", {"hostile": 0, "neutral": 0.6, "warm": 1})
    .forbids("Promises a refund the policy does not grant")
    .adding(
        Criterion("The parcel is in Oslo", polarity="contradiction"),
        Criterion("It arrives on Friday", polarity="correctness", required=True),
        Criterion("Good overall", answer=Unit(flag=True)),
    )
    .checks(Contains("ticket #"), weight=0.5)
    .checks(Matches(r"\bFriday\b"))
    .checks(Calls("track", arguments={"id": 4471}))
    .checks(IsJSON(), id="json", when=When(contains="```json"))
    .checks(FitsSchema({"type": "string"}), id="schema", when=When(regex="^\\{"))
    .expects("Apologises for the delay", when=When(tool_called="track"))
    .expects("Mentions the weather", when=lambda c: "weather" in c.output, id="weather")
    .expects("Is about the right year", abstain="exclude")
    .decides("escalation", by=ask("Does policy require it?").yes(ask("Was it done?").yes(1.0).no(0.0)).no(1.0))
    .includes(HOUSE_STYLE, weight=2)
    .guided_by("The reader is a customer.")
    .shown_as(Likert(1, 5))
    .passing_at(0.8)
)

VERDICTS = {
    "Answers the question that was asked": True,
    "Cites a help-centre article": False,
    "Warm without being familiar": 0.75,
    "A newcomer could act on it": 8,
    "Which tone?": "warm",
    "Promises a refund the policy does not grant": False,
    "Good overall": 0.9,
    "Is about the right year": None,
    "Does policy require it?": 0.2,
    "Uses slang": False,
}
"""Whatever is not listed is answered with yes."""

QUOTE = "arrives on Friday"

SCORE = (1 + 0 + 0.75 + 0.8 + 1 + 1 + 1 + 1 + 0.9 + 0.5 + 1 + 1 + 1 + 1 + 2 * 1) / (14 + 2 + 0.5)
"""By hand: the contributions by weight, without what does not apply (json, schema, weather) and the abstention."""

CALLS = 9 + 2 + 1 + 2
"""Nine criteria, two more that apply or may abstain, one question of the tree, two of the house style."""
