r"""Joints whose centre moves with their angle, as that of a knee does.

The centre of a joint with the angle :math:`\theta` about its axis is at

.. math:: o(\theta) = o + b_1 (\sin\theta - \overline{\sin\theta})
                        + b_2 (\cos\theta - \overline{\cos\theta})

in its parent, with a Gaussian prior on b. A joint that bends about one axis shows where
its centre lies along this axis only by small rotations about the others; a centre that
moves by a millimetre feigns a place centimetres away. With b among the unknowns the
frames say no more about the centre than they know, and the other priors decide the
rest.

All frames below the joint are displaced by the same vector as by its offset o, times
one or the other function of the angle. The equations of b are therefore sums over the
frames of the rows of o.
"""

from dataclasses import replace

import numpy as np

from marey.calibration.model import CenterMotion, Estimate
from marey.numerics import Array, Float, Int


def follow_centers(estimate: Estimate) -> Estimate:
    """Return the estimate with the motion of centres by the angles of its poses."""
    model = estimate.model
    if not model.moving_centers:
        return estimate
    child = [model.axes[n].child for n in model.moving_centers]
    parent = model.parent[child]
    axis = estimate.parameters.axis[list(model.moving_centers), 0]
    angles = []
    for poses in estimate.poses:
        R = poses.R_world_segment
        relative = np.einsum("fnji,fnjk->fnik", R[:, parent], R[:, child])
        turn = relative - relative.swapaxes(-1, -2)
        vector = 0.5 * np.stack([turn[..., 2, 1], turn[..., 0, 2], turn[..., 1, 0]], -1)
        sine = np.einsum("fnx,nx->fn", vector, axis)
        cosine = 0.5 * (np.einsum("fnxx->fn", relative) - 1.0)
        angles.append(np.stack([sine, cosine], axis=-1))
    mean = np.concatenate(angles).mean(axis=0)
    motion = [
        CenterMotion(angle - mean, poses.R_world_segment[:, parent])
        for angle, poses in zip(angles, estimate.poses, strict=True)
    ]
    return replace(estimate, motion=tuple(motion))


def points_with_fixed_centers(
    estimate: Estimate, session: int
) -> Float[Array, "frame marker _"]:
    """Return the points of a session, in metres, as if no centre had moved."""
    points = estimate.poses[session].points
    if not estimate.motion:
        return points
    moved = estimate.motion[session].in_world(estimate.parameters.center_motion)
    points = points.copy()
    for n, below in enumerate(estimate.model.markers_below_moving_centers):
        points[:, below, :3] -= moved[:, n, None]
    return points


def displaced_columns(estimate: Estimate) -> Int[Array, " column"]:
    """Return the columns of the offsets of joints whose centre moves."""
    model = estimate.model
    moving = model.moving_centers if estimate.motion else ()
    child = [model.axes[n].child for n in moving]
    return np.ascontiguousarray(model.columns.joint_offset[child].ravel())


def with_center_equations(
    estimate: Estimate,
    session: int,
    H: Float[Array, "column column"],
    g: Float[Array, " column"],
    rows: Float[Array, "frame displaced column"],
    right: Float[Array, "frame displaced"],
) -> tuple[Float[Array, "all all"], Float[Array, " all"]]:
    """Return the equations of a session with those of the motion of centres.

    Args:
        estimate: Where they are linearised.
        session: The session.
        H: Normal matrix of the parameters, poses eliminated.
        g: Its right side.
        rows: Rows of H of `displaced_columns` in each frame.
        right: Their right side in each frame.
    """
    n, size = len(g), estimate.parameters.center_motion.size
    H_all, g_all = np.zeros((n + size, n + size)), np.zeros(n + size)
    H_all[:n, :n], g_all[:n] = H, g
    if estimate.motion:
        angle = estimate.motion[session].angle
        n_frames, n_moving, _ = angle.shape
        rows = rows.reshape(n_frames, n_moving, 3, n)
        right = right.reshape(n_frames, n_moving, 3)
        column = displaced_columns(estimate)
        among = rows[..., column].reshape(n_frames, n_moving, 3, n_moving, 3)
        H_all[n:, :n] = np.einsum("fna,fnxc->naxc", angle, rows).reshape(size, n)
        H_all[:n, n:] = H_all[n:, :n].T
        product = np.einsum("fna,fnxmy,fmb->naxmby", angle, among, angle, optimize=True)
        H_all[n:, n:] = product.reshape(size, size)
        g_all[n:] = np.einsum("fna,fnx->nax", angle, right).ravel()
    return H_all, g_all
