"""
Grade text against a rubric, with any LLM as the judge.

Names are loaded on first use: `import rubric` itself costs next to nothing and touches neither network nor files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rubric.answers import Choice, Choices, Levels, ScoreRange, Unit, YesNo
    from rubric.batches import acancel_batches, agrade_in_batches, cancel_batches, grade_in_batches
    from rubric.candidates import Candidate, Message, ToolCall
    from rubric.checks import (
        Calls,
        Contains,
        ContainsAll,
        ContainsAny,
        EndsWith,
        Equals,
        FitsSchema,
        Holds,
        IsJSON,
        Matches,
        Script,
        StartsWith,
        Unsupported,
    )
    from rubric.criteria import Anchor, Criterion, When
    from rubric.drafting import agenerate, generate
    from rubric.drivers.budgets import Amount, Budget
    from rubric.drivers.limits import Limits
    from rubric.drivers.progress import Progress
    from rubric.errors import (
        ClusterError,
        DefinitionError,
        DumpError,
        LoadError,
        ModelError,
        NoJudgeError,
        RubricError,
        StoreError,
        UngradedError,
    )
    from rubric.exchanges import Ask, Failure, Reply, Usage
    from rubric.findings import Abstained, Evidence, NotApplicable, Scored, Unjudged
    from rubric.formats import dump, dumps, load, loads, schema
    from rubric.formats.suites import Converted, convert, dump_suite, dumps_suite, load_suite, loads_suite
    from rubric.gradebooks import CriterionSummary, Grades, Summary
    from rubric.grades import Grade, Ungraded
    from rubric.grading.flow import flow
    from rubric.grading.planning import Plan
    from rubric.judges import Cascade, Judge, Jury, Model, Panel
    from rubric.rubrics import Rubric
    from rubric.scales import Boolean, Letter, Likert, UnitScale
    from rubric.shards import Shard, merge_results
    from rubric.store import Store, Tally
    from rubric.streams import AsyncGrading, Grading, agrade_many, grade_many
    from rubric.suites.agents import AgentTarget
    from rubric.suites.cases import Case
    from rubric.suites.chats import ModelTarget
    from rubric.suites.comparing import Comparison
    from rubric.suites.planning import SuitePlan
    from rubric.suites.reports import Report
    from rubric.suites.rows import Row
    from rubric.suites.servers import HTTPServer, StdioServer
    from rubric.suites.suites import Suite
    from rubric.suites.targets import DeferError, Response, Target
    from rubric.trees import DecisionTree, Leaf, ask
    from rubric.verbs import agrade, grade, plan

_HOMES = {
    "answers": ("Choice", "Choices", "Levels", "ScoreRange", "Unit", "YesNo"),
    "batches": ("acancel_batches", "agrade_in_batches", "cancel_batches", "grade_in_batches"),
    "candidates": ("Candidate", "Message", "ToolCall"),
    "checks": (
        "Calls",
        "Contains",
        "ContainsAll",
        "ContainsAny",
        "EndsWith",
        "Equals",
        "FitsSchema",
        "Holds",
        "IsJSON",
        "Matches",
        "Script",
        "StartsWith",
        "Unsupported",
    ),
    "criteria": ("Anchor", "Criterion", "When"),
    "drafting": ("agenerate", "generate"),
    "drivers.budgets": ("Amount", "Budget"),
    "drivers.limits": ("Limits",),
    "drivers.progress": ("Progress",),
    "errors": (
        "ClusterError",
        "DefinitionError",
        "DumpError",
        "LoadError",
        "ModelError",
        "NoJudgeError",
        "RubricError",
        "StoreError",
        "UngradedError",
    ),
    "exchanges": ("Ask", "Failure", "Reply", "Usage"),
    "findings": ("Abstained", "Evidence", "NotApplicable", "Scored", "Unjudged"),
    "formats": ("dump", "dumps", "load", "loads", "schema"),
    "formats.suites": ("Converted", "convert", "dump_suite", "dumps_suite", "load_suite", "loads_suite"),
    "gradebooks": ("CriterionSummary", "Grades", "Summary"),
    "grades": ("Grade", "Ungraded"),
    "grading.flow": ("flow",),
    "grading.planning": ("Plan",),
    "judges": ("Cascade", "Judge", "Jury", "Model", "Panel"),
    "rubrics": ("Rubric",),
    "scales": ("Boolean", "Letter", "Likert", "UnitScale"),
    "shards": ("Shard", "merge_results"),
    "store": ("Store", "Tally"),
    "streams": ("AsyncGrading", "Grading", "agrade_many", "grade_many"),
    "suites.agents": ("AgentTarget",),
    "suites.cases": ("Case",),
    "suites.chats": ("ModelTarget",),
    "suites.comparing": ("Comparison",),
    "suites.planning": ("SuitePlan",),
    "suites.reports": ("Report",),
    "suites.rows": ("Row",),
    "suites.servers": ("HTTPServer", "StdioServer"),
    "suites.suites": ("Suite",),
    "suites.targets": ("DeferError", "Response", "Target"),
    "trees": ("DecisionTree", "Leaf", "ask"),
    "verbs": ("agrade", "grade", "plan"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Abstained",
    "AgentTarget",
    "Amount",
    "Anchor",
    "Ask",
    "AsyncGrading",
    "Boolean",
    "Budget",
    "Calls",
    "Candidate",
    "Cascade",
    "Case",
    "Choice",
    "Choices",
    "ClusterError",
    "Comparison",
    "Contains",
    "ContainsAll",
    "ContainsAny",
    "Converted",
    "Criterion",
    "CriterionSummary",
    "DecisionTree",
    "DeferError",
    "DefinitionError",
    "DumpError",
    "EndsWith",
    "Equals",
    "Evidence",
    "Failure",
    "FitsSchema",
    "Grade",
    "Grades",
    "Grading",
    "HTTPServer",
    "Holds",
    "IsJSON",
    "Judge",
    "Jury",
    "Leaf",
    "Letter",
    "Levels",
    "Likert",
    "Limits",
    "LoadError",
    "Matches",
    "Message",
    "Model",
    "ModelError",
    "ModelTarget",
    "NoJudgeError",
    "NotApplicable",
    "Panel",
    "Plan",
    "Progress",
    "Reply",
    "Report",
    "Response",
    "Row",
    "Rubric",
    "RubricError",
    "ScoreRange",
    "Scored",
    "Script",
    "Shard",
    "StartsWith",
    "StdioServer",
    "Store",
    "StoreError",
    "Suite",
    "SuitePlan",
    "Summary",
    "Tally",
    "Target",
    "ToolCall",
    "Ungraded",
    "UngradedError",
    "Unit",
    "UnitScale",
    "Unjudged",
    "Unsupported",
    "Usage",
    "When",
    "YesNo",
    "acancel_batches",
    "agenerate",
    "agrade",
    "agrade_in_batches",
    "agrade_many",
    "ask",
    "cancel_batches",
    "convert",
    "dump",
    "dump_suite",
    "dumps",
    "dumps_suite",
    "flow",
    "generate",
    "grade",
    "grade_in_batches",
    "grade_many",
    "load",
    "load_suite",
    "loads",
    "loads_suite",
    "merge_results",
    "plan",
    "schema",
]


if TYPE_CHECKING:
    __version__: str
else:  # a type checker that saw this would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - reads a file

            return version("rubric-grade")
        if name not in _HOME:
            msg = f"module 'rubric' has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module  # noqa: PLC0415 - only names that are asked for are loaded

        value = getattr(import_module(f"rubric.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
