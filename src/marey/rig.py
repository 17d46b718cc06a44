"""Bodies, joints and tree to skeletons: offsets, axes, kinds and where sensors sit."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey import geometry
from marey.bodies import Bodies
from marey.errors import DataError
from marey.joints._types import JointFits
from marey.skeleton import Kind, Skeleton
from marey.tree import Tree

END: Kind = "fixed"

MOST_CANDIDATES = 200
"""Frames looked at for the rest pose."""


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
    the end of a leaf at its body's origin. The rest pose is the frame nearest to all
    others. Joints that used two freedoms stay balls: a take that left the third unused
    is no proof that it is missing.
    """
    return tuple(_skeleton(bodies, joints, tree, int(root)) for root in tree.roots)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One body on its way to a joint: where it is hinged, in its own coordinates."""

    body: int
    parent: int
    """Position of the parent among the parts; -1 = root."""

    own: Float[np.ndarray, " 3"]
    """The joint to its parent, in its own coordinates."""

    above: Float[np.ndarray, " 3"]
    """The same joint in the parent's coordinates."""


def _skeleton(bodies: Bodies, joints: JointFits, tree: Tree, root: int) -> Skeleton:
    order = _ordered(tree.parent, root)
    parts = _parts(joints, tree, order)
    frame = _rest_frame(bodies, order)
    R_rest = _rest_rotations(bodies, order, frame)
    T_rest = bodies.T_world_body[frame, root]
    leaves = [i for i in range(len(parts)) if i not in {p.parent for p in parts}]
    offset = [_offset(parts, R_rest, part) for part in parts]
    offset[0] = geometry.apply(T_rest, parts[0].own)
    ends = [-R_rest[i] @ parts[i].own for i in leaves]
    names = [bodies.names[part.body] for part in parts]
    axes, kind = _freedoms(joints, tree, parts, R_rest)
    n_all = len(parts) + len(leaves)
    return Skeleton(
        names=(*names, *(f"{names[i]}_end" for i in leaves)),
        parent=np.array([*(p.parent for p in parts), *leaves], dtype=np.int64),
        offset=np.array([*offset, *ends]).reshape(n_all, 3),
        kind=(*kind, *(END for _ in leaves)),
        axes=np.concatenate([axes, np.full((len(leaves), 2, 3), np.nan)]),
        sensor_names=tuple(names),
        sensor_joint=np.arange(len(parts)),
        T_joint_sensor=geometry.transform(
            R_rest, -np.einsum("bij,bj->bi", R_rest, np.array([p.own for p in parts]))
        ),
    )


def _ordered(parent: Int[np.ndarray, " body"], root: int) -> list[int]:
    """Return the bodies of one tree, every parent before its children."""
    order = [root]
    for body in order:
        order += [int(child) for child in np.flatnonzero(parent == body)]
    return order


def _parts(joints: JointFits, tree: Tree, order: list[int]) -> list[_Part]:
    place = {body: i for i, body in enumerate(order)}
    parts = []
    for body in order[1:]:
        own, above = _centers(joints, int(tree.edge[body]), body)
        parts.append(_Part(body, place[int(tree.parent[body])], own, above))
    hinges = [part.above for part in parts if part.parent == 0]
    middle = np.mean(hinges, axis=0) if hinges else np.zeros(3)
    return [_Part(order[0], -1, middle, middle), *parts]


def _centers(joints: JointFits, edge: int, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a joint's centre in the coordinates of `body` and of its parent."""
    a, b = joints.center_a[edge], joints.center_b[edge]
    return (a, b) if joints.pair[edge, 0] == body else (b, a)


def _offset(parts: list[_Part], R_rest: np.ndarray, part: _Part) -> np.ndarray:
    return np.asarray(R_rest[part.parent] @ (part.above - parts[part.parent].own))


def _freedoms(
    joints: JointFits, tree: Tree, parts: list[_Part], R_rest: np.ndarray
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


def _rest_rotations(
    bodies: Bodies, order: list[int], frame: int
) -> Float[np.ndarray, "part 3 3"]:
    """Return the orientation of every body at rest; its own nearest frame if unseen."""
    R = bodies.T_world_body[frame, order, :3, :3].copy()
    for i in np.flatnonzero(~np.isfinite(R).all(axis=(1, 2))):
        seen = np.flatnonzero(bodies.seen[:, order[i]])
        if len(seen) == 0:
            raise DataError(
                f"body {bodies.names[order[i]]}", found="no pose", needed="at least one"
            )
        nearest = seen[np.abs(seen - frame).argmin()]
        R[i] = bodies.T_world_body[nearest, order[i], :3, :3]
    return np.asarray(R)


def _rest_frame(bodies: Bodies, order: list[int]) -> int:
    """Return the frame whose pose is nearest to all others, bodies seen first."""
    count = bodies.seen[:, order].sum(axis=1)
    best = np.flatnonzero(count == count.max())
    step = max(len(best) // MOST_CANDIDATES, 1)
    frames = best[::step]
    R = np.nan_to_num(bodies.T_world_body[frames][:, order, :3, :3])
    R_root = R[:, :1].swapaxes(-1, -2)
    flat = (R_root @ R).reshape(len(frames), -1)
    # The mean of R . R' over bodies falls with their turn against each other.
    return int(frames[(flat @ flat.T).sum(axis=1).argmax()])
