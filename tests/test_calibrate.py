"""Calibration: exact data give exact bones; standard deviations are consistent."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from calibrated import (
    linkage,
    perturb,
    random_rotations,
    record_take,
    rigid_distances,
)

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
    """Lengths that do not depend on the position of the root in its segment."""
    return skeleton.lengths[skeleton.parent > 0]


# --- exactness ------------------------------------------------------------------------


@pytest.mark.parametrize("parent", [(-1, 0), (-1, 0, 1), BRANCHED])
def test_exact_data_give_the_exact_skeleton(rng, parent):
    true = linkage(rng, parent)
    take = record_take(true, random_rotations(rng, len(parent), 60, 0.6), rng)
    found = calibrate(perturb(true, rng, 0.02), take)
    assert np.abs(rigid_distances(found.skeleton) - rigid_distances(true)).max() < 1e-7
    assert found.rms < 1e-7
    assert found.skeleton.names == true.names
    assert found.skeleton.kind == true.kind


def test_a_segment_with_two_markers_is_exact(rng):
    true = linkage(rng, (-1, 0, 1))
    keep = [0, 1, 2, 3, 4, 5, 8, 9, 10]
    true = replace(
        true,
        marker_labels=tuple(true.marker_labels[k] for k in keep),
        marker_joint=true.marker_joint[keep],
        marker_offset=true.marker_offset[keep],
    )
    take = record_take(true, random_rotations(rng, 3, 80, 0.6), rng)
    found = calibrate(perturb(true, rng, 0.01), take)
    assert bones(found.skeleton) == pytest.approx(bones(true), abs=1e-6)


def test_exact_sensors_give_the_exact_skeleton(rng):
    bare = linkage(rng, BRANCHED, markers=0)
    n = bare.n_joints
    R = geometry.rotation_exp(rng.normal(size=(n, 3)))
    true = replace(
        bare,
        sensor_names=tuple(f"s{i}" for i in range(n)),
        sensor_joint=np.arange(n),
        T_joint_sensor=geometry.transform(R, 0.1 * rng.normal(size=(n, 3))),
    )
    wxyz = random_rotations(rng, n, 60, 0.6)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), np.zeros(3))
    T = true.forward(T_root, wxyz) @ true.T_joint_sensor
    take = Take(rate=100.0, T_world_sensor=T, sensor_names=true.sensor_names)
    start = replace(true, offset=true.offset + 0.02 * rng.normal(size=(n, 3)))
    found = calibrate(start, take).skeleton
    assert bones(found) == pytest.approx(bones(true), abs=1e-6)
    for i in range(1, n):
        # Distance of sensor and joint, which does not depend on the segment's axes.
        offset, wanted = found.T_joint_sensor[i, :3, 3], true.T_joint_sensor[i, :3, 3]
        assert np.linalg.norm(offset) == pytest.approx(np.linalg.norm(wanted), abs=1e-6)


def test_a_fixed_joint_moves_with_its_segment(rng):
    true = linkage(rng, (-1, 0, 1, 2))
    true = replace(true, kind=("root", "ball", "fixed", "ball"))
    wxyz = random_rotations(rng, 4, 60, 0.6)
    wxyz[:, 2] = [1.0, 0.0, 0.0, 0.0]
    take = record_take(true, wxyz, rng)
    start = replace(true, offset=true.offset + 0.01 * rng.normal(size=(4, 3)))
    found = calibrate(start, take).skeleton
    T, wanted = found.rest(), true.rest()
    distance = np.linalg.norm(T[3, :3, 3] - T[1, :3, 3])
    assert distance == pytest.approx(
        np.linalg.norm((wanted[3] - wanted[1])[:3, 3]), abs=1e-6
    )


def test_occlusions_do_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 80, 0.6), rng)
    points = take.points.copy()
    points[rng.random(points.shape[:2]) < 0.2] = np.nan
    found = calibrate(perturb(true, rng, 0.01), replace(take, points=points))
    assert np.abs(rigid_distances(found.skeleton) - rigid_distances(true)).max() < 1e-6


# --- invariance -----------------------------------------------------------------------


def test_a_motion_of_the_world_does_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    R = geometry.rotation_exp(np.array([2.0, -0.7, 0.4]))
    T = geometry.transform(R, np.array([30.0, -20.0, 5.0]))
    moved = replace(take, points=geometry.apply(T, take.points))
    start = perturb(true, rng, 0.01)
    one, two = calibrate(start, take), calibrate(start, moved)
    # The steps end when they are a small part of the noise.
    difference = np.abs(two.skeleton.offset[1:] - one.skeleton.offset[1:])
    assert difference.max() < 0.01 * MILLIMETRE
    assert two.skeleton.length_sd == pytest.approx(
        one.skeleton.length_sd, rel=1e-3, nan_ok=True
    )


def test_the_order_of_markers_does_not_matter(rng):
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    start = perturb(true, rng, 0.01)
    order = rng.permutation(len(true.marker_labels))
    one = calibrate(start, take)
    two = calibrate(start, take.select(order))
    assert two.skeleton.offset == pytest.approx(one.skeleton.offset, abs=1e-12)


def test_repetition_gives_the_same_bits(rng):
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 60, 0.5), rng, noise=MILLIMETRE)
    start = perturb(true, rng, 0.01)
    one, two = calibrate(start, take), calibrate(start, take)
    assert (one.skeleton.offset == two.skeleton.offset).all()
    assert (one.skeleton.covariance[1:] == two.skeleton.covariance[1:]).all()


# --- sessions -------------------------------------------------------------------------


def reattach_markers(skeleton, rng, sd):
    displacement = sd * rng.normal(size=skeleton.marker_offset.shape)
    return replace(skeleton, marker_offset=skeleton.marker_offset + displacement)


def test_sessions_share_bones_but_not_marker_offsets(rng):
    days = [linkage(rng, BRANCHED)]
    days.append(reattach_markers(days[0], rng, 0.01))
    takes = [record_take(day, random_rotations(rng, 6, 60, 0.6), rng) for day in days]
    found = calibrate(perturb(days[0], rng, 0.01), takes)
    for day, skeleton in zip(days, found.skeletons, strict=True):
        assert np.abs(rigid_distances(skeleton) - rigid_distances(day)).max() < 1e-5
        assert (skeleton.offset == found.skeleton.offset).all()
    assert found.rms < 1e-6


def test_takes_of_one_session_share_marker_offsets(rng):
    true = linkage(rng, BRANCHED)
    takes = [
        record_take(true, random_rotations(rng, 6, 40, 0.5), rng, noise=1e-3)
        for _ in range(2)
    ]
    start = perturb(true, rng, 0.01)
    found = calibrate(start, takes)
    one, two = found.skeletons
    assert (one.marker_offset == two.marker_offset).all()
    assert found.marker_noise.shape == (1, len(true.marker_labels))
    told = calibrate(start, takes, options=CalibrateOptions(sessions=(7, 7)))
    assert (told.skeleton.offset == found.skeleton.offset).all()
    apart = calibrate(start, takes, options=CalibrateOptions(sessions=(0, 1)))
    assert len(apart.marker_noise) == 2


def test_a_marker_of_a_still_take_does_not_move_with_the_others(rng):
    """However many frames do not show it, it stays where the few frames have it."""
    true = linkage(rng, (-1, 0, 1))
    still = record_take(true, random_rotations(rng, 3, 200, 0.0), rng, noise=1e-4)
    moving = record_take(true, random_rotations(rng, 3, 200, 0.6), rng, noise=1e-4)
    moving = moving.select(range(1, len(true.marker_labels)))
    found = calibrate(perturb(true, rng, 0.01), [still, moving])
    assert len(found.marker_noise) == 1
    error = rigid_distances(found.skeletons[1]) - rigid_distances(true)
    assert np.abs(error).max() < 1e-3


def test_known_bones_are_kept_and_marker_offsets_estimated(rng):
    true = linkage(rng, BRANCHED)
    today = reattach_markers(true, rng, 0.015)
    take = record_take(today, random_rotations(rng, 6, 60, 0.6), rng)
    found = calibrate(true, take, options=CalibrateOptions(keep_bones=True))
    assert (found.skeleton.offset == true.offset).all()
    assert found.rms < 1e-5
    wanted = np.linalg.norm(today.marker_offset, axis=1)[4:]
    offset = np.linalg.norm(found.skeleton.marker_offset, axis=1)[4:]
    assert offset == pytest.approx(wanted, abs=1e-4)


def test_a_take_without_markers_is_ignored(rng):
    true = linkage(rng)
    take = record_take(true, random_rotations(rng, 3, 60, 0.6), rng)
    empty = replace(take, points=np.full_like(take.points, np.nan))
    found = calibrate(perturb(true, rng, 0.01), [take, empty])
    assert bones(found.skeleton) == pytest.approx(bones(true), abs=1e-6)
    assert len(found.skeletons) == 2


# --- uncertainty ----------------------------------------------------------------------


def test_exact_data_leave_a_standard_deviation(rng):
    """Markers that fit to the last digit do not determine joints to the last digit."""
    true = linkage(rng, (-1, 0, 1))
    takes = [
        record_take(true, random_rotations(rng, 3, 60, 0.6, axes=axes), rng)
        for axes in ((None, None, None), (None, 0.0 * Z, 0.0 * Z))
    ]
    found = calibrate(perturb(true, rng, 0.01), takes)
    assert found.skeleton.lengths[2] == pytest.approx(true.lengths[2], abs=1e-6)
    assert 1e-7 < found.skeleton.length_sd[2] < 1e-3


@pytest.mark.usefixtures("unchecked")
def test_standard_deviations_are_consistent_with_white_noise():
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        true = linkage(rng)
        size = rng.uniform(0.3, 0.7)
        take = record_take(
            true, random_rotations(rng, 3, 40, size), rng, noise=MILLIMETRE
        )
        found = calibrate(perturb(true, rng, 0.005), take).skeleton
        z.append((found.lengths[2] - true.lengths[2]) / found.length_sd[2])
    assert 0.9 < np.sqrt(np.mean(np.square(z))) < 1.1


def test_soft_tissue_of_one_body_is_no_rounding_of_exact_ones(rng):
    """Most markers fit to the last digit; those that do not are not white."""
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 300, 0.5), rng)
    skin = np.sin(np.linspace(0, 9, 300)[:, None, None] + rng.normal(size=(1, 4, 3)))
    take.points[:, -4:] += 2.0 * MILLIMETRE * skin
    assert calibrate(true, take).white_share < 0.05


def test_white_noise_is_distinguished_from_soft_tissue(rng):
    true = linkage(rng, BRANCHED)
    wxyz = random_rotations(rng, 6, 300, 0.5)
    noisy = record_take(true, wxyz, rng, noise=MILLIMETRE)
    start = perturb(true, rng, 0.005)
    slow = record_take(true, wxyz, rng)
    skin = np.sin(np.linspace(0, 9, 300)[:, None, None] + rng.normal(size=(1, 24, 3)))
    slow = replace(slow, points=slow.points + 2.0 * MILLIMETRE * skin)
    white, drifting = calibrate(start, noisy), calibrate(start, slow)
    assert white.white_share == 1.0
    assert white.prior_weight == 1.0
    assert drifting.white_share < 0.05
    assert drifting.prior_weight > 70.0
    assert "markers-drift" in codes(drifting)
    assert "markers-drift" not in codes(white)


def test_the_noise_of_each_marker_is_estimated(rng):
    true = linkage(rng, (-1, 0, 1), markers=6)
    take = record_take(true, random_rotations(rng, 3, 80, 0.6), rng)
    sd = np.where(np.arange(18) % 6 == 0, 3e-3, 1e-3)
    noise = rng.normal(size=take.points.shape) * sd[:, None]
    found = calibrate(true, replace(take, points=take.points + noise))
    ratio = found.marker_noise[0, sd > 2e-3] / found.marker_noise[0, sd < 2e-3].mean()
    assert ratio.min() > 1.8
    assert ratio.max() < 4.0


def test_outliers_lose_their_weight(rng):
    true = linkage(rng, BRANCHED)
    take = record_take(true, random_rotations(rng, 6, 80, 0.6), rng, noise=MILLIMETRE)
    points = take.points.copy()
    outlier = rng.random(points.shape[:2]) < 0.02
    points[outlier] += rng.normal(size=(int(outlier.sum()), 3)) * 0.3
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


def slide_joints(true, along):
    """The same linkage with its joints moved along their hinge axes."""
    start = replace(true, offset=true.offset + np.outer([0.0, *along], Z))
    displacement = np.cumsum([0.0, *along])[true.marker_joint]
    return replace(start, marker_offset=true.marker_offset - np.outer(displacement, Z))


def test_a_joint_that_rotates_about_one_axis_is_a_hinge(rng):
    true = flat_linkage(rng)
    wxyz = random_rotations(rng, 3, 60, 0.8, axes=(None, Z, Z))
    take = record_take(true, wxyz, rng, noise=0.2 * MILLIMETRE)
    # Wherever the joints are along the axes, the bone is the distance of the axes.
    found = calibrate(slide_joints(true, (0.1, -0.2)), take).skeleton
    assert found.lengths[2] == pytest.approx(0.3, abs=0.5 * MILLIMETRE)


def test_a_hinge_is_detected_after_its_markers_were_reattached(rng):
    true = flat_linkage(rng)
    takes = [
        record_take(
            day, random_rotations(rng, 3, 60, 0.8, axes=(None, Z, Z)), rng, noise=2e-4
        )
        for day in (true, reattach_markers(true, rng, 0.005))
    ]
    found = calibrate(slide_joints(true, (0.1, -0.2)), takes)
    assert codes(found).count("joint-open") == 2
    sd = float(found.skeleton.length_sd[2])
    assert sd < 0.5 * MILLIMETRE
    assert found.skeleton.lengths[2] == pytest.approx(0.3, abs=3.0 * sd)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_different_axes_in_different_sessions_are_a_ball(rng, order):
    true = linkage(rng, (-1, 0, 1))
    takes = [
        record_take(
            true, random_rotations(rng, 3, 60, 0.8, axes=(None, None, axis)), rng
        )
        for axis in np.eye(3)[:2]
    ]
    found = calibrate(perturb(true, rng, 0.01), [takes[k] for k in order])
    assert found.rms < 1e-6
    assert codes(found) == ["calibrated"]


def test_the_order_of_takes_does_not_matter(rng):
    """Whether a joint is immobile, a hinge or a ball in the first take."""
    true = linkage(rng, (-1, 0, 1))
    axes = [(None, 0.0 * Z, 0.0 * Z), (None, Z, Z), (None, None, None)]
    takes = [
        record_take(true, random_rotations(rng, 3, 60, 0.6, axes=axis), rng, noise=2e-4)
        for axis in axes
    ]
    start = perturb(true, rng, 0.01)
    apart = CalibrateOptions(sessions=(0, 1, 2))
    together = calibrate(start, takes)
    expected = calibrate(start, takes, options=apart)
    assert expected.skeleton.lengths[2] == pytest.approx(true.lengths[2], abs=1e-3)
    assert "joint-open" not in codes(expected)
    for order in permutations(range(3)):
        again = calibrate(start, [takes[k] for k in order])
        assert (again.skeleton.offset == together.skeleton.offset).all()
        found = calibrate(start, [takes[k] for k in order], options=apart)
        assert (found.skeleton.offset == expected.skeleton.offset).all()
        assert (found.marker_noise == expected.marker_noise[list(order)]).all()
        for skeleton, k in zip(found.skeletons, order, strict=True):
            assert (skeleton.marker_offset == expected.skeletons[k].marker_offset).all()
        assert found.findings == expected.findings


def test_the_axis_of_a_known_hinge_is_estimated(rng):
    axis = np.array([0.0, 0.6, 0.8])
    true = linkage(rng, (-1, 0))
    true = replace(
        true,
        kind=("root", "hinge"),
        axes=np.array([np.full((2, 3), np.nan), [axis, [np.nan] * 3]]),
    )
    wxyz = random_rotations(rng, 2, 60, 0.8, axes=(None, axis))
    take = record_take(true, wxyz, rng)
    bent = geometry.rotation_exp(np.array([0.05, -0.04, 0.03])) @ axis
    start = replace(true, axes=np.array([true.axes[0], [bent, [np.nan] * 3]]))
    found = calibrate(start, take).skeleton
    # At rest the axis is the same in parent and child.
    T = found.rest()
    root = found.marker_offset[:4]
    fitted = geometry.kabsch(true.marker_offset[:4], root)[:3, :3] @ axis
    assert abs(fitted @ found.axes[1, 0]) == pytest.approx(1.0, abs=1e-6)
    assert T.shape == (2, 4, 4)
    assert found.kind == ("root", "hinge")


# --- what cannot be calibrated --------------------------------------------------------


def test_a_single_body_is_not_calibrated(rng):
    true = linkage(rng, (-1,))
    take = record_take(true, random_rotations(rng, 1, 30, 0.5), rng)
    found = calibrate(true, take)
    assert found.skeleton is true
    assert codes(found) == ["not-calibrated"]


def test_an_immobile_skeleton_keeps_its_bones(rng):
    true = linkage(rng, BRANCHED)
    still = np.zeros((60, 6, 4))
    still[..., 0] = 1.0
    take = record_take(true, still, rng, noise=0.1 * MILLIMETRE)
    found = calibrate(true, take)
    assert np.isfinite(found.skeleton.offset).all()
    assert found.skeleton.lengths == pytest.approx(true.lengths, abs=2e-3)
    assert "joint-open" in codes(found)


@pytest.mark.parametrize("seed", range(4))
def test_finite_data_give_finite_results(seed):
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


def test_no_takes_are_an_error(rng):
    with pytest.raises(DataError, match="no takes"):
        calibrate(linkage(rng), [])


def test_takes_of_other_markers_are_an_error(rng):
    other = Take(rate=50.0, points=np.zeros((20, 2, 3)), labels=("x", "y"))
    with pytest.raises(DataError, match="m0"):
        calibrate(linkage(rng), other)


@pytest.mark.parametrize(
    "wrong", [{"frames": 3}, {"effective_samples": 0.0}, {"shoulders": "loose"}]
)
def test_options_are_checked(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        CalibrateOptions(**wrong)


def test_sessions_must_name_one_per_take(rng):
    true = linkage(rng)
    take = record_take(true, random_rotations(rng, 3, 30, 0.5), rng)
    with pytest.raises(OptionError, match="sessions"):
        calibrate(true, take, options=CalibrateOptions(sessions=(0, 1)))


def test_markers_that_are_never_seen_keep_their_offsets(rng):
    true = linkage(rng)
    take = record_take(true, random_rotations(rng, 3, 60, 0.6), rng)
    points = take.points.copy()
    points[:, 5] = np.nan
    found = calibrate(true, replace(take, points=points))
    assert (found.skeleton.marker_offset[5] == true.marker_offset[5]).all()
    assert np.isnan(found.marker_noise[0, 5])
    assert isinstance(found.skeleton, Skeleton)
