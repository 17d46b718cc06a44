"""The skeleton of an ASF: its unit, its joints and their kinds, axes and limits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.file import File
from marey.io.formats.asf.read import LINK_SUFFIX, ROOT, AsfBone, AsfFile
from marey.io.segment_tree import KINDS
from marey.io.text.names import make_unique
from marey.io.units_axes import METRES_PER_UNIT, metres_per_unit, rotation_to_z_up
from marey.numerics import Float
from marey.skeleton import Kind, Skeleton
from marey.take import Fact

KNOWN_LENGTH_FACTORS = (0.45, 2.54, 25.4, 0.0254)
"""Length factors that determine the unit: that of Vicon and CMU, and cm, mm and m."""


@dataclass(frozen=True, slots=True, eq=False)
class AsfSkeleton:
    """A skeleton, and the bone of the ASF that gives each joint."""

    skeleton: Skeleton
    bones: tuple[AsfBone | None, ...]
    """Per joint; None for the root and for the ends of bones."""

    R_world_bone: Float[np.ndarray, "joint 3 3"]
    """R_world_bone of each joint, in marey's world."""


def decide_unit(file: File, asf: AsfFile) -> tuple[Fact, float]:
    """Return the length unit of an ASF, and metres per number of the file.

    A number divided by the length factor is in inches: 2.54 means that the numbers are
    centimetres. Vicon's files, CMU's among them, have 0.45. A unit given by the caller
    is that of the numbers themselves.
    """
    length = asf.length_factor if asf.length_factor is not None else 1.0
    known = asf.from_marey or bool(
        np.isclose(length, KNOWN_LENGTH_FACTORS, rtol=1e-9).any()
    )
    stated = "none" if asf.length_factor is None else f"{length:g}"
    fact = file.decide_fact(
        "unit",
        stated="in" if known else None,
        assumed="in",
        note=f"ASF length {stated}: a number / {length:g} is inches",
        how="inferred",
    )
    if fact.how == "given":
        return fact, metres_per_unit(fact.value)
    return fact, METRES_PER_UNIT["in"] / length


def convert_skeleton(asf: AsfFile, scale: float, up: str) -> AsfSkeleton:
    """Return the skeleton of an ASF in metres and +Z up.

    Each bone gives the joint at its start; a bone without children also gives a fixed
    joint "<bone>_end", unless its length is zero.
    """
    R = rotation_to_z_up(up)
    links = _links(asf)
    parents = {bone.parent for bone in asf.bones.values()}
    index = {ROOT: 0}
    names, parent = [asf.root_name], [-1]
    bones: list[AsfBone | None] = [None]
    offset = [asf.root_position + asf.root_rest_position]

    def add(name: str, up: int, start: np.ndarray, bone: AsfBone | None) -> None:
        names.append(name)
        parent.append(up)
        offset.append(start)
        bones.append(bone)

    for bone in asf.bones.values():
        if bone.name in links:
            continue
        base, start = _bone_start(asf, bone, links)
        index[bone.name] = len(names)
        add(bone.name, index[base], start, bone)
        if bone.name not in parents and bone.vector.any():
            add(f"{bone.name}_end", index[bone.name], bone.vector, None)
    R_world_bone = np.array([R @ bone.R_world_bone if bone else R for bone in bones])
    kind, axes, limits = _joint_dof(bones, R_world_bone, from_marey=asf.from_marey)
    skeleton = Skeleton(
        names=make_unique(names),
        parent=np.array(parent),
        offset=scale * np.array(offset) @ R.T,
        kind=kind,
        axes=axes,
        limits=limits,
    )
    return AsfSkeleton(skeleton, tuple(bones), R_world_bone)


def _links(asf: AsfFile) -> set[str]:
    """Return the bones that the writer of marey added to bridge a gap."""
    if not asf.from_marey:
        return set()
    return {
        name
        for name, bone in asf.bones.items()
        if name.endswith(LINK_SUFFIX)
        and not bone.dof
        and name.removesuffix(LINK_SUFFIX) in asf.bones
    }


def _bone_start(asf: AsfFile, bone: AsfBone, links: set[str]) -> tuple[str, np.ndarray]:
    """Return the bone that carries this one, and where this one starts on it."""
    position = np.zeros(3)
    name = bone.parent
    while name in links:
        position = position + asf.bones[name].vector
        name = asf.bones[name].parent
    return name, position if name == ROOT else position + asf.bones[name].vector


def _joint_dof(
    bones: Sequence[AsfBone | None], R_world_bone: np.ndarray, *, from_marey: bool
) -> tuple[tuple[Kind, ...], np.ndarray, np.ndarray]:
    """Return kind, axes and limits of every joint."""
    kind: list[Kind] = ["root"]
    axes = np.full((len(bones), 2, 3), np.nan)
    limits = np.full((len(bones), 3, 2), np.nan)
    for joint, bone in enumerate(bones[1:], start=1):
        order = _rotations(bone)
        kind.append(KINDS[len(order)])
        is_ball = len(order) == len(KINDS) - 1
        if bone is None or not order or (is_ball and not bone.limits):
            continue
        if is_ball:
            order = _swing_and_twist_axes(bone, from_marey=from_marey)
        columns = ["xyz".index(bone.dof[i][1]) for i in order[:2]]
        axes[joint, : len(columns)] = R_world_bone[joint][:, columns].T
        if bone.limits:
            limits[joint, : len(order)] = [bone.limits[i] for i in order]
    limits[~np.isfinite(limits)] = np.nan
    return tuple(kind), axes, limits


def _rotations(bone: AsfBone | None) -> list[int]:
    """Return the rotations among a bone's degrees of freedom, about moving axes.

    The order is reversed then.
    """
    dof = bone.dof if bone else ()
    return [i for i, name in enumerate(dof) if name[0] == "r"][::-1]


def _swing_and_twist_axes(bone: AsfBone, *, from_marey: bool) -> list[int]:
    """Return the degrees of freedom in the order swing, swing, twist.

    The twist is about the axis nearest to the bone; files of marey have it last.
    """
    along = np.abs(bone.R_world_bone.T @ bone.vector)
    twist = 2 if from_marey or not along.any() else int(np.argmax(along))
    axes = [f"r{'xyz'[(twist + k) % 3]}" for k in (1, 2, 0)]
    return [bone.dof.index(axis) for axis in axes]
