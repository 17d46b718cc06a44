"""Calibration: exact data give exact bones, doubts are honest, nothing breaks it."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from calibrated import distances, filmed, linkage, off_by, swung

from marey.calibration import CalibrateOptions, calibrate
from marey.errors import DataError, OptionError
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Take

MILLIMETRE = 1e-3
Z = np.array([0.0, 0.0, 1.0])
BRANCHED = (-1, 0, 1, 1, 0, 4)


def codes(calibration):
    return [finding.code for finding in calibration.findings]


def bones(skeleton):
    """Lengths that do not hang on where the root stands in its body."""
    return skeleton.lengths[skeleton.parent > 0]


# --- exactness ------------------------------------------------------------------------


@pytest.mark.parametrize("parent", [(-1, 0), (-1, 0, 1), BRANCHED])
def test_exact_data_give_the_exact_figure(rng, parent):
    true = linkage(rng, parent)
    take = filmed(true, swung(rng, len(parent), 60, 0.6), rng)
    found = calibrate(off_by(true, rng, 0.02), take)
    assert np.abs(distances(found.skeleton) - distances(true)).max() < 1e-7
    assert found.rms < 1e-7
    assert found.skeleton.names == true.names
    assert found.skeleton.kind == true.kind


def test_a_segment_of_two_markers_is_exact_too(rng):
    true = linkage(rng, (-1, 0, 1))
    keep = [0, 1, 2, 3, 4, 5, 8, 9, 10]
    true = replace(
        true,
        marker_labels=tuple(true.marker_labels[k] for k in keep),
        marker_joint=true.marker_joint[keep],
        marker_offset=true.marker_offset[keep],
    )
    take = filmed(true, swung(rng, 3, 80, 0.6), rng)
    found = calibrate(off_by(true, rng, 0.01), take)
    assert bones(found.skeleton) == pytest.approx(bones(true), abs=1e-6)


def test_sensors_are_exact_too(rng):
    bare = linkage(rng, BRANCHED, markers=0)
    n = bare.n_joints
    R = geometry.rotation_exp(rng.normal(size=(n, 3)))
    true = replace(
        bare,
        sensor_names=tuple(f"s{i}" for i in range(n)),
        sensor_joint=np.arange(n),
        T_joint_sensor=geometry.transform(R, 0.1 * rng.normal(size=(n, 3))),
    )
    wxyz = swung(rng, n, 60, 0.6)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), np.zeros(3))
    T = true.forward(T_root, wxyz) @ true.T_joint_sensor
    take = Take(rate=100.0, T_world_sensor=T, sensor_names=true.sensor_names)
    start = replace(true, offset=true.offset + 0.02 * rng.normal(size=(n, 3)))
    found = calibrate(start, take).skeleton
    assert bones(found) == pytest.approx(bones(true), abs=1e-6)
    for i in range(1, n):
        # The sensor on its bone, whatever axes the bone was given.
        at, wanted = found.T_joint_sensor[i, :3, 3], true.T_joint_sensor[i, :3, 3]
        assert np.linalg.norm(at) == pytest.approx(np.linalg.norm(wanted), abs=1e-6)


def test_a_fixed_joint_goes_with_its_bone(rng):
    true = linkage(rng, (-1, 0, 1, 2))
    true = replace(true, kind=("root", "ball", "fixed", "ball"))
    wxyz = swung(rng, 4, 60, 0.6)
    wxyz[:, 2] = [1.0, 0.0, 0.0, 0.0]
    take = filmed(true, wxyz, rng)
    start = replace(true, offset=true.offset + 0.01 * rng.normal(size=(4, 3)))
    found = calibrate(start, take).skeleton
    T, wanted = found.rest(), true.rest()
    far = np.linalg.norm(T[3, :3, 3] - T[1, :3, 3])
    assert far == pytest.approx(
        np.linalg.norm((wanted[3] - wanted[1])[:3, 3]), abs=1e-6
    )


def test_gaps_do_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = filmed(true, swung(rng, 6, 80, 0.6), rng)
    points = take.points.copy()
    points[rng.random(points.shape[:2]) < 0.2] = np.nan
    found = calibrate(off_by(true, rng, 0.01), replace(take, points=points))
    assert np.abs(distances(found.skeleton) - distances(true)).max() < 1e-6


# --- invariance -----------------------------------------------------------------------


def test_where_the_world_is_does_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = filmed(true, swung(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    R = geometry.rotation_exp(np.array([2.0, -0.7, 0.4]))
    T = geometry.transform(R, np.array([30.0, -20.0, 5.0]))
    moved = replace(take, points=geometry.apply(T, take.points))
    start = off_by(true, rng, 0.01)
    one, two = calibrate(start, take), calibrate(start, moved)
    # Steps end when they are a small part of the noise.
    off = np.abs(two.skeleton.offset[1:] - one.skeleton.offset[1:])
    assert off.max() < 0.01 * MILLIMETRE
    assert two.skeleton.length_sd == pytest.approx(
        one.skeleton.length_sd, rel=1e-3, nan_ok=True
    )


def test_the_order_of_markers_does_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = filmed(true, swung(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    start = off_by(true, rng, 0.01)
    order = rng.permutation(len(true.marker_labels))
    one = calibrate(start, take)
    two = calibrate(start, take.select(order))
    assert two.skeleton.offset == pytest.approx(one.skeleton.offset, abs=1e-12)


def test_the_same_twice_is_the_same_to_the_bit(rng):
    true = linkage(rng, BRANCHED)
    take = filmed(true, swung(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    start = off_by(true, rng, 0.01)
    one, two = calibrate(start, take), calibrate(start, take)
    assert (one.skeleton.offset == two.skeleton.offset).all()
    assert (one.skeleton.covariance[1:] == two.skeleton.covariance[1:]).all()


# --- sessions -------------------------------------------------------------------------


def put_on_again(skeleton, rng, far):
    shift = far * rng.normal(size=skeleton.marker_offset.shape)
    return replace(skeleton, marker_offset=skeleton.marker_offset + shift)


def test_sessions_share_bones_but_not_markers(rng):
    days = [linkage(rng, BRANCHED)]
    days.append(put_on_again(days[0], rng, 0.01))
    takes = [filmed(day, swung(rng, 6, 60, 0.6), rng) for day in days]
    found = calibrate(off_by(days[0], rng, 0.01), takes)
    for day, skeleton in zip(days, found.skeletons, strict=True):
        assert np.abs(distances(skeleton) - distances(day)).max() < 1e-5
        assert (skeleton.offset == found.skeleton.offset).all()
    assert found.rms < 1e-6


def test_takes_of_one_session_share_markers_too(rng):
    true = linkage(rng, BRANCHED)
    takes = [filmed(true, swung(rng, 6, 40, 0.5), rng, noise=1e-3) for _ in range(2)]
    options = CalibrateOptions(sessions=(7, 7))
    found = calibrate(off_by(true, rng, 0.01), takes, options=options)
    one, two = found.skeletons
    assert (one.marker_offset == two.marker_offset).all()
    assert found.marker_noise.shape == (1, len(true.marker_labels))


def test_known_bones_are_kept_and_markers_put_in_their_places(rng):
    true = linkage(rng, BRANCHED)
    today = put_on_again(true, rng, 0.015)
    take = filmed(today, swung(rng, 6, 60, 0.6), rng)
    found = calibrate(true, take, options=CalibrateOptions(keep_bones=True))
    assert (found.skeleton.offset == true.offset).all()
    assert found.rms < 1e-5
    wanted = np.linalg.norm(today.marker_offset, axis=1)[4:]
    got = np.linalg.norm(found.skeleton.marker_offset, axis=1)[4:]
    assert got == pytest.approx(wanted, abs=1e-4)


def test_a_take_that_shows_nothing_is_left_out(rng):
    true = linkage(rng)
    take = filmed(true, swung(rng, 3, 60, 0.6), rng)
    empty = replace(take, points=np.full_like(take.points, np.nan))
    found = calibrate(off_by(true, rng, 0.01), [take, empty])
    assert bones(found.skeleton) == pytest.approx(bones(true), abs=1e-6)
    assert len(found.skeletons) == 2


# --- doubt ----------------------------------------------------------------------------


def test_an_exact_take_beside_one_at_rest_leaves_a_doubt(rng):
    """Markers that fit to the last digit do not make joints known to it."""
    true = linkage(rng, (-1, 0, 1))
    takes = [
        filmed(true, swung(rng, 3, 60, 0.6, axes=own), rng)
        for own in ((None, None, None), (None, 0.0 * Z, 0.0 * Z))
    ]
    found = calibrate(off_by(true, rng, 0.01), takes)
    assert found.skeleton.lengths[2] == pytest.approx(true.lengths[2], abs=1e-6)
    assert 1e-7 < found.skeleton.length_sd[2] < 1e-3


@pytest.mark.usefixtures("unchecked")
def test_doubts_are_honest_where_noise_is_white():
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        true = linkage(rng)
        size = rng.uniform(0.3, 0.7)
        take = filmed(true, swung(rng, 3, 40, size), rng, noise=MILLIMETRE)
        found = calibrate(off_by(true, rng, 0.005), take).skeleton
        z.append((found.lengths[2] - true.lengths[2]) / found.length_sd[2])
    assert 0.9 < np.sqrt(np.mean(np.square(z))) < 1.1


def test_noise_is_told_from_what_moves_with_the_pose(rng):
    true = linkage(rng, BRANCHED)
    wxyz = swung(rng, 6, 300, 0.5)
    noisy = filmed(true, wxyz, rng, noise=MILLIMETRE)
    start = off_by(true, rng, 0.005)
    slow = filmed(true, wxyz, rng)
    skin = np.sin(np.linspace(0, 9, 300)[:, None, None] + rng.normal(size=(1, 24, 3)))
    slow = replace(slow, points=slow.points + 2.0 * MILLIMETRE * skin)
    white, drifting = calibrate(start, noisy), calibrate(start, slow)
    assert white.white_share == 1.0
    assert white.temper == 1.0
    assert drifting.white_share < 0.05
    assert drifting.temper > 70.0
    assert "markers-drift" in codes(drifting)
    assert "markers-drift" not in codes(white)


def test_each_marker_has_its_own_noise(rng):
    true = linkage(rng, (-1, 0, 1), markers=6)
    take = filmed(true, swung(rng, 3, 80, 0.6), rng)
    sd = np.where(np.arange(18) % 6 == 0, 3e-3, 1e-3)
    noise = rng.normal(size=take.points.shape) * sd[:, None]
    found = calibrate(true, replace(take, points=take.points + noise))
    ratio = found.marker_noise[0, sd > 2e-3] / found.marker_noise[0, sd < 2e-3].mean()
    assert ratio.min() > 1.8
    assert ratio.max() < 4.0


def test_outliers_lose_their_weight(rng):
    true = linkage(rng, BRANCHED)
    take = filmed(true, swung(rng, 6, 80, 0.6), rng, noise=MILLIMETRE)
    points = take.points.copy()
    wild = rng.random(points.shape[:2]) < 0.02
    points[wild] += rng.normal(size=(int(wild.sum()), 3)) * 0.3
    clean = calibrate(true, take).skeleton
    found = calibrate(true, replace(take, points=points)).skeleton
    assert np.abs(found.lengths - clean.lengths).max() < 1.0 * MILLIMETRE


# --- hinges ---------------------------------------------------------------------------


def flat_linkage(rng):
    """Three bones whose two hinges, both along z, are 0.3 m apart."""
    true = linkage(rng, (-1, 0, 1))
    flat = true.offset * [1.0, 1.0, 0.0]
    flat[1:] *= 0.3 / np.linalg.norm(flat[1:], axis=1, keepdims=True)
    return replace(true, offset=flat)


def slid(true, along):
    """The same linkage, its joints elsewhere along their hinges."""
    start = replace(true, offset=true.offset + np.outer([0.0, *along], Z))
    shift = np.cumsum([0.0, *along])[true.marker_joint]
    return replace(start, marker_offset=true.marker_offset - np.outer(shift, Z))


def test_a_joint_that_turns_about_one_axis_is_a_hinge(rng):
    true = flat_linkage(rng)
    wxyz = swung(rng, 3, 60, 0.8, axes=(None, Z, Z))
    take = filmed(true, wxyz, rng, noise=0.2 * MILLIMETRE)
    # A start anywhere along the axes: the bone comes out as long as they are apart.
    found = calibrate(slid(true, (0.1, -0.2)), take).skeleton
    assert found.lengths[2] == pytest.approx(0.3, abs=0.5 * MILLIMETRE)


def test_a_hinge_is_one_after_its_markers_were_put_on_anew(rng):
    true = flat_linkage(rng)
    takes = [
        filmed(day, swung(rng, 3, 60, 0.8, axes=(None, Z, Z)), rng, noise=2e-4)
        for day in (true, put_on_again(true, rng, 0.005))
    ]
    found = calibrate(slid(true, (0.1, -0.2)), takes)
    assert codes(found).count("joint-open") == 2
    sd = float(found.skeleton.length_sd[2])
    assert sd < 0.5 * MILLIMETRE
    assert found.skeleton.lengths[2] == pytest.approx(0.3, abs=3.0 * sd)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_about_one_axis_today_and_another_tomorrow_is_a_ball(rng, order):
    true = linkage(rng, (-1, 0, 1))
    takes = [
        filmed(true, swung(rng, 3, 60, 0.8, axes=(None, None, axis)), rng)
        for axis in np.eye(3)[:2]
    ]
    found = calibrate(off_by(true, rng, 0.01), [takes[k] for k in order])
    assert found.rms < 1e-6
    assert codes(found) == ["calibrated"]


def test_the_order_of_takes_does_not_matter(rng):
    """Neither for what a joint is nor for where: still, a hinge or a ball at first."""
    true = linkage(rng, (-1, 0, 1))
    axes = [(None, 0.0 * Z, 0.0 * Z), (None, Z, Z), (None, None, None)]
    takes = [
        filmed(true, swung(rng, 3, 60, 0.6, axes=own), rng, noise=2e-4) for own in axes
    ]
    start = off_by(true, rng, 0.01)
    usual = calibrate(start, takes)
    assert usual.skeleton.lengths[2] == pytest.approx(true.lengths[2], abs=1e-3)
    assert "joint-open" not in codes(usual)
    for order in permutations(range(3)):
        found = calibrate(start, [takes[k] for k in order])
        assert (found.skeleton.offset == usual.skeleton.offset).all()
        assert (found.marker_noise == usual.marker_noise[list(order)]).all()
        for skeleton, k in zip(found.skeletons, order, strict=True):
            assert (skeleton.marker_offset == usual.skeletons[k].marker_offset).all()
        assert found.findings == usual.findings


def test_the_axis_of_a_known_hinge_is_refined(rng):
    axis = np.array([0.0, 0.6, 0.8])
    true = linkage(rng, (-1, 0))
    true = replace(
        true,
        kind=("root", "hinge"),
        axes=np.array([np.full((2, 3), np.nan), [axis, [np.nan] * 3]]),
    )
    wxyz = swung(rng, 2, 60, 0.8, axes=(None, axis))
    take = filmed(true, wxyz, rng)
    bent = geometry.rotation_exp(np.array([0.05, -0.04, 0.03])) @ axis
    start = replace(true, axes=np.array([true.axes[0], [bent, [np.nan] * 3]]))
    found = calibrate(start, take).skeleton
    # At rest the axis is the same in parent and child: it turns neither.
    T = found.rest()
    root = found.marker_offset[:4]
    fitted = geometry.kabsch(true.marker_offset[:4], root)[:3, :3] @ axis
    assert abs(fitted @ found.axes[1, 0]) == pytest.approx(1.0, abs=1e-6)
    assert T.shape == (2, 4, 4)
    assert found.kind == ("root", "hinge")


# --- what cannot be calibrated --------------------------------------------------------


def test_a_single_body_stays_as_it_was(rng):
    true = linkage(rng, (-1,))
    take = filmed(true, swung(rng, 1, 30, 0.5), rng)
    found = calibrate(true, take)
    assert found.skeleton is true
    assert codes(found) == ["not-calibrated"]


def test_a_figure_that_never_moves_keeps_its_bones(rng):
    true = linkage(rng, BRANCHED)
    still = np.zeros((60, 6, 4))
    still[..., 0] = 1.0
    take = filmed(true, still, rng, noise=0.1 * MILLIMETRE)
    found = calibrate(true, take)
    assert np.isfinite(found.skeleton.offset).all()
    assert found.skeleton.lengths == pytest.approx(true.lengths, abs=2e-3)
    assert "joint-open" in codes(found)


@pytest.mark.parametrize("seed", range(4))
def test_finite_in_is_finite_out(seed):
    rng = np.random.default_rng(seed)
    true = linkage(rng, BRANCHED, markers=int(rng.integers(1, 4)))
    take = Take(
        rate=50.0,
        points=rng.normal(size=(20, len(true.marker_labels), 3)) * 10.0 ** (seed - 2),
        labels=true.marker_labels,
    )
    found = calibrate(true, take)
    assert np.isfinite(found.skeleton.offset).all()
    assert np.isfinite(found.skeleton.marker_offset).all()


def test_takes_are_needed(rng):
    with pytest.raises(DataError, match="no takes"):
        calibrate(linkage(rng), [])


def test_takes_of_something_else_are_refused(rng):
    other = Take(rate=50.0, points=np.zeros((20, 2, 3)), labels=("x", "y"))
    with pytest.raises(DataError, match="m0"):
        calibrate(linkage(rng), other)


@pytest.mark.parametrize(
    "wrong", [{"frames": 3}, {"independent": 0.0}, {"shoulders": "loose"}]
)
def test_options_are_checked(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        CalibrateOptions(**wrong)


def test_one_session_per_take(rng):
    true = linkage(rng)
    take = filmed(true, swung(rng, 3, 30, 0.5), rng)
    with pytest.raises(OptionError, match="sessions"):
        calibrate(true, take, options=CalibrateOptions(sessions=(0, 1)))


def test_markers_that_are_never_seen_stay_where_they_were(rng):
    true = linkage(rng)
    take = filmed(true, swung(rng, 3, 60, 0.6), rng)
    points = take.points.copy()
    points[:, 5] = np.nan
    found = calibrate(true, replace(take, points=points))
    assert (found.skeleton.marker_offset[5] == true.marker_offset[5]).all()
    assert np.isnan(found.marker_noise[0, 5])
    assert isinstance(found.skeleton, Skeleton)
