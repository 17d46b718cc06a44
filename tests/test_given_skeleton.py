"""A solve with a skeleton that is given: its bones are kept, its motion is found."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import marey
from marey import synth
from marey.attach import scale_skeleton, strip
from marey.pipeline.stages.given_skeleton import read_source

LIMBS = tuple(
    side + part
    for side in ("Left", "Right")
    for part in ("UpperLeg", "LowerLeg", "Foot", "UpperArm", "LowerArm", "Hand")
)
NOISE_M = 1e-3
RECORD = {"seconds": 6.0, "rate": 50.0, "noise": NOISE_M}


@pytest.fixture(scope="module")
def person():
    return synth.human(seed=4)


@pytest.fixture(scope="module")
def take(person):
    return person.record("exercise", markers="set53", seed=2, **RECORD)


@pytest.fixture(scope="module")
def sensors(person):
    return person.record("exercise", markers="none", sensors=True, seed=3, **RECORD)


@pytest.fixture(scope="module")
def true(take):
    """The true skeleton without markers."""
    return strip(take.truth.motion.skeleton)


@pytest.fixture(scope="module")
def free_error(take):
    """Error of the limbs when no skeleton is given, in metres."""
    return joint_error(marey.solve(take), take)


def joint_error(solution, take):
    """Mean over the limbs of the median distance from the truth, in metres."""
    motion, truth = solution.motion, take.truth.motion
    errors = [
        np.median(np.linalg.norm(position(motion, x) - position(truth, x), axis=-1))
        for x in LIMBS
    ]
    return float(np.mean(errors))


def position(motion, name):
    return motion.T_world_joint()[:, motion.skeleton.index(name), :3, 3]


def codes(solution, severity):
    findings = solution.report.findings
    return {finding.code for finding in findings if finding.severity == severity}


def assert_given(solution, skeleton, rounding=1e-9):
    found = solution.skeleton
    assert found.names == skeleton.names
    assert found.kind == skeleton.kind
    np.testing.assert_allclose(found.offset[1:], skeleton.offset[1:], atol=rounding)
    np.testing.assert_allclose(found.limits, skeleton.limits, atol=rounding)
    assert codes(solution, "error") == set()


@pytest.mark.parametrize("suffix", ["bvh", "asf", "skel.json"])
def test_bones_of_a_file_are_kept(take, true, free_error, tmp_path, suffix):
    """The true bones give joints at least as near as those of the free solution."""
    path = tmp_path / f"true.{suffix}"
    motion = replace(take.truth.motion, skeleton=true)
    marey.write(motion if suffix == "bvh" else true, path)
    solution = marey.solve(take, skeleton=path)
    assert_given(solution, marey.read_skeleton(path))
    assert joint_error(solution, take) < 1.1 * free_error


def test_a_motion_of_any_origin_gives_its_skeleton(take, true):
    motion = replace(take.truth.motion, skeleton=true)
    assert read_source(motion) is read_source(true) is true


def shuffled(take, rng):
    order = rng.permutation(len(take.labels))
    return replace(take, labels=tuple(take.labels[i] for i in order))


def numbered(take, rng):
    return replace(take, labels=tuple(f"M{i:03d}" for i in range(len(take.labels))))


@pytest.mark.parametrize("change", [shuffled, numbered])
def test_markers_without_names_are_found_by_shape_and_motion(take, true, change, rng):
    solution = marey.solve(change(take, rng), skeleton=true)
    assert_given(solution, true)
    assert joint_error(solution, take) < 3.0 * NOISE_M


def test_bones_of_unknown_names_are_kept(take, true, free_error):
    names = tuple(f"joint{i}" for i in range(true.n_joints))
    given = replace(true, names=names)
    solution = marey.solve(take, skeleton=given)
    assert_given(solution, given)
    found = replace(solution.motion, skeleton=replace(given, names=true.names))
    assert joint_error(SimpleNamespace(motion=found), take) < 1.1 * free_error


def test_another_prefix_is_the_same_performer(person, take):
    other_day = person.record("exercise", markers="set53", seed=1, **RECORD)
    performer = marey.solve(other_day).skeleton
    joe = tuple(f"JOE:{label}" for label in performer.marker_labels)
    bob = replace(take, subjects=("Bob",) * len(take.labels))
    same = marey.solve(take, skeleton=performer)
    other = marey.solve(bob, skeleton=replace(performer, marker_labels=joe))
    np.testing.assert_array_equal(other.motion.wxyz, same.motion.wxyz)
    assert_given(other, performer)


def test_a_skeleton_of_sensors_serves_a_day_of_markers(sensors, take):
    skeleton = marey.solve(sensors).skeleton
    solution = marey.solve(take, skeleton=skeleton)
    assert_given(solution, skeleton)
    assert joint_error(solution, take) < 3.0 * NOISE_M
    assert solution.skeleton.sensor_names == ()
    assert set(solution.skeleton.marker_labels) <= set(take.labels)


def test_a_skeleton_serves_a_day_of_sensors(sensors, true):
    solution = marey.solve(sensors, skeleton=true)
    assert_given(solution, true)
    assert joint_error(solution, sensors) < 2.0 * NOISE_M
    assert set(solution.skeleton.sensor_names) == set(sensors.sensor_names)


@pytest.mark.parametrize("named", [True, False])
def test_a_skeleton_serves_sensors_that_were_attached_again(person, sensors, named):
    """Without their names, bodies are recognised by the tree and by their bones."""
    skeleton = marey.solve(sensors).skeleton
    again = person.record("exercise", markers="none", sensors=True, seed=8, **RECORD)
    if not named:
        names = tuple(f"S{k}" for k in range(len(again.sensor_names)))
        again = replace(again, sensor_names=names)
    solution = marey.solve(again, skeleton=skeleton)
    assert_given(solution, skeleton)
    assert joint_error(solution, again) < 3.0 * NOISE_M


def test_a_skeleton_of_another_size_is_an_error_bone_by_bone(take, true):
    solution = marey.solve(take, skeleton=scale_skeleton(true, 0.92))
    (finding,) = (f for f in solution.report.findings if f.severity == "error")
    assert finding.code == "skeleton-differs"
    assert finding.value == pytest.approx(100.0 * (1.0 / 0.92 - 1.0), abs=1.0)
    length = 1e3 * true.lengths[true.index("LeftLowerLeg")]
    assert f"instead of {0.92 * length:.0f} mm" in finding.message
    assert "joint centre" not in str(solution.report)
    assert "calibrated" not in {f.code for f in solution.report.findings}


@pytest.mark.parametrize("fit", ["scale", "lengths"])
def test_the_size_of_a_skeleton_is_fitted_when_asked_for(take, true, fit):
    solution = marey.solve(take, skeleton=scale_skeleton(true, 0.92), fit=fit)
    assert codes(solution, "error") == set()
    assert {"scale": "skeleton-scaled", "lengths": "skeleton-lengths"}[fit] in codes(
        solution, "info"
    )
    joints = [true.index(x) for x in LIMBS if "Upper" not in x]
    found, wanted = (s.lengths[joints] for s in (solution.skeleton, true))
    np.testing.assert_allclose(found, wanted, rtol=0.02)
    assert joint_error(solution, take) < 4.0 * NOISE_M


def test_hinges_and_limits_are_kept_unless_freed(take, true):
    knees = [true.index(f"{side}LowerLeg") for side in ("Left", "Right")]
    kind, axes, limits = list(true.kind), true.axes.copy(), true.limits.copy()
    limits[:] = np.nan
    for knee in knees:
        kind[knee] = "hinge"
        axes[knee] = [[0.0, 1.0, 0.0], [np.nan] * 3]
        limits[knee, 0] = 0.0, 1.0
    given = replace(true, kind=tuple(kind), axes=axes, limits=limits)
    kept = marey.solve(take, skeleton=given)
    assert_given(kept, given)
    about_other_axes = kept.motion.wxyz[:, knees][..., [1, 3]]
    np.testing.assert_allclose(about_other_axes, 0.0, atol=1e-9)
    freed = marey.solve(take, skeleton=given, free_joints=True, limits="none")
    assert [freed.skeleton.kind[knee] for knee in knees] == ["ball"] * 2
    assert np.isnan(freed.skeleton.limits).all()


def test_joints_of_a_given_skeleton_need_no_motion(take, true):
    """Whatever is known about them comes with the skeleton."""
    tables = marey.solve(take, skeleton=true).report.tables
    assert "to move" not in tables
    assert {"bones", "joints", "residuals"} <= set(tables)


def test_a_skeleton_of_something_else_is_refused(take):
    with pytest.raises(marey.OptionError, match=r"% like those of .* performer"):
        marey.solve(take, skeleton=synth.linkage().skeleton)


# --- skin -----------------------------------------------------------------------------


SKIN = {"noise": NOISE_M, "soft_tissue": 8e-3, "markers": "set53"}


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_markers_that_stayed_are_not_placed_again_by_skin_that_moves(seed):
    """A walk says less of them than the exercise that they were calibrated in."""
    person = synth.human(seed=seed)
    exercise = person.record("exercise", seconds=8.0, seed=seed, **SKIN)
    walk = person.record("walk", seconds=5.0, seed=seed, **SKIN)
    known = marey.solve(exercise).skeleton
    solution = marey.solve(walk, skeleton=known)
    assert "markers-kept" in codes(solution, "info")
    np.testing.assert_array_equal(solution.skeleton.marker_offset, known.marker_offset)
    assert joint_error(solution, walk) < joint_error(marey.solve(walk), walk)


def test_markers_that_were_attached_again_are_placed_again():
    person = synth.human(seed=1)
    exercise = person.record("exercise", seconds=8.0, seed=1, **SKIN)
    another_day = person.record("walk", seconds=5.0, seed=51, **SKIN)
    known = marey.solve(exercise).skeleton
    solution = marey.solve(another_day, skeleton=known)
    assert "markers-kept" not in codes(solution, "info")
    assert "calibrated" in codes(solution, "info")
    stayed = marey.solve(another_day, skeleton=known, calibrate=False)
    mean = [s.report.tables["pose"].rows[0][2] for s in (solution, stayed)]
    assert mean[0] < 0.6 * mean[1]
