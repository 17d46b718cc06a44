"""DeAguiar2006, Table 1: run time."""

from time import perf_counter

from marey import synth
from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells, round_to_digits
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

FRAMES = (189, 307, 591, 1134)
KIRK_SECONDS = (1649.0, 2320.0, 4515.0, 11247.0)
PAPER_SECONDS = (103.0, 175.0, 307.0, 590.0)

RATE = 120.0


def record_sequence(seed: int) -> Recording:
    """Return a person of 110 unlabelled markers, as long as the longest sequence."""
    return synth.human(seed=seed).record(
        "exercise",
        seconds=FRAMES[-1] / RATE,
        rate=RATE,
        markers="dense110",
        labels=False,
        seed=seed,
        noise=1e-3,
    )


def fit_joints_and_tree(bodies: Bodies, method: str) -> None:
    """Fit the joints of all pairs and infer the tree: Sec. 4 of the paper."""
    infer_tree(fit_joints(bodies, method=method))


def runtime(effort: Effort) -> Experiment:
    """Run times for sequences as long as those of the paper (Table 1)."""
    take = record_sequence(effort.seed)
    rows: list[Cells] = []
    # Numba compiles at the first call, which is not timed.
    fit_joints_and_tree(segment(take.cut(0, 60)), "ball")
    for number, (frames, kirk, paper) in enumerate(
        zip(FRAMES, KIRK_SECONDS, PAPER_SECONDS, strict=True), start=1
    ):
        effort.report(f"times: {frames} frames")
        # A quick run times the slower method on the shortest sequence only.
        both = number == 1 or not effort.quick
        seconds = measure_seconds(take.cut(0, frames), published=both)
        cells = [round_to_digits(s, 2) for s in (*seconds, paper / seconds[-1])]
        rows.append((number, frames, kirk, paper, *cells))
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


def measure_seconds(take: Recording, *, published: bool) -> tuple[float, float, float]:
    """Return seconds for bodies, for the paper's joints and tree, and for ours.

    Args:
        take: A recording of unlabelled markers.
        published: Whether to time the paper's method; NaN otherwise.
    """
    start = perf_counter()
    bodies = segment(take)
    segmented = perf_counter()
    fit_joints_and_tree(bodies, "ball")
    fitted = perf_counter()
    seconds = float("nan")
    if published:
        fit_joints_and_tree(bodies, "distance")
        seconds = perf_counter() - fitted
    return segmented - start, seconds, fitted - segmented
