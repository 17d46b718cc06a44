"""What there is to draw of a motion: figures, markers and truth on one clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.plot.arguments import take_number
from marey.plot.camera import Camera, widest
from marey.solution import Solution
from marey.synth import Recording, Truth

Array = np.ndarray
Places = Float[Array, "frame joint 3"]

Frames = SupportsIndex | Sequence[int] | Int[Array, " still"]
"""One frame or several."""

STILLS = 5
"""Moments of a filmstrip."""

MOST = 400
"""Frames that are looked at to choose them."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scene:
    """Figures, what was recorded of them, and the truth where it is known."""

    times: Float[Array, " frame"]
    figures: tuple[Motion, ...]
    points: Float[Array, "frame point 3"]
    """Markers and sensors, in metres."""

    filled: Bool[Array, "frame point"]
    """Which of them cleaning put in."""

    recorded: bool = True
    """Whether they are where they were seen; else where the skeleton has them."""

    truth: tuple[Motion, ...] = ()

    def joints(self, frame: int) -> Float[Array, "joint 3"]:
        """Return the joints of all figures, figure after figure."""
        return np.asarray(placed(self.figures, [frame])[0])

    def everything(self, frames: Sequence[int]) -> Float[Array, "still point 3"]:
        """Return all places, the joints of the figures first."""
        some = list(frames)
        both = placed((*self.figures, *self.truth), some)
        return np.concatenate([both, self.points[some]], axis=1)

    def middle(self, frame: int) -> Float[Array, " 3"]:
        """Return the point of the ground below the figures, or below what was seen."""
        for some in (self.joints(frame), self.everything([frame])[0]):
            known = some[np.isfinite(some).all(axis=1)]
            if len(known):
                return np.asarray(known.mean(axis=0) * [1.0, 1.0, 0.0])
        return np.zeros(3)


def placed(motions: Sequence[Motion], frames: Sequence[int]) -> Places:
    """Return where the joints of several motions are in some frames, in metres."""
    some = list(frames)
    poses = [m.skeleton.forward(m.T_world_root[some], m.wxyz[some]) for m in motions]
    none = np.zeros((len(some), 0, 3))
    return np.concatenate([none, *(T[..., :3, 3] for T in poses)], axis=1)


def scene_of(motion: Solution | Motion, take: int) -> Scene:
    """Return what there is to draw of a motion, or of one take of a solution."""
    if isinstance(motion, Motion):
        points = motion.marker_points()
        return Scene(
            times=motion.times,
            figures=(motion,),
            points=points,
            filled=np.zeros(points.shape[:2], dtype=bool),
            recorded=False,
        )
    recorded = motion.takes[take_number(motion, take)]
    sensors = recorded.T_world_sensor[..., :3, 3]
    return Scene(
        times=recorded.times,
        figures=tuple(subject.motions[take] for subject in motion.subjects),
        points=np.concatenate([recorded.points, sensors], axis=1),
        filled=np.pad(recorded.filled, ((0, 0), (0, sensors.shape[1]))),
    )


def with_truth(scene: Scene, truth: Recording | Truth | Motion | None) -> Scene:
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


def chosen_frames(scene: Scene, frame: Frames | None) -> list[int]:
    """Return the frames asked for, or those that differ most.

    Raises:
        DataError: If nothing was seen in them.
        OptionError: If there is no such frame.
    """
    count = len(scene.times)
    if frame is None:
        return _differing(scene, range(0, count, -(-count // MOST) or 1))
    some = np.asarray(frame).ravel()
    asked: list[int] = some.tolist() if some.dtype.kind in "iu" else []
    if not asked or not all(0 <= k < count for k in asked):
        needed = f"one or more from 0 to {count - 1}"
        raise OptionError("frame", found=frame, needed=needed)
    _differing(scene, asked)
    return asked


def _differing(scene: Scene, frames: Sequence[int]) -> list[int]:
    """Return frames as different as can be: each the farthest from those before it.

    Frames with joints, if there are any; else with markers.
    """
    for some in (placed(scene.figures, frames), scene.everything(frames)):
        seen = np.flatnonzero(np.isfinite(some).all(axis=-1).any(axis=1)).tolist()
        if len(seen):
            break
    else:
        raise DataError("frames", found="nothing seen", needed="a joint or a marker")
    middle = np.stack([scene.middle(frames[k]) for k in seen])
    shape = np.nan_to_num(some[seen] - middle[:, None])
    chosen, near = [0], np.full(len(seen), np.inf)
    while len(chosen) < min(STILLS, len(seen)):
        away = np.sum((shape - shape[chosen[-1]]) ** 2, axis=(1, 2))
        near = np.minimum(near, away)
        near[chosen] = -1.0
        chosen.append(int(near.argmax()))
    return sorted(int(frames[seen[k]]) for k in chosen)


def side_of(name: str) -> str:
    """Return "Left", "Right" or "", as a joint's name begins."""
    bare = name.rpartition(":")[2]
    return next((side for side in ("Left", "Right") if bare.startswith(side)), "")


def camera_for(scene: Scene, frames: Sequence[int]) -> Camera:
    """Return a level camera that sees the figures broad, and the first from before."""
    names = scene.figures[0].skeleton.names if scene.figures else ()
    left, right = (
        [k for k, name in enumerate(names) if side_of(name) == side]
        for side in ("Left", "Right")
    )
    return widest(scene.everything(frames), left, right)
