# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["pin==4.1.0", "numpy"]
# ///
"""Pinocchio from Python: Gauss-Newton on its Jacobians of frames.

The model is built joint by joint from the arrays of the figure, as its tutorials do;
steps are those of its inverse kinematics example, with all markers at once.
"""

from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from peer import Answer, Problem, serve

FEW, STEPS, FIRST_STEPS, DAMPING = 10, 2, 60, 1e-9


def build_model(problem: Problem) -> "tuple[pin.Model, list[int]]":
    """Return the model, and the frames of the markers."""
    model, bodies = pin.Model(), []
    for i, (kind, parent) in enumerate(
        zip(problem["kind"], problem["parent"], strict=True)
    ):
        above = bodies[parent] if parent >= 0 else 0
        place = pin.SE3(np.eye(3), problem["offset"][i] if parent >= 0 else np.zeros(3))
        for k, joint in enumerate(joints_of(str(kind), problem["axes"][i])):
            name = f"{problem['names'][i]}_{k}"
            above = model.addJoint(above, joint, place, name)
            place = pin.SE3.Identity()
        bodies.append(above)
    frames = []
    for label, i, offset in zip(
        problem["labels"],
        problem["marker_joint"],
        problem["marker_offset"],
        strict=True,
    ):
        place = pin.SE3(np.eye(3), offset)
        frame = pin.Frame(str(label), bodies[i], 0, place, pin.FrameType.OP_FRAME)
        frames.append(model.addFrame(frame))
    return model, frames


def joints_of(kind: str, axes: np.ndarray) -> "list[pin.JointModel]":
    """Return the joints that stand for one of a kind."""
    if kind == "root":
        return [pin.JointModelFreeFlyer()]
    if kind == "ball":
        return [pin.JointModelSpherical()]
    count = 1 if kind == "hinge" else 2
    return [pin.JointModelRevoluteUnaligned(axis) for axis in axes[:count]]


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answer of Gauss-Newton."""
    model, frames = build_model(problem)
    data, n = model.createData(), len(frames)
    J, found = np.empty((3 * n, model.nv)), np.empty((n, 3))
    diagonal = np.diag_indices(model.nv)
    start = pin.neutral(model)
    start[:3] = problem["offset"][0]

    def step(q: np.ndarray, target: np.ndarray) -> np.ndarray:
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for k, frame in enumerate(frames):
            world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            J[3 * k : 3 * k + 3] = pin.getFrameJacobian(model, data, frame, world)[:3]
            found[k] = data.oMf[frame].translation
        H = J.T @ J
        H[diagonal] += DAMPING
        change = np.linalg.solve(H, J.T @ (target - found).ravel())
        return np.asarray(pin.integrate(model, q, change))

    def run(count: int) -> np.ndarray:
        q, poses = start, np.empty((count, model.nq))
        for f in range(count):
            for _ in range(FIRST_STEPS if f == 0 else STEPS):
                q = step(q, problem.points[f])
            poses[f] = q
        return poses

    def markers(count: int) -> np.ndarray:
        result = np.empty((count, n, 3))
        for f, q in enumerate(run(count)):
            pin.framesForwardKinematics(model, data, q)
            result[f] = [data.oMf[frame].translation for frame in frames]
        return result

    case = f"pinocchio {pin.__version__} from Python, {STEPS} steps"
    yield problem.answer(case, run, markers, problem.count(400, 150), FEW)


if __name__ == "__main__":
    serve(ik=solve_ik)
