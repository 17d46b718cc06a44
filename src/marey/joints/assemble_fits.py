"""From equations solved to `JointFits`, in the bodies' own coordinates."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.closed_form import Closed, System, at_minimum_norm, plain_system
from marey.joints.ball.hinge import axis_covariance, hinge_axes, kinds_of
from marey.joints.ball.normal_equations import Equations
from marey.joints.noise import PoseNoise

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What is known of all pairs before they are packed, seen from the anchors."""

    pair: Int[Array, "pair 2"]
    noise: PoseNoise
    system: System
    closed: Closed
    correlation: Float[Array, " pair"]


def packed(
    draft: Draft, *, distance: Float[Array, " pair"], mediated: Float[Array, " pair"]
) -> JointFits:
    """Return the fits in the bodies' own coordinates."""
    pair, system, closed, noise = draft.pair, draft.system, draft.closed, draft.noise
    known = np.isfinite(closed.residual)
    ends = noise.anchor[pair].reshape(len(pair), 6)
    u, covariance = centers_of(draft)
    kind = kinds_of(closed.free, known)
    hinge = np.array([k == "hinge" for k in kind], dtype=bool)
    axis_a, axis_b = (np.where(hinge[:, None], x, np.nan) for x in hinge_axes(system))
    axes = np.full((len(pair), 6, 6), np.nan)
    if hinge.any():
        part = System(
            Equations(*(x[hinge] for x in _parts(system.raw))),
            *(x[hinge] for x in (system.A, system.g, system.value, system.vector)),
        )
        axes[hinge] = axis_covariance(
            part, axis_a[hinge], axis_b[hinge], draft.correlation[hinge]
        )
    return JointFits(
        pair=pair,
        center_a=u[:, :3],
        center_b=u[:, 3:],
        axis_a=axis_a,
        axis_b=axis_b,
        residual=closed.residual,
        noise=np.where(known, np.sqrt(noise.gap(pair, u - ends)), np.nan),
        distance=np.where(known, distance, np.nan),
        mediated=np.where(known, mediated, np.nan),
        spread=spread_of(system),
        covariance=covariance,
        axis_covariance=axes,
        kind=kind,
    )


def centers_of(
    draft: Draft,
) -> tuple[Float[Array, "pair 6"], Float[Array, "pair 6 6"]]:
    """Return (center_a, center_b) from the bodies' origins, and their covariance."""
    ends = draft.noise.anchor[draft.pair].reshape(len(draft.pair), 6)
    closed = draft.closed
    return at_minimum_norm(
        closed.u + ends, closed.covariance, draft.system.vector, closed.free, closed.sd
    )


def _parts(raw: Equations) -> tuple[Array, ...]:
    return raw.count, raw.A, raw.g, raw.square


def spread_of(system: System) -> Float[Array, "pair 6"]:
    """Return the singular values of Q per root frame (Sec. 3.2), ascending."""
    plain = system if system.A is system.raw.A else plain_system(system.raw)
    return np.asarray(np.sqrt(np.maximum(plain.value, 0.0)))


def distances(
    bodies: Bodies, pair: Int[Array, "pair 2"], u: Float[Array, "pair 6"]
) -> Float[Array, " pair"]:
    """Return the mean distance of centres from the markers, or origins, of a pair."""
    total = np.zeros(len(pair))
    for body in range(len(bodies.names)):
        mine = bodies.marker_offset[bodies.marker_body == body]
        mine = mine[np.isfinite(mine).all(axis=1)]
        places = mine if len(mine) else np.zeros((1, 3))
        for column, points in zip(pair.T, (u[:, :3], u[:, 3:]), strict=True):
            rows = column == body
            away = np.linalg.norm(points[rows, None] - places, axis=-1)
            total[rows] += 0.5 * away.mean(axis=1)
    return total
