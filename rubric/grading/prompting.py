"""
From a candidate and a criterion to an `Ask`: the exact messages, and the schema of the reply.

The order makes one call per criterion affordable: first the instructions, then the candidate with all that belongs to
it, then the criterion: its text, its levels and options, its calibration examples, and how to reply. All asks about
one candidate share everything but that tail, so a vendor's prefix cache serves all of them but the first. Candidates
that answer one task share its part too, since a mark depends on nothing that follows it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from attrs import field, frozen

from rubric.grading.reply_parser import shape_of
from rubric.grading.response_format import Form
from rubric.internals.text import as_json, skeleton, visible
from rubric.prompts import render
from rubric.scoring.outcomes import asks_evidence
from rubric.values.answers import Answer, Choices, JudgeAnswer, Levels, Unit
from rubric.values.artefacts import listing, steps_of
from rubric.values.candidates import Candidate
from rubric.values.checks import Holds, Script, Similar
from rubric.values.criteria import UNWANTED, Anchor, Criterion, Polarity
from rubric.values.judges import Judge
from rubric.values.numbered import NumberedStep, call_text, media_of, numbered_steps
from rubric.values.requests import MOST_TOKENS, Ask, Outgoing
from rubric.values.rubrics import Rubric
from rubric.values.run_parts import RunPart
from rubric.values.runs import Media, part_of
from rubric.values.trees import DecisionTree

if TYPE_CHECKING:
    from hashlib import _Hash


APART = (DecisionTree, Rubric, Similar, Script, Holds)
"""Answers that take asks of their own. A tuple, since `A | B` in a loop makes a new union each time round."""


def group_criteria(criteria: Sequence[Criterion], judge: Judge) -> Sequence[Sequence[Criterion]]:
    """Return which of *criteria* a call asks about: `APART` answers and pass flags alone, others together."""
    if judge.per_call == 1:
        return [(criterion,) for criterion in criteria]
    size = len(criteria) if judge.per_call == "all" else judge.per_call
    groups: list[list[Criterion]] = []
    filling: dict[bool, list[Criterion]] = {}
    for criterion in criteria:
        answer = criterion.answer
        flagged = isinstance(answer, Unit) and answer.flag
        if isinstance(answer, APART):
            groups.append([criterion])
        elif len(filling.get(flagged, ())) in (0, size):
            groups.append([criterion])
            filling[flagged] = groups[-1]
        else:
            filling[flagged].append(criterion)
    return groups


def as_question(rubric: Rubric, criterion: Criterion, node: DecisionTree) -> Criterion:
    """Return the question at *node* as a criterion, scored by how sure the yes is; each time the same object."""
    return rubric.derive(
        ("question", criterion.id, node.question),
        lambda: Criterion(node.question, id=criterion.id, answer=Unit(), evidence=False, abstain="forbid"),
    )


# -- what all asks about a candidate share ---------------------------------------------------------------


@frozen(eq=False)
class SharedPrompt:
    """
    What all asks about one candidate share.

    Args:
        run: Its steps and file changes, as they are shown.
        media: What is attached of the run, by its name in the list of steps.
        places: The parts of *run* that are the candidate's own: the step, where it starts and where it ends.
        cuts: The places in *shared* up to which candidates may be the same that differ in what follows.
        digest: A hash of all that is shown; copied, and fed the rest of an ask, it gives the nonce.
    """

    candidate: Candidate
    rubric: Rubric
    system: Outgoing
    shared: str
    sections: Mapping[str, str]
    variables: Mapping[str, str]
    run: str
    places: tuple[tuple[str, int, int], ...]
    media: tuple[tuple[str, Media], ...]
    warnings: tuple[str, ...]
    cuts: tuple[int, ...]
    digest: _Hash = field(repr=False)


STEPS = "steps"
"""The section of a run that is not shown: the judge reads it by its steps."""

LONGEST_INLINED = 16_000
"""Characters of a run that a judge with tools is shown at once; it reads longer ones by their steps."""

_GIVEN, _GRADED = ("task", "images", "reference answer", "context"), ("candidate",)
_CHANGED = ("file changes", "files")
"""Sections that have a mark in common: the given ones first, which many candidates share; the run; the output last."""


def text_of_candidate(candidate: Candidate) -> str:
    """Return all that a judge is shown of *candidate*, each text under its title, without marks."""
    sections = shared_prompt(candidate, Rubric()).sections.items()
    return "\n\n".join(f"{'output' if title == 'candidate' else title}:\n{text}" for title, text in sections)


def _unfilled(rubric: Rubric, names: Collection[str]) -> Iterator[str]:
    """Yield a warning for each text of *rubric* in which one of the variables *names* of a candidate seems to stand."""
    for text in (rubric.text, *(criterion.text for criterion in rubric.criteria)):
        for slot in re.finditer(r"\{\{?\s*(\w+)\s*\}\}?", text) if "{" in text else ():
            if slot[1] in names:
                how = "make the rubric with the value, or grade the cases of a suite, whose rubrics have slots"
                yield f"{slot[0]} stands in the rubric as it is, and shows no variable of the candidate; {how}"


def shared_prompt(candidate: Candidate, rubric: Rubric) -> SharedPrompt:
    """Return what all asks about *candidate* under *rubric* share."""
    digest, warnings, sections = sha256(), dict.fromkeys(candidate.remarks), dict[str, str]()
    files, given = [dict(each) if each else {} for each in (candidate.files, candidate.variables)]
    texts = {
        "images": f"{len(candidate.images)}, attached to this message" if candidate.images else "",
        "reference answer": candidate.reference,
        "context": candidate.context,
        "file changes": candidate.file_changes,
        "files": listing(files) if files else "",
        "candidate": candidate.output,
    }
    parts, hidden, was_asked = list[_Section](), dict[str, str](), False
    media = [("", Media("image", address)) for address in candidate.images] if candidate.images else []
    if (part := candidate.part) is not None:  # most candidates have no run, and this is done for each of them
        parts, hidden = _show_run(part, candidate, rubric)
        texts[STEPS] = _summary(hidden)
        texts |= {title: note + "\n".join([one.text for one in steps]) for title, note, steps in parts}
        was_asked = any(one.index == part.asked for _, _, steps in parts for one in steps)
        warnings |= dict.fromkeys([GAP] if any(note for _, note, _ in parts) else ())
        media += [shown for _, _, steps in parts for one in steps for shown in media_of(one.event, one.step)]
    texts["task"] = "" if was_asked else candidate.input
    if media:
        gone = [name for name, each in media if part_of(each) is None]
        warnings |= {f"kept elsewhere, and not shown to the judge: {name}": None for name in gone}
    titles_of_run = tuple([title for title, _, _ in parts]) if parts else ()
    done: list[Sequence[str]] = []
    if parts or hidden or files or candidate.file_changes:
        done = [*[[title] for title in titles_of_run[:-1]], (*titles_of_run[-1:], STEPS, *_CHANGED)]
    blocks: list[tuple[list[str], _Hash]] = []  # each with a hash of all that is shown up to its end
    for block in (_GIVEN, *done, _GRADED):
        titles = [title for title in block if texts.get(title) or block is _GRADED]
        for title in titles:
            digest.update(_frame(title))
            sections[title] = _escape(texts[title], digest, warnings)
        if titles:
            blocks.append((titles, digest.copy()))
    variables = dict[str, str]()
    digest.update(b"%d,%d;" % (len(sections), len(given)))  # or one could be taken for the other
    if given:
        # Sorted, since equal candidates must get equal prompts: a mapping is the same in any order.
        variables = {name: _escape(str(value), digest, warnings) for name, value in sorted(given.items())}
        for name in variables:
            digest.update(_frame(name))
        warnings |= dict.fromkeys(_unfilled(rubric, variables))
    blocks[-1] = (blocks[-1][0], digest.copy())
    system = _system(rubric.guidelines)
    for text in (*system.parts, *candidate.images):
        digest.update(_frame(text))
    beside = ["\n".join(hidden.values())] if hidden else []
    shared, cuts = _fence(blocks, digest, sections, [*sections.values(), *variables.values(), *files.values(), *beside])
    return SharedPrompt(
        candidate=candidate,
        rubric=rubric,
        system=system,
        shared=shared,
        sections=sections,
        variables=variables,
        run="\n\n".join([sections[title] for title in (*titles_of_run, *_CHANGED) if title in sections]),
        places=_places(parts, sections) if done else (),
        media=tuple([(name, each) for name, each in media if part_of(each)]) if media else (),
        warnings=tuple(warnings),
        cuts=cuts,
        digest=digest,
    )


def _show_run(part: RunPart, candidate: Candidate, rubric: Rubric) -> tuple[list[_Section], dict[str, str]]:
    """Return what is shown of the run, and the steps that a judge with tools has to read instead."""
    parts = _run_sections(part)
    is_long = sum(len(one.text) for _, _, steps in parts for one in steps) > LONGEST_INLINED
    return ([], dict(steps_of(candidate))) if rubric.max_steps and is_long else (parts, {})


def _summary(steps: Mapping[str, str]) -> str:
    """Return how many *steps* there are, and their digest, so that a reply is kept for exactly these."""
    if not steps:
        return ""
    whole = "\n".join(steps.values())
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{len(steps):,} steps, {len(whole):,} characters ({digest}): read them with list_steps, read_steps, search"


_CHUNK = 4_000
"""Characters of a window's section. Turns with the same sections before them share these in a prefix cache."""

GAP = (
    "the run is long: a judge of a turn sees its beginning and the last steps before the turn, and not what is between"
)

_Section = tuple[str, str, list[NumberedStep]]
"""A part of a run: its title, a note on what is left out before it, and its steps."""


def _run_sections(part: RunPart) -> list[_Section]:
    """Return what is shown of a run, in sections that end where other prompts may begin to differ."""
    # A whole run has two: up to what was asked, which all answers to it share, and what was done for that. A window has
    # the beginning of the run, and the last section before the turn with the one that the turn is in.
    steps, at = numbered_steps(part), attrgetter("offset")
    if not steps:
        return []
    ends, last = [0, len(steps)], 0
    if not part.is_window and part.asked is not None:
        ends.insert(1, bisect_right(steps, part.asked, key=attrgetter("index")))
    elif part.is_window:
        own = bisect_left(steps, steps[-1].offset // _CHUNK * _CHUNK, key=at)
        last = bisect_left(steps, steps[own - 1].offset // _CHUNK * _CHUNK, key=at) if own else 0
        ends = sorted({0, bisect_left(steps, _CHUNK, key=at), last, own, len(steps)})
    found = list[_Section]()
    for start, end in pairwise(ends):
        is_gap = part.is_window and 0 < start < last
        if start < end and not is_gap:
            gone = part.is_window and start == last > ends[1]
            note = f"(Steps {steps[ends[1]].step} to {steps[start - 1].step} are not shown.)\n" if gone else ""
            found.append((f"run, from step {steps[start].step}" if found else "run", note, steps[start:end]))
    return found


def _places(parts: Sequence[_Section], sections: Mapping[str, str]) -> tuple[tuple[str, int, int], ...]:
    """Return where the candidate's own steps, and its changes, stand in the text of the run."""
    found, base = list[tuple[str, int, int]](), 0
    for title, note, steps in parts:
        start, shown = base + len(note), sections[title]
        is_plain = len(shown) == len(note) + sum(len(one.text) + 1 for one in steps) - 1
        for one in steps:
            end = start + len(one.text if is_plain else visible(one.text)[0])
            found += [(one.step, start, end)] if one.is_own else []
            start = end + 1
        base += len(shown) + 2
    for title in _CHANGED:
        if shown := sections.get(title, ""):
            found.append(("", base, base + len(shown)))
            base += len(shown) + 2
    return tuple(found)


def _fence(
    blocks: Sequence[tuple[Sequence[str], _Hash]], whole: _Hash, sections: Mapping[str, str], texts: Sequence[str]
) -> tuple[str, tuple[int, ...]]:
    """Return *sections* between marks that occur in none of *texts*, and where each block but the last ends."""
    # Nor does a near-copy of a mark occur there (in capitals, in look-alikes, broken by a line or by markup): a judge
    # could take it for the mark. The files that a judge with tools may read are among *texts*.
    # The mark of a block depends on what is shown up to its end and on nothing later, so that candidates with the same
    # beginning have the same prompt up to where they differ. A later block is announced in a line with the mark before:
    # no text can hold that mark, so no text can announce a block. The author of an output may know the task, and so its
    # mark. If the output holds it, the mark comes from *whole* instead, which depends on the output too; trying marks
    # of the task until one is missing would take minutes for an output that holds thousands of them.
    shared, mark, cuts = "", "", list[int]()
    skeletons: dict[int, bytes] = {}
    for place, (titles, state) in enumerate(blocks):
        before, mark, attempt = mark, _letters(state, b"0"), 0
        while _occurs(mark, texts, skeletons):
            mark, attempt = _letters(whole, b"%d,%d" % (place, attempt)), attempt + 1
        if before:
            cuts.append(len(shared))
        shared += f"{before}: the mark is now {mark}.\n\n" if before else f"The mark is {mark}.\n\n"
        for title in titles:
            shared += f"{title}, {mark}:\n{sections[title]}\n{mark}\n\n"
    return shared, tuple(cuts)


_DIGITS = frozenset("234567")


def _occurs(mark: str, texts: Sequence[str], skeletons: dict[int, bytes]) -> bool:
    """True if *mark* or a near-copy of it occurs in *texts*; *skeletons* has those that were made, by their places."""
    digits = _DIGITS.intersection(mark)
    for place, text in enumerate(texts):
        # No sign of ASCII looks like one of these digits but itself, and most texts lack some of them.
        if text.isascii() and False in map(text.__contains__, digits):
            continue
        if place not in skeletons:
            skeletons[place] = skeleton(text)
        if skeleton(mark) in skeletons[place]:
            return True
    return False


_PLAIN = bytes({*range(0x20, 0x7F), *b"\t\n\r"} - {*b"<["})
"""Visible ASCII and white space, without the first characters of chat-template tokens: nothing to escape or warn of."""


def _escape(text: str, digest: _Hash, warnings: dict[str, None]) -> str:
    """Return *text* with invisible characters escaped; add it to *digest*, and any warnings to *warnings*."""
    encoded = text.encode("utf-8", "surrogatepass")
    if encoded.translate(None, _PLAIN):
        text, why = visible(text)
        warnings.update(dict.fromkeys(why))
        encoded = text.encode("utf-8", "surrogatepass")
    digest.update(b"%d:" % len(encoded))
    digest.update(encoded)
    return text


def _frame(text: str) -> bytes:
    """Return *text* as bytes with their number before them, so that no text can run into the next one."""
    encoded = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(encoded), encoded)


@lru_cache(maxsize=64)
def _judge_frame(name: str, repair: int) -> bytes:
    return b"%b%d;" % (_frame(name), repair)


@lru_cache(maxsize=64)
def _system(guidelines: str, name: str = "system") -> Outgoing:
    text = render.text(name) + (f"\n\nGuidelines:\n{guidelines.strip()}" if guidelines.strip() else "")
    return Outgoing("system", (text,))


def _letters(digest: _Hash, end: bytes) -> str:
    """Return 16 letters and digits, 80 bits, of *digest* with *end* after it: no candidate can hold its own hash."""
    # Each is five bits of one byte: the base 32 of the standard library is Python code, a tenth of a whole grade.
    whole = digest.copy()
    whole.update(end)
    return whole.digest()[:16].translate(_LETTERS).decode()


_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8


# -- one ask -----------------------------------------------------------------------------------------------


def compose(about: SharedPrompt, rubric: Rubric, judge: Judge, criteria: Sequence[Criterion], **how: Any) -> Ask:
    """Return the ask for *criteria* of *rubric*; *how* is as for `compose_all`."""
    return compose_all(about, rubric, judge, [criteria], **how)[0]


def compose_all(
    about: SharedPrompt,
    rubric: Rubric,
    judge: Judge,
    groups: Sequence[Sequence[Criterion]],
    *,
    vote: int = 0,
    repair: int = 0,
    complaint: str = "",
    guidelines: str = "",
) -> tuple[Ask, ...]:
    """Return an ask for each of *groups*; *complaint*, for a re-ask, is why the last reply could not be used."""
    # Each has the nonce that a sealed verdict must carry: a hash of candidate, criteria, judge and re-ask. Whoever
    # wrote the candidate would have to know a hash of it beforehand; yet the same ask has the same nonce, so its reply
    # can be kept. It is no secret from the model and does not protect from persuasion. Votes share it: they are sent
    # the same.
    template, most = judge.prompt or rubric.prompt, MOST_TOKENS if judge.may_think else 0
    if template is not None:
        render.check_slots(template)
        most = MOST_TOKENS  # it may ask for a long reply
    sealed, flagless = judge.is_sealed(own_prompt=rubric.prompt is not None), rubric.threshold is not None
    output, guided = about.candidate.output, guidelines.strip()
    digest = about.digest.copy()
    digest.update(_judge_frame(judge.name, repair))
    # By identity, since to hash a rubric takes longer than to word a criterion. A prompt holds its criteria, so that no
    # id is used again; and no judge, whose key must not outlive it.
    reader = "function" if callable(judge.reader) else judge.reader
    known: dict[object, CriterionPrompt] = rubric.derive(("prompts", judge.reasoning, reader, sealed, guided), dict)
    system = about.system if judge.reader is None else _system(about.rubric.guidelines, "system_free_text")
    asks = []
    for group in groups:
        key = id(group[0]) if len(group) == 1 else tuple(map(id, group))
        asked = None if complaint else known.get(key)
        if asked is None:
            asked = _criterion_prompt(
                rubric, judge, group, output=output, guided=guided, complaint=complaint, sealed=sealed
            )
            if not complaint and not [one for one in group if one.anchors]:  # else it is for this candidate
                if len(known) >= _FEWEST_KEPT + 4 * len(rubric.judged):
                    known.clear()
                known[key] = asked
        form, nonce = asked.form, ""
        if template is not None:
            nonce, messages = _own_messages(template, about, rubric, judge, asked, repair=repair)
        else:
            words, before_nonce, after_nonce = form.words_around_nonce
            if form.sealed:
                nonce = _letters(digest, asked.digested)
                words = f"{before_nonce}{nonce}{after_nonce}"
            messages = (system, Outgoing("user", (about.shared, f"{asked.tail}\n\n{words}"), about.cuts))
        ask = Ask(
            judge=judge,
            messages=messages,
            schema=form.schema,
            criteria=asked.criteria,
            nonce=nonce,
            abstainable=asked.abstainable,
            quoted=asked.quoted,
            candidate=output,
            run=about.run,
            places=about.places,
            max_tokens=judge.max_tokens or most or asked.max_tokens,
            vote=vote,
            repair=repair,
            media=about.media,
            many=form.many,
            flagless=flagless,
            exact=asked.exact,
            about=about.candidate,
        )
        asks.append(ask)
    return tuple(asks)


_FEWEST_KEPT = 64  # prompts of criteria, besides four for each criterion of the rubric


_NO_IDS = frozenset[str]()  # one object: prompts of thousands of criteria are kept


class CriterionPrompt(NamedTuple):
    """What differs from ask to ask, the same for many candidates; a sealed reply's nonce depends on *digested*."""

    form: Form
    criteria: tuple[Criterion, ...]
    tail: str
    digested: bytes
    exact: str
    max_tokens: int
    abstainable: frozenset[str]
    quoted: frozenset[str]


def _criterion_prompt(
    rubric: Rubric, judge: Judge, group: Sequence[Criterion], *, output: str, guided: str, complaint: str, sealed: bool
) -> CriterionPrompt:
    """Return the prompt for *group*: what helps to judge them, and any *complaint*."""
    quoted = frozenset([c.id for c in group if asks_evidence(rubric, c)]) or _NO_IDS
    abstainable = frozenset([c.id for c in group if rubric.policy(c) != "forbid"]) or _NO_IDS
    first, kind = group[0], (sealed, bool(quoted), bool(abstainable))
    if len(group) == 1 and judge.reader is None:
        form, (exact, most), advice = _of_one(first.answer, first.polarity, kind, judge.reasoning)
        advices = [advice]
    else:
        form = Form.of([c.answer for c in group], judge.reasoning, kind)
        form = form if judge.reader is None else form.as_text(judge, first)
        exact, most = form.bounds(group, quoted, abstainable)
        advices = [
            _advice(c.answer, c.polarity, form, quoted=c.id in quoted, nullable=c.id in abstainable) for c in group
        ]
    parts = [f"Guidelines for this part:\n{guided}"] if guided else []
    for criterion, (meanings, rules) in zip(group, advices, strict=True):
        text = criterion.text.strip()
        title = f'Criterion "{criterion.id}":' if form.many else "Criterion:"
        anchors = _anchors_beside(criterion, output) if criterion.anchors else []
        examples = ["Calibration examples:", *[_anchor(criterion, anchor) for anchor in anchors]] if anchors else []
        parts.append("\n".join([title, *([text] if text else []), *meanings, *examples, *rules]))
    if complaint:
        ours = complaint.partition(", got ")[0]  # what follows is a judge's, and may be the candidate's words
        parts.append(render.fill(render.text("repair"), {"complaint": ours}))
    tail = "\n\n".join(parts)
    digested = _frame(f"{tail}\n\n{form.words_around_nonce[0]}") if form.sealed else b""
    return CriterionPrompt(form, tuple(group), tail, digested, exact, most, abstainable, quoted)


# -- what is asked about a criterion -------------------------------------------------------------------------


_Advice = tuple[Sequence[str], Sequence[str]]


@lru_cache(maxsize=256)  # a rubric for each prompt has thousands of criteria, and few kinds of them
def _of_one(
    answer: Answer, polarity: Polarity, kind: tuple[bool, bool, bool], reasoning: str
) -> tuple[Form, tuple[str, int], _Advice]:
    """Return the form of a reply on one such criterion, its bounds, and the lines around the criterion's examples."""
    form = Form.of([answer], reasoning, kind)
    return form, form.bounds_of_one(answer), _advice(answer, polarity, form, quoted=kind[1], nullable=kind[2])


@lru_cache(maxsize=256)
def _advice(answer: Answer, polarity: Polarity, form: Form, *, quoted: bool, nullable: bool) -> _Advice:
    """Return the lines on a criterion between its text and its examples, and those after them."""
    meanings: list[str] = []
    match answer:
        case Levels() as levels:
            meanings = level_lines(levels)
        case Choices(choices=choices):
            meanings = [f"- {c.label}: {c.text}" for c in choices if c.text]
    rules: list[str] = []
    if polarity != "satisfy" or not isinstance(answer, Choices):
        rules.append(render.text("guard" if polarity in UNWANTED else polarity))
    if quoted:
        rules.append(render.text("evidence"))
    if nullable:
        rules.append(render.fill(render.text("abstain"), {"key": form.key}))
    if form.many:
        rules.append(f'"verdict" is {shape_of(answer).values}.')
    return meanings, [line for line in rules if line]


def _anchors_beside(criterion: Criterion, output: str) -> list[Anchor]:
    """Return the anchors but *output* itself, which would carry its own verdict."""
    graded = " ".join(output.split()).casefold()
    return [a for a in criterion.anchors if " ".join(a.response.split()).casefold() != graded]


def level_lines(levels: Levels) -> list[str]:
    """Return what the numbers of *levels* mean, a line each; and that those between anchors are answers too."""
    between = [render.text("between")] if any(b.low > a.high + 1 for a, b in pairwise(levels.ranges)) else []
    return [*(f"- {r}: {r.text}" for r in levels.ranges if r.text), *between]


def _anchor(criterion: Criterion, anchor: Anchor) -> str:
    match cast("JudgeAnswer", criterion.answer).nearest(float(anchor.score)):
        case bool(holds):
            said = "yes" if holds else "no"
        case float(score):
            said = f"score {score:.2f}"
        case int(level):
            said = f"score {level}"
        case label:
            said = label
    why = f" ({anchor.reason})" if anchor.reason else ""
    return f"Response: {as_json(anchor.response)} -> {said}{why}"


# -- a template of the user's own --------------------------------------------------------------------------


def _own_messages(
    template: str, about: SharedPrompt, rubric: Rubric, judge: Judge, asked: CriterionPrompt, *, repair: int
) -> tuple[str, tuple[Outgoing, ...]]:
    """Return the nonce, empty for an unsealed judge, and the messages of the user's own *template*."""
    form = asked.form
    messages = _fill(template, about, rubric, asked, form.words(""))
    if not form.sealed:
        return "", messages
    # Of the messages themselves: two candidates that differ in what the template leaves out are asked the same.
    attached = [media.address for _, media in about.media]
    sent = as_json([judge.name, repair, attached, [(m.role, m.text) for m in messages]])
    nonce = _letters(sha256(), _frame(sent))
    return nonce, _fill(template, about, rubric, asked, form.words(nonce))


_SHOWING = frozenset({"candidate", "output", "conversation", "tool_calls", "file_changes"})
_ASKING = frozenset({"criterion", "rubric"})


def remarks_on_template(asks: Sequence[Ask], about: SharedPrompt, rubric: Rubric) -> list[str]:
    """Return what the user's own template of *asks* leaves out: the candidate, or which of the criteria is judged."""
    template = asks[0].judge.prompt or rubric.prompt
    if template is None:
        return []
    slots, remarks = render.slots_in(template), []
    if not asks[0].media and slots.isdisjoint(_SHOWING | about.variables.keys()):
        remarks.append("the prompt shows the judge nothing of the candidate; put {{ output }} or {{ candidate }} in it")
    if (count := sum(len(ask.criteria) for ask in asks)) > 1 and slots.isdisjoint(_ASKING):
        remarks.append(f"the prompt asks the same about all of {count} criteria; put {{{{ criterion }}}} in it")
    return remarks


def _fill(
    template: str, about: SharedPrompt, rubric: Rubric, asked: CriterionPrompt, reply: str
) -> tuple[Outgoing, ...]:
    texts = [f"{c.id}: {c.text.strip()}" if asked.form.many else c.text.strip() for c in asked.criteria]
    slots = {
        "candidate": about.shared.rstrip(),
        "output": about.sections["candidate"],
        "input": visible(about.candidate.input)[0],
        "reference": about.sections.get("reference answer", ""),
        "context": about.sections.get("context", ""),
        "conversation": visible("\n".join([f"{m.role}: {m.content}" for m in about.candidate.messages]))[0],
        "tool_calls": visible("\n".join([f"- {call_text(call)}" for call in about.candidate.tool_calls]))[0],
        "file_changes": about.sections.get("file changes", ""),
        "guidelines": rubric.guidelines,
        "criterion": asked.tail,
        "rubric": "\n".join(texts),
        "reply": reply,
    }
    messages = render.fill_chat(template, {**about.variables, **slots})
    if asked.form.sealed and reply not in messages[-1].text:  # or the judge would not know the nonce
        messages = (*messages[:-1], Outgoing(messages[-1].role, (*messages[-1].parts, f"\n\n{reply}")))
    return messages
