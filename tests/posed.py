"""Recordings with their true skeletons, and errors of poses, for tests."""

from dataclasses import replace

import numpy as np

from marey import synth
from marey.numerics import geometry
from marey.skeleton import Kind, Skeleton


def record(figure=None, motion="", **options):
    """The true skeleton with the offsets of its markers and sensors, and a take."""
    figure = figure or synth.human()
    options = {"rate": 100.0, "seconds": 1.0, "markers": "set53", **options}
    take = figure.record(motion or figure.motions[0], **options)
    return take.true_skeleton, take


def joint_errors(motion, take):
    """Distance of every joint from its true position, in metres."""
    true = take.truth.motion.T_world_joint()
    return np.linalg.norm((motion.T_world_joint() - true)[..., :3, 3], axis=-1)


def rotation_steps(motion):
    """Rotation angle of every joint from frame to frame, in radians."""
    q = motion.wxyz
    step = geometry.quat_multiply(geometry.quat_conjugate(q[:-1]), q[1:])
    return np.linalg.norm(geometry.quat_log(step), axis=-1)


def hide_markers(take, frames, markers):
    """The take with some markers unseen in some frames."""
    points = take.points.copy()
    points[frames, markers] = np.nan
    return replace(take, points=points)


def markers_on(take, skeleton, *joints):
    """Indices of the markers on the bones of some joints."""
    index = [skeleton.index(name) for name in joints]
    return np.flatnonzero(np.isin(take.truth.marker_joint, index))


def move_world(take, T_new_world):
    """The take in another world frame."""
    return replace(
        take,
        points=geometry.apply(T_new_world, take.points),
        T_world_sensor=T_new_world @ take.T_world_sensor,
    )


def skeleton_of_every_kind(rng):
    """A small skeleton with joints of every kind, markers and two sensors."""
    names = ("root", "ball", "hinge", "universal", "fixed", "leaf", "other")
    kind: tuple[Kind, ...]
    kind = ("root", "ball", "hinge", "universal", "fixed", "ball", "hinge")
    n = len(names)
    axes = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0][:, :2]
    joint = np.repeat(np.arange(n), 3)
    return Skeleton(
        names=names,
        parent=np.array([-1, 0, 1, 2, 3, 4, 1]),
        offset=rng.normal(scale=0.3, size=(n, 3)),
        kind=kind,
        axes=axes,
        marker_labels=tuple(f"M{i}" for i in range(len(joint))),
        marker_joint=joint,
        marker_offset=rng.normal(scale=0.1, size=(len(joint), 3)),
        sensor_names=("S0", "S1"),
        sensor_joint=np.array([4, 5]),
        T_joint_sensor=geometry.transform_exp(rng.normal(scale=0.2, size=(2, 6))),
    )


def random_pose(skeleton, rng, size=0.5):
    """A random pose that every joint's kind allows: root position, quaternions."""
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (skeleton.n_joints, 1))
    for joint, kind in enumerate(skeleton.kind):
        x, y = skeleton.axes[joint]
        if kind in ("root", "ball"):
            wxyz[joint] = geometry.quat_exp(size * rng.normal(size=3))
        if kind in ("hinge", "universal"):
            wxyz[joint] = geometry.quat_exp(size * rng.normal() * x)
        if kind == "universal":
            second = geometry.quat_exp(size * rng.normal() * y)
            wxyz[joint] = geometry.quat_multiply(wxyz[joint], second)
    return rng.normal(size=3), wxyz


def within_limits(skeleton, angles, slack=1e-9):
    """Whether every angle lies within its limits; a limit of NaN never binds."""
    low, high = skeleton.limits[..., 0], skeleton.limits[..., 1]
    return not ((angles < low - slack) | (angles > high + slack)).any()
