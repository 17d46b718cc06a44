"""Skeletons that are given, on real recordings of the same performer."""

import numpy as np
import pytest
from real.loaders import reference_joints

import marey

VENDOR_RMS_M = {"02_01": 0.0117, "02_05": 0.0189}
"""Root mean square distance of the markers of CMU 02 from their mean places on the
vendor's skeleton in the vendor's poses."""

TAKES = ("02_01", pytest.param("02_05", marks=pytest.mark.slow))

JOINTS = {
    "hip": "femur",
    "knee": "tibia",
    "ankle": "foot",
    "shoulder": "humerus",
    "elbow": "radius",
}


def marker_rms(solution):
    """Root mean square distance of measured and predicted markers, in metres."""
    (take,), motion = solution.takes, solution.motion
    columns = [take.full_labels.index(x) for x in motion.skeleton.marker_labels]
    error = motion.marker_points() - take.points[:, columns]
    return float(np.sqrt(np.nanmean(np.sum(error**2, axis=-1))))


@pytest.mark.parametrize("name", TAKES)
def test_markers_fit_the_vendors_bones_better_than_in_the_vendors_poses(
    recordings, solved, name
):
    folder = recordings / "cmu"
    solution = solved(f"cmu/{name}.c3d", skeleton=folder / "02.asf")
    given = marey.read_skeleton(folder / "02.asf")
    assert solution.skeleton.kind == given.kind
    np.testing.assert_array_equal(solution.skeleton.offset[1:], given.offset[1:])
    assert marker_rms(solution) < VENDOR_RMS_M[name] / 2.0
    assert all(f.severity != "error" for f in solution.report.findings)


@pytest.mark.parametrize("name", TAKES)
def test_limbs_are_near_those_of_the_vendor(recordings, solved, name):
    folder = recordings / "cmu"
    motion = solved(f"cmu/{name}.c3d", skeleton=folder / "02.asf").motion
    vendor = reference_joints(folder / f"{name}_ref_joints.npz")
    found = motion.T_world_joint()[..., :3, 3]
    errors = [
        np.linalg.norm(
            found[:, motion.skeleton.index(f"{side}{bone}")]
            - vendor.points[:, vendor.names.index(f"{side}_{joint}")],
            axis=-1,
        )
        for side in "lr"
        for joint, bone in JOINTS.items()
    ]
    assert np.median(errors) < 0.035


def test_bones_of_one_take_serve_another(recordings, solved):
    """The skeleton of a walk of CMU 02 keeps its bones in a take of punches."""
    walk = solved("cmu/02_01.c3d")
    punches = marey.solve(recordings / "cmu/02_05.c3d", skeleton=walk.skeleton)
    np.testing.assert_array_equal(punches.skeleton.lengths, walk.skeleton.lengths)
    assert marker_rms(punches) < VENDOR_RMS_M["02_05"] / 2.0
    assert all(f.severity != "error" for f in punches.report.findings)


def test_bones_of_another_performer_are_an_error(recordings):
    folder = recordings / "cmu"
    solution = marey.solve(folder / "02_01.c3d", skeleton=folder / "35.asf")
    codes = {f.code for f in solution.report.findings if f.severity == "error"}
    assert codes == {"skeleton-differs"}
