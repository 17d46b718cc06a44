"""Takes of markers and takes of sensors of one subject, in the same bodies.

No marker of the same take shows where a sensor sits on its body. The joints show it:
the centres of the same joints are known in the axes of the sensor and in those of the
body of markers. Two joints leave the rotation about their line open. The mean pose then
decides it, until calibration finds a better answer from hinge axes.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.numerics import Array, Float, geometry
from marey.numerics.noise import rms_length
from marey.numerics.thresholds import FEW
from marey.report import Finding
from marey.rig import name_bodies
from marey.tree import Tree, breadth_first_order, children_of

JoinedBodies = tuple[tuple[Bodies, ...], JointFits, Tree]
"""Bodies of takes of one kind, their joints and their tree."""


def match_sensor_takes(
    marked: JoinedBodies, sensed: JoinedBodies
) -> tuple[Bodies, ...]:
    """Return the takes of sensors with the names and axes of the bodies of markers.

    Args:
        marked: Takes with markers.
        sensed: Takes of sensors alone.
    """
    names = match_names(marked, sensed)
    takes, joints, tree = sensed
    joined = tuple(one.rename(names) for one in takes), joints, tree
    T_body_sensor = align_sensors(marked, joined)
    unknown = [name for name in names if name not in marked[0][0].names]
    return tuple(
        replace(
            one,
            T_world_body=one.T_world_body @ geometry.inverse(T_body_sensor),
            T_body_sensor=T_body_sensor,
            parents={},
            findings=(*one.findings, *map(_unmatched_finding, unknown)),
        )
        for one in joined[0]
    )


def _unmatched_finding(name: str) -> Finding:
    message = (
        "no body of markers in the other takes is this one: it is known from its sensor"
    )
    return Finding("sensor-unmatched", "segment", "info", message, subject=name)


# --- names ----------------------------------------------------------------------------


def match_names(marked: JoinedBodies, sensed: JoinedBodies) -> tuple[str, ...]:
    """Return the name of the body of markers that each sensor is on.

    By its own name, or by the anatomy that the sensors show, or by its neighbours in
    both trees; a sensor of no such body keeps its name.
    """
    bodies, names = marked[0][0].names, sensed[0][0].names
    own = {vrm.without_subject(name): name for name in bodies}
    match = {
        k: own[vrm.without_subject(n)]
        for k, n in enumerate(names)
        if vrm.without_subject(n) in own
    }
    if len(match) <= FEW * len(names):
        match = {k: own[n] for k, n in _anatomical_names(sensed).items() if n in own}
    while more := _match_neighbour(marked, sensed[2], match):
        match |= more
    return tuple(match.get(k, name) for k, name in enumerate(names))


def _anatomical_names(sensed: JoinedBodies) -> dict[int, str]:
    """Return names by the shape and motion of the sensors."""
    takes, joints, tree = sensed
    anonymous = takes[0].rename([f"body{k + 1}" for k in range(len(takes[0].names))])
    named, namings = name_bodies(anonymous, joints, tree)
    return dict(enumerate(named.names)) if namings else {}


def _match_neighbour(
    marked: JoinedBodies, tree: Tree, match: Mapping[int, str]
) -> dict[int, str]:
    """Return one more match: a sensor and a body with most neighbours in common."""
    bodies, marked_tree = marked[0][0].names, marked[2]
    best, most = dict[int, str](), 0
    for sensor in range(len(tree.parent)):
        beside = {match[k] for k in _neighbours(tree, sensor) if k in match}
        for body, name in enumerate(bodies):
            if sensor in match or name in match.values():
                continue
            common = beside & {bodies[k] for k in _neighbours(marked_tree, body)}
            if len(common) > most:
                best, most = {sensor: name}, len(common)
    return best


def _neighbours(tree: Tree, body: int) -> list[int]:
    children = children_of(tree.parent, body)
    return children if tree.parent[body] < 0 else [int(tree.parent[body]), *children]


# --- axes -----------------------------------------------------------------------------


def align_sensors(
    marked: JoinedBodies, sensed: JoinedBodies
) -> Float[Array, "sensor 4 4"]:
    """Return T_body_sensor of each sensor in its body of markers, by common joints.

    Each body is fitted after its parent in the tree of markers (Kabsch): the centres of
    its joints have full weight, the axes that it has in the mean pose a small one. A
    sensor without a body of markers stays as it is.
    """
    bodies, names = marked[0][0].names, sensed[0][0].names
    T = np.tile(np.eye(4), (len(names), 1, 1))
    centers, sensor_centers = _joint_centers(marked), _joint_centers(sensed)
    R_mean, R_sensor_mean = _mean_rotations(marked), _mean_rotations(sensed)
    parent_of, roots = marked[2].parent, marked[2].roots.tolist()
    order = [b for b in breadth_first_order(parent_of, roots) if bodies[b] in names]
    for body in order:
        name = bodies[body]
        sensor = names.index(name)
        common = [n for n in centers[name] if n in sensor_centers[name]]
        here = np.array([centers[name][n] for n in common]).reshape(-1, 3)
        there = np.array([sensor_centers[name][n] for n in common]).reshape(-1, 3)
        parent = int(parent_of[body])
        R = np.eye(3)
        if parent >= 0 and bodies[parent] in names:
            above = names.index(bodies[parent])
            R_sensor = T[above, :3, :3] @ R_sensor_mean[above].T @ R_sensor_mean[sensor]
            R = geometry.nearest_rotation(R_mean[body].T @ R_mean[parent] @ R_sensor)
        T[sensor] = _fit_axes(here, there, R)
    return T


def _fit_axes(
    here: Float[Array, "joint 3"],
    there: Float[Array, "joint 3"],
    R: Float[Array, "3 3"],
) -> Float[Array, "4 4"]:
    """Return the transform from the axes of joints `there` to those of `here`.

    Args:
        here: Joint centres in the body.
        there: The same in the sensor.
        R: Rotation where the joints leave it open.
    """
    if not len(here):
        return geometry.transform(R, np.zeros(3))
    mean = there.mean(axis=0)
    size = rms_length(there - mean) + FEW
    source = np.concatenate([there, mean + size * np.eye(3), mean - size * np.eye(3)])
    axes = size * R.T
    target = np.concatenate([here, here.mean(axis=0) + axes, here.mean(axis=0) - axes])
    weight = np.concatenate([np.ones(len(here)), np.full(6, FEW**2)])
    return geometry.kabsch(source, target, weight)


def _joint_centers(joined: JoinedBodies) -> dict[str, dict[str, Float[Array, "3"]]]:
    """Return the centres (m) of each body's joints in its axes, by the other body."""
    takes, joints, tree = joined
    names = takes[0].names
    centers: dict[str, dict[str, Array]] = {name: {} for name in names}
    for row in tree.edge[tree.edge >= 0].tolist():
        a, b = (names[int(k)] for k in joints.pair[row])
        if np.isfinite(joints.center_a[row] + joints.center_b[row]).all():
            centers[a][b] = joints.center_a[row]
            centers[b][a] = joints.center_b[row]
    return centers


def _mean_rotations(joined: JoinedBodies) -> Float[Array, "body 3 3"]:
    """Return the rotation of each body relative to the first in the mean pose."""
    takes, _, tree = joined
    R = np.concatenate([one.T_world_body[..., :3, :3] for one in takes])
    mean = np.tile(np.eye(3), (R.shape[1], 1, 1))
    for body in breadth_first_order(tree.parent, tree.roots.tolist()):
        parent = int(tree.parent[body])
        if parent >= 0:
            relative = R[:, parent].swapaxes(-1, -2) @ R[:, body]
            known = relative[np.isfinite(relative).all(axis=(1, 2))]
            total = known.sum(axis=0) if len(known) else np.eye(3)
            mean[body] = mean[parent] @ geometry.nearest_rotation(total)
    return mean
