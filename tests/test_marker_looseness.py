"""Looseness of joints between bodies of markers."""

from dataclasses import replace

import naive
import numpy as np
from joint_samples import joined_poses, marker_bodies

from marey.joints.marker_looseness import measure_looseness

PAIR = np.array([[0, 1]])


def two_bodies(rng, noise=1e-3):
    bodies = marker_bodies(joined_poses(rng, 120), rng, noise)
    marker_noise = np.full(len(bodies.marker_body), max(noise, 1e-3))
    return replace(bodies, marker_noise=marker_noise)


def test_looseness_is_the_geometric_mean_of_naive_fits_in_both_bodies(rng):
    bodies = two_bodies(rng)
    points, T = bodies.take.points, bodies.T_world_body
    distance = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    distance = distance.mean(axis=0)
    usual = np.median(np.sort(distance, axis=1)[:, 4])
    first, second = range(5), range(5, 10)
    expected = [
        naive.slack(points, T[:, body], own, others, 1e-3, usual)
        for body, own, others in ((0, first, second), (1, second, first))
    ]
    looseness, spacing = measure_looseness([bodies], PAIR)
    np.testing.assert_allclose(looseness[0], np.sqrt(np.prod(expected)), rtol=1e-9)
    np.testing.assert_allclose(spacing[0], distance[:5, 5:].min() / usual, rtol=1e-12)


def test_joints_are_as_loose_as_the_noise_and_unconnected_bodies_looser(rng):
    joined = two_bodies(rng)
    apart = np.stack(
        [joined_poses(rng, 120)[:, 0], joined_poses(rng, 120)[:, 1]], axis=1
    )
    unconnected = marker_bodies(apart, rng, 1e-3)
    unconnected = replace(unconnected, marker_noise=joined.marker_noise)
    assert measure_looseness([joined], PAIR)[0][0] < 1.5
    assert measure_looseness([unconnected], PAIR)[0][0] > 10.0


def test_repeated_takes_and_occlusions_hardly_change_the_looseness(rng):
    bodies = two_bodies(rng)
    once, twice = (measure_looseness([bodies] * n, PAIR) for n in (1, 2))
    # The prior of the centre has half the weight with twice the frames.
    np.testing.assert_allclose(twice, once, rtol=1e-3)
    points = bodies.take.points.copy()
    points[::7, 2] = np.nan
    occluded = replace(bodies, take=replace(bodies.take, points=points))
    np.testing.assert_allclose(
        measure_looseness([occluded], PAIR)[0], once[0], rtol=0.1
    )


def test_looseness_is_unknown_for_markers_never_seen_together(rng):
    bodies = two_bodies(rng)
    points = bodies.take.points.copy()
    points[:, 5:] = np.nan
    occluded = replace(bodies, take=replace(bodies.take, points=points))
    looseness, spacing = measure_looseness([occluded], PAIR)
    assert np.isnan(looseness[0])
    assert np.isnan(spacing[0])
