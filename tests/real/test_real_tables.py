"""Motive and Qualisys exports: facts published with the recordings."""

import numpy as np
import pytest

import marey
from marey.numerics.geometry import apply, inverse

RIGID_BODY = "sixdof_motive_csv/sample_optitrack_take.csv"
SKELETON = "sixdof_motive_csv/gaga_skeleton_bones_v1.25.csv"
HAND = "hand_dfki/recording.tsv"


def codes(take):
    return [finding.code for finding in take.source.findings]


def marker(take, name):
    return take.points[:, take.labels.index(name)]


def distance_between(a, b):
    """Distance of two points in every frame."""
    return np.linalg.norm(a - b, axis=-1)


# --- Motive 1.21: a rigid body of three markers at rest, in metres -------------------


@pytest.fixture(scope="module")
def rigid_body(recordings):
    return marey.read(recordings / RIGID_BODY)


def test_the_facts_of_the_rigid_body(rigid_body):
    source = rigid_body.source
    assert source.format == "motive"
    assert source.parameters["Format Version"] == "1.21"
    assert (source.unit.value, source.up.value, rigid_body.rate) == ("m", "y", 120.0)
    assert rigid_body.points.shape == (250, 9, 3)
    assert rigid_body.T_world_sensor.shape == (250, 1, 4, 4)
    assert rigid_body.sensor_names == ("Rigid Body 1",)
    assert rigid_body.full_labels[3] == "Rigid Body 1:Marker1"
    assert rigid_body.full_labels[0] == "Unlabeled 108"
    assert (~rigid_body.seen).sum() == 3 * 250
    assert codes(rigid_body) == ["computed-left-out"]


def test_the_rigid_body_is_rigid_and_lies_flat(rigid_body):
    positions = np.stack([marker(rigid_body, f"Marker{k}") for k in (1, 2, 3)], axis=1)
    for (a, b), length in {(0, 1): 0.200, (1, 2): 0.250, (2, 0): 0.150}.items():
        distance = distance_between(positions[:, a], positions[:, b])
        assert distance == pytest.approx(length, abs=1e-3)
        assert np.ptp(distance) < 1e-4
    # The square lies on the floor with its markers 19 mm up.
    np.testing.assert_allclose(positions[..., 2], 0.0192, atol=1e-4)
    in_body = apply(inverse(rigid_body.T_world_sensor), positions)
    assert in_body.std(axis=0).max() < 2e-5
    assert np.abs(in_body.mean(axis=(0, 1))).max() < 6e-3


# --- Motive 1.25: a skeleton of 51 bones, in millimetres -----------------------------


@pytest.fixture(scope="module")
def skeleton(recordings):
    return marey.read(recordings / SKELETON)


def bone(take, name):
    return take.T_world_sensor[:, take.sensor_names.index(name)]


def test_the_facts_of_the_skeleton(skeleton):
    source = skeleton.source
    assert source.parameters["Format Version"] == "1.25"
    assert (source.unit.value, source.up.value, skeleton.rate) == ("mm", "y", 120.0)
    assert skeleton.T_world_sensor.shape == (32, 51, 4, 4)
    assert skeleton.sensor_seen.all()
    assert skeleton.points.shape == (32, 82, 3)
    assert set(skeleton.subjects) == {"763", ""}
    assert codes(skeleton) == ["frames-missing", "computed-left-out"]
    assert "frames declared 17263, present 32" in source.findings[0].message


def test_bones_keep_their_position_in_their_parents(skeleton):
    parents = skeleton.source.parents
    assert len(parents) == 50
    for child, parent in parents.items():
        joint = bone(skeleton, child)[:, :3, 3]
        in_parent = apply(inverse(bone(skeleton, parent)), joint)
        assert in_parent.std(axis=0).max() < 1e-4, child
    thigh = distance_between(
        *(bone(skeleton, n)[:, :3, 3] for n in ("LThigh", "LShin"))
    )
    assert 0.3 < thigh.mean() < 0.6


def test_the_skeleton_stands_upright_with_its_left_on_the_left(skeleton):
    position = {
        n: bone(skeleton, n)[:, :3, 3].mean(axis=0) for n in skeleton.sensor_names
    }
    assert 1.3 < position["Head"][2] - position["LFoot"][2] < 1.6
    assert (
        position["Head"][2]
        > position["Chest"][2]
        > position["763"][2]
        > position["LShin"][2]
    )
    assert 0.0 < position["RToe"][2] < position["RFoot"][2] < 0.2
    forward = (
        position["LToe"] - position["LFoot"] + position["RToe"] - position["RFoot"]
    )
    left = position["LThigh"] - position["RThigh"]
    assert np.cross(forward, left)[2] > 0.0


def test_markers_move_with_their_bones(skeleton):
    for name in ("HeadTop", "HeadLeft", "HeadRight", "HeadFront"):
        on_head = apply(inverse(bone(skeleton, "Head")), marker(skeleton, name))
        assert on_head.std(axis=0).max() < 1e-3
        assert 0.03 < np.linalg.norm(on_head.mean(axis=0)) < 0.25


def test_solved_markers_repeat_or_replace_the_measured_ones(recordings, rigid_body):
    every = marey.read(recordings / SKELETON, computed=True)
    assert every.points.shape == (32, 82 + 54, 3)
    for name in every.labels[82:]:
        measured = marker(every, name.removesuffix("_solved"))
        np.testing.assert_array_equal(marker(every, name), measured)
    every = marey.read(recordings / RIGID_BODY, computed=True)
    for k in (1, 2, 3):
        solved = marker(every, f"Rigid Body 1_{k}")
        distance = distance_between(solved, marker(rigid_body, f"Marker{k}"))
        assert 0.0 < distance.max() < 1e-3


# --- Qualisys 3D: a hand with a glove, in millimetres --------------------------------


@pytest.fixture(scope="module")
def hand(recordings):
    return marey.read(recordings / HAND)


def test_the_facts_of_the_hand(hand):
    assert hand.source.format == "qualisys"
    assert hand.points.shape == (6000, 21, 3)
    assert (hand.rate, hand.start) == (100.0, 0.0)
    assert (hand.source.unit.value, hand.source.up.value) == ("mm", "z")
    assert hand.labels[:4] == ("hand_top", "hand_left", "hand_right", "thumb_tip")
    # Gaps stand as NaN: 0.5 % of all, in three fingertips alone.
    gaps = (~hand.seen).sum(axis=0)
    counts = dict(zip(hand.labels, gaps.tolist(), strict=True))
    lost = {label: count for label, count in counts.items() if count}
    assert lost == {"thumb_tip": 493, "ring_tip": 42, "middle_tip": 78}
    assert (~hand.seen).mean() == pytest.approx(0.005, abs=5e-4)
    assert codes(hand) == ["trajectories-filled"]


def test_the_hand_is_as_large_as_a_hand(hand):
    for finger in ("thumb", "index", "middle", "ring", "little"):
        length = distance_between(
            marker(hand, f"{finger}_tip"), marker(hand, f"{finger}_middle")
        )
        assert np.nanmin(length) > 0.02
        assert np.nanmax(length) < 0.08
    back = [marker(hand, f"hand_{side}") for side in ("top", "left", "right")]
    for a, b in ((0, 1), (1, 2), (2, 0)):
        assert distance_between(back[a], back[b]).std() < 2e-4
        assert 0.03 < distance_between(back[a], back[b]).mean() < 0.06


def test_the_shoulder_is_above_the_elbow_and_all_above_the_floor(hand):
    assert np.nanmin(hand.points[..., 2]) > 0.0
    above = marker(hand, "right_shoulder") - marker(hand, "right_elbow")
    assert (above[:, 2] > 0.05).all()
