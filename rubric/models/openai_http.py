"""
OpenAI, and servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It takes a fraction of the CPU time of a call through LiteLLM, and gives the same replies and kinds of failure. A
vendor's quirk goes into `chat_completions` (the body of a request or a response) or `failure_kinds` (an error's text or
status); here are the address, the key, the proxy and the wire; docs/how-to/the_direct_path.md has them by judge.

A key in `params` goes to the judge's address. The environment's key goes to an address in `params` only if the name
begins with `openai/`: other names are those of other vendors. No file can name an address, a key, a header, or this way
of asking.
"""

from __future__ import annotations

import os
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import frozen

from rubric.errors import ModelError
from rubric.internals.frozen_map import Memo
from rubric.internals.secrets import values_of
from rubric.models.chat_completions import CALL, Endpoint, body_of, relax, reply_from
from rubric.models.http_bodies import most_bytes
from rubric.models.http_client import VARIABLES, Server, is_reachable, post, proxy_for
from rubric.models.litellm_library import payer_headers
from rubric.models.pricing import with_cost
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask, Reply


_OPENAI = "https://api.openai.com/v1"
_PREFIX = "openai/"


def endpoint_of(judge: Judge, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the endpoint of *judge*; raise `ModelError` if it has no address (bad_request), or lacks a key (auth)."""
    given = judge.params.get("api_base") or judge.params.get("base_url")
    named = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE")
    names_openai = judge.name.startswith(_PREFIX)
    if not (given or named or names_openai) and "/" in judge.name:
        message = (
            f"via='http' goes to OpenAI, or to an address of yours: {judge.name!r} needs params={{'api_base': ...}} or "
            "OPENAI_BASE_URL"
        )
        raise ModelError(Failure("bad_request", message))
    base = str(given or named or _OPENAI).rstrip("/")
    is_openai = base == _OPENAI
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    key = str(judge.params.get("api_key") or "")
    ambient: Mapping[str, str] = {} if key or (given and not names_openai) else environ
    key = key or ambient.get("OPENAI_API_KEY", "")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    headers |= payer_headers(judge.params, ambient if key else {})  # the payer comes from where the key does
    if is_openai and not key:
        raise ModelError(Failure("auth", "OpenAI wants a key: set OPENAI_API_KEY, or give params={'api_key': ...}"))
    extra = {str(name): str(value) for name, value in (judge.params.get("extra_headers") or {}).items()}
    secrets = tuple(filter(None, (key, *extra.values(), *values_of(judge.params))))
    path, mark, query = base.partition("?")
    if not is_reachable(path):
        raise ModelError(Failure("bad_request", "the judge's address is none that http:// or https:// can reach"))
    url = f"{path.rstrip('/').removesuffix(CALL)}{CALL}{mark}{query}"
    return Endpoint(url, judge.name.removeprefix(_PREFIX), headers | extra, secrets, is_openai)


def exposure_of(endpoint: Endpoint) -> tuple[str, ...]:
    """Return a remark if key and prompt leave this machine unencrypted on their way to *endpoint*."""
    if not endpoint.secrets:
        return ()
    proxy = proxy_for(endpoint.url)
    parts, way = urlsplit(endpoint.url), urlsplit(proxy or "")
    if parts.scheme != "http" or (_is_loopback(parts.hostname) and (not proxy or _is_loopback(way.hostname))):
        return ()
    through = f" through the proxy {way.hostname}, which can read both," if proxy else ""
    return (f"key and prompt went{through} to http://{parts.hostname} unencrypted: use https:// where it is to be had",)


def _is_loopback(host: str | None) -> bool:
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost" or str(host).endswith(".localhost")


# -- what the requests of a judge share -------------------------------------------------------------------

_VARIABLES = [*VARIABLES, "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"]
_VARIABLES += ["OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"]

# The dict below `os.environ`, if this Python has it: its look-ups are ten times as fast, and there are 17 a request.
_environ: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_NAMES = [*map(os.environ.encodekey, _VARIABLES)] if _environ is not os.environ else _VARIABLES


@frozen(eq=False)
class Destination:
    """Where the requests of a judge go while the variables that decide it have these values; *remarks* on it."""

    environment: tuple[object, ...]
    endpoint: Endpoint
    server: Server
    remarks: tuple[str, ...]


# A list of none or one, since a `Memo` keeps its first value. Two threads may fill it at a time, with equal values.
_destinations: Memo[Judge, [], list[Destination]] = Memo(lambda _: [])


def destination_of(judge: Judge) -> Destination:
    """Return where the requests of *judge* go; raise `ModelError` as `endpoint_of` and `proxy_for` do."""
    environment, known = tuple(map(_environ.get, _NAMES)), _destinations(judge)
    if not known or known[0].environment != environment:
        endpoint = endpoint_of(judge)
        server = Server.at(endpoint.url, endpoint.headers, endpoint.secrets)
        known[:] = [Destination(environment, endpoint, server, exposure_of(endpoint))]
    return known[0]


class OpenAIHTTPModel:
    """
    Answers with the model that the judge names, in one attempt, on the caller's loop.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. Everything
    else raises `ModelError`. The cost of a call is worked out from its tokens, for models in LiteLLM's price list; for
    others it is unknown (None).
    """

    is_punctual = True  # it keeps the judge's deadline, and knows whether the request had left by then

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*; raise `ModelError` with the failure, whose message has no secrets in it."""
        judge, to = ask.judge, destination_of(ask.judge)
        sent = body_of(ask, to.endpoint)
        limit = most_bytes(len(sent.content), ask.max_tokens * ask.n, logprobs=judge.logprobs)
        try:
            received = await post(to.server, sent.content, judge.timeout, limit)
        except ModelError as error:
            raise ModelError(relax(ask, sent.replies, sent.form, error.failure)) from None
        return reply_from(received, sent.unsent, to.endpoint.secrets, partial(with_cost, judge), to.remarks, ask=ask)
