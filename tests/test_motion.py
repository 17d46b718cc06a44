from dataclasses import replace
from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.numerics import geometry
from marey.numerics.resampling import frame_blocks

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=25)
close = partial(np.testing.assert_allclose, rtol=0.0)

ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "XYX", "ZXZ")


def figure(n_joints=4):
    return marey.Skeleton(
        names=tuple(f"joint{i}" for i in range(n_joints)),
        parent=np.array([-1, *np.arange(n_joints - 1) // 2]),
        offset=np.linspace(-0.4, 0.7, 3 * n_joints).reshape(n_joints, 3),
        marker_labels=("a", "b", "c"),
        marker_joint=np.array([0, n_joints - 1, 0]),
        marker_offset=np.array([[0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.3]]),
    )


class Course:
    """A smooth motion that can be asked at any time."""

    def __init__(self, rng, n_joints=4, *, swing=1.0, speed=4.0):
        self.amplitude = swing * rng.normal(size=(3, n_joints, 3))
        self.frequency = rng.uniform(0.3, 1.0, size=(3, n_joints, 3)) * speed
        self.phase = rng.uniform(0.0, 6.0, size=(3, n_joints, 3))
        self.skeleton = figure(n_joints)

    def record(self, times, rate=np.nan):
        t = np.asarray(times)[:, None, None, None]
        curves = self.amplitude * np.sin(self.frequency * t + self.phase)
        wxyz = geometry.quat_exp(curves[:, 0])
        R = geometry.matrix_from_quat(wxyz[:, 0])
        return marey.Motion(
            skeleton=self.skeleton,
            T_world_root=geometry.transform(R, curves[:, 1, 0]),
            wxyz=wxyz,
            rate=rate,
            start=float(times[0]) if len(times) else 0.0,
        )


def recorded(rng, n_frames=20, rate=30.0, start=0.0, **options):
    course = Course(rng, **options)
    return course.record(start + np.arange(n_frames) / rate, rate)


def angles_between(p, q):
    turn = geometry.quat_log(geometry.quat_multiply(geometry.quat_conjugate(p), q))
    return np.linalg.norm(turn, axis=-1)


# --- frames --------------------------------------------------------------------------


@given(rng=seeds, start=st.sampled_from([0.0, -3.7, 12.345, 1.7e9]), data=st.data())
@quick
def test_at_gives_back_the_recorded_frames_in_any_order(rng, start, data):
    rate = data.draw(st.sampled_from([30.0, 59.94, 120.0, 1000.0 / 7.0]))
    motion = recorded(rng, 15, rate, swing=2.0)
    motion = replace(motion, start=start)
    order = data.draw(st.permutations(range(15)))
    back = motion.at(motion.times[list(order)])
    assert back.n_frames == 15
    assert np.isnan(back.rate)
    assert np.isnan(back.times).all()
    assert angles_between(back.wxyz, motion.wxyz[list(order)]).max() < 1e-9
    close(back.T_world_root, motion.T_world_root[list(order)], atol=1e-9)


@given(rng=seeds, rate=st.sampled_from([25.0, 60.0, 120.0]))
@settings(deadline=None, max_examples=40)
def test_between_frames_it_is_nearer_to_the_truth_than_slerp(rng, rate):
    course = Course(rng)
    n_frames = int(2 * rate) + 1
    motion = course.record(np.arange(n_frames) / rate, rate)
    times = rng.uniform(0.0, 2.0, size=400)
    truth, ours = course.record(times), motion.at(times)
    frame = np.minimum((times * rate).astype(int), n_frames - 2)
    slerp = geometry.quat_slerp(
        motion.wxyz[frame], motion.wxyz[frame + 1], (times * rate - frame)[:, None]
    )
    our_error = angles_between(ours.wxyz, truth.wxyz)
    slerp_error = angles_between(slerp, truth.wxyz)
    ours_rms, slerp_rms = (np.sqrt(np.mean(e**2)) for e in (our_error, slerp_error))
    assert ours_rms < 0.1 * slerp_rms
    assert our_error.max() < 0.3 * slerp_error.max()
    place, straight = motion.T_world_root[:, :3, 3], np.empty((400, 3))
    for axis in range(3):
        straight[:, axis] = np.interp(times, motion.times, place[:, axis])
    off = [
        np.linalg.norm(p - truth.T_world_root[:, :3, 3], axis=-1)
        for p in (ours.T_world_root[:, :3, 3], straight)
    ]
    assert off[0].max() < off[1].max()


@given(rng=seeds)
@quick
def test_a_steady_turn_and_a_straight_way_are_exact(rng):
    turn = 0.4 * rng.normal(size=(4, 3)) / 3.0
    frames = np.arange(10.0)[:, None, None]
    way = rng.normal(size=3)
    first = geometry.quat_exp(rng.normal(size=(4, 3)))

    def steady(frames):
        wxyz = geometry.quat_multiply(first, geometry.quat_exp(frames * turn))
        R = geometry.matrix_from_quat(wxyz[:, 0])
        return marey.Motion(
            skeleton=figure(),
            T_world_root=geometry.transform(R, frames[:, 0] * way),
            wxyz=wxyz,
            rate=50.0,
        )

    wanted = rng.uniform(0.0, 9.0, size=30)[:, None, None]
    got, truth = steady(frames).at(wanted[:, 0, 0] / 50.0), steady(wanted)
    assert angles_between(got.wxyz, truth.wxyz).max() < 1e-12
    close(got.T_world_root, truth.T_world_root, atol=1e-12)


@given(rng=seeds)
@quick
def test_the_curve_has_no_corners_at_the_frames(rng):
    motion = recorded(rng, 12, 30.0)
    frames = motion.times[1:-1]
    h = 1e-6
    here = motion.at(frames).wxyz
    before = geometry.quat_multiply(
        geometry.quat_conjugate(motion.at(frames - h).wxyz), here
    )
    after = geometry.quat_multiply(
        geometry.quat_conjugate(here), motion.at(frames + h).wxyz
    )
    close(geometry.quat_log(before) / h, geometry.quat_log(after) / h, atol=1e-3)


@pytest.mark.parametrize("time", [-0.001, 0.4, np.nan, np.inf])
def test_times_outside_the_motion_are_refused_with_its_span(rng, time):
    motion = recorded(rng, 10, 30.0)
    with pytest.raises(marey.OptionError, match=r"need 0.0 to 0.3 s") as error:
        motion.at(np.array([0.1, time, 0.2]))
    assert str(error.value).startswith(f"time: found {time}")


def test_one_time_gives_one_frame_and_no_times_give_none(rng):
    motion = recorded(rng, 10, 30.0)
    one = motion.at(0.123)
    assert (one.n_frames, one.start) == (1, 0.123)
    assert motion.at(np.zeros(0)).n_frames == 0


@given(rng=seeds, n_frames=st.integers(1, 4))
@quick
def test_the_shortest_motions_can_be_asked_too(rng, n_frames):
    motion = recorded(rng, n_frames, 10.0)
    times = rng.uniform(0.0, motion.duration, size=5)
    got = motion.at(times)
    if n_frames == 1:
        assert angles_between(got.wxyz, motion.wxyz).max() < 1e-15
    if n_frames == 2:
        first, last = motion.wxyz
        wanted = [
            [naive.slerp(p, q, t * 10.0) for p, q in zip(first, last, strict=True)]
            for t in times
        ]
        assert angles_between(got.wxyz, np.array(wanted)).max() < 1e-7
    assert np.isfinite(got.T_world_root).all()
    assert motion.resample(35.0).n_frames == int((n_frames - 1) * 3.5) + 1


# --- resampling and cutting ----------------------------------------------------------


@pytest.mark.parametrize("n_frames", [0, 1, 4096, 4097, 10_000])
def test_blocks_have_every_frame_once_and_in_order(n_frames):
    frames = np.arange(n_frames)
    blocks = [frames[block] for block in frame_blocks(n_frames)]
    np.testing.assert_array_equal(np.concatenate(blocks), frames)


@given(rng=seeds, factor=st.integers(1, 8), start=st.sampled_from([0.0, 1.7e9]))
@quick
def test_resampling_up_and_back_is_the_same_motion(rng, factor, start):
    motion = replace(recorded(rng, 12, 100.0 / 3.0), start=start)
    up = motion.resample(factor * motion.rate)
    assert up.n_frames == 11 * factor + 1
    assert up.start == start
    back = up.resample(motion.rate)
    close(back.wxyz, motion.wxyz, atol=1e-12)
    close(back.T_world_root, motion.T_world_root, atol=1e-12)


@given(rng=seeds, rate=st.floats(5.0, 300.0))
@quick
def test_resampling_keeps_the_span_and_agrees_with_at(rng, rate):
    motion = recorded(rng, 12, 30.0)
    out = motion.resample(rate)
    assert out.rate == rate
    assert -1e-9 < motion.duration - out.duration < 1.0 / rate
    inside = out.times <= motion.times[-1]
    at = motion.at(out.times[inside])
    assert angles_between(at.wxyz, out.wxyz[inside]).max() < 1e-7


def test_leaving_out_frames_never_makes_a_jump(rng):
    motion = recorded(rng, 400, 120.0, swing=2.0)
    for step in (2, 3, 4, 7):
        fewer = motion.resample(motion.rate / step)
        close(
            np.abs(fewer.wxyz),
            np.abs(motion.wxyz[::step][: fewer.n_frames]),
            atol=1e-15,
        )
        assert (np.sum(fewer.wxyz[1:] * fewer.wxyz[:-1], axis=-1) > 0.0).all()


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_a_rate_that_is_none_is_refused(rng, rate):
    motion = recorded(rng)
    with pytest.raises(marey.OptionError, match=r"rate: found .*, need a positive"):
        motion.resample(rate)
    if not np.isnan(rate):
        with pytest.raises(marey.DataError, match=r"motion.rate: found .*, need a pos"):
            replace(motion, rate=rate)


def test_uneven_and_empty_motions_say_so_when_asked_for_other_times(rng):
    motion = recorded(rng)
    uneven = motion.at(np.array([0.0, 0.5, 0.1]))
    for ask in (lambda m: m.at(0.0), lambda m: m.resample(10.0)):
        with pytest.raises(marey.DataError, match="found unevenly spaced frames"):
            ask(uneven)
        with pytest.raises(marey.DataError, match="found no frames"):
            ask(Course(rng).record([], 30.0))
    with pytest.raises(marey.DataError, match="found unevenly spaced frames"):
        uneven.cut(0, 2)


@given(rng=seeds, data=st.data())
@quick
def test_a_cut_is_these_frames_on_the_same_clock(rng, data):
    motion = recorded(rng, 20, 30.0, start=5.0)
    start = data.draw(st.integers(0, 19))
    stop = data.draw(st.integers(start + 1, 20))
    first, last = motion.times[[start, stop - 1]]
    contacts = tuple(
        marey.Contact(joint="joint0", start=a, end=b, anchor=np.zeros(3))
        for a, b in np.sort(rng.uniform(5.0, 5.7, size=(8, 2)))
    )
    part = replace(motion, contacts=contacts).cut(start, stop)
    close(part.times, motion.times[start:stop], rtol=1e-14)
    np.testing.assert_array_equal(part.T_world_root, motion.T_world_root[start:stop])
    assert angles_between(part.wxyz, motion.wxyz[start:stop]).max() == 0.0
    touching = tuple(c for c in contacts if not (c.end < first or c.start > last))
    assert part.contacts == touching
    with pytest.raises(marey.DataError, match="found a motion of 20 frames"):
        motion.cut(start, 21)


# --- poses ---------------------------------------------------------------------------


@given(rng=seeds, n_joints=st.integers(1, 6))
@quick
def test_joints_and_markers_agree_with_recursion(rng, n_joints):
    motion = recorded(rng, 4, n_joints=n_joints)
    T, markers = motion.T_world_joint(), motion.marker_points()
    skeleton = motion.skeleton
    for frame in range(4):
        wanted = naive.forward(
            skeleton.parent,
            skeleton.offset,
            motion.T_world_root[frame],
            motion.wxyz[frame],
        )
        close(T[frame], wanted, atol=1e-12)
        for marker, joint in enumerate(skeleton.marker_joint):
            place = wanted[joint] @ np.append(skeleton.marker_offset[marker], 1.0)
            close(markers[frame, marker], place[:3], atol=1e-12)


@given(rng=seeds)
@quick
def test_the_root_turns_as_its_pose_whatever_was_given_for_it(rng):
    motion = recorded(rng, 10)
    wxyz = motion.wxyz.copy()
    wxyz[:, 0] = [1.0, 0.0, 0.0, 0.0]
    again = replace(motion, wxyz=wxyz)
    np.testing.assert_array_equal(again.wxyz[:, 1:], motion.wxyz[:, 1:])
    close(again.wxyz[:, 0], motion.wxyz[:, 0], atol=1e-14)
    close(
        geometry.matrix_from_quat(again.wxyz[:, 0]),
        again.T_world_root[:, :3, :3],
        atol=1e-14,
    )


@given(rng=seeds, order=st.sampled_from(ORDERS), n_frames=st.integers(1, 60))
@quick
def test_euler_curves_never_jump_and_give_the_rotations_back(rng, order, n_frames):
    motion = recorded(rng, n_frames, swing=3.0)
    angles = motion.euler(order)
    assert (np.abs(np.diff(angles, axis=0)) <= np.pi).all()
    back = geometry.quat_from_euler(angles, order)
    assert angles_between(back, motion.wxyz).max() < 1e-7


def test_euler_angles_are_in_the_order_of_the_letters():
    quarter = np.pi / 2
    wxyz = geometry.quat_from_euler(
        np.array([[[0.3, 0.2, 0.1], [0, 0, quarter]]]), "ZXY"
    )
    motion = marey.Motion(
        skeleton=figure(2),
        T_world_root=geometry.transform(
            geometry.matrix_from_quat(wxyz[:, 0]), np.zeros((1, 3))
        ),
        wxyz=wxyz,
        rate=1.0,
    )
    wanted = [[0.3, 0.2, 0.1], [0, 0, quarter]]
    close(motion.euler()[0], wanted, atol=1e-15)


# --- missing frames ------------------------------------------------------------------


@given(rng=seeds)
@quick
def test_unknown_frames_stay_unknown_and_do_not_spread(rng):
    motion = recorded(rng, 20, 30.0)
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    wxyz[7, 2] = np.nan
    T[12] = np.nan
    gappy = replace(motion, wxyz=wxyz, T_world_root=T)
    exact = gappy.at(motion.times)
    lost = np.zeros((20, 4), dtype=bool)
    lost[7, 2] = lost[12, 0] = True
    np.testing.assert_array_equal(np.isnan(exact.wxyz).any(axis=-1), lost)
    np.testing.assert_array_equal(np.isnan(exact.wxyz).all(axis=-1), lost)
    np.testing.assert_array_equal(
        np.isnan(exact.T_world_root).all(axis=(1, 2)), lost[:, 0]
    )
    known = angles_between(exact.wxyz, motion.wxyz)[~lost]
    assert known.max() < 1e-9
    # Between two frames there is an answer exactly where both are known.
    between = gappy.at(motion.times[:-1] + 0.4 / 30.0)
    np.testing.assert_array_equal(
        np.isnan(between.wxyz).any(axis=-1), lost[:-1] | lost[1:]
    )
    np.testing.assert_array_equal(
        np.isnan(gappy.T_world_joint()).any(axis=(1, 2, 3)), lost.any(axis=1)
    )
    assert (np.abs(np.diff(gappy.euler()[13:], axis=0)) < np.pi).all()


def test_a_root_known_in_part_and_a_quaternion_known_in_part_are_unknown(rng):
    motion = recorded(rng, 5)
    T, wxyz = motion.T_world_root.copy(), motion.wxyz.copy()
    T[1, 2, 3] = np.nan
    wxyz[3, 2, 0] = np.nan
    made = replace(motion, T_world_root=T, wxyz=wxyz)
    assert np.isnan(made.T_world_root[1]).all()
    assert np.isnan(made.wxyz[1, 0]).all()
    assert np.isnan(made.wxyz[3, 2]).all()
    assert np.isnan(made.wxyz).sum() == 8


# --- checks --------------------------------------------------------------------------


@given(rng=seeds)
@quick
def test_single_precision_is_mended_and_exact_values_are_kept(rng):
    motion = recorded(rng, 10)
    again = replace(motion, wxyz=motion.wxyz)
    np.testing.assert_array_equal(again.wxyz, motion.wxyz)
    rough = replace(motion, wxyz=motion.wxyz.astype(np.float32).astype(float))
    close(np.linalg.norm(rough.wxyz, axis=-1), 1.0, atol=1e-12)


def test_rotations_that_are_none_are_refused(rng):
    motion = recorded(rng, 5)
    with pytest.raises(marey.DataError, match=r"found a quaternion of length 0\.9"):
        replace(motion, wxyz=0.9 * motion.wxyz)
    T = motion.T_world_root.copy()
    T[2, :3, :3] *= 1.1
    with pytest.raises(marey.DataError, match=r"motion.T_world_root: found a matrix"):
        replace(motion, T_world_root=T)
    T[2, :3, :3] = np.diag([1.0, 1.0, -1.0])
    with pytest.raises(marey.DataError, match="need rigid transforms"):
        replace(motion, T_world_root=T)


def test_sizes_that_do_not_fit_are_refused(unchecked, rng):
    motion = recorded(rng, 5)
    with pytest.raises(marey.DataError, match=r"motion.wxyz: found \(4, 4\), need \(5"):
        replace(motion, wxyz=motion.wxyz[1:])
    with pytest.raises(marey.DataError, match=r"motion.wxyz: found \(5, 3\), need \(5"):
        replace(motion, wxyz=motion.wxyz[:, 1:])


def test_a_wrong_shape_is_caught_where_it_enters(rng):
    motion = recorded(rng, 5)
    with pytest.raises(TypeError):
        replace(motion, wxyz=motion.wxyz[..., 1:])
    with pytest.raises(TypeError):
        motion.at(np.zeros((2, 2)))
