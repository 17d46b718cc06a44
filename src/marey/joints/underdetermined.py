"""Poses for bodies of one or two markers, from the joints that hold them.

Markers too few to show how a body is turned show it together with the joint it hangs
by: two markers and a joint are three points. The joint is where the markers turn about
in the axes of a neighbour that has a pose, so poses spread from the bodies that have
them along the tree to those that have none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.axes_from_points import unit
from marey.joints.hierarchy.posed_bodies import Constants
from marey.joints.hierarchy.root_to_leaf import learnt, noise_in, passed_on, posed
from marey.joints.noise import measure_noise
from marey.joints.stacked_takes import Crowd
from marey.numerics import geometry
from marey.numerics.procrustes import evaluate_fit
from marey.tree import Tree

Array = np.ndarray


def firmed(
    takes: tuple[Bodies, ...],
    joints: JointFits,
    tree: Tree,
    *,
    fit: Callable[[Sequence[Bodies]], JointFits],
) -> tuple[tuple[Bodies, ...], JointFits]:
    """Return the bodies with soft ones posed by their joints, and joints to match.

    A body stays as it is where no neighbour in the tree has a pose, or where its
    markers do not turn about a point of that neighbour.

    Args:
        takes: The same bodies in one or several takes.
        joints: A joint for every pair.
        tree: How the bodies hang together.
        fit: The method that found the joints; asked again for pairs of new poses.
    """
    crowd = Crowd(takes)
    # Points that are joints have pinned the bodies already.
    if takes[0].keypoints or crowd.determined.all() or not crowd.determined.any():
        return takes, joints
    T = crowd.T.copy()
    found = list(_hung(takes, crowd, tree, T))
    if not found:
        return takes, joints
    ends = np.cumsum([len(take.T_world_body) for take in takes])[:-1]
    takes = tuple(
        _with_poses(take, T_take, found)
        for take, T_take in zip(takes, np.split(T, ends), strict=True)
    )
    joints = _asked_again(takes, joints, tree, found, fit)
    for constant in found:
        joints = _with_joint(joints, constant, T)
    return takes, joints


def _hung(
    takes: tuple[Bodies, ...], crowd: Crowd, tree: Tree, T: Array
) -> Iterator[Constants]:
    """Pose one soft body after the other in T, and return what was learnt of each."""
    own = measure_noise(takes, noise=None, turn_noise=None)
    noise = {int(b): own.only(int(b)) for b in np.flatnonzero(crowd.determined)}
    waiting = list(_edges(tree))
    while True:
        ready = [
            (body, beside)
            for body, beside in waiting
            if beside in noise and body not in noise
        ]
        if not ready:
            return
        body, beside = ready[0]
        waiting.remove(ready[0])
        expected = noise_in(crowd, body, T[:, beside], noise[beside], own)
        constant = learnt(crowd, body, beside, T, "weighted", "geometric", expected)
        if constant.how != "carried":
            T[:, body] = posed(crowd, constant, T)
            noise[body] = passed_on(crowd, constant, T, noise, own)
            yield constant


def _edges(tree: Tree) -> Iterator[tuple[int, int]]:
    """Return every joint of the tree from both its ends."""
    for body, above in enumerate(tree.parent.tolist()):
        if above >= 0:
            yield body, above
            yield above, body


def _with_poses(
    take: Bodies, T: Float[Array, "frame body 4 4"], found: list[Constants]
) -> Bodies:
    """Return the bodies of a take with the poses of those that were found."""
    poses, offset = take.T_world_body.copy(), take.marker_offset.copy()
    determined, rms = take.determined.copy(), take.rms.copy()
    for constant in found:
        body = constant.body
        poses[:, body] = T[:, body]
        determined[body] = constant.how == "points"
        mine = take.marker_body == body
        local = geometry.apply(
            geometry.inverse(T[:, body])[:, None], take.take.points[:, mine]
        )
        offset[mine] = [_median(path) for path in np.swapaxes(local, 0, 1)]
        strays = evaluate_fit(
            take.take.points[:, mine], offset[mine], T[:, body], determined=True
        )
        rms[body] = strays.rms
    return replace(
        take,
        T_world_body=poses,
        marker_offset=offset,
        determined=determined,
        rms=rms,
    )


def _median(path: Float[Array, "frame 3"]) -> Float[Array, " 3"]:
    known = path[np.isfinite(path).all(axis=1)]
    return np.asarray(np.median(known, axis=0)) if len(known) else np.full(3, np.nan)


def _asked_again(
    takes: tuple[Bodies, ...],
    joints: JointFits,
    tree: Tree,
    found: list[Constants],
    fit: Callable[[Sequence[Bodies]], JointFits],
) -> JointFits:
    """Return the joints with those of the tree refitted where a body has a new pose.

    Pairs of such a body that the tree does not use are no longer known.
    """
    changed = [constant.body for constant in found]
    done = {frozenset((constant.body, constant.parent)) for constant in found}
    stale = np.asarray(np.isin(joints.pair, changed).any(axis=1))
    wanted = [
        row
        for row in sorted(set(tree.edge[tree.edge >= 0].tolist()))
        if stale[row] and frozenset(joints.pair[row].tolist()) not in done
    ]
    columns = {name: getattr(joints, name).copy() for name in _COLUMNS}
    for column in columns.values():
        column[stale] = np.nan
    kind = np.array(joints.kind, dtype=object)
    kind[stale] = "ball"
    for row in wanted:
        pair = joints.pair[row].tolist()
        new = fit([_only(take, pair) for take in takes])
        for name, column in columns.items():
            column[row] = getattr(new, name)[0]
        kind[row] = new.kind[0]
    return replace(joints, kind=tuple(kind.tolist()), **columns)


_COLUMNS = (
    *("center_a", "center_b", "axis_a", "axis_b", "residual", "noise", "distance"),
    *(
        "mediated",
        "spread",
        "covariance",
        "axis_covariance",
        "averaged_residual",
        "averaged_noise",
    ),
)


def _only(take: Bodies, bodies: list[int]) -> Bodies:
    """Return a take with some of its bodies."""
    place = np.full(len(take.names) + 1, -1)
    place[bodies] = np.arange(len(bodies))
    return replace(
        take,
        names=tuple(take.names[body] for body in bodies),
        T_world_body=take.T_world_body[:, bodies],
        determined=take.determined[bodies],
        marker_body=place[take.marker_body],
        shared=take.shared[:, bodies],
        body_confidence=take.body_confidence[bodies],
        rms=take.rms[bodies],
        parents={},
    )


def _with_joint(joints: JointFits, constant: Constants, T: Array) -> JointFits:
    """Return the joints with that by which a soft body got its pose."""
    body, beside = constant.body, constant.parent
    low, high = min(body, beside), max(body, beside)
    row = int(np.flatnonzero((joints.pair == (low, high)).all(axis=1))[0])
    R = np.swapaxes(T[:, body, :3, :3], 1, 2) @ T[:, beside, :3, :3]
    R = R[np.isfinite(R).all(axis=(1, 2))].mean(axis=0)
    sides = {beside: constant.center_parent, body: constant.center}
    axes = {beside: constant.axis_parent, body: unit(R @ constant.axis_parent)}
    turns = np.concatenate([np.eye(3), R] if low == beside else [R, np.eye(3)])
    new = {
        "center_a": sides[low],
        "center_b": sides[high],
        "axis_a": axes[low],
        "axis_b": axes[high],
        "residual": constant.noise,
        "covariance": turns @ constant.covariance @ turns.T,
    }
    columns = {}
    for name, value in new.items():
        columns[name] = getattr(joints, name).copy()
        columns[name][row] = value
    kind = (*joints.kind[:row], constant.kind, *joints.kind[row + 1 :])
    return replace(joints, kind=kind, **columns)
