"""Static equilibrium of a spring system, found as the minimum of its energy."""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import node_of_target
from marey.numerics import Array, Float
from marey.pose.physics.springs import SpringSystem
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.articulated.contact_springs_kernel import ContactSprings

Rest = tuple[PoseTrace, Float[Array, "frame 2"]]
"""Poses at rest; by frame the steps taken, and 1 where these were not enough."""

GROUND_STIFFNESS_RATIO = 1000.0
"""Stiffness of the ground under each sole in the energy, as a multiple of a marker's:
50 markers that are 1 cm low press four soles 0.1 mm into it. The ground of the
simulation is rigid. Raising it leaves less penetration. Chosen by hand."""


def minimise_energy(system: SpringSystem) -> Rest:
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
    # numba is slow to import
    from marey.articulated.kinematics_kernel import make_workspace
    from marey.pose.physics.forces_kernel import minimise_frames

    tree, targets = system.nodes.tree, system.targets
    q, root = system.initial.q.copy(), system.initial.root.copy()
    info = np.zeros((len(q), 2))
    work = make_workspace(tree, len(targets.column), len(targets.sensor_column))
    minimise_frames(
        (tree, targets, work),
        (system.free_points, system.sensors),
        contact_springs(system),
        (system.neutral, system.neutral_weight),
        system.options.steps,
        (root, q, info),
    )
    return PoseTrace(q, root, system.initial.info).continuous(), info


def contact_springs(system: SpringSystem) -> "ContactSprings":
    """Return the holds between bodies, the soles, and gravity."""
    from marey.articulated.contact_springs_kernel import ContactSprings

    targets, soles = system.targets, system.soles
    holds = system.hold_pairs[:, :2].repeat(3, axis=0)
    n_holds, n_soles = len(holds), len(soles.node)
    on_ground = np.stack([soles.node, np.full(n_soles, -1)], axis=1)
    sole_weight = GROUND_STIFFNESS_RATIO / system.options.marker_sd**2
    hold_on = np.isfinite(system.points[:, system.hold_pairs[:, 2], 0])
    on = np.ones((len(system.points), n_holds + n_soles), dtype=bool)
    on[:, :n_holds] = hold_on.repeat(3, axis=1)
    n_rows, n_unknowns = on.shape[1], 3 * len(system.nodes.tree.parent) + 3
    return ContactSprings(
        n_hold_rows=n_holds,
        node=np.concatenate([node_of_target(targets.start)[holds], on_ground]),
        offset=np.concatenate(
            [targets.position[holds], soles.offset[:, None].repeat(2, axis=1)]
        ),
        direction=np.concatenate(
            [np.tile(np.eye(3), (n_holds // 3, 1)), np.tile(soles.normal, (n_soles, 1))]
        ),
        weight=np.append(0.5 * targets.weight[holds[:, 0]], n_soles * [sole_weight]),
        on=on,
        height=np.pad(soles.ground_height, ((0, 0), (n_holds, 0))),
        B=np.zeros((n_rows, n_unknowns)),
        Y=np.zeros((n_rows, n_unknowns)),
        S=np.zeros((n_rows, n_rows)),
        L=np.zeros((n_rows, n_rows)),
        gap=np.zeros(n_rows),
        force=np.zeros(n_rows),
        balance=np.zeros(n_rows),
        active=np.zeros(n_rows, dtype=bool),
        scratch=np.zeros((2, 3)),
        gravity=system.gravity,
        centre=system.masses.centre,
    )
