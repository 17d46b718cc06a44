"""The calibrated figure as a skeleton: rest pose, joints, markers, doubts."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from marey.calibration.covariance import Doubt
from marey.calibration.init.generic import GIRDLE
from marey.calibration.problem import SENSOR_POINTS, Problem
from marey.calibration.solver.loop import Fit
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.skeleton import Kind, Skeleton

Array = np.ndarray

ARMS = ("UpperArm", "LowerArm", "Hand")
LEGS = ("UpperLeg", "LowerLeg")
TRUNK = ("Hips", "Chest")


@dataclass(frozen=True, slots=True, eq=False)
class Dressed:
    """Skeletons of a subject: one with all, and one per take."""

    skeleton: Skeleton
    skeletons: tuple[Skeleton, ...]


def dressed(problem: Problem, fit: Fit, doubt: Doubt, *, person: bool) -> Dressed:
    """Return the calibrated skeletons.

    A person stands in a T-pose on the ground, its hips in the middle of their joints,
    and all its joints are balls: what looked like a hinge was a ball that hardly
    turned. Other figures rest as they did.
    """
    figure = fit.figure
    turn = _t_pose(fit) if person else _hinged(problem, fit)
    middle = np.zeros(3)
    weights = np.zeros(len(figure.names))
    below = figure.children(0)
    if person and below:
        weights[below] = 1.0 / len(below)
        middle = fit.shape.o[below].mean(axis=0)
    o = fit.shape.o.copy()
    o[below] -= middle
    m = fit.shape.m - np.where(figure.segment == 0, 1.0, 0.0)[None, :, None] * middle
    o[1:] = np.einsum("sij,sj->si", turn[figure.parent[1:]], o[1:])
    m = np.einsum("kij,tkj->tki", turn[figure.segment], m)
    bones = _bones(problem, fit, o, m.mean(axis=0), turn, person=person)
    covariance, sd = _doubts(problem, fit, bones, doubt, turn, weights)
    bones = replace(bones, covariance=covariance, length_sd=sd)
    if person:
        bones = _on_the_ground(_worn(problem, fit, bones, m.mean(axis=0)))
    return _by_take(problem, fit, bones, m)


def reseated(problem: Problem, fit: Fit) -> Dressed:
    """Return the skeleton as it came, with its markers where they sit now."""
    m = fit.shape.m
    offset = problem.skeleton.offset.copy()
    for i, name in enumerate(fit.figure.names):
        if name in GIRDLE:
            joint = problem.joint_of[i]
            above = problem.skeleton.parent[joint]
            offset[joint] = fit.shape.o[i] - problem.place[above]
    bare = replace(problem.skeleton, offset=offset)
    return _by_take(problem, fit, bare, m)


def _by_take(problem: Problem, fit: Fit, bones: Skeleton, m: Array) -> Dressed:
    """Return the bones with the markers of all sessions on average, and of each."""
    whole = _worn(problem, fit, bones, m.mean(axis=0))
    each = [_worn(problem, fit, bones, mine) for mine in m]
    return Dressed(
        whole, tuple(each[k] if k >= 0 else whole for k in problem.session_of)
    )


# --- the rest pose of a person --------------------------------------------------------


def _t_pose(fit: Fit) -> Float[Array, "segment 3 3"]:
    """Return the turns of all segments into a T-pose."""
    figure, o = fit.figure, fit.shape.o
    turn = np.repeat(np.eye(3)[None], len(figure.names), axis=0)
    for i, name in enumerate(figure.names):
        side = 1.0 if name.startswith("Left") else -1.0
        children = figure.children(i)
        bare = name.removeprefix("Left").removeprefix("Right")
        if bare in TRUNK:
            turn[i] = _upright(fit, i)
        elif bare in ARMS and fit.start.anatomical:
            turn[i] = geometry.rotation_exp(np.array([side * np.pi / 2.0, 0.0, 0.0]))
        if bare in (*ARMS, *LEGS) and len(children) == 1:
            goal = np.array([0.0, side, 0.0] if bare in ARMS else [0.0, 0.0, -1.0])
            turn[i] = _towards(turn[i] @ o[children[0]], goal) @ turn[i]
        elif not children and figure.parent[i] >= 0 and bare in ARMS:
            turn[i] = turn[figure.parent[i]]
    return turn


def _upright(fit: Fit, i: int) -> Float[Array, "3 3"]:
    """Return the turn that brings a width to the left, and a bone up as far as goes."""
    figure, o = fit.figure, fit.shape.o
    sides: dict[str, Array] = {}
    middle = []
    for child in figure.children(i):
        name = figure.names[child]
        for side in ("Left", "Right"):
            if name.startswith(side):
                sides.setdefault(side, o[child])
        if not name.startswith(("Left", "Right")):
            middle.append(o[child])
    if len(sides) < 2 or not middle:
        return np.eye(3)
    wide = sides["Left"] - sides["Right"]
    base = 0.5 * (sides["Left"] + sides["Right"]) if i == 0 else np.zeros(3)
    up = np.mean(middle, axis=0) - base
    y = wide / np.linalg.norm(wide)
    z = up - (up @ y) * y
    z = z / np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z])


def _towards(bone: Array, goal: Array) -> Float[Array, "3 3"]:
    long = float(np.linalg.norm(bone))
    if long < 1e-9:
        return np.eye(3)
    return geometry.matrix_from_quat(shortest_rotations(bone / long, goal))


def _on_the_ground(skeleton: Skeleton) -> Skeleton:
    joints = skeleton.rest()[:, :3, 3]
    markers = joints[skeleton.marker_joint] + skeleton.marker_offset
    low = min(joints[:, 2].min(), markers[:, 2].min(initial=np.inf))
    offset = skeleton.offset.copy()
    offset[0] = [0.0, 0.0, skeleton.offset[0, 2] - low]
    return replace(skeleton, offset=offset)


def _hinged(problem: Problem, fit: Fit) -> Float[Array, "segment 3 3"]:
    """Return the turns that bring the axes of hinges together at rest."""
    figure = fit.figure
    turn = np.repeat(np.eye(3)[None], len(figure.names), axis=0)
    axes = {axis.child: n for n, axis in enumerate(figure.axes)}
    for i in range(1, len(figure.names)):
        if i in axes and _kind(problem, fit, figure.names[i], person=False) == "hinge":
            b = fit.shape.b[axes[i]]
            goal = turn[figure.parent[i]] @ fit.shape.a[axes[i]]
            turn[i] = _towards(b, goal / np.linalg.norm(goal))
    return turn


# --- joints ---------------------------------------------------------------------------


def _bones(
    problem: Problem, fit: Fit, o: Array, m: Array, turn: Array, *, person: bool
) -> Skeleton:
    """Return all joints, without markers.

    Joints that turn come in the order of the skeleton, new ones before their children,
    fixed ones where they were on their segments.
    """
    skeleton, figure = problem.skeleton, fit.figure
    home = {name: i for i, name in enumerate(figure.names)}
    carried = _carried(problem, fit, m)
    axis_of = {figure.names[axis.child]: n for n, axis in enumerate(figure.axes)}
    names = _names(problem, fit)
    known = {name: j for j, name in enumerate(skeleton.names)}
    place = {name: np.zeros(3) for name in names}
    offset, parent, kind = [], [], []
    axes = np.full((len(names), 2, 3), np.nan)
    limits = np.full((len(names), 3, 2), np.nan)
    for n, name in enumerate(names):
        j = known.get(name, -1)
        above = _above(problem, fit, name)
        parent.append(names.index(above) if above else -1)
        if name in home:
            here = o[home[name]] if above else skeleton.offset[0]
            kind.append(_kind(problem, fit, name, person=person))
        else:
            here = place[name] = carried[j]
            kind.append("fixed")
        offset.append(here - (place[above] if above else 0.0))
        if j >= 0 and not person:
            axes[n], limits[n] = skeleton.axes[j], skeleton.limits[j]
        if kind[-1] == "hinge" and name in axis_of:
            b = turn[home[name]] @ fit.shape.b[axis_of[name]]
            axes[n, 0] = b / np.linalg.norm(b)
    return Skeleton(
        names=tuple(names),
        parent=np.array(parent, dtype=np.int64),
        offset=np.array(offset),
        kind=tuple(kind),
        axes=axes,
        limits=limits,
    )


def _names(problem: Problem, fit: Fit) -> list[str]:
    """Return all joints, parents first; segments that are new before their children."""
    names: list[str] = []
    for name in problem.skeleton.names:
        above = _above(problem, fit, name)
        if above and above not in names:
            names.append(above)
        names.append(name)
    return names


def _above(problem: Problem, fit: Fit, name: str) -> str:
    """Return the parent of a joint in the calibrated skeleton; "" for the root."""
    skeleton, figure = problem.skeleton, fit.figure
    old = skeleton.names.index(name) if name in skeleton.names else -1
    i = figure.index(name)
    p = int(skeleton.parent[old]) if old >= 0 else -1
    if i >= 0 and figure.parent[i] >= 0:
        above = str(figure.names[figure.parent[i]])
        if p < 0 or problem.figure.names[problem.segment_of[p]] != above:
            return above
    return skeleton.names[p] if p >= 0 else ""


def _kind(problem: Problem, fit: Fit, name: str, *, person: bool) -> Kind:
    skeleton, i = problem.skeleton, fit.figure.index(name)
    if fit.figure.parent[i] < 0:
        return "root"
    if person:
        return "ball"
    return skeleton.kind[skeleton.names.index(name)]


def _carried(problem: Problem, fit: Fit, m: Array) -> Float[Array, "joint 3"]:
    """Return every fixed joint on its segment, moved along with the markers there."""
    out = problem.place.copy()
    old = problem.shape.m[0]
    for j, kind in enumerate(problem.skeleton.kind):
        if kind != "fixed":
            continue
        i = fit.figure.index(problem.figure.names[problem.segment_of[j]])
        mine = list(fit.figure.markers_of(i))
        if not mine:
            continue
        before, after = old[fit.order[mine]], m[mine]
        T = geometry.kabsch(before, after)
        if not np.isfinite(T).all():
            shift = after.mean(axis=0) - before.mean(axis=0)
            T = geometry.transform(np.eye(3), shift)
        out[j] = geometry.apply(T, problem.place[j])
    return out


def _doubts(
    problem: Problem,
    fit: Fit,
    bones: Skeleton,
    doubt: Doubt,
    turn: Array,
    weights: Array,
) -> tuple[Float[Array, "joint 3 3"], Float[Array, " joint"]]:
    """Return the covariance of every offset, and the doubt of every length."""
    figure = fit.figure
    n = len(figure.names)
    covariance = np.full((bones.n_joints, 3, 3), np.nan)
    sd = np.full(bones.n_joints, np.nan)
    mean = [j for j in range(n) if weights[j] > 0.0]
    for joint, name in enumerate(bones.names):
        i = figure.index(name)
        if i <= 0:
            continue
        C = doubt.between(i, i)
        if figure.parent[i] == 0 and mean:
            # The root stands in the middle of its joints, and moves with them.
            cross = sum(weights[j] * doubt.between(i, j) for j in mean)
            both = sum(
                weights[j] * weights[k] * doubt.between(j, k)
                for j in mean
                for k in mean
            )
            C = C - cross - np.transpose(cross) + both
        G = turn[figure.parent[i]]
        covariance[joint] = G @ C @ G.T
        way = bones.offset[joint]
        length = float(np.linalg.norm(way))
        if length > 0.0:
            variance = float(way @ covariance[joint] @ way)
            sd[joint] = np.sqrt(max(variance, 0.0)) / length
    return covariance, sd


# --- markers --------------------------------------------------------------------------


def _worn(problem: Problem, fit: Fit, bones: Skeleton, m: Array) -> Skeleton:
    """Return the skeleton with its markers and sensors; unseen ones where they were."""
    skeleton, figure = problem.skeleton, fit.figure
    joint_of = {name: j for j, name in enumerate(bones.names)}
    # A marker of a fixed joint is told from that joint.
    marker_joint = skeleton.marker_joint.copy()
    marker_offset = skeleton.marker_offset.copy()
    sensor_joint = skeleton.sensor_joint.copy()
    T = skeleton.T_joint_sensor.copy()
    corners: dict[int, dict[int, Array]] = {}
    seen = set()
    for k, at in enumerate(fit.order):
        what, number = problem.source[int(at)]
        joint = joint_of[figure.names[figure.segment[k]]]
        if what == "marker":
            marker_joint[number], marker_offset[number] = joint, m[k]
            seen.add(number)
        else:
            sensor_joint[number // 4] = joint
            corners.setdefault(number // 4, {})[number % 4] = m[k]
    for sensor, found in corners.items():
        fitted = geometry.kabsch(
            SENSOR_POINTS[list(found)], np.array(list(found.values()))
        )
        if np.isfinite(fitted).all():
            T[sensor] = fitted
    for number, joint in enumerate(skeleton.marker_joint.tolist()):
        if number not in seen:
            marker_joint[number] = joint_of[skeleton.names[joint]]
    return replace(
        bones,
        marker_labels=skeleton.marker_labels,
        marker_joint=marker_joint,
        marker_offset=marker_offset,
        sensor_names=skeleton.sensor_names,
        sensor_joint=sensor_joint,
        T_joint_sensor=T,
    )
