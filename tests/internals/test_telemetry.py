"""Spans, events and logs of grades and requests, with OpenTelemetry's real SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric import Case, Judge, Rubric, Suite, evaluate, grade_many
from rubric.internals import telemetry
from rubric.models.retry import attempt
from rubric.testing.scripted_model import ScriptedModel
from tests.forks import Forks
from tests.harnesses import BAD, GOOD, KEY, ODD, POLITE, REFUSED, judging
from tests.places import ROOT
from tests.sendables import ask_of
from tests.servers import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")


@pytest.fixture(scope="module")
def exported() -> tuple[Any, Any]:
    """Return the spans and the log records of this process, as exporters in memory keep them."""
    from opentelemetry import trace
    from opentelemetry._logs import get_logger_provider, set_logger_provider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans = InMemorySpanExporter()
    logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    # A process has one provider: another test of this process may have set it.
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    if not isinstance(get_logger_provider(), LoggerProvider):
        set_logger_provider(LoggerProvider())
    tracing: Any = trace.get_tracer_provider()
    logged: Any = get_logger_provider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logged.add_log_record_processor(SimpleLogRecordProcessor(logs))
    return spans, logs


@pytest.fixture
def records(exported: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the exporters, empty."""
    for each in exported:
        each.clear()
    yield exported
    for each in exported:
        each.clear()


def test_a_grade_is_a_span_with_a_span_a_request(records: tuple[Any, Any]) -> None:
    """The requests are children of the grade, with tokens and the model's name; there is no content."""
    with judging() as judge:
        evaluate(GOOD, POLITE, judge)
    spans = records[0].get_finished_spans()
    (whole,) = [span for span in spans if span.name == "evaluate polite"]
    chats = [span for span in spans if span.name == "chat gpt-4o-mini"]
    assert len(chats) == 2
    assert {span.parent.span_id for span in chats} == {whole.context.span_id}
    assert whole.attributes[telemetry.EVALUATION_SCORE] == 1
    assert whole.attributes[telemetry.DIGEST] == POLITE.digest
    assert all(span.attributes[telemetry.INPUT_TOKENS] > 0 for span in chats)
    asked = {telemetry.PROVIDER: "openai", telemetry.REQUEST_MODEL: "gpt-4o-mini", "gen_ai.output.type": "json"}
    assert all(asked.items() <= dict(span.attributes).items() for span in chats)
    assert {span.attributes["gen_ai.response.id"] for span in chats} == {"chatcmpl-1"}
    told = str([dict(span.attributes) for span in spans])
    assert GOOD not in told
    assert "So it is" not in told
    assert KEY not in told


def test_each_grade_emits_one_event(records: tuple[Any, Any]) -> None:
    """An ungraded result has the failure's kind and the bounds, and no score."""
    with judging() as judge:
        for text in (GOOD, BAD, ODD):
            evaluate(text, POLITE, judge)
    events = [each.log_record for each in records[1].get_finished_logs()]
    assert [event.event_name for event in events] == [telemetry.EVALUATION] * 3
    good, bad, odd = (event.attributes for event in events)
    assert (good[telemetry.EVALUATION_SCORE], bad[telemetry.EVALUATION_SCORE]) == (1, 0.25)
    assert bad[telemetry.EVALUATION_LABEL] == "fail"
    assert telemetry.EVALUATION_SCORE not in odd
    assert odd[telemetry.ERROR_TYPE] == "unreadable"
    assert tuple(odd[telemetry.BOUNDS]) == (0, 1)


SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.parametrize(
    ("value", "on_spans", "in_events"),
    [
        ("true", True, True),
        ("SPAN_ONLY", True, False),
        ("event_only", False, True),
        ("SPAN_AND_EVENT", True, True),
        ("NO_CONTENT", False, False),
        ("false", False, False),
    ],
)
def test_content_is_where_the_conventions_switch_wants_it(
    records: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, value: str, on_spans: bool, in_events: bool
) -> None:
    """Prompts, replies and reasons are recorded only with it, on spans, in events, or in both."""
    monkeypatch.setenv(SWITCH, value)
    with judging() as judge:
        evaluate(GOOD, POLITE, judge)
    spans, events = records[0].get_finished_spans(), [each.log_record for each in records[1].get_finished_logs()]
    (event,) = [each for each in events if each.event_name == telemetry.EVALUATION]
    details = [each for each in events if each.event_name == telemetry.DETAILS]
    for name, said in ((telemetry.INPUT_MESSAGES, GOOD), (telemetry.EVALUATION_EXPLANATION, "✓ Names a day")):
        assert any(said in str(span.attributes.get(name)) for span in spans) == on_spans
    assert ("✓ Names a day" in str(event.attributes.get(telemetry.EVALUATION_EXPLANATION))) == in_events
    assert len(details) == (2 if in_events else 0)
    assert all(GOOD in each.attributes[telemetry.INPUT_MESSAGES] for each in details)
    assert all("verdict" in each.attributes[telemetry.OUTPUT_MESSAGES] for each in details)
    assert all(each.severity_number.name == "DEBUG" for each in details)


def test_messages_have_roles_and_parts(records: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the conventions' schemas of messages require: text parts, calls of tools and their results, a finish reason."""
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")
    turn = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    }
    told = {"role": "tool", "tool_call_id": "c1", "content": "a day"}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    made = [telemetry._message(each) for each in (turn, told, {"role": "user", "content": [image]})]
    assert made[0]["parts"] == [{"type": "tool_call", "id": "c1", "name": "look", "arguments": "{}"}]
    assert made[1]["parts"] == [{"type": "tool_call_response", "id": "c1", "response": "a day"}]
    assert made[2]["parts"] == [image]
    with judging() as judge:
        evaluate(GOOD, POLITE, judge)
        evaluate(REFUSED, POLITE, judge)
    chats = [span.attributes for span in records[0].get_finished_spans() if span.name.startswith("chat ")]
    sent = [json.loads(each[telemetry.INPUT_MESSAGES]) for each in chats]
    assert all(message["role"] in ("system", "user") for chat in sent for message in chat)
    assert all(set(part) == {"type", "content"} for chat in sent for message in chat for part in message["parts"])
    back = [json.loads(each[telemetry.OUTPUT_MESSAGES])[0] for each in chats]
    assert all(message["role"] == "assistant" and message["parts"][0]["content"] for message in back)
    assert {message["finish_reason"] for message in back} == {"stop", "content_filter"}


@pytest.mark.parametrize(
    ("judge", "provider", "model"),
    [
        (Judge("azure/gpt-4o-mini"), "azure.ai.openai", "gpt-4o-mini"),
        (Judge("gpt-4o-mini"), "openai", "gpt-4o-mini"),
        (Judge("gemini/gemini-2.5-flash"), "gcp.gemini", "gemini-2.5-flash"),
        (Judge("openrouter/mistralai/some-model"), "openrouter", "mistralai/some-model"),
        (Judge(lambda _: ""), "custom", "<lambda>"),
    ],
)
def test_a_request_names_its_provider_as_the_conventions_do(
    records: tuple[Any, Any], judge: Judge, provider: str, model: str
) -> None:
    """The vendor's own name of the model stands beside it, so that other instrumentations' spans group with it."""
    scripted = ScriptedModel(["yes"])
    asyncio.run(attempt(scripted, ask_of(judge)))
    (span,) = records[0].get_finished_spans()
    assert (span.attributes[telemetry.PROVIDER], span.attributes[telemetry.REQUEST_MODEL]) == (provider, model)
    assert span.name == f"chat {model}"


METRICS = """
import json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from rubric import Judge, Rubric, evaluate

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
judge = Judge("openai/gpt-4o-mini", via="http", params=json.loads(sys.argv[1]), retries=0)
evaluate("Hello.", Rubric("polite").expects("Is polite").expects("Is short"), judge)
found = {}
for scope in reader.get_metrics_data().resource_metrics[0].scope_metrics:
    for metric in scope.metrics:
        points = metric.data.data_points
        bounds = list(getattr(points[0], "explicit_bounds", ()))
        counts = [[dict(each.attributes), getattr(each, "count", getattr(each, "value", None))] for each in points]
        found[metric.name] = [metric.unit, bounds[:2], counts]
print(json.dumps(found))
"""


def test_requests_are_counted_in_the_conventions_metrics() -> None:
    """Seconds of each request, and tokens sent and received, with a meter alone; a failure has its kind, and 0 tokens."""
    with Server() as server:
        params = json.dumps({"api_base": server.at("ok", "503").openai, "api_key": KEY})
        command = [sys.executable, "-c", METRICS, params]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    found = json.loads(done.stdout.splitlines()[-1])
    common = {telemetry.OPERATION: "chat", telemetry.PROVIDER: "openai", telemetry.REQUEST_MODEL: "gpt-4o-mini"}
    unit, bounds, points = found["gen_ai.client.inference.duration"]
    assert (unit, bounds, sum(count for _, count in points)) == ("s", [0.01, 0.02], 2)
    assert all(common.items() <= told.items() for told, _ in points)
    assert [told[telemetry.ERROR_TYPE] for told, _ in points if telemetry.ERROR_TYPE in told] == ["overloaded"]
    for way in ("input", "output"):
        unit, _, points = found[f"gen_ai.client.inference.usage.{way}_tokens"]
        assert unit == "{token}"
        assert all(common.items() <= told.items() and told["gen_ai.token.modality"] == "unknown" for told, _ in points)
        assert sorted(count > 0 for _, count in points) == [False, True]


def test_the_span_of_an_ungraded_result_is_an_error(records: tuple[Any, Any]) -> None:
    """Its status has the kind of the failure."""
    with judging() as judge:
        evaluate(ODD, POLITE, judge)
    (whole,) = [span for span in records[0].get_finished_spans() if span.name == "evaluate polite"]
    assert (whole.status.status_code.name, whole.status.description) == ("ERROR", "unreadable")


def test_a_variable_switches_it_off(records: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`RUBRIC_TELEMETRY=off`: neither spans nor events."""
    monkeypatch.setenv("RUBRIC_TELEMETRY", "off")
    with judging() as judge:
        evaluate(GOOD, POLITE, judge)
    assert not records[0].get_finished_spans()
    assert not records[1].get_finished_logs()


def test_many_candidates_are_a_span_each(records: tuple[Any, Any]) -> None:
    """Requests belong to the grade of their candidate."""
    with judging() as judge:
        grade_many([GOOD, BAD] * 5, POLITE, judge, progress=False).collect()
    spans = records[0].get_finished_spans()
    wholes = {span.context.span_id for span in spans if span.name == "evaluate polite"}
    parents = [span.parent.span_id for span in spans if span.name.startswith("chat ")]
    assert len(wholes) == 10
    assert len(parents) == 20
    assert {*parents} == wholes


def test_each_case_of_a_suite_is_a_span(records: tuple[Any, Any]) -> None:
    """With the requests of all its judges in it, and one event; an ungraded case has the failure's kind."""
    cases = [Case(name, POLITE, output=text) for name, text in (("good", GOOD), ("odd", ODD))]
    with judging() as judge:
        apart = Case("apart", POLITE, output=BAD, judges={"day": evolve(judge, temperature=1)})
        Suite("replies", [*cases, apart]).run(judge)
    spans = records[0].get_finished_spans()
    wholes = {span.context.span_id: span for span in spans if span.name == "evaluate polite"}
    chats = [span for span in spans if span.name.startswith("chat ")]
    assert Counter(span.parent.span_id for span in chats) == Counter([*wholes] * 2)
    events = [each.log_record.attributes for each in records[1].get_finished_logs()]
    assert sorted(event.get(telemetry.EVALUATION_SCORE, -1) for event in events) == [-1, 0.25, 1]
    assert [event[telemetry.ERROR_TYPE] for event in events if telemetry.ERROR_TYPE in event] == ["unreadable"]
    assert {event[telemetry.DIGEST] for event in events} == {POLITE.digest}


LITELLM = """
import json, os, sys, time
import litellm
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rubric import Judge, Rubric, evaluate

spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
litellm.callbacks = ["otel"]
polite = Rubric("polite").expects("Is polite").expects("Is short")
found = {}
for switch in ("on", "off"):
    os.environ["RUBRIC_TELEMETRY"] = switch
    spans.clear()
    with trace.get_tracer("app").start_as_current_span("mine"):
        evaluate("Hello.", polite, Judge("openai/gpt-4o-mini", params=json.loads(sys.argv[1])))
    ends = time.monotonic() + 60
    while sum(span.name == "litellm_request" for span in spans.get_finished_spans()) < 2 and time.monotonic() < ends:
        time.sleep(0.01)  # the callback comes later, in a worker of LiteLLM's
    all_ = spans.get_finished_spans()
    names = {span.context.span_id: span.name for span in all_}
    found[switch] = {
        "mine": [dict(span.attributes) for span in all_ if span.name == "mine"],
        "below": sorted(names[span.parent.span_id] for span in all_ if span.name == "litellm_request"),
        "keys": sorted({key for span in all_ if span.name.startswith("chat ") for key in span.attributes}),
    }
print(json.dumps(found))
"""


def test_litellms_callback_has_spans_of_its_own(theirs: Forks) -> None:
    """LiteLLM's `otel` adds a span below each request, or below the caller's; it writes over none, not even late."""
    pytest.importorskip("litellm.integrations.opentelemetry", reason="this LiteLLM has no such callback")
    with Server() as server:
        params = json.dumps({"api_base": server.at("ok").openai, "api_key": KEY})
        done = theirs.run(LITELLM, params)
    assert done.status == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert [each["mine"] for each in found.values()] == [[{}], [{}]]
    assert found["on"]["below"] == ["chat gpt-4o-mini"] * 2
    assert found["off"]["below"] == ["mine"] * 2
    assert not [key for key in found["on"]["keys"] if key.startswith(("metadata", "llm"))]
    assert "ended span" not in done.stderr


def test_the_callers_span_keeps_its_own_attributes(records: tuple[Any, Any]) -> None:
    """What instruments a client library writes over the current span, which is the request's."""
    from opentelemetry import trace

    def judge(_: object) -> str:
        trace.get_current_span().set_attribute("written.by", "a client library")
        return '{"reason": "So.", "verdict": true}'

    with trace.get_tracer("app").start_as_current_span("mine"):
        evaluate("Hello.", Rubric().expects("Is polite"), Judge(judge))
    mine = next(span for span in records[0].get_finished_spans() if span.name == "mine")
    assert "written.by" not in mine.attributes


def test_logs_tell_retries_and_ungraded_results(caplog: pytest.LogCaptureFixture) -> None:
    """Retries at INFO, ungraded at WARNING; neither the candidate nor the key."""
    caplog.set_level(logging.INFO, logger="rubric")
    with Server() as server:
        params = {"api_base": server.at("503", "ok").openai, "api_key": KEY}
        evaluate(GOOD, Rubric().expects("Is polite"), Judge("openai/gpt-4o-mini", via="http", params=params))
    with judging() as judge:
        evaluate(ODD, POLITE, judge)
    found = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "rubric"]
    assert [level for level, _ in found] == ["INFO", "WARNING"]
    assert "overloaded" in found[0][1]
    assert POLITE.digest in found[1][1]
    assert not any(text in message for _, message in found for text in (GOOD, ODD, KEY))


def test_without_a_provider_nothing_is_imported() -> None:
    """A grade does not import OpenTelemetry."""
    code = (
        "import sys; from rubric import grade; grade('We thank you.', 'Says thank you', 'offline'); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.strip() == "[]"


def test_no_name_of_a_rubric_forges_a_record_of_the_log_or_breaks_its_handler(caplog: pytest.LogCaptureFixture) -> None:
    """Newlines and lone surrogates in a name are escaped."""
    evaluate("x", Rubric("one\nWARNING two \ud800").expects("a"), Judge(lambda messages: "", repairs=0))
    (record,) = (one for one in caplog.records if one.name == "rubric")
    assert r"rubric 'one\nWARNING two \ud800' (" in record.getMessage()
