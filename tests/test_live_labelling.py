"""Names of points without labels: laws of prediction and assignment."""

import time
from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey.live import Frame, LivePose, SubjectPose
from marey.live.labelling import (
    COASTING_FRAMES,
    MAX_POINTS,
    PointLabeller,
    assign_points,
)
from marey.live.posing.performers import Performers
from marey.live.recognition import find_markers, recognise_skeleton
from marey.numerics import geometry


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", seconds=2.0, rate=100.0, noise=2e-4)


def bare(number, points, labels=()):
    names = (*labels, *(f"unlabelled{i}" for i in range(len(points) - len(labels))))
    return Frame(number=number, points=points, labels=names)


def name_of(frame, point):
    """The name that a point got."""
    apart = np.linalg.norm(frame.points - point, axis=-1)
    return frame.labels[int(np.nanargmin(apart))]


def test_labelled_frames_are_not_touched(walk):
    take = walk[1]
    frame = Frame(number=0, points=take.points[0], labels=take.full_labels)
    assert PointLabeller().label(frame) is frame


def test_points_keep_their_names_whatever_their_order(walk, rng):
    points = walk[1].points
    labeller = PointLabeller()
    names = []
    for i, some in enumerate(points):
        frame = labeller.label(bare(i, rng.permutation(some)))
        names.append([name_of(frame, point) for point in some])
    assert len(set(names[0])) == len(points[0])
    assert all(row == names[0] for row in names)


@pytest.mark.parametrize("start", [30, 70, 80, 90])
def test_points_keep_their_names_when_a_cloud_begins_in_mid_stride(walk, rng, start):
    """A foot that swings has moved beyond the gate before its velocity is known."""
    labeller, last = PointLabeller(), walk[1].points[start + 4]
    for i, some in enumerate(walk[1].points[start : start + 5]):
        frame = labeller.label(bare(i, rng.permutation(some)))
        if i == 0:
            names = [name_of(frame, point) for point in some]
    assert [name_of(frame, point) for point in last] == names


def test_a_foot_of_two_markers_follows_the_shank():
    """Each marker that was found leads to the next one, which is faster."""
    shank = [(0.0, 0.0, 0.5), (0.1, 0.0, 0.4), (0.0, 0.1, 0.3), (0.1, 0.1, 0.2)]
    first = np.array([*shank, (0.0, 0.0, 0.05), (0.2, 0.0, 0.0)])
    step = np.outer([0.028, 0.028, 0.028, 0.028, 0.046, 0.064], [0.0, 1.0, 0.0])
    labeller = PointLabeller()
    names = labeller.label(bare(0, first)).labels
    for i in range(1, 4):
        frame = labeller.label(bare(i, first + i * step))
        found = [name_of(frame, point) for point in first + i * step]
        assert found == [*names]


def test_points_keep_their_names_when_frames_are_lost(walk, rng):
    """Their numbers say how far the points have moved meanwhile."""
    labeller, names = PointLabeller(), []
    for i, some in enumerate(walk[1].points):
        if i % 7 > 3:
            continue
        frame = labeller.label(bare(i, rng.permutation(some)))
        names.append([name_of(frame, point) for point in some])
    assert all(row == names[0] for row in names)


def test_points_that_stand_still_keep_their_names_in_a_pause(rng):
    """After a second the velocity of before says nothing."""
    points, labeller = rng.uniform(-1.0, 1.0, (20, 3)), PointLabeller()
    for i in (0, 1, 2, 200, 5, 6):  # the sender counts from the start again
        drift = np.array([0.004 * min(i, 3), 0.0, 0.0])
        frame = labeller.label(bare(i, rng.permutation(points + drift)))
        if i == 0:
            names = [name_of(frame, point) for point in points]
    assert [name_of(frame, point) for point in points + drift] == names


@pytest.mark.parametrize("n_markers", [4, 2])
def test_a_foot_that_strikes_keeps_its_names(n_markers):
    """It is 60 mm from where its velocity has it: as a part, or next to the shank."""
    shank = [(0.0, 0.0, 0.5), (0.1, 0.0, 0.4), (0.0, 0.1, 0.3), (0.1, 0.1, 0.2)]
    foot = [(0.0, 0.0, 0.05), (0.2, 0.0, 0.0), (0.2, 0.1, 0.0), (0.1, 0.2, 0.0)]
    first = np.array([*shank, *foot[:n_markers]])
    fall = np.outer([0.02] * 4 + [0.06] * n_markers, [0.0, 0.0, 1.0])
    labeller = PointLabeller()
    names = labeller.label(bare(0, first)).labels
    for i, depth in enumerate((0.4, 1.2, 2.2, 3.2, 3.2, 3.2)):
        points = first - depth * fall
        frame = labeller.label(bare(i + 1, points))
        assert [name_of(frame, point) for point in points] == [*names]


def test_parts_are_not_searched_among_very_many_reflections(rng, monkeypatch):
    """The effort of a frame that shows others each time stays that of assignment."""
    searched = []

    def common_step(points, places):
        searched.append(max(len(points), len(places)))
        return np.zeros(3)

    monkeypatch.setattr("marey.live.labelling._common_step", common_step)
    for n in (MAX_POINTS - 10, MAX_POINTS + 10):
        labeller = PointLabeller()
        for i in range(3):
            labeller.label(bare(i, rng.uniform(-2.0, 2.0, (n, 3))))
    assert searched
    assert max(searched) <= MAX_POINTS


def test_a_marker_that_returns_has_its_name_again(walk, rng):
    """It is expected where its neighbours have carried it, however long it was gone."""
    points = walk[1].points.copy()
    labeller = PointLabeller()
    hidden = 3
    for i, some in enumerate(points):
        gone = 30 <= i < 30 + 4 * COASTING_FRAMES
        seen = np.delete(some, hidden, axis=0) if gone else some
        frame = labeller.label(bare(i, rng.permutation(seen)))
        if i == 29:
            name = name_of(frame, some[hidden])
        if gone:
            row = frame.labels.index(name)
            assert np.isnan(frame.points[row]).all()
    assert name_of(frame, points[-1][hidden]) == name


def test_ghosts_take_no_name_for_long(walk, rng):
    points = walk[1].points
    labeller = PointLabeller()
    for i, some in enumerate(points):
        ghost = some.mean(axis=0) + np.array([3.0 + i % 7, 0.0, 0.0])
        with_ghost = np.vstack([some, ghost]) if i % 3 == 0 else some
        frame = labeller.label(bare(i, rng.permutation(with_ghost)))
    assert len(frame.labels) <= len(points[0]) + 8
    assert len({name_of(frame, point) for point in points[-1]}) == len(points[0])


@pytest.mark.parametrize(("n_seen", "is_kept"), [(6, False), (18, True)])
def test_a_point_that_was_seen_for_a_while_keeps_its_name(n_seen, is_kept):
    """It is no reflection: after 30 frames no other point gets its name."""
    still = np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 1.0], [0.0, 0.5, 1.0]])
    seen = np.vstack([still, [3.0, 3.0, 1.0]])
    labeller = PointLabeller()
    for i in range(n_seen):
        frame = labeller.label(bare(i, seen))
    name = name_of(frame, seen[-1])
    for i in range(n_seen, n_seen + 30):
        labeller.label(bare(i, still))
    other = np.array([-3.0, -3.0, 1.0])
    frame = labeller.label(bare(n_seen + 30, np.vstack([still, other])))
    assert (name_of(frame, other) != name) is is_kept


def test_a_lost_point_moves_as_the_rigid_part_around_it(rng):
    """What is further away, across a joint, has no say in where it is expected."""
    limb = np.vstack([np.zeros(3), 0.1 * rng.normal(size=(6, 3))])
    rest = np.array([0.0, 1.0, 0.0]) + 0.3 * rng.normal(size=(20, 3))
    labeller = PointLabeller()
    for i in range(90):
        moved = limb + 0.01 * max(i - 30, 0) * np.eye(3)[0]
        seen = moved[1:] if 30 <= i < 89 else moved
        frame = labeller.label(bare(i, np.vstack([seen, rest])))
        if i == 29:
            name = name_of(frame, moved[0])
    assert name_of(frame, moved[0]) == name


def test_a_tracked_skeleton_names_its_lost_markers(walk):
    """Markers that the sender lost come as bare points: the skeleton knows them."""
    skeleton, take = walk
    labeller = PointLabeller()
    T = take.truth.motion.T_world_joint()
    lost = [2, 17, 40]
    for i in range(5):
        kept = np.delete(np.arange(len(take.labels)), lost)
        points = np.vstack([take.points[i, kept], take.points[i, lost]])
        names = tuple(take.full_labels[k] for k in kept)
        frame = labeller.label(bare(i, points, names))
        pose = SubjectPose("a", skeleton, T[i], len(kept))
        labeller.expect(LivePose(frame, (pose,)))
    for k in lost:
        row = frame.labels.index(take.full_labels[k])
        np.testing.assert_allclose(frame.points[row], take.points[4, k])


def test_a_tracked_skeleton_knows_where_a_marker_stopped(walk):
    """It was hidden for a few frames, and its velocity leads away from there."""
    skeleton, take = walk
    T, labeller = take.truth.motion.T_world_joint()[0], PointLabeller()
    hidden = 7
    for i in range(12):
        step = np.array([0.02 * min(i, 5), 0.0, 0.0])
        points = take.points[0] + step
        names = tuple(label for k, label in enumerate(take.full_labels) if k != hidden)
        own = points[[hidden]] if not 5 <= i < 9 else np.zeros((0, 3))
        points = np.concatenate([np.delete(points, hidden, axis=0), own])
        frame = labeller.label(bare(i, points, names))
        if i == 0:
            labeller.rename({frame.labels[-1]: take.full_labels[hidden]})
        T_world_joint = T.copy()
        T_world_joint[:, :3, 3] += step
        pose = SubjectPose("a", skeleton, T_world_joint, len(names))
        labeller.expect(LivePose(frame, (pose,)))
    row = frame.labels.index(take.full_labels[hidden])
    np.testing.assert_array_equal(frame.points[row], points[-1])


def test_a_raw_cloud_is_learnt_from(tmp_path):
    take = posed.record(motion="walk", seconds=2.0, rate=60.0, noise=5e-4)[1]
    path = tmp_path / "cloud.npz"
    marey.write(marey.Take(rate=60.0, points=take.points, labels=take.labels), path)
    with marey.stream(f"file:{path}?unlabelled=1") as poses:
        for pose in poses:
            assert not any(
                label.startswith("unlabelled") for label in pose.frame.labels
            )
    assert len(poses.skeletons[0].marker_labels) >= 0.9 * len(take.labels)


# --- a known skeleton in a raw cloud --------------------------------------------------


@pytest.mark.parametrize("motion", ["walk", "kick_punch", "jump"])
def test_one_frame_of_a_cloud_shows_which_point_is_which_marker(motion, rng):
    skeleton, take = posed.record(motion=motion, seconds=1.0, rate=20.0, noise=5e-4)
    for points in take.points[::7]:
        order = rng.permutation(len(points))
        found = find_markers(skeleton, points[order])
        assert found == {int(marker): k for k, marker in enumerate(order)}


def test_a_skeleton_is_found_wherever_it_is_and_among_others(walk, rng):
    """The cloud turns and moves, markers are hidden, and points of others come."""
    skeleton, take = walk
    twist = np.concatenate([rng.normal(0.0, 2.0, 3), rng.normal(0.0, 5.0, 3)])
    points = geometry.apply(geometry.transform_exp(twist), take.points[50])
    hidden = rng.choice(len(points), 4, replace=False)
    others = points + np.array([0.7, 0.2, 0.0]) + rng.normal(0.0, 0.1, points.shape)
    cloud = np.vstack([np.delete(points, hidden, axis=0), others[:20]])
    names = tuple(f"P{i}" for i in range(len(cloud)))
    frame = Frame(number=0, points=cloud, labels=names)
    found = recognise_skeleton(skeleton, frame, take.rate).labels
    left = np.delete(np.array(take.full_labels), hidden)
    wrong = {n: x for n, x in found.items() if int(n[1:]) >= len(left)}
    right = [n for n, label in found.items() if n not in wrong]
    assert len(right) >= 0.95 * len(left)
    assert all(found[n] == left[int(n[1:])] for n in right)
    assert len(wrong) <= len(hidden)


def test_a_cloud_without_the_skeleton_has_no_labels(walk, rng):
    skeleton, take = walk
    child = marey.synth.human(height=1.2)
    other = posed.record(child, "walk", seconds=0.5, rate=20.0)[1]
    for cloud in (rng.uniform(-1.0, 1.0, (60, 3)), take.points[0, :20]):
        assert find_markers(skeleton, cloud) == {}
    assert len(find_markers(skeleton, other.points[3])) < 0.9 * len(take.labels)


def test_the_effort_of_a_search_is_bounded(walk, rng, monkeypatch):
    """However many points look like it, a body is tried in at most 24 places."""
    skeleton, _ = walk
    on_hips = np.flatnonzero(skeleton.marker_joint == 0)
    hips = replace(
        skeleton,
        marker_labels=tuple(skeleton.marker_labels[i] for i in on_hips),
        marker_joint=skeleton.marker_joint[on_hips],
        marker_offset=skeleton.marker_offset[on_hips],
    )
    n_places = []

    def counted(points, places):
        n_places.append(len(places))
        return assign_points(points, places)

    monkeypatch.setattr("marey.live.recognition.assign_points", counted)
    find_markers(hips, rng.uniform(-0.3, 0.3, (100, 3)))
    assert n_places.count(len(on_hips)) == 24


def test_a_known_skeleton_starts_on_a_raw_cloud_and_comes_back(walk, rng):
    """After an absence it is found again, elsewhere."""
    skeleton, take = walk
    away = np.array([2.0, 1.0, 0.0])
    truth = take.truth.motion.T_world_joint()[..., :3, 3]
    labeller, performers = PointLabeller(), Performers(["a"], [skeleton], False, {})
    performers.prepare(take.rate)
    for i in range(2 * take.n_frames):
        is_back, row = i >= take.n_frames, i % take.n_frames
        points = take.points[row] + away * is_back
        if take.n_frames - 10 <= i < take.n_frames + 60:
            points = points[:0]
        frame = labeller.label(bare(i, rng.permutation(points)))
        if i in (20, take.n_frames + 80):
            labels = wait_for_labels(performers, frame)
            labeller.rename(labels)
            frame = frame.rename(labels)
        pose = performers.update(frame)
        labeller.expect(pose)
        if 20 <= row < 150 and (not is_back or row >= 80):
            assert pose.n_seen == len(take.labels)
            apart = pose.T_world_joint[:, :3, 3] - truth[row] - away * is_back
            assert np.linalg.norm(apart, axis=1).max() < 0.003
    performers.close()


@pytest.mark.parametrize("heights", [(1.75, 1.75), (1.9, 1.6)])
def test_people_with_the_same_labels_and_names_are_told_apart_in_a_cloud(rng, heights):
    """Each skeleton follows the person whose bones it has, in whatever order."""
    figures = [marey.synth.human(height=height) for height in heights]
    people = [
        posed.record(figure, "walk", seconds=1.0, rate=60.0, noise=5e-4, seed=i)
        for i, figure in enumerate(figures)
    ]
    beside = np.array([[0.0, 0.0, 0.0], [0.0, 1.5, 0.0]])
    skeletons = [skeleton for skeleton, _ in people]
    labeller = PointLabeller()
    performers = Performers(("Hips", "Hips"), skeletons, False, {})
    performers.prepare(60.0)
    for i in range(people[0][1].n_frames):
        clouds = [
            take.points[i] + place
            for (_, take), place in zip(people, beside, strict=True)
        ]
        frame = labeller.label(bare(i, rng.permutation(np.concatenate(clouds))))
        if i in (5, 10):
            labels = wait_for_labels(performers, frame)
            labeller.rename(labels)
            frame = frame.rename(labels)
        pose = performers.update(frame)
        labeller.expect(pose)
    performers.close()
    n_markers = len(skeletons[0].marker_labels)
    assert len({subject.name for subject in pose.subjects}) == 2
    assert [subject.n_seen for subject in pose.subjects] == [n_markers, n_markers]
    errors = np.array(
        [
            [
                np.linalg.norm(
                    subject.T_world_joint[:, :3, 3]
                    - take.truth.motion.T_world_joint()[-1, :, :3, 3]
                    - place,
                    axis=1,
                ).max()
                for (_, take), place in zip(people, beside, strict=True)
            ]
            for subject in pose.subjects
        ]
    )
    if heights[0] == heights[1]:  # twins may be either
        errors = errors if errors[0, 0] < errors[0, 1] else errors[::-1]
    assert np.diagonal(errors).max() < 0.003


def wait_for_labels(performers, frame):
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        if labels := performers.find_in_cloud(frame):
            return labels
        time.sleep(0.01)
    raise AssertionError("nothing was found")


def test_a_stream_of_a_raw_cloud_tracks_a_known_skeleton(walk, tmp_path):
    skeleton, take = walk
    path = tmp_path / "cloud.npz"
    marey.write(marey.Take(rate=25.0, points=take.points, labels=take.labels), path)
    end = time.monotonic() + 60.0
    with marey.stream(f"file:{path}?unlabelled&loop", skeleton) as poses:
        for pose in poses:
            if pose.n_seen == len(take.labels):
                break
            assert time.monotonic() < end
    truth = take.truth.motion.T_world_joint()[pose.frame.number % take.n_frames]
    apart = pose.T_world_joint[:, :3, 3] - truth[:, :3, 3]
    assert np.linalg.norm(apart, axis=1).max() < 0.003
