"""The client, which splits the candidates into shards, and the task of a worker, which grades one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import uuid4

from distributed import Client, KilledWorker, as_completed, get_worker
from distributed.protocol import pickle

from rubric import Budget, DefinitionError, Grade, Grades, Limits, Rubric, RubricError, Store, Ungraded, grade_many
from rubric.dask.limits import PermitLimiter, PermitPlugin, RunSettings
from rubric.driving import Failure, Usage
from rubric.embed import JudgeLike, Options, as_rubric, fields, guided, judge_or_default, replacing, run, source_of
from rubric.engine import Candidates, Placed, Progress, Shard, Share
from rubric.errors import ClusterError
from rubric.grading.flow import check
from rubric.store.cache_key import check_identity
from rubric.values import AnyJudge

Result = Grade | Ungraded
InDoubt = Literal["retry", "hold"]  # as `Store` takes it

CONCURRENCY = 32
"""Requests at once in a shard."""

_CANDIDATES = 256
"""In a shard, about: enough to keep its requests in flight, few enough to repeat when a worker dies."""

_AHEAD = 2
"""Shards that are submitted for each thread of the cluster: the others wait here, not in the scheduler's memory."""


@guided
def grade_on_cluster(
    client: Client,
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    store_folder: str | os.PathLike[str],
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    shards: int | None = None,
    concurrency: int = CONCURRENCY,
    in_doubt: InDoubt = "retry",
    budget: Budget | None = None,
    limits: Limits | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Grades:
    """
    Grade many *candidates* against *rubric* on a Dask cluster, and return the results in their order.

    Each shard is one task. Its replies are kept in a file in *store_folder*; a task whose worker dies goes on from
    there on another worker, and so does the whole run when it is called again. The limits and the budget hold for all
    workers together, and count the requests that a worker had sent before it died.

    `rubric` must be installed on the workers and the scheduler, and the keys of the judges in the workers' environment.

    Args:
        client: A synchronous client of the cluster.
        candidates: As for `grade_many`, but no async iterable. All are read before the first is graded.
        rubric: As for `grade`.
        judge: As for `grade`; left out, the environment of this process names one.
        store_folder: A folder that all workers see under this name. If they are on several machines, its file system
            must have locks that work.
        columns: Which column of a row holds which field of a candidate, as for `grade_many`.
        shards: How many; None for one for every 256 candidates, or as many as *store_folder* has already.
        concurrency: How many requests of a shard are in flight at once; a worker has as many shards as threads.
        in_doubt: `retry` or `hold` calls that were in flight when a worker died; see `Store`.
        budget: For all workers together. The run reserves all that is left of it, and charges what it has spent when it
            ends. If the scheduler dies, its count is lost, and everything is charged.
        limits: The rate limits of all workers together; for this run alone.
        progress: As for `grade_many`; it moves when a shard is finished.

    Raises:
        DefinitionError: An argument that cannot be graded or sent to a worker, another number of shards than
            *store_folder* has, or a damaged file there.
        StoreError: A worker cannot open or write to a store.
        ClusterError: The cluster was lost or restarted, or a worker cannot load the rubric or the judge.
        distributed.KilledWorker: A shard's workers died again and again; what they paid for is in the folder.

    Example:
        >>> import tempfile
        >>> from distributed import Client, LocalCluster
        >>> texts = ["We thank you for waiting.", "Go away."]
        >>> here = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": ":0"}
        >>> with tempfile.TemporaryDirectory() as folder, LocalCluster(**here) as cluster, Client(cluster) as client:
        ...     grades = grade_on_cluster(client, texts, "Says thank you", "offline", store_folder=folder)
        >>> [grade.score for grade in grades]
        [0.5, 0.0]
    """
    _check(client, concurrency, in_doubt, budget, limits)
    graded, by = as_rubric(rubric), judge_or_default(judge)
    check(graded)
    if budget is not None:
        budget.check(by)
    items = _read(candidates, columns)
    _check_sendable(graded, by, items)
    check_identity(by)
    folder = fields.as_path("store_folder", store_folder).absolute()
    parts = _split(items, _count_of(folder, shards, len(items)))
    with _grant_permits(client, limits, budget) as settings, Progress.reporting(progress, len(items)) as tell:
        task = partial(
            grade_shard, settings=settings, rubric=graded, judge=by, concurrency=concurrency, in_doubt=in_doubt
        )
        results: list[Result] = []
        for some in _gather(client, settings, task, folder, parts):
            for result in some:
                tell(result)
            results += some
    return Grades(sorted(results, key=lambda result: result.index or 0))


def _check(client: object, concurrency: int, in_doubt: object, budget: Budget | None, limits: object) -> None:
    if not isinstance(client, Client) or client.asynchronous:
        raise fields.refuse("client", client, "a distributed.Client that is not asynchronous")
    Options(concurrency, budget=budget)  # which refuses what `grade_many` does
    if in_doubt not in get_args(InDoubt):
        raise fields.refuse("in_doubt", in_doubt, "'retry' or 'hold'")
    if limits is not None and not isinstance(limits, Limits):
        raise fields.refuse("limits", limits, "Limits, such as Limits(rpm=500)")


def _check_sendable(rubric: Rubric, judge: AnyJudge, items: Sequence[Placed]) -> None:
    """Refuse what cannot be pickled before anything is sent: Dask names neither the object nor its place."""
    given: list[tuple[str, object]] = [("rubric", rubric), ("judge", judge)]
    given += [(f"candidates[{one.index}]", one.item) for one in items if not isinstance(one.item, str)]
    for name, value in given:
        try:
            pickle.dumps(value)
        except Exception as error:
            why = f"it cannot be sent to the workers ({Failure.of(error).message})"
            cure = "give what can be pickled; as a judge, a model name, or a function without locks, files, connections"
            raise DefinitionError(name, f"{why}; {cure}") from error


# -- the client ------------------------------------------------------------------------------------------


def _read(candidates: Candidates, columns: Mapping[str, str | Sequence[str] | None] | None) -> list[Placed]:
    source = source_of(candidates, columns)
    items = source.items
    if isinstance(items, AsyncIterable):
        raise fields.refuse("candidates", candidates, "an iterable that is not async, a frame, or the path of a file")
    return [source.at(index, item).fetch() for index, item in enumerate(items)]


def _count_of(folder: Path, wanted: int | None, candidates: int) -> int:
    """Return the number of shards, which *folder* remembers: with another one, replies would be paid for again."""
    if wanted is not None:
        fields.check_count("shards", wanted)
    if not folder.is_dir():
        raise DefinitionError("store_folder", f"there is no folder {str(folder)!r}; make it, where all workers see it")
    file = folder / "shards.json"
    known = _known_count(file) or wanted or max(1, -(-candidates // _CANDIDATES))
    if not file.exists():
        with replacing(file) as written:  # a torn file would lose the number, and another number pays for all again
            json.dump({"shards": known}, written)
    if wanted not in (None, known):
        message = f"{str(folder)!r} has the replies of {known} shards, not {wanted}; leave shards out, or take another"
        raise DefinitionError("shards", f"{message} folder")
    return known


def _known_count(file: Path) -> int | None:
    """Return the number of shards from *file*, or from the stores' names if it is gone; None for a new folder."""
    stores = {int(found[1]) for each in file.parent.iterdir() if (found := _STORE.fullmatch(each.name))}
    if not file.exists() and len(stores) < 2:  # noqa: PLR2004 - they agree
        return max(stores, default=None)
    try:
        known = json.loads(file.read_text(encoding="utf-8"))["shards"]
        fields.check_count("shards", known)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        known = None
    if known is None or stores - {known}:
        said = " or ".join(f'{{"shards": {number}}}' for number in sorted(stores)) or "the number of shards it had"
        why = "is damaged or gone" if known is None else f"says {known}, and the stores beside it say otherwise"
        raise DefinitionError("store_folder", f"{str(file)!r} {why}; write {said} into it, or take another folder")
    return int(known)


_STORE = re.compile(r"shard-[0-9]+-of-([0-9]+)\.db")


def _split(items: Sequence[Placed], count: int) -> dict[str, list[Placed]]:
    """Return the candidates of each shard that has any, by the name of its store."""
    parts: dict[int, list[Placed]] = {}
    for item in items:
        parts.setdefault(Shard.holding(item.index, item, count).number, []).append(item)
    digits = len(str(count))
    return {f"shard-{number:0{digits}}-of-{count}.db": parts[number] for number in sorted(parts)}


@contextmanager
def _grant_permits(client: Client, limits: Limits | None, budget: Budget | None) -> Iterator[RunSettings]:
    """Let the scheduler grant permits inside this context; after it, no request of the run is sent any more."""
    # The scheduler has the whole rest of the budget meanwhile. If it dies, its count is lost, and all of it is charged:
    # charging less would let the next run spend money that is gone.
    with (budget or Budget()).entrusting() as (left, commit):
        share = Share.of(limits, left, {} if budget is None else budget.prices)
        settings = RunSettings(uuid4().hex[:12], share)
        plugin = PermitPlugin(settings)
        try:
            client.register_plugin(plugin)
        except Exception as error:
            commit(Usage())
            raise ClusterError(f"the scheduler cannot keep the limits of a run: {Failure.of(error).message}") from error
        try:
            yield settings
        except BaseException:
            with suppress(ClusterError):
                commit(_end_run(client, settings, plugin))
            raise
        commit(_end_run(client, settings, plugin))


def _end_run(client: Client, settings: RunSettings, plugin: PermitPlugin) -> Usage:
    """End the run on the scheduler, and return what it has spent."""
    try:
        spent: Any = client.sync(getattr(client.scheduler, settings.name("end")))
    except Exception as error:
        raise ClusterError(f"the scheduler is gone: {Failure.of(error).message}; {_AGAIN}") from error
    with suppress(Exception):  # the run is over on the scheduler, with or without this
        client.unregister_scheduler_plugin(plugin.name)
    cost, calls, tokens = spent
    return Usage(calls=calls, prompt_tokens=tokens, cost=cost)


_AGAIN = "run it again to go on: what was paid for is in the store folder, and the budget has been charged"


def _gather(
    client: Client, settings: RunSettings, task: ShardTask, folder: Path, parts: dict[str, list[Placed]]
) -> Iterator[list[Result]]:
    """Yield the results of each shard when it is finished; a few are submitted at a time."""
    waiting = iter(parts.items())
    through: Any = as_completed((), with_results=True)

    def submit(count: int) -> None:
        for name, part in islice(waiting, count):
            key = settings.name(name.removesuffix(".db"))
            through.add(client.submit(task, folder / name, part, key=key, pure=False))

    try:
        of_worker: Any = client.nthreads()
        submit(_AHEAD * (sum(of_worker.values()) or 1))
        for future, results in through:
            if future.status == "cancelled":  # then the results hold an error, which Dask does not raise
                raise ClusterError(f"the cluster was restarted or lost; {_AGAIN}")  # noqa: TRY301
            yield results
            future.release()
            submit(1)
    except (RubricError, KilledWorker):
        raise
    except Exception as error:
        raise ClusterError(f"a shard was not graded: {Failure.of(error).message}; {_AGAIN}") from error
    finally:
        with suppress(Exception):  # without a scheduler there is nothing to cancel
            client.cancel(through.futures)


# -- a worker --------------------------------------------------------------------------------------------

ShardTask = Callable[[Path, list[Placed]], list[Result]]


def grade_shard(
    path: Path,
    part: list[Placed],
    *,
    settings: RunSettings,
    rubric: Rubric,
    judge: AnyJudge,
    concurrency: int,
    in_doubt: InDoubt,
) -> list[Result]:
    """Grade *part* in a worker, with its replies in the store at *path*."""
    limiter = PermitLimiter(settings, get_worker())
    with Store(path, in_doubt=in_doubt) as store:
        stream = grade_many(part, rubric, judge, concurrency=concurrency, store=store, limits=limiter, progress=False)
        results = [*stream]
    run(limiter.aclose())
    return results
