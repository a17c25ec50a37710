"""Modules of promptfoo's JavaScript and TypeScript: what they import below the base, and what they cannot reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate
from rubric.engine.grade import evaluate
from rubric.formats.javascript_modules import LARGEST, MOST_IMPORTS, MOST_MODULES, program_of_file
from rubric.formats.javascript_syntax import rewritten
from rubric.formats.notes import Loading
from rubric.formats.suites import convert, load_suite
from rubric.programs.javascript import JavaScriptError, Program
from rubric.results.result import Grade, Ungraded
from rubric.values.checks import Unsupported
from tests.agentv import written

pytest.importorskip("quickjs", reason="the extra javascript is not installed")
pytest.importorskip("tree_sitter_typescript", reason="the extra javascript is not installed")


def program(folder: Path, function: str = "", *, base: Path | None = None, **files: Any) -> Program:
    """Write *files*, the first of which is the program; `__` is a slash in their names, the last `_` a dot."""
    names = [".".join(name.replace("__", "/").rsplit("_", 1)) for name in files]
    for name, text in zip(names, files.values(), strict=True):
        written(folder / name, text)
    return program_of_file(names[0], Loading(folder=folder, base=base), function)


def said(*args: Any, **files: Any) -> Any:
    return program(*args, **files).run("abc", {"vars": {"n": 3}})


# -- what is imported -----------------------------------------------------------------------------------------


def test_commonjs_modules_require_one_another_and_json(tmp_path: Path) -> None:
    """Names are taken from the folder of the file that has them, endings may be left out, circles are cut as in Node."""
    assert said(
        tmp_path,
        checks__main_js="const {twice} = require('./lib'); const {least} = require('../data.json');\n"
        "module.exports = (output) => twice(output.length) > least;",
        checks__lib__index_js="const main = require('../main'); exports.twice = (n) => typeof main === 'object' ? 2 * n : 0;",
        data_json='{"least": 5}',
    )


def test_es_modules_import_and_export_in_every_form(tmp_path: Path) -> None:
    """Bindings are live, circles work, and a CommonJS module is its own default."""
    assert said(
        tmp_path,
        "check",
        a_mjs="""import dedent, { add as plus } from './lib.js';
import * as ns from './lib.js'; import data from './d.json' with { type: 'json' };
import cjs, { twice } from './c.cjs'; import './side.mjs'; import { sum, everything, inner, add, count, raise } from './more.mjs';
raise();
const found = [dedent`x`, plus(1, 2), ns.add(1, 1), ns.default`y`, data.least, cjs.twice(2), twice(3), globalThis.side,
  sum(1, 3), everything.default.twice(1), inner`z`, add(0, 1), count];
async function check(output) { return (await import('./late.mjs')).default(output) && String(found); }
export { check, check as default };""",
        lib_js="import { later } from './circle.mjs';\nexport function add(a, b) { return a + b }\nexport default (s) => later(s[0]);",
        circle_mjs="import { add } from './lib.js';\nexport let later = (s) => add(s, '!');",
        c_cjs="exports.twice = (x) => 2 * x;",
        side_mjs="globalThis.side = 'side';",
        more_mjs="export { add as sum, default as inner } from './lib.js'; export * as everything from './c.cjs';\n"
        "export * from './lib.js'; export let count = 0; export const raise = () => { count += 1 };",
        late_mjs="export default (s) => s.length === 3;",
        d_json='{"least": 7}',
    ) == "x!,3,2,y!,7,4,6,side,4,2,z!,1,1"  # fmt: skip


def test_typescript_runs_without_its_types(tmp_path: Path) -> None:
    """Types, and imports of nothing else, are left out; lines stay where they are."""
    assert (
        said(
            tmp_path,
            "check",
            a_ts="""import { type Foo, least } from './limits.js';
import type { GradingResult } from 'promptfoo';
import { AssertionContext } from 'promptfoo';
interface Shape { a: string }
type Either = Shape | number;
declare const unused: string;
abstract class Base<X> { protected abstract p(): X; }
class Box<X> extends Base<X> implements Shape {
  private readonly x?: number = 1; declare y: string; a = ''; [key: string]: any;
  protected p(): X { return this.x! as any; }
  static make<X>(this: void, v: X): Box<X> { return new Box<X>(); }
}
function over(a: string): void;
function over(a?: any): asserts a is string { return a as unknown as never; }
let later!: string, pair: [a: number, b?: string] = [1];
for (const one of [1] as const) later = `${one satisfies number}`;
const id = <T,>(x: T) => x, call = id<string>;
export const check = async (output: string, { vars }: AssertionContext): Promise<GradingResult | string> =>
  [output!.length > (vars.n as number) - least, Box.make(1).p(), over('q'), later, call('i'), pair[0] < 2].join();
export type { Either };
export default interface Last { b: number }""",
            limits_ts="export type Foo = number; export const least: number = 1;",
        )
        == "true,1,q,1,i,true"
    )


@pytest.mark.parametrize(
    "text",
    [
        "export default (o: string): {\n  length: number\n} => o.length",
        "export default async <\n  T extends string\n>(o: T): Promise<\n  number\n> => o.length",
        "#!/usr/bin/env node\nexport default (o: string) => o.length",
        "#!/usr/bin/env node\nmodule.exports = (o) => o.length",
    ],
)
def test_a_type_of_several_lines_and_a_line_for_the_shell_change_nothing(text: str, tmp_path: Path) -> None:
    """Types over several lines are removed, and a `#!` line is ignored."""
    assert said(tmp_path, a_ts=text) == 3


def test_packages_are_read_below_the_base(tmp_path: Path) -> None:
    """By the `exports` or the `main` of their package.json, from each folder above."""
    assert said(
        tmp_path,
        evals__a_cjs="const one = require('one'), two = require('@of/two/sub');\nmodule.exports = (o) => one(o) + two;",
        node_modules__one__package_json='{"exports": {".": {"import": "./no.mjs", "require": {"default": "./lib/one.js"}}}}',
        node_modules__one__lib__one_js="module.exports = (s) => s.toUpperCase();",
        **{"node_modules__@of__two__package_json": '{"main": "x"}', "node_modules__@of__two__sub_js": "module.exports = 2;"},
        base=tmp_path,
    ) == "ABC2"  # fmt: skip


def test_an_assertion_and_a_transform_import_what_lies_beside_them(tmp_path: Path) -> None:
    """From the configuration to the grade; the whole program goes into our own format and back."""
    written(
        tmp_path / "graders" / "long.ts",
        "import { least } from '../data';\nexport default (o: string) => o.length > least;",
    )
    written(tmp_path / "graders" / "up.mjs", "import { up } from './lib.mjs';\nexport const shout = (o) => up(o);")
    written(tmp_path / "graders" / "lib.mjs", "export const up = (s) => s.toUpperCase() + '!';")
    written(tmp_path / "data.json", '{"least": 3}')
    asserts = [
        {"type": "javascript", "value": "file://graders/long.ts"},
        {"type": "equals", "value": "ABC!", "transform": "file://graders/up.mjs:shout"},
    ]
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps({"tests": [{"assert": asserts}]})))
    again = load_suite(written(tmp_path / "suite.yaml", str(convert(suite))))
    for (case,) in (suite, again):
        found = evaluate(Candidate("abc"), case.rubric, "offline")
        assert isinstance(found, Grade)
        assert [one.score for one in found] == [0.0, 1.0]


# -- what cannot be reached -----------------------------------------------------------------------------------

HOSTILE = [
    ("import secret from '../secret.json';\nexport default () => secret", "is not within reach"),
    ("const s = require('../secret.json');\nmodule.exports = () => s", "is not within reach"),
    ("module.exports = () => require('../secret.json')", "needs the module ../secret.json"),
    ("module.exports = () => require('..' + '/secret.json')", "needs the module|needs require"),
    ("export default async () => (await import('../secret.json')).default", "needs the module"),
    ("module.exports = () => require('{top}/secret.json')", "needs the module"),
    ("import secret from '{top}/secret.json';\nexport default () => secret", "without Node's modules"),
    ("import secret from 'file://{top}/secret.json';\nexport default () => secret", "without Node's modules"),
    ("module.exports = () => require('./link.json')", "needs the module"),
    ("module.exports = () => require('./folder/secret.json')", "needs the module"),
    ("module.exports = () => require('./.env')", "needs the module"),
    ("import fs from 'fs';\nexport default () => fs.readFileSync('/etc/passwd')", "without Node's modules"),
    ("import {{ execSync }} from 'node:child_process';\nexport default () => execSync('id')", "without Node's modules"),
    ("const fs = require('fs');\nmodule.exports = () => 1", "without Node's modules"),
    (
        "module.exports = () => {{ try {{ require('fs') }} catch (e) {{}} return 1 }}",
        "needs the module fs|needs require",
    ),
    ("module.exports = () => import('fs').catch(() => 1)", "needs the module fs"),
    ("module.exports = () => [].constructor.constructor('return require')()('fs')", "needs require"),
    ("export default () => import.meta.url", "needs import.meta"),
    ("module.exports = () => {{ require('./a.js'); return process.env.HOME }}", "needs process"),
]


@pytest.mark.parametrize(("text", "why"), HOSTILE)
def test_nothing_outside_of_the_base_and_nothing_of_node_is_reached(text: str, why: str, tmp_path: Path) -> None:
    """Neither by a path nor a link nor a name that is made at run time, and not by an error that is caught."""
    written(tmp_path / "secret.json", '"CANARY"')
    written(tmp_path / "project" / ".env", "CANARY")
    (tmp_path / "project" / "link.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "project" / "folder").symlink_to(tmp_path)
    with pytest.raises(JavaScriptError, match=why) as problem:
        said(tmp_path / "project", **{"a_mjs" if "export " in text else "a_js": text.format(top=tmp_path)})
    assert "CANARY" not in str(problem.value)


def test_what_a_program_lacks_leaves_its_case_ungraded_with_a_cure(tmp_path: Path) -> None:
    """It is found when the file is loaded, so nothing is asked for nothing."""
    written(tmp_path / "a.js", "const dedent = require('dedent');\nmodule.exports = () => true;")
    data = {"tests": [{"assert": [{"type": "javascript", "value": "file://a.js"}]}]}
    (case,) = (suite := load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps(data))))
    assert isinstance(case.rubric.criteria[0].answer, Unsupported)
    assert "it imports 'dedent'" in str(suite.warnings[0])
    assert "npm install dedent" in str(suite.warnings[0])
    assert isinstance(evaluate("x", case.rubric, "offline"), Ungraded)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("enum E { A }\nexport default () => E.A", "an enum"),
        ("namespace N { export const x = 1 }\nexport default () => N.x", "a namespace"),
        ("class P { constructor(public x: number) {} }\nexport default () => 1", "a parameter that is a property"),
        ("@dec class P {}\nexport default () => 1", "a decorator"),
        ("import x = require('./y');\nexport default () => 1", "import ="),
        ("export = () => 1;", "export ="),
        ("const x = await 1;\nexport default () => x", "an `await` outside"),
        ("for await (const x of y) {}\nexport default () => 1", "an `await` outside"),
        ("export default (o: string => 1", "no TypeScript"),
        ("import { run } from 'promptfoo';\nexport default () => run()", "it imports 'promptfoo'"),
    ],
)
def test_what_only_a_compiler_writes_is_refused(text: str, why: str, tmp_path: Path) -> None:
    """It is not a verdict on a candidate."""
    with pytest.raises(JavaScriptError, match=why):
        program(tmp_path, a_ts=text)


def test_programs_are_bounded_in_files_and_characters(tmp_path: Path) -> None:
    """However they import one another."""
    for number in range(MOST_MODULES + 5):
        written(tmp_path / f"m{number}.js", f"module.exports = require('./m{number + 1}.js');")
    with pytest.raises(JavaScriptError, match=f"more than {MOST_MODULES} files"):
        program_of_file("m0.js", Loading(folder=tmp_path))
    with pytest.raises(JavaScriptError, match="more than"):
        program(tmp_path, a_js="module.exports = require('./big.json')", big_json=f'"{"x" * LARGEST}"')
    with pytest.raises(JavaScriptError, match=f"{MOST_IMPORTS} imports"):
        program(tmp_path, c_js="() => [" + ", ".join(f"require('./{n}')" for n in range(MOST_IMPORTS + 1)) + "]")
    with pytest.raises(JavaScriptError, match="at most"):
        program(tmp_path, b_js="module.exports = require('./huge.json')", huge_json=f'"{"x" * 5_000_000}"')


def test_empty_lines_are_read_once() -> None:
    """They are looked through for imports, in time that grows with their number."""
    assert rewritten("\n" * 1_000_000 + "x", typescript=False).names == ()


def test_modules_that_require_for_ever_meet_a_limit(tmp_path: Path) -> None:
    """A circle ends at once; a recursion without an end is stopped as any other."""
    assert (
        said(
            tmp_path,
            a_js="const b = require('./b'); module.exports = () => b.n;",
            b_js="require('./a'); exports.n = 1;",
        )
        == 1
    )
    with pytest.raises(JavaScriptError, match="was stopped"):
        said(tmp_path, c_js="require('./d'); module.exports = () => 1;", d_js="for (;;) require('./c');")


# -- configurations ------------------------------------------------------------------------------------------

_CASES = "[{vars: {q: 'hi'}, assert: [{type: 'contains', value: 'h'}]}]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "promptfooconfig.js",
            f"module.exports = {{prompts: ['Ask {{{{q}}}}'], providers: ['echo'], tests: {_CASES}}};",
        ),
        (
            "promptfooconfig.mjs",
            (
                "import { tests } from './cases.js';\nconst ask = 'Ask';\n"
                "export default { prompts: [`${ask} {{q}}`], providers: ['echo'], tests };"
            ),
        ),
        (
            "promptfooconfig.ts",
            (
                "interface Config { prompts: string[]; providers: string[]; tests: unknown[] }\n"
                "import { tests } from './cases';\n"
                "const config: Config = { prompts: ['Ask {{q}}'], providers: ['echo'], tests };\nexport default config;"
            ),
        ),
        (
            "promptfooconfig.cjs",
            (
                "const {tests} = require('./cases');\n"
                "module.exports = async () => ({prompts: [`${process.env.VERB ?? 'Ask'} {{q}}`], providers: ['echo'], tests});"
            ),
        ),
    ],
)
def test_a_configuration_that_is_a_program_is_run_and_read(name: str, text: str, tmp_path: Path) -> None:
    """With what it imports, without files and network."""
    (tmp_path / "cases.js").write_text(f"exports.tests = {_CASES};")
    (tmp_path / name).write_text(text)
    suite = load_suite(tmp_path / name)
    assert (suite.format, [case.input for case in suite]) == ("promptfoo", ["Ask hi"])


def test_a_configuration_sees_the_environment_that_the_caller_declares(tmp_path: Path) -> None:
    """Not the one of the process."""
    text = f"module.exports = {{prompts: [`${{process.env.VERB ?? process.env.PATH}} {{{{q}}}}`], tests: {_CASES}}};"
    (tmp_path / "promptfooconfig.js").write_text(text)
    assert [case.input for case in load_suite(tmp_path / "promptfooconfig.js")] == ["undefined hi"]
    assert [case.input for case in load_suite(tmp_path / "promptfooconfig.js", environ={"VERB": "Say"})] == ["Say hi"]


def test_a_function_in_a_configuration_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """A function is not a data: what it would assert is not asserted."""
    test = "{vars: {q: 'hi'}, assert: [{type: 'javascript', value: (output) => output.length > 1}, {type: 'is-json'}]}"
    (tmp_path / "promptfooconfig.js").write_text(f"module.exports = {{prompts: ['{{{{q}}}}'], tests: [{test}]}};")
    (entry,) = load_suite(tmp_path / "promptfooconfig.js").plan("openai/gpt-5")
    assert "javascript by a file that is not within reach" in str(entry.unsupported)
