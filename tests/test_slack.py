"""How well bodies of markers hang together."""

from dataclasses import replace

import naive
import numpy as np
from joint_samples import jointed, marker_bodies

from marey.joints.marker_looseness import slack_of

PAIR = np.array([[0, 1]])


def bodies_of(rng, noise=1e-3):
    bodies = marker_bodies(jointed(rng, 120), rng, noise)
    known = np.full(len(bodies.marker_body), max(noise, 1e-3))
    return replace(bodies, marker_noise=known)


def test_slack_is_that_of_the_naive_fit_seen_from_both_bodies(rng):
    bodies = bodies_of(rng)
    points, T = bodies.take.points, bodies.T_world_body
    away = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1).mean(axis=0)
    usual = np.median(np.sort(away, axis=1)[:, 4])
    one, two = range(5), range(5, 10)
    seen = [
        naive.slack(points, T[:, body], own, theirs, 1e-3, usual)
        for body, own, theirs in ((0, one, two), (1, two, one))
    ]
    slack, gap = slack_of([bodies], PAIR)
    np.testing.assert_allclose(slack[0], np.sqrt(seen[0] * seen[1]), rtol=1e-9)
    np.testing.assert_allclose(gap[0], away[:5, 5:].min() / usual, rtol=1e-12)


def test_a_joint_has_no_more_slack_than_noise_and_strangers_have(rng):
    joined = bodies_of(rng)
    apart = np.stack([jointed(rng, 120)[:, 0], jointed(rng, 120)[:, 1]], axis=1)
    strangers = marker_bodies(apart, rng, 1e-3)
    strangers = replace(strangers, marker_noise=joined.marker_noise)
    assert slack_of([joined], PAIR)[0][0] < 1.5
    assert slack_of([strangers], PAIR)[0][0] > 10.0


def test_two_takes_of_the_same_say_the_same_and_gaps_are_stepped_over(rng):
    bodies = bodies_of(rng)
    once, twice = (slack_of([bodies] * n, PAIR) for n in (1, 2))
    # The first guess, which is held to as noise allows, counts half as much.
    np.testing.assert_allclose(twice, once, rtol=1e-3)
    points = bodies.take.points.copy()
    points[::7, 2] = np.nan
    gappy = replace(bodies, take=replace(bodies.take, points=points))
    np.testing.assert_allclose(slack_of([gappy], PAIR)[0], once[0], rtol=0.1)


def test_markers_never_seen_together_leave_slack_unknown(rng):
    bodies = bodies_of(rng)
    points = bodies.take.points.copy()
    points[:, 5:] = np.nan
    blind = replace(bodies, take=replace(bodies.take, points=points))
    slack, gap = slack_of([blind], PAIR)
    assert np.isnan(slack[0])
    assert np.isnan(gap[0])
