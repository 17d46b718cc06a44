"""Contents of a picture of a motion: figures, markers and truth at equal times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

import numpy as np

from marey.anatomy.names import SIDES, side_of, without_subject
from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.robust import mean_where
from marey.plot.primitives import Camera
from marey.solution import Solution
from marey.synth import Recording, Truth

JointPositions = Float[Array, "frame joint 3"]

Frames = SupportsIndex | Sequence[int] | Int[Array, " still"]
"""One frame or several."""

N_STILLS = 5
"""Stills of a picture, if no frames are requested."""

MAX_FRAMES_COMPARED = 400
"""Frames that are compared to choose the stills. Higher is slower."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlotScene:
    """Figures, recorded points, and the truth where it is known."""

    times: Float[Array, " frame"]
    figures: tuple[Motion, ...]
    points: Float[Array, "frame point 3"]
    """Markers and sensors, in metres."""

    filled: Bool[Array, "frame point"]
    """Points that cleaning filled in."""

    recorded: bool = True
    """Whether points were recorded; otherwise they are markers of the skeleton."""

    truth: tuple[Motion, ...] = ()

    def joint_positions(self, frame: int) -> Float[Array, "joint 3"]:
        """Return the joints of all figures in one frame, in metres."""
        return np.asarray(joint_positions(self.figures, [frame])[0])

    def all_positions(self, frames: Sequence[int]) -> Float[Array, "still point 3"]:
        """Return joints of figures and truth, then recorded points, in metres."""
        joints = joint_positions((*self.figures, *self.truth), frames)
        return np.concatenate([joints, self.points[list(frames)]], axis=1)

    def ground_center(self, frame: int) -> Float[Array, " 3"]:
        """Return the point of the ground below the figures, or below all points."""
        for points in (self.joint_positions(frame), self.all_positions([frame])[0]):
            known = points[np.isfinite(points).all(axis=1)]
            if len(known):
                return np.asarray(known.mean(axis=0) * [1.0, 1.0, 0.0])
        return np.zeros(3)


def check_take_number(solution: Solution, take: int) -> int:
    """Return the number of a take after checking that it exists.

    Raises:
        OptionError: If the take does not exist.
    """
    count = len(solution.takes)
    if not 0 <= take < count:
        raise OptionError("take", found=take, needed=f"a number from 0 to {count - 1}")
    return take


def joint_positions(motions: Sequence[Motion], frames: Sequence[int]) -> JointPositions:
    """Return the joints of several motions in some frames, in metres."""
    rows = list(frames)
    poses = [m.skeleton.forward(m.T_world_root[rows], m.wxyz[rows]) for m in motions]
    none = np.zeros((len(rows), 0, 3))
    return np.concatenate([none, *(T[..., :3, 3] for T in poses)], axis=1)


def build_plot_scene(motion: Solution | Motion, take: int) -> PlotScene:
    """Return the scene of a motion, or of one take of a solution."""
    if isinstance(motion, Motion):
        points = motion.marker_points()
        return PlotScene(
            times=motion.times,
            figures=(motion,),
            points=points,
            filled=np.zeros(points.shape[:2], dtype=bool),
            recorded=False,
        )
    recorded = motion.takes[check_take_number(motion, take)]
    sensors = recorded.T_world_sensor[..., :3, 3]
    return PlotScene(
        times=recorded.times,
        figures=tuple(subject.motions[take] for subject in motion.subjects),
        points=np.concatenate([recorded.points, sensors], axis=1),
        filled=np.pad(recorded.filled, ((0, 0), (0, sensors.shape[1]))),
    )


def add_truth(scene: PlotScene, truth: Recording | Truth | Motion | None) -> PlotScene:
    """Return the scene with the truth in it.

    Raises:
        DataError: If the truth has other frames.
    """
    known = truth.truth if isinstance(truth, Recording) else truth
    if known is None:
        return scene
    motions = (known,) if isinstance(known, Motion) else known.motions
    count = len(scene.times)
    for one in motions:
        if one.n_frames != count:
            found = f"{one.n_frames} frames"
            raise DataError("truth", found=found, needed=f"{count}, as the motion has")
    return replace(scene, truth=motions)


def choose_frames(scene: PlotScene, frame: Frames | None) -> list[int]:
    """Return the requested frames, or those that differ most.

    Raises:
        DataError: If nothing was seen in them.
        OptionError: If there is no such frame.
    """
    count = len(scene.times)
    if frame is None:
        return _most_different_frames(
            scene, range(0, count, -(-count // MAX_FRAMES_COMPARED) or 1)
        )
    numbers = np.asarray(frame).ravel()
    requested: list[int] = numbers.tolist() if numbers.dtype.kind in "iu" else []
    if not requested or not all(0 <= k < count for k in requested):
        needed = f"one or more from 0 to {count - 1}"
        raise OptionError("frame", found=frame, needed=needed)
    _most_different_frames(scene, requested)
    return requested


def _most_different_frames(scene: PlotScene, frames: Sequence[int]) -> list[int]:
    """Return frames by farthest-point sampling of the poses.

    Each frame is the one farthest from those before it, in squared distance of the
    joints relative to the ground below them; of all points if there are no joints.
    """
    for points in (joint_positions(scene.figures, frames), scene.all_positions(frames)):
        seen = np.flatnonzero(np.isfinite(points).all(axis=-1).any(axis=1)).tolist()
        if len(seen):
            break
    else:
        raise DataError("frames", found="nothing seen", needed="a joint or a marker")
    center = np.stack([scene.ground_center(frames[k]) for k in seen])
    pose = np.nan_to_num(points[seen] - center[:, None])
    chosen, distance = [0], np.full(len(seen), np.inf)
    while len(chosen) < min(N_STILLS, len(seen)):
        from_last = np.sum((pose - pose[chosen[-1]]) ** 2, axis=(1, 2))
        distance = np.minimum(distance, from_last)
        distance[chosen] = -1.0
        chosen.append(int(distance.argmax()))
    return sorted(int(frames[seen[k]]) for k in chosen)


def body_side(name: str) -> str:
    """Return "Left", "Right" or "", as a joint's name begins."""
    return side_of(without_subject(name))


def choose_camera(scene: PlotScene, frames: Sequence[int]) -> Camera:
    """Return the level camera of widest view, in front of the first figure."""
    names = scene.figures[0].skeleton.names if scene.figures else ()
    left, right = (
        [k for k, name in enumerate(names) if body_side(name) == side] for side in SIDES
    )
    return widest_view(scene.all_positions(frames), left, right)


def widest_view(
    points: Float[Array, "frame point 3"],
    left: Sequence[int] = (),
    right: Sequence[int] = (),
) -> Camera:
    """Return the level camera that sees the largest horizontal variance of points.

    The image axis is the first principal component of the horizontal positions
    relative to their centroid in every frame.

    Args:
        points: Positions in metres; NaN = not seen.
        left: Points on the left of a figure; with `right`, it is seen from the front.
        right: Points on its right.
    """
    horizontal = points[..., :2]
    seen = np.isfinite(horizontal).all(axis=-1, keepdims=True)
    centroid = mean_where(horizontal, seen, axis=1)[:, None]
    offset = np.where(seen, horizontal - centroid, 0.0)
    component = np.linalg.eigh(np.einsum("fpi,fpj->ij", offset, offset))[1][:, 1]
    if len(left) and len(right):
        # From the front, a figure's left is on the right of the picture.
        sides = [offset[:, list(side)].mean((0, 1)) for side in (left, right)]
        component = component * (
            1.0 if (sides[0] - sides[1]) @ component >= 0.0 else -1.0
        )
    return Camera(float(np.degrees(np.arctan2(-component[0], component[1]))), 0.0)
