"""Functional joint centres: error and time beside SCoRE of biobuddy.

Two bodies of four markers each, as in `accuracy.joints`, with 1 mm of noise; error of
the centre against the markers of the first body, over many draws.
"""

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.joints import (
    MARKERS,
    SWINGS,
    Pair,
    cramer_rao_bound,
    error_of,
    find_center,
    make_pair,
)
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import time_call
from benchmarks.peers.runner import run_peers

HEADLINE = "x bound"
NOISE_M = 1e-3
PEERS = ("biobuddy",)
Answer = Mapping[str, Any]


def measure(setting: Setting) -> Iterator[Row]:
    n_frames, draws = setting.choose((1000, 50), (300, 5))
    for swing, size in SWINGS.items():
        pair = make_pair(n_frames, size)
        bound = cramer_rao_bound(pair, NOISE_M)
        rng = np.random.default_rng(53)
        noise = rng.normal(scale=NOISE_M, size=(draws, *pair.points.shape))
        points = pair.points + noise

        score = partial(score_centers, swing, pair, bound)
        for estimator in ("least_squares", "auto"):
            yield score(find_centers(points, estimator, setting))
        with tempfile.TemporaryDirectory() as name:
            np.savez(Path(name) / "problem.npz", points=points, markers=MARKERS)
            yield from run_peers(PEERS, "centers", Path(name), score, setting)


def score_centers(swing: str, pair: Pair, bound: float, answer: Answer) -> Row:
    """Return the row of one program."""
    found = zip(answer["shapes"], answer["centers"], strict=True)
    errors = [error_of(pair, np.array(shape), np.array(at)) for shape, at in found]
    rms = float(np.sqrt(np.mean(np.square(errors))))
    figures: dict[str, Figure] = {
        "error, rms [mm]": 1e3 * rms,
        "x bound": rms / bound,
        "CPU [ms]": 1e3 * answer["seconds"],
    }
    return Row(f"{swing}, {answer['case']}", figures)


def find_centers(draws: np.ndarray, estimator: str, setting: Setting) -> Answer:
    """Return the centres by marey, in the form in which peers answer."""
    found = [find_center(points, estimator) for points in draws]
    cpu = time_call(lambda: find_center(draws[0], estimator), setting).cpu.median
    shapes, centers = zip(*found, strict=True)
    case = f"marey, {estimator}"
    return {"case": case, "seconds": cpu, "shapes": shapes, "centers": centers}
