"""The reporters for people: text at a terminal, and Markdown."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from hypothesis import given
from markdown_it import MarkdownIt

from rubric import Case, Suite, loads
from rubric.embed import FrozenMap
from rubric.results.report_rows import Entry, Row, below
from rubric.suites.report import Report
from rubric.suites.reporters import markdown
from rubric.suites.reporters import terminal as pretty
from tests.examples import examples
from tests.reports import DEFERRED, FAILED, JUDGED, NASTY, PASSED, REPORT, UNGRADED, reports
from tests.rows import each_row

if TYPE_CHECKING:
    from markdown_it.token import Token

HEADS = re.compile(r"^[✓✗?-] (passed|failed|ungraded|deferred)", re.MULTILINE)


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


# -- at a terminal ---------------------------------------------------------------------------------------


@given(reports)
@examples(25)
def test_any_report_is_text_with_a_line_for_each_case(report: Report) -> None:
    """Nothing in it is taken for markup, and nothing steers a terminal."""
    text = report.render()
    assert [match[1] for match in HEADS.finditer(text)] == [row.status for row in report]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    text.encode()


def test_a_line_shows_the_score_on_its_scale_and_the_lines_beneath_what_went_wrong() -> None:
    """Gates, criteria that fell short, quotes that are false, votes, and what could not be judged."""
    text = Report("s", (FAILED,)).render()
    assert "✗ failed    3.5/5     late\n" in text
    for words in ("gates that failed: refund", "scored 0.62, needs 0.80", "0.00  refund: About refund  gate failed", "“x” (not found)",
                  "0.50  style", "abstained  year", "one: 0.70 fail", "two: no score ungraded"):  # fmt: skip
        assert words in text
    assert "answers" not in text


def test_what_is_ungraded_shows_its_bounds_and_what_is_deferred_its_reason() -> None:
    """Neither is shown as a score of 0."""
    text = Report("s", (UNGRADED, DEFERRED)).render()
    assert (
        "? ungraded  0.20..0.90  limited\n    429\n      unjudged  b: Offers help\n          rate_limited: 429\n"
        in text
    )
    assert "- deferred            serverless\n    there is no server\n" in text
    assert "deferred cases count as error" in text


def test_what_a_nested_rubric_fell_short_of_stands_beneath_it() -> None:
    """Its verdict alone says nothing to the one who has to mend it."""
    parts = (Entry("warm", "Is warm", "scored", 1.0, 1.0), Entry("json", "Is JSON", "scored", 0.0, 0.0, reason="no"))
    nested = Entry("style", "style", "scored", 0.5, 0.5, answer="rubric", reason="fail", parts=parts)
    text = Report("s", (Row("a", "failed", 0.5, threshold=0.8, entries=(nested,)),)).render()
    assert "      0.50  style\n          fail\n        0.00  json: Is JSON\n            no\n" in text
    assert "warm" not in text


def test_a_score_that_just_falls_short_is_seen_to_fall_short() -> None:
    """Rounded, it would be told that it has what it needs."""
    report = Report("s", (Row("a", "failed", 0.7996, "fail", "0.80", 0.8),))
    assert "scored 0.7996, needs 0.80" in report.render()
    assert "0.7996, needs 0.80" in report.render("md")


def test_a_score_below_a_mark_never_reads_as_the_mark() -> None:
    """However near it is."""
    assert [below(score, 0.8) for score in (0.5, 0.799, 0.7996, 0.8 - 1e-16)] == [
        "0.50", "0.799", "0.7996", "0.7999999999999999"]  # fmt: skip


def _matrix() -> Report:
    rows = [
        evolve(row, id=f"{case} [provider={name}]", cell=FrozenMap({"provider": name}))
        for case in ("one", "two")
        for name, row in (("gpt", PASSED), ("claude", FAILED))
    ]
    return Report("grid", tuple(rows))


def test_the_answers_of_a_matrix_stand_side_by_side() -> None:
    """A row a case, a column a provider: the verdict, the score and the beginning of the answer."""
    text = pretty.render(_matrix(), width=120)
    (row,) = [line for line in text.splitlines() if line.startswith("│ one ")]
    assert "✓ 0.90 Hi!" in row
    assert "✗ 3.5/5 Hello Ada, your parcel" in row
    page = _matrix().render("md")
    assert "| one | ✅ 0.90: Hi! | ❌ 3.5/5, needs 0.80: Hello Ada" in page
    assert [token.type for token in tokens(page)].count("table_open") >= 2


def test_the_line_of_a_case_keeps_its_id_where_that_holds_a_number_of_the_cell() -> None:
    """Else the first repetition of one case stood beside the second of another, and a stable judge seemed to flip."""
    rows = [
        evolve(PASSED, id=f"order-{case} [repeat {number}]", cell=FrozenMap({"repeat": number}))
        for case in (1, 2)
        for number in (1, 2)
    ]
    text = pretty.render(Report("r", tuple(rows)), width=120)
    assert [line.split()[1] for line in text.splitlines() if line.startswith("│")] == ["order-1", "order-2"]


def test_a_grid_that_is_wider_than_the_terminal_is_stacked() -> None:
    """Below each case a line a provider, and no line is wider."""
    text = pretty.render(_matrix(), width=60)
    assert "one\n  gpt: ✓ 0.90 Hi!\n  claude: ✗ 3.5/5 Hello Ada" in text
    assert "│" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_each_answer_is_shown() -> None:
    """The beginning of one that passed, more of one that did not, and all of both where every detail is asked for."""
    text = Report("s", (evolve(PASSED, output="Hi " * 100), FAILED)).render()
    assert "\n    answer: Hi Hi" in text
    assert "answer: Hello Ada, your parcel is in Oslo and arrives on Friday. You get the full price back" in text
    assert "| passed | 0.90 | Hi! |" in Report("s", (PASSED,)).render("md").replace("✅ ", "")


def test_the_summary_counts_cases_calls_tokens_and_cost() -> None:
    """The last line is what people look for."""
    told = " ".join(REPORT.render().split())
    assert "1 passed, 1 failed, 1 ungraded, 1 deferred, 14 calls, 12,400 (9,800 of them cached) in, 2,210 out" in told
    assert "tokens, $0.0187, 2.5 s" in told


def test_a_printed_report_shows_each_case_as_the_command_does() -> None:
    """`print(report)` shows each case with its criteria, as `rubric grade` does; its `repr` is one line."""
    shown = str(REPORT)
    assert shown == REPORT.render("pretty").strip()
    assert all(row.id in shown for row in REPORT)
    assert repr(REPORT).startswith("<Report")
    assert "\n" not in repr(REPORT)


def test_there_is_colour_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file has none."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in REPORT.render()
    monkeypatch.delenv("FORCE_COLOR")
    terminal, file = Terminal(), io.StringIO()
    pretty.show(REPORT, terminal)
    pretty.show(REPORT, file)
    assert "\x1b[" in terminal.getvalue()
    assert file.getvalue() == REPORT.render()


# -- Markdown --------------------------------------------------------------------------------------------


def tokens(text: str) -> list[Token]:
    """Return what a Markdown parser finds, in line and in blocks."""
    found = MarkdownIt("commonmark").enable("table").parse(text)
    return [token for block in found for token in (block, *(block.children or ()))]


@given(reports)
@examples(25)
def test_any_report_is_markdown_with_a_row_for_each_case_and_a_section_for_each_that_did_not_pass(
    report: Report,
) -> None:
    """No text leaves its cell, and none becomes a link, an image or HTML of its own."""
    found = tokens(report.render("md"))
    kinds = [token.type for token in found]
    sections = [row for row in report if row.status != "passed"]
    assert [token.tag for token in found if token.type == "heading_open"] == ["h2"] + ["h3"] * len(sections)
    first = found[: kinds.index("table_close")] if len(report) else []
    assert sum(token.type == "tr_open" for token in first) == (len(report) + 1 if len(report) else 0)
    assert sum(token.type == "fence" for token in found) == sum(bool(row.output) for row in sections)
    assert not {"link_open", "image", "code_inline", "em_open", "bullet_list_open", "ordered_list_open"} & set(kinds)
    html = {token.content.strip() for token in found if token.type in ("html_inline", "html_block")}
    assert html <= {"<!-- -->", "<br>", "<details><summary>candidate</summary>", "</details>"}


@each_row("text", NASTY)
def test_a_candidate_cannot_leave_its_fence(text: str) -> None:
    """However many backticks it has."""
    row = evolve(FAILED, output=f"````\n{text}\n`````\n</details>")
    (fence,) = [token for token in tokens(Report("s", (row,)).render("md")) if token.type == "fence"]
    assert "</details>" in fence.content


@each_row(
    ("report", "lead", "left"),
    [
        (
            Report("s", tuple(evolve(FAILED, id=f"c{n}", output="word " * 60) for n in range(200))),
            "",
            r"\d\d\d sections of cases that did not pass",
        ),
        (Report("s", (JUDGED,) * 1_000), "", r"\d\d\d cases of the table, 4,000 criteria of passed cases"),
        (
            Report("s", (PASSED, FAILED)),
            "| gone |\n" * 9_000,
            r"\d,\d\d\d lines of the comparison, 2 cases of the table, 1 section of cases that did not pass",
        ),
    ],
    ids=["failed", "passed", "compared"],
)
def test_a_comment_is_cut_at_a_whole_entry_and_says_what_is_left_out(report: Report, lead: str, left: str) -> None:
    """GitHub refuses a comment of more than 65,536 characters; the last line says how many are left out of what."""
    text = markdown.render(report, lead)
    assert 60_000 < len(text) <= 65_536
    *shown, last = text.rstrip().splitlines()
    assert re.fullmatch(
        f"Left out here, since GitHub takes no longer text: {left}. The page has all: --out report.html.", last
    ), last
    assert shown[-2].endswith(("|", "</details>"))
    assert "\x1e" not in text
    whole = markdown.render(report, lead, largest=10**7)
    assert whole.startswith("\n".join(shown).rstrip())
    assert "Left out here" not in whole
    lost = whole.count("\n### ") - text.count("\n### ")
    assert not lost or f" {lost} section" in last


@each_row(
    ("text", "shown"),
    [
        ("@team", "@<!-- -->team"),
        ("fixes #12", "fixes #<!-- -->12"),
        ("https://x.example", "https&#58;//x.example"),
        ("www.x.example", "www&#46;x.example"),
        ("<b>", "&lt;b&gt;"),
        ("a|b", "a\\|b"),
    ],
)
def test_nobody_is_called_and_nothing_is_linked(text: str, shown: str) -> None:
    """A comment on a merge request notifies no one that a candidate names."""
    assert markdown.plain(text) == shown


def test_what_an_ungraded_case_would_be_in_any_case_is_told() -> None:
    """A missing verdict that changes nothing does not hide the failure; the words are those of the result's own text."""
    rubric = loads("threshold: 0.9\ncriteria: [{text: a, check: {contains: z}}, {text: b, check: {within: {cost: 1}}}]")
    report = Suite("s", [Case(output="hi", id="x", rubric=rubric), Case(output="z", id="y", rubric=rubric)]).run(
        "offline"
    )
    assert "? ungraded  0.00..0.50, would fail  x\n" in report.render()
    assert "? ungraded  0.50..1.00  y\n" in report.render()
    assert "| x | ⚠️ ungraded | 0.00 to 0.50, would fail |" in report.render("md")
    assert "0.00 to 0.50, would fail" in str(report[0].result)


def test_the_markdown_holds_the_table_the_reasons_and_the_votes() -> None:
    """Who reads the job summary sees why."""
    text = REPORT.render("md")
    for words in ("## support: 1 passed, 1 failed, 1 ungraded, 1 deferred", "| late | ❌ failed | 3.5/5, needs 0.80 |",
                  "| limited | ⚠️ ungraded | 0.20 to 0.90 |", "| refund: About refund | 0.00, gate failed | It promises it all. |",
                  "| two | no score | ungraded |", "> **warning:** a.yaml:3:1: x"):  # fmt: skip
        assert words in text


def test_a_report_shows_itself_in_a_notebook() -> None:
    """As Markdown."""
    assert REPORT._repr_markdown_() == REPORT.render("md")
    assert "✅ passed" in Report("s", (PASSED,))._repr_markdown_()


def test_a_warning_that_stands_at_many_tests_is_told_once() -> None:
    """At its first place, with the number of the others; other messages stay apart."""
    told = [f"a.yaml:{n}:5: tests[{n}].assert[0]: moderation is not here" for n in range(4)]
    shown = pretty.render(evolve(REPORT, warnings=(*told, "a.yaml:9:1: x", "the run stopped early")))
    lines = [text for text in shown.splitlines() if text.startswith("warning")]
    assert lines == [
        "warning: a.yaml:0:5: tests[0].assert[0]: moderation is not here (and at 3 other places)",
        "warning: a.yaml:9:1: x",
        "warning: the run stopped early",
    ]
