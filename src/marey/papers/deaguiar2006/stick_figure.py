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
class StickFigure:
    """Positions of joints over time, each with a bone to its parent but the root."""

    positions: Float[Array, "frame joint 3"]
    parent: Int[Array, " joint"]
    ends: Int[Array, " end"]
    """Rows that are no joints but the marker centroids of bodies without children."""

    def lengths(self) -> Float[Array, "frame joint"]:
        """Return the length of every bone in every frame, NaN for the root."""
        parent_positions = self.positions[:, self.parent]
        lengths = np.linalg.norm(self.positions - parent_positions, axis=-1)
        return np.where(self.parent < 0, np.nan, lengths)

    def with_constant_lengths(self, method: str = "median") -> "StickFigure":
        """Return the figure with one length for every bone (Sec. 5).

        Args:
            method: How a length is averaged over frames: a key of
                `marey.numerics.robust.LOCATIONS`.
        """
        lengths = bone_lengths(self.positions, self.parent, method)
        moved = with_constant_lengths(self.positions, self.parent, lengths)
        return StickFigure(moved, self.parent, self.ends)


def build_stick_figure(bodies: Bodies, fits: JointFits, tree: Tree) -> StickFigure:
    """Return the joints of a tree in every frame, as Sec. 4 estimates them.

    The joint of a body is that with its parent. The root is drawn at the mean of its
    children's joints. A body without children ends at the centroid of its markers.
    """
    positions: dict[int, Array] = {}
    for body in np.flatnonzero(tree.parent >= 0).tolist():
        positions[body] = joint_path(bodies, fits, int(tree.edge[body]))
    for root in map(int, tree.roots):
        children = np.flatnonzero(tree.parent == root).tolist()
        origin = bodies.T_world_body[:, root, :3, 3]
        joints = [positions[child] for child in children]
        positions[root] = np.mean(joints, axis=0) if joints else origin
    order = sorted(positions)
    number = {body: i for i, body in enumerate(order)}
    parent = [number.get(int(tree.parent[body]), -1) for body in order]
    leaves = sorted(set(order) - set(tree.parent.tolist()))
    ends = [_marker_centroid(bodies, body) for body in leaves]
    return StickFigure(
        np.stack([*(positions[body] for body in order), *ends], axis=1),
        np.array([*parent, *(number[body] for body in leaves)], dtype=np.int64),
        np.arange(len(order), len(order) + len(ends)),
    )


def joint_path(bodies: Bodies, fits: JointFits, row: int) -> Float[Array, "frame 3"]:
    """Return the joint of one pair in the world, midway between its two centres."""
    a, b = fits.pair[row]
    in_a = geometry.apply(bodies.T_world_body[:, a], fits.center_a[row])
    in_b = geometry.apply(bodies.T_world_body[:, b], fits.center_b[row])
    return np.asarray(0.5 * (in_a + in_b))


def _marker_centroid(bodies: Bodies, body: int) -> Float[Array, "frame 3"]:
    offsets = bodies.marker_offset[bodies.marker_body == body]
    return geometry.apply(bodies.T_world_body[:, body], np.nanmean(offsets, axis=0))


@dataclass(frozen=True, slots=True)
class RelativeJointErrors:
    """Errors of joints, as fractions of the figure's height."""

    mean: float
    """Mean over all true joints whose bodies were found, as in the paper."""

    across_hinge: float
    """The same without the component along hinge axes, which no motion determines."""

    n_joints: int


def measure_joint_errors(
    bodies: Bodies, fits: JointFits, take: Recording
) -> RelativeJointErrors:
    """Return the distance of joints from the true ones, rms over the frames of each."""
    truth = take.truth
    match = match_bodies(bodies, truth)
    found_of = {int(true): body for body, true in enumerate(match) if true >= 0}
    row = {frozenset(map(int, pair)): k for k, pair in enumerate(fits.pair)}
    poses, skeleton = truth.motion.T_world_joint(), truth.skeleton
    squared_errors = []
    for parent, child, joint in truth.edges.tolist():
        pair = frozenset((found_of.get(parent, -1), found_of.get(child, -2)))
        if pair not in row or not fits.fitted[row[pair]]:
            continue
        error = joint_path(bodies, fits, row[pair]) - poses[:, joint, :3, 3]
        along = np.zeros(len(error))
        if skeleton.kind[joint] == "hinge":
            axis = poses[:, joint, :3, :3] @ skeleton.axes[joint, 0]
            along = np.sum(error * axis, axis=1)
        square = np.sum(error**2, axis=1)
        squared_errors.append([np.nanmean(square), np.nanmean(square - along**2)])
    height = take.truth.figures[0].height
    if not squared_errors:
        return RelativeJointErrors(float("nan"), float("nan"), 0)
    rms = np.sqrt(np.maximum(squared_errors, 0.0)) / height
    mean, across = rms.mean(axis=0)
    return RelativeJointErrors(float(mean), float(across), len(squared_errors))
