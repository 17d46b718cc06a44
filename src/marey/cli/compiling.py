"""Compilation of all kernels at once, in parallel processes."""

import logging
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from marey.cli.kernel_exercises import EXERCISES, WHOLE
from marey.errors import MissingExtraError
from marey.kernels.cache import cache_folder
from marey.kernels.precompiled import (
    read_manifest,
    source_digests,
    write_manifest,
)

logger = logging.getLogger(__name__)

LAST_STEP = "whole recordings"
LAST_SECONDS = 15.0
"""CPU seconds of the last step, as `Exercise.seconds`."""


class Step(NamedTuple):
    """A step of the compilation that has ended."""

    title: str
    number: int
    n_steps: int
    share: float
    """Share of the whole work that is done, 0 to 1."""


def compile_kernels(*, rare: bool, report: Callable[[Step], None]) -> None:
    """Compile all kernels for the common instruction set and write the manifest.

    Processes do not share a cache, because Numba's index of a kernel is not safe when
    two of them write it: each compiles into a folder of its own, and these are merged.
    The last step compiles what only whole recordings need.

    Args:
        rare: Whether to include kernels of methods that have to be asked for.
        report: Called after each step.
    """
    names = [name for name, e in EXERCISES.items() if rare or not e.rare]
    steps = _Steps(names, report)
    folder = cache_folder()
    if folder is None:
        return
    remove_outdated(folder)
    with tempfile.TemporaryDirectory() as apart:
        n_processes = min(os.cpu_count() or 1, len(names))
        with _start_pool(n_processes, apart) as pool:
            jobs = {pool.submit(run_exercise, name): name for name in names}
            for job in as_completed(jobs):
                job.result()
                steps.end(EXERCISES[jobs[job]].title, EXERCISES[jobs[job]].seconds)
        merge_caches(sorted(Path(apart).glob("*/marey-kernels-*")), folder)
    with _start_pool(1, "") as pool:
        last: Future[str | None] = pool.submit(run_whole, names)
        cpu = last.result()
    write_manifest(cpu, rare=rare)
    steps.end(LAST_STEP, LAST_SECONDS)


class _Steps:
    """The steps of a compilation, and the share of each."""

    def __init__(self, names: Sequence[str], report: Callable[[Step], None]) -> None:
        self._report = report
        self._count = len(names) + 1
        self._number = 0
        self._seconds = 0.0
        self._total = LAST_SECONDS + sum(EXERCISES[name].seconds for name in names)

    def end(self, title: str, seconds: float) -> None:
        """Report the end of a step that was expected to take some CPU seconds."""
        self._number += 1
        self._seconds += seconds
        share = self._seconds / self._total
        logger.info("compiled %d of %d: %s", self._number, self._count, title)
        self._report(Step(title, self._number, self._count, share))


def _start_pool(n_processes: int, apart: str) -> ProcessPoolExecutor:
    """Return processes that compile, each with a cache of its own below `apart`."""
    return ProcessPoolExecutor(
        n_processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=use_cache_apart,
        initargs=(apart,),
    )


def use_cache_apart(folder: str) -> None:
    """Let this process compile into a cache of its own, or the usual one if empty."""
    if folder:
        os.environ["NUMBA_CACHE_DIR"] = str(Path(folder) / str(os.getpid()))
        cache_folder.cache_clear()


def run_exercise(name: str) -> None:
    """Compile the kernels of one exercise, unless it needs an extra that is missing."""
    try:
        EXERCISES[name].run()
    except MissingExtraError as error:
        logger.info("%s left out: %s", EXERCISES[name].title, error)


def run_whole(names: Sequence[str]) -> str | None:
    """Compile what is still missing; return the CPU that it was compiled for."""
    from marey.numerics.jit import compiled_cpu

    for run in WHOLE:
        run()
    for name in names:
        run_exercise(name)
    return compiled_cpu()


def remove_outdated(folder: Path) -> None:
    """Remove the kernels of changed files, and all if it is not known which changed."""
    then = read_manifest().get("sources", {})
    for name, digest in source_digests().items():
        if then.get(name) != digest:
            source = folder / name
            for path in source.parent.glob(f"{source.stem}.*"):
                path.unlink(missing_ok=True)


def merge_caches(sources: Sequence[Path], target: Path) -> None:
    """Copy the kernels of several caches into one.

    If several caches hold a kernel, the largest index is taken, with its files.
    """
    indexes: dict[Path, Path] = {}
    for source in sources:
        for index in source.rglob("*.nbi"):
            inside = index.relative_to(source)
            best = indexes.setdefault(inside, index)
            if index.stat().st_size > best.stat().st_size:
                indexes[inside] = index
    for inside, index in indexes.items():
        place = target / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        for data in index.parent.glob(f"{index.stem}.*.nbc"):
            shutil.copyfile(data, place.parent / data.name)
        part = place.with_suffix(f".{os.getpid()}.part")
        shutil.copyfile(index, part)
        part.replace(place)
