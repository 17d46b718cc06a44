"""DeAguiar2006, Fig. 4: estimated skeletons beside those of the capture software."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey import io
from marey.bodies import Bodies
from marey.joints import JointFits, fit_joints
from marey.papers.deaguiar2006.stick_figure import joint_path
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells
from marey.papers.recordings import HOW_TO_GET_RECORDINGS, find_recording
from marey.report import Table
from marey.segmentation import segment

TAKES = ("01_01", "02_01", "02_05")

BONES = {
    "thigh": ("{}UpperLeg", "{}LowerLeg", "{}femur", "{}tibia"),
    "shank": ("{}LowerLeg", "{}Foot", "{}tibia", "{}foot"),
    "upper arm": ("{}UpperArm", "{}LowerArm", "{}humerus", "{}radius"),
    "forearm": ("{}LowerArm", "{}Hand", "{}radius", "{}wrist"),
}
"""Bodies whose joints with their parents end a bone, and the joints of the software."""

METHODS = ("distance", "ball")


def commercial(effort: Effort) -> Experiment:
    """Limb lengths beside those of the capture software, if recordings are there."""
    columns = ("take", "bone", "software mm", "paper's joints", "ours")
    rows: list[Cells] = []
    for name in TAKES[: 1 if effort.quick else None]:
        markers, skeleton = (
            find_recording(f"cmu/{name}.{suffix}") for suffix in ("c3d", "amc")
        )
        if markers is not None and skeleton is not None:
            effort.report(f"commercial: {name}")
            rows += _compare_lengths(markers, skeleton)
    return Experiment(
        title="Beside commercial skeletons (Sec. 6, Fig. 4)",
        tables={
            "Ours minus the software's length, mm, left / right": Table(
                columns, tuple(rows)
            )
        },
        note=(
            "The skeletons that come with recordings of the CMU graphics lab are the "
            "fits of its software, not the truth: these are differences, not errors. "
            f"Labels determine the bodies. {HOW_TO_GET_RECORDINGS}"
        ),
    )


def _compare_lengths(markers: Path, skeleton: Path) -> list[Cells]:
    """Return one row per bone: the software's length, and how ours differ."""
    bodies = segment(io.read(markers))
    motion = io.read_motion(skeleton)
    T_world_joint = dict(
        zip(motion.skeleton.names, motion.T_world_joint()[0], strict=True)
    )
    fits = [fit_joints(bodies, method=method) for method in METHODS]
    rows: list[Cells] = []
    for bone, (upper, lower, start, end) in BONES.items():
        lengths_mm, differences_mm = [], []
        for side, letter in (("Left", "l"), ("Right", "r")):
            T_end, T_start = (T_world_joint[n.format(letter)] for n in (end, start))
            length = 1e3 * float(np.linalg.norm((T_end - T_start)[:3, 3]))
            ours = [1e3 * _length(bodies, f, upper, lower, side) for f in fits]
            lengths_mm.append(f"{length:.0f}")
            differences_mm.append([f"{value - length:+.0f}" for value in ours])
        cells = [" / ".join(sides) for sides in zip(*differences_mm, strict=True)]
        rows.append((markers.stem, bone, " / ".join(lengths_mm), *cells))
    return rows


def _length(
    bodies: Bodies, fits: JointFits, upper: str, lower: str, side: str
) -> float:
    """Return the median distance of two joints over the frames, in metres."""
    start, end = (_joint(bodies, fits, name.format(side)) for name in (upper, lower))
    return float(np.nanmedian(np.linalg.norm(end - start, axis=1)))


def _joint(bodies: Bodies, fits: JointFits, name: str) -> Float[np.ndarray, "frame 3"]:
    """Return the joint of a body with its parent, in the world."""
    pair = sorted(bodies.names.index(b) for b in (name, bodies.parents[name]))
    row = int(np.flatnonzero((fits.pair == pair).all(axis=1))[0])
    return joint_path(bodies, fits, row)
