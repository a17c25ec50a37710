"""The command `label`: a page on which people label candidates, served on this machine or as a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from rubric import Candidate, Rubric, load
from rubric.commands import options
from rubric.commands.file_arguments import WrongLineError
from rubric.commands.local_server import LocalServer
from rubric.commands.named_columns import columns_of
from rubric.commands.options import PATH
from rubric.commands.output import Command, Refusal, print_line
from rubric.embed import counted, replacing, source_of
from rubric.labelling.drawing import Draw
from rubric.labelling.page import LabelPage, Results
from rubric.labelling.sheet import Answer, Sheet, read_answers
from rubric.results import Record


def _check(context: click.Context) -> None:
    """Refuse a call that names no file for labels, or two."""
    data, out, page = (context.params[name] for name in ("data", "out", "page"))
    if (out is None) == (page is None):
        said = "name one: the file of labels with --out FILE, or a page to send with --html FILE"
        free = f"{data.stem}-labels.csv" if Path("labels.csv").exists() else "labels.csv"
        raise WrongLineError(said, {"out": ("--out", free)} if out is None else {})


@click.command(cls=Command, check=_check)
@click.argument("data", type=PATH)
@click.argument("rubric", type=PATH)
@options.take("out page results count add columns port no_browser")
def label(data: Path, rubric: Path, *, out: Path | None, page: Path | None, add: Sequence[Path], **given: Any) -> None:
    """
    Label candidates on a page in the browser, until Ctrl-C.

    DATA is a file of candidates, as for grade-many. They come in a random order, and each answer is written to
    --out at once; `agree` and `estimate` read that file.
    """
    for file, option in ((out, "--out"), (page, "--html")):
        if file is not None:
            options.refuse_inputs(file, (data, rubric, *given["results"], *add), option)
    if page is not None or add:
        where = "is for the served page" if page is not None else "has no effect with --add, which shows no page"
        options.refuse_given({"port", "no_browser"}, where)
    if page is not None:
        options.refuse_given({"add"}, "is for a file of labels: --out FILE")
    asked = load(rubric)
    made = _page(data, asked, given["results"], given["count"], given["columns"])
    if page is not None:
        with replacing(page) as opened:
            opened.write(made.html(mode="file"))
        print_line(f"{page}: {counted(len(made.candidates), 'candidate')} to label; the page exports labels.csv")
        return
    assert out is not None  # noqa: S101 - checked above
    sheet = Sheet(out, made.draw)
    if add:
        _add(sheet, add)
        return
    _warn(made.draw, sheet.read())

    def save(said: Any) -> None:
        sheet.add([Answer.of(said, made.allowed)])

    server = LocalServer(lambda _: made.html(sheet.read()), given["port"], save)
    server.run(str(out), no_browser=given["no_browser"])


def _page(data: Path, rubric: Rubric, results: Sequence[Path], count: int, columns: Sequence[str]) -> LabelPage:
    source = source_of(str(data), columns_of(columns))
    candidates, left_out = source.read_all()
    if not candidates:
        raise Refusal(f"{data}: there is no candidate in it")
    if left_out:
        print_line(f"{data}: {left_out}", problem=True)
    draw = Draw.of({place: candidate.key for place, candidate in candidates.items()})
    if draw.by == "index":
        cure = f"give agree the results of all of {data} in its order, or name a column of keys with --column key=id"
        print_line(
            f"warning: no key tells the candidates apart, so labels are of places in this file; {cure}", problem=True
        )
    found = _results(results, draw.by)
    if found and not draw.places.keys() & found.keys():
        known = f"results are of {next(iter(found))!r}, ..., candidates are {draw.items[0].name!r}, ..."
        raise Refusal(f"{results[0]}: none matches a candidate of {data}: {known}")
    first: list[Candidate] = [candidates[item.place] for item in draw.items[:count]]
    made = LabelPage(rubric, draw, first, found, data.name)
    known_ids = {finding["id"] for each in found.values() for finding in each[0]["findings"]}
    if found and not known_ids & {*rubric.ids}:
        raise Refusal(f"{results[0]}: these are results of another rubric ({', '.join(sorted(known_ids)[:5])})")
    return made


def _results(paths: Sequence[Path], by: str) -> Results:
    """Return what each file says of a candidate, by its name."""
    found: dict[str, list[Any]] = {}
    for path in paths:
        for place, line in enumerate(Record.data_in("--results", path)):
            name = line.get("key", "") if by == "key" else str(line.get("index", place))
            found.setdefault(name, []).append(line)
    return found


def _add(sheet: Sheet, files: Iterable[Path]) -> None:
    """Merge the labels in *files* into the sheet, and say how many there are."""
    added: list[Answer] = []
    for file in files:
        found = read_answers(file, sheet.draw.by)
        if unknown := [each.name for each in found if each.name not in sheet.draw.places]:
            raise Refusal(f"{file}: {unknown[0]!r} is not a candidate of this data")
        added += found
    kept = sheet.add(added)
    by = counted(len({each.rater for each in kept}), "rater")
    print_line(f"{sheet.path}: {counted(len(added), 'answer')} added, {len(kept):,} by {by} in all")
    _warn(sheet.draw, kept)


def _warn(draw: Draw, answers: Sequence[Answer]) -> None:
    """Say if candidates were passed over: all up to the last that is labelled are a random sample."""
    names = {each.name for each in answers}
    places = [draw.places[name] for name in names & draw.places.keys()]
    if gaps := max(places, default=-1) + 1 - len(places):
        cure = "label these too (they come first), or the labels are not a random sample"
        what = f"{counted(gaps, 'candidate')} before the last labelled one without an answer"
        print_line(f"warning: {what}; {cure}", problem=True)
