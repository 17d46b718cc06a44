"""Bodies that are two parts of a leg, divided where motion and anatomy agree.

Markers beside a knee hardly change their distances while it bends, so thigh and shank
may be found as one body. Which body of a leg lacks a joint shows by the positions of
its markers along the leg; the motion shows how it divides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from marey.anatomy.naming import LEG_MIDDLES, legs_that_lack_parts
from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints import pose_underdetermined_bodies
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import column_medians
from marey.pipeline.person.prior import is_whole
from marey.pipeline.stages.several_takes import (
    concatenate_takes,
    takes_of_first_session,
)
from marey.pipeline.stages.two_kinds import JoinedBodies
from marey.report import Finding
from marey.rig import anonymous_figures, has_default_name, name_bodies
from marey.segmentation import divide_at_joint
from marey.topology import tree_from_parents
from marey.tree import Tree

FitPairs = Callable[[Sequence[Bodies]], JointFits]
"""Returns a joint for every pair of bodies."""

PosedBodies = tuple[Bodies, JointFits, Tree]
"""Bodies of all takes as one, with joints and tree."""

Edge = tuple[int, int]
"""Two bodies that a joint connects."""


def divide_legs(found: JoinedBodies, fit_pairs: FitPairs) -> JoinedBodies:
    """Return the bodies with those of legs divided that consist of two parts.

    A leg that lacks a part has it in the body of the marker nearest to the middle of
    that part. If this is the body of the next part, too, and the motion divides it
    between the two markers (`marey.segmentation.divide_at_joint`), the tree gets a
    joint there. A figure that has more names without these joints stays as it is.

    Args:
        found: Bodies without names, with joints and tree.
        fit_pairs: The method of the joints.
    """
    bodies, joints, tree = found
    if is_whole(found):
        return found
    divided = bodies
    edges = [(body, int(p)) for body, p in enumerate(tree.parent) if p >= 0]
    posed = _pose_all(found, fit_pairs)
    for figure in anonymous_figures(*posed):
        for leg in legs_that_lack_parts(figure):
            divided, edges = _divide_leg(divided, edges, leg)
    names = divided[0].names
    n_added = len(names) - len(bodies[0].names)
    if not n_added:
        return found
    parents = _orient(edges, tree.roots.tolist())
    known = {names[child]: names[parent] for child, parent in parents.items()}
    joints = fit_pairs(takes_of_first_session(divided))
    result = divided, joints, tree_from_parents(known, names, joints)
    if _count_names(posed) > _count_names(_pose_all(result, fit_pairs)):
        return found
    return _report_division(divided, n_added), *result[1:]


def _divide_leg(
    takes: tuple[Bodies, ...], edges: list[Edge], leg: Sequence[int]
) -> tuple[tuple[Bodies, ...], list[Edge]]:
    """Return the bodies, and the pairs that joints connect, after a leg is divided.

    Args:
        takes: The same bodies in every take.
        edges: Pairs of bodies that joints connect.
        leg: Its bodies from the hips to the foot.
    """
    position = leg_positions(concatenate_takes(takes), leg)
    parts = middle_markers(position)
    for below, above in pairwise(parts):
        body = int(takes[0].marker_body[below])
        if below == above or takes[0].marker_body[above] != body:
            continue
        before, takes = takes, divide_at_joint(takes, below, above, position)
        if takes is not before:
            upper = len(before[0].names)
            at = leg.index(body) if body in leg else len(leg)
            beyond = leg[at + 1 : at + 2]
            edges = [*_move_edges(edges, body, upper, beyond), (body, upper)]
    return takes, edges


def _move_edges(
    edges: Sequence[Edge], body: int, upper: int, beyond: Sequence[int]
) -> Iterator[Edge]:
    """Yield the edges, those of a body that do not lead beyond it at its upper part."""
    for a, b in edges:
        other = b if a == body else a
        stays = body not in (a, b) or other in beyond
        yield (a, b) if stays else (upper, other)


def leg_positions(bodies: Bodies, leg: Sequence[int]) -> Float[Array, " marker"]:
    """Return the positions of a leg's markers along it: 0 the lowest, 1 the hips.

    Medians over time, along the line from the foot to the hips; NaN for other markers.

    Args:
        bodies: Bodies of one take.
        leg: Those from the hips to the foot.
    """
    points, owner = bodies.take.points, bodies.marker_body
    hips, foot = (_mean_points(points[:, owner == end]) for end in (leg[0], leg[-1]))
    axis = hips - foot
    axis /= np.maximum(geometry.lengths(axis), np.finfo(float).tiny)[:, None]
    depth = column_medians(np.einsum("fmi,fi->fm", hips[:, None] - points, axis))
    depth = np.where(np.isin(owner, leg), depth, np.nan)
    lowest = depth[np.isfinite(depth)].max(initial=0.0)
    return 1.0 - depth / lowest if lowest > 0.0 else np.full(len(owner), np.nan)


def _mean_points(points: Float[Array, "frame some 3"]) -> Float[Array, "frame 3"]:
    """Return the mean of the markers that each frame shows, in metres; NaN if none."""
    n_seen = np.isfinite(points).sum(axis=1)
    total = np.nansum(points, axis=1)
    return np.where(n_seen > 0, total / np.maximum(n_seen, 1), np.nan)


def middle_markers(position: Float[Array, " marker"]) -> list[int]:
    """Return the marker nearest to the middle of each part of a leg, from the foot.

    Of the markers that are nearer to it than to other middles; a part may have none.
    """
    middles = np.array(list(LEG_MIDDLES.values()))
    error = np.abs(position - middles[:, None])
    error = np.where(error == error.min(axis=0), error, np.inf)
    nearest = error.argmin(axis=1)
    return [int(m) for m in nearest[np.isfinite(error.min(axis=1))]]


def _orient(edges: Sequence[Edge], roots: list[int]) -> dict[int, int]:
    """Return the parent of each body that has one, by breadth-first search."""
    parents: dict[int, int] = {}
    queue = list(roots)
    for body in queue:
        near = [a + b - body for a, b in edges if body in (a, b)]
        children = [other for other in near if other not in queue]
        parents |= dict.fromkeys(children, body)
        queue += children
    return parents


def _pose_all(joined: JoinedBodies, fit_pairs: FitPairs) -> PosedBodies:
    """Return the bodies of all takes as one, those of few markers posed by joints."""
    bodies, joints, tree = joined
    takes, joints = pose_underdetermined_bodies(bodies, joints, tree, fit=fit_pairs)
    return concatenate_takes(takes), joints, tree


def _count_names(posed: PosedBodies) -> int:
    """Return how many bodies get a name by anatomy."""
    named, _ = name_bodies(*posed)
    return sum(not has_default_name(name) for name in named.names)


def _report_division(bodies: tuple[Bodies, ...], n_added: int) -> tuple[Bodies, ...]:
    """Return the bodies with the finding that some are divided."""
    message = f"{n_added} bodies of legs are divided at joints that the anatomy demands"
    finding = Finding("bodies-divided", "tree", "info", message, value=float(n_added))
    return tuple(replace(one, findings=(*one.findings, finding)) for one in bodies)
