"""Several takes of one subject: common bodies, common joints, one skeleton."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import marey
from marey import synth
from marey.numerics import geometry
from marey.segmentation import segment


@pytest.fixture(scope="module")
def whole():
    return synth.human(seed=1).record(
        "exercise", seconds=12.0, rate=50.0, markers="set53", seed=1
    )


@pytest.fixture(scope="module")
def halves(whole):
    middle = whole.n_frames // 2
    return whole.cut(0, middle), whole.cut(middle, whole.n_frames)


def without(take, *starts):
    keep = [i for i, label in enumerate(take.labels) if not label.startswith(starts)]
    return take.select(keep)


@pytest.mark.parametrize("method", ["labels", "overlap"])
def test_bodies_have_the_same_axes_in_all_takes(halves, method):
    one, two = segment(halves, method=method)
    determined = one.determined[one.marker_body]
    assert determined.any()
    assert np.abs(one.marker_offset - two.marker_offset)[determined].max() < 1e-9


def with_other_axes(bodies, rng):
    """The same bodies with other axes, as another take might give them."""
    R = Rotation.random(len(bodies.names), rng=rng).as_matrix()
    T = geometry.transform(R, rng.normal(size=(len(R), 3)))
    own = geometry.inverse(T)[bodies.marker_body]
    return replace(
        bodies,
        T_world_body=bodies.T_world_body @ T,
        marker_offset=geometry.apply(own, bodies.marker_offset),
    )


ARM = {"Chest": ["C7", "T10", "CLAV", "STRN"], "Arm": ["LUPA", "LELB", "LELI"]}


@pytest.mark.parametrize("method", ["ball", "gdke", "distance"])
def test_axes_that_differ_from_take_to_take_change_no_joint(halves, method, rng):
    one, two = segment(halves, template={"bodies": ARM})
    same = marey.fit_joints([one, two], method=method)
    other = marey.fit_joints([one, with_other_axes(two, rng)], method=method)
    assert np.allclose(same.center_a, other.center_a, atol=1e-5)
    assert np.allclose(same.center_b, other.center_b, atol=1e-5)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_part_that_one_take_does_not_show_comes_from_the_other(halves, order):
    takes = halves[0], without(halves[1], "LFHD", "RFHD", "LBHD", "RBHD")
    takes = tuple(takes[i] for i in order)
    solution = marey.solve(takes)
    assert "Head" in solution.skeleton.names
    incomplete = solution.bodies[order.index(1)]
    assert not incomplete.seen[:, incomplete.names.index("Head")].any()
    assert any(f.code == "body-missing" for f in solution.report.findings)
    (subject,) = solution.subjects
    assert all(np.isfinite(motion.wxyz).all() for motion in subject.motions)


def test_no_take_needs_to_show_everything(halves):
    takes = (
        without(halves[0], "LFHD", "RFHD", "LBHD", "RBHD"),
        without(halves[1], "LTOE", "LHEE", "LANK", "LMT5"),
    )
    (subject,) = marey.solve(takes).subjects
    assert {"Head", "LeftFoot"} <= set(subject.skeleton.names)


def test_reattached_markers_do_not_change_the_joints():
    """Markers at other positions: joints come from one day, bones from both."""
    performer = synth.human(seed=1)
    days = [
        performer.record(
            "exercise", seconds=6.0, rate=50.0, markers="set53", seed=seed, noise=1e-3
        )
        for seed in (1, 3)
    ]
    moved = days[0].truth.marker_offset - days[1].truth.marker_offset
    assert np.abs(moved).max() > 0.01
    one, both = marey.solve(days[0]), marey.solve(days)
    assert np.array_equal(one.joints.center_a, both.joints.center_a, equal_nan=True)
    (subject,) = both.subjects
    for motion, day in zip(subject.motions, days, strict=True):
        assert marey.metrics.compare(motion, day).position < 4e-3
