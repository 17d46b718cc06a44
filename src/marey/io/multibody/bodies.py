"""Rigid bodies with masses, from a skeleton."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from marey.anatomy.masses import RADIUS_PER_LENGTH, estimate_bones, estimate_masses
from marey.anatomy.names import is_person
from marey.anatomy.person_joints import recognise_person
from marey.anatomy.t_pose import shortest_rotation
from marey.articulated.tables import make_nodes
from marey.numerics import Array, Float, Int
from marey.skeleton import Skeleton
from marey.tree import depth_first_order


@dataclass(frozen=True, slots=True, eq=False)
class Bone:
    """A capsule of a body, from a joint to the next."""

    joint: int
    """The joint at its end."""

    start: Float[Array, " 3"]
    """Its ends in the body, in metres."""

    end: Float[Array, " 3"]
    radius: float
    """In metres."""

    @property
    def middle(self) -> Float[Array, " 3"]:
        """The point halfway, in the body and in metres."""
        return np.asarray(0.5 * (self.start + self.end))

    @property
    def length(self) -> float:
        """Distance of its ends, in metres."""
        return float(np.linalg.norm(self.end - self.start))

    @property
    def R(self) -> Float[Array, "3 3"]:
        """The shortest rotation from z to its direction."""
        return shortest_rotation(np.array([0.0, 0.0, 1.0]), self.end - self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Multibody:
    """A skeleton as rigid bodies, one for every joint that is not fixed.

    A body has the frame of its joint; fixed joints are points of the body that moves
    them.
    """

    skeleton: Skeleton
    joint: Int[Array, " body"]
    """The joint that moves each body; that of the first is the root."""

    parent: Int[Array, " body"]
    """Parent body; -1 for the root."""

    position: Float[Array, "body 3"]
    """Position of the joint in the parent body, in metres; the root's in the world."""

    mass: Float[Array, " body"]
    """In kg, greater than 0."""

    centre: Float[Array, "body 3"]
    """Centre of mass in the body, in metres."""

    inertia: Float[Array, "body 3 3"]
    """Inertia tensor about the centre of mass, in kg m^2."""

    body_of_joint: Int[Array, " joint"]
    """The body that each joint moves, or is fixed to."""

    joint_position: Float[Array, "joint 3"]
    """Position of each joint in that body, in metres."""

    bone_radius: Float[Array, " joint"]
    """Radius of the capsule from each joint's parent to it, in metres; root: 0."""

    def bones(self, body: int) -> Iterator[Bone]:
        """Yield the capsules of a body; bones without length have none."""
        skeleton = self.skeleton
        for joint in np.flatnonzero(self.bone_radius > 0.0).tolist():
            parent = int(skeleton.parent[joint])
            if self.body_of_joint[parent] == body:
                start = self.joint_position[parent]
                end = start + skeleton.offset[joint]
                yield Bone(joint, start, end, float(self.bone_radius[joint]))

    def fixed_joints(self, body: int) -> list[int]:
        """Return the joints that are fixed to a body, bone ends among them."""
        on_body = np.flatnonzero(self.body_of_joint == body)
        return [j for j in on_body.tolist() if j != self.joint[body]]

    def sensors(self, body: int) -> Iterator[tuple[int, Float[Array, "4 4"]]]:
        """Yield the sensors on a body with their poses in it."""
        skeleton = self.skeleton
        on_body = self.body_of_joint[skeleton.sensor_joint] == body
        for sensor in np.flatnonzero(on_body).tolist():
            T = skeleton.T_joint_sensor[sensor].copy()
            T[:3, 3] += self.joint_position[skeleton.sensor_joint[sensor]]
            yield sensor, T

    @property
    def marker_position(self) -> Float[Array, "marker 3"]:
        """Position of each marker in the body that it is on, in metres."""
        joint_position = self.joint_position[self.skeleton.marker_joint]
        return np.asarray(joint_position + self.skeleton.marker_offset)

    def depth_first(self) -> list[int]:
        """Return the bodies in the order of a nested file: a subtree in one piece."""
        return depth_first_order(self.parent)


def make_multibody(skeleton: Skeleton) -> Multibody:
    """Return the bodies of a skeleton, with masses and capsules as people have them.

    See `marey.anatomy.masses`.

    Raises:
        DataError: If a hinge or universal joint has no axes.
    """
    nodes = make_nodes(skeleton, limits=False)
    named = _with_anatomical_names(skeleton)
    masses = estimate_masses(named, nodes)
    joint = nodes.moving_joints
    node = nodes.node_of_joint[joint]
    body_of_node = np.zeros(len(nodes.tree.parent), dtype=np.int64)
    body_of_node[node] = np.arange(len(joint))
    body_of_joint = body_of_node[nodes.node_of_joint]
    above = skeleton.parent[joint]
    parent = np.where(above < 0, -1, body_of_joint[above])
    in_parent = np.where((above < 0)[:, None], 0.0, nodes.joint_position[above])
    return Multibody(
        skeleton=skeleton,
        joint=joint,
        parent=parent,
        position=in_parent + skeleton.offset[joint],
        mass=masses.mass[node],
        centre=masses.centre[node],
        inertia=masses.inertia[node],
        body_of_joint=body_of_joint,
        joint_position=nodes.joint_position,
        bone_radius=_bone_radii(named),
    )


def _with_anatomical_names(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton whose masses are those of a person, if it is one."""
    part = recognise_person(skeleton)
    if is_person(skeleton.names) or not part:
        return skeleton
    names = (part.get(j, f"joint {j}") for j in range(skeleton.n_joints))
    return replace(skeleton, names=tuple(names))


def _bone_radii(skeleton: Skeleton) -> Float[Array, " joint"]:
    """Return the radius of every bone; slender ones where no mass asks for more."""
    flesh = np.append(0.0, estimate_bones(skeleton).radius)
    return np.where(flesh > 0.0, flesh, RADIUS_PER_LENGTH * skeleton.lengths)
