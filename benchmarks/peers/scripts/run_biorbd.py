# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["biorbd==1.12.4", "scipy", "numpy"]
# ///
"""biorbd: least squares (Levenberg-Marquardt) and its extended Kalman filter.

`InverseKinematics(model, markers).solve("lm")` and `KalmanReconsMarkers`, as in its
examples. Its models have Euler angles; the .bioMod is written here.
"""

from collections.abc import Iterator

import biorbd
import numpy as np
from peer import Answer, Problem, serve

FEW = 5
ROTATIONS = {"root": "xyz", "ball": "xyz", "universal": "yz", "hinge": "y"}
"""Axes of each kind of joint: the figure's hinges turn about y, its universal joints
about y, then z."""


def write_model(problem: Problem) -> str:
    """Write the figure as .bioMod, and return its path."""
    text = ["version 4"]
    for i, name in enumerate(problem["names"]):
        parent, kind = problem["parent"][i], str(problem["kind"][i])
        offset = problem["offset"][i] if parent >= 0 else np.zeros(3)
        text += [f"segment {name}"]
        text += [f"parent {problem['names'][parent]}"] if parent >= 0 else []
        text += ["rtinmatrix 0", "rt 0 0 0 xyz {} {} {}".format(*offset)]
        text += ["translations xyz"] if parent < 0 else []
        text += [f"rotations {ROTATIONS[kind]}", "mass 1", "com 0 0 0", "inertia"]
        text += ["0.01 0 0", "0 0.01 0", "0 0 0.01", "endsegment"]
        for k in np.flatnonzero(problem["marker_joint"] == i):
            place = "position {} {} {}".format(*problem["marker_offset"][k])
            label = problem["labels"][k]
            text += [f"marker {label}", f"parent {name}", place, "endmarker"]
    path = problem.folder / "figure.bioMod"
    path.write_text("\n".join(text) + "\n")
    return str(path)


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answers of least squares and of the Kalman filter."""
    model = biorbd.Model(write_model(problem))
    names = [name.to_string() for name in model.markerNames()]
    order = [names.index(str(label)) for label in problem["labels"]]
    back = np.argsort(order)
    measured = problem.points[:, back].transpose(2, 1, 0)

    def least_squares(count: int) -> np.ndarray:
        solver = biorbd.InverseKinematics(model, measured[..., :count].copy())
        return np.asarray(solver.solve("lm")).T

    def kalman(count: int) -> np.ndarray:
        filtering = biorbd.KalmanReconsMarkers(
            model, biorbd.KalmanParam(float(problem["rate"]))
        )
        q = biorbd.GeneralizedCoordinates(model)
        qdot = biorbd.GeneralizedVelocity(model)
        qddot = biorbd.GeneralizedAcceleration(model)
        poses = np.empty((count, model.nbQ()))
        for f in range(count):
            frame = measured[..., f].T.reshape(-1)
            filtering.reconstructFrame(model, frame, q, qdot, qddot)
            poses[f] = q.to_array()
        return poses

    def markers_of(poses: np.ndarray) -> np.ndarray:
        found = np.empty((len(poses), len(order), 3))
        for f, q in enumerate(poses):
            found[f] = [marker.to_array() for marker in model.markers(q)]
        return found[:, order]

    for words, solve, counts in (
        ("least squares", least_squares, (200, 40)),
        ("extended Kalman filter", kalman, (200, 60)),
    ):
        yield problem.answer(
            f"biorbd {biorbd.__version__}, {words}",
            solve,
            lambda count, solve=solve: markers_of(solve(count)),
            problem.count(*counts),
            FEW,
        )


if __name__ == "__main__":
    serve(ik=solve_ik)
