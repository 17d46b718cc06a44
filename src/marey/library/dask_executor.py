"""Jobs of a batch on a Dask cluster, when one machine is outgrown.

Every worker of the cluster must see the library and the results under the same paths.
A job runs in a process of its own below the Dask worker, so that limits of time and
memory hold there as they do on one machine, and the results are the same to the byte.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marey.errors import OptionError, import_extra
from marey.workers import Job, Outcome, WorkerPool

CONNECT_S = 30.0
"""Longest wait for a scheduler, in seconds."""


class DaskExecutor:
    """Jobs of a batch on the workers of a Dask cluster.

    Args:
        client: A `distributed.Client`.
        memory: Memory limit of one job, in bytes; 0 = none.
        seconds: Longest time of one job.
    """

    def __init__(self, client: Any, memory: int, seconds: float) -> None:
        dask = import_extra("distributed", "cluster")
        self._client = client
        self._limits = memory, seconds
        self._jobs: dict[Any, Job] = {}
        self._done = dask.as_completed()

    @property
    def has_room(self) -> bool:
        """Whether a thread of a worker is free; at least one job always waits."""
        threads: int = sum(self._client.nthreads().values())
        return len(self._jobs) <= threads

    def submit(self, job: Job) -> None:
        """Start a job somewhere on the cluster."""
        future = self._client.submit(run_under_limits, job, *self._limits, pure=False)
        self._jobs[future] = job
        self._done.add(future)

    def wait(self) -> Outcome:
        """Return the next outcome.

        Dask starts the jobs of a dead worker again elsewhere, and gives up on those
        that killed several.
        """
        future = next(self._done)
        job = self._jobs.pop(future)
        try:
            outcome: Outcome = future.result()
        except Exception:  # KilledWorker, or a worker that cannot import marey
            return Outcome(job, "lost")
        finally:
            future.release()
        return outcome


def run_under_limits(job: Job, memory: int, seconds: float) -> Outcome:
    """Return the outcome of a job that ran in a process of its own."""
    with WorkerPool(1, memory, seconds) as pool:
        pool.submit(job)
        return pool.wait()


@contextmanager
def dask_executor(
    address: str, workers: int, memory: int, seconds: float
) -> Iterator[DaskExecutor]:
    """Yield an executor on a cluster, which ends with the block if it is local.

    Args:
        address: Address of a scheduler, such as "tcp://head:8786", or "local".
        workers: Number of workers of a local cluster.
        memory: Memory limit of one job, in bytes; 0 = none.
        seconds: Longest time of one job.

    Raises:
        MissingExtraError: If Dask is not installed.
        OptionError: If no scheduler answers.
    """
    dask = import_extra("distributed", "cluster")
    where: Any = address
    if address == "local":
        where = dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        )
    try:
        client = dask.Client(where, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        needed = "the address of a running Dask scheduler, such as tcp://head:8786"
        raise OptionError("dask", found=f"{address}: {error}", needed=needed) from None
    with client:
        yield DaskExecutor(client, memory, seconds)
    if address == "local":
        where.close()
