r"""A motion of one skeleton carried over to another: retargeting.

Two skeletons have other rest poses, axes, names and proportions. What they share is the
orientation of their bones in the world. For each joint that both have, the rotation C
carries the directions of its bone at rest in one skeleton to those in the other, and

.. math:: R_{world,joint} = R_{world,other}\, C
"""

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.person_joints import recognise_person
from marey.anatomy.t_pose import shortest_rotation
from marey.motion import Motion, motion_on_clock
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import TINY_LENGTH_M
from marey.skeleton import Skeleton

TINY_SHARE_BEFORE = 1e-9
"""Weight of the joint before, relative to a bone: it decides what bones leave open."""


def retarget(motion: Motion, skeleton: Skeleton) -> tuple[Motion, Int[Array, " joint"]]:
    """Return a motion on another skeleton, and the joints of it that rotate as before.

    World orientations are kept, with R the orientation of a joint and C that at rest
    between the skeletons: :math:`R' = R C`. Joints that the motion does not have do
    not rotate. The root is where that of the motion is.
    """
    joints = corresponding_joints(skeleton, motion.skeleton)
    T = motion.T_world_joint()
    n = skeleton.n_joints
    R = np.broadcast_to(np.eye(3), (motion.n_frames, n, 3, 3)).copy()
    for joint, C in _rest_rotations(skeleton, motion.skeleton, joints).items():
        R[:, joint] = T[:, joints[joint], :3, :3] @ C
    known = np.isin(np.arange(n), list(joints))
    wxyz = local_rotations(skeleton, R, known)
    T_world_root = geometry.transform(R[:, 0], T[:, joints[0], :3, 3])
    retargeted = motion_on_clock(motion, skeleton, T_world_root, wxyz)
    rotating = [j for j in joints if skeleton.kind[j] not in ("root", "fixed")]
    return retargeted, np.array(rotating, dtype=np.int64)


def corresponding_joints(skeleton: Skeleton, other: Skeleton) -> dict[int, int]:
    """Return the joint of another skeleton by joint: of its name, or part of a person.

    Roots correspond if nothing of their names does.
    """
    indices = []
    people = [recognise_person(one) for one in (skeleton, other)]
    for one, parts in zip((skeleton, other), people, strict=True):
        names = [vrm.without_subject(name) for name in one.names]
        if all(people):
            names = [parts.get(joint, name) for joint, name in enumerate(names)]
        indices.append({name: joint for joint, name in enumerate(names)})
    own, others = indices
    found = {joint: others[name] for name, joint in own.items() if name in others}
    return {0: found.pop(0, 0), **found}


def local_rotations(
    skeleton: Skeleton,
    R_world_joint: Float[Array, "frame joint 3 3"],
    known: Array,
    wxyz: Float[Array, "frame joint 4"] | None = None,
) -> Float[Array, "frame joint 4"]:
    """Return R_parent_joint of every joint as a unit quaternion wxyz.

    Args:
        skeleton: The joints.
        R_world_joint: Orientations of joints in the world.
        known: Which of them are known.
        wxyz: Rotations in the parents of the others; none when left out.
    """
    R = R_world_joint.copy()
    local = np.zeros((*R.shape[:2], 4))
    local[..., 0] = 1.0
    if wxyz is not None:
        local[:, ~known] = wxyz[:, ~known]
    for joint, parent in enumerate(skeleton.parent.tolist()):
        if parent < 0:
            continue
        if known[joint]:
            step = np.swapaxes(R[:, parent], -1, -2) @ R[:, joint]
            local[:, joint] = geometry.quat_from_matrix(step)
        else:
            step = geometry.matrix_from_quat(local[:, joint])
            R[:, joint] = R[:, parent] @ step
    return geometry.quat_continuous(local)


def _rest_rotations(
    skeleton: Skeleton, other: Skeleton, joints: dict[int, int]
) -> dict[int, Float[Array, "3 3"]]:
    r"""Return the rotation from each joint's frame to that of the other, at rest.

    Wahba's problem for the directions to the next joints that both skeletons have,

    .. math:: C = \arg\max_C \sum_k b_k^T C\, a_k

    Directions that leave a rotation open follow the joint before.
    """
    rest, rest_other = (one.rest()[:, :3, 3] for one in (skeleton, other))
    carrier = _nearest_known(skeleton, joints)
    found: dict[int, Array] = {}
    for joint in sorted(joints):
        before = found.get(carrier[int(skeleton.parent[joint])], np.eye(3))
        below = [j for j in joints if j and carrier[int(skeleton.parent[j])] == joint]
        a = _directions(rest[below] - rest[joint])
        ends = rest_other[[joints[j] for j in below]]
        b = _directions(ends - rest_other[joints[joint]])
        if len(below) == 1:
            found[joint] = shortest_rotation(before @ a[0], b[0]) @ before
        else:
            M = np.einsum("ki,kj->ij", b, a) + TINY_SHARE_BEFORE * before
            found[joint] = geometry.nearest_rotation(M)
    return found


def _nearest_known(skeleton: Skeleton, joints: dict[int, int]) -> dict[int, int]:
    """Return the nearest joint from each one to the root that both skeletons have."""
    carrier = {-1: -1}
    for joint, parent in enumerate(skeleton.parent.tolist()):
        carrier[joint] = joint if joint in joints else carrier[parent]
    return carrier


def _directions(vectors: Float[Array, "bone 3"]) -> Float[Array, "bone 3"]:
    """Return unit vectors; zero for those without a length."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit = vectors / np.maximum(length, TINY_LENGTH_M)
    return np.asarray(np.where(length > TINY_LENGTH_M, unit, 0.0))
