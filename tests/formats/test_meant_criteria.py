"""A criterion or a tree with mistakes is answered with the one that was meant, which is read and has all of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rubric import LoadError, grade, loads
from rubric.formats.document import plain
from rubric.formats.files import parse
from rubric.formats.yaml import on_a_line
from tests.rows import each_row

_TRUE = "\"Is this so: it contains 'c'?\""


def refusal_of(document: str) -> str:
    with pytest.raises(LoadError) as caught:
        loads(document)
    return str(caught.value)


def mappings_in(data: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(data, dict):
        yield data
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from mappings_in(each)


@each_row(
    ("typed", "meant"),
    [
        ("{polite: Is polite}", "{id: polite, text: Is polite}"),
        ("{id: a, criterion: Is polite, scale: 1-5}", "{id: a, text: Is polite, levels: 1..5}"),
        ("{text: a, range: {min: 1, max: 5}}", "{text: a, levels: 1..5}"),
        ("{text: a, type: score, min: 1, max: 5}", "{text: a, levels: 1..5}"),
        ("{text: a, levels: [1, 2, 3, 4, 5]}", "{text: a, levels: 1..5}"),
        ("{text: a, levels: {bad: 1, good: 5}}", "{text: a, levels: {1: bad, 5: good}}"),
        ("{text: a, anchors: {1: Rude, 5: Kind}}", "{text: a, levels: {1: Rude, 5: Kind}}"),
        ("{text: a, choices: [cold, warm], scores: [0, 1]}", "{text: a, choices: {cold: 0, warm: 1}}"),
        ("{text: a, options: [{name: cold, value: 0}, {name: b, value: 1}]}", "{text: a, choices: {cold: 0, b: 1}}"),
        ("{text: a, choices: [{cold: 0}, {warm: 1}]}", "{text: a, choices: {cold: 0, warm: 1}}"),
        ("{text: a, type: boolean}", "{text: a}"),
        ("{check: {call: lookup, before: refund}}", "{check: {run: {every: refund, needs: lookup}}}"),
        ("{text: a, check: {tool: refund, after: lookup}}", "{text: a, check: {run: {every: refund, needs: lookup}}}"),
        (
            "{text: a, rubric: [{score_range: [0, 3], outcome: b}]}",
            "{text: a, levels: [{score_range: [0, 3], text: b}]}",
        ),
        (
            "{text: a, scale: {min: 1, max: 5, anchors: {1: b, 5: c}}, pass_at: 4}",
            "{text: a, levels: {1: b, 5: c}, min_score: 0.75}",
        ),
        ("{check: {calls: [b, c], in_order: true}}", "{check: {trajectory: {tools: [b, c], order: in_order}}}"),
        ("{check: {never_calls: b}}", "{check: {calls: b}, polarity: guard}"),
        ("{text: a, points: -3}", "{text: a, polarity: penalty, weight: 3}, and in the rubric aggregation: points"),
        ("{check: {call: b, after: c, same: d}}", "{check: {run: {every: b, needs: c, same: d}}}"),
        ("{check: {call: b, max: 1}}", "{check: {run: {at_most: 1, of: b}}}"),
        (
            "{text: a, check: {call: b, needs: {call: c}, same: d}}",
            "{text: a, check: {run: {every: b, needs: c, same: d}}}",
        ),
        ("{check: {run: {call: b, then: {tool: c}, within: 3}}}", "{check: {run: {every: b, then: c, within: 3}}}"),
        ("{check: {run: [{call: b, before: c}, {never: d}]}}", "{check: {run: [{every: c, needs: b}, {never: d}]}}"),
        ("{check: {every: b, needs: c}}", "{check: {run: {every: b, needs: c}}}"),
        ("{check: {order: [b, c]}}", "{check: {trajectory: [b, c]}}"),
        ("{check: {never: {call: b}}}", "{check: {run: {never: b}}}"),
        ("{check: {call: b, never: true, after: c}}", "{check: {run: {never: b, after: c}}}"),
        ("{check: {last: {tool: b}}}", "{check: {run: {last: b}}}"),
        ("{check: {at_most: 1, call: b}}", "{check: {run: {at_most: 1, of: b}}}"),
        (
            "{check: {call: {name: b, args: {x: 7}}, after: c}}",
            "{check: {run: {every: {call: b, arguments: {x: 7}}, needs: c}}}",
        ),
        ("{check: {called: b, args: {x: 7}}}", "{check: {calls: {name: b, arguments: {x: 7}}}}"),
        (
            "{check: {not_called: b, args: {x: 7}}}",
            "{check: {calls: {name: b, arguments: {x: 7}}}, polarity: guard}",
        ),
        ("{check: {called: b, times: 2}}", "{check: {run: [{at_least: 2, of: b}, {at_most: 2, of: b}]}}"),
        ("{text: a, negate: true}", "{text: a, polarity: guard}"),
        ("{text: a, metric: timing, threshold: 0.6}", "{id: timing, text: a, min_score: 0.6}"),
        ("{check: {words: {min: 5, max: 50}}}", "{check: {assertion: {type: word-count, value: {min: 5, max: 50}}}}"),
        (
            "{check: {rouge_l: b c, threshold: 0.5}}",
            "{check: {assertion: {type: rouge-n, value: b c, threshold: 0.5}}}",
        ),
        ("{check: {bleu: b c}}", "{check: {assertion: {type: bleu, value: b c}}}"),
        (
            "{text: a, examples: [{output: b, score: 1, comment: c}]}",
            "{text: a, anchors: [{response: b, score: 1, reason: c}]}",
        ),
        ("{text: a, severity: error}", "{text: a, required: true}"),
        ("{text: a, severity: warning}", "{text: a, weight: 0}"),
        ("{check: {regex: 'a[0-9]', flags: i}}", '{check: {matches: "(?i)a[0-9]"}}'),
        ("{check: {any_of: [{contains: a}, {contains: b}]}}", "{check: {contains_any: [a, b]}}"),
        ("{check: {tools: [a, b]}}", "{check: {trajectory: [a, b]}}"),
        ("{check: {calls: [a, b], order: strict}}", "{check: {trajectory: {tools: [a, b], order: exact}}}"),
        ("{group: form, criteria: [Is b]}", "{id: form, rubric: {criteria: [Is b]}}"),
        ("{decide: {if: Is b, then: pass, else: 0}}", "{text: Is b, tree: {ask: Is b, yes: 1, no: 0}}"),
        ("{id: a, tree: {ask: Is b, yes: 1, no: 0}}", "{id: a, text: Is b, tree: {ask: Is b, yes: 1, no: 0}}"),
        (
            "{id: a, question: Is b, yes: {question: c, yes: 1, no: 0}, no: 0}",
            "{id: a, text: Is b, tree: {ask: Is b, yes: {ask: c, yes: 1, no: 0}, no: 0}}",
        ),
        (
            "{text: a, examples: [{output: b, pass: true}, {output: c, pass: false}]}",
            "{text: a, anchors: [{response: b, score: 1}, {response: c, score: 0}]}",
        ),
        ("{check: '/ticket #[0-9]+/i'}", '{check: {matches: "(?i)ticket #[0-9]+"}}'),
        (
            "{text: Says sorry, if: It is late}",
            "{text: Says sorry, tree: {ask: It is late, yes: {ask: Says sorry, yes: 1, no: 0}, no: 1}}, which counts as met",
        ),
        ("{check: {not_contains: [b, c]}}", "{check: {contains_any: [b, c]}, polarity: guard}"),
        ("{id: d, ask: Is a, yes: 1, no: 0}", "{id: d, text: Is a, tree: {ask: Is a, yes: 1, no: 0}}"),
        ("{expects: Is warm}", "{text: Is warm}"),
        ("{scores: Is warm}", "{text: Is warm, answer: unit}"),
        ("{text: a, required: always}", "{text: a, required: true}"),
        ("{assert: [{type: regex, value: b}], continue-on-error: true}", "{check: {matches: b}, weight: 0}"),
        (
            "{text: a, levels: [{score_range: [0, 3], outcome: b}]}",
            "{text: a, levels: [{score_range: [0, 3], text: b}]}",
        ),
        ("{text: a, answer: boolean}", "{text: a, answer: yes_no}"),
        ("{text: a, type: guard, weight: '2'}", "{text: a, polarity: guard, weight: 2}"),
        ("{text: a, penalty: 2}", "{text: a, polarity: penalty, weight: 2}, and in the rubric aggregation: points"),
        ("{text: a, weight: -2}", "{text: a, polarity: penalty, weight: 2}, and in the rubric aggregation: points"),
        ("{text: a, required: yes, tags: tone}", "{text: a, required: true, tags: [tone]}"),
        ("{text: a, answer: {type: integer, minimum: 1, maximum: 5}}", "{text: a, levels: 1..5}"),
        ("{check: {pattern: '[0-9]'}}", '{check: {matches: "[0-9]"}}'),
        ("{text: a, icontains: Hi}", "{text: a, check: {contains: {text: Hi, ignore_case: true}}}"),
        ("{text: a, levels: [1, 5], min_score: 4}", "{text: a, levels: [1, 5], min_score: 0.75}"),
        ("{text: a, choices: {0: cold, 1: warm}}", "{text: a, choices: {cold: 0, warm: 1}}"),
        ("{text: a, contains: [b, c]}", "{text: a, check: {contains_all: [b, c]}}, or for one of them, contains_any"),
        (
            "{text: a, anchors: [{response: b, score: 0.5}], required: yes}",
            "{text: a, anchors: [{response: b, score: 0.5}], required: true}",
        ),
        ("{check: {type: not-contains, value: b}}", "{check: {contains: b}, polarity: guard}"),
        ("{check: {not_contains: b}}", "{check: {contains: b}, polarity: guard}"),
        ("{text: a, not-contains: b}", "{text: a, check: {contains: b}, polarity: guard}"),
        ("{check: {is-json: {type: object}}}", "{check: {fits_schema: {type: object}}}"),
        ("{text: a, scale: [0, 10], anchors: {0: none, 10: all}}", "{text: a, levels: {0: none, 10: all}}"),
        ("{text: a, levels: {score1_text: bad, score5_text: good}}", "{text: a, levels: {1: bad, 5: good}}"),
        ("{check: {type: contains, value: refund}}", "{check: {contains: refund}}"),
        (
            "{text: a, levels: [{score: 0, description: none}, {score: 2, description: all}]}",
            "{text: a, levels: {0: none, 2: all}}",
        ),
        (
            "{text: a, levels: [{score: 0.5, text: half}, {score: 1, text: all}]}",
            "{text: a, choices: {half: 0.5, all: 1}}",
        ),
        ("{must_not: Insults}", "{text: Insults, polarity: guard}"),
        ("{require: Is kind}", "{text: Is kind, required: true}"),
        ("[Is kind, 2]", "{text: Is kind, weight: 2}"),
        ("{text: a, required: gate}", "{text: a, required: true}"),
        ("{text: a, answer: 1-5}", "{text: a, levels: 1..5}"),
        ("{text: a, scale: {min: 1, max: 5, labels: [b, c]}}", "{text: a, levels: {1: b, 5: c}}"),
        ("{check: {contains: a, ignore_case: true}}", "{check: {contains: {text: a, ignore_case: true}}}"),
        ("{check: {contains: a}, case_sensitive: false}", "{check: {contains: {text: a, ignore_case: true}}}"),
        ("{check: is-json}", "{check: is_json}"),
        ("{check: {tool_called: search}}", "{check: {calls: search}}"),
        ("{calls: {refund: 1}}", "{check: {run: [{at_least: 1, of: refund}, {at_most: 1, of: refund}]}}"),
        ("{tool_calls: {max: 6, delete: 0}}", '{check: {run: [{at_most: 6, of: "*"}, {never: delete}]}}'),
        ("{check: {calls: {tool: search, args: {q: x}}}}", "{check: {calls: {name: search, arguments: {q: x}}}}"),
        (
            "{text: a, levels: {0: b, 10: c}, examples: [{output: d, score: 0.1}]}",
            "{text: a, levels: {0: b, 10: c}, anchors: [{response: d, score: 0.1}]}",
        ),
        ("{text: a, decision: {ask: b, yes: 1, no: 0}}", "{text: a, tree: {ask: b, yes: 1, no: 0}}"),
        ("{text: a, category: tone}", "{text: a, tags: [tone]}"),
        (
            "{text: a, levels: 1..5, examples: [{response: b, score: 2}]}",
            "{text: a, levels: 1..5, anchors: [{response: b, score: 0.25}]}",
        ),
        ("{check: {max_words: 120}}", "{check: {assertion: {type: word-count, value: {max: 120}}}}"),
        ("{type: min_words, value: 3}", "{check: {assertion: {type: word-count, value: {min: 3}}}}"),
        (
            "{check: {min_length: 9}}",
            "{check: {assertion: {type: javascript, value: output.length >= 9}}}, or, of words, {check: {assertion: ",
        ),
        ("{check: {maxChars: 200}}", "{check: {assertion: {type: javascript, value: output.length <= 200}}}"),
        (
            "{id: b, tree: {question: 'Which?', cases: [{when: c, then: 1}, {when: d, then: 0.5}], default: 0}}",
            "{id: b, text: Which?, tree: {ask: Which? Is it 'c'?, yes: 1, no: {ask: Which? Is it 'd'?, yes: 0.5, no: 0}}}",
        ),
        ("{text: a, likert: 3, descriptions: [b, c, d]}", "{text: a, levels: {1: b, 2: c, 3: d}}"),
        ("{text: a, stars: 5}", "{text: a, levels: 1..5}"),
        (
            "{outcome: a, score_ranges: {0: b, 10: c}, required_min_score: 5}",
            "{text: a, levels: {0: b, 10: c}, min_score: 0.5}",
        ),
        ("{type: answer-relevance, threshold: 0.7}", "{text: Addresses the question that was asked, min_score: 0.7}"),
        ("{check: {words: {lt: 40}}}", "{check: {assertion: {type: word-count, value: {max: 39}}}}"),
        (
            "{text: a, scale: 1-5, anchors: {1: b, 3: c, 5: d}, min: 3}",
            "{text: a, min_score: 0.5, levels: {1: b, 3: c, 5: d}}",
        ),
        ("{check: {is_json: {schema: {type: object}}}}", "{check: {fits_schema: {type: object}}}"),
        (
            "{check: {json_path: 'b[0].c', equals: 2}}",
            "{check: {fits_schema: {type: object, properties: {b: {type: array, prefixItems: [{type: object, ",
        ),
        (
            "{id: a, check: {all_of: [{contains: b}, {not_contains: c}]}}",
            "{id: a, rubric: {aggregation: min, criteria: [{check: {contains: b}}, {check: {contains: c}, polarity: guard}]}}",
        ),
        (
            "{any_of: [Is b, {check: {contains: c}}]}",
            "{rubric: {threshold: 0.5, all_or_nothing: true, criteria: [Is b, {check: {contains: c}}]}}",
        ),
        ("{all_of: [Is b, Is c]}", "{rubric: {aggregation: min, criteria: [Is b, Is c]}}"),
        (
            "{check: {contains: b, max_words: 9}}",
            "{rubric: {aggregation: min, criteria: [{check: {contains: b}}, {check: {assertion: ",
        ),
        ("{text: a, levels: 1..5, min_score: 4}", "{text: a, levels: 1..5, min_score: 0.75}"),
        ("{check: contains, value: refund}", "{check: {contains: refund}}"),
        (
            "{check: {any_of: [{contains: a.b}, {regex: c+}]}}",
            "{rubric: {threshold: 0.5, all_or_nothing: true, criteria: [{check: {contains: a.b}}, {check: {matches: c+}}]}}",
        ),
        ("{check: {or: [a, {icontains: b}, {starts_with: c}]}}", "{rubric: {threshold: 0.33, all_or_nothing: true, "),
        ("{check: {none_of: [a, b]}}", "{check: {contains_any: [a, b]}, polarity: guard}"),
        ("{check: {not: {regex: b}}}", "{check: {matches: b}, polarity: guard}"),
        ("{check: {contains-any: [a, b]}}", "{check: {contains_any: [a, b]}}"),
        ("{check: {accepted_values: [a, b.c]}}", r"{check: {matches: '^(?:a|b\.c)$'}}"),
        (
            "{check: {starts_with: [a, b]}}",
            "{rubric: {threshold: 0.5, all_or_nothing: true, criteria: [{check: {starts_",
        ),
        ("{must_not_contain: [a, b], fatal: true}", "{check: {contains_any: [a, b]}, polarity: guard, required: true}"),
        ("{guard: Shouts, critical: true}", "{text: Shouts, polarity: guard, required: true}"),
        ("{text: a, levels: 1..5, required: {min: 3}}", "{text: a, levels: 1..5, min_score: 0.5}"),
        ("{text: a, levels: {min: 1, max: 5, pass: 4}}", "{text: a, levels: 1..5, min_score: 0.75}"),
        ("{text: a, scores: {b: 1, c: 0.5}}", "{text: a, choices: {b: 1, c: 0.5}}"),
        ("{text: a, type: label_model, labels: [b, c], passing_labels: [b]}", "{text: a, choices: {b: 1, c: 0}}"),
        ("{prompt: a b, choice_scores: {z: 1, x: 0}, use_cot: true}", "{text: a b, choices: {z: 1, x: 0}}"),
        ("{text: a, config: {severity: warn}}", "{text: a, weight: 0}"),
        ("{text: a, config: {severity: error}, tags: [b]}", "{text: a, tags: [b], required: true}"),
        (
            "{id: b, tree: [{if: Is c, then: 0}, {elif: Is d, then: 0.5}, {else: 1}]}",
            "{id: b, text: Is c, tree: {ask: Is c, yes: 0, no: {ask: Is d, yes: 0.5, no: 1}}}",
        ),
        ("{check: {calls: b, args: {c: 7}}}", "{check: {calls: {name: b, arguments: {c: 7}}}}"),
        ("{type: similar, value: b, threshold: 0.8}", "{check: {similar: {texts: b, threshold: 0.8}}}"),
        (
            "{check: {jsonpath: $.a, equals: c}}",
            "{check: {fits_schema: {type: object, properties: {a: {const: c}}, required: [a]}}}",
        ),
        ("{text: a, levels: 1..5, gate: '>= 4'}", "{text: a, levels: 1..5, min_score: 0.75}"),
        ("{text: a, levels: 1..5, required: at least 3}", "{text: a, levels: 1..5, min_score: 0.5}"),
        ("{type: llm-rubric, value: Is b, threshold: 0.8}", "{text: Is b, min_score: 0.8}"),
        (
            "{name: b, criteria: Is it, evaluation_steps: [Check c, Check d.], evaluation_params: [input]}",
            "{id: b, text: Is it. Check c. Check d.}",
        ),
        ("{text: a, why: b, author: c}", "{text: a, metadata: {why: b, author: c}}"),
        (
            "{text: a, examples: [{input: b, answer: yes, reason: c}, {input: d, answer: no}]}",
            "{text: a, anchors: [{response: b, score: 1, reason: c}, {response: d, score: 0}]}",
        ),
        (
            "{id: b, decide: {ask: 'Which?', answers: {c: 0, d: {ask: 'Is e?', yes: 1, no: 0.5}}}}",
            "{id: b, text: Which?, tree: {ask: Which? Is it 'c' (and not 'd')?, yes: 0, no: {ask: Is e?, yes: 1, no: 0.5}}}",
        ),
        (
            "{id: b, decides: {check: {contains: c}, yes: 1, no: {ask: Is d, yes: 0.5, no: 0}}}",
            "{id: b, text: T, tree: {ask: T, yes: 1, no: {ask: Is d, yes: 0.5, no: 0}}}".replace("T", _TRUE),
        ),
        (
            "{text: Is b, unless: It is late}",
            "{text: Is b, tree: {ask: It is late, yes: 1, no: {ask: Is b, yes: 1, no: 0}}}",
        ),
        (
            "{id: c, text: Is b, when: zebra}, {id: zebra, text: Is it late}",
            "{id: c, text: Is b, tree: {ask: Is it late, yes: {ask: Is b, yes: 1, no: 0}, no: 1}}",
        ),
        ("{type: regex, value: Friday}", "{check: {matches: Friday}}"),
        ("{group: b, weight: 0.3, items: [Is c, Is d]}", "{id: b, weight: 0.3, rubric: {criteria: [Is c, Is d]}}"),
        ("{name: Is polite, points: 2}", "{text: Is polite, weight: 2}"),
        ("{name: Is polite, if: \"contains(output, 'refund')\"}", "{text: Is polite, when: {contains: refund}}"),
        ("{text: a b, if: \"'refund' in output\"}", "{text: a b, when: {contains: refund}}"),
        ("{text: a b, unless: \"'refund' in output\"}", "{text: a b, when: {contains: refund, negated: true}}"),
        ("{text: a b, if: \"'refund' not in output\"}", "{text: a b, when: {contains: refund, negated: true}}"),
        ("{text: a b, if: \"not contains(output, 'refund')\"}", "{text: a b, when: {contains: refund, negated: true}}"),
        ("{text: a b, unless: {regex: refund}}", "{text: a b, when: {regex: refund, negated: true}}"),
        ("{text: a b, skip_if: {not: {matches: refund}}}", "{text: a b, when: {regex: refund}}"),
        ("{text: a b, when: {not_contains: refund}}", "{text: a b, when: {contains: refund, negated: true}}"),
        ("{text: a b, when: {not: {called: refund}}}", "{text: a b, when: {tool_called: refund, negated: true}}"),
        ("{text: a b, when: {lacks: refund}}", "{text: a b, when: {contains: refund, negated: true}}"),
        ("{id: b, check: {regex: {pattern: 'c+', ignore_case: true}}}", '{id: b, check: {matches: "(?i)c+"}}'),
        ("{must_contain: [b, c]}", "{check: {contains_all: [b, c]}}"),
        ("{output_must_not_contain: b}", "{check: {contains: b}, polarity: guard}"),
        ("{name: Clarity, levels: {1: bad, 5: good}}", "{text: Clarity, levels: {1: bad, 5: good}}"),
        ("{name: clear, scale: 1-5, weight: 2}", "{text: clear, levels: 1..5, weight: 2}"),
        ("{id: tone, choices: {cold: 0, warm: 1}}", "{text: tone, choices: {cold: 0, warm: 1}}"),
        (
            "{id: b, check: {tools: {order: [c, d], forbidden: [e]}}}",
            "{id: b, rubric: {aggregation: min, criteria: [{check: {trajectory: {tools: [c, d], order: in_order}}}, {check: {run: [{never: e}]}}]}}",
        ),
        ("{check: {tools: {forbidden: b}}}", "{check: {run: [{never: b}]}}"),
        ("{check: {required_tools: [b]}}", "{check: {run: [{at_least: 1, of: b}]}}"),
        (
            "{assert: len(output) < 50}",
            "{check: {assertion: {type: python, value: len(output) < 50}}}, which runs with --allow-",
        ),
        ("{check: output.includes('b')}", "{check: {assertion: {type: javascript, value: output.includes('b')}}}"),
        ("{check: not_null}", "{check: {matches: '\\S'}}"),
        ("{check: {max_calls: 3}}", '{check: {run: {at_most: 3, of: "*"}}}'),
        (
            "{metric: FaithfulnessMetric, threshold: 0.7}",
            "{text: States nothing that the context does not support, min_score: 0.7}",
        ),
        (
            "{outcome: Is b, score_ranges: [{score_range: [0, 4], outcome: c}, {score_range: [5, 10], outcome: d}], required_min_score: 5}",
            "{text: Is b, levels: [{score_range: [0, 4], text: c}, {score_range: [5, 10], text: d}], min_score: 0.5}",
        ),
        ("{type: latency, threshold: 2000}", "{check: {assertion: {type: latency, threshold: 2000}}}"),
        (
            "{type: tool-trajectory, mode: in_order, expected: [{tool: b}]}",
            "{check: {assertion: {type: tool-trajectory, expected: [{tool: b}], mode: in_order}}}",
        ),
        (
            "{type: javascript, value: output.length < 9}",
            "{check: {assertion: {type: javascript, value: output.length < 9}}}",
        ),
        ("{type: regex, value: b, metric: c}", "{id: c, check: {matches: b}}"),
        (
            "{type: string_check, name: b, input: '{{ sample.output_text }}', operation: ilike, reference: c}",
            '{id: b, check: {contains: {text: c, ignore_case: true}}}, without input: "{{ sample.output_text }}"',
        ),
        (
            "{type: score_model, name: b, model: gpt-5, input: [{role: user, content: 'Good is {{ item.answer }}?'}], range: [1, 7], pass_threshold: 4}",
            "{id: b, text: Good is the reply?, levels: [1, 7], min_score: 0.5}, without model: gpt-5",
        ),
        (
            "{type: label_model, input: Which?, labels: [b, c], passing_labels: [c]}",
            "{text: Which?, choices: {b: 0, c: 1}}",
        ),
        (
            "{type: text_similarity, input: '{{ sample.output_text }}', reference: b, evaluation_metric: bleu, pass_threshold: 0.5}",
            "{check: {assertion: {type: bleu, value: b, threshold: 0.5}}}, without input: ",
        ),
        (
            "{expectation_type: expect_column_values_to_match_regex, kwargs: {column: b, regex: c, mostly: 0.9}}",
            "{check: {matches: c}}, without column: b: what is graded is the reply, without mostly: 0.9",
        ),
        (
            "{expect_column_value_lengths_to_be_between: {column: b, min_value: 2, max_value: 9}}",
            "{check: {assertion: {type: javascript, value: output.length >= 2 && output.length <= 9}}}, without column: b",
        ),
        ("{text: a, criteria: [Says hi]}", "{text: a, rubric: {criteria: [Says hi]}}"),
    ],
)
def test_all_mistakes_of_a_criterion_are_answered_with_one_line(typed: str, meant: str) -> None:
    """It is the line that is printed, once, and it is read; with one more key, the line has that too, or is not printed."""
    said = refusal_of(f"criteria: [{typed}]")
    assert len(re.findall("rite {", said)) == 1
    assert f"rite {meant}" in said
    line = re.split(r", (?:or|and|which|where|without)\b", said[said.index(f"rite {meant}") + 5 :].split("\n")[0])[0]
    assert loads(f"aggregation: points\ncriteria: [b c, {line}]").criteria
    data = plain(parse(f"[{typed}]", "").root)
    for index in range(len([*mappings_in(data[0])])):
        more = copy.deepcopy(data)
        [*mappings_in(more[0])][index]["zzq"] = "Zebra"
        lines = re.findall(r"rite (\{(?!ask).*)", refusal_of(f"criteria: {on_a_line(more)}"))
        assert [line for line in lines if "Zebra" not in line] == [], "a line lacks what was typed"


@each_row(
    ("typed", "meant"),
    [
        ("{question: Is it?, yes: 1, no: 0}", "{ask: Is it?, yes: 1, no: 0}"),
        ("{if: Is it?, then: pass, else: fail}", "{ask: Is it?, yes: 1, no: 0}"),
        ("[{ask: Is it?, yes: 1, no: 0}]", "{ask: Is it?, yes: 1, no: 0}"),
        (
            "{start: a, nodes: {a: {ask: Is it?, yes: b, no: 0}, b: {ask: c?, yes: 1, no: 0}}}",
            "{ask: Is it?, yes: {ask: c?, yes: 1, no: 0}, no: 0}",
        ),
        ("{ask: Is it?, yes: {question: b?, yes: 1, no: 0}, no: 0}", "{ask: b?, yes: 1, no: 0}"),
    ],
)
def test_the_branches_of_a_tree_are_told_by_their_keys(typed: str, meant: str) -> None:
    """The question that is wrong is printed, not those above it."""
    assert f"rite {meant}" in refusal_of(f"tree: {typed}")
    assert loads(f"tree: {meant}").tree


@each_row(
    ("typed", "said"),
    [
        ("{text: Is b, if: It is late}", "; to leave it out there, (.*)"),
        ("{text: a, tests: {yes: [Hi], no: [Bye]}}", ", and beside the criteria (tests: .*)"),
    ],
)
def test_what_stands_beside_the_line_is_read_too(typed: str, said: str) -> None:
    """What the line says otherwise, or has no key for, is printed after it, and works as it is."""
    other = re.search(said, refusal_of(f"criteria: [{typed}]"))
    assert other is not None
    assert loads(f"criteria: [{other[1]}]" if other[1][0] == "{" else f"criteria: [a]\n{other[1]}")


@each_row(
    ("typed", "meets", "fails"),
    [
        ("{any_of: [{contains: Friday}, {regex: '[0-9]{4}-[0-9]{2}'}]}", "on 2026-11", "soon"),
        ("{any_of: [{contains: a+b}, {icontains: HI}]}", "oh hi", "aab"),
        ("{none_of: [a, {regex: b+}]}", "c", "bb"),
        ("{enum: [a, b]}", "b", "ab"),
        ("{length: {lt: 4}}", "abc", "abcd"),
        ("{length: {min: 2, max: 3}}", "abc", "a"),
        ("{words: {gt: 1}}", "a b", "a"),
        ("{json_path: 'b[1].c', equals: 2}", '{"b": [0, {"c": 2}]}', '{"b": [{"c": 2}]}'),
        ("{all_of: [{contains: a}, {not_contains: b}]}", "a", "ab"),
        ("{json_path: {path: $.b, max: 5}}", '{"b": 5}', '{"b": "5"}'),
        ("{equals: [a, b]}", "b", "ab"),
        ("{type: string, minLength: 2, pattern: ^a}", "ab", "ba"),
        ("{any_of: [{contains: a}, {max_words: 1}]}", "b", "b c"),
        ("{contains: a, max_words: 1}", "a", "a b"),
        ("{number: 42, tolerance: 0.5}", "7 at $42.50", "7 at $42.51"),
        ("{approx: 40, rel: 0.1}", "36 m", "35 m"),
        ("{number: {min: 40, max: 43}}", "-1, 41", "-41"),
        ("{between: [0, 1.5]}", "1.5", "none"),
        ("{gt: 40, lt: 50}", "50 or 41", "50"),
        ("{equals: 42.5, tolerance: 0.01}", "42.5", "42.6"),
        ("{number: {between: [40, 45]}}", "41", "46"),
    ],
)
def test_the_check_that_is_printed_decides_what_was_typed(typed: str, meets: str, fails: str) -> None:
    """A reply that holds what was typed passes, and another fails."""
    line = re.search(r"rite ({.*?}+)(, or|, which|$)", refusal_of(f"criteria: [{{check: {typed}}}]"), re.MULTILINE)
    assert line is not None
    rubric = loads(f"criteria: [{line[1]}]")
    assert [grade(reply, rubric, "offline").passed for reply in (meets, fails)] == [True, False]


@each_row(
    ("document", "said"),
    [
        ("threshold: {warn: 0.8, fail: 0.6}\ncriteria: [a b]", "write threshold: 0.8 and borderline: 0.6; "),
        (
            "threshold: 6\ncriteria: [{text: a, weight: 5}, {text: b, weight: 3}, {text: c, polarity: penalty, weight: 0}]",
            "6 of the 8 points of its criteria is threshold: 0.75",
        ),
        ("threshold: {pass: 80%, warn: 60%}\ncriteria: [a b]", "write threshold: 0.8 and borderline: 0.6; "),
        ("threshold: {min: 80}\ncriteria: [a b]", "write threshold: 0.8"),
        (
            "pass: 6\ncriteria: [{text: a, points: 6}, {text: b, points: 4}]",
            "pass: unknown key; a score is from 0 to 1; 6 of the 10 points of its criteria is threshold: 0.6",
        ),
        (
            "passing_score: 3.5\ncriteria: [{text: a, scale: 1-5}, {text: b, levels: 1..5}]",
            "3.5 on the scale from 1 to 5 is threshold: 0.625",
        ),
        ("pass: a and (b or c)\ncriteria: [{id: a, text: b}]", "one of several is a rubric in the rubric"),
    ],
)
def test_a_threshold_in_another_form_is_answered_with_the_one_that_is_meant(document: str, said: str) -> None:
    """Two bars are a threshold and what is borderline; points are a share of those that the criteria have."""
    assert said in refusal_of(document)


@each_row(
    ("document", "meant"),
    [
        (
            "weights: {c: 3, d: 1}\ncriteria: {c: Is c, d: Is d}",
            "criteria: [{id: c, text: Is c, weight: 3}, {id: d, text: Is d, weight: 1}]",
        ),
        ("required: [is-b]\ncriteria: [Is b, Is c]", "criteria: [{text: Is b, required: true}, {text: Is c}]"),
        (
            ".b: {weight: 2, evidence: true}\ncriteria: [{text: Is c, extends: .b}, Is d]",
            "criteria: [{text: Is c, weight: 2, evidence: true}, {text: Is d}]",
        ),
        ("weights: [7, 3]\ncriteria: [Is b, Is c]", "criteria: [{text: Is b, weight: 7}, {text: Is c, weight: 3}]"),
        (
            "must: [Is b]\nshould: [Is c]\nmust_not: [Is d]",
            "criteria: [{text: Is b, required: true}, {text: Is c}, {text: Is d, polarity: guard}]",
        ),
        (
            "must_contain: [b, c]\nmust_not_contain: [d]\nmax_words: 9",
            "[{check: {contains_all: [b, c]}}, {check: {contains_any: [d]}, polarity: guard}, {check: {assertion: {type: word-count",
        ),
        ("weights: {c: 3}\nthresholds: {c: 0.5}\ncriteria: [{id: c, text: Is c}]", "weight: 3, min_score: 0.5}]"),
    ],
)
def test_fields_of_criteria_that_stand_apart_are_answered_with_the_criteria_that_have_them(
    document: str, meant: str
) -> None:
    """By their ids, or in a template, all of them are in the line, which is read."""
    line = re.search(r"write (criteria: \[.*\])", refusal_of(document))
    assert line is not None
    assert meant in line[1]
    assert loads(line[1]).criteria


@each_row(
    ("typed", "told"),
    [
        ("{id: a, decides: {ask: Is b, yess: 1, no: 3}}", ["decides", "decides.yess", "decides.no"]),
        ("{name: a, thing: 1, weight: x}", ["criteria[0]", "name", "thing", "weight"]),
        ("{text: a, examples: [{reply: b}]}", ["examples", "examples[0]", "examples[0].reply"]),
        ("{check: {any_of: [{calls: b}, {calls: c}]}}", ["check.any_of"]),
    ],
)
def test_what_is_wrong_under_an_unknown_key_is_told_at_once(typed: str, told: list[str]) -> None:
    """Its value is read as that of the key that is meant; and a text that is missing hides nothing else."""
    said = refusal_of(f"criteria: [{typed}]")
    assert [place for place in told if f"{place}: " not in said] == []


@each_row(
    "typed",
    [
        "{text: a, weight: high}",  # how much is not known
        "{type: string_check, operation: eq, input: '{{ sample.output_text }}', reference: '{{ item.label }}'}",
        "{text: a, polarity: negative}",  # a guard, or a penalty
        "{text: a, if: lang == 'de' and x.y}",  # what no judge can be asked
        "{text: a, check: {contains: b, threshold: 0.5}}",  # which has none
        "{text: a, if: asked}",  # a word of the candidate, or another criterion
        "{text: a, type: likert}",
        "{text: a, levels: {min: 1, max: 5, step: 1}}",  # which has no key
        "{text: a, type: boolean, levels: 1..5}",
        "{text: a, scores: [0, 1]}",
        "{text: a, choices: [cold, warm], scores: [0]}",
        "{id: a}",
        "{}",
        "{text: a, choices: {check: {call: true, after: c}}}",  # no text is a mapping
        "{check: {assertion: {type: word-count, value: {max: -1}}}}",
        "{any_of: []}",
    ],
)
def test_no_line_is_printed_where_the_meaning_is_not_known(typed: str) -> None:
    """The error says what is allowed, and proposes no criterion that was not meant."""
    assert "rite {check: {equals" not in refusal_of(f"criteria: [{typed}]")
    assert "rite {text: a" not in refusal_of(f"criteria: [{typed}]")


@each_row(
    ("typed", "meant"),
    [
        (
            "[Is b, {text: Is c, points: 2}, {must_not: Is d}]",
            "{criteria: [Is b, {text: Is c, weight: 2}, {text: Is d, po",
        ),
        (
            "{rubric: {name: b, threshold: 0.6, criteria: [Is c, {text: Is d, points: 2}]}}",
            "{rubric: b, threshold: 0.6, criteria: [Is c, {text: Is d, weight: 2}]}",
        ),
        ("{rubric: {name: b, strict: true}, criteria: [Is c]}", "{rubric: b, strict: true, criteria: [Is c]}"),
    ],
)
def test_a_rubric_whose_fields_stand_elsewhere_is_answered_with_the_whole(typed: str, meant: str) -> None:
    """All of it is in one line, which is a file."""
    line = re.search(r"write the whole as (\{.*\})$", refusal_of(typed))
    assert line is not None
    assert line[1].startswith(meant)
    assert loads(line[1]).criteria


@each_row(
    ("typed", "meant"),
    [
        ("{reply: b, expect: {score: '>= 0.8'}}", "{reply: b, score: 0.8..1}"),
        ("{output: b, expected: fail}", "{reply: b, fails: true}"),
        ("{name: a, output: b, expect: {verdict: fail, score: '<= 0.2'}}", "{reply: b, fails: true, score: 0..0.2}"),
        ("{output: b, expect: {c: false}}", "{reply: b, expects: {c: false}}"),
        ("{output: b, max_score: 0.3}", "{reply: b, score: 0..0.3}"),
        ("{answer: b, passes: false, score: {max: 0.3}}", "{reply: b, passes: false, score: 0..0.3}"),
    ],
)
def test_all_mistakes_of_a_test_of_a_rubric_are_answered_with_the_test_that_was_meant(typed: str, meant: str) -> None:
    """It is read in the place of what was typed."""
    said = refusal_of(f"criteria: [{{id: c, text: Is c}}]\ntests: [{typed}]")
    assert f"write {meant}" in said.split("\n")[0]
    assert loads(f"criteria: [{{id: c, text: Is c}}]\ntests: [{meant}]").tests


@each_row(
    "typed",
    [
        "{reply: b, expect: {score: '< 0.2'}}",  # no range leaves out its end
        "{reply: b, min_score: 0.2, max_score: 0.4}",
        "{reply: b, expect: maybe}",
    ],
)
def test_no_test_is_printed_where_its_meaning_is_not_known(typed: str) -> None:
    """A test that expects something else is worse than none."""
    assert "write {" not in refusal_of(f"criteria: [{{id: c, text: Is c}}]\ntests: [{typed}]")


def test_a_deep_tree_with_a_mistake_is_refused_as_fast_as_a_flat_one() -> None:
    """Each question is tried once, and not once for each that it stands in."""
    tree = "{question: x?, yes: 1, no: 0}"
    for _ in range(40):
        tree = f"{{ask: a?, yes: {tree}, no: 0}}"
    assert refusal_of(f"tree: {tree}").count("rite {ask: x?, yes: 1, no: 0}") == 1
