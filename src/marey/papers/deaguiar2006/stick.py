"""DeAguiar2006, Secs. 4 and 5: joints in every frame, joined by bones."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.joints import JointFits
from marey.metrics import match_bodies
from marey.numerics import geometry
from marey.rig.lengths import bone_lengths, with_constant_lengths
from marey.synth import Recording
from marey.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Stick:
    """Joints over time, each but the root with a bone to its parent."""

    positions: Float[Array, "frame joint 3"]
    parent: Int[Array, " joint"]
    ends: Int[Array, " end"]
    """Which are no joints, but the middles of the last bodies."""

    def lengths(self) -> Float[Array, "frame joint"]:
        """Return the length of every bone in every frame, NaN for the root."""
        above = self.positions[:, self.parent]
        away = np.linalg.norm(self.positions - above, axis=-1)
        return np.where(self.parent < 0, np.nan, away)

    def with_constant_lengths(self, method: str = "median") -> "Stick":
        """Return it with one length for every bone."""
        lengths = bone_lengths(self.positions, self.parent, method)
        moved = with_constant_lengths(self.positions, self.parent, lengths)
        return Stick(moved, self.parent, self.ends)


def stick_of(bodies: Bodies, fits: JointFits, tree: Tree) -> Stick:
    """Return the joints of a tree in every frame, as they come out of Sec. 4.

    The joint of a body is where it meets its parent; the root has its own, in the
    middle of those around. A body without children ends in the middle of its markers.
    """
    places: dict[int, Array] = {}
    for body in np.flatnonzero(tree.parent >= 0).tolist():
        places[body] = joint_path(bodies, fits, int(tree.edge[body]))
    for root in map(int, tree.roots):
        around = [places[b] for b in np.flatnonzero(tree.parent == root).tolist()]
        middle = bodies.T_world_body[:, root, :3, 3]
        places[root] = np.mean(around, axis=0) if around else middle
    order = sorted(places)
    number = {body: i for i, body in enumerate(order)}
    parent = [number.get(int(tree.parent[body]), -1) for body in order]
    leaves = sorted(set(order) - set(tree.parent.tolist()))
    ends = [_middle(bodies, body) for body in leaves]
    return Stick(
        np.stack([*(places[body] for body in order), *ends], axis=1),
        np.array([*parent, *(number[body] for body in leaves)], dtype=np.int64),
        np.arange(len(order), len(order) + len(ends)),
    )


def joint_path(bodies: Bodies, fits: JointFits, row: int) -> Float[Array, "frame 3"]:
    """Return the joint of one pair in the world, midway between its two centres."""
    a, b = fits.pair[row]
    in_a = geometry.apply(bodies.T_world_body[:, a], fits.center_a[row])
    in_b = geometry.apply(bodies.T_world_body[:, b], fits.center_b[row])
    return np.asarray(0.5 * (in_a + in_b))


def _middle(bodies: Bodies, body: int) -> Float[Array, "frame 3"]:
    places = bodies.marker_offset[bodies.marker_body == body]
    return geometry.apply(bodies.T_world_body[:, body], np.nanmean(places, axis=0))


@dataclass(frozen=True, slots=True)
class Errors:
    """How far joints are off, as shares of the figure's height."""

    mean: float
    """Over all true joints whose bodies were found, as in the paper."""

    across: float
    """The same without what lies along the axes of hinges, where no motion tells."""

    found: int


def joint_errors(bodies: Bodies, fits: JointFits, take: Recording) -> Errors:
    """Return how far the joints are from the true ones, rms over the frames of each."""
    truth = take.truth
    match = match_bodies(bodies, truth)
    found_of = {int(true): body for body, true in enumerate(match) if true >= 0}
    row = {frozenset(map(int, pair)): k for k, pair in enumerate(fits.pair)}
    poses, skeleton = truth.motion.T_world_joint(), truth.skeleton
    off = []
    for parent, child, joint in truth.edges.tolist():
        pair = frozenset((found_of.get(parent, -1), found_of.get(child, -2)))
        if pair not in row or not fits.fitted[row[pair]]:
            continue
        gap = joint_path(bodies, fits, row[pair]) - poses[:, joint, :3, 3]
        along = np.zeros(len(gap))
        if skeleton.kind[joint] == "hinge":
            axis = poses[:, joint, :3, :3] @ skeleton.axes[joint, 0]
            along = np.sum(gap * axis, axis=1)
        square = np.sum(gap**2, axis=1)
        off.append([np.nanmean(square), np.nanmean(square - along**2)])
    height = take.truth.figures[0].height
    if not off:
        return Errors(float("nan"), float("nan"), 0)
    rms = np.sqrt(np.maximum(off, 0.0)) / height
    mean, across = rms.mean(axis=0)
    return Errors(float(mean), float(across), len(off))
