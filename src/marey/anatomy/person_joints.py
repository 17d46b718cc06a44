"""Which joints of a skeleton are those of a person, whatever program named them."""

from collections.abc import Mapping

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.skeleton import Skeleton
from marey.tree import ancestors_of

ABOVE_TRUNK = (
    *(vrm.NECK, vrm.HEAD),
    *vrm.both_sides(vrm.SHOULDER),
    *vrm.both_sides(vrm.UPPER_ARM),
)
"""Parts that the joints of the trunk carry."""

TRUNK_PARTS = (vrm.SPINE, vrm.CHEST, vrm.UPPER_CHEST)


def recognise_person(skeleton: Skeleton) -> Mapping[int, str]:
    """Return the anatomical name of each joint of a person; none for other figures.

    The joints between the hips and the neck or the arms are the trunk, and have its
    names from the hips upward; so are joints of these names that carry nothing.
    """
    part = recognise_joints(skeleton.names)
    if not part:
        return {}
    trunk = zip(_trunk_joints(skeleton, part), TRUNK_PARTS, strict=False)
    return {**part, **dict(trunk)}


def _trunk_joints(skeleton: Skeleton, part: Mapping[int, str]) -> list[int]:
    """Return the joints between the hips and what the trunk carries, upward."""
    hips = min((j for j, name in part.items() if name == vrm.HIPS), default=0)
    found = {
        joint
        for joint, name in enumerate(skeleton.names)
        if vrm.without_subject(name) in TRUNK_PARTS
    }
    for joint in (j for j, name in part.items() if name in ABOVE_TRUNK):
        above = ancestors_of(skeleton.parent, joint)[1:]
        found |= {one for one in above if one > hips}
    return sorted(found - set(part))
