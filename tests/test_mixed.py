"""Markers and 6-DoF sensors in one solve: shared bodies, one tree, one pose."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import marey
from marey import metrics
from marey.cleaning import find_shared_sensor_slips, undo_sensor_slips
from marey.cli import main
from marey.errors import OptionError
from marey.numerics import geometry
from marey.numerics.procrustes import points_of_poses, poses_of_points
from marey.numerics.resampling import resample_poses
from marey.segmentation import estimate_time_offset, segment
from marey.synth import human

NOISE = {"noise": 1e-3, "turn_noise": 5e-3}
SKIN = {"soft_tissue": 8e-3, "soft_tissue_turn": 0.05}
TWO = ("Hips", "RightLowerArm")
TRUE_BODY = {"Spine": "Chest", "Neck": "Head"}
"""Bodies of the marker set that carry the sensors of other names."""


def record(seed=1, seconds=6.0, sensors=True, markers="sparse41", **options):
    return human(seed=seed).record(
        "exercise",
        seconds=seconds,
        rate=60.0,
        seed=seed + 5,
        markers=markers,
        sensors=sensors,
        **options,
    )


def without_sensors(take):
    none = np.zeros((take.n_frames, 0, 4, 4))
    return replace(take, T_world_sensor=none, sensor_names=())


def without_markers(take):
    return replace(
        take,
        points=np.zeros((take.n_frames, 0, 3)),
        labels=(),
        subjects=(),
        filled=np.zeros((take.n_frames, 0), dtype=bool),
    )


def only_sensors(take, names):
    columns = [take.sensor_names.index(name) for name in names]
    return replace(
        take, T_world_sensor=take.T_world_sensor[:, columns], sensor_names=tuple(names)
    )


def position_error(motion, truth):
    return metrics.compare(motion, truth).position


def mean_error(motions, takes):
    return np.mean([position_error(m, t) for m, t in zip(motions, takes, strict=True)])


def codes(solution):
    return [finding.code for finding in solution.report.findings]


@pytest.fixture(scope="module")
def suit():
    """A person with 41 markers and a sensor on each of 15 bodies."""
    return record(seconds=8.0, **NOISE, **SKIN)


@pytest.fixture(scope="module")
def solved(suit):
    takes = {
        "markers": without_sensors(suit),
        "sensors": without_markers(suit),
        "both": suit,
        "two": only_sensors(suit, TWO),
    }
    return {name: marey.solve(take) for name, take in takes.items()}


# --- bodies ---------------------------------------------------------------------------


def test_sensors_share_the_bodies_of_their_markers():
    take = record()
    bodies = segment(take)
    on_body = [bodies.names[body] for body in bodies.sensor_body]
    assert on_body == [TRUE_BODY.get(name, name) for name in take.sensor_names]
    T = bodies.T_world_body[:, bodies.sensor_body] @ bodies.T_body_sensor
    np.testing.assert_allclose(T, take.T_world_sensor, atol=1e-6)


def test_names_of_sensors_do_not_matter():
    take = record(**NOISE)
    anonymous = [f"S{k}" for k in range(len(take.sensor_names))]
    bodies = segment(replace(take, sensor_names=tuple(anonymous)))
    np.testing.assert_array_equal(bodies.sensor_body, segment(take).sensor_body)


def test_a_sensor_determines_a_body_of_one_or_two_markers():
    take = record(**NOISE)
    alone = segment(without_sensors(take))
    assert not alone.determined.all()
    assert segment(take).determined.all()


def test_a_sensor_without_markers_is_a_body_in_the_tree():
    take = record(**NOISE)
    kept = [k for k, label in enumerate(take.labels) if "FIN" not in label]
    bodies = segment(take.select(kept))
    hand = bodies.names.index("LeftHand")
    assert not bodies.shared[:, hand].any()
    solution = marey.solve(take.select(kept), calibrate=False)
    skeleton = solution.skeleton
    parent = skeleton.parent[skeleton.index("LeftHand")]
    assert skeleton.names[parent] == "LeftLowerArm"
    assert len(solution.subjects) == 1


def test_each_kind_alone_has_the_bodies_it_had():
    take = record(**NOISE)
    sensors = segment(without_markers(take))
    assert sensors.names == sensors.sensor_names == take.sensor_names
    np.testing.assert_array_equal(sensors.T_world_body, take.T_world_sensor)
    assert segment(without_sensors(take)).sensor_names == ()
    asked = segment(take, method="sensors")
    np.testing.assert_array_equal(asked.T_world_body, take.T_world_sensor)


def test_bodies_that_a_program_computed_from_markers_stay_alone():
    take = record(seconds=1.0)
    computed = segment(replace(take, source=replace(take.source, format="motive")))
    assert computed.names == take.sensor_names
    assert not computed.shared.any()
    assert [f.code for f in computed.findings] == ["markers-unused"]


def test_points_of_poses_give_the_poses_back():
    rng = np.random.default_rng(0)
    T = geometry.transform_exp(rng.normal(size=(20, 6)))
    np.testing.assert_allclose(poses_of_points(points_of_poses(T)), T, atol=1e-12)


# --- skeleton and motion --------------------------------------------------------------


def test_both_kinds_are_no_worse_than_the_better_alone(suit, solved):
    error = {
        name: position_error(solution.subjects[0].motions[0], suit)
        for name, solution in solved.items()
    }
    assert error["both"] <= min(error["markers"], error["sensors"])
    assert error["two"] <= error["markers"]


def test_all_markers_and_sensors_are_used(suit, solved):
    for name, n_sensors in (("both", 15), ("two", 2)):
        (subject,) = solved[name].subjects
        assert set(subject.skeleton.marker_labels) == set(suit.labels)
        assert len(subject.skeleton.sensor_names) == n_sensors
        assert "sensor-slipped" not in codes(solved[name])


def test_the_report_shows_the_body_of_each_sensor(suit, solved):
    table = solved["both"].report.tables["sensors"]
    shown = {row[0]: row[2] for row in table.rows}
    assert shown == {name: TRUE_BODY.get(name, name) for name in suit.sensor_names}
    offset_sd = np.array([[row[5], row[7]] for row in table.rows])
    assert (offset_sd > 0.0).all()
    message = next(
        finding.message
        for finding in solved["both"].report.findings
        if finding.code == "markers-and-sensors"
    )
    assert message.startswith(
        "41 markers and 15 sensors are used: 15 on the bodies of markers"
    )
    for alone in ("markers", "sensors"):
        assert "sensors" not in solved[alone].report.tables


@pytest.mark.parametrize("pose", ["bfgs", "physics"])
def test_other_pose_methods_take_both(pose):
    """An exact take that shows every joint has the exact answer."""
    take = record(seconds=1.0)
    motion = marey.solve(take, pose=pose, calibrate=False).subjects[0].motions[0]
    assert position_error(motion, take) < 1e-6


def test_playback_beside_markers_is_refused():
    with pytest.raises(OptionError, match=r"playback.*41 markers.*gauss_newton"):
        marey.solve(record(seconds=0.5), pose="playback")


# --- takes of different kind ----------------------------------------------------------


@pytest.fixture(scope="module")
def two_takes():
    return record(seconds=5.0, sensors=False, **NOISE), human(seed=1).record(
        "exercise",
        seconds=5.0,
        rate=60.0,
        seed=51,
        markers="none",
        sensors=True,
        **NOISE,
    )


def test_a_marker_take_and_a_sensor_take_have_one_skeleton(two_takes):
    together = marey.solve(two_takes)
    (subject,) = together.subjects
    alone = [marey.solve(take).subjects[0].motions[0] for take in two_takes]
    assert mean_error(subject.motions, two_takes) <= mean_error(alone, two_takes)
    assert len(subject.skeleton.marker_labels) == 41
    assert len(subject.skeleton.sensor_names) == 15


def test_a_sensor_take_does_not_blur_what_markers_determine():
    """Sensors that only another take shows define no axes of bones."""
    markers = record(6, seconds=5.0, sensors=False, **NOISE, **SKIN)
    sensors = human(seed=6).record(
        "exercise",
        seconds=5.0,
        rate=60.0,
        seed=56,
        markers="none",
        sensors=True,
        **NOISE,
        **SKIN,
    )
    alone, together = marey.solve(markers), marey.solve([markers, sensors])
    before, after = (one.subjects[0].motions[0] for one in (alone, together))
    error = [position_error(motion, markers) for motion in (before, after)]
    assert error[1] < 1.05 * error[0]
    sd = [
        np.sqrt(np.trace(motion.skeleton.covariance, axis1=1, axis2=2))
        for motion in (before, after)
    ]
    assert np.nanmax(sd[1]) < 1.5 * np.nanmax(sd[0])


def test_a_brief_motion_of_sensors_shows_the_bones_of_the_same_person():
    """Wrists move in one second of ten: samples of frames would miss them."""
    person, options = human(seed=11), {"seconds": 10.0, "rate": 20.0, **NOISE}
    markers = person.record("exercise", seed=21, markers="set53", **options)
    sensors = person.record(
        "exercise", seed=41, markers="none", sensors=True, **options
    )
    solution = marey.solve([markers, sensors])
    assert "subjects-differ" not in codes(solution)


# --- time offset ----------------------------------------------------------------------


def test_a_shift_by_whole_frames_is_exact():
    T = record(seconds=1.0).T_world_sensor
    np.testing.assert_array_equal(resample_poses(T, 3.0)[:-3], T[3:])
    assert np.isnan(resample_poses(T, 3.0)[-3:]).all()
    np.testing.assert_array_equal(resample_poses(T, -2.0)[2:], T[:-2])


def test_a_shift_is_exact_for_cubic_paths():
    t = np.arange(20.0)

    def poses(t):
        path = np.stack([t**3 - t, 2.0 * t**2, 5.0 * t - t**3], axis=-1)
        return geometry.transform(np.eye(3), 1e-3 * path)

    np.testing.assert_allclose(
        resample_poses(poses(t), 0.37)[1:-2], poses(t + 0.37)[1:-2], atol=1e-12
    )


def test_a_shift_keeps_gaps():
    T = record(seconds=1.0).T_world_sensor[:, :1].copy()
    T[20:25] = np.nan
    gap = np.isnan(resample_poses(T, 0.5)).any(axis=(1, 2, 3))
    np.testing.assert_array_equal(np.flatnonzero(gap), [19, 20, 21, 22, 23, 24, 59])


@pytest.mark.parametrize("delay", [0.0, 0.0073, -0.12])
@pytest.mark.parametrize(
    ("seed", "skin"), [pytest.param(1, {}, marks=pytest.mark.slow), (2, SKIN)]
)
def test_the_delay_of_sensors_is_found_within_its_uncertainty(delay, seed, skin):
    take = record(seed, seconds=5.0, sensor_delay=delay, **NOISE, **skin)
    found = estimate_time_offset(segment(take))
    assert abs(found.seconds - delay) < 3.0 * found.sd
    assert found.sd < 0.02 / take.rate
    assert found.is_significant == (delay != 0.0)
    assert found.n_sensors == 15


def test_one_sensor_is_enough_for_the_delay():
    take = record(sensors=("LeftHand",), sensor_delay=0.25, **NOISE)
    found = estimate_time_offset(segment(take))
    assert abs(found.seconds - 0.25) < 3.0 * found.sd


def test_the_delay_is_corrected_and_reported(suit, solved):
    late = record(seconds=8.0, sensor_delay=0.05, **NOISE, **SKIN)
    solution = marey.solve(late)
    finding = next(f for f in solution.report.findings if f.code == "time-offset")
    assert finding.value == pytest.approx(0.05, abs=1e-3)
    in_time = position_error(solved["both"].subjects[0].motions[0], suit)
    error = position_error(solution.subjects[0].motions[0], late)
    assert error == pytest.approx(in_time, rel=0.1)


def test_a_delay_that_is_given_is_used():
    take = record(seconds=2.0, sensor_delay=0.1)
    as_is: dict[str, Any] = {"time_offset": 0.1, "clean": False, "calibrate": False}
    solution = marey.solve(take, **as_is)
    moved = solution.takes[0].T_world_sensor
    np.testing.assert_allclose(moved[6:-6], take.truth.T_world_sensor[6:-6], atol=1e-6)
    unused = marey.solve(without_sensors(take), **as_is)
    assert "option-unused" in codes(unused)


def test_a_take_that_stands_still_has_no_delay():
    take = record(seconds=2.0)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=take.points.shape)
    T = np.repeat(take.T_world_sensor[:1], take.n_frames, axis=0)
    still = replace(take, points=take.points[:1] + noise, T_world_sensor=T)
    found = estimate_time_offset(segment(still, method="labels"))
    assert found is None or not found.is_significant


# --- other doors ----------------------------------------------------------------------


def test_the_command_line_solves_both(tmp_path, capsys):
    path = tmp_path / "suit.npz"
    marey.write(record(seconds=2.0, sensors=TWO), path)
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(path), "--json", "--no-calibrate"])
    assert stop.value.code == 0
    report = json.loads(capsys.readouterr().out)
    rows = report["tables"]["sensors"]["rows"]
    assert [row[2] for row in rows] == list(TWO)


def test_a_sensor_beside_markers_slips_as_one_among_sensors():
    """The sensor is alone on its body; the markers of other bodies show its slip."""
    figure, slipped = human(seed=4), "LeftLowerLeg"
    whole = figure.record(
        "exercise",
        seconds=5.0,
        rate=40.0,
        markers="set53",
        sensors=(slipped,),
        seed=2,
        **NOISE,
    )
    joint = whole.truth.motion.skeleton.index(slipped)
    take = whole.select(np.flatnonzero(whole.truth.marker_joint != joint).tolist())
    T = take.T_world_sensor.copy()
    T[100:, 0] = T[100:, 0] @ geometry.transform(np.eye(3), np.array([0.02, 0.02, 0]))
    findings = [
        [
            f
            for f in marey.solve(one, calibrate=False).report.findings
            if "slip" in f.code
        ]
        for one in (take, replace(take, T_world_sensor=T))
    ]
    assert findings[0] == []
    (slip,) = findings[1]
    assert (slip.code, slip.subject) == ("sensor-slipped", slipped)
    assert abs(slip.frames[0] - 100) <= 3


@pytest.mark.parametrize("skin", [{}, SKIN])
def test_a_sensor_that_shares_its_body_slips_in_the_axes_of_its_markers(skin):
    take = record(2, seconds=5.0, sensors=TWO, **NOISE, **skin)
    assert find_shared_sensor_slips([segment(take)]) == ()
    slip = geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.05, 0.0])), np.array([0.01, 0.02, 0.0])
    )
    T = take.T_world_sensor.copy()
    T[150:, 0] = T[150:, 0] @ slip
    slipped = replace(take, T_world_sensor=T)
    (found,) = find_shared_sensor_slips([segment(slipped)])
    assert (found.sensor, found.joints) == (TWO[0], ())
    assert abs(found.frame - 150) <= 3
    assert set(found.markers) <= set(take.labels)
    tolerance = 0.02 if skin else 0.002  # skin turns sensors by 0.05 rad
    np.testing.assert_allclose(found.T_before_after, slip, atol=tolerance)
    (again,) = undo_sensor_slips([slipped], [found])
    assert find_shared_sensor_slips([segment(again)]) == ()


def test_a_marker_that_slips_is_no_slip_of_the_sensor_beside_it():
    take = record(2, seconds=5.0, sensors=TWO, **NOISE)
    bodies = segment(take)
    marker = int(np.flatnonzero(bodies.marker_body == bodies.sensor_body[0])[0])
    points = take.points.copy()
    R = bodies.T_world_body[150:, bodies.sensor_body[0], :3, :3]
    points[150:, marker] += R @ np.array([0.0, 0.0, 0.03])
    assert find_shared_sensor_slips([segment(replace(take, points=points))]) == ()


def test_a_solve_undoes_the_slip_of_a_sensor_beside_markers():
    take = record(2, seconds=4.0, sensors=TWO, **NOISE)
    T = take.T_world_sensor.copy()
    T[120:, 0] = T[120:, 0] @ geometry.transform(np.eye(3), np.array([0.03, 0.0, 0.0]))
    solution = marey.solve(replace(take, T_world_sensor=T), calibrate=False)
    (slip,) = [f for f in solution.report.findings if f.code == "sensor-slipped"]
    assert slip.subject == TWO[0]
    assert "markers on its body" in slip.message
    off = (
        solution.takes[0].T_world_sensor[:, 0, :3, 3] - take.T_world_sensor[:, 0, :3, 3]
    )
    assert np.sqrt(np.mean(np.sum(off**2, axis=1))) < 0.002
