"""Outliers of sensors by their joints: small jumps that open the joints around."""

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Values
from marey.cleaning.options import CleanOptions
from marey.cleaning.outliers.mask import Outlier, drop_frequent
from marey.cleaning.outliers.runs import find_position_runs
from marey.joint_fits import JointFits
from marey.numerics import Bool, Float, Int, geometry
from marey.numerics.robust import finite_median, runs
from marey.numerics.thresholds import CERTAIN_SD, MARKER_NOISE_M
from marey.tree import Tree


def find_joint_outliers(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Outlier, ...]:
    """Return the frames in which a sensor jumps away from its joints and back.

    The residual of a joint is the distance of its centre as seen from its two bodies.
    A residual that jumps does not show which of the two sensors is wrong, so the sensor
    is chosen whose displacement explains most of the residuals around it. If a joint
    has no other joint beside it, neither of its sensors is chosen. An outlier lasts
    `CleanOptions.max_outlier` at most.

    Args:
        bodies: The moving bodies.
        joints: Their joints.
        tree: Which of the joints are real.
    """
    pair, centers = joint_centers(bodies, joints, tree)
    residual = (centers[:, :, 0] - centers[:, :, 1]).swapaxes(0, 1)
    rate = bodies.take.rate
    max_frames = min(int(CleanOptions().max_outlier * rate), residual.shape[1])
    limits = CERTAIN_SD, MARKER_NOISE_M, max_frames
    # +1 for the first body of a joint, -1 for the second.
    incidence = np.zeros((len(pair), len(bodies.names)))
    incidence[np.arange(len(pair))[:, None], pair] = 1.0, -1.0
    is_open = np.zeros(residual.shape[:2], dtype=bool)
    degree = np.abs(incidence).sum(axis=0)
    for k in np.flatnonzero(np.abs(incidence) @ degree > 2).tolist():
        for run in find_position_runs(residual[k], rate, *limits):
            is_open[k, run[0] : run[1] + 1] = True
    is_open &= np.isfinite(residual).all(axis=2)
    if not is_open.any():
        return ()
    deviation, scale = _fast_part(residual, max_frames)
    is_outlier = _explain_open_joints(is_open, deviation, scale, incidence)
    size = np.linalg.norm(residual, axis=2)
    outliers = []
    for body, name in enumerate(bodies.names):
        of_body = size[incidence[:, body] != 0.0]
        for first, last in runs(is_outlier[:, body]):
            largest = float(np.nanmax(of_body[:, first : last + 1]))
            outliers.append(Outlier(name, "joint", first, last, largest))
    return drop_frequent(outliers, dict.fromkeys(bodies.names, len(is_outlier)))


def joint_centers(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Int[Array, "joint 2"], Float[Array, "frame joint 2 3"]]:
    """Return both bodies of each real joint, and the centre as each of them sees it.

    In the world, in metres.
    """
    rows = tree.edge[tree.edge >= 0]
    pair = joints.pair[rows]
    center = np.stack([joints.center_a[rows], joints.center_b[rows]], axis=1)
    return pair, geometry.apply(bodies.T_world_body[:, pair], center)


def _fast_part(
    residual: Float[Array, "joint frame 3"], max_frames: int
) -> tuple[Float[Array, "joint frame 3"], Values]:
    """Return residuals minus their moving median, and the median size by joint (m).

    The size is at least the noise of a marker.
    """
    from scipy.ndimage import median_filter

    slow = median_filter(np.nan_to_num(residual), size=(1, 2 * max_frames + 1, 1))
    deviation = np.asarray(residual - slow)
    medians = [finite_median(row) for row in np.linalg.norm(deviation, axis=2)]
    return deviation, np.maximum(medians, MARKER_NOISE_M)


def _explain_open_joints(
    is_open: Bool[Array, "joint frame"],
    deviation: Float[Array, "joint frame 3"],
    scale: Values,
    incidence: Float[Array, "joint body"],
) -> Bool[Array, "frame body"]:
    r"""Return the sensors that explain the open joints of each frame.

    A sensor displaced by :math:`d` changes the residual of each of its joints by
    :math:`\pm d`. The weighted least-squares estimate of :math:`d` reduces the sum of
    squares by :math:`\lVert d \rVert^2 \sum_j w_j`; the sensor with the largest
    reduction is chosen (greedy search), and its displacement is removed. The next
    sensor is searched among those whose joints are still open.

    Args:
        is_open: Which residuals are outliers.
        deviation: Residuals without their slow part, in metres.
        scale: Usual size of the deviation of each joint, in metres.
        incidence: +1 for the first body of a joint, -1 for the second, else 0.
    """
    is_outlier = np.zeros((is_open.shape[1], incidence.shape[1]), dtype=bool)
    frames = np.flatnonzero(is_open.any(axis=0))
    unexplained, residual = is_open[:, frames], deviation[:, frames].copy()
    seen = np.isfinite(residual).all(axis=2)
    residual[~seen] = 0.0
    weight = seen / scale[:, None] ** 2
    total = weight.T @ np.abs(incidence) + 1e-300
    while unexplained.any():
        moment = np.einsum("jf,jfi,jb->fbi", weight, residual, incidence)
        displacement = moment / total[..., None]
        reduction = total * np.sum(displacement**2, axis=2)
        reduction[~(unexplained.T @ np.abs(incidence)).astype(bool)] = 0.0
        body = reduction.argmax(axis=1)
        is_outlier[frames, body] |= unexplained.any(axis=0)
        chosen = displacement[np.arange(len(frames)), body]
        residual -= incidence[:, body, None] * chosen * seen[..., None]
        unexplained = unexplained & (incidence[:, body] == 0.0)
    return is_outlier
