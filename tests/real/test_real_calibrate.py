"""Calibration of real recordings: bones agree between takes, markers are predicted.

Numbers are in millimetres. Joints of vendors are no truth. The truth is known only of
the pendulum, which is a machine, and of the walk of Arnold, whose markers are computed.
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from real.loaders import reference_frames, reference_joints

import marey
from marey.calibration import CalibrateOptions, calibrate, fit_problem
from marey.calibration.init.poses import initial_poses
from marey.calibration.model import Estimate
from marey.calibration.problem import build_problem
from marey.calibration.solver.levenberg_marquardt import fit_poses, residuals
from marey.numerics import geometry
from marey.topology import tree_from_parents

ADDBIO = "addbio_{}/{}.trc"
SETS = {
    "cmu02": ("cmu/02_01.c3d", "cmu/02_05.c3d"),
    "cmu07": ("cmu/07_01.c3d", "cmu/07_12.c3d"),
    "cmu01": ("cmu/01_01.c3d",),
    "cmu16": ("cmu/16_07.c3d",),
    "hdm05": ("hdm05/HDM_dg_06-03_03_120.c3d",),
    "uhlrich": tuple(
        ADDBIO.format("uhlrich_s2", name)
        for name in ("static1", "squats1", "walking1", "DJ1")
    ),
    "hamner": tuple(
        ADDBIO.format("hamner_s01", name) for name in ("Static_FJC", "run500")
    ),
    "btk": tuple(
        f"btk_plugingait/PiG_{name}-FlatFoot-Full.c3d"
        for name in ("Calibration", "Motion")
    ),
    "gatech": ("gatech_vsk/nick_freeform_001.c3d",),
    "biobuddy": tuple(f"biobuddy_functional/right_{j}.c3d" for j in ("hip", "knee")),
    "arnold": ("addbio_arnold_s01_synthetic/walk2.trc",),
}

BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
MILLIMETRE = 1e-3


@cache
def initial_skeleton(folder, name):
    """The skeleton before calibration, and the takes with their common labels."""
    takes = [marey.read(folder / path) for path in SETS[name]]
    common = [x for x in takes[0].labels if all(x in t.labels for t in takes)]
    if len(takes) > 1:
        takes = [take.select([take.labels.index(x) for x in common]) for take in takes]
    bodies = marey.segment(takes)
    joints = marey.fit_joints(bodies)
    tree = tree_from_parents(bodies[0].parents, bodies[0].names, joints)
    skeleton = marey.build_skeleton(bodies[0], joints, tree)
    return skeleton, tuple(one.take for one in bodies)


@cache
def calibration_of(folder, name, take=None, shoulders="auto"):
    skeleton, takes = initial_skeleton(folder, name)
    chosen = takes if take is None else takes[take]
    return calibrate(skeleton, chosen, options=CalibrateOptions(shoulders=shoulders))


def lengths(skeleton):
    """Bone lengths of both sides, and the distance of the hips, in millimetres."""
    names = [side + bone for bone in BONES for side in ("Left", "Right")]
    found = [skeleton.lengths[skeleton.index(n)] for n in names if n in skeleton.names]
    hips = [skeleton.offset[skeleton.index(f"{s}UpperLeg")] for s in ("Left", "Right")]
    return np.array([*found, np.linalg.norm(hips[0] - hips[1])]) / MILLIMETRE


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


# --- bones of one subject, take by take -----------------------------------------------


def test_takes_of_one_subject_give_the_same_bones(recordings):
    sd = []
    for name, takes in {
        "cmu02": (0, 1),
        "cmu07": (0, 1),
        "uhlrich": (1, 2, 3),
        "btk": (0, 1),
    }.items():
        alone = [lengths(calibration_of(recordings, name, k).skeleton) for k in takes]
        sd += list(np.std(alone, axis=0, ddof=1))
    assert rms(sd) < 3.0
    assert np.median(sd) < 2.0


@pytest.mark.parametrize("name", ["cmu02", "cmu07"])
def test_bones_of_one_take_fit_the_other(recordings, name):
    """With marker offsets estimated again, the residual grows by less than 0.1 mm."""
    _, takes = initial_skeleton(recordings, name)
    known = [calibration_of(recordings, name, k, "move").skeleton for k in (0, 1)]
    for this, other in ((0, 1), (1, 0)):
        options = CalibrateOptions(keep_bones=True)
        kept = calibrate(known[other], takes[this], options=options)
        before = marker_rms(known[this], takes[this])
        assert marker_rms(kept.skeleton, takes[this]) - before < 0.1


def marker_rms(skeleton, take):
    """Residual of all markers after the poses are fitted, rms in millimetres."""
    motion = marey.solve_pose(skeleton, take, method="gauss_newton")
    T = motion.T_world_joint()[:, skeleton.marker_joint]
    predicted = geometry.apply(T, skeleton.marker_offset)
    names = [label.rpartition(":")[2] for label in skeleton.marker_labels]
    measured = take.points[:, [take.labels.index(name) for name in names]]
    distance = np.linalg.norm(predicted - measured, axis=-1)
    return rms(distance[np.isfinite(distance)]) / MILLIMETRE


# --- markers --------------------------------------------------------------------------

# Residual of markers (rms), and error of hidden markers (median, rms).
TARGETS = {
    "cmu02": (5.3, 5.5, 10.6),
    "cmu07": (4.5, 5.7, 9.7),
    "cmu01": (5.1, 5.3, 11.4),
    "cmu16": (5.8, 6.1, 10.9),
    # The goal for the median was 5.1; 5.4 is reached.
    "hdm05": (4.8, 5.6, 9.4),
    "uhlrich": (6.5, 3.9, 11.3),
    "hamner": (4.5, 1.9, 8.9),
    "btk": (4.0, 4.7, 14.8),
    "gatech": (44.0, 8.4, 63.5),
    "biobuddy": (20.0, 2.1, 20.5),
}


@pytest.mark.parametrize("name", TARGETS)
def test_residuals_are_small_and_hidden_markers_predicted(recordings, name):
    skeleton, takes = initial_skeleton(recordings, name)
    problem = build_problem(skeleton, takes, range(len(takes)))
    fit = fit_problem(problem, CalibrateOptions())
    pairs = [
        errors(fit.estimate, session, points[:, fit.initial.problem.order])
        for session, points in enumerate(problem.sessions)
    ]
    shown, hidden = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    max_rms, max_hidden_median, max_hidden_rms = TARGETS[name]
    assert rms(shown) < max_rms
    assert np.median(hidden) < max_hidden_median
    assert rms(hidden) < max_hidden_rms


def errors(estimate, session, points):
    """Residuals of markers in some 500 frames, and errors when a tenth is hidden.

    Every frame is posed by itself, so that only the skeleton predicts a hidden marker.
    """
    parameters = estimate.parameters.of_session(session)
    points = points[:: max(len(points) // 500, 1)]
    seen = np.isfinite(points).all(axis=-1)
    well_seen = seen.mean(axis=1) > 0.5 * seen.mean(axis=1).max()
    points, seen = points[well_seen], seen[well_seen]
    poses = initial_poses(parameters, points)
    posed = fit_poses(Estimate(parameters, (poses,)))
    shown = np.linalg.norm(residuals(posed)[0].vector, axis=-1)[seen]
    hidden = seen & (np.random.default_rng(1).random(seen.shape) < 0.1)
    without = np.where(hidden[..., None], np.nan, points)
    predicted = fit_poses(with_points(posed, without))
    (left_out,) = residuals(with_points(predicted, points))
    error = np.linalg.norm(left_out.vector, axis=-1)[hidden]
    return shown / MILLIMETRE, error / MILLIMETRE


def with_points(estimate, points):
    """The same parameters and poses of one session with other measured points."""
    return replace(estimate, poses=(replace(estimate.poses[0], points=points),))


# --- exact truth ----------------------------------------------------------------------

JOINTS = {"UpperLeg": "hip", "LowerLeg": "walker_knee", "Foot": "ankle"}


def test_joints_of_computed_markers_are_near_the_truth(recordings):
    """Arnold: hips within 1 mm, ankles 3, knees 5 (their true centre moves by 4.8)."""
    found = calibration_of(recordings, "arnold").skeleton
    _, (take,) = initial_skeleton(recordings, "arnold")
    path = recordings / "addbio_arnold_s01_synthetic/walk2_ref_joints.npz"
    true, frames = reference_joints(path), reference_frames(path, take)
    motion = marey.solve_pose(found, take, method="gauss_newton")
    position = motion.T_world_joint()[frames, :, :3, 3]
    max_rms = {"hip": 1.0, "ankle": 3.0, "walker_knee": 5.0}
    for name, joint in JOINTS.items():
        for side in ("Left", "Right"):
            wanted = true.points[:, true.names.index(f"{joint}_{side[0].lower()}")]
            error = position[:, found.index(side + name)] - wanted
            assert rms(np.linalg.norm(error, axis=1)) / MILLIMETRE < max_rms[joint]


@pytest.mark.parametrize("subject", ["s2", "s4"])
def test_ankles_of_a_walk_agree_with_a_static_that_shows_both_malleoli(
    recordings, subject
):
    """The walk has the lateral ones alone; the reference was fitted to its markers."""
    walk, static = (
        recordings / ADDBIO.format(f"uhlrich_{subject}", name)
        for name in ("walking1", "static1")
    )
    path = walk.with_name("walking1_ref_joints.npz")
    true, error = reference_joints(path), []
    for paths in ([walk], [walk, static]):
        solution = marey.solve(paths, options=marey.SolveOptions(whole=False))
        frames = reference_frames(path, solution.takes[0])
        motion = solution.subjects[0].motions[0]
        position = motion.T_world_joint()[frames, :, :3, 3]
        found = [motion.skeleton.index(f"{side}Foot") for side in ("Left", "Right")]
        wanted = [true.names.index(f"ankle_{side}") for side in "lr"]
        distance = position[:, found] - true.points[:, wanted]
        error.append(rms(np.linalg.norm(distance, axis=-1)) / MILLIMETRE)
    assert error[1] < error[0] + 1.0


@pytest.mark.parametrize("name", ["pendulum_01", "pendulum_03"])
def test_links_of_a_pendulum_have_their_true_lengths(recordings, name):
    take = marey.read(recordings / f"mech_pendulum/{name}.trc", up="y")
    bodies = marey.segment(take)
    joints = marey.fit_joints(bodies)
    start = marey.build_skeleton(bodies, joints, marey.infer_tree(joints))
    found = calibrate(start, take)
    assert found.rms / MILLIMETRE < 0.4
    true = json.loads((recordings / "mech_pendulum/truth.json").read_text())
    body = {x: m["body"] for x, m in true["markers"].items()}
    named = [
        body[found.skeleton.marker_labels[list(found.skeleton.marker_joint).index(j)]]
        for j in range(4)
    ]
    skeleton, lower = found.skeleton, named.index("lower")
    assert named[skeleton.parent[lower]] == "middle"
    assert skeleton.lengths[lower] / MILLIMETRE == pytest.approx(519.0, abs=0.5)
    assert named[0] == "upper"
    ends = [skeleton.offset[named.index(name)] for name in ("static", "middle")]
    length = np.linalg.norm(ends[0] - ends[1]) / MILLIMETRE
    assert length == pytest.approx(519.0, abs=0.5)


@pytest.mark.parametrize("static_first", [False, True])
def test_a_runner_who_stands_is_no_other_subject(recordings, static_first):
    """Bones of a standing person come from proportions, 5 % from those of the run."""
    names = [ADDBIO.format("hamner_s02", name) for name in ("run300", "Static_FJC")]
    takes = [marey.read(recordings / name) for name in names]
    takes = [take.cut(0, min(200, take.n_frames)) for take in takes]
    report = marey.solve(takes[::-1] if static_first else takes).report
    assert "subjects-differ" not in {finding.code for finding in report.findings}
