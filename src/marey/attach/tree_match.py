"""Two skeletons matched without names: by tree, lengths and directions of their bones.

The rest pose of the given skeleton may face anywhere. The match is searched for in
every rotation of a cube, and the best is improved as in iterative closest points:
match, align, match again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.thresholds import FEW, MIN_POSE_POINTS, MOST
from marey.skeleton import Skeleton

MAX_ITERATIONS = 10
"""Most rounds of matching and aligning."""

MIN_LIKENESS = 0.5
"""Likeness that two skeletons of one subject exceed: more than half of all bones are
found. Raised, fewer rest poses and proportions are accepted. Chosen by hand: people in
files of three programs reach 0.68 or more, a person and a dog 0.48."""

ROUNDING = 1e-9
"""Difference of two likenesses that counts as rounding."""


@dataclass(frozen=True, slots=True)
class TreeMatch:
    """Joints of a free skeleton with those of a given one, and how alike they are."""

    joints: Mapping[int, int]
    """Joint of the given skeleton by joint of the free one."""

    likeness: float
    """Mean over the free bones of how alike they and their counterparts are, weighted
    by their lengths: 1 for equal skeletons, 0 for bones without a counterpart."""

    rival: float
    """Likeness of the best match in which a joint of another branch corresponds, as
    left for right; 0 if there is none."""

    @property
    def is_like(self) -> bool:
        """Whether the skeletons may be of one subject."""
        return self.likeness > MIN_LIKENESS

    @property
    def is_ambiguous(self) -> bool:
        """Whether the rival is as good but for a few of what the best match lacks."""
        margin = FEW * (1.0 - self.likeness) + ROUNDING
        return self.rival > self.likeness - margin


def match_trees(given: Skeleton, free: Skeleton) -> TreeMatch:
    """Return the joints of two skeletons that correspond by tree and bones.

    Args:
        given: Skeleton of any names, axes, size and rest pose. It may have more joints.
        free: Skeleton whose joints are looked for.
    """
    from scipy.spatial.transform import Rotation  # slow to import

    trees = _Tree(given), _Tree(free)
    scale = trees[1].size / trees[0].size if trees[0].size else 1.0
    starts = [
        _match(*trees, scale * R)[0] for R in Rotation.create_group("O").as_matrix()
    ]
    distinct = {tuple(start.items()): start for start in starts}
    found = [_align(*trees, start) for start in distinct.values()]
    found.sort(key=lambda pair: -pair[1])
    joints, likeness = found[0]
    joints = {i: j for i, j in joints.items() if free.kind[i] != "fixed"}
    below = trees[0].is_below
    is_related = below | below.T
    rivals = [
        other_likeness
        for other, other_likeness in found
        if not all(is_related[j, other.get(i, j)] for i, j in joints.items())
    ]
    return TreeMatch(joints, likeness, max(rivals, default=0.0))


class _Tree:
    """Joints of a skeleton at rest and the relations between them.

    Joints that nothing observes, on the way to observed ones, are left out: they are
    where usual people have them.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        self.parent = _parents_that_count(skeleton)
        self.position = skeleton.rest()[:, :3, 3]
        above = self.position[np.maximum(self.parent, 0)]
        self.length = np.linalg.norm(self.position - above, axis=-1)
        self.length[self.parent < 0] = 0.0
        self.is_moving = np.array([kind != "fixed" for kind in skeleton.kind])
        self.is_end = skeleton.is_end

    @cached_property
    def is_below(self) -> Bool[Array, "joint joint"]:
        """Whether the second joint is the first or one of its descendants."""
        below = np.eye(len(self.parent), dtype=bool)
        for joint in np.flatnonzero(self.parent >= 0)[::-1].tolist():
            below[self.parent[joint]] |= below[joint]
        return below

    @cached_property
    def n_between(self) -> Int[Array, "joint joint"]:
        """Number of moving bones from a joint on before one of its descendants."""
        counts = self.is_moving & (self.length > 0.0)
        depth = np.zeros(len(self.parent), dtype=np.int64)
        for joint in np.flatnonzero(self.parent >= 0).tolist():
            depth[joint] = depth[self.parent[joint]] + counts[self.parent[joint]]
        return np.asarray(np.maximum(depth[None, :] - depth[:, None], 0))

    @cached_property
    def children(self) -> list[list[int]]:
        """Children of each joint; one in the same place is replaced by its children."""
        found: list[list[int]] = [[] for _ in self.parent]
        for joint in np.flatnonzero(self.parent >= 0)[::-1].tolist():
            is_same = self.length[joint] == 0.0 and found[joint]
            found[self.parent[joint]] += found[joint] if is_same else [joint]
        return found

    @cached_property
    def size(self) -> float:
        """Length of the longest path between two ends, in metres."""
        reach, longest = np.zeros(len(self.parent)), 0.0
        for joint in np.flatnonzero(self.parent >= 0)[::-1].tolist():
            above, path = self.parent[joint], reach[joint] + self.length[joint]
            longest = max(longest, float(reach[above] + path))
            reach[above] = max(reach[above], path)
        return longest


def _parents_that_count(skeleton: Skeleton) -> Int[Array, " joint"]:
    """Return the parent of each joint, -1 for the root and for joints left out."""
    has_observed = skeleton.observed.copy()
    for joint in range(skeleton.n_joints - 1, 0, -1):
        has_observed[skeleton.parent[joint]] |= has_observed[joint]
    left_out = has_observed & ~skeleton.observed
    parent = skeleton.parent.copy()
    for joint in range(1, skeleton.n_joints):
        if left_out[parent[joint]]:
            parent[joint] = parent[parent[joint]]
    return np.where(left_out, -1, parent)


def _align(
    given: _Tree, free: _Tree, joints: dict[int, int]
) -> tuple[dict[int, int], float]:
    """Return the match that a first one leads to, and its likeness.

    The given tree is aligned with the free one (Kabsch, and the ratio of spreads) by
    the joints that correspond, and matched again, until the same joints correspond.
    """
    likeness = 0.0
    for _ in range(MAX_ITERATIONS):
        a, b = given.position[list(joints.values())], free.position[list(joints)]
        spread = [float(np.linalg.norm(p - p.mean(axis=0))) for p in (a, b)]
        R = geometry.kabsch(a, b)[:3, :3] if len(a) >= MIN_POSE_POINTS else np.eye(3)
        if not np.isfinite(R).all() or not spread[0]:
            R, spread = np.eye(3), [given.size or 1.0, free.size]
        before = joints
        joints, likeness = _match(given, free, spread[1] / spread[0] * R)
        if joints == before:
            break
    return joints, likeness


def _match(
    given: _Tree, free: _Tree, transform: Float[Array, "3 3"]
) -> tuple[dict[int, int], float]:
    r"""Return the joints that correspond, and the likeness of the two trees.

    Dynamic programming from leaves to roots. If joints :math:`i, j` correspond, each
    child :math:`c` of :math:`i` may correspond to any descendant :math:`d` of
    :math:`j`, children in different branches (an assignment problem),

    .. math:: S_{ij} = \max_\pi \sum_c \max_{d \in \pi(c)} w_c\, s(x_c - x_i, y_d - y_j)
              + S_{cd}, \qquad s(a, b) = \frac{\min(|a|, |b|)}{\max(|a|, |b|)}
              \frac{1 + \cos\angle(a, b)}{2}

    Args:
        given: The tree whose joints are looked up.
        free: The tree whose joints are looked for, with weights w by length.
        transform: Rotation and scale of the given tree.
    """
    position = given.position @ transform.T
    step = position[None] - position[np.maximum(given.parent, 0), None]
    weight = free.length / max(free.length.sum(), np.finfo(float).tiny)
    n, m = len(free.parent), len(given.parent)
    score, value = np.zeros((n, m)), np.zeros((n, m))
    target = np.zeros((n, m), dtype=np.int64)
    chosen: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i in range(n - 1, -1, -1):
        for j in range(m) if free.children[i] else ():
            pairs = _assign(value, free.children[i], given.children[j])
            score[i, j], chosen[i, j] = sum(value[pair] for pair in pairs), pairs
        bone = free.position[i] - free.position[max(int(free.parent[i]), 0)]
        likeness = MOST**given.n_between * _bone_likeness(bone, step)
        can_be = given.is_below & ~(given.is_end & free.is_moving[i])
        gain = np.where(can_be, weight[i] * likeness + score[i], 0.0)
        target[i], value[i] = gain.argmax(axis=1), gain.max(axis=1)
    root = int(score[0].argmax())
    joints, stack = {0: root}, [(0, root)]
    while stack:
        for c, branch in chosen.get(stack.pop(), ()):
            joints[c] = int(target[c, branch])
            stack.append((c, joints[c]))
    return dict(sorted(joints.items())), float(score[0, root])


def _assign(
    value: Float[Array, "joint branch"], joints: list[int], branches: list[int]
) -> list[tuple[int, int]]:
    """Return the best assignment of joints to branches, as pairs."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    if not branches:
        return []
    if len(joints) == len(branches) == 1:
        pairs = [(joints[0], branches[0])]
    else:
        table = value[joints][:, branches]
        rows, columns = linear_sum_assignment(table, maximize=True)
        pairs = [(joints[r], branches[c]) for r, c in zip(rows, columns, strict=True)]
    return [pair for pair in pairs if value[pair] > 0.0]


def _bone_likeness(
    bone: Float[Array, " 3"], others: Float[Array, "*shape 3"]
) -> Float[Array, "*shape"]:
    """Return how alike bones are in length and direction, from 0 to 1."""
    length, lengths = np.linalg.norm(bone), np.linalg.norm(others, axis=-1)
    product = length * lengths
    tiny = np.finfo(float).tiny
    ratio = np.minimum(length, lengths) / np.maximum(np.maximum(length, lengths), tiny)
    cosine = others @ bone / np.maximum(product, tiny)
    return np.asarray(ratio * 0.5 * (1.0 + cosine))
