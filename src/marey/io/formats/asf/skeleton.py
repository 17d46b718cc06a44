"""From an ASF to a skeleton: joints at the bones' starts, kinds, axes and limits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io.contract import File
from marey.io.formats.asf.read import LINK, ROOT, Asf, Bone
from marey.io.text.lines import distinct
from marey.io.units_axes import metres, turn_upright
from marey.skeleton import Kind, Skeleton
from marey.take import Fact

INCH = 0.0254
KINDS: tuple[Kind, ...] = ("fixed", "hinge", "universal", "ball")
KNOWN_LENGTHS = (0.45, 2.54, 25.4, 0.0254)
"""Length factors that tell the unit: that of Vicon and CMU, and cm, mm and m."""


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A skeleton, and which bone of the ASF stands behind each joint."""

    skeleton: Skeleton
    bones: tuple[Bone | None, ...]
    """Per joint; None for the root and for the ends of bones."""

    turn: Float[np.ndarray, "joint 3 3"]
    """R_world_bone of each joint, in marey's world."""


def settle_unit(file: File, asf: Asf) -> tuple[Fact, float]:
    """Return the length unit of an ASF, and metres per number of the file.

    A number divided by the length factor is in inches: 2.54 means that the numbers are
    centimetres. Vicon's files, CMU's among them, have 0.45. A unit given by the caller
    is that of the numbers themselves.
    """
    length = asf.length if asf.length is not None else 1.0
    known = asf.own or bool(np.isclose(length, KNOWN_LENGTHS, rtol=1e-9).any())
    stated = "none" if asf.length is None else f"{length:g}"
    fact = file.settle(
        "unit",
        stated="in" if known else None,
        assumed="in",
        note=f"ASF length {stated}: a number / {length:g} is inches",
        how="inferred",
    )
    given = fact.how == "given"
    return fact, metres(fact.value) if given else INCH / length


def build_figure(asf: Asf, scale: float, up: str) -> Figure:
    """Return the figure of an ASF in metres and +Z up.

    Each bone gives the joint at its start; a bone without children also gives a fixed
    joint "<bone>_end", unless its length is zero.
    """
    R = turn_upright(up)
    links = _links(asf)
    parents = {bone.parent for bone in asf.bones.values()}
    names, parent, offset = [asf.root_name], [-1], [asf.root_place + asf.rest]
    bones: list[Bone | None] = [None]
    index = {ROOT: 0}
    for bone in asf.bones.values():
        if bone.name in links:
            continue
        base, start = _start(asf, bone, links)
        index[bone.name] = len(names)
        names.append(bone.name)
        parent.append(index[base])
        offset.append(start)
        bones.append(bone)
        if bone.name not in parents and bone.vector.any():
            names.append(f"{bone.name}_end")
            parent.append(index[bone.name])
            offset.append(bone.vector)
            bones.append(None)
    turn = np.array([R @ bone.R_world_bone if bone else R for bone in bones])
    kind, axes, limits = _freedom(bones, turn, R, own=asf.own)
    skeleton = Skeleton(
        names=distinct(names),
        parent=np.array(parent),
        offset=scale * np.array(offset) @ R.T,
        kind=kind,
        axes=axes,
        limits=limits,
    )
    return Figure(skeleton, tuple(bones), turn)


def _links(asf: Asf) -> set[str]:
    """Return the bones that our writer put in to bridge a gap."""
    if not asf.own:
        return set()
    return {
        name
        for name, bone in asf.bones.items()
        if name.endswith(LINK) and not bone.dof and name.removesuffix(LINK) in asf.bones
    }


def _start(asf: Asf, bone: Bone, links: set[str]) -> tuple[str, np.ndarray]:
    """Return the bone that carries this one, and where this one starts on it."""
    place = np.zeros(3)
    name = bone.parent
    while name in links:
        place = place + asf.bones[name].vector
        name = asf.bones[name].parent
    return name, place if name == ROOT else place + asf.bones[name].vector


def _freedom(
    bones: Sequence[Bone | None], turn: np.ndarray, R: np.ndarray, *, own: bool
) -> tuple[tuple[Kind, ...], np.ndarray, np.ndarray]:
    """Return kind, axes and limits of every joint."""
    kind: list[Kind] = ["root"]
    axes = np.full((len(bones), 2, 3), np.nan)
    limits = np.full((len(bones), 3, 2), np.nan)
    for joint, bone in enumerate(bones[1:], start=1):
        turns = [i for i, dof in enumerate(bone.dof) if dof[0] == "r"] if bone else []
        kind.append(KINDS[len(turns)])
        if bone is None or not turns:
            continue
        # About moving axes the order is the other way round.
        order = turns[::-1]
        if len(turns) == 3:
            if not bone.limits:
                continue
            order = _swings_and_twist(bone, own=own)
        for slot, i in enumerate(order):
            if slot < 2:
                axes[joint, slot] = turn[joint][:, "xyz".index(bone.dof[i][1])]
            if bone.limits:
                limits[joint, slot] = bone.limits[i]
    limits[~np.isfinite(limits)] = np.nan
    return tuple(kind), axes, limits


def _swings_and_twist(bone: Bone, *, own: bool) -> list[int]:
    """Return the freedoms as swing, swing, twist.

    The twist is about the axis nearest to the bone; our own files have it last.
    """
    along = np.abs(bone.R_world_bone.T @ bone.vector)
    twist = 2 if own or not along.any() else int(np.argmax(along))
    axes = [f"r{'xyz'[(twist + k) % 3]}" for k in (1, 2, 0)]
    return [bone.dof.index(axis) for axis in axes]
