"""Bodies that hold together for a part of the take: a grip, clasped hands."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.temporary.windows import Windows, longest_run, windows_of
from marey.numerics import geometry
from marey.tree import Loop, Tree

Array = np.ndarray

# Seconds of a block and blocks of a window.
BLOCK, BLOCKS = 0.25, 4

# A gap within this many times the tree's median residual is none; and none below so
# many metres is one.
LOOSE, CLOSEST = 1.5, 2e-3

# How many times the largest gap two bodies must move together before they hold.
MOVED = 3.0

# Arm, in metres, at which a turn counts like a shift.
ARM = 0.1

# Times the distance of most tree joints from their bodies within which a link is; half
# of it in one tree, since the limbs of one body often move alike.
REACH = 1.0

# Steps in one tree from which two bodies can hold each other.
STEPS = 4

# Joints between them that must have moved, or else the tree holds them together.
FREE_JOINTS = 2

# Share of a link's time for which another may hold the same two subjects.
OVERLAP = 0.5

# Seconds that a link must last.
SHORTEST = 0.5


def find_links(bodies: Bodies, joints: JointFits, tree: Tree) -> tuple[Loop, ...]:
    """Return which bodies that the tree does not join held together, and when.

    Two bodies hold when they keep their distance and turn while they move through the
    world together; where the tree leads from one to the other, joints between them
    must have moved meanwhile. Seconds of a hold are then traced frame by frame, both
    ways, to where the gap opens. Two that merely rest side by side do not hold, nor
    does a neighbour of the one that does.

    OBrien2000 (Sec. 6) names links that change over time as work to be done.

    Args:
        bodies: The bodies in one take.
        joints: Candidate joints of all pairs.
        tree: How the bodies hang together.
    """
    used = tree.edge[tree.edge >= 0]
    block = max(round(BLOCK * bodies.take.rate), 2)
    if len(used) == 0 or len(bodies.T_world_body) < BLOCKS * block:
        return ()
    scale = _Scale.of(joints, tree)
    ways = _ways(joints, tree)
    holds: list[_Hold] = []
    for part in windows_of(
        bodies.T_world_body, joints.pair, block=block, blocks=BLOCKS
    ):
        for row, window in _held(part, joints, scale, ways):
            start = int(part.first[window])
            core = slice(start, start + BLOCKS * block)
            if not any(h.row == row and h.covers(core) for h in holds):
                holds.append(_traced(bodies, joints, row, core))
    shortest = SHORTEST * bodies.take.rate
    clear = [h for h in holds if h.stop - h.start >= shortest]
    chosen = _best(clear, joints, tree)
    return tuple(_loop(hold, bodies) for hold in chosen)


@dataclass(frozen=True, slots=True)
class _Scale:
    """What is near and what is still in this take, in metres."""

    gap: float
    reach: float

    @classmethod
    def of(cls, joints: JointFits, tree: Tree) -> "_Scale":
        used = tree.edge[tree.edge >= 0]
        gap = LOOSE * float(np.median(joints.residual[used]))
        distance = float(np.nanpercentile(joints.distance[used], 75.0))
        return cls(max(gap, CLOSEST), REACH * distance)


@dataclass(frozen=True, slots=True, eq=False)
class _Hold:
    """Two bodies that hold together from a frame up to another."""

    row: int
    start: int
    stop: int
    gap: float
    """Root mean square gap meanwhile, in metres."""

    apart: float
    """Distance of the two origins, in metres."""

    center_a: Float[Array, "3"]
    center_b: Float[Array, "3"]

    def covers(self, core: slice) -> bool:
        return bool(self.start <= core.start and core.stop <= self.stop)

    def shared(self, other: "_Hold") -> float:
        """Return the share of the shorter one's time that both have."""
        both = min(self.stop, other.stop) - max(self.start, other.start)
        return max(both, 0) / min(self.stop - self.start, other.stop - other.start)


Ways = dict[int, tuple[int, ...]]
"""Of each pair that may hold: the rows of the tree's joints between the two."""


def _ways(joints: JointFits, tree: Tree) -> Ways:
    row_of = {(int(a), int(b)): k for k, (a, b) in enumerate(joints.pair)}
    ways: Ways = {}
    for row, (a, b) in enumerate(joints.pair.tolist()):
        way = tree.path(a, b)
        if not way:
            ways[row] = ()
        elif len(way) > STEPS:
            ways[row] = tuple(row_of[min(s), max(s)] for s in pairwise(way))
    return ways


def _held(
    part: Windows, joints: JointFits, scale: _Scale, ways: Ways
) -> Iterator[tuple[int, int]]:
    """Yield pair and window wherever two bodies move together as one."""
    a, b = joints.pair.T
    moving = np.hypot(part.way, ARM * part.swing) > MOVED * scale.gap
    with np.errstate(invalid="ignore"):
        as_one = np.hypot(part.shift, ARM * part.turn) <= scale.gap
        near = part.apart <= 2.0 * scale.reach
        touching = part.apart <= scale.reach
        bent = ARM * part.turn > scale.gap
    good = as_one & near & moving[:, a] & moving[:, b]
    for window, row in np.argwhere(good).tolist():
        between = ways.get(row)
        if between is None:
            continue
        free = np.sum(bent[window, list(between)]) >= FREE_JOINTS
        if not between or (free and touching[window, row]):
            yield row, window


def _traced(bodies: Bodies, joints: JointFits, row: int, core: slice) -> _Hold:
    """Return a hold from the window in which it was found to its ends."""
    a, b = joints.pair[row]
    T_a_b = geometry.inverse(bodies.T_world_body[:, a]) @ bodies.T_world_body[:, b]
    middle = _mean_pose(T_a_b[core])
    # The link is taken midway between the two origins.
    center_a = 0.5 * middle[:3, 3]
    center_b = geometry.apply(geometry.inverse(middle), center_a)
    gap = _misfit(T_a_b, middle, center_b)
    usual = max(float(np.sqrt(np.nanmean(gap[core] ** 2))), 0.5 * CLOSEST)
    start, stop = longest_run(gap, core, usual)
    inside = gap[start:stop]
    return _Hold(
        row,
        start,
        stop,
        float(np.sqrt(np.nanmean(inside**2))),
        float(np.linalg.norm(middle[:3, 3])),
        center_a,
        center_b,
    )


def _mean_pose(T: Float[Array, "frame 4 4"]) -> Float[Array, "4 4"]:
    """Return the mean of poses that are much alike."""
    mean = np.nanmean(T, axis=0)
    R = geometry.nearest_rotation(mean[:3, :3])
    return geometry.transform(R, mean[:3, 3])


def _misfit(
    T_a_b: Float[Array, "frame 4 4"],
    T_usual: Float[Array, "4 4"],
    center: Float[Array, "3"],
) -> Float[Array, " frame"]:
    """Return how far the second body is from where it usually is, in metres.

    Root mean square of a shift at the link and of a turn at an arm's length from it.
    """
    shift = geometry.apply(T_a_b, center) - geometry.apply(T_usual, center)
    turn = T_a_b[:, :3, :3] - T_usual[:3, :3]
    square = np.sum(shift**2, axis=-1) + ARM**2 * 0.5 * np.sum(turn**2, axis=(-1, -2))
    return np.asarray(np.sqrt(square))


def _best(holds: list[_Hold], joints: JointFits, tree: Tree) -> list[_Hold]:
    """Return the closest of the holds between the same subjects at the same time.

    What is held moves with its holder's neighbours too while they keep still.
    """
    root = [tree.path(body, body)[0] for body in range(len(tree.parent))]
    chosen: list[_Hold] = []
    order = sorted(holds, key=lambda h: (round(np.log2(h.gap + 1e-3)), h.apart))
    for hold in order:
        if not any(_rivals(hold, other, joints, root) for other in chosen):
            chosen.append(hold)
    return sorted(chosen, key=lambda h: (h.start, h.row))


def _rivals(one: _Hold, other: _Hold, joints: JointFits, root: list[int]) -> bool:
    ends = [{root[int(b)] for b in joints.pair[hold.row]} for hold in (one, other)]
    return ends[0] == ends[1] and one.shared(other) > OVERLAP


def _loop(hold: _Hold, bodies: Bodies) -> Loop:
    rate, last = bodies.take.rate, len(bodies.T_world_body)
    loop = Loop(
        pair=hold.row,
        first=hold.start / rate,
        last=(hold.stop - 1) / rate,
        kind="fixed",
        center_a=tuple(hold.center_a.tolist()),
        center_b=tuple(hold.center_b.tolist()),
    )
    if hold.start == 0:
        loop = replace(loop, first=-np.inf)
    return replace(loop, last=np.inf) if hold.stop == last else loop
