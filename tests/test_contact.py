"""Ground contact: known foot plants are found, and footskate is removed."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.motion import GroundPlane
from marey.numerics import geometry
from marey.pipeline import SolveOptions
from marey.pose import fit_pose
from marey.pose.contact.foot_plants import FootPlant, find_foot_plants
from marey.pose.contact.goals import PointGoals, project_anchors
from marey.pose.contact.ground import (
    ANCHOR_SD_M,
    MIN_STEP_HEIGHT_M,
    POINT_HEIGHT_SD_M,
    SLOPE_SD,
    GroundContacts,
    fit_contact_planes,
    plant_height,
    select_ground_plants,
)
from marey.pose.contact.ground_contacts import (
    add_contacts,
    enforce_contacts,
    find_ground_contacts,
    planted_spans,
)
from marey.pose.contact.inverse_kinematics import reach_goals
from marey.pose.contact.points import (
    ContactPoints,
    PointTracks,
    find_contact_points,
)
from marey.pose.contact.stance import estimate_noise, viterbi_states

FEET = ("LeftHeel", "LeftToes", "RightHeel", "RightToes")
UP = np.array([0.0, 0.0, 1.0])
LEVEL = GroundPlane(height=np.zeros(2))
SKIN = {"noise": 2e-3, "soft_tissue": 5e-3, "gaps": 0.1}
CASES = {"1 mm": {"noise": 1e-3}, "2 mm": {"noise": 2e-3}, "skin and gaps": SKIN}
SEEDS = (0, 1, 2)


@cache
def solved(case="", seed=0, motion="walk"):
    """A recording, its motion by Gauss-Newton, and the ground contacts of that."""
    options = CASES.get(case, {})
    skeleton, take = posed.record(motion=motion, seconds=6.0, seed=seed, **options)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    return take, motion, find_ground_contacts(motion, take)


def true_flags(take, names):
    """Frames in which points are planted in truth."""
    motion = take.truth.motion
    flags = np.zeros((motion.n_frames, len(names)), dtype=bool)
    for contact in motion.contacts:
        during = (motion.times >= contact.start) & (motion.times <= contact.end)
        flags[during, names.index(contact.joint)] = True
    return flags


def found_flags(contacts, n_frames, names):
    flags = np.zeros((n_frames, len(names)), dtype=bool)
    for plant in contacts.plants:
        flags[plant.frames, names.index(contacts.points.names[plant.point])] = True
    return flags


def scores(pairs):
    """Precision and recall of frames, over several (found, true)."""
    hits = sum((found & true).sum() for found, true in pairs)
    return tuple(
        hits / sum(flags.sum() for flags in side) for side in zip(*pairs, strict=True)
    )


def accelerations(motion):
    """Second differences of every joint's position between frames, in metres."""
    positions = motion.T_world_joint()[..., :3, 3]
    return np.linalg.norm(np.diff(positions, n=2, axis=0), axis=-1)


def rms(values):
    return np.sqrt(np.mean(values**2))


# --- the steps ------------------------------------------------------------------------


def test_viterbi_states_are_the_best_of_all_paths(rng):
    log_odds, cost = rng.normal(scale=2.0, size=(9, 5)), 1.7
    paths = np.array(list(product([False, True], repeat=9)))
    changes = (paths[:, 1:] != paths[:, :-1]).sum(axis=1)
    score = paths @ log_odds - cost * changes[:, None]
    best = paths[score.argmax(axis=0)].T
    np.testing.assert_array_equal(viterbi_states(log_odds, cost), best)


def test_noise_is_measured_on_points_that_stand_and_move(rng):
    time = np.arange(1000) / 100.0
    path = 0.5 * np.clip(np.sin(3.0 * time), 0.0, None) ** 3
    positions = np.repeat(path[:, None, None], 3, axis=-1)
    noisy = positions + rng.normal(scale=2e-3, size=positions.shape)
    assert estimate_noise(positions)[0] < 1e-5
    assert estimate_noise(noisy)[0] == pytest.approx(2e-3, rel=0.1)


def plants_on(slope, heights, positions):
    """Foot plants of each point at each position on a plane."""
    return [
        FootPlant(point, 10.0 * k, 10.0 * k + 9.0, np.array([x, y, high + x * slope]))
        for k, (x, y) in enumerate(positions)
        for point, high in enumerate(heights)
    ]


def test_the_ground_is_the_plane_of_the_plants_whatever_stands_on_a_box(rng):
    positions = rng.uniform(-3.0, 3.0, (12, 2))
    plants = plants_on(0.1, (0.03, 0.07), positions)
    box = replace(plants[5], anchor=plants[5].anchor + 0.4 * UP)
    ground = fit_contact_planes([*plants[:5], box, *plants[6:]], 2)
    np.testing.assert_allclose(ground.slope, [0.1, 0.0], atol=1e-3)
    np.testing.assert_allclose(ground.height, [0.03, 0.07], atol=1e-3)
    assert plant_height(ground, box) == pytest.approx(0.4, abs=2e-3)


def test_planes_minimise_the_cost_that_they_state(rng):
    """No small change of slope, height or a point's height lowers the cost."""
    positions = rng.uniform(-3.0, 3.0, (9, 2))
    plants = [
        replace(plant, anchor=plant.anchor + rng.normal(scale=0.004) * UP)
        for plant in plants_on(0.05, (0.03, 0.07, 0.1), positions)
    ]
    best = fit_contact_planes(plants, 3)
    weight = np.full(len(plants), 1.0)

    def cost(slope, common, own):
        above = [
            p.anchor[2] - slope @ p.anchor[:2] - common - own[p.point] for p in plants
        ]
        square = np.square(above)
        loss = weight @ (square / (1.0 + square / MIN_STEP_HEIGHT_M**2))
        priors = slope @ slope / SLOPE_SD**2 + own @ own / POINT_HEIGHT_SD_M**2
        return loss / ANCHOR_SD_M**2 + priors

    # The common height is that from which the points' heights add up to zero.
    own = best.height - np.mean(best.height)
    least = cost(best.slope, np.mean(best.height), own)
    for k in range(5):
        for step in (-1e-3, 1e-3):
            change = step * (np.arange(5) == k)
            moved = cost(
                best.slope + change[:2], np.mean(best.height), own + change[2:]
            )
            assert moved > least


def test_the_anchor_of_a_plant_is_the_geometric_median_of_its_positions(rng):
    """It has the least sum of distances, whatever other plants there are."""
    positions = np.cumsum(rng.normal(scale=0.2, size=(200, 2, 3)), axis=0)
    for point, first in ((0, 40), (0, 120), (1, 60)):
        positions[first : first + 50, point] = positions[first, point] + rng.normal(
            scale=1e-3, size=(50, 3)
        )
    positions[130, 0] = np.nan
    stands = np.zeros((200, 2), dtype=bool)
    stands[40:90, 0] = stands[120:170, 0] = stands[60:110, 1] = True
    tracks = PointTracks(positions, np.ones((200, 2)), 100.0, 1.7)
    plants = find_foot_plants(stands, tracks)
    assert len(plants) == 3
    for plant in plants:
        known = positions[plant.frames, plant.point]
        known = known[np.isfinite(known).all(axis=1)]

        def total(anchor, known=known):
            return np.linalg.norm(known - anchor, axis=1).sum()

        for change in 1e-4 * np.concatenate([np.eye(3), -np.eye(3)]):
            assert total(plant.anchor) < total(plant.anchor + change)


def test_feet_in_a_line_are_on_level_ground():
    """No plant determines the slope across the line, so the prior does."""
    positions = [(0.7 * k, 0.05 * (-1) ** k + 0.002 * k) for k in range(6)]
    plants = plants_on(0.0, (0.03,), positions)
    crooked = [
        replace(p, anchor=p.anchor + 0.002 * (-1) ** k * UP)
        for k, p in enumerate(plants)
    ]
    assert fit_contact_planes(crooked, 1).angle < np.radians(0.5)


def test_a_box_and_the_floor_beside_it_are_no_slope():
    floor = plants_on(0.0, (0.03, 0.05), [(0.0, 0.0), (0.1, 0.3)])
    box = plants_on(0.0, (0.33, 0.35), [(-1.0, 0.0), (-1.0, 0.3)])
    ground = fit_contact_planes([*floor, *box, *floor], 2)
    assert ground.angle < np.radians(0.5)
    assert plant_height(ground, box[0]) == pytest.approx(0.3, abs=3e-3)


def test_a_foot_held_in_the_air_is_no_plant_but_one_on_a_step_is():
    """Left stands at 0; right at 0, then lifted; at the end it has climbed a step."""
    left, right = np.zeros((2, 100, 3))
    right[:, 1] = 0.2
    right[40:60, 2] = 0.17
    step = [0.3, 0.0, 0.17]
    left[70:] += step
    right[80:] += step
    plants = [
        FootPlant(0, 0.0, 65.0, left[0]),
        FootPlant(1, 0.0, 35.0, right[0]),
        FootPlant(1, 42.0, 58.0, right[50]),
        FootPlant(0, 72.0, 99.0, left[-1]),
        FootPlant(1, 82.0, 99.0, right[-1]),
    ]
    positions = np.stack([left, right], axis=1)
    tracks = PointTracks(positions, np.ones((100, 2)), 100.0, 1.7)
    kept, _ = select_ground_plants(plants, tracks, positions[..., 2].min(axis=1))
    assert [plant.start for plant in kept] == [0.0, 0.0, 72.0, 82.0]


def test_anchors_of_one_foot_are_as_far_apart_as_it_is_long_and_on_the_ground():
    """Each anchor moves by half of the excess; a third one, on a step, stays up."""
    joint = np.zeros(2, dtype=np.int64)
    points = ContactPoints(joint, np.zeros((2, 3)), ("heel", "toe"), joint, joint == 0)
    heel, toe = np.array([0.0, 0.0, 0.002]), np.array([0.212, 0.0, -0.002])
    plants = [
        FootPlant(0, 0.0, 40.0, heel),
        FootPlant(1, 10.0, 60.0, toe),
        FootPlant(0, 100.0, 140.0, heel + 0.2 * UP),
    ]
    distance_m = np.array([[0.0, 0.2], [0.2, 0.0]])
    contacts = GroundContacts(points, tuple(plants), LEVEL)
    projected = project_anchors(contacts, distance_m)
    one, two, step = (plant.anchor for plant in projected.plants)
    np.testing.assert_allclose(one, [0.006, 0.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(two, [0.206, 0.0, 0.0], atol=1e-4)
    np.testing.assert_array_equal(step, plants[2].anchor)


def test_the_ground_is_lower_between_plants_of_which_one_is_a_step_down():
    joint = np.zeros(2, dtype=np.int64)
    soles = np.array([True, False])
    points = ContactPoints(joint, np.zeros((2, 3)), ("toe", "marker"), joint, soles)
    plants = [
        FootPlant(0, 0.0, 10.0, np.zeros(3)),
        FootPlant(0, 30.0, 40.0, np.zeros(3)),
    ]
    plants += [
        FootPlant(0, 60.0, 70.0, -0.2 * UP),
        FootPlant(1, 0.0, 70.0, np.zeros(3)),
    ]
    height = GroundContacts(points, tuple(plants), LEVEL).ground_heights(80)
    np.testing.assert_array_equal(height[:30, 0], 0.0)
    np.testing.assert_array_equal(height[30:, 0], -0.2)
    assert (height[:, 1] == -np.inf).all()


def test_a_plant_ends_where_the_point_creeps_away():
    """It stands for a second, then creeps at 4 cm/s, too slowly to be moving."""
    time = np.arange(200) / 100.0
    positions = np.zeros((200, 1, 3))
    positions[:, 0, 0] = 0.04 * np.clip(time - 1.0, 0.0, None)
    stands = np.ones((200, 1), dtype=bool)
    tracks = PointTracks(positions, np.ones((200, 1)), 100.0, 1.7)
    (plant,) = find_foot_plants(stands, tracks)
    assert plant.start == 0.0
    assert 95.0 < plant.end < 115.0
    assert np.linalg.norm(plant.anchor) < 1e-4


def test_a_point_that_sways_by_a_millimetre_stands_for_the_whole_take(rng):
    """However small the noise is."""
    time = np.arange(51) / 100.0
    positions = np.zeros((51, 1, 3))
    positions[:, 0, 0] = 1e-3 * np.sin(3.0 * time)
    positions += rng.normal(scale=1e-5, size=positions.shape)
    tracks = PointTracks(positions, np.ones((51, 1)), 100.0, 1.7)
    (plant,) = find_foot_plants(np.ones((51, 1), dtype=bool), tracks)
    assert (plant.start, plant.end) == (0.0, 50.0)


@pytest.fixture
def jointed(rng):
    """A figure with joints of every kind, and two points on it."""
    skeleton = posed.skeleton_of_every_kind(rng)
    root, wxyz = posed.random_pose(skeleton, rng)
    T = geometry.transform(geometry.matrix_from_quat(wxyz[0]), root)
    motion = marey.Motion(
        skeleton=skeleton, T_world_root=T[None], wxyz=wxyz[None], rate=100.0
    )
    joint, offset = np.array([5, 6]), rng.normal(scale=0.1, size=(2, 3))
    is_sole = np.ones(2, dtype=bool)
    points = ContactPoints(joint, offset, ("leaf", "other"), joint, is_sole)
    return motion, points, points.positions(motion.T_world_joint())


def goals_at(position, share, ground=-np.inf):
    return PointGoals(np.eye(3), position, np.array([share]), np.full((1, 2), ground))


def test_points_reach_their_goals_and_joints_keep_their_kind(jointed, rng):
    motion, points, positions = jointed
    goal = positions + rng.normal(scale=5e-3, size=positions.shape)
    done = reach_goals(motion, points, goals_at(goal, [1.0, 1.0]))
    np.testing.assert_allclose(points.positions(done.T_world_joint()), goal, atol=1e-6)
    back = geometry.quat_conjugate(motion.wxyz[0, 2])
    turn = geometry.quat_log(geometry.quat_multiply(back, done.wxyz[0, 2]))
    axis = motion.skeleton.axes[2, 0]
    np.testing.assert_allclose(np.cross(turn, axis), 0.0, atol=1e-12)
    np.testing.assert_allclose(done.wxyz[0, 4], motion.wxyz[0, 4], atol=1e-12)


def test_a_share_is_that_part_of_the_distance(jointed):
    motion, points, positions = jointed
    goal = positions + np.array([0.004, 0.0, 0.0])
    done = reach_goals(motion, points, goals_at(goal, [0.25, 0.0]))
    moved = points.positions(done.T_world_joint())[0, 0] - positions[0, 0]
    np.testing.assert_allclose(moved, [1e-3, 0.0, 0.0], atol=2e-5)


def test_no_other_pose_at_the_goal_moves_the_joints_less(jointed, rng):
    """Every pose that is near and has the point at its goal has moved further."""
    motion, points, positions = jointed
    goal = positions + np.array([0.004, -0.003, 0.002])
    done = reach_goals(motion, points, goals_at(goal, [1.0, 0.0]))

    def cost(other):
        a, b = motion.T_world_joint()[0], other.T_world_joint()[0]
        turn = geometry.rotation_log(a[:, :3, :3].swapaxes(-1, -2) @ b[:, :3, :3])
        return np.sum((b - a)[:, :3, 3] ** 2) + 0.1**2 * np.sum(turn**2)

    least = cost(done)
    for _ in range(20):
        _, wxyz = posed.random_pose(motion.skeleton, rng, size=2e-3)
        moved = geometry.quat_multiply(done.wxyz[0], wxyz)
        moved[[2, 3, 6]] = done.wxyz[0, [2, 3, 6]]
        R = geometry.matrix_from_quat(moved[0])
        T = geometry.transform(R, done.T_world_root[0, :3, 3])
        other = replace(done, wxyz=moved[None], T_world_root=T[None])
        T[:3, 3] += (goal - points.positions(other.T_world_joint()))[0, 0]
        other = replace(other, T_world_root=T[None])
        assert cost(other) > least


def test_points_underground_are_lifted_and_no_others(jointed):
    motion, points, positions = jointed
    ground = positions[0, :, 2].min() + 0.01
    done = reach_goals(motion, points, goals_at(positions, [0.0, 0.0], ground))
    after = points.positions(done.T_world_joint())[0, :, 2]
    assert after.min() == pytest.approx(ground, abs=1e-6)
    same = reach_goals(motion, points, goals_at(positions, [0.0, 0.0], ground - 0.02))
    np.testing.assert_array_equal(same.wxyz, motion.wxyz)


# --- walks with known plants ----------------------------------------------------------


def test_plants_of_an_exact_walk_are_its_true_ones():
    take, motion, contacts = solved()
    assert set(contacts.points.names) == set(FEET)
    found = found_flags(contacts, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.98
    assert np.abs(contacts.ground.height).max() < 1e-6
    true = {c.joint: [] for c in take.truth.motion.contacts}
    for contact in take.truth.motion.contacts:
        true[contact.joint].append(contact.anchor)
    for plant in contacts.plants:
        anchors = np.array(true[contacts.points.names[plant.point]])
        assert np.linalg.norm(anchors - plant.anchor, axis=-1).min() < 1e-5


@pytest.mark.parametrize("seed", [0, 2])
def test_an_exact_walk_is_left_alone(seed):
    """In the second a heel has begun to rise when the recording ends."""
    _, motion, contacts = solved(seed=seed)
    done, _ = enforce_contacts(motion, contacts)
    away = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(away, axis=-1).max() < 5e-5


@pytest.mark.parametrize("case", list(CASES))
def test_frames_of_contact_are_found(case):
    pairs = []
    for seed in SEEDS:
        take, motion, contacts = solved(case, seed)
        assert set(contacts.points.names) == set(FEET)
        found = found_flags(contacts, motion.n_frames, FEET)
        pairs.append((found, true_flags(take, FEET)))
        assert min(scores(pairs[-1:])) > 0.945
    precision, recall = scores(pairs)
    assert precision > 0.98
    assert recall > 0.965


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_feet_neither_slide_nor_sink_and_joints_are_no_worse(case, seed):
    take, motion, contacts = solved(case, seed)
    done, enforced = enforce_contacts(motion, contacts)
    assert contacts.skate(motion) > 0.1
    assert enforced.skate(done) < 5e-4
    assert enforced.penetration(motion) > 1e-3
    assert enforced.penetration(done) < 1e-4
    before, after = posed.joint_errors(motion, take), posed.joint_errors(done, take)
    assert rms(after) < rms(before)
    worse = np.sqrt((after**2).mean(axis=0)) - np.sqrt((before**2).mean(axis=0))
    assert worse.max() < 5e-4
    feet = [motion.skeleton.index(name) for name in FEET]
    assert rms(after[:, feet]) < 0.95 * rms(before[:, feet])


@pytest.mark.parametrize("case", list(CASES))
def test_accelerations_do_not_grow_where_plants_begin_and_end(case):
    _, motion, contacts = solved(case)
    done, _ = enforce_contacts(motion, contacts)
    assert accelerations(done).max() < 1.01 * accelerations(motion).max()
    feet = [motion.skeleton.index(name) for name in FEET]
    assert (
        accelerations(done)[:, feet].max() < 1.1 * accelerations(motion)[:, feet].max()
    )


def test_a_correction_fades_in_and_out():
    """Every other plant is moved aside by 2 cm, which takes three frames or more."""
    _, motion, contacts = solved()
    aside = np.array([0.0, 0.02, 0.0])
    plants = [
        replace(plant, anchor=plant.anchor + aside * (plant.start % 200.0 > 100.0))
        for plant in contacts.plants
    ]
    done, _ = enforce_contacts(motion, replace(contacts, plants=tuple(plants)))
    added = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(added, axis=-1).max() > 0.019
    assert np.linalg.norm(np.diff(added, axis=0), axis=-1).max() < 0.02 / 3.0


def test_motion_of_an_unseen_foot_does_not_end_its_plant():
    take, motion, _ = solved()
    joint, point = motion.skeleton.index("LeftFoot"), motion.skeleton.index("LeftToes")
    (plant, *_) = [
        c for c in take.truth.motion.contacts if c.joint == "LeftToes" and c.start > 0.2
    ]
    first = round((plant.start + 0.2) * motion.rate)
    gap = np.arange(first, first + 12)
    wxyz = motion.wxyz.copy()
    lift = np.sin(np.pi * np.linspace(0.0, 1.0, len(gap)))
    kick = geometry.quat_exp(lift[:, None] * np.array([0.0, -0.6, 0.0]))
    wxyz[gap, joint] = geometry.quat_multiply(wxyz[gap, joint], kick)
    kicked = replace(motion, wxyz=wxyz)
    markers = np.flatnonzero(take.truth.marker_joint == joint)
    points = take.points.copy()
    points[gap[0] : gap[-1] + 1, markers] = np.nan
    blind = replace(take, points=points)
    name = motion.skeleton.names[point]
    seen, unseen = (
        found_flags(find_ground_contacts(kicked, t), motion.n_frames, FEET)[
            :, FEET.index(name)
        ]
        for t in (take, blind)
    )
    assert not seen[gap].all()
    assert unseen[gap].all()


def test_contacts_are_on_the_clock_of_the_take():
    take, _, _ = solved("1 mm")
    late = replace(take, start=7.5)
    skeleton = take.true_skeleton
    options: dict[str, Any] = {"method": "gauss_newton", "contacts": True}
    one, two = (marey.solve_pose(skeleton, t, **options) for t in (take, late))
    assert {contact.joint for contact in one.contacts} == set(FEET)
    for a, b in zip(one.contacts, two.contacts, strict=True):
        assert (a.joint, a.start + 7.5, a.end + 7.5) == (
            b.joint,
            pytest.approx(b.start),
            pytest.approx(b.end),
        )
        assert a.anchor[2] == pytest.approx(0.0, abs=1e-3)


def test_plants_are_equivariant_to_rotation_and_translation_of_the_world():
    take, _, contacts = solved("2 mm")
    R = geometry.rotation_exp(np.array([0.0, 0.0, 2.1]))
    T = geometry.transform(R, np.array([8.0, -5.0, 0.7]))
    skeleton = take.true_skeleton
    motion = marey.solve_pose(
        skeleton, posed.move_world(take, T), method="gauss_newton"
    )
    there = find_ground_contacts(motion, take)
    done, _ = enforce_contacts(motion, there)
    here, _ = enforce_contacts(solved("2 mm")[1], contacts)
    for a, b in zip(contacts.plants, there.plants, strict=True):
        assert (a.point, a.start, a.end) == (b.point, b.start, b.end)
        np.testing.assert_allclose(geometry.apply(T, a.anchor), b.anchor, atol=1e-6)
    np.testing.assert_allclose(done.wxyz[:, 1:], here.wxyz[:, 1:], atol=1e-5)


def test_a_walk_up_a_slope():
    take, _, _ = solved("2 mm")
    tilt = geometry.rotation_exp(np.array([0.03, -np.radians(8.0), 0.0]))
    T = geometry.transform(tilt, np.array([1.0, 2.0, 0.4]))
    skeleton = take.true_skeleton
    motion = marey.solve_pose(
        skeleton, posed.move_world(take, T), method="gauss_newton"
    )
    contacts = find_ground_contacts(motion, take)
    found = found_flags(contacts, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.95
    assert np.degrees(contacts.ground.angle) == pytest.approx(8.0, abs=0.3)
    done, enforced = enforce_contacts(motion, contacts)
    assert enforced.skate(done) < 5e-4
    assert enforced.penetration(done) < 1e-4


@pytest.mark.parametrize("motion", ["kick_punch", "jump", "exercise", "circle"])
def test_other_motions(motion):
    take, fitted, contacts = solved("1 mm", motion=motion)
    assert set(contacts.points.names) == set(FEET)
    found = found_flags(contacts, fitted.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.97


def test_paws_and_their_plants():
    skeleton, take = posed.record(
        synth.quadruped(), motion="walk", markers=5, seconds=4.0, noise=1e-3
    )
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    contacts = find_ground_contacts(motion, take)
    paws = tuple(f"{s}{p}" for s in ("Left", "Right") for p in ("Fingers", "Toes"))
    assert set(contacts.points.names) == set(paws)
    found = found_flags(contacts, motion.n_frames, paws)
    assert min(scores([(found, true_flags(take, paws))])) > 0.97


@pytest.mark.parametrize("rate", [30.0, 240.0])
def test_rates(rate):
    skeleton, take = posed.record(motion="walk", seconds=4.0, rate=rate, noise=1e-3)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    contacts = find_ground_contacts(motion, take)
    found = found_flags(contacts, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.95


# --- options and findings -------------------------------------------------------------


@pytest.mark.parametrize("method", ["gauss_newton", "bfgs", "playback"])
def test_every_method_can_hold_the_feet(method):
    sensors = {"sensors": True, "turn_noise": 2e-3, "noise": 1e-3}
    skeleton, take = posed.record(motion="walk", seconds=2.0, **sensors)
    loose = marey.solve_pose(skeleton, take, method=method)
    motion, findings = fit_pose(skeleton, take, method=method, contacts=True)
    assert not loose.contacts
    assert {contact.joint for contact in motion.contacts} == set(FEET)
    reported = {finding.code: finding for finding in findings}
    spans = planted_spans(motion.contacts)
    assert reported["contact-plants"].value == sum(map(len, spans.values()))
    assert reported["contact-skate"].value < 5e-4
    assert reported["contact-depth"].value < 1e-4
    assert (
        rms(posed.joint_errors(motion, take))
        < rms(posed.joint_errors(loose, take)) + 1e-4
    )


def test_a_figure_that_stands_on_nothing_is_reported():
    take, motion, _ = solved(motion="swing")
    done, findings = add_contacts(motion, take)
    assert [finding.code for finding in findings] == ["contact-none"]
    assert done.contacts == ()
    np.testing.assert_array_equal(done.wxyz, motion.wxyz)


def test_feet_without_soles_stand_by_their_markers():
    """Ends of bones that are above the markers do not touch the ground."""
    skeleton, take = posed.record(motion="walk", seconds=4.0, noise=1e-3)
    offset = skeleton.offset.copy()
    offset[[skeleton.index(name) for name in FEET], 2] = 0.0
    skeleton = replace(skeleton, offset=offset)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    contacts = find_ground_contacts(motion, take)
    assert set(contacts.points.names) == {"LeftFoot", "RightFoot"}
    assert not contacts.points.is_sole.any()
    done, findings = add_contacts(motion, take)
    codes = {finding.code: finding.value for finding in findings}
    assert "contact-depth" not in codes
    assert codes["contact-skate"] < 2e-3
    before, after = posed.joint_errors(motion, take), posed.joint_errors(done, take)
    skip = np.isin(skeleton.names, FEET)
    assert rms(after[:, ~skip]) < rms(before[:, ~skip]) + 1e-4


def test_frames_without_a_pose_stay_without(unchecked):
    skeleton, take = posed.record(
        motion="walk", seconds=2.0, markers="none", sensors=True, noise=1e-3
    )
    T = take.T_world_sensor.copy()
    T[50:60] = np.nan
    gone = replace(take, T_world_sensor=T)
    motion = marey.solve_pose(skeleton, gone, method="playback", contacts=True)
    assert motion.contacts
    lost = ~np.isfinite(motion.T_world_root).all(axis=(1, 2))
    np.testing.assert_array_equal(np.flatnonzero(lost), np.arange(50, 60))


@pytest.mark.parametrize("frames", [1, 2, 3, 7])
def test_a_few_frames_are_no_trouble(frames):
    skeleton, take = posed.record(motion="still", seconds=1.0)
    motion = marey.solve_pose(
        skeleton, take.cut(0, frames), method="gauss_newton", contacts=True
    )
    assert motion.n_frames == frames


def test_unevenly_spaced_frames_are_refused():
    _, motion, _ = solved()
    with pytest.raises(marey.DataError, match="one rate"):
        find_ground_contacts(motion.at(np.array([0.1, 0.5, 0.6])))


def test_points_are_ends_or_markers_of_the_outermost_bodies():
    _, motion, _ = solved()
    names = set(find_contact_points(motion).names)
    assert set(FEET) <= names
    assert not names & {"Hips", "Spine", "LeftUpperLeg", "LeftLowerLeg"}


def test_a_solution_has_its_contacts_when_asked(tmp_path, capsys):
    """In Python and on the command line; sensors on top of feet have no sole."""
    take = synth.human().record(
        "walk", seconds=3.0, rate=60.0, sensors=True, markers="none", noise=1e-3
    )
    solution = marey.solve(take, options=SolveOptions(contacts=True))
    reported = {finding.code: finding.value for finding in solution.report.findings}
    spans = planted_spans(solution.motion.contacts)
    assert reported["contact-plants"] == sum(map(len, spans.values())) > 3
    assert reported["contact-skate"] < 2e-3
    assert "contact-depth" not in reported
    marey.write(take, tmp_path / "walk.npz")
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(tmp_path / "walk.npz"), "--contacts", "--json"])
    assert stop.value.code == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert "contact-plants" in {finding["code"] for finding in found}
