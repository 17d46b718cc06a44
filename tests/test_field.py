"""A bent volume, found from the joints that it opens."""

import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.cleaning import fit_field, straightened
from marey.cleaning.field import _terms, powers_up_to
from marey.numerics import geometry
from marey.segmentation import segment

BENT = {"field": 8e-3, "field_scale": 0.6}
OPTIONS = {"markers": "none", "sensors": True, "rate": 30.0, "seconds": 30.0}


def solved(take):
    bodies = segment(take)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints)
    skeleton = marey.build_skeletons(bodies, joints, tree)[0]
    return fit_field(bodies, joints, tree), metrics.compare(skeleton, take).rms


@pytest.fixture(scope="module")
def bent():
    take = synth.linkage().record(
        "swing", seed=1, noise=1e-3, turn_noise=2.6e-3, **BENT, **OPTIONS
    )
    return take, *solved(take)


def test_taking_the_field_out_halves_the_error_of_the_lengths(bent):
    take, field, before = bent
    assert field.significant
    _, after = solved(straightened(take, field))
    assert after < 0.6 * before
    assert after < 2e-3


def test_the_field_moves_sensors_towards_the_truth(bent):
    take, field, _ = bent
    true = take.truth.T_world_sensor[..., :3, 3].reshape(-1, 3)

    def error(of):
        place = of.T_world_sensor[..., :3, 3].reshape(-1, 3)
        # As far as a move, a turn and a scale of the whole volume leave open.
        T = geometry.kabsch(place - place.mean(axis=0), true - true.mean(axis=0))
        moved = geometry.apply(T, place - place.mean(axis=0))
        moved *= np.sum(moved * (true - true.mean(axis=0))) / np.sum(moved**2)
        return np.sqrt(np.mean(np.sum((moved - true + true.mean(axis=0)) ** 2, axis=1)))

    assert error(straightened(take, field)) < 0.6 * error(take)


def test_what_was_done_is_said(bent):
    take, field, _ = bent
    straight = straightened(take, field)
    finding = straight.source.findings[-1]
    assert (finding.code, finding.value) == ("field-bent", field.size)
    assert f"{1e3 * field.after:.1f} mm" in finding.message
    assert straight.history[-1].startswith("straightened")


def test_a_field_has_no_move_turn_or_scale(bent):
    take, field, _ = bent
    place = take.T_world_sensor[..., :3, 3].reshape(-1, 3)
    push = field.at(place)
    z = (place - field.middle) / field.reach
    size = field.size
    assert np.abs(push.mean(axis=0)).max() < 1e-9 * size
    assert np.abs(np.cross(z, push).mean(axis=0)).max() < 1e-9 * size
    assert abs(np.sum(z * push, axis=1).mean()) < 1e-9 * size


def test_turns_are_half_the_curl(bent, rng):
    _, field, _ = bent
    points = field.middle + 0.3 * rng.normal(size=(5, 3))
    h = 1e-6
    J = np.stack(
        [
            (field.at(points + h * e) - field.at(points - h * e)) / (2 * h)
            for e in np.eye(3)
        ],
        -1,
    )
    curl = np.stack(
        [J[:, 2, 1] - J[:, 1, 2], J[:, 0, 2] - J[:, 2, 0], J[:, 1, 0] - J[:, 0, 1]], -1
    )
    np.testing.assert_allclose(field.turn(points), 0.5 * curl, atol=1e-7)


@pytest.mark.parametrize("spoilt", [{}, {"noise": 5e-3, "turn_noise": 8e-3}], ids=str)
def test_a_straight_volume_is_left_alone(spoilt):
    take = synth.linkage().record("swing", seed=3, **spoilt, **OPTIONS)
    field, _ = solved(take)
    assert not field.significant


def test_solve_straightens_when_asked(bent):
    take, _, before = bent
    plain = marey.solve(take)
    assert not any(f.code == "field-bent" for f in plain.report.findings)
    asked = marey.solve(take, options=marey.SolveOptions(field=True))
    assert any(f.code == "field-bent" for f in asked.report.findings)
    assert metrics.compare(asked, take).skeletons[0].rms < 0.6 * before


def test_terms_are_all_monomials_with_their_slopes():
    powers = powers_up_to(4)
    assert len(powers) == len({tuple(p) for p in powers.tolist()}) == 35
    z = np.array([[0.5, -2.0, 3.0]])
    value, slope = _terms(z, powers)
    np.testing.assert_allclose(value[0], np.prod(z[0] ** powers, axis=1))
    assert value[0, 0] == 1.0
    row = powers.tolist().index([2, 1, 1])
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
