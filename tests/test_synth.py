import subprocess
import sys

import numpy as np
import posed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey import synth
from marey.numerics import geometry
from marey.synth.performance.angles import joint_angles, quaternions_from_angles

FIGURES = {
    "human": synth.human,
    "robot": synth.robot,
    "snowman": synth.snowman,
    "quadruped": synth.quadruped,
    "linkage": synth.linkage,
    "hinge_pair": synth.hinge_pair,
    "universal_pair": synth.universal_pair,
    "pendulum": synth.pendulum,
}
PERFORMANCES = [(n, m) for n, make in FIGURES.items() for m in make().motions]
GROUND_TOLERANCE_M = 1e-9


@pytest.fixture(scope="module")
def person():
    return synth.human(1.8, seed=0)


@pytest.fixture(scope="module")
def clean(person):
    return person.record("walk", seconds=4.0, rate=60.0, sensors=True)


def same(a, b):
    return a.tobytes() == b.tobytes()


# --- figures -------------------------------------------------------------------------


def test_the_human_has_48_degrees_of_freedom_in_15_bodies(person):
    assert person.n_dof == 48
    assert len(person.bodies) == 15
    assert sorted(set(person.skeleton.kind)) == ["ball", "fixed", "root"]
    assert person.skeleton.kind.count("ball") == 14


@given(height=st.floats(1.0, 2.2), seed=st.integers(0, 999))
@settings(deadline=None, max_examples=30)
def test_a_person_is_as_tall_as_asked_stands_on_the_ground_and_is_symmetric(
    height, seed
):
    figure = synth.human(height, seed=seed)
    rest = figure.skeleton.rest()[:, :3, 3]
    assert rest[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    assert figure.height == pytest.approx(height, rel=0.05)
    for joint, name in enumerate(figure.skeleton.names):
        if name.startswith("Left"):
            twin = figure.skeleton.index(name.replace("Left", "Right"))
            np.testing.assert_allclose(rest[twin], rest[joint] * [1, -1, 1], atol=1e-12)


def test_the_linkage_has_the_lengths_of_table_1():
    skeleton = synth.linkage().skeleton
    rest = skeleton.rest()[:, :3, 3]
    position = {name: rest[skeleton.index(name)] for name in skeleton.names}
    published = {
        ("Head", "LeftUpperArm"): 0.390,
        ("Head", "RightUpperArm"): 0.397,
        ("LeftUpperArm", "RightUpperArm"): 0.343,
        ("RightUpperArm", "RightLowerArm"): 0.286,
        ("LeftUpperArm", "LeftLowerArm"): 0.314,
    }
    for (a, b), length in published.items():
        assert np.linalg.norm(position[a] - position[b]) == pytest.approx(
            length, abs=1e-12
        )
    assert skeleton.kind.count("ball") == 5


@pytest.mark.parametrize(
    ("name", "bodies", "dof"),
    [
        ("robot", 13, 6 + 3 * 8 + 4),
        ("snowman", 3, 12),
        ("hinge_pair", 2, 7),
        ("universal_pair", 2, 8),
        ("pendulum", 4, 9),
        ("linkage", 6, 21),
    ],
)
def test_mechanisms_have_the_documented_bodies_and_degrees_of_freedom(
    name, bodies, dof
):
    figure = FIGURES[name]()
    assert (len(figure.bodies), figure.n_dof) == (bodies, dof)


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=25)
@pytest.mark.parametrize("name", ["human", "robot", "universal_pair", "pendulum"])
def test_joint_angles_are_the_inverse_of_quaternions_from_angles(name, seed):
    skeleton = FIGURES[name]().skeleton
    rng = np.random.default_rng(seed)
    free = {"ball": [1, 1, 1], "universal": [1, 1, 0], "hinge": [1, 0, 0]}
    used = np.array([free.get(kind, [0, 0, 0]) for kind in skeleton.kind])
    angles = rng.uniform(-1.5, 1.5, (5, skeleton.n_joints, 3)) * used
    again = joint_angles(skeleton, quaternions_from_angles(skeleton, angles))
    np.testing.assert_allclose(again, angles, atol=1e-9)


# --- motions -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "motion"), PERFORMANCES)
def test_a_motion_respects_limits_bone_lengths_ground_and_contacts(name, motion):
    figure = FIGURES[name]()
    done = figure.perform(motion, seconds=9.0, rate=30.0, seed=3)
    assert posed.within_limits(figure.skeleton, figure.angles(done))
    T = done.T_world_joint()
    position, parent = T[..., :3, 3], figure.skeleton.parent[1:]
    bones = np.linalg.norm(position[:, 1:] - position[:, parent], axis=-1)
    np.testing.assert_allclose(bones, np.tile(figure.skeleton.lengths[1:], (270, 1)))
    if figure.legs or motion == "jump":
        assert T[..., 2, 3].min() > -GROUND_TOLERANCE_M
        assert done.contacts or motion == "swing"
    for contact in done.contacts:
        assert abs(contact.anchor[2]) < GROUND_TOLERANCE_M
        during = (done.times >= contact.start) & (done.times <= contact.end)
        path = T[during, figure.skeleton.index(contact.joint), :3, 3]
        assert np.abs(path - contact.anchor).max(initial=0.0) < GROUND_TOLERANCE_M


@pytest.mark.parametrize(("name", "motion"), PERFORMANCES)
def test_another_rate_samples_the_same_curve(name, motion):
    figure = FIGURES[name]()
    slow = figure.perform(motion, seconds=2.0, rate=20.0, seed=1)
    fast = figure.perform(motion, seconds=2.0, rate=60.0, seed=1)
    np.testing.assert_allclose(
        fast.T_world_joint()[::3], slow.T_world_joint(), atol=1e-9
    )


@pytest.mark.parametrize(("name", "motion"), PERFORMANCES)
def test_a_motion_is_smooth(name, motion):
    """Halving the step quarters the second difference: no jump of velocity."""
    figure = FIGURES[name]()
    worst = []
    for rate in (200.0, 400.0):
        T = figure.perform(motion, seconds=2.5, rate=rate, seed=2).T_world_joint()
        worst.append(np.abs(np.diff(T, 2, axis=0)).max())
    assert worst[1] <= 0.35 * worst[0] + 1e-12


@pytest.mark.parametrize(("name", "motion"), PERFORMANCES)
def test_equal_seeds_give_equal_motions_and_other_seeds_other_motions(name, motion):
    figure = FIGURES[name]()
    first, again, other = (
        figure.perform(motion, seconds=2.0, rate=30.0, seed=seed) for seed in (5, 5, 6)
    )
    assert same(first.wxyz, again.wxyz)
    assert same(first.T_world_root, again.T_world_root)
    fixed = motion == "still" or (motion == "jump" and figure.legs)
    assert fixed or not np.allclose(
        first.T_world_joint(), other.T_world_joint(), atol=1e-6
    )


@given(seed=st.integers(0, 10**6), height=st.floats(1.4, 2.0))
@settings(deadline=None, max_examples=15)
def test_gait_angles_are_in_the_normal_range(seed, height):
    figure = synth.human(height, seed=seed)
    walk = figure.perform("walk", seconds=3.0, rate=50.0, seed=seed)
    T, angles = walk.T_world_joint(), figure.angles(walk)
    skeleton = figure.skeleton
    knees = angles[:, [skeleton.index(f"{s}LowerLeg") for s in ("Left", "Right")], 0]
    assert np.degrees(knees.min()) > 0.0
    assert 45.0 < np.degrees(knees.max()) < 80.0
    head, hips = (T[:, skeleton.index(n), 2, 3] for n in ("Head", "Hips"))
    assert (head - hips).min() > 0.3 * height
    speed = np.diff(T[:, 0, 0, 3]).mean() * 50.0
    assert 0.8 < speed / np.sqrt(height / 1.8) < 1.8
    on_ground = T[:, [leg.tips for leg in figure.legs], 2, 3].min(axis=(1, 2))
    assert np.abs(on_ground).max() < 1e-9
    for contact in walk.contacts:
        path = T[:, skeleton.index(contact.joint), :3, 3]
        during = (walk.times >= contact.start) & (walk.times <= contact.end)
        assert (
            np.abs(path[during] - contact.anchor).max(initial=0.0) < GROUND_TOLERANCE_M
        )


def test_the_exercise_moves_every_joint(person):
    angles = person.angles(person.perform("exercise", rate=50.0))
    low, high = person.skeleton.limits[..., 0], person.skeleton.limits[..., 1]
    moving = [j for j in person.bodies if j > 0]
    used = (angles.max(axis=0) - angles.min(axis=0)) / (high - low)
    assert used[moving].min() > 0.6


def test_an_unknown_motion_is_an_error(person):
    with pytest.raises(marey.OptionError, match="found 'swim', need one of exercise"):
        person.perform("swim")
    with pytest.raises(marey.OptionError, match="seconds"):
        person.perform("walk", seconds=0.0)


# --- recordings ----------------------------------------------------------------------


@pytest.mark.parametrize("markers", ["sparse41", "set53", "dense110", "mesh", 5])
def test_markers_are_rigid_on_their_bodies(person, markers):
    take = person.record("chicken_walk", seconds=2.0, rate=30.0, markers=markers)
    truth = take.truth
    assert same(take.points, truth.points)
    T = truth.motion.T_world_joint()[:, truth.marker_joint]
    local = geometry.apply(geometry.inverse(T), take.points)
    np.testing.assert_allclose(
        local, np.broadcast_to(truth.marker_offset, local.shape), atol=1e-12
    )
    assert set(truth.marker_joint) == set(person.bodies)
    counts = {"sparse41": 41, "set53": 53, "dense110": 110, 5: 75}
    assert len(take.labels) == counts.get(markers, len(take.labels))
    assert len(set(take.labels)) == len(take.labels)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_records_markers_and_sensors_on_every_body(name):
    figure = FIGURES[name]()
    take = figure.record(seconds=1.0, rate=20.0, sensors="all", noise=1e-3)
    assert set(take.truth.marker_joint) == set(figure.bodies)
    assert take.truth.sensor_joint.tolist() == figure.bodies.tolist()
    assert take.points.shape[0] == take.T_world_sensor.shape[0] == 20


def test_sensor_poses_agree_with_the_true_placement(clean):
    T = clean.truth.motion.T_world_joint()[:, clean.truth.sensor_joint]
    np.testing.assert_allclose(
        clean.T_world_sensor, T @ clean.truth.T_body_sensor, atol=1e-12
    )
    assert clean.sensor_names[0] == "Hips"


def test_the_41_markers_have_the_usual_labels(clean):
    usual = {"LFHD", "RBHD", "C7", "T10", "CLAV", "STRN", "RBAC", "LSHO", "LWRA"}
    usual |= {"LFWT", "RKNE", "LANK", "RMT5"}
    assert usual <= set(clean.labels)


def test_anonymous_markers_are_shuffled_and_the_truth_knows_their_labels(person, clean):
    anonymous = person.record(
        "walk", seconds=4.0, rate=60.0, sensors=True, labels=False
    )
    assert anonymous.labels[:2] == ("M000", "M001")
    assert anonymous.sensor_names[0] == "S00"
    assert anonymous.truth.marker_labels != clean.labels
    order = [clean.labels.index(label) for label in anonymous.truth.marker_labels]
    assert same(anonymous.points, np.ascontiguousarray(clean.points[:, order]))
    np.testing.assert_array_equal(
        anonymous.truth.marker_joint, clean.truth.marker_joint[order]
    )


def test_cut_and_select_keep_the_truth(person):
    take = person.record("walk", seconds=2.0, rate=50.0, gaps=0.2, seed=4)
    part = take.cut(20, 70).select([7, 3])
    assert isinstance(part, synth.Recording)
    assert same(part.truth.points, take.truth.points[20:70][:, [7, 3]].copy())
    assert part.truth.motion.n_frames == part.n_frames == 50
    missing = np.zeros((50, 2), dtype=bool)
    for change in part.truth.changes("gaps"):
        missing[change.first : change.last + 1, change.index] = True
    np.testing.assert_array_equal(missing, ~part.seen)


# --- scenes --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["together", "handover", "clasp"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_people_in_a_scene_are_within_joint_limits_and_on_the_ground(name, seed):
    take = synth.scene(name, seconds=6.0, rate=30.0, seed=seed, labels=True)
    people = {"A", "B"} | ({"PROP"} if name == "handover" else set())
    assert set(take.subjects) == people
    for figure, motion in zip(take.truth.figures, take.truth.motions, strict=True):
        assert posed.within_limits(figure.skeleton, figure.angles(motion))
        T = motion.T_world_joint()
        for contact in motion.contacts:
            during = (motion.times >= contact.start) & (motion.times <= contact.end)
            path = T[during, figure.skeleton.index(contact.joint), :3, 3]
            assert np.abs(path - contact.anchor).max(initial=0.0) < GROUND_TOLERANCE_M


def test_clasped_hands_meet_exactly_during_the_link_only():
    take = synth.scene("clasp", seconds=8.0, rate=30.0)
    (link,) = take.truth.links
    a, b = (
        take.truth.motions[s].T_world_joint()[:, j, :3, 3]
        for s, j in ((0, link.joint_a), (1, link.joint_b))
    )
    gap = np.linalg.norm(a - b, axis=-1)
    held = (take.times >= link.start) & (take.times <= link.end)
    assert gap[held].max() < GROUND_TOLERANCE_M
    assert gap[(take.times < 1.0) | (take.times > 7.0)].min() > 0.2


def test_the_stick_is_held_by_one_then_both_then_the_other():
    take = synth.scene("handover", seconds=8.0, rate=30.0)
    stick = geometry.inverse(take.truth.motions[2].T_world_root)
    for link in take.truth.links:
        hand = take.truth.motions[link.subject_a].T_world_joint()[:, link.joint_a]
        grip = stick @ hand
        held = (take.times >= link.start) & (take.times <= link.end)
        np.testing.assert_allclose(
            grip[held],
            np.broadcast_to(grip[held][0], grip[held].shape),
            atol=GROUND_TOLERANCE_M,
        )
        free = np.abs(take.times - np.clip(take.times, link.start, link.end)) > 1.0
        distance = np.linalg.norm(grip[free, :3, 3] - grip[held][0, :3, 3], axis=-1)
        assert distance.min() > 0.1
    first, second = take.truth.links
    assert second.start < 4.0 < first.end


# --- import --------------------------------------------------------------------------


def test_importing_is_cheap():
    code = (
        "import sys, marey.synth, marey.metrics;"
        "print([m for m in ('matplotlib', 'numba') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_documented():
    public = [v for k, v in vars(synth).items() if k[0].isalpha() and callable(v)]
    assert len(public) > 20
    assert [item for item in public if not item.__doc__] == []
