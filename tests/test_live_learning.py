"""Learning from a stream: frames that are kept, skeletons, take-overs, and advice."""

import importlib
import os
from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey.anatomy.whole_person import observed_part
from marey.live import Frame, SubjectPose
from marey.live.learning import FrameReservoir
from marey.live.learning.estimate import (
    MISSED_M,
    estimate_skeletons_of_stream,
    hidden_marker_errors,
)
from marey.live.learning.learner import ESTIMATE
from marey.live.learning.reservoir import BLOCK_FRAMES, MAX_BLOCKS, MAX_VALUES
from marey.live.learning.take_over import Fade
from marey.live.posing.performers import Performers
from marey.pipeline.reporting.readiness import assess_joints


@pytest.fixture(scope="module")
def walk():
    """A walk, and its true skeleton with markers."""
    return posed.record(motion="walk", seconds=2.0, rate=60.0, noise=5e-4)


def frames_of(take):
    return [
        Frame(number=i, points=points, labels=take.full_labels, arrival=0.0)
        for i, points in enumerate(take.points)
    ]


def filled(frames):
    reservoir = FrameReservoir()
    for frame in frames:
        reservoir.add(frame)
    return reservoir


# --- frames that are kept -------------------------------------------------------------


def test_a_short_stream_is_kept_whole(walk):
    take = walk[1]
    kept = filled(frames_of(take)).take(take.rate)
    np.testing.assert_array_equal(kept.points, take.points)
    assert kept.full_labels == take.full_labels


@pytest.mark.parametrize("n_markers", [8, 100])
def test_memory_is_bounded_and_different_poses_stay(rng, n_markers):
    """A long rest is forgotten; a short motion in the middle of it is not."""
    rest = rng.normal(size=(n_markers, 3))
    labels = tuple(map(str, range(n_markers)))
    length = (MAX_BLOCKS + 40) * BLOCK_FRAMES
    moving = range(length // 2, length // 2 + BLOCK_FRAMES)
    reservoir = FrameReservoir()
    sizes = []
    for i in range(length):
        points = rest + 1e-4 * rng.normal(size=rest.shape)
        if i in moving:
            points[:4] += 0.3 * np.sin(i)
        frame = Frame(number=i, points=points, labels=labels)
        reservoir.add(frame)
        sizes.append(reservoir.n_frames)
    assert max(sizes) <= (MAX_BLOCKS + 1) * BLOCK_FRAMES <= 8192 + 64
    points = reservoir.take(100.0).points
    assert (np.abs(points[:, 0] - rest[0]).max(axis=1) > 0.2).sum() > BLOCK_FRAMES / 4


def test_of_many_sensors_fewer_frames_are_kept():
    """A sender may make up names."""
    T = np.tile(np.eye(4), (1024, 1, 1))
    names = tuple(f"s{i}" for i in range(1024))
    n_frames = MAX_VALUES // (16 * len(names)) + 3 * BLOCK_FRAMES
    frames = (
        Frame(number=i, T_world_sensor=T, sensor_names=names) for i in range(n_frames)
    )
    reservoir = filled(frames)
    assert reservoir.n_frames * T.size <= MAX_VALUES + BLOCK_FRAMES * T.size


def test_lost_frames_and_restarts_leave_unseen_frames():
    points = np.ones((2, 3))
    numbers = [10, 11, 14, 15, 3, 4]
    reservoir = filled(
        Frame(number=n, points=points * n, labels=("a", "b")) for n in numbers
    )
    seen = reservoir.take(20.0).seen[:, 0]
    expected = [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(seen, np.array(expected, dtype=bool))


def test_markers_that_come_later_get_columns():
    reservoir = filled(
        [
            Frame(number=0, points=np.zeros((1, 3)), labels=("a",)),
            Frame(number=1, points=np.ones((2, 3)), labels=("JOE:b", "a")),
        ]
    )
    take = reservoir.take(100.0)
    assert take.full_labels == ("a", "JOE:b")
    np.testing.assert_array_equal(take.points[:, 0, 0], [0.0, 1.0])
    np.testing.assert_array_equal(take.points[:, 1, 0], [np.nan, 1.0])


# --- skeletons ------------------------------------------------------------------------


def test_a_learnt_skeleton_is_that_of_a_solve(walk, monkeypatch):
    """However long the stream was, skeletons are compared on as many frames."""
    take = walk[1]
    n_posed = []

    def solve_pose(skeleton, take):
        n_posed.append(take.n_frames)
        return marey.solve_pose(skeleton, take)

    monkeypatch.setattr("marey.live.learning.estimate.solve_pose", solve_pose)
    kept = filled(frames_of(take)).take(take.rate)
    learnt = estimate_skeletons_of_stream(kept, None)
    plain = marey.Take(rate=take.rate, points=take.points, labels=take.full_labels)
    solved = observed_part(marey.solve(plain).skeleton)
    assert learnt.skeletons[0].names == solved.names
    np.testing.assert_allclose(
        learnt.skeletons[0].lengths, solved.lengths, rtol=0.0, atol=1e-9
    )
    assert learnt.better
    assert set(n_posed) == {4 * 24}
    assert take.n_frames > 4 * 24


@pytest.mark.usefixtures("unchecked")
@pytest.mark.skipif(not hasattr(os, "setpriority"), reason="no priorities")
def test_two_people_who_exercise_on_the_spot_are_two_skeletons():
    """Neither hips move: only that each is a whole person tells them apart."""
    takes = [
        marey.synth.human(height=height, seed=seed).record(
            "exercise", seconds=12.0, rate=30.0, markers="set53", noise=5e-4, seed=seed
        )
        for seed, height in ((3, 1.62), (4, 1.85))
    ]
    points = [one.points + np.array([0.0, 1.5 * i, 0.0]) for i, one in enumerate(takes)]
    n = len(takes[0].labels)
    labels = tuple(f"m{i}" for i in range(2 * n))
    both = marey.Take(rate=30.0, points=np.concatenate(points, axis=1), labels=labels)
    order = np.random.default_rng(1).permutation(2 * n)
    learnt = estimate_skeletons_of_stream(both.select(order), None)
    assert len(learnt.skeletons) == 2
    found = {frozenset(one.marker_labels) for one in learnt.skeletons}
    assert found == {frozenset(labels[:n]), frozenset(labels[n:])}
    for one in learnt.skeletons:
        assert {"Hips", "LeftFoot", "RightHand", "Head"} <= set(one.names)


@pytest.mark.usefixtures("unchecked")
def test_a_worker_lets_the_stream_go_first(walk, monkeypatch):
    nice, estimate = [], "marey.live.learning.estimate.estimate_skeletons_of_stream"
    monkeypatch.setattr("os.setpriority", lambda *given: nice.append(given[-1]))
    monkeypatch.setattr(estimate, lambda take, before: (take, before))
    name, _, function = ESTIMATE.partition(":")
    run = getattr(importlib.import_module(name), function)
    assert run(walk[1], None) == (walk[1], None)
    assert nice[0] > 0


def test_hidden_markers_distinguish_a_wrong_skeleton(walk):
    skeleton, take = walk
    take = take.cut(0, 40)
    right = hidden_marker_errors([skeleton], take)
    assert np.nanmax(right) < 0.01
    offset = skeleton.offset.copy()
    offset[skeleton.index("LeftLowerLeg")] *= 0.8
    wrong = hidden_marker_errors([replace(skeleton, offset=offset)], take)
    assert np.nanmean(wrong) > 2.0 * np.nanmean(right)
    few = replace(
        skeleton,
        marker_labels=skeleton.marker_labels[:30],
        marker_joint=skeleton.marker_joint[:30],
        marker_offset=skeleton.marker_offset[:30],
    )
    assert (hidden_marker_errors([few], take)[30:] == MISSED_M).all()


def test_a_stream_that_knows_nobody_learns_and_equals_the_solve(tmp_path, monkeypatch):
    """The law of a whole stream: at its end the skeleton is that of its recording.

    A stream that is stopped has the end of one whose source ends. A take-over poses a
    few frames first, and holds the stream up for no more.
    """
    take_over, n_posed = Performers.take_over, []

    def counted(self, names, skeletons, frames, rate):
        n_posed.append(len(frames))
        take_over(self, names, skeletons, frames, rate)

    monkeypatch.setattr(Performers, "take_over", counted)
    take = posed.record(motion="walk", seconds=3.0, rate=60.0, noise=5e-4)[1]
    path = tmp_path / "walk.npz"
    marey.write(
        marey.Take(rate=take.rate, points=take.points, labels=take.labels), path
    )
    session = tmp_path / "session.marey-live"
    with marey.stream(f"file:{path}?loop", to=f"record:{session}") as poses:
        for pose in poses:
            assert len(pose.subjects) == len(poses.skeletons)
            if pose.frame.number >= take.n_frames:
                poses.stop()
        learnt = poses.learnt
        recorded = marey.read(session)
    assert learnt is not None
    assert n_posed[-1] == 16
    assert learnt.n_frames == recorded.n_frames > take.n_frames
    assert recorded.source.findings == ()
    solved = observed_part(marey.solve(session).skeleton)
    np.testing.assert_allclose(poses.skeletons[0].lengths, solved.lengths, atol=1e-9)


def test_a_last_estimate_that_is_late_is_reported(walk, tmp_path, monkeypatch):
    path = tmp_path / "walk.npz"
    marey.write(walk[1], path)
    with marey.stream(f"file:{path}") as poses:
        next(poses)
        monkeypatch.setattr("marey.live.learning.learner.TIMEOUT_S", 0.0)
        for _ in poses:
            pass
        assert [f.code for f in poses.findings()][-1] == "not-learnt"
        assert "solve the recording" in poses.findings()[-1].message


def test_a_take_over_begins_where_the_old_skeleton_was_and_ends_at_the_new(walk):
    skeleton = walk[0]
    T = skeleton.rest()
    lengths = np.linspace(0.9, 1.1, skeleton.n_joints)[:, None]
    other = replace(skeleton, offset=skeleton.offset * lengths)
    old = SubjectPose("a", skeleton, T, 1)
    new = SubjectPose("a", other, other.rest(), 1)
    fade = Fade([old], new, frames=10.0)
    shown = [fade.update(new) for _ in range(11)]
    carried = np.isin(np.arange(skeleton.n_joints), skeleton.marker_joint)
    np.testing.assert_allclose(shown[0][carried], T[carried], atol=1e-9)
    np.testing.assert_allclose(shown[-1], other.rest(), atol=1e-9)
    steps = np.linalg.norm(np.diff([s[:, :3, 3] for s in shown], axis=0), axis=-1)
    whole = np.linalg.norm((other.rest() - T)[:, :3, 3], axis=-1)
    assert (steps.max(axis=0)[carried] <= 0.2 * whole[carried] + 1e-9).all()
    assert fade.has_ended


def chain(names, places):
    """Bones one after the other, with four markers on each, that are named alike."""
    places = np.array(places, dtype=float)
    rng = np.random.default_rng(0)
    markers = {bone: rng.normal(size=(4, 3)) for bone in "ABC"}
    return marey.Skeleton(
        names=names,
        parent=np.array([-1, 0, 1]),
        offset=np.diff(places, axis=0, prepend=0.0),
        kind=("root", "ball", "ball"),
        marker_labels=tuple(f"{name[-1]}{i}" for name in names for i in range(4)),
        marker_joint=np.repeat(np.arange(3), 4),
        marker_offset=np.concatenate(
            [
                markers[name[-1]] - place
                for name, place in zip(names, places, strict=True)
            ]
        ),
    )


def test_joints_stay_where_they_are_when_the_root_is_another():
    """Of three bones A, B and C, two joints: between A and B, and between B and C."""
    ends, joints = ((0.0, 0.0, 0.0), (3.0, 1.0, 0.0)), ((1, 0, 0), (2, 1, 0))
    old = chain(("root A", "B", "C"), (ends[0], *joints))
    new = chain(("root C", "new B", "new A"), (ends[1], *joints[::-1]))
    poses = [SubjectPose("a", one, one.rest(), 12) for one in (old, new)]
    fade = Fade(poses[:1], poses[1], frames=10.0)
    for _ in range(11):
        shown = fade.update(poses[1])[:, :3, 3]
        np.testing.assert_allclose(shown, [ends[1], *joints[::-1]], atol=1e-9)


def test_no_joint_jumps_at_a_take_over_in_mid_stream(walk):
    """Joints go on as before, though the bones of the new skeleton are 3 % longer."""
    skeleton, take = walk
    frames = frames_of(take)
    performers = Performers(["a"], [skeleton], virtual=False, options={})
    performers.prepare(take.rate)
    longer = replace(skeleton, offset=1.03 * skeleton.offset)
    places = []
    for i, frame in enumerate(frames):
        if i == 60:
            performers.take_over(["a"], [longer], frames[i - 16 : i], take.rate)
        places.append(performers.update(frame).T_world_joint[:, :3, 3])
    change = np.linalg.norm(np.diff(places, n=2, axis=0), axis=-1).max(axis=1)
    assert change[58] < 2.0 * np.median(change)
    shown = places[-1] - places[-1][0]
    lengths = np.linalg.norm((shown[1:] - shown[skeleton.parent[1:]]), axis=-1)
    np.testing.assert_allclose(lengths, longer.lengths[1:], atol=1e-6)


# --- what still needs to move ---------------------------------------------------------


def skeleton_with(variances, kind="ball"):
    covariance = np.full((2, 3, 3), np.nan)
    covariance[1] = np.diag(variances)
    return marey.Skeleton(
        names=("LeftUpperArm", "LeftLowerArm"),
        parent=np.array([-1, 0]),
        offset=np.array([[0.0, 0.0, 1.0], [0.3, 0.0, 0.0]]),
        kind=("root", kind),
        covariance=covariance,
    )


@pytest.mark.parametrize(
    ("sd", "kind", "state", "fraction"),
    [
        ((0.001, 0.001, 0.001), "ball", "ready", 1.0),
        ((0.001, 0.001, 0.06), "ball", "hinge seen", 0.75),
        ((0.001, 0.06, 0.06), "ball", "unknown", 0.5),
        ((np.nan, np.nan, np.nan), "ball", "unknown", 0.0),
        ((0.001, 0.001, 0.001), "hinge", "hinge seen", 2.0 / 3.0),
    ],
)
def test_the_state_of_a_joint_follows_from_its_covariance(sd, kind, state, fraction):
    elbow, wrist = assess_joints(skeleton_with(np.square(sd), kind))
    assert (elbow.joint, elbow.state) == ("LeftLowerArm", state)
    assert elbow.fraction == pytest.approx(fraction)
    assert (elbow.advice == "") == (state == "ready")
    if state == "hinge seen":
        assert elbow.advice == "left elbow: turn the left lower arm about itself too"
    assert (wrist.joint, wrist.state) == ("LeftHand", "unknown")
    assert "wave" in wrist.advice


def test_the_fraction_grows_as_variances_fall():
    fractions = [
        assess_joints(skeleton_with([v, 2 * v, 3 * v]))[0].fraction
        for v in np.geomspace(1.0, 1e-8, 20)
    ]
    assert (np.diff(fractions) >= 0.0).all()
    assert fractions[-1] == 1.0


def test_joints_of_other_name_schemes_get_the_exercises_of_people():
    names = ("Pelvis", "RightUpperLeg", "RightLowerLeg", "RightFoot", "RightToe")
    skeleton = marey.Skeleton(
        names=(*names, "LeftUpperLeg", "LeftLowerLeg", "LeftFoot"),
        parent=np.array([-1, 0, 1, 2, 3, 0, 5, 6]),
        offset=np.array([[0.0, 0.0, 1.0], *([[0.0, 0.0, -0.4]] * 7)]),
        kind=("root", "ball", "ball", "ball", "ball", "ball", "ball", "ball"),
        covariance=np.full((8, 3, 3), np.nan),
    )
    advice = {joint.joint: joint.advice for joint in assess_joints(skeleton)}
    assert advice["RightUpperLeg"].startswith("right hip: swing the leg")
    assert advice["RightToe"] == "right ball of the foot: rise on the toes"


def test_a_report_has_the_same_verdict(walk):
    solution = marey.solve(walk[1])
    table = solution.report.tables.get("to move")
    rows = table.rows if table else ()
    needed = [j for j in assess_joints(solution.skeleton) if j.state != "ready"]
    assert [row[0] for row in rows] == [joint.joint for joint in needed]
