"""Motions to write as rigid bodies, and what readers nobody here wrote make of them."""

import csv
from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import samples
from yourdfpy import URDF

import marey
from marey.numerics import geometry


@cache
def person(n_frames=12):
    """A few frames of a walking person with limits, in a stride."""
    whole = marey.synth.human(seed=0).record(motion="walk", seconds=0.5, rate=30.0)
    return whole.truth.motions[0].cut(0, n_frames)


def figure():
    """Hinge, universal and balls, with markers, a sensor, limits and a start time."""
    motion = samples.motion()
    limits = np.full((7, 3, 2), np.nan)
    limits[2, 0] = [-0.3, 1.2]
    limits[3, :2] = [[-0.5, 0.6], [-0.7, 0.7]]
    skeleton = replace(
        motion.skeleton,
        limits=limits,
        marker_labels=("hip", "heel & <toe>"),
        marker_joint=np.array([0, 4]),
        marker_offset=np.array([[0.1, 0.0, 0.05], [0.0, -0.02, 0.01]]),
        sensor_names=("thigh",),
        sensor_joint=np.array([1]),
        T_joint_sensor=geometry.transform(
            geometry.rotation_exp(np.array([[0.3, 0.2, -0.1]])),
            np.array([[0.0, 0.05, -0.2]]),
        ),
    )
    return replace(motion, skeleton=skeleton, start=1.5)


def read_rows(path):
    """Return the column names and the numbers of a CSV."""
    names, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    return names, np.array(rows, dtype=float)


def mujoco_model(path):
    """Return the model of a file, which compiles without a warning."""
    spec = mujoco.MjSpec.from_string(path.read_text(encoding="utf-8"))
    return spec.compile()


def mujoco_positions(model, poses, names, to_qpos=lambda pose: pose):
    """Return where bodies, or else sites, of these names are at all poses."""
    data = mujoco.MjData(model)
    found = np.empty((len(poses), len(names), 3))
    kinds = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_SITE
    ids = [[mujoco.mj_name2id(model, kind, name) for kind in kinds] for name in names]
    for i, pose in enumerate(poses):
        data.qpos[:] = to_qpos(pose)
        mujoco.mj_kinematics(model, data)
        found[i] = [data.xpos[b] if b >= 0 else data.site_xpos[s] for b, s in ids]
    return found


def mujoco_urdf_positions(path, names):
    """Return where MuJoCo has the links of a URDF along its trajectory."""
    columns, rows = read_rows(path.with_suffix(".trajectory.csv"))
    model = mujoco_model(path)
    order = [columns.index(model.joint(i).name) for i in range(model.njnt)]
    found = mujoco_positions(model, rows, names, lambda row: row[order])
    return carried_by_base(found, rows)


def yourdfpy_positions(path, names):
    """Return where yourdfpy has the links of a URDF along its trajectory."""
    columns, rows = read_rows(path.with_suffix(".trajectory.csv"))
    robot = URDF.load(str(path), load_meshes=False)
    assert robot.validate()
    found = np.empty((len(rows), len(names), 3))
    for i, row in enumerate(rows):
        robot.update_cfg(dict(zip(columns[8:], row[8:], strict=True)))
        found[i] = [robot.get_transform(name)[:3, 3] for name in names]
    return carried_by_base(found, rows)


def carried_by_base(points, rows):
    """Return points of the base link in the world."""
    R = geometry.matrix_from_quat(rows[:, 4:8])
    return np.einsum("fij,fpj->fpi", R, points) + rows[:, None, 1:4]


def walker():
    """Return the motion of a solved person, whose added toes bend on the ground."""
    take = marey.synth.human(seed=0).record("walk", seconds=2.0, rate=60.0, noise=1e-3)
    motion = marey.solve(take).motion
    toes = motion.skeleton.index("LeftToes")
    assert not motion.skeleton.observed[toes]
    assert np.ptp(motion.wxyz[:, toes, 0]) > 0.001
    return motion
