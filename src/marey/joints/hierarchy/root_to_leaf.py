"""Bodies that hang from others: what is learnt of them, and how they are posed."""

from typing import Literal

import numpy as np

from marey.errors import DataError
from marey.joints.axes_from_points import constructed, swung, unit
from marey.joints.hierarchy.noise_propagation import hung, turned, unknown_noise
from marey.joints.hierarchy.posed_bodies import Constants, How
from marey.joints.noise import PoseNoise
from marey.joints.sphere.fit import Estimator, Sphere, fit_sphere
from marey.joints.stacked_takes import Crowd
from marey.numerics import geometry
from marey.numerics.procrustes import fit_rigid

Array = np.ndarray
Axes = Literal["weighted", "constructed"]

# How far the ends of a hinge's axis that stand in for markers are from the joint, as a
# share of the marker's own distance.
AXIS_ARM = 0.5


def root_of(crowd: Crowd, body: int, name: str, axes: Axes) -> Constants:
    places, weights = np.zeros((0, 3)), np.zeros(0)
    how: How = "sensor"
    if crowd.member[:, body].any():
        fit = fit_rigid(crowd.markers(body))
        if not fit.determined:
            raise DataError(
                f"root {name}",
                found=f"{crowd.member[:, body].sum()} markers, too few or on one line",
                needed="3 markers that are not",
            )
        places, weights = fit.offset, _weights(fit.sd)
        how = "points" if axes == "weighted" else "constructed"
    return _constants(body, -1, None, np.zeros(3), places, weights, how)


def learnt(
    crowd: Crowd,
    body: int,
    parent: int,
    T: Array,
    axes: Axes,
    estimator: Estimator,
    noise: Array | None,
) -> Constants:
    """Return the constants of a body whose parent is posed."""
    none = np.zeros((0, 3))
    back = geometry.inverse(T[:, parent])
    markers = crowd.markers(body, without=parent)
    seen = geometry.apply(back[:, None], markers)
    sphere = fit_sphere(seen, estimator=estimator, noise=noise)
    if sphere.reason and not crowd.determined[parent]:
        # What few markers lead to expect is rough: good enough to call a path flat,
        # not to call it none.
        sphere = fit_sphere(seen, estimator=estimator)
    if sphere.reason:
        middle = _mean(seen.reshape(-1, 3))
        return _constants(body, parent, None, middle, none, np.zeros(0), "carried")
    joint = geometry.apply(T[:, parent], sphere.center)
    if not crowd.member[:, body].any():
        own = _mean(geometry.apply(geometry.inverse(crowd.T[:, body]), joint))
        return _constants(body, parent, sphere, own, none, np.zeros(0), "sensor")
    axis = _axis_path(T[:, parent], sphere)
    arm = AXIS_ARM * np.nanmean(sphere.radius)
    points = _points(crowd.markers(body), joint, axis, arm)
    fit = fit_rigid(points)
    if not fit.determined:
        rest = unit(_mean(_pointing(seen, sphere.center)))
        return _constants(
            body, parent, sphere, np.zeros(3), rest[None], np.ones(1), "swung"
        )
    count = crowd.member[:, body].sum()
    if axes == "constructed" and (count > 1 or sphere.kind == "hinge"):
        built = constructed(crowd.markers(body), joint, axis)
        own = _mean(geometry.apply(geometry.inverse(built), joint))
        places = _mean_places(built, points)
        return _constants(
            body, parent, sphere, own, places, np.ones(len(places)), "constructed"
        )
    own = fit.offset[count]
    return _constants(body, parent, sphere, own, fit.offset, _weights(fit.sd), "points")


def noise_in(
    crowd: Crowd, body: int, T_parent: Array, above: PoseNoise, own: PoseNoise
) -> Array | None:
    """Return the noise of a body's markers in the axes of its posed parent."""
    if not np.isfinite(above.turn).all():
        return None
    markers = crowd.markers(body)
    seen = geometry.apply(geometry.inverse(T_parent)[:, None], markers)
    both = PoseNoise(
        np.concatenate([above.turn, own.turn[[body]]]),
        np.concatenate([above.shift, own.shift[[body]]]),
        np.concatenate([above.anchor, own.anchor[[body]]]),
    )
    return crowd.noise(seen, both, 0, 1 if crowd.determined[body] else None)


def passed_on(
    crowd: Crowd,
    constant: Constants,
    T: Array,
    noise: dict[int, PoseNoise],
    own: PoseNoise,
) -> PoseNoise:
    """Return the noise of a posed body, which those that hang from it inherit."""
    body, parent = constant.body, constant.parent
    if crowd.determined[body] or parent < 0:
        return turned(own, body, T[:, body], crowd.T[:, body])
    R = np.swapaxes(T[:, body, :3, :3], 1, 2) @ T[:, parent, :3, :3]
    R = R[np.isfinite(R).all(axis=(1, 2))]
    if not len(R):
        return unknown_noise(1)
    count = int(crowd.member[:, body].sum())
    return hung(constant, noise[parent], count, R.mean(axis=0))


def _constants(
    body: int,
    parent: int,
    sphere: Sphere | None,
    center: Array,
    places: Array,
    weights: Array,
    how: How,
) -> Constants:
    none = np.full(3, np.nan)
    carried = how == "carried"
    return Constants(
        body=body,
        parent=parent,
        center_parent=sphere.center if sphere else (center if carried else none),
        axis_parent=sphere.axis if sphere else none,
        kind=sphere.kind if sphere else ("fixed" if carried else "root"),
        covariance=sphere.covariance if sphere else np.full((3, 3), np.nan),
        noise=sphere.noise if sphere else 0.0,
        wobble=sphere.spread[0] / np.nanmax(sphere.radius) if sphere else 0.0,
        center=np.zeros(3) if carried else center,
        places=places,
        weights=weights,
        how=how,
    )


def posed(crowd: Crowd, constant: Constants, T: Array) -> Array:
    """Return the pose of a body in every frame, its parent's being known."""
    body = constant.body
    if constant.how == "sensor":
        return np.asarray(crowd.T[:, body])
    joint, axis = np.full((2, len(T), 3), np.nan)
    if constant.parent >= 0:
        above = T[:, constant.parent]
        joint = geometry.apply(above, constant.center_parent)
        axis = np.einsum("fij,j->fi", above[:, :3, :3], constant.axis_parent)
    if constant.how == "carried":
        return geometry.transform(above[:, :3, :3], joint)
    if constant.how == "swung":
        way = _pointing(crowd.markers(body), joint)
        return swung(above, way, constant.places[0], joint)
    if constant.how == "constructed":
        return constructed(crowd.markers(body), joint, axis)
    points = crowd.markers(body)
    if constant.parent >= 0:
        arm = float(np.linalg.norm(constant.places[-1] - constant.center))
        points = _points(points, joint, axis, arm)
    return geometry.kabsch(constant.places, points, constant.weights)


def _points(markers: Array, joint: Array, axis: Array, arm: float) -> Array:
    """Return markers, the joint and, where one marker needs it, a point of its axis."""
    points = [markers, joint[:, None]]
    if markers.shape[1] == 1 and np.isfinite(axis).any():
        points.append((joint + arm * axis)[:, None])
    return np.concatenate(points, axis=1)


def _axis_path(T_parent: Array, sphere: Sphere) -> Array:
    return np.asarray(np.einsum("fij,j->fi", T_parent[:, :3, :3], sphere.axis))


def _pointing(markers: Array, joint: Array) -> Array:
    """Return the way from the joint to the first marker, in every frame."""
    return np.asarray(markers[:, 0] - joint)


def _weights(sd: Array) -> Array:
    """Return weights by how well points keep their places, never far from equal."""
    variance = np.where(np.isfinite(sd), sd, 0.0) ** 2
    usual = variance.mean()
    return np.ones(len(sd)) if usual == 0.0 else 2.0 * usual / (variance + usual)


def _mean(values: Array) -> Array:
    known = np.isfinite(values).all(axis=-1)
    return np.asarray(values[known].mean(axis=0)) if known.any() else np.full(3, np.nan)


def _mean_places(T: Array, points: Array) -> Array:
    local = geometry.apply(geometry.inverse(T)[:, None], points)
    return np.stack([_mean(local[:, i]) for i in range(local.shape[1])])
