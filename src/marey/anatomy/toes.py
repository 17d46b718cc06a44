"""Toes that nothing observes: they bend where they would pass through the ground."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.motion import Contact, Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.resampling import stack_spans
from marey.numerics.robust import group_medians, runs
from marey.skeleton import Kind, Skeleton
from marey.tree import ancestors_of

Vector = Float[Array, " 3"]

LEFTWARD, UP = np.eye(3)[1:]


def hinge_toes(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton whose added toes are hinges that lift their tips."""
    return _with_toes(skeleton, "hinge", -LEFTWARD)


def straighten_toes(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton whose added toes are fixed to the feet, as for a solve."""
    return _with_toes(skeleton, "fixed", np.full(3, np.nan))


def bend_toes(motion: Motion) -> Motion:
    """Return the motion with added toes that bend where their tips would sink."""
    rotations = dict(toe_rotations(motion, motion.skeleton))
    if not rotations:
        return motion
    wxyz = motion.wxyz.copy()
    for toes, rotation in rotations.items():
        wxyz[:, toes] = rotation
    return replace(motion, skeleton=hinge_toes(motion.skeleton), wxyz=wxyz)


def toe_rotations(
    motion: Motion, skeleton: Skeleton
) -> Iterator[tuple[int, Float[Array, "frame 4"]]]:
    r"""Yield the rotations wxyz of each joint of added toes, by its number.

    A tip at the height :math:`A\cos\theta + B\sin\theta` above its joint is lifted to
    the ground by the angle :math:`\theta = \phi - \arccos(h / r)`, where
    :math:`A = r\cos\phi`, :math:`B = r\sin\phi` and :math:`h` is the height of the
    ground, but not above the joint. Without plants toes stay straight.

    Args:
        motion: The motion of the feet.
        skeleton: The skeleton with toes.
    """
    for foot, toes, tip in _added_toes(skeleton):
        name, to_toes, to_tip = skeleton.names[foot], *skeleton.offset[[toes, tip]]
        T_world_foot = _poses_of(motion, skeleton, foot)
        ground = _ground_under(motion, T_world_foot, name, to_toes + to_tip)
        up = T_world_foot[:, 2, :3]
        height = np.minimum(ground - up @ to_toes - T_world_foot[:, 2, 3], 0.0)
        A, B = up @ to_tip, up @ np.cross(-LEFTWARD, to_tip)
        from_top = np.arccos(np.clip(height / np.hypot(A, B), -1.0, 1.0))
        sinks = (height > A) & (B > 0.0)
        angle = np.where(sinks, np.arctan2(B, A) - from_top, 0.0)
        yield toes, geometry.quat_exp(-angle[:, None] * LEFTWARD)


def _with_toes(skeleton: Skeleton, kind: Kind, axis: Vector) -> Skeleton:
    """Return the skeleton with another kind and axis of added toes."""
    kinds, axes = list(skeleton.kind), skeleton.axes.copy()
    for _, toes, _ in _added_toes(skeleton):
        kinds[toes], axes[toes, 0] = kind, axis
    return replace(skeleton, kind=tuple(kinds), axes=axes)


def _added_toes(skeleton: Skeleton) -> Iterator[tuple[int, int, int]]:
    """Yield foot, toe joint and tip of each foot whose toes are not observed."""
    for name in vrm.both_sides(vrm.TOES):
        if {name, f"{name}_end"} <= set(skeleton.names):
            toes = skeleton.index(name)
            if not skeleton.observed[toes]:
                foot, tip = int(skeleton.parent[toes]), skeleton.index(f"{name}_end")
                yield foot, toes, tip


def _ground_under(
    motion: Motion, T_world_foot: Float[Array, "frame 4 4"], foot: str, tip: Vector
) -> Float[Array, " frame"]:
    """Return the height at which the tip of a foot stands, in metres.

    A planted point of the foot is as high as in any other plant, whatever the foot
    does: the ground is below it by as much as at rest. Between plants it is
    interpolated; -inf where the foot is never planted.

    Args:
        motion: The motion.
        T_world_foot: Poses of the foot.
        foot: Its name.
        tip: The tip in the foot's frame at rest, in metres.
    """
    contacts = [c for c in motion.contacts if c.joint.startswith(foot)]
    seen = np.isfinite(T_world_foot[:, 2, 3])
    frame, number = _frames_of_contacts(motion, contacts, seen)
    planted = np.zeros(motion.n_frames, dtype=bool)
    planted[frame] = True
    spans = runs(planted)
    if not spans:
        return np.full(motion.n_frames, -np.inf)
    anchor = np.array([contact.anchor for contact in contacts])
    T_foot_world = geometry.inverse(T_world_foot[frame])
    in_foot = geometry.apply(T_foot_world, anchor[number])
    height = (anchor - group_medians(in_foot, number, len(contacts)) + tip) @ UP
    begins = [first for first, _ in spans]
    span = np.searchsorted(begins, frame, side="right") - 1
    span, number = np.unique(np.stack([span, number]), axis=1)
    of_span = group_medians(height[number, None], span, len(spans))[:, 0]
    every = np.arange(motion.n_frames)
    return np.asarray(np.interp(every, np.ravel(spans), np.repeat(of_span, 2)))


def _frames_of_contacts(
    motion: Motion, contacts: Sequence[Contact], seen: Bool[Array, " frame"]
) -> tuple[Int[Array, " pose"], Int[Array, " pose"]]:
    """Return the frames of all contacts that show the foot, and each one's contact."""
    time = motion.start + np.arange(motion.n_frames) / motion.rate
    first = np.searchsorted(time, [contact.start for contact in contacts])
    end = np.searchsorted(time, [c.end for c in contacts], side="right")
    spans = [range(*span) for span in zip(first, end, strict=True)]
    frame, number = stack_spans(spans)
    return frame[seen[frame]], number[seen[frame]]


def _poses_of(
    motion: Motion, skeleton: Skeleton, joint: int
) -> Float[Array, "frame 4 4"]:
    """Return the poses of one joint in the world; only its ancestors are placed.

    Joints of the skeleton that the motion does not have do not rotate.
    """
    T = motion.T_world_root
    for item in reversed(ancestors_of(skeleton.parent, joint)[:-1]):
        R = np.eye(3)
        if skeleton.names[item] in motion.skeleton.names:
            own = motion.skeleton.index(skeleton.names[item])
            R = geometry.matrix_from_quat(motion.wxyz[:, own])
        T = T @ geometry.transform(R, skeleton.offset[item])
    return T
