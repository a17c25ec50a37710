"""
Traces and log events by OpenTelemetry's conventions for generative AI, and the logger `rubric`.

With `opentelemetry-api` installed (extra `otel`) and a provider configured, each grade is a span with an event
`gen_ai.evaluation.result`, and each request in it a span `chat MODEL`. Without either, nothing happens. The variable
`RUBRIC_TELEMETRY=off` switches both off. Prompts, replies and reasons are content: they are recorded only if the
conventions' own switch, `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, is true.

The logger `rubric` has retries at INFO and ungraded results at WARNING; it never has content or keys.

Source of the names: open-telemetry/semantic-conventions-genai, in development as of November 2026.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rubric.results.result import Grade, Ungraded
    from rubric.values.requests import Ask, Failure, Reply
    from rubric.values.rubrics import Rubric

logger = logging.getLogger("rubric")
logger.addHandler(logging.NullHandler())

OPERATION = "gen_ai.operation.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_SEED = "gen_ai.request.seed"
REQUEST_CHOICES = "gen_ai.request.choice.count"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_FINISH = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"
STATUS_CODE = "http.response.status_code"

EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"

DIGEST = "rubric.digest"
BOUNDS = "rubric.bounds"
COVERAGE = "rubric.coverage"
CALLS = "rubric.calls"
COST = "rubric.cost_usd"

TRACES = "opentelemetry.trace"
"""Without this module no provider is configured, so callers look for it before they call anything here."""

_SWITCH = "RUBRIC_TELEMETRY"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


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
            told = _result(result)
            span.set_attributes(told)
            _emit(told)

        yield record


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
        COVERAGE: result.coverage,
        CALLS: usage.calls,
    }
    if usage.cost is not None:
        told[COST] = usage.cost
    if outcome.score is None:
        told[ERROR_TYPE] = result.failures[0].kind if result.failures else "abstention"
        told[BOUNDS] = list(result.bounds)
    else:
        told[EVALUATION_SCORE] = outcome.score
        told[EVALUATION_LABEL] = outcome.verdict
    if _records_content():
        told[EVALUATION_EXPLANATION] = result.explain()
    return told


@contextmanager
def chat_span(ask: Ask) -> Iterator[Callable[[Reply | Failure], None]]:
    """
    Open the span of one request; what is yielded records its reply or failure.

    While it is open it is the current span, so instrumentation of client libraries does not touch the caller's.
    """
    tracer = _tracer()
    if tracer is None:
        yield _nothing
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - an extra

    judge = ask.judge
    with tracer.start_as_current_span(f"chat {judge.name}", kind=SpanKind.CLIENT, attributes=_request(ask)) as span:

        def record(outcome: Reply | Failure) -> None:
            span.set_attributes(_response(outcome))
            kind = getattr(outcome, "kind", None)
            if kind is not None:
                span.set_status(Status(StatusCode.ERROR, kind))

        yield record


def _request(ask: Ask) -> dict[str, Any]:
    judge = ask.judge
    given = {
        REQUEST_TEMPERATURE: judge.temperature,
        REQUEST_MAX_TOKENS: ask.max_tokens,
        REQUEST_SEED: judge.seed,
        REQUEST_CHOICES: ask.n if ask.n > 1 else None,
    }
    told = {OPERATION: "chat", REQUEST_MODEL: judge.name, **{k: v for k, v in given.items() if v is not None}}
    if _records_content():
        told[INPUT_MESSAGES] = json.dumps(ask.chat(), ensure_ascii=False, default=str)
    return told


def _response(outcome: Any) -> dict[str, Any]:
    usage = outcome.usage
    told: dict[str, Any] = {INPUT_TOKENS: usage.prompt_tokens, OUTPUT_TOKENS: usage.completion_tokens}
    if usage.cached_tokens:
        told[CACHED_TOKENS] = usage.cached_tokens
    if (kind := getattr(outcome, "kind", None)) is not None:
        told[ERROR_TYPE] = kind
        if outcome.status is not None:
            told[STATUS_CODE] = outcome.status
        return told
    told |= {RESPONSE_FINISH: [outcome.finish], **({RESPONSE_MODEL: outcome.model} if outcome.model else {})}
    if _records_content():
        told[OUTPUT_MESSAGES] = json.dumps([{"role": "assistant", "content": outcome.text}], ensure_ascii=False)
    return told


def _records_content() -> bool:
    return os.environ.get(_CONTENT, "").lower() == "true"


def is_traced() -> bool:
    """True if spans go anywhere: the API is installed, a provider is configured, and the switch is not off."""
    return _tracer() is not None


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


def _emit(told: dict[str, Any]) -> None:
    """Emit the log event of a result, with the current span as its context."""
    try:
        from opentelemetry._logs import SeverityNumber, get_logger  # noqa: PLC0415 - an extra, and later than traces
    except ImportError:
        return
    severity = SeverityNumber.WARN if ERROR_TYPE in told else SeverityNumber.INFO
    get_logger("rubric").emit(event_name=EVALUATION, attributes=told, severity_number=severity)
