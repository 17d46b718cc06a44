"""Outliers of sensors, found by their own motion and by their joints; scale."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import add_noise, joined_poses, sensor_bodies

import marey
from marey import synth
from marey.cleaning import (
    CleanOptions,
    Outlier,
    find_joint_outliers,
    find_sensor_outliers,
    find_stopped_sensors,
    mask_outliers,
    undo_hemisphere_flips,
)
from marey.cleaning.outliers.runs import find_outlier_runs, step_deviation
from marey.numerics import geometry

OPTIONS = {"markers": "none", "sensors": True, "rate": 60.0, "seconds": 10.0}
NOISE = {"noise": 2e-3, "turn_noise": 5e-3}


def change_poses(take, change):
    """Return the take with its sensor poses changed in place."""
    T = take.T_world_sensor.copy()
    change(T)
    return replace(take, T_world_sensor=T)


def outlier_frames(outliers, names):
    """Return the pairs of sensor index and frame that outliers cover."""
    return {
        (names.index(o.name), frame)
        for o in outliers
        for frame in range(o.first, o.last + 1)
    }


@pytest.mark.parametrize(
    ("figure", "motion"),
    [
        (synth.linkage(), "swing"),
        (synth.human(), "kick_punch"),
        (synth.human(), "jump"),
    ],
    ids=["swing", "kick", "jump"],
)
@pytest.mark.parametrize("errors", [{}, NOISE, {"soft_tissue": 0.02}], ids=str)
def test_fast_motion_is_no_outlier(figure, motion, errors):
    take = figure.record(motion, seed=1, **OPTIONS, **errors)
    assert find_sensor_outliers(take) == ()
    assert marey.clean(take) is take


def test_a_sensor_that_stops_suddenly_and_for_good_is_masked():
    take = synth.human().record("walk", seed=1, **OPTIONS, **NOISE)
    stopped = change_poses(take, lambda T: np.copyto(T[200:, 4], T[199, 4]))
    (stop,) = find_stopped_sensors(stopped)
    assert (stop.name, stop.kind) == (take.sensor_names[4], "frozen")
    assert (stop.first, stop.last) == (200, take.n_frames - 1)
    solution = marey.solve(stopped)
    (finding,) = (f for f in solution.report.findings if f.code == "sensor-frozen")
    assert finding.frames == (200, take.n_frames - 1)
    assert {f.code for f in solution.report.findings} & {"unit-doubtful"} == set()
    assert len(solution.subjects) == 1


def test_sensors_that_come_to_rest_have_not_stopped():
    """A mechanism without noise rests link by link; a take may be padded at its end."""
    arm = synth.linkage().record("exercise", seed=1, **OPTIONS)
    assert find_stopped_sensors(arm) == ()
    walk = synth.human().record("walk", seed=1, **OPTIONS, **NOISE)
    padded = change_poses(walk, lambda T: np.copyto(T[500:], T[499]))
    assert find_stopped_sensors(padded) == ()


def test_every_gross_error_is_found_and_nothing_else():
    take = synth.human().record("kick_punch", seed=1, gross=6 / 508, **OPTIONS, **NOISE)
    log = [c for c in take.truth.log if c.kind == "gross"]
    true = {(c.index, c.first) for c in log}
    by_motion = outlier_frames(find_sensor_outliers(take), take.sensor_names)
    assert by_motion <= true
    large = {(c.index, c.first) for c in log if c.size > 0.1}
    assert len(by_motion & large) > 0.97 * len(large)
    clean = marey.clean(take)
    bodies = marey.segment(clean)
    joints = marey.fit_joints(bodies)
    by_joints = find_joint_outliers(bodies, joints, marey.infer_tree(joints))
    found = by_motion | outlier_frames(by_joints, take.sensor_names)
    assert found <= true
    assert {(c.index, c.first) for c in log if c.size > 0.06} <= found


def test_masked_poses_are_missing_and_all_others_unchanged():
    take = synth.linkage().record("swing", gross=0.01, **OPTIONS)
    found = find_sensor_outliers(take)
    clean = mask_outliers(take, found)
    masked = np.zeros_like(take.sensor_seen)
    for sensor, frame in outlier_frames(found, take.sensor_names):
        masked[frame, sensor] = True
    np.testing.assert_array_equal(clean.sensor_seen, ~masked)
    kept = take.T_world_sensor[~masked]
    np.testing.assert_array_equal(clean.T_world_sensor[~masked], kept)
    assert clean.history[-1] == f"masked {masked.sum()} outlier poses of sensors"
    subjects = [f.subject for f in clean.source.findings]
    assert subjects == list(dict.fromkeys(o.name for o in found))
    assert {f.code for f in clean.source.findings} == {"sensor-jump"}


@pytest.mark.parametrize("frames", [(0, 2), (300, 301), (300, 320), (597, 600)])
def test_a_jump_of_three_metres_is_an_outlier_while_the_sensor_is_away(frames):
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def throw(T):
        T[slice(*frames), 2, :3, 3] += [3.0, 0.0, 0.0]

    (outlier,) = find_sensor_outliers(change_poses(take, throw))
    assert (outlier.kind, outlier.first, outlier.last) == (
        "jump",
        frames[0],
        frames[1] - 1,
    )
    assert outlier.size == pytest.approx(3.0, abs=0.2)


def test_a_flip_is_no_jump():
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def flip(T):
        T[100:110, 1, :3, :3] = T[100:110, 1, :3, :3] @ np.diag([1.0, -1.0, -1.0])

    (outlier,) = find_sensor_outliers(change_poses(take, flip))
    assert (outlier.kind, outlier.first, outlier.last) == ("flip", 100, 109)
    assert outlier.size == pytest.approx(np.pi, abs=0.2)
    assert "180 deg" in mask_outliers(take, [outlier]).source.findings[0].message


def test_a_frozen_sensor_is_an_outlier_from_its_first_repeat():
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def freeze(T):
        T[200:221, 3] = T[199, 3]

    frozen = change_poses(take, freeze)
    (outlier,) = find_sensor_outliers(frozen)
    assert (outlier.kind, outlier.first, outlier.last) == ("frozen", 200, 220)
    assert find_sensor_outliers(frozen, CleanOptions(mask_frozen=False)) == ()


def test_rest_and_a_lasting_move_are_no_outliers():
    take = synth.linkage().record("swing", seed=2, **OPTIONS)

    def rest(T):
        T[:, 0] = T[0, 0]

    assert find_sensor_outliers(change_poses(take, rest)) == ()

    def leave(T):
        T[300:, 1, :3, 3] += [0.5, 0.0, 0.0]

    assert find_sensor_outliers(change_poses(take, leave)) == ()


def test_a_sensor_with_outliers_all_the_time_is_not_masked(rng):
    take = synth.linkage().record("swing", seed=2, **OPTIONS)

    def shake(T):
        T[::3, 1, :3, 3] += rng.normal(size=(len(T[::3]), 3))

    assert find_sensor_outliers(change_poses(take, shake)) == ()


def add_third_body(T):
    """Return the poses of two bodies and of a third that is joined to the second."""
    joint = geometry.transform(
        geometry.rotation_exp(0.5 * np.sin(T[:, 0, 0, :3])), np.array([0.2, 0, 0])
    )
    return np.concatenate([T, (T[:, 1] @ joint)[:, None]], axis=1)


def test_a_slow_change_across_a_gap_is_no_outlier(rng):
    T = add_third_body(joined_poses(rng, 200))
    T[:, 1, :3, 3] += np.linspace(0.0, 0.02, 200)[:, None]
    T[5:30, 1] = np.nan
    bodies = sensor_bodies(T)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints, root=1)
    assert find_joint_outliers(bodies, joints, tree) == ()


def test_the_sensor_that_explains_all_open_joints_is_the_outlier(rng):
    T = add_third_body(add_noise(rng, joined_poses(rng, 200)))
    T[50:53, 1, :3, 3] += 0.03
    T[90, 2, :3, 3] += 0.03
    bodies = sensor_bodies(T)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints, root=1)
    assert tree.parent.tolist() == [1, -1, 1]
    found = find_joint_outliers(bodies, joints, tree)
    assert outlier_frames(found, bodies.names) == {(1, 50), (1, 51), (1, 52), (2, 90)}


def test_one_joint_alone_does_not_show_which_sensor_is_the_outlier(rng):
    T = add_noise(rng, joined_poses(rng, 200))
    T[50, 1, :3, 3] += 0.1
    bodies = sensor_bodies(T)
    joints = marey.fit_joints(bodies)
    assert find_joint_outliers(bodies, joints, marey.infer_tree(joints)) == ()


@pytest.mark.parametrize("n", [5, 6, 40])
def test_step_deviation_is_the_distance_from_the_median_of_five_steps(rng, n):
    step = rng.normal(size=(n, 3))
    mirrored = np.concatenate([step[2:0:-1], step, step[-2:-4:-1]])
    medians = [np.median(mirrored[k : k + 5], axis=0) for k in range(n)]
    expected = np.linalg.norm(step - medians, axis=1)
    np.testing.assert_allclose(step_deviation(step), expected, atol=1e-14)


def test_a_fast_motion_at_constant_speed_has_no_deviation():
    path = np.zeros((40, 3))
    path[:, 0] = np.arange(40.0)
    path[20, 1] = 5.0
    deviation = step_deviation(np.diff(path, axis=0))
    assert np.flatnonzero(deviation).tolist() == [19, 20]

    def distances(some, others):
        return np.linalg.norm(path[others] - path[some], axis=1)[None]

    steps, limits = [np.diff(path, axis=0)], ([1.0], 0.0, 60.0, 10)
    runs = find_outlier_runs(distances, np.arange(40), steps, *limits)
    assert list(runs) == [(20, 20)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_jump": -1.0}, "0 or more"),
        ({"gap": 0.25}, "min_jump, min_flip, min_spike, max_outlier, mask_frozen"),
        ({"jump": 0.05}, "undo_swaps, max_gap"),
    ],
)
def test_options_are_checked(options, message):
    take = synth.linkage().record("swing", **OPTIONS)
    with pytest.raises(marey.OptionError, match=message):
        marey.clean(take, **options)


def test_empty_and_short_takes_have_no_outliers():
    assert marey.clean(marey.Take(rate=60.0)).n_frames == 0
    take = synth.linkage().record("swing", **OPTIONS)
    assert marey.clean(take.cut(0, 2)).n_frames == 2
    unseen = change_poses(take, lambda T: T[:, 0].fill(np.nan))
    assert find_sensor_outliers(unseen) == ()


def test_findings_list_the_first_spans_only():
    take = synth.linkage().record("swing", **OPTIONS)
    many = [Outlier("Head", "jump", 10 * k, 10 * k, 0.5) for k in range(9)]
    (finding,) = mask_outliers(take, many).source.findings
    assert finding.message == (
        "jumps away and back by up to 500 mm; 9 frames masked: 0, 10, 20, 30, 40, ..."
    )
    assert finding.frames == (0, 80)


# --- scale ----------------------------------------------------------------------------


def test_lengths_are_scaled_and_rotations_are_not():
    take = synth.linkage().record("swing", **{**OPTIONS, "markers": 3})
    twice = marey.rescale(take, 2.0)
    np.testing.assert_allclose(twice.points, 2.0 * take.points)
    np.testing.assert_allclose(
        twice.T_world_sensor[..., :3, 3], 2.0 * take.T_world_sensor[..., :3, 3]
    )
    np.testing.assert_array_equal(
        twice.T_world_sensor[..., :3, :3], take.T_world_sensor[..., :3, :3]
    )
    assert twice.source.findings[-1].value == 2.0
    for factor in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(marey.OptionError, match="above 0"):
            marey.rescale(take, factor)


# --- hemisphere -----------------------------------------------------------------------


@pytest.mark.parametrize("spans", [[(40, 90)], [(0, 20), (60, 61)], [(10, 12)]])
def test_positions_in_the_other_hemisphere_are_reflected(spans):
    """The sensor is named that changed the hemisphere, not its partner at rest."""
    time = np.linspace(0.0, 6.0, 200)
    T = np.tile(np.eye(4), (200, 2, 1, 1))
    T[:, 0, :3, 3] = 0.5, -0.2, 0.3
    path = np.array([0.6, 0.1, 0.2]) + 0.1 * np.stack([np.sin(time)] * 3, axis=-1)
    T[:, 1, :3, 3] = path
    take = marey.Take(rate=60.0, T_world_sensor=T, sensor_names=("rest", "moving"))

    def flip(T):
        for first, last in spans:
            T[first:last, 1, :3, 3] *= -1.0

    assert undo_hemisphere_flips(take) is take
    cleaned = undo_hemisphere_flips(change_poses(take, flip))
    assert np.array_equal(cleaned.T_world_sensor, take.T_world_sensor)
    (finding,) = cleaned.source.findings
    assert (finding.code, finding.subject) == ("sensor-hemisphere", "moving")
    assert finding.value == sum(last - first for first, last in spans)
    assert not find_sensor_outliers(cleaned)


def test_a_sensor_that_passes_the_transmitter_is_kept():
    T = np.tile(np.eye(4), (100, 1, 1, 1))
    T[:, 0, 0, 3] = np.linspace(-0.5, 0.5, 100)
    take = marey.Take(rate=60.0, T_world_sensor=T, sensor_names=("hand",))
    assert undo_hemisphere_flips(take) is take
