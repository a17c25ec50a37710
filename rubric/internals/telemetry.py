"""
Traces, metrics and log events by OpenTelemetry's conventions for generative AI, and the logger `rubric`.

With `opentelemetry-api` installed (extra `otel`) and a provider configured, each grade is a span with an event
`gen_ai.evaluation.result`, and each request in it a span `chat MODEL`, counted in the conventions' metrics: tokens
and seconds. Without a provider, nothing happens. The variable `RUBRIC_TELEMETRY=off` switches all off. Prompts, replies
and reasons are content: they are recorded as the conventions' own switch says,
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`: `SPAN_ONLY`, `EVENT_ONLY`, `SPAN_AND_EVENT`, or `true` for both.

The logger `rubric` has retries at INFO and ungraded results at WARNING; it never has content or keys.

Source of the names: open-telemetry/semantic-conventions-genai, in development, as its main branch was in November 2026.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.resources import files
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rubric.results.result import Grade, Ungraded
    from rubric.values.requests import Ask, Failure, Reply
    from rubric.values.rubrics import Rubric

logger = logging.getLogger("rubric")
logger.addHandler(logging.NullHandler())

OPERATION, PROVIDER = "gen_ai.operation.name", "gen_ai.provider.name"
REQUEST_MODEL, RESPONSE_MODEL = "gen_ai.request.model", "gen_ai.response.model"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
ERROR_TYPE = "error.type"

DETAILS = "gen_ai.client.inference.operation.details"
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"

DIGEST = "rubric.digest"
BOUNDS = "rubric.bounds"

TRACES, _METRICS = "opentelemetry.trace", "opentelemetry.metrics"
"""Without these modules no provider is configured, so callers look for the first before they call anything here."""

_SWITCH = "RUBRIC_TELEMETRY"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@cache
def _providers() -> dict[str, str]:
    """Return the conventions' names of providers that LiteLLM names otherwise; read by the first traced call."""
    import tomllib  # noqa: PLC0415 - for those who trace

    return tomllib.loads(files("rubric.internals").joinpath("providers.toml").read_text("utf-8"))


_FINISHES = {"refusal": "content_filter", "tool_calls": "tool_call"}


def _nothing(_: object) -> None:
    """A recorder without a span: records nothing."""


@contextmanager
def grade_span(rubric: Rubric) -> Iterator[Callable[[Grade | Ungraded], None]]:
    """Open the span of a grade; what is yielded records the result."""
    tracer = _tracer()
    if tracer is None:
        yield _nothing
        return
    name = rubric.name or "rubric"
    with tracer.start_as_current_span(f"evaluate {name}", attributes={OPERATION: "evaluate"}) as span:
        span.set_attributes({EVALUATION_NAME: name, DIGEST: rubric.digest})

        def record(result: Grade | Ungraded) -> None:
            told, explanation = _result(result), {EVALUATION_EXPLANATION: result.explain()}
            _tell(span, {**told, **(explanation if _records_content("SPAN") else {})})
            _emit(EVALUATION, {**told, **(explanation if _records_content("EVENT") else {})})

        yield record


def _tell(span: Any, told: dict[str, Any]) -> None:
    """Set the attributes of *span*, and its status if they have an error."""
    span.set_attributes(told)
    if ERROR_TYPE in told:
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

        span.set_status(Status(StatusCode.ERROR, told[ERROR_TYPE]))


def warn_of(result: Ungraded) -> None:
    """Log that a candidate could not be graded."""
    kinds = ", ".join(sorted({failure.kind for failure in result.failures})) or "abstention"
    # A name may hold line ends, which would forge a record, and halves of surrogates, which no handler can write.
    logger.warning("ungraded: rubric %r (%s), %s", result.rubric.name, result.rubric.digest, kinds)


def _result(result: Grade | Ungraded) -> dict[str, Any]:
    outcome, usage = result.outcome, result.usage
    told: dict[str, Any] = {
        EVALUATION_NAME: result.rubric.name or "rubric",
        DIGEST: result.rubric.digest,
        "rubric.coverage": result.coverage,
        "rubric.calls": usage.calls,
    }
    if usage.cost is not None:
        told["rubric.cost_usd"] = usage.cost
    if outcome.score is None:
        told[ERROR_TYPE] = result.failures[0].kind if result.failures else "abstention"
        told[BOUNDS] = list(result.bounds)
    else:
        told[EVALUATION_SCORE] = outcome.score
        told[EVALUATION_LABEL] = outcome.verdict
    return told


@contextmanager
def chat_span(ask: Ask, model: str, vendor: str) -> Iterator[Callable[[Reply | Failure], None]]:
    """
    Open the span of one request to *model* of *vendor*, '' for one of the user's own; what is yielded records its end.

    While it is open it is the current span, so instrumentation of client libraries does not touch the caller's.
    """
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    common = {OPERATION: "chat", PROVIDER: _providers().get(vendor, vendor or "custom"), REQUEST_MODEL: model}
    tracer, began = _tracer() or trace.NoOpTracer(), perf_counter()
    given = {**common, **_request(ask)}
    sent = {INPUT_MESSAGES: [_message(each) for each in ask.chat()]} if _records_content("") else {}
    shown = {**given, **(_as_json(sent) if _records_content("SPAN") else {})}
    with tracer.start_as_current_span(f"chat {model}", kind=trace.SpanKind.CLIENT, attributes=shown) as span:

        def record(outcome: Reply | Failure) -> None:
            told = _response(outcome)
            content = {**sent, **(_reply_messages(outcome) if sent and not hasattr(outcome, "kind") else {})}
            _tell(span, {**told, **(_as_json(content) if _records_content("SPAN") else {})})
            if _records_content("EVENT"):
                _emit(DETAILS, {**given, **told, **_as_json(content)})
            _count({**common, **{k: told[k] for k in (ERROR_TYPE, RESPONSE_MODEL) if k in told}}, outcome, began)

        yield record


def _request(ask: Ask) -> dict[str, Any]:
    given = {
        "gen_ai.request.temperature": ask.judge.temperature,
        "gen_ai.request.max_tokens": ask.max_tokens,
        "gen_ai.request.seed": ask.judge.seed,
        "gen_ai.request.choice.count": ask.n if ask.n > 1 else None,
        "gen_ai.output.type": "json" if ask.schema else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _response(outcome: Any) -> dict[str, Any]:
    usage = outcome.usage
    told: dict[str, Any] = {INPUT_TOKENS: usage.prompt_tokens, OUTPUT_TOKENS: usage.completion_tokens}
    if usage.cached_tokens:
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if (kind := getattr(outcome, "kind", None)) is not None:
        told[ERROR_TYPE] = kind
        if outcome.status is not None:
            told["http.response.status_code"] = outcome.status
        return told
    finish, texts = _FINISHES.get(outcome.finish, outcome.finish), outcome.choices or (outcome.text or outcome.refusal,)
    told["gen_ai.response.finish_reasons"] = [finish] * len(texts)
    told |= {k: v for k, v in ((RESPONSE_MODEL, outcome.model), ("gen_ai.response.id", outcome.id)) if v}
    return told


def _reply_messages(outcome: Any) -> dict[str, Any]:
    """Return the messages of a reply."""
    texts = outcome.choices or (outcome.text or outcome.refusal,)
    said = (
        [json.loads(outcome.wanted)] if outcome.wanted else [{"role": "assistant", "content": text} for text in texts]
    )
    finish = _FINISHES.get(outcome.finish, outcome.finish)
    return {OUTPUT_MESSAGES: [{**_message(each), "finish_reason": finish} for each in said]}


def _as_json(content: dict[str, Any]) -> dict[str, str]:
    return {name: json.dumps(messages, ensure_ascii=False, default=str) for name, messages in content.items()}


# -- messages, as the conventions have them: a role, and parts ------------------------------------------------


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}]
        return {"role": "tool", "parts": parts}
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    # A part of another type is recorded as it was sent, which the conventions allow.
    parts = [{"type": "text", "content": each["text"]} if each["type"] == "text" else each for each in blocks]
    for call in message.get("tool_calls") or ():
        parts.append({"type": "tool_call", "id": call["id"], **call["function"]})
    return {"role": message["role"], "parts": parts}


def _records_content(place: str) -> bool:
    """True if content is recorded on `SPAN`s, or in `EVENT`s; of "", in either."""
    switch = os.environ.get(_CONTENT, "").upper()
    return switch == "TRUE" or (switch in ("SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT") and place in switch)


# -- metrics ------------------------------------------------------------------------------------------------


def _meters() -> Any:
    """Return the provider of meters that is configured, or None."""
    metrics = sys.modules.get(_METRICS)
    provider = None if metrics is None else metrics.get_meter_provider()
    return None if type(provider).__name__ in ("NoneType", "_ProxyMeterProvider", "NoOpMeterProvider") else provider


@lru_cache(maxsize=4)
def _instruments(provider: Any) -> tuple[Any, Any, Any]:
    """Return the seconds, with the bounds of the conventions, and tokens sent and received; a meter makes them once."""
    meter, name = provider.get_meter("rubric"), "gen_ai.client.inference"
    bounds = {"explicit_bucket_boundaries_advisory": [0.01 * 2**n for n in range(14)]}
    return (
        meter.create_histogram(f"{name}.duration", unit="s", **bounds),
        meter.create_counter(f"{name}.usage.input_tokens", unit="{token}"),
        meter.create_counter(f"{name}.usage.output_tokens", unit="{token}"),
    )


def _count(told: dict[str, Any], outcome: Reply | Failure, began: float) -> None:
    provider = _meters()
    if provider is None:
        return
    duration, sent, received = _instruments(provider)
    duration.record(perf_counter() - began, told)
    # Vendors do not say whether a token is of a text or of an image, nor do all failures have a count: it is 0.
    plain = {name: value for name, value in told.items() if name != ERROR_TYPE} | {"gen_ai.token.modality": "unknown"}
    sent.add(outcome.usage.prompt_tokens, plain)
    received.add(outcome.usage.completion_tokens, plain)


# -- providers ----------------------------------------------------------------------------------------------


def is_traced() -> bool:
    """True if spans or metrics go anywhere: the API is installed, a provider configured, and the switch not off."""
    return _tracer() is not None or (_meters() is not None and os.environ.get(_SWITCH, "").lower() != "off")


def _tracer() -> Any:
    """Return the tracer, or None; without a provider a request pays for one look at a module, not for an empty span."""
    trace = sys.modules.get(TRACES)  # to configure a provider, it was imported
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    if os.environ.get(_SWITCH, "").lower() == "off":
        return None
    return trace.get_tracer("rubric")


def parent_span() -> Any:
    """
    Return the current span as a parent that nothing can write to; None if there is none.

    LiteLLM's callback `otel` takes it for the parent of a span of its own. Without it, the callback writes its
    attributes over the current span, the last call over all others, when that span may have ended.
    """
    trace = sys.modules.get(TRACES)
    if trace is None:
        return None
    current = trace.get_current_span().get_span_context()
    return trace.NonRecordingSpan(current) if current.is_valid else None


def _emit(name: str, told: dict[str, Any]) -> None:
    """Emit the log event *name*, with the current span as its context."""
    try:
        from opentelemetry._logs import SeverityNumber, get_logger  # noqa: PLC0415 - an extra, and later than traces
    except ImportError:
        return
    usual = SeverityNumber.DEBUG if name == DETAILS else SeverityNumber.INFO
    severity = SeverityNumber.WARN if ERROR_TYPE in told and name == EVALUATION else usual
    get_logger("rubric").emit(event_name=name, attributes=told, severity_number=severity)
