# /// script
# requires-python = ">=3.10,<3.13"
# dependencies = ["nimblephysics==0.10.52.1", "numpy<2"]
# ///
"""nimblephysics, the engine of AddBiomechanics: inverse kinematics and bilevel fit.

`Skeleton.fitMarkersToWorldPositions`, frame after frame from the pose before, with the
damping and number of steps that it has by default; and
`MarkerFitter.runKinematicsPipeline`, which scales the bodies and moves the markers, on
frames at 10 Hz, each of which begins at the pose before.
The model is the .osim that marey writes. With NumPy 2 it crashes.
"""

import re
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import nimblephysics as nimble
import numpy as np
from peer import Answer, Problem, serve

FEW, FIRST_TRIES = 5, 10
FIT_FRAMES, QUICK_FIT_FRAMES, FIT_SPACING = 40, 5, 10
PLY = """ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 4
property list uchar int vertex_indices
end_header
0 0 0
0.1 0 0
0 0.1 0
0 0 0.1
3 0 1 2
3 0 1 3
3 0 2 3
3 1 2 3
"""
MESH = (
    r'<Body name="\1"><attached_geometry><Mesh name="\1_mesh"><socket_frame>..'
    "</socket_frame><scale_factors>1 1 1</scale_factors><mesh_file>body.vtp"
    "</mesh_file></Mesh></attached_geometry>"
)


def to_y_up(points: np.ndarray) -> np.ndarray:
    """Return points in the axes of OpenSim."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack([x, z, -y], axis=-1)


def from_y_up(points: np.ndarray) -> np.ndarray:
    """Return points with z up."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack([x, -z, y], axis=-1)


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answer of inverse kinematics."""
    file = nimble.biomechanics.OpenSimParser.parseOsim(
        str(problem.folder / "figure.osim")
    )
    skeleton = file.skeleton
    markers = [file.markersMap[str(label)] for label in problem["labels"]]
    weights, points = np.ones(len(markers)), to_y_up(problem.points)
    neutral = skeleton.getPositions()

    def run(count: int, found: "np.ndarray | None" = None) -> None:
        skeleton.setPositions(neutral)
        for f in range(count):
            for _ in range(FIRST_TRIES if f == 0 else 1):
                skeleton.fitMarkersToWorldPositions(markers, points[f].ravel(), weights)
            if found is not None:
                places = skeleton.getMarkerWorldPositions(markers)
                found[f] = from_y_up(places.reshape(-1, 3))

    def markers_of(count: int) -> np.ndarray:
        found = np.empty((count, len(markers), 3))
        run(count, found)
        return found

    case = f"nimblephysics {version('nimblephysics')}, IK"
    yield problem.answer(case, run, markers_of, problem.count(200, 40), FEW)


def fit_skeleton(problem: Problem) -> Iterator[Answer]:
    """Yield the time and the bones of a bilevel fit, from a model 5 % too large."""
    file = nimble.biomechanics.OpenSimParser.parseOsim(
        write_meshes(problem.folder), f"{problem.folder}/"
    )
    skeleton, labels = file.skeleton, [str(label) for label in problem["labels"]]
    fitter = nimble.biomechanics.MarkerFitter(skeleton, file.markersMap)
    frames = problem.count(FIT_FRAMES, QUICK_FIT_FRAMES)
    chosen = FIT_SPACING * np.arange(frames)
    observed = [
        dict(zip(labels, points, strict=True))
        for points in to_y_up(problem.points[chosen])
    ]
    params = nimble.biomechanics.InitialMarkerFitParams()
    begin = time.process_time()
    result = fitter.runKinematicsPipeline(
        observed, [True] + [False] * (frames - 1), params, numSamples=min(frames, 20)
    )
    seconds = time.process_time() - begin
    skeleton.setGroupScales(result.groupScales)
    joints = np.array([skeleton_joints(skeleton, pose) for pose in result.poses.T])
    np.save(problem.folder / "nimble_joints.npy", from_y_up(joints))
    yield {
        "case": "nimblephysics, bilevel fit",
        "seconds": seconds,
        "frames": frames,
        "chosen": chosen.tolist(),
        "joints": "nimble_joints.npy",
    }


def write_meshes(folder: Path) -> str:
    """Write the model with a small mesh on every body, and return its path.

    The fit asks for the height of the model, which it takes from meshes alone.
    """
    (folder / "body.vtp.ply").write_text(PLY)
    text = (folder / "figure.osim").read_text(encoding="utf-8")
    path = folder / "meshes.osim"
    path.write_text(re.sub(r'<Body name="(\w+)">', MESH, text), encoding="utf-8")
    return str(path)


def skeleton_joints(
    skeleton: "nimble.dynamics.Skeleton", pose: np.ndarray
) -> np.ndarray:
    """Return the joints in the world."""
    skeleton.setPositions(pose)
    joints = [skeleton.getJoint(i) for i in range(skeleton.getNumJoints())]
    return np.asarray(skeleton.getJointWorldPositions(joints)).reshape(-1, 3)


if __name__ == "__main__":
    serve(ik=solve_ik, fit=fit_skeleton)
