"""Pictures: what is drawn are the numbers, and nothing else is touched."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import marey
from marey import joints, plot, synth
from marey.library.page import index_page
from marey.numerics import geometry
from marey.plot import style
from marey.plot.primitives import Camera
from marey.plot.scene import build_plot_scene, choose_frames
from marey.segmentation.clusters.pair_statistics import pair_statistics

mpl = pytest.importorskip("matplotlib")
SOURCE = Path(marey.__file__).parent


@pytest.fixture(scope="module")
def take():
    """A walk of 53 markers, some of which are lost for a while."""
    return synth.human(seed=3).record(
        "walk", seconds=1.5, rate=60.0, seed=4, noise=1e-3, gaps=0.02
    )


@pytest.fixture(scope="module")
def solution(take):
    return marey.solve(take, options=marey.SolveOptions(calibrate=False, max_gap=0.3))


@pytest.fixture(scope="module")
def wired():
    """Exercises of an exact figure with sensors."""
    options = {"markers": "none", "sensors": True, "rate": 30.0, "seconds": 8.0}
    take = synth.human().record("exercise", seed=1, **options)
    return marey.solve(take, options=marey.SolveOptions(calibrate=False))


@pytest.fixture(scope="module")
def motion(take):
    return take.truth.motion


def bones(axes, width=2.2):
    return [line.get_xydata() for line in axes.lines if line.get_linewidth() == width]


def dots(axes, *, hollow=False):
    """Middles of the markers drawn, by the colour of their rims."""
    rim = mpl.colors.to_rgba(style.GREY if hollow else "white")
    found = [
        c.get_offsets()
        for c in axes.collections
        if len(c.get_offsets()) and (c.get_edgecolors() == rim).all()
    ]
    return np.concatenate(found) if found else np.zeros((0, 2))


def words(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text)]


def turned(motion, angle, shift=(0.0, 0.0, 0.0)):
    """The motion in a world that was turned about its vertical, and moved."""
    R = geometry.rotation_exp(np.array([0.0, 0.0, angle]))
    T = geometry.transform(R, np.array(shift))
    return replace(motion, T_world_root=T @ motion.T_world_root)


# --- the skeleton -------------------------------------------------------------------


def test_bones_are_where_the_joints_are(motion):
    (axes,) = plot.skeleton(motion, frame=30, azimuth=20.0).axes
    place = motion.T_world_joint()[30, :, :3, 3]
    place = place - place.mean(axis=0) * [1.0, 1.0, 0.0]
    a = np.radians(20.0)
    seen = np.stack([place[:, 1] * np.cos(a) - place[:, 0] * np.sin(a), place[:, 2]], 1)
    parent = motion.skeleton.parent
    expected = [seen[[p, j]] for j, p in enumerate(parent) if p >= 0]
    drawn = bones(axes)
    assert len(drawn) == len(expected)
    for bone in expected:
        assert min(np.abs(bone - line).max() for line in drawn) < 1e-12


def test_near_bones_are_drawn_over_far_ones(motion):
    (axes,) = plot.skeleton(motion, frame=30, azimuth=90.0).axes
    # From +y, nearness is y.
    y = motion.T_world_joint()[30, :, 1, 3]
    ends = {tuple(np.round(b[1], 9)): k for k, b in enumerate(bones(axes))}
    place = motion.T_world_joint()[30, :, :3, 3]
    middle = place.mean(axis=0)
    seen = [tuple(np.round([middle[0] - p[0], p[2]], 9)) for p in place]
    order = sorted(range(1, len(y)), key=lambda joint: ends[seen[joint]])
    assert (np.diff(y[order]) >= 0.0).all()


def test_markers_are_drawn_where_they_were_recorded(solution):
    recorded = solution.take
    frame = int(np.flatnonzero(recorded.filled.any(axis=1))[0])
    (axes,) = plot.skeleton(solution, frame=frame).axes
    z, filled = recorded.points[frame, :, 2], recorded.filled[frame]
    seen = np.isfinite(z)
    for hollow in (False, True):
        some = seen & (filled == hollow)
        assert some.any()
        drawn = np.sort(dots(axes, hollow=hollow)[:, 1])
        np.testing.assert_allclose(drawn, np.sort(z[some]), atol=1e-12)


def test_the_world_may_be_turned_and_moved(motion):
    """From where a figure looks widest it looks the same, wherever that is."""
    first = plot.skeleton(motion, frame=[10, 60])
    second = plot.skeleton(turned(motion, 2.0, (5.0, -3.0, 0.0)), frame=[10, 60])
    for one, other in zip(first.axes, second.axes, strict=True):
        np.testing.assert_allclose(bones(one), bones(other), atol=1e-9)
        assert one.get_xlim() == pytest.approx(other.get_xlim())


def test_a_figure_is_seen_from_the_front(motion):
    """Its left hand is on the right of the picture, as in a photograph."""
    names = motion.skeleton.names
    for frame in (0, 40, 80):
        (axes,) = plot.skeleton(motion, frame=frame).axes
        sides = {
            side: np.mean(
                [
                    line.get_xdata()
                    for line in axes.lines
                    if line.get_color() == colour and line.get_linewidth() == 2.2
                ]
            )
            for side, colour in (
                ("Left", style.LEFT_COLOUR),
                ("Right", style.RIGHT_COLOUR),
            )
        }
        assert sum(name.startswith("Left") for name in names)
        assert sides["Left"] > sides["Right"]


@pytest.mark.parametrize("share", [1.0, 1e-2])
def test_ellipses_are_standard_deviations_as_the_legend_says(solution, share):
    body = solution.skeleton
    body = replace(body, covariance=share**2 * body.covariance)
    figure = plot.skeleton(
        replace(solution.motion, skeleton=body), frame=20, azimuth=0.0
    )
    (legend,) = (word for word in words(figure) if "± 1 sd" in word)
    times = float(legend.split(", ")[1].split("×")[0]) if "×" in legend else 1.0
    assert (times > 1.0) == (share < 1.0)
    (axes,) = figure.axes
    rims = next(c for c in axes.collections if isinstance(c, poly())).get_paths()
    T = solution.motion.T_world_joint()[20]
    middle = T[:, :3, 3].mean(axis=0)
    known = np.flatnonzero(np.isfinite(body.covariance).all(axis=(1, 2)))
    assert len(known) == len(rims) >= 10
    for joint, rim in zip(known, rims, strict=True):
        R = T[body.parent[joint], :3, :3]
        # From +x, right is y and up is z.
        C = (R @ body.covariance[joint] @ R.T)[1:, 1:]
        away = rim.vertices[:-1] - (T[joint, :3, 3] - middle * [1, 1, 0])[1:]
        reach = np.sqrt(np.sum(away @ np.linalg.inv(C) * away, axis=1))
        np.testing.assert_allclose(reach, times, rtol=1e-6)


def poly():
    return mpl.collections.PolyCollection


@pytest.mark.parametrize(
    ("sd", "worst", "said"),
    [
        (1e-5, 1e-5, "1000× enlarged"),
        (1e-3, 1e-3, "50× enlarged"),
        (1e-3, 1e-2, "20× enlarged"),
        (1e-3, 5e-2, "5× enlarged"),
        (1e-3, 1.0, "a joint"),
        (0.1, 0.1, "a joint"),
    ],
)
def test_ellipses_are_large_enough_to_be_seen_and_no_larger(motion, sd, worst, said):
    n = motion.skeleton.n_joints
    C = np.broadcast_to(sd**2 * np.eye(3), (n, 3, 3)).copy()
    C[4] = worst**2 * np.eye(3)
    doubtful = replace(motion, skeleton=replace(motion.skeleton, covariance=C))
    (legend,) = (w for w in words(plot.skeleton(doubtful, frame=0)) if "sd" in w)
    assert legend.endswith(said)


def test_without_doubts_there_are_no_ellipses(motion):
    assert not any("sd" in word for word in words(plot.skeleton(motion, frame=0)))


def test_the_truth_lies_over_what_is_true(motion):
    (axes,) = plot.skeleton(motion, frame=5, truth=motion).axes
    found, true = bones(axes), bones(axes, 0.8)
    assert sorted(b.tolist() for b in found) == sorted(b.tolist() for b in true)
    assert len(true) == motion.skeleton.n_joints - 1


def test_stills_have_one_scale_and_hold_everything(solution, take):
    figure = plot.skeleton(solution, truth=take)
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}
    assert len(limits) == 1
    ((left, right), (low, high)) = limits.pop()
    for axes in figure.axes:
        assert axes.get_aspect() == 1.0
        spots = np.concatenate([*bones(axes), *bones(axes, 0.8), dots(axes)])
        assert left < spots[:, 0].min()
        assert spots[:, 0].max() < right
        assert low < spots[:, 1].min()
        assert spots[:, 1].max() < high
    assert figure.axes[0].get_ylabel() == "height, m"
    assert [axes.get_xlabel()[-2:] for axes in figure.axes] == [" s"] * 5


def test_of_a_motion_that_stops_five_times_every_stop_is_shown(motion):
    stops = [3, 20, 37, 54, 71]
    held = np.repeat(stops, [30, 5, 60, 9, 11])
    still = replace(
        motion,
        T_world_root=motion.T_world_root[held],
        wxyz=motion.wxyz[held],
        angle_sd=motion.angle_sd[held],
    )
    frames = choose_frames(build_plot_scene(still, 0), None)
    assert [held[frame] for frame in frames] == stops
    long = np.tile(held, 40)
    longer = replace(
        motion,
        T_world_root=motion.T_world_root[long],
        wxyz=motion.wxyz[long],
        angle_sd=motion.angle_sd[long],
    )
    assert len(choose_frames(build_plot_scene(longer, 0), None)) == 5


def test_poses_that_were_not_found_are_left_out(motion):
    T = motion.T_world_root.copy()
    T[10:] = np.nan
    lost = replace(motion, T_world_root=T)
    assert max(choose_frames(build_plot_scene(lost, 0), None)) < 10
    with pytest.raises(marey.DataError, match="nothing seen"):
        plot.skeleton(lost, frame=50)


def test_several_subjects_stand_in_one_picture(solution, take):
    (subject,) = solution.subjects
    other = replace(
        subject, name="B", motions=(turned(subject.motions[0], 0.0, (1.0, 0.5, 0.0)),)
    )
    pair = replace(solution, subjects=(subject, other))
    (axes,) = plot.skeleton(pair, frame=0).axes
    (alone,) = plot.skeleton(solution, frame=0).axes
    assert len(bones(axes)) == 2 * len(bones(alone))


def test_without_a_skeleton_there_are_markers(solution):
    bare = replace(solution, subjects=())
    figure = plot.skeleton(bare, frame=0)
    assert bones(figure.axes[0]) == []
    assert len(dots(figure.axes[0])) > 40
    assert "recorded" in words(figure)


def test_dots_of_a_motion_alone_are_not_called_recorded(solution):
    """They are where the skeleton has its markers, not where any were seen."""
    motion = solution.subjects[0].motions[0]
    alone = plot.skeleton(motion, frame=3)
    z = motion.marker_points()[3, :, 2]
    np.testing.assert_allclose(
        np.sort(dots(alone.axes[0])[:, 1]), np.sort(z), atol=1e-12
    )
    assert "recorded" not in words(alone)
    assert "markers on the skeleton" in words(alone)
    assert "markers on the skeleton" not in words(plot.skeleton(solution, frame=0))


def test_frames_may_be_any_whole_numbers(motion):
    both = (
        [1, 4],
        (1, 4),
        range(1, 5, 3),
        np.array([1, 4]),
        np.array([1, 4], np.uint8),
    )
    stills = {
        tuple(axes.get_xlabel() for axes in plot.skeleton(motion, frame=frame).axes)
        for frame in both
    }
    assert len(stills) == 1
    (one,) = plot.skeleton(motion, frame=1).axes
    (same,) = plot.skeleton(motion, frame=np.int64(1)).axes
    np.testing.assert_array_equal(bones(one), bones(same))


def test_parts_of_frames_are_refused(motion, unchecked):
    for frame in (0.5, [0.0, 1.5], True, "1"):
        with pytest.raises(marey.OptionError, match="frame: found"):
            plot.skeleton(motion, frame=frame)


def test_sensors_are_drawn_like_markers(wired):
    (axes,) = plot.skeleton(wired, frame=0).axes
    z = wired.take.T_world_sensor[0, :, 2, 3]
    np.testing.assert_allclose(np.sort(dots(axes)[:, 1]), np.sort(z), atol=1e-12)


def test_frames_and_takes_that_are_not_there_are_refused(solution, motion):
    last = motion.n_frames - 1
    for frame in (-1, last + 1, [0, last + 1], []):
        with pytest.raises(marey.OptionError, match=f"from 0 to {last}"):
            plot.skeleton(motion, frame=frame)
    for draw in (plot.skeleton, plot.residuals, plot.clustering):
        with pytest.raises(marey.OptionError, match="take"):
            draw(solution, take=1)
    with pytest.raises(marey.DataError, match="20 frames"):
        plot.skeleton(motion, truth=motion.cut(0, 20))


def test_a_camera_only_turns(rng):
    points = rng.normal(size=(7, 3))
    camera = Camera(33.0, 21.0)
    np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(camera.axes) == pytest.approx(1.0)
    np.testing.assert_allclose(camera.project(points) @ camera.axes, points, atol=1e-14)


# --- residuals ----------------------------------------------------------------------


def panels(figure):
    """Pairs of axes: a joint's series and its histogram."""
    return list(zip(figure.axes[::2], figure.axes[1::2], strict=True))


def test_series_and_histograms_are_the_gaps(solution):
    tree, bodies = solution.tree, solution.bodies[0]
    moving = np.flatnonzero(tree.edge >= 0)
    figure = plot.residuals(solution)
    assert len(panels(figure)) == len(moving)
    for body, (left, right) in zip(moving, panels(figure), strict=True):
        pair = (int(tree.parent[body]), int(body))
        gap = 1e3 * np.linalg.norm(
            joints.joint_residuals(bodies, solution.joints, pair), axis=1
        )
        series = left.lines[0]
        np.testing.assert_array_equal(series.get_xdata(), solution.take.times)
        np.testing.assert_allclose(series.get_ydata(), gap, rtol=1e-12)
        known = gap[np.isfinite(gap)]
        for bar in right.patches:
            low, high = bar.get_x(), bar.get_x() + bar.get_width()
            inside = np.mean((known >= low - 1e-9) & (known < high - 1e-9))
            assert bar.get_height() == pytest.approx(100.0 * inside, abs=1e-9)
        rms = np.sqrt(np.mean(known**2))
        assert left.lines[2].get_ydata()[0] == pytest.approx(rms)
        noise = 1e3 * solution.joints.noise[tree.edge[body]]
        np.testing.assert_allclose(left.lines[3].get_ydata(), noise)
        assert bodies.names[body] in left.get_title("left")
        assert left.get_ylim() == panels(figure)[0][0].get_ylim() == right.get_xlim()


def test_frames_beyond_the_scale_are_counted(solution):
    name = "LeftLowerArm"
    whole, low = (
        panels(plot.residuals(solution, joints=[name], top=top))[0]
        for top in (1.0, 2e-3)
    )
    gap = low[0].lines[0].get_ydata()
    beyond = int(np.sum(gap > 2.0))
    assert 0 < beyond < len(gap)
    assert len(low[0].lines[1].get_xdata()) == beyond
    assert f"{beyond} beyond" in words(low[0])
    assert sum(bar.get_height() for bar in whole[1].patches) == pytest.approx(100.0)
    known = np.isfinite(gap).sum()
    inside = sum(bar.get_height() for bar in low[1].patches)
    assert inside == pytest.approx(100.0 * (1.0 - beyond / known))


def test_a_few_wild_frames_do_not_stretch_the_scale(solution):
    (bodies,) = solution.bodies
    T = bodies.T_world_body.copy()
    T[7, bodies.names.index("LeftHand"), :3, 3] += 3.0
    wild = replace(solution, bodies=(replace(bodies, T_world_body=T),))
    long = replace(
        wild,
        takes=tuple(repeated(t, "points filled T_world_sensor") for t in wild.takes),
        bodies=(replace(bodies, T_world_body=np.concatenate([T, *[T[20:]] * 4])),),
    )
    left, _ = panels(plot.residuals(long, joints=["LeftHand"]))[0]
    assert left.get_ylim()[1] < 30.0
    assert "1 beyond" in words(left)


def repeated(take, names):
    longer = {
        name: np.concatenate([v := getattr(take, name), *[v[20:]] * 4])
        for name in names.split()
    }
    return replace(take, **longer)


def test_exact_joints_have_no_gap(wired):
    left, right = panels(plot.residuals(wired))[0]
    assert left.get_ylim()[1] <= 1e-3 * 1.01
    assert right.patches[0].get_height() == pytest.approx(100.0)


def test_joints_that_are_not_there_are_named(solution):
    with pytest.raises(marey.DataError, match=r"Tail.*LeftHand"):
        plot.residuals(solution, joints=["Tail"])
    for top in (0.0, -1.0, float("nan")):
        with pytest.raises(marey.OptionError, match="above 0 m"):
            plot.residuals(solution, top=top)
    (bodies,) = solution.bodies
    unseen = replace(bodies, T_world_body=np.full_like(bodies.T_world_body, np.nan))
    with pytest.raises(marey.DataError, match="no frame with both"):
        plot.residuals(replace(solution, bodies=(unseen,)))


def test_names_are_text_whatever_they_look_like(solution):
    (bodies,) = solution.bodies
    strange = tuple(f"$x_{k}$\x1b[2J<b>" for k in range(len(bodies.names)))
    named = replace(solution, bodies=(replace(bodies, names=strange),))
    some = [
        name
        for name, edge in zip(strange, solution.tree.edge, strict=True)
        if edge >= 0
    ]
    for figure in (plot.residuals(named, joints=some[:2]), plot.clustering(named)):
        figure.draw_without_rendering()
        said = [word for word in words(figure) if "x_" in word]
        assert len(said) >= 2
        for word in said:
            assert r"\$x_" in word
            assert not mpl.cbook.is_math_text(word)
            assert "\x1b" not in word


# --- lengths ------------------------------------------------------------------------


def joint_bones(skeleton):
    return np.flatnonzero((skeleton.parent >= 0) & ~skeleton.is_end)


def test_bars_are_the_lengths_and_their_doubt(solution):
    skeleton = solution.skeleton
    left, right = plot.lengths(solution).axes
    each = joint_bones(skeleton)
    size = [bar.get_width() for bar in left.patches]
    np.testing.assert_allclose(size, 1e3 * skeleton.lengths[each])
    sd = [bar.get_width() for bar in right.patches]
    np.testing.assert_allclose(sd, 1e3 * skeleton.length_sd[each])
    assert "standard deviation, mm" in right.get_xlabel()
    for label, bone in zip(left.get_yticklabels(), each, strict=True):
        assert label.get_text().endswith(skeleton.names[bone])


def test_measured_stands_against_calculated(solution):
    skeleton = solution.skeleton
    tape = {"LeftLowerLeg": 0.45, "RightHand": 0.26}
    left, right = plot.lengths(solution, tape).axes
    each = [skeleton.names[bone] for bone in joint_bones(skeleton)]
    rows = [each.index(name) for name in each if name in tape]
    bones = [skeleton.index(each[row]) for row in rows]
    (diamonds,) = left.lines
    drawn = np.asarray(diamonds.get_xdata())[rows]
    np.testing.assert_allclose(drawn, [1e3 * tape[each[row]] for row in rows])
    off = 1e3 * (skeleton.lengths[bones] - [tape[each[row]] for row in rows])
    np.testing.assert_allclose(right.lines[-1].get_xydata(), np.stack([off, rows], 1))
    for reach, bars in zip((2.0, 1.0), right.collections, strict=True):
        for segment, middle, bone in zip(bars.get_segments(), off, bones, strict=True):
            sd = 1e3 * skeleton.length_sd[bone]
            expected = [middle - reach * sd, middle + reach * sd]
            np.testing.assert_allclose(segment[:, 0], expected)


def test_a_skeleton_is_exact_against_itself(motion):
    skeleton = motion.skeleton
    _, right = plot.lengths(skeleton, skeleton).axes
    off, rows = right.lines[-1].get_xydata().T
    np.testing.assert_allclose(off, 0.0, atol=1e-9)
    # A bone below the root or a fixed joint ends where convention put it.
    free = [
        bone
        for bone in joint_bones(skeleton)
        if skeleton.kind[bone] != "fixed"
        and skeleton.kind[skeleton.parent[bone]] not in ("root", "fixed")
    ]
    assert [joint_bones(skeleton)[int(row)] for row in rows] == free
    assert len(free) >= 8


def test_the_place_of_a_root_is_not_compared(motion):
    """A leg that hangs from its thigh: where the thigh begins was not found."""
    names = ("LeftUpperLeg", "LeftLowerLeg", "LeftFoot")
    true = motion.skeleton
    leg = marey.Skeleton(
        names=names,
        parent=np.array([-1, 0, 1]),
        offset=true.offset[[true.index(name) for name in names]],
    )
    _, right = plot.lengths(leg, true).axes
    np.testing.assert_allclose(right.lines[-1].get_xydata(), [[0.0, 1.0]], atol=1e-9)


def test_truth_is_compared_where_it_means_the_same(solution, take):
    _, right = plot.lengths(solution, take.truth.skeleton).axes
    off, rows = right.lines[-1].get_xydata().T
    each = joint_bones(solution.skeleton)
    compared = {solution.skeleton.names[each[int(row)]] for row in rows}
    limbs = ("LowerArm", "Hand", "LowerLeg", "Foot")
    assert compared == {f"{s}{limb}" for s in ("Left", "Right") for limb in limbs}
    true = take.truth.skeleton
    for row, value in zip(rows, off, strict=True):
        bone = int(each[int(row)])
        there = true.index(solution.skeleton.names[bone])
        expected = 1e3 * (solution.skeleton.lengths[bone] - true.lengths[there])
        assert value == pytest.approx(expected)


def test_lengths_of_nothing_are_refused(solution, motion):
    with pytest.raises(marey.DataError, match=r"Tail.*LeftHand"):
        plot.lengths(solution, {"Tail": 0.3})
    for length in (0.0, float("nan"), float("inf")):
        with pytest.raises(marey.DataError, match="above 0 m"):
            plot.lengths(solution, {"LeftHand": length})
    with pytest.raises(marey.DataError, match="subject"):
        plot.lengths(solution, subject="nobody")
    (subject,) = solution.subjects
    pair = replace(solution, subjects=(subject, replace(subject, name="B")))
    with pytest.raises(marey.DataError, match="exactly one"):
        plot.lengths(pair)
    assert plot.lengths(pair, subject="B").axes
    root = marey.Skeleton(
        names=("Box",), parent=np.array([-1]), offset=np.zeros((1, 3))
    )
    with pytest.raises(marey.DataError, match="no bones"):
        plot.lengths(root)


# --- clustering ---------------------------------------------------------------------


def test_the_matrix_is_the_spread_of_distances_body_by_body(solution):
    (bodies,) = solution.bodies
    axes = plot.clustering(bodies).axes[0]
    drawn = axes.images[0].get_array()
    spread = 1e3 * pair_statistics((bodies.take.points,)).spread
    order = [
        marker
        for body in [*range(len(bodies.names)), -1]
        for marker in np.flatnonzero(bodies.marker_body == body)
    ]
    for (i, first), (j, second) in itertools.product(enumerate(order), repeat=2):
        if first == second or np.isnan(spread[first, second]):
            assert not np.isfinite(np.ma.filled(drawn[i, j], np.nan))
        else:
            assert drawn[i, j] == pytest.approx(spread[first, second])


def test_every_body_is_framed_and_named(solution):
    (bodies,) = solution.bodies
    lost = bodies.marker_body.copy()
    lost[3] = -1
    axes = plot.clustering(replace(bodies, marker_body=lost)).axes[0]
    counts = [np.sum(lost == body) for body in range(len(bodies.names))]
    corner = np.cumsum([0, *counts]) - 0.5
    for frame, start, count in zip(axes.patches, corner, counts, strict=False):
        assert frame.get_bbox().bounds == (start, start, count, count)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [*bodies.names, "no body"]


def test_markers_may_stand_in_any_order(solution, rng):
    """Of bodies the picture is the same, up to the order within each."""
    (bodies,) = solution.bodies
    order = rng.permutation(len(bodies.marker_body))
    mixed = replace(
        bodies,
        take=bodies.take.select(order),
        marker_body=bodies.marker_body[order],
    )
    first, second = (
        np.ma.filled(plot.clustering(some).axes[0].images[0].get_array(), np.nan)
        for some in (bodies, mixed)
    )
    body = np.sort(bodies.marker_body)
    for a, b in itertools.product(np.unique(body), repeat=2):
        block = np.ix_(body == a, body == b)
        np.testing.assert_allclose(
            np.sort(first[block], axis=None), np.sort(second[block], axis=None)
        )


def test_sensors_have_nothing_to_cluster(wired):
    with pytest.raises(marey.DataError, match="sensors are bodies already"):
        plot.clustering(wired)


# --- files --------------------------------------------------------------------------


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("suffix", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_same_picture_gives_the_same_file(motion, tmp_path, suffix, begin):
    for name in ("a", "b"):
        plot.save(plot.skeleton(motion, frame=0), tmp_path / f"{name}.{suffix}")
    first, second = (tmp_path / f"{name}.{suffix}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(begin)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(motion, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    figure = plot.skeleton(motion, frame=0)
    with pytest.raises(marey.OptionError, match="overwrite=True"):
        plot.save(figure, path)
    figure.draw_without_rendering = figure.savefig = None
    with pytest.raises(TypeError):
        plot.save(figure, path, overwrite=True)
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["a.png"]
    plot.save(plot.skeleton(motion, frame=0), path, overwrite=True)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert files(tmp_path) == ["a.png"]


def test_pictures_of_other_kinds_and_missing_folders_are_refused(motion, tmp_path):
    figure = plot.skeleton(motion, frame=0)
    with pytest.raises(marey.OptionError, match=r"\.png, \.svg, \.pdf"):
        plot.save(figure, tmp_path / "a.gif")
    with pytest.raises(marey.OutputError, match="does not exist"):
        plot.save(figure, tmp_path / "nowhere" / "a.png")
    assert files(tmp_path) == []


# --- the look -----------------------------------------------------------------------


def test_nothing_of_matplotlib_is_changed_or_used(motion):
    """What its user has set up stays, and does not show."""
    plain = plot.saving.encode_figure(plot.skeleton(motion, frame=0))
    with mpl.rc_context({"axes.facecolor": "black", "font.family": "monospace"}):
        before = dict(mpl.rcParams)
        picture = plot.saving.encode_figure(plot.skeleton(motion, frame=0))
        assert dict(mpl.rcParams) == before
    assert picture == plain


def test_a_machine_without_a_screen_draws(tmp_path):
    code = (
        "import sys, marey; "
        "m = marey.synth.pendulum().record(seconds=0.5).truth.motion; "
        "marey.plot.save(marey.plot.skeleton(m), 'a.png'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"}
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-W", "error", "-c", code]
    subprocess.run(command, cwd=tmp_path, env=clean, check=True, timeout=60)
    assert files(tmp_path) == ["a.png"]


def test_without_matplotlib_the_extra_is_named(monkeypatch, motion, solution):
    monkeypatch.setattr(style, "can_draw", lambda: False)
    calls = (
        lambda: plot.skeleton(motion),
        lambda: plot.residuals(solution),
        lambda: plot.lengths(solution),
        lambda: plot.clustering(solution),
    )
    for call in calls:
        with pytest.raises(marey.MissingExtraError, match=r"marey\[plots\]"):
            call()


# Machado, Oliveira and Fernandes (2009): linear RGB as people without one kind of cone
# see it.
VISION = {
    "all": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
WHITE = [0.9505, 1.0, 1.0890]


def lab(colour, vision):
    """CIELAB of a colour as someone sees it."""
    c = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    x = np.array(XYZ) @ np.clip(np.array(vision) @ linear, 0.0, 1.0) / WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16.0 / 116.0)
    L, a, b = 116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])
    return np.array([L, a, b])


@pytest.mark.parametrize("kind", VISION)
def test_colours_are_told_apart_by_everyone(kind):
    """Ten times the smallest difference that an eye notices, 2.3 (Mahy 1994)."""
    names = ("INK", "GREY", "BLUE", "RED", "GOLD", "GREEN")
    seen = [lab(getattr(style, name), VISION[kind]) for name in names]
    away = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(away) > 23.0


@pytest.mark.parametrize("kind", VISION)
def test_sides_are_told_apart_by_everyone(kind):
    sides = (style.LEFT_COLOUR, style.RIGHT_COLOUR, style.MIDDLE_COLOUR)
    seen = [lab(colour, VISION[kind]) for colour in (*sides, style.INK)]
    away = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(away) > 23.0


def test_the_pages_have_the_colours_of_the_pictures():
    """The page of a take in its style sheet, the index of takes in what it is made."""
    sheet = (SOURCE / "viewer/page/src/style.css").read_text(encoding="utf-8")
    for side in ("left", "right", "middle"):
        colours = re.findall(rf"--{side}: (#[0-9a-f]{{6}});", sheet)
        assert colours == [getattr(style, f"{side.upper()}_COLOUR")]
    index = index_page([], [])
    assert f"--left: {style.LEFT_COLOUR}; --right: {style.RIGHT_COLOUR};" in index


def test_angles_are_drawn_as_they_are_with_one_standard_deviation(motion):
    angles = marey.angles(replace(motion, angle_sd=np.full_like(motion.angle_sd, 0.05)))
    figure = plot.angles(angles, ["knee_flexion", "pelvis_anterior_tilt"])
    knee, pelvis = figure.axes
    left, right, _ = knee.lines
    np.testing.assert_array_equal(left.get_ydata(), angles["left_knee_flexion"])
    np.testing.assert_array_equal(right.get_ydata(), angles["right_knee_flexion"])
    band = knee.collections[0].get_paths()[0].get_extents()
    sd = angles.sd[:, angles.names.index("left_knee_flexion")]
    assert band.y1 == pytest.approx((angles["left_knee_flexion"] + sd).max())
    assert len(pelvis.lines) == 2


def test_a_mean_cycle_runs_from_0_to_100_per_cent():
    walk = synth.human(seed=3).record("walk", seconds=4.0, rate=50.0, markers="none")
    angles, gait = marey.angles(walk.truth.motion), marey.gait(walk.truth.motion)
    figure = plot.angles(angles, ["knee_flexion"], gait=gait)
    mean, _, count = gait.mean_cycle(angles, "left_knee_flexion", "Left")
    line = figure.axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), mean)
    np.testing.assert_array_equal(line.get_xdata(), np.linspace(0.0, 100.0, len(mean)))
    assert f"{count} cycles" in line.get_label()


def test_an_angle_that_is_not_there_cannot_be_drawn(motion):
    with pytest.raises(marey.DataError, match="no_angle"):
        plot.angles(marey.angles(motion), ["no_angle"])
