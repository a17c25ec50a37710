"""Templates: what they do, and that nothing hostile in them does anything."""

from __future__ import annotations

import string
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rubric.errors import DefinitionError
from rubric.formats.cursor import Cursor
from rubric.formats.files import parse
from rubric.formats.notes import Loading, Notes
from rubric.formats.templates.environment import show_environment
from rubric.formats.templates.filters import FILTERS, LARGEST
from rubric.formats.templates.render import is_template, names_in, render
from rubric.internals.frozen_map import FrozenMap

CANARY = "canary-51c0"


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a secret into the environment, where no template may find it."""
    for name in ("CANARY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, CANARY)


PERSON = {"name": "Ada <b>", "tags": ["x", "y"], "items": 3, "length": 4, "none": None}

GOOD = [
    ("plain", "plain"),
    ("{{ name }}", "Ada <b>"),
    ("{{name}} and {{ name }}\n", "Ada <b> and Ada <b>\n"),
    ("{{ missing }}|{{ missing.a.b }}|{{ missing[0] }}", "||"),
    ("{{ person.name }} {{ person['name'] }} {{ person.tags[1] }}", "Ada <b> Ada <b> y"),
    ("{{ person.items }} {{ person.length }} {{ tags.length }} {{ name.length }}", "3 4 2 7"),
    ("{{ person.keys }}{{ name.upper }}{{ tags.append }}", ""),
    ("{{ tags }} {{ person.none }}", '["x","y"] '),
    ("{{ person }}", '{"name":"Ada <b>","tags":["x","y"],"items":3,"length":4,"none":null}'),
    ("{{ tags | dump }} {{ name | dump }} {{ tags | tojson }}", '["x","y"] "Ada <b>" ["x","y"]'),
    ("{{ tags | dump(2) }}", '[\n  "x",\n  "y"\n]'),
    ("{{ yes }} {{ no }} {{ one }} {{ half }}", "true false 1 0.5"),
    ("{{ missing or name }} {{ missing | default('d') }} {{ '' | default('d') }}|", "Ada <b> d |"),
    ("{{ '' | default('d', true) }} {{ missing | d(1) }} {{ none | default('d') }}", "d 1 "),
    ("{{ name | upper }} {{ name | lower }} {{ ' a ' | trim }}", "ADA <B> ada <b> a"),
    ("{{ name | safe }} {{ name | escape }} {{ name | e }}", "Ada <b> Ada &lt;b&gt; Ada &lt;b&gt;"),
    ("{{ name | replace('a', 'o') }}", "Ado <b>"),
    ("{{ tags | join(', ') }} {{ tags | join }} {{ tags | first }} {{ tags | last }}", "x, y xy x y"),
    ("{{ tags | length }} {{ name | length }} {{ missing | length }}", "2 7 0"),
    ("{{ 7 | string | length }} {{ 'ab cd' | title }} {{ 'ab CD' | capitalize }}", "1 Ab Cd Ab cd"),
    ("{{ 'a b&' | urlencode }} {{ ['b', 'A'] | join }}", "a%20b%26 bA"),
    ("{% if one == 1 %}a{% elif one == 2 %}b{% else %}c{% endif %}", "a"),
    ("{% if one === 2 %}a{% elseif name !== null %}b{% endif %}", "b"),
    ("{% if tags and not missing %}a{% endif %}{% if 'x' in tags %}b{% endif %}", "ab"),
    ("{{ 'a' if one > 0 else 'b' }} {{ 'a' if one > 1 }}", "a "),
    ("{{ missing is defined }} {{ one is defined }} {{ one is undefined }}", "false true false"),
    ("{% for t in tags %}{{ loop.index }}{{ t }}{% if not loop.last %},{% endif %}{% endfor %}", "1x,2y"),
    ("{% for k, v in pair %}{{ k }}={{ v }};{% endfor %}{% for k in pair %}{{ k }}{% endfor %}", "a=1;b=;ab"),
    ("{% for t in missing %}x{% else %}none{% endfor %}{% for t in none %}x{% endfor %}", "none"),
    ("{% for a in tags %}{% for b in tags %}{{ a }}{{ b }} {% endfor %}{% endfor %}", "xx xy yx yy "),
    ("{% set a = name %}{{ a }}{{ one + 1 }}", "Ada <b>2"),
    ("{{ name + '!' }} {{ name ~ one ~ yes }} {{ 'n' + 1 }}", "Ada <b>! Ada <b>1true n1"),
    ("{% raw %}{{ name }}{% endraw %}{# nothing #}", "{{ name }}"),
    ("a {%- if yes -%} b {%- endif -%} c", "abc"),
    ("{{ tags[1] }} {{ tags[9] }}", "y "),
    ("{{ markup }}", "{{ name }}{% if %}"),
]

VARIABLES: dict[str, Any] = {
    "name": "Ada <b>",
    "tags": ("x", "y"),
    "person": FrozenMap(PERSON),
    "pair": {"a": 1, "b": None},
    "yes": True,
    "no": False,
    "one": 1.0,
    "half": 0.5,
    "markup": "{{ name }}{% if %}",
}


@pytest.mark.parametrize(("template", "expected"), GOOD)
def test_plain_uses(template: str, expected: str) -> None:
    """Templates do what users of Nunjucks and Jinja write them for; what variables hold is not rendered again."""
    assert render(template, VARIABLES) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ 7 - 2 * 3 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ 2 ** 10 }} {{ -n }} {{ -7 % 4 }}", "1 3.5 3 1024 -3 -3"),
        ("{{ n * 100 / 4 }}% of {{ '12' - n }}", "75% of 9"),
        ("{{ 1 / 0 }}", ""),
        ("{{ 10 ** 400 }}", ""),
        ("{{ gone - 1 }}", ""),
        ("{{ 'a' * 3 }}", ""),
        ("{{ [1] * 3 }}", ""),
    ],
)
def test_numbers_are_computed_as_javascript_does(template: str, expected: str) -> None:
    """In 64 bits, so nothing can grow; what would be NaN or infinite there is refused."""
    if expected:
        assert render(template, {"n": 3}) == expected
    else:
        with pytest.raises(DefinitionError, match="which makes no number"):
            render(template, {"n": 3})


def test_all_filters_work() -> None:
    """Every filter takes text, a list or a number, and what is not there does no harm."""
    for name in FILTERS:
        arguments = "('a', 'b')" if name == "replace" else ""
        value = (
            "half" if name in ("abs", "round") else "[1, 2]" if name == "sum" else "'[1]'" if name == "load" else "name"
        )
        assert isinstance(render(f"{{{{ {value} | {name}{arguments} }}}}", VARIABLES), str)


def test_unknown_names_can_stay() -> None:
    """Names that are not known are empty, or stay as they are."""
    assert render("{{ a }} {{b}}", {"a": 1}) == "1 "
    assert render("{{ a }} {{b}} {{ c.d }}", {"a": 1}, unknown="keep") == "1 {{ b }} {{ c.d }}"


def test_names() -> None:
    """A template says which names it asks for."""
    assert names_in("{{ a.b }}{% for c in d %}{{ c | default(e) }}{% endfor %}{% raw %}{{ f }}{% endraw %}") == {
        *("a", "c", "d", "e")
    }


def test_is_template() -> None:
    """Text without marks is none."""
    assert [is_template(text) for text in ("{{ a }}", "{% if a %}", "{# a #}", "{ a }", "a")] == [True] * 3 + [
        False
    ] * 2


BIG = {
    "text": "a" * 200_000,
    "other": "a" * 199_999 + "b",
    "list": list(range(5000)),
    "short": list(range(100)),
    "name": "Ada",
    "deep": {"text": "a" * 200_000},
    "pair": {"a": {"__class__": "x"}},
}

HOSTILE = {
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "line 1 of the template",
    "{{ name|attr('__class__') }}": "no filter is called 'attr'",
    "{{ name|attr('format')(1) }}": "line 1",
    "{{ ().__class__ }}": "a tuple",
    "{{ lipsum.__globals__['os'].popen('id').read() }}": "line 1",
    "{{ lipsum(n=100000) }}": "a call",
    "{{ joiner('x')() }}": "a call",
    "{{ namespace(a=1) }}": "a call",
    "{{ config.items() }}": "a call",
    "{{ get_flashed_messages.__globals__.__builtins__.open('/etc/passwd') }}": "line 1",
    "{{ dict.mro()[-1].__subclasses__() }}": "line 1",
    "{{ '{0.__class__}'.format(name) }}": "a call",
    "{{ '{:999999999}'.format(1) }}": "a call",
    "{{ '%999999999d' % 1 }}": "makes no number",
    "{{ '%s' | format(name) }}": "no filter is called 'format'",
    "{{ name.upper() }}": "a call",
    "{{ 'a' * 1000000000 }}": "makes no number",
    "{{ [1] * 1000000000 }}": "makes no number",
    "{{ 9 ** 9 ** 999 }}": "makes no number",
    "{{ range(1000000000) }}": "a call",
    "{% for i in range(1000000000) %}x{% endfor %}": "a call",
    "{% for a in short %}{% for b in short %}{% for c in short %}x{% endfor %}{% endfor %}{% endfor %}": "10000 rounds",
    "{% for a in list %}{{ text }}{% endfor %}": "1000000 characters",
    "{% for a in list %}{% if text == other %}{% endif %}{% endfor %}": "too much work",
    "{% for a in short %}{{ text }}{% endfor %}": "1000000 characters",
    "{% for a in short recursive %}{{ loop(short) }}{% endfor %}": "recursive",
    "{% for a in 7 %}{% endfor %}": "loops over int",
    "{% for a, b in short %}{% endfor %}": "loops over pairs",
    "{% set a = text ~ text %}{% set b = a ~ a %}{% set c = b ~ b %}{{ c | length }}": "1000000 characters",
    "{% set a = text + text + text %}{% set b = a + a + a %}": "1000000 characters",
    "{{ text | replace('', text) }}": "1000000 characters",
    "{{ text | replace('a', 'aaaaaaaa') }}": "1000000 characters",
    "{{ list | join(text) }}": "1000000 characters",
    "{{ text | center(1000000000) }}": "no filter is called 'center'",
    "{{ [list, list] | dump }}": "a list of anything but",
    "{{ {'a': pair} }}": "not allowed here: dict",
    "{{ name | map('upper') }}": "no filter",
    "{{ short | groupby('x') }}": "no filter",
    "{{ name is divisibleby 2 }}": "the test 'divisibleby'",
    "{% include '/etc/passwd' %}": "include",
    "{% import '/etc/passwd' as a %}": "import",
    "{% from '/etc/passwd' import a %}": "import",
    "{% extends '/etc/passwd' %}": "extends",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "macro",
    "{% call name() %}{% endcall %}": "call",
    "{% block a %}{{ self.a() }}{% endblock %}": "block",
    "{% filter upper %}a{% endfilter %}": "filter block",
    "{% with a = 1 %}{% endwith %}": "with",
    "{% autoescape true %}{% endautoescape %}": "autoescape",
    "{% set a %}x{% endset %}": "set block",
    "{% set a, b = 1, 2 %}": "one name",
    "{% set name.a = 1 %}": "one name",
    "{% do name %}": "unknown tag 'do'",
    "{% debug %}": "unknown tag 'debug'",
    "{{ 1 / 0 }}": "makes no number",
    "{{ name < 1 }}": "cannot be rendered",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}": "nests too deep",
    "{{ " + "not " * 3000 + "1 }}": "nests too deep",
    "{{ 1" + " + 1" * 3000 + " }}": "60 parts within one another",
    "{{ name" + " | upper" * 3000 + " }}": "60 parts within one another",
    "{% if name %}" * 90 + "{% endif %}" * 90: "60 parts within one another",
    "{% for a in short %}" * 25 + "{% endfor %}" * 25: "10000 rounds",
    "{{ name }}" * 15_000: "10000 parts",
    " " * 200_001 + "{{ name }}": "200000 characters",
    "{{ " + "9" * 5000 + " }}": "too long a number",
    "{{ name": "line 1 of the template",
    "\n\n{% if %}": "line 3 of the template",
    "{{ name | uper }}": "did you mean 'upper'?",
}


@pytest.mark.long
@pytest.mark.parametrize("template", HOSTILE, ids=lambda template: template[:60])
def test_hostile_templates(template: str) -> None:
    """No template reaches Python, the disk or the environment, and none takes much time or memory."""
    with pytest.raises(DefinitionError) as caught:
        render(template, BIG)
    assert HOSTILE[template] in str(caught.value)
    assert CANARY not in str(caught.value)


HARMLESS = [
    *("{{ cycler }}", "{{ lipsum }}", "{{ joiner }}", "{{ namespace }}", "{{ range }}", "{{ dict }}", "{{ config }}"),
    *("{{ request.environ }}", "{{ g }}", "{{ session }}", "{{ url_for }}", "{{ get_flashed_messages }}"),
    *("{{ env }}", "{{ env.CANARY }}", "{{ process.env.CANARY }}", "{{ environment }}", "{{ context }}"),
    *("{{ resolve }}", "{{ missing }}", "{{ caller }}", "{{ varargs }}", "{{ kwargs }}", "{{ loop }}"),
    *("{{ os.environ }}", "{{ import }}", "{{ exec }}", "{{ open }}", "{{ name.format }}", "{{ name.encode }}"),
    *(
        "{{ name.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ [].__class__.__base__ }}",
        "{{ self.__init__.__globals__ }}",
    ),
    *("{{ cycler.__init__.__globals__.os.environ }}", "{{ self }}", "{{ loop.__init__ }}", "{{ pair.a.__init__ }}"),
    *("{{ name['__cla' ~ 'ss__'] }}", "{{ name[['__class', '__'] | join] }}", "{{ true.real }}", "{{ 1.0.hex }}"),
    *("{{ short.append }}", "{{ pair.items }}", "{{ pair.keys }}", "{{ pair.get }}", "{{ pair.clear }}"),
]


@pytest.mark.parametrize("template", HARMLESS)
def test_names_of_python_are_unknown(template: str) -> None:
    """What Jinja, Flask and Python would offer is not there."""
    assert render(template, BIG) == ""


def test_loops_show_nothing_of_themselves() -> None:
    """A loop tells where it is, and has no other side."""
    template = (
        "{% for a in name %}{{ loop.index }}{{ loop.cycle }}{{ loop['__class__'] }}{{ loop._iterable }}{% endfor %}"
    )
    assert render(template, BIG) == "123"


class Tricky:
    """What not plain data is."""

    secret = CANARY

    def __str__(self) -> str:
        return CANARY


BOMB: Any = ["x"]
for _ in range(40):
    BOMB = [BOMB, BOMB]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (Tricky(), "not plain data"),
        ([Tricky], "not plain data"),
        (len, "not plain data"),
        (BOMB, "hold too much"),
        (["x" * LARGEST] * 5, "hold too much"),
        (10**5000, "cannot be rendered"),
        ("x" * (LARGEST + 1), "1000000 characters"),
    ],
    ids=["object", "class", "function", "bomb", "texts", "number", "text"],
)
def test_variables_are_plain_data(value: object, why: str) -> None:
    """Variables are copied as plain data, within bounds; what is not asked for is not looked at."""
    with pytest.raises(DefinitionError, match=why) as caught:
        render("{{ value }}", {"value": value})
    assert CANARY not in str(caught.value)
    assert render("{{ other }}", {"value": value, "other": 1}) == "1"


def test_variables_stay_as_they_are() -> None:
    """Rendering changes none of its variables, and one rendering knows nothing of another."""
    given: Mapping[str, Any] = {"a": [1], "b": {"c": [2]}}
    assert render("{% set a = 3 %}{{ a }}{{ b | dump }}", given) == '3{"c":[2]}'
    assert render("{{ a }}", given) == "[1]"
    assert given == {"a": [1], "b": {"c": [2]}}


@given(st.text(string.printable), st.text())
@example("{{ a }}", "{{ b }}")
def test_values_come_through(before: str, value: str) -> None:
    """What a variable holds comes out as it is, whatever stands around it."""
    before = before.replace("{", "").replace("\r", "")
    assert render(before + "{{ a }}", {"a": value}) == before + value


@given(st.text("{}%#[]()|.,~'\"\\ -=!abenv01\n", max_size=60))
def test_any_text_is_rendered_or_refused(template: str) -> None:
    """Whatever stands in a template, there is a text or a plain refusal."""
    with suppress(DefinitionError):
        assert isinstance(render(template, {"a": "x", "b": [1]}), str)
    assert isinstance(show_environment(template, value(notes())), str)


def notes() -> Notes:
    """Return the notes of a small file."""
    return Notes(parse("value: x", "suite.yaml"))


def value(noted: Notes, loading: Loading | None = None) -> Cursor:
    """Return the value of the small file."""
    return Cursor.of(noted, loading)["value"]


def shown(text: str, **environ: str) -> tuple[str, list[str]]:
    """Return *text* with the declared variables, and the errors."""
    noted = notes()
    found = show_environment(text, value(noted, Loading(Path("evals"), Path("repo"), environ)))
    assert CANARY not in found
    assert CANARY not in "".join(map(str, noted.errors))
    assert all(str(problem).startswith("suite.yaml:1:8: value: ") for problem in noted.errors)
    return found, [problem.message for problem in noted.errors]


UNDECLARED = [
    *("{{ env.CANARY }}", "{{env.CANARY}}", "{{ env['CANARY'] }}", '{{ env["CANARY"] }}', "{{ process.env.CANARY }}"),
    *("{{ env . CANARY }}", "{{ env.CANARY | upper }}", "{{ 'a' ~ env.CANARY }}", "{{ name ~ env.CANARY }}"),
    *("{% if env.CANARY %}a{% endif %}", "{% set a = env.CANARY %}", "${CANARY}", "${{ CANARY }}", "${{ env.CANARY }}"),
    *("$CANARY", "%CANARY%", " $CANARY/x", "%CANARY%\\x", "a ${CANARY} b", "{{- env.CANARY -}}"),
    *("{{ missing | default(env.CANARY) }}", "{{ env.CANARY.length }}", "{{ env.CANARY and 'a' }}"),
    *("{% for letter in env.CANARY %}{% endfor %}", "{{ (env).CANARY }}{{ env.CANARY }}"),
]


@pytest.mark.parametrize("text", UNDECLARED)
def test_undeclared_variables(text: str) -> None:
    """A variable that is not declared is an error that names it and the cure, whatever the environment holds."""
    message = shown(text)[1][-1]
    assert "the environment variable 'CANARY' is not declared" in message
    assert "environ={'CANARY': ...}" in message


@pytest.mark.parametrize(
    "text",
    [
        *("{{ env }}", "{{ env | dump }}", "{{ env[name] }}", "{{ env['CAN' ~ 'ARY'] }}", "{{ process.env }}"),
        *("{{ process['env'] }}", "{{ process.mainModule }}", "{% for name in env %}{{ name }}{% endfor %}"),
    ],
)
def test_whole_environment(text: str) -> None:
    """The environment is not shown as a whole, not even the declared part of it."""
    found, messages = shown(text, OTHER="x")
    assert messages == ["the environment is not shown as a whole; write {{ env.NAME }}"]
    assert CANARY not in render(found, {})


DECLARED = [
    ("{{ env.A }} and {{ env['A'] }}", 'v"1 and v"1'),
    ("{{ process.env.A | upper }}", 'V"1'),
    ("${AA} ${{ AA }} ${{ env.AA }}", "2 2 2"),
    ("$AA", "2"),
    ("$AA/x", "2/x"),
    ("%AA%/x", "2/x"),
    ("{{ env.B | default('d') }} {{ env.B | d(\"e\") | upper }} {{ env.B or 'f' }}", "d E f"),
    ("{{ env.A | default('d') }} ${BB:-g} ${BB-h}", 'v"1 g h'),
    ("{{ env.A ~ name }} {{ env.B or name }}", '{{ "v\\"1" ~ name }} {{ undeclared or name }}'),
    ("{% if env.A %}{{ name }}{% endif %}", '{% if "v\\"1" %}{{ name }}{% endif %}'),
    ("file://{{ env.AGENTV_REPO_ROOT }}/a.yaml", f"file://{Path('repo').absolute()}/a.yaml"),
    ("{{ name }}{{ a.env.B }}{{ 'env.B' }}", "{{ name }}{{ a.env.B }}{{ 'env.B' }}"),
    ("{% raw %}{{ env.B }}{% endraw %}", "{% raw %}{{ env.B }}{% endraw %}"),
    ("$${AA} costs $AAPL, 5%CANARY%, `${name}`, env.CANARY", "${AA} costs $AAPL, 5%CANARY%, `${name}`, env.CANARY"),
    ("{{ environment }} {{ process }}", "{{ environment }} {{ process }}"),
    ("${{ price }}", "${{ price }}"),
]


@pytest.mark.parametrize(("text", "expected"), DECLARED)
def test_declared_variables(text: str, expected: str) -> None:
    """Declared variables stand where a file asks for them; defaults hold, and the rest stays for the case."""
    assert shown(text, A='v"1', AA="2") == (expected, [])


def test_expressions_of_both() -> None:
    """What asks for the environment and for the case comes out right in the end."""
    found, errors = shown(
        "{{ env.A ~ name }} {{ env.B or name }} {% if env.A == 'x\"\\U0001f600' %}y{% endif %}", A='x"😀'
    )
    assert (render(found, {"name": "n"}), errors) == ('x"😀n n y', [])


def test_root_of_the_repository() -> None:
    """The root of the repository is the base, unless it is declared; a text has none."""
    text = "{{ env.AGENTV_REPO_ROOT }}"
    assert shown(text, AGENTV_REPO_ROOT="/other") == ("/other", [])
    noted = notes()
    show_environment(text, value(noted))
    assert "'AGENTV_REPO_ROOT' is not declared" in noted.errors[0].message


def test_one_error_a_name() -> None:
    """A text that asks for the same variable many times has one error."""
    assert len(shown("{{ env.CANARY }}" * 50)[1]) == 1
