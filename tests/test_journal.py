"""Journals of live recordings: killed, damaged, forged, converted."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from damage import damaged

import marey
from marey.io.formats.journal.blocks import MAGIC, SYNC
from marey.live import Frame, Recorder, StreamStatistics
from marey.live.codecs.message import decode_frame, encode_frame

RATE = 100.0


def frame(number, labels=("JOE:a", "JOE:b"), sensors=("s",)):
    rng = np.random.default_rng(abs(number))
    T = np.tile(np.eye(4), (len(sensors), 1, 1))
    T[:, :3, 3] = rng.normal(size=(len(sensors), 3))
    return Frame(
        number=number,
        time=20.0 + number / RATE,
        arrival=5.0 + number / RATE,
        points=rng.normal(size=(len(labels), 3)),
        labels=labels,
        T_world_sensor=T,
        sensor_names=sensors,
    )


def recorded(path, frames, *, close=True, **options):
    recorder = Recorder(path, **options)
    for one in frames:
        recorder.write(one)
    if close:
        recorder.close(StreamStatistics(received=recorder.n_frames))
    return recorder


def codes(take):
    return [finding.code for finding in take.source.findings]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session.marey-live"


def test_a_recording_is_the_frames_exactly(path):
    frames = [frame(i) for i in range(50)]
    recorded(path, frames, source="natnet://127.0.0.1")
    take = marey.read(path)
    assert codes(take) == []
    assert (take.labels, take.subjects) == (("a", "b"), ("JOE", "JOE"))
    assert take.rate == pytest.approx(RATE)
    assert take.source.rate.how == "inferred"
    assert take.start == 20.0
    assert take.source.parameters["head"]["source"] == "natnet://127.0.0.1"
    assert take.source.parameters["end"]["stream"]["received"] == 50
    np.testing.assert_array_equal(take.points, [f.points for f in frames])
    np.testing.assert_array_equal(
        take.T_world_sensor, [f.T_world_sensor for f in frames]
    )


def test_lost_frames_are_gaps_and_late_ones_stand_in_their_place(path):
    recorded(path, [frame(i) for i in (10, 12, 11, 15)])
    take = marey.read(path)
    assert take.seen[:, 0].tolist() == [True, True, True, False, False, True]
    np.testing.assert_array_equal(take.points[1], frame(11).points)
    assert codes(take) == ["frames-missing"]


def test_a_sender_that_begins_anew_continues_the_recording(path):
    recorded(path, [frame(i) for i in (10_000, 10_001, 0, 1, -(2**62))])
    assert marey.read(path).n_frames == 5


def test_a_sender_that_comes_back_soon_overwrites_nothing(path):
    again = [replace(frame(i), arrival=9.0 + i / RATE) for i in range(30)]
    recorded(path, [*(frame(i) for i in range(50)), *again])
    take = marey.read(path)
    assert take.n_frames == 80
    np.testing.assert_array_equal(take.points[50:], [f.points for f in again])


def test_many_lost_frames_do_not_fill_the_memory(path):
    recorded(path, [frame(i * 1000) for i in range(20)])
    take = marey.read(path)
    assert take.n_frames == 20
    assert "no gap is left" in take.source.findings[0].message


def test_markers_that_change_are_columns_of_their_own(path):
    layouts = [("JOE:a",), ("JOE:a", "ANN:b"), ("ANN:b",)]
    recorded(path, [frame(i, layouts[i // 2]) for i in range(6)])
    take = marey.read(path)
    assert take.full_labels == ("JOE:a", "ANN:b")
    assert take.seen.T.tolist() == [[True] * 4 + [False] * 2, [False] * 2 + [True] * 4]


def test_an_open_journal_is_readable_while_it_is_written(path):
    recorder = recorded(path, [frame(i) for i in range(5)], close=False)
    time.sleep(0.3)
    recorder.write(frame(5))
    take = marey.read(path)
    assert take.n_frames == 6
    assert codes(take) == ["journal-open"]
    recorder.close()
    assert codes(marey.read(path)) == []


KILLED = """
import sys, time
sys.path[:0] = {paths!r}
from test_journal import frame
from marey.live import Recorder
recorder, start = Recorder({path!r}), time.monotonic()
for i in range(100_000):
    recorder.write(frame(i))
    print(i, time.monotonic(), flush=True)
    time.sleep(max(0.0, start + i / 100.0 - time.monotonic()))
"""


def test_a_killed_process_loses_less_than_a_second(path):
    folder = os.path.dirname(__file__)
    code = KILLED.format(path=str(path), paths=[folder, f"{folder}/contracts"])
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    written = []
    for line in process.stdout:
        written.append(tuple(map(float, line.split())))
        if len(written) == 150:
            break
    process.send_signal(signal.SIGKILL)
    written += [tuple(map(float, line.split())) for line in process.stdout if line]
    process.stdout.close()
    process.wait()
    take = marey.read(path)
    assert codes(take) in (["journal-open"], ["blocks-damaged", "journal-open"])
    lost = written[take.n_frames :]
    assert not lost or written[-1][1] - lost[0][1] < 1.0
    np.testing.assert_array_equal(take.points[-1], frame(take.n_frames - 1).points)


def test_damage_in_the_middle_loses_only_what_it_hits(path):
    recorded(path, [frame(i) for i in range(50)])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    take = marey.read(path)
    assert take.seen.all(axis=1).sum() == 49
    assert "blocks-damaged" in codes(take)


@pytest.mark.usefixtures("unchecked")
def test_a_file_of_sync_words_is_refused_soon(path):
    forged = MAGIC + (SYNC + b"fram" + (2**19).to_bytes(4, "little")) * 80_000
    path.write_bytes(forged)
    start = time.process_time()
    with pytest.raises(marey.FormatError, match="no whole frame"):
        marey.read(path)
    assert time.process_time() - start < 5.0, "hangs"


def test_a_clean_end_turns_the_journal_into_another_format(tmp_path):
    target = tmp_path / "walk.trc"
    recorder = recorded(target, [frame(i, sensors=()) for i in range(20)], close=False)
    assert not target.exists()
    recorder.close()
    assert [*tmp_path.iterdir()] == [target]
    assert marey.read(target).n_frames == 20


def test_a_recording_replaces_nothing_unless_asked(path):
    recorded(path, [frame(0)])
    with pytest.raises(marey.OptionError, match="exists"):
        Recorder(path)
    recorded(path, [frame(0), frame(1)], overwrite=True)
    assert marey.read(path).n_frames == 2
    with pytest.raises(marey.OutputError, match="does not exist"):
        Recorder(path.parent / "nowhere" / "a.marey-live")


def test_a_full_disk_is_a_typed_error_and_keeps_what_was_written(path, small_files):
    with pytest.raises(marey.OutputError, match="not written"), small_files(10):
        Recorder(path)
    recorder = Recorder(path, overwrite=True)
    with small_files(40_000):
        with pytest.raises(marey.OutputError, match=r"session.marey-live: not written"):
            deque(map(recorder.write, map(frame, range(10_000))), maxlen=0)
        with pytest.raises(marey.OutputError, match="not written"):
            recorder.close()
        recorder.close()
    take = marey.read(path)
    assert codes(take) == ["blocks-damaged", "journal-open"]
    assert take.n_frames > 10
    np.testing.assert_array_equal(take.points[-1], frame(take.n_frames - 1).points)


def test_events_stand_on_the_clock_of_the_sender(path):
    recorder = recorded(path, [frame(i) for i in range(3)], close=False)
    recorder.mark("strike", 20.01, "Left")
    recorder.close()
    assert marey.read(path).events == (marey.Event("strike", "Left", 20.01),)


@pytest.mark.parametrize("is_timed", [True, False])
def test_events_stay_at_their_frames_whatever_the_clock_does(path, is_timed):
    """It jumps by an hour, and begins again with the numbers; or there is none."""
    recorder = recorded(path, [], close=False, rate=RATE)
    numbers = [*range(10), *range(5)]
    for i, number in enumerate(numbers):
        time = number / RATE + 3600.0 * (5 <= i < 10)
        arrival = i / RATE + 1.0 * (i >= 10)
        sent = time if is_timed else np.nan
        recorder.write(replace(frame(number), time=sent, arrival=arrival))
        if i in (3, 7, 12):
            recorder.mark("strike", time if is_timed else 0.0)
    recorder.close()
    take = marey.read(path)
    rows = [(event.time - take.start) * take.rate for event in take.events]
    np.testing.assert_allclose(rows, [3, 7, 12], atol=1e-6)


# --- messages of WebSockets, which hold the same records ------------------------------


def test_a_message_keeps_a_frame_exactly():
    one = frame(7)
    again = decode_frame(encode_frame(one), 9.0)
    assert (again.number, again.time, again.arrival) == (7, one.time, 9.0)
    assert (again.labels, again.sensor_names) == (one.labels, one.sensor_names)
    np.testing.assert_array_equal(again.points, one.points)
    np.testing.assert_array_equal(again.T_world_sensor, one.T_world_sensor)


def test_a_matrix_that_is_no_rotation_is_no_pose():
    """It would spoil every estimate from then on."""
    T = np.stack([np.eye(4), np.zeros((4, 4)), np.ones((4, 4)), 1e3 * np.eye(4)])
    T[0, :3, :3] = np.round(marey.geometry.rotation_exp(np.array([0.3, 0.2, 0.1])), 2)
    one = Frame(number=0, T_world_sensor=T, sensor_names=("a", "b", "c", "d"))
    again = decode_frame(encode_frame(one)).T_world_sensor
    np.testing.assert_array_equal(again[0], T[0])
    assert np.isnan(again[1:]).all()


@pytest.mark.usefixtures("unchecked")
def test_cut_and_forged_messages_give_frames_or_typed_errors(rng):
    data, messages = encode_frame(frame(7)), []
    for i in range(2000):
        bad = damaged(data, rng) if i % 4 else data[: rng.integers(len(data))]
        try:
            decode_frame(bad)
        except marey.StreamError as error:
            messages.append(str(error))
    assert len(messages) > 500
    assert all(map(str.isprintable, messages))
