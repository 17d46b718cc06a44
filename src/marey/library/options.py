"""Options of a batch."""

from dataclasses import dataclass
from os import PathLike

from marey.errors import OptionError
from marey.options import Options, number

MIN_MEMORY_BYTES = 500 * 10**6
"""Smallest memory limit of a worker, in bytes: with less, it cannot load libraries, and
may not even say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(Options):
    """Options of `marey.batch`, beside those of `marey.solve`."""

    formats: tuple[str, ...] = ("bvh",)
    """Suffixes of what is written of every take: "bvh", "glb", "parquet", "html"."""

    patterns: tuple[str, ...] = ()
    """Only recordings like these, such as ``*.c3d``; empty takes all."""

    subject_from: str = ""
    """Regular expression on the relative path, whose first group is the subject; or
    "file": the subject that the file names."""

    subjects: str | PathLike[str] = ""
    """A CSV or TOML that says whose each recording is."""

    fit_takes: int = number(6, low=1)
    """Most takes of one subject from which its skeleton is fitted: those that together
    show most motion. Higher takes more time and memory."""

    workers: int = number(0, low=0)
    """Number of processes; 0 = one per core."""

    dask: str = ""
    """Address of a Dask scheduler to work on, or "local" for one on this machine; empty
    for processes without Dask."""

    slurm: bool = False
    """Whether to work in jobs of SLURM, one for each worker, through Dask."""

    sbatch: str = ""
    """Further options of these jobs, such as "--partition=long --time=8:00:00"."""

    memory: int = number(0, low=0)
    """Memory limit of each worker, in bytes; 0 = its share of the machine's."""

    seconds: float = number(900.0, above=0.0)
    """Longest time for one take, or for one fit of a skeleton, in seconds."""

    shard: tuple[int, int] = (1, 1)
    """(i, n): only the i-th of n parts of the subjects, for array jobs."""

    resume: bool = True
    """Whether what was done before, and depends on nothing that changed, is kept."""

    retry: bool = False
    """Whether takes that failed before are tried again, though nothing changed."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if 0 < self.memory < MIN_MEMORY_BYTES:
            found = f"{self.memory} bytes"
            needed = f"{MIN_MEMORY_BYTES // 10**6} MB or more, or 0"
            raise OptionError("memory", found=found, needed=needed)
