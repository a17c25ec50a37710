"""
Providers: the models and addresses that a file names to answer its cases.

A file is data that others wrote, so nothing is asked because a file names it: only `target="providers"` asks them, and
an address only if its host is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from rubric import DefinitionError
from rubric.embed import FrozenMap, fields, thaw
from rubric.programs.javascript import UNDEFINED, JavaScriptError, Program
from rubric.programs.processes import Executable, PythonFunction

METHODS = ("GET", "POST", "PUT", "PATCH")


def as_headers(value: Mapping[str, Any]) -> FrozenMap:
    return fields.as_settings("headers", value)


def text_of(value: Any) -> str:
    """Return *value* as a text; anything but a text as JSON."""
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False, default=str)


def check_url(field: str, url: str) -> None:
    """Refuse a *url* that is not a http:// or https:// address, or that holds a password."""
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        raise DefinitionError(field, f"expected an http:// or https:// address, got {url!r}") from None
    if wrong:
        raise DefinitionError(field, f"expected an http:// or https:// address, got {url!r}")
    if parts.password is not None or parts.username is not None:
        raise DefinitionError(field, "an address must not hold a password; send it in a header")


@frozen
class HTTPRequest:
    """
    One HTTP request, whole: what is sent, and where the answer is in the response.

    Args:
        url: An `http://` or `https://` address.
        method: `GET`, `POST`, `PUT` or `PATCH`.
        headers: By name.
        body: The text that is sent.
        answer: A path in the JSON of the response, such as `choices[0].message.content`; empty for all of it.
        program: Finds the answer instead: JavaScript for the embedded engine, which is given `json` and `text`.
    """

    url: str = field(repr=lambda url: repr(url.partition("?")[0]))
    method: str = "POST"
    headers: FrozenMap = field(factory=FrozenMap, converter=as_headers, repr=False)
    body: str = field(default="", repr=False)
    answer: str = ""
    program: Program | None = None

    def __attrs_post_init__(self) -> None:
        check_url("url", self.url)
        if any(sign.isspace() for sign in self.url):
            raise DefinitionError("url", f"an address has no white space, got {self.url!r}")
        fields.check_name("method", self.method, METHODS)

    @property
    def host(self) -> str:
        """The host of the address, with its port if it names one."""
        return urlsplit(self.url).netloc.lower()


@frozen
class Provider:
    """
    What a file names to answer a case.

    Args:
        name: The file's name of it.
        model: LiteLLM's name of the model.
        settings: The parameters that are sent, such as `temperature`; never an endpoint or a key.
        request: The request to an address, in place of a model.
        program: A function or a command, in place of a model; it is given the prompt, *settings*, and the case.
        variables: For *program*: those of the case, with lists and mappings as the file has them.
        transform: JavaScript, or a function in Python, that makes the output of the answer.
        missing: Why it cannot be asked; empty if it can.
        unsent: The parameters of the file that are not sent.
    """

    name: str
    model: str = ""
    settings: FrozenMap = field(factory=FrozenMap)
    request: HTTPRequest | None = None
    program: PythonFunction | Executable | None = None
    variables: FrozenMap = field(factory=FrozenMap)
    transform: Program | PythonFunction | None = None
    missing: str = ""
    unsent: tuple[str, ...] = ()

    def transform_output(self, output: str, variables: Mapping[str, Any], prompt: str) -> str:
        """Return what the provider's transform, if it has one, makes of *output*; one that fails is a `RubricError`."""
        if self.transform is None:
            return output
        context = {"vars": thaw(variables), "prompt": {"raw": prompt}}
        run = self.transform.call if isinstance(self.transform, PythonFunction) else self.transform.run
        answer = run(output, context)
        if answer is UNDEFINED or answer is None:
            raise JavaScriptError("it returned nothing")
        return text_of(answer)
