"""Static equilibrium of a spring system, found as the minimum of its energy."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.targets import node_of_target
from marey.numerics import geometry
from marey.pose.physics.springs import SpringSystem

if TYPE_CHECKING:
    from marey.pose.physics.contact_springs_kernel import ContactSprings

Array = np.ndarray

GROUND_STIFFNESS_RATIO = 1000.0
"""Stiffness of the ground under each sole in the energy, as a multiple of a marker's:
50 markers that are 1 cm low press four soles 0.1 mm into it. The ground of the
simulation is rigid. Raising it leaves less penetration. Chosen by hand."""


class Equilibrium(NamedTuple):
    """Poses at rest."""

    q: Float[Array, "frame node 4"]
    root: Float[Array, "frame 3"]
    steps: Int[Array, " frame"]
    """Steps taken: of the simulation, or of the minimisation."""

    not_converged: Bool[Array, " frame"]
    """Frames that were not at rest after the most steps."""

    @classmethod
    def of(
        cls,
        q: Float[Array, "frame node 4"],
        root: Float[Array, "frame 3"],
        info: Float[Array, "frame 2"],
    ) -> "Equilibrium":
        """Return poses with the two numbers of the kernels: steps, and failure."""
        steps = info[:, 0].astype(np.int64)
        return cls(geometry.quat_continuous(q), root, steps, info[:, 1] > 0.0)


def minimise_energy(system: SpringSystem) -> Equilibrium:
    r"""Return the poses of least energy, each sought from the robust fit's pose.

    At rest all forces balance, so the pose is a stationary point of the energy

    .. math:: E = \tfrac12 \sum_i k_i |x_i - y_i|^2
              + \tfrac12 \sum_j k_j |\log(\bar q_j^{-1} q_j)|^2
              + \sum_b m_b\, g\, z_b + \tfrac12 k_g \sum_s \max(h_s - n^T x_s, 0)^2

    of the springs, the torques to the neutral posture :math:`\bar q`, gravity, and the
    ground under the soles. Masses and damping do not change it. Each frame takes damped
    Gauss-Newton steps on the tree-sparse factor of `marey.articulated`. Springs between
    two bodies and the ground enter the step by a Woodbury update of that factor.
    """
    from marey.articulated.kinematics_kernel import (
        make_workspace,  # numba is slow to import
    )
    from marey.pose.physics.equilibrium_kernel import minimise_frames

    tree, targets = system.nodes.tree, system.targets
    q, root = system.initial.q.copy(), system.initial.root.copy()
    info = np.zeros((len(q), 2))
    points = system.points.copy()
    # Holds between bodies are contact springs here, not springs to their midpoint.
    points[:, system.hold_pairs[:, 2]] = np.nan
    minimise_frames(
        tree,
        targets,
        make_workspace(tree, len(targets.column), len(targets.sensor_column)),
        _contact_springs(system),
        points,
        system.sensors,
        system.neutral,
        system.neutral_weight,
        system.gravity,
        system.masses.centre,
        system.options.steps,
        root,
        q,
        info,
    )
    return Equilibrium.of(q, root, info)


def _contact_springs(system: SpringSystem) -> "ContactSprings":
    """Return the holds between bodies, and the soles."""
    from marey.pose.physics.contact_springs_kernel import ContactSprings

    targets = system.targets
    soles = system.soles
    holds = system.hold_pairs[:, :2].repeat(3, axis=0)
    on_ground = np.full(len(soles.node), -1)
    n_frames, n_holds, n_soles = len(system.points), len(holds), len(soles.node)
    n_rows, n_unknowns = n_holds + n_soles, 3 * len(system.nodes.tree.parent) + 3
    hold_on = np.isfinite(system.points[:, system.hold_pairs[:, 2], 0])
    sole_weight = GROUND_STIFFNESS_RATIO / system.options.marker_sd**2
    return ContactSprings(
        n_hold_rows=n_holds,
        node=np.concatenate(
            [
                node_of_target(targets.start)[holds],
                np.stack([soles.node, on_ground], axis=1),
            ]
        ),
        offset=np.concatenate(
            [targets.position[holds], soles.offset[:, None].repeat(2, axis=1)]
        ),
        direction=np.concatenate(
            [np.tile(np.eye(3), (n_holds // 3, 1)), np.tile(soles.normal, (n_soles, 1))]
        ),
        weight=np.concatenate(
            [0.5 * targets.weight[holds[:, 0]], np.full(n_soles, sole_weight)]
        ),
        on=np.concatenate(
            [hold_on.repeat(3, axis=1), np.ones((n_frames, n_soles), dtype=bool)],
            axis=1,
        ),
        height=np.concatenate(
            [np.zeros((n_frames, n_holds)), soles.ground_height], axis=1
        ),
        B=np.zeros((n_rows, n_unknowns)),
        Y=np.zeros((n_rows, n_unknowns)),
        S=np.zeros((n_rows, n_rows)),
        L=np.zeros((n_rows, n_rows)),
        gap=np.zeros(n_rows),
        force=np.zeros(n_rows),
        balance=np.zeros(n_rows),
        active=np.zeros(n_rows, dtype=bool),
        scratch=np.zeros((3, 3)),
    )
