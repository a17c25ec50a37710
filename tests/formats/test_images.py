"""Images that suites name: read within the base, told by their first bytes, attached, and written back."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from rubric import Case, Judge, LoadError, Rubric, Suite, convert, dump_suite, load_suite, loads_suite
from rubric.formats import DumpError, dumps_suite, images
from rubric.formats.rubrics import schema
from rubric.suites import ModelTarget
from rubric.suites.targets.http import prompt_of
from rubric.suites.targets.models import opening
from rubric.testing.scripted_model import ScriptedModel
from tests.servers import BODIES, Server

PNG = b"\x89PNG\r\n\x1a\n the rest of it"
KINDS = {"png": PNG, "jpeg": b"\xff\xd8\xff\xe0", "gif": b"GIF89a", "webp": b"RIFF\x10\x00\n\x00WEBPVP8 "}
ADDRESS = "https://example.com/cat.png"
NATIVE = "suite: s\ncases: [{id: a, input: What is it?, output: A cat., rubric: Is right, images: [%s]}]\n"


def data_url(kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(KINDS[kind]).decode()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a project with images, beside which another lies."""
    (tmp_path / "outside.png").write_bytes(PNG)
    base = tmp_path / "project"
    (base / "evals" / "images").mkdir(parents=True)
    (base / "pyproject.toml").touch()
    for kind, data in KINDS.items():
        (base / "evals" / "images" / f"cat.{kind}").write_bytes(data)
    return base / "evals"


def native(folder: Path, *named: str) -> Suite:
    (folder / "s.yaml").write_text(NATIVE % ", ".join(named))
    return load_suite(folder / "s.yaml")


def problem(folder: Path, *named: str) -> str:
    with pytest.raises(LoadError) as caught:
        native(folder, *named)
    (found,) = caught.value.problems
    assert (found.line, found.path) == (2, "cases[0].images[0]")
    return found.message


# -- native suites -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_becomes_the_data_url_of_what_its_first_bytes_say(folder: Path, kind: str) -> None:
    """The type comes from the content, whatever the file's name; an address stays an address."""
    (folder / "any.name").write_bytes(KINDS[kind])
    assert native(folder, "file://any.name", ADDRESS)["a"].images == (data_url(kind), ADDRESS)


def test_an_image_above_the_folder_and_within_the_project_is_read(folder: Path) -> None:
    """`../` is allowed up to the project's folder."""
    (folder.parent / "cat.png").write_bytes(PNG)
    assert native(folder, "file://../cat.png")["a"].images == (data_url(),)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file://../../outside.png", "outside of"),
        ("file:///etc/hostname", "outside of"),
        ("file://~/cat.png", "home folders are not read"),
        ("file://%2e%2e/%2e%2e/outside.png", "percent-encoding"),
        ("file:////host/cat.png", "another machine"),
        ("file://images/*.png", "not those that match a pattern"),
        ("file://images/none.png", "no such file"),
        ("file://images", "this is not a file"),
        ("file://s.yaml", "not a PNG, JPEG, GIF or WebP image"),
        ("file://link.png", "outside of"),
        ("file://.env", "hold secrets"),
        ("images/cat.png", r"in a suite file also file://"),
        ("http://example.com/cat.png", "https://"),
    ],
)
def test_what_is_no_image_within_the_base_is_refused_at_its_place(folder: Path, name: str, why: str) -> None:
    """Paths that leave the project, patterns, secrets and other file types each have their own error."""
    (folder / ".env").write_bytes(PNG)
    (folder / "link.png").symlink_to(folder.parent.parent / "outside.png")
    assert why in problem(folder, f'"{name}"')


@pytest.mark.skipif(os.name != "posix", reason="pipes are a matter of POSIX")
def test_a_pipe_does_not_hang(folder: Path) -> None:
    """A named pipe is refused unopened."""
    os.mkfifo(folder / "cat.png")
    assert "this is not a file" in problem(folder, "file://cat.png")


def test_an_image_beyond_the_limit_is_refused(folder: Path) -> None:
    """The error names the limit of 10 MB."""
    (folder / "cat.png").write_bytes(PNG + bytes(images.LARGEST))
    assert "at most 10 MB" in problem(folder, "file://cat.png")


def test_the_images_of_a_load_are_bounded_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file named twice counts once; a second file passes the common limit and is refused."""
    monkeypatch.setattr(images, "MOST_BYTES", len(PNG) + 1)
    same = native(folder, "file://images/cat.png", "file://images/cat.png")["a"].images
    assert same[0] is same[1]
    (folder / "dog.png").write_bytes(PNG)
    with pytest.raises(LoadError, match="the images come to more than"):
        native(folder, "file://images/cat.png", "file://dog.png")


def test_all_problems_of_a_suite_with_images_are_told_at_once(folder: Path) -> None:
    """Three bad images are three problems of one error, each with its path."""
    with pytest.raises(LoadError) as caught:
        native(folder, "file://none.png", "cat.png", "file://s.yaml")
    assert [found.path for found in caught.value.problems] == [f"cases[0].images[{n}]" for n in range(3)]


def test_a_text_without_a_file_names_no_image() -> None:
    """A suite that is loaded from text has no folder, so `file://` is refused."""
    with pytest.raises(LoadError, match="stands in no file"):
        loads_suite(NATIVE % "file://cat.png")


def test_images_are_written_as_data_urls_and_read_again(folder: Path) -> None:
    """YAML and JSON both keep the images, also above the size that a plain text may have."""
    (folder / "cat.png").write_bytes(PNG + bytes(300_000))
    suite = native(folder, "file://cat.png", ADDRESS)
    dump_suite(suite, folder / "again.yaml")
    assert load_suite(folder / "again.yaml") == suite
    assert loads_suite(dumps_suite(suite, language="json")) == suite


def test_a_suite_too_large_for_a_file_says_that_images_stay_in_theirs(folder: Path) -> None:
    """The error of writing names `file://` as the cure."""
    (folder / "cat.png").write_bytes(PNG + bytes(4_000_000))
    with pytest.raises(DumpError, match="keep large images in files, named as file://"):
        dumps_suite(native(folder, "file://cat.png"))


@pytest.mark.parametrize("image", [ADDRESS, "data:image/png;base64,AA==", "file://cat.png"])
def test_the_schema_takes_what_is_read(image: str) -> None:
    """The JSON Schema accepts addresses, data URLs and `file://`, and refuses bare paths."""
    case = {"id": "a", "rubric": "x", "images": [image]}
    validator = Draft202012Validator(schema("suite"))
    assert validator.is_valid({"suite": "s", "cases": [case]})
    assert not validator.is_valid({"suite": "s", "cases": [{**case, "images": ["cat.png"]}]})


# -- judges and targets ------------------------------------------------------------------------------------


def test_a_judge_and_a_target_are_sent_the_images(folder: Path) -> None:
    """Both requests carry the file's data URL and the address, in order."""
    suite = native(folder, "file://images/cat.png", ADDRESS)
    asked = Suite("s", [Case("a", "Is right", input="What is it?", images=suite["a"].images)])
    with Server() as server:
        at = server.at(next(iter(BODIES)))
        params = {"api_base": at.openai, "api_key": "k"}
        asked.run(Judge("openai/judge", params=params), target=ModelTarget("openai/answers", params=params))
        contents = [request.body["messages"][-1]["content"] for request in at.requests]
    assert len(contents) == 2
    for sent in contents:
        found = [block["image_url"]["url"] for block in sent if block["type"] == "image_url"]
        assert found == [data_url(), ADDRESS]


def test_images_go_with_the_last_message_of_the_user() -> None:
    """The user's last message gets the image blocks, even if an assistant's message follows."""
    chat = [("system", "Be brief."), ("user", "Look."), ("assistant", "Yes?")]
    case = Case("a", "x", messages=[{"role": r, "content": c} for r, c in chat], images=[ADDRESS])
    system, user, assistant = opening(case)
    block = {"type": "image_url", "image_url": {"url": ADDRESS}}
    assert user == {"role": "user", "content": [block, {"type": "text", "text": "Look."}]}
    assert (system["content"], assistant["content"]) == ("Be brief.", "Yes?")
    assert ADDRESS in prompt_of(Case("a", "x", input="What is it?", images=[ADDRESS]))


# -- promptfoo ---------------------------------------------------------------------------------------------

OPENAI = {"type": "image_url", "image_url": {"url": "{{image}}"}}
WRAPPED = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,{{image}}"}}
RESPONSES = {"type": "input_image", "image_url": "{{ image }}"}
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "{{image}}"}}
BY_URL = {"type": "image", "source": {"type": "url", "url": "{{image}}"}}
TEXT = {"type": "text", "text": "What is it?"}
ASSERT = [{"type": "llm-rubric", "value": "Is right"}]


def promptfoo(folder: Path, block: object, *values: object) -> Suite:
    prompt = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": [TEXT, block]}])
    tests = [{"vars": {"image": value}, "providerOutput": "A cat.", "assert": ASSERT} for value in values]
    (folder / "promptfooconfig.yaml").write_text(json.dumps({"prompts": [prompt], "tests": tests}))
    return load_suite(folder / "promptfooconfig.yaml")


@pytest.mark.parametrize("block", [OPENAI, WRAPPED, RESPONSES, ANTHROPIC, BY_URL])
def test_the_images_of_a_promptfoo_chat_are_the_cases(folder: Path, block: object) -> None:
    """Five forms of image blocks give the same images and leave the text in the messages."""
    suite = promptfoo(folder, block, "file://images/cat.png", ADDRESS, data_url("jpeg"))
    assert [case.images for case in suite] == [(data_url(),), (ADDRESS,), (data_url("jpeg"),)]
    assert [(m.role, m.content) for m in suite.cases[0].messages] == [("system", "Be brief."), ("user", "What is it?")]
    assert not suite.warnings


def test_an_image_that_cannot_be_read_leaves_its_promptfoo_case_ungraded(folder: Path) -> None:
    """Only the cases with bad images are ungraded; the warnings carry their paths."""
    suite = promptfoo(folder, OPENAI, *(f"file://{name}" for name in ("no.png", "../../outside.png", "s.png")), ADDRESS)
    rows = [*suite.run("offline")]
    assert [row.status == "ungraded" for row in rows] == [True, True, True, False]
    assert "an image (file://no.png) that is not within reach" in rows[0].reason
    told = [warning for warning in suite.warnings if warning.path.endswith("vars.image")]
    assert [str(one.path) for one in told] == [f"tests[{n}].vars.image" for n in range(3)]
    assert "outside of" in told[1].message


def test_an_image_is_never_looked_for_by_a_hostile_name(folder: Path) -> None:
    """A path into a home folder is a load error."""
    with pytest.raises(LoadError, match=r"tests\[0\].vars.image.*home folders are not read"):
        promptfoo(folder, OPENAI, "file://~/cat.png")


def test_an_image_that_no_prompt_attaches_stays_a_name(folder: Path) -> None:
    """A variable that is used as text stays text, with a warning."""
    suite = promptfoo(folder, {"type": "text", "text": "{{image}}"}, "file://images/cat.png")
    assert suite.cases[0].images == ()
    assert [warning.path for warning in suite.warnings] == ["tests[0].vars.image"]


def test_other_content_of_a_promptfoo_chat_is_told(folder: Path) -> None:
    """A block that is neither text nor image causes a warning that names its type."""
    suite = promptfoo(folder, {"type": "input_audio", "input_audio": {}}, "x")
    assert "'input_audio' in a prompt is not attached" in suite.warnings[0].message


def test_a_judge_sees_the_images_of_a_rubric_prompt(folder: Path) -> None:
    """They stand beside those of the case, each once, also in the suite that is written in our own format."""
    prompt = [{"role": "user", "content": [TEXT, OPENAI, {"type": "text", "text": "{{ output }}: {{ rubric }}"}]}]
    graded = {"type": "llm-rubric", "value": "Is right", "rubricPrompt": prompt, "transform": "output + '!'"}
    tests = [{"vars": {"image": name}, "assert": [graded]} for name in ("file://images/cat.png", ADDRESS, "no image")]
    config = {"prompts": ["What?"], "tests": [{**test, "providerOutput": "A cat."} for test in tests]}
    (folder / "promptfooconfig.yaml").write_text(json.dumps(config))
    suite = load_suite(folder / "promptfooconfig.yaml")
    assert "llm-rubric with image_url in its rubricPrompt" in suite.plan("offline")[2].unsupported[0]
    for one in (suite, loads_suite(str(convert(suite, "native")))):
        model = ScriptedModel([{"pass": True, "score": 1, "reason": "so"}] * 2)
        rows = [*one.run(Judge(model), concurrency=1)]
        assert [row.status for row in rows] == ["passed", "passed", "ungraded"]
        assert [[media.address for _, media in ask.media] for ask in model.asks] == [[data_url()], [ADDRESS]]
        assert [ask.messages[0].text for ask in model.asks] == ["What is it?\nA cat.!: Is right"] * 2


def test_an_image_that_the_answer_names_leaves_its_case_ungraded(folder: Path) -> None:
    """It is known in the run alone, and what a candidate wrote is no address that a judge is sent to."""
    block = {"type": "image_url", "image_url": {"url": "{{ output }}"}}
    graded = {"type": "llm-rubric", "value": "a", "rubricPrompt": [{"role": "user", "content": [block]}]}
    (folder / "promptfooconfig.yaml").write_text(json.dumps({"tests": [{"vars": {"a": "b"}, "assert": [graded]}]}))
    (row,) = load_suite(folder / "promptfooconfig.yaml").plan("offline")
    assert "image_url in its rubricPrompt" in row.unsupported[0]


def test_a_case_with_images_is_written_for_promptfoo() -> None:
    """The messages and the images come back from the converted file."""
    chat = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "Yes?"}]
    rubric = Rubric.of("Is right", threshold=None)
    suite = Suite("s", [Case("a", rubric, output="A cat.", messages=chat, images=[ADDRESS, data_url()])])
    (case,) = loads_suite(str(convert(suite, "promptfoo")), "promptfoo")
    assert (case.messages, case.images) == (suite["a"].messages, suite["a"].images)


# -- AgentV ------------------------------------------------------------------------------------------------


def agentv(folder: Path, content: object, **fields: object) -> Suite:
    test = {"id": "a", "criteria": "Is right", "input": [{"role": "user", "content": content}], **fields}
    (folder / "a.eval.yaml").write_text(json.dumps({"tests": [test]}))
    return load_suite(folder / "a.eval.yaml", "agentv-2")


def test_the_content_blocks_of_agentv_are_attached(folder: Path) -> None:
    """Images of input and output are attached in order, also by a variable and as `file` blocks."""
    blocks = [
        {"type": "text", "value": "What is it?"},
        {"type": "image", "value": "./images/cat.png"},
        {"type": "image", "value": "{{ photo }}"},
        {"type": "file", "value": "images/cat.gif"},
        {"type": "image_url", "image_url": {"url": ADDRESS}},
    ]
    output = [{"type": "text", "value": "This."}, {"type": "image", "value": "file://images/cat.webp"}]
    suite = agentv(folder, blocks, vars={"photo": "images/cat.jpeg"}, output=output)
    expected = (data_url(), data_url("jpeg"), data_url("gif"), ADDRESS, data_url("webp"))
    assert (suite["a"].input, suite["a"].output, suite["a"].images) == ("What is it?", "This.", expected)
    assert not suite.warnings


def test_an_image_of_agentv_is_looked_for_up_to_the_project(folder: Path) -> None:
    """A path with a leading slash starts at the project's folder."""
    (folder.parent / "shared.png").write_bytes(PNG)
    assert agentv(folder, [{"type": "image", "value": "/shared.png"}])["a"].images == (data_url(),)


@pytest.mark.parametrize("name", ["none.png", "../../outside.png", "a.eval.yaml"])
def test_an_image_that_cannot_be_read_leaves_its_agentv_case_ungraded(folder: Path, name: str) -> None:
    """The reason names the file, and the warning has the block's path."""
    suite = agentv(folder, [{"type": "image", "value": name}], output="A cat.")
    (row,) = suite.run("offline")
    assert row.status == "ungraded"
    assert f"an image ({name}) that is not within reach" in row.reason
    assert suite.warnings[0].path == "tests[0].input[0].content[0]"


def test_an_image_of_a_reference_is_told_and_not_shown(folder: Path) -> None:
    """An image in `expected_output` is left out with a warning."""
    suite = agentv(folder, "Hi", expected_output=[{"type": "image", "value": "images/cat.png"}])
    assert suite["a"].images == ()
    assert "'image' is not shown to the judge" in suite.warnings[0].message


def test_a_case_may_ask_by_an_image_alone() -> None:
    """The opening message then holds the image block first."""
    assert opening(Case("b", "Is right", images=[ADDRESS]))[0]["content"][0]["type"] == "image_url"
