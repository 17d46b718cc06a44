"""How the noise of poses adds up from root to leaf."""

import numpy as np
from jaxtyping import Float

from marey.joints.hierarchy.posed_bodies import Constants
from marey.joints.noise import PoseNoise
from marey.numerics import geometry

Array = np.ndarray


def unknown_noise(n_bodies: int) -> PoseNoise:
    """Return the noise of bodies that have no poses yet."""
    return PoseNoise(
        np.full((n_bodies, 3, 3), np.nan),
        np.full(n_bodies, np.nan),
        np.full((n_bodies, 3), np.nan),
    )


def turned(
    noise: PoseNoise,
    body: int,
    T: Float[Array, "frame 4 4"],
    T_own: Float[Array, "frame 4 4"],
) -> PoseNoise:
    """Return the noise of one body's own poses in the axes it was posed with.

    Args:
        noise: Of the bodies' own poses.
        body: Which one.
        T: As it was posed.
        T_own: Its own poses.
    """
    T_posed_own = geometry.inverse(T) @ T_own
    known = np.isfinite(T_posed_own).all(axis=(1, 2))
    if not known.any():
        return unknown_noise(1)
    R = T_posed_own[known, :3, :3].mean(axis=0)
    anchor = geometry.apply(T_posed_own[known], noise.anchor[body]).mean(axis=0)
    return _one(R @ noise.turn[body] @ R.T, noise.shift[body], anchor)


def hung(
    constant: Constants,
    above: PoseNoise,
    n_markers: int,
    R_body_parent: Float[Array, "3 3"],
) -> PoseNoise:
    """Return the noise of a body that its joint and few markers pose.

    The joint goes with the parent and has its noise. About a hinge's axis the markers
    fix the turn; across it the body has the parent's noise and the play of the pin. NaN
    below a ball joint, where the twist hangs on how near to a line few markers are: a
    figure too rough to call a path flat by.

    Args:
        constant: The body.
        above: The noise of its parent, alone.
        n_markers: How many of its places are markers.
        R_body_parent: The parent's axes in the body's, on average.
    """
    turn, reach = above.turn[0], constant.center_parent - above.anchor[0]
    if constant.how == "carried":
        return _one(turn, above.shift[0], -reach)
    lever = geometry.hat(reach)
    shift = above.shift[0] + np.trace(lever @ turn @ lever.T) / 3.0
    if constant.kind != "hinge":
        return _one(np.full((3, 3), np.nan), shift, constant.center)
    axis = R_body_parent @ constant.axis_parent
    axis = axis / np.linalg.norm(axis)
    arm = constant.places[:n_markers] - constant.center
    inertia = np.sum(arm**2) * np.eye(3) - arm.T @ arm
    # The radii scatter by the noise of marker and joint against each other.
    about = constant.noise**2 / (axis @ inertia @ axis)
    flat = np.eye(3) - np.outer(axis, axis)
    across = flat @ R_body_parent
    turn = across @ turn @ across.T + constant.wobble**2 * flat
    return _one(turn + about * np.outer(axis, axis), shift, constant.center)


def _one(turn: Array, shift: float, anchor: Array) -> PoseNoise:
    return PoseNoise(turn[None], np.array([shift], dtype=float), anchor[None])
