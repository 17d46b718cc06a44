"""Subjects of a scene: their bones, how they move, and how far to trust them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from marey.bodies import Bodies
from marey.io.formats.html.arrays import LARGEST, Arrays
from marey.joint_fits import JointFits
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.robust import median_and_scale
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution
from marey.take import Take

Array = np.ndarray

UNSEEN, SEEN, FILLED, OUTLIER = range(4)
"""What a marker is in a frame."""

WILD = 4.0
"""Robust standard deviations beyond which a marker's distance from its place on the
figure makes it an outlier."""

CLOSE = 5e-3
"""Metres from its place within which a marker never is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One subject, and which body and which fitted joint each of its joints has."""

    name: str
    skeleton: Skeleton
    motions: tuple[Motion, ...]
    """One per take."""

    body: tuple[int, ...]
    """Index of each joint's body; -1 = none."""

    edge: tuple[int, ...]
    """Index of each joint among the joint fits; -1 = none."""


def figures_of(solution: Solution) -> list[Figure]:
    """Return the subjects of a solution with their bodies and fitted joints."""
    tree, names = solution.tree, solution.bodies[0].names if solution.bodies else ()
    of_root = len(tree.roots) == len(solution.subjects)
    figures = []
    for number, subject in enumerate(solution.subjects):
        mine = list(range(len(names)))
        if of_root:
            root = int(tree.roots[number])
            mine = [body for body in mine if tree.path(body, root)]
        places = {subject.skeleton.joint_of(names[body]): body for body in mine}
        body = tuple(places.get(name, -1) for name in subject.skeleton.names)
        edge = tuple(int(tree.edge[b]) if b >= 0 else -1 for b in body)
        figures.append(
            Figure(subject.name, subject.skeleton, subject.motions, body, edge)
        )
    return figures


def lone_figure(motion: Motion) -> Figure:
    """Return the figure of a motion of which nothing else is known."""
    none = (-1,) * motion.skeleton.n_joints
    return Figure(motion.skeleton.names[0], motion.skeleton, (motion,), none, none)


def described(
    figure: Figure, residual: Float[Array, " pair"] | None = None
) -> dict[str, Any]:
    """Return a subject for the header.

    Args:
        figure: The subject.
        residual: Root mean square gap of every fitted joint, in metres.
    """
    skeleton = figure.skeleton
    joints = []
    for i, name in enumerate(skeleton.names):
        covariance = skeleton.covariance[i]
        edge = figure.edge[i]
        joints.append(
            {
                "name": name,
                "parent": int(skeleton.parent[i]),
                "kind": skeleton.kind[i],
                "offset": skeleton.offset[i],
                "axes": [
                    axis if np.isfinite(axis).all() else None
                    for axis in skeleton.axes[i]
                ],
                "limits": skeleton.limits[i],
                "length": skeleton.lengths[i],
                "length_sd": skeleton.length_sd[i],
                "covariance": covariance if np.isfinite(covariance).all() else None,
                "residual": None if residual is None or edge < 0 else residual[edge],
                "body": figure.body[i],
            }
        )
    return {"name": figure.name, "joints": joints}


def moving(
    arrays: Arrays,
    key: str,
    motion: Motion,
    stride: int,
    take: Take | None = None,
    gaps: Float[Array, "frame joint"] | None = None,
) -> dict[str, Any]:
    """Return a motion for the header, every so many frames of it.

    Args:
        arrays: Where the values go.
        key: What their keys begin with.
        motion: The motion.
        stride: Frames from one that is drawn to the next.
        take: The recording, to find the figure's markers in it.
        gaps: How far its joints come apart in the drawn frames, if that is known.
    """
    if gaps is None:
        gaps = np.zeros((0, 0))
    skeleton = motion.skeleton
    root = motion.T_world_root[::stride, :3, 3]
    wxyz = motion.wxyz[::stride]
    known = np.isfinite(root).all(axis=-1) & np.isfinite(wxyz).all(axis=-1).any(axis=1)
    column = marker_columns(skeleton, take) if take else ()
    return {
        "root": arrays.track(f"{key}.root", root),
        "wxyz": arrays.track(f"{key}.wxyz", _turned(wxyz)),
        "known": arrays.small(f"{key}.known", known),
        "gap": arrays.track(f"{key}.gap", gaps),
        "gap_known": arrays.small(f"{key}.gap_known", np.isfinite(gaps)),
        "markers": [
            {
                "marker": int(marker),
                "joint": int(skeleton.marker_joint[i]),
                "offset": skeleton.marker_offset[i],
            }
            for i, marker in enumerate(column)
            if marker >= 0
        ],
        "contacts": [
            {"joint": c.joint, "start": c.start, "end": c.end, "anchor": c.anchor}
            for c in motion.contacts
        ],
    }


def _turned(
    wxyz: Float[Array, "frame joint 4"],
) -> Float[Array, "frame joint 4"]:
    """Return rotations that begin with none where the first are not known."""
    first = wxyz[:1].copy()
    first[~np.isfinite(first).all(axis=-1)] = [1.0, 0.0, 0.0, 0.0]
    return np.concatenate([first, wxyz[1:]])


def gaps_of(
    figure: Figure, bodies: Bodies, fits: JointFits, stride: int = 1
) -> Float[Array, "frame joint"]:
    """Return how far each joint comes apart, frame by frame, in metres.

    The distance between the joint's centre as the parent's body has it and as its own
    has it: the length of the residual vectors of OBrien2000, Figs. 6-8. NaN where a
    body was not seen, and for joints that were not fitted.
    """
    T = bodies.T_world_body[::stride]
    gaps = np.full((len(T), len(figure.edge)), np.nan)
    for joint, edge in enumerate(figure.edge):
        if edge >= 0:
            a, b = (int(i) for i in fits.pair[edge])
            one = geometry.apply(T[:, a], fits.center_a[edge])
            other = geometry.apply(T[:, b], fits.center_b[edge])
            gaps[:, joint] = np.linalg.norm(one - other, axis=-1)
    return gaps


def strays(
    take: Take, motions: Sequence[Motion], stride: int = 1
) -> Float[Array, "frame marker"]:
    """Return how far each marker is from its place on the figures, in metres.

    NaN where it was not seen, or no figure carries it.
    """
    points = take.points[::stride]
    away = np.full(points.shape[:2], np.nan)
    for motion in motions:
        skeleton = motion.skeleton
        columns = marker_columns(skeleton, take)
        if (columns < 0).all() or motion.n_frames != take.n_frames:
            continue
        T = skeleton.forward(motion.T_world_root[::stride], motion.wxyz[::stride])
        for i in np.flatnonzero(columns >= 0):
            column = columns[i]
            joint = int(skeleton.marker_joint[i])
            there = geometry.apply(T[:, joint], skeleton.marker_offset[i])
            away[:, column] = np.linalg.norm(points[:, column] - there, axis=-1)
    return away


def states(
    take: Take, away: Float[Array, "frame marker"], stride: int = 1
) -> UInt8[Array, "frame marker"]:
    """Return what each marker is in each drawn frame.

    A marker is an outlier where it is further from its place on the figure than its
    median distance plus four robust standard deviations, and further than 5 mm. What is
    too far off to be drawn counts as unseen.

    Args:
        take: The recording.
        away: What `strays` says of the same frames.
        stride: Frames from one that is drawn to the next.
    """
    seen = (np.abs(take.points[::stride]) <= LARGEST).all(axis=-1)
    state = np.where(seen, SEEN, UNSEEN).astype(np.uint8)
    state[_wild(away) & seen] = OUTLIER
    state[take.filled[::stride] & seen] = FILLED
    return state


def _wild(away: Float[Array, "frame marker"]) -> Bool[Array, "frame marker"]:
    limit = np.full(away.shape[1], np.inf)
    for marker, distance in enumerate(away.T):
        known = distance[np.isfinite(distance)]
        if len(known):
            middle, scale = median_and_scale(known)
            limit[marker] = max(middle + WILD * scale, CLOSE)
    with np.errstate(invalid="ignore"):
        return np.asarray(away > limit)
