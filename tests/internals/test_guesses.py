"""What a new user types at the API works as meant, or the message has the call that works."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import sys
from importlib import import_module
from inspect import iscoroutine, signature
from pathlib import Path
from types import FunctionType
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

import rubric
from rubric import (
    CallError,
    Candidate,
    Criterion,
    DefinitionError,
    Grades,
    Judge,
    Rubric,
    RubricError,
    grade,
    grade_many,
)
from rubric.internals.containers import Listed, Unchanging
from rubric.internals.guesses import table
from rubric.internals.guided import Guided
from rubric.internals.lazy_names import public_names
from rubric.quality import generate
from rubric.trust import Label, Labels, agreement, compare, rank, thresholds
from tests.places import ROOT
from tests.rows import each_row

R = Rubric("r").expects("Thanks the customer", id="clarity").expects("Is polite", id="polite")
ONE = Criterion("Is warm")
G = grade("We thank you, politely.", R, "offline")
GS = grade_many(["We thank you.", "No."], R, "offline").collect()
DF = pd.DataFrame({"id": [7, 8], "output": ["a", "b"]})
ROWS = pd.DataFrame({"id": [7, 8], "question": ["Why?", "When?"], "answer": ["a", "b"]})
BEST = thresholds(Grades([*GS] * 12), Labels(dict(enumerate([True, False] * 12)), by="index"))
MARKS = pd.DataFrame({"id": [0, 1], "verdict": [True, False]})


def is_short(candidate: Candidate) -> bool:
    """Decide a check; its name is its criterion's text, and names no metric."""
    return len(candidate.output) < 9


def rated(prompt: str) -> float:
    """Score a text, as a judge of another tool does."""
    return len(prompt) / 1_000_000


NAMES: dict[str, Any] = {name: getattr(rubric, name) for name in rubric.__all__} | {
    "compare": compare, "agreement": agreement, "Label": Label, "Labels": Labels, "rows": ROWS, "marks": MARKS,
    "marked": Labels({0: True, 1: False}), "r": R, "one": ONE, "g": G, "gs": GS, "df": DF, "re": re, "rubric": rubric,
    "Client": type("Client", (), {}), "rank": rank, "best": BEST, "np": np, "generate": generate,
    "is_short": is_short, "rated": rated,
}  # fmt: skip


def said_by(typed: str) -> str:
    """Return the message of the error that *typed* raises."""
    with pytest.raises((RubricError, AttributeError, TypeError)) as refused:
        eval(typed, dict(NAMES))  # noqa: S307 - the lines are those below
    return str(refused.value)


LANG = "grade(Candidate('x', variables={'lang': '%s'}), Rubric('r').checks(Contains('x'), when=%s), 'offline').vacuous"
PICKS = "When(holds=lambda candidate: {'lang': 'de'}.items() <= candidate.variables.items())"

WORKS = [
    ("r.checks(is_short)", "r.checks(Holds(is_short))"),
    # what is typed, and what it is short for
    ("Criterion('a', answer=ScoreRange(0, 10))", "Criterion('a', answer=Levels())"),
    ("Criterion('a', answer='unit')", "Criterion('a', answer=Unit())"),
    ("Criterion('a', answer=bool)", "Criterion('a')"),
    ("Criterion('a', answer=(1, 5))", "Criterion('a', answer=Levels(ScoreRange(1, 5)))"),
    ("Criterion('a', answer={'bad': 1, 'good': 5})", "Criterion('a', answer=Levels({1: 'bad', 5: 'good'}))"),
    ("Criterion('a', answer={'bad': 0, 'good': 1})", "Criterion('a', answer=Choices({'bad': 0, 'good': 1}))"),
    ("Criterion('a', levels={0: 'no', 5: 'yes'})", "Criterion('a', answer=Levels({0: 'no', 5: 'yes'}))"),
    ("Criterion('a', choices={'x': 0, 'y': 1})", "Criterion('a', answer=Choices({'x': 0, 'y': 1}))"),
    ("Criterion('a', check='ticket')", "Criterion('a', answer=Contains('ticket'))"),
    ("Criterion(check=Contains('x'))", "Criterion(\"contains 'x'\", answer=Contains('x'))"),
    ("Criterion('a', tree=ask('q').yes(1).no(0))", "Criterion('a', answer=ask('q').yes(1).no(0))"),
    ("Criterion('a', when={'contains': 'x'})", "Criterion('a', when=When(contains='x'))"),
    ("Criterion('a', anchors=[{'response': 'x', 'score': 1}])", "Criterion('a', anchors=[Anchor('x', 1)])"),
    ("Levels(1, 5)", "Levels(ScoreRange(1, 5))"),
    ("DecisionTree('q', 1.0, 0.0)", "DecisionTree('q', yes=1.0, no=0.0)"),
    ("Rubric([Criterion('a')])", "Rubric(criteria=[Criterion('a')])"),
    ("Rubric('r', ['a', 'b'])", "Rubric('r', criteria=[Criterion('a'), Criterion('b')])"),
    ("Rubric('r', criteria=[{'text': 'a', 'weight': 2}])", "Rubric('r').expects('a', weight=2)"),
    ("Rubric('r', criteria=[{'text': 'a', 'levels': {1: 'x', 5: 'y'}}])", "Rubric('r').rates('a', {1: 'x', 5: 'y'})"),
    ("Rubric('r', criteria=[{'text': 'a', 'check': {'contains': 'x'}}])", "Rubric('r').checks(Contains('x'), 'a')"),
    ("Rubric.from_dict({'rubric': 'r', 'criteria': ['a']})", "Rubric('r', ['a'])"),
    ("Rubric.from_yaml('rubric: r\\ncriteria: [a]')", "Rubric('r', ['a'])"),
    ('Rubric.from_json(\'{"rubric": "r", "criteria": ["a"]}\')', "Rubric('r', ['a'])"),
    ("Rubric.from_dict(r.to_dict())", "r"),
    ("Rubric.from_yaml(r.to_yaml())", "r"),
    ("Rubric.from_json(r.to_json())", "r"),
    (LANG % ("en", PICKS), "True"),
    (LANG % ("de", PICKS), "False"),
    ("r + one", "r.adding(one)"),
    ("r + 'Is warm'", "r.adding('Is warm')"),
    ("r.ids", "('clarity', 'polite')"),
    ("dict(r.weights)", "{'clarity': 1, 'polite': 1}"),
    ("r.rates('a', 1, 5)", "r.rates('a', ScoreRange(1, 5))"),
    ("r.rates('a', (1, 5))", "r.rates('a', ScoreRange(1, 5))"),
    ("r.rates('a', range(1, 6))", "r.rates('a', ScoreRange(1, 5))"),
    ("r.rates('a', {'bad': 1, 'good': 5})", "r.rates('a', {1: 'bad', 5: 'good'})"),
    ("r.decides(ask('q').yes(1).no(0))", "r.decides('q', by=ask('q').yes(1).no(0))"),
    ("r.checks('ticket')", "r.checks(Contains('ticket'))"),
    ("r.checks(re.compile('a.b', re.I))", "r.checks(Matches('(?i)a.b'))"),
    ("r.checks(len)", "r.checks(Holds(len))"),
    ("r.passing_at('80%')", "r.passing_at(0.8)"),
    ("grade('x', r, Judge('offline'), input='why?')", "grade(Candidate('x', input='why?'), r, 'offline')"),
    ("grade({'output': 'x', 'input': 'why?'}, r, 'offline')", "grade(Candidate('x', input='why?'), r, 'offline')"),
    ("g['clarity'].reason", "g[0].reason"),
    ("g.rescore(weights={'clarity': 2}).rubric", "r.revising('clarity', weight=2)"),
    ("Panel('a', 'b')", "Panel(['a', 'b'])"),
    ("Judge(model='offline')", "Judge('offline')"),
    ("Judge('m', api_base='http://x')", "Judge('m', params={'api_base': 'http://x'})"),
    ("'ticket' in Candidate('my ticket')", "True"),
    ("[c.id for c in r]", "['clarity', 'polite']"),
    ("len(r)", "2"),
    ("r[0]", "r['clarity']"),
    ("np.mean(gs)", "gs.mean"),
    ("agreement(gs, marked)['the whole']", "agreement(gs, marked).overall"),
    ("r.checks(lambda c: True, id='short')['short'].text", "'short'"),
]


@each_row(("typed", "meant"), WORKS, ids=[typed for typed, _ in WORKS])
def test_a_guess_works_as_meant(typed: str, meant: str) -> None:
    """The guessed call gives the same value as the documented one."""
    assert eval(typed, dict(NAMES)) == eval(meant, dict(NAMES))  # noqa: S307 - the lines are those above


SAYS = [
    # what is typed, and the call that the message has
    # other spellings
    ("Criterion(name='polite', description='Is polite')", "Criterion(id='polite', text='Is polite')"),
    ("Criterion(prompt='Is polite')", "Criterion(text='Is polite')"),
    ("Criterion('a', score_range=ScoreRange(0, 10))", "Criterion('a', levels=score_range)"),
    ("ScoreRange(min=0, max=10)", "ScoreRange(low=0, high=10)"),
    ("Rubric(Criterion('a'), Criterion('b'))", "Rubric([Criterion('a'), Criterion('b')])"),
    ("r.expects(text='a')", "rubric.expects('a')"),
    ("r.rates('a', min=1, max=5)", "rubric.rates('a', (1, 5))"),
    ("r.passing_at(threshold=0.8)", "rubric.passing_at(0.8)"),
    ("grade(output='x', rubric=r, judge='offline')", "grade(candidate='x', rubric=rubric, judge='offline')"),
    ("grade('x', r, model='offline')", "grade('x', rubric, judge='offline')"),
    ("Jury('offline', n=3)", "Jury('offline', size=3)"),
    ("Judge('m', base_url='http://x')", "Judge('m', via='http://x')"),
    ("Judge('openai/m', base_url='http://x')", "Judge('openai/m', via='http://x')"),
    ("Criterion('Is polite', description='x')", "Criterion('x', id='Is polite')"),
    ("Criterion('polite', 'Is polite')", "Criterion('Is polite', id='polite')"),
    ("Criterion('a', weight=-1)", "write rubric.penalizes('a', points=1)"),
    ("Criterion('a', points=2)", "weight=2"),
    ("Criterion('a', threshold=0.5)", "write Rubric('reply', [Criterion('a', answer='unit')], threshold=0.5); for"),
    ("Criterion('a', threshold=0.5)", "write Criterion('a', answer='unit', min_score=0.5)"),
    ("Criterion('a', threshold=0.5, levels=(1, 5))", "Criterion('a', min_score=0.5, levels=(1, 5))"),
    ("Criterion(['a', 'b'])", "rubric.adding('a', 'b')"),
    ("Criterion('a', levels=(1, 5), choices=['x', 'y'])", "keep one of them"),
    ("Criterion('a', answer=int)", "ScoreRange(1, 5)"),
    ("Criterion()", "Criterion('Is polite')"),
    ("DecisionTree('q')", "DecisionTree('q', yes=1.0, no=0.0)"),
    ("DecisionTree('q', if_yes=1, if_no=0)", "DecisionTree('q', yes=1, no=0)"),
    ("ask('q', yes=1, no=0)", "write ask('q').yes(1).no(0)"),
    ("ScoreRange(5)", "ScoreRange(1, 5)"),
    ("Rubric('r', 'a', 'b')", "Rubric('r', ['a', 'b'])"),
    ("Rubric('r', 'a')", "Rubric('r', ['a'])"),
    ("Rubric({'criteria': ['a']})", "Rubric.from_dict(data)"),
    ("Rubric('r', {'x': 'a'})", "[{'id': 'x', 'text': 'a'}]"),
    ("Rubric('r', items=['a'])", "Rubric('r', criteria=['a'])"),
    ("Rubric('r', threshold='80%')", "threshold=0.8"),
    ("Rubric('r', criteria=[Contains('x')])", "rubric.checks(check)"),
    ("Rubric('r', criteria=[{'txt': 'a'}])", "Criterion(text='a')"),
    ("Rubric.from_file('x.yaml')", "Rubric.load('rubric.yaml')"),
    ("Rubric.load_yaml('x.yaml')", "Rubric.load('rubric.yaml')"),
    ("Rubric.model_validate({})", "Rubric.from_dict(data)"),
    ("r.dump('x.yaml')", "rubric.save('rubric.yaml')"),
    ("r.model_dump()", "rubric.to_dict()"),
    ("r.add(one)", "rubric = rubric.adding(Criterion('...'))"),
    ("r.extend([one])", "rubric = rubric.adding(*criteria)"),
    ("r.criteria.append(one)", "rubric = rubric.adding(Criterion('...'))"),
    ("r.remove('clarity')", "rubric = rubric.without('id')"),
    ("r.replace('clarity', weight=2)", "rubric = rubric.revising('id', weight=2)"),
    ("r.with_threshold(0.5)", "rubric = rubric.passing_at(0.8)"),
    ("r.evolve(threshold=0.5)", "attrs.evolve(rubric, threshold=0.8)"),
    ("r.require('a')", ".requires"),
    ("r.must('a')", "rubric.requires('...')"),
    ("r + r", "rubric.includes(other)"),
    ("setattr(r, 'threshold', 0.5)", "rubric = rubric.passing_at(0.5)"),
    ("setattr(r['polite'], 'weight', 3)", "rubric = rubric.revising('polite', weight=3)"),
    ("r.expects('a', 'x')", "rubric.expects('a', id='x')"),
    (
        "Judge('openai/gpt-5', 'Be strict')",
        "write grade(candidate, rubric.guided_by('Be strict'), Judge('openai/gpt-5'))",
    ),
    ("Judge('openai', 'gpt-5')", "Judge('openai/gpt-5')"),
    ("r.scores('a', 0, 10)", "rubric.rates('a', 0, 10)"),
    ("r.checks('regex', '[0-9]+')", "rubric.checks(Matches('[0-9]+'))"),
    ("Contains('a', 'b')", "ContainsAll(['a', 'b'])"),
    ("grade_many({'k': 'x'}, r, 'offline')", "[{'key': key, 'output': reply} for key, reply in candidates.items()]"),
    (
        "grade_many({'output': ['x']}, r, 'offline')",
        "[dict(zip(candidates, row)) for row in zip(*candidates.values())]",
    ),
    ("grade('x', r, 'offline', store='big.db', in_doubt='hold')", "store=Store('big.db', in_doubt='hold')"),
    ("grade('x', r, 'offline', temperature=0)", "Judge('offline', temperature=0)"),
    ("grade('x', r, 'offline', max_tokens='many')", "expected a whole number"),
    ("Rubric.load()", "Rubric.load('rubric.yaml')"),
    ("Rubric.from_dict()", "Rubric.from_dict(data)"),
    ("Budget(cost=1, prices={'m': 3})", "prices={'openai/gpt-5': (1.25, 10)}"),
    ("Rubric(criteria=['a'], pass_threshold=0.8)", "Write Rubric(criteria=['a'], threshold=0.8)"),
    ("Rubric('x', criteria={'a': 2, 'b': 1})", "[{'text': 'a', 'weight': 2}, {'text': 'b', 'weight': 1}]"),
    ("r.expects(text='a', name='warm')", "rubric.expects('a', id='warm')"),
    ("Judge(model='gpt-5', provider='openai')", "Judge('openai/gpt-5')"),
    ("grade('x', r, 'offline', is_async=True)", "write await agrade('x', rubric, 'offline')"),
    ("Suite('s', [Case('c', r)]).run('offline', is_async=True)", "write await suite.arun('offline')"),
    ("agreement(gs, labels={'q1': 1})", "Write agreement(grades, others={'q1': 1})"),
    (
        "Suite('s', [{'input': 'a', 'output': 'b'}])",
        "by [Case(f'{n}', rubric=rubric, **row) for n, row in enumerate(rows)]",
    ),
    ("Suite('s', [{'id': 'a', 'rubric': 'b'}])", "rows become cases by [Case(**row) for row in rows]"),
    ("call('a').exactly(0)", "none is call('a').never()"),
    ("load('rubric.yaml', threshold=0.9)", "write load('rubric.yaml').passing_at(0.9)"),
    ("g.latency", "no time is kept, since a reply may come from a store"),
    ("load('rubric: r\\ncriteria: [a]')", "this is the text of a rubric, and no path; write loads(text)"),
    (
        "load_suite('suite: s\\ncases: [{input: a}]')",
        "this is the text of a suite, and no path; write loads_suite(text)",
    ),
    ("Criterion('a', few_shot=[('x', 1.0)])", "write anchors=[Anchor('x', 1.0)]"),
    ("ScoreRange(4)", "ScoreRange(1, 5)"),
    ("r.requires(Contains('x'))", "rubric.checks(Contains('x'), required=True)"),
    ("r.forbids(Contains('x'))", "rubric.checks(Contains('x'), polarity='guard')"),
    ("r.checks(lambda output, expected: True)", "Holds(lambda candidate: candidate.output == candidate.reference)"),
    ("Rubric('r', ['a'], guidelines=['b', 'c'])", r"guidelines='\n\n'.join(['b', 'c'])"),
    ("Rubric('r', ['a'], threshold='4/5')", "threshold=0.8"),
    ("r.chooses('a', {'x': '0', 'y': '1'})", "take the quotes off: 0"),
    ("r.passing_at('0.8')", "take the quotes off: 0.8"),
    ("grade('x', r, 'offline', weight=2)", "each criterion has its own"),
    ("grade({'role': 'assistant', 'content': 'x'}, r, 'offline')", "{'output': row['content']}"),
    ("grade({'content': 'x'}, r, 'offline')", "{'output': row['content']}"),
    (
        "grade_many([{'role': 'assistant', 'content': 'x'}], r, 'offline')",
        "grade({'messages': messages}, rubric, judge)",
    ),
    ("grade_many(['x'], r, 'offline', n_jobs=-1)", "leave it out"),
    ("grade_many(['x'], r, 'offline').score", "grades = grade_many(...).collect(); write [g.score for g in grades]"),
    ("gs.sort_values('score', ascending=False)", "grades.sort('score', descending=True)"),
    ("grade('x', r, provider='offline')", "grade('x', rubric, judge='offline')"),
    ("grade('x', r, 'offline', query='y')", "grade('x', rubric, 'offline', input='y')"),
    ("grade('x', r, 'offline', num_samples=5)", "grade('x', rubric, Jury('offline', 5))"),
    ("grade('x', r, 'offline', random_state=4)", "grade('x', rubric, Judge('offline', seed=4))"),
    ("grade('x', r, 'offline', n_trials=4, temp=0)", "grade('x', rubric, Jury(Judge('offline', temperature=0), 4))"),
    (
        "grade_many(['x'], r, 'offline', retries=3, max_cost='5 USD', max_calls=9, workers=3)",
        "Write grade_many(['x'], rubric, Judge('offline', retries=3), concurrency=3, budget=Budget(cost=5, calls=9))",
    ),
    ("grade('x', r, 'offline', store='x.db', n=3)", "grade('x', rubric, Jury('offline', 3), store='x.db')"),
    ("grade('x', r, 'offline', stripes=3)", "limits (requests and tokens a minute)"),
    ("r.penalizes('a', weight=-2)", "rubric.penalizes('a', points=2)"),
    ("Judge('m', timeout='30s', max_tokens='4k')", "write max_tokens=4000; timeout: expected"),
    ("Judge('m', timeout='2 minutes')", "write timeout=120"),
    (
        "grade_many(df, r, 'offline', column_mapping={'response': 'output'})",
        "Write grade_many(candidates, rubric, 'offline', columns={'output': 'output'})",
    ),
    ("grade('x', metrics=[r], judge='offline')", "Write grade('x', rubric=rubric, judge='offline')"),
    ("gs.to_csv('x.csv', index=False)", "write grades.to_pandas().to_csv('x.csv', index=False)"),
    ("rubric.answer", "from rubric import said; said('assistant')"),
    ("rubric.never", "from rubric import call; call('search').never()"),
    ("IsJSON(required_keys=['status'])", "write FitsSchema({'type': 'object', 'required': ['status']})"),
    ("Matches('a', flags='i')", "such as Matches('(?i)ticket')"),
    (
        "grade('x', r, 'offline', include_reason=True, threshold=0.5)",
        "write print(grade('x', rubric.passing_at(0.5), 'offline'))",
    ),
    ("grade('x', r, 'offline', budget=0.5)", "write budget=Budget(cost=0.5)"),
    ("grade_many(['x'], r, 'offline', limits=90)", "write limits=Limits(rpm=90)"),
    ("gs.iloc[0]", "write grades[0]"),
    ("gs.passed()", "leave the brackets out: grades.passed or .failed"),
    ("IsJSON(1)", "such as IsJSON()"),
    ("call('refund', args={'order': 7})", "did you mean 'arguments'?"),
    ("Cascade('offline', 'offline', threshold=0.8)", "lies between two ends, such as when=(0.3, 0.7)"),
    (
        "grade_many([{'said': 'x', 'n': 1}], r, 'offline', text='said', id='n')",
        "write grade_many([{'said': 'x', 'n': 1}], rubric, 'offline', columns={'output': 'said', 'key': 'n'})",
    ),
    ("rubric.Percent", "Rubric('reply', ['Is clear']).shown_as(Likert(0, 100))"),
    ("Candidate('x', metadata={'model': 'm'})", "write Candidate('x', variables={'model': 'm'})"),
    ("loads('rubric: {preset: safety}')", "write rubric init --preset groundedness"),
    # figures of a name are composed of the values that there are
    ("gs.avg_cost", "write grades.usage.cost / len(grades)"),
    ("gs.cost_per_result", "write grades.usage.cost / len(grades)"),
    ("gs.error_rate", "write len(grades.ungraded) / len(grades)"),
    ("gs.max_score", "write max(g.score for g in grades if g.score is not None)"),
    ("gs.pass_count", "write len(grades.passed)"),
    ("gs.total_calls", "write grades.usage.calls"),
    ("r.criterionCount", "write len(rubric.criteria)"),
    ("g.n_failed", "write len([f for f in grade if grade.contributions.get(f.id) != 1])"),
    # items of a value are a tuple, which names that value
    ("r.criteria['polite']", "write rubric['polite']"),
    ("g.findings['polite']", "write result['polite']"),
    ("g.findings['polit']", "write result['polite']"),
    ("g.findings['zebra']", "allowed: clarity, polite"),
    ("g.findings.get('polite')", "write grade['id']"),
    ("g.findings.append(1)", "it is a tuple, which never changes"),
    ("gs.summary().criteria['polite']", "write summary['polite']"),
    ("compare(gs, gs).criteria['polite']", "write difference['polite']"),
    ("Suite('x', [Case('one', r)]).cases['one']", "write suite['one']"),
    # a value of ours in the place of what it holds is asked for that, and no number is made up
    ("r.passing_at(best)", "write rubric.passing_at(thresholds.best().threshold)"),
    ("r.passing_at(best[0])", "write rubric.passing_at(point.threshold)"),
    ("Rubric('x', ['a'], threshold=best)", "write Rubric('x', ['a'], threshold=thresholds.best().threshold)"),
    ("r.passing_at(agreement(gs, marked))", "such as rubric.passing_at(0.8)"),
    ("Budget(cost=gs.usage)", "write Budget(cost=usage.cost)"),
    ("dumps(g)", "write dumps(result.rubric)"),
    ("dump(g, 'x.yaml')", "write dump(result.rubric, 'x.yaml')"),
    ("grade('x', g, 'offline')", "write grade('x', result.rubric, 'offline')"),
    ("r.includes(g)", "write rubric.includes(result.rubric)"),
    ("r.passing_at('high')", "such as rubric.passing_at(0.8)"),
    (
        "generate('Thanks', examples=['Hi.'], model='m', n=5)",
        "write generate('Thanks', judge='m', references=examples)",
    ),
    (
        "generate('Thanks', model='m')",
        "Write generate('Thanks', judge='m'); a text without a name is what a good answer does",
    ),
    *(
        (f"generate('Thanks', 'offline', {good}=['Hi.'], {bad}=['No.'])", each)
        for good, bad in (("good", "bad"), ("chosen", "rejected"), ("positive_examples", "negative_examples"))
        for each in (
            "as preferred=[*zip(good, bad)], good and bad answers are pairs, which also test what is drafted",
            "write generate('Thanks', 'offline', references=['Hi.'], examples=[Anchor(text, 0) for text in ['No.']])",
        )
    ),
    (
        "generate('Thanks', 'offline', pairs=[('Hi.', 'No.')])",
        "generate('Thanks', 'offline', preferred=[('Hi.', 'No.')])",
    ),
    (
        "generate(examples=['Hi.'], judge='offline')",
        "good answers without one are references; write references=examples",
    ),
    ("r.requires(['a b', 'c d'])", "write rubric.requires('a b').requires('c d')"),
    ("r.expects(['a', 'b'], weight=2)", "write rubric.expects('a', weight=2).expects('b', weight=2)"),
    ("grade_many(df.values, r, 'offline').collect()", "write grade_many(frame, rubric, judge)"),
    ("grade_many(df.iterrows(), r, 'offline').collect()", "write grade_many(frame, rubric, judge)"),
    ("Likert(range(1, 6))", "such as Likert(1, 5)"),
    ("rank(gs)", "such as rank(['one reply', 'another'], rubric, judge)"),
    ("prefer(g, g, r, 'offline')", "give what was graded, result.candidate"),
    # what pandas, NumPy and scikit-learn have is named with what is there
    ("evaluate(df, metrics=r, llm='offline')", "write grade_many(candidate, rubric=rubric, judge='offline')"),
    ("gs[gs.passed]", "a condition is a function, such as grades.filter(lambda g: g.passed)"),
    ("gs[['key', 'score']]", "write grades.to_pandas()[['key', 'score']]"),
    ("gs.to_numpy()", "write import numpy; numpy.array([g.score for g in grades])"),
    ("gs.pass_rate.std()", "of the scores, write grades.to_pandas()['score'].std()"),
    ("sum(gs)", "Grade is no number; compare its .score"),
    ("round(g, 2)", "Grade is no number; compare its .score"),
    ("float(g)", "Grade is no number; compare its .score"),
    ("agreement(gs, np.array([1, 0]))", "Labels(dict(enumerate(labels)), by='index')"),
    ("Judge('m', messages=[{'role': 'system', 'content': 'x'}])", "such as grade(candidate, rubric.guided_by("),
    ("compare(gs, gs).effect_size", "write difference['pass rate'].difference"),
    # several checks are criteria, in whatever form and order they are given
    ("r.checks(Matches('b+'), len)", "write rubric.checks(Matches('b+')).checks(len)"),
    ("r.checks(Holds(len), Contains('a'))", "write rubric.checks(len).checks(Contains('a'))"),
    ("r.checks(lambda c: True, Contains('a'))", "write rubric.checks(lambda c: ...).checks(Contains('a'))"),
    ("r.checks([Contains('a'), lambda c: True])", "write rubric.checks(Contains('a')).checks(lambda c: ...)"),
    (
        "r.checks(Contains('a'), len, Matches('b+'), weight=2)",
        "write rubric.checks(Contains('a'), weight=2).checks(len, weight=2).checks(Matches('b+'), weight=2)",
    ),
    ("r.checks(call('a'), re.compile('b'))", "write rubric.checks(call('a')).checks(re.compile('b'))"),
    # the last of what is proposed grades, and what a line leaves out is told
    ("r.expects('a', weight=-1)", "write rubric.penalizes('a', points=1).by_points()"),
    ("gs.pass_rate.ci(0.9)", "every interval is of 95 %; write grades.summary().pass_interval"),
    ("gs.summary(level=0.9)", "every interval is of 95 %, and has no option; leave it out; write grades.summary()"),
    ("r.chooses('a', {'x': 1, 'y': 0}, default='y')", "cannot tell may say so, and gets a score, such as abstain=0.5"),
    ("r.expects('a', abstain=True)", "such as abstain=0.5, the score where the judge cannot tell"),
    ("Candidate.from_pandas(df, text='output')", "write grade_many(frame, rubric, judge, columns={'output': 'text'})"),
    ("Candidate.from_csv('a.csv')", "write grade_many('rows.csv', rubric, judge)"),
    ("agreement(gs, marked).kappa", "write agreement.overall['kappa'].value"),
    ("gs.scores", "write [g.score for g in grades]"),
    ("gs.plot(bins=9)", "bins: they are chosen by the plot; leave it out; write grades.plot()"),
    # a column is named with all others that the rows need, or told to be none
    ("grade_many(rows, r, 'offline', column='answer')", "columns={'output': 'answer', 'input': 'question'})"),
    (
        "grade_many(rows, r, 'offline', text_column='answer', id_col='id')",
        "columns={'output': 'answer', 'input': 'question', 'key': 'id'})",
    ),
    ("grade_many(rows, r, 'offline', output='answer')", "columns={'output': 'answer', 'input': 'question'})"),
    ("grade_many(rows, r, 'offline', text_column='answr')", "there is no column 'answr'; did you mean 'answer'?"),
    ("grade_many(['x'], r, 'offline', column='answer')", "there are no rows with columns here"),
    ("grade_many(['x'], r, 'offline', reference='a')", "[{'output': each, 'reference': 'a'} for each in candidates]"),
    (
        "Labels.from_pandas(marks, label='verdict')",
        "Labels.from_pandas(frame, columns={'value': 'verdict', 'key': 'id'})",
    ),
    ("Labels.from_pandas(marks, id_col='id')", "columns={'key': 'id', 'value': 'verdict'})"),
    ("Labels.from_pandas(marks, label_col='verdit')", "there is no column 'verdit'; did you mean 'verdict'?"),
    ("agreement(marked, gs)", "got a Labels, which is the others; the order is agreement(grades, others)"),
    # both lines of a cure have all that was typed, and what is told apart
    (
        "Criterion(name='Agrees', criteria='Is so', evaluation_steps=['List all', 'Check each'], threshold=0.5)",
        r"Rubric('Agrees', [Criterion('\n'.join(['Is so', *['List all', 'Check each']]), id='Agrees', answer='unit')], threshold=0.5)",
    ),
    ("r.expects('a', threshold=0.5, weight=2)", "write rubric.scores('a', weight=2).passing_at(0.5); for a criterion"),
    ("r.requires('a', threshold=0.5)", "write rubric.scores('a', required=True, min_score=0.5)"),
    ("Criterion('a', evaluation_steps='Greets')", r"write Criterion('\n'.join(['a', 'Greets']))"),
    ("Contains(['a', 'b'], ignore_case=True)", "write ContainsAny(['a', 'b'], ignore_case=True)"),
    ("Matches(['a', 'b'])", "write Matches('|'.join(['a', 'b']))"),
    ("EndsWith('Bye.', 'Yours')", "lambda candidate: candidate.output.endswith(('Bye.', 'Yours'))"),
    ("StartsWith(['Dear', 'Hi'])", "lambda candidate: candidate.output.startswith(tuple(['Dear', 'Hi']))"),
    # operators and words of logic are criteria; two texts are no results
    ("~Contains('a')", "write rubric.checks(Contains('a'), polarity='guard')"),
    ("Contains('a') & len", "write rubric.checks(Contains('a'), required=True).checks(len, required=True)"),
    (
        "Contains('a') | Matches('b')",
        "write rubric.includes(Rubric('either').checks(Contains('a')).checks(Matches('b')).passing_at(0.5), required=True)",
    ),
    ("Contains('a') | Contains('b')", "write rubric.checks(ContainsAny(['a', 'b'], ignore_case=False))"),
    (
        "Contains('a', ignore_case=True) & Contains('b')",
        "rubric.checks(Contains('a', ignore_case=True), required=True).checks(Contains('b'), required=True)",
    ),
    ("~call('delete')", "write rubric.checks(call('delete').never())"),
    ("call('a') & call('b')", "write rubric.checks(call('a').at_least(1) & call('b').at_least(1))"),
    (
        "When(contains='a') | When(regex='b')",
        "When(contains='a').holds_for(candidate) or When(regex='b').holds_for(candidate)",
    ),
    ("Judge('openai/gpt-5', budget=5)", "write grade(candidate, rubric, Judge('openai/gpt-5'), budget=Budget(cost=5))"),
    ("Judge('openai/gpt-5', rate_limit=60)", "Judge('openai/gpt-5'), limits=Limits(rpm=60))"),
    ("grade('x', r, 'offline', return_prompt=True)", "write grade('x', rubric, 'offline', keep=True)"),
    ("Criterion('x', examples=['a'])", "such as anchors=[Anchor('a', 1)]"),
    ("Criterion('x', when='refund')", "write when=When(contains='refund')"),
    ("Criterion('x', score_type='binary')", "Write Criterion('x', answer='binary')"),
    ("Case('a', r, output='x', variables={'lang': 'de'}).lang", "write case.variables['lang']"),
    ("Rubric(['Is kind'], min_score=0.8)", "Write Rubric(criteria=['Is kind'], threshold=0.8)"),
    (
        "Suite('s', [Case('one', r)]).run('offline', exclude_tags=['slow'])",
        "such as suite.without(['slow']).run(judge)",
    ),
    ("__import__('rubric').presets.hallucination", "did you mean 'groundedness'?"),
    ("Case('a', r, input='x').upper()", "a case is not text; what it asks is case.input.upper"),
    ("grade_many(['x'], r, 'offline').collect().mean('id')", "write grades.summary()['id'].mean"),
    ("Criterion('x').kind", "write (criterion.answer, criterion.required, criterion.polarity)"),
    ("Rubric('q').rates('Is x', (1, 5), threshold=3)", "such as rubric.rates('Is x', 1, 5).passing_at(0.5); for"),
    ("When(not_contains='a')", "write When(contains='a', negated=True)"),
    ("When(not_regex='a')", "write When(regex='a', negated=True)"),
    ("When(contains='a', negate=True)", "Write When(contains='a', negated=True)"),
    ("Criterion('x', when=Contains('a'))", "write when=When(contains='a')"),
    ("Criterion('x', unless='a')", "such as when=When(contains='refund', negated=True)"),
    (
        "grade_many(['x'], r, 'offline', raise_on_error=False, max_workers=3)",
        "Write grade_many(['x'], rubric, 'offline', concurrency=3)",
    ),
    (
        "grade_many(['x'], r, 'offline', raise_on_error=True)",
        "write from itertools import takewhile; [*takewhile(lambda result: isinstance(result, Grade), grade_many(['x'], rubric, 'offline'))]",
    ),
    ("grade_many(['x'], r, 'offline', is_async=True)", "write await agrade_many(['x'], rubric, 'offline').collect()"),
    (
        "Rubric('x').penalizes('Uses jargon', weight=-0.2)",
        "write rubric.penalizes('Uses jargon', points=0.2).by_points()",
    ),
    ("Rubric.from_yaml('support.yaml', threshold=0.9)", "write load('support.yaml').passing_at(0.9)"),
    (
        "Rubric.from_yaml('criteria: [Is warm]', threshold=0.9)",
        "write Rubric.from_yaml('criteria: [Is warm]').passing_at(0.9)",
    ),
    (
        "rubric.prefer('a', 'b', r, judge='offline', swap=True)",
        "Write prefer('a', 'b', rubric, judge='offline', both_orders=True)",
    ),
    (
        "r.rates('Is clear', scale=(1, 5), anchors={1: 'no', 5: 'yes'})",
        "write rubric.rates('Is clear', {1: 'no', 5: 'yes'})",
    ),
    (
        "Criterion('Is clear', levels=(1, 5), anchors={1: 'no', 5: 'yes'})",
        "write Criterion('Is clear', levels={1: 'no', 5: 'yes'})",
    ),
    (
        "r.chooses('Which tone?', ['cold', 'warm'], best='warm', weight=2)",
        "write rubric.chooses('Which tone?', {'cold': 0, 'warm': 1}, weight=2)",
    ),
    ("r.chooses('Which tone?', ['cold', 'warm'], default='warm')", "labels alone have no scores"),
    (
        "r.checks(lambda text: True, name='short', weight=2)",
        "Write rubric.checks(lambda text: ..., id='short', weight=2)",
    ),
    ("Jury(['offline', len], vote='majority')", "write Panel(['offline', len], aggregate='majority')"),
    ("Jury('offline', 3, aggregate='mode')", "leave it out; write Jury('offline', 3)"),
    ("Jury('offline', 3, aggregate='mean')", "write Panel(['offline'] * 3, aggregate='mean')"),
    ("rubric.plan(['x', 'y'], r, 'offline', samples=3)", "write plan(['x', 'y'], rubric, Jury('offline', 3))"),
    ("grade(reply='x', rubric=r, model='offline')", "Write grade(candidate='x', rubric=rubric, judge='offline')"),
    ("Limits(60, max_concurrent=4)", "write Limits(rpm=60, concurrency=4)"),
    ("ContainsAny('a', 'b', ignore_case=True)", "write ContainsAny(['a', 'b'], ignore_case=True)"),
    ("Case(input='Why?', output='x', evaluators=[r])", "write Case('refund', rubric, input='Why?', output='x')"),
    ("agreement(gs, [True, False])", "Labels(dict(enumerate(labels)), by='index')"),
    ("setattr(one, 'weight', 2)", "import attrs; criterion = attrs.evolve(criterion, weight=2)"),
    ("gs.kappa", "write from rubric.trust import agreement; agreement(grades, labels)"),
    (
        "agreement(gs, Labels({0: {'polite': True}, 1: {'polite': False}})).kappa",
        "write agreement['polite']['kappa'].value",
    ),
    ("agreement(gs, {1: True, 2: False})", "write {place - 1: value for place, value in labels.items()}"),
    ("call('a').at_least(1) & Contains('x')", "write rubric.checks(Contains('x'))"),
    ("compare('One.', 'Two.', r, 'offline', swap=True)", "prefer('One.', 'Two.', rubric, 'offline', both_orders=True)"),
    ("compare(Candidate('a'), Candidate('b'), r, 'offline')", "prefer(new, old, rubric, 'offline')"),
    ("compare('One.', 'Two.', rubric=r, judge='offline')", "prefer('One.', 'Two.', rubric, 'offline')"),
    ("rank('One.', 'Two.', r, 'offline')", "write rank(['One.', 'Two.'], rubric, 'offline')"),
    ("ask('Which one?').choices({'a': 1})", "write Rubric('reply').chooses('Which one?', {'cold': 0, 'warm': 1})"),
    ("gs.pass_rate.value", "it is the number itself; write grades.pass_rate; or, of the mean, write grades.mean"),
    ("Suite([Case('one', r, output='x')])", "the name of a suite comes first; write Suite('replies', "),
    ("Suite('s', [Case('one', r, output='Thanks.')], model='m')", "Write Suite('s', cases, judge='m')"),
    (
        "When(metadata={'lang': 'de'})",
        "When(holds=lambda candidate: {'lang': 'de'}.items() <= candidate.variables.items())",
    ),
    (
        "When(holds={'lang': 'de'})",
        "write holds=lambda candidate: {'lang': 'de'}.items() <= candidate.variables.items()",
    ),
    ("lint(Rubric('v').expects('Is good', id='a').expects('Is good', id='b'))[0].severity", "write remark.level"),
    ("rubric.compare", "write from rubric import prefer; prefer('one reply', 'another', rubric, judge); or it is in"),
    # an argument that is given twice is another one; two options with one cure are told it once
    ("agreement(marked, grades=gs)", "write agreement(grades=grades, others=labels)"),
    ("Criterion('polite', text='Is polite')", "write Criterion('Is polite', id='polite')"),
    ("Criterion('a', min=1, max=5)", "min: a scale is two numbers; max: likewise; write Criterion('a', levels=(1, 5))"),
    ("grade('x', r, 'offline', include_reason=True, show_reason=True)", "write print(grade('x', rubric, 'offline'))"),
    # values of runs have their words
    ("Message(role='user', text='hi')", "Write Message(role='user', content='hi')"),
    ("ToolCall('a', args={'q': 1}, output='x', id='1')", "write ToolCall('a', arguments={'q': 1}, result='x')"),
    ("Candidate(run=[{'role': 'user', 'content': 'a'}])", "read; Candidate(run=read(messages))"),
    ("Candidate(input='a', reference='b')", "output: is missing: Candidate("),
    # what a file or a frame has, in code
    ("r.rates('a', [{'score_range': [0, 2], 'text': 'x'}, {'score': 3, 'text': 'y'}])", "write {'0-2': 'x', 3: 'y'}"),
    ("Criterion('a', levels=[{'score': 1}])", "such as {1: 'unclear', 5: 'clear'}"),
    ("Criterion('Is clear', weight=float('nan'))", "the cell of 'Is clear' is empty; leave its weight out"),
    ("Rubric.from_pandas(marks)", "write Rubric('reply', frame[['text', 'weight']].to_dict('records'))"),
    ("agreement(gs, marks)", "name it: Labels.from_pandas(labels, columns={'key': 'id', 'value': 'verdict'})"),
    ("agreement(gs, marks['verdict'])", "Labels(dict(enumerate(labels)), by='index')"),
    ("agreement(gs, marks['verdict'].rename(index=str))", "write labels.to_dict()"),
    ("gs.by(['topic'])", "by: expected one name, such as 'topic', got"),
    ("gs.by(['a', 'b'])", "lambda result: tuple(result.variables[name] for name in ['a', 'b'])"),
    ("grade_many([{'verdict': 'pass', 'findings': [], 'judge_digest': 'x'}], r, 'offline')", "give the rows that were"),
    ("gs.hist(bins=3)", "write grades.plot()"),
    ("gs.groupby('topic')", "for a variable of the candidates, write grades.by('topic')"),
    ("gs.groupby('topic')", "write grades.to_pandas().groupby([*frame['topic']])['score'].mean()"),
    ("r.checks({'type': 'icontains', 'value': 'day'})", "write rubric.checks(Contains('day', ignore_case=True))"),
    ("r.checks({'starts-with': 'day'})", "rubric.checks(StartsWith('day'))"),
    ("g >= 0.7", "Grade is no number; compare its .score"),
    (
        "Suite.from_csv('rows.csv')",
        "write grade_many('rows.csv', rubric, judge); for cases, write Suite('reply', [Case(",
    ),
    ("Labels.from_pandas(marks['verdict'])", "a column is Labels(dict(enumerate(column)), by='index')"),
    ("grade('x', 'safety', 'offline')", "presets.safety; or, for this word, write Rubric.of('safety')"),
    ("Rubric('r', ['base.yaml'])", "load the file: load('base.yaml'); or, to ask by this text"),
    ("Limits(max_retries=3)", "write Judge('openai/gpt-5', retries=3)"),
    ("Judge('judge.py')", "is a file, or a function in one; a judge is the name of a model"),
    ("Judge('judge.py:strict')", "is a file, or a function in one; a judge is the name of a model"),
    ("Judge('tests.examples:examples')", "is a file, or a function in one; a judge is the name of a model"),
    ("Judge('m', headers={'Cookie': 'abc'})", "write Judge('m', params={'extra_headers': {'Cookie': '...'}})"),
    ("r.rename('other')", "for the id of a criterion, write rubric.revising('polite', id='kind')"),
    ("r.to_json('r.json')", "for a file, write rubric.save('r.json')"),
    ("Matches('Ticket', ignore_case=True)", "Matches('(?i)Ticket')"),
    ("Matches('Ticket', re.IGNORECASE)", "Matches('(?i)Ticket')"),
    ("Cascade(['offline', 'm'], min_confidence=0.8)", "such as Cascade('offline', 'm', when='borderline')"),
    ("call('a').times(1)", "such as call('a').at_least(2) & call('a').at_most(2)"),
    ("Case('Where is it?')", "write Case('one', rubric, input='Where is it?')"),
    ("rank({'a': 'x', 'b': 'y'}, rubric=r, judge='offline')", "by their names, write rank([Candidate(text, key=name)"),
    ("Budget(dollars=5, requests=100)", "Write Budget(cost=5, calls=100)"),
    ("compare('Hello there', 'Hi you')", "prefer('Hello there', 'Hi you', rubric, 'openai/gpt-5')"),
    ("gs.filter('passed')", "such as lambda g: g.passed"),
    ("gs.plot('score')", "alone, write grades.plot()"),
    ("Suite('s', [Case('a', r, output='x')]).run('offline', model='m')", "for what answers, such as suite.run(judge,"),
    ("Rubric.from_yaml('r.yaml')", "write load('r.yaml')"),
    ("Contains(['ticket #', 'day'])", "write ContainsAll(['ticket #', 'day']); for one of them, write ContainsAny(["),
    # judges
    ("Panel({'a': 'offline', 'b': 'x'})", "for the same judges, write Panel('offline', 'x')"),
    ("grade('x', r, {'model': 'm', 'temperature': 0})", "Judge(**{'model': 'm', 'temperature': 0})"),
    ("grade('x', r, {'a': 'm', 'b': 'n'})", "a judge judges every criterion"),
    ("grade('x', r, Client(), model='m')", "import model; grade('x', rubric, model(client, 'm'))"),
    ("grade_many(['x'], r, model='m', judge=Client())", "import model; grade_many(['x'], rubric, model(judge, 'm'))"),
    ("grade('x', r, client=Client(), model='m')", "import model; grade('x', rubric, model(client, 'm'))"),
    ("Judge(Client(), 'm')", "write rubric.model(client, 'm')"),
    ("evaluate(dataset=['a'], rubric=r, judge='offline')", "many candidates are for another call"),
    ("Run([{'role': 'user', 'content': 'a'}])", "write from rubric.runs import read; read(messages)"),
    # a word for one option as the value of another
    ("Criterion('a', type='gate')", "write required=True"),
    ("Criterion('a', kind='negative')", "write polarity='guard'"),
    ("Contains('a', negate=True)", "write rubric.checks(Contains('a'), polarity='guard')"),
    ("r.checks(Contains('a'), negate=True)", "write rubric.checks(Contains('a'), polarity='guard')"),
    ("Jury(['a', 'b'], vote='majority')", "write Panel(['a', 'b'], aggregate='majority')"),
    ("Judge('m', temp=0)", "Write Judge('m', temperature=0)"),
    ("Judge('m', n_retry_attempts=2)", "Write Judge('m', retries=2)"),
    ("Rubric('x', ['a'], desc='b')", "write Rubric('x', ['a'], guidelines='b')"),
    ("gs.filter(passed=False)", "write grades.filter(lambda g: g.passed == False)"),
    ("compare(gs, gs, metric='score')", "leave it out; write compare(new, old)"),
    ("agreement(gs, marked, criterion='polite')", "write agreement(grades, labels)['polite']"),
    ("grade_many(['x'], r, 'offline').results", "grade_many(...).collect().results"),
    ("g.model_dump_json()", "write import json; json.dumps(grade.to_dict())"),
    ("g[0].verdict", "grade.contributions.get(finding.id) == 1"),
    ("rubric.WordCount", "len(c.output.split()) <= 100"),
    ("ask('q').yes(1).otherwise(0)", "write ask('q').yes(1.0).no(0.0)"),
    ("ask('q', if_true=1, if_false=0)", "write ask('q').yes(1).no(0)"),
    ("ask('q').yes('pass')", "a score from 0 to 1 (1.0 passes, 0.0 fails), got 'pass'"),
    # arguments in another order are told the one in which each is taken
    ("r.decides(ask('q').yes(1).no(0), 'a')", "write rubric.decides('a', decision_tree)"),
    ("Jury(3, 'offline')", "write Jury('offline', 3)"),
    ("Rubric(['a'], 'b')", "write Rubric('b', ['a'])"),
    ("ScoreRange(5, 1)", "write ScoreRange(1, 5)"),
    ("r.rates(1, 5, 'Is clear')", "write rubric.rates('Is clear', 1, 5)"),
    ("r.chooses({'x': 0, 'y': 1}, 'a')", "write rubric.chooses('a', {'x': 0, 'y': 1})"),
    ("r.checks('a', Contains('#'))", "write rubric.checks(Contains('#'), 'a')"),
    ("Case(r, 'one')", "write Case('one', rubric)"),
    (
        "rubric.compare_runs",
        "the new run comes first; write from rubric.trust import compare; compare(grades, earlier)",
    ),
    # both ends of a scale are those that were typed, and what has one place is put there
    ("r.scores('a', min=0, max=10)", "write rubric.rates('a', 0, 10)"),
    ("Criterion('a', low=2, high=7)", "write Criterion('a', levels=(2, 7))"),
    ("r.expects('a', 2)", "write rubric.expects('a', weight=2)"),
    ("r.rates('a', 1, 5, labels=['x', 'y'])", "such as rubric.rates('a', {1: 'unclear', 5: 'clear'})"),
    ("r.checks(contains='x')", "write rubric.checks(Contains('x'))"),
    ("gs.sort(key='score')", "Write grades.sort('score')"),
    ("compare(baseline=gs, candidate=gs)", "baseline: compare() has no such option; did you mean 'old'?"),
    (
        "grade_many(rows, r, 'offline', columns={'answer': 'output', 'question': 'input'})",
        "columns={'output': 'answer', 'input': 'question'}",
    ),
    ("g.weight", "grade.rubric.weights"),
    ("gs.by_criterion", "{c.id: c.mean for c in grades.summary()}"),
    ("Suite('s', tests=[Case('one', r)])", "did you mean 'cases'?"),
    ("Judge('m', chain_of_thought=True)", "write Judge('m', reasoning='before')"),
    # two options that no table has a line for, and the words of runs and rules
    ("Store.stats", "write from rubric.store import stats; stats('replies.db')"),
    ("Message('human', 'a')", "a run has the role 'user', got 'human'; write role='user'"),
    ("Calls('a', times=2)", "write Rubric('run').checks(call('a').at_least(2))"),
    ("Calls(['a', 'b'])", "such as Rubric('run').checks(Calls('find')).checks(Calls('answer'))"),
    ("said('user', contains='x')", "Write said('user', matches='x')"),
    ("DecisionTree('q', {'yes': 1, 'no': 0})", "write DecisionTree('q', **{'yes': 1, 'no': 0})"),
    ("dumps(r, 'json')", "write dumps(rubric, format='json')"),
    ("Budget(max_tokens=5)", "Write Budget(tokens=5)"),
    ("rubric.LengthCheck", "len(c.output) <= 500"),
    # what is typed is added to the call, and not to a method of what the call returns
    ("Suite('s', [Case('one', r)]).run('offline', output='a.html')", "such as suite.run(judge).write('a.html')"),
    ("Suite('s', [Case('one', r)]).run('offline', cases='one')", "such as suite.only('one').run(judge)"),
    ("Cascade(['offline', 'x'])", "write Cascade('offline', 'x', when='borderline')"),
    ("Panel(['a', 'b'], tie='fail')", "did you mean 'tie_break'?"),
    # of many names, the nearest come first
    ("r.penalise_if", "write rubric.penalizes('...', points=1)"),
    ("r.degeneracy_of", "it has degenerate, "),
    ("grade('x', criteria=['a'], judge='offline')", "Write grade('x', rubric=Rubric('reply', ['a']), judge='offline')"),
    ("grade('x', r, 'offline', min_pass=True)", "threshold: expected a finite number from 0 to 1, got True"),
    ("Criterion('a', when={1: 'a'})", "When(contains=...)"),
    # what asks for nothing is left out, and the line has the rest; what wraps the call stays around it
    ("grade('x', r, 'offline', cache=False)", "leave it out; write grade('x', rubric, 'offline')"),
    ("grade_many(['x'], r, 'offline', embeddings=None)", "leave it out; write grade_many(['x'], rubric, 'offline')"),
    ("grade('x', r, 'offline', raise_on_error=True)", "leave it out; write grade('x', rubric, 'offline')"),
    ("Budget(tokens='1M', per_day=True)", "leave it out; tokens: expected"),
    ("Budget(tokens=5, per_day=True)", "leave it out; write Budget(tokens=5)"),
    (
        "grade_many(['x'], r, 'offline', return_df=True, max_workers=3)",
        "Write grade_many(['x'], rubric, 'offline', concurrency=3).collect().to_pandas()",
    ),
    (
        "Rubric('x', metrics=['a'], model='m')",
        "without 'model', write Rubric('x', criteria=['a']); model: a rubric has no judge",
    ),
    (
        "grade('x', r, ['a', 'b'], aggregation='median')",
        "write grade('x', rubric, Panel(['a', 'b'], aggregate='median'))",
    ),
    ("grade('x', r, ['a', 'b'], n=3)", "write grade('x', rubric, [Jury('a', 3), Jury('b', 3)])"),
    # an argument of another name is known by the kind of its value
    (
        "rubric.trust.agreement(results=gs, labels=rubric.trust.Labels({0: True}))",
        "agreement(grades=grades, others=labels)",
    ),
    # a value is answered with the one that was meant, also within a list; where none was, with one that works
    ("grade_many(['x'], r, 'offline', concurrency=4.0)", "write concurrency=4"),
    ("grade_many(['x'], r, 'offline', concurrency='max')", "without it as many run as fit: leave it out"),
    ("Judge('m', temperature='low')", "such as temperature=0"),
    ("r.chooses('a', {'x': '0%', 'y': '100%'})", "write rubric.chooses('a', {'x': 0, 'y': 1})"),
    ("r.rates('a', '1-5')", "write rubric.rates('a', (1, 5))"),
    ("r.without(['polite'])", "write rubric.without('polite')"),
    ("Panel(['a', 'b'], weights='2,1')", "write weights=[2, 1]"),
    ("Panel('a', 3)", "write Jury('a', 3)"),
    ("Candidate('x', variables=['a'])", "such as variables={'topic': 'refunds'}"),
    ("Rubric('x', [{'text': 'a', 'weight': '50%'}, 'b'])", "write criteria=[{'text': 'a', 'weight': 0.5}, 'b']"),
    ("Budget(cost='$5')", "write cost=5"),
    ("Limits(rpm='60/min')", "write rpm=60"),
    ("Jury('offline', 3, 'majority')", "write consensus=0.5"),
    ("r.chooses('a', [('x', 0), ('y', 1)])", "write rubric.chooses('a', {'x': 0, 'y': 1})"),
    ("Criterion('a', tags='tone')", "write tags=['tone']"),
    ("Criterion('a', tags={'tone'})", "write tags=['tone']"),
    ("Criterion('a', required=1)", "write required=True"),
    ("Criterion('a', min=1, max=5)", "write Criterion('a', levels=(1, 5))"),
    (
        "Criterion('a', max_score=5)",
        "for what it counts, write Criterion('a', weight=5); for a scale of whole numbers, write Criterion('a', levels=(0, 5))",
    ),
    ("Criterion(lambda text: True)", "write rubric.checks(lambda candidate: 'refund' in candidate.output)"),
    ("Candidate('x', reference=None)", "what is absent is left out, or empty; write reference=''"),
    ("grade('x', r, 'offline', context=None)", "what is absent is left out, or empty; write context=''"),
    ("Candidate('x', images=['both.png'])", "base64.b64encode(Path('picture.png').read_bytes()).decode()]"),
    ("Rubric('x', {'a': {'text': 'b'}})", "write [{'id': 'a', 'text': 'b'}]"),
    (
        "Rubric('x', {'a': 'Is a', 'b': {'text': 'Is b', 'weight': 2}, 'Is c': 3})",
        "write [{'id': 'a', 'text': 'Is a'}, {'id': 'b', 'text': 'Is b', 'weight': 2}, {'text': 'Is c', 'weight': 3}]",
    ),
    (
        "Rubric('x').chooses('Which tone?', options=['cold', 'fair', 'warm'], scores=[0, 0.6, 1])",
        "write rubric.chooses('Which tone?', {'cold': 0, 'fair': 0.6, 'warm': 1})",
    ),
    ("Criterion('Is rude', kind='forbids')", "write polarity='guard'"),
    ("Criterion('Is polite', kind='requires')", "write required=True"),
    ("Choices(['cold', 'fair', 'warm'], [0, 0.6, 1])", "write Choices({'cold': 0, 'fair': 0.6, 'warm': 1})"),
    ("Criterion('Tone', choices=['a', 'b'], scores=[0, 1])", "write Criterion('Tone', choices={'a': 0, 'b': 1})"),
    ("Rubric('x', ['a'], scale='1-5')", "write scale=Likert()"),
    ("Limits(rpm=60.0)", "write rpm=60"),
    ("Judge('m', top_p=0.9, frequency_penalty=0.1)", "params={'top_p': 0.9, 'frequency_penalty': 0.1}"),
    ("Panel(['offline', 'offline'], voting='Majority')", "write Panel(['offline', 'offline'], aggregate='majority')"),
    ("Panel(models=['a', 'b'], method='median')", "Write Panel(judges=['a', 'b'], aggregate='median')"),
    ("gs.num_failed", "write len(grades.failed)"),
    ("gs.error_count", "write len(grades.ungraded)"),
    ("g.average_score", "grade.score"),
    (
        "grade('x', r, 'offline', cache_config={}, run_config=None)",
        "leave it out; write grade('x', rubric, 'offline', store='replies.db')",
    ),
    ("Rubric('x', ['a'], scale=(1, 5))", "write scale=Likert()"),
    ("grade('x', r, 'offline', return_score=True)", "write print(grade('x', rubric, 'offline'))"),
    ("grade('x', r, 'offline', budget=5)", "write budget=Budget(cost=5)"),
    ("grade('x', r, 'offline', concurrency='4')", "take the quotes off: 4"),
    ("grade('x', {'a': 2}, 'offline')", "give Rubric('reply', [{'text': 'a', 'weight': 2}])"),
    ("grade('x', Contains('a'), 'offline')", "give Rubric('reply').checks(Contains('a'))"),
    ("grade_many({'rows': [{'output': 'x'}]}, r, 'offline')", "[row for rows in candidates.values() for row in rows]"),
    ("Rubric('r', ['a'], passing_threshold=0.8)", "Rubric('r', ['a'], threshold=0.8)"),
    ("Rubric('r', ['a'], judge_model='m')", "a rubric has no judge"),
    ("r.expects('a', levels=5)", "rubric.rates('a', 1, 5)"),
    ("r.forbids('a', penalty=0.5)", "rubric.penalizes('a', points=0.5)"),
    ("r.rates('a', min_value=1, max_value=5)", "rubric.rates('a', (1, 5))"),
    ("r.expects('a', on='each turn')", "rubric.adding(Criterion('a', on='each turn'))"),
    ("r.checks('contains: x')", "rubric.checks(Contains('x'))"),
    ("r.passing_at(4, out_of=5)", "4 on a scale from 1 to 5 is 0.75, and 4 of 5 points are 0.8"),
    ("Criterion('a', required='yes')", "write required=True"),
    ("Judge(['a', 'b'])", "Panel(['a', 'b'])"),
    ("Judge({'model': 'm'})", "Judge(**{'model': 'm'})"),
    ("Jury('offline', '3')", "take the quotes off: 3"),
    ("gs.get('k')", "grades.filter(lambda g: g.key == 'q1')"),
    ("rubric.trust.Labels.from_csv('x.csv')", "Labels.read('labels.csv', columns="),
    (
        "grade('x', r, 'offline', system_prompt='Be strict')",
        "write grade('x', rubric.guided_by('Be strict'), 'offline')",
    ),
    ("grade_many(['x'], r, 'offline', tags=['a'])", "variables={'topic': 'refunds'}"),
    ("Budget(5)", "Budget(cost=5)"),
    ("type(g).from_dict({})", "write Grade.from_dict("),
    ("Suite('x', [], rubric=r)", "write Suite('x', [Case(f'{n}', rubric, **row) for n, row in enumerate(rows)])"),
    ("call('a').before('b')", "call('refund').needs(call('a'))"),
    ("call('a').before(said('assistant'))", "call('a').at_least(1).after(said('user')).until(said('user'))"),
    ("Criterion('a', levels={1: 'b', 5: 'c'}, range=(1, 5))", "write Criterion('a', levels={1: 'b', 5: 'c'})"),
    ("Judge('openai/gpt-5', reasoning='low')", "params={'reasoning_effort': 'low'}"),
    ("grade(('q', 'a'), r, 'offline')", "grade(Candidate(answer, input=question), rubric, judge)"),
    ("grade('x', Criterion('a'), 'offline')", "Rubric('reply', [criterion])"),
    ("Rubric('x', [('a', 2)])", "write criteria=[{'text': 'a', 'weight': 2}]"),
    ("Criterion('a', levels=['bad', 'good'])", "write {0: 'bad', 1: 'good'} if the last"),
    ("Limits(60)", "Limits(rpm=60)"),
    ("Rubric('r', ['a'], aggregation='mean')", "did you mean 'weighted_average'?"),
    ("Criterion('a', score=(1, 5))", "Criterion('a', levels=(1, 5))"),
    ("Judge('m', reasoning_effort='low')", "params={'reasoning_effort': 'low'}"),
    ("Judge('m', endpoint='http://x')", "Judge('m', via='http://x')"),
    ("g.polite", "write result['polite']"),
    ("g.score_reason", "grade['id'].reason"),
    ("g.metadata", "result.candidate.variables"),
    ("gs.drop_duplicates()", "grades.to_pandas()"),
    ("compare(gs, gs).p_value", "difference['pass rate'].p"),
    (
        "compare(gs, gs).winner",
        "write [(c.id, 'new' if c.difference > 0 else 'old') for c in difference if c.is_shown]",
    ),
    ("compare(gs, gs, alpha=0.1)", "every interval is of 95 %"),
    ("grade_many(['a'], r, 'offline', callbacks=[])", "for result in grade_many("),
    ("said('bot')", "said('assistant')"),
    ("r.grade('x', 'offline')", "grade(candidate, rubric, judge)"),
    ("r.expects('a', weigth=2)", "rubric.expects('a', weight=2)"),
    ("r.expects('a', name='x')", "rubric.expects('a', id='x')"),
    (
        "r.chooses('a', 'x', 'y')",
        "write rubric.chooses('a', dict.fromkeys(['x', 'y'], 0) | {'x': 1}); for other scores",
    ),
    ("r.chooses('a', ['x', 'y'])", "write {'x': 1.0, 'y': 0.0} if the first is the best"),
    ("Criterion('a', choices=['x', 'y', 'z'])", "{'x': 0.0, 'y': 0.5, 'z': 1.0} if the last is"),
    ("r.chooses('a', ['yes', 'no'])", "{'yes': 1.0, 'no': 0.0}"),
    ("r.rates('a', ['bad', 'good'])", "{0: 'good', 1: 'bad'} if the first is"),
    ("r.rates('a', 5)", "rates('Is clear', 1, 5)"),
    ("r.checks('Mentions the price of the ticket')", "rubric.expects('Mentions the price of the ticket')"),
    ("r.checks(['a', 'b'])", "ContainsAll(['a', 'b'])"),
    ("r.decides(ask('q').yes(1))", ".yes(...)"),
    ("rank(['a', 'b'], r, 'offline', top_k=2)", "rubric, 'offline').strengths[:2]"),
    ("rank(['a', 'b'], r, 'offline', n_jobs=2)", "Write rank(['a', 'b'], rubric, 'offline', concurrency=2)"),
    ("gs.plot(kind='hist')", "grades.plot()"),
    (
        "Suite('s', [Case('c', r, input='x')]).run('openai/gpt-5', judge='offline')",
        "write suite.run(judge='offline', target='openai/gpt-5')",
    ),
    ("call('refund').preceded_by('x')", "such as call('refund').needs('verify')"),
    ("call('refund').requires('x')", "such as call('refund').needs('verify', same='order')"),
    ("grade('x', r.scores('a'), lambda m: '7').score", """such as {"score": 1}"""),
    (
        "Rubric.from_dict({'criteria': [{'text': 'a', 'weight': float('nan')}]})",
        "criteria[0].weight: expected a finite",
    ),
    ("Cascade(['offline', 'offline'], min_confidence=0.8)", "min_confidence: the second judge is asked where"),
    ("Jury(['offline', 'x'], weights=[1, 2])", "write Panel(['offline', 'x'], aggregate='majority', weights=[1, 2])"),
    (
        "Judge(['offline', 'x'], temperature=0)",
        "such as Panel(['offline', 'x']); temperature: Panel() has no such option",
    ),
    ("gs.filter(verdict='failed')", "grades.filter(lambda g: g.verdict == 'fail')"),
    ("gs.to_pandas(level='criterion')", "f.id, g.contributions.get(f.id)) for g in grades for f in g])"),
    ("r.add(r)", "for another rubric as one, write rubric = rubric.includes(other)"),
    ("r.rates('x', rubric_levels={0: 'a', 5: 'b'})", "Write rubric.rates('x', {0: 'a', 5: 'b'})"),
    (r"r.checks('ticket #\\d+')", "if it is a pattern, give Matches("),
    (
        "grade(' '.join('word' * 40), r, type('Client', (), {'__module__': 'a'})(), model='gpt-5')",
        "grade(candidate, rubric, model(client, 'gpt-5'))",
    ),
    ("lint(r).errors", "remarks.of('error')"),
    ("Criterion('a', rule=call('x').at_most(1))", "Write Criterion('a', check=call('x').at_most(1))"),
    ("r.chooses('a', cold=0, warm=1)", "write rubric.chooses('a', {'cold': 0, 'warm': 1})"),
    ("r.expects(r, weight=2)", "such as rubric.includes(other, weight=2)"),
    ("prefer(['a', 'b'], r, judge='offline')", "write prefer(a, b, rubric, judge='offline')"),
    (
        "grade_many(['a'], r, 'offline', index=['x'])",
        "'key': k} for o, k in zip(candidates, index)], rubric, 'offline')",
    ),
    ("r.chooses('a', {'warm': 'kind'}, scores={'warm': 1})", "Choice('cold', 0, text='curt')]))"),
    ("r.passing_at(80)", "got 80; 80% is 0.8"),
    ("r.passing_at(3)", "3 on a scale from 1 to 5 is 0.5, and 3 of 5 points are 0.6"),
    (
        "r.expects('Is polite', 'Is short', weight=2)",
        "rubric.expects('Is polite', weight=2).expects('Is short', weight=2)",
    ),
    ("r.expects('a', 'b')", "write rubric.expects('a', id='b'), or rubric.expects('a').expects('b')"),
    ("r.checks([Contains('a'), Contains('b')])", "write rubric.checks(Contains('a')).checks(Contains('b'))"),
    ("r.checks(Contains('a'), Matches('b+'))", "write rubric.checks(Contains('a')).checks(Matches('b+'))"),
    ("Choice('a', 90)", "90% is score=0.9"),
    ("Anchor('t', 90)", "90% is score=0.9"),
    ("Suite('s', [Case('c', r, output='x')]).run('offline', targets='x')", "did you mean 'target'"),
    (
        "Suite('s', [Case('c', r, input='x')]).run(provider='openai/gpt-5', budget=2)",
        "write suite.run(judge, target='openai/gpt-5', budget=Budget(cost=2))",
    ),
    (
        "Suite('s', [Case('c', r, input='x')]).run(judge='offline', provider='openai/gpt-5')",
        "write suite.run(judge='offline', target='openai/gpt-5')",
    ),
    ("r.without(0)", "the id of a criterion"),
    ("grade(r, 'x', 'offline')", "the candidate comes first, then the rubric, then the judge"),
    ("grade(['x', 'y'], r, 'offline')", "grade_many(candidates, rubric, judge)"),
    ("grade('x')", "grade('x', rubric, judge)"),
    ("grade('x', r, 'offline', threshold=0.5)", "rubric.passing_at(0.5)"),
    ("grade('x', r, 'offline', expected='y')", "grade('x', rubric, 'offline', reference='y')"),
    ("grade({'output': 'x', 'question': 'y'}, r, 'offline')", "'input': row['question']"),
    ("grade(Candidate('x'), r, 'offline', input='y')", "Candidate(..., input=...)"),
    ("grade('x', r, 'offlin')", "did you mean 'offline'"),
    ("grade_many(['a'], r, 'offline', max_workers=4)", "concurrency=4"),
    ("grade_many(['a'], r, 'offline', input='x')", "[{'output': each, 'input': 'x'} for each in candidates]"),
    ("len(grade_many(df, r, 'offline'))", "len(grade_many(...).collect())"),
    ("grade_many(df, r, 'offline')[0]", "grade_many(...).collect()[0]"),
    ("grade_many(df, r, 'offline').to_pandas()", "grade_many(...).collect().to_pandas()"),
    ("g.reasons", "{f.id: f.reason for f in grade}"),
    ("g.reasoning", "grade['id'].reason"),
    ("g.scores", "dict(grade.contributions)"),
    ("g.pass_", "grade.passed"),
    ("g.cost", "grade.usage.cost"),
    ("g.summary()", "grade.explain()"),
    ("g.threshold", "grade.rubric.threshold"),
    ("g.rescore(0.5)", "rescore(threshold=0.5)"),
    ("g['clarity'].passed", "grade.contributions.get(finding.id) == 1"),
    ("g['clarity'].weight", "grade.rubric[finding.id].weight"),
    ("g.usage.total_tokens", "usage.prompt_tokens + usage.completion_tokens"),
    ("gs.to_dataframe()", "grades.to_pandas()"),
    ("gs.to_html()", "grades.report('page.html')"),
    ("gs.accuracy", "grades.pass_rate"),
    ("gs.scores", "[g.score for g in grades]"),
    ("Grades.from_jsonl('x')", "Grades.read_jsonl("),
    ("Candidate('x', 'y')", "Candidate('x', input='y')"),
    ("Candidate('x', question='y')", "Candidate('x', input='y')"),
    ("Candidate('x').lower()", "candidate.output.lower()"),
    ("Judge('m', system_prompt='x')", "write grade(candidate, rubric.guided_by('x'), Judge('m'))"),
    ("Judge('m', max_retries=3)", "Judge('m', retries=3)"),
    ("Judge('m', top_p=1)", "params={'top_p': 1}"),
    ("Judge(lambda candidate, criterion: True)", "judge_function("),
    ("Jury('a', 'b')", "Panel('a', 'b')"),
    ("Panel('a')", "Panel('...', '...')"),
    ("Panel(['a', 'b'], aggregation='mean')", "Panel(['a', 'b'], aggregate='mean')"),
    ("Panel(['a', 'b'], voting='majority')", "aggregate='majority'"),
    ("Budget(max_cost=5)", "Budget(cost=5)"),
    ("Limits(requests_per_minute=5)", "rpm"),
    ("rubric.load_rubric", "rubric.load"),
    ("rubric.evaluate_many", "rubric.grade_many"),
    ("rubric.Metric", "Rubric('reply', ['Is correct', 'Is polite'])"),
    ("loads('rubric: x')", "write one"),
    ("dump(r, 'x.txt')", "name the file .yaml, .yml or .json"),
    ("Label('row-7', True, annotator='ann')", "Write Label('row-7', True, rater='ann')"),
    ("Candidate('x', key='row-7', question='y')", "Write Candidate('x', key='row-7', input='y')"),
    # several arguments for one, a class for its value, results of another tool
    (
        "Candidate('x', retrieved_contexts=['c1'], reference_contexts=['d1'])",
        "'context' is given already; leave 'reference_contexts' out; write Candidate('x', context=",
    ),
    ("Criterion('a', allowed_values=(0, 10))", "write Criterion('a', levels=(0, 10))"),
    ("Criterion('a', allowed_values={'no': 0, 'yes': 1})", "Write Criterion('a', choices={'no': 0, 'yes': 1})"),
    ("r.checks(IsJSON)", "a class is not yet a value; write rubric.checks(IsJSON())"),
    ("r.checks(Contains)", "write rubric.checks(Contains('ticket #'))"),
    ("FitsSchema(Client)", "write FitsSchema(Client.model_json_schema())"),
    ("IsJSON(schema={'type': 'array'})", "write FitsSchema({'type': 'array'})"),
    ("Matches(re.compile('x', re.I))", "write pattern='(?i)x'"),
    ("r.checks(state('status') == 'done')", "such as state('status', 'done').at_end()"),
    ("Jury(judges=['a', 'b'], strategy='majority')", "write Panel(['a', 'b'], aggregate='majority')"),
    (
        "Panel(['a', 'b'], min_agree=2)",
        "such as Panel([judge, judge], aggregate='majority', level='rubric', consensus=0.5)",
    ),
    ("Panel({'a': 2, 'b': 1})", "write Panel(['a', 'b'], weights=[2, 1])"),
    ("Store('x.db', readonly=True)", "write Store('x.db', mode='replay')"),
    ("Choices(good=1, bad=0)", "write Choices({'good': 1, 'bad': 0})"),
    ("Likert(5)", "write Likert(1, 5)"),
    ("Likert(1, 5, labels=['bad', 'good'])", "words for scores are levels of a criterion"),
    ("ScoreRange((0, 5), description='x')", "write ScoreRange(0, 5, text='x')"),
    ("Unit(0, 10)", "write Levels(ScoreRange(0, 10))"),
    ("YesNo(yes=1, no=0)", "yes counts 1 and no 0"),
    ("Anchor('a', score=5)", "5 on a scale from 1 to 5 is score=1"),
    ("When(is_short)", "write When(holds=is_short)"),
    ("When('refund')", "write When(contains='refund')"),
    ("When(holds=is_short) & When(contains='a')", "When(holds=is_short).holds_for(candidate) and When(contains='a')"),
    ("(Contains('a') | Contains('b')) & ~Contains('c')", "Contains('a') | Contains('b') is one check; write"),
    ("Contains('a') & ~Contains('c')", "for ~Contains('c'), write rubric.checks(Contains('c'), polarity='guard')"),
    ("Calls('search', args={'q': 1})", "Write Calls('search', arguments={'q': 1})"),
    ("Calls('search', times=2)", "write Rubric('run').checks(call('search').at_least(2)); for no more,"),
    ("Trajectory(['a'], mode='exact')", "Write Trajectory(['a'], order='exact')"),
    ("Holds(is_short, name='short')", "write rubric.checks(Holds(is_short), id='short')"),
    ("judge_function(is_short, name='x', threshold=0.5)", "the rubric has it"),
    ("ToolCall(function={'name': 'a', 'arguments': '{}'})", "from rubric.runs import read; read(messages)"),
    ("load({'criteria': ['a']})", "write Rubric.from_dict({'criteria': ['a']})"),
    ("load_suite('s.yaml', provider='openai/x')", "write load_suite('s.yaml').run(judge, target='openai/x')"),
    (
        "prefer_many(['a', 'b'], ['c', 'd'], r, 'offline')",
        "prefer_many([*zip(['a', 'b'], ['c', 'd'])], rubric, 'offline')",
    ),
    ("diff(gs, gs)", "write from rubric.trust import compare; compare(new, old)"),
    ("influence(r, gs)", "it is computed from the rubric alone"),
    ("grade('x', None, 'offline')", "give Rubric('reply', ['Is polite'])"),
    ("rubric.JudgeTimeout", "use rubric.ModelError"),
    ("g.metrics_data", "write grade.findings"),
    ("r.evaluate_strings(prediction='x')", "write from rubric import grade; grade(candidate, rubric, judge)"),
    ("r.compute(predictions=[])", "grade_many(candidates, rubric, judge)"),
    ("g['clarity'].passed", "for a gate, write finding.id not in grade.gates"),
    (
        "grade_many(['x1x1'], metrics=['faithfulness'], llm='offline')",
        "rubric=Rubric('reply', ['States nothing that the context does not support'])",
    ),
    (
        "grade('x', r, 'offline', cache=True, cache_dir='.c')",
        "such as grade('x', rubric, 'offline', store='replies.db')",
    ),
    ("evaluate(test_cases=[Case('a', r)], rubric=r)", "cases are a suite's"),
    ("evaluate(is_short, r, 'offline')", "a function that answers is the target of a suite"),
    ("Case('a', r, evaluators=[r])", "write Case('a', rubric)"),
    ("Judge('m', include_input=True)", "leave it out; write Judge('m')"),
    ("r.passing_at(best.best)", "write rubric.passing_at(thresholds.best().threshold)"),
    ("r.passing_at('high')", "got 'high'; such as rubric.passing_at(0.8)"),
    ("rubric.evaluate_rubric", "use rubric.grade"),
    ("Judge.from_config({})", "write Judge(**data)"),
    ("type(g).from_json('{}')", "write Grades.read_jsonl("),
    ("rubric.ask('Is it?').if_yes(1)", "write ask('Is it?').yes(1.0).no(0.0)"),
    ("state('x').equals(3)", "such as state('status', 'done').at_end()"),
    ("Panel('a', 'b', agg='mean')", "Write Panel('a', 'b', aggregate='mean')"),
    ("r.checks(max_length=500)", "write rubric.checks(lambda candidate: len(candidate.output) <= 500)"),
    ("r.checks('len(output) < 500')", "if code, a function"),
    ("r.checks('output.isdigit()')", "if code, a function"),
    ("lint(r, rules=['weights'])", "such as print(lint(rubric))"),
    (
        "rubric.check(r, 'offline', examples=[('a', True)])",
        "such as check(rubric.tested_by('a good reply', passes=True)",
    ),
    ("rubric.prefer('a', 'b', r, 'offline', n=3)", "write prefer('a', 'b', rubric, Jury('offline', 3))"),
    ("Levels(low=1, high=7)", "write Levels(ScoreRange(1, 7))"),
    ("rubric.plan('x', r, 'offline', max_cost=5)", "caps nothing; leave it out"),
    ("judge_function(model='a/b')", "write Judge('a/b')"),
    ('FitsSchema(\'{"type": "object"}\')', 'write import json; FitsSchema(json.loads(\'{"type": "object"}\'))'),
    ("FitsSchema(type='object', properties={})", "write FitsSchema({'type': 'object', 'properties': {}})"),
    ("Candidate('x', tools_called=['search'])", "write tool_calls=[ToolCall('search')]"),
    ("Message('user', [{'type': 'text', 'text': 'x'}])", "from rubric.runs import read; read(messages)"),
    ("grade_many(['a'], r, 'offline', workers='auto')", "leave it out"),
    ("Store('x.db', mode='ro')", "write mode='replay'"),
    ("lint({'criteria': ['x']})", "write lint(Rubric.from_dict({'criteria': ['x']}))"),
    ("r.includes([r, r])", "such as rubric.includes(first).includes(second)"),
    ("rubric.model('a/b', temperature=0)", "write Judge('a/b', temperature=0)"),
    ("g.explain('polite')", "write grade['polite'].reason"),
    ("call('search', query='refund')", "write call('search', arguments={'query': 'refund'})"),
    ("grade('x', r, Judge)", "write Judge('openai/gpt-5', temperature=0)"),
    ("grade('x', r, 'offline', run_name='a')", "leave it out; write grade('x', rubric, 'offline')"),
    ("grade('x', r, 'offline', num_judges=3)", "write grade('x', rubric, Jury('offline', 3))"),
    ("rubric.plan('x', r, 'offline').estimated_cost", "did you mean .cost?"),
    ("r.with_judge('offline')", "grade(candidate, rubric, judge)"),
    ("Criterion('a', 2)", "write Criterion('a', weight=2)"),
    ("Criterion('a', options=['good', 'bad'], correct='good')", "write Criterion('a', choices={'good': 1, 'bad': 0})"),
    ("ToolCall('find', {'q': 1}, 'done')", "write ToolCall('find', arguments={'q': 1}, result='done')"),
    ("Message({'role': 'user', 'content': 'x'})", "write Message(**{'role': 'user', 'content': 'x'})"),
    ("r.decides('Is it?', yes=1, no=0)", "write rubric.decides(ask('Is it?').yes(1).no(0))"),
    ("Contains('refund', regex=True)", "write Matches('refund')"),
    ("gs.to_csv('x.csv', sep=';')", "write grades.to_pandas().to_csv('x.csv', sep=';')"),
    ("grade('x', r, rated)", "write lambda messages: {'score': rated('\\n\\n'.join(m['content'] for m in messages))}"),
    ("rubric.trust.cohen_kappa_score", "agreement(grades, labels).overall['kappa'].value"),
    ("agreement(gs, marked).weighted_kappa", "write print(agreement.detailed)"),
    ("agreement(gs, marked, weights='quadratic')", "weighted kappas are among the figures of a criterion with a scale"),
    ("agreement(gs, marked, metric='kappa')", "write agreement(grades, labels).overall['kappa'].value"),
    ("Candidate('x', questio='y')", "did you mean 'input'? Write Candidate('x', input='y')"),
    ("grade({'output': 'x', 'questio': 'y'}, r, 'offline')", "'input': row['questio']"),
    ("grade_many([{'output': 'x', 'quesiton': 'y'}], r, 'offline')", "'input': 'quesiton'"),
    ("Budget(max_requets=3)", "Write Budget(calls=3)"),
    ("Panel(['a', 'b'], aggregate='mdian')", "did you mean 'median'?"),
    ("Rubric('x', ['a'], aggregation='weightedmean')", "did you mean 'weighted_average'?"),
    ("Rubric('x', ['a'], aggregation='avarage')", "did you mean 'weighted_average'?"),
    ("Criterion('a', polarity='gaurd')", "did you mean 'guard'?"),
    ("Criterion('a', polarity='forbiden')", "did you mean 'guard'?"),
    ("r.expects('a', use_cot=True)", "leave it out; write rubric.expects('a')"),
    ("r.expects('a', evaluation_params=['input'])", "leave it out; write rubric.expects('a')"),
    ("Judge('offline', feedback_key='correctness')", "such as attrs.evolve(rubric, name='helpful')"),
    ("marked.values", "such as [row.value for row in labels.rows]"),
    ("marked.to_dict()", "write {row.key: row.value for row in labels.rows}"),
    ("gs.verdict_counts()", "write {verdict: len(some) for verdict, some in grades.by('verdict').items()}"),
    *(
        (
            f"gs.{word}",
            "write from collections import Counter; Counter(g['clarity'].value for g in grades); of the verdicts",
        )
        for word in ("value_counts()", "distribution()", "tally")
    ),
    ("gs.result_df", "write grades.to_pandas()"),
    ("gs.loc['q1']", "write grades.filter(lambda g: g.key == 'q1')"),
    ("rubric.Grades.from_pandas(df)", "write grade_many(frame, rubric, judge, columns={'output': 'text'}).collect()"),
    ("gs['score'] < 0.5", "write [g.score for g in grades]; a condition is a function, such as grades.filter("),
    ("gs['pass_rate']", "write grades.pass_rate"),
    ("gs['scores']", "write [g.score for g in grades]"),
    ("g.score_for('polite')", "write grade['id'].score"),
    ("grade_many(['a'], r, 'offline', store=True)", "write store='replies.db'"),
    (
        "grade_many(['a'], r, 'offline', store=True, resume=True)",
        "write grade_many(['a'], rubric, 'offline', store='replies.db')",
    ),
    ("Suite('x', [{'vars': {'q': 'a'}, 'assert': []}])", "such as load_suite('promptfooconfig.yaml')"),
    ("agreement(gs, marked).support", "write agreement.overall.n"),
    ("Budget(cost=5).remaining", "write budget.left.cost"),
    ("Limits(rpm=5).max_rpm", "it has "),
    ("g.choices", "write grade(candidate, rubric, judge, keep=True).exchanges"),
    ("g.invoke({})", "write grade.score"),
    ("gs.failed_ids", "write [g.key for g in grades.failed]"),
    ("gs.min()", "write min(g.score for g in grades if g.score is not None)"),
    ("gs.p90", "such as grades.to_pandas()['score'].quantile(0.9)"),
    ("gs.keys()", "write [g.key for g in grades]"),
    ("gs.outputs", "write [g.candidate.output for g in grades]"),
    ("g['polite'].confidence", "a judge is asked for no confidence; what each of several said, write finding.votes"),
    (
        "r.criterion('polite')",
        "for one that it has, write rubric['id']; for one more, write rubric = rubric.expects('...')",
    ),
    ("r.guards", "write [c.id for c in rubric if c.polarity == 'guard']"),
    ("r.prompt_template", "for a template of its own, write rubric.prompt; for what is sent"),
    (
        "r.chooses('tone?', 'warm', 'cold')",
        "write rubric.chooses('tone?', dict.fromkeys(['warm', 'cold'], 0) | {'warm': 1})",
    ),
    ("r.penalizes('a', -5)", "write rubric.penalizes('a', points=abs(-5)).by_points()"),
    ("r.checks(not_contains='a')", "write rubric.checks(Contains('a'), polarity='guard')"),
    (
        "FitsSchema('a.json')",
        "write import json; from pathlib import Path; FitsSchema(json.loads(Path('a.json').read_text()))",
    ),
    ("grade('x', 'Is polite', 'Names a day', 'offline')", "Rubric('reply', ['Is polite', 'Names a day']), 'offline')"),
    (
        "grade('x', r, 'offline', metadata={'a': 1}, verbose=True)",
        "write print(grade(Candidate('x', variables={'a': 1}), rubric, 'offline'))",
    ),
    (
        "rubric.Panel('offline', 'offline', voting='majority')",
        "write Panel('offline', 'offline', aggregate='majority')",
    ),
    *((f"agreement(gs, marked).{word}", "write agreement.disagreements") for word in ("errors", "mistakes", "misses")),
    *((f"compare(gs, gs).{word}", "write difference.worse") for word in ("drops", "dropped", "regressions")),
    ("compare(gs, gs).broken", "write difference['pass rate'].worse"),
    *(
        (
            f"r.chooses('Which hold?', {{'rude': 1, 'spam': 0}}, {word})",
            "[Criterion('Which hold?' + f' Yes if {label} is one of them.', id=label) for label in ['rude', 'spam']])",
        )
        for word in ("many=True", "multiple=True", "multi_label=True", "max_choices=2", "id='labels', many=True")
    ),
    ("Criterion('Which hold?', choices=['rude', 'spam'], multiple=True)", "for label in ['rude', 'spam']])"),
    (
        "r.chooses('Which?', ['rude', 'spam'])",
        "weight=0 beside criteria that count, else {'rude': 1, 'spam': 1}, which all pass",
    ),
    ("agreement(gs, marked)[0].errors", "write criterion_agreement.disagreements"),
    ("agreement(gs, marked).disagreements.to_pandas", "pandas.DataFrame([attrs.asdict(one) for one in disagreements])"),
    ("agreement(gs, marked).p_value", "write agreement.overall['agreement'].interval"),
    ("agreement(gs, marked, by='topic')", "errors_by(grades, labels, by='topic')"),
    ("marked.merge(marked)", "write Labels([*labels.rows, *others.rows])"),
    ("marked.mean", "write sum(row.value for row in labels.rows) / len(labels)"),
]


@each_row(("typed", "cure"), SAYS, ids=[typed for typed, _ in SAYS])
def test_a_guess_that_cannot_work_is_told_the_call_that_does(typed: str, cure: str) -> None:
    """The error message contains the working call."""
    assert cure in said_by(typed)


def test_every_value_with_items_is_named_by_them() -> None:
    """A class whose items are taken by id is in the table, under the class of its items, and has such items."""
    held = {name: where for where, names in table()["holders"].items() for name in names.split()}
    for kind in Listed.__subclasses__():
        if field := attrs.fields_dict(kind).get(kind._items):  # type: ignore[arg-type]
            item = re.sub(r"tuple\[(\w+), \.\.\.\]", r"\1", str(field.type)).replace("Finding", "Scored")
            assert held[item].partition(":")[2] in {each.__name__ for each in (kind, *kind.__subclasses__())}


PUBLIC: dict[str, Any] = {
    name: kind
    for name, module in public_names().items()
    if isinstance(kind := getattr(import_module(module), name), type)
}
GUIDED = {name: kind for name, kind in PUBLIC.items() if issubclass(kind, Guided)}
"""The public classes that answer an attribute which they lack."""


def stand_in(kind: Any) -> Any:
    """Return a value of *kind* whose fields are texts or stand-ins, and whose items, if it has some, are one."""
    value: Any = object.__new__(kind)
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        object.__setattr__(value, field.name, stand_in(GUIDED[of]) if (of := str(field.type)) in GUIDED else "x")
    items = attrs.fields_dict(kind).get(kind._items) if issubclass(kind, Listed) else None
    if items is not None:
        name = re.sub(r"tuple\[(\w+), \.\.\.\]", r"\1", str(items.type)).replace("Finding", "Scored")
        ours = [vars(module) for called, module in sorted(sys.modules.items()) if called.startswith("rubric.")]
        item = next(names[name] for names in ours if isinstance(names.get(name), type))
        object.__setattr__(value, items.name, Unchanging([stand_in(item)]))
    return value


MISSPELT = sorted(
    (name, each.name)
    for name, module in public_names().items()
    if module not in ("rubric.embed", "rubric.driving", "rubric.programs") and name not in ("rubric_of", "places_by")
    if isinstance(it := getattr(import_module(module), name), FunctionType)
    or (isinstance(it, type) and hasattr(vars(it).get("__init__"), "__wrapped__"))
    for each in signature(it).parameters.values()
    if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD) and len(each.name) > 3
)
"""The parameters of all functions but those for embedders, and of the classes of which users make values."""


def answered(call: Any, **given: Any) -> Any:
    """Return what a *call* with what is *given* returns, also one that is awaited."""
    found = call(**given)
    return asyncio.run(found) if iscoroutine(found) else found


@each_row("owner", sorted({owner for owner, _ in MISSPELT}))
def test_a_misspelt_argument_is_told(owner: str) -> None:
    """Each public function, and each value that users make, proposes the argument that a slip of the finger meant."""
    call = getattr(import_module(public_names()[owner]), owner)
    for name in [name for of, name in MISSPELT if of == owner]:
        with pytest.raises((RubricError, TypeError)) as refused:
            answered(call, **{name[:2] + name[3:]: "x"})
        assert name in str(refused.value), str(refused.value)


@each_row("name", sorted(GUIDED))
def test_a_wrong_attribute_always_has_a_message(name: str) -> None:
    """Each public class that answers wrong attributes names the attribute, and has a cure, whatever its items are."""
    value = stand_in(GUIDED[name])
    for wrong in ("nosuch", "by_topic", "to_frame", "x_"):
        with pytest.raises(AttributeError) as refused:
            getattr(value, wrong)
        assert re.match(f".* object has no attribute '{wrong}'; .", str(refused.value)), str(refused.value)


@each_row("name", sorted(name for name, kind in PUBLIC.items() if issubclass(kind, Listed) and attrs.has(kind)))
def test_an_item_that_is_not_there_always_has_a_message(name: str) -> None:
    """Whatever the items are, a text that none has for an id is an error, of the value and of the tuple of its items."""
    value = stand_in(PUBLIC[name])
    if (items := getattr(value, PUBLIC[name]._items, None)) is not None:  # some are made of other fields
        with pytest.raises(TypeError, match="places here, and no ids" if isinstance(items, Unchanging) else "tuple"):
            items["nosuch"]
        with pytest.raises(KeyError, match=f"no {PUBLIC[name]._kind} 'nosuch' among 1"):
            value["nosuch"]


def test_a_rubric_is_saved_and_loaded_by_its_own_methods(tmp_path: Path) -> None:
    """`Rubric.save` and `Rubric.load` round-trip a rubric through YAML."""
    R.save(tmp_path / "r.yaml")
    assert Rubric.load(tmp_path / "r.yaml") == R


def test_data_with_problems_names_their_paths() -> None:
    """Plain data is called "data" where a file would have its name."""
    assert said_by("Rubric.from_dict({'criteria': [{'text': 'a', 'wieght': 2}]})").startswith(
        "data: criteria[0].wieght"
    )


def test_a_function_may_look_for_a_text_in_the_candidate() -> None:
    """`"text" in candidate` looks in the output."""
    checked = Rubric().checks(lambda candidate: "ticket" in candidate)
    assert grade("my ticket", checked, "offline").passed
    assert not grade("nothing", checked, "offline").passed


@pytest.mark.parametrize("key", ["sk-0123456789abcdef", "plainsecretword"])
def test_a_key_is_in_no_repr_and_in_no_message(key: str) -> None:
    """The judge keeps the key, and neither its `repr` nor any error shows it."""
    judge = Judge("openai/gpt-5", api_key=key)
    assert judge.params["api_key"] == key
    assert key not in repr(judge)
    for wrong in ({"apikey": key}, {"api_key": key, "temprature": 0}, {"api_key": key, "params": {"api_key": key}}):
        with pytest.raises(DefinitionError) as refused:
            Judge("openai/gpt-5", **wrong)
        assert key not in str(refused.value)


def test_unknown_attributes_are_unknown_to_python_as_well() -> None:
    """`hasattr`, default values, copies and pickles behave as for any object."""
    for value in (R, R[0], G, G[0], GS, Candidate("x"), Judge("offline"), G.usage):
        assert not hasattr(value, "surely_not_there")
        assert getattr(value, "surely_not_there", 5) == 5
        assert copy.copy(value) == value
        assert copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own
    assert not hasattr(Rubric, "surely_not_there")
    assert not hasattr(rubric, "surely_not_there")


def test_errors_of_guesses_can_be_pickled() -> None:
    """The message survives a pickle, as process pools need it."""
    lines = ["R.add", "Criterion('x', wieght=2)", "setattr(R, 'name', 'x')"]
    for line in lines:
        with pytest.raises((AttributeError, CallError)) as refused:
            eval(line)  # noqa: S307 - the lines above
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301 - our own


def test_an_operator_without_a_cure_is_left_to_the_other_value() -> None:
    """A value that takes one of ours on its left gets it; else the error is Python's own."""
    other: Any = type("Other", (), {"__ror__": lambda _, value: value, "__rand__": lambda _, value: value})()
    one: Any = G
    assert (one & other, GS | other) == (G, GS)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for &: 'Grade' and 'Grade'"):
        _ = one & one
    with pytest.raises(TypeError, match="bad operand type for unary ~: 'Grade'"):
        _ = ~one


def test_an_error_within_a_property_is_not_hidden() -> None:
    """The `AttributeError` inside a property is raised as it is."""

    class Broken(Rubric):
        @property
        def faulty(self) -> object:
            return [].missing  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="'list' object has no attribute 'missing'"):
        _ = Broken("x").faulty


@pytest.mark.parametrize("typed", ["grade('x', 'Is good', 'offline', temperature=3)", "grade('x', 3, 'offline')"])
def test_an_error_shows_one_frame_of_the_library(typed: str) -> None:
    """The traceback ends one frame below the caller's line, and names no other error."""
    with pytest.raises(RubricError) as caught:
        eval(typed, {"grade": grade})  # noqa: S307
    frames = [frame for frame in caught.traceback if "/rubric/" in str(frame.path).replace(str(ROOT), "")]
    assert len(frames) == 1
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_error_within_a_call_is_not_taken_for_a_guess() -> None:
    """A `TypeError` of the user's function keeps its message."""

    def faulty(_: Candidate) -> bool:
        raise TypeError("missing 1 required positional argument: 'x'")

    assert "missing 1 required" in said_by_grading(Rubric().checks(faulty))


def said_by_grading(rule: Rubric) -> str:
    with pytest.raises(rubric.UngradedError) as refused:
        grade("x", rule, "offline")
    return str(refused.value)


@pytest.mark.parametrize("kind", [Criterion, Judge, rubric.Panel], ids=lambda kind: kind.__name__)
def test_a_constructor_of_its_own_has_the_defaults_of_the_fields(kind: Any) -> None:
    """The signature written by hand agrees with the fields' defaults."""
    value = kind("x") if kind is not rubric.Panel else kind(["x"])
    for field in attrs.fields(kind)[1:]:
        if field.name != "id":
            default = field.converter(field.default) if field.converter else field.default
            assert getattr(value, field.name) == default


def test_documents_for_a_field_that_is_one_text_are_joined_in_the_line() -> None:
    """The printed line is run as it stands."""
    with pytest.raises(DefinitionError) as refused:
        grade("Hi", "Is polite", "offline", retrieval_context=["One.", "Two."])  # type: ignore[call-arg]
    line = str(refused.value).partition("Write ")[2]
    assert line == r"grade('Hi', 'Is polite', 'offline', context='\n\n'.join(['One.', 'Two.']))"
    assert eval(line, {"grade": grade}).candidate.context == "One.\n\nTwo."  # noqa: S307 - our own line


@each_row(
    "name",
    [
        "max_score for g in grades if [ascii('x')]) or max(g.score",
        "best_score for g in [ascii('x')]) or max(g.score",
        "cost + ascii('x')_avg",
    ],
)
def test_a_name_that_is_code_is_not_run(name: str) -> None:
    """A name may come from elsewhere, as in `getattr(grades, column)`: only words are looked up."""
    ran: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.ascii", ran.append)
        with pytest.raises(AttributeError) as refused:
            getattr(GS, name)
        assert "has no attribute" in str(refused.value)  # the message is composed when it is read
    assert not ran
