"""A model as the target of a suite: its answer to the case is the candidate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import evolve, field, frozen

from rubric import DefinitionError, Judge
from rubric.embed import FrozenMap, Wording, fields, guided
from rubric.models.chat_turns import ChatModel
from rubric.suites.cases import Case
from rubric.suites.targets.base import DeferError, Response

_SENT = frozenset({"system", "developer", "user", "assistant"})


def _as_params(value: Mapping[str, Any]) -> FrozenMap:
    return fields.as_settings("params", value)


@frozen(repr=False)
class AskedModel(fields.Shown):
    """A model with the settings that it is asked with; the common part of `ModelTarget` and `AgentTarget`."""

    _attempt: ClassVar[str] = "timeout"
    """The field that holds the seconds for one attempt."""

    model: str = field()
    system: str = field(default="", kw_only=True, validator=fields.string)
    temperature: float | None = field(default=None, kw_only=True)
    max_tokens: int = field(default=4096, kw_only=True)
    retries: int = field(default=2, kw_only=True)
    params: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_params)

    def __attrs_post_init__(self) -> None:
        _ = self.chat  # refuses what cannot be asked

    @property
    def chat(self) -> ChatModel:
        """The model, with its settings."""
        if not isinstance(self.model, str) or self.model == "offline":
            message = f"expected a LiteLLM model name, such as 'openai/gpt-5.6', got {self.model!r}"
            if self.model == "offline":
                ways = (Wording("a function: ", target=...), Wording("replies: ", outputs=None))
                message = Wording(message, "; it judges and writes no answers: give ", ways)
            raise DefinitionError("model", message)
        judge = Judge(
            self.model,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            timeout=getattr(self, self._attempt),
            retries=self.retries,
            params=self.params,
        )
        return ChatModel(judge)

    async def ready(self) -> None:
        """Get ready to ask the model, and raise `DeferError` if it cannot be asked."""
        if why := await self.chat.ready():
            raise DeferError(why)


@guided
@frozen(repr=False)
class ModelTarget(AskedModel):
    """
    A model that answers the cases of a suite.

    It gets the messages of the case, then its input. Its answer is the output of the candidate, also if that is a
    refusal. A reply that is empty, that was cut at *max_tokens* or that a filter stopped is not a candidate: the setup
    ended it, so it is a failure and the case is ungraded.

    Args:
        model: A LiteLLM name, such as `"openai/gpt-5.6"`.
        system: A system prompt that goes first.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest answer.
        timeout: Seconds for one attempt.
        retries: How often a request is sent again after a transient failure.
        params: Further parameters for the vendor, as LiteLLM names them, such as an endpoint or a key; only code sets
            them, never a file.
    """

    _positional = ("model",)

    timeout: float = field(default=60.0, kw_only=True)

    async def respond(self, case: Case, /) -> Response:
        """
        Return the model's answer to *case*.

        Raises:
            DeferError: The environment has no key for the model, no vendor has its name, or the case asks nothing or
                needs an MCP server.
            ModelError: The model did not answer.
        """
        if case.server:
            raise DeferError(missing_server(case))
        messages = opening(case, self.system)
        await self.ready()
        turn = await self.chat.say(messages)
        said = case.responding(turn.text, metrics=evolve(case.metrics, finish_reason=turn.finish))
        return Response(said, turn.usage, turn.warnings)


def missing_server(case: Case, known: Iterable[str] = ()) -> str:
    """Return why a target that has the servers *known* cannot answer *case*, and the cure."""
    name = case.server
    cure = f"give it with --server {name}=COMMAND; in code, AgentTarget(model, {{{name!r}: StdioServer(...)}})"
    return f"it names the MCP server {name!r}; known: {', '.join(map(repr, known)) or 'none'}; {cure}"


def opening(case: Case, system: str = "") -> list[dict[str, Any]]:
    """
    Return the messages that a model gets for *case*: *system*, the messages of the case, and its input.

    An input that is already the last message is not sent twice. A message of any other role goes as a user message that
    names the role, since vendors refuse other roles. The images of the case go with the last message of the user.

    Raises:
        DeferError: The case has neither an input nor messages nor images.
    """
    messages = [
        {"role": role, "content": content} if role in _SENT else {"role": "user", "content": f"{role}: {content}"}
        for role, content in ((message.role, message.content) for message in case.messages)
    ]
    asked = {"role": "user", "content": case.input}
    if case.input.strip() and messages[-1:] != [asked]:
        messages.append(asked)
    if case.images:
        _attach(case.images, messages)
    if not messages:
        why = case.unasked or "it has neither an input nor messages"
        raise DeferError(f"the case {case.id!r} asks nothing: {why}")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _attach(images: Sequence[str], messages: list[dict[str, Any]]) -> None:
    """Put *images* before the text of the user's last message, as OpenAI's content blocks."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=len(messages))
    text = messages[last]["content"] if last < len(messages) else ""
    blocks: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": image}} for image in images]
    blocks += [{"type": "text", "text": text}] if text else []
    messages[last : last + 1] = [{"role": "user", "content": blocks}]
