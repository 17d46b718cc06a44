"""Joints of a given skeleton matched with those of another skeleton of the subject."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.whole_person import complete_person
from marey.attach.tree_match import TreeMatch, match_trees
from marey.numerics.thresholds import FEW
from marey.skeleton import Skeleton
from marey.tree import ancestors_of, children_of


@dataclass(frozen=True, slots=True)
class JointMatch:
    """A joint of the free skeleton, and the one of the given skeleton like it."""

    free: int
    """Joint of the free skeleton."""

    joint: int
    """The given skeleton's joint at the same place."""

    body: int
    """The given skeleton's joint whose bone moves as the free one: the last before the
    next part. A forearm of two bones, of which one flexes and one twists, moves as its
    second."""

    weight: float = 1.0
    """How well the places of both joints agree: 1 for joints between long bones, little
    for trunk and toes, which every skeleton has at another place, 0 for clavicles."""


TRUNK_WEIGHT, CLAVICLE_WEIGHT = FEW, 0.0


@dataclass(frozen=True, slots=True)
class SkeletonMatch:
    """Joints of two skeletons that correspond, and how they were found."""

    joints: tuple[JointMatch, ...]
    """The joints, parents first; none if the skeletons are not alike."""

    tree: TreeMatch | None = None
    """The comparison of trees and bones; None where names were enough."""


@dataclass(frozen=True, slots=True)
class NamedSkeleton:
    """A skeleton whose joints have anatomical names."""

    skeleton: Skeleton
    names: Mapping[int, str]
    """Name of each joint that has one."""

    @property
    def index(self) -> dict[str, int]:
        """The joint of each name."""
        return {name: joint for joint, name in self.names.items()}

    def path(self, start: str, end: str) -> list[int]:
        """Return the joints after one place of the trunk until another.

        The chest is the joint that moves both arms, and the neck stands for the head
        where there is none. Without one of the places there are no joints.
        """
        index = self.index
        head = index.get(vrm.HEAD, index.get(vrm.NECK, -1))
        known = {**index, vrm.CHEST: _chest(self.skeleton, index), vrm.HEAD: head}
        ends = known.get(start, -1), known.get(end, -1)
        return path_between(self.skeleton, *ends)[1:] if min(ends) >= 0 else []


def match_joints(given: Skeleton, free: Skeleton) -> tuple[JointMatch, ...]:
    """Return the joints of two skeletons that correspond; see `match_skeletons`."""
    return match_skeletons(given, free).joints


def match_skeletons(given: Skeleton, free: Skeleton) -> SkeletonMatch:
    """Return the joints of two skeletons that correspond, parents first.

    People are matched by the names of their limbs in any known scheme
    (`recognise_joints`); bones of trunk and neck in their order between hips, shoulders
    and head. Other skeletons are matched by equal names, and those of unknown names by
    tree, lengths and directions of their bones (`match_trees`). There may be none.
    """
    people = [
        NamedSkeleton(skeleton, recognise_joints(skeleton.names))
        for skeleton in (given, free)
    ]
    if all(person.names for person in people):
        return SkeletonMatch(_match_people(*people))
    by_name = _match_names(given, free)
    n_moving = sum(kind != "fixed" for kind in free.kind)
    if 2 * len(by_name) > n_moving:
        return SkeletonMatch(by_name)
    tree = _match_whole(given, free)
    return SkeletonMatch(_match_bones(tree, *people), tree)


def _match_whole(given: Skeleton, free: Skeleton) -> TreeMatch:
    """Return the match by tree and bones; a person has toes, which show the front."""
    whole = complete_person(free)
    tree = match_trees(given, whole)
    joints = {free.index(whole.names[i]): j for i, j in tree.joints.items()}
    return replace(tree, joints=joints)


def _match_bones(
    tree: TreeMatch, given: NamedSkeleton, free: NamedSkeleton
) -> tuple[JointMatch, ...]:
    """Return the joints of skeletons that are alike.

    If one of them is a person by its names, the other is one as well.
    """
    if not tree.is_like:
        return ()
    found = {i: JointMatch(i, j, j) for i, j in tree.joints.items()}
    pairs = tree.joints.items()
    if free.names:
        names = {j: free.names[i] for i, j in pairs if i in free.names}
        given = replace(given, names=names)
    elif given.names:
        names = {i: given.names[j] for i, j in pairs if j in given.names}
        free = replace(free, names=names)
    if given.names or free.names:
        people = _match_people(given, free)
        found |= {match.free: match for match in people}
    return tuple(found[i] for i in sorted(found))


def _match_names(given: Skeleton, free: Skeleton) -> tuple[JointMatch, ...]:
    """Return the moving joints of equal names."""
    joint_of = {vrm.without_subject(name): i for i, name in enumerate(given.names)}
    return tuple(
        JointMatch(i, joint_of[bare], joint_of[bare])
        for i, name in enumerate(free.names)
        if (bare := vrm.without_subject(name)) in joint_of and free.kind[i] != "fixed"
    )


def _match_people(given: NamedSkeleton, free: NamedSkeleton) -> tuple[JointMatch, ...]:
    """Return the matches of two people: limbs by name, trunk and neck by order."""
    index = given.index
    joints = {i: index[name] for i, name in free.names.items() if name in index}
    for ends in ((vrm.HIPS, vrm.CHEST), (vrm.CHEST, vrm.HEAD)):
        joints |= _match_in_order(given.path(*ends), free.path(*ends))
    matches = []
    for i, j in sorted(joints.items()):
        name = free.names.get(i, "")
        body = _last_bone(given.skeleton, j, _next_part(name), index)
        matches.append(JointMatch(i, j, body, _weight(name)))
    return tuple(matches)


def _weight(name: str) -> float:
    part = vrm.without_side(name)
    if part == vrm.SHOULDER:
        return CLAVICLE_WEIGHT
    is_between_long_bones = part in (*vrm.ARM, *vrm.LEG) and part != vrm.TOES
    return 1.0 if is_between_long_bones else TRUNK_WEIGHT


def _next_part(name: str) -> str:
    """Return the next part outward of the same limb; "" at its end."""
    part = vrm.without_side(name)
    for limb in (vrm.ARM, vrm.LEG):
        if part in limb[:-1]:
            return vrm.side_of(name) + limb[limb.index(part) + 1]
    return ""


def _last_bone(
    skeleton: Skeleton, joint: int, next_part: str, index: Mapping[str, int]
) -> int:
    """Return the last moving joint from a joint on before the next part, or itself."""
    if next_part not in index:
        return joint
    between = path_between(skeleton, joint, index[next_part])[:-1]
    moving = [i for i in between if skeleton.kind[i] != "fixed"]
    return moving[-1] if moving else joint


def _chest(skeleton: Skeleton, index: Mapping[str, int]) -> int:
    """Return the joint that moves both arms, -1 without two arms."""
    arms = [index.get(name, -1) for name in vrm.both_sides(vrm.UPPER_ARM)]
    if min(arms) < 0:
        return -1
    left, right = (ancestors_of(skeleton.parent, arm) for arm in arms)
    return next(i for i in left[1:] if i in right)


def _match_in_order(given: Sequence[int], free: Sequence[int]) -> dict[int, int]:
    """Return joints of two chains by their order; the last ones correspond."""
    if not given:
        return {}
    shares = [(k + 1) / len(free) for k in range(len(free))]
    places = [max(round(share * len(given)), 1) - 1 for share in shares]
    return {i: given[k] for i, k in zip(free, places, strict=True)}


def path_between(skeleton: Skeleton, ancestor: int, joint: int) -> list[int]:
    """Return the joints from an ancestor to a joint, both included; else empty."""
    chain = ancestors_of(skeleton.parent, joint)
    return chain[: chain.index(ancestor) + 1][::-1] if ancestor in chain else []


def nearest_match(
    skeleton: Skeleton, matched: Mapping[int, JointMatch], joint: int
) -> JointMatch:
    """Return the match of a joint of the free skeleton, or of its nearest ancestor.

    If there is none, the first match.
    """
    for ancestor in ancestors_of(skeleton.parent, joint):
        if ancestor in matched:
            return matched[ancestor]
    return matched[min(matched)]


def matched_below(
    skeleton: Skeleton, matched: Mapping[int, JointMatch], joint: int
) -> list[int]:
    """Return the nearest matched descendants of a joint whose places count."""
    found = []
    stack = children_of(skeleton.parent, joint)
    while stack:
        j = stack.pop()
        if j in matched and matched[j].weight > 0.0:
            found.append(j)
        else:
            stack += children_of(skeleton.parent, j)
    return sorted(found)
