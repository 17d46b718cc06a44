"""Contact with the ground: plants that are known are found, and feet held on them."""

import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.numerics import geometry
from marey.pipeline import SolveOptions
from marey.pose import fit_pose
from marey.pose.contact.footing import find_footing, hold, with_contacts
from marey.pose.contact.goals import floor_of, settled
from marey.pose.contact.ground import Ground, ground_of, on_ground
from marey.pose.contact.hmm import likeliest, noise_of
from marey.pose.contact.inverse_kinematics import Wishes, held
from marey.pose.contact.points import Spots, spots_of
from marey.pose.contact.stance import Plant, plants_of

FEET = ("LeftHeel", "LeftToes", "RightHeel", "RightToes")
UP = np.array([0.0, 0.0, 1.0])
SKIN = {"noise": 2e-3, "soft_tissue": 5e-3, "gaps": 0.1}
CASES = {"1 mm": {"noise": 1e-3}, "2 mm": {"noise": 2e-3}, "skin and gaps": SKIN}
SEEDS = (0, 1, 2)


@cache
def walked(case="", seed=0, motion="walk"):
    """A recording, its motion as markers alone give it, and where that stands."""
    options = CASES.get(case, {})
    skeleton, take = posed.recorded(motion=motion, seconds=6.0, seed=seed, **options)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    return take, motion, find_footing(motion, take)


def true_flags(take, names):
    """Frames in which points are planted in truth."""
    motion = take.truth.motion
    flags = np.zeros((motion.n_frames, len(names)), dtype=bool)
    for contact in motion.contacts:
        during = (motion.times >= contact.start) & (motion.times <= contact.end)
        flags[during, names.index(contact.joint)] = True
    return flags


def found_flags(footing, n_frames, names):
    flags = np.zeros((n_frames, len(names)), dtype=bool)
    for plant in footing.plants:
        flags[plant.frames, names.index(footing.spots.names[plant.spot])] = True
    return flags


def scores(pairs):
    """Precision and recall of frames, over several (found, true)."""
    hits = sum((found & true).sum() for found, true in pairs)
    return tuple(
        hits / sum(flags.sum() for flags in side) for side in zip(*pairs, strict=True)
    )


def bends(motion):
    """How much every joint's way changes from frame to frame, in metres."""
    place = motion.T_world_joint()[..., :3, 3]
    return np.linalg.norm(np.diff(place, n=2, axis=0), axis=-1)


def rms(values):
    return np.sqrt(np.mean(values**2))


# --- the parts ------------------------------------------------------------------------


def test_the_likeliest_states_are_the_best_of_all_ways(rng):
    gain, cost = rng.normal(scale=2.0, size=(9, 5)), 1.7
    ways = np.array(list(product([False, True], repeat=9)))
    changes = (ways[:, 1:] != ways[:, :-1]).sum(axis=1)
    worth = ways @ gain - cost * changes[:, None]
    best = ways[worth.argmax(axis=0)].T
    np.testing.assert_array_equal(likeliest(gain, cost), best)


def test_noise_is_measured_on_points_that_stand_and_move(rng):
    time = np.arange(1000) / 100.0
    path = 0.5 * np.clip(np.sin(3.0 * time), 0.0, None) ** 3
    paths = np.repeat(path[:, None, None], 3, axis=-1)
    noisy = paths + rng.normal(scale=2e-3, size=paths.shape)
    assert noise_of(paths)[0] < 1e-5
    assert noise_of(noisy)[0] == pytest.approx(2e-3, rel=0.1)


def plants_on(slope, heights, places):
    """Plants of each point at each place of a plane."""
    return [
        Plant(spot, 10.0 * k, 10.0 * k + 9.0, np.array([x, y, high + x * slope]))
        for k, (x, y) in enumerate(places)
        for spot, high in enumerate(heights)
    ]


def test_the_ground_is_the_plane_of_the_plants_whatever_stands_on_a_box(rng):
    places = rng.uniform(-3.0, 3.0, (12, 2))
    plants = plants_on(0.1, (0.03, 0.07), places)
    box = replace(plants[5], anchor=plants[5].anchor + 0.4 * UP)
    ground = ground_of([*plants[:5], box, *plants[6:]], 2)
    np.testing.assert_allclose(ground.slope, [0.1, 0.0], atol=1e-3)
    np.testing.assert_allclose(ground.height, [0.03, 0.07], atol=1e-3)
    assert ground.off(box) == pytest.approx(0.4, abs=2e-3)


def test_feet_in_a_line_are_on_level_ground():
    """Across the line nothing tells, so the ground is level there."""
    places = [(0.7 * k, 0.05 * (-1) ** k + 0.002 * k) for k in range(6)]
    plants = plants_on(0.0, (0.03,), places)
    crooked = [
        replace(p, anchor=p.anchor + 0.002 * (-1) ** k * UP)
        for k, p in enumerate(plants)
    ]
    assert ground_of(crooked, 1).angle < np.radians(0.5)


def test_a_box_and_the_floor_beside_it_are_no_slope():
    floor = plants_on(0.0, (0.03, 0.05), [(0.0, 0.0), (0.1, 0.3)])
    box = plants_on(0.0, (0.33, 0.35), [(-1.0, 0.0), (-1.0, 0.3)])
    ground = ground_of([*floor, *box, *floor], 2)
    assert ground.angle < np.radians(0.5)
    assert ground.off(box[0]) == pytest.approx(0.3, abs=3e-3)


def test_a_foot_held_in_the_air_is_no_plant_but_one_on_a_step_is():
    """Left stands at 0; right at 0, then lifted; at the end it has climbed a step."""
    left, right = np.zeros((2, 100, 3))
    right[:, 1] = 0.2
    right[40:60, 2] = 0.17
    step = [0.3, 0.0, 0.17]
    left[70:] += step
    right[80:] += step
    plants = [
        Plant(0, 0.0, 65.0, left[0]),
        Plant(1, 0.0, 35.0, right[0]),
        Plant(1, 42.0, 58.0, right[50]),
        Plant(0, 72.0, 99.0, left[-1]),
        Plant(1, 82.0, 99.0, right[-1]),
    ]
    paths = np.stack([left, right], axis=1)
    kept, _ = on_ground(plants, paths, paths[..., 2].min(axis=1), tall=1.7)
    assert [plant.start for plant in kept] == [0.0, 0.0, 72.0, 82.0]


def test_anchors_of_one_foot_are_as_far_apart_as_it_is_long_and_on_the_ground():
    """Each gives way by half of what is too much; a third, on a step, stays up."""
    joint = np.zeros(2, dtype=np.int64)
    spots = Spots(joint, np.zeros((2, 3)), ("heel", "toe"), joint, joint == 0)
    heel, toe = np.array([0.0, 0.0, 0.002]), np.array([0.212, 0.0, -0.002])
    plants = [
        Plant(0, 0.0, 40.0, heel),
        Plant(1, 10.0, 60.0, toe),
        Plant(0, 100.0, 140.0, heel + 0.2 * UP),
    ]
    apart = np.array([[0.0, 0.2], [0.2, 0.0]])
    ground = Ground(np.zeros(2), np.zeros(2))
    one, two, step = (p.anchor for p in settled(spots, plants, ground, apart))
    np.testing.assert_allclose(one, [0.006, 0.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(two, [0.206, 0.0, 0.0], atol=1e-4)
    np.testing.assert_array_equal(step, plants[2].anchor)


def test_the_floor_is_lower_on_the_way_to_a_step_down():
    joint = np.zeros(2, dtype=np.int64)
    soles = np.array([True, False])
    spots = Spots(joint, np.zeros((2, 3)), ("toe", "marker"), joint, soles)
    plants = [Plant(0, 0.0, 10.0, np.zeros(3)), Plant(0, 30.0, 40.0, np.zeros(3))]
    plants += [Plant(0, 60.0, 70.0, -0.2 * UP), Plant(1, 0.0, 70.0, np.zeros(3))]
    floor = floor_of(spots, plants, Ground(np.zeros(2), np.zeros(2)), 80)
    np.testing.assert_array_equal(floor[:30, 0], 0.0)
    np.testing.assert_array_equal(floor[30:, 0], -0.2)
    assert (floor[:, 1] == -np.inf).all()


def test_a_plant_ends_where_the_point_creeps_away():
    """It stands for a second, then creeps on at 4 cm/s, too slow to be told moving."""
    time = np.arange(200) / 100.0
    path = np.zeros((200, 1, 3))
    path[:, 0, 0] = 0.04 * np.clip(time - 1.0, 0.0, None)
    state = np.ones((200, 1), dtype=bool)
    (plant,) = plants_of(state, path, np.ones((200, 1)), 100.0, 1.7)
    assert plant.start == 0.0
    assert 95.0 < plant.end < 115.0
    assert np.linalg.norm(plant.anchor) < 1e-4


@pytest.fixture
def jointed(rng):
    """A figure with joints of every kind, and two points on it."""
    skeleton = posed.every_kind(rng)
    root, wxyz = posed.any_pose(skeleton, rng)
    T = geometry.transform(geometry.matrix_from_quat(wxyz[0]), root)
    motion = marey.Motion(
        skeleton=skeleton, T_world_root=T[None], wxyz=wxyz[None], rate=100.0
    )
    joint, place = np.array([5, 6]), rng.normal(scale=0.1, size=(2, 3))
    sole = np.ones(2, dtype=bool)
    spots = Spots(joint, place, ("leaf", "other"), joint, sole)
    return motion, spots, spots.paths(motion.T_world_joint())


def wish(goal, share, floor=-np.inf):
    return Wishes(np.eye(3), goal, np.array([share]), np.full((1, 2), floor))


def test_points_reach_their_goals_and_joints_keep_their_kind(jointed, rng):
    motion, spots, paths = jointed
    goal = paths + rng.normal(scale=5e-3, size=paths.shape)
    done = held(motion, spots, wish(goal, [1.0, 1.0]))
    np.testing.assert_allclose(spots.paths(done.T_world_joint()), goal, atol=1e-6)
    back = geometry.quat_conjugate(motion.wxyz[0, 2])
    turn = geometry.quat_log(geometry.quat_multiply(back, done.wxyz[0, 2]))
    axis = motion.skeleton.axes[2, 0]
    np.testing.assert_allclose(np.cross(turn, axis), 0.0, atol=1e-12)
    np.testing.assert_allclose(done.wxyz[0, 4], motion.wxyz[0, 4], atol=1e-12)


def test_a_share_is_that_part_of_the_way(jointed):
    motion, spots, paths = jointed
    goal = paths + np.array([0.004, 0.0, 0.0])
    done = held(motion, spots, wish(goal, [0.25, 0.0]))
    moved = spots.paths(done.T_world_joint())[0, 0] - paths[0, 0]
    np.testing.assert_allclose(moved, [1e-3, 0.0, 0.0], atol=2e-5)


def test_no_other_way_to_the_goal_moves_the_joints_less(jointed, rng):
    """Every pose that is near and has the point at its goal has moved further."""
    motion, spots, paths = jointed
    goal = paths + np.array([0.004, -0.003, 0.002])
    done = held(motion, spots, wish(goal, [1.0, 0.0]))

    def cost(other):
        a, b = motion.T_world_joint()[0], other.T_world_joint()[0]
        turn = geometry.rotation_log(a[:, :3, :3].swapaxes(-1, -2) @ b[:, :3, :3])
        return np.sum((b - a)[:, :3, 3] ** 2) + 0.1**2 * np.sum(turn**2)

    least = cost(done)
    for _ in range(20):
        _, wxyz = posed.any_pose(motion.skeleton, rng, size=2e-3)
        moved = geometry.quat_multiply(done.wxyz[0], wxyz)
        moved[[2, 3, 6]] = done.wxyz[0, [2, 3, 6]]
        R = geometry.matrix_from_quat(moved[0])
        T = geometry.transform(R, done.T_world_root[0, :3, 3])
        other = replace(done, wxyz=moved[None], T_world_root=T[None])
        T[:3, 3] += (goal - spots.paths(other.T_world_joint()))[0, 0]
        other = replace(other, T_world_root=T[None])
        assert cost(other) > least


def test_points_underground_are_lifted_and_no_others(jointed):
    motion, spots, paths = jointed
    floor = paths[0, :, 2].min() + 0.01
    done = held(motion, spots, wish(paths, [0.0, 0.0], floor))
    after = spots.paths(done.T_world_joint())[0, :, 2]
    assert after.min() == pytest.approx(floor, abs=1e-6)
    same = held(motion, spots, wish(paths, [0.0, 0.0], floor - 0.02))
    np.testing.assert_array_equal(same.wxyz, motion.wxyz)


# --- walks with known plants ----------------------------------------------------------


def test_plants_of_an_exact_walk_are_its_true_ones():
    take, motion, footing = walked()
    assert set(footing.spots.names) == set(FEET)
    found = found_flags(footing, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.98
    assert np.abs(footing.ground.height).max() < 1e-6
    true = {c.joint: [] for c in take.truth.motion.contacts}
    for contact in take.truth.motion.contacts:
        true[contact.joint].append(contact.anchor)
    for plant in footing.plants:
        anchors = np.array(true[footing.spots.names[plant.spot]])
        assert np.linalg.norm(anchors - plant.anchor, axis=-1).min() < 1e-5


@pytest.mark.parametrize("seed", [0, 2])
def test_an_exact_walk_is_left_alone(seed):
    """In the second a heel has begun to rise when the recording ends."""
    _, motion, footing = walked(seed=seed)
    done, _ = hold(motion, footing)
    away = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(away, axis=-1).max() < 5e-5


@pytest.mark.parametrize("case", list(CASES))
def test_frames_of_contact_are_found(case):
    pairs = []
    for seed in SEEDS:
        take, motion, footing = walked(case, seed)
        assert set(footing.spots.names) == set(FEET)
        found = found_flags(footing, motion.n_frames, FEET)
        pairs.append((found, true_flags(take, FEET)))
        assert min(scores(pairs[-1:])) > 0.95
    precision, recall = scores(pairs)
    assert precision > 0.98
    assert recall > 0.96


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_feet_neither_slide_nor_sink_and_joints_are_no_worse(case, seed):
    take, motion, footing = walked(case, seed)
    done, firm = hold(motion, footing)
    assert footing.skate(motion) > 0.1
    assert firm.skate(done) < 5e-4
    assert firm.depth(motion) > 1e-3
    assert firm.depth(done) < 1e-4
    before, after = posed.off(motion, take), posed.off(done, take)
    assert rms(after) < rms(before)
    worse = np.sqrt((after**2).mean(axis=0)) - np.sqrt((before**2).mean(axis=0))
    assert worse.max() < 5e-4
    feet = [motion.skeleton.index(name) for name in FEET]
    assert rms(after[:, feet]) < 0.95 * rms(before[:, feet])


@pytest.mark.parametrize("case", list(CASES))
def test_nothing_pops_where_plants_begin_and_end(case):
    _, motion, footing = walked(case)
    done, _ = hold(motion, footing)
    assert bends(done).max() < 1.01 * bends(motion).max()
    feet = [motion.skeleton.index(name) for name in FEET]
    assert bends(done)[:, feet].max() < 1.1 * bends(motion)[:, feet].max()


def test_a_correction_comes_and_goes_little_by_little():
    """Every other plant is asked 2 cm aside of where it is."""
    _, motion, footing = walked()
    aside = np.array([0.0, 0.02, 0.0])
    plants = [
        replace(plant, anchor=plant.anchor + aside * (plant.start % 200.0 > 100.0))
        for plant in footing.plants
    ]
    done, _ = hold(motion, replace(footing, plants=tuple(plants)))
    added = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(added, axis=-1).max() > 0.019
    assert np.linalg.norm(np.diff(added, axis=0), axis=-1).max() < 0.006


def test_what_a_foot_does_unseen_breaks_no_plant():
    take, motion, _ = walked()
    joint, spot = motion.skeleton.index("LeftFoot"), motion.skeleton.index("LeftToes")
    (plant, *_) = [
        c for c in take.truth.motion.contacts if c.joint == "LeftToes" and c.start > 0.2
    ]
    first = round((plant.start + 0.2) * motion.rate)
    gap = np.arange(first, first + 12)
    wxyz = motion.wxyz.copy()
    lift = np.sin(np.pi * np.linspace(0.0, 1.0, len(gap)))
    kick = geometry.quat_exp(lift[:, None] * np.array([0.0, -0.6, 0.0]))
    wxyz[gap, joint] = geometry.quat_multiply(wxyz[gap, joint], kick)
    wild = replace(motion, wxyz=wxyz)
    mine = np.flatnonzero(take.truth.marker_joint == joint)
    points = take.points.copy()
    points[gap[0] : gap[-1] + 1, mine] = np.nan
    blind = replace(take, points=points)
    name = motion.skeleton.names[spot]
    inside, told = (
        found_flags(find_footing(wild, t), motion.n_frames, FEET)[:, FEET.index(name)]
        for t in (take, blind)
    )
    assert not inside[gap].all()
    assert told[gap].all()


def test_contacts_are_on_the_clock_of_the_take():
    take, _, _ = walked("1 mm")
    late = replace(take, start=7.5)
    skeleton = posed.worn(take.truth.skeleton, take)
    options = {"method": "gauss_newton", "contacts": True}
    one, two = (marey.solve_pose(skeleton, t, **options) for t in (take, late))
    assert {contact.joint for contact in one.contacts} == set(FEET)
    for a, b in zip(one.contacts, two.contacts, strict=True):
        assert (a.joint, a.start + 7.5, a.end + 7.5) == (
            b.joint,
            pytest.approx(b.start),
            pytest.approx(b.end),
        )
        assert a.anchor[2] == pytest.approx(0.0, abs=1e-3)


def test_turning_and_moving_the_world_turns_and_moves_the_plants():
    take, _, footing = walked("2 mm")
    R = geometry.rotation_exp(np.array([0.0, 0.0, 2.1]))
    T = geometry.transform(R, np.array([8.0, -5.0, 0.7]))
    skeleton = posed.worn(take.truth.skeleton, take)
    motion = marey.solve_pose(skeleton, posed.moved(take, T), method="gauss_newton")
    there = find_footing(motion, take)
    done, _ = hold(motion, there)
    here, _ = hold(walked("2 mm")[1], footing)
    for a, b in zip(footing.plants, there.plants, strict=True):
        assert (a.spot, a.start, a.end) == (b.spot, b.start, b.end)
        np.testing.assert_allclose(geometry.apply(T, a.anchor), b.anchor, atol=1e-6)
    np.testing.assert_allclose(done.wxyz[:, 1:], here.wxyz[:, 1:], atol=1e-5)


def test_a_walk_up_a_slope():
    take, _, _ = walked("2 mm")
    tilt = geometry.rotation_exp(np.array([0.03, -np.radians(8.0), 0.0]))
    T = geometry.transform(tilt, np.array([1.0, 2.0, 0.4]))
    skeleton = posed.worn(take.truth.skeleton, take)
    motion = marey.solve_pose(skeleton, posed.moved(take, T), method="gauss_newton")
    footing = find_footing(motion, take)
    found = found_flags(footing, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.95
    assert np.degrees(footing.ground.angle) == pytest.approx(8.0, abs=0.3)
    done, firm = hold(motion, footing)
    assert firm.skate(done) < 5e-4
    assert firm.depth(done) < 1e-4


@pytest.mark.parametrize("motion", ["kick_punch", "jump", "exercise", "circle"])
def test_other_motions(motion):
    take, solved, footing = walked("1 mm", motion=motion)
    assert set(footing.spots.names) == set(FEET)
    found = found_flags(footing, solved.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.97


def test_paws_and_their_plants():
    skeleton, take = posed.recorded(
        synth.quadruped(), motion="walk", markers=5, seconds=4.0, noise=1e-3
    )
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    footing = find_footing(motion, take)
    paws = tuple(f"{s}{p}" for s in ("Left", "Right") for p in ("Fingers", "Toes"))
    assert set(footing.spots.names) == set(paws)
    found = found_flags(footing, motion.n_frames, paws)
    assert min(scores([(found, true_flags(take, paws))])) > 0.97


@pytest.mark.parametrize("rate", [30.0, 240.0])
def test_rates(rate):
    skeleton, take = posed.recorded(motion="walk", seconds=4.0, rate=rate, noise=1e-3)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    footing = find_footing(motion, take)
    found = found_flags(footing, motion.n_frames, FEET)
    assert min(scores([(found, true_flags(take, FEET))])) > 0.95


# --- what is asked for, and what is told ----------------------------------------------


@pytest.mark.parametrize("method", ["gauss_newton", "bfgs", "playback"])
def test_every_method_can_hold_the_feet(method):
    sensors = {"sensors": True, "turn_noise": 2e-3, "noise": 1e-3}
    skeleton, take = posed.recorded(motion="walk", seconds=2.0, **sensors)
    loose = marey.solve_pose(skeleton, take, method=method)
    motion, findings = fit_pose(skeleton, take, method=method, contacts=True)
    assert not loose.contacts
    assert {contact.joint for contact in motion.contacts} == set(FEET)
    told = {finding.code: finding for finding in findings}
    assert told["contact-plants"].value == len(motion.contacts)
    assert told["contact-skate"].value < 5e-4
    assert told["contact-depth"].value < 1e-4
    assert rms(posed.off(motion, take)) < rms(posed.off(loose, take)) + 1e-4


def test_a_figure_that_stands_on_nothing_is_told_so():
    take, motion, _ = walked(motion="swing")
    done, findings = with_contacts(motion, take)
    assert [finding.code for finding in findings] == ["contact-none"]
    assert done.contacts == ()
    np.testing.assert_array_equal(done.wxyz, motion.wxyz)


def test_feet_without_soles_stand_by_their_markers():
    """Ends of bones that are above the markers do not touch the ground."""
    skeleton, take = posed.recorded(motion="walk", seconds=4.0, noise=1e-3)
    offset = skeleton.offset.copy()
    offset[[skeleton.index(name) for name in FEET], 2] = 0.0
    skeleton = replace(skeleton, offset=offset)
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    footing = find_footing(motion, take)
    assert set(footing.spots.names) == {"LeftFoot", "RightFoot"}
    assert not footing.spots.sole.any()
    done, findings = with_contacts(motion, take)
    codes = {finding.code: finding.value for finding in findings}
    assert "contact-depth" not in codes
    assert codes["contact-skate"] < 2e-3
    before, after = posed.off(motion, take), posed.off(done, take)
    skip = np.isin(skeleton.names, FEET)
    assert rms(after[:, ~skip]) < rms(before[:, ~skip]) + 1e-4


def test_frames_without_a_pose_stay_without(unchecked):
    skeleton, take = posed.recorded(
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
    skeleton, take = posed.recorded(motion="still", seconds=1.0)
    motion = marey.solve_pose(
        skeleton, take.cut(0, frames), method="gauss_newton", contacts=True
    )
    assert motion.n_frames == frames


def test_unevenly_spaced_frames_are_refused():
    _, motion, _ = walked()
    with pytest.raises(marey.DataError, match="one rate"):
        find_footing(motion.at(np.array([0.1, 0.5, 0.6])))


def test_points_are_ends_or_markers_of_the_outermost_bodies():
    _, motion, _ = walked()
    names = set(spots_of(motion).names)
    assert set(FEET) <= names
    assert not names & {"Hips", "Spine", "LeftUpperLeg", "LeftLowerLeg"}


def test_a_solution_has_its_contacts_when_asked(tmp_path, capsys):
    """Here and on the command line; sensors sit on top of feet, and tell no floor."""
    take = synth.human().record(
        "walk", seconds=3.0, rate=60.0, sensors=True, markers="none", noise=1e-3
    )
    solution = marey.solve(take, options=SolveOptions(contacts=True))
    told = {finding.code: finding.value for finding in solution.report.findings}
    assert told["contact-plants"] == len(solution.motion.contacts) > 3
    assert told["contact-skate"] < 2e-3
    assert "contact-depth" not in told
    marey.write(take, tmp_path / "walk.npz")
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(tmp_path / "walk.npz"), "--contacts", "--json"])
    assert stop.value.code == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert "contact-plants" in {finding["code"] for finding in found}
