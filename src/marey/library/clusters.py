"""Jobs of a batch on a Dask cluster, when one machine is outgrown.

Every worker of the cluster must see the library and the results under the same paths.
A job runs in a process of its own below the Dask worker, so that limits of time and
memory hold there as they do on one machine, and the results are the same to the byte.
"""

import os
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marey.errors import MareyError, OptionError, import_extra, reason
from marey.library.options import BatchOptions
from marey.library.records import library_versions
from marey.workers import Job, Outcome, WorkerPool, machine_memory

CONNECT_S = 30.0
"""Longest wait for a scheduler, in seconds."""

BASE_MEMORY_BYTES = 10**9
"""Memory of a SLURM job beside what the take may use, in bytes: the Dask worker and the
libraries. Higher asks for more than is needed. Chosen by hand."""


SCHEDULER_GONE = (
    "the Dask scheduler is gone; start one and run the same command again: what is "
    "done is kept"
)


class DaskExecutor:
    """Jobs of a batch on the workers of a Dask cluster.

    Args:
        client: A `distributed.Client`.
        memory: Memory limit of one job, in bytes; 0 = its share of the machine's.
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
        with _needs_scheduler(self._client):
            threads: int = sum(self._client.nthreads().values())
        return len(self._jobs) <= threads

    def submit(self, job: Job) -> None:
        """Start a job somewhere on the cluster."""
        with _needs_scheduler(self._client):
            future = self._client.submit(
                run_under_limits, job, *self._limits, pure=False
            )
        self._jobs[future] = job
        self._done.add(future)

    def wait(self) -> Outcome:
        """Return the next outcome.

        Dask starts the jobs of a dead worker again elsewhere, and gives up on those
        that killed several.

        Raises:
            MareyError: If the scheduler is gone.
        """
        future = next(self._done)
        job = self._jobs.pop(future)
        if future.status in ("cancelled", "lost"):
            raise MareyError(SCHEDULER_GONE)
        try:
            outcome: Outcome = future.result()
        except Exception:  # KilledWorker, or a worker that cannot import marey
            return Outcome(job, "lost")
        finally:
            future.release()
        return outcome


@contextmanager
def _needs_scheduler(client: Any) -> Iterator[None]:
    """Raise a `MareyError` if the scheduler does not answer in the block below."""
    try:
        yield
    except Exception as error:  # A closed client has an error of its own.
        if client.status == "running" and not isinstance(error, OSError | RuntimeError):
            raise
        raise MareyError(SCHEDULER_GONE) from None


_pools = threading.local()


def run_under_limits(job: Job, memory: int, seconds: float) -> Outcome:
    """Return the outcome of a job that ran in a process of its own.

    The process stays for the next jobs of this thread, and ends with the Dask worker.
    """
    limits = memory or machine_memory(os.cpu_count() or 1), seconds
    if getattr(_pools, "limits", None) != limits:
        _pools.limits, _pools.pool = limits, WorkerPool(1, *limits)
    _pools.pool.submit(job)
    outcome: Outcome = _pools.pool.wait()
    return outcome


@contextmanager
def cluster_executor(options: BatchOptions, workers: int) -> Iterator[DaskExecutor]:
    """Yield an executor on a cluster, which ends with the block if it began here.

    Args:
        options: Which cluster: the address of a scheduler, "local", or SLURM.
        workers: Number of workers of a cluster that begins here.

    Raises:
        MissingExtraError: If Dask is not installed.
        OptionError: If no scheduler answers, two clusters are asked for, or workers
            have other versions.
    """
    dask = import_extra("distributed", "cluster")
    where: Any = options.dask
    memory = options.memory
    if options.slurm:
        memory = memory or machine_memory(workers)
        where = _slurm_cluster(options, workers, memory)
    elif options.dask == "local":
        where = dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        )
    try:
        client = dask.Client(where, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        needed = "the address of a running Dask scheduler, such as tcp://head:8786"
        found = f"{options.dask}: {error}"
        raise OptionError("dask", found=found, needed=needed) from None
    try:
        with client:
            check_versions(client)
            yield DaskExecutor(client, memory, options.seconds)
    finally:
        if where is not options.dask:
            where.close()


def check_versions(client: Any) -> None:
    """Refuse a cluster whose workers have other versions than this process.

    The results would differ, and records would state the wrong versions.

    Args:
        client: A `distributed.Client`; workers that it gets later are not checked.

    Raises:
        OptionError: If a worker has another version, or no marey.
    """
    versions = library_versions()
    needed = "workers with marey and the versions that are here"
    try:
        of_workers: dict[str, dict[str, str]] = client.run(library_versions)
    except Exception as error:  # A worker without marey, or none that answers.
        found = f"{type(error).__name__}: {error}"
        raise OptionError("dask", found=found, needed=needed) from None
    for worker, found_versions in of_workers.items():
        for name, number in versions.items():
            if found_versions.get(name) != number:
                found = f"{name} {found_versions.get(name)} on {worker}, here {number}"
                raise OptionError("dask", found=found, needed=needed)


def _slurm_cluster(options: BatchOptions, workers: int, memory: int) -> Any:
    """Return a Dask cluster of SLURM jobs, each with one worker of one thread.

    Jobs that end, by their time limit or with their node, are submitted again.
    """
    jobqueue = import_extra("dask_jobqueue", "cluster")
    if options.dask:
        needed = "either --dask or --slurm"
        raise OptionError("slurm", found=f"dask {options.dask}", needed=needed)
    directives = shlex.split(options.sbatch)
    given = {text.partition("=")[0] for text in directives}
    skipped = [
        usual
        for name, short, usual in (("--time", "-t", " -t "), ("--mem", "", "--mem="))
        if given & {name, short}
    ]
    cluster = jobqueue.SLURMCluster(
        cores=1,
        processes=1,
        memory=f"{memory + BASE_MEMORY_BYTES} B",
        job_extra_directives=directives,
        job_directives_skip=skipped,
    )
    try:
        _check_jobs(cluster.job_script())
    except OptionError:
        cluster.close()
        raise
    cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)
    return cluster


def _check_jobs(script: str) -> None:
    """Refuse jobs that SLURM does not take: Dask would submit them again for ever.

    Raises:
        OptionError: If there is no SLURM, or an option of the jobs is wrong.
    """
    try:
        tried = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True
        )
    except OSError as error:
        found, needed = f"sbatch: {reason(error)}", "a machine that can submit jobs"
        raise OptionError("slurm", found=found, needed=needed) from None
    if tried.returncode:
        needed = "options of jobs that this SLURM takes"
        raise OptionError("sbatch", found=tried.stderr.strip(), needed=needed)
