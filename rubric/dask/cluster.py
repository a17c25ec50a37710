"""The client shares candidates out; a worker grades a shard at a time, past a store of its own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

from attrs import field, frozen
from distributed import Client, Future, KilledWorker, as_completed, get_worker
from distributed.protocol import pickle

from rubric.dask.limits import PermitGate, Permits, Terms
from rubric.engine.budget import Budget
from rubric.engine.bulk import grade_many
from rubric.engine.grade import JudgeLike, as_rubric, judge_or_default
from rubric.engine.progress import OnProgress, reporting
from rubric.engine.rate_limits import Limits
from rubric.engine.shards import number_of
from rubric.engine.sources import Candidates, Placed, fetched, source_of
from rubric.errors import ClusterError, DefinitionError, RubricError
from rubric.grading.flow import check
from rubric.internals import background_loop
from rubric.internals.atomic_write import replacing
from rubric.internals.fields import as_path, check_count, refuse
from rubric.internals.secrets import describe
from rubric.results.collection import Grades
from rubric.results.result import Grade, Ungraded
from rubric.store.database import InDoubt
from rubric.store.store import Store
from rubric.values.judges import AnyJudge
from rubric.values.requests import Usage
from rubric.values.rubrics import Rubric

Result = Grade | Ungraded

CONCURRENCY = 32
"""Requests at once in a shard."""

_CANDIDATES = 256
"""In a shard, about: enough to keep its requests busy, few enough that little is done again when a worker dies."""

_AHEAD = 2
"""Shards that are with the cluster, a thread of it: the others wait here, and not in the scheduler's memory."""

_COUNT_FILE = "shards.json"


def grade_on_cluster(
    client: Client,
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    store_folder: str | os.PathLike[str],
    columns: Mapping[str, str | None] | None = None,
    shards: int | None = None,
    concurrency: int = CONCURRENCY,
    in_doubt: InDoubt = "retry",
    budget: Budget | None = None,
    limits: Limits | None = None,
    progress: bool | OnProgress | None = None,
) -> Grades:
    """
    Grade many *candidates* against *rubric* on a Dask cluster, and return the results in their order.

    Each shard is one task. Its replies are kept in a file in *store_folder*; a task whose worker dies goes on from
    there on another, and so does the whole when it is called again. The limits and the budget hold for all workers
    together, and for all that a worker had sent before it died.

    `rubric` must be installed on the workers and the scheduler, and the keys of the judges in the workers' environment.

    Args:
        client: Of the cluster, for synchronous use.
        candidates: As for `grade_many`, but no async iterable. They are all read before the first is graded.
        rubric: As for `grade`.
        judge: As for `grade`; left out, the environment of this process names one.
        store_folder: A folder that all workers see under this name. Where they are on several machines, its file
            system must have locks that work.
        columns: Which column of a row holds which field of a candidate, as for `grade_many`.
        shards: How many; None for one for every 256 candidates, or as many as *store_folder* has already.
        concurrency: How many requests are under way at once in a shard; a worker has as many shards as threads.
        in_doubt: What becomes of calls that were in flight when a worker died: `retry` or `hold`; see `Store`.
        budget: What all workers together may spend. All that is left of it is set aside for this run; at the end what
            was spent is charged. If the scheduler dies, nobody knows how much has left, and all of it is charged.
        limits: How fast models may be asked by all workers together; for this run alone.
        progress: As for `grade_many`; it moves when a shard is through.

    Raises:
        DefinitionError: An argument that cannot be graded with or sent to a worker, another number of shards than
            *store_folder* has, or a file there that does not tell it.
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
    graded, bench = as_rubric(rubric), judge_or_default(judge)
    check(graded)
    if budget is not None:
        budget.check(bench)
    items = _read(candidates, columns)
    _check_sendable(graded, bench, items)
    folder = as_path("store_folder", store_folder).absolute()
    parts = _shared_out(items, _count_of(folder, shards, len(items)))
    with _permitted(client, limits, budget) as terms, reporting(progress, len(items)) as tell:
        task = Task(terms, graded, bench, concurrency, in_doubt)
        results: list[Result] = []
        for some in _gathered(client, task, folder, parts):
            for result in some:
                tell(result)
            results += some
    return Grades(sorted(results, key=lambda result: result.index or 0))


def _check(client: object, concurrency: object, in_doubt: object, budget: object, limits: object) -> None:
    if not isinstance(client, Client) or client.asynchronous:
        raise refuse("client", client, "a distributed.Client that is not asynchronous")
    check_count("concurrency", concurrency)
    if in_doubt not in get_args(InDoubt):
        raise refuse("in_doubt", in_doubt, "'retry' or 'hold'")
    if limits is not None and not isinstance(limits, Limits):
        raise refuse("limits", limits, "Limits, such as Limits(rpm=500)")
    if budget is not None and not isinstance(budget, Budget):
        raise refuse("budget", budget, "a Budget, such as Budget(cost=5.00)")


def _check_sendable(rubric: Rubric, bench: AnyJudge, items: Sequence[Placed]) -> None:
    """Refuse what cannot be sent to a worker before anything is: Dask says neither what nor where it is."""
    given: list[tuple[str, object]] = [("rubric", rubric), ("judge", bench)]
    given += [(f"candidates[{one.index}]", one.item) for one in items if not isinstance(one.item, str)]
    for name, value in given:
        try:
            pickle.dumps(value)
        except Exception as error:
            raise DefinitionError(name, f"it cannot be sent to the workers ({describe(error)}); {_CURE}") from error


_CURE = "give what can be pickled; as a judge, a model name or a function without locks, files and connections"


# -- the client ------------------------------------------------------------------------------------------


def _read(candidates: Candidates, columns: Mapping[str, str | None] | None) -> list[Placed]:
    source = source_of(candidates, columns)
    items = source.items
    if isinstance(items, AsyncIterable):
        raise refuse("candidates", candidates, "an iterable that is not async, a frame, or the path of a file")
    return [Placed(index, fetched(item), source.columns) for index, item in enumerate(items)]


def _count_of(folder: Path, wanted: int | None, candidates: int) -> int:
    """
    Return how many shards there are, as *folder* remembers it.

    With another number, candidates would be in other shards than their replies, and paid for again.
    """
    if wanted is not None:
        check_count("shards", wanted)
    if not folder.is_dir():
        raise DefinitionError("store_folder", f"there is no folder {str(folder)!r}; make it, where all workers see it")
    file = folder / _COUNT_FILE
    known = _known_count(file)
    if known is None:
        known = wanted or max(1, -(-candidates // _CANDIDATES))
    if not file.exists():
        with replacing(file) as written:  # half a file would be no number, and another number pays for all again
            json.dump({"shards": known}, written)
    if wanted not in (None, known):
        message = f"{str(folder)!r} has the replies of {known} shards, not {wanted}; leave shards out, or take another"
        raise DefinitionError("shards", f"{message} folder")
    return known


def _known_count(file: Path) -> int | None:
    """Return the number of shards that *file* says, or the stores' names if it is gone; None for a new folder."""
    stores = {int(found[1]) for each in file.parent.iterdir() if (found := _STORE.fullmatch(each.name))}
    if not file.exists() and len(stores) < 2:  # noqa: PLR2004 - they agree
        return max(stores, default=None)
    try:
        known = json.loads(file.read_text(encoding="utf-8"))["shards"]
        check_count("shards", known)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        known = None
    if known is None or stores - {known}:
        said = " or ".join(f'{{"shards": {number}}}' for number in sorted(stores)) or "the number of shards it had"
        why = "is damaged or gone" if known is None else f"says {known}, and the stores beside it say otherwise"
        raise DefinitionError("store_folder", f"{str(file)!r} {why}; write {said} into it, or take another folder")
    return int(known)


_STORE = re.compile(r"shard-[0-9]+-of-([0-9]+)\.db")


def _shared_out(items: Sequence[Placed], count: int) -> dict[str, list[Placed]]:
    """Return the candidates of each shard that has any, by the name of its store."""
    parts: dict[int, list[Placed]] = {}
    for item in items:
        parts.setdefault(number_of(item.index, item, count), []).append(item)
    digits = len(str(count))
    return {f"shard-{number:0{digits}}-of-{count}.db": parts[number] for number in sorted(parts)}


@contextmanager
def _permitted(client: Client, limits: Limits | None, budget: Budget | None) -> Iterator[Terms]:
    """Have the scheduler give permits while this lasts; afterwards nothing of the run can leave any more."""
    # All that is left is with the scheduler meanwhile. If it dies, what has left is not known, and counts as all of it.
    with (budget or Budget()).entrusting() as (left, settle):
        terms = Terms.of(uuid4().hex[:12], limits, left, {} if budget is None else budget.prices)
        permits = Permits(terms)
        try:
            client.register_plugin(permits)
        except Exception as error:
            settle(Usage())
            raise ClusterError(f"the scheduler cannot keep the limits of a run: {describe(error)}") from error
        try:
            yield terms
        except BaseException:
            with suppress(ClusterError):
                settle(_spent(client, terms, permits))
            raise
        settle(_spent(client, terms, permits))


def _spent(client: Client, terms: Terms, permits: Permits) -> Usage:
    """
    End the run on the scheduler, and return what it has spent.

    Raises:
        ClusterError: The scheduler does not say.
    """
    try:
        spent: Any = client.sync(getattr(client.scheduler, terms.name("end")))
    except Exception as error:
        raise ClusterError(f"the scheduler is gone: {describe(error)}; {_AGAIN}") from error
    with suppress(Exception):  # nothing leaves any more, whatever becomes of it
        client.unregister_scheduler_plugin(permits.name)
    cost, calls, tokens = spent
    return Usage(calls=calls, prompt_tokens=tokens, cost=cost)


_AGAIN = "run it again to go on: what was paid for is in the store folder, and the budget has been charged"


def _gathered(client: Client, task: Task, folder: Path, parts: dict[str, list[Placed]]) -> Iterator[list[Result]]:
    """
    Yield the results of each shard when it is through; a few are with the cluster at a time.

    Raises:
        ClusterError: The cluster was lost or restarted, or cannot load what is sent.
    """
    waiting = iter(parts.items())
    through: Any = as_completed((), with_results=True)
    try:
        of_worker: Any = client.nthreads()
        for name, part in islice(waiting, _AHEAD * (sum(of_worker.values()) or 1)):
            through.add(_submit(client, task, folder / name, part))
        for future, results in through:
            yield _checked(future, results)
            future.release()
            for name, part in islice(waiting, 1):
                through.add(_submit(client, task, folder / name, part))
    except (RubricError, KilledWorker):
        raise
    except Exception as error:
        raise ClusterError(f"a shard was not graded: {describe(error)}; {_AGAIN}") from error
    finally:
        with suppress(Exception):  # where the scheduler is gone, there is nothing to cancel
            client.cancel(through.futures)


def _checked(future: Future[list[Result]], results: list[Result]) -> list[Result]:
    if future.status == "cancelled":  # then the results are an error that Dask does not raise
        raise ClusterError(f"the cluster was restarted or lost; {_AGAIN}")
    return results


def _submit(client: Client, task: Task, store: Path, part: list[Placed]) -> Future[list[Result]]:
    return client.submit(task, store, part, key=task.terms.name(store.stem), pure=False)


# -- a worker --------------------------------------------------------------------------------------------


@frozen
class Task:
    """What a worker does with a shard."""

    terms: Terms
    rubric: Rubric
    bench: AnyJudge
    concurrency: int
    in_doubt: InDoubt
    __name__: str = field(default="grade", init=False)

    def __call__(self, path: Path, part: list[Placed]) -> list[Result]:
        """Return the results of *part*, whose replies are kept in the store at *path*."""
        gate = PermitGate(self.terms, get_worker())
        with Store(path, in_doubt=self.in_doubt) as store:
            stream = grade_many(
                part,
                self.rubric,
                self.bench,
                concurrency=self.concurrency,
                store=store,
                limits=gate,
                progress=False,
            )
            results = [*stream]
        background_loop.run(gate.aclose())
        return results
