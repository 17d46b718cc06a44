"""Sensors in error for a moment: found by their own motion and by their joints."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import jointed, sensor_bodies, shaken

import marey
from marey import synth
from marey.cleaning import CleanOptions, Outlier, blanked, find_gaping, find_outliers
from marey.cleaning.runs import excursions, suddenness
from marey.numerics import geometry

OPTIONS = {"markers": "none", "sensors": True, "rate": 60.0, "seconds": 10.0}
NOISE = {"noise": 2e-3, "turn_noise": 5e-3}


def with_poses(take, change):
    T = take.T_world_sensor.copy()
    change(T)
    return replace(take, T_world_sensor=T)


def frames_of(outliers, names):
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
@pytest.mark.parametrize("spoilt", [{}, NOISE, {"soft_tissue": 0.02}], ids=str)
def test_fast_motion_is_no_error(figure, motion, spoilt):
    take = figure.record(motion, seed=1, **OPTIONS, **spoilt)
    assert find_outliers(take) == ()
    assert marey.clean(take) is take


def test_every_gross_error_is_found_and_nothing_else():
    take = synth.human().record("kick_punch", seed=1, gross=6 / 508, **OPTIONS, **NOISE)
    log = [c for c in take.truth.log if c.kind == "gross"]
    bad = {(c.index, c.first) for c in log}
    own = frames_of(find_outliers(take), take.sensor_names)
    assert own <= bad
    large = {(c.index, c.first) for c in log if c.size > 0.1}
    assert len(own & large) > 0.97 * len(large)
    clean = marey.clean(take)
    bodies = marey.segment(clean)
    joints = marey.fit_joints(bodies)
    more = find_gaping(bodies, joints, marey.infer_tree(joints))
    found = own | frames_of(more, take.sensor_names)
    assert found <= bad
    assert {(c.index, c.first) for c in log if c.size > 0.06} <= found


def test_what_is_blanked_is_missing_and_the_rest_is_untouched():
    take = synth.linkage().record("swing", gross=0.01, **OPTIONS)
    found = find_outliers(take)
    clean = blanked(take, found)
    lost = np.zeros_like(take.sensor_seen)
    for sensor, frame in frames_of(found, take.sensor_names):
        lost[frame, sensor] = True
    np.testing.assert_array_equal(clean.sensor_seen, ~lost)
    kept = take.T_world_sensor[~lost]
    np.testing.assert_array_equal(clean.T_world_sensor[~lost], kept)
    assert clean.history[-1] == f"blanked {lost.sum()} poses of sensors in error"
    named = [f.subject for f in clean.source.findings]
    assert named == list(dict.fromkeys(o.name for o in found))
    assert {f.code for f in clean.source.findings} == {"sensor-jump"}


@pytest.mark.parametrize("frames", [(0, 2), (300, 301), (300, 320), (597, 600)])
def test_a_sensor_that_jumps_three_metres_is_blanked_while_it_is_away(frames):
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def throw(T):
        T[slice(*frames), 2, :3, 3] += [3.0, 0.0, 0.0]

    (outlier,) = find_outliers(with_poses(take, throw))
    assert (outlier.kind, outlier.first, outlier.last) == (
        "jump",
        frames[0],
        frames[1] - 1,
    )
    assert outlier.size == pytest.approx(3.0, abs=0.2)


def test_a_flip_is_told_from_a_jump():
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def flip(T):
        T[100:110, 1, :3, :3] = T[100:110, 1, :3, :3] @ np.diag([1.0, -1.0, -1.0])

    (outlier,) = find_outliers(with_poses(take, flip))
    assert (outlier.kind, outlier.first, outlier.last) == ("flip", 100, 109)
    assert outlier.size == pytest.approx(np.pi, abs=0.2)
    assert "180 deg" in blanked(take, [outlier]).source.findings[0].message


def test_a_frozen_sensor_is_blanked_from_its_first_repeat():
    take = synth.linkage().record("swing", seed=2, **OPTIONS, **NOISE)

    def freeze(T):
        T[200:221, 3] = T[199, 3]

    spoilt = with_poses(take, freeze)
    (outlier,) = find_outliers(spoilt)
    assert (outlier.kind, outlier.first, outlier.last) == ("frozen", 200, 220)
    assert find_outliers(spoilt, CleanOptions(frozen=False)) == ()


def test_rest_and_a_lasting_move_are_no_errors():
    take = synth.linkage().record("swing", seed=2, **OPTIONS)

    def rest(T):
        T[:, 0] = T[0, 0]

    assert find_outliers(with_poses(take, rest)) == ()

    def leave(T):
        T[300:, 1, :3, 3] += [0.5, 0.0, 0.0]

    assert find_outliers(with_poses(take, leave)) == ()


def test_a_sensor_in_error_all_the_time_is_left_alone(rng):
    take = synth.linkage().record("swing", seed=2, **OPTIONS)

    def shake(T):
        T[::3, 1, :3, 3] += rng.normal(size=(len(T[::3]), 3))

    assert find_outliers(with_poses(take, shake)) == ()


def test_the_sensor_whose_joints_all_gape_is_blamed(rng):
    T = np.concatenate([shaken(rng, jointed(rng, 200)), np.zeros((200, 1, 4, 4))], 1)
    joint = geometry.transform(
        geometry.rotation_exp(0.5 * np.sin(T[:, 0, 0, :3])), np.array([0.2, 0, 0])
    )
    T[:, 2] = T[:, 1] @ joint
    T[50:53, 1, :3, 3] += 0.03
    T[90, 2, :3, 3] += 0.03
    bodies = sensor_bodies(T)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints, root=1)
    assert tree.parent.tolist() == [1, -1, 1]
    found = find_gaping(bodies, joints, tree)
    assert frames_of(found, bodies.names) == {(1, 50), (1, 51), (1, 52), (2, 90)}


def test_two_bodies_alone_accuse_each_other(rng):
    T = shaken(rng, jointed(rng, 200))
    T[50, 1, :3, 3] += 0.1
    bodies = sensor_bodies(T)
    joints = marey.fit_joints(bodies)
    assert find_gaping(bodies, joints, marey.infer_tree(joints)) == ()


@pytest.mark.parametrize("n", [5, 6, 40])
def test_suddenness_is_measured_from_the_median_of_five_steps(rng, n):
    step = rng.normal(size=(n, 3))
    mirrored = np.concatenate([step[2:0:-1], step, step[-2:-4:-1]])
    calm = [np.median(mirrored[k : k + 5], axis=0) for k in range(n)]
    expected = np.linalg.norm(step - calm, axis=1)
    np.testing.assert_allclose(suddenness(step), expected, atol=1e-14)


def test_a_steady_fast_motion_has_no_sudden_step():
    path = np.zeros((40, 3))
    path[:, 0] = np.arange(40.0)
    path[20, 1] = 5.0
    sudden = suddenness(np.diff(path, axis=0))
    assert np.flatnonzero(sudden).tolist() == [19, 20]

    def apart(some, others):
        return np.linalg.norm(path[others] - path[some], axis=1)[None]

    allowed = np.ones((1, 39))
    runs = list(excursions(apart, np.arange(40), sudden[None], allowed, 10))
    assert runs == [(20, 20)]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"jump": -1.0}, "0 to 100 m"),
        ({"gap": 0.25}, "jump, flip, spike, longest, frozen, swaps, max_gap"),
    ],
)
def test_options_are_checked(options, complaint):
    take = synth.linkage().record("swing", **OPTIONS)
    with pytest.raises(marey.OptionError, match=complaint):
        marey.clean(take, **options)


def test_empty_and_short_takes_pass():
    assert marey.clean(marey.Take(rate=60.0)).n_frames == 0
    take = synth.linkage().record("swing", **OPTIONS)
    assert marey.clean(take.cut(0, 2)).n_frames == 2
    lost = with_poses(take, lambda T: T[:, 0].fill(np.nan))
    assert find_outliers(lost) == ()


def test_findings_spell_out_the_first_runs_only():
    take = synth.linkage().record("swing", **OPTIONS)
    many = [Outlier("Head", "jump", 10 * k, 10 * k, 0.5) for k in range(9)]
    (finding,) = blanked(take, many).source.findings
    assert finding.message == (
        "jumps away and back, by up to 500 mm: 9 frames blanked "
        "(0, 10, 20, 30, 40, ...)"
    )
    assert finding.frames == (0, 80)


# --- scale ----------------------------------------------------------------------------


def test_lengths_are_scaled_and_turns_are_not():
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
