"""Recorded motions of other programs as models: MuJoCo has the same joints."""

import multibodies
import numpy as np
import pytest

import marey


@pytest.mark.parametrize(
    ("name", "kilograms"),
    [
        ("cmu/35_01.amc", (40.0, 80.0)),  # hinges and universal joints with limits
        ("sixdof_xsens_mvnx/test_mocap.bvh", (40.0, 80.0)),
    ],
)
def test_mujoco_plays_what_was_recorded(recordings, name, kilograms, tmp_path):
    motion = marey.read_motion(recordings / name)
    motion = motion.cut(0, min(60, motion.n_frames))
    marey.write(motion, tmp_path / "a.mjcf")
    model = multibodies.mujoco_model(tmp_path / "a.mjcf")
    with np.load(tmp_path / "a.qpos.npz") as archive:
        qpos = archive["qpos"]
    found = multibodies.mujoco_positions(model, qpos, motion.skeleton.names)
    np.testing.assert_allclose(found, motion.T_world_joint()[..., :3, 3], atol=1e-8)
    low, high = kilograms
    assert low < model.body_mass.sum() < high
