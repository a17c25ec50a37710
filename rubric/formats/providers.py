"""
The providers of promptfoo's and AgentV's files: LiteLLM's names of models, and requests to addresses.

Endpoints, keys and headers of models are never read. Of an address everything is: whether it is asked is up to the
caller, who names its host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from rubric import DefinitionError
from rubric.embed import Cursor, FrozenMap, LackingError, shorten
from rubric.formats.includes import is_code, is_reference, may_be_read, read_file_at
from rubric.formats.javascript import inline, tell_engine
from rubric.formats.javascript_modules import program_at, program_of_file
from rubric.formats.json_values import each_text
from rubric.formats.model_names import SETTINGS, litellm_name
from rubric.formats.python import executable, is_python_file, python_function
from rubric.programs.javascript import Program
from rubric.programs.processes import Executable, PythonFunction
from rubric.suites.providers import METHODS, HTTPRequest, Provider
from rubric.suites.targets.http import steps_of

_SENT = {
    **dict.fromkeys((*SETTINGS, "top_p", "frequency_penalty", "presence_penalty"), (int, float)),
    **dict.fromkeys(("stop", "reasoning_effort", "response_format"), (str, list, dict)),
}
"""The parameters of a model that are sent as the file gives them."""

_QUIET = frozenset({"apiKey", "apiKeyEnvar", "organization", "basePath", "transform"})
"""Parameters that the environment gives in place of a file, or that are not for the model."""


MOST_RUNS = 1_000


def runs_of(*values: Any) -> int:
    """Return the first of *values* that says how often a case is asked, as a number or as `{count: ...}`; else 1."""
    for value in values:
        count = value.get("count") if isinstance(value, dict) else value
        if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_RUNS:
            return count
    return 1


def read_provider(at: Cursor, fill: Callable[[str], str], config: Mapping[str, Any] = {}) -> Provider:
    """Return the provider at the cursor, with the prompt's *config*; where the load lacks anything, it only says so."""
    with at.notes.lacking() as lacks:
        at = _with_files(at)
        made = provider_of(at, fill)
    if made.model and config:
        made = evolve(made, settings=FrozenMap({**made.settings, **_request_settings(config)}))
    return Provider(made.name, missing=lacks[0]) if lacks else made


def _with_files(at: Cursor) -> Cursor:
    """Return the provider at the cursor with the data that its `config` names in files, as `file://schema.json`."""
    fields = fields_of(at.value)
    if "file://" not in _as_text(fields.get("config")):
        return at

    def read(text: str) -> Any:
        if not is_reference(text) or is_code(text):
            return text
        found: Any = None
        if may_be_read(text, at.loading):
            whole = read_file_at(text, at, DATA)
            found = None if whole is None else whole.value
        if found is None:
            lack = f"a provider's file ({shorten(text, 80)}) that is not within reach"
            at.error(LackingError(lack, lack))
        return found

    return at.holding({**fields, "config": each_text(fields["config"], read)})


DATA = (".yaml", ".yml", ".json")
"""The files that hold providers, or parts of them, as data."""


_SECONDS = 300.0
"""The deadline of a program that answers: promptfoo's own."""


def _javascript(code: Any, at: Cursor) -> Program | None:
    """Return the transform *code* of the provider at the cursor, a line or a file, if it has one that can be run."""
    if code is None:
        return None
    if not isinstance(code, str):
        raise DefinitionError("transform", "its transform is not JavaScript")
    tell_engine(at)
    try:
        return program_at(code, at, program_of_file) if is_reference(code) else inline(code)
    except DefinitionError as problem:
        raise DefinitionError("transform", f"its transform is in {problem.message}") from None


def fields_of(value: Any) -> dict[str, Any]:
    """Return a provider as a mapping, also where it is written as its id alone, or as `id: {config: ...}`."""
    if isinstance(value, dict) and len(value) == 1 and "id" not in value:  # `id: {config: ...}`
        ((key, inner),) = value.items()
        return {"id": key, **(inner if isinstance(inner, dict) else {})}
    return value if isinstance(value, dict) else {"id": value}


def provider_of(at: Cursor, fill: Callable[[str], str]) -> Provider:
    """
    Return the provider that a file describes at the cursor, for one case.

    Args:
        fill: Fills a template of a request with the prompt and the variables of the case.
    """
    fields = fields_of(at.value)
    id_ = _as_text(fields.get("id"))
    name = _as_text(fields.get("label")) or id_
    config: dict[Any, Any] = fields["config"] if isinstance(fields.get("config"), dict) else {}
    transform: Program | PythonFunction | None = None
    code = fields.get("transform") or config.get("transform")
    try:
        transform = python_function(str(code), at, "get_transform") if is_python_file(code) else _javascript(code, at)
        if (program := _program(id_, config, at)) is not None:
            options = {**fields, "config": {**config, "basePath": program.folder}}
            return Provider(name, program=program, settings=FrozenMap(options), transform=transform)
        if id_ in ("http", "https") or id_.startswith(("http://", "https://")):
            return Provider(name, request=_request(id_, config, fill, at), transform=transform)
        if is_reference(id_) or is_code(id_):
            why = "a file describes it that is not within reach, or code in another language than Python"
            missing = f"{why}; name a model, or give a target in code"
            return Provider(name, missing=missing, transform=transform)
        if id_ == "echo":  # whose answer is fixed, if there is one
            missing = "it gives its prompt back, and the prompt is empty: a variable of it is missing"
            return Provider(name, missing=missing, transform=transform)
        model = litellm_name(fill(id_))
    except DefinitionError as problem:
        return Provider(name, missing=problem.message, transform=transform)  # of a fixed output, such as that of echo
    sent = _request_settings(config)
    unsent = [_as_text(key) for key in config if key not in sent and key not in _QUIET]
    return Provider(name, model, FrozenMap(sent), transform=transform, unsent=tuple(unsent))


def _program(id_: str, config: Mapping[Any, Any], at: Cursor) -> PythonFunction | Executable | None:
    """Return the program that the provider called *id_* is; None for any other."""
    program: PythonFunction | Executable
    if id_.startswith(("file://", "python:")) and is_python_file(id_):
        python = _as_text(config.get("pythonExecutable") or "python")
        program = python_function(id_, at, "call_api", python=python)
    elif id_.startswith("exec:"):
        program = executable(id_.removeprefix("exec:"), at)
    else:
        return None
    milliseconds = config.get("timeout")
    limit = milliseconds / 1000 if isinstance(milliseconds, int) and milliseconds > 0 else _SECONDS
    return evolve(program, timeout=limit)


def _request_settings(config: Mapping[Any, Any]) -> dict[Any, Any]:
    sent = {key: item for key, item in config.items() if isinstance(item, _SENT.get(key, ()))}
    return {key: item for key, item in sent.items() if not isinstance(item, bool)}


def _request(id_: str, config: Mapping[Any, Any], fill: Callable[[str], str], at: Cursor) -> HTTPRequest:
    """Return the request of an `http` provider, or refuse what is not read, such as a signature."""
    for key in ("request", "signatureAuth", "session", "validateStatus", "transformRequest", "multipart", "tls"):
        if config.get(key) is not None:
            raise DefinitionError(key, f"its `{key}` is not read; give an HTTPTarget in code")

    url = _as_text(config.get("url") or id_)
    body, method = config.get("body"), _as_text(config.get("method") or "").upper()
    method = method or ("GET" if body is None else "POST")
    if method not in METHODS:
        raise DefinitionError("method", f"the method {shorten(method, 20)!r} is none of {', '.join(METHODS)}")
    headers = {_as_text(key): fill(_as_text(item)) for key, item in (config.get("headers") or {}).items()}
    named = {key.lower() for key in headers}
    if isinstance(body, dict | list):
        text = json.dumps(each_text(body, fill), ensure_ascii=False)
        headers |= {} if "content-type" in named else {"Content-Type": "application/json"}
    else:
        text = "" if body is None else fill(_as_text(body))
        headers |= {} if "content-type" in named or body is None else {"Content-Type": "text/plain"}
    if config.get("queryParams"):
        raise DefinitionError("queryParams", "its `queryParams` are not read; write them into the url")
    answer, program = _answer(config.get("transformResponse") or config.get("responseParser"), at)
    return HTTPRequest(fill(url), method, headers, text, answer, program)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _answer(code: Any, at: Cursor) -> tuple[str, Program | None]:
    """Return the path of the answer in a response, or the program that finds it."""
    if code is None:
        return "", None
    if is_reference(code):
        return "", _javascript(code, at)
    if not isinstance(code, str):
        raise DefinitionError("transformResponse", "its `transformResponse` is not JavaScript")
    line = code.strip().rstrip(";")
    path = line.removeprefix("json")
    if path != line and path[:1] in (".", "["):
        try:
            steps_of(path.removeprefix("."))
        except DefinitionError:
            pass
        else:
            return path.removeprefix("."), None
    tell_engine(at)
    body = f"const {{json, text}} = context;\nconst found = ({line}\n);\n"
    return "", Program(f"{body}return typeof found === 'function' ? found(json, text, context) : found;")
