"""Temporary joints: bodies that hold together for part of a take, as in a grip."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.noise import estimate_pose_noise
from marey.joints.temporary.marker_distances import MarkerDistances
from marey.joints.temporary.window_motions import (
    noise_of_motions,
    squared_motions,
    window_motions,
)
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import rms
from marey.numerics.thresholds import (
    LEVER_ARM_M,
    MARKER_NOISE_M,
    MAX_OVERLAP,
    MIN_DURATION_S,
    MIN_JOINTS_BETWEEN,
    OUTLIER_SD,
)
from marey.tree import Loop, Tree

BLOCK_S, WINDOW_BLOCKS = 0.5, 2
"""Length of a block of frames, in seconds, and blocks in a window: windows of one
second, one of which starts at every block. Longer windows miss short grips."""

MAX_DEVIATION_RATIO = 1.5
"""Largest relative motion of bodies that hold together, as a multiple of the median
residual of the tree; the noise of their poses is added. Higher finds more grips. Chosen
by hand."""

MAX_DISTANCE_RATIO = 2.0
"""Largest distance of bodies of different trees that hold together, as a multiple of
the usual distance. Higher finds more grips. Chosen by hand."""

MAX_DISTANCE_RATIO_IN_TREE = 1.0
"""The same for bodies of one tree, whose limbs often move together without a grip."""

MIN_MOVING_JOINTS = 2
"""Smallest number of these joints that move during the grip; if fewer move, the tree
itself holds the bodies together. Higher finds fewer grips. Chosen by hand."""

RUN_CUTOFF = 3.0
"""Squared deviation, in mean squares inside the run, above which a frame is more likely
outside the run. Higher makes runs longer. Chosen by hand."""


def find_temporary_joints(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Loop, ...]:
    """Return which bodies outside the tree's joints hold together, and when.

    Two bodies hold together if they have no relative motion while they move through the
    world; if they belong to one tree, joints between them must move meanwhile. Bodies
    of markers have none if the distances between their markers stay. Such windows of
    one second are found first, and then extended frame by frame in both directions, to
    where the bodies separate. Bodies that merely rest side by side do not hold
    together. What is held moves nearly as one with the neighbours of its holder, too;
    of such grips that overlap in time the one with the smallest residual is kept.

    OBrien2000, Sec. 5, names connections that change over time as future work.

    Args:
        bodies: The bodies in one take.
        joints: Candidate joints of all pairs.
        tree: Parents of the bodies.
    """
    n_frames, rate = len(bodies.T_world_body), bodies.take.rate
    block = max(round(BLOCK_S * rate), 2)
    if (tree.edge < 0).all() or n_frames < WINDOW_BLOCKS * block:
        return ()
    search = _GripSearch(bodies, joints, tree, block)
    grips: list[_Grip] = []
    for row, window in search.rigid_windows():
        core = slice(block * window, block * (window + WINDOW_BLOCKS))
        if not any(grip.row == row and grip.contains(core) for grip in grips):
            grips.append(search.extended_grip(row, core))
    grips = [grip for grip in grips if grip.n_frames >= MIN_DURATION_S * rate]
    return tuple(
        Loop(
            pair=grip.row,
            first=grip.start / rate if grip.start > 0 else -np.inf,
            last=(grip.stop - 1) / rate if grip.stop < n_frames else np.inf,
            kind="fixed",
            center_a=tuple(grip.center_a.tolist()),
            center_b=tuple(grip.center_b.tolist()),
        )
        for grip in search.select_best(_merge_overlapping(grips))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Grip:
    """Two bodies that hold together from one frame up to, not including, another."""

    row: int
    """Row of the pair in `JointFits.pair`."""

    start: int
    stop: int
    residual: float
    """Root mean square deviation from the mean relative pose, in metres."""

    distance: float
    """Distance of the two origins, in metres."""

    center_a: Float[Array, "3"]
    center_b: Float[Array, "3"]

    @property
    def n_frames(self) -> int:
        """Number of frames of the grip."""
        return self.stop - self.start

    def contains(self, frames: slice) -> bool:
        """Return whether all of some frames belong to the grip."""
        return bool(self.start <= frames.start and frames.stop <= self.stop)

    def overlap(self, other: "_Grip") -> float:
        """Return the common frames as a fraction of the shorter grip."""
        common = min(self.stop, other.stop) - max(self.start, other.start)
        return max(common, 0) / min(self.n_frames, other.n_frames)


def _merge_overlapping(grips: list[_Grip]) -> list[_Grip]:
    """Return the grips, those of one pair that overlap in time as one.

    A grip that was found from one window may end early, in noisier frames, which
    another window reaches from the other side.
    """
    merged: list[_Grip] = []
    for grip in sorted(grips, key=lambda grip: (grip.row, grip.start)):
        last = merged.pop() if merged else grip
        if last.row != grip.row or last.stop <= grip.start:
            merged += [last, grip]
            continue
        longer = max(last, grip, key=lambda one: one.n_frames)
        stop = max(last.stop, grip.stop)
        merged.append(replace(longer, start=last.start, stop=stop))
    return merged


class _GripSearch:
    """Motions of one take, and what they say about bodies that hold together."""

    def __init__(
        self, bodies: Bodies, joints: JointFits, tree: Tree, block: int
    ) -> None:
        self.T, self.joints, self.tree = bodies.T_world_body, joints, tree
        self.block, self.distances = block, MarkerDistances(bodies)
        self.row_of = {frozenset(p): row for row, p in enumerate(joints.pair.tolist())}
        motions = window_motions(self.T, joints.pair, block=block, blocks=WINDOW_BLOCKS)
        used = tree.edge[tree.edge >= 0]
        residual = float(np.median(joints.residual[used]))
        limit = max(MAX_DEVIATION_RATIO * residual, 2.0 * MARKER_NOISE_M)
        usual = joints.usual_distance(used)
        pose_noise = estimate_pose_noise([bodies])
        noise = noise_of_motions(pose_noise, joints.pair, motions)
        moved, bent, deviated = (
            square - limit**2 - noise_square
            for square, noise_square in zip(
                squared_motions(motions), noise, strict=True
            )
        )
        with np.errstate(invalid="ignore"):
            is_moving = moved > (OUTLIER_SD**2 - 1.0) * limit**2
            is_near = motions.distance <= MAX_DISTANCE_RATIO * usual
            self.is_nearer = motions.distance <= MAX_DISTANCE_RATIO_IN_TREE * usual
            self.is_bent = bent > 0.0
            self.is_held = is_near & is_moving[:, joints.pair].all(axis=-1)
            for row in np.flatnonzero(self.is_held.any(axis=0)).tolist():
                pair = tuple(joints.pair[row].tolist())
                if self.distances.determine(*pair):
                    variance = self.distances.window_variance(
                        *pair, block=block, blocks=WINDOW_BLOCKS
                    )
                    expected = self.distances.noise_variance(pose_noise, *pair)
                    deviated[:, row] = variance - limit**2 - expected
            self.is_held &= deviated <= 0.0

    def _joints_between(self, a: int, b: int) -> list[int]:
        """Return the rows of the tree's joints between two bodies, if any."""
        edges = pairwise(self.tree.path(a, b))
        return [self.row_of[frozenset(edge)] for edge in edges]

    def rigid_windows(self) -> Iterator[tuple[int, int]]:
        """Yield pair and window wherever two bodies move through the world as one."""
        for window, row in np.argwhere(self.is_held).tolist():
            between = self._joints_between(*self.joints.pair[row].tolist())
            is_free = np.sum(self.is_bent[window, between]) >= MIN_MOVING_JOINTS
            is_apart = (
                len(between) >= MIN_JOINTS_BETWEEN and self.is_nearer[window, row]
            )
            if not between or (is_apart and is_free):
                yield row, window

    def extended_grip(self, row: int, core: slice) -> _Grip:
        """Return a grip, extended from the window in which it was found to its ends.

        Its centre is midway between the two origins.
        """
        a, b = self.joints.pair[row].tolist()
        T_a_b = geometry.inverse(self.T[:, a]) @ self.T[:, b]
        mean = _mean_pose(T_a_b[core])
        center_a = 0.5 * mean[:3, 3]
        center_b = geometry.apply(geometry.inverse(mean), center_a)
        deviation = (
            self.distances.deviations(a, b, core)
            if self.distances.determine(a, b)
            else _deviations(T_a_b, mean, center_b)
        )
        core_rms = max(rms(deviation[core]), MARKER_NOISE_M)
        start, stop = extend_run(deviation, core, core_rms)
        distance = float(np.linalg.norm(mean[:3, 3]))
        residual = rms(deviation[start:stop])
        return _Grip(row, start, stop, residual, distance, center_a, center_b)

    def select_best(self, grips: list[_Grip]) -> list[_Grip]:
        """Return the best of the grips that overlap in time and imply each other.

        Non-maximum suppression: the grips are taken by rising residual, in powers of
        two, and rising distance, and each is kept unless one that is kept implies it.
        """

        def rank(grip: _Grip) -> tuple[int, float]:
            return round(np.log2(grip.residual + MARKER_NOISE_M)), grip.distance

        best: list[_Grip] = []
        for grip in sorted(grips, key=rank):
            if not any(self._implies(other, grip) for other in best):
                best.append(grip)
        return sorted(best, key=lambda grip: (grip.start, grip.row))

    def _implies(self, grip: _Grip, other: _Grip) -> bool:
        """Return whether two grips overlap in time and are one grip of neighbours.

        Their bodies are neighbours if fewer joints are between them than let a limb
        touch itself, or if none of these is bent in most of the windows that both
        share.
        """
        if grip.overlap(other) <= MAX_OVERLAP:
            return False
        first = -(-max(grip.start, other.start) // self.block)
        stop = min(grip.stop, other.stop) // self.block - WINDOW_BLOCKS + 1
        pair, ends = self.joints.pair[[grip.row, other.row]].tolist()
        for sides in (zip(pair, ends, strict=True), zip(pair, ends[::-1], strict=True)):
            paths = [
                (self.tree.path(*side), self._joints_between(*side)) for side in sides
            ]
            rows = [row for _, between in paths for row in between]
            bent = np.asarray(self.is_bent[first:stop, rows].any(axis=1))
            are_near = len(rows) < MIN_JOINTS_BETWEEN or 2 * bent.sum() <= bent.size
            if all(path for path, _ in paths) and are_near:
                return True
        return False


def _mean_pose(T: Float[Array, "frame 4 4"]) -> Float[Array, "4 4"]:
    """Return the mean of similar poses: the rotation nearest to the mean matrix."""
    mean = np.nanmean(T, axis=0)
    R = geometry.nearest_rotation(mean[:3, :3])
    return geometry.transform(R, mean[:3, 3])


def _deviations(
    T_a_b: Float[Array, "frame 4 4"],
    T_mean: Float[Array, "4 4"],
    center: Float[Array, "3"],
) -> Float[Array, " frame"]:
    r"""Return how far the relative pose is from its mean in each frame, in metres.

    .. math:: \sqrt{|T c - \bar T c|^2 + \tfrac{1}{2} h^2 \|R - \bar R\|_F^2}

    with the centre :math:`c` and the lever arm :math:`h`.
    """
    translation = geometry.apply(T_a_b, center) - geometry.apply(T_mean, center)
    rotation = T_a_b[:, :3, :3] - T_mean[:3, :3]
    square = np.sum(translation**2, axis=-1)
    square = square + LEVER_ARM_M**2 * 0.5 * np.sum(rotation**2, axis=(-1, -2))
    return np.asarray(np.sqrt(square))


def extend_run(
    deviation: Float[Array, " frame"], core: slice, rms: float
) -> tuple[int, int]:
    r"""Return the first frame of a run of small deviations, and the one after its last.

    Each end is where the cumulative sum of the score :math:`(d_t / \mathrm{rms})^2 - 3`
    is smallest, counted outwards from the core: a log likelihood ratio of frames inside
    against frames outside. Frames without data have the score zero.

    Args:
        deviation: Distance :math:`d_t` from the pose inside the run, in metres.
        core: Frames that are certainly inside.
        rms: Root mean square deviation inside, in metres.
    """
    score = np.nan_to_num((deviation / rms) ** 2 - RUN_CUTOFF)
    after, before = (
        int(np.argmin(np.concatenate([[0.0], np.cumsum(outwards)])))
        for outwards in (score[core.stop :], score[: core.start][::-1])
    )
    return core.start - before, core.stop + after
