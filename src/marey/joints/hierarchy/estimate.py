"""Skeleton and motion of a known tree, estimated from the root to the leaves.

Knight2007, Secs. 2.3-2.6. The markers of the root determine its pose. In the axes of
the root the markers of a child move on spheres about their joint; joint and markers
together determine the pose of the child, even if its markers alone are too few; and so
on to the leaves. The estimate consists of constants, with which any later frame is
posed directly, without inverse kinematics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joints.common_markers import with_common_markers
from marey.joints.hierarchy.posed_bodies import motion_from_poses, skeleton_from_poses
from marey.joints.hierarchy.propagation import PosePropagation
from marey.joints.hierarchy.root_to_leaf import (
    AxesMethod,
    BodyConstants,
    pose_body,
    root_constants,
)
from marey.joints.sphere.fit import SphereEstimator
from marey.joints.stacked_takes import StackedTakes
from marey.motion import Motion
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hierarchy:
    """A tree of bodies with all constants that are needed to pose a frame directly."""

    names: tuple[str, ...]
    constants: tuple[BodyConstants, ...]
    """Constants of the bodies, parents before children."""

    skeleton: Skeleton
    R_rest: Float[Array, "body 3 3"]
    """World axes of each body in the rest pose."""

    findings: tuple[Finding, ...] = ()

    def pose(self, bodies: Bodies) -> Motion:
        """Return the motion of the same bodies in any take, frame by frame.

        Raises:
            DataError: If the bodies are not those of the hierarchy.
        """
        if bodies.names != self.names:
            raise DataError("bodies", found=bodies.names, needed=self.names)
        stacked = StackedTakes((bodies,))
        T = np.full((len(stacked.T), len(self.names), 4, 4), np.nan)
        for part in self.constants:
            T[:, part.body] = pose_body(stacked, part, T)
        return motion_from_poses(
            self.skeleton, self.constants, self.R_rest, T, bodies.take
        )


def estimate_skeleton(
    bodies: Bodies,
    parent: Mapping[str, str],
    *,
    axes: AxesMethod = "weighted",
    estimator: SphereEstimator = "geometric",
) -> tuple[Skeleton, Motion]:
    """Return skeleton and motion of bodies whose tree is known.

    `estimate_hierarchy` has the method, and keeps the constants for other takes.
    """
    hierarchy = estimate_hierarchy((bodies,), parent, axes=axes, estimator=estimator)
    return hierarchy.skeleton, hierarchy.pose(bodies)


def estimate_hierarchy(
    takes: Sequence[Bodies],
    parent: Mapping[str, str],
    *,
    axes: AxesMethod = "weighted",
    estimator: SphereEstimator = "geometric",
) -> Hierarchy:
    """Return the constants of a tree of bodies, estimated from root to leaf.

    Implements Knight2007, Secs. 2.3-2.6. `BodyConstants.pose_source` says which data
    determine the pose of a body:

    - "sensor": its 6-DoF sensor. - "points", with axes="weighted": its markers, its
    joint and, for a single marker on a hinge, a point of the axis, fitted as one rigid
    body. Each point has a weight by how well it keeps its position. The paper does not
    weight points. - "constructed", with axes="constructed": one, two or three points,
    as in the paper. - "direction": one marker on a ball joint, or markers on a line
    with it. The twist about this line is not observable and is set to zero relative to
    the parent. The paper does not treat this case. - "parent": no motion relative to
    the parent reveals a joint, so the body is fixed to its parent.

    Args:
        takes: The same bodies in one or several takes; the joints are fitted to all.
        parent: Name of each body's parent; the root has none, or "".
        axes: "weighted", or "constructed" for the method of the paper.
        estimator: See `fit_sphere`.

    Raises:
        DataError: If there is not exactly one root, a name is unknown, or the root has
            no sensor and fewer than three markers that are not on one line.
        OptionError: If `axes` is not known.
    """
    if axes not in ("weighted", "constructed"):
        raise OptionError("axes", found=axes, needed='"weighted" or "constructed"')
    takes = with_common_markers(takes)
    names = takes[0].names
    order, parents = _root_to_leaf_order(names, parent)
    propagation = PosePropagation(takes)
    stacked, T = propagation.stacked, propagation.T
    constants: list[BodyConstants] = []
    findings: list[Finding] = []
    for body in order:
        if parents[body] < 0:
            part = root_constants(stacked, body, names[body], axes)
        else:
            part = propagation.estimate_child(body, parents[body], axes, estimator)
        propagation.pose(part)
        constants.append(part)
        findings += _findings(names, part, is_seen=bool(np.isfinite(T[:, body]).any()))
    skeleton, R_rest = skeleton_from_poses(takes[0], constants, T, stacked)
    return Hierarchy(
        names=names,
        constants=tuple(constants),
        skeleton=skeleton,
        R_rest=R_rest,
        findings=tuple(findings),
    )


def _root_to_leaf_order(
    names: tuple[str, ...], parent: Mapping[str, str]
) -> tuple[list[int], list[int]]:
    """Return the bodies with parents before children, and the parent of every body.

    Raises:
        DataError: If the parents are no tree of these bodies.
    """
    unknown = {name for pair in parent.items() for name in pair if name} - set(names)
    if unknown:
        raise DataError(
            "parents", found=sorted(unknown), needed=f"bodies of {', '.join(names)}"
        )
    parents = [names.index(parent[n]) if parent.get(n) else -1 for n in names]
    roots = [names[body] for body, above in enumerate(parents) if above < 0]
    if len(roots) != 1:
        raise DataError("parents", found=f"roots {roots}", needed="exactly one root")
    order = [parents.index(-1)]
    for body in order:
        order += [child for child, above in enumerate(parents) if above == body]
    if len(order) < len(names):
        rest = sorted(set(names) - {names[body] for body in order})
        raise DataError("parents", found=f"a cycle of {rest}", needed="a tree")
    return order, parents


def _findings(
    names: tuple[str, ...], constants: BodyConstants, *, is_seen: bool
) -> list[Finding]:
    """Return what the data do not determine about one body."""
    body, source = names[constants.body], constants.pose_source
    if source not in ("direction", "parent"):
        return []
    name, parent = mark_name(body), mark_name(names[constants.parent])
    if source == "direction":
        code = "body-swung"
        message = (
            f"the twist of {name} about its length is not visible and set to zero; add "
            "a marker off that line"
        )
    elif is_seen:
        code = "body-carried"
        message = (
            f"{name} hardly moves relative to {parent} and is fixed to it; bend it"
        )
    else:
        code = "body-unseen"
        message = f"{name} is never seen together with {parent}; record both together"
    return [Finding(code, "joints", "warning", message, body)]
