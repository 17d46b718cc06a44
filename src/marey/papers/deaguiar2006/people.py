"""DeAguiar2006, Secs. 5 and 6: constant bones, run time and commercial skeletons."""

from pathlib import Path

import numpy as np

import marey
from marey import synth
from marey.numerics import Float, robust
from marey.papers.deaguiar2006.stick_figure import (
    StickFigure,
    build_stick_figure,
    figure_2_drawing,
    joint_path,
)
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.measures import rms, rounded, timed
from marey.papers.recordings import HOW_TO_GET_RECORDINGS, find_recording
from marey.report import Table
from marey.synth import Recording


def record_person(
    motion: str, seed: int, *, seconds: float, rate: float, noise: float, skin: float
) -> Recording:
    """Return a person of 110 unlabelled markers.

    Args:
        motion: A key of `marey.synth.MOTIONS`.
        seed: Draws the person, the performance and the noise.
        seconds: Length of the recording.
        rate: Frames per second.
        noise: Standard deviation of a coordinate, in metres.
        skin: Slide of the skin of a thigh, rms in metres.
    """
    return synth.human(seed=seed).record(
        motion,
        seconds=seconds,
        rate=rate,
        markers="dense110",
        labels=False,
        seed=seed,
        noise=noise,
        soft_tissue=skin,
    )


# --- constant bones -------------------------------------------------------------------

SEQUENCES = {
    "figure-2": ("exercise", "Exercises", (125, 225, 350, 500)),
    "figure-3": ("kick_punch", "Kicks and punches", (175, 75, 150, 400)),
}
"""Motion, title and frames of drawings like those of the paper."""


def record_sequence(motion: str, seed: int) -> Recording:
    """Return 10 s of a person whose skin slides by 2 mm rms."""
    return record_person(motion, seed, seconds=10.0, rate=60.0, noise=5e-4, skin=2e-3)


@experiment("People, and constant bones (Sec. 5, Figs. 2 and 3)")
def constant_bones(effort: Effort) -> Experiment:
    """Bodies, joints and constant bones of two people, drawn.

    A joint is drawn midway between its centres in both bodies. As the two separate,
    bone lengths vary; Sec. 5 gives each bone one length, from root to leaf. The last
    column is the distance that this moves the joints. The median minimises Eq. 6 as
    printed, the mean minimises Eq. 5.
    """
    tables, drawings = {}, {}
    for name, (motion, title, frames) in SEQUENCES.items():
        effort.report(f"people: {motion}")
        take = record_sequence(motion, effort.seed)
        bodies = marey.segment(take)
        fits = marey.fit_joints(bodies)
        stick = build_stick_figure(bodies, fits, marey.infer_tree(fits))
        drawings[name] = figure_2_drawing(take, bodies, stick, frames, title)
        tables[f"Bones before and after Sec. 5: {motion}"] = _length_table(stick)
    return Experiment(tables=tables, figures=drawings)


def _length_table(stick: StickFigure) -> Table:
    """Return the variation of bone lengths before and after they are made constant."""
    rows: list[Cells] = []
    inner = np.setdiff1d(np.flatnonzero(stick.parent >= 0), stick.ends)
    for method in robust.LOCATIONS:
        constant = stick.with_constant_lengths(method)
        moved = np.linalg.norm(constant.positions - stick.positions, axis=-1)
        variations = [
            float(np.mean(np.std(figure.lengths()[:, inner], axis=0)))
            for figure in (stick, constant)
        ]
        cells = (*variations, rms(moved[:, inner]))
        rows.append((method, *(round(1e3 * value, 3) for value in cells)))
    return table("length | varies before mm | after mm | joints moved mm rms", rows)


# --- run time -------------------------------------------------------------------------

FRAMES = (189, 307, 591, 1134)
KIRK_SECONDS = (1649.0, 2320.0, 4515.0, 11247.0)
PAPER_SECONDS = (103.0, 175.0, 307.0, 590.0)
"""Table 1: frames of four sequences, seconds of Kirk et al. and of the paper."""


def record_longest(seed: int) -> Recording:
    """Return a person at 120 Hz, for as many frames as the longest sequence has."""
    seconds = FRAMES[-1] / 120.0
    return record_person(
        "exercise", seed, seconds=seconds, rate=120.0, noise=1e-3, skin=0.0
    )


@experiment("Runtime (Table 1)")
def runtime(effort: Effort) -> Experiment:
    """Run times for sequences as long as those of the paper (Table 1).

    The paper timed Sec. 4, joints of all pairs and the tree, on a Pentium IV of 3 GHz,
    and Kirk et al. on the same. Bodies is finding them, which its table leaves out;
    their joints is Eqs. 2-4 by L-BFGS-B in marey, on 400 frames at most; our joints is
    `fit_joints` as it comes.
    """
    take = record_longest(effort.seed)
    rows: list[Cells] = []
    # Numba compiles at the first call, which is not timed.
    fit_joints_and_tree(marey.segment(take.cut(0, 60)), "ball")
    published = zip(FRAMES, KIRK_SECONDS, PAPER_SECONDS, strict=True)
    for number, (frames, kirk, paper) in enumerate(published, start=1):
        effort.report(f"times: {frames} frames")
        # Unless full, the slower method is timed on the shortest sequence only.
        both = number == 1 or effort.full
        seconds = measure_seconds(take.cut(0, frames), published=both)
        cells = rounded(*seconds, paper / seconds[-1], digits=2)
        rows.append((number, frames, kirk, paper, *cells))
    header = (
        "sequence | frames | Kirk et al. s | paper s | bodies s | their joints s | "
        "our joints s | paper / ours"
    )
    caption = "Seconds for joints and tree, about 110 markers"
    return Experiment(tables={caption: table(header, rows)})


def fit_joints_and_tree(bodies: marey.Bodies, method: str) -> marey.Tree:
    """Return the tree of the joints of all pairs: Sec. 4 of the paper."""
    return marey.infer_tree(marey.fit_joints(bodies, method=method))


def measure_seconds(take: Recording, *, published: bool) -> tuple[float, float, float]:
    """Return seconds for bodies, for the paper's joints and tree, and for ours.

    Args:
        take: A recording of unlabelled markers.
        published: Whether to time the paper's method; NaN otherwise.
    """
    bodies, segmentation = timed(marey.segment, take)
    _, ours = timed(fit_joints_and_tree, bodies, "ball")
    theirs = float("nan")
    if published:
        _, theirs = timed(fit_joints_and_tree, bodies, "distance")
    return segmentation, theirs, ours


# --- commercial skeletons -------------------------------------------------------------

TAKES = ("02_01", "01_01", "02_05")

BONES = {
    "thigh": (("{}UpperLeg", "{}LowerLeg"), ("{}femur", "{}tibia")),
    "shank": (("{}LowerLeg", "{}Foot"), ("{}tibia", "{}foot")),
    "upper arm": (("{}UpperArm", "{}LowerArm"), ("{}humerus", "{}radius")),
    "forearm": (("{}LowerArm", "{}Hand"), ("{}radius", "{}wrist")),
}
"""Bodies whose joints with their parents end a bone, and the joints of the software."""

METHODS = ("distance", "ball")


@experiment("Beside commercial skeletons (Sec. 6, Fig. 4)")
def commercial(effort: Effort) -> Experiment:
    """Limb lengths beside those of the capture software, if recordings are there.

    The skeletons that come with recordings of the CMU graphics lab are the fits of its
    software, not the truth: these are differences, not errors. Labels determine the
    bodies. {data}
    """
    rows: list[Cells] = []
    for name in TAKES[: None if effort.full else 1]:
        markers, skeleton = (
            find_recording(f"cmu/{name}.{suffix}") for suffix in ("c3d", "amc")
        )
        if markers is not None and skeleton is not None:
            effort.report(f"commercial: {name}")
            rows += _compare_lengths(markers, skeleton)
    caption = "Ours minus the software's length, mm, left / right"
    header = "take | bone | software mm | paper's joints | ours"
    return Experiment(
        tables={caption: table(header, rows)},
        facts={"data": HOW_TO_GET_RECORDINGS},
    )


def _compare_lengths(markers: Path, skeleton: Path) -> list[Cells]:
    """Return one row per bone: the software's length, and how ours differ."""
    bodies = marey.segment(marey.read(markers))
    motion = marey.read_motion(skeleton)
    T_world_joint, index = motion.T_world_joint()[0], motion.skeleton.index
    fits = [marey.fit_joints(bodies, method=method) for method in METHODS]
    rows: list[Cells] = []
    for bone, (ends, joints) in BONES.items():
        cells = []
        for side, letter in (("Left", "l"), ("Right", "r")):
            T_start, T_end = (T_world_joint[index(n.format(letter))] for n in joints)
            length = 1e3 * float(np.linalg.norm((T_end - T_start)[:3, 3]))
            names = [name.format(side) for name in ends]
            ours = [_length(bodies, f, *names) for f in fits]
            cells.append([f"{length:.0f}", *(f"{1e3 * v - length:+.0f}" for v in ours)])
        joined = (" / ".join(sides) for sides in zip(*cells, strict=True))
        rows.append((markers.stem, bone, *joined))
    return rows


def _length(bodies: marey.Bodies, fits: marey.JointFits, *ends: str) -> float:
    """Return the median distance of the joints of two bodies with their parents."""
    start, end = (_joint(bodies, fits, name) for name in ends)
    return float(np.nanmedian(np.linalg.norm(end - start, axis=1)))


def _joint(
    bodies: marey.Bodies, fits: marey.JointFits, name: str
) -> Float[np.ndarray, "frame 3"]:
    """Return the joint of a body with its parent, in the world."""
    pair = sorted(bodies.names.index(b) for b in (name, bodies.parents[name]))
    row = int(np.flatnonzero((fits.pair == pair).all(axis=1))[0])
    return joint_path(bodies, fits, row)
