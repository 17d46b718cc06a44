"""The joints of a person that a recording does not observe, placed by anatomy.

They move with the bodies that carry them, so that no pose changes and no rotation is
invented; only toes bend (see `toes`). `Skeleton.observed`
is False for them, and the lengths of bones that begin or end there have no standard
deviation.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.toes import hinge_toes, toe_rotations
from marey.motion import Motion
from marey.numerics import Array, Float, Int
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
    above = ancestors_of(skeleton.parent, joint)[1:]
    return next((one for one in above if skeleton.observed[one]), -1)


def complete_motion(motion: Motion, skeleton: Skeleton) -> Motion:
    """Return the motion of a completed skeleton; of added joints only toes rotate.

    How far the others would is not known. Toes are hinges, as those of `bend_toes`.
    """
    shape = motion.n_frames, skeleton.n_joints
    wxyz, angle_sd = np.zeros((*shape, 4)), np.full((*shape, 3), np.nan)
    wxyz[..., 0] = 1.0
    joints = [skeleton.index(name) for name in motion.skeleton.names]
    wxyz[:, joints], angle_sd[:, joints] = motion.wxyz, motion.angle_sd
    for toes, rotation in toe_rotations(motion, skeleton):
        wxyz[:, toes] = rotation
    hinged = hinge_toes(skeleton)
    return replace(motion, skeleton=hinged, wxyz=wxyz, angle_sd=angle_sd)


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
