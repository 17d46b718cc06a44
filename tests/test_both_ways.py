"""Poses of takes do not depend on the direction of time."""

import naive
import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.both_ways import split_limbs
from marey.pose.gauss_newton import directions
from marey.pose.limb_choice_kernel import choose_solutions
from marey.take import Take

DAMAGE = {"gaps": 0.2, "gross": 0.01, "swaps": 2, "noise": 2e-3, "soft_tissue": 5e-3}


def solve(skeleton, take, **options):
    return marey.solve_pose(skeleton, take, method="gauss_newton", **options)


def play_backwards(take):
    return Take(
        rate=take.rate,
        points=take.points[::-1].copy(),
        labels=take.labels,
        T_world_sensor=take.T_world_sensor[::-1].copy(),
        sensor_names=take.sensor_names,
    )


def positions(motion):
    return motion.T_world_joint()[..., :3, 3]


@pytest.mark.parametrize(("method", "atol"), [("gauss_newton", 1e-9), ("bfgs", 2e-3)])
@pytest.mark.parametrize("sensors", [False, True])
@pytest.mark.parametrize(
    "name", ["human", pytest.param("quadruped", marks=pytest.mark.slow)]
)
def test_the_direction_of_time_does_not_matter(name, sensors, method, atol):
    """With gaps, gross errors, swapped labels and soft tissue.

    The inverse Hessian of BFGS carries over from frame to frame, and what nothing
    determines moves by it a little.
    """
    figure, markers = {
        "human": (synth.human(seed=2), "sparse41"),
        "quadruped": (synth.quadruped(), 4),
    }[name]
    skeleton, take = posed.record(
        figure, markers=markers, seconds=2.0, sensors=sensors, **DAMAGE
    )
    forward, backward = (
        marey.solve_pose(skeleton, t, method=method)
        for t in (take, play_backwards(take))
    )
    np.testing.assert_allclose(positions(backward)[::-1], positions(forward), atol=atol)


def test_a_limb_that_one_direction_loses_is_found():
    """A fast exercise at 30 Hz: tracked one way, limbs leave their markers."""
    skeleton, take = posed.record(
        motion="exercise", rate=30.0, seconds=3.0, noise=1e-3, soft_tissue=5e-3
    )
    lost = posed.joint_errors(solve(skeleton, take, both_ways=False), take)
    found = posed.joint_errors(solve(skeleton, take), take)
    assert lost.max() > 1.0
    assert found.max() < 0.02


def test_an_arm_of_two_markers_that_both_directions_lose_is_found():
    """One marker on the elbow, one on the wrist: far off, each looks like an error."""
    take = synth.human(seed=0).record(
        "exercise", rate=50.0, seconds=5.0, markers="set53", noise=5e-4
    )
    others = ("UPA", "ELI", "FRM", "WRB", "FIN", "PIN")
    kept = [i for i, label in enumerate(take.labels) if label[1:] not in others]
    fewer = Take(
        rate=take.rate,
        points=take.points[:, kept],
        labels=tuple(take.labels[i] for i in kept),
    )
    solution = marey.solve(fewer, whole=False)
    assert "joint-lost" not in {f.code for f in solution.report.findings}


def test_markers_that_skin_moves_far_are_not_dropped_together(monkeypatch):
    """At its proper scale the loss is less without most markers of a bone."""
    performer = synth.human(seed=11)
    take = performer.record(
        "exercise", rate=50.0, seconds=4.0, markers="set53", soft_tissue=0.03, seed=11
    )
    true = positions(take.truth.motion)

    def off_frames():
        """Return in how many frames markers of a joint are left, and its rms error."""
        motion, findings = fit_pose(take.true_skeleton, take, method="gauss_newton")
        lost = sum(f.value for f in findings if f.code == "joint-lost")
        return lost, np.sqrt(np.mean((positions(motion) - true) ** 2))

    lost, error = off_frames()
    monkeypatch.setattr(directions, "_regain_markers", lambda *_: None)
    lost_before, error_before = off_frames()
    assert lost < 0.9 * lost_before
    assert error < error_before


def test_a_gap_in_a_leg_stays_in_the_leg():
    """Other joints, and the leg before and after, keep to their poses."""
    skeleton, take = posed.record(motion="kick_punch", seconds=3.0, noise=2e-3)
    leg = ("LeftLowerLeg", "LeftFoot", "LeftToes")
    markers = posed.markers_on(take, skeleton, *leg)
    gone = posed.hide_markers(take, np.arange(100, 180)[:, None], markers)
    apart = np.linalg.norm(
        positions(solve(skeleton, gone)) - positions(solve(skeleton, take)), axis=-1
    )
    others = [j for j, name in enumerate(skeleton.names) if not name.startswith("Left")]
    assert apart[np.r_[0:100, 180:300]].max() < 1e-3
    assert apart[:, others].max() < 1e-3


@pytest.mark.parametrize("first", [0, 60, 140])
def test_an_unseen_limb_is_joined_to_the_ends_of_its_gap(first):
    """No step at its ends is larger than the steps of the limb that is seen."""
    skeleton, take = posed.record(motion="walk", seconds=2.0)
    arm = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    gone = posed.hide_markers(take, np.arange(first, first + 60)[:, None], arm)
    motion = solve(skeleton, gone)
    largest = posed.rotation_steps(take.truth.motion).max()
    assert posed.rotation_steps(motion).max() < 1.5 * largest


def test_limbs_are_chains_between_branchings():
    #      0 - 1 - 2 - 3 - 4
    #              2 - 5 - 6 - 7,  6 - 8,   0 - 9
    parent = np.array([-1, 0, 1, 2, 3, 2, 5, 6, 6, 0])
    limb, levels = split_limbs(parent)
    assert [list(np.flatnonzero(limb == limb[i])) for i in (0, 1, 3, 5, 7, 8, 9)] == [
        [0], [1, 2], [3, 4], [5, 6], [7], [8], [9],
    ]  # fmt: skip
    assert levels == [[0], [1, 9], [3, 5], [7, 8]]


def test_the_chosen_sequence_is_the_cheapest_of_all(rng):
    """Agreement with the naive version, which tries every sequence."""
    n_solutions, n_frames, n = 2, 7, 4
    limb = np.array([0, 0, 1, 1])
    root = rng.normal(scale=0.1, size=(n_solutions, n_frames, 3))
    q = geometry.quat_exp(0.3 * rng.normal(size=(n_solutions, n_frames, n, 3)))
    cost = rng.uniform(0.0, 5.0, (n_solutions, n_frames))
    prior = rng.uniform(1.0, 20.0, n + 1)
    for number in (0, 1):
        choice = np.zeros(n_frames, dtype=np.int64)
        choose_solutions(number, limb, cost, (root, q), prior, choice)
        nodes = np.flatnonzero(limb == number)
        parts = [(prior[i + 1], q[:, :, i]) for i in nodes]
        parts += [(prior[0], root)] if number == 0 else []
        assert tuple(choice) == naive.cheapest_sequence(cost, parts)
