"""
Errors in the words of real servers and vendors: one row a body, with its source and its kind.

The bodies are as they were published, or as the server sent them here; names of accounts are replaced. A row without a
status stands for an error in a 200. Add a row for each error that users report.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rubric.values.requests import FailureKind

GITHUB = "https://github.com/"


class Recorded(NamedTuple):
    """An error: who said it and when (or by which version), where that is written, what it was, and what it is."""

    server: str
    when: str
    source: str
    status: int
    body: str
    kind: FailureKind
    waits: float | None = None
    headers: tuple[tuple[str, str], ...] = ()


def _json(*, at_top: bool = False, **error: Any) -> str:
    return json.dumps(error if at_top else {"error": error})


def _openai(message: str, kind: str, code: str | None, param: str | None = None) -> str:
    return _json(message=message, type=kind, param=param, code=code)


def _vllm(message: str, kind: str = "BadRequestError", code: int = 400) -> str:
    """Return an error of vLLM's and SGLang's, at the top."""
    return _json(at_top=True, object="error", message=message, type=kind, param=None, code=code)


def _anthropic(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})


def _google(code: int, status: str, message: str, *details: dict[str, Any]) -> str:
    error = {"code": code, "message": message, "status": status, **({"details": details} if details else {})}
    return json.dumps({"error": error})


_HERE = "sent by the server itself, xllamacpp 2026.10.11549, SmolLM2-135M-Instruct, 2 slots"
_LLAMA = "llama.cpp"
_WHEN = "b11549, 2026-11-23"

LLAMA_CPP = [
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        400,
        _json(
            code=400,
            message="request (12031 tokens) exceeds the available context size (4096 tokens), try increasing it",
            type="exceed_context_size_error",
            n_prompt_tokens=12031,
            n_ctx=4096,
        ),
        "context_window",
    ),
    Recorded(
        _LLAMA,
        "2025-09-03",
        f"{GITHUB}ggml-org/llama.cpp/pull/15780",
        500,
        _json(
            code=500,
            message="the request exceeds the available context size. try increasing the context size or enable "
            "context shift",
            type="exceed_context_size_error",
            n_prompt_tokens=1407,
            n_ctx=256,
        ),
        "context_window",
    ),
    Recorded(
        _LLAMA,
        "2025-09-09",
        f"{GITHUB}containers/ramalama/issues/1914",
        400,
        _json(
            code=400,
            message="the request exceeds the available context size. try increasing the context size or enable "
            "context shift",
            type="invalid_request_error",
        ),
        "context_window",
    ),
    Recorded(
        _LLAMA,
        "2025-04-21",
        f"{GITHUB}gpustack/gpustack/issues/1845",
        400,
        _json(
            code=400,
            message="Illegal param: prefill 744 tokens exceed n_ctx_per_seq, try increasing total context size, "
            "adjusting RoPE, enabling context shifting, reducing parallel or reducing prefill tokens",
            type="invalid_request_error",
        ),
        "context_window",
    ),
    Recorded(
        _LLAMA, _WHEN, _HERE, 503, _json(message="Loading model", type="unavailable_error", code=503), "overloaded"
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        400,
        _json(
            code=400,
            message="Field 'n': Value must be between 1 <= value <= 2, but got 3",
            type="invalid_request_error",
        ),
        "bad_request",
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        400,
        _json(code=400, message="top_logprobs requires logprobs to be set to true", type="invalid_request_error"),
        "bad_request",
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        400,
        _json(
            code=400,
            message="Unable to generate parser for this template. Automatic parser generation failed: JSON schema "
            "error at #/properties/a: unrecognized type strange",
            type="invalid_request_error",
        ),
        "bad_request",
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        500,
        _json(
            code=500,
            message="image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            type="server_error",
        ),
        "bad_request",
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        500,
        _json(
            code=500,
            message='Failed to parse messages: Missing \'role\' in message: {"content":"x"}',
            type="server_error",
        ),
        "bad_request",
    ),
    Recorded(
        _LLAMA,
        _WHEN,
        _HERE,
        501,
        _json(
            code=501,
            message="This server does not support embeddings. Start it with `--embeddings`",
            type="not_supported_error",
        ),
        "bad_request",
    ),
    Recorded(
        _LLAMA, _WHEN, _HERE, 404, _json(message="File Not Found", type="not_found_error", code=404), "bad_request"
    ),
]

_VLLM_N = f"{GITHUB}vllm-project/vllm/pull/9167"
_TGI = f"{GITHUB}huggingface/text-generation-inference/blob/db931fc/router/src/validation.rs"
_OLLAMA = f"{GITHUB}ollama/ollama/blob/fb30760"
_LMS = f"{GITHUB}lmstudio-ai/lmstudio-bug-tracker/issues"
_PROMPT = "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust "

SERVERS = [
    Recorded(
        "vLLM",
        "2025-08-26",
        f"{GITHUB}meta-llama/llama-verifications/issues/58",
        400,
        _vllm(
            "This model's maximum context length is 131072 tokens. However, you requested 156632 tokens (152536 in the "
            "messages, 4096 in the completion). Please reduce the length of the messages or completion."
        ),
        "context_window",
    ),
    Recorded(
        "vLLM", "0.6, 2024-10-08", _VLLM_N, 400, _vllm("n must be 1 when using greedy sampling, got 2."), "bad_request"
    ),
    Recorded(
        "vLLM",
        "0.10.1, 2025-09-09",
        f"{GITHUB}vllm-project/vllm/issues/24495",
        500,
        _json(
            message="EngineCore encountered an issue. See stack trace (above) for the root cause.",
            type="Internal Server Error",
            param=None,
            code=500,
        ),
        "overloaded",
    ),
    Recorded(
        "vLLM",
        "2025-04-17",
        f"{GITHUB}1Panel-dev/MaxKB/issues/2912",
        400,
        _vllm(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not "
            "permitted', 'input': 800}]"
        ),
        "bad_request",
    ),
    Recorded(
        "vLLM",
        "030141c, 2026",
        f"{GITHUB}vllm-project/vllm/blob/030141c/vllm/v1/structured_output/backend_xgrammar.py",
        400,
        _vllm("The provided JSON schema contains features not supported by xgrammar."),
        "bad_request",
    ),
    Recorded(
        "SGLang",
        "2025-04-29",
        f"{GITHUB}QwenLM/Qwen3/issues/1321",
        400,
        _vllm("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
        "context_window",
    ),
    Recorded(
        "TGI",
        "3.3, 2026-01-08",
        _TGI,
        422,
        _json(
            at_top=True,
            error="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8740 `inputs` tokens "
            "and 500 `max_new_tokens`",
            error_type="validation",
        ),
        "context_window",
    ),
    Recorded(
        "TGI",
        "2024-04-18",
        f"{GITHUB}meta-llama/llama/issues/1103",
        422,
        _json(
            at_top=True,
            error="Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
            error_type="validation",
        ),
        "context_window",
    ),
    Recorded(
        "TGI",
        "3.3, 2026-01-08",
        f"{GITHUB}huggingface/text-generation-inference/blob/db931fc/router/src/server.rs",
        429,
        _json(at_top=True, error="Model is overloaded", error_type="overloaded"),
        "overloaded",
    ),
    Recorded(
        "TGI",
        "3.3, 2026-01-08",
        f"{GITHUB}huggingface/text-generation-inference/blob/db931fc/router/src/server.rs",
        424,
        _json(at_top=True, error="Request failed during generation", error_type="generation"),
        "overloaded",
    ),
    Recorded(
        "TGI",
        "3.3, 2026-01-08",
        _TGI,
        422,
        _json(at_top=True, error="Input validation error: grammar is not supported", error_type="validation"),
        "bad_request",
    ),
    Recorded(
        "Hugging Face",
        "2025-01-20",
        f"{GITHUB}huggingface/huggingface_hub/issues/2763",
        503,
        _json(at_top=True, error="Model Qwen/Qwen2-VL-2B-Instruct is currently loading", estimated_time=176.7188568),
        "overloaded",
    ),
    Recorded(
        "Hugging Face",
        "2025-01-20",
        f"{GITHUB}huggingface/huggingface_hub/issues/2763",
        200,
        _json(
            message="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8740 `inputs` "
            "tokens and 500 `max_new_tokens`",
            http_status_code=422,
        ),
        "context_window",
    ),
    Recorded(
        "Ollama",
        "2026-08-21",
        f"{_OLLAMA}/server/sched.go",
        503,
        _json(message="server busy, please try again.  maximum pending requests exceeded", type="api_error"),
        "overloaded",
    ),
    Recorded(
        "Ollama",
        "cloud, 2026-05-02",
        f"{GITHUB}ollama/ollama/issues/15934",
        503,
        _json(at_top=True, error="Server overloaded, please retry shortly (ref: aaa65c70-cfa0-446b-86f1-4ab0e2deb9e4)"),
        "overloaded",
    ),
    Recorded(
        "Ollama",
        "2026-08-21",
        f"{_OLLAMA}/llm/llama_server.go",
        400,
        _json(
            message=f"{_PROMPT}the context length in settings, or use a model with a longer context length",
            type="invalid_request_error",
        ),
        "context_window",
    ),
    Recorded(
        "Ollama",
        "2026-08-21",
        f"{_OLLAMA}/server/routes.go",
        400,
        _json(message="the input length exceeds the context length", type="invalid_request_error"),
        "context_window",
    ),
    Recorded(
        "Ollama",
        "2026-03-24",
        f"{GITHUB}continuedev/continue/issues/11767",
        500,
        _json(message="model requires more system memory (5.3 GiB) than is available (3.3 GiB)", type="api_error"),
        "bad_request",
    ),
    Recorded(
        "Ollama",
        "0.1.33, 2024-05-05",
        f"{GITHUB}ollama/ollama/issues/4159",
        500,
        _json(at_top=True, error="unexpected server status: llm busy - no slots available"),
        "overloaded",
    ),
    Recorded(
        "LM Studio",
        "0.3.13, 2025-03-24",
        f"{_LMS}/546",
        400,
        _json(
            at_top=True,
            error="Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with "
            "context length of only 32768 tokens, which is not enough. Try to load the model with a larger context "
            "length, or provide a shorter input",
        ),
        "context_window",
    ),
    Recorded(
        "LM Studio",
        "2026-04-04",
        f"{GITHUB}Gitlawb/openclaude/issues/353",
        400,
        _json(
            at_top=True,
            error="The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
            "13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        ),
        "context_window",
    ),
    Recorded(
        "LM Studio",
        "MLX, 2026-08-30",
        f"{_LMS}/2339",
        400,
        _json(at_top=True, error="Context size has been exceeded."),
        "context_window",
    ),
    Recorded(
        "LM Studio",
        "0.4.2, 2026-02-07",
        f"{_LMS}/1492",
        400,
        _json(at_top=True, error="Model is unloaded."),
        "overloaded",
    ),
    Recorded(
        "LM Studio",
        "2026-01-01",
        f"{_LMS}/1347",
        400,
        _json(
            at_top=True,
            error="The model has crashed without additional information. (Exit code: 18446744072635812000)",
        ),
        "overloaded",
    ),
]

_TPM = "on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again."
_AZURE = (
    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-08-01-preview have exceeded"
)
_LIMIT = "You exceeded your current quota, please check your plan and billing details."

VENDORS = [
    Recorded(
        "OpenAI",
        "2024-01-16",
        f"{GITHUB}rahul2002m/ChatPDF/issues/6",
        400,
        _openai(
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens. Please "
            "reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
            "messages",
        ),
        "context_window",
    ),
    Recorded(
        "OpenAI",
        "2024-11-26",
        f"{GITHUB}vanderschaarlab/climb/issues/1",
        429,
        _openai(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 30601. The "
            "input or output tokens must be reduced in order to run successfully.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "context_window",
    ),
    Recorded(
        "OpenAI",
        "2026-01-17",
        f"{GITHUB}continuedev/continue/issues/9618",
        429,
        _openai(f"{_LIMIT} For more information, read the docs.", "insufficient_quota", "insufficient_quota"),
        "quota",
    ),
    Recorded(
        "OpenAI",
        "2023-07-28",
        f"{GITHUB}bajrangCoder/acode-plugin-chatgpt/issues/19",
        400,
        _openai("Billing hard limit has been reached", "invalid_request_error", "billing_hard_limit_reached"),
        "quota",
    ),
    Recorded(
        "OpenAI",
        "2025-07-05",
        f"{GITHUB}BeehiveInnovations/pal-mcp-server/issues/178",
        400,
        _openai(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a "
            "different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting",
            "invalid_request_error",
            "invalid_prompt",
        ),
        "refusal",
    ),
    Recorded(
        "OpenAI",
        "2025-03-11",
        f"{GITHUB}thisisartium/continuous-alignment-testing/issues/25",
        400,
        _openai(
            "Invalid 'n': integer above maximum value. Expected a value <= 128, but got 130 instead.",
            "invalid_request_error",
            "integer_above_max_value",
            "n",
        ),
        "bad_request",
    ),
    Recorded(
        "OpenAI",
        "2025-04-07",
        f"{GITHUB}liam-hq/liam/pull/1162",
        400,
        _openai(
            "Invalid schema for response_format 'review': In context=('properties', 'scores', 'items', 'properties', "
            "'value'), 'minimum' is not permitted.",
            "invalid_request_error",
            None,
            "response_format",
        ),
        "bad_request",
    ),
    Recorded(
        "Azure",
        "2024-07-16",
        f"{GITHUB}alex-wolf-ps/dbchatprov2/issues/2",
        429,
        _json(
            code="429",
            message=f"{_AZURE} token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds.",
        ),
        "rate_limited",
        86400,
    ),
    Recorded(
        "Azure",
        "2025-03-11",
        f"{GITHUB}pollinations/pollinations/issues/1314",
        429,
        _json(
            message=f"azure-openai error: {_AZURE} token rate limit of your current AIServices S0 pricing tier. Please retry "
            "after 2 seconds.",
            type=None,
            param=None,
            code="429",
        ),
        "rate_limited",
        2,
    ),
    Recorded(
        "Azure",
        "2024-06-14",
        f"{GITHUB}openai/openai-dotnet/issues/55",
        400,
        _json(
            message="The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please "
            "modify your prompt and retry.",
            type=None,
            param="prompt",
            code="content_filter",
            status=400,
            innererror={
                "code": "ResponsibleAIPolicyViolation",
                "content_filter_result": {"sexual": {"filtered": True, "severity": "high"}},
            },
        ),
        "refusal",
    ),
    Recorded(
        "Anthropic",
        "2025-11-09",
        f"{GITHUB}anthropics/claude-code/issues/11281",
        400,
        _anthropic("invalid_request_error", "prompt is too long: 201130 tokens > 200000 maximum"),
        "context_window",
    ),
    Recorded(
        "Anthropic",
        "2025-10-27",
        f"{GITHUB}continuedev/continue/issues/8454",
        400,
        _anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or "
            "`max_tokens` and try again",
        ),
        "context_window",
    ),
    Recorded(
        "Anthropic",
        "2025-04-14",
        f"{GITHUB}anthropics/anthropic-sdk-python/issues/938",
        413,
        _json(type="request_too_large", message="Request exceeds the maximum size"),
        "context_window",
    ),
    Recorded(
        "Anthropic",
        "2026-03-18",
        f"{GITHUB}anthropics/claude-code/issues/35792",
        529,
        _anthropic("overloaded_error", "Overloaded"),
        "overloaded",
    ),
    Recorded(
        "Anthropic",
        "2026-05-03",
        f"{GITHUB}anthropics/claude-code/issues/55789",
        429,
        _anthropic("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
        "rate_limited",
    ),
    Recorded(
        "Anthropic",
        "2026-05-27",
        f"{GITHUB}anthropics/claude-code/issues/62817",
        400,
        json.dumps(
            {
                "type": "error",
                "error": {
                    "details": None,
                    "type": "invalid_request_error",
                    "message": "Output blocked by content filtering policy",
                },
                "request_id": "req_1",
            }
        ),
        "refusal",
    ),
    Recorded(
        "Anthropic",
        "2025-12-28",
        f"{GITHUB}agentjido/req_llm/issues/302",
        400,
        _anthropic(
            "invalid_request_error", "output_format.schema: For 'integer' type, property 'minimum' is not supported"
        ),
        "bad_request",
    ),
    Recorded(
        "Gemini",
        "2025-07-15",
        f"{GITHUB}google-gemini/gemini-cli/issues/4231",
        400,
        _google(
            400,
            "INVALID_ARGUMENT",
            "The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "context_window",
    ),
    Recorded(
        "Gemini",
        "2026-03-05",
        f"{GITHUB}cequence-io/openai-scala-client/issues/109",
        400,
        _google(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            },
        ),
        "auth",
    ),
    Recorded(
        "Gemini",
        "2025-11-08",
        f"{GITHUB}poenl/gemini-api/issues/4",
        400,
        _google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        "auth",
    ),
    Recorded(
        "Gemini",
        "2025-07-30",
        f"{GITHUB}google-gemini/gemini-cli/issues/5191",
        503,
        _google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        "overloaded",
    ),
    Recorded(
        "Gemini",
        "2026-05-18",
        f"{GITHUB}googleapis/js-genai/issues/1609",
        400,
        _google(400, "INVALID_ARGUMENT", "Multiple candidates is not enabled for this model"),
        "bad_request",
    ),
    Recorded(
        "Gemini",
        "2025-04-09",
        f"{GITHUB}googleapis/python-genai/issues/660",
        400,
        _google(
            400,
            "INVALID_ARGUMENT",
            "The specified schema produces a constraint that has too many states for serving.  Typical causes of this "
            "error are schemas with lots of text (for example, very long property or enum names)",
        ),
        "bad_request",
    ),
    Recorded(
        "Vertex",
        "2024-10-04",
        f"{GITHUB}googleapis/python-aiplatform/issues/4510",
        501,
        "Unable to submit request because one or more response schemas specified unsupported field min_length.",
        "bad_request",
    ),
    Recorded(
        "Mistral",
        "2025-06-18",
        f"{GITHUB}continuedev/continue/issues/6185",
        429,
        _json(
            at_top=True,
            object="error",
            message="Service tier capacity exceeded for this model.",
            type="invalid_request_error",
            param=None,
            code=None,
        ),
        "rate_limited",
    ),
    Recorded(
        "Mistral",
        "2025-12-12",
        f"{GITHUB}editor-code-assistant/eca/issues/231",
        422,
        json.dumps(
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "max_completion_tokens"],
                            "msg": "Extra inputs are not permitted",
                            "input": 32000,
                        }
                    ]
                },
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        ),
        "bad_request",
    ),
    Recorded(
        "Mistral",
        "2024-01-24",
        f"{GITHUB}mistralai/platform-docs-public/issues/7",
        422,
        json.dumps(
            {
                "object": "error",
                "message": json.dumps(
                    {
                        "detail": [
                            {
                                "type": "extra_forbidden",
                                "loc": ["body", "frequency_penalty"],
                                "msg": "Extra inputs are not permitted",
                                "input": 0.0,
                            }
                        ]
                    }
                ),
                "type": "internal_error_proxy",
                "param": None,
                "code": "1000",
            }
        ),
        "bad_request",
    ),
    Recorded(
        "Bedrock",
        "2024-06-15",
        f"{GITHUB}aws-samples/assessment-generator/issues/2",
        400,
        _json(at_top=True, message="Input is too long for requested model."),
        "context_window",
        headers=(("x-amzn-errortype", "ValidationException:http://internal.amazon.com/coral/com.amazon.bedrock/"),),
    ),
    Recorded(
        "Bedrock",
        "2025-11-13",
        f"{GITHUB}hyunhwan-bcm/MARRVEL_MCP/issues/225",
        429,
        _json(at_top=True, message="Too many tokens, please wait before trying again."),
        "rate_limited",
        headers=(("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"),),
    ),
    Recorded(
        "Bedrock",
        "2024-12-30",
        f"{GITHUB}RooCodeInc/Roo-Code/issues/248",
        400,
        _json(
            at_top=True,
            message="The maximum tokens you requested exceed the model limit of 4096. Try again with a maximum tokens value "
            "lower than 4096.",
        ),
        "bad_request",
    ),
    Recorded(
        "OpenRouter",
        "2026-05-12",
        f"{GITHUB}Gitlawb/openclaude/issues/1125",
        402,
        json.dumps(
            {
                "error": {
                    "message": "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, "
                    "but can only afford 27342.",
                    "code": 402,
                    "metadata": {"provider_name": None},
                },
                "user_id": "user_1",
            }
        ),
        "quota",
    ),
    Recorded(
        "OpenRouter",
        "2026-09-20",
        f"{GITHUB}open-webui/computer/issues/293",
        429,
        _json(
            message="Provider returned error",
            code=429,
            metadata={
                "raw": "z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly, or add your own key",
                "provider_name": "BaseTen",
            },
        ),
        "rate_limited",
    ),
    Recorded(
        "OpenRouter",
        "2026-08-12",
        f"{GITHUB}cline/cline/issues/13194",
        400,
        _json(
            message="Provider returned error",
            code=400,
            metadata={
                "raw": json.dumps(
                    {
                        "error": {
                            "message": "This model's maximum context length is 262144 tokens. However, your messages "
                            "resulted in 262897 tokens. Please reduce the length of the messages.",
                            "type": "Bad Request",
                            "code": 400,
                        }
                    }
                ),
                "provider_name": "Nvidia",
                "is_byok": False,
            },
        ),
        "context_window",
    ),
    Recorded(
        "OpenRouter",
        "2026-06-01",
        f"{GITHUB}diegosouzapw/OmniRoute/issues/3044",
        400,
        _json(
            message="Provider returned error",
            code=400,
            metadata={
                "raw": json.dumps(
                    {
                        "error": {
                            "type": "invalid_request_error",
                            "code": "invalid_request_error",
                            "message": "Model 'moonshotai/kimi-k2.6' supports at most 1 image per prompt.",
                        }
                    }
                ),
                "provider_name": "Crucible",
            },
        ),
        "bad_request",
    ),
    Recorded(
        "OpenRouter",
        "2026",
        "https://openrouter.ai/docs/api-reference/errors",
        403,
        _json(
            message="Input was flagged by moderation",
            code=403,
            metadata={"reasons": ["violence"], "flagged_input": "...", "provider_name": "OpenAI", "model_slug": "m"},
        ),
        "refusal",
    ),
    Recorded(
        "OpenRouter",
        "2026-09-20",
        f"{GITHUB}open-webui/computer/issues/293",
        200,
        _json(
            message="Provider returned error",
            code=502,
            metadata={"raw": "upstream connect error", "provider_name": "BaseTen"},
        ),
        "overloaded",
    ),
    Recorded(
        "Groq",
        "2026-05-16",
        f"{GITHUB}HunorLaczko/ha-groq-cloud-api/issues/27",
        413,
        _openai(
            f"Request too large for model llama-3.1-8b-instant in organization org_1 service tier on_demand {_TPM}",
            "tokens",
            "rate_limit_exceeded",
        ),
        "context_window",
    ),
    Recorded(
        "Groq",
        "2025-03-22",
        f"{GITHUB}elizaOS/eliza/issues/4040",
        429,
        _openai(
            "Rate limit reached for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens "
            "per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade "
            "to Dev Tier today at https://console.groq.com/settings/billing",
            "tokens",
            "rate_limit_exceeded",
        ),
        "rate_limited",
        4.77,
    ),
    Recorded(
        "Groq",
        "2025-03-04",
        f"{GITHUB}thepersonalaicompany/amurex-backend/issues/51",
        400,
        _openai(
            "Please reduce the length of the messages or completion.",
            "invalid_request_error",
            "context_length_exceeded",
            "messages",
        ),
        "context_window",
    ),
    Recorded(
        "Groq",
        "2025-02-11",
        f"{GITHUB}thepersonalaicompany/amurex-backend/issues/38",
        400,
        _json(
            message="Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
            type="invalid_request_error",
            code="json_validate_failed",
            failed_generation="",
        ),
        "bad_response",
    ),
    Recorded(
        "Groq",
        "2026-08-07",
        f"{GITHUB}Alishahryar1/free-claude-code/issues/1354",
        400,
        _json(
            message="`max_completion_tokens` must be less than or equal to `16384`, the maximum value for "
            "`max_completion_tokens` is less than the `context_window` for this model",
            type="invalid_request_error",
            param="max_completion_tokens",
        ),
        "bad_request",
    ),
    Recorded(
        "DeepSeek",
        "2026-01-19",
        f"{GITHUB}evalstate/fast-agent/issues/621",
        400,
        _openai(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            "invalid_request_error",
            "invalid_request_error",
        ),
        "context_window",
    ),
    Recorded(
        "DeepSeek",
        "2025-08-03",
        f"{GITHUB}1Panel-dev/MaxKB/issues/3797",
        402,
        _openai("Insufficient Balance", "unknown_error", "invalid_request_error"),
        "quota",
    ),
    Recorded(
        "DeepSeek",
        "2025-01-14",
        f"{GITHUB}SakanaAI/AI-Scientist/issues/177",
        400,
        _openai(
            "Invalid n value (currently only n = 1 is supported)", "invalid_request_error", "invalid_request_error"
        ),
        "bad_request",
    ),
    Recorded(
        "DeepSeek",
        "2025-03-08",
        f"{GITHUB}pollinations/pollinations/issues/1291",
        400,
        _openai(
            "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
            "invalid_request_error",
            "invalid_request_error",
        ),
        "bad_request",
    ),
    Recorded(
        "Together",
        "2025-07-16",
        f"{GITHUB}expectedparrot/edsl/issues/2098",
        402,
        _openai(
            "Credit limit exceeded. Please navigate to https://api.together.xyz/settings/billing to add credit or upgrade "
            "your plan.",
            "credit_limit",
            None,
        ),
        "quota",
    ),
    Recorded(
        "Together",
        "2024-06-28",
        f"{GITHUB}togethercomputer/MoA/issues/27",
        429,
        _openai(
            "You have been rate limited. Your rate limit is 60 queries per minute. Please navigate to "
            "https://api.together.xyz/settings/billing to upgrade to a paid plan.",
            "credit_limit",
            None,
        ),
        "rate_limited",
    ),
    Recorded(
        "Fireworks",
        "2026-09-14",
        f"{GITHUB}amd/gaia/issues/3766",
        412,
        _json(
            code="PRECONDITION_FAILED",
            message="Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay past "
            "invoices",
        ),
        "quota",
    ),
    Recorded(
        "xAI",
        "2026-02-09",
        f"{GITHUB}continuedev/continue/issues/10373",
        429,
        json.dumps(
            "Your team t has either used all available credits or reached its monthly spending limit. To continue making "
            "API requests, please purchase more credits or raise your spending limit."
        ),
        "quota",
    ),
    Recorded(
        "xAI",
        "2026-09-07",
        f"{GITHUB}luxus/pi-xai/issues/10",
        403,
        json.dumps("You have run out of credits or need a Grok subscription."),
        "quota",
    ),
    Recorded(
        "Cerebras",
        "2025-09-10",
        f"{GITHUB}explyt/explyt/issues/35",
        429,
        _json(
            at_top=True,
            message="Requests per second limit exceeded - too many requests sent.",
            type="too_many_requests_error",
            param="quota",
            code="request_quota_exceeded",
        ),
        "rate_limited",
    ),
    Recorded(
        "Cerebras",
        "2026-01-22",
        f"{GITHUB}continuedev/continue/issues/9800",
        429,
        _json(
            at_top=True,
            message="Tokens per minute limit exceeded - too many tokens processed.",
            type="too_many_tokens_error",
            param="quota",
            code="token_quota_exceeded",
        ),
        "rate_limited",
    ),
    Recorded(
        "GitHub Models",
        "2025-03-06",
        f"{GITHUB}cline/cline/issues/2115",
        413,
        _json(code="tokens_limit_reached", message="Request body too large for gpt-4o model. Max size: 8000 tokens."),
        "context_window",
    ),
    Recorded(
        "NVIDIA NIM",
        "2026-08-19",
        f"{GITHUB}Alishahryar1/free-claude-code/issues/1482",
        429,
        _json(at_top=True, status=429, title="Too Many Requests"),
        "rate_limited",
    ),
]

_PAGE = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n<hr><center>nginx</center>"
)
_NGINX = "https://github.com/nginx/nginx/blob/master/src/http/ngx_http_special_response.c"

PROXIES = [
    Recorded("nginx", "1.x", _NGINX, 502, _PAGE.format("502 Bad Gateway"), "overloaded"),
    Recorded("nginx", "1.x", _NGINX, 503, _PAGE.format("503 Service Temporarily Unavailable"), "overloaded"),
    Recorded("nginx", "1.x", _NGINX, 413, _PAGE.format("413 Request Entity Too Large"), "context_window"),
    Recorded("nginx", "1.x", _NGINX, 504, _PAGE.format("504 Gateway Time-out"), "timeout"),
    Recorded(
        "Cloudflare",
        "2026",
        "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/error-524/",
        524,
        "error code: 524",
        "timeout",
    ),
    Recorded("nobody", "", "an empty body", 503, "", "overloaded"),
    Recorded("nobody", "", "an empty body", 400, "", "bad_request"),
]

RECORDED = [*LLAMA_CPP, *SERVERS, *VENDORS, *PROXIES]
