import numpy as np
import pytest

import marey
from marey import synth
from marey.numerics import geometry


@pytest.fixture(scope="module")
def person():
    return synth.human(1.8, seed=0)


@pytest.fixture(scope="module")
def clean(person):
    return person.record("walk", seconds=4.0, rate=60.0, sensors=True)


def same(a, b):
    return a.tobytes() == b.tobytes()


ALL_KINDS = {
    "noise": 2e-3,
    "coloured": 3e-3,
    "turn_noise": 0.02,
    "field": 5e-3,
    "soft_tissue": 0.01,
    "knee_shift": 1.0,
    "slips": 2,
    "gross": 6 / 508,
    "swaps": 3,
    "phantoms": 2,
    "gaps": 0.1,
    "sensor_gaps": 0.1,
    "scale": 0.94,
    "dropped": 0.05,
}


def walk(person, **options):
    defaults = {"seconds": 4.0, "rate": 60.0, "sensors": True}
    return person.record("walk", **(defaults | options))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_corruption_changes_the_data_not_the_truth_and_is_logged(
    person, clean, kind
):
    take = walk(person, **{kind: ALL_KINDS[kind]})
    real = take.truth.marker_joint >= 0
    assert same(take.truth.points[:, real].copy(), clean.points)
    assert same(take.truth.T_world_sensor, clean.T_world_sensor)
    assert same(take.truth.motion.wxyz, clean.truth.motion.wxyz)
    assert take.truth.changes(kind)
    assert {change.kind for change in take.truth.log} == {kind}
    changed = not same(take.points[:, real].copy(), clean.points)
    sensors_changed = not same(take.T_world_sensor, clean.T_world_sensor)
    assert changed or sensors_changed or not real.all()


def test_each_corruption_has_its_own_random_stream(person, clean):
    together = walk(person, noise=1e-3, gaps=0.2)
    noisy, with_gaps = walk(person, noise=1e-3), walk(person, gaps=0.2)
    np.testing.assert_array_equal(together.seen, with_gaps.seen)
    seen = together.seen
    assert same(together.points[seen], noisy.points[seen])
    assert same(walk(person, **ALL_KINDS).points, walk(person, **ALL_KINDS).points)


def test_white_noise_has_the_requested_standard_deviation(person, clean):
    take = walk(person, noise=2e-3, markers="dense110")
    error = take.points - take.truth.points
    assert np.std(error) == pytest.approx(2e-3, rel=0.02)
    sensor = take.T_world_sensor[..., :3, 3] - clean.T_world_sensor[..., :3, 3]
    assert np.std(sensor) == pytest.approx(2e-3, rel=0.05)


def test_coloured_noise_has_the_requested_deviation_and_time_constant(person):
    take = walk(person, coloured=2e-3, coloured_time=0.05, markers="dense110")
    error = take.points - take.truth.points
    assert np.std(error) == pytest.approx(2e-3, rel=0.05)
    lag = np.mean(error[3:] * error[:-3]) / np.mean(error**2)
    assert lag == pytest.approx(np.exp(-1.0), abs=0.05)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_every_marker_misses_the_requested_share_of_frames(person, share):
    take = walk(person, gaps=share, gap_seconds=0.1)
    assert (take.seen.sum(axis=0) == 240 - round(share * 240)).all()
    missing = np.zeros_like(take.seen)
    for change in take.truth.changes("gaps"):
        missing[change.first : change.last + 1, change.index] = True
    np.testing.assert_array_equal(missing, ~take.seen)


def test_gaps_of_single_markers(person):
    take = walk(person, gap_of={"LFHD": 0.5})
    lost = dict(zip(take.labels, (~take.seen).sum(axis=0), strict=True))
    assert lost.pop("LFHD") == 120
    assert not any(lost.values())


def test_gross_errors_have_the_requested_number_and_mean_size(person):
    take = person.record(
        "walk", seconds=508 / 60, rate=60.0, gross=6 / 508, markers="dense110"
    )
    error_size = np.linalg.norm(take.points - take.truth.points, axis=-1)
    assert ((error_size > 0.0).sum(axis=0) == 6).all()
    assert error_size[error_size > 0.0].mean() == pytest.approx(0.677, rel=0.15)
    for change in take.truth.changes("gross"):
        size = error_size[change.first, change.index]
        assert size == pytest.approx(change.size, rel=1e-9)


def test_the_soft_tissue_artefact_has_the_requested_rms(person):
    take = walk(person, soft_tissue=0.02, markers="dense110", sensors=False)
    artefact = np.linalg.norm(take.points - take.truth.points, axis=-1)
    thigh = take.truth.marker_joint == person.skeleton.index("LeftUpperLeg")
    assert np.sqrt(np.mean(artefact[:, thigh] ** 2)) == pytest.approx(0.02, rel=1e-9)


def test_soft_tissue_on_limits_the_artefact_to_one_body(person):
    loose = {"soft_tissue_on": ("Hips",)}
    take = walk(person, soft_tissue=0.03, soft_tissue_turn=0.1, **loose)
    displacement = np.linalg.inv(take.truth.T_world_sensor) @ take.T_world_sensor
    artefact = np.sqrt(np.mean(np.sum(displacement[..., :3, 3] ** 2, axis=-1), axis=0))
    angle = np.linalg.norm(geometry.rotation_log(displacement[..., :3, :3]), axis=-1)
    hips = np.array([name == "Hips" for name in take.sensor_names])
    np.testing.assert_allclose(artefact, np.where(hips, 0.03, 0.0), atol=1e-9)
    np.testing.assert_allclose(
        np.sqrt(np.mean(angle**2, axis=0)), np.where(hips, 0.1, 0.0), atol=1e-6
    )
    with pytest.raises(marey.OptionError, match="Hip"):
        walk(person, soft_tissue=0.03, soft_tissue_on=("Hip",))


def test_half_of_the_artefact_variance_is_common_to_a_body(person):
    take = walk(person, soft_tissue=0.02, markers=40, sensors=False)
    artefact = take.points - take.truth.points
    shares = []
    for body in person.bodies:
        on_body = artefact[:, take.truth.marker_joint == body]
        together = np.mean(np.sum(on_body.mean(axis=1) ** 2, axis=-1))
        shares.append(together / np.mean(np.sum(on_body**2, axis=-1)))
    assert np.mean(shares) == pytest.approx(0.5, abs=0.1)


def test_soft_tissue_is_linear_in_the_neighbouring_angles(person):
    take = walk(person, soft_tissue=0.02, sensors=False)
    truth, joint = take.truth, person.skeleton.index("LeftLowerLeg")
    on_joint = truth.marker_joint == joint
    T = truth.motion.T_world_joint()[:, joint, None]
    local = geometry.apply(geometry.inverse(T), take.points[:, on_joint])
    artefact = (local - truth.marker_offset[on_joint]).reshape(len(local), -1)
    near = [joint, person.skeleton.index("LeftFoot")]
    angles = geometry.quat_log(truth.motion.wxyz[:, near]).reshape(len(local), -1)
    basis = np.c_[angles, np.ones(len(angles))]
    rest = artefact - basis @ np.linalg.lstsq(basis, artefact, rcond=None)[0]
    assert np.abs(rest).max() < 1e-9


def test_a_slip_is_a_step_of_the_logged_size(person):
    take = walk(person, slips=1, slip_size=0.015, slip_frame=100)
    (change,) = take.truth.changes("slips")
    assert (change.item, change.first) == ("sensor", 100)
    displacement = np.linalg.norm(
        (take.T_world_sensor - take.truth.T_world_sensor)[..., :3, 3], axis=-1
    )
    expected = np.zeros_like(displacement)
    expected[100:, change.index] = 0.015
    np.testing.assert_allclose(displacement, expected, atol=1e-12)


def test_the_field_distortion_is_a_smooth_function_of_position(person):
    take = walk(person, field=0.01, field_scale=0.5)
    position = take.truth.T_world_sensor[..., :3, 3].reshape(-1, 3)
    error = (take.T_world_sensor - take.truth.T_world_sensor)[..., :3, 3]
    step = np.linalg.norm(np.diff(error, axis=0), axis=-1)
    distance = np.linalg.norm(np.diff(position.reshape(*error.shape), axis=0), axis=-1)
    assert (step / np.maximum(distance, 1e-6)).max() < 5.0 * 0.01 / 0.5
    assert 0.003 < np.std(error) < 0.02
    R = np.swapaxes(take.truth.T_world_sensor, -1, -2)[..., :3, :3]
    rotvec = geometry.rotation_log(take.T_world_sensor[..., :3, :3] @ R)
    assert 0.0 < np.abs(rotvec).max() < 5.0 * 0.01 / 0.5


def test_swaps_permute_the_two_logged_columns(person):
    take = walk(person, swaps=1, seed=3)
    (change,) = take.truth.changes("swaps")
    frames = slice(change.first, change.last + 1)
    expected = take.truth.points.copy()
    pair = [change.index, change.other]
    expected[frames, pair] = expected[frames, pair[::-1]]
    assert same(take.points, expected)


def test_phantoms_belong_to_no_body(person):
    take = walk(person, phantoms=3)
    assert take.labels[-3:] == ("*0", "*1", "*2")
    assert (take.truth.marker_joint[-3:] == -1).all()
    n_visible = take.seen[:, -3:].sum(axis=0)
    logged = [c.last - c.first + 1 for c in take.truth.changes("phantoms")]
    assert n_visible.tolist() == logged


def test_scale_and_dropped_frames(person, clean):
    np.testing.assert_allclose(
        walk(person, scale=0.94).points, 0.94 * clean.points, rtol=1e-15
    )
    lost = walk(person, dropped=0.1)
    assert (~lost.seen.any(axis=1)).sum() == 24
    again = walk(person, dropped=0.1, drop_style="repeat")
    for change in again.truth.changes("dropped"):
        assert same(again.points[change.first], again.points[change.first - 1])


def test_a_moving_knee_centre_moves_the_shank_by_the_published_amount(person):
    take = person.record("exercise", rate=30.0, sensors=True, knee_shift=1.0)
    displacement = np.linalg.norm(take.points - take.truth.points, axis=-1).max(axis=0)
    shank = np.array([label in ("LSHN", "LANK", "LTOE") for label in take.labels])
    thigh = np.array([label in ("LTHI", "LKNE", "LFWT") for label in take.labels])
    np.testing.assert_allclose(
        displacement[shank], np.linalg.norm([0.007, 0.0143, 0.0056]), rtol=0.05
    )
    assert not displacement[thigh].any()


def test_options_out_of_range_or_unknown_are_errors(person):
    needed = r"gaps: found 1\.5, need a number from 0 to 0\.95"
    with pytest.raises(marey.OptionError, match=needed):
        person.record("walk", gaps=1.5)
    with pytest.raises(marey.OptionError, match=r"nois: found .*, need one of noise"):
        person.record("walk", nois=1e-3)
    with pytest.raises(marey.OptionError, match="markers"):
        synth.linkage().record(markers="sparse41")
    with pytest.raises(marey.OptionError, match="height"):
        synth.human(18.0)


def test_single_options_override_a_corruption(person):
    base = synth.Corruption(noise=1e-3, gaps=0.1)
    take = walk(person, corruption=base, gaps=0.0)
    assert same(take.points, walk(person, noise=1e-3).points)
