"""A skeleton straight from a known tree: joints from root to leaf, then every frame.

The root's markers give its pose. Seen from there the markers of a child turn about
their joint; joint and markers together give the child its pose, even where markers
alone are too few; and so on to the leaves. What is learnt are constants, with which
any later frame is posed directly, without inverse kinematics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joints.common_markers import levelled
from marey.joints.hierarchy.posed_bodies import Constants, Figure, skeleton_of
from marey.joints.hierarchy.root_to_leaf import (
    Axes,
    learnt,
    noise_in,
    passed_on,
    posed,
    root_of,
)
from marey.joints.noise import PoseNoise, measure_noise
from marey.joints.sphere.fit import Estimator
from marey.joints.stacked_takes import Crowd
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton

Array = np.ndarray


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
            T[:, constant.body] = posed(crowd, constant, T)
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
    takes = levelled(takes)
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
            constant = root_of(crowd, body, names[body], axes)
        else:
            expected = noise_in(crowd, body, T[:, above[body]], noise[above[body]], own)
            constant = learnt(crowd, body, above[body], T, axes, estimator, expected)
        constants.append(constant)
        T[:, body] = posed(crowd, constant, T)
        noise[body] = passed_on(crowd, constant, T, noise, own)
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
