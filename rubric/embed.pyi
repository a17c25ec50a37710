# ruff: noqa: I001 - the names stand by what they are for

import typing

# Drive: a grade, its options, and what it is given.
from .engine.grade import JudgeLike as JudgeLike
from .engine.pipeline import CONCURRENCY as CONCURRENCY
from .engine.pipeline import Options as Options
from .engine.pipeline import StoreLike as StoreLike
from .engine.grade import as_rubric as as_rubric
from .engine.grade import judge_or_default as judge_or_default
from .internals.background_loop import on_background as on_background
from .internals.background_loop import run as run
from .engine.pipeline import side_by_side as side_by_side

# Send: what each request passes.
from .values.requests import Limiter as Limiter
from .values.requests import Transport as Transport

# Adapt: a grade as other harnesses take it.
from .integrations.mapping import Grader as Grader
from .integrations.mapping import Mapped as Mapped
from .integrations.mapping import checked_candidate as checked_candidate

# Read: rows, chats and candidates.
from .engine.grade import one_candidate as one_candidate
from .runs.logs import candidate_of as candidate_of
from .values.chats import candidate_of_chat as candidate_of_chat
from .values.chats import is_chat as is_chat
from .internals.row_files import rows_in as rows_in
from .engine.sources import source_of as source_of

# Judge in code: checks, answers and their findings.
from .values.answers import Answer as Answer
from .values.checks import Check as Check
from .values.checks import Decided as Decided
from .values.findings import Finding as Finding
from .grading.code_checks import decide as decide
from .values.checks import NOTHING as NOTHING
from .scoring.outcomes import TOLERANCE as TOLERANCE
from .values.rubrics import describe as describe

# Show: results, figures and tables.
from .results.presentation import Presented as Presented
from .results.report_rows import RowBuilder as RowBuilder
from .scoring.intervals import Statistic as Statistic
from .results.report_rows import Status as Status
from .results.presentation import Table as Table
from .internals.text import cell as cell
from .internals.secrets import clean as clean
from .internals.text import counted as counted
from .internals.text import cut as cut
from .scoring.intervals import few_groups as few_groups
from .internals.text import line as line
from .scoring.intervals import mean_interval as mean_interval
from .scoring.intervals import paired_mean as paired_mean
from .scoring.intervals import percent as percent
from .scoring.intervals import share_interval as share_interval
from .internals.text import shorten as shorten
from .internals.text import shown as shown
from .internals.text import table as table
from .internals.text import visible as visible

# Define: values that say what was wrong with them.
from .errors import Wording as Wording
from .internals.frozen_map import FrozenMap as FrozenMap
from .internals.containers import Listed as Listed
from .internals.containers import NoTruth as NoTruth
from .internals import fields as fields
from .internals.guided import guided as guided
from .internals.frozen_map import freeze as freeze
from .internals.frozen_map import thaw as thaw

# Read and write files: documents with places, and what is wrong with them.
from .formats.cursor import Cursor as Cursor
from .formats.notes import LackingError as LackingError
from .formats.notes import Loading as Loading
from .formats.notes import Notes as Notes
from .formats.files import read_text as read_text
from .internals.row_files import read_json as read_json
from .internals.atomic_write import replacing as replacing
from .formats.files import write_text as write_text

# Plug in: what entry points name, and how it is found.
from .formats.registry import Format as Format
from .formats.assertions.keys import Key as Key
from .formats.assertions.keys import Kind as Kind
from .formats.recognition import SURE as SURE
from .formats.recognition import has as has
from .formats.assertions.keys import number as number
from .internals import plugins as plugins

def refuse_name(module: str, wanted: str, own: tuple[str, ...] = ...) -> typing.NoReturn: ...
