"""Bodies, joints and tree to skeletons: offsets, axes, kinds, names and markers."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.anatomy.naming import Figure, Naming, named
from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.rig.joint_records import Part, leaves_of, ordered, parts_of
from marey.rig.rest_pose import rest_frame, rest_rotations, t_pose
from marey.skeleton import Kind, Skeleton
from marey.tree import Tree

END: Kind = "fixed"

# Frames looked at for names.
MOST_FRAMES = 200

HUMAN = {"Hips", "LeftUpperLeg", "RightUpperLeg"}
"""Names by which a person is known."""


def build_skeleton(bodies: Bodies, joints: JointFits, tree: Tree) -> Skeleton:
    """Return the skeleton of bodies that hang together in one tree.

    Raises:
        DataError: If there are several trees; `build_skeletons` takes those.
    """
    if len(tree.roots) != 1:
        names = ", ".join(bodies.names[root] for root in tree.roots)
        raise DataError(
            "tree",
            found=f"{len(tree.roots)} roots: {names}",
            needed="one; build_skeletons returns one skeleton for each",
        )
    return build_skeletons(bodies, joints, tree)[0]


def build_skeletons(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Skeleton, ...]:
    """Return one skeleton for every root of the tree.

    A joint stands where its two bodies meet, a root in the middle of its joints, and
    the end of a leaf at its body's origin. The rest pose is a T-pose for people, else
    the frame nearest to all others. Joints that used two freedoms stay balls: a take
    that left the third unused is no proof that it is missing. The subject's name in
    front of bodies ("JOE:Hips") is left away, unless two in one tree would have the
    same name without it.
    """
    return tuple(_skeleton(bodies, joints, tree, int(root)) for root in tree.roots)


def is_nameless(name: str) -> bool:
    """Return whether a body has a number instead of a name of its own."""
    return re.fullmatch(r"body\d+", name) is not None


def renamed(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Bodies, list[Naming]]:
    """Return the bodies with the names of what they look like, and what that is.

    Only bodies without a name of their own ("body7") get one; of several figures with
    the number of each in front ("1:Hips").
    """
    names = list(bodies.names)
    namings = []
    for root in tree.roots:
        order = ordered(tree.parent, int(root))
        if not all(is_nameless(bodies.names[body]) for body in order):
            continue
        naming = named(_figure(bodies, joints, tree, order))
        if naming is None:
            continue
        namings.append(naming)
        for body, name in naming.names.items():
            names[body] = name if len(tree.roots) == 1 else f"{len(namings)}:{name}"
    return replace(bodies, names=tuple(names)), namings


def _figure(bodies: Bodies, joints: JointFits, tree: Tree, order: list[int]) -> Figure:
    step = max(len(bodies.T_world_body) // MOST_FRAMES, 1)
    T = bodies.T_world_body[::step]
    near: dict[int, list[int]] = {body: [] for body in order}
    centers = {}
    for body in order[1:]:
        above, edge = int(tree.parent[body]), int(tree.edge[body])
        near[body].append(above)
        near[above].append(body)
        a, b = (int(i) for i in joints.pair[edge])
        centers[a, b] = geometry.apply(T[:, a], joints.center_a[edge])
    return Figure(T[..., :3, 3], centers, near)


def _skeleton(bodies: Bodies, joints: JointFits, tree: Tree, root: int) -> Skeleton:
    order = ordered(tree.parent, root)
    parts = parts_of(joints, tree, order)
    names = _joint_names([bodies.names[part.body] for part in parts])
    frame = rest_frame(bodies, order)
    R_rest = rest_rotations(bodies, order, frame)
    place = geometry.apply(bodies.T_world_body[frame, root], parts[0].own)
    human = set(names) >= HUMAN
    if human:
        R_rest = t_pose(parts, names, R_rest)
    leaves = leaves_of(parts)
    offset = [_offset(parts, R_rest, part) for part in parts]
    ends = [-R_rest[i] @ parts[i].own for i in leaves]
    offset[0] = np.zeros(3) if human else place
    axes, kind = _freedoms(joints, tree, parts, R_rest)
    covariance = np.array([_covariance(parts, R_rest, part) for part in parts])
    n_ends = len(leaves)
    skeleton = Skeleton(
        names=(*names, *(f"{names[i]}_end" for i in leaves)),
        parent=np.array([*(p.parent for p in parts), *leaves], dtype=np.int64),
        offset=np.array([*offset, *ends]).reshape(-1, 3),
        kind=(*kind, *(END for _ in leaves)),
        axes=np.concatenate([axes, np.full((n_ends, 2, 3), np.nan)]),
        covariance=np.concatenate([covariance, np.full((n_ends, 3, 3), np.nan)]),
        length_sd=_length_sd(offset, covariance, n_ends),
    )
    skeleton = _with_sources(skeleton, bodies, parts, R_rest)
    return _on_the_ground(skeleton) if human else skeleton


def _joint_names(bodies: list[str]) -> list[str]:
    """Return what the joints of a tree are called, by the names of its bodies."""
    bare = [name.rpartition(":")[2] for name in bodies]
    times = Counter(bare)
    return [
        short if times[short] == 1 else name
        for name, short in zip(bodies, bare, strict=True)
    ]


def _offset(parts: list[Part], R_rest: np.ndarray, part: Part) -> np.ndarray:
    return np.asarray(R_rest[part.parent] @ (part.above - parts[part.parent].own))


def _covariance(
    parts: list[Part], R_rest: np.ndarray, part: Part
) -> Float[np.ndarray, "3 3"]:
    """Return the doubt of an offset: that of the two joints on the parent's body."""
    if part.parent < 0:
        return np.full((3, 3), np.nan)
    R = R_rest[part.parent]
    both = part.above_covariance + parts[part.parent].own_covariance
    return np.asarray(R @ both @ R.T)


def _length_sd(
    offset: list[np.ndarray], covariance: np.ndarray, n_ends: int
) -> Float[np.ndarray, " joint"]:
    sd = np.full(len(offset) + n_ends, np.nan)
    for i, (way, C) in enumerate(zip(offset[1:], covariance[1:], strict=True), start=1):
        length = np.linalg.norm(way)
        if length > 0.0:
            sd[i] = np.sqrt(max(float(way @ C @ way), 0.0)) / length
    return sd


def _freedoms(
    joints: JointFits, tree: Tree, parts: list[Part], R_rest: np.ndarray
) -> tuple[Float[np.ndarray, "part 2 3"], list[Kind]]:
    axes = np.full((len(parts), 2, 3), np.nan)
    kinds: list[Kind] = ["root"]
    for i, part in enumerate(parts[1:], start=1):
        edge = int(tree.edge[part.body])
        hinge = joints.kind[edge] == "hinge"
        kinds.append("hinge" if hinge else "ball")
        if hinge:
            is_a = joints.pair[edge, 0] == part.body
            own = joints.axis_a[edge] if is_a else joints.axis_b[edge]
            axes[i, 0] = R_rest[i] @ own
    return axes, kinds


def _with_sources(
    skeleton: Skeleton, bodies: Bodies, parts: list[Part], R_rest: np.ndarray
) -> Skeleton:
    """Return the skeleton with the markers, or the sensors, that its bodies came of."""
    own = np.array([part.own for part in parts])
    if not bodies.shared.any():
        shift = -np.einsum("bij,bj->bi", R_rest, own)
        return replace(
            skeleton,
            sensor_names=tuple(bodies.names[part.body] for part in parts),
            sensor_joint=np.arange(len(parts)),
            T_joint_sensor=geometry.transform(R_rest, shift),
        )
    place = {part.body: i for i, part in enumerate(parts)}
    markers = [
        m
        for m, body in enumerate(bodies.marker_body.tolist())
        if body in place and np.isfinite(bodies.marker_offset[m]).all()
    ]
    joint = np.array([place[int(bodies.marker_body[m])] for m in markers], dtype=int)
    local = bodies.marker_offset[markers] - own[joint]
    return replace(
        skeleton,
        marker_labels=tuple(bodies.take.full_labels[m] for m in markers),
        marker_joint=joint.astype(np.int64),
        marker_offset=np.einsum("mij,mj->mi", R_rest[joint], local),
    )


def _on_the_ground(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton standing on z = 0 at rest."""
    joints = skeleton.rest()[:, :3, 3]
    markers = joints[skeleton.marker_joint] + skeleton.marker_offset
    low = min(joints[:, 2].min(), markers[:, 2].min(initial=np.inf))
    offset = skeleton.offset.copy()
    offset[0] = [0.0, 0.0, -low]
    return replace(skeleton, offset=offset)
