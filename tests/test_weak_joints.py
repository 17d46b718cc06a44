"""Rotations that markers hardly determine do not step from frame to frame."""

from dataclasses import replace

import naive
import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose.gauss_newton import directions
from marey.pose.gauss_newton.midpoints_kernel import write_midpoints
from marey.take import Take

FAR = np.radians(20.0)


def fast_arms(gone=(), **options):
    """Swinging arms at 50 Hz, as fast as a serve: recorded at 8 Hz, played at 50.

    Returns the true skeleton and motion, whose joints rotate by up to 38 degrees from
    frame to frame, and the take without some markers of both sides.
    """
    slow = synth.human(seed=options["seed"]).record(
        "swing", rate=8.0, seconds=10.0, **options
    )
    kept = [k for k, name in enumerate(slow.labels) if name[1:] not in gone]
    take = Take(
        rate=50.0,
        points=slow.points[:, kept],
        labels=tuple(slow.labels[k] for k in kept),
    )
    return slow.true_skeleton, slow.truth.motion, take


def loose_arms(seed):
    """The same with loose skin, and one marker each on elbow, wrist and hand."""
    return fast_arms(
        ("UPA", "FRM", "WRB"),
        markers="sparse41",
        noise=1e-3,
        soft_tissue=8e-3,
        seed=seed,
    )


def solve(skeleton, take):
    return marey.solve_pose(skeleton, take, method="gauss_newton")


@pytest.mark.parametrize("seed", [1, 2])
def test_rotations_do_not_step_where_the_arm_does_not(seed, monkeypatch):
    """Steps are nearer to the true ones, fast ones too, and so are rotations."""
    skeleton, truth, take = loose_arms(seed)
    true = posed.rotation_steps(truth)

    def errors():
        motion = solve(skeleton, take)
        steps = posed.rotation_steps(motion)
        way = geometry.quat_multiply(geometry.quat_conjugate(motion.wxyz), truth.wxyz)
        off = np.linalg.norm(geometry.quat_log(way), axis=-1)
        n_false = np.sum((steps > FAR) & (true < 0.5 * FAR))
        rms = [
            np.sqrt(np.mean(x**2)) for x in (steps - true, (steps - true)[true > FAR])
        ]
        return n_false, np.array([*rms, np.sqrt(np.mean(off**2))])

    n_false, rms = errors()
    monkeypatch.setattr(directions, "smooth_weak_joints", lambda *_: None)
    n_false_before, rms_before = errors()
    assert true.max() > 1.5 * FAR
    assert n_false_before > 2
    assert n_false == 0
    assert (rms < rms_before).all()


def test_the_direction_of_time_does_not_matter():
    skeleton, _, take = loose_arms(1)
    backwards = replace(take, points=take.points[::-1].copy())
    one, other = (solve(skeleton, t).T_world_joint() for t in (take, backwards))
    np.testing.assert_allclose(other[::-1], one, atol=1e-9)


def test_fast_rotations_that_markers_determine_stay():
    """Exact markers give exact poses, however fast the arm is."""
    skeleton, truth, take = fast_arms(markers="set53", noise=0.0, seed=1)
    off = solve(skeleton, take).T_world_joint() - truth.T_world_joint()
    assert posed.rotation_steps(truth).max() > 1.5 * FAR
    assert np.abs(off).max() < 1e-5


def test_midpoints_are_those_of_the_naive_version(rng):
    n_frames, n = 6, 3
    q = geometry.quat_exp(0.2 * rng.normal(size=(n_frames, n, 3)))
    q *= rng.choice([-1.0, 1.0], (n_frames, n, 1))
    information = rng.uniform(0.0, 2.0, (n_frames, n + 1))
    prior, walk = rng.uniform(0.5, 1.5, n + 1), rng.uniform(5.0, 50.0, n + 1)
    path, is_far = np.empty_like(q), np.zeros(n_frames, dtype=bool)
    write_midpoints(q, information, prior, walk, path, is_far)
    expected = naive.midpoints(q, information < prior, walk)
    assert sorted(expected) == np.flatnonzero(is_far).tolist()
    for frame, rotations in expected.items():
        same = np.abs(np.sum(path[frame] * rotations, axis=-1))
        np.testing.assert_allclose(same, 1.0, atol=1e-12)
