"""Measure shards with Ray, on this machine or a cluster: the same function, the same shards, the same bytes.

Every machine needs this program and the checkpoint under the same path. Results come back to the caller, which alone
writes files. A shard whose process or machine is lost is measured again by Ray.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from glassformer.extensions.corpus.library.lines import Shard
from glassformer.extensions.corpus.library.shards import Files, Job
from transformer.errors import DataError, GlassformerError


def measured(
    job: Job, shards: Iterable[Shard], *, processes: int, address: str | None = None
) -> Iterator[tuple[int, Files]]:
    """The files of each shard, with its number, as they become ready: see `pool.measured`.

    Without an address Ray is started here, with so many logical CPUs; else each CPU of that cluster has a shard.
    A `DataError` where Ray is not installed or there is no such cluster.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise DataError("--engine ray needs Ray; pip install 'glassformer[ray]' brings it.") from None
    how: dict[str, Any] = (
        {"address": address} if address else {"address": "local", "num_cpus": processes, "include_dashboard": False}
    )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers
    try:
        ray.init(**how, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise DataError("Ray cannot be reached ({reason}).", reason=str(error).split("\n")[0]) from None
    try:
        if job.device != "cpu" and not ray.cluster_resources().get("GPU"):
            raise DataError("device {device}: this Ray cluster has no GPU; use cpu.", device=job.device)
        files = ray.remote(num_cpus=1, num_gpus=int(job.device != "cpu"), max_retries=3)(Job.files)
        n_at_once = int(ray.cluster_resources().get("CPU", 1))
        waiting = iter(shards)
        running = {files.remote(job, shard): shard.number for shard in islice(waiting, n_at_once)}
        while running:
            (ready, *_), _ = ray.wait(list(running))
            number = running.pop(ready)
            try:
                found = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, GlassformerError) else error from None
            except ray.exceptions.RayError as error:
                raise DataError("Ray gave up a shard ({reason}).", reason=str(error).split("\n")[0]) from None
            running |= {files.remote(job, shard): shard.number for shard in islice(waiting, 1)}
            yield number, found
    finally:
        ray.shutdown()
