"""The guard: ratios of times within one run, compared to those on record.

Each ratio is the time of marey over that of a plain computation of the same machine and
minute, so that neither the machine nor its load counts. It fails only beyond twice the
ratio on record, after a second try.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.task import ROOT

RECORD = ROOT / "smoke.json"
WORST = 2.0
ROUNDS = 5

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def guard(record: bool = False, path: Path = RECORD) -> int:
    """Measure all ratios; return 1 if one is beyond twice that on record."""
    ratios: dict[str, float] = {}
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, pair in ratios_of():
        ratios[name] = measure_ratio(*pair)
        if not record and is_beyond(ratios[name], known.get(name)):
            ratios[name] = min(ratios[name], measure_ratio(*pair))
        print(judge(name, ratios[name], known.get(name)), flush=True)
    if record:
        rounded = {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}
        path.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        return 0
    return int(any(is_beyond(ratio, known.get(n)) for n, ratio in ratios.items()))


def is_beyond(ratio: float, known: float | None) -> bool:
    """Whether a ratio is more than twice that on record."""
    return known is not None and ratio > WORST * known


def judge(name: str, ratio: float, known: float | None) -> str:
    """Return the line of one ratio."""
    if known is None:
        return f"{name:<44} {ratio:10.3g}  not on record"
    word = "SLOWER" if is_beyond(ratio, known) else "ok"
    return f"{name:<44} {ratio:10.3g}  {ratio / known:5.2f} x record  {word}"


def measure_ratio(call: Callable[[], Any], plain: Callable[[], Any]) -> float:
    """Return the least time of a call over that of a plain one, taken in turn."""
    call(), plain()
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for one, times in zip((call, plain), spent, strict=True):
            begin = time.process_time()
            one()
            times.append(time.process_time() - begin)
    return min(spent[0]) / max(min(spent[1]), 1e-9)


def ratios_of() -> Iterator[tuple[str, Pair]]:
    """Yield the name of each ratio, what is measured and what it is compared to."""
    import marey
    from benchmarks.peers.figure import make_skeleton, record
    from benchmarks.scale.frames import record as record_walk
    from benchmarks.speed import geometry, joints, text
    from benchmarks.speed.pose import PLAIN, tracker_of
    from marey.io.formats import trc
    from marey.numerics.geometry import kabsch

    cluster, seen = geometry.recording(20_000)
    svd = partial(geometry.batched_svd, cluster, seen)
    yield "Kabsch over stacked SVD", (partial(kabsch, cluster, seen), svd)
    bodies = joints.recording(600)
    yield (
        "joints of all pairs over lstsq",
        (partial(marey.fit_joints, bodies), partial(joints.solve_pair_by_pair, bodies)),
    )
    skeleton = make_skeleton()
    take = record(skeleton, 1000)
    for name, options in (("least squares", PLAIN), ("limits and outliers", {})):
        _, track = tracker_of(skeleton, take, options)
        yield f"poses, {name}, over stacked SVD", (partial(track, 1000), svd)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.trc"
        marey.write(text.sample_take(300), path)
        yield "TRC over a loop", (partial(trc.load, path), partial(text.loop_trc, path))
    walk = record_walk(400)
    yield "solve of 53 x 400 over stacked SVD", (partial(marey.solve, walk), svd)
    longer = record_walk(1600)
    solve, solve_longer = partial(marey.solve, walk), partial(marey.solve, longer)
    yield "solve of 1,600 frames over 400", (solve_longer, solve)
