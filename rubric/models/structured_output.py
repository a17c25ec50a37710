"""
How a judge is held to the form of its reply, and what is learnt of servers that refuse it.

LiteLLM says `response_format` in each vendor's words: OpenAI's, Ollama's `format`, Gemini's `responseSchema`, a tool
that must be called. Whether a *model* takes a schema it knows of listed models alone; a deployment, a model of one's
own, a model of last week are not listed, and they need it most. So the rule is:

| LiteLLM's dialect of the vendor has        | first sent      |
|--------------------------------------------|-----------------|
| no `response_format` for the model         | nothing         |
| one, and the vendor has JSON mode alone    | JSON mode       |
| one, and OpenAI lists the model without it | JSON mode       |
| one                                        | the schema      |

A server that refuses the form, by an error that speaks of it, is sent the next lower one at once: the schema, JSON
mode, nothing. What it takes is remembered as long as the process lives, by model and address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve

from rubric.internals.frozen_map import thaw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.values.judges import Judge
    from rubric.values.requests import Failure


Form = Literal["schema", "json", "nothing"]
_LOWER: dict[Form, Form] = {"schema": "json", "json": "nothing"}
_JSON_ALONE = frozenset({"deepseek"})  # LiteLLM lists its models with a schema, which its API refuses
_REFUSALS = frozenset({400, 404, 415, 422, 501})

_ABOUT_THE_FORM = re.compile(
    r"response[ _]?(?:json[ _]?)?(?:format|schema)|json[ _]?(?:schema|object|mode)|structured[ _]?output|guided|grammar"
    r"|output[ _]?(?:format|config)|tool[ _]?(?:choice|use)",
    re.IGNORECASE,
)

_learnt: dict[tuple[str, str], Form] = {}


def response_format(judge: Judge, schema: Mapping[str, Any], first: Form) -> tuple[Form, dict[str, Any]]:
    """Return the form that *judge* is held to, *first* as long as its server refuses none, and its parameter."""
    form = form_for(judge, first)
    if form == "nothing":
        return form, {}
    if form == "json":
        return form, {"response_format": {"type": "json_object"}}
    named = {"name": "verdict", "strict": True, "schema": thaw(schema)}
    return form, {"response_format": {"type": "json_schema", "json_schema": named}}


def form_for(judge: Judge, first: Form) -> Form:
    """Return the form that *judge* is held to: *first*, unless its server has refused that."""
    return _learnt.get(_server(judge), first)


def lowered(judge: Judge, form: Form, failure: Failure) -> Failure:
    """Return *failure* as one to be sent again, where *form* was refused and there is a lower one."""
    refused = failure.kind == "bad_request" and failure.status in _REFUSALS and _ABOUT_THE_FORM.search(failure.message)
    if form == "nothing" or not refused:
        return failure
    server = _server(judge)
    if _learnt.get(server, form) == form:  # not so where another request was refused meanwhile
        _learnt[server] = _LOWER[form]
    return evolve(failure, again=True)


def _server(judge: Judge) -> tuple[str, str]:
    return judge.name, str(judge.params.get("api_base") or judge.params.get("base_url") or "")


def first_form(provider: str, *, has_format: bool, takes_schema: bool, is_listed: bool) -> Form:
    """Return what a model is sent first, by what LiteLLM knows of it."""
    if not has_format:
        return "nothing"
    if provider in _JSON_ALONE or (provider == "openai" and is_listed and not takes_schema):
        return "json"
    return "schema"
