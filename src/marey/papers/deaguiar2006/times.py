"""DeAguiar2006, Table 1: how long it takes."""

from time import perf_counter

from marey import synth
from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

FRAMES = (189, 307, 591, 1134)
KIRK = (1649.0, 2320.0, 4515.0, 11247.0)
PAPER = (103.0, 175.0, 307.0, 590.0)

RATE = 120.0


def record_sequence(seed: int) -> Recording:
    """Return a person of 110 unnamed markers, as long as the longest sequence."""
    return synth.human(seed=seed).record(
        "exercise",
        seconds=FRAMES[-1] / RATE,
        rate=RATE,
        markers="dense110",
        labels=False,
        seed=seed,
        noise=1e-3,
    )


def joints_and_tree(bodies: Bodies, method: str) -> None:
    """Do what the paper's Sec. 4 does: joints of all pairs, and the tree."""
    infer_tree(fit_joints(bodies, method=method))


def times(effort: Effort) -> Experiment:
    """Seconds for sequences as long as those of the paper."""
    take = record_sequence(effort.seed)
    rows: list[tuple[str | float, ...]] = []
    # Compiled parts are compiled before the clock starts.
    joints_and_tree(segment(take.cut(0, 60)), "ball")
    for number, (frames, kirk, paper) in enumerate(
        zip(FRAMES, KIRK, PAPER, strict=True), start=1
    ):
        effort.say(f"times: {frames} frames")
        # In a hurry, the slower way is shown for the shortest sequence only.
        both = number == 1 or not effort.quick
        cells = seconds_of(take.cut(0, frames), their_way=both)
        shown = [float(f"{cell:.2g}") for cell in (*cells, paper / cells[-1])]
        rows.append((number, frames, kirk, paper, *shown))
    columns = (
        "sequence",
        "frames",
        "Kirk et al. s",
        "paper s",
        "bodies s",
        "their joints s",
        "our joints s",
        "paper / ours",
    )
    return Experiment(
        title="Runtime (Table 1)",
        tables={
            "Seconds for joints and tree, about 110 markers": Table(
                columns, tuple(rows)
            )
        },
        note=(
            "The paper timed Sec. 4, joints of all pairs and the tree, on a Pentium IV "
            "of 3 GHz, and Kirk et al. on the same. Bodies is finding them, which its "
            "table leaves out; their joints is Eqs. 2-4 by L-BFGS-B in marey, on 400 "
            "frames at most; our joints is `fit_joints` as it comes."
        ),
    )


def seconds_of(take: Recording, *, their_way: bool) -> tuple[float, float, float]:
    """Return the seconds for bodies, for joints their way, and for joints ours."""
    start = perf_counter()
    bodies = segment(take)
    found = perf_counter()
    joints_and_tree(bodies, "ball")
    ours = perf_counter()
    if their_way:
        joints_and_tree(bodies, "distance")
    theirs = perf_counter() - ours if their_way else float("nan")
    return found - start, theirs, ours - found
