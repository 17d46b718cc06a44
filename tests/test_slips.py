"""Sensors that slip: found, dated, measured and taken back."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from joint_samples import jointed, moved, sensor_bodies, shaken

import marey
from marey import metrics, synth
from marey.cleaning import Slip, repaired
from marey.cleaning.slips.long_run_variance import long_run_variance
from marey.cleaning.slips.sensor_likelihood import evidence, side_of
from marey.cleaning.slips.sensor_search import log_exceedance
from marey.numerics import geometry
from marey.segmentation import segment

WHITE = {"noise": 5e-3, "turn_noise": np.radians(0.5)}
COLOURED = {"coloured": 5e-3, "turn_noise": np.radians(0.5)}


def recorded(figure=None, motion="swing", seconds=30.0, **options):
    chosen = {"markers": "none", "sensors": True, "rate": 60.0, **options}
    return (figure or synth.linkage()).record(motion, seconds=seconds, **chosen)


def slips_in(take):
    bodies = segment(take)
    joints = marey.fit_joints(bodies, estimator="least_squares")
    return marey.find_slips(bodies, joints, marey.infer_tree(joints))


def true_slips(take):
    log = [change for change in take.truth.log if change.kind == "slips"]
    return {(take.sensor_names[c.index], c.first) for c in log}


def slipped(take, sensor, frame, change):
    """The take with a sensor moved on its body from some frame on."""
    T = take.T_world_sensor.copy()
    index = take.sensor_names.index(sensor)
    T[frame:, index] = T[frame:, index] @ change
    return replace(take, T_world_sensor=T)


CHANGE = geometry.transform_exp(np.array([0.01, -0.03, 0.02, 0.1, 0.05, -0.2]))


# --- the statistic --------------------------------------------------------------------


@pytest.mark.parametrize("frame", [12, 60, 100])
def test_shift_and_ratio_are_those_of_two_least_squares_fits(rng, frame):
    T = shaken(rng, jointed(rng, 120))
    T[30:40, 0] = np.nan
    side = side_of(T[:, 0], T[:, 1])
    center, shift, fall = naive.joint_shift(T[:, 0], T[:, 1], frame)
    at = np.array([frame])
    np.testing.assert_allclose(side.at(at)[0][0], shift, atol=1e-9)
    np.testing.assert_allclose(side.ends(frame), [center, center + shift], atol=1e-9)
    assert side.statistic(at)[0] == pytest.approx(fall / side.variance, rel=1e-5)
    # One joint alone: any shift is a motion of the sensor.
    ratio, _ = evidence([side], np.eye(1), at)
    assert ratio[0] == pytest.approx(fall / side.variance, rel=1e-3)


def test_the_long_run_variance_is_that_of_the_noise(rng):
    white = rng.normal(size=(20_000, 3))
    slow = np.zeros_like(white)
    for k in range(1, len(slow)):
        slow[k] = 0.95 * slow[k - 1] + 0.2 * rng.normal(size=3)
    for series, true in ((white, 1.0), (slow, 16.0), (white + slow, 17.0)):
        found, freedoms = long_run_variance(series)
        assert found == pytest.approx(true, rel=0.2)
        assert freedoms > 20.0
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
    take = recorded(seconds=10.0)
    spoilt = slipped(take, "Torso", 250, CHANGE)
    (slip,) = slips_in(spoilt)
    assert (slip.sensor, slip.frame, slip.turn_known) == ("Torso", 250, True)
    np.testing.assert_allclose(slip.T_before_after, CHANGE, atol=1e-6)
    assert slip.size == pytest.approx(np.linalg.norm(CHANGE[:3, 3]), abs=1e-6)
    (mended,) = repaired([spoilt], [slip])
    np.testing.assert_allclose(mended.T_world_sensor, take.T_world_sensor, atol=1e-6)
    assert "Torso slipped by 37" in mended.history[-1]
    (finding,) = mended.source.findings
    assert (finding.subject, finding.frames) == ("Torso", (250, 250))
    assert "LeftUpperArm" in finding.message


def test_one_joint_tells_of_a_shift_and_no_turn():
    take = recorded(seconds=10.0)
    (slip,) = slips_in(slipped(take, "LeftLowerArm", 300, CHANGE))
    assert (slip.sensor, slip.frame) == ("LeftLowerArm", 300)
    assert not slip.turn_known
    assert slip.turn == pytest.approx(0.0, abs=1e-3)
    # The joint is where it was, whatever the sensor did.
    joints = marey.fit_joints(segment(take))
    row = np.flatnonzero((joints.pair == [2, 3]).all(axis=1))[0]
    own = take.sensor_names.index("LeftLowerArm")
    center = (
        joints.center_a[row] if joints.pair[row, 0] == own else joints.center_b[row]
    )
    back = geometry.apply(
        slip.T_before_after, geometry.apply(geometry.inverse(CHANGE), center)
    )
    np.testing.assert_allclose(back, center, atol=1e-4)


@pytest.mark.parametrize("noise", [WHITE, COLOURED], ids=["white", "coloured"])
@pytest.mark.parametrize("motion", ["swing", "exercise"])
def test_noise_alone_is_no_slip(noise, motion):
    found = [slips_in(recorded(motion=motion, seed=s, **noise)) for s in range(3)]
    assert found == [()] * 3


@pytest.mark.parametrize(
    "options",
    [{"slip_size": 3e-3}, {"slip_size": 0.0, "slip_turn": 0.1}],
    ids=["three millimetres", "six degrees"],
)
def test_small_slips_are_found_in_noise(options):
    hits = []
    for seed in range(5):
        take = recorded(seed=seed, slips=1, **WHITE, **options)
        ((sensor, frame),) = true_slips(take)
        hits += [(s.sensor == sensor, abs(s.frame - frame)) for s in slips_in(take)]
    assert len(hits) == 5
    assert sum(right for right, _ in hits) >= 4
    assert np.median([late for _, late in hits]) <= 15


def test_several_slips_are_told_apart():
    take = recorded(synth.human(), "exercise", slips=4, slip_size=0.03, **WHITE)
    found = slips_in(take)
    assert {s.sensor for s in found} == {name for name, _ in true_slips(take)}
    assert list(found) == sorted(found, key=lambda s: s.frame)
    for slip in found:
        (frame,) = (f for name, f in true_slips(take) if name == slip.sensor)
        assert abs(slip.frame - frame) <= 3
        assert slip.size == pytest.approx(0.03, abs=0.004)


def test_two_slips_of_one_sensor_are_taken_back_in_turn():
    take = recorded(seed=2, noise=1e-3)
    first = slipped(take, "Torso", 500, CHANGE)
    second = slipped(first, "Torso", 1200, geometry.inverse(CHANGE))
    found = slips_in(second)
    assert [(s.sensor, s.frame) for s in found] == [("Torso", 500), ("Torso", 1200)]
    (mended,) = repaired([second], found)
    off = mended.T_world_sensor - take.T_world_sensor
    assert np.abs(off).max() < 2e-3


def test_slips_are_the_same_in_any_world_and_any_order(rng):
    take = recorded(seconds=15.0, slips=1, slip_size=0.02, **WHITE)
    bodies = segment(take)
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_slips(bodies, joints, marey.infer_tree(joints))
    elsewhere = moved(bodies, geometry.transform_exp(rng.normal(size=6)))
    (again,) = marey.find_slips(elsewhere, joints, marey.infer_tree(joints))
    assert (again.sensor, again.frame) == (slip.sensor, slip.frame)
    np.testing.assert_allclose(again.T_before_after, slip.T_before_after, atol=1e-6)
    order = rng.permutation(len(take.sensor_names))
    shuffled = replace(
        take,
        T_world_sensor=take.T_world_sensor[:, order],
        sensor_names=tuple(take.sensor_names[i] for i in order),
    )
    (other,) = slips_in(shuffled)
    np.testing.assert_allclose(other.T_before_after, slip.T_before_after, atol=1e-6)


def test_a_slip_lasts_into_the_takes_that_follow():
    take = recorded(seconds=20.0, noise=1e-3)
    whole = slipped(take, "Head", 500, CHANGE)
    parts = [whole.cut(0, 700), whole.cut(700, 1200)]
    bodies = [segment(part) for part in parts]
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_slips(bodies, joints, marey.infer_tree(joints))
    assert (slip.sensor, slip.take, slip.frame) == ("Head", 0, 500)
    mended = repaired(parts, [slip])
    assert not mended[1].source.findings
    index = take.sensor_names.index("Head")
    expected = parts[1].T_world_sensor[:, index] @ geometry.inverse(slip.T_before_after)
    np.testing.assert_allclose(mended[1].T_world_sensor[:, index], expected, atol=1e-12)
    between = [take.cut(0, 700), whole.cut(700, 1200)]
    bodies = [segment(part) for part in between]
    joints = marey.fit_joints(bodies, estimator="least_squares")
    (slip,) = marey.find_slips(bodies, joints, marey.infer_tree(joints))
    assert (slip.take, slip.frame) == (1, 0)


def test_less_than_a_millimetre_is_no_slip():
    take = recorded(seconds=10.0)
    way = geometry.transform(np.eye(3), np.array([0.0, 9e-4, 0.0]))
    assert slips_in(slipped(take, "Head", 300, way)) == ()


def test_too_little_to_go_by_is_no_slip(rng):
    short = sensor_bodies(shaken(rng, jointed(rng, 30)))
    joints = marey.fit_joints(short)
    assert marey.find_slips(short, joints, marey.infer_tree(joints)) == ()
    with pytest.raises(marey.OptionError, match="above 0 and below 1"):
        marey.find_slips(short, joints, marey.infer_tree(joints), level=0.0)
    bent = sensor_bodies(jointed(rng, 300) @ np.diag([2.0, 2.0, 2.0, 1.0]))
    joints = marey.fit_joints(bent)
    assert marey.find_slips(bent, joints, marey.infer_tree(joints)) == ()


# --- the whole way --------------------------------------------------------------------


def test_lengths_survive_a_slip():
    errors = {}
    for size in (0.0, 0.03):
        scores = []
        for seed in range(2):
            take = recorded(seed=seed, slips=1, slip_size=size, slip_frame=900, **WHITE)
            scores.append(metrics.compare(marey.solve(take), take).skeletons[0].rms)
        errors[size] = np.sqrt(np.mean(np.square(scores)))
    assert errors[0.03] <= 1.2 * errors[0.0]


def test_a_solution_after_a_slip_says_so_and_plays_back_right():
    take = recorded(seed=4, slips=1, slip_size=0.05, slip_turn=0.2, noise=1e-3)
    ((sensor, _),) = true_slips(take)
    solution = marey.solve(take)
    (finding,) = (f for f in solution.report.findings if f.code == "sensor-slipped")
    assert finding.subject == sensor
    assert finding.value == pytest.approx(0.05, abs=0.03)
    assert any("taken back" in line for line in solution.take.history)
    left = marey.solve(take, options=marey.SolveOptions(clean=False))
    assert not any(f.code == "sensor-slipped" for f in left.report.findings)
    good, bad = (metrics.compare(s, take).motions[0] for s in (solution, left))
    assert good.position_max < 0.5 * bad.position_max


def test_a_slip_prints_what_it_was():
    slip = Slip(
        sensor="hand",
        frame=7,
        T_before_after=geometry.transform(np.eye(3), np.array([0.003, 0.0, 0.004])),
        p_value=1e-9,
        joints=("arm",),
        turn_known=False,
    )
    assert str(slip) == "slipped by 5.0 mm and 0.0 deg at frame 7"
    assert "not fully seen" in slip.finding.message
