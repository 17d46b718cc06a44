from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.report import Finding
from marey.take import Fact

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=25)
close = partial(np.testing.assert_allclose, rtol=0.0)


def take(rng, n_frames=12, n_markers=3, n_sensors=2, *, rate=100.0, start=0.25):
    points = rng.normal(size=(n_frames, n_markers, 3))
    points[rng.random((n_frames, n_markers)) < 0.2] = np.nan
    T = marey.geometry.transform(
        marey.geometry.rotation_exp(rng.normal(size=(n_frames, n_sensors, 3))),
        rng.normal(size=(n_frames, n_sensors, 3)),
    )
    T[rng.random((n_frames, n_sensors)) < 0.2] = np.nan
    times = start + rng.uniform(-0.02, 1.0, size=7)
    return marey.Take(
        rate=rate,
        points=points,
        labels=tuple(f"m{i}" for i in range(n_markers)),
        subjects=("JOE",) * n_markers,
        filled=rng.random((n_frames, n_markers)) < 0.1,
        T_world_sensor=T,
        sensor_names=tuple(f"s{i}" for i in range(n_sensors)),
        start=start,
        events=tuple(marey.Event("step", "Left", t) for t in times),
        analog=marey.Analog(
            values=rng.normal(size=(4 * n_frames, 2)),
            labels=("Fx", "Fy"),
            units=("N", "N"),
            rate=4.0 * rate,
        ),
    )


# --- missing -------------------------------------------------------------------------


@given(rng=seeds, bad=st.sampled_from([np.nan, np.inf, -np.inf]))
@quick
def test_what_is_missing_in_part_is_missing_as_a_whole(rng, bad):
    whole = take(rng)
    points, T = whole.points.copy(), whole.T_world_sensor.copy()
    points[3, 1, 2] = T[5, 0, 1, 3] = bad
    before = points.copy()
    made = replace(whole, points=points, T_world_sensor=T)
    np.testing.assert_array_equal(points, before)
    for values, seen, hit in (
        (made.points, made.seen, (3, 1)),
        (made.T_world_sensor, made.sensor_seen, (5, 0)),
    ):
        flat = values.reshape(*seen.shape, -1)
        assert np.isnan(flat[hit]).all()
        np.testing.assert_array_equal(np.isfinite(flat).any(axis=-1), seen)
        np.testing.assert_array_equal(np.isfinite(flat).all(axis=-1), seen)
    known = np.isfinite(before).all(axis=-1)
    np.testing.assert_array_equal(made.points[known], before[known])


# --- shapes --------------------------------------------------------------------------


@given(n_frames=st.integers(0, 5), n_items=st.integers(1, 3))
@quick
def test_groups_left_out_take_the_frame_count_of_the_others(n_frames, n_items):
    names = tuple(map(str, range(n_items)))
    optical = marey.Take(rate=1.0, points=np.ones((n_frames, n_items, 3)), labels=names)
    assert optical.T_world_sensor.shape == (n_frames, 0, 4, 4)
    assert optical.filled.shape == (n_frames, n_items)
    assert not optical.filled.any()
    assert optical.subjects == ("",) * n_items
    T = np.tile(np.eye(4), (n_frames, n_items, 1, 1))
    magnetic = marey.Take(rate=1.0, T_world_sensor=T, sensor_names=names)
    assert magnetic.points.shape == (n_frames, 0, 3)
    assert magnetic.filled.shape == magnetic.seen.shape == (n_frames, 0)
    assert optical.n_frames == magnetic.n_frames == n_frames
    assert len(optical.times) == n_frames


def test_a_take_may_hold_nothing():
    empty = marey.Take(rate=100.0)
    assert (empty.n_frames, empty.duration, len(empty.times)) == (0, 0.0, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ("a",)}, "take.points: found 4 frames x 2, need 4 frames x 1"),
        ({"labels": ()}, "take.points: found 4 frames x 2, need 4 frames x 0"),
        ({"points": np.zeros((0, 0, 3))}, "take.points: found 0 frames x 0"),
        ({"filled": np.zeros((4, 1), bool)}, "take.filled: found 4 frames x 1"),
        (
            {"T_world_sensor": np.zeros((3, 1, 4, 4)), "sensor_names": ("s",)},
            "take.T_world_sensor: found 3 frames x 1, need 4 frames x 1",
        ),
        ({"sensor_names": ("s",)}, "take.T_world_sensor: found 4 frames x 0"),
        ({"subjects": ("JOE",)}, "take.subjects: found 1, need 2"),
        ({"rate": 0.0}, "take.rate: found 0.0, need a positive number of hertz"),
        ({"rate": -5.0}, "take.rate: found -5.0, need a positive number"),
        ({"rate": np.nan}, "take.rate: found nan, need a positive number"),
        ({"rate": np.inf}, "take.rate: found inf, need a positive number"),
        ({"start": np.nan}, "take.start: found nan, need seconds"),
    ],
)
def test_what_does_not_fit_together_is_refused(unchecked, changes, message):
    fields = {"rate": 50.0, "points": np.zeros((4, 2, 3)), "labels": ("a", "b")}
    with pytest.raises(marey.DataError) as error:
        marey.Take(**{**fields, **changes})
    assert str(error.value).startswith(message)


def test_a_wrong_shape_is_caught_where_it_enters():
    with pytest.raises(TypeError):
        marey.Take(rate=50.0, points=np.zeros((4, 2, 2)), labels=("a", "b"))


def test_analog_channels_need_labels_units_and_a_rate():
    values = np.zeros((8, 2))
    plain = marey.Analog(values=values, labels=("Fx", "Fy"), rate=1000.0)
    assert plain.units == ("", "")
    with pytest.raises(marey.DataError, match=r"analog.labels: found 1, need 2"):
        marey.Analog(values=values, labels=("Fx",), rate=1000.0)
    with pytest.raises(marey.DataError, match=r"analog.units: found 3, need 2"):
        marey.Analog(values=values, labels=("a", "b"), units=("N",) * 3, rate=1.0)
    with pytest.raises(marey.DataError, match=r"analog.rate: found 0.0, need a pos"):
        marey.Analog(values=values, labels=("Fx", "Fy"))


# --- cutting and selecting -----------------------------------------------------------


@given(rng=seeds, data=st.data())
@quick
def test_two_cuts_are_the_whole(rng, data):
    whole = take(rng)
    middle = data.draw(st.integers(1, whole.n_frames - 1))
    parts = whole.cut(0, middle), whole.cut(middle, whole.n_frames)
    for name in ("points", "filled", "T_world_sensor"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    analog = np.concatenate([part.analog.values for part in parts])
    np.testing.assert_array_equal(analog, whole.analog.values)
    times = np.concatenate([part.times for part in parts])
    close(times, whole.times, rtol=1e-15)
    events = parts[0].events + parts[1].events
    assert sorted(e.time for e in events) == sorted(e.time for e in whole.events)
    border = parts[1].start
    assert all(event.time < border for event in parts[0].events)
    assert all(event.time >= border for event in parts[1].events)
    assert parts[1].history == (f"cut to frames {middle}:{whole.n_frames}",)


def test_an_event_on_a_frame_goes_with_that_frame():
    points = np.zeros((300, 1, 3))
    for frame in range(300):
        events = (marey.Event("step", "", round(0.1 + frame / 60.0, 5)),)
        whole = marey.Take(
            rate=60.0, points=points, labels=("a",), start=0.1, events=events
        )
        assert whole.cut(frame, frame + 1).events == events


@pytest.mark.parametrize(
    ("start", "stop"), [(-1, 3), (2, 2), (3, 2), (0, 13), (12, 13)]
)
def test_frames_outside_the_take_are_refused(rng, start, stop):
    with pytest.raises(
        marey.DataError, match=f"frames {start}:{stop}: found a take of 12 frames"
    ):
        take(rng).cut(start, stop)


@given(rng=seeds, data=st.data())
@quick
def test_select_keeps_these_markers_in_this_order(rng, data):
    whole = take(rng, n_markers=5)
    index = data.draw(st.permutations(range(5)).map(lambda p: p[: rng.integers(0, 6)]))
    for given_index in (index, np.array(index, dtype=np.int64)):
        kept = whole.select(given_index)
        assert kept.labels == tuple(f"m{i}" for i in index)
        np.testing.assert_array_equal(kept.points, whole.points[:, list(index)])
        np.testing.assert_array_equal(kept.filled, whole.filled[:, list(index)])
        np.testing.assert_array_equal(kept.T_world_sensor, whole.T_world_sensor)
        assert kept.n_frames == whole.n_frames
        assert kept.history == (f"kept {len(index)} of 5 markers",)


@pytest.mark.parametrize("index", [-1, 3])
def test_a_marker_that_is_none_is_refused(rng, index):
    with pytest.raises(marey.DataError, match=f"marker {index}: found a take of 3"):
        take(rng).select([0, index])


# --- words ---------------------------------------------------------------------------


def test_full_labels_carry_the_subject_as_files_write_it():
    two = marey.Take(
        rate=1.0,
        points=np.zeros((1, 2, 3)),
        labels=("RTHI", "box"),
        subjects=("JOE", ""),
    )
    assert two.full_labels == ("JOE:RTHI", "box")


def test_positions_are_those_of_markers_then_of_sensors(rng):
    T = np.tile(np.eye(4), (3, 2, 1, 1))
    T[..., :3, 3] = rng.normal(size=(3, 2, 3))
    points = rng.normal(size=(3, 1, 3))
    take = marey.Take(
        rate=1.0,
        points=points,
        labels=("A",),
        T_world_sensor=T,
        sensor_names=("S", "T"),
    )
    np.testing.assert_array_equal(take.positions[:, :1], points)
    np.testing.assert_array_equal(take.positions[:, 1:], T[..., :3, 3])


def test_findings_are_added_after_those_there_are():
    first, second = (
        Finding(code, "read", "info", code) for code in ("rate-assumed", "up-assumed")
    )
    take = marey.Take(rate=1.0).with_findings(first).with_findings(second)
    assert take.source.findings == (first, second)
    assert take.with_findings().source.findings == (first, second)


def test_a_fact_says_how_it_is_known():
    assert str(Fact("mm", "stated", "POINT:UNITS")) == "mm (stated: POINT:UNITS)"
    assert str(Fact("y", "given")) == "y (given)"
