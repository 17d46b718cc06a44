"""Distortion of a magnetic field, estimated from the joints that it opens."""

import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.cleaning import fit_field, undistort
from marey.cleaning.field import exponents_up_to, monomials
from marey.numerics import geometry
from marey.segmentation import segment

DISTORTION = {"field": 8e-3, "field_scale": 0.6}
OPTIONS = {"markers": "none", "sensors": True, "rate": 30.0, "seconds": 30.0}


def fit_and_compare(take):
    """Return the field of a take, and the rms error of its bone lengths."""
    bodies = segment(take)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints)
    skeleton = marey.build_skeletons(bodies, joints, tree)[0]
    return fit_field(bodies, joints, tree), metrics.compare(skeleton, take).rms


@pytest.fixture(scope="module")
def distorted():
    take = synth.linkage().record(
        "swing", seed=1, noise=1e-3, turn_noise=2.6e-3, **DISTORTION, **OPTIONS
    )
    return take, *fit_and_compare(take)


def test_undistorting_halves_the_error_of_the_lengths(distorted):
    take, field, before = distorted
    assert field.significant
    _, after = fit_and_compare(undistort(take, field))
    assert after < 0.6 * before
    assert after < 2e-3


def test_the_field_moves_sensors_towards_the_truth(distorted):
    take, field, _ = distorted
    true = take.truth.T_world_sensor[..., :3, 3].reshape(-1, 3)

    def error(recording):
        position = recording.T_world_sensor[..., :3, 3].reshape(-1, 3)
        # Translation, rotation and scale of the whole volume are unknown.
        T = geometry.kabsch(position - position.mean(axis=0), true - true.mean(axis=0))
        moved = geometry.apply(T, position - position.mean(axis=0))
        moved *= np.sum(moved * (true - true.mean(axis=0))) / np.sum(moved**2)
        return np.sqrt(np.mean(np.sum((moved - true + true.mean(axis=0)) ** 2, axis=1)))

    assert error(undistort(take, field)) < 0.6 * error(take)


def test_the_correction_is_reported(distorted):
    take, field, _ = distorted
    corrected = undistort(take, field)
    finding = corrected.source.findings[-1]
    assert (finding.code, finding.value) == ("field-bent", field.rms)
    assert f"{1e3 * field.residual_after:.1f} mm" in finding.message
    assert corrected.history[-1].startswith("undistorted")


def test_a_field_has_no_translation_rotation_or_scale(distorted):
    take, field, _ = distorted
    position = take.T_world_sensor[..., :3, 3].reshape(-1, 3)
    displacement = field.displacement(position)
    z = (position - field.center) / field.rms_radius
    limit = 1e-9 * field.rms
    assert np.abs(displacement.mean(axis=0)).max() < limit
    assert np.abs(np.cross(z, displacement).mean(axis=0)).max() < limit
    assert abs(np.sum(z * displacement, axis=1).mean()) < limit


def test_rotations_are_half_the_curl(distorted, rng):
    _, field, _ = distorted
    points = field.center + 0.3 * rng.normal(size=(5, 3))
    h = 1e-6
    J = np.stack(
        [
            (field.displacement(points + h * e) - field.displacement(points - h * e))
            / (2 * h)
            for e in np.eye(3)
        ],
        -1,
    )
    curl = np.stack(
        [J[:, 2, 1] - J[:, 1, 2], J[:, 0, 2] - J[:, 2, 0], J[:, 1, 0] - J[:, 0, 1]], -1
    )
    np.testing.assert_allclose(field.rotation(points), 0.5 * curl, atol=1e-7)


@pytest.mark.parametrize("noise", [{}, {"noise": 5e-3, "turn_noise": 8e-3}], ids=str)
def test_an_undistorted_volume_has_no_significant_field(noise):
    take = synth.linkage().record("swing", seed=3, **noise, **OPTIONS)
    field, _ = fit_and_compare(take)
    assert not field.significant


def test_solve_undistorts_when_asked(distorted):
    take, _, before = distorted
    plain = marey.solve(take)
    assert not any(f.code == "field-bent" for f in plain.report.findings)
    asked = marey.solve(take, options=marey.SolveOptions(field=True))
    assert any(f.code == "field-bent" for f in asked.report.findings)
    assert metrics.compare(asked, take).skeletons[0].rms < 0.6 * before


def test_monomials_are_complete_with_their_gradients():
    exponents = exponents_up_to(4)
    assert len(exponents) == len({tuple(e) for e in exponents.tolist()}) == 35
    z = np.array([[0.5, -2.0, 3.0]])
    value, slope = monomials(z, exponents)
    np.testing.assert_allclose(value[0], np.prod(z[0] ** exponents, axis=1))
    assert value[0, 0] == 1.0
    row = exponents.tolist().index([2, 1, 1])
    np.testing.assert_allclose(slope[0, row], [2 * 0.5 * -6.0, 0.25 * 3, 0.25 * -2])


def test_a_tree_without_joints_has_no_field(rng):
    take = synth.linkage().record("swing", **{**OPTIONS, "seconds": 3.0})
    bodies = segment(take)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints)
    alone = marey.Tree(
        parent=np.full(6, -1), edge=np.full(6, -1), margin=np.full(6, np.inf)
    )
    with pytest.raises(marey.DataError, match="no joints"):
        fit_field(bodies, joints, alone)
    assert fit_field(bodies, joints, tree).degree == 0
