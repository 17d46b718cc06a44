"""A figure on springs brought to rest without running time."""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import owners
from marey.pose.physics.rest_pose import Rest
from marey.pose.physics.scene import Scene

if TYPE_CHECKING:
    from marey.pose.physics.contact_springs_kernel import Bonds

HARD = 1000.0
"""The ground under each sole by a marker's spring, where no time runs: 50 markers that
are 1 cm lower press four soles 0.1 mm into it. The simulation's does not give way."""


def settle_directly(scene: Scene) -> Rest:
    """Return the postures of least energy, each sought from the fit's."""
    from marey.articulated.kinematics_kernel import workspace
    from marey.pose.physics.equilibrium_kernel import (
        rest_poses,  # numba is slow to import
    )

    tree, targets = scene.nodes.tree, scene.targets
    q, root = scene.trace.q.copy(), scene.trace.root.copy()
    info = np.zeros((len(q), 2))
    points = scene.points.copy()
    # Bodies that hold each other are bonds here, not springs to their middle.
    points[:, scene.pairs[:, 2]] = np.nan
    rest_poses(
        tree,
        targets,
        workspace(tree, len(targets.column), len(targets.sensor_column)),
        _bonds(scene),
        points,
        scene.sensors,
        scene.neutral,
        scene.worth,
        scene.pushes,
        scene.masses.centre,
        scene.options.steps,
        root,
        q,
        info,
    )
    return Rest.of(q, root, info)


def _bonds(scene: Scene) -> "Bonds":
    """Return the holds between bodies, and the soles."""
    from marey.pose.physics.contact_springs_kernel import (
        Bonds,  # numba is slow to import
    )

    targets, soles = scene.targets, scene.soles
    sides = scene.pairs[:, :2]
    unknowns = 3 * len(scene.nodes.tree.parent) + 3
    rows = 3 * len(sides) + len(soles.node)
    return Bonds(
        node=owners(targets.start)[sides],
        place=targets.place[sides],
        weight=0.5 * targets.weight[sides[:, 0]],
        on=np.isfinite(scene.points[:, scene.pairs[:, 2], 0]),
        sole_node=soles.node,
        sole_place=soles.place,
        sole_weight=np.full(len(soles.node), HARD / scene.options.marker_sd**2),
        normal=soles.normal,
        floor=soles.floor,
        B=np.zeros((rows, unknowns)),
        Y=np.zeros((rows, unknowns)),
        S=np.zeros((rows, rows)),
        factor=np.zeros((rows, rows)),
        gap=np.zeros(rows),
        force=np.zeros(rows),
        balance=np.zeros(rows),
        bears=np.zeros(rows, dtype=bool),
        spot=np.zeros((3, 3)),
    )
