"""Recordings and references that no format of marey holds, as takes and arrays.

Everything comes out as marey has it: metres, right-handed, +Z up. Where a file does not
state its unit, axes or rate, they are given here, with what they are known from.
"""

import csv
import json
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.io import loadmat

import marey
from marey.io.units_axes import points_from_file

MILLIMETRE = 1e-3


def load_rat(folder):
    """A rat of 23 keypoints.

    The files state names only. Millimetres and 50 Hz are those of the project that the
    recording tests; its floor is at z = 0.
    """
    names = loadmat(folder / "rat23.mat", squeeze_me=True)["joint_names"]
    path = folder / "test_rodent_mocap_1000_frames.mat"
    points = loadmat(path)["pred"].swapaxes(1, 2) * MILLIMETRE
    source = marey.Source(path=str(path), format="mat")
    return marey.Take(
        rate=50.0, points=points, labels=tuple(map(str, names)), source=source
    )


def rat_pairs(folder):
    """The pairs of keypoints that `rat23.mat` draws a line between, counted from 0."""
    return loadmat(folder / "rat23.mat")["joints_idx"].astype(int) - 1


def load_hinge(folder):
    """One turn of an instrumented hinge, its two leaves as sensors.

    Lengths are metres, as the leaves are 0.2 m apart. Which axis points up is unknown.
    """
    cycle = _hinge(folder)
    poses = np.stack([cycle.T1_0, cycle.T2_0]).transpose(3, 0, 1, 2)
    source = marey.Source(path=str(folder / "SampleHinge.mat"), format="mat")
    return marey.Take(
        rate=cycle.fs,
        T_world_sensor=poses,
        sensor_names=("leaf1", "leaf2"),
        source=source,
    )


def hinge_axis(folder):
    """Direction of the hinge and a point on it in the frame of the first leaf."""
    return _hinge(folder).GA_1.reshape(2, 3)


def _hinge(folder):
    path = folder / "SampleHinge.mat"
    return loadmat(path, squeeze_me=True, struct_as_record=False)["HingeCycle"]


def load_dog(folder):
    """A dog of 27 joint centres without names.

    The paws step on y = 0, a nose is half a metre above, and clips of this collection
    with a known duration have 60 frames per second.
    """
    path = folder / "dog_walk00_joint_pos.txt"
    return marey.read(path, unit="m", up="y", rate=60.0)


class Joints(NamedTuple):
    """Joint centres of a take, known from elsewhere."""

    names: tuple[str, ...]
    parents: np.ndarray
    """Number of each joint's parent, -1 for the root."""

    points: np.ndarray
    """(frame, joint, 3) in metres, in the world of the take."""


def reference_joints(path):
    """The joint centres in a `*_ref_joints.npz` file.

    Of OpenSim models the file gives bodies, and a joint's parent is the joint that
    moves its parent body; their world is that of the TRC, Y up.
    """
    with np.load(path) as data:
        names = data["joint"].tolist()
        points = data["pos_mm"].astype(float)
        if "parent" in data:
            above, moved, up = data["parent"].tolist(), names, "z"
        else:
            above, moved, up = data["parent_body"].tolist(), data["child_body"], "y"
            moved = moved.tolist()
    parents = [moved.index(name) if name in moved else -1 for name in above]
    return Joints(tuple(names), np.array(parents), points_from_file(points, "mm", up))


def reference_frames(path, take):
    """The frame of a take that each frame of a `*_ref_joints.npz` file belongs to."""
    with np.load(path) as data:
        times = data.get("time", take.times)
    return np.rint((times - take.start) * take.rate).astype(int)


class Topology(NamedTuple):
    """Which body hangs on which, and on which body each marker sits."""

    joints: tuple[str, ...]
    kinds: tuple[str, ...]
    """In the words of the file: "PinJoint", "CustomJoint", "hinge"."""

    parents: tuple[str, ...]
    """Name of each joint's parent body."""

    children: tuple[str, ...]
    """Name of the body that each joint moves."""

    marker_body: dict[str, str]


def topology(path):
    """The tree of a `model_topology.json`, or of the pendulum's `truth.json`."""
    data = json.loads(path.read_text())
    if "chain" in data:
        chain = data["chain"]
        joints = [
            {"name": child, "type": data["joint_type"], "parent": parent}
            | {"child": child}
            for parent, child in pairwise(chain)
        ]
        marker_body = {name: m["body"] for name, m in data["markers"].items()}
    else:
        joints, marker_body = data["joints"], data["marker_to_body"]
    names, kinds, parents, children = (
        tuple(j[key] for j in joints) for key in ("name", "type", "parent", "child")
    )
    return Topology(names, kinds, parents, children, marker_body)


def pendulum_markers(path):
    """Place of each marker in its body's frame, in metres, from `truth.json`.

    The takes have the labels Static5 and Static6 the other way round, as the distances
    to the other four show; here they stand as in the takes.
    """
    markers = json.loads(path.read_text())["markers"]
    places = {name: np.array(m["xyz_mm"]) * MILLIMETRE for name, m in markers.items()}
    swapped = {"Static5": places["Static6"], "Static6": places["Static5"]}
    return places | swapped


def load_template(folder, *, estimated=False):
    """The figure of `skeleton_template.csv`: bones, bone ends and markers.

    Args:
        folder: Where the file is.
        estimated: Take the offsets of `estimated_offsets.csv` where it has them.
    """
    with (folder / "skeleton_template.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    places = {
        row["name"]: [float(row[f"offset_{c}"] or 0.0) for c in "xyz"] for row in rows
    }
    if estimated:
        with (folder / "estimated_offsets.csv").open(newline="") as file:
            places |= {name: list(map(float, xyz)) for name, *xyz in csv.reader(file)}
    bones = [row for row in rows if row["type"] != "marker"]
    markers = [row for row in rows if row["type"] == "marker"]
    number = {row["name"]: i for i, row in enumerate(bones)}
    return marey.Skeleton(
        names=tuple(number),
        parent=np.array([number.get(row["parent"], -1) for row in bones]),
        offset=_upright([places[name] for name in number]),
        kind=tuple(_kind(row) for row in bones),
        axes=np.stack([_axes(row["rotation_mode"]) for row in bones]),
        marker_labels=tuple(row["name"] for row in markers),
        marker_joint=np.array([number[row["parent"]] for row in markers]),
        marker_offset=_upright([places[row["name"]] for row in markers]),
    )


def _upright(points):
    return points_from_file(np.array(points, dtype=float), "m", "y")


def _kind(row):
    if not row["parent"]:
        return "root"
    if row["type"] == "end":
        return "fixed"
    return "hinge" if row["rotation_mode"].startswith("hinge") else "ball"


def _axes(mode):
    axes = np.full((2, 3), np.nan)
    if mode.startswith("hinge"):
        axes[0] = _upright(np.eye(3)["XYZ".index(mode[-1])])
    return axes
