"""Whatever is typed wrong at the command line: a line that is printed has all of it, and its command takes it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from rubric.commands.local_server import LocalServer
from rubric.commands.output import REFUSED
from tests.command_line import commands, run
from tests.places import ROOT
from tests.rows import each_row
from tests.wrong_lines import (
    FILES,
    lines_of,
    lost_in,
    moved_in,
    options_of,
    problem_in,
    right_option,
    wrong_lines,
    wrong_options,
)

NAMES = [name for name in commands() if name != "store"]  # a group


def _write(texts: dict[str, str]) -> None:
    """Write files that are not there as they should be."""
    for name, text in texts.items():
        Path(name).parent.mkdir(exist_ok=True)
        if not Path(name).exists() or Path(name).read_text("utf-8") != text:
            Path(name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Work in a folder that has the files which lines name, without a key or a page that is served."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("lines"))
        patch.setenv("RUBRIC_RUNS", "")
        patch.setattr(LocalServer, "run", lambda *_, **__: None)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.delenv(name, raising=False)
        _write(FILES)
        run("grade-many", "polite.yaml", "rows.jsonl", "-j", "offline", "--store", "kept.db")
        yield


@each_row("name", NAMES)
def test_a_printed_line_has_all_that_was_typed(name: str) -> None:
    """One mistake or two, beside an option that fits: each line has every word, in its order, and a parser takes it."""
    random = Random(name)
    lines, options = [*wrong_lines(name)], [*wrong_options(name)]
    by_kind = dict[str, list[list[str]]]()
    for kind, line in lines:
        by_kind.setdefault(kind, []).append(line)
    typed = [line for found in by_kind.values() for line in random.sample(found, min(len(found), 2))]
    typed += [[*line, *right_option(name, random)] for line in random.sample(typed, 6)]
    typed += [[*line, *random.choice(options)[1]] for line in random.sample(typed, 8)]
    there = {*Path().iterdir()}
    for words in typed:
        done = run(*words)
        _write(FILES)  # some are written over
        for made in {*Path().iterdir()} - there:  # by a line that was right
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        if done.exit_code == 2:
            said = " ".join(done.stderr.split())
            assert lost_in(said, words) == [], shlex.join(words)
            assert moved_in(said, words) == [], shlex.join(words)


@each_row(
    ("typed", "line"),
    [
        ("grade polite.yaml reply.txt --model offline", "rubric grade polite.yaml reply.txt --judge offline"),
        ("grade polite.yaml reply.txt --model=offline", "rubric grade polite.yaml reply.txt --judge offline"),
        ("eval suite.yaml --provider offline -o a.json", "rubric grade suite.yaml --judge offline --out a.json"),
        (
            "grade suite.yaml -j offline --tags a --deselect b --out x.xml",
            "rubric grade suite.yaml -j offline --filter a --exclude b --out x.xml",
        ),
        ("plan suite.yaml -j offline --skip-tag=slow", "rubric plan suite.yaml -j offline --exclude slow"),
        (
            "grade polite.yaml reply.txt --provider openai --model gpt-5",
            "rubric grade polite.yaml reply.txt -j openai/gpt-5",
        ),
        ("grade suite.yaml -j offline --lf --json", "rubric grade suite.yaml -j offline --rerun failed --format json"),
        ("eval suite.yaml -j offline --filter-failing a.json", "rubric grade suite.yaml -j offline --rerun failed"),
        ("merge all.jsonl results.jsonl before.jsonl", "rubric merge results.jsonl before.jsonl --out all.jsonl"),
        ("merge results.jsonl before.jsonl result.jsonl", "rubric merge results.jsonl before.jsonl --out result.jsonl"),
        (
            "merge results.jsonl before.jsonl pairs.jsonl -o m.jsonl",
            "rubric merge results.jsonl before.jsonl --out m.jsonl",
        ),
        ("align polite.yaml results.jsonl labels.csv --dry-run", "rubric align polite.yaml results.jsonl labels.csv"),
        ("check polite.yaml -j offline -k kind", "rubric check polite.yaml -j offline"),
        ("check polite.yaml -j offline --n 3", "rubric check polite.yaml -j offline --repeats 3"),
        (
            "grade suite.yaml --baseline a.json --tolerance 0.1",
            "rubric grade suite.yaml --baseline a.json --largest-drop 0.1",
        ),
        ("grade suite.yaml -j offline --target openai/gpt-5", "rubric grade suite.yaml -j offline"),
        (
            "grade suite.yaml -j offline --store kept.db --offline-replay",
            "rubric grade suite.yaml -j offline --store kept.db --replay",
        ),
    ],
)
def test_all_mistakes_are_answered_with_one_line(typed: str, line: str) -> None:
    """The line has what was meant in the place of what was typed, and the command takes it."""
    said = run(*typed.split()).stderr
    assert lines_of(said) == [line]
    assert problem_in(line.split()) == ""


NAMED = "--judge offline --column output=answer --column input=question"


@each_row(
    ("typed", "line"),
    [
        ("grade-many polite.yaml rows.jsonl -j offline -j 4", "grade-many polite.yaml rows.jsonl -j offline --concurrency 4"),
        ("grade-many polite.yaml rows.jsonl reply.txt -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --csv grades.csv", "grade-many polite.yaml rows.jsonl -j offline --report grades.csv"),
        ("grade-many polite.yaml rows.jsonl -j offline --csv written.csv", "grade-many polite.yaml rows.jsonl -j offline --report written.csv"),
        ("grade-many polite.yaml -j offline --csv replies.csv", "grade-many polite.yaml -j offline replies.csv --column output=answer --column input=question"),
        ("grade rows.jsonl --rubric polite.yaml -j offline --csv written.csv", "grade-many polite.yaml rows.jsonl -j offline --report written.csv"),
        ("grade reply.txt polite.yaml --judge offline", "grade polite.yaml reply.txt --judge offline"),
        ("grade --store a.db -j offline reply.txt polite.yaml", "grade --store a.db -j offline polite.yaml reply.txt"),
        ("grade polite.yaml 'So kind' -j offline", "echo 'So kind' | rubric grade polite.yaml - -j offline"),
        ("grade polite.yaml --text 'So kind' -j offline", "echo 'So kind' | rubric grade polite.yaml - -j offline"),
        ("grade polite.yaml repyl.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade --rubric polite.yaml --response reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade suite.yaml -j offline --output new.json", "grade suite.yaml -j offline --out new.json"),
        ("grade polite.yaml reply.txt -j offline --dry-run", "plan polite.yaml reply.txt -j offline"),
        ("grade suite.yaml -j offline --dry-run --verbose", "plan suite.yaml -j offline"),
        ("--judge offline grade polite.yaml reply.txt", "grade --judge offline polite.yaml reply.txt"),
        ("grade polite.yaml replies.csv --judge offline", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade polite.yaml rows.jsonl -j offline --max-cost 1", "grade-many polite.yaml rows.jsonl -j offline --max-cost 1"),
        ("grade-many replies.csv polite.yaml --judge offline", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --column answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --text-column answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml rows.jsonl -j offline --id-column key", "grade-many polite.yaml rows.jsonl -j offline --column key=key"),
        ("agree results.jsonl people.csv", "agree results.jsonl people.csv --column key=id --column value=verdict"),
        ("agree people.csv results.jsonl --id-column id --label-column verdict", "agree results.jsonl people.csv --column key=id --column value=verdict"),
        ("agree labels.csv results.jsonl --all", "agree results.jsonl labels.csv --all"),
        *((f"agree results.jsonl labels.csv {word} --json", "agree results.jsonl labels.csv --disagreements --format json")
          for word in ("--errors", "--mistakes", "--show-errors", "--diff")),
        ("agree results.jsonl --labels labels.csv --metric kappa", "agree results.jsonl labels.csv"),
        ("convert suite.yaml --to new.json", "convert suite.yaml --out new.json"),
        ("export suite.yaml --format json", "convert suite.yaml --out converted.json"),
        ("compare --control results.jsonl --candidate results.jsonl", "compare --baseline results.jsonl results.jsonl"),
        ("compare results.jsonl results.jsonl --alpha 0.05", "compare results.jsonl results.jsonl"),
        ("diff results.jsonl results.jsonl", "compare results.jsonl results.jsonl"),
        ("grade polite.yaml reply.txt other.txt -j offline", "grade-many polite.yaml reply.txt other.txt -j offline --min-pass-rate 1"),
        ("grade polite.yaml 're*.txt' -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml '*[yr].txt' -j offline", "grade-many polite.yaml other.txt reply.txt -j offline --min-pass-rate 1"),
        ("grade polite.yaml rows.jsonl -j offline --id-column key", "grade-many polite.yaml rows.jsonl -j offline --column key=key"),
        ("grade polite.yaml replies.csv --judge offline --column answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade polite.yaml rows.jsonl -j offline --html page.html", "grade-many polite.yaml rows.jsonl -j offline --report page.html"),
        ("grade polite.yaml rows.jsonl -j offline --rpm 500 -o new.jsonl", "grade-many polite.yaml rows.jsonl -j offline --rpm 500 --out new.jsonl"),
        ("evaluate rows.jsonl --rubric polite.yaml -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("grade suite.yaml -j offline --junitxml=new.xml", "grade suite.yaml -j offline --out new.xml"),
        ("grade suite.yaml -j offline --tags a", "grade suite.yaml -j offline --filter a"),
        ("grade polite.yaml reply.txt --judge mock", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml reply.txt -j offline --question 'Where is it?'", "echo 'Where is it?' | rubric grade polite.yaml reply.txt -j offline --input -"),
        ("grade polite.yaml reply.txt -j offline --transcript", "grade polite.yaml reply.txt -j offline"),
        ("compare before.jsonl results.jsonl", "compare results.jsonl before.jsonl"),
        ("compare before.jsonl results.jsonl --fail-on-regression", "compare results.jsonl before.jsonl"),
        ("trust results.jsonl --human-labels labels.csv", "agree results.jsonl labels.csv"),
        ("annotate polite.yaml rows.jsonl --out ann.csv", "label rows.jsonl polite.yaml --out ann.csv"),
        ("init --template agent --out fresher", "init --preset agent fresher"),
        ("init freshest.yaml", "init freshest"),
        ("validate --file polite.yaml", "validate polite.yaml"),
        ("init --name fresh", "init fresh"),
        ("kappa results.jsonl labels.csv", "agree results.jsonl labels.csv"),
        ("grade polite.yml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite reply -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yml reply.txt offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml reply.txt offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml --input reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade --rubric polite.yaml --input reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml reply.txt -j offline --repeat 3", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml reply.txt -j offline --out new.json", "grade polite.yaml reply.txt -j offline --format json > new.json"),
        ("grade polite.yaml reply.txt -j offline -o json", "grade polite.yaml reply.txt -j offline --format json"),
        ("grade suite.yaml -j offline --format junit", "grade suite.yaml -j offline --reporter junit"),
        ("grade suite.yaml reply.txt -j offline", "grade suite.yaml -j offline"),
        ("grade suite.yaml -j offline --id a", "grade suite.yaml -j offline --filter a"),
        ("grade-many suite.yaml -j offline", "grade suite.yaml -j offline"),
        ("grade-many polite.yaml suite.yaml -j offline", "grade suite.yaml -j offline"),
        ("grade-many polite.yaml 're*.txt' -j offline", "grade-many polite.yaml reply.txt -j offline"),
        ("grade-many polite.yaml rows.json -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --max-cost '$1,000'", "grade-many polite.yaml rows.jsonl -j offline --max-cost 1000"),
        ("grade-many polite.yaml rows.jsonl -j offline --format html", "grade-many polite.yaml rows.jsonl -j offline --report page.html"),
        ("batch polite.yaml rows.jsonl -j offline -o table.csv", "grade-many polite.yaml rows.jsonl -j offline --report table.csv"),
        ("grade polite.yaml rows.jsonl -j offline -o new.html", "grade-many polite.yaml rows.jsonl -j offline --report new.html"),
        ("grade-many polite.yaml replies.csv --judge offline --column output:answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --column text=answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --columns output=answer,input=question", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --input answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv --judge offline --output answer", f"grade-many polite.yaml replies.csv {NAMED}"),
        ("grade-many polite.yaml replies.csv -j offline --column output=question", "grade-many polite.yaml replies.csv -j offline --column output=question --column reference=answer"),
        ("prefer sides.csv polite.yaml -j offline", "prefer sides.csv polite.yaml -j offline --column a=old --column b=new"),
        ("grade polite.yaml reply.txt --judges offline,offline", "grade polite.yaml reply.txt -j offline -j offline"),
        ("prefer sides.csv polite.yaml -j offline --a old --b new", "prefer sides.csv polite.yaml -j offline --column a=old --column b=new"),
        ("diff --old polite.yaml --new other.yaml", "diff polite.yaml other.yaml"),
        ("diff --old other.yaml --new polite.yaml", "diff other.yaml polite.yaml"),
        ("diff --new polite.yaml --old other.yaml", "diff other.yaml polite.yaml"),
        ("test run suite.yaml --judge offline", "grade suite.yaml --judge offline"),
        ("estimate suite.yaml --judge offline", "plan suite.yaml --judge offline"),
        ("compare before.jsonl..results.jsonl", "compare results.jsonl before.jsonl"),
        ("export polite.yaml --to-json mine2.json", "convert polite.yaml --out mine2.json"),
        ("convert polite.yaml -o json", "convert polite.yaml --out converted.json"),
        ("generate --input 'How kind?' -m openai/gpt-5 --plan", "generate --task 'How kind?' --judge openai/gpt-5 --plan"),
        ("explain --rubric polite.yaml --as-json", "explain polite.yaml --format json"),
        ("convert suite.yaml -o promptfoo", "convert suite.yaml --to promptfoo"),
        ("generate --goal 'Is kind' -m openai/gpt-5 --plan", "generate --outcome 'Is kind' --judge openai/gpt-5 --plan"),
        ("grade --rubric polite.yaml --file reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade --file suite.yaml -j offline", "grade suite.yaml -j offline"),
        ("view results.jsonl -p 8899", "view results.jsonl --port 8899 --rubric polite.yaml"),
        ("init --output mine_of_us.yaml", "init mine_of_us"),
        ("agreement results.jsonl people.csv --column verdict --column key=id", "agree results.jsonl people.csv --column value=verdict --column key=id"),
        ("lint polite.yaml --fix", "lint polite.yaml"),
        ("explain polite.yaml --id a", "explain polite.yaml"),
        ("check polite.yaml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("agree polite.yaml results.jsonl labels.csv", "agree results.jsonl labels.csv --rubric polite.yaml"),
        *((f"label rows.jsonl polite.yaml --html p.html {word} 30 --seed 1", "label rows.jsonl polite.yaml --html p.html --count 30")
          for word in ("--sample", "--random-sample", "--limit", "-n", "--head")),
        ("agree results.jsonl labels.csv -c polite.yaml", "agree results.jsonl labels.csv --rubric polite.yaml"),
        ("label rows.jsonl polite.yaml mine.csv", "label rows.jsonl polite.yaml --out mine.csv"),
        ("convert suite.yaml mine.yaml", "convert suite.yaml --out mine.yaml"),
        ("export promptfoo suite.yaml", "convert suite.yaml --to promptfoo"),
        ("convert polite.yaml --to mine.json", "convert polite.yaml --out mine.json"),
        ("compare polite.yaml other.yaml", "diff polite.yaml other.yaml"),
        ("diff polite.yaml --with other.yaml", "diff polite.yaml other.yaml"),
        ("influences polite.yaml --top 1", "explain polite.yaml"),
        ("show polite.yaml", "plan polite.yaml --judge offline"),
        ("view polite.yaml", "plan polite.yaml --judge offline"),
        ("show suite.yaml", "plan suite.yaml --judge offline"),
        ("agreement results.jsonl people.csv", "agree results.jsonl people.csv --column key=id --column value=verdict"),
        ("grade suite.yaml -j offline --reporter junit=new.xml --reporter github", "grade suite.yaml -j offline --reporter github --out new.xml"),
        ("grade suite.yaml -j offline --reporter junit=newer.xml", "grade suite.yaml -j offline --out newer.xml"),
        ("grade suite.yaml -j offline --reporter html --reporter github", "grade suite.yaml -j offline --reporter github --out report.html"),
        ("report results.jsonl --html p.html", "view results.jsonl --out p.html --rubric polite.yaml"),
        ("lint polite.yaml --max-warnings 0", "lint polite.yaml"),
        ("grade suite.yaml -j offline --format markdown", "grade suite.yaml -j offline --reporter md"),
        ("grade suite.yaml -j offline --filter 'a or *'", "grade suite.yaml -j offline --filter a --filter '*'"),
        ("grade suite.yaml -j offline -m a", "grade suite.yaml -j offline --filter a"),
        ("grade suite.yaml -j offline --testNamePattern a", "grade suite.yaml -j offline --filter a"),
        ("grade suite.yaml -j offline --filter-metadata a", "grade suite.yaml -j offline --filter a"),
        ("grade suite.yaml -j offline --exit-zero", "grade suite.yaml -j offline --min-pass-rate 0"),
        ("grade suite.yaml -j offline --no-fail-fast", "grade suite.yaml -j offline"),
        ("grade suite.yaml -j offline --ci --bail 1", "grade suite.yaml -j offline --fail-fast --concurrency 1"),
        ("grade suite.yaml -j offline --list-tests", "plan suite.yaml -j offline"),
        ("grade suite.yaml -j offline --report-log log.jsonl", "grade suite.yaml -j offline --out log.jsonl"),
        ("metrics diff before.jsonl results.jsonl", "compare results.jsonl before.jsonl"),
        ("metrics show polite.yaml", "plan polite.yaml --judge offline"),
        ("generate 'Thanks' --num 5 --judge openai/gpt-5 --plan", "generate --judge openai/gpt-5 --plan --outcome Thanks"),
        ("init --preset rag fresh2", "init --preset groundedness fresh2"),
        ("grade polite.yaml reply.txt --model offline --zebra", "grade polite.yaml reply.txt --judge offline"),
        ("prefer pairs.jsonl polite.yaml -j offline --zebra 3", "prefer pairs.jsonl polite.yaml -j offline"),
        ("agree results.jsonl labels.csv --store gone.db", "agree results.jsonl labels.csv"),
        ("explain results.jsonl --zid a2", "view results.jsonl --rubric polite.yaml"),
        ("view results.jsonl", "view results.jsonl --rubric polite.yaml"),
        ("cache ls kept.db", "store export kept.db"),
        ("store list kept.db", "store export kept.db"),
        ("json-schema --type suite", "schema suite"),
        ("validate suite.yaml --format native", "validate suite.yaml --from native"),
        ("grade suite.yaml -j offline --format junit --outputFile j.xml", "grade suite.yaml -j offline --out j.xml"),
        ("ui --backend-store-uri kept.db", "view kept.db"),
        ("plan polite.yaml --data reply.txt -j offline", "plan polite.yaml reply.txt -j offline"),
        ("grade suite.yaml -j offline --count 3", "grade suite.yaml -j offline --repeat 3"),
        ("plot polite.yaml", "explain polite.yaml"),
        ("grade polite.yaml --stdin -j offline", "grade polite.yaml - -j offline"),
        ("grade polite.yaml reply.txt -j offline -o yaml", "grade polite.yaml reply.txt -j offline --format json"),
        ("grade polite.yaml reply.txt --judge offline offline", "grade polite.yaml reply.txt --judge offline -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --out r.xlsx", "grade-many polite.yaml rows.jsonl -j offline --report r.csv"),
        ("lint polite.yaml -f json", "lint polite.yaml --format json"),
        ("grade suite.yaml -j offline -r 2", "grade suite.yaml -j offline --repeat 2"),
        ("grade polite.yaml rows.jsonl -j offline -o json", "grade-many polite.yaml rows.jsonl -j offline --format json"),
        (
            "grade-many polite.yaml rows.jsonl -j offline -j offline --vote majority",
            "grade-many polite.yaml rows.jsonl -j offline -j offline",
        ),
        ("plan polite.yaml --answers rows.jsonl -j offline", "plan polite.yaml rows.jsonl -j offline"),
        ("plan polite.yaml --input rows.jsonl -j offline", "plan polite.yaml rows.jsonl -j offline"),
        ("grade polite.yaml --input rows.jsonl -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("schema suite.schema.json", "schema suite > suite.schema.json"),
        ("schemas suite", "schema suite"),
        ("cache stats kept.db", "store stats kept.db"),
        ("cache export kept.db", "store export kept.db"),
        ("grade polite.yaml reply.txt -j offline --format openai", "grade polite.yaml reply.txt -j offline"),
        ("view results.jsonl --rubric polite.yaml --html p.html", "view results.jsonl --rubric polite.yaml --out p.html"),
        ("store kept.db --stats", "store stats kept.db"),
        ("grade polite.yaml reply.txt -j offline --junitxml=a.xml", "grade-many polite.yaml reply.txt -j offline --report a.xml"),
        ("grade polite.yaml reply.txt -j offline --json score,verdict", "grade polite.yaml reply.txt -j offline --format json"),
        ("grade-many polite.yaml rows.jsonl -j offline --to_json b.jsonl", "grade-many polite.yaml rows.jsonl -j offline --out b.jsonl"),
        ("grade suite.yaml -j offline --no-cache", "grade suite.yaml -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --store kept.db --cache-only", "grade-many polite.yaml rows.jsonl -j offline --store kept.db --replay"),
        ("grade-many polite.yaml rows.jsonl -j offline --cache kept.db --no-network", "grade-many polite.yaml rows.jsonl -j offline --store kept.db --replay"),
        ("grade suite.yaml -j offline --compare before.jsonl", "grade suite.yaml -j offline"),
        ("grade suite.yaml::a -j offline", "grade suite.yaml --filter a -j offline"),
        ("grade polite.yaml replies.csv:answer -j offline", "grade-many polite.yaml replies.csv --column output=answer --column input=question -j offline"),
        ("grade-many polite.yaml replies.csv -j offline --columns answer:output question=input", "grade-many polite.yaml replies.csv -j offline --column output=answer --column input=question"),
        ("grade-many polite.yaml rows.jsonl -j offline --budget 5usd --rpm 60/min", "grade-many polite.yaml rows.jsonl -j offline --max-cost 5 --rpm 60"),
        ("grade-many polite.yaml rows.jsonl -j offline --max-cost 1,000usd", "grade-many polite.yaml rows.jsonl -j offline --max-cost 1000"),
        ("grade suite.yaml -j offline --fail-under 80", "grade suite.yaml -j offline --min-pass-rate 0.8"),
        ("grade -r polite.yaml -f reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade polite.yaml reply.txt -j offline --retrieval-context other.txt", "grade polite.yaml reply.txt -j offline --context other.txt"),
        ("grade-many polite.yaml rows.jsonl -j offline --nrows 1", "grade-many polite.yaml rows.jsonl -j offline --limit 1"),
        ("grade-many polite.yaml rows.jsonl -j offline --dryrun", "plan polite.yaml rows.jsonl -j offline"),
        ("estimate polite.yaml rows.jsonl --model offline", "plan polite.yaml rows.jsonl --judge offline"),
        ("test polite.yaml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("compare results.jsonl before.jsonl --by id", "compare results.jsonl before.jsonl"),
        ("schema --kind suites", "schema suite"),
        ("convert polite.yaml --to suite", "convert polite.yaml --to native"),
        ("grade many polite.yaml rows.jsonl -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("rubric grade polite.yaml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("polite.yaml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("results.jsonl", "view results.jsonl --rubric polite.yaml"),
        ("explain polite.yaml reply.txt -j offline", "grade polite.yaml reply.txt -j offline"),
        ("grade suite.yaml -j offline --maxfail=1", "grade suite.yaml -j offline --fail-fast --concurrency 1"),
        ("grade suite.yaml a -j offline", "grade suite.yaml -j offline --filter a"),
        ("grade suite.yaml@a -j offline", "grade suite.yaml -j offline --filter a"),
        ("grade suite.yaml -j offline -t a", "grade suite.yaml -j offline --filter a"),
        ("grade polite.yaml reply.txt other.txt -j offline --json", "grade-many polite.yaml reply.txt other.txt -j offline --format json --min-pass-rate 1"),
        ("grade-many polite.yaml ids.csv -j offline --response-key answer --id-key id", "grade-many polite.yaml ids.csv -j offline --column output=answer --column input=question --column key=id"),
        ("label rows.jsonl polite.yaml --out n.csv --seed 7", "label rows.jsonl polite.yaml --out n.csv"),
        ("plan polite.yaml reply.txt --show-prompts -j offline", "plan polite.yaml reply.txt --format json -j offline"),
        ("lint polite.yaml --explain no-effect", "lint polite.yaml"),
        ("grade suite.yaml -j offline --set threshold=0.8", "grade suite.yaml -j offline --threshold 0.8"),
        ("grade rubrics reply.txt -j offline", "grade rubrics/kind.yaml reply.txt -j offline"),
        ("agree results.jsonl people.csv --column label=verdict --column id=id", "agree results.jsonl people.csv --column value=verdict --column key=id"),
        ("agree results.jsonl people.csv --column verdict=label --column id=key", "agree results.jsonl people.csv --column value=verdict --column key=id"),
        ("generate --from-examples reply.txt -m openai/gpt-5 --plan", "generate --good reply.txt --judge openai/gpt-5 --plan"),
        ("plan suite.yaml -j offline --out p.json", "plan suite.yaml -j offline --format json > p.json"),
        ("view results.jsonl --read-only", "view results.jsonl --rubric polite.yaml"),
        ("grade suite.yaml -j offline --wandb-project x", "grade suite.yaml -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --log-dir logs", "mkdir -p logs && rubric grade-many polite.yaml rows.jsonl -j offline --out logs/results.jsonl"),
        ("diff polite.yaml..other.yaml", "diff polite.yaml other.yaml"),
        ("init new5 b", "init new5"),
        ("init new4 --preset groundness", "init new4 --preset groundedness"),
        ("compare before results --by id", "compare results.jsonl before.jsonl"),
        ("compare results.jsonl before.jsonl -o diff.md", "compare results.jsonl before.jsonl --out diff.html --rubric polite.yaml"),
        ("compare results.jsonl vs before.jsonl", "compare results.jsonl before.jsonl"),
        ("prefer sides.csv polite.yaml -a old -b new -j offline", "prefer sides.csv polite.yaml --column a=old --column b=new -j offline"),
        ("probe polite.yaml rows.jsonl -j offline --plan --attack authority,padding", "probe polite.yaml rows.jsonl -j offline --plan --attack authority --attack padding"),
        ("check polite.yaml rows.jsonl -j offline", "grade-many polite.yaml rows.jsonl -j offline"),
        ("grade polite.yaml replies.csv -j offline --cost-limit 5", "grade-many polite.yaml replies.csv -j offline --max-cost 5 --column output=answer --column input=question"),
        ("grade polite.yaml rows.jsonl -j offline --format sarif", "grade-many polite.yaml rows.jsonl -j offline --report report.sarif"),
        ("grade polite.yaml reply.txt -j offline --fail-under 0.9", "grade polite.yaml reply.txt -j offline --threshold 0.9"),
        ("grade polite.yaml rows.jsonl judge=offline", "grade-many polite.yaml rows.jsonl --judge offline"),
        ("schema polite.yaml", "schema rubric"),
        ("gen polite.yaml --provider offline --dry-run", "generate polite.yaml --judge offline --plan"),
        ("probe polite.yaml rows.jsonl -j offline --cost", "probe polite.yaml rows.jsonl -j offline --plan"),
        ("grade polite.yaml reply.txt -j offline --repeat 3", "grade polite.yaml reply.txt -j offline"),
        ("gen polite.yaml --plan --llm offline", "generate polite.yaml --plan --judge offline"),
        ("annotate rows.jsonl polite.yaml", "label rows.jsonl polite.yaml --out rows-labels.csv"),
        ("show found.json", "view found.json --rubric polite.yaml"),
        ("grade polite.yaml -d 'Thank you.' -j offline", "echo 'Thank you.' | rubric grade polite.yaml - -j offline"),
        ("grade polite.yaml rows.jsonl -j offline --max-items 1", "grade-many polite.yaml rows.jsonl -j offline --limit 1"),
        ("schema suite.yaml --output s.json", "schema suite > s.json"),
        ("plan polite.yaml rows.jsonl -j offline --output p.json", "plan polite.yaml rows.jsonl -j offline --format json > p.json"),
        ("grade suite.yaml --tags a,* -j offline", "grade suite.yaml --filter a --filter '*' -j offline"),
        ("grade-many polite.yaml rows.jsonl -j offline --config polite.yaml", "grade-many polite.yaml rows.jsonl -j offline"),
        ("agree results.jsonl labels.csv --seed 1", "agree results.jsonl labels.csv"),
        ("store stats --db kept.db", "store stats kept.db"),
        ("diff polite.yaml other.yaml -o d.txt", "diff polite.yaml other.yaml > d.txt"),
        ("validate polite.yaml -o json", "validate polite.yaml --format json"),
        ("grade suite.yaml -j offline --collect-only", "plan suite.yaml -j offline"),
        ("grade polite.yaml reply.txt -j offline --config rubric.toml", "grade polite.yaml reply.txt -j offline"),
        ("label rows.jsonl polite.yaml", "label rows.jsonl polite.yaml --out rows-labels.csv"),
        ("grade suite.yaml --out pages/ -j offline", "grade suite.yaml --out pages/report.json -j offline"),
        ("grade suite.yaml -j offline --outdir pages --reporter junit", "grade suite.yaml -j offline --out pages/report.xml --reporter junit"),
        ("grade-many polite.yaml rows.jsonl -j offline --output-dir out1/", "mkdir -p out1 && rubric grade-many polite.yaml rows.jsonl -j offline --out out1/results.jsonl"),
        ("grade-many polite.yaml rows.jsonl -j offline --out out2/a.jsonl", "mkdir -p out2 && rubric grade-many polite.yaml rows.jsonl -j offline --out out2/a.jsonl"),
        ("grade-many polite.yaml rows.jsonl -j offline --store out3/", "mkdir -p out3 && rubric grade-many polite.yaml rows.jsonl -j offline --store out3/replies.db"),
        ("prefer pairs.jsonl polite.yaml -j offline --out out4/p.jsonl", "mkdir -p out4 && rubric prefer pairs.jsonl polite.yaml -j offline --out out4/p.jsonl"),
        ("grade polite.yaml reply.txt -j offline --output out5/", "mkdir -p out5 && rubric grade polite.yaml reply.txt -j offline --format json > out5/grade.json"),
        ("grade suite.yaml -j offline -x --concurrency 4", "grade suite.yaml -j offline --fail-fast --concurrency 4"),
        ("grade suite.yaml -j offline --output p2.json", "grade suite.yaml -j offline --out p2.json"),
        ("grade -r polite.yaml -i reply.txt -m offline", "grade polite.yaml reply.txt --judge offline"),
        ("grade-many polite.yaml ids.csv -j offline --field answer --id id", "grade-many polite.yaml ids.csv -j offline --column output=answer --column input=question --column key=id"),
        ("grade-many polite.yaml ids.csv -j offline --column output=answer", "grade-many polite.yaml ids.csv -j offline --column output=answer --column input=question --column key=id"),
        ("grade-many polite.yaml rows.jsonl -j offline --max-cost bash.50", "grade-many polite.yaml rows.jsonl -j offline --max-cost .50"),
        ("agree results.jsonl people.csv --human verdict --json", "agree results.jsonl people.csv --column value=verdict --column key=id --format json"),
        ("agree results.jsonl --labels people.csv --key id", "agree results.jsonl people.csv --column key=id --column value=verdict"),
        ("grade suite.yaml -j offline --watch", "grade suite.yaml -j offline"),
        ("validate --schema s.json suite.yaml", "validate suite.yaml"),
        ("convert suite.yaml --to promptfoo --out p.yaml --force", "convert suite.yaml --to promptfoo --out p.yaml"),
        ("grade suite.yaml -j offline --filter x.yaml::a", "grade suite.yaml -j offline --filter a"),
        ("grade suites -j offline", "grade suites/one.yaml suites/two.yaml -j offline"),
        ("plan suite.yaml -j offline -out=p.json", "plan suite.yaml -j offline --format json > p.json"),
    ],
)  # fmt: skip
def test_a_line_that_is_printed_does_what_was_meant(typed: str, line: str) -> None:
    """Typed as it is printed, it runs to its end, whatever kind of mistake it answers."""
    said = " ".join(run(*shlex.split(typed)).stderr.split())
    first, _, line = line.rpartition(" && rubric ")  # which a shell does before
    assert lines_of(said) == [line if line.startswith("echo") else f"rubric {line}"]
    assert f"write {first} && " in said or not first
    Path(*first.split()[2:]).mkdir(exist_ok=True)
    text, _, words = line.partition(" > ")[0].rpartition(" | rubric ")
    assert run(*shlex.split(words), stdin=text).exit_code != REFUSED


@each_row(
    ("typed", "said"),
    [
        ("grade-many polite.yaml rows.jsonl -j offline --where topic=a", "such as jq -c 'select((.topic | tostring) == \"a\")' rows.jsonl > some.jsonl"),
        ("grade polite.yaml reply.txt -j offline --exit-zero", "such as rubric grade polite.yaml reply.txt -j offline || true; see"),
        ("plan polite.yaml rows.jsonl --model offline --max-cost 0.5", "such as rubric plan polite.yaml rows.jsonl --judge offline --format json | jq -e '.cost and .cost[1] <= 0.5'; see"),
        ("grade suite.yaml -j offline --env-file .env", "such as set -a && . ./.env && set +a && rubric grade suite.yaml -j offline; see"),
        ("grade polite.yaml reply.txt -j offline --show-prompt", "such as rubric plan polite.yaml reply.txt -j offline --format json; see"),
        ("grade suite.yaml -j offline --baseline /dev/fd/63 --fail-on-regression", "/dev/fd/63 is a pipe, which ends with this line; write what it gives to a file first; then without --fail-on-regression, write a line such as rubric grade suite.yaml -j offline --baseline saved.json; see"),
        ("probe polite.yaml rows.jsonl -j offline --attacks all --limit 2", "then write a line such as rubric probe polite.yaml some.jsonl -j offline; see"),
        ("prefer reply.txt gone.txt --rubric polite.yaml -j offline", "such as rubric prefer pairs.jsonl polite.yaml -j offline; see"),
        ("grade suite.yaml -j offline -H X-Team=a", "in Python, Judge('offline', params={'extra_headers': {'X-Team': os.environ['TEAM_KEY']}}); see"),
        ("grade-many polite.yaml rows.jsonl -j offline --header 'X-Gate: open'", "params={'extra_headers': {'X-Gate': os.environ['TEAM_KEY']}}); see"),
        ("grade suite.yaml -j offline --temperature 0.2", "{model: offline, temperature: 0.2}; see"),
        ("store ls kept.db --limit 5", "such as rubric store export kept.db | head -n 5; see"),
        ("config set judge offline", "such as rubric grade suite.yaml --judge offline; or it stands in the suite, such as judge: offline; see"),
        ("grade-many polite.yaml rows.jsonl -j offline -n 8", "such as --concurrency 8; for the first rows, such as --limit 8; see"),
        ("rescore results.jsonl --rubric other.yaml", "load('polite.yaml'), 'offline').rescore(load('other.yaml'))"),
        ("grade-many polite.yaml rows.jsonl -j offline --tag smoke", "such as grep 'smoke' rows.jsonl > some.jsonl"),
        ("grade suite.yaml -j offline --shard 1/2", "and a case that none names is in no job, such as rubric grade suite.yaml -j offline --filter smoke; see"),
        ("grade suite.yaml -j offline -m 'not slow'", "if not 'slow' in name]).run('offline')"),
        ("grade suite.yaml -j offline --exclude 'a and not b'", "if not ( 'a' in name and not 'b' in name )]).run('offline')"),
        ("convert suite.yaml --to deepeval", "what is written is native, or promptfoo, such as --to promptfoo; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --worst 2", "such as jq -s -c 'sort_by(.score) | .[:2] | .[]' results.jsonl; see"),
        ("label rows.jsonl polite.yaml --ignore-topics x", "such as grep -vw 'x' rows.jsonl > some.jsonl"),
        ("probe polite.yaml rows.jsonl -j offline --shard-of 4", "no such option --shard-of; see rubric probe --help"),
        ("grade suite.yaml -j offline --allow-failures 2", "such as rubric grade suite.yaml -j offline --min-pass-rate 0.9; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --fail-fast", "no failure stops a run; what it may spend is bounded, such as rubric grade-many polite.yaml rows.jsonl -j offline --max-cost 5; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --delay 9", "requests are bounded, such as rubric grade-many polite.yaml rows.jsonl -j offline --rpm 60; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --out s3://b/a.jsonl", "there is no folder s3:/b; name a file in one that is there"),
        ("grade suite.yaml -j polite.py::strict", "a function is given in Python alone"),
        ("grade suite.yaml -j offline --target ./rows.jsonl", "such as --outputs replies.jsonl"),
        ("split rows.jsonl", "lines of a file are the shell's, such as head -n 20 rows.jsonl > some.jsonl"),
        ("filter results.jsonl --failed", "such as jq -c 'select(.passed == false)' results.jsonl > failed.jsonl"),
        ("cache prune --store kept.db --older-than 30d", "the whole file is deleted, and what it holds is paid for again, such as rm replies.db"),
        ("grade suite.yaml -j offline --filter 'smoke and not slow'", "the cases are a; a pattern is a part of an id, or a tag; an expression is one of Python, such as python -c"),
        ("grade-many polite.yaml '*[yr].txt' -j offline --out new.jsonl --resume", "did you mean 'other.txt', 'reply.txt'? no such option --resume; a run goes on where its store ends, such as rubric grade-many polite.yaml other.txt reply.txt -j offline --out new.jsonl --store replies.db; see"),
        ("grade suite.yaml -j offline --maxfail=2", "such as rubric grade suite.yaml -j offline --fail-fast; see"),
        ("grade-many polite.yaml - -j offline", "-: no pipe is read here; a file is, behind the pipe, such as cat > piped.jsonl && rubric grade-many polite.yaml piped.jsonl -j offline; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --retries 2", "grade_many('rows.jsonl', load('polite.yaml'), Judge('offline', retries=2))"),
        ("grade suite.yaml -j openai/a -j openai/b --target judges.py:strict --epochs 3 --fail-fast -v", "run(['openai/a', 'openai/b'], target=strict, runs=3, fail_fast=True); print(r); raise SystemExit(r.exit_code)\"; here it is a model, such as openai/gpt-5.6; it is without -v; see"),
        ("grade suite.yaml -j judges.py:strict --filter a --out x.xml", "load_suite('suite.yaml').filter('a').run(strict); print(r); r.write('x.xml'); raise"),
        ("grade-many polite.yaml rows.jsonl -j judges.py:strict --out s.jsonl", "grade_many('rows.jsonl', load('polite.yaml'), strict).collect(); print(r); r.to_jsonl('s.jsonl')\""),
        ("probe polite.yaml rows.jsonl -j judges.py:strict", "a function is given in Python alone, as the judge of a call; here"),
        ("diff polite.yaml --staged", "such as git show HEAD:polite.yaml > old.yaml && rubric diff old.yaml polite.yaml; see"),
        ("prefer reply.txt other.txt -j offline", "such as jq -nc --rawfile a reply.txt --rawfile b other.txt '{a: $a, b: $b}' > pair.jsonl && rubric prefer pair.jsonl rubric.yaml -j offline"),
        ("grade suite.yaml -j offline --max-tests 1", "cases=[c for c in s][:1]).run('offline'); print(r)"),
        ("grade-many polite.yaml rows.jsonl -j offline --workers 4 --retry 3", "Judge('offline', retries=3), concurrency=4).collect(); print(r)\""),
        ("lint polite.yaml --list-rules", "such as rubric lint polite.yaml --hints; see"),
        ("prefer before.jsonl results.jsonl -j offline", "two runs are compared, such as rubric compare results.jsonl before.jsonl; see"),
        ("prefer before.jsonl results.jsonl polite.yaml -j offline", "two runs are compared, such as rubric compare results.jsonl before.jsonl; see"),
        ("generate --prompt 'Be brief'", "--task 'Be brief'; for what a good answer does, such as rubric generate --outcome 'Be brief'"),
        ("grade suite.yaml -j offline --maxfail 3", "such as rubric grade suite.yaml -j offline --fail-fast; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --num-shards 4 --shard-index 2", "a shard is one of all, counted from 1, such as --shard 2/4; see"),
        ("grade suite.yaml -j offline --save-baseline base.json", "such as rubric grade suite.yaml -j offline --out base.json; see"),
        ("grade suite.yaml -j offline -M top_p=0.8", "in Python, Judge('offline', params={'top_p': 0.8}); see"),
        ("grade suite.yaml -j offline --target exec:./bot.sh", "with its id and its output, and give these in its place: --outputs replies.jsonl; see"),
        ("grade suite.yaml -j offline --reasoning-effort high", "in Python, Judge('offline', params={'reasoning_effort': 'high'}); see"),
        ("grade suite.yaml -j offline -s", "for totals alone, such as --quiet; for the reason of every verdict, such as --verbose; see"),
        ("grade suite.yaml -j offline --var tone=warm", "such as variables: {tone: warm}; see"),
        ("label rows.jsonl polite.yaml --annotator bob", "such as rubric label rows.jsonl polite.yaml --out bob.csv; see"),
        ("runs rm --all", "no such command 'runs rm'; no reply leaves a store by itself"),
        ("diff suite.yaml suite.yaml --format markdown", "did you mean 'md'?"),
        ("mcp", "an MCP server of a dozen lines of yours: see docs/how-to/as_a_tool.md"),
        ("serve", "for results in a browser, such as rubric view; an MCP server is a dozen lines of yours"),
        ("store ls", "such as rubric store export kept.db?"),
        ("view --latest", 'such as rubric view "$(ls -d .rubric/runs/*/ | tail -n 1)"; see'),
        ("apply plan.json", "which has the words of its plan, such as rubric grade suite.yaml"),
        ("lint polite.yaml --select E,W", "rules have names and no codes"),
        ("check polite.yaml -j offline --dry-run", "what may be spent is bounded, such as rubric check polite.yaml -j offline --max-cost 1; see"),
        ("grade rubrics -j offline", "a rubric is named, of rubrics/kind.yaml, such as rubric grade rubrics/kind.yaml answer.txt -j offline; see"),
        ("merge results.jsonl before.jsonl --out all.jsonl", "the key 'a' is in results.jsonl too"),
        ("agree kept.db labels.csv", "kept.db is a store of replies; to grade by them again asks nothing, such as grade-many"),
        ("agree rows.jsonl labels.csv", "rows.jsonl holds no results; rows are graded first, such as rubric grade-many rubric"),
        ("grade suite.yaml -j offline --save-baseline", "a baseline is a report, such as rubric grade suite.yaml -j offline --out main.json; see"),
        ("validate --strict", "such as rubric validate rubric.yaml; see"),
        ("estimate labels.csv", "such as rubric estimate results.jsonl labels.csv"),
        ("convert results.jsonl", "a table is made of them in Python"),
        ("export results.jsonl --format csv", "such as rubric view results.jsonl --rubric polite.yaml --out results.csv"),
        ("format --check polite.yaml", "compared with the file, such as rubric convert polite.yaml | diff polite.yaml -"),
        ("convert . --to promptfoo", "each file is converted by itself, such as rubric convert "),
        ("grade suite.yaml -j offline --timeout 30s --retries 2", "no such option --timeout, --retries; it belongs to the judge; in Python, Judge('offline', timeout=30, retries=2); in a suite, such as judge: {model: offline, timeout: 30, retries: 2}; see"),
        ("grade polite.yaml reply.txt -j offline --jq .passed", "such as rubric grade polite.yaml reply.txt -j offline --format json | jq .passed; see"),
        ("grade suite.yaml -j offline --rpm 60", "bounded by those in flight, such as rubric grade suite.yaml -j offline --concurrency 1; see"),
        ("grade-many polite.yaml - -j offline --input-format jsonl --no-progress", "without --input-format jsonl --no-progress, write a line such as cat > piped.jsonl && rubric grade-many polite.yaml piped.jsonl -j offline; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --sample 1 --seed 42", "such as shuf -n 1 --random-source=<(yes 42) rows.jsonl > some.jsonl; then write a line such as rubric grade-many polite.yaml some.jsonl -j offline; see"),
        ("grade-many polite.yaml replies.csv -j offline --sample 1", "such as shuf -n 1 replies.csv > some.csv; a CSV has a row of names more; then write a line such as rubric grade-many polite.yaml some.csv -j offline"),
        ("check polite.yaml -j offline --out junit.xml", "or JSON for programs, such as rubric check polite.yaml -j offline --format json; see"),
        ("lint polite.yaml --ignore no-effect --max-warnings 0", "no such option --max-warnings; a warning fails always; see"),
        ("doctor --judge openai/gpt-5.6", "and the command plan the judge that would be asked; see"),
        ("lint reply.txt", "reply.txt is a text, where a rubric is expected, such as rubric lint"),
        ("grade reply.txt -j offline", "where a rubric is expected, such as rubric grade rubric.yaml reply.txt"),
        ("probe polite.yaml reply.txt -j offline", "candidates are a folder, or rows of a file, such as rubric probe polite.yaml"),
        ("grade polite.yaml answers/gone.txt -j offline", "answers/gone.txt: there is no such file; see"),
        ("agree results.jsonl openai/labels.csv", "openai/labels.csv: there is no such file; see"),
        ("estimate broken.jsonl labels.csv", "broken.jsonl:1: no JSON"),
        ("thresholds polite.yaml results.jsonl labels.csv --for f1", "is not one of 'agreement', 'balanced', 'cost', 'TPR'"),
        ("probe polite.yaml rows.jsonl -j offline --n 3", "is told by tests, such as rubric check polite.yaml --repeats"),
        ("diff HEAD polite.yaml --json", "HEAD is a revision; it is a file first, such as git show HEAD:polite.yaml > old.yaml && rubric diff old.yaml polite.yaml --format json; see"),
        ("diff HEAD~1 HEAD -- polite.yaml", "such as git show 'HEAD~1:polite.yaml' > old.yaml && git show HEAD:polite.yaml > new.yaml && rubric diff old.yaml new.yaml; see"),
        ("compare HEAD results.jsonl", "such as git show HEAD:results.jsonl > old.jsonl && rubric compare results.jsonl old.jsonl; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --batch-size 9", "for requests in flight, such as --concurrency 9; for criteria in one request, such as --per-call 9; see"),
        ("grade-many polite.yaml rows.jsonl replies.csv -j openai/gpt-5 --half-price", "r = grade_in_batches([*map(Path, ['rows.jsonl', 'replies.csv'])], load('polite.yaml'), 'openai/gpt-5', 'batches.json'); print(r)\"; for requests in flight, such as --concurrency 4; for criteria in one request, such as --per-call 4; see"),
        ("compare rows.jsonl rows.jsonl", "rows.jsonl holds no results; rows are graded first"),
        ("prefer gone.txt lost.txt --rubric polite.yaml -j offline", "lines that have a and b each, such as rubric prefer pairs.jsonl polite.yaml -j offline; see"),
        ("view results.jsonl --rubric polite.yaml --format html", "such as rubric view results.jsonl --rubric polite.yaml --out table.html; see"),
        ("grade suite.yaml -j offline --seed 3 --threshold 80", "seed: 3}; Invalid value for '--threshold' / '-t': expected a share from 0 to 1, found 80; for 80 % write 0.8; see"),
        ("lint polite.yaml --ignore a --output-format github", "annotations are made of JSON"),
        ("init --force", "suite.yaml exist already; name another folder; without --force, write a line such as rubric init rubrics; see"),
        ("store clear", "paid for again, such as rm replies.db; kept runs are folders below .rubric/runs"),
        ("align polite.yaml results.jsonl labels.csv --out a.yaml", "copy it first, such as cp polite.yaml aligned.yaml"),
        ("schema --suite", "such as rubric schema suite"),
        ("agreement polite.yaml labels.csv -j offline", "its results come first, such as rubric grade-many polite.yaml"),
        ("estimate polite.yaml labels.csv", "and then rubric estimate results.jsonl labels.csv"),
        ("grade-many polite.yaml results.jsonl -j offline", "these rows are results of an earlier run"),
        ("export results.jsonl --html page.html", "such as rubric view results.jsonl --rubric polite.yaml --out page.html"),
        ("cache clear kept.db", "did you mean 'store'? no such command 'clear'; no reply leaves a store by itself"),
        ("probe reply.txt polite.yaml -j offline", "such as rubric probe polite.yaml answers.jsonl -j offline; see"),
        ("agreement keyless.jsonl people.csv --all", "the candidates have no keys, and labels are by key ('a', ...); grade with them, such as rubric grade-many polite.yaml answers.jsonl --column key=id"),
        ("prefer pairs.jsonl --zebra x --model offline", "Without --zebra x, write a line such as rubric prefer pairs.jsonl"),
        ("compare --a before.jsonl --b results.jsonl", "such as rubric compare new.jsonl old.jsonl"),
        ("grade polite.yaml reply.txt -j offline --n-samples 3", "such as judge: {jury: {judge: offline, size: 3}}"),
        ("grade -c 'Says thank you' reply.txt -j offline", """such as echo 'criteria: ["Says thank you"]' > rubric.yaml"""),
        ("grade polite.yaml reply.txt -j", "'-j' requires an argument, such as -j openai/gpt-5; see"),
        ("grade polite.yaml@HEAD reply.txt -j offline", "such as git show HEAD:polite.yaml > old.yaml; see"),
        ("grade gone.yaml reply.txt -j offline", "gone.yaml: there is no such file; there are other.yaml, polite.yaml; see"),
        ("grade 'my rubric.yaml' reply.txt", "my rubric.yaml: there is no such file; there are other.yaml, polite.yaml; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --max-cost 0,5", "'0,5' is not a valid float range; see"),
        ("grade-many polite.yaml rows.jsonl -j offline --max-cost 0,500", "'0,500' is not a valid float range; see"),
        ("grade help", "help is an option; see rubric grade --help"),
        ("show reply.txt", "reply.txt is a text; view shows results, such as rubric view results.jsonl"),
        ("check polite.yaml", "what is wrong without any is told by another command, such as rubric lint polite.yaml"),
        ("grade polite.yaml reply.txt -j judges.py:strict", "judges.py:strict: a function is given in Python alone, such as python -c"),
        ("lint polite.yaml --format github", "annotations are made of JSON, such as rubric lint polite.yaml --format json | jq"),
        ("grade suite.yaml -j offline --snapshot-update", "a baseline is a report, such as rubric grade suite.yaml -j offline --out main.json"),
        ("grade -j offline", "Missing argument 'FILE...', such as rubric grade rubric.yaml answer.txt -j offline"),
        ("grade-many rows.jsonl -j offline", "such as rubric grade-many rubric.yaml rows.jsonl -j offline"),
        ("threshold results.jsonl labels.csv", "such as rubric thresholds polite.yaml results.jsonl labels.csv"),
        ("combine results.jsonl", "did you mean 'merge'? Missing option '--out', such as rubric merge results.jsonl --out all.jsonl"),
        ("grade suite.yaml --rerun", "'--rerun' requires an argument, such as --rerun ungraded; see rubric grade --help"),
        ("generate polite.yaml --outcome thanks", "no draft replaces; name another, such as --out draft.yaml"),
    ],
)  # fmt: skip
def test_an_example_is_printed_where_a_name_is_missing(typed: str, said: str) -> None:
    """It says what is lacking, or which file is of another kind, with a form of the line that was meant."""
    done = run(*shlex.split(typed))
    assert done.exit_code == REFUSED
    assert said in " ".join(done.stderr.split())
    assert not lines_of(" ".join(done.stderr.split()))


@each_row(
    ("typed", "said"),
    [
        (
            "grade polite.yaml reply.txt --model offline --repeat x",
            "did you mean '--judge'? Invalid value for '--repeat': 'x' is",
        ),
        ("grade polite.yaml reply.txt --judge-model offline --help", "did you mean '--judge'?; see"),
        ("merge resultz.jsonl gone.jsonl", "did you mean 'results.jsonl'? gone.jsonl: there is no such file; see"),
        ("merge results.jsonl gone.jsonl --out all.jsonl", "gone.jsonl: there is no such file; see"),
        (
            "grade polite.yaml reply.txt --reference 'So kind' --input 'How kind'",
            "such as echo 'How kind' > input.txt; see",
        ),
        ("eval", "did you mean 'grade', such as rubric grade rubric.yaml answer.txt?; see"),
    ],
)
def test_no_line_is_printed_where_one_would_lose_something(typed: str, said: str) -> None:
    """A value that is refused, a file that has no other like it, or a command alone: that is said, or a form shown."""
    done = run(*shlex.split(typed))
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not lines_of(done.stderr)


EXAMPLES = {
    "rubric.yaml": FILES["polite.yaml"],
    "lenient.yaml": "rubric: polite\nthreshold: 0\ncriteria:\n  - Says thank you\n",
    "judges.py": "def strict(messages):\n    return 'no'\n",
    "rows.jsonl": '{"output": "Thank you.", "key": "a", "topic": "refunds"}\n{"output": "No.", "key": "b"}\n',
    "each.jsonl": "".join(
        f'{{"id": "{key}", "prompt": "When?", "response": "{said}", "rubric": [{{"criterion": "{asked}", "points": 2}}]}}\n'
        for key, said, asked in (("a", "Thank you.", "Says thank you"), ("b", "No.", "Says when"))
    ),
    "evals/broken.yaml": "rubric: b\ncriteria: [{text: Is kind, wieght: 2}]\n",
}


@each_row(
    ("typed", "code", "shown"),
    [
        ("rescore results.jsonl --rubric lenient.yaml", 0, "2 of 2 grades pass"),
        ("export results.jsonl --format csv", 0, ""),
        ("grade polite.yaml reply.txt -j judges.py:strict", 2, "ungraded"),
        ("plan polite.yaml rows.jsonl -j openai/gpt-5 --max-cost 0.00001", 1, "false"),
        ("plan polite.yaml rows.jsonl -j offline --max-calls 9", 0, "true"),
        ("grade-many polite.yaml rows.jsonl -j offline --where topic=a", 0, ""),
        ("grade-many polite.yaml rows.jsonl -j offline --skip 20", 0, ""),
        ("grade-many polite.yaml rows.jsonl -j offline --shuffle", 0, ""),
        ("check . --format github", 2, "::error file=evals/broken.yaml,line=2::unknown key"),
        ("convert polite.yaml --check", 0, ""),
        ("export results.jsonl --to csv", 0, "wrote results.csv"),
        ("grade polite.yaml reply.txt -j offline --only b,says-thank-you", 0, "1.0"),
        ("grade-many polite.yaml rows.jsonl -j offline --sample 1 --seed 42", 0, ""),
        ("agree results.jsonl labels.csv --min-kappa 0.6", 0, "true"),
        ("grade suite.yaml -j offline -k 'a and not (slow or b)'", 0, "1 passed"),
        ("merge keyless.jsonl keyless.jsonl -o all.jsonl", 0, ""),
        ("grade suite.yaml -j offline --filter 'a and not slow'", 0, "1 passed"),
        ("grade suite.yaml -j offline --limit 1", 0, "1 passed"),
        ("lint polite.yaml --select no-effect", 0, "true"),
        ("lint polite.yaml --ignore no-effect", 0, "true"),
        ("grade-many polite.yaml - -j offline", 0, "2 results"),
        ("diff suite.yaml suite.yaml", 0, ""),
        ("explain criteria.polarity", 0, "contradiction"),
        ("prefer pairs.jsonl polite.yaml -j offline --where topic=a", 0, ""),
        ("prefer pairs.jsonl -j offline --criteria 'Is kind'", 0, ""),
        ("prefer reply.txt other.txt polite.yaml -j offline", 0, ""),
        ("grade suite.yaml -j judges.py:strict", 2, "ungraded"),
        ("grade each.jsonl -j offline", 0, "2 results: 1 of 2 grades pass"),
        ("grade-many polite.yaml rows.jsonl -j judges.py@strict", 0, "2 ungraded"),
        ("grade-many polite.yaml rows.jsonl -j offline --filter refunds", 0, ""),
        ("grade-many polite.yaml rows.jsonl -j offline --id a,b", 0, ""),
    ],
)
def test_an_example_for_the_shell_runs_as_it_is_printed(typed: str, code: int, shown: str) -> None:
    """In a folder that has the files which it names, it does what was meant, and its exit code tells."""
    _write({**FILES, **EXAMPLES})
    line = r"""such as (python -c "[^"]*"|(?:cat|diff|echo|grep|jq|rubric|tail|shuf) .*?)(?=; |, and |$)"""
    said = re.search(line, run(*shlex.split(typed)).stderr)
    assert said
    ours, _, rest = said[1].partition(" | ") if said[1].startswith("rubric ") else ("", "", said[1])
    first = run(*shlex.split(ours.removeprefix("rubric "))) if ours else None  # a process of its own takes seconds
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), "."])
    text = first.stdout if first else FILES["rows.jsonl"]
    done = subprocess.run(
        ["bash", "-c", rest or "cat"], env=env, input=text, capture_output=True, text=True, check=False
    )
    if first:
        done.returncode, done.stderr = done.returncode or first.exit_code, done.stderr + first.stderr
    assert (done.returncode, shown in done.stdout + done.stderr) == (code, True), done
    _write(FILES)


@each_row(
    "typed",
    [
        "grade polite.yaml reply.txt -j offline",
        "grade suite.yaml -j offline",
        "grade-many polite.yaml rows.jsonl -j offline",
        "plan suite.yaml -j offline",
        "plan polite.yaml reply.txt -j offline",
        "agree results.jsonl labels.csv",
        "compare results.jsonl before.jsonl",
        "lint polite.yaml",
        "validate polite.yaml",
    ],
)
def test_the_help_of_format_has_names_that_json_has(typed: str) -> None:
    """Also the answer to `--json`: a path of `jq` that is typed from memory would be null in silence."""
    command = commands()[typed.split(maxsplit=1)[0]]
    told = next(each.help or "" for each in options_of(command) if each.name == "form").partition("; ")[2]
    of_kind = re.split(r", of a suite|, or of suites,", told, maxsplit=1)
    part = of_kind[-1] if "suite.yaml" in typed and len(of_kind) > 1 else of_kind[0]
    printed = run(*typed.split(), "--format", "json").stdout
    assert part
    assert [name for name in re.findall(r"\.(\w+)", part) if f'"{name}"' not in printed] == []
    assert told.rstrip(".") in " ".join(run(*typed.split(), "--json").stderr.split())


def test_a_command_that_takes_no_format_says_how_one_is_named() -> None:
    """It reads a file by its content, and a converted one is ours."""
    Path("other_tool.yaml").write_text("defaultTest: {asert: []}\ntests: [{vars: {a: b}}]\n")
    said = run("check", "other_tool.yaml", "-j", "offline").stderr
    Path("other_tool.yaml").unlink()
    assert "name one with rubric convert other_tool.yaml --from FORMAT --out native.yaml" in " ".join(said.split())


def test_a_text_that_is_given_as_a_threshold_is_piped() -> None:
    """`-t` is the text in other tools."""
    said = run("grade", "polite.yaml", "-t", "We thank you.", "-j", "offline").stderr
    assert "write echo 'We thank you.' | rubric grade polite.yaml - -j offline; see" in " ".join(said.split())


def test_a_secret_is_not_repeated_in_a_line() -> None:
    """What was typed is then answered by the name of the option alone."""
    secret = "sk-" + "a1B2c3D4" * 5
    said = run("grade", "polite.yaml", "reply.txt", "--model", f"openai/{secret}").stderr
    assert "did you mean '--judge'?" in said
    assert secret not in said


def test_help_that_is_asked_for_by_a_command_is_that_of_the_command() -> None:
    """As `git help commit` has it; the line prints the help."""
    said = run("help", "grade-many").stderr
    assert lines_of(said) == ["rubric grade-many --help"]
    assert "Usage" in run("grade-many", "--help").stdout


def test_a_model_that_a_file_names_is_printed_as_it_stands_there(tmp_path: Path) -> None:
    """The judge of the line stands for that of an example, and for none that was written."""
    judges = "judges: {strict: {model: openai/gpt-5}}\nrubric: [{text: Is polite, judge: strict}]"
    (tmp_path / "own.yaml").write_text(f"suite: s\n{judges}\ncases: [{{output: Thanks}}]\n")
    assert (
        "defaults: {judges: {is-polite: {model: openai/gpt-5}}}"
        in run("grade", str(tmp_path / "own.yaml"), "-j", "offline").stderr
    )
