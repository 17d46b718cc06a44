"""The joints of a person that a recording does not observe, placed by anatomy.

They move with the bodies that carry them, so that no pose changes and no rotation is
invented; only toes bend, where they would pass through the ground. `Skeleton.observed`
is False for them, and the lengths of bones that begin or end there have no standard
deviation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.motion import Contact, Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.robust import group_medians, runs
from marey.skeleton import Kind, Skeleton
from marey.tree import ancestors_of

Vector = Float[Array, " 3"]

BONE_OF_STATURE_BY_SEX = {
    vrm.LOWER_LEG: (0.2124, 0.2425),
    vrm.FOOT: (0.2492, 0.2493),
    vrm.LOWER_ARM: (0.1586, 0.1618),
    vrm.HAND: (0.1523, 0.1545),
}
"""Length of the bone that ends in each joint (thigh, shank, upper arm, forearm) as a
share of the stature, women and men of de Leva 1996."""

BONE_OF_STATURE = {
    name: sum(shares) / len(shares) for name, shares in BONE_OF_STATURE_BY_SEX.items()
}
"""The mean of both sexes."""

SPINE_SHARE, NECK_SHARE, CLAVICLE_SHARE = 0.5, 0.75, 0.15
"""Position of a spine between hips and chest, of a neck between chest and head, and of
the inner end of a clavicle between the middle of the shoulders and its own: shares of
the way. Higher is further from the hips. Chosen by hand."""

MAX_LENGTH_ERROR = 0.25
"""Largest difference of the reach of markers along a shank or forearm from its usual
length, as a share of it, for them to end where the bone does. Higher takes markers in
the middle of a limb for its end. Chosen by hand."""

HAND_OF_STATURE, TOES_OF_STATURE, TIP_OF_STATURE = 0.108, 0.071, 0.043
"""Length of a hand, distance from ankle to toe joint and from there to the tip, along
the foot, as shares of the stature: a foot of 0.152 (Drillis and Contini 1966) with the
ankle at a quarter and the toe joint at seven tenths of it."""

ANKLE_OF_STATURE = 0.039
"""Height of the ankle above the ground as a share of the stature (Drillis and Contini
1966)."""

FORWARD, LEFTWARD, UP = np.eye(3)


def complete_person(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton of a person with spine, neck, clavicles, hands and toes.

    Only joints between bodies, and at the ends of limbs, are added; a skeleton without
    arms gets none. Skeletons of other figures, and of people with another root than the
    hips, stay as they are.

    Args:
        skeleton: At rest in a T-pose that faces +x.
    """
    if not vrm.is_person(skeleton.names) or skeleton.names[0] != vrm.HIPS:
        return skeleton
    whole = _divide_chest(_add_clavicles(_add_neck(_add_spine(skeleton))))
    stature = _estimate_stature(skeleton)
    if np.isnan(stature):
        return whole
    for side, outward in zip(vrm.SIDES, (LEFTWARD, -LEFTWARD), strict=True):
        whole = _extend(whole, side, vrm.LOWER_LEG, vrm.FOOT, -UP, stature)
        whole = _extend(whole, side, vrm.LOWER_ARM, vrm.HAND, outward, stature)
        whole = _add_toes(whole, side, stature)
    return whole


def observed_part(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton without the joints that `complete_person` has added.

    Nothing is attached to these, and no observed joint moves with their rotation.
    """
    if skeleton.observed.all():
        return skeleton
    keep = np.flatnonzero(skeleton.observed)
    rest = skeleton.rest()[:, :3, 3]
    number = np.cumsum(skeleton.observed) - 1
    parent = np.array([observed_parent(skeleton, joint) for joint in keep.tolist()])
    offset = rest[keep] - np.where(parent[:, None] < 0, 0.0, rest[parent])
    return replace(
        skeleton,
        names=tuple(skeleton.names[joint] for joint in keep),
        kind=tuple(skeleton.kind[joint] for joint in keep),
        parent=np.where(parent < 0, parent, number[parent]),
        offset=offset,
        axes=skeleton.axes[keep],
        limits=skeleton.limits[keep],
        covariance=skeleton.covariance[keep],
        length_sd=skeleton.length_sd[keep],
        observed=skeleton.observed[keep],
        marker_joint=number[skeleton.marker_joint],
        sensor_joint=number[skeleton.sensor_joint],
    )


def observed_parent(skeleton: Skeleton, joint: int) -> int:
    """Return the nearest observed joint towards the root; -1 for the root."""
    parent = int(skeleton.parent[joint])
    while parent >= 0 and not skeleton.observed[parent]:
        parent = int(skeleton.parent[parent])
    return parent


def complete_motion(motion: Motion, skeleton: Skeleton) -> Motion:
    """Return the motion of a completed skeleton; of added joints only toes rotate.

    How far the others would is not known. Toes are hinges, as those of `bend_toes`.
    """
    toe_rotations = tuple(_toe_rotations(motion, skeleton))
    shape = motion.n_frames, skeleton.n_joints
    wxyz, angle_sd = np.zeros((*shape, 4)), np.full((*shape, 3), np.nan)
    wxyz[..., 0] = 1.0
    joints = [skeleton.index(name) for name in motion.skeleton.names]
    wxyz[:, joints], angle_sd[:, joints] = motion.wxyz, motion.angle_sd
    for toes, rotation in toe_rotations:
        wxyz[:, toes] = rotation
    hinged = hinge_toes(skeleton)
    return replace(motion, skeleton=hinged, wxyz=wxyz, angle_sd=angle_sd)


# --- toes -----------------------------------------------------------------------------


def hinge_toes(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton whose added toes are hinges that lift their tips."""
    return _with_toes(skeleton, "hinge", -LEFTWARD)


def straighten_toes(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton whose added toes are fixed to the feet, as for a solve."""
    return _with_toes(skeleton, "fixed", np.full(3, np.nan))


def bend_toes(motion: Motion) -> Motion:
    """Return the motion with added toes that bend where their tips would sink."""
    rotations = dict(_toe_rotations(motion, motion.skeleton))
    if not rotations:
        return motion
    wxyz = motion.wxyz.copy()
    for toes, rotation in rotations.items():
        wxyz[:, toes] = rotation
    return replace(motion, skeleton=hinge_toes(motion.skeleton), wxyz=wxyz)


def _toe_rotations(
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
    """Return the frames of all contacts in which a foot is seen, and whose each is."""
    time = motion.start + np.arange(motion.n_frames) / motion.rate
    first = np.searchsorted(time, [contact.start for contact in contacts])
    end = np.searchsorted(time, [c.end for c in contacts], side="right")
    of_each = [np.arange(*span) for span in zip(first, end, strict=True)]
    frame = np.concatenate([np.zeros(0, dtype=np.int64), *of_each])
    number = np.repeat(np.arange(len(contacts)), np.maximum(end - first, 0))
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


# --- trunk ----------------------------------------------------------------------------


def _add_spine(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with a spine of two segments between hips and shoulders."""
    names = skeleton.names
    if vrm.SPINE not in names and vrm.CHEST in names:
        chest = skeleton.index(vrm.CHEST)
        return _insert_between(skeleton, vrm.SPINE, [chest], SPINE_SHARE)
    if vrm.SPINE in names and not {vrm.CHEST, vrm.UPPER_CHEST} & set(names):
        children = _moving_children(skeleton, skeleton.index(vrm.SPINE))
        return _insert_between(skeleton, vrm.CHEST, children, SPINE_SHARE)
    return skeleton


def _divide_chest(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with an upper chest where the spine is bent below its middle.

    The bone from there to neck and clavicles would be the longest of the trunk.
    """
    names = skeleton.names
    if vrm.UPPER_CHEST in names or not {vrm.SPINE, vrm.CHEST} <= set(names):
        return skeleton
    chest = skeleton.index(vrm.CHEST)
    children = _moving_children(skeleton, chest)
    if not children:
        return skeleton
    rest = skeleton.rest()[:, :3, 3]
    below = np.linalg.norm(rest[chest] - rest[0])
    above = np.linalg.norm(rest[children].mean(axis=0) - rest[chest])
    if above <= below:
        return skeleton
    return _insert_between(skeleton, vrm.UPPER_CHEST, children, SPINE_SHARE)


def _add_neck(skeleton: Skeleton) -> Skeleton:
    if vrm.NECK in skeleton.names or vrm.HEAD not in skeleton.names:
        return skeleton
    head = skeleton.index(vrm.HEAD)
    return _insert_between(skeleton, vrm.NECK, [head], NECK_SHARE)


def _add_clavicles(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with a clavicle before each upper arm."""
    if not vrm.has_arms(skeleton.names):
        return skeleton
    for side in vrm.SIDES:
        arms = [skeleton.index(name) for name in vrm.both_sides(vrm.UPPER_ARM)]
        if side + vrm.SHOULDER in skeleton.names:
            continue
        rest = skeleton.rest()[:, :3, 3]
        arm, middle = skeleton.index(side + vrm.UPPER_ARM), rest[arms].mean(axis=0)
        inner = middle + CLAVICLE_SHARE * (rest[arm] - middle)
        parent = int(skeleton.parent[arm])
        skeleton = insert_joint(skeleton, side + vrm.SHOULDER, parent, [arm], inner)
    return skeleton


# --- limbs ----------------------------------------------------------------------------


def _estimate_stature(skeleton: Skeleton) -> float:
    """Return the height of a person by the lengths of thighs, shanks and arms.

    In metres; NaN without any of these bones.
    """
    heights = [
        skeleton.lengths[skeleton.index(name)] / share
        for part, share in BONE_OF_STATURE.items()
        for name in vrm.both_sides(part)
        if name in skeleton.names and skeleton.parent[skeleton.index(name)] >= 0
    ]
    return float(np.median(heights)) if heights else float("nan")


def _extend(
    skeleton: Skeleton,
    side: str,
    part: str,
    next_part: str,
    direction: Vector,
    stature: float,
) -> Skeleton:
    """Return the skeleton with the next part of a limb that ends too early.

    It begins where the markers of the limb end, such as a keypoint of the ankle, if
    the limb has about its usual length up to there.
    """
    name, added = side + part, side + next_part
    if name not in skeleton.names or added in skeleton.names:
        return skeleton
    length = BONE_OF_STATURE[next_part] * stature
    on_limb = skeleton.marker_joint == skeleton.index(name)
    reach = float((skeleton.marker_offset[on_limb] @ direction).max(initial=0.0))
    if abs(reach - length) < MAX_LENGTH_ERROR * length:
        length = reach
    skeleton = _append(skeleton, added, name, length * direction)
    if next_part == vrm.HAND:
        tip = HAND_OF_STATURE * stature * direction
        skeleton = _append(skeleton, f"{added}_end", added, tip)
    return skeleton


def _add_toes(skeleton: Skeleton, side: str, stature: float) -> Skeleton:
    """Return the skeleton with toes on a foot, whose tip touches the ground."""
    foot, toes = side + vrm.FOOT, side + vrm.TOES
    if foot not in skeleton.names or toes in skeleton.names:
        return skeleton
    height = _ankle_height(skeleton, foot, stature)

    def slope_down(forward: float, share: float) -> Vector:
        length = stature * np.hypot(forward, share * ANKLE_OF_STATURE)
        drop = share * height
        return np.asarray(np.sqrt(length**2 - drop**2) * FORWARD - drop * UP)

    skeleton = _append(skeleton, toes, foot, slope_down(TOES_OF_STATURE, 0.5))
    tip = slope_down(TIP_OF_STATURE, 0.5 * 0.5)
    return _append(skeleton, f"{toes}_end", toes, tip)


def _ankle_height(skeleton: Skeleton, foot: str, stature: float) -> float:
    """Return the height of an ankle above the sole at rest, in metres.

    The usual one, but not more than above the lowest marker of the foot, so that toes
    do not sink below the markers that stand on the ground. It changes the slope of the
    toes, not their lengths, which do not depend on where markers are attached.
    """
    on_foot = skeleton.marker_joint == skeleton.index(foot)
    drop = -skeleton.marker_offset[on_foot] @ UP
    usual = ANKLE_OF_STATURE * stature
    return max(min(usual, float(drop.max())), 0.0) if len(drop) else usual


# --- joints ---------------------------------------------------------------------------


def _moving_children(skeleton: Skeleton, joint: int) -> list[int]:
    is_child = (skeleton.parent == joint) & ~skeleton.is_end
    return [int(child) for child in np.flatnonzero(is_child)]


def _insert_between(
    skeleton: Skeleton, name: str, children: Sequence[int], share: float
) -> Skeleton:
    """Return the skeleton with a joint on the way from a parent to its children."""
    if not children:
        return skeleton
    rest, parent = skeleton.rest()[:, :3, 3], int(skeleton.parent[children[0]])
    position = (1.0 - share) * rest[parent] + share * rest[children].mean(axis=0)
    return insert_joint(skeleton, name, parent, children, position)


def _append(skeleton: Skeleton, name: str, parent: str, offset: Vector) -> Skeleton:
    """Return the skeleton with a joint at an offset from its parent at rest."""
    joint = skeleton.index(parent)
    position = skeleton.rest()[joint, :3, 3] + offset
    return insert_joint(skeleton, name, joint, [], position)


def insert_joint(
    skeleton: Skeleton,
    name: str,
    parent: int,
    children: Sequence[int],
    position: Vector,
    kind: Kind = "fixed",
) -> Skeleton:
    """Return the skeleton with one more joint; a fixed one is not observed.

    Centres beyond a fixed joint are as uncertain as before, in the axes of the same
    body.

    Args:
        skeleton: The skeleton.
        name: Name of the joint, which must be new.
        parent: Its parent.
        children: Children of the parent that become its own.
        position: Where it is at rest, in metres.
        kind: Its kind, as in `Skeleton.kind`.
    """
    new = min(children, default=skeleton.n_joints)
    rest = skeleton.rest()[:, :3, 3]

    def renumber(joint: Int[Array, " item"]) -> Int[Array, " item"]:
        return np.asarray(joint + (joint >= new))

    parents, offset = renumber(skeleton.parent), skeleton.offset.copy()
    covariance, length_sd = skeleton.covariance.copy(), skeleton.length_sd.copy()
    for child in children:
        parents[child], offset[child] = new, rest[child] - position
        length_sd[child] = np.nan
        if kind != "fixed":
            covariance[child] = np.nan
    return replace(
        skeleton,
        names=(*skeleton.names[:new], name, *skeleton.names[new:]),
        parent=_insert(parents, new, parent),
        offset=_insert(offset, new, position - rest[parent]),
        kind=(*skeleton.kind[:new], kind, *skeleton.kind[new:]),
        axes=_insert(skeleton.axes, new, np.nan),
        limits=_insert(skeleton.limits, new, np.nan),
        covariance=_insert(covariance, new, np.nan),
        length_sd=_insert(length_sd, new, np.nan),
        observed=_insert(skeleton.observed, new, kind != "fixed"),
        marker_joint=renumber(skeleton.marker_joint),
        sensor_joint=renumber(skeleton.sensor_joint),
    )


def _insert(values: Array, index: int, value: Array | float | int) -> Array:
    """Return values with one more, as `np.insert` along the first axis, but fast."""
    longer = np.empty((len(values) + 1, *values.shape[1:]), dtype=values.dtype)
    longer[:index], longer[index] = values[:index], value
    longer[index + 1 :] = values[index:]
    return longer
