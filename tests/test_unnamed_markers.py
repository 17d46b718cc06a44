"""Markers without a name beside known ones: bodies by motion, and props."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey.anatomy.names import mirror_name
from marey.joints import fit_joints, joint_findings
from marey.segmentation import segment
from marey.segmentation.labels.match import recognise_marker_set


@pytest.fixture(scope="module")
def exercise():
    """A performer who moves every joint, 41 markers, in memory, without its truth."""
    figure = marey.synth.human(seed=0)
    take = figure.record("exercise", seconds=6.0, rate=60.0, noise=5e-4)
    return marey.Take(rate=take.rate, points=take.points, labels=take.labels)


def with_points(take, points, labels):
    return marey.Take(
        rate=take.rate,
        points=np.concatenate([take.points, points], axis=1),
        labels=(*take.labels, *labels),
    )


def bodies_of(take):
    """The bodies of each marker, by its index."""
    match = recognise_marker_set(take)
    return {
        i: {body for body, own in match.members.items() if i in own}
        for i in range(len(take.labels))
    }


def without_names(take, hidden):
    labels = [f"*{i}" if i in hidden else x for i, x in enumerate(take.labels)]
    return replace(take, labels=tuple(labels))


@pytest.mark.parametrize("seed", range(6))
def test_a_marker_whose_name_is_lost_is_on_its_body_or_on_none(exercise, seed):
    true = bodies_of(exercise)
    order = np.random.default_rng(seed).permutation(len(exercise.labels))
    hidden = set(order[:6].tolist())
    found = bodies_of(without_names(exercise, hidden))
    left = set().union(*found.values())  # a hand may have lost all its markers
    joined = [i for i in hidden if found[i] and true[i] <= left]
    assert len(joined) >= 2
    assert all(found[i] <= true[i] for i in joined)


def test_unnamed_markers_do_not_depend_on_order_side_and_place(exercise):
    hidden = {
        i for i, x in enumerate(exercise.labels) if x[1:] in ("THI", "UPA", "FHD")
    }
    take = without_names(exercise, hidden)
    moved = replace(take, points=take.points @ marey.geometry.R_Z_UP["x"] + 1.0)
    assert bodies_of(moved) == bodies_of(take)
    order = np.random.default_rng(1).permutation(len(take.labels))
    shuffled = bodies_of(take.select(order))
    assert {int(order[i]): some for i, some in shuffled.items()} == bodies_of(take)
    swap = {"L": "R", "R": "L"}
    labels = [swap.get(x[0], x[0]) + x[1:] if x[0] in swap else x for x in take.labels]
    other = bodies_of(replace(take, labels=tuple(labels)))
    mirrored = {
        i: {mirror_name(b) for b in some} for i, some in bodies_of(take).items()
    }
    assert other == mirrored


def test_who_stands_still_shows_no_body_of_an_unnamed_marker(exercise):
    hidden = {exercise.labels.index("LSHN"), exercise.labels.index("RELB")}
    noise = np.random.default_rng(2).normal(scale=5e-4, size=exercise.points.shape)
    still = replace(exercise, points=exercise.points[:1] + noise)
    found = bodies_of(without_names(still, hidden))
    assert not any(found[i] for i in hidden)


def test_the_end_of_a_stick_does_not_join_the_hand_that_holds_it(exercise):
    """All its markers keep their distances, and most are far from the hand."""
    hand = segment(exercise, method="labels")
    T = hand.T_world_body[:, hand.names.index("RightLowerArm")]
    stick = np.linspace([0.0, 0.0, 0.05], [0.3, 0.0, 1.2], 8)
    stick += 0.02 * np.random.default_rng(3).normal(size=stick.shape)
    wobble = 0.3 * np.sin(np.arange(len(T)) / 7.0)
    turned = (
        stick[None] + np.cross(np.array([0.0, 1.0, 0.0]), stick) * wobble[:, None, None]
    )
    points = np.einsum("fij,fmj->fmi", T[:, :3, :3], turned) + T[:, None, :3, 3]
    take = with_points(exercise, points, [f"*{i}" for i in range(8)])
    found = bodies_of(take)
    assert not any(found[i] for i in range(41, 49))


def test_the_marker_that_joined_is_reported(exercise):
    hidden = {exercise.labels.index("LSHN")}
    match = recognise_marker_set(without_names(exercise, hidden))
    (finding,) = [f for f in match.findings if f.code == "markers-joined"]
    assert "(LeftLowerLeg)" in finding.message


def test_duplicates_and_names_that_nobody_knows_join_no_body(exercise):
    thigh = exercise.labels.index("LTHI")
    points = exercise.points[:, [thigh, thigh]] + np.array([[[0.0], [0.02]]])[..., [0]]
    take = with_points(exercise, points.reshape(-1, 2, 3), ["*7", "Quux"])
    found = bodies_of(take)
    assert not found[41]
    assert not found[42]


# --- props ----------------------------------------------------------------------------


def ball(take, n_markers=2):
    """Markers that keep their distances and fly around."""
    t = np.linspace(0.0, 9.0, take.n_frames)[:, None, None]
    path = np.concatenate([np.sin(t), np.cos(1.3 * t), 1.0 + 0.5 * np.sin(0.7 * t)], -1)
    corners = 0.05 * np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0.4]])[:n_markers]
    noise = np.random.default_rng(4).normal(
        scale=5e-4, size=(take.n_frames, n_markers, 3)
    )
    return 2.0 * path + corners + noise


@pytest.mark.parametrize("labels", [("Ball1", "Ball2"), ("ball_left", "ball_right")])
def test_a_prop_of_two_markers_is_a_body_of_its_own(exercise, labels):
    bodies = segment(with_points(exercise, ball(exercise), labels), method="labels")
    assert "Ball" in bodies.names
    prop = bodies.names.index("Ball")
    assert bodies.marker_body[41:].tolist() == [prop, prop]
    assert "Ball" not in bodies.parents


def test_two_markers_that_do_not_keep_their_distance_are_no_prop(exercise):
    points = ball(exercise)
    points[:, 1] = 3.0 - points[:, 0]
    take = with_points(exercise, points, ("Ball1", "Ball2"))
    assert "Ball" not in segment(take, method="labels").names


def test_three_markers_that_nothing_names_and_no_body_moves_with_are_a_prop(exercise):
    take = with_points(exercise, ball(exercise, 3), ("*51", "*52", "*53"))
    bodies = segment(take, method="labels")
    assert len(set(bodies.marker_body[41:].tolist())) == 1
    assert bodies.shared[41:].sum() == 3
    assert bodies.names[bodies.marker_body[41]] == "body16"


def test_outputs_of_a_model_are_no_prop(exercise):
    """UNK1 is the upper neck of a model here, whatever it is elsewhere."""
    cloud = np.random.default_rng(6).normal(size=(exercise.n_frames, 30, 3))
    points = np.concatenate([ball(exercise, 3), cloud], axis=1)
    outputs = [f"QXZ{i}J" for i in range(30)]
    take = with_points(exercise, points, ["UNK1", "UNK2", "UNK3", *outputs])
    bodies = segment(take, method="labels")
    assert (bodies.marker_body[41:] == -1).all()


def test_a_ball_that_is_thrown_is_no_misread_sensor(exercise):
    take = with_points(exercise, ball(exercise, 3), ("Ball1", "Ball2", "Ball3"))
    bodies = segment(take, method="labels")
    codes = {finding.code for finding in joint_findings(bodies, fit_joints(bodies))}
    assert not codes & {"body-loose", "pair-unseen"}
