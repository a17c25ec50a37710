"""Whole files, each with the files beside it: promptfoo runs them, and its results are graded here by the same file."""

from __future__ import annotations

ECHO = "prompts: ['{{q}}']\nproviders: [echo]\n"
TWO_BY_TWO = """
prompts: ['Say {{q}}', 'Do say {{q}} loudly']
providers: [{id: echo, label: one}, {id: echo, label: two, config: {a: 1}}]
"""

LAYOUTS: dict[str, dict[str, str]] = {
    "texts": {
        "": TWO_BY_TWO + "tests:\n  - {vars: {q: hello}, assert: [{type: contains, value: loud}]}\n"
        "  - {vars: {q: bye}, assert: [{type: not-contains, value: loud}]}\n"
    },
    "files": {
        "": ECHO + "tests:\n  - {vars: {q: file://a.txt}, assert: [{type: contains, value: alpha}]}\n"
        "  - {vars: {q: file://b.txt}, assert: [{type: contains, value: alpha}]}\n",
        "a.txt": "alpha\n", "b.txt": "beta\n",
    },
    "objects": {
        "": "prompts: ['{{q.name}}: {{q.tags | join(\"-\")}}']\nproviders: [echo]\ntests:\n"
        "  - {vars: {q: {name: a, tags: [x, y]}}, assert: [{type: equals, value: 'a: x-y'}]}\n"
        "  - {vars: {q: {name: b, tags: [z]}}, assert: [{type: equals, value: 'a: x-y'}]}\n"
    },
    "lists": {
        "": ECHO + "tests:\n  - {vars: {q: [a, b, c], w: [x, y]}, assert: [{type: contains-any, value: 'a,b'}]}\n"
    },
    "no variables": {
        "": "prompts: [hello]\nproviders: [echo]\ntests:\n  - {assert: [{type: contains, value: hell}]}\n"
        "  - {assert: [{type: contains, value: bye}]}\n  - {assert: [{type: equals, value: hello}]}\n"
    },
    "twins": {
        "": ECHO + "tests:\n  - {vars: {q: a}, assert: [{type: contains, value: a}]}\n"
        "  - {vars: {q: a}, assert: [{type: contains, value: b}]}\n  - {vars: {q: a}, assert: [{type: is-json}]}\n"
    },
    "own providers": {
        "": TWO_BY_TWO + "tests:\n  - {vars: {q: a}, assert: [{type: contains, value: a}]}\n"
        "  - {vars: {q: a}, provider: echo, assert: [{type: contains, value: loudly}]}\n"
        "  - {vars: {q: a}, provider: echo, assert: [{type: is-json}]}\n"
    },
    "repeats": {
        "": ECHO + "tests:\n  - {vars: {q: [a, b]}, options: {repeat: 3}, assert: [{type: contains, value: a}]}\n"
        "  - {vars: {q: b}, assert: [{type: contains, value: a}]}\n"
    },
    "limited prompts": {
        "": "prompts: [{raw: 'A {{q}}', label: a}, {raw: 'B {{q}}', label: b}]\n"
        "providers: [{id: echo, label: one, prompts: [b]}, {id: echo, label: two}]\ntests:\n"
        "  - {vars: {q: x}, assert: [{type: contains, value: A}]}\n"
        "  - {vars: {q: y}, prompts: [a], assert: [{type: contains, value: A}]}\n"
        "  - {vars: {q: z}, providers: [one], assert: [{type: contains, value: A}]}\n"
    },
    "scenarios": {
        "": ECHO + "tests: [{vars: {q: b}, assert: [{type: contains, value: a}]}]\nscenarios:\n"
        "  - config: [{vars: {q: a}}, {vars: {q: b}}]\n    tests:\n      - {assert: [{type: contains, value: a}]}\n"
        "      - {vars: {z: 1}, assert: [{type: equals, value: b}]}\n"
    },
    "table": {
        "": ECHO + "defaultTest: {assert: [{type: contains, value: '{{expected}}'}]}\ntests: t.csv\n",
        "t.csv": 'q,expected,__expected,__expected2,__description,__threshold,__metric,__config:__expected2:threshold\n'
        "hello,hell,equals: hello,levenshtein:hallo,first,,m,2\n"
        "bye,hell,\"contains-any: a,b\",rouge-n(0.2): bye,second,0.5,,0.3\n"
        "hello,hell,javascript: output.length > 3,levenshtein(2):hallo,third,,,5\n"
        '"a ""b""",a,icontains: A,not-equals: a,,,,1\n',
    },
    "defaults": {
        "": ECHO + "defaultTest: {vars: {q: one}, threshold: 0.5, options: {transform: output.toUpperCase()}, assert: [{type: "
        "contains, value: ONE}]}\ntests:\n  - {metadata: {a: 1}}\n  - {vars: {q: two}}\n  - {assert: [{type: equals, value: no}]}\n"
        "  - {options: {disableDefaultAsserts: true}, assert: [{type: equals, value: one}]}\n"
        "  - {options: {transform: output + '!'}, assert: [{type: equals, value: one!}]}\n  - {threshold: 0.9, assert: [{type: "
        "equals, value: no}]}\n"
    },
    "templates": {
        "": "prompts: ['{% for x in list %}{{ loop.index }}{{ x | upper }} {% endfor %}{{ a }} {{ m.k }}', '{% if a == \"x\" %}"
        "yes{% else %}no{% endif %} {{ gone }}']\nproviders: [echo]\ntests:\n  - {vars: {list: '{{ a }}', a: x, m: {k: 1}}, "
        "assert: [{type: contains, value: 'yes'}]}\n  - {vars: {a: 'b{{ c }}', c: d, m: {k: v}}, assert: [{type: contains, "
        "value: '{{ a }}'}, {type: contains, value: '{{ m.k }}'}]}\n  - {vars: {a: 1.0, m: {k: true}}, assert: [{type: "
        "contains, value: '{{ a }} {{ m.k }}'}]}\n"
    },
    "transforms": {
        "": "prompts: ['{{q}}']\nproviders: [{id: echo, transform: 'output + \"!\"'}]\ntests:\n"
        "  - {vars: {q: a}, assert: [{type: equals, value: a!}]}\n"
        "  - {vars: {q: b}, options: {transform: 'output.toUpperCase()'}, assert: [{type: equals, value: B!}]}\n"
        "  - {vars: {q: c}, assert: [{type: equals, value: 'c!?', transform: 'output + \"?\"'}, {type: equals, value: c!}]}\n"
        "  - {vars: {q: d}, options: {transformVars: '({...vars, q: vars.q + vars.q})'}, assert: [{type: equals, value: dd!}]}\n"
    },
    "templates of values": {
        "": ECHO + "defaultTest: {vars: {w: hello}}\ntests:\n"
        + "".join(
            f"  - {{vars: {{q: 'hello {{\"a\": \"hello\"}}'}}, assert: [{{type: {one}}}]}}\n"
            for one in (
                "contains, value: file://v.txt", "not-contains, value: file://v.txt", "contains-any, value: file://l.yaml",
                "contains-any, value: [file://v.txt, '{{w}}']", "contains-all, value: [file://v.txt, '{{w}}']",
                "contains-json, value: {properties: {a: {const: '{{w}}'}}}", "contains-json, value: file://s.json",
                "contains-json, value: '{\"properties\": {\"a\": {\"const\": \"{{w}}\"}}}'", "regex, value: file://v.txt",
            )
        ),
        "v.txt": "{{w}}\n", "l.yaml": "['{{w}}', zzz]\n", "s.json": '{"properties": {"a": {"const": "{{w}}"}}}',
    },
    "stored outputs": {
        "": "prompts: ['A {{q}} {{kept}}', 'B {{q}} {{kept}}']\nproviders: [echo]\ntests:\n  - {vars: {q: one}, options: "
        "{storeOutputAs: kept}, assert: [{type: contains, value: one}]}\n  - {vars: {q: two}, assert: [{type: contains, "
        "value: A one}]}\n  - {vars: {q: six}, assert: [{type: contains, value: A two}]}\n"
    },
    "variables that are lists": {
        "": ECHO.replace("{{q}}", "{{q}} {{w}}") + "defaultTest: {vars: {w: [x, y]}, assert: [{type: contains, value: x}]}\n"
        "tests: [file://t.yaml, {vars: {q: c, w: z}}]\nscenarios:\n  - config: [{vars: {q: [a, b]}}, {vars: {q: c}}]\n    tests: "
        "[{vars: {w: [x, y]}}, {vars: {w: z}, options: {disableVarExpansion: true}, assert: [{type: contains, value: a}]}]\n",
        "t.yaml": "- {vars: {q: [a, b], w: [[1, 2], [3]]}}\n- {vars: {q: [{a: 1}, {a: 2}]}}\n- {vars: {q: [1, 2.0, true, x]}}\n"
        "- {vars: {q: [d, e]}, options: {disableVarExpansion: true}}\n- {vars: {q: []}, assert: [{type: contains, value: y}]}\n",
    },
    "columns of tests": {
        "": ECHO + "tests: t.csv\n",
        "t.csv": "q,__expected1,__expected2,__threshold,__prefix,__suffix,__providerOutput,__metadata:tags[]\n"
        'hello,contains: hello,contains: zzz,0.4,,,,"a,b"\nhello,equals: Ahello,,,A,,,\nhello,equals: hello!,,,,!,,\n'
        "hello,equals: given,,,,,given,\nhello,is-json,not-is-json,,,,,\n\"two\nlines\",contains: two,regex: lines$,,,,,\n"
        'hello,Hello,,,,,,\nhello,fn: output.length == 5,,,,,,\nhello,eval: output.length == 4,,,,,,\n"a,b",contains:a,,,,,,\n'
        'hello,"contains-any: x,hello",,,,,,\nhello,rouge-n(0.5): hello,,,,,,\nhello,contains :hello,,,,,,\n',
    },
    "cells of tables": {
        "": ECHO + "tests: t.csv\n",
        "w.txt": "hello", "a.js": "module.exports = (output) => output.length === 5;\n",
        "t.csv": "q, w ,__expected,__metadata:tags[]\n"
        + "".join(
            f'"hello, you",x,"{each}",\n' for each in (
                'contains-any: ""hello, you"", zzz', 'contains-all: ""hello, me"", you', 'contains-any: zzz,, you',
                "ends-with: you", "  contains: hello  ", "not-contains:zzz", "tool-call-f1: a",
            )
        )
        + 'hello,x,file://w.txt,"a\\,b, c"\nhello,x,file://a.js,\nhello,x,skill-used: find,\nhello,{{q}},equals: {{w}},\n',
    },
    "merged keys": {
        "": ECHO + "x-a: &a {type: contains, value: hel}\nx-l: &l [*a, {type: icontains, value: LO}]\ntests:\n  - {vars: {q: hello},"
        " assert: *l}\n  - vars: &v {q: bye, w: 1}\n    assert: [*a]\n  - vars: {<<: *v, q: hell}\n    assert: [{<<: *a, value: "
        "ell}, {<<: *a, weight: 2}]\n  - {vars: {<<: [*v, {z: 2}]}, assert: [{type: equals, value: bye}]}\n"
    },
    "providers of one key": {
        "": "prompts: ['{{q}}']\nproviders: [{echo: {label: x, transform: output.toUpperCase()}}, {id: echo, label: y}]\n"
        "tests: [{vars: {q: a}, assert: [{type: equals, value: a}]}]\n"
    },
    "data as outputs": {
        "": ECHO + "tests: [{vars: {q: '{\"k\": [1, 2]}'}, options: {transform: 'JSON.parse(output).k'}, assert: [{type: equals, "
        "value: '[1,2]'}, {type: is-json}, {type: contains, value: '1,2'}]}]\n"
    },
    "globs of tests": {
        "": ECHO + "defaultTest: file://d.yaml\ntests: [t/*.yaml, 'file://u*.csv', {vars: {q: z}, assert: [{type: equals, value: z}]}]\n",
        "t/b.yaml": "- {vars: {q: b}, assert: [{type: contains, value: b}]}\n", "u1.csv": "q,__expected\nhi,contains:h\n",
        "t/a.yaml": "- {vars: {q: a}, assert: [{type: contains, value: b}]}\n", "u2.csv": "q,__expected\nho,contains:i\n",
        "d.yaml": "vars: {q: x}\nthreshold: 0.5\nassert: [{type: contains, value: h}]\n",
    },
    "nested sets": {
        "": ECHO + "tests:\n"
        + "".join(
            f"  - {{vars: {{q: hello}}, {test}assert: [{{type: assert-set, {own}weight: {weight}, assert: [{{type: contains, "
            "value: hel, weight: 0.5}, {type: icontains, value: ZZ}]}, {type: contains, value: lo}]}\n"
            for test in ("", "threshold: 0.6, ") for own in ("", "threshold: 0.3, ", "threshold: 0.34, ") for weight in (0.5, 3)
        )
    },
    "prefixes and suffixes": {
        "": ECHO + "defaultTest: {options: {prefix: 'P ', suffix: ' S'}}\ntests:\n"
        "  - {vars: {q: a}, options: {prefix: 'Q{{q}} '}, assert: [{type: equals, value: Qa a S}]}\n"
        "  - {vars: {q: b}, options: {suffix: ''}, assert: [{type: equals, value: P b}]}\n"
        "  - {vars: {q: c}, options: {suffix: null}, assert: [{type: equals, value: P c}]}\n"
    },
    "modules and JSON outputs": {
        "": "prompts: ['{\"a\": 12}', 'plain a']\nproviders: [echo]\ntests:\n"
        + "".join(f"  - {{assert: [{{type: javascript, value: 'file://{one}'}}]}}\n" for one in ("c.js", "c.js:named", "m.mjs"))
        + "  - {options: {transform: 'file://t.js:other'}, assert: [{type: contains, value: to, transform: file://t.js}]}\n",
        "c.js": "module.exports = (o, {vars}) => ({pass: o.includes('a'), score: 0.8, reason: 'r'});\n"
        "module.exports.named = (text) => text.length > 6;\n",
        "m.mjs": "export default (o) => o.length > 2;\n",
        "t.js": "module.exports = (o) => 't' + o;\nmodule.exports.other = (o) => 'o' + o;\n",
    },
    "files from the root": {
        "": ECHO + "defaultTest: file://d/default.yaml\ntests: file://t/all.yaml\nscenarios: [file://sc.yaml]\n",
        "d/default.yaml": "vars: {w: file://w.txt}\nassert:\n- {type: contains, value: '{{w}}'}\n- {type: javascript, value: "
        "file://c.js}\n",
        "w.txt": "h", "d/w.txt": "D", "c.js": "module.exports = (o) => o.length > 2\n", "d/c.js": "module.exports = () => false\n",
        "t/all.yaml": "- {vars: {q: hello}}\n- {vars: {q: file://x.txt}, assert: [{type: contains, value: root}]}\n",
        "x.txt": "root x", "t/x.txt": "t x",
        "sc.yaml": "config: [{vars: {q: c}}, {vars: {q: hd}}]\ntests:\n- {assert: [{type: equals, value: hd}]}\n- {vars: {w: [h, "
        "3]}, assert: [{type: contains, value: d}]}\n",
    },
    "table with blanks, BOM and CRLF": {
        "": "\ufeff" + (ECHO + "tests: [file://t.csv, file://u.jsonl]\n").replace("\n", "\r\n"),
        "t.csv": '\ufeffq, __expected , __threshold,__metric\r\nhello, contains: hel ,0.5,m\r\n"two\r\nlines","contains: two",,'
        '\r\nhello," contains:zzz",0,\r\n',
        "u.jsonl": '{"vars": {"q": "j"}, "assert": [{"type": "equals", "value": "j"}]}\r\n\r\n{"vars": {"q": "k"}, "assert": '
        '[{"type": "equals", "value": "j"}], "description": "D"}',
    },
    "data types": {
        "": "prompts: ['{{a}}|{{b}}|{{c}}|{{d}}|{{e}}']\nproviders: [echo]\ntests:\n"
        "  - {vars: {a: 1, b: 1.0, c: true, d: null, e: 1e3}, assert: [{type: equals, value: '1|1|true||1000'}]}\n"
        "  - {vars: {a: 0x1F, b: 012, c: 'yes', d: yes, e: .5}, assert: [{type: equals, value: '31|12|yes|yes|0.5'}]}\n"
        "  - {vars: {a: 1.10, b: 1_000, c: ~, d: 2024-01-02, e: 0o17}, assert: [{type: contains, value: '1.1|1_000||'}]}\n"
    },
    "references": {
        "": ECHO + "assertionTemplates: {short: {type: javascript, value: output.length < 4}}\ntests:\n"
        "  - {vars: {q: abc}, assert: [{$ref: '#/assertionTemplates/short'}]}\n"
        "  - {vars: {q: abcd}, assert: [{$ref: '#/assertionTemplates/short', weight: 2}, {type: contains, value: a}]}\n"
    },
}  # fmt: skip
"""By name: the files, of which the configuration has none."""
