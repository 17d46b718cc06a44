"""The ground under a figure on springs: it bears, rubs and never draws."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey.errors import OptionError
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.contact.ground_contacts import find_ground_contacts, reconcile_anchors
from marey.pose.options import PhysicsOptions
from marey.pose.physics import GroundPlane, Hold, fit
from marey.pose.physics.equilibrium import GROUND_STIFFNESS_RATIO
from marey.pose.physics.simulation import Simulation
from marey.pose.physics.soles import no_soles
from marey.pose.physics.springs import build_spring_system
from marey.skeleton import Skeleton

K = PhysicsOptions().stiffness
BOTH = ("direct", "simulation")
UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", seconds=1.2, noise=2e-3)


def apart(one, two):
    """The largest distance of any joint between two motions, in metres."""
    off = (one.T_world_joint() - two.T_world_joint())[..., :3, 3]
    return np.linalg.norm(off, axis=-1).max()


def soles_of(skeleton, take, motion, **options):
    """Heights above the ground of all points under the feet."""
    scene = build_spring_system(skeleton, take, PhysicsOptions(**options))
    soles = scene.soles
    node = scene.nodes.node_of_joint
    joint = [int(np.flatnonzero(node == n)[0]) for n in soles.node]
    place = soles.offset - scene.nodes.joint_position[joint]
    at = geometry.apply(motion.T_world_joint()[:, joint], place)
    return at @ soles.normal - soles.ground_height


def box(frames=30, low=0.01, rate=100.0):
    """A box on four corners, recorded still and too low by so many metres."""
    corners = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.05, 0.05)])
    top = corners * 0.8 + [0.0, 0.0, 0.15]
    top[0, 2] = 0.2
    skeleton = Skeleton(
        names=("box", "A", "B", "C", "D"),
        parent=np.array([-1, 0, 0, 0, 0]),
        offset=np.concatenate([np.zeros((1, 3)), corners]),
        kind=("root", "fixed", "fixed", "fixed", "fixed"),
        marker_labels=("1", "2", "3", "4"),
        marker_joint=np.zeros(4, dtype=np.int64),
        marker_offset=top,
    )
    points = np.repeat(top[None] - [0.0, 0.0, low], frames, axis=0)
    return skeleton, marey.Take(points=points, labels=("1", "2", "3", "4"), rate=rate)


# --- it bears -------------------------------------------------------------------------


@pytest.mark.parametrize("settle", BOTH)
def test_a_figure_pushed_into_the_ground_rises_to_it(walk, settle):
    skeleton, take = walk
    take = posed.move_world(take.cut(0, 12), geometry.transform(np.eye(3), -0.02 * UP))
    free = fit.fit_physics(skeleton, take, settle=settle)
    borne = fit.fit_physics(
        skeleton, take, settle=settle, ground=GroundPlane(), friction=0.0
    )
    assert soles_of(skeleton, take, free.motion, ground=GroundPlane()).min() < -0.018
    assert soles_of(skeleton, take, borne.motion, ground=GroundPlane()).min() > -2e-4
    assert not borne.not_converged.any()


@pytest.mark.parametrize("settle", BOTH)
def test_the_ground_never_draws_down(walk, settle):
    """Above it, nothing changes at all."""
    skeleton, take = walk
    take = posed.move_world(take.cut(0, 12), geometry.transform(np.eye(3), 0.05 * UP))
    free = fit.fit_physics(skeleton, take, settle=settle)
    there = fit.fit_physics(
        skeleton, take, settle=settle, ground=GroundPlane(), friction=0.0
    )
    assert apart(free.motion, there.motion) < 2e-6


def test_a_slope_bears_along_its_normal():
    """Without friction a box slides down to where its markers draw it along."""
    skeleton, take = box(low=0.0)
    floor = GroundPlane(height=0.01, slope=(0.1, 0.0))
    normal = np.array([-0.1, 0.0, 1.0]) / np.sqrt(1.01)
    found = fit.fit_physics(
        skeleton, take, settle="simulation", friction=0.0, ground=floor
    )
    corners = found.motion.T_world_joint()[-1, 1:, :3, 3]
    high = corners @ normal - 0.01 * normal[2]
    np.testing.assert_allclose(high, 0.0, atol=1e-4)
    force = K * (take.points[-1] - found.motion.marker_points()[-1]).sum(axis=0)
    np.testing.assert_allclose(np.cross(force, normal), 0.0, atol=0.1)
    assert force @ normal < -10.0


def turned(motion, joint, vector):
    """The motion with a joint turned, in its parent's frame."""
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    turn = np.broadcast_to(geometry.quat_exp(np.asarray(vector)), (len(wxyz), 4))
    wxyz[:, joint] = geometry.quat_multiply(turn, wxyz[:, joint])
    T[:, :3, :3] = geometry.matrix_from_quat(wxyz[:, 0])
    return replace(motion, wxyz=wxyz, T_world_root=T)


def test_no_small_turn_lowers_the_energy_of_springs_ground_and_holds(walk):
    """Term by term as it is written: feet pressed into the ground, hand beside hip."""
    skeleton, take = walk
    take = posed.move_world(take.cut(0, 4), geometry.transform(np.eye(3), -0.015 * UP))
    hand, T = skeleton.index("LeftHand"), take.truth.motion.T_world_joint()
    there = geometry.apply(geometry.inverse(T[2, 0]), T[2, hand, :3, 3]) + 0.02
    hold = Hold(joint="LeftHand", target=there, target_joint="Hips", strength=200.0)
    options = {"ground": GroundPlane(), "friction": 0.0, "limits": False}
    found = fit.fit_physics(skeleton, take, holds=(hold,), **options).motion

    def energy(motion):
        T = motion.T_world_joint()
        gap = T[:, hand, :3, 3] - geometry.apply(T[:, 0], hold.target)
        deep = np.minimum(soles_of(skeleton, take, motion, **options), 0.0)
        springs = np.sum((motion.marker_points() - take.points) ** 2, axis=(1, 2))
        springs += hold.strength * np.sum(gap**2, axis=1)
        return 0.5 * K * (springs + GROUND_STIFFNESS_RATIO * np.sum(deep**2, axis=1))

    least, high = energy(found), soles_of(skeleton, take, found, **options)
    assert (high < -1e-6).any(axis=1).all()
    # A sole that just leaves the ground makes an edge in the energy.
    smooth = (np.abs(high) > 3e-6).all(axis=1)
    assert smooth.sum() > 1
    moving = [j for j, kind in enumerate(skeleton.kind) if kind != "fixed"]
    for joint in moving:
        for axis in np.eye(3):
            up, down = (energy(turned(found, joint, s * axis)) for s in (1e-5, -1e-5))
            assert (np.minimum(up, down) > least).all()
            # Slope over curve: how far the least energy still is, in radians.
            away = (up - down) / (up + down - 2 * least) * 5e-6
            assert np.abs(away[smooth]).max() < 2e-6


def test_both_ways_agree_on_ground_and_plants(walk):
    skeleton, take = walk
    take = take.cut(0, 40)
    direct, simulated = (
        fit.fit_physics(skeleton, take, settle=settle, ground="found")
        for settle in BOTH
    )
    assert apart(direct.motion, simulated.motion) < 5e-5
    assert direct.steps.max() < 20
    assert not simulated.not_converged.any()


def test_feet_stand_still_and_on_the_ground(walk):
    skeleton, take = walk
    free, held = (
        fit.fit_physics(skeleton, take, ground=ground).motion
        for ground in ("none", "found")
    )
    footing = reconcile_anchors(free, find_ground_contacts(free, take))
    assert footing.skate(free) > 0.2
    assert footing.skate(held) < 0.01
    assert footing.penetration(free) > 2e-3
    assert footing.penetration(held) < 1e-4
    rms = [np.sqrt(np.mean(posed.joint_errors(m, take) ** 2)) for m in (free, held)]
    assert rms[1] < rms[0]


def test_points_are_spread_along_and_across_a_sole(walk):
    """Of a foot from heel to toe: as long as it is, and two fifths as broad."""
    skeleton, take = walk
    scene = build_spring_system(skeleton, take, PhysicsOptions(ground="found"))
    foot = scene.soles.node == scene.nodes.node_of_joint[skeleton.index("LeftFoot")]
    place = scene.soles.offset[foot]
    heel, toes = (skeleton.offset[skeleton.index(f"Left{n}")] for n in ("Heel", "Toes"))
    size = np.linalg.norm(toes - heel)
    spread = np.linalg.svd(place - place.mean(axis=0))[1]
    assert len(place) == 8
    assert spread[2] < 1e-9
    assert np.ptp(place @ (toes - heel)) / size == pytest.approx(size, rel=1e-9)
    assert np.ptp(place[:, 1]) == pytest.approx(0.4 * size, rel=0.05)
    assert scene.soles.share[foot].sum() == pytest.approx(1.0)


# --- it rubs --------------------------------------------------------------------------

MU, STRENGTH = 0.5, 2.0
PRESSED = 4 * K * 0.01
"""Newtons with which the four springs of the box press it down."""


def drawn(newtons, mu=MU):
    """How far a box is that is drawn aside, by more and more up to so many newtons.

    All at once it would be thrown further: what has slid stays where it stops.
    """
    skeleton, take = box(frames=45)
    ropes = [
        Hold(
            joint="box",
            target=np.array(
                [min(frame / 40.0, 1.0) * newtons / (STRENGTH * K), 0.0, 0.0]
            ),
            start=(frame - 0.5) / take.rate,
            end=(frame + 0.5) / take.rate,
            strength=STRENGTH,
        )
        for frame in range(45)
    ]
    found = fit.fit_physics(
        skeleton,
        take,
        settle="simulation",
        friction=mu,
        ground=GroundPlane(),
        holds=tuple(ropes),
    )
    return found.motion.T_world_root[:, :3, 3]


def test_a_planted_foot_does_not_slide_below_what_friction_holds():
    place = drawn(0.9 * MU * PRESSED)
    np.testing.assert_allclose(place[-1], 0.0, atol=1e-4)


@pytest.mark.parametrize("mu", [0.1, MU, 1.2])
def test_it_slides_above_as_far_as_the_excess_draws_it(mu):
    """Coulomb's law: a sliding sole is held back by mu times what presses it down."""
    excess = 0.5 * MU * PRESSED
    place = drawn(mu * PRESSED + excess, mu)
    far = excess / ((4.0 + STRENGTH) * K)
    assert place[-1, 0] == pytest.approx(far, rel=0.03)
    np.testing.assert_allclose(place[-1, 1:], 0.0, atol=1e-4)


def test_what_is_not_planted_is_not_held():
    """A foot in the air, or one that slides in the recording, feels no friction."""
    skeleton, take = posed.record(motion="walk", seconds=1.2)
    scene = build_spring_system(skeleton, take, PhysicsOptions(ground="found"))
    left = scene.soles.node == scene.nodes.node_of_joint[skeleton.index("LeftFoot")]
    planted = scene.soles.is_planted[:, left].any(axis=1)
    true = np.zeros(take.n_frames, dtype=bool)
    for contact in take.truth.motion.contacts:
        if contact.joint.startswith("Left"):
            true |= (take.times >= contact.start) & (take.times <= contact.end)
    assert (planted == true).mean() > 0.95


def test_nothing_chatters_at_rest():
    """A box pressed on the ground turns back a few times at most, then not at all."""
    skeleton, take = box()
    options = PhysicsOptions(settle="simulation", ground=GroundPlane(), friction=MU)
    scene = build_spring_system(skeleton, take, options)
    run, speeds = Simulation(scene), []
    apply = run.apply_forces

    def noted(frame, damping):
        speeds.append(run.body.data.qvel[:3].copy())
        return apply(frame, damping)

    run.apply_forces = noted  # type: ignore[method-assign]
    run.set_pose(scene.initial.root[0], scene.initial.q[0])
    turns = []
    for frame in range(3):
        speeds.clear()
        run.run_frame(frame)
        moving = np.array(speeds)[:, 2]
        moving = moving[np.abs(moving) > options.rest_speed]
        turns.append(int((np.diff(np.sign(moving)) != 0).sum()))
    assert turns[0] <= 6
    assert turns[1:] == [0, 0]


def test_under_its_weight_a_walker_keeps_its_feet_by_friction_alone(walk):
    """As printed: no anchors, only what presses the soles down."""
    skeleton, take = walk
    take = take.cut(0, 60)
    slide = []
    for friction in (0.0, 0.8):
        found = fit.fit_physics(
            skeleton,
            take,
            settle="simulation",
            gravity=9.81,
            ground="found",
            friction=friction,
        )
        slide.append(find_ground_contacts(found.motion, take).skate(found.motion))
    assert slide[1] < 0.3 * slide[0]


# --- what can go wrong ----------------------------------------------------------------


def test_friction_needs_time(walk):
    with pytest.raises(OptionError, match="friction"):
        fit.fit_physics(*walk, ground="found", friction=0.5)


@pytest.mark.parametrize("option", [{"ground": "lava"}, {"friction": -0.1}])
def test_options_out_of_range_are_refused(walk, option):
    (name,) = option
    with pytest.raises(OptionError, match=name):
        fit.fit_physics(*walk, settle="simulation", **option)


def test_a_floor_is_finite():
    with pytest.raises(OptionError, match="ground plane"):
        GroundPlane(height=np.nan)


def test_a_figure_that_stands_on_nothing_is_told_so():
    skeleton, take = posed.record(motion="swing", seconds=1.0)
    motion, findings = fit_pose(skeleton, take, method="physics", ground="found")
    assert "contact-none" in {finding.code for finding in findings}
    free = marey.solve_pose(skeleton, take, method="physics")
    assert apart(motion, free) == 0.0
    assert not len(no_soles(3).node)
