"""
An application behind HTTP as the target of a suite.

A request leaves once for each attempt, follows no redirect, reads a bounded response, and carries no key of the
environment: it has the headers that it is given and no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from attrs import evolve, field, frozen

from rubric import DefinitionError, ModelError
from rubric.driving import Failure, Usage
from rubric.embed import FrozenMap, fields, freeze, guided, shorten, thaw
from rubric.programs.javascript import UNDEFINED, JavaScriptError, ThrownError
from rubric.prompts.render import fill
from rubric.suites.cases import Case
from rubric.suites.providers import METHODS, HTTPRequest, as_headers, check_url, text_of
from rubric.suites.targets.base import Response
from rubric.suites.targets.models import opening

LARGEST = 16 << 20
"""Bytes of a response."""

Finding = Callable[[Any], str]


@guided
@frozen(repr=False)
class HTTPTarget(fields.Shown):
    """
    An application behind HTTP that answers the cases of a suite.

    `{{ prompt }}` in *url*, *headers* and *body* becomes the input of the case, or its messages as JSON if it is a
    chat; `{{ name }}` the variable of that name. Each text of a mapping is filled by itself, so no value can break the
    JSON around it; a value in *url* is percent-encoded.

    Args:
        url: An `http://` or `https://` address.
        method: `POST`, `GET`, `PUT` or `PATCH`.
        headers: By name. They are sent to *url* alone: no redirect is followed.
        body: A mapping or a list, sent as JSON, or a text; None sends `{"prompt": "{{ prompt }}"}`, and GET nothing.
        answer: Where the text of the answer is: a path in the JSON, such as `"choices[0].message.content"`, or a
            function of the JSON (of the text, where it is none); empty for all of it.
        timeout: Seconds for one attempt.
        retries: How often a request that failed in passing is sent again.
    """

    _positional = ("url",)

    url: str = field(validator=fields.string)
    method: str = field(default="POST", kw_only=True)
    headers: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=as_headers)
    body: Any = field(default=None, kw_only=True, converter=freeze)
    answer: str | Finding = field(default="", kw_only=True)
    timeout: float = field(default=60.0, kw_only=True)
    retries: int = field(default=2, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check_url("url", self.url)
        if "{" in urlsplit(self.url).netloc:
            raise DefinitionError("url", "a slot must not be in the host: a variable would choose the server")
        fields.check_name("method", self.method, METHODS)
        if not callable(self.answer) and not isinstance(self.answer, str):
            raise fields.refuse("answer", self.answer, "a path such as 'choices[0].message.content', or a function")
        if isinstance(self.answer, str):
            steps_of(self.answer)

    async def respond(self, case: Case, /) -> Response:
        """
        Return the answer of the application to *case*.

        Raises:
            DeferError: The case asks nothing.
            DefinitionError: A slot names no variable of the case.
            ModelError: The application did not answer, or the answer is not where *answer* says.
        """
        texts = {**{name: text_of(value) for name, value in case.variables.items()}, "prompt": prompt_of(case)}
        body = {"prompt": "{{ prompt }}"} if self.body is None and self.method != "GET" else thaw(self.body)
        filled, headers = _fill(body, texts), {name: fill(str(v), texts) for name, v in self.headers.items()}
        named = {name.lower() for name in headers}
        if not isinstance(filled, str | None) and "content-type" not in named:
            headers["Content-Type"] = "application/json"
        request = HTTPRequest(
            fill(self.url, {name: quote(text, safe="") for name, text in texts.items()}),
            self.method,
            headers,
            filled if isinstance(filled, str) else "" if filled is None else json.dumps(filled),
            self.answer if isinstance(self.answer, str) else "",
        )
        find = self.answer if callable(self.answer) else None
        found, usage = await fetch_answer(request, find, seconds=self.timeout, retries=self.retries)
        return Response(case.responding(text_of(found)), usage)


def prompt_of(case: Case) -> str:
    """Return what an application is asked by *case*: its input, or its chat (and a case with images) as JSON."""
    messages = opening(case)
    is_plain = len(messages) == 1 and case.input and not case.images
    return case.input if is_plain else json.dumps(messages, ensure_ascii=False)


def _fill(value: Any, texts: Mapping[str, str]) -> Any:
    """Return *value* with each text in it filled."""
    if isinstance(value, str):
        return fill(value, texts)
    if isinstance(value, dict):
        return {key: _fill(inner, texts) for key, inner in value.items()}
    return [_fill(inner, texts) for inner in value] if isinstance(value, list) else value


# -- one request -------------------------------------------------------------------------------------------


async def fetch_answer(
    request: HTTPRequest, find: Finding | None = None, *, seconds: float = 60.0, retries: int = 2
) -> tuple[Any, Usage]:
    """
    Send *request*, and return the answer in its response, a text or data, and what was spent.

    Raises:
        ModelError: All attempts failed, or there is no answer in the response.
    """
    from rubric.models.http_client import fetch  # noqa: PLC0415 - aiohttp takes a tenth of a second

    place = shorten(request.url.partition("?")[0], 120)
    outcome, spent = await fetch(
        request.method, request.url, request.headers, request.body, seconds=seconds, retries=retries, limit=LARGEST
    )
    if isinstance(outcome, Failure):
        raise ModelError(evolve(outcome, message=f"the target {place}: {outcome.message}", usage=spent))
    about = {"status": outcome.status, "statusText": outcome.reason, "headers": {**outcome.headers}}
    try:
        return _answer(outcome.text, about, request, find), spent
    except (DefinitionError, JavaScriptError, ThrownError) as problem:
        message = f"the target {place}: {problem}; the response begins {shorten(outcome.text, 120)!r}"
        raise ModelError(Failure("bad_response", message, usage=spent)) from None


def _answer(text: str, about: Mapping[str, Any], request: HTTPRequest, find: Finding | None) -> Any:
    """Return the answer in *text*, a response; *about* has its status and headers, by the names of promptfoo."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if find is not None:
        found = find(text if data is None else data)
        if not isinstance(found, str):
            raise DefinitionError("answer", f"the function returned {type(found).__name__}, not the text of an answer")
        return found
    if request.program is not None:
        program, of_module = request.program, request.program.module  # a module exports a function of what a line names
        context = {"response": {"data": text if data is None else data, "cached": False, **about}}
        given = {"json": data, "text": text, **context}
        found = program.call(data, text, context) if of_module else program.run(text, given)
        found = found["output"] if isinstance(found, dict) and "output" in found else found
        if found is UNDEFINED or found is None:
            raise DefinitionError("answer", "transformResponse finds no answer")
        return found
    return text if data is None and not request.answer else _at(data, request.answer)


_STEP = re.compile(r"(?:^|\.)([A-Za-z_$][\w$-]*)|\[(\d{1,6})\]|\[(['\"])([^'\"\]]+)\3\]")


def steps_of(path: str) -> list[str | int]:
    """Return the keys and places of *path*, such as `choices[0].message.content`, or refuse what is none."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise DefinitionError("answer", f"expected a path such as choices[0].message.content, got {path!r}")
        steps.append(int(match[2]) if match[2] else match[1] or match[4])
        at = match.end()
    return steps


def _at(data: Any, path: str) -> Any:
    for step in steps_of(path):
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            raise DefinitionError("answer", f"there is no {path!r} in it") from None
    if data is None:
        raise DefinitionError("answer", f"{path!r} is null")
    return data
