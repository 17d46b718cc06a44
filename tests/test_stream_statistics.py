"""Frames, and what a stream does: loss, order, jitter, rate and clock."""

import sys

import numpy as np
import pytest

import marey
from marey.live import Frame, StreamClock
from marey.live.statistics import WINDOW_FRAMES

RATE = 100.0


def frame(number, time=None, arrival=None, **fields):
    time = number / RATE if time is None else time
    return Frame(
        number=number,
        time=time,
        arrival=time if arrival is None else arrival,
        **fields,
    )


def measured(frames):
    clock = StreamClock()
    for one in frames:
        clock.update(one)
    return clock.statistics


def test_what_is_no_measurement_is_missing_in_all_components():
    points = np.array([[1.0, 2.0, 3.0], [1.0, np.inf, 0.0], [0.0, 0.0, 1e30]])
    one = frame(0, points=points, labels=("a", "b", "c"))
    assert np.array_equal(np.isnan(one.points).all(axis=1), [False, True, True])
    assert not np.isnan(points).any()
    assert one.n_seen == 1


def test_every_marker_and_sensor_has_a_name():
    with pytest.raises(marey.DataError, match="one name each"):
        frame(0, points=np.zeros((2, 3)), labels=("a",))


def test_a_steady_stream_has_no_findings():
    found = measured(frame(i) for i in range(500))
    assert found.findings() == ()
    assert found.received == 500
    assert found.rate == pytest.approx(RATE)
    assert found.jitter < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_sent_frames_came_or_are_lost_whatever_the_order(seed):
    """Received and lost make up all numbers from the first to the newest."""
    rng = np.random.default_rng(seed)
    sent = np.arange(1000)
    kept = sent[(rng.random(1000) > 0.1) | (sent == 0)]
    order = np.argsort(kept + rng.uniform(0.0, 4.0, len(kept)) * (kept > 0))
    numbers = kept[order].tolist()
    repeated = rng.choice(numbers, 20).tolist()
    found = measured(frame(i) for i in [*numbers, *sorted(repeated)])
    assert found.received == len(kept)
    assert found.received + found.lost == max(numbers) + 1
    late = sum(n < max(numbers[:i]) for i, n in enumerate(numbers) if i)
    assert found.reordered == late
    assert found.repeated == 20


def test_numbers_that_begin_anew_are_a_restart_and_no_loss():
    numbers = [*range(5000, 5100), *range(100)]
    found = measured(frame(n, time=i / RATE) for i, n in enumerate(numbers))
    assert (found.restarts, found.lost, found.received) == (1, 0, 200)


def test_a_sender_that_dies_soon_and_comes_back_loses_nothing():
    again = [frame(i, time=i / RATE, arrival=5.0 + i / RATE) for i in range(200)]
    found = measured([*(frame(i) for i in range(300)), *again])
    assert (found.received, found.restarts, found.repeated) == (500, 1, 0)


def test_jitter_is_that_of_the_transit_times():
    """The mean of |D| of two uniform delays of 10 ms is a third of that."""
    rng = np.random.default_rng(0)
    late = 0.01 * rng.random(20_000)
    found = measured(frame(i, arrival=i / RATE + late[i]) for i in range(20_000))
    assert found.jitter == pytest.approx(0.01 / 3.0, rel=0.5)
    assert found.clock_jumps == 0


def test_a_change_of_rate_is_counted_once():
    times = np.concatenate([np.arange(200) / 100.0, 2.0 + np.arange(200) / 50.0])
    found = measured(frame(i, time=float(t)) for i, t in enumerate(times))
    assert found.rate_changes == 1
    assert found.rate == pytest.approx(50.0)


@pytest.mark.parametrize(("rate", "n_changes"), [(105.0, 0), (118.0, 1)])
def test_a_rate_that_differs_by_a_tenth_is_another_one(rate, n_changes):
    times = np.concatenate([np.arange(200) / RATE, 2.0 + np.arange(200) / rate])
    found = measured(frame(i, time=float(t)) for i, t in enumerate(times))
    assert found.rate_changes == n_changes


def test_a_new_rate_is_known_after_as_many_frames_as_measure_it():
    times = np.concatenate([np.arange(200) / RATE, 2.0 + np.arange(40) / 50.0])
    found = measured(frame(i, time=float(t)) for i, t in enumerate(times))
    assert found.rate == pytest.approx(50.0)


@pytest.mark.parametrize("rate", [60.0, 120.0, 240.0])
def test_a_clock_of_milliseconds_shows_the_true_rate(rate):
    """MXTP02 sends whole milliseconds: periods of 4 and 5 ms at 240 Hz."""
    found = measured(frame(i, time=round(1e3 * i / rate) / 1e3) for i in range(300))
    assert found.rate == pytest.approx(rate, rel=0.01)
    assert found.rate_changes == 0


@pytest.mark.parametrize("jump", [-3.0, 3.0, 1e9])
def test_a_clock_jump_is_counted_and_changes_no_rate(jump):
    frames = (
        frame(i, time=i / RATE + jump * (i >= 100), arrival=i / RATE)
        for i in range(300)
    )
    found = measured(frames)
    assert found.clock_jumps == 1
    assert found.rate == pytest.approx(RATE)


def test_a_pause_is_a_gap_and_no_clock_jump():
    found = measured(frame(i, time=i / RATE + 3.0 * (i >= 100)) for i in range(200))
    assert found.clock_jumps == 0
    assert found.longest_gap == pytest.approx(3.01)


def codes(statistics):
    return {finding.code for finding in statistics.findings()}


@pytest.mark.parametrize("first", [1, 100])
def test_a_stalled_receiver_is_no_clock_jump(first):
    """The sender's clock went on; what it sent meanwhile comes at once afterwards."""
    free = first / RATE + 3.0
    frames = (
        frame(i, arrival=max(i / RATE, free) if i >= first else None)
        for i in range(1000)
    )
    found = measured(frames)
    assert codes(found) == {"stream-stalled"}
    assert found.stalls == 1
    assert found.rate == pytest.approx(RATE)
    assert found.longest_gap == pytest.approx(3.0, abs=0.02)


def test_frames_lost_in_a_stall_are_no_clock_jump():
    """A buffer keeps the first of what is sent in a stall, and loses the rest."""
    kept = [*range(150), *range(400, 600)]
    arrival = [max(i / RATE, 4.0) if i >= 100 else i / RATE for i in kept]
    found = measured(frame(i, arrival=a) for i, a in zip(kept, arrival, strict=True))
    assert codes(found) == {"stream-stalled", "frames-lost"}
    assert (found.stalls, found.lost) == (1, 250)


def test_a_clock_that_jumps_while_the_sender_pauses_is_a_jump():
    def sent(i):
        return i / RATE + 7.0 * (i >= 100)

    found = measured(
        frame(i, time=sent(i), arrival=sent(i) + 3.0 * (i >= 100)) for i in range(200)
    )
    assert codes(found) == {"clock-jumped"}


def test_a_sender_without_a_clock_is_measured_by_arrivals():
    frames = [Frame(number=i, arrival=i / RATE) for i in range(100)]
    assert measured(frames).rate == pytest.approx(RATE)


def test_changed_markers_are_counted():
    frames = [frame(i, points=np.zeros((1, 3)), labels=("a",)) for i in range(3)]
    assert measured([*frames, frame(3), frame(4)]).layout_changes == 1


def test_memory_does_not_grow():
    clock = StreamClock()
    sizes = []
    for i in range(4 * WINDOW_FRAMES):
        clock.update(frame(i, time=i / RATE))
        sizes.append(sum(sys.getsizeof(v) for v in vars(clock).values()))
    assert max(sizes[2 * WINDOW_FRAMES :]) <= max(sizes[: 2 * WINDOW_FRAMES])
