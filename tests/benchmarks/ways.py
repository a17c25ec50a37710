"""
The ways to grade that are compared: ours, bare clients, and other libraries as their documentation shows them.

    python -P tests/benchmarks/ways.py '{"way": "bare aiohttp", "base": "http://127.0.0.1:1/v1", ...}'

A way gets candidates and criteria, asks a judge about each criterion of each, at most so many calls at a time, and is
run with the Python of whoever has its library: above the ways nothing but the standard library is needed, and nothing
of this checkout. What comes out is one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from math import ceil
from typing import Any, NamedTuple

MODEL = "gpt-4o-mini"
KEY = "sk-bench-0123456789abcdef"
QUESTION = "How does a heat pump work, and when is it a good choice for a home?"
SYSTEM = "You judge whether an answer meets a requirement. Answer with a JSON object."
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "boolean"}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
TEXT = (
    "a heat pump moves warmth from the air outside into the rooms by way of a fluid that boils when it is cold and "
    "condenses when it is pressed together so that it needs less power than it gives as long as the house is tight"
)
WORDS = TEXT.split()

Grade = Callable[[str], Awaitable[object]]
Run = Callable[[list[str]], Awaitable[object]]


class Work(NamedTuple):
    """What a way is to do: where, for which criteria, and with how many calls at a time."""

    base: str
    criteria: list[str]
    concurrency: int

    @property
    def candidates_at_once(self) -> int:
        """For libraries that bound their calls themselves: twice as many candidates as it takes."""
        return 2 * ceil(self.concurrency / len(self.criteria))


def candidates(count: int, characters: int, seed: int = 7) -> list[str]:
    """Return *count* different texts of so many *characters*."""
    chance = random.Random(seed)
    words = [" ".join(chance.choices(WORDS, k=characters // 3 + 1)) for _ in range(count)]
    return [f"Answer {number}. {text}"[:characters] for number, text in enumerate(words)]


def criteria(count: int) -> list[str]:
    """Return *count* different requirements."""
    chance = random.Random(11)
    return [f"It says, in part {n + 1}, how {' '.join(chance.choices(WORDS, k=9))}." for n in range(count)]


def messages(candidate: str, criterion: str) -> list[dict[str, str]]:
    """Return what the bare clients send."""
    user = f"Question:\n{QUESTION}\n\nAnswer:\n{candidate}\n\nRequirement:\n{criterion}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


async def drain(calls: Iterable[Awaitable[object]], at_once: int) -> None:
    """Await *calls*, so many at once."""
    left = iter(calls)

    async def worker() -> None:
        for call in left:
            await call

    await asyncio.gather(*(worker() for _ in range(at_once)))


def each_criterion(work: Work, judge: Callable[[str, str], Awaitable[object]]) -> Run:
    """Return a run that asks *judge* about each pair."""
    return lambda texts: drain((judge(text, c) for text in texts for c in work.criteria), work.concurrency)


def each_candidate(work: Work, grade: Grade) -> Run:
    """Return a run that grades each candidate, for libraries that see to the calls themselves."""
    return lambda texts: drain((grade(text) for text in texts), work.candidates_at_once)


# -- bare clients ----------------------------------------------------------------------------------------


async def bare_aiohttp(work: Work) -> Run:
    """Post, read JSON, read the JSON in it: the floor."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    headers = {"Authorization": f"Bearer {KEY}"}

    async def judge(candidate: str, criterion: str) -> object:
        body = {"model": MODEL, "messages": messages(candidate, criterion), "temperature": 0, "response_format": FORMAT}
        async with session.post(f"{work.base}/chat/completions", json=body, headers=headers) as response:
            return json.loads((await response.json())["choices"][0]["message"]["content"])

    return each_criterion(work, judge)


async def bare_litellm(work: Work) -> Run:
    """`litellm.acompletion` as people call it."""
    import litellm

    async def judge(candidate: str, criterion: str) -> object:
        response = await litellm.acompletion(
            model=f"openai/{MODEL}",
            messages=messages(candidate, criterion),
            temperature=0,
            response_format=FORMAT,
            api_base=work.base,
            api_key=KEY,
        )
        return json.loads(response.choices[0].message.content)

    return each_criterion(work, judge)


# -- ours ------------------------------------------------------------------------------------------------


def our_judge(work: Work, **options: Any) -> Any:
    """Return our judge at the server."""
    from rubric import Judge

    return Judge(f"openai/{MODEL}", temperature=0, params={"api_base": work.base, "api_key": KEY}, **options)


def our_rubric(work: Work) -> Any:
    """Return the criteria as our rubric."""
    from rubric import Rubric

    rubric = Rubric("bench")
    for number, criterion in enumerate(work.criteria):
        rubric = rubric.expects(criterion, id=f"c{number}")
    return rubric


async def ours(work: Work, **options: Any) -> Run:
    """Whole grades with `agrade_many`, from the texts to the scores."""
    from rubric import Candidate, agrade_many

    judge, rubric = our_judge(work, **options), our_rubric(work)

    async def run(texts: list[str]) -> None:
        given = [Candidate(text, input=QUESTION) for text in texts]
        async for result in agrade_many(given, rubric, judge, concurrency=work.concurrency, progress=False):
            assert result.passed, result

    return run


async def our_calls(work: Work, **options: Any) -> Run:
    """Single judge calls of ours, typed reply and all, with the messages of the bare clients."""
    from rubric import Criterion
    from rubric.driving import Reply
    from rubric.internals.frozen_map import FrozenMap
    from rubric.models.registry import model_of
    from rubric.models.retry import attempt
    from rubric.values.requests import Ask, Outgoing

    judge, schema = our_judge(work, **options), FrozenMap(SCHEMA)
    model, asked = model_of(judge), {criterion: (Criterion(criterion),) for criterion in work.criteria}

    async def call(candidate: str, criterion: str) -> object:
        system, user = (message["content"] for message in messages(candidate, criterion))
        said = (Outgoing("system", (system,)), Outgoing("user", (user,)))
        outcome = await attempt(model, Ask(judge, said, schema, asked[criterion]))
        assert isinstance(outcome, Reply), outcome
        return json.loads(outcome.text or "")

    return each_criterion(work, call)


# -- other libraries -------------------------------------------------------------------------------------


async def autorubric(work: Work) -> Run:
    """Its default: a call a criterion, through LiteLLM."""
    from autorubric import LLMConfig, Rubric
    from autorubric.graders import CriterionGrader

    config = LLMConfig(model=f"openai/{MODEL}", api_base=work.base, api_key=KEY, max_parallel_requests=work.concurrency)
    rubric = Rubric.from_dict([{"weight": 1.0, "requirement": criterion} for criterion in work.criteria])
    grader = CriterionGrader(judge_model_config=config)

    async def grade(candidate: str) -> object:
        report = await rubric.grade(to_grade=candidate, grader=grader, query=QUESTION)
        assert report.score is not None, report
        return report

    return each_candidate(work, grade)


async def ldc_rubric(work: Work) -> Run:
    """The LLM Data Company's package, with one client of OpenAI's library for all calls."""
    theirs, graders = import_module("rubric"), import_module("rubric.autograders")
    client, room = openai_client(work), asyncio.Semaphore(work.concurrency)
    schema = {"name": "output", "schema": theirs.PerCriterionOutput.model_json_schema()}

    async def generate(system_prompt: str, user_prompt: str) -> object:
        async with room:
            response = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}],
                response_format={"type": "json_schema", "json_schema": schema},
                temperature=0,
            )
        return theirs.PerCriterionOutput.model_validate_json(response.choices[0].message.content)

    rubric = theirs.Rubric.from_dict([{"weight": 1.0, "requirement": criterion} for criterion in work.criteria])
    grader = graders.PerCriterionGrader(generate_fn=generate)
    return each_candidate(work, lambda candidate: rubric.grade(candidate, autograder=grader, query=QUESTION))


def openai_client(work: Work) -> Any:
    """Return one client of OpenAI's library."""
    return import_module("openai").AsyncOpenAI(base_url=work.base, api_key=KEY)


async def deepeval(work: Work) -> Run:
    """`GEval`, with the steps given, so that it does not ask for them first."""
    from deepeval.metrics import GEval
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = GPTModel(model=MODEL, base_url=work.base, api_key=KEY)
    params = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]

    async def judge(candidate: str, criterion: str) -> object:
        metric = GEval(name="c", evaluation_steps=[criterion], evaluation_params=params, model=model)
        await metric.a_measure(LLMTestCase(input=QUESTION, actual_output=candidate), _show_indicator=False)
        assert metric.score == 1, metric
        return metric.score

    return each_criterion(work, judge)


async def inspect_ai(work: Work) -> Run:
    """The scorer `model_graded_qa`, without an evaluation and its log around it."""
    from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelName, ModelOutput, get_model
    from inspect_ai.scorer import Target, model_graded_qa
    from inspect_ai.solver import TaskState

    config = GenerateConfig(max_connections=work.concurrency)
    score = model_graded_qa(model=get_model(f"openai/{MODEL}", base_url=work.base, api_key=KEY, config=config))

    async def judge(candidate: str, criterion: str) -> object:
        output, asked = ModelOutput.from_content("none", candidate), [ChatMessageUser(content=QUESTION)]
        state = TaskState(ModelName("none/none"), 1, 1, QUESTION, asked, output=output)
        result = await score(state, Target(criterion))
        assert result.value == "C", result
        return result

    return each_criterion(work, judge)


async def openevals(work: Work) -> Run:
    """`create_async_llm_as_judge`, with one client of OpenAI's library."""
    from openevals.llm import create_async_llm_as_judge

    prompt = f"{SYSTEM}\n\nQuestion:\n{{inputs}}\n\nAnswer:\n{{outputs}}\n\nRequirement:\n{{criterion}}"
    evaluate = create_async_llm_as_judge(prompt=prompt, judge=openai_client(work), model=MODEL)

    async def judge(candidate: str, criterion: str) -> object:
        result = await evaluate(inputs=QUESTION, outputs=candidate, criterion=criterion)
        assert result["score"], result
        return result

    return each_criterion(work, judge)


class Way(NamedTuple):
    """A way: what makes it, whose environment it needs (empty: ours), and what is installed there."""

    make: Callable[[Work], Awaitable[Run]]
    home: str = ""
    packages: tuple[str, ...] = ()


WAYS = {
    "bare aiohttp": Way(bare_aiohttp, packages=("aiohttp",)),
    "bare LiteLLM": Way(bare_litellm, packages=("litellm",)),
    "rubric, calls over HTTP": Way(lambda work: our_calls(work, via="http")),
    "rubric, calls through LiteLLM": Way(our_calls),
    "rubric, grades over HTTP": Way(lambda work: ours(work, via="http")),
    "rubric, grades through LiteLLM": Way(ours),
    "autorubric": Way(autorubric, "autorubric", ("autorubric", "litellm")),
    "LLM Data Co rubric": Way(ldc_rubric, "ldc", ("rubric", "openai")),
    "deepeval": Way(deepeval, "deepeval", ("deepeval",)),
    "inspect_ai": Way(inspect_ai, "inspect", ("inspect-ai",)),
    "openevals": Way(openevals, "openevals", ("openevals", "openai")),
}

QUIET = {
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "ERROR_REPORTING": "NO",
    "INSPECT_LOG_LEVEL": "error",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_API_KEY": KEY,
}


async def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what the run of *spec* took: after a short one for connections and caches."""
    way = WAYS[spec["way"]]
    work = Work(spec["base"], criteria(spec["criteria"]), spec["concurrency"])
    run = await way.make(work)
    if spec["warm"]:
        await run(candidates(spec["warm"], spec["characters"], seed=8))
    texts = candidates(spec["candidates"], spec["characters"])
    wall, cpu = time.perf_counter(), time.process_time()
    await run(texts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    calls = spec["candidates"] * spec["criteria"]
    return {
        "calls/s": calls / wall,
        "ms": 1000 * cpu / calls,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {name: version(name) for name in way.packages},
    }


def main() -> None:
    """Measure, and print the result as one line."""
    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some write files where they run
        found = asyncio.run(measure(json.loads(sys.argv[1])))
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
