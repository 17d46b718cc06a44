"""A skeleton straight from a known tree: joints from root to leaf, then every frame.

The root's markers give its pose. Seen from there the markers of a child turn about
their joint; joint and markers together give the child its pose, even where markers
alone are too few; and so on to the leaves. What is learnt are constants, with which
any later frame is posed directly, without inverse kinematics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from marey import geometry
from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joints._chain import hung, turned, unknown_noise
from marey.joints._crowd import Crowd
from marey.joints._figure import Constants, Figure, How, skeleton_of
from marey.joints._noise import PoseNoise, measure_noise
from marey.joints._sphere import Estimator, Sphere, fit_sphere
from marey.joints._turning import constructed, swung, unit
from marey.motion import Motion
from marey.report import Finding
from marey.rigid import fit_rigid
from marey.skeleton import Skeleton

Array = np.ndarray
Axes = Literal["weighted", "constructed"]

# How far the ends of a hinge's axis that stand in for markers are from the joint, as a
# share of the marker's own distance.
AXIS_ARM = 0.5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hierarchy:
    """A tree of bodies with everything needed to pose a frame directly."""

    names: tuple[str, ...]
    constants: tuple[Constants, ...]
    """Parents before children."""

    skeleton: Skeleton
    R_rest: Float[Array, "body 3 3"]
    """World axes of each body in the rest pose."""

    findings: tuple[Finding, ...] = ()

    def pose(self, bodies: Bodies) -> Motion:
        """Return the motion of the same bodies in any take, frame by frame.

        Raises:
            DataError: If the bodies are not those it was learnt from.
        """
        if bodies.names != self.names:
            raise DataError("bodies", found=bodies.names, needed=self.names)
        crowd = Crowd((bodies,))
        T = np.full((len(crowd.T), len(self.names), 4, 4), np.nan)
        for constant in self.constants:
            T[:, constant.body] = _posed(crowd, constant, T)
        return self._figure().motion(self.skeleton, T, bodies.take)

    def _figure(self) -> Figure:
        order = [c.body for c in self.constants]
        centers = np.array([c.center for c in self.constants])
        return Figure(order, [c.parent for c in self.constants], centers, self.R_rest)


def estimate_skeleton(
    bodies: Bodies,
    parent: Mapping[str, str],
    *,
    axes: Axes = "weighted",
    estimator: Estimator = "geometric",
) -> tuple[Skeleton, Motion]:
    """Return skeleton and motion of bodies whose tree is known.

    See `estimate_hierarchy`, which keeps the constants for other takes.
    """
    hierarchy = estimate_hierarchy((bodies,), parent, axes=axes, estimator=estimator)
    return hierarchy.skeleton, hierarchy.pose(bodies)


def estimate_hierarchy(
    takes: Sequence[Bodies],
    parent: Mapping[str, str],
    *,
    axes: Axes = "weighted",
    estimator: Estimator = "geometric",
) -> Hierarchy:
    """Learn the constants of a tree of bodies, from root to leaf.

    Implements Knight2007, Secs. 2.3-2.6. A body's pose comes from, by what it has:

    "sensor": its 6-DoF sensor. "points" (axes="weighted"): all its markers, its joint
    and two points of a hinge's axis as one rigid body, each by how well it keeps its
    place. "constructed" (axes="constructed"): the paper's columns from one, two or
    three points. "swung": one marker on a ball joint, or markers in line with it: the
    turn about that line is not seen, so there is none against the parent (the paper
    leaves this case open). "carried": no motion against the parent shows a joint, so
    the body goes with it.

    Args:
        takes: The same bodies in one or several takes; the joints are fitted to all.
        parent: Name of each body's parent; the root has none, or "".
        axes: "weighted", or "constructed" for the paper's own way.
        estimator: See `fit_sphere`.

    Raises:
        DataError: If there is not exactly one root, a name is unknown, or the root has
            fewer than three markers off one line and no sensor.
        OptionError: If `axes` is not known.
    """
    if axes not in ("weighted", "constructed"):
        raise OptionError("axes", found=axes, needed='"weighted" or "constructed"')
    names = takes[0].names
    order, above = _ordered(names, parent)
    crowd = Crowd(takes)
    own = measure_noise(takes, noise=None, turn_noise=None)
    noise: dict[int, PoseNoise] = {}
    T = np.full((len(crowd.T), len(names), 4, 4), np.nan)
    constants: list[Constants] = []
    findings = []
    for body in order:
        if above[body] < 0:
            constant = _root(crowd, body, names[body], axes)
        else:
            expected = _noise(crowd, body, T[:, above[body]], noise[above[body]], own)
            constant = _learnt(crowd, body, above[body], T, axes, estimator, expected)
        constants.append(constant)
        T[:, body] = _posed(crowd, constant, T)
        noise[body] = _passed_on(crowd, constant, T, noise, own)
        findings += _notes(names, constant, np.isfinite(T[:, body]).all(axis=(1, 2)))
    skeleton, R_rest = skeleton_of(takes[0], constants, T, crowd)
    return Hierarchy(
        names=names,
        constants=tuple(constants),
        skeleton=skeleton,
        R_rest=R_rest,
        findings=tuple(findings),
    )


def _ordered(
    names: tuple[str, ...], parent: Mapping[str, str]
) -> tuple[list[int], list[int]]:
    """Return bodies with parents first, and the parent of every body."""
    unknown = {n for pair in parent.items() for n in pair if n} - set(names)
    if unknown:
        raise DataError(
            "parents", found=sorted(unknown), needed=f"bodies of {', '.join(names)}"
        )
    above = [names.index(parent[n]) if parent.get(n) else -1 for n in names]
    roots = [names[i] for i, p in enumerate(above) if p < 0]
    if len(roots) != 1:
        raise DataError("parents", found=f"roots {roots}", needed="exactly one root")
    order = [above.index(-1)]
    for body in order:
        order += [child for child, p in enumerate(above) if p == body]
    if len(order) < len(names):
        rest = sorted(set(names) - {names[i] for i in order})
        raise DataError("parents", found=f"a circle of {rest}", needed="a tree")
    return order, above


def _root(crowd: Crowd, body: int, name: str, axes: Axes) -> Constants:
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


def _learnt(
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


def _noise(
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


def _passed_on(
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


# --- poses ----------------------------------------------------------------------------


def _posed(crowd: Crowd, constant: Constants, T: Array) -> Array:
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


def _notes(
    names: tuple[str, ...], constant: Constants, seen: Bool[Array, " frame"]
) -> list[Finding]:
    body, code = names[constant.body], f"body-{constant.how}"
    if constant.how == "swung":
        message = f"the twist of {body} about its own length is not seen; it has none"
    elif constant.how == "carried" and seen.any():
        message = (
            f"{body} does not move against {names[constant.parent]} enough to show a "
            "joint; it is carried along"
        )
    elif constant.how == "carried":
        code = "body-unseen"
        message = (
            f"{body} is never seen together with {names[constant.parent]}: no joint "
            "between them can be found"
        )
    else:
        return []
    return [Finding(code, "joints", "warning", message, body)]
