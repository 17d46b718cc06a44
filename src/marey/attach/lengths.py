"""Bones of a given skeleton with the lengths that a recording shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from marey.anatomy import names as vrm
from marey.attach.bones import BoneComparison, strip
from marey.attach.match import JointMatch, path_between
from marey.numerics import Array, Float
from marey.skeleton import Skeleton

Factors = Float[Array, " joint"]
Parts = Mapping[str, JointMatch]

ROUNDING = 1e-9
"""Share of a bone in a distance that counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class AdaptedSkeleton:
    """A skeleton with bones of other lengths."""

    skeleton: Skeleton
    """Without markers and sensors; bones keep their directions."""

    kept: tuple[str, ...]
    """Joints at the ends of bones that the recording does not determine: these are
    scaled as the other bones are on average."""


def adapt_lengths(
    given: Skeleton,
    free: Skeleton,
    matches: Sequence[JointMatch],
    bones: BoneComparison,
) -> AdaptedSkeleton:
    """Return the given skeleton with the lengths of a recording.

    Bones between joints whose places correspond get their lengths, left and right the
    mean of both. Every skeleton has the joints of the trunk elsewhere; its bones follow
    from joints that have one place: pelvis and clavicles from the widths of hips and
    shoulders, the spine from the distance of their middles, and the neck from that of
    shoulders and head if the head rotates at one joint.

    Args:
        given: Skeleton that is adapted.
        free: Skeleton of the recording, at rest in a T-pose if it is a person.
        matches: Joints of both that correspond.
        bones: Their bones.
    """
    parts = {free.names[match.free]: match for match in matches}
    factor = np.full(given.n_joints, np.nan)
    for path, ratio in zip(bones.paths, _mean_ratios(bones, parts), strict=True):
        factor[list(path)] = ratio
    for part in (vrm.UPPER_LEG, vrm.UPPER_ARM):
        if set(vrm.both_sides(part)) <= set(parts):
            _fit_width(factor, given, free, [parts[n] for n in vrm.both_sides(part)])
    _fit_trunk(factor, given, free, parts)
    is_kept = np.isnan(factor) & (given.lengths > 0.0)
    factor[np.isnan(factor)] = bones.scale
    adapted = replace(strip(given), offset=factor[:, None] * given.offset)
    kept = tuple(given.names[joint] for joint in np.flatnonzero(is_kept))
    return AdaptedSkeleton(adapted, kept)


def _mean_ratios(bones: BoneComparison, parts: Parts) -> Float[Array, " bone"]:
    """Return found over given lengths, the weighted mean of both sides."""
    ratio, weight = bones.found_m / bones.given_m, (bones.given_m / bones.sd_m) ** 2
    part_of = {match.joint: name for name, match in parts.items()}
    bone_of = {part_of[path[-1]]: k for k, path in enumerate(bones.paths)}
    other = [bone_of.get(vrm.mirror_name(name), k) for name, k in bone_of.items()]
    return np.asarray(
        (weight * ratio + weight[other] * ratio[other]) / (weight + weight[other])
    )


def _fit_width(
    factor: Factors, given: Skeleton, free: Skeleton, sides: Sequence[JointMatch]
) -> None:
    """Scale the bones between two joints so that these have the distance of the free.

    Bones that have a factor keep it.
    """
    joints = [match.joint for match in sides]
    widths = [
        np.linalg.norm(np.diff(one.rest()[numbers, :3, 3], axis=0))
        for one, numbers in ((free, [m.free for m in sides]), (given, joints))
    ]
    between = _paths_from_junction(given, joints)
    open_bones = [j for path in between for j in path if np.isnan(factor[j])]
    if widths[1] > 0.0:
        factor[open_bones] = widths[0] / widths[1]


def _fit_trunk(factor: Factors, given: Skeleton, free: Skeleton, parts: Parts) -> None:
    """Scale spine and neck by the middles of hips and shoulders and the head."""
    pairs = [vrm.both_sides(part) for part in (vrm.UPPER_LEG, vrm.UPPER_ARM)]
    ends = [[parts[n] for n in pair] for pair in pairs if set(pair) <= set(parts)]
    if len(ends) < len(pairs):
        return
    places = [([m.free for m in end], [m.joint for m in end]) for end in ends]
    if vrm.HEAD in parts:
        head = parts[vrm.HEAD]
        (free_arm, _), (arm, _) = places[-1]
        necks = _necks(free, head.free, free_arm), _necks(given, head.joint, arm)
        if all(len(neck) == 1 for neck in necks):
            places.append(necks)
    rest = free.rest()[:, :3, 3]
    for (free_start, start), (free_end, end) in pairwise(places):
        step = rest[free_end].mean(axis=0) - rest[free_start].mean(axis=0)
        _fit_distance(factor, given, start, end, float(np.linalg.norm(step)))


def _necks(skeleton: Skeleton, head: int, arm: int) -> list[int]:
    """Return the joints between shoulders and head at which the head rotates."""
    trunk = set(_path_from_root(skeleton, arm))
    path = [joint for joint in _path_from_root(skeleton, head) if joint not in trunk]
    return [joint for joint in path if skeleton.kind[joint] != "fixed"]


def _fit_distance(
    factor: Factors,
    given: Skeleton,
    start: Sequence[int],
    end: Sequence[int],
    length: float,
) -> None:
    r"""Scale the open bones from one set of joints to another.

    Their middles get the distance :math:`L`: with the sum :math:`p` of the open bones
    and the sum :math:`c` of the others, the factor is the larger root of

    .. math:: |f p + c|^2 = L^2
    """
    paths = [_path_from_root(given, joint) for joint in (*start, *end)]
    share = np.zeros(given.n_joints)
    for path, n in zip(
        paths, [-len(start)] * len(start) + [len(end)] * len(end), strict=True
    ):
        share[path] += 1.0 / n
    is_open = np.isnan(factor) & (np.abs(share) > ROUNDING)
    known = np.where(np.isnan(factor), 0.0, factor * share)
    p, c = (share * is_open) @ given.offset, known @ given.offset
    half, square = p @ c, p @ p
    discriminant = half**2 - square * (c @ c - length**2)
    if square > 0.0 and discriminant >= 0.0:
        factor[is_open] = (np.sqrt(discriminant) - half) / square


def _path_from_root(skeleton: Skeleton, joint: int) -> list[int]:
    """Return the joints from below the root to a joint."""
    return path_between(skeleton, 0, joint)[1:]


def _paths_from_junction(skeleton: Skeleton, joints: Sequence[int]) -> list[list[int]]:
    """Return the bones to each joint from where their paths part."""
    paths = [_path_from_root(skeleton, joint) for joint in joints]
    common = set(paths[0]).intersection(*paths[1:])
    return [[joint for joint in path if joint not in common] for path in paths]
