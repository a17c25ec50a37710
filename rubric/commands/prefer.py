"""The command `prefer`: which of two is better, for each pair in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from rubric import DefinitionError, load, prefer_many
from rubric.commands import options
from rubric.commands.messages import in_options
from rubric.commands.named_columns import columns_of
from rubric.commands.output import Command, Refusal, print_line, print_result
from rubric.commands.running import FIRST, describe_plan
from rubric.embed import counted, replacing
from rubric.trust.pairwise.preference import pairs_of, plan_pairs


def _check(context: click.Context) -> None:
    """Refuse files as the sides: they are columns of one file."""
    for column in columns_of(context.params["columns"]).values():
        if isinstance(column, str) and Path(column).is_file():
            said = f"{column} is a file, and the sides a and b are columns of one file, which has a pair in each line"
            raise click.UsageError(said)


@click.command(cls=Command, check=_check)
@click.argument("pairs", type=options.PATH)
@click.argument("rubric", type=options.PATH)
@options.take(f"{options.JUDGE} one_order columns out {options.PAYING} form")
def prefer(pairs: Path, rubric: Path, *, judge: Any, columns: Sequence[str], out: Path | None, **given: Any) -> None:
    """
    Say which of two is better, for each pair in a file.

    PAIRS is JSON lines or CSV with a and b and, if known, input, reference, context, key, group, model_a, model_b.

    Exit codes: 0 all pairs judged, 2 bad input, or a pair without a verdict.
    """
    options.refuse_folder(out)
    both, loaded = not given["one_order"], load(rubric)
    rows, remark = pairs_of(pairs, columns_of(columns))
    planned = plan_pairs(rows[:FIRST], loaded, judge, both_orders=both)
    times = len(rows) / max(1, min(len(rows), FIRST))
    print_line(f"{pairs}: {counted(len(rows), 'pair')}, {describe_plan(planned, times)}", problem=True)
    if remark:
        print_line(f"warning: {in_options(DefinitionError('', remark))}", problem=True)
    found = prefer_many(rows, loaded, judge, both_orders=both, **options.calls_of(given))
    if out is not None:
        with replacing(out) as file:
            file.writelines(json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in found)
    print_result(found, given["form"])
    if missing := found.counts["unjudged"]:
        raise Refusal(f"{missing} of {len(found)} pairs have no verdict")
