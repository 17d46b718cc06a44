# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["biobuddy==0.3.2", "matplotlib", "numpy"]
# ///
"""biobuddy: functional joint centres by SCoRE (Ehrig 2006), with its outlier removal.

`Score.perform_algorithm` takes the poses of both bodies; they are fitted here to the
mean shapes of their markers (Kabsch), which its documentation leaves to a model.
"""

import time
from collections.abc import Iterator

import numpy as np
from biobuddy.model_modifiers.joint_center_tool import Score
from biobuddy.utils.linear_algebra import RotoTransMatrixTimeSeries
from peer import Answer, Problem, serve


def fit_poses(points: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Return the poses that take a shape to its points, (frame, 4, 4)."""
    a, b = shape.mean(axis=0), points.mean(axis=1, keepdims=True)
    U, _, Vt = np.linalg.svd(np.einsum("mi,fmj->fij", shape - a, points - b))
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    T = np.tile(np.eye(4), (len(points), 1, 1))
    T[:, :3, :3] = np.swapaxes(U @ Vt, 1, 2)
    T[:, :3, 3] = b[:, 0] - T[:, :3, :3] @ a
    return T


def mean_shape(points: np.ndarray) -> np.ndarray:
    """Return the mean shape of a rigid set of markers (Procrustes)."""
    shape = points[0]
    for _ in range(3):
        T = fit_poses(points, shape)
        local = np.einsum("fji,fmj->fmi", T[:, :3, :3], points - T[:, None, :3, 3])
        shape = local.mean(axis=0)
    return shape


def find_center(points: np.ndarray, k: int) -> "tuple[np.ndarray, np.ndarray]":
    """Return the shape of the first body, and the centre in its frame."""
    series, shapes = [], []
    for part in (points[:, :k], points[:, k:]):
        shapes.append(mean_shape(part))
        poses = np.moveaxis(fit_poses(part, shapes[-1]), 0, -1)
        series.append(RotoTransMatrixTimeSeries.from_closest_rt_matrix(poses))
    return shapes[0], Score.perform_algorithm(*series)[1]


def find_centers(problem: Problem) -> Iterator[Answer]:
    """Yield the centres of all draws."""
    k, shapes, centers = int(problem["markers"]), [], []
    begin = time.process_time()
    for points in problem.points:
        shape, center = find_center(points, k)
        shapes.append(shape.tolist())
        centers.append(np.asarray(center)[:3].tolist())
    seconds = (time.process_time() - begin) / len(problem.points)
    case = "biobuddy 0.3.2, SCoRE"
    yield {"case": case, "seconds": seconds, "shapes": shapes, "centers": centers}


if __name__ == "__main__":
    serve(centers=find_centers)
