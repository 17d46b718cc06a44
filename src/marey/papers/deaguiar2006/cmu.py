"""DeAguiar2006, Fig. 4: learnt skeletons beside those of the capture software."""

import os
from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey import io
from marey.bodies import Bodies
from marey.joints import JointFits, fit_joints
from marey.papers.deaguiar2006.stick import joint_path
from marey.papers.experiment import Effort, Experiment
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


def recordings() -> Path | None:
    """Return the folder of real recordings, if the environment names one."""
    folder = Path(os.environ.get("MAREY_DATA", "")) / "cmu"
    return folder if os.environ.get("MAREY_DATA") and folder.is_dir() else None


def commercial(effort: Effort) -> Experiment:
    """Limb lengths beside those of the capture software, if recordings are there."""
    folder = recordings()
    columns = ("take", "bone", "software mm", "paper's joints", "ours")
    rows: list[tuple[str | float, ...]] = []
    for name in TAKES[: 1 if effort.quick else None]:
        if folder is not None:
            effort.say(f"commercial: {name}")
            rows += _compared(folder / f"{name}.c3d", folder / f"{name}.amc")
    return Experiment(
        title="Beside commercial skeletons (Sec. 6, Fig. 4)",
        tables={
            "Less the software's length, mm, left / right": Table(columns, tuple(rows))
        },
        note=(
            "The skeletons that come with recordings of the CMU graphics lab are the "
            "fits of its software, not the truth: these are differences, not errors. "
            "The bodies are told by the labels. Set MAREY_DATA to a folder that holds "
            "the recordings in cmu; without it the table is empty."
        ),
    )


def _compared(markers: Path, skeleton: Path) -> list[tuple[str | float, ...]]:
    """Return one row a bone: the software's length, and how ours differ."""
    bodies = segment(io.read(markers))
    motion = io.read_motion(skeleton)
    theirs = dict(zip(motion.skeleton.names, motion.T_world_joint()[0], strict=True))
    fits = [fit_joints(bodies, method=method) for method in METHODS]
    rows: list[tuple[str | float, ...]] = []
    for bone, (upper, lower, start, end) in BONES.items():
        length, off = [], []
        for side, letter in (("Left", "l"), ("Right", "r")):
            way = theirs[end.format(letter)] - theirs[start.format(letter)]
            length.append(1e3 * float(np.linalg.norm(way[:3, 3])))
            found = [_length(bodies, f, upper, lower, side) for f in fits]
            off.append([1e3 * value - length[-1] for value in found])
        shown = [
            " / ".join(f"{v:+.0f}" for v in each) for each in zip(*off, strict=True)
        ]
        software = " / ".join(f"{v:.0f}" for v in length)
        rows.append((markers.stem, bone, software, *shown))
    return rows


def _length(
    bodies: Bodies, fits: JointFits, upper: str, lower: str, side: str
) -> float:
    """Return the median distance of two joints over the frames, in metres."""
    start, end = (_joint(bodies, fits, name.format(side)) for name in (upper, lower))
    return float(np.nanmedian(np.linalg.norm(end - start, axis=1)))


def _joint(bodies: Bodies, fits: JointFits, name: str) -> Float[np.ndarray, "frame 3"]:
    """Return where a body meets its parent."""
    pair = sorted(bodies.names.index(b) for b in (name, bodies.parents[name]))
    row = int(np.flatnonzero((fits.pair == pair).all(axis=1))[0])
    return joint_path(bodies, fits, row)
