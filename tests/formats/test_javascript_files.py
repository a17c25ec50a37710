"""Programs of promptfoo's files that read files while a suite is loaded: what they may read, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.javascript_files import MOST_READ, file_program
from rubric.formats.notes import Loading
from rubric.formats.suites import load_suite
from rubric.programs.javascript import JavaScriptError
from rubric.values.checks import Unsupported
from tests.agentv import written

pytest.importorskip("quickjs", reason="the extra javascript is not installed")
pytest.importorskip("tree_sitter_typescript", reason="the extra javascript is not installed")


def said(folder: Path, text: str, *, base: Path | None = None, name: str = "a.js", **environ: str) -> Any:
    """Return what the function in the module *text* makes."""
    written(folder / name, text)
    return file_program(name, Loading(folder=folder, base=base, environ=environ)).call()


# -- what is read ---------------------------------------------------------------------------------------------

ASSERT = "assert: [{type: 'contains', value: 'h'}]"
CONFIGURATIONS = [
    (
        "promptfooconfig.js",
        (
            "const fs = require('fs'); const path = require('path');\n"
            "const ask = fs.readFileSync(path.join(__dirname, 'prompts/ask.txt'), 'utf8');\n"
            f"module.exports = {{prompts: [ask], providers: ['echo'], tests: [{{vars: {{q: 'hi'}}, {ASSERT}}}]}};"
        ),
    ),
    (
        "promptfooconfig.mjs",
        (
            "import { readFileSync, existsSync } from 'node:fs';\nimport path from 'node:path';\n"
            "import { fileURLToPath } from 'node:url';\n"
            "const __dirname = path.dirname(fileURLToPath(import.meta.url));\n"
            "if (existsSync('.env.local')) process.loadEnvFile('.env.local');\n"
            "const ask = readFileSync(path.resolve(__dirname, 'prompts', 'ask.txt'), {encoding: 'utf-8'});\n"
            f"export default {{prompts: [ask], providers: ['echo'], tests: [{{vars: {{q: 'hi'}}, {ASSERT}}}]}};"
        ),
    ),
    (
        "promptfooconfig.ts",
        (
            "import * as fs from 'fs';\nimport { join } from 'path';\n"
            "const ask: string = fs.readFileSync(new URL('./prompts/ask.txt', import.meta.url)).toString();\n"
            "const tests = fs.readdirSync(join(process.cwd(), 'cases')).filter((n) => n.endsWith('.json'))\n"
            "  .map((n) => JSON.parse(fs.readFileSync(join('cases', n)).toString()));\n"
            "export default { prompts: [ask], providers: ['echo'], tests };"
        ),
    ),
    (
        "promptfooconfig.js",
        (
            "const { readdir } = require('fs/promises'); const fs = require('fs'); const path = require('path');\n"
            "module.exports = async () => {\n"
            "  const found = await readdir('cases', {withFileTypes: true}), folder = path.join(__dirname, 'cases');\n"
            "  const tests = found.filter((one) => one.isFile()).map((one) => require(path.join(folder, one.name)));\n"
            "  const ask = await fs.promises.readFile('prompts/ask.txt', 'utf8');\n"
            "  return {prompts: [ask], providers: ['echo'], tests};\n};"
        ),
    ),
]


@pytest.mark.parametrize(("name", "text"), CONFIGURATIONS)
def test_a_configuration_reads_what_lies_below_the_base(name: str, text: str, tmp_path: Path) -> None:
    """By paths from its own folder, in every common spelling, and by names that are made as it runs."""
    written(tmp_path / "prompts/ask.txt", "Ask {{q}}")
    written(tmp_path / "cases/one.json", '{"vars": {"q": "hi"}, "assert": [{"type": "contains", "value": "h"}]}')
    (tmp_path / "cases/deep").mkdir()
    written(tmp_path / name, text)
    assert [case.input for case in load_suite(tmp_path / name)] == ["Ask hi"]


def test_functions_of_prompts_variables_and_tests_read_files(tmp_path: Path) -> None:
    """A relative name starts at the folder of the configuration, wherever the function is."""
    written(tmp_path / "data/ask.txt", "Ask {{ q }} of {{ who }}")
    written(tmp_path / "data/q.txt", "hi")
    fs = "const fs = require('fs');\n"
    written(tmp_path / "lib/ask.js", f"{fs}module.exports = () => fs.readFileSync('data/ask.txt', 'utf8');")
    written(tmp_path / "lib/who.js", f"{fs}module.exports = () => ({{output: fs.readFileSync('data/q.txt') + '!'}});")
    tests = "module.exports = () => [{vars: {q: fs.readFileSync(__dirname + '/../data/q.txt', 'utf8'), who: 'file://lib/who.js'}}];"
    written(tmp_path / "lib/tests.js", fs + tests)
    data = {
        "prompts": ["file://lib/ask.js"],
        "tests": "file://lib/tests.js",
        "defaultTest": {"assert": [{"type": "is-json"}]},
    }
    (case,) = load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps(data)))
    assert case.input == "Ask hi of hi!"


def test_a_file_that_is_not_there_is_an_error_of_nodes(tmp_path: Path) -> None:
    """Which a program may catch; what it caught before the answer was known changes nothing."""
    text = """
        const fs = require('fs'), codes = [];
        for (const [name, of] of [['none', 'readFileSync'], ['.', 'readFileSync'], ['none', 'readdirSync'], ['a.js', 'readdirSync'], ['none', 'statSync']]) {
          try { fs[of](name, 'utf8'); codes.push('read'); } catch (error) { codes.push(error.code); }
        }
        const there = ['a.js', 'none', '.'].map((name) => fs.existsSync(name));
        module.exports = () => [codes, there, fs.statSync('a.js').isFile(), fs.statSync('.').isDirectory(), fs.statSync('x', {throwIfNoEntry: false})];
    """
    codes = ["ENOENT", "EISDIR", "ENOENT", "ENOTDIR", "ENOENT"]
    assert said(tmp_path, text) == [codes, [True, False, True], True, True, None]


def test_paths_are_those_of_node(tmp_path: Path) -> None:
    """As Node 22 has them."""
    text = """
        const p = require('node:path');
        module.exports = () => [p.join('a', '..', '..', 'b/', '.'), p.normalize('/a/../../b//c'), p.dirname('/a/b/'), p.dirname('a'),
          p.basename('/a/b.txt', '.txt'), p.extname('.env'), p.extname('a.tar.gz'), p.relative('/a/b', '/a/c/d'),
          p.isAbsolute('a'), p.parse('/a/b.c').name, p.resolve('/a', '..', 'b'), p.sep + p.posix.delimiter];
    """
    expected = ["../b", "/b/c", "/a", ".", "b", "", ".gz", "../c/d", False, "b", "/b", "/:"]
    assert said(tmp_path, text) == expected


# -- what is not ----------------------------------------------------------------------------------------------

READ = "const fs = require('fs'), path = require('path');\nmodule.exports = () => "
OUTSIDE, SECRET = "outside of", "hold secrets"
HOSTILE = [
    ("fs.readFileSync('../secret.txt', 'utf8')", OUTSIDE),
    ("fs.readFileSync('x/../../secret.txt', 'utf8')", OUTSIDE),
    ("fs.readFileSync('{top}/secret.txt', 'utf8')", OUTSIDE),
    ("fs.readFileSync('/etc/passwd', 'utf8')", OUTSIDE),
    ("fs.readFileSync(new URL('file:///etc/passwd'), 'utf8')", OUTSIDE),
    ("fs.readFileSync(new URL('%2e%2e/secret.txt', 'file://' + __filename), 'utf8')", OUTSIDE),
    ("fs.readFileSync('link.txt', 'utf8')", OUTSIDE),
    ("fs.readFileSync('folder/secret.txt', 'utf8')", OUTSIDE),
    ("fs.existsSync('../secret.txt')", OUTSIDE),
    ("fs.readdirSync('..')", "names no file"),
    ("fs.readdirSync('folder')", OUTSIDE),
    ("{{ try {{ return fs.readFileSync('../secret.txt', 'utf8') }} catch (e) {{ return 1 }} }}", OUTSIDE),
    ("fs.promises.readFile('../secret.txt', 'utf8').catch(() => 1)", OUTSIDE),
    ("fs.readFileSync('%2e%2e/secret.txt', 'utf8')", "percent-encoding"),
    ("fs.readFileSync('..\\\\secret.txt', 'utf8')", "backslash"),
    ("fs.readFileSync('a\\0b', 'utf8')", "control or invisible"),
    ("fs.readFileSync('\\ud800', 'utf8')", "control or invisible"),
    ("fs.readFileSync('.env', 'utf8')", SECRET),
    ("fs.readFileSync('env.txt', 'utf8')", SECRET),
    ("fs.readFileSync('.git/config', 'utf8')", SECRET),
    ("fs.readdirSync('.git')", SECRET),
    ("fs.readFileSync('binary.bin', 'utf8')", "not UTF-8"),
    ("fs.readFileSync('huge.txt', 'utf8')", "at most"),
    ("fs.readFileSync('a.js', 'base64')", "the encoding base64"),
    ("fs.readFileSync('a.js').length", "needs Buffer.length"),
    ("fs.writeFileSync('x', 'y')", "needs fs.writeFileSync"),
    ("process.exit(0)", "needs process.exit"),
    ("process.env.HOME", "needs process.env.HOME"),
    ("new URL('https://example.com')", "needs URL"),
    ("require('../secret.js')", "not within reach"),
    ("require(path.join(__dirname, '..', 'secret.js'))", "not within reach"),
    ("require('child' + '_process').execSync('id')", "has fs"),
    ("require('node:http')", "has fs"),
    ("require('js-' + 'yaml')", "not installed: npm install js-yaml"),
    ("{{ for (let i = 0; ; i++) fs.existsSync('f' + i) }}", "asks for more than"),
    (
        "{{ for (let i = 0; i < 1500; i++) try {{ fs.statSync('f' + i) }} catch (e) {{}} return 1 }}",
        "asks for more than",
    ),
    ("{{ for (;;) try {{ fs.statSync('f' + Math.random()) }} catch (e) {{}} }}", "was stopped"),
]


@pytest.mark.parametrize(("text", "why"), HOSTILE)
def test_nothing_else_is_read_by_any_name(text: str, why: str, tmp_path: Path) -> None:
    """Neither by a path nor a link, nor by an error that is caught."""
    for name in ("secret.txt", "secret.js", "project/.env", "project/.git/config"):
        written(tmp_path / name, "CANARY")
    project = tmp_path / "project"
    (project / "link.txt").symlink_to(tmp_path / "secret.txt")
    (project / "env.txt").symlink_to(project / ".env")
    (project / "folder").symlink_to(tmp_path)
    (project / "binary.bin").write_bytes(b"\xff\xfe\x00CANARY")
    if "huge" in text:
        written(project / "huge.txt", "x" * (MOST_READ + 300_000))
    with pytest.raises(JavaScriptError, match=why) as problem:
        said(project, READ + text.format(top=tmp_path))
    assert "CANARY" not in str(problem.value)


@pytest.mark.parametrize(
    "text", ["fs.readFileSync(7)", "fs.readFileSync({toString: () => '/etc/passwd'})", "fs.readdirSync()"]
)
def test_a_path_that_is_no_text_is_an_error_of_the_program(text: str, tmp_path: Path) -> None:
    """Which it may catch."""
    assert said(tmp_path, f"{READ}{{ try {{ {text} }} catch (error) {{ return error.name }} }}") == "TypeError"


def test_names_of_prototypes_are_names_of_files(tmp_path: Path) -> None:
    """They are looked up as any other, and a spoilt prototype answers nothing."""
    names = "['__proto__', 'constructor', 'toString'].map((name) => fs.existsSync(name))"
    assert said(tmp_path, READ + names) == [False] * 3
    spoilt = "{ Map.prototype.has = () => true; Map.prototype.get = () => ['', 'CANARY']; return fs.readFileSync('a.js', 'utf8') }"
    assert "CANARY'" in said(tmp_path, READ + spoilt)


def test_secrets_are_not_there_for_a_program(tmp_path: Path) -> None:
    """Neither asked for nor in the list of a folder; what only Node would do with them is not missed."""
    written(tmp_path / ".env", "CANARY")
    written(tmp_path / ".git/config", "CANARY")
    assert said(tmp_path, READ + "[fs.existsSync('.env'), fs.readdirSync(__dirname)]") == [False, ["a.js"]]


def test_what_a_program_reads_is_bounded_together(tmp_path: Path) -> None:
    """However many files it is in."""
    for number in range(3):
        written(tmp_path / f"{number}.txt", "x" * (MOST_READ // 2))
    with pytest.raises(JavaScriptError, match=f"more than {MOST_READ} characters"):
        said(tmp_path, READ + "[0, 1, 2].map((n) => fs.readFileSync(`${n}.txt`, 'utf8').length)")


def test_a_spoilt_question_reads_nothing(tmp_path: Path) -> None:
    """Whatever a program writes where its result is read."""
    for asked in ('[["read", 7]]', '[["read", "/etc/passwd"]]', '"x"', "[]"):
        forged = (
            f"(Object.defineProperty(globalThis, '$result', {{value: `{{\"asks\": {asked}}}`, writable: false}}), 1)"
        )
        with pytest.raises(JavaScriptError, match=r"spoilt|outside of|was stopped"):
            said(tmp_path, READ + forged)


def test_programs_that_grade_read_no_files(tmp_path: Path) -> None:
    """What a candidate wrote could choose the file."""
    written(tmp_path / "a.js", "const fs = require('fs');\nmodule.exports = (output) => fs.existsSync(output);")
    data = {"prompts": ["x"], "tests": [{"assert": [{"type": "javascript", "value": "file://a.js"}]}]}
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps(data)))
    assert isinstance(suite.cases[0].rubric.criteria[0].answer, Unsupported)
    assert "it imports 'fs'" in str(suite.warnings[0])


def test_a_refused_configuration_says_how_to_write_it_out(tmp_path: Path) -> None:
    """With the reason."""
    file = written(tmp_path / "project/promptfooconfig.js", READ + "JSON.parse(fs.readFileSync('../x.json'))")
    with pytest.raises(LoadError, match=r"outside of .*write out what it makes, and load that: node -p"):
        load_suite(file, base=tmp_path / "project")
