"""Targets beyond models and functions: the providers of a file, applications over HTTP, finished outputs, runs."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, cycle
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Case, Criterion, DefinitionError, Rubric, Suite, ToolCall, load_suite, loads_suite
from rubric.embed import share_interval
from rubric.internals.frozen_map import FrozenMap
from rubric.results import Row
from rubric.suites import DeferError, HTTPTarget, ModelTarget, Providers, Report, pass_rates
from tests.command_line import run
from tests.rows import each_row
from tests.servers import openai_serving


class Application(ThreadingHTTPServer):
    """An application that answers with what it was sent, in JSON."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.seen: list[tuple[str, str, dict[str, str], str]] = []
        self.status = 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Answering(BaseHTTPRequestHandler):
    server: Application

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        said = json.dumps({"choices": [{"message": {"content": f"You said: {body or self.path}"}}], "n": 7}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(said)))
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = _answer  # noqa: N815 - as the class calls them

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def application() -> Iterator[Application]:
    server = Application()
    yield server
    server.shutdown()
    server.server_close()


def asking(text: str = "Hi", **fields: Any) -> Suite:
    return Suite("s", [Case("a", "Says hi", input=text, **fields)])


# -- over HTTP ---------------------------------------------------------------------------------------------


def test_an_application_is_sent_the_input_in_a_template(application: Application) -> None:
    """Address, headers and body are filled in, and the answer is found by its path."""
    target = HTTPTarget(
        f"http://{application.host}/chat",
        headers={"X-Who": "{{ who }}"},
        body={"q": "{{ prompt }}", "n": 2},
        answer="choices[0].message.content",
    )
    (row,) = asking('say "hi"', variables={"who": "Dana"}).run(lambda _: '{"pass": true}', target=target)
    ((method, path, headers, body),) = application.seen
    assert (method, path, headers["X-Who"], headers["Content-Type"]) == ("POST", "/chat", "Dana", "application/json")
    assert json.loads(body) == {"q": 'say "hi"', "n": 2}
    assert row.output == f"You said: {body}"


def test_what_is_shown_of_an_application_holds_no_header() -> None:
    """Its `repr` has the names of secret headers, and none of their values."""
    shown = repr(HTTPTarget("https://agent.test/", headers={"Authorization": "Bearer abc", "X-Run": "7"}))
    assert shown == "HTTPTarget('https://agent.test/', headers={'Authorization': '***', 'X-Run': '7'})"


def test_a_value_is_no_template_and_breaks_no_json(application: Application) -> None:
    """Quotes and braces of the input arrive as they are."""
    target = HTTPTarget(f"http://{application.host}/", answer="choices[0].message.content")
    asking('"}, {{ secret }}', variables={"secret": "s3"}).run("offline", target=target)
    assert json.loads(application.seen[0][3]) == {"prompt": '"}, {{ secret }}'}


@pytest.mark.parametrize(("status", "calls"), [(500, 2), (400, 1), (302, 1)])
def test_an_error_of_the_application_leaves_the_case_ungraded(
    application: Application, status: int, calls: int
) -> None:
    """A 500 is retried; a 400 and a redirect are not."""
    application.status = status
    (row,) = asking().run("offline", target=HTTPTarget(f"http://{application.host}/", retries=1))
    assert row.status == "ungraded"
    assert application.host in row.reason
    assert len(application.seen) == calls


def test_an_answer_that_is_not_there_is_no_candidate(application: Application) -> None:
    """The reason names the path that was not found."""
    (row,) = asking().run("offline", target=HTTPTarget(f"http://{application.host}/", answer="choices[3].text"))
    assert row.status == "ungraded"
    assert "there is no 'choices[3].text' in it" in row.reason


def test_a_function_may_find_the_answer(application: Application) -> None:
    """It gets the decoded response of a GET request."""
    target = HTTPTarget(f"http://{application.host}/{{{{ prompt }}}}", method="GET", answer=lambda data: str(data["n"]))
    (row,) = asking("x").run("offline", target=target)
    assert (row.output, application.seen[0][:2]) == ("7", ("GET", "/x"))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"url": "file:///etc/passwd"}, "expected an http:// or https:// address"),
        ({"url": "http://me:pw@x.example/"}, "must not hold a password"),
        ({"url": "http://x.example/", "method": "DELETE"}, "unknown value 'DELETE'"),
        ({"url": "http://x.example/", "answer": "a..b"}, "expected a path"),
    ],
)
def test_a_target_that_cannot_be_asked_is_refused(given: dict[str, Any], problem: str) -> None:
    """Other schemes, passwords, methods and broken paths are definition errors."""
    with pytest.raises(DefinitionError, match=problem):
        HTTPTarget(given.pop("url"), **given)


# -- the providers of a file -------------------------------------------------------------------------------

TWO = """
prompts: ["Say {{ word }}"]
providers: [openai:chat:gpt-5-mini, {id: "openai:gpt-5", label: big, config: {temperature: 0, apiHost: x.example, top_k: 4}}]
tests:
  - vars: {word: hi}
    assert: [{type: contains, value: OK}]
"""


def test_the_providers_of_a_file_are_asked_only_on_request() -> None:
    """Without `target="providers"` the cases wait; with it each provider gets its own settings."""
    suite = loads_suite(TWO, "promptfoo")
    assert [row.status for row in suite.run("offline")] == ["deferred", "deferred"]
    with openai_serving(lambda _: "OK") as endpoint:
        report = suite.run("offline", target="providers")
    assert [(row.status, dict(row.cell)["provider"]) for row in report] == [
        ("passed", "openai:chat:gpt-5-mini"),
        ("passed", "big"),
    ]
    bodies = sorted((request.body for request in endpoint.requests), key=lambda body: body["model"])
    assert [body["model"] for body in bodies] == ["gpt-5", "gpt-5-mini"]
    assert bodies[0]["messages"] == [{"role": "user", "content": "Say hi"}]
    where = "no file sets an address: the environment does, such as OPENAI_BASE_URL"
    assert report[1].warnings[-1] == f"apiHost, top_k of the provider was not sent; {where}"


def test_a_provider_without_a_model_defers_its_case_and_says_why() -> None:
    """Run and plan give the same reason."""
    suite = loads_suite(TWO.replace("openai:chat:gpt-5-mini", "exec:./run.sh"), "promptfoo")
    row = next(iter(suite.run("offline", target="providers")))
    assert row.status == "deferred"
    assert "exec:./run.sh" in row.reason
    assert suite.plan("offline", target="providers").cases[0].deferred == row.reason


HTTP = """
prompts: ["Say {{{{ word }}}}"]
providers:
  - id: http
    config:
      url: http://{}/v1
      body: {{q: "{{{{ prompt }}}}", w: "{{{{ word | upper }}}}"}}
      transformResponse: {}
tests: [{{vars: {{word: hi}}, assert: [{{type: icontains, value: say hi}}]}}]
"""


@pytest.mark.parametrize(
    "find", ["json.choices[0].message.content", "'(json, text) => ({output: json.choices[0].message.content})'"]
)
def test_an_address_of_a_file_is_asked_if_its_host_is_allowed(application: Application, find: str) -> None:
    """Without permission no request leaves and the reason names the option."""
    if "=>" in find:
        pytest.importorskip("quickjs", reason="needs the extra javascript")
    suite = loads_suite(HTTP.format(application.host, find), "promptfoo")
    (row,) = suite.run("offline", target="providers")
    assert row.status == "deferred"
    assert f"--allow-host {application.host}" in row.reason
    assert not application.seen
    for allowed in (application.host, "127.0.0.1"):
        (row,) = suite.run("offline", target=Providers([allowed]))
        assert row.status == "passed"
    assert json.loads(application.seen[0][3]) == {"q": "Say hi", "w": "HI"}
    assert not any("key" in name.lower() or name == "Authorization" for name in application.seen[0][2])


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("transform: 'typeof output + output.n'", "object7"),
        ("transform: 'typeof output', config: {transformResponse: 'json.choices[0]'}", "object"),
        ("transform: 'typeof output', config: {transformResponse: 'json.choices[0].message.content'}", "string"),
        ("config: {transformResponse: 'context.response.status + 1'}", "201"),
        ("config: {transformResponse: '(json, text, context) => context.response.data.n'}", "7"),
        ("config: {transformResponse: 'json.n'}", "7"),
    ],
)
def test_what_an_address_answers_is_data_for_its_transform(application: Application, rest: str, said: str) -> None:
    """A text is a text, and a response without `transformResponse` is its JSON, as in promptfoo."""
    pytest.importorskip("quickjs", reason="needs the extra javascript")
    suite = loads_suite(
        f"""
prompts: [Hi]
providers: [{{id: 'http://{application.host}/v1', {rest}}}]
tests: [{{assert: [{{type: equals, value: '{said}'}}]}}]
""",
        "promptfoo",
    )
    (row,) = suite.run("offline", target=Providers(["127.0.0.1"]))
    assert row.status == "passed", row.reason


def test_a_provider_that_cannot_be_asked_is_no_fault_of_the_file() -> None:
    """A missing variable is noted at the provider, and its value is in no `repr`."""
    text = HTTP.format("x.example", "json.a").replace("body:", "headers: {k: '{{ env.SECRET }}'}\n      body:")
    (case,) = loads_suite(text, "promptfoo")
    assert "undeclared environment variable 'SECRET'" in case.providers[0].missing
    (case,) = loads_suite(text, "promptfoo", environ={"SECRET": "s3"})
    assert not case.providers[0].missing
    assert "s3" not in repr(case.providers[0])


def test_agentv_names_its_providers_too() -> None:
    """Known names become models, others are missing, and `repeat` makes runs of each."""
    suite = loads_suite("""
providers: [openai:gpt-5-mini, llm]
prompts: ["{{ input }}"]
evaluate_options: {repeat: {count: 2}}
tests: [{id: a, vars: {input: hi}, assert: [Says hi]}]
""")
    (case,) = suite
    assert [(one.model, bool(one.missing)) for one in case.providers] == [("openai/gpt-5-mini", False), ("", True)]
    assert [one.id for one in suite.expanded("providers")] == [
        "a / openai:gpt-5-mini [run 1]",
        "a / openai:gpt-5-mini [run 2]",
        "a / llm [run 1]",
        "a / llm [run 2]",
    ]


# -- finished outputs --------------------------------------------------------------------------------------

THREE = Suite("s", [Case(id_, "Is warm", variables={"q": id_.upper()}) for id_ in ("a", "b", "c")])


def test_replies_are_matched_by_id_and_the_rest_is_listed(tmp_path: Path) -> None:
    """Unknown ids, rows without outputs and cases without replies each get a warning."""
    file = tmp_path / "replies.jsonl"
    rows = [{"id": "b", "output": "B!"}, {"id": "a", "answer": "A!"}, {"id": "x", "output": "X!"}, "no", {"id": "c"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    suite = THREE.answered(file)
    assert [case.output for case in suite] == ["A!", "B!", None]
    said = "\n".join(map(str, suite.warnings))
    assert "[2]: no case for x" in said
    assert "[3]: no case for" in said
    assert "[4]: no output" in said
    assert "no reply for the case 'c'" in said


@pytest.mark.parametrize("command", ["plan", "grade"])
def test_a_filtered_run_tells_nothing_of_the_replies_of_other_cases(command: str, tmp_path: Path) -> None:
    """Warnings about cases outside the filter are left out."""
    suite, replies = tmp_path / "suite.yaml", tmp_path / "replies.jsonl"
    cases = [{"id": id_, "rubric": {"criteria": ["Is warm"]}} for id_ in ("a1", "a2", "b1", "b2")]
    suite.write_text(json.dumps({"cases": cases}))
    rows = [{"id": "a1", "output": "A!"}, {"id": "b1", "error": "b1 is lost"}, {"id": "x", "output": "X!"}]
    replies.write_text("\n".join(map(json.dumps, rows)))
    arguments = [command, str(suite), "--outputs", str(replies)]
    assert "no reply for the case 'b2'" in run(*arguments).output
    said = run(*arguments, "--filter", "a*").output
    assert "no reply for the case 'a2'" in said
    assert "no case for x" in said
    assert "'b" not in said
    assert "b1 is lost" not in said


def test_replies_without_names_are_matched_by_their_order() -> None:
    """As many replies as cases match by place; fewer are refused."""
    assert [case.output for case in THREE.answered(["1", {"output": "2"}, "3"])] == ["1", "2", "3"]
    with pytest.raises(DefinitionError, match="2 replies without ids or variables for 3 cases"):
        THREE.answered(["1", "2"])


def test_replies_that_no_order_matches_are_told_the_id_that_names_a_case() -> None:
    """The error shows a row that would match."""
    with pytest.raises(DefinitionError, match=r'replies\[0\]: .*such as \{"id": "a", "output": "..."\}'):
        THREE.answered(["1", "2"])


def test_a_report_of_a_run_gives_its_outputs_again(tmp_path: Path) -> None:
    """JSON and JSON lines of a report restore the output of each run."""
    report = THREE.run("offline", target=lambda case: case.id * 2, runs=2)
    for name in ("report.json", "report.ndjson"):
        report.write(tmp_path / name)
        again = THREE.answered(tmp_path / name)
        assert [(case.id, case.output) for case in again] == [(row.id, row.output) for row in report]
        assert not again.warnings


def test_a_row_of_a_report_without_what_was_graded_is_no_reply(tmp_path: Path) -> None:
    """Its calls of tools are words there, and a target that failed gave nothing: graded, both would fail."""

    def target(case: Case) -> Candidate | str:
        if case.id == "b":
            raise RuntimeError("down")
        return Candidate("done", tool_calls=[ToolCall("search")]) if case.id == "a" else "C!"

    THREE.run("offline", target=target).write(tmp_path / "report.json")
    again = THREE.answered(tmp_path / "report.json")
    assert [case.output for case in again] == [None, None, "C!"]
    said = "\n".join(map(str, again.warnings))
    assert "the calls of a run in words alone" in said


CELLS = """
prompts: ["Say {{ q }}", '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ q }}"}]']
providers: [openai:one, openai:two]
tests: [{vars: {q: A}, assert: [{type: contains, value: A}]}]
"""


@each_row("key", ["vars", "id"])
@each_row(
    "prompt", ["prompt-1", "Say A", "Say {{ q }}", {"raw": "Say A", "label": "Say {{ q }}"}, {"label": "Say {{ q }}"}]
)
def test_a_reply_with_its_provider_and_prompt_belongs_to_that_cell(key: str, prompt: Any) -> None:
    """By the label of the prompt, its template, or the text that was sent; the test's other cells have no output."""
    suite = loads_suite(CELLS, "promptfoo")
    reply = {key: {"vars": {"q": "A"}, "id": "A"}[key], "provider": suite.cases[2].cell["provider"], "prompt": prompt}
    reply |= {"target": reply["provider"]} if key == "id" else {}
    assert [case.output for case in suite.answered([{**reply, "output": "A!"}])] == [None, None, "A!", None]


def test_a_reply_of_several_prompts_is_told_the_key_that_names_one() -> None:
    """The variables alone fit a case of each."""
    suite = loads_suite(CELLS.replace(", openai:two", ""), "promptfoo")
    with pytest.raises(
        DefinitionError, match=r'such as "id": "A / prompt-1", or the prompt .*, such as "prompt": "prompt-1"'
    ):
        suite.answered([{"vars": {"q": "A"}, "output": "A!"}])


@pytest.mark.parametrize("place", range(4))
def test_a_result_of_promptfoo_belongs_to_the_cell_whose_prompt_was_sent(place: int) -> None:
    """The labels of promptfoo's results begin with the path of the prompt's file, and go on with its text."""
    suite = loads_suite(CELLS, "promptfoo")
    case = suite.cases[place]
    chat = [{"role": m.role, "content": m.content} for m in case.messages]
    row = {
        "vars": {"q": "A"},
        "promptIdx": place,
        "provider": {"id": case.cell["provider"]},
        "prompt": {"raw": json.dumps(chat) if chat else case.input, "label": "prompts/p.txt: Say {{ q }}"},
        "response": {"output": "A!"},
    }
    assert [n for n, one in enumerate(suite.answered([row])) if one.output == "A!"] == [place]


def test_a_reply_without_some_variables_of_the_cases_is_told_which() -> None:
    """The error names the missing variable."""
    suite = loads_suite("tests: [{vars: {q: A, topic: T}, assert: [{type: contains, value: A}]}]", "promptfoo")
    with pytest.raises(DefinitionError, match=r"no case .the cases also have the variables topic\b"):
        suite.answered([{"vars": {"q": "A"}, "output": "A!"}])


def test_a_model_without_the_server_of_a_case_defers_it() -> None:
    """The message has the option that starts the server."""
    (case,) = Suite("s", [Case("a", "T", input="Weather?", server="weather")])
    with pytest.raises(DeferError, match="--server weather=COMMAND"):
        asyncio.run(ModelTarget("openai/m").respond(case))


def test_replies_are_matched_by_variables() -> None:
    """The order of the rows does not matter."""
    rows = [{"vars": {"q": one}, "output": one * 2} for one in "CBA"]
    assert [case.output for case in THREE.answered(rows)] == ["AA", "BB", "CC"]


def test_replies_that_all_belong_elsewhere_are_refused() -> None:
    """No match at all is an error, not a list of warnings."""
    with pytest.raises(DefinitionError, match="none of 1 replies belongs to one of the 3 cases"):
        THREE.answered([{"id": "z", "output": "Z"}])


def test_several_replies_to_a_case_are_its_runs() -> None:
    """Two rows with one id make two runs of the case."""
    suite = THREE.answered([{"id": "a", "output": "1"}, {"id": "a", "output": "2"}, {"id": "b", "output": "3"}])
    assert [case.id for case in suite] == ["a [run 1]", "a [run 2]", "b", "c"]


def test_results_of_promptfoo_are_matched_by_variables_provider_and_prompt(tmp_path: Path) -> None:
    """Rows in another order find their cells by provider label and prompt."""
    suite = loads_suite(TWO.replace("word: hi", "word: [hi, ho]"), "promptfoo")
    rows = [
        {
            "vars": {"word": word},
            "promptIdx": n,
            "provider": {"id": id_, "label": label},
            "prompt": {"raw": f"Say {word}", "label": "Say {{ word }}"},
            "response": {"output": f"{word} of {label or id_}"},
        }
        for word in ("ho", "hi")
        for n, (id_, label) in enumerate([("openai:chat:gpt-5-mini", ""), ("openai:gpt-5", "big")])
    ]
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": rows}}))
    answered = suite.answered(file)
    assert [case.output for case in answered] == [
        f"{case.variables['word']} of {case.cell['provider']}" for case in suite
    ]


def test_results_of_agentv_are_matched_by_test_id() -> None:
    """Both spellings of the keys work, and a chat's answer is the output."""
    chat = [{"role": "assistant", "content": "Hello!"}]
    suite = THREE.answered([{"test_id": "a", "output": chat, "score": 1}, {"testId": "b", "candidate_answer": "B"}])
    assert [case.output for case in suite][:2] == ["Hello!", "B"]


def containing(word: str) -> Rubric:
    """Return a rubric that code decides: the output has *word*."""
    return Rubric(criteria=[Criterion(check=word)])


def test_replies_of_several_targets_to_one_case_are_no_runs_of_one() -> None:
    """Else pass@k would mix two models."""
    rows = [{"id": "a", "target": target, "output": f"{target} {n}"} for n in (1, 2) for target in ("big", "small")]
    suite = THREE.answered([*rows, {"id": "b", "target": "big", "output": "one"}])
    assert [case.id for case in suite] == [
        "a [target=big] [run 1]",
        "a [target=big] [run 2]",
        "a [target=small] [run 1]",
        "a [target=small] [run 2]",
        "b",
        "c",
    ]
    graded = evolve(suite, cases=[evolve(case, rubric=containing("big")) for case in suite])
    assert pass_rates(graded.run("offline")).flip_rate == 0


@pytest.mark.parametrize(
    "row",
    [
        {"test_id": "a", "output": "Error occurred: no key", "error": "no key", "execution_status": "execution_error"},
        {"testId": "a", "output": "Budget exceeded", "error": "no key", "executionStatus": "execution_error"},
        {
            "vars": {"q": "A"},
            "response": {"output": "half of it", "error": "no key"},
            "failureReason": 2,
            "error": "no key",
        },
        {"vars": {"q": "A"}, "promptIdx": 0, "response": {"error": "no key"}, "failureReason": 2},
    ],
)
def test_an_error_in_the_place_of_an_output_is_not_graded(row: dict[str, Any]) -> None:
    """Error texts of both systems leave the case without an output, with a warning."""
    suite = THREE.answered(
        [{"id": "b", "output": "B"}, row] if "vars" not in row else [{"vars": {"q": "B"}, "output": "B"}, row]
    )
    assert [case.output for case in suite] == [None, "B", None]
    assert any("no key" in str(warning) for warning in suite.warnings)
    own = Suite("s", [*(case.answered("old") for case in THREE)]).answered(
        [{"id": "b", "output": "B"}, {**row, "id": "a"}]
    )
    assert own["c"].output == "old"
    assert any("'c': its own response is graded" in str(warning) for warning in own.warnings)


def test_a_failed_assertion_of_promptfoos_is_no_failed_run() -> None:
    """The output of a result with `failureReason` 1 is graded."""
    row = {"vars": {"q": "A"}, "promptIdx": 0, "response": {"output": "A!"}, "failureReason": 1, "error": "Expected B"}
    assert THREE.answered([row])["a"].output == "A!"


def test_a_failed_run_is_among_the_runs_of_its_case() -> None:
    """It is ungraded, so it is in no rate and told beside them."""
    rows = [{"id": "a", "output": out} for out in ("Good", "Bad", "Good")]
    suite = Suite("s", [Case("a", containing("Good"))]).answered([*rows, {"id": "a", "error": "timeout"}])
    rates = pass_rates(suite.run("offline"))
    assert (rates.runs, rates.ungraded, len(rates)) == (3, 1, 3)
    assert rates[0].any_passes == pytest.approx(2 / 3)


def test_replies_of_another_suite_do_not_match_a_case_without_variables() -> None:
    """A row with variables is refused; one without matches."""
    suite = Suite("s", [Case("a", "x")])
    with pytest.raises(DefinitionError, match="none of 1 replies"):
        suite.answered([{"vars": {"topic": "bees"}, "promptIdx": 0, "response": {"output": "Bees hum."}}])
    assert suite.answered([{"vars": {}, "promptIdx": 0, "response": {"output": "Hi"}}])["a"].output == "Hi"


def test_an_id_is_the_same_however_its_accents_are_written() -> None:
    """Ids match after Unicode normalisation, and numbers match their text."""
    suite = Suite("s", [Case("caf\u00e9", "x"), Case("日本", "x"), Case("7", "x")])
    answered = suite.answered(
        [{"id": "cafe\u0301", "output": "A"}, {"id": "日本", "output": "B"}, {"id": 7, "output": "C"}]
    )
    assert [case.output for case in answered] == ["A", "B", "C"]
    assert not answered.warnings


@pytest.mark.parametrize(
    "row",
    [
        {"vars": {"q": "A"}, "response": {"output": "x", "tokenUsage": {"total": 9}}, "latencyMs": 1500, "cost": 0.25},
        {
            "test_id": "a",
            "output": "x",
            "duration_ms": 1500,
            "cost_usd": 0.25,
            "token_usage": {"input": 4, "output": 5},
        },
        {"id": "a", "output": "x", "metrics": {"latency": 1.5, "cost": 0.25, "tokens": 9}},
    ],
)
def test_results_say_what_a_run_took(row: dict[str, Any]) -> None:
    """Latency, cost and tokens are read from three formats; a cached latency is none."""
    metrics = THREE.answered([row])["a"].metrics
    assert (metrics.latency, metrics.cost, metrics.tokens) == (1.5, 0.25, 9)
    if "vars" in row:
        row["response"]["cached"] = True
        assert THREE.answered([row])["a"].metrics.latency is None


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "output": "x", "metrics": {"finish_reason": "length", "tokens": 9}},
        {"vars": {"q": "A"}, "response": {"output": "x", "tokenUsage": {"total": 9}, "finishReason": "length"}},
    ],
)
def test_results_say_why_a_model_stopped(row: dict[str, Any]) -> None:
    """The finish reason is among the metrics of both formats."""
    metrics = THREE.answered([row])["a"].metrics
    assert (metrics.finish_reason, metrics.tokens) == ("length", 9)


# -- runs --------------------------------------------------------------------------------------------------


def test_a_target_answers_each_run_anew() -> None:
    """Three runs ask the target three times, and `runs=` overrides the case."""
    answers = cycle(["Good", "Bad", "Good"])
    suite = Suite("s", [Case("a", "x", input="Hi", runs=3)])
    report = suite.run(lambda _: '{"pass": true}', target=lambda _: next(answers))
    assert [row.id for row in report] == ["a [run 1]", "a [run 2]", "a [run 3]"]
    assert sorted(row.output for row in report) == ["Bad", "Good", "Good"]
    assert len(suite.run("offline", target=lambda _: "x", runs=5)) == 5


def test_runs_without_a_target_are_refused() -> None:
    """A case with a finished output cannot be run twice."""
    with pytest.raises(DefinitionError, match="no case that a target answers"):
        asking(output="x").run("offline", runs=2)


def outcomes(*cases: str) -> Report:
    """Return a report of cases whose runs came out as written: `p`assed, `f`ailed or `u`ngraded."""
    named: dict[str, Any] = {"p": "passed", "f": "failed", "u": "ungraded"}
    rows = [
        Row(f"c{n} [run {run}]", named[sign], cell=FrozenMap({"run": run}))
        for n, case in enumerate(cases)
        for run, sign in enumerate(case, 1)
    ]
    return Report("s", tuple(rows))


def test_a_case_with_fewer_graded_runs_than_k_has_no_estimate_for_k() -> None:
    """Each rate averages over the cases with at least k graded runs."""
    rates = pass_rates(outcomes("ppfu", "puuu", "uuuu"))
    assert [(rate.k, rate.cases) for rate in rates] == [(1, 2), (2, 1), (3, 1)]
    assert rates[0].any_passes == pytest.approx((2 / 3 + 1) / 2)
    assert (rates.runs, rates.ungraded) == (4, 8)
    assert not [*pass_rates(outcomes("uu"))]


def test_pass_rates_have_intervals_by_case() -> None:
    """The cases are the draws, not their runs; one case has none, and the print shows both ends."""
    (one,) = pass_rates(outcomes("pf"))[:1]
    assert one.any_interval is None
    rates = pass_rates(outcomes(*["ppf", "pff", "ppp", "fff", "ppp"] * 4))
    for rate in rates:
        assert rate.any_interval is not None
        assert rate.all_interval is not None
        assert rate.any_interval[0] < rate.any_passes < rate.any_interval[1]
        assert rate.all_interval[0] < rate.all_pass < rate.all_interval[1]
    alone = share_interval(36, 60)
    assert alone is not None
    assert rates[0].any_interval is not None
    assert rates[0].any_interval[1] - rates[0].any_interval[0] > 1.3 * (alone[1] - alone[0])
    assert rates.flip_interval is not None
    assert rates.flip_interval[0] < rates.flip_rate < rates.flip_interval[1]
    assert "60 % (41 to 77)" in rates._repr_markdown_()
    json.dumps(rates.to_dict())


def test_pass_rates_are_those_of_the_papers() -> None:
    """Three of five runs passed: pass@2 is 1 - C(2,2)/C(5,2) = 0.9, pass^2 is C(3,2)/C(5,2) = 0.3."""
    rates = pass_rates(outcomes("pfpfp"))
    assert (rates[1].any_passes, rates[1].all_pass) == (0.9, 0.3)
    assert rates.flip_rate == 0.6


@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_pass_rates_average_over_all_choices_of_runs(passed: list[bool]) -> None:
    """Both rates equal the means over every combination of k runs."""
    rates = pass_rates(outcomes("".join("p" if one else "f" for one in passed)))
    for rate in rates:
        chosen = [*combinations(passed, rate.k)]
        assert rate.any_passes == pytest.approx(sum(map(any, chosen)) / len(chosen))
        assert rate.all_pass == pytest.approx(sum(map(all, chosen)) / len(chosen))


def test_a_run_without_a_verdict_is_in_no_rate() -> None:
    """Ungraded runs are counted apart, and one run gives no rates."""
    rates = pass_rates(outcomes("ppu", "fff"))
    assert (rates.runs, rates.ungraded) == (5, 1)
    assert [(rate.k, rate.any_passes, rate.cases) for rate in rates] == [(1, 0.5, 2), (2, 0.5, 2), (3, 0.0, 1)]
    assert outcomes("pp").to_dict()["summary"]["pass_rates"][1]["pass^k"] == 1.0
    assert "pass_rates" not in Report("s", (Row("a", "passed"),)).to_dict()["summary"]


def test_a_reply_of_data_is_json_as_a_whole() -> None:
    """A mapping of one item is not a wrapper around it: promptfoo compares the data, and so does `is-json`."""
    rows = [{"id": "a", "output": {"label": "spam"}}, {"id": "b", "output": {"count": 1}}, {"id": "c", "output": "C"}]
    assert [case.output for case in THREE.answered(rows)] == ['{"label":"spam"}', '{"count":1}', "C"]


def test_a_reply_to_turns_is_their_conversation() -> None:
    """A full chat answers the case; partial or different chats are warned of."""
    suite = Suite("s", [Case("a", "Is it good?", turns=["One?", {"input": "Two?", "reference": "2"}]), THREE[1]])
    chat = [{"role": role, "content": text} for role, text in
            (("user", "One?"), ("assistant", "1"), ("user", "Two?"), ("assistant", "two"))]  # fmt: skip
    case = suite.answered([{"id": "a", "output": chat}, {"id": "b", "output": "B"}])[0]
    assert (case.output, case.input, case.reference, case.turns) == ("two", "Two?", "2", ())
    assert [message.content for message in case.messages] == ["One?", "1"]
    for other in ("two", chat[2:], [*chat[:2], {"role": "user", "content": "Three?"}, chat[3]]):
        found = suite.answered([{"id": "a", "output": other}, {"id": "b", "output": "B"}])
        assert found[0].output is None
        assert "the conversation of the 2 turns" in str(found.warnings[0])


def test_a_matrix_over_judges_keeps_the_coordinates_of_its_cases() -> None:
    """The number of the run stays beside the judge's model."""
    suite = THREE.only("a").answered([{"id": "a", "output": "1"}, {"id": "a", "output": "2"}])
    cells = [dict(case.cell) for case in suite.matrix(judges=["offline"])]
    assert cells == [{"run": 1, "model": "offline"}, {"run": 2, "model": "offline"}]


# -- results of promptfoo by their places -----------------------------------------------------------------------


def results(*rows: tuple[int, int, dict[str, Any], str], provider: str = "echo") -> list[dict[str, Any]]:
    """Return rows of promptfoo's results, each with its place, the variables and the output."""
    return [
        {"testIdx": t, "promptIdx": p, "vars": given, "provider": {"id": provider}, "response": {"output": said}}
        for t, p, given, said in rows
    ]


@pytest.mark.parametrize(
    ("tests", "variables"),
    [
        ("[{assert: [{type: is-json}]}, {assert: [{type: is-json}]}]", [{}, {}]),
        ("[{vars: {q: a}}, {vars: {q: a}}]", [{"q": "a"}, {"q": "a"}]),
        ("[{vars: {q: {x: 1}}}, {vars: {q: {x: 2}}}]", [{"q": {"x": 1}}, {"q": {"x": 2}}]),
        ("[{vars: {q: 'file://a.txt'}}, {vars: {q: 'file://b.txt'}}]", [{"q": "file://a.txt"}, {"q": "file://b.txt"}]),
    ],
    ids=["without variables", "twins", "objects", "files"],
)
def test_results_of_promptfoo_find_their_tests_by_their_places(
    tests: str, variables: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Their variables say too little: names of files, texts that several tests have, or nothing."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"text of {name}")
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(f"prompts: ['Say {{{{q}}}}']\nproviders: [echo]\ntests: {tests}\n")
    rows = results(*((t, 0, given, f"output {t}") for t, given in enumerate(variables)))
    answered = load_suite(file).answered(rows[::-1])
    assert [case.output for case in answered] == ["output 0", "output 1"]


def test_repeats_are_rows_of_their_own_in_promptfoos_results() -> None:
    """Three repeats of two combinations, then the next test: `testIdx` counts on over them."""
    text = "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: [a, b]}, options: {repeat: 3}}, {vars: {q: b}}]"
    rows = results(*((t, 0, {"q": "ab"[t % 2]}, f"output {t}") for t in range(6)), (6, 0, {"q": "b"}, "last"))
    answered = loads_suite(text, "promptfoo").answered(rows)
    assert [case.output for case in answered] == [f"output {t}" for t in (0, 2, 4, 1, 3, 5)] + ["last"]


@pytest.mark.parametrize("chat", [False, True])
def test_outputs_go_to_the_prompts_that_promptfoo_asked(tmp_path: Path, *, chat: bool) -> None:
    """Files that a pattern names come in any order there: the prompt of a row tells which of the columns it is."""
    (tmp_path / "p").mkdir()
    asked = {}
    for name in "abc":
        asked[name] = json.dumps([{"role": "user", "content": f"{name} x"}]) if chat else f"{name} x"
        (tmp_path / f"p/{name}.{'json' if chat else 'txt'}").write_text(asked[name].replace("x", "{{q}}"))
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text("prompts: file://p/*\nproviders: [a:b, c:d]\ntests: [{vars: {q: x}}]\n")
    columns = [(provider, name) for provider in ("a:b", "c:d") for name in "cab"]
    rows = [
        results((0, n, {"q": "x"}, f"{name} by {provider}"), provider=provider)[0] | {"prompt": {"raw": asked[name]}}
        for n, (provider, name) in enumerate(columns)
    ]
    answered = load_suite(file).answered(rows)
    assert [case.output for case in answered] == [f"{n} by {provider}" for provider in ("a:b", "c:d") for n in "abc"]
    assert [str(case.cell["prompt"])[0] for case in answered] == [*"abcabc"]


def test_outputs_go_to_the_tests_that_promptfoo_ran(tmp_path: Path) -> None:
    """So do files of tests: variables and descriptions tell where the place in the results is that of another one."""
    (tmp_path / "t").mkdir()
    for name, own in (("a", "{}"), ("b", "{}"), ("c", "{z: 1}")):
        (tmp_path / f"t/{name}.yaml").write_text(f"- {{description: of {name}, vars: {own}}}\n")
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text("prompts: ['hello {{z}}']\nproviders: [a:b]\ntests: t/*.yaml\n")
    ran = [("c", {"z": 1}), ("b", {}), ("a", {})]
    rows = [
        results((n, 0, own, f"of {name}"), provider="a:b")[0] | {"testCase": {"description": f"of {name}"}}
        for n, (name, own) in enumerate(ran)
    ]
    assert [(case.id, case.output) for case in load_suite(file).answered(rows)] == [(f"of {n}",) * 2 for n in "abc"]


def test_places_of_a_filtered_run_are_not_those_of_the_file() -> None:
    """`--filter-first-n` and its like count what they keep; then variables decide, and another text is never taken."""
    suite = loads_suite("prompts: ['{{q}}']\ntests: [{vars: {q: a}}, {vars: {q: b}}]", "promptfoo")
    assert [case.output for case in suite.answered(results((0, 0, {"q": "b"}, "B")))] == [None, "B"]
    both = results((0, 0, {"q": "b"}, "B"), (1, 0, {"q": "a"}, "A"))
    assert [case.output for case in suite.answered(both)] == ["A", "B"]


def test_a_limit_that_results_say_nothing_of_can_be_skipped() -> None:
    """The rest is graded within its bounds, and one warning names the option, however many rows there are."""
    default = "defaultTest: {assert: [{type: latency, threshold: 1000}]}"
    tests = ", ".join(f"{{vars: {{q: {q}}}, assert: [{{type: contains, value: x}}]}}" for q in "abc")
    suite = loads_suite(f"prompts: ['{{{{q}}}}']\n{default}\ntests: [{tests}]", "promptfoo")
    rows = [{**row, **more} for row, more in zip(
        results((0, 0, {"q": "a"}, "x"), (1, 0, {"q": "b"}, "y"), (2, 0, {"q": "c"}, "x")),
        ({}, {}, {"latencyMs": 10}), strict=True,
    )]  # fmt: skip
    answered = suite.answered(rows)
    (warning,) = [str(one) for one in answered.warnings if "unknown" in str(one)]
    assert "--unsupported skip" in warning
    assert [(row.status, row.bounds) for row in answered.run("offline")] == [
        ("ungraded", (0.5, 1)), ("ungraded", (0, 0.5)), ("passed", (1, 1)),
    ]  # fmt: skip
    skipped = answered.unsupported_as("skip").run("offline")
    assert [row.status for row in skipped] == ["passed", "failed", "passed"]


def test_a_target_that_puts_the_whole_case_into_a_text_is_told_what_is_asked() -> None:
    """`f"{question}"` of a function from questions has the rubric in it; elsewhere a case may be printed."""
    suite = Suite("s", [Case("refund", Rubric.of("Is polite"), input="Where is it?")])
    with pytest.warns(
        UserWarning, match=r"a target gets the whole case, with its rubric; what it is asked is case.input"
    ):
        suite.run("offline", target=lambda question: f"You asked: {question}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f"{suite[0]}".startswith("Case('refund'")
        assert suite.run("offline", target=lambda case: f"You asked: {case.input}").counts["ungraded"] == 0
