"""Figures with joints and markers as the user set them: kinds and places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.editing.plan import Step
from marey.editing.reroot import rerooted
from marey.errors import DataError
from marey.joints.ball.hinge import universal_axes
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.pipeline.subjects import Figure
from marey.skeleton import Skeleton
from marey.take import match_labels

Array = np.ndarray

MOST_FRAMES = 2000
"""Frames looked at for the axes of a joint."""

STILL = 0.02
"""A joint that turned less than this, rms in radians, does not show its axes."""

Poses = Callable[[Figure], Sequence[Motion]]
"""Fits the motions of a figure in all takes."""


def shaped(
    figures: Sequence[Figure],
    homes: Mapping[str, int],
    steps: Sequence[Step],
    poses: Poses,
) -> list[Figure]:
    """Return the figures with the kinds and places that the user gave, in order.

    They are set after calibration, which knows nothing of them, and hold exactly.

    Args:
        figures: Calibrated figures.
        homes: The number of the figure that each body is in.
        steps: Kinds and places.
        poses: How to find motions, for the axes of a joint of another kind.

    Raises:
        OptionError: If a joint or marker is in no figure.
        DataError: If the motion does not tell the axes.
    """
    done = list(figures)
    for step in steps:
        at = _home(done, homes, step)
        if step.edit.do == "place-marker":
            done[at] = _each(done[at], _with_marker, step)
        elif step.edit.do == "place-joint":
            done[at] = _each(done[at], _with_joint, step)
        elif step.edit.do == "reroot":
            done[at] = _each(done[at], _hung, step)
        else:
            done[at] = _of_kind(done[at], step, poses)
    return done


def _home(figures: Sequence[Figure], homes: Mapping[str, int], step: Step) -> int:
    """Return the figure that a step is about."""
    if step.bodies:
        return homes[step.bodies[0]]
    found = [i for i, one in enumerate(figures) if step.joint in one.skeleton.names]
    if len(found) != 1:
        names = ", ".join(n for one in figures for n in one.skeleton.names[1:])
        what = "several figures have" if found else "no figure has"
        told = f"{step.edit.joint}, which {what}"
        raise step.refused("joint", told, f"one of {names}")
    return found[0]


def _each(
    figure: Figure, change: Callable[[Skeleton, Step], Skeleton], step: Step
) -> Figure:
    """Return a figure with a change made to its skeleton, as in every take."""
    return replace(
        figure,
        skeleton=change(figure.skeleton, step),
        worn=tuple(change(skeleton, step) for skeleton in figure.worn),
    )


def _joint(skeleton: Skeleton, step: Step) -> int:
    """Return the joint of a step, which is not the root."""
    name = skeleton.joint_of(step.bodies[0]) if step.bodies else step.joint
    joint = skeleton.names.index(name) if name in skeleton.names else 0
    if joint == 0:
        told = f"{step.edit.joint}, the root"
        raise step.refused("joint", told, "a joint that hangs from another")
    return joint


def _hung(skeleton: Skeleton, step: Step) -> Skeleton:
    return rerooted(skeleton, skeleton.index(skeleton.joint_of(step.bodies[0])))


def _with_marker(skeleton: Skeleton, step: Step) -> Skeleton:
    label = step.edit.marker
    bare = [known.rpartition(":")[2] for known in skeleton.marker_labels]
    marker = int(match_labels([label], skeleton.marker_labels, bare)[0])
    if marker < 0:
        told = f"{label}, which was never seen with its body"
        needed = f"one of {', '.join(skeleton.marker_labels)}"
        raise step.refused("marker", told, needed)
    offset = skeleton.marker_offset.copy()
    offset[marker] = step.edit.offset
    return replace(skeleton, marker_offset=offset)


def _with_joint(skeleton: Skeleton, step: Step) -> Skeleton:
    """Return the skeleton with one joint elsewhere; at rest all else stays in place."""
    joint = _joint(skeleton, step)
    offset, markers = skeleton.offset.copy(), skeleton.marker_offset.copy()
    T, covariance = skeleton.T_joint_sensor.copy(), skeleton.covariance.copy()
    sd = skeleton.length_sd.copy()
    moved = np.array(step.edit.offset) - offset[joint]
    below = skeleton.parent == joint
    offset[joint] += moved
    offset[below] -= moved
    markers[skeleton.marker_joint == joint] -= moved
    T[skeleton.sensor_joint == joint, :3, 3] -= moved
    # What was fitted is no longer there to be doubted.
    below[joint] = True
    covariance[below], sd[below] = np.nan, np.nan
    return replace(
        skeleton,
        offset=offset,
        marker_offset=markers,
        T_joint_sensor=T,
        covariance=covariance,
        length_sd=sd,
    )


# --- kinds ----------------------------------------------------------------------------


def _of_kind(figure: Figure, step: Step, poses: Poses) -> Figure:
    """Return a figure with a joint of another kind, its axes from the motion.

    The motion is found with the joint as a ball. At rest the part that hangs by it is
    turned so that the joint can reach it: by the least turn that brings the axes of
    parent and child together, or to the usual turn of a joint that is fixed.
    """
    joint, kind = _joint(figure.skeleton, step), step.edit.kind
    still = np.eye(3)
    axes = np.full((2, 3), np.nan)

    def free(skeleton: Skeleton, step: Step) -> Skeleton:
        return _jointed(skeleton, joint, "ball", axes, still)

    figure = _each(figure, free, step)
    if kind == "ball":
        return figure
    R = _turns(poses(figure), joint, step)
    if kind == "fixed":
        found = np.full((2, 3), np.nan), geometry.nearest_rotation(R.mean(axis=0))
    else:
        found = (_hinge if kind == "hinge" else _universal)(R, step)

    def bound(skeleton: Skeleton, step: Step) -> Skeleton:
        return _jointed(skeleton, joint, kind, *found)

    return replace(_each(figure, bound, step), kinds_by_hand=True)


def _turns(
    motions: Sequence[Motion], joint: int, step: Step
) -> Float[Array, "frame 3 3"]:
    """Return the turns of a joint in all takes, a sample of them."""
    wxyz = np.concatenate([motion.wxyz[:, joint] for motion in motions])
    wxyz = wxyz[np.isfinite(wxyz).all(axis=1)]
    if not len(wxyz):
        what = f"edit {step.number}: {step.edit.joint} made {step.edit.kind}"
        raise DataError(what, found="no frame that shows it", needed="one or more")
    some = wxyz[:: max(len(wxyz) // MOST_FRAMES, 1)]
    return geometry.matrix_from_quat(some)


def _hinge(R: Float[Array, "frame 3 3"], step: Step) -> tuple[Array, Array]:
    """Return the axis that parent and child share best, and the turn to make it one.

    OBrien2000, Sec. 3.2: the axis v_a = R v_b that every frame leaves in place.
    """
    _check_turned(R, step)
    U, _, Vt = np.linalg.svd(R.mean(axis=0))
    axes = np.full((2, 3), np.nan)
    axes[0] = U[:, 0]
    return axes, _turn(Vt[0], U[:, 0])


def _universal(R: Float[Array, "frame 3 3"], step: Step) -> tuple[Array, Array]:
    """Return an axis of the parent and one of the child that stay square."""
    _check_turned(R, step)
    first, second, _ = (found[0] for found in universal_axes(R[None]))
    square = second - (first @ second) * first
    if np.linalg.norm(square) < 1e-6:
        square = np.cross(first, np.eye(3)[np.argmin(np.abs(first))])
    square = square / np.linalg.norm(square)
    return np.stack([first, square]), _turn(second, square)


def _check_turned(R: Float[Array, "frame 3 3"], step: Step) -> None:
    s = np.linalg.svd(R.mean(axis=0), compute_uv=False)
    turned = float(np.sqrt(2.0 * max(1.0 - s[1], 0.0)))
    if turned < STILL:
        raise DataError(
            f"edit {step.number}: {step.edit.joint} made {step.edit.kind}",
            found=f"a joint that turned by {np.degrees(turned):.1f}° only",
            needed="motion that shows its axes; or make it fixed",
        )


def _turn(start: Array, end: Array) -> Float[Array, "3 3"]:
    return geometry.matrix_from_quat(shortest_rotations(start, end))


def _jointed(
    skeleton: Skeleton, joint: int, kind: str, axes: Array, G: Array
) -> Skeleton:
    """Return a skeleton with a joint of a kind, what hangs by it turned at rest."""
    n = skeleton.n_joints
    turned = np.zeros(n, dtype=bool)
    turned[joint] = True
    for j in range(joint + 1, n):
        turned[j] = turned[skeleton.parent[j]]
    below = turned.copy()
    below[joint] = False
    offset, covariance = skeleton.offset.copy(), skeleton.covariance.copy()
    offset[below] = offset[below] @ G.T
    covariance[below] = G @ covariance[below] @ G.T
    every, limits = skeleton.axes.copy(), skeleton.limits.copy()
    every[turned] = every[turned] @ G.T
    every[joint], limits[joint] = axes, np.nan
    markers, T = skeleton.marker_offset.copy(), skeleton.T_joint_sensor.copy()
    mine = turned[skeleton.marker_joint]
    markers[mine] = markers[mine] @ G.T
    worn = turned[skeleton.sensor_joint]
    T[worn] = geometry.transform(G, np.zeros(3)) @ T[worn]
    kinds = list(skeleton.kind)
    kinds[joint] = kind  # type: ignore[call-overload]
    return replace(
        skeleton,
        kind=tuple(kinds),
        offset=offset,
        covariance=covariance,
        axes=every,
        limits=limits,
        marker_offset=markers,
        T_joint_sensor=T,
    )
