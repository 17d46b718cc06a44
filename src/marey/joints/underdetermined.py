"""Poses of bodies of one or two markers, from the joints that connect them.

One or two markers do not determine the rotation of a body; two markers and a joint do,
because they are three points. The joint is the point about which the markers rotate in
the axes of a neighbour that has a pose. So poses spread along the tree, from the bodies
that have one to those that have none.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.hierarchy.root_to_leaf import (
    BodyConstants,
    PosePropagation,
    Poses,
    mean_relative_rotation,
)
from marey.numerics import Array, Bool, geometry
from marey.numerics.procrustes import evaluate_fit, median_in_body
from marey.tree import Tree

KEPT_COLUMNS = {"pair", "kind", "looseness", "marker_spacing"}
"""Fields of `JointFits` that do not depend on the poses of underdetermined bodies, and
the kind, which is no array."""


def pose_underdetermined_bodies(
    takes: tuple[Bodies, ...],
    joints: JointFits,
    tree: Tree,
    *,
    fit: Callable[[Sequence[Bodies]], JointFits],
) -> tuple[tuple[Bodies, ...], JointFits]:
    """Return the bodies with poses for underdetermined ones, and joints to match.

    A body stays as it is if no neighbour in the tree has a pose, or if its markers do
    not rotate about a point of that neighbour.

    Args:
        takes: The same bodies in one or several takes.
        joints: A joint for every pair.
        tree: Parents of the bodies.
        fit: Method that found the joints; it is called for pairs with new poses.
    """
    determined = np.all([take.determined for take in takes], axis=0)
    # The bones between keypoints already have the joints that the keypoints are.
    if takes[0].keypoints or determined.all() or not determined.any():
        return takes, joints
    T, constants = _pose_from_neighbours(takes, tree, determined)
    if not constants:
        return takes, joints
    ends = np.cumsum([len(take.T_world_body) for take in takes])[:-1]
    takes = tuple(
        _with_poses(take, T_take, constants)
        for take, T_take in zip(takes, np.split(T, ends), strict=True)
    )
    return takes, _update_joints(takes, joints, tree, constants, T, fit)


def _pose_from_neighbours(
    takes: tuple[Bodies, ...], tree: Tree, determined: Bool[Array, " body"]
) -> tuple[Poses, list[BodyConstants]]:
    """Return the poses of all bodies, and the constants of underdetermined ones.

    The bodies are posed one after the other, each from a neighbour in the tree that has
    a pose already. Bodies without such a neighbour keep their recorded poses.
    """
    propagation = PosePropagation(takes)
    for body in np.flatnonzero(determined):
        propagation.use_recorded_pose(int(body))
    constants = []
    untried = [
        link
        for body, parent in enumerate(tree.parent.tolist())
        if parent >= 0
        for link in ((body, parent), (parent, body))
    ]
    posed = propagation.noise.keys()
    while ready := [(a, b) for a, b in untried if b in posed and a not in posed]:
        untried.remove(ready[0])
        part = propagation.estimate_child(*ready[0])
        if part.pose_source != "parent":
            propagation.pose(part)
            constants.append(part)
    T = propagation.stacked.T.copy()
    T[:, list(posed)] = propagation.T[:, list(posed)]
    return T, constants


def _with_poses(take: Bodies, T: Poses, constants: Sequence[BodyConstants]) -> Bodies:
    """Return the bodies of a take with the new poses of some of them."""
    poses, offset = take.T_world_body.copy(), take.marker_offset.copy()
    determined, rms = take.determined.copy(), take.rms.copy()
    for part in constants:
        body = part.body
        poses[:, body] = T[:, body]
        determined[body] = part.pose_source == "points"
        is_on_body = take.marker_body == body
        markers = take.take.points[:, is_on_body]
        shape = median_in_body(T[:, body], markers)
        offset[is_on_body] = shape
        rms[body] = evaluate_fit(markers, shape, T[:, body], determined=True).rms
    return replace(
        take, T_world_body=poses, marker_offset=offset, determined=determined, rms=rms
    )


def _update_joints(
    takes: tuple[Bodies, ...],
    joints: JointFits,
    tree: Tree,
    constants: Sequence[BodyConstants],
    T: Poses,
    fit: Callable[[Sequence[Bodies]], JointFits],
) -> JointFits:
    """Return the joints with new ones wherever a body of the pair has a new pose.

    Joints by which bodies were posed come from the constants of these bodies. Other
    joints of the tree are fitted again. Pairs that the tree does not use become NaN.
    """
    posed = {frozenset((part.body, part.parent)): part for part in constants}
    bodies = [part.body for part in constants]
    is_stale = np.asarray(np.isin(joints.pair, bodies).any(axis=1))
    kind = np.array(joints.kind, dtype=object)
    columns = {
        column.name: getattr(joints, column.name).copy()
        for column in fields(JointFits)
        if column.name not in KEPT_COLUMNS
    }
    for values in columns.values():
        values[is_stale] = np.nan
    kind[is_stale] = "ball"
    for row in tree.edge[tree.edge >= 0]:
        pair = joints.pair[row].tolist()
        if not is_stale[row]:
            continue
        if frozenset(pair) in posed:
            part = posed[frozenset(pair)]
            kind[row], joint = part.kind, _joint_columns(part, T)
        else:
            refit = fit([_select_bodies(take, pair) for take in takes])
            kind[row] = refit.kind[0]
            joint = {name: getattr(refit, name)[0] for name in columns}
        for name, value in joint.items():
            columns[name][row] = value
    return replace(joints, kind=tuple(kind.tolist()), **columns)


def _joint_columns(constants: BodyConstants, T: Poses) -> dict[str, Array | float]:
    """Return the columns of `JointFits` that the constants of a body determine."""
    body, neighbour = constants.body, constants.parent
    R = mean_relative_rotation(T, body, neighbour)
    axis = constants.axis_in_parent
    sides = [
        (neighbour, constants.center_in_parent, axis, np.eye(3)),
        (body, constants.center_in_body, geometry.unit_vectors(R @ axis), R),
    ]
    first, second = sorted(sides, key=lambda side: side[0])
    jacobian = np.concatenate([first[3], second[3]])
    return {
        "center_a": first[1],
        "center_b": second[1],
        "axis_a": first[2],
        "axis_b": second[2],
        "residual": constants.radial_noise,
        "covariance": jacobian @ constants.covariance @ jacobian.T,
    }


def _select_bodies(take: Bodies, bodies: list[int]) -> Bodies:
    """Return a take with some of its bodies."""
    # The last entry is that of markers without a body, whose number is -1.
    new_index = np.full(len(take.names) + 1, -1)
    new_index[bodies] = np.arange(len(bodies))
    sensors = np.flatnonzero(np.isin(take.sensor_body, bodies))
    return replace(
        take,
        names=tuple(take.names[body] for body in bodies),
        T_world_body=take.T_world_body[:, bodies],
        determined=take.determined[bodies],
        marker_body=new_index[take.marker_body],
        shared=take.shared[:, bodies],
        sensor_names=tuple(take.sensor_names[sensor] for sensor in sensors),
        sensor_body=new_index[take.sensor_body[sensors]],
        T_body_sensor=take.T_body_sensor[sensors],
        body_confidence=take.body_confidence[bodies],
        rms=take.rms[bodies],
        parents={},
    )
