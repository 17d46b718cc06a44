"""Magnetic trackers as tables: the facts that came with the recordings."""

import numpy as np
import pytest

import marey

HINGES = {"Polhemus_90degXclean_2data.csv": 3837, "Polhemus_90degZ_1data.csv": 2718}
WRISTS = {"user1_cup0.traj": 290, "user1_cup1.traj": 263}


@pytest.mark.parametrize(("name", "frames"), HINGES.items())
def test_two_liberty_sensors(name, frames, recordings):
    take = marey.read(recordings / "sixdof_polhemus_hinge" / name, unit="cm")
    assert take.T_world_sensor.shape == (frames, 2, 4, 4)
    assert take.rate == pytest.approx(360.0, rel=0.01)
    codes = {finding.code for finding in take.source.findings}
    assert {"times-uneven", "rows-repeated", "columns-inferred"} <= codes
    # One sensor lies still, the other is turned about one axis by some 90 degrees.
    turned = np.degrees(np.linalg.norm(relative_turns(take), axis=-1))
    assert turned[:, 0].max() < 3.0
    assert 60.0 < turned[:, 1].max() < 120.0


def relative_turns(take):
    R = take.T_world_sensor[..., :3, :3]
    return marey.geometry.rotation_log(R[:1].swapaxes(-1, -2) @ R)


@pytest.mark.parametrize(("name", "frames"), WRISTS.items())
def test_a_sensor_on_the_wrist(name, frames, recordings):
    take = marey.read(recordings / "sixdof_polhemus_wrist" / name, rate=100.0)
    T = take.T_world_sensor
    assert T.shape == (frames, 1, 4, 4)
    # The file keeps six digits.
    np.testing.assert_allclose(
        T[..., :3, :3] @ T[..., :3, :3].swapaxes(-1, -2),
        np.eye(3) + 0 * T[..., :3, :3],
        atol=2e-5,
    )
