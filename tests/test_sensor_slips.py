"""Slips of sensors: found with frame and pose change, and undone."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from joint_samples import add_noise, joined_poses, move_world, sensor_bodies

import marey
from marey import metrics, synth
from marey.cleaning import SensorSlip, undo_sensor_slips
from marey.cleaning.slips.change_point import log_exceedance, long_run_variance
from marey.cleaning.slips.sensor_likelihood import (
    constant_basis,
    fit_joint_in_sensor,
    slip_likelihood_ratio,
)
from marey.cleaning.slips.skin_search import SkinSlipSearch
from marey.numerics import geometry
from marey.segmentation import segment

WHITE = {"noise": 5e-3, "turn_noise": np.radians(0.5)}
COLOURED = {"coloured": 5e-3, "turn_noise": np.radians(0.5)}


def record(figure=None, motion="swing", seconds=30.0, **options):
    chosen = {"markers": "none", "sensors": True, "rate": 60.0, **options}
    return (figure or synth.linkage()).record(motion, seconds=seconds, **chosen)


def fit_and_find_slips(take):
    bodies = segment(take)
    joints = marey.fit_joints(bodies, estimator="least_squares")
    return marey.find_sensor_slips(bodies, joints, marey.infer_tree(joints))


def true_slips(take):
    log = [change for change in take.truth.log if change.kind == "slips"]
    return {(take.sensor_names[c.index], c.first) for c in log}


def add_slip(take, sensor, frame, change):
    """Return the take with a sensor moved on its body from some frame on."""
    T = take.T_world_sensor.copy()
    index = take.sensor_names.index(sensor)
    T[frame:, index] = T[frame:, index] @ change
    return replace(take, T_world_sensor=T)


CHANGE = geometry.transform_exp(np.array([0.01, -0.03, 0.02, 0.1, 0.05, -0.2]))


# --- the statistic --------------------------------------------------------------------


@pytest.mark.parametrize("frame", [12, 60, 100])
def test_displacement_and_ratio_are_those_of_two_least_squares_fits(rng, frame):
    T = add_noise(rng, joined_poses(rng, 120))
    T[30:40, 0] = np.nan
    still = constant_basis(len(T))
    joint = fit_joint_in_sensor(T[:, 0], T[:, 1], (still, still))
    center, displacement, fall = naive.joint_shift(T[:, 0], T[:, 1], frame)
    at = np.array([frame])
    np.testing.assert_allclose(
        joint.estimate_displacement(at)[0][0], displacement, atol=1e-9
    )
    expected = [center, center + displacement]
    np.testing.assert_allclose(joint.change_of_center(frame)[:2], expected, atol=1e-9)
    assert joint.likelihood_ratio(at)[0] == pytest.approx(
        fall / joint.variance, rel=1e-5
    )
    # A motion of the sensor can explain any displacement of one joint.
    ratio, _ = slip_likelihood_ratio([joint], np.eye(1), at)
    assert ratio[0] == pytest.approx(fall / joint.variance, rel=1e-3)


def test_the_long_run_variance_is_that_of_the_noise(rng):
    white = rng.normal(size=(20_000, 3))
    slow = np.zeros_like(white)
    for k in range(1, len(slow)):
        slow[k] = 0.95 * slow[k - 1] + 0.2 * rng.normal(size=3)
    for series, true in ((white, 1.0), (slow, 16.0), (white + slow, 17.0)):
        found, dof = long_run_variance(series)
        assert found == pytest.approx(true, rel=0.2)
        assert dof > 20.0
    stepped = white + 3.0 * (np.arange(len(white)) > 7000)[:, None]
    assert long_run_variance(stepped)[0] == pytest.approx(1.0, rel=0.1)


def test_the_tail_of_the_largest_ratio_is_that_of_simulated_bridges(rng):
    n, runs = 500, 4000
    walks = np.cumsum(rng.normal(size=(runs, n, 3)), axis=1)
    share = np.arange(1, n + 1)[None, :, None] / n
    bridge = walks - share * walks[:, -1:]
    times = slice(24, 475)
    weight = (n * share * (1.0 - share))[:, times]
    largest = np.max(np.sum(bridge[:, times] ** 2 / weight, axis=2), axis=1)
    for limit in (16.0, 20.0):
        theory = np.exp(log_exceedance(limit, 3, (0.05, 0.05)))
        assert np.mean(largest > limit) == pytest.approx(theory, rel=0.35)


# --- finding --------------------------------------------------------------------------


def test_a_slip_in_exact_data_is_found_exactly():
    take = record(seconds=10.0)
    corrupted = add_slip(take, "Torso", 250, CHANGE)
    (slip,) = fit_and_find_slips(corrupted)
    assert (slip.sensor, slip.frame, slip.rotation_known) == ("Torso", 250, True)
    np.testing.assert_allclose(slip.T_before_after, CHANGE, atol=1e-6)
    assert slip.size == pytest.approx(np.linalg.norm(CHANGE[:3, 3]), abs=1e-6)
    (repaired,) = undo_sensor_slips([corrupted], [slip])
    np.testing.assert_allclose(repaired.T_world_sensor, take.T_world_sensor, atol=1e-6)
    assert "Torso slipped by 37" in repaired.history[-1]
    (finding,) = repaired.source.findings
    assert (finding.subject, finding.frames) == ("Torso", (250, 250))
    assert "LeftUpperArm" in finding.message


def test_one_joint_determines_a_displacement_and_no_rotation():
    take = record(seconds=10.0)
    (slip,) = fit_and_find_slips(add_slip(take, "LeftLowerArm", 300, CHANGE))
    assert (slip.sensor, slip.frame) == ("LeftLowerArm", 300)
    assert not slip.rotation_known
    assert slip.angle == pytest.approx(0.0, abs=1e-3)
    # The joint centre is at its old position, whatever the rotation.
    joints = marey.fit_joints(segment(take))
    row = np.flatnonzero((joints.pair == [2, 3]).all(axis=1))[0]
    sensor = take.sensor_names.index("LeftLowerArm")
    center = (
        joints.center_a[row] if joints.pair[row, 0] == sensor else joints.center_b[row]
    )
    restored = geometry.apply(
        slip.T_before_after, geometry.apply(geometry.inverse(CHANGE), center)
    )
    np.testing.assert_allclose(restored, center, atol=1e-4)


@pytest.mark.parametrize("noise", [WHITE, COLOURED], ids=["white", "coloured"])
@pytest.mark.parametrize("motion", ["swing", "exercise"])
def test_noise_alone_is_no_slip(noise, motion):
    found = [
        fit_and_find_slips(record(motion=motion, seed=s, **noise)) for s in range(3)
    ]
    assert found == [()] * 3


@pytest.mark.parametrize(
    "options",
    [{"slip_size": 3e-3}, {"slip_size": 0.0, "slip_turn": 0.1}],
    ids=["three millimetres", "six degrees"],
)
def test_small_slips_are_found_in_noise(options):
    hits = []
    for seed in range(5):
        take = record(seed=seed, slips=1, **WHITE, **options)
        ((sensor, frame),) = true_slips(take)
        hits += [
            (s.sensor == sensor, abs(s.frame - frame)) for s in fit_and_find_slips(take)
        ]
    assert len(hits) == 5
    assert sum(right for right, _ in hits) >= 4
    assert np.median([late for _, late in hits]) <= 15


def test_several_slips_are_separated():
    take = record(synth.human(), "exercise", slips=4, slip_size=0.03, **WHITE)
    found = fit_and_find_slips(take)
    assert {s.sensor for s in found} == {name for name, _ in true_slips(take)}
    assert list(found) == sorted(found, key=lambda s: s.frame)
    for slip in found:
        (frame,) = (f for name, f in true_slips(take) if name == slip.sensor)
        assert abs(slip.frame - frame) <= 3
        assert slip.size == pytest.approx(0.03, abs=0.004)


def test_two_slips_of_one_sensor_are_both_undone():
    take = record(seed=2, noise=1e-3)
    first = add_slip(take, "Torso", 500, CHANGE)
    second = add_slip(first, "Torso", 1200, geometry.inverse(CHANGE))
    found = fit_and_find_slips(second)
    assert [(s.sensor, s.frame) for s in found] == [("Torso", 500), ("Torso", 1200)]
    (repaired,) = undo_sensor_slips([second], found)
    error = repaired.T_world_sensor - take.T_world_sensor
    assert np.abs(error).max() < 2e-3


def test_slips_do_not_depend_on_world_axes_or_sensor_order(rng):
    take = record(seconds=15.0, slips=1, slip_size=0.02, **WHITE)
    bodies = segment(take)
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_sensor_slips(bodies, joints, marey.infer_tree(joints))
    elsewhere = move_world(bodies, geometry.transform_exp(rng.normal(size=6)))
    (again,) = marey.find_sensor_slips(elsewhere, joints, marey.infer_tree(joints))
    assert (again.sensor, again.frame) == (slip.sensor, slip.frame)
    np.testing.assert_allclose(again.T_before_after, slip.T_before_after, atol=1e-6)
    order = rng.permutation(len(take.sensor_names))
    shuffled = replace(
        take,
        T_world_sensor=take.T_world_sensor[:, order],
        sensor_names=tuple(take.sensor_names[i] for i in order),
    )
    (other,) = fit_and_find_slips(shuffled)
    np.testing.assert_allclose(other.T_before_after, slip.T_before_after, atol=1e-6)


def test_a_slip_lasts_into_the_takes_that_follow():
    take = record(seconds=20.0, noise=1e-3)
    whole = add_slip(take, "Head", 500, CHANGE)
    parts = [whole.cut(0, 700), whole.cut(700, 1200)]
    bodies = [segment(part) for part in parts]
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_sensor_slips(bodies, joints, marey.infer_tree(joints))
    assert (slip.sensor, slip.take, slip.frame) == ("Head", 0, 500)
    repaired = undo_sensor_slips(parts, [slip])
    assert not repaired[1].source.findings
    index = take.sensor_names.index("Head")
    expected = parts[1].T_world_sensor[:, index] @ geometry.inverse(slip.T_before_after)
    np.testing.assert_allclose(
        repaired[1].T_world_sensor[:, index], expected, atol=1e-12
    )
    between = [take.cut(0, 700), whole.cut(700, 1200)]
    bodies = [segment(part) for part in between]
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_sensor_slips(bodies, joints, marey.infer_tree(joints))
    assert (slip.take, slip.frame) == (1, 0)


def test_less_than_a_millimetre_is_no_slip():
    take = record(seconds=10.0)
    change = geometry.transform(np.eye(3), np.array([0.0, 9e-4, 0.0]))
    assert fit_and_find_slips(add_slip(take, "Head", 300, change)) == ()


SKIN = {"noise": 1e-3, "soft_tissue": 0.01, "soft_tissue_turn": 0.05}


@pytest.mark.parametrize("motion", ["walk", "exercise"])
def test_skin_that_moves_with_posture_is_no_slip(motion):
    take = record(synth.human(), motion, 10.0, seed=1, **SKIN)
    assert fit_and_find_slips(take) == ()


def test_slips_on_moving_skin_are_found():
    hits = 0
    for seed in range(4):
        take = record(seed=seed, seconds=15.0, slips=1, slip_turn=0.17, **SKIN)
        ((sensor, frame),) = true_slips(take)
        found = fit_and_find_slips(take)
        assert all(abs(slip.frame - frame) <= 2 for slip in found)
        hits += [slip.sensor for slip in found] == [sensor]
    assert hits >= 3


def test_skin_as_a_function_of_posture_does_not_depend_on_the_mounting(rng):
    """A sensor turned on its body spans the same functions of posture."""
    take = record(seconds=3.0)
    turned = add_slip(take, "Torso", 0, geometry.transform_exp(rng.normal(size=6)))
    spans = []
    for one in (take, turned):
        search = SkinSlipSearch((segment(one),), np.array([[0, 1], [0, 2]]), 1e-4)
        basis = search.posture_basis(0)
        spans.append(basis @ np.linalg.pinv(basis))
    np.testing.assert_allclose(spans[0], spans[1], atol=1e-9)


def test_short_and_sheared_recordings_have_no_slips(rng):
    short = sensor_bodies(add_noise(rng, joined_poses(rng, 30)))
    joints = marey.fit_joints(short)
    assert marey.find_sensor_slips(short, joints, marey.infer_tree(joints)) == ()
    with pytest.raises(marey.OptionError, match="above 0 and below 1"):
        marey.find_sensor_slips(short, joints, marey.infer_tree(joints), level=0.0)
    sheared = sensor_bodies(joined_poses(rng, 300) @ np.diag([2.0, 2.0, 2.0, 1.0]))
    joints = marey.fit_joints(sheared)
    assert marey.find_sensor_slips(sheared, joints, marey.infer_tree(joints)) == ()


# --- in a solve -----------------------------------------------------------------------


def test_frames_at_which_rounding_hides_a_slip_are_no_slip():
    """Skin that follows a short motion explains any displacement at some frames."""
    take = synth.human(seed=3).record(
        "exercise", seconds=1.5, seed=1, markers="none", sensors=True, noise=1e-3
    )
    assert "sensor-slipped" not in {f.code for f in marey.solve(take).report.findings}


def test_lengths_survive_a_slip():
    errors = {}
    for size in (0.0, 0.03):
        scores = []
        for seed in range(2):
            take = record(seed=seed, slips=1, slip_size=size, slip_frame=900, **WHITE)
            scores.append(metrics.compare(marey.solve(take), take).skeletons[0].rms)
        errors[size] = np.sqrt(np.mean(np.square(scores)))
    assert errors[0.03] <= 1.2 * errors[0.0]


def test_solve_undoes_a_slip_and_reports_it():
    take = record(seed=4, slips=1, slip_size=0.05, slip_turn=0.2, noise=1e-3)
    ((sensor, _),) = true_slips(take)
    solution = marey.solve(take)
    (finding,) = (f for f in solution.report.findings if f.code == "sensor-slipped")
    assert finding.subject == sensor
    assert finding.value == pytest.approx(0.05, abs=0.03)
    assert any("undid slip" in line for line in solution.take.history)
    left = marey.solve(take, options=marey.SolveOptions(clean=False))
    assert not any(f.code == "sensor-slipped" for f in left.report.findings)
    good, bad = (metrics.compare(s, take).motions[0] for s in (solution, left))
    assert good.position_max < 0.5 * bad.position_max


def test_a_slip_prints_its_size():
    slip = SensorSlip(
        sensor="hand",
        frame=7,
        T_before_after=geometry.transform(np.eye(3), np.array([0.003, 0.0, 0.004])),
        p_value=1e-9,
        joints=("arm",),
        rotation_known=False,
    )
    assert str(slip) == "slipped by 5.0 mm at frame 7"
    assert "as far as its joints show" in slip.finding.message
    R = geometry.rotation_exp(np.array([0.0, 0.0, np.radians(20.0)]))
    turned = replace(slip, T_before_after=geometry.transform(R, np.zeros(3)))
    assert str(turned) == "slipped by 0.0 mm and 20.0 deg or more at frame 7"
    known = replace(turned, rotation_known=True)
    assert str(known) == "slipped by 0.0 mm and 20.0 deg at frame 7"
