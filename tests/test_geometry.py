import os
import subprocess
import sys
from functools import partial
from itertools import permutations, product

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.numerics import geometry

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
batches = st.sampled_from([(), (5,), (2, 3), (0,)])
quick = settings(deadline=None, max_examples=25)
close = partial(np.testing.assert_allclose, rtol=0.0)

ORDERS = ["".join(o) for o in permutations("XYZ")]
ORDERS += [a + b + a for a, b in product("XYZ", repeat=2) if a != b]

# Angles where formulas like to break: identity, next to it, next to a half turn.
ANGLES = (0.0, 1e-300, 1e-12, 1e-7, 1e-4, 0.01, 0.09, 2.0, np.pi - 1e-7, np.pi)


def directions(rng, batch):
    v = rng.normal(size=(*batch, 3))
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def rotvecs(rng, batch, longest=np.pi):
    return directions(rng, batch) * rng.uniform(0.0, longest, size=(*batch, 1))


def quats(rng, batch):
    q = rng.normal(size=(*batch, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def poses(rng, batch):
    return geometry.transform(
        geometry.matrix_from_quat(quats(rng, batch)), rng.normal(size=(*batch, 3))
    )


def each(function, *arrays, inner):
    """Apply a function to every item of the leading axes, one at a time."""
    batch = arrays[0].shape[: arrays[0].ndim - 1]
    out = np.empty((*batch, *inner))
    for index in np.ndindex(*batch):
        out[index] = function(*(array[index] for array in arrays))
    return out


def same_rotation(p, q, atol=1e-12):
    close(geometry.matrix_from_quat(p), geometry.matrix_from_quat(q), atol=atol)


# --- rotations -----------------------------------------------------------------------


@given(rng=seeds, batch=batches, angle=st.sampled_from(ANGLES))
@quick
def test_exp_agrees_with_the_matrix_exponential_at_every_angle(rng, batch, angle):
    rotvec = angle * directions(rng, batch)
    R = geometry.rotation_exp(rotvec)
    close(R, each(naive.rotation, rotvec, inner=(3, 3)), atol=1e-14)


@given(rng=seeds, batch=batches, angle=st.sampled_from(ANGLES[:-1]))
@quick
def test_log_undoes_exp_at_every_angle_below_a_half_turn(rng, batch, angle):
    rotvec = angle * directions(rng, batch)
    back = geometry.quat_log(geometry.quat_exp(rotvec))
    close(back, rotvec, rtol=1e-13, atol=0.0)
    back = geometry.rotation_log(geometry.rotation_exp(rotvec))
    close(back, rotvec, atol=1e-14 if angle < 2.5 else 1e-13)


@given(rng=seeds, batch=batches)
@quick
def test_exp_undoes_log_and_log_is_never_longer_than_a_half_turn(rng, batch):
    q = quats(rng, batch)
    rotvec = geometry.quat_log(q)
    assert (np.linalg.norm(rotvec, axis=-1) <= np.pi + 1e-15).all()
    same_rotation(geometry.quat_exp(rotvec), q)


def test_log_of_a_stack_with_identity_and_half_turns():
    q = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [-1.0, 0, 0, 0], [0, 0, 0, -1.0]])
    np.testing.assert_array_equal(
        np.abs(geometry.quat_log(q)),
        [[0, 0, 0], [np.pi, 0, 0], [0, 0, 0], [0, 0, np.pi]],
    )


@given(rng=seeds, batch=batches)
@quick
def test_quaternion_product_is_matrix_product(rng, batch):
    p, q = quats(rng, batch), quats(rng, batch)
    P, Q = geometry.matrix_from_quat(p), geometry.matrix_from_quat(q)
    close(P, each(naive.quat_matrix, p, inner=(3, 3)), atol=1e-14)
    close(geometry.matrix_from_quat(geometry.quat_multiply(p, q)), P @ Q, atol=1e-14)
    points = rng.normal(size=(*batch, 3))
    turned = (P @ points[..., None])[..., 0]
    close(geometry.quat_rotate(p, points), turned, atol=1e-14)
    unit = geometry.quat_multiply(p, geometry.quat_conjugate(p))
    close(unit, np.broadcast_to([1, 0, 0, 0], p.shape), atol=1e-15)


@given(rng=seeds, batch=batches, angle=st.sampled_from(ANGLES))
@quick
def test_quaternion_of_a_matrix_is_exact_with_w_not_negative(rng, batch, angle):
    q = geometry.quat_exp(angle * directions(rng, batch))
    back = geometry.quat_from_matrix(geometry.matrix_from_quat(q))
    assert (back[..., 0] >= 0.0).all()
    close(np.linalg.norm(back, axis=-1), 1.0, atol=1e-15)
    same_rotation(back, q, atol=5e-15)


@given(rng=seeds, batch=batches)
@quick
def test_hat_is_the_cross_product(rng, batch):
    v, x = rng.normal(size=(2, *batch, 3))
    close((geometry.hat(v) @ x[..., None])[..., 0], np.cross(v, x), atol=1e-14)


@given(rng=seeds, batch=batches, share=st.floats(0.0, 1.0))
@quick
def test_slerp_agrees_with_the_formula_of_sines(rng, batch, share):
    start, end = quats(rng, batch), quats(rng, batch)
    shares = np.full(batch, share)
    got = geometry.quat_slerp(start, end, shares)
    wanted = each(lambda p, q: naive.slerp(p, q, share), start, end, inner=(4,))
    same_rotation(got, wanted, atol=1e-9)
    same_rotation(geometry.quat_slerp(start, end, np.zeros(batch)), start)
    same_rotation(geometry.quat_slerp(start, end, np.ones(batch)), end)


# --- transforms ----------------------------------------------------------------------


@given(rng=seeds, batch=batches)
@quick
def test_inverse_and_apply_are_the_matrix_inverse_and_product(rng, batch):
    T, points = poses(rng, batch), rng.normal(size=(*batch, 3))
    close(T @ geometry.inverse(T), np.broadcast_to(np.eye(4), T.shape), atol=1e-14)
    close(
        geometry.apply(geometry.inverse(T), geometry.apply(T, points)),
        points,
        atol=1e-14,
    )
    homogeneous = np.concatenate([points, np.ones((*batch, 1))], axis=-1)
    wanted = (T @ homogeneous[..., None])[..., :3, 0]
    close(geometry.apply(T, points), wanted, atol=1e-14)


@given(rng=seeds, batch=batches, angle=st.sampled_from(ANGLES[:-1]))
@quick
def test_transform_exp_and_log_at_every_angle(rng, batch, angle):
    twist = np.concatenate(
        [rng.normal(size=(*batch, 3)), angle * directions(rng, batch)], axis=-1
    )
    T = geometry.transform_exp(twist)
    wanted = each(naive.transform, twist, inner=(4, 4))
    close(T, wanted, atol=1e-13)
    close(geometry.transform_log(T), twist, atol=1e-12)


def test_points_of_several_items_move_each_with_its_own(rng):
    T = geometry.transform_exp(rng.normal(size=(6, 4, 6)))
    T[2, 1] = np.nan
    item, points = np.array([3, 1, 1, 0, 3]), rng.normal(size=(5, 3))
    found = geometry.apply_selected(T, item, points)
    expected = [
        [geometry.apply(one[i], p) for i, p in zip(item, points, strict=True)]
        for one in T
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert geometry.apply_selected(T, item[:0], points[:0]).shape == (6, 0, 3)


def test_a_transform_is_unknown_as_a_whole():
    T = geometry.transform(np.eye(3), np.array([[0.0, np.nan, 0.0], [1.0, 2.0, 3.0]]))
    assert np.isnan(T[0]).all()
    assert np.isfinite(T[1]).all()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (geometry.quat_exp, (3,)),
        (geometry.quat_log, (4,)),
        (geometry.quat_conjugate, (4,)),
        (geometry.quat_continuous, (4,)),
        (geometry.matrix_from_quat, (4,)),
        (geometry.quat_from_matrix, (3, 3)),
        (geometry.rotation_exp, (3,)),
        (geometry.rotation_log, (3, 3)),
        (geometry.inverse, (4, 4)),
        (geometry.transform_exp, (6,)),
        (geometry.transform_log, (4, 4)),
        (lambda q: geometry.euler_from_quat(q, "ZXY"), (4,)),
        (lambda q: geometry.euler_continuous(q, "ZXZ"), (4,)),
        (lambda a: geometry.quat_from_euler(a, "ZXZ"), (3,)),
        (lambda q: geometry.quat_multiply(q, q), (4,)),
        (lambda q: geometry.quat_slerp(q, q, np.zeros(q.shape[:-1])), (4,)),
        (lambda T: geometry.apply(T, np.zeros(3)), (4, 4)),
    ],
)
def test_nan_in_gives_nan_out_and_touches_no_neighbour(function, shape):
    known = {(3,): np.ones(3), (6,): np.ones(6), (4,): np.array([1.0, 0, 0, 0])}
    item = known.get(shape, np.eye(shape[0]))
    stack = np.stack([item, np.full(shape, np.nan), item])
    out = function(stack)
    assert np.isnan(out[1]).all()
    np.testing.assert_array_equal(out[0], function(item[None])[0])
    np.testing.assert_array_equal(out[2], out[0])


# --- continuity ----------------------------------------------------------------------


def smooth_quats(rng, n_frames, n_items=3, speed=0.3):
    turns = rotvecs(rng, (n_frames, n_items), longest=speed)
    q = np.empty((n_frames, n_items, 4))
    q[0] = quats(rng, (n_items,))
    for frame in range(1, n_frames):
        q[frame] = geometry.quat_multiply(q[frame - 1], geometry.quat_exp(turns[frame]))
    return q


@given(rng=seeds, first_known=st.integers(0, 3))
@quick
def test_signs_never_flip_whatever_they_were_before(rng, first_known):
    q = smooth_quats(rng, 40)
    gaps = rng.random((40, 3)) < 0.1
    gaps[:first_known] = True
    gaps[first_known] = False
    q[gaps] = np.nan
    out = geometry.quat_continuous(q)
    flipped = geometry.quat_continuous(q * rng.choice([-1.0, 1.0], size=(40, 3, 1)))
    np.testing.assert_array_equal(flipped, out)
    np.testing.assert_array_equal(np.abs(out), np.abs(q))
    np.testing.assert_array_equal(geometry.quat_continuous(out), out)
    assert (out[first_known, :, 0] >= 0.0).all()
    for item in range(3):
        known = out[~gaps[:, item], item]
        assert (np.sum(known[1:] * known[:-1], axis=-1) > 0.0).all()


def test_no_frames_and_one_frame_stay_as_they_are():
    one = np.array([[[0.6, 0.8, 0.0, 0.0]]])
    np.testing.assert_array_equal(geometry.quat_continuous(one), one)
    assert geometry.quat_continuous(one[:0]).shape == (0, 1, 4)
    assert geometry.euler_continuous(one[:0], "ZXY").shape == (0, 1, 3)
    np.testing.assert_array_equal(
        geometry.euler_continuous(one, "ZXY"), geometry.euler_from_quat(one, "ZXY")
    )


# --- Euler angles --------------------------------------------------------------------


def middle_range(order):
    return (0.0, np.pi) if order[0] == order[2] else (-np.pi / 2, np.pi / 2)


@pytest.mark.parametrize("order", ORDERS)
@given(rng=seeds, batch=batches)
@settings(deadline=None, max_examples=10)
def test_euler_angles_are_the_product_of_three_turns_and_come_back(order, rng, batch):
    low, high = middle_range(order)
    angles = rng.uniform(-3.1, 3.1, size=(*batch, 3))
    angles[..., 1] = rng.uniform(low + 0.01, high - 0.01, size=batch)
    R = geometry.matrix_from_euler(angles, order)
    wanted = each(lambda a: naive.euler(a, order), angles, inner=(3, 3))
    close(R, wanted, atol=1e-14)
    back = geometry.euler_from_quat(geometry.quat_from_matrix(R), order)
    close(back, angles, atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@given(rng=seeds, off=st.sampled_from([0.0, 1e-15, 1e-10, 1e-8, 1e-5]))
@settings(deadline=None, max_examples=10)
def test_gimbal_lock_gives_the_same_rotation_within_the_stated_ranges(order, rng, off):
    low, high = middle_range(order)
    angles = rng.uniform(-np.pi, np.pi, size=(8, 3))
    angles[:, 1] = np.where(rng.random(8) < 0.5, low + off, high - off)
    q = geometry.quat_from_euler(angles, order)
    back = geometry.euler_from_quat(q, order)
    same_rotation(geometry.quat_from_euler(back, order), q, atol=4e-9)
    assert ((low - 1e-15 <= back[:, 1]) & (back[:, 1] <= high + 1e-15)).all()
    assert (np.abs(back) <= np.pi).all()
    if off < 1e-9:
        assert (back[:, 2] == 0.0).all()


def smooth_angles(rng, order, n_frames=201):
    """Angle curves that swing through gimbal lock, exactly on one frame at least."""
    t = np.linspace(-1.0, 1.0, n_frames)[:, None]
    rate, phase = rng.uniform(0.5, 2.0, size=(2, 3))
    angles = rng.uniform(1.0, 4.0, size=3) * np.sin(rate * t + phase)
    angles[:, 1] = middle_range(order)[1] + 0.5 * np.sin(3.0 * t[:, 0])
    return angles


@pytest.mark.parametrize("order", ORDERS)
@given(rng=seeds)
@settings(deadline=None, max_examples=10)
def test_a_smooth_swing_through_gimbal_lock_comes_back_as_it_was(order, rng):
    angles = smooth_angles(rng, order)
    q = geometry.quat_from_euler(angles, order)
    q *= rng.choice([-1.0, 1.0], size=(len(q), 1))
    unseen = rng.random(len(q)) < 0.1
    unseen[0] = False
    q[unseen] = np.nan
    back = geometry.euler_continuous(q, order)
    np.testing.assert_array_equal(np.isnan(back).all(axis=-1), unseen)
    same_rotation(geometry.quat_from_euler(back, order), q, atol=4e-9)
    # The same curves, up to the set and the whole turns of the first frame.
    middle = -angles[:, 1] if order[0] == order[2] else np.pi - angles[:, 1]
    other = np.stack([angles[:, 0] + np.pi, middle, angles[:, 2] + np.pi], axis=-1)
    off = [
        np.nanmax(np.abs(back - curve - (back[0] - curve[0])))
        for curve in (angles, other)
    ]
    assert min(off) < 0.01  # the lock frame itself is interpolated


@given(rng=seeds, order=st.sampled_from(ORDERS))
@quick
def test_any_motion_keeps_its_rotations_and_never_jumps_past_a_half_turn(rng, order):
    q = smooth_quats(rng, 60, speed=2.0)
    q[rng.random((60, 3)) < 0.2] = np.nan
    lock = geometry.quat_from_euler(
        np.array([rng.normal(), middle_range(order)[0], rng.normal()]), order
    )
    q[rng.random((60, 3)) < 0.2] = lock
    angles = geometry.euler_continuous(q, order)
    same_rotation(geometry.quat_from_euler(angles, order), q, atol=4e-9)
    for item in range(3):
        known = angles[np.isfinite(angles[:, item, 0]), item]
        assert (np.abs(np.diff(known, axis=0)) <= np.pi + 1e-12).all()


@pytest.mark.parametrize("order", ["ZXY", "ZXZ"])
def test_a_motion_wholly_in_gimbal_lock_turns_by_its_first_angle(order):
    first = np.linspace(0.0, 9.0, 30)
    angles = np.stack([first, 0 * first + middle_range(order)[1], 0 * first], axis=-1)
    back = geometry.euler_continuous(geometry.quat_from_euler(angles, order), order)
    close(back, angles, atol=1e-7)


@pytest.mark.parametrize("order", ["", "XY", "XXY", "XYY", "xyz", "XYW", "XYZX"])
def test_an_order_that_is_none_is_refused_by_name(order):
    with pytest.raises(marey.OptionError, match=f"order: found '{order}', need three"):
        geometry.euler_axes(order)


# --- fitting -------------------------------------------------------------------------


@given(rng=seeds, batch=batches, n_points=st.integers(3, 8), scale=st.floats(1e-3, 1e3))
@quick
def test_exact_points_give_the_exact_transform(rng, batch, n_points, scale):
    T = poses(rng, batch)
    points_b = scale * rng.normal(size=(*batch, n_points, 3))
    points_a = geometry.apply(T[..., None, :, :], points_b)
    fit = geometry.kabsch(points_b, points_a)
    close(
        geometry.apply(fit[..., None, :, :], points_b),
        points_a,
        atol=1e-12 * (1 + scale),
    )
    assert fit.shape == (*batch, 4, 4)


@given(rng=seeds, noise=st.sampled_from([1e-3, 0.1, 10.0]))
@quick
def test_agrees_with_svd_under_noise_weights_and_gaps(rng, noise):
    points_b = rng.normal(size=(30, 6, 3))
    points_a = geometry.apply(poses(rng, (30, 1)), points_b)
    points_a += noise * rng.normal(size=points_a.shape)
    weights = rng.uniform(0.1, 3.0, size=(30, 6)) * (rng.random((30, 6)) > 0.1)
    points_b[rng.random((30, 6)) < 0.15] = np.nan
    points_a[rng.random((30, 6)) < 0.15] = np.nan
    fit = geometry.kabsch(points_b, points_a, weights)
    wanted = np.array(list(map(naive.kabsch, points_b, points_a, weights)))
    known = np.isfinite(wanted[:, 0, 0])
    np.testing.assert_array_equal(np.isfinite(fit).all(axis=(1, 2)), known)
    assert np.isnan(fit[~known]).all()
    close(fit[known], wanted[known], atol=1e-8)
    R = fit[known][:, :3, :3]
    close(R @ R.mT, np.broadcast_to(np.eye(3), R.shape), atol=1e-14)
    close(np.linalg.det(R), 1.0, atol=1e-14)


@given(rng=seeds, batch=st.sampled_from([(), (7,), (3, 4), (0,)]))
@quick
def test_the_nearest_rotation_is_proper_and_none_is_nearer(rng, batch):
    """The least distance: tr R^T M is the most, s1 + s2 and, if not mirrored, s3."""
    M = rng.normal(size=(*batch, 3, 3))
    R = geometry.nearest_rotation(M)
    close(R @ R.mT, np.broadcast_to(np.eye(3), M.shape), atol=1e-13)
    close(np.linalg.det(R), np.ones(batch), atol=1e-13)
    s = np.linalg.svd(M, compute_uv=False)
    most = s[..., 0] + s[..., 1] + np.sign(np.linalg.det(M)) * s[..., 2]
    close(np.sum(R * M, axis=(-1, -2)), most, atol=1e-12)
    others = geometry.rotation_exp(rng.normal(size=(200, *batch, 3)))
    off, away = (np.sum((M - X) ** 2, axis=(-1, -2)) for X in (R, R @ others))
    assert (off <= away + 1e-12).all()


@given(rng=seeds, scale=st.sampled_from([1e-9, 1.0, 1e9]))
@quick
def test_the_nearest_rotation_of_a_rotation_is_itself_and_turns_with_it(rng, scale):
    A, R, B = geometry.rotation_exp(rng.normal(size=(3, 5, 3)))
    close(geometry.nearest_rotation(scale * R), R, atol=1e-13)
    M = R + 0.3 * rng.normal(size=R.shape)
    wanted = A @ geometry.nearest_rotation(M) @ B
    close(geometry.nearest_rotation(A @ M @ B), wanted, atol=1e-9)
    one = np.array([geometry.nearest_rotation(m) for m in M])
    np.testing.assert_array_equal(geometry.nearest_rotation(M), one)


def test_of_an_unknown_matrix_the_nearest_rotation_is_unknown(rng):
    M = rng.normal(size=(3, 3, 3))
    M[1, 2, 0] = np.nan
    R = geometry.nearest_rotation(M)
    assert np.isnan(R[1]).all()
    np.testing.assert_array_equal(R[::2], geometry.nearest_rotation(M[::2]))


@given(rng=seeds)
@quick
def test_planar_sets_are_exact_and_a_mirror_image_gives_no_reflection(rng):
    T = poses(rng, ())
    flat = rng.normal(size=(5, 3)) * [1.0, 1.0, 0.0]
    fit = geometry.kabsch(flat, geometry.apply(T, flat))
    close(fit, T, atol=1e-11)
    solid = rng.normal(size=(6, 3))
    mirrored = geometry.kabsch(solid, solid * [1.0, 1.0, -1.0])
    assert np.linalg.det(mirrored[:3, :3]) == pytest.approx(1.0)


@given(rng=seeds, n_points=st.integers(0, 6), side=st.booleans())
@quick
def test_a_line_in_either_set_and_under_three_points_are_unknown(rng, n_points, side):
    line = 5.0 + rng.normal(size=(n_points, 1)) * directions(rng, ())
    cloud = rng.normal(size=(n_points, 3))
    sets = (line, cloud) if side else (cloud, line)
    assert np.isnan(geometry.kabsch(*sets)).all()
    assert np.isnan(geometry.kabsch(line, line)).all()
    assert np.isnan(geometry.kabsch(cloud[:2], cloud[:2])).all()
    assert np.isnan(geometry.kabsch(0.0 * cloud, cloud)).all()


@given(rng=seeds, width=st.floats(1e-5, 1e-2))
@quick
def test_a_set_that_is_only_narrow_is_known(rng, width):
    T = poses(rng, ())
    narrow = rng.normal(size=(6, 3)) * [1.0, width, width]
    fit = geometry.kabsch(narrow, geometry.apply(T, narrow))
    close(fit, T, atol=1e-13 / width**2)


@given(rng=seeds)
@quick
def test_leading_axes_broadcast_and_zero_weight_is_absence(rng):
    points_b = rng.normal(size=(6, 3))
    points_a = rng.normal(size=(4, 1, 6, 3))
    weights = rng.uniform(0.1, 1.0, size=(3, 6))
    weights[:, 5] = 0.0
    fit = geometry.kabsch(points_b, points_a, weights)
    assert fit.shape == (4, 3, 4, 4)
    for i, j in np.ndindex(4, 3):
        alone = geometry.kabsch(points_b[:5], points_a[i, 0, :5], weights[j, :5])
        close(fit[i, j], alone, atol=1e-12)
    none = geometry.kabsch(points_b, points_a, np.zeros(6))
    assert none.shape == (4, 1, 4, 4)
    assert np.isnan(none).all()
    np.testing.assert_array_equal(
        geometry.kabsch(points_b, points_a, np.ones(6)),
        geometry.kabsch(points_b, points_a),
    )


@given(rng=seeds)
@quick
def test_single_precision_and_any_memory_order_are_taken(rng):
    points_b, points_a = rng.normal(size=(2, 9, 5, 3))
    fit = geometry.kabsch(points_b, points_a)
    order = np.asfortranarray(points_b), points_a[::-1][::-1]
    np.testing.assert_array_equal(geometry.kabsch(*order), fit)
    single = geometry.kabsch(points_b.astype(np.float32), points_a.astype(np.float32))
    assert single.dtype == np.float64


def test_the_kernel_runs_without_compilation():
    code = (
        "import numpy as np; from marey.numerics import geometry; "
        "rng = np.random.default_rng(1); b, a = rng.normal(size=(2, 20, 5, 3)); "
        "b[3, 1:] = np.nan; print(geometry.kabsch(b, a).tolist())"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, check=True)
    rng = np.random.default_rng(1)
    b, a = rng.normal(size=(2, 20, 5, 3))
    b[3, 1:] = np.nan
    plain = np.array(eval(run.stdout, {"nan": np.nan}))
    close(plain, geometry.kabsch(b, a), atol=1e-12)


# --- shapes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: geometry.quat_exp(np.zeros(4)),
        lambda: geometry.quat_multiply(np.zeros((2, 4)), np.zeros((3, 4))),
        lambda: geometry.apply(np.zeros((2, 4, 4)), np.zeros((3, 3))),
        lambda: geometry.kabsch(np.zeros((4, 3)), np.zeros((5, 3))),
        lambda: geometry.kabsch(np.zeros((2, 4, 3)), np.zeros((3, 4, 3))),
        lambda: geometry.kabsch(np.zeros((4, 3)), np.zeros((4, 3)), np.zeros(3)),
        lambda: geometry.quat_log([1.0, 0.0, 0.0, 0.0]),  # type: ignore[arg-type]
        lambda: geometry.transform(np.zeros((3, 4)), np.zeros(3)),
    ],
)
def test_a_wrong_shape_is_caught_where_it_enters(call):
    with pytest.raises(TypeError):
        call()


def test_lengths_and_cross_products_are_those_of_numpy(rng):
    """To the last digit, whatever axes lead, and unknown where a vector is."""
    left, right = rng.normal(size=(5, 1, 3)), rng.normal(size=(4, 3))
    left[2] = np.nan
    np.testing.assert_array_equal(geometry.cross(left, right), np.cross(left, right))
    np.testing.assert_array_equal(
        geometry.cross(left[0, 0], right[0]), np.cross(left[0, 0], right[0])
    )
    for vectors in (left, right[0]):
        expected = np.linalg.norm(vectors, axis=-1)
        np.testing.assert_array_equal(geometry.lengths(vectors), expected)


def test_a_pose_does_not_depend_on_those_fitted_beside_it():
    rng = np.random.default_rng(5)
    b, a = rng.normal(size=(2, 11, 5, 3))
    a[:6] = geometry.apply(geometry.transform_exp(rng.normal(size=6)), b[:6])
    a[1, 2] = b[2, 0] = np.nan
    a[3, 2:] = np.nan  # two points are left
    b[4] = b[4, :1] + np.arange(5.0)[:, None] * rng.normal(size=3)  # a line
    a[5] = np.nan
    b[6] = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.5, 0]]
    weights = rng.uniform(size=(11, 5)) * (rng.uniform(size=(11, 5)) > 0.1)
    together = geometry.kabsch(b, a, weights)
    alone = [geometry.kabsch(*one) for one in zip(b, a, weights, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-13)
    unknown = np.isnan(together[:, 0, 0])
    np.testing.assert_array_equal(np.flatnonzero(unknown), [3, 4, 5])
