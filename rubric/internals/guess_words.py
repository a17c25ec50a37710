"""
What people type at the API, and the call that they mean: the words that `rubric.internals.guesses` looks up.

| a guess                                    | is looked up in                                              |
|--------------------------------------------|--------------------------------------------------------------|
| another word for an argument of one call   | `OWN`: the message has the call that works                   |
| an argument that may mean several things   | `SAID`: the message has the call that works                  |
| an argument by another name                | `WORDS`: other words for a parameter, for all calls alike    |
| arguments in another shape                 | `EXAMPLES`, and the shapes in `rubric.internals.guesses`     |
| an attribute                               | `ATTRIBUTES`, then `RELATED`: it is one of another object    |
| a name of the package                      | `NAMES`                                                      |

A new guess is a word in one of these tables. A misspelt name needs none: the nearest one is proposed.
"""

from __future__ import annotations

# -- arguments -------------------------------------------------------------------------------------------

OWN: dict[str, dict[str, str]] = {
    "Criterion": {
        "text": "description statement question requirement prompt criterion",
        "id": "name",
        "levels": "score_range scale range",
        "choices": "options",
        "tree": "decision_tree",
    },
    "ScoreRange": {
        "low": "min minimum start lower lo",
        "high": "max maximum end stop upper hi",
        "text": "label description",
    },
    "Likert": {"low": "min minimum start lower", "high": "max maximum end upper"},
    "Jury": {"size": "n votes k count samples num_votes times runs repeats", "judge": "model"},
    "Panel": {"judges": "models members panel"},
    "Judge": {"model": "model_name name llm model_id", "api_base": "base_url endpoint"},
    "Anchor": {"response": "output text answer example", "score": "value label"},
    "Choice": {"label": "name option value", "text": "description meaning"},
    "Leaf": {"reason": "label text description"},
    "grade": {"candidate": "output text response completion", "judge": "model llm judge_model"},
    "grade_many": {"candidates": "outputs texts responses completions dataset data rows", "judge": "model llm"},
}
"""Other words for a parameter of one call; they come before those of all calls."""

WORDS = {
    "text": "description desc statement question requirement rule definition instruction content prompt criterion",
    "id": "name key slug title identifier criterion_id label",
    "name": "title id label rubric_name",
    "criteria": "items rules checks questions requirements metrics criterions rubric list assertions dimensions",
    "weight": "points importance w max_points max_score value",
    "points": "weight cost amount penalty",
    "required": "must mandatory critical essential gate is_required hard blocking must_pass",
    "min_score": "threshold pass_threshold cutoff passing_score minimum gate_value min",
    "threshold": "pass_threshold passing_score cutoff pass_at passing_at pass_score success_threshold min_score",
    "answer": "type kind scale response_type answer_type output_type scoring",
    "levels": "range score_range scale bands rating_scale rating anchors_by_score score_ranges",
    "choices": "options labels categories enum values menu classes",
    "check": "function fn assertion predicate validator callable",
    "tree": "decision_tree by dag",
    "by": "tree decision_tree",
    "polarity": "kind mode type negative direction",
    "anchors": "examples few_shot shots few_shot_examples exemplars calibration",
    "when": "condition if_ applies_when only_if applies applicable",
    "evidence": "quotes cite citations require_evidence quote with_evidence",
    "abstain": "allow_abstain unknown cannot_tell allow_unknown na",
    "tags": "labels tag categories groups",
    "metadata": "meta extra info data",
    "guidelines": "instructions system_prompt system guidance preamble context description notes",
    "aggregation": "aggregate aggregator method scoring reduce combine mode",
    "prompt": "template prompt_template judge_prompt system_prompt system instructions rubric_prompt",
    "model": "model_name llm name engine deployment model_id",
    "judge": "model llm judges grader evaluator judge_model scorer",
    "judges": "models members panel",
    "candidate": "output text response answer completion candidates content submission prediction actual_output",
    "candidates": "outputs texts responses answers completions dataset data rows items samples df frame inputs batch",
    "rubric": "criteria criterion rubrics metric metrics evaluation_criteria spec",
    "output": "text response answer completion content actual_output prediction generation reply submission generated",
    "input": "question prompt query task instruction problem user_input inputs",
    "reference": "expected expected_output ground_truth target gold golden ideal reference_answer label correct_answer",
    "context": "contexts retrieval_context documents docs retrieved_contexts passages sources",
    "messages": "history conversation chat turns transcript dialogue",
    "tool_calls": "tools tools_called functions function_calls",
    "images": "image image_url image_urls pictures",
    "key": "id row_id index uid candidate_id example_id",
    "max_tokens": "max_output_tokens max_completion_tokens max_new_tokens tokens",
    "timeout": "request_timeout time_limit deadline",
    "retries": "max_retries num_retries attempts n_retries retry",
    "repairs": "reasks parse_retries max_repairs",
    "api_base": "base_url endpoint host server address api_url url",
    "api_key": "key token secret apikey",
    "concurrency": "max_workers workers n_jobs max_concurrency num_workers parallel threads batch_size max_concurrent",
    "store": "cache cache_dir cache_path use_cache db database checkpoint resume",
    "budget": "max_cost cost_limit limit max_budget spend",
    "limits": "rate_limit rate_limits rpm tpm requests_per_minute",
    "progress": "verbose show_progress progress_bar tqdm use_tqdm",
    "columns": "column column_map mapping rename fields column_mapping",
    "size": "n votes k count samples",
    "consensus": "threshold majority agreement",
    "aggregate": "aggregation voting method vote pooling mode strategy reduce combine",
    "low": "min minimum start lower",
    "high": "max maximum end upper",
    "question": "text prompt ask condition",
    "yes": "if_yes true then left positive on_yes",
    "no": "if_no false else_ otherwise negative on_no",
    "response": "output text answer example completion",
    "score": "value rating mark grade label",
    "reason": "explanation rationale why comment reasoning feedback",
    "path": "file filename file_path filepath",
    "cost": "usd dollars max_cost money limit max_usd",
    "rule": "weights weight",
}
"""Other words for a parameter, whatever the call; the call that works is said, as the word may mean something else."""

SAID: dict[str, dict[str, str]] = {
    **{
        name: {"case_sensitive": "capital letters count unless ignore_case=True"}
        for name in ("Contains", "StartsWith", "EndsWith", "Equals", "ContainsAny", "ContainsAll")
    },
    "criterion": {
        "points": "the points of a criterion are its weight; give weight=...",
        "negative": "write rubric.forbids(text), or Criterion(text, polarity='guard')",
        "inverted": "write rubric.forbids(text), or Criterion(text, polarity='guard')",
        "negate": "write rubric.forbids(text), or Criterion(text, polarity='guard')",
        "optional": "a criterion is optional unless required=True; leave it out",
        "judge": "a criterion has no judge of its own; give the judge to grade(candidate, rubric, judge)",
        "model": "a criterion has no model of its own; give the judge to grade(candidate, rubric, judge)",
    },
    "penalizes": {
        "weight": "the weight of a penalty is its points; give points alone",
        "polarity": "this verb means 'penalty', got {value}; use another verb, such as expects",
        "required": "a penalty fails nothing, so required={value} has no effect; to forbid it use forbids(text)",
        "min_score": "a penalty fails nothing, so min_score={value} has no effect; to forbid it use forbids(text)",
    },
    **dict.fromkeys(
        ("checks", "decides", "includes"),
        dict.fromkeys(
            ("anchors", "evidence", "abstain"),
            "it would do nothing here: no judge is asked this text; take it out",
        ),
    ),
    "forbids": {"polarity": "this verb means 'guard', got {value}; use another verb, such as expects"},
    "Rubric": {
        "criterion": "a rubric has a list of them: Rubric('support reply', criteria=['Is polite'])",
        "model": "a rubric has no judge; give it to grade(candidate, rubric, judge='openai/...')",
        "judge": "a rubric has no judge; give it to grade(candidate, rubric, judge='openai/...')",
        "weights": "each criterion has its weight: Criterion('...', weight=2), or {'text': '...', 'weight': 2}",
        "description": "a rubric has a name, and guidelines='...' that the judge reads",
        "max_score": "scores are in 0..1; shown on another scale: Rubric('...', scale=Likert(1, 5))",
        "evaluation_steps": "write each step as a criterion: Rubric('...', ['...', '...'])",
    },
    "Judge": {
        "system_prompt": "what holds for all criteria is Rubric(guidelines='...'); a prompt of your own is "
        "Judge(model, prompt='...'), with slots such as {{ candidate }} and {{ criterion }}",
        "n": "several votes of one judge are Jury(judge, 3)",
        "votes": "several votes of one judge are Jury(judge, 3)",
        "provider": "the provider is the first part of the name: Judge('openai/gpt-5')",
        "cache": "replies are kept by a store: grade(candidate, rubric, judge, store='replies.db')",
        "top_p": "what the vendor takes goes into params: Judge(model, params={'top_p': ...})",
        "headers": "what the vendor takes goes into params: Judge(model, params={'extra_headers': {...}})",
        "rubric": "a judge has no rubric; give both to grade(candidate, rubric, judge)",
        "stream": "replies are read whole; leave it out",
    },
    "Panel": {
        "voting": "write Panel([...], aggregate='majority')",
        "model": "write Panel(['openai/...', 'anthropic/...'])",
        "n": "the same judge several times is Jury(judge, 3)",
    },
    "Jury": {
        "aggregate": "the votes of a jury pass by their share: Jury(judge, 3, consensus=0.5); to pool otherwise, "
        "write Panel([judge] * 3, aggregate='median')",
        "temperature": "that is the judge's: Jury(Judge('...', temperature=1), 3)",
    },
    "grade": {
        **dict.fromkeys(
            ("messages", "tool_calls", "images", "variables", "file_changes", "key", "group"),
            "that belongs to the candidate: grade(Candidate('...', messages=..., tool_calls=...), rubric, judge)",
        ),
        "threshold": "the rubric has it: grade(candidate, rubric.passing_at(0.8), judge)",
        "weights": "each criterion has its weight: rubric.revising('id', weight=2)",
        "temperature": "that is the judge's: grade(candidate, rubric, Judge('...', temperature=0))",
        "n": "several votes of one judge are grade(candidate, rubric, Jury(judge, 3))",
        "votes": "several votes of one judge are grade(candidate, rubric, Jury(judge, 3))",
        "api_key": "that is the judge's: grade(candidate, rubric, Judge('...', api_key=...))",
        "api_base": "that is the judge's: grade(candidate, rubric, Judge('...', api_base='http://...'))",
        "base_url": "that is the judge's: grade(candidate, rubric, Judge('...', api_base='http://...'))",
        "timeout": "that is the judge's: grade(candidate, rubric, Judge('...', timeout=30))",
        "progress": "one candidate shows none; grade_many(candidates, rubric, judge, progress=True) does",
        "candidates": "many candidates are for grade_many(candidates, rubric, judge)",
        "outputs": "many candidates are for grade_many(candidates, rubric, judge)",
    },
    "grade_many": {
        "input": "each candidate has its own: grade_many([Candidate('...', input='...')], rubric, judge), or rows with "
        "the columns output and input",
        "inputs": "give rows: grade_many([{'output': o, 'input': i} for o, i in zip(outputs, inputs)], rubric, judge)",
        "index": "results have .index and .key already; name the column of a key: columns={'key': 'id'}",
        "temperature": "that is the judge's: grade_many(candidates, rubric, Judge('...', temperature=0))",
        "threshold": "the rubric has it: grade_many(candidates, rubric.passing_at(0.8), judge)",
    },
}
"""What an argument of a call means, where no other name alone would do. `criterion` is for all that make one."""

OF_CRITERIA = frozenset(
    {"Criterion", "requires", "expects", "scores", "rates", "chooses", "forbids", "penalizes", "checks", "decides"}
    | {"includes"}
)

ALIKE = {"agrade": "grade", "evaluate": "grade", "aevaluate": "grade", "agrade_many": "grade_many", "plan": "grade"}

EXAMPLES = {
    "Rubric": "Rubric('support reply', ['Is polite', 'Answers the question'])",
    "Criterion": "Criterion('Is polite', id='polite', weight=2)",
    "Candidate": "Candidate('the text that is graded', input='the question')",
    "Judge": "Judge('openai/gpt-5', temperature=0)",
    "Jury": "Jury('openai/gpt-5', 3)",
    "Panel": "Panel(['openai/gpt-5', 'anthropic/claude-sonnet-5'])",
    "Cascade": "Cascade('openai/gpt-5-mini', 'openai/gpt-5', when='borderline')",
    "DecisionTree": "DecisionTree('Is it polite?', yes=1.0, no=0.0)",
    "ScoreRange": "ScoreRange(1, 5)",
    "Choice": "Choice('warm', 1.0)",
    "Leaf": "Leaf(0.5, reason='...')",
    "Anchor": "Anchor('an example response', 0.8)",
    "expects": "rubric.expects('Is polite', weight=2)",
    "requires": "rubric.requires('Answers the question')",
    "scores": "rubric.scores('Is warm')",
    "rates": "rubric.rates('Is clear', 1, 5)",
    "chooses": "rubric.chooses('Which tone?', {'cold': 0, 'warm': 1})",
    "forbids": "rubric.forbids('Promises a refund')",
    "penalizes": "rubric.penalizes('Repeats itself', points=1)",
    "checks": "rubric.checks(Contains('ticket #'))",
    "decides": "rubric.decides('Escalates', ask('Is it urgent?').yes(1.0).no(0.0))",
    "includes": "rubric.includes(house_style, weight=2)",
    "Levels": "Levels(ScoreRange(1, 5)), or Levels({0: 'no', 5: 'in part', 10: 'yes'})",
    "Choices": "Choices({'cold': 0, 'warm': 1})",
    "Case": "Case('refund', rubric, input='the question', output='the answer')",
    "Suite": "Suite('replies', [Case('refund', rubric, output='...')])",
    "RubricTest": "RubricTest('a good reply', passes=True)",
    "Message": "Message('user', 'the question')",
    "ToolCall": "ToolCall('search', {'query': '...'})",
    "Contains": "Contains('ticket #')",
    "ask": "ask('Is it polite?').yes(1.0).no(0.0)",
    "revising": "rubric.revising('polite', weight=2)",
    "passing_at": "rubric.passing_at(0.8)",
    "without": "rubric.without('polite')",
    "adding": "rubric.adding(Criterion('Is polite'))",
    "grade": "grade(candidate, rubric, judge)",
    "agrade": "await agrade(candidate, rubric, judge)",
    "evaluate": "evaluate(candidate, rubric, judge)",
    "aevaluate": "await aevaluate(candidate, rubric, judge)",
    "plan": "plan(candidate, rubric, judge)",
    "grade_many": "grade_many(candidates, rubric, judge)",
    "agrade_many": "agrade_many(candidates, rubric, judge)",
    "rescore": "grade.rescore(threshold=0.8)",
}
"""A call that works, for each that is missing an argument or has too many."""


# -- attributes ------------------------------------------------------------------------------------------

_KEEP = "a rubric never changes, so keep what it returns: rubric = rubric"

ATTRIBUTES: dict[str, dict[str, str]] = {
    "Suite": {
        "dump_suite(suite, 'suite.yaml')": "save dump write to_file export to_path save_yaml",
        "dumps_suite(suite)": "dumps to_yaml to_json yaml json to_string",
        "load_suite('suite.yaml')": "load from_file from_path read load_yaml open",
        "loads_suite(text)": "loads from_yaml from_string parse from_json from_text",
        "suite.run(judge)": "grade evaluate judge_all execute run_all score __call__",
        "await suite.arun(judge)": "aevaluate agrade",
        "attrs.evolve(suite, cases=[*suite, case])": "add append add_case with_case extend adding with_cases",
        "suite.cases": "tests rows items samples",
    },
    "Report": {
        "report.grades.to_pandas()": "to_pandas to_df to_dataframe to_frame df",
        "report.grades.mean": "mean average score mean_score",
        "report.grades.pass_rate": "pass_rate success_rate accuracy",
        "report.write('report.html')": "save dump to_file export to_html html to_json to_junit to_markdown show",
        "report.rows": "results cases items tests",
    },
    "Rubric": {
        f"{_KEEP}.adding(Criterion('...'))": "add append add_criterion with_criterion push insert with_criteria",
        f"{_KEEP}.adding(*criteria)": "extend add_criteria add_all update_criteria merge combine concat union",
        f"{_KEEP}.without('id')": "remove drop delete pop discard remove_criterion exclude",
        f"{_KEEP}.revising('id', weight=2)": "replace update set edit change modify revise set_weight with_weight "
        "with_weights set_weights reweight update_criterion",
        f"{_KEEP}.passing_at(0.8)": "with_threshold set_threshold pass_at passes_at passing with_pass_threshold",
        f"{_KEEP}.guided_by('...')": "with_guidelines with_instructions instruct guide with_prompt",
        "attrs.evolve(rubric, threshold=0.8)": "evolve copy clone model_copy with_ replace_fields rename with_name",
        "call grade(candidate, rubric, judge), from rubric import grade": "grade evaluate run score judge apply "
        "measure assess invoke a_measure eval call predict",
        "call await agrade(candidate, rubric, judge), from rubric import agrade": "agrade aevaluate arun ainvoke",
        "call grade_many(candidates, rubric, judge), from rubric import grade_many": "grade_many batch map "
        "evaluate_many grade_all grade_batch evaluate_dataset evaluate_batch run_many",
        "call plan(candidate, rubric, judge), from rubric import plan": "plan estimate cost dry_run preview",
        "call generate(...), from rubric import generate": "generate generate_criteria draft",
        "Rubric.load('rubric.yaml')": "from_file load_yaml read load_file parse_file from_path read_yaml open "
        "load_json read_file from_yaml_file from_json_file load_from_file",
        "Rubric.from_yaml(text)": "loads parse from_string from_str parse_raw model_validate_json from_text",
        "Rubric.from_dict(data)": "parse_obj model_validate structure from_mapping validate from_obj from_config",
        "Rubric('name', ['...', '...'])": "create build from_list from_criteria new make builder init",
        "rubric.save('rubric.yaml')": "dump write to_file export save_yaml dump_yaml save_as write_yaml to_path "
        "to_yaml_file save_to save_json",
        "rubric.to_yaml()": "dumps yaml to_string as_yaml to_str to_text as_string",
        "rubric.to_json()": "json as_json model_dump_json dumps_json",
        "rubric.to_dict()": "asdict as_dict dict model_dump dump_dict to_mapping",
        "[(c.id, c) for c in rubric]": "items",
        "rubric.ids": "keys names criterion_ids criteria_ids labels titles",
        "[c.text for c in rubric]": "texts descriptions statements values",
        "rubric['id']": "get get_criterion criterion find by_id",
        "sum(rubric.weights.values())": "total_weight max_score total_points points max_points total",
        "rubric.name": "title label",
        "rubric.criteria": "questions items_list rules metrics assertions",
        "rubric.threshold": "pass_threshold passing_score cutoff min_score pass_score",
        "rubric.guidelines": "instructions system_prompt description notes guidance",
        "print(rubric.to_yaml())": "table show display print summary describe pretty pprint explain to_markdown",
        "rubric.requires('...')": "must need needs must_have gate mandatory",
        "rubric.expects('...')": "should yes_no add_yes_no boolean binary likes wants prefers criterion_",
        "rubric.forbids('...')": "must_not avoid disallow bans guards guard prohibits never should_not excludes",
        "rubric.rates('...', 1, 5)": "likert levels scale_ rating grades",
        "rubric.chooses('...', {'cold': 0, 'warm': 1})": "select selects classify classifies options multiple_choice",
        "rubric.checks(Contains('...'))": "asserts contains matches regex code",
        "rubric.decides('...', ask('...?').yes(1).no(0))": "tree_ decision_tree walks asks ask",
        "rubric.includes(other)": "nests nest nested subrubric compose",
        "rubric.adding(Criterion('...', polarity='contradiction'))": "contradicts",
    },
    "Criterion": {
        "criterion.id": "name title key slug label",
        "criterion.text": "description statement question prompt criterion requirement content body",
        "criterion.answer": "type kind scale answer_type levels choices options score_range range check tree",
        "criterion.weight": "points importance max_points max_score",
        "criterion.min_score": "threshold pass_threshold cutoff",
        "criterion.required": "mandatory must critical is_required gate essential",
        "criterion.anchors": "examples few_shot shots",
        "Criterion(**data)": "from_dict model_validate parse_obj",
        "attrs.evolve(criterion, weight=2)": "evolve copy replace clone model_copy with_weight update",
        "attrs.asdict(criterion)": "to_dict asdict dict model_dump",
        "grade(candidate, Rubric([criterion]), judge)": "grade evaluate score measure run judge assess",
        "Criterion('...'), which is answered with yes or no": "yes_no boolean binary of create",
    },
    "Candidate": {
        "candidate.output": "text response answer content completion actual_output body generation prediction reply",
        "candidate.input": "prompt question query task instruction",
        "candidate.reference": "expected expected_output ground_truth target ideal gold golden reference_answer",
        "candidate.context": "retrieval_context contexts documents",
        "candidate.tool_calls": "tools tools_called",
        "candidate.key": "id name index row_id uid",
        "candidate.variables": "metadata vars data extra",
        "Candidate(**data)": "from_dict model_validate parse_obj from_row",
        "attrs.asdict(candidate)": "to_dict asdict dict model_dump",
        "attrs.evolve(candidate, input='...')": "evolve replace copy clone with_input",
        "grade(candidate, rubric, judge)": "grade evaluate score judge run",
    },
    "Judge": {
        "judge.name": "model_name llm model_id",
        "judge.params": "api_key api_base base_url kwargs options config",
        "grade(candidate, rubric, judge)": "grade evaluate score judge run measure assess invoke generate complete ask "
        "predict",
        "attrs.evolve(judge, temperature=0)": "evolve copy replace clone with_temperature with_params model_copy bind",
        "Jury(judge, 3)": "vote votes repeat times jury",
    },
    "Jury": {
        "jury.size": "n votes k count",
        "jury.judge": "model judges",
        "grade(candidate, rubric, jury)": "grade evaluate score run",
    },
    "Panel": {
        "panel.judges": "models members panel",
        "panel.aggregate": "aggregation voting method",
        "grade(candidate, rubric, panel)": "grade evaluate score run",
    },
    "ScoreRange": {"range.low": "min start minimum lower", "range.high": "max end stop maximum upper"},
    "DecisionTree": {
        "tree.yes and tree.no": "children branches left right if_yes if_no then otherwise",
        "tree.question": "text prompt label ask",
        "grade(candidate, Rubric.deciding(tree), judge)": "grade evaluate run walk",
    },
    "Result": {
        "{f.id: f.reason for f in grade}": "reasons explanations rationales comments",
        "print(grade.explain()), or grade['id'].reason for one criterion": "reason reasoning explanation rationale "
        "comment feedback_text analysis critique justification table to_markdown show summary print report display "
        "describe markdown text why to_text message output_text",
        "dict(grade.contributions)": "scores by_criterion criterion_scores per_criterion component_scores subscores",
        "grade.passed": "pass_ success ok is_pass passing is_passed pass_fail is_successful successful result correct",
        "not grade.passed": "failed is_fail fail",
        "grade.score": "value total overall overall_score normalized mean final_score total_score average rating",
        "f'{grade.score:.0%}'": "percent percentage pct",
        "grade.usage.cost": "cost price total_cost usd",
        "grade.usage.prompt_tokens + grade.usage.completion_tokens": "tokens total_tokens n_tokens",
        "grade.findings": "criteria results details metrics items breakdown verdicts criterion_results checks answers "
        "criteria_results assertions componentResults judgements judgments",
        "grade['id']": "get find finding criterion",
        "[f.id for f in grade]": "ids keys names",
        "grade.to_dict()": "asdict as_dict dict model_dump json as_json to_json model_dump_json dumps",
        "grade.failures": "error errors failure exception exceptions",
        "grade.verdict": "label status outcome_label grade decision",
        "grade.shown": "letter display_score formatted as_letter",
        "{f.id: f.evidence for f in grade if f.score is not None}": "evidence quotes citations",
        "grade.judge": "model judge_name",
        "grade.rescore(threshold=0.8)": "recompute reweight with_threshold reweigh",
        "grade.gates": "failed_gates blocked_by gated",
        "Grades([grade]).to_pandas()": "to_pandas to_frame to_df to_dataframe",
        "the replies are kept by a store: grade(candidate, rubric, judge, store='replies.db')": "messages raw prompt "
        "transcript raw_response raw_output response replies prompts trace",
        "grade.votes": "confidence agreement judgments_by_judge members",
    },
    "_Finding": {
        "finding.reason": "explanation rationale reasoning feedback comment justification why reasons message critique",
        "finding.value": "answer verdict label choice rating raw_score raw result response said",
        "finding.id": "name criterion key criterion_id title",
        "finding.evidence": "quotes quote spans citations cited",
        "grade.contributions[finding.id] == 1": "passed met pass_ ok satisfied is_met success met_criterion passes",
        "grade.contributions[finding.id]": "contribution points earned mean normalized",
        "grade.rubric[finding.id].text": "text description question statement criterion_text",
        "grade.rubric[finding.id].weight": "weight max_score importance max_points",
        "finding.votes": "judges members agreement confidence",
        "attrs.asdict(finding)": "to_dict asdict dict model_dump",
    },
    "Grades": {
        "grades.to_pandas()": "to_dataframe to_df df as_dataframe dataframe frame pandas to_frame as_pandas to_table",
        "grades.report('page.html')": "to_html html to_page save_html write_html view export_html",
        "grades.to_polars()": "polars as_polars to_pl",
        "grades.to_jsonl()": "to_json json jsonl dumps as_json model_dump_json",
        "grades.to_jsonl('results.jsonl')": "save dump write export to_file write_jsonl save_jsonl persist to_disk",
        "grades.to_csv('results.csv')": "csv write_csv save_csv to_excel to_xlsx to_tsv to_parquet",
        "Grades.read_jsonl('results.jsonl', rubric, judge)": "load from_jsonl read from_file load_jsonl read_json "
        "from_json load_json loads",
        "[g.score for g in grades]": "scores values score_list",
        "grades.mean": "average avg mean_score score overall total_score mean_",
        "grades.to_pandas()['score'].std()": "std stdev variance var",
        "grades.to_pandas()['score'].median()": "median",
        "grades.to_pandas()['score'].describe()": "histogram hist quantile quantiles percentiles min max",
        "grades.pass_rate": "accuracy success_rate passrate pass_ratio rate",
        "grades.ungraded": "errors exceptions missing unjudged invalid",
        "grades.failed": "fails failing not_passed failures",
        "grades.passed": "passes passing successes",
        "grades.usage.cost": "cost total_cost price",
        "grades.usage": "tokens total_tokens",
        "Grades([*grades, other])": "append extend add concat merge",
        "sorted(grades, key=lambda g: g.index)": "sort sort_values sorted order_by",
        "grades.summary()": "describe summarize summarise stats statistics aggregate metrics report results_summary "
        "overview info by_criterion criteria per_criterion",
        "len(grades)": "size length n total n_results shape",
        "list(grades)": "to_list tolist items all as_list",
        "grades.rows()": "records to_records to_rows iterrows itertuples row",
        "grades[:5]": "head tail first last sample take iloc",
        "grades.filter(lambda g: g.passed)": "query where select loc find",
        "print(grades)": "show display print table explain to_markdown",
        "grades.rescore(threshold=0.8)": "recompute with_threshold reweight reweigh",
        "grades.to_dict()": "asdict dict as_dict model_dump",
    },
    "Summary": {
        "summary.mean": "average avg mean_score score",
        "summary.pass_rate": "accuracy success_rate passrate",
        "summary.results": "n count total size",
        "summary.to_dict()": "dict asdict json to_json as_dict model_dump",
        "grades.to_pandas()": "to_pandas to_df to_dataframe",
        "print(summary)": "show display print table report to_markdown explain",
        "summary.usage.cost": "cost total_cost price",
    },
    "Usage": {
        "usage.prompt_tokens + usage.completion_tokens": "total_tokens tokens total",
        "usage.prompt_tokens": "input_tokens tokens_in prompt",
        "usage.completion_tokens": "output_tokens tokens_out completion generated_tokens",
        "usage.cached_tokens": "cache_read_tokens cached",
        "usage.cost": "price total_cost usd dollars",
        "usage.calls": "requests n_calls count",
    },
    "Unchanging": {
        f"{_KEEP}.adding(Criterion('...'))": "append add insert push",
        f"{_KEEP}.adding(*criteria)": "extend",
        f"{_KEEP}.without('id')": "remove pop discard clear drop",
        "sorted(rubric, key=...)": "sort reverse",
        "rubric['id']": "get keys items",
    },
}
"""What is meant by an attribute that a class lacks: the words, by the expression."""

CHILDREN = {
    "Grade": "Result", "Ungraded": "Result",
    "Scored": "_Finding", "NotApplicable": "_Finding", "Abstained": "_Finding", "Unjudged": "_Finding",
}  # fmt: skip

RELATED: dict[str, tuple[tuple[str, str], ...]] = {
    "Grading": (("rubric.results.collection:Grades", ".collect() reads the results: grade_many(...).collect().{}"),),
    "AsyncGrading": (
        ("rubric.results.collection:Grades", ".collect() reads the results: (await agrade_many(...).collect()).{}"),
    ),
    "Grades": (
        ("rubric.results.result:Grade", "each result has its own: [g.{} for g in grades]"),
        ("rubric.results.summary:Summary", "grades.summary().{}"),
    ),
    "Result": (
        ("rubric.values.requests:Usage", "grade.usage.{}"),
        ("rubric.results.result:Grade", "only a Grade has it: check isinstance(result, Grade), or call grade()"),
        ("rubric.values.findings:Scored", "each finding has its own: grade['id'].{}"),
        ("rubric.values.rubrics:Rubric", "grade.rubric.{}"),
        ("rubric.results.collection:Grades", "that is of many results: Grades([grade]).{}"),
    ),
    "_Finding": (
        ("rubric.values.findings:Scored", "only a Scored finding has it: check isinstance(finding, Scored)"),
        ("rubric.values.criteria:Criterion", "the criterion has it: grade.rubric[finding.id].{}"),
        ("rubric.results.result:Grade", "the grade has it: grade.{}"),
    ),
    "Criterion": (("rubric.values.answers:Levels", "the answer has it: criterion.answer.{}"),),
    "Rubric": (("rubric.values.criteria:Criterion", "each criterion has its own: rubric['id'].{}"),),
    "Candidate": (("builtins:str", "a candidate is no text; its text is candidate.output.{}"),),
    "Leaf": (("rubric.values.trees:DecisionTree", "a leaf ends the tree; its parent has it: tree.{}"),),
    "Question": (("rubric.values.trees:DecisionTree", "it is no tree yet; give it both .yes(...) and .no(...)"),),
    "HalfAnswered": (("rubric.values.trees:DecisionTree", "it is no tree yet; give it the other branch as well"),),
}
"""Classes whose attributes are asked of another one, and the expression with which they are reached."""


# -- names of the package ----------------------------------------------------------------------------------

NAMES = {
    "load": "load_rubric read read_rubric from_file load_yaml open_rubric load_json",
    "loads": "from_yaml parse from_string from_json parse_rubric",
    "dump": "save save_rubric write to_file",
    "dumps": "to_yaml to_json",
    "Rubric.from_dict": "from_dict",
    "grade": "score judge grade_one run assess evaluate_one llm_judge assert_test",
    "grade_many": "grade_batch batch_grade grade_all evaluate_many grade_dataset batch evaluate_dataset grade_df map",
    "agrade_many": "agrade_batch agrade_all",
    "Judge": "Grader Evaluator Scorer LLMJudge LLMEvaluator JudgeModel LLM ModelJudge GEval create_llm_as_judge Model_",
    "Criterion": "Question Rule Item Requirement Metric Criteria CriterionSpec BinaryCriterion Check",
    "DecisionTree": "Tree Node DAG DAGMetric",
    "ScoreRange": "Range Scale",
    "Levels": "Rating LikertScale NumericScale Score",
    "Choices": "Options Categorical Enum MultipleChoice",
    "YesNo": "Binary Bool YesOrNo PassFail BooleanAnswer",
    "Unit": "Float Continuous UnitScore",
    "Anchor": "Example FewShot FewShotExample Exemplar",
    "Grade": "Result GradeResult EvaluationResult EvalResult Evaluation",
    "Grades": "Results GradeList EvaluationDataset",
    "Candidate": "Sample TestCase LLMTestCase Response Submission SingleTurnSample Row_",
    "Jury": "Ensemble Vote Voting",
    "Panel": "Council Committee JudgePanel Judges",
    "Store": "Cache ReplyStore cache",
    "Budget": "CostLimit",
    "Limits": "RateLimit RateLimiter RateLimits",
    "load_suite": "load_tests load_cases",
    "generate": "generate_rubric generate_criteria draft create_rubric",
    "Ungraded": "Error Failed",
    "Matches": "Regex RegexMatch Pattern",
    "IsJSON": "IsJson ValidJSON Json",
    "FitsSchema": "JSONSchema JsonSchema",
    "Calls": "ToolCalled CalledTool",
    "Contains": "Includes Substring",
}
"""Other words for a public name."""
