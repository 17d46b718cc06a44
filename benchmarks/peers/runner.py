"""Peers as rows: each script in its environment, in a process with limits."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.limits import Limits, run_limited
from benchmarks.harness.task import Row, Setting
from benchmarks.peers.environment import ALONE, SCRIPTS, PeerMissing, peer_python

LIMITS = Limits(seconds=900.0, mebibytes=24_000)

Scored = Callable[[Mapping[str, Any]], Row]


def run_peers(
    names: tuple[str, ...],
    problem: str,
    folder: Path,
    score: Scored,
    setting: Setting,
    limits: Limits = LIMITS,
) -> Iterator[Row]:
    """Yield the rows of peers on a problem; a row with a reason for each that fails.

    Args:
        names: Scripts without "run_".
        problem: The function of the scripts that is run.
        folder: Where the problem was written, and answers go.
        score: Makes a row of what a script says.
        setting: How large the run is.
        limits: Of each script.
    """
    for name in names:
        if setting.wants(name):
            yield from run_peer(
                SCRIPTS / f"run_{name}.py", problem, folder, score, setting, limits
            )


def run_peer(
    script: Path,
    problem: str,
    folder: Path,
    score: Scored,
    setting: Setting,
    limits: Limits = LIMITS,
) -> Iterator[Row]:
    """Yield the rows of one peer."""
    name = script.stem.removeprefix("run_")
    try:
        python = peer_python(script)
    except PeerMissing as missing:
        yield Row(name, skipped=str(missing))
        return
    size = "quick" if setting.quick else "full"
    command = [str(python), str(script), problem, str(folder), size]
    outcome = run_limited(command, limits, environment=ALONE)
    for line in outcome.output.splitlines():
        yield score(json.loads(line))
    if outcome.reason:
        yield Row(f"{name}, {problem}", skipped=outcome.reason)
