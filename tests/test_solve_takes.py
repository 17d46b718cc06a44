"""Several takes: their order and their sensors do not matter, all are used."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import marey
from marey import synth
from marey.cleaning import drop_unused_sensors
from marey.editing import EditSession
from marey.numerics import geometry
from marey.pipeline.stages.takes import read_takes
from marey.take import Take

OPTIONS = {"markers": "none", "sensors": True, "rate": 50.0, "seconds": 4.0}
UNCLEANED = marey.SolveOptions(clean=False)
SCENE: dict[str, Any] = {
    "markers": "none",
    "sensors": True,
    "rate": 40.0,
    "seconds": 5.0,
    "seed": 0,
}


def select_sensors(recording, columns=None, names=None):
    """Some sensors of a recording, in this order and with these names."""
    every = names or recording.sensor_names
    some = range(len(every)) if columns is None else columns
    return Take(
        rate=recording.rate,
        T_world_sensor=recording.T_world_sensor[:, list(some)],
        sensor_names=tuple(every[k] for k in some),
    )


def codes(solution, *wanted):
    return [f.code for f in solution.report.findings if f.code in wanted]


# --- sensors --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recordings():
    figure = synth.human(seed=1)
    return [figure.record(motion, **OPTIONS) for motion in ("exercise", "walk")]


def numbered(count):
    return tuple(f"body{k + 1}" for k in range(count))


@pytest.fixture(scope="module", params=["named", "nameless"])
def case(recordings, request):
    """Names of sensors, and the skeleton of two takes of them all."""
    names = recordings[0].sensor_names
    names = names if request.param == "named" else numbered(len(names))
    return names, marey.solve([select_sensors(one, names=names) for one in recordings])


def without(*lost):
    return [k for k in range(15) if k not in lost]


BACKWARDS = list(range(15))[::-1]
SENSORS = {
    "the second in another order": (None, BACKWARDS),
    "the hips missing from the first": (without(0), None),
    "another missing from each": (without(0), without(14)),
}


@pytest.mark.parametrize("columns", SENSORS.values(), ids=SENSORS)
def test_order_and_number_of_sensors_do_not_matter(recordings, case, columns):
    names, whole = case
    takes = [
        select_sensors(one, some, names)
        for one, some in zip(recordings, columns, strict=True)
    ]
    solution = marey.solve(takes)
    found, wanted = solution.skeleton, whole.skeleton
    length = dict(zip(found.sensor_names, found.lengths, strict=False))
    for name, true in zip(wanted.sensor_names, wanted.lengths, strict=False):
        assert length[name] == pytest.approx(true, abs=1e-9)
    joint = dict(zip(found.sensor_names, found.names, strict=False))
    assert joint == dict(zip(wanted.sensor_names, wanted.names, strict=False))
    for motion, take in zip(solution.subjects[0].motions, solution.takes, strict=True):
        T = motion.T_world_joint()[:, found.sensor_joint] @ found.T_joint_sensor
        names = found.sensor_names
        rows = [k for k, name in enumerate(names) if name in take.sensor_names]
        columns = [take.sensor_names.index(names[k]) for k in rows]
        seen = take.sensor_seen[:, columns]
        error = np.abs(T[:, rows] - take.T_world_sensor[:, columns])[seen]
        assert error.max() < 1e-9


def test_the_slip_of_an_anonymous_sensor_is_undone(recordings):
    take = select_sensors(recordings[0], names=numbered(15))
    T = take.T_world_sensor.copy()
    half = len(T) // 2
    T[half:, 7] = T[half:, 7] @ geometry.transform(np.eye(3), np.array([0.03, 0, 0.02]))
    solution = marey.solve(replace(take, T_world_sensor=T))
    (slip,) = (f for f in solution.report.findings if f.code == "sensor-slipped")
    assert slip.subject == "body8"
    assert "LeftLowerLeg" in solution.bodies[0].names
    restored = solution.take.T_world_sensor[half:, 7]
    np.testing.assert_allclose(restored, take.T_world_sensor[half:, 7], atol=1e-6)


def test_a_rigid_pair_is_found_by_name_in_every_take(recordings):
    one = select_sensors(recordings[0])
    time = np.arange(one.n_frames)[:, None] / one.rate
    R = geometry.rotation_exp(np.sin(time * [1.0, 2.0, 3.0]))
    stick = np.stack([geometry.transform(R, x * R[..., 0]) for x in (1.0, 1.5)], axis=1)
    T = np.concatenate([one.T_world_sensor, stick], axis=1)
    names = (*one.sensor_names, "near", "far")
    takes = [
        marey.rescale(
            Take(
                rate=one.rate,
                T_world_sensor=T[:, order],
                sensor_names=tuple(names[k] for k in order),
            ),
            0.9,
        )
        for order in (range(17), [16, *range(15), 15])
    ]
    options = marey.SolveOptions(rigid_pair=("near", "far", 0.5))
    for take in marey.solve(takes, options=options).takes:
        near, far = (take.sensor_names.index(name) for name in ("near", "far"))
        position = take.T_world_sensor[..., :3, 3]
        distance = np.linalg.norm(position[:, near] - position[:, far], axis=-1)
        np.testing.assert_allclose(distance, 0.5, atol=1e-9)
    lacking = select_sensors(recordings[0])
    with pytest.raises(marey.OptionError, match="near"):
        marey.solve([takes[0], lacking], options=options)


# --- doubts ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_body_is_reported_only_if_no_take_shows_it(recordings, order):
    doubts = "body-still", "body-unseen"
    names = recordings[0].sensor_names
    still, other = (select_sensors(one) for one in recordings)
    T = still.T_world_sensor.copy()
    hand, foot = names.index("LeftHand"), names.index("RightFoot")
    T[:, hand] = T[:1, hand]
    still = replace(still, T_world_sensor=T)
    assert codes(marey.solve(still, options=UNCLEANED), *doubts) == ["body-still"]
    T[:, foot] = np.nan
    takes = [replace(still, T_world_sensor=T), other]
    both = marey.solve([takes[k] for k in order], options=UNCLEANED)
    assert codes(both, *doubts) == []


def test_a_body_that_rests_in_every_take_is_reported(recordings):
    takes = []
    for k, one in enumerate(recordings):
        T = one.T_world_sensor.copy()
        T[:, 14] = geometry.transform(np.eye(3), np.array([2.0, float(k), 0.5]))
        takes.append(replace(select_sensors(one), T_world_sensor=T))
    solution = marey.solve(takes, options=UNCLEANED)
    found = [f.subject for f in solution.report.findings if f.code == "body-still"]
    assert found == [recordings[0].sensor_names[14]]


# --- links ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scenes():
    return {
        name: select_sensors(synth.scene(name, **SCENE))
        for name in ("together", "clasp")
    }


def links(solution):
    """Temporary joints: bodies and seconds, by the number of the take."""
    names, pair = solution.bodies[0].names, solution.joints.pair
    return {
        loop.take: (*(names[k] for k in pair[loop.pair]), loop.first, loop.last)
        for loop in solution.tree.loops
    }


def test_a_temporary_joint_is_found_in_any_take(scenes, tmp_path):
    apart, held = scenes["together"], scenes["clasp"]
    one, two = marey.solve([held, apart]), marey.solve([apart, held])
    assert list(links(one)) == [0]
    assert links(two) == {1: links(one)[0]}
    assert links(one)[0] == ("A:RightHand", "B:RightHand", 1.2, 3.8)
    for solution, number in ((one, 1), (two, 2)):
        (finding,) = (f for f in solution.report.findings if f.code == "loop")
        assert finding.message.startswith(
            f"linked from 1.20 to 3.80 s of take {number} "
        )
    marey.write(two, tmp_path / "two.marey")
    assert marey.load(tmp_path / "two.marey").tree.loops == two.tree.loops


# --- two people -----------------------------------------------------------------------


def test_two_people_hand_in_hand_are_two_subjects(scenes):
    """They hold hands for most of the take; their names keep them apart."""
    solution = marey.solve(scenes["clasp"])
    assert [subject.name for subject in solution.subjects] == ["A", "B"]
    for subject in solution.subjects:
        owners = {name.partition(":")[0] for name in subject.skeleton.sensor_names}
        assert owners == {subject.name}
    assert links(solution)[0][:2] == ("A:RightHand", "B:RightHand")


def test_people_joined_by_hand_can_be_edited_further():
    session = EditSession(
        select_sensors(
            synth.scene("together", **SCENE | {"rate": 20.0, "seconds": 4.0})
        )
    )
    for edit in (
        {"do": "join", "bodies": ["A:RightHand", "B:RightHand"]},
        {"do": "reroot", "body": "B:Hips"},
        {"do": "rename", "name": "B:LeftHand", "to": "B:Paw"},
    ):
        solution = session.keep(session.attempt(edit))
    (subject,) = solution.subjects
    assert subject.skeleton.names[0] == "B:Hips"
    assert {"A:LeftHand", "B:Paw", "B:Paw_end"} <= set(subject.skeleton.names)


# --- sensors without information ------------------------------------------------------


def test_a_dead_sensor_is_left_out_and_reported(recordings):
    """The solution is that of a recording without it."""
    dead = select_sensors(recordings[0])
    dead.T_world_sensor[:, 14] = np.nan
    found = marey.solve(dead)
    assert codes(found, "sensor-unseen") == ["sensor-unseen"]
    less = marey.solve(select_sensors(recordings[0], without(14)))
    assert (found.skeleton.offset == less.skeleton.offset).all()


def test_a_stream_under_two_names_is_one_sensor(recordings):
    twice = select_sensors(recordings[0])
    twice.T_world_sensor[:, 14] = twice.T_world_sensor[:, 11]
    found = marey.solve(twice)
    (finding,) = (f for f in found.report.findings if f.code == "sensor-repeated")
    assert finding.subject == twice.sensor_names[14]
    assert twice.sensor_names[11] in finding.message


def test_a_sensor_seen_in_one_take_is_kept(recordings):
    first, second = (select_sensors(one) for one in recordings)
    first.T_world_sensor[:, 14] = np.nan
    kept = drop_unused_sensors([first, second])
    assert kept == (first, second)
    nothing = replace(first, T_world_sensor=np.full_like(first.T_world_sensor, np.nan))
    assert drop_unused_sensors([nothing]) == (nothing,)


def test_the_world_among_segments_is_left_out(recordings):
    """Theia3D writes it; a base of another name may stand at the origin."""
    still = select_sensors(recordings[0])
    still.T_world_sensor[:, 14] = np.eye(4)
    names = list(still.sensor_names)
    assert drop_unused_sensors([still]) == (still,)
    names[14] = "worldbody"
    (kept,) = drop_unused_sensors([replace(still, sensor_names=tuple(names))])
    assert kept.sensor_names == (*names[:14], *names[15:])
    assert [f.code for f in kept.source.findings] == ["sensor-world"]


def test_prefixes_that_differ_between_takes_are_no_other_markers():
    figure = synth.human(seed=2)
    takes = [
        figure.record("walk", seconds=1.0, rate=50.0, markers="sparse41", seed=k)
        for k in (0, 1)
    ]
    one, two = (
        Take(
            rate=take.rate,
            points=take.points,
            labels=take.labels,
            subjects=(name,) * len(take.labels),
        )
        for take, name in zip(takes, ("Joe", "Joe2"), strict=True)
    )
    found = read_takes([one, two], "")
    assert found[0].full_labels == found[1].full_labels == one.full_labels
    assert [f.code for f in found[1].source.findings] == ["subject-renamed"]
    both = Take(
        rate=50.0,
        points=np.concatenate([one.points, two.points], axis=1),
        labels=one.labels + two.labels,
        subjects=one.subjects + two.subjects,
    )
    assert read_takes([both, one], "")[0].subjects == both.subjects
