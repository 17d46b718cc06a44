"""Poses of a simulated body that springs pull to its markers (Zordan2003)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.articulated.targets import marker_residuals, node_of_target
from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.options import options_from
from marey.pose.contact.findings import report_no_contact
from marey.pose.findings import pose_findings, warn_of_runs
from marey.pose.options import PhysicsOptions
from marey.pose.physics.equilibrium import Rest, minimise_energy
from marey.pose.physics.simulation import simulate_to_rest
from marey.pose.physics.springs import SpringSystem, build_spring_system
from marey.pose.trace import PoseTrace
from marey.report import Finding, Table
from marey.skeleton import Skeleton
from marey.take import Take

NOT_CONVERGED = (
    "the figure does not come to rest in {frames}: allow more steps, or look for "
    "markers that pull against each other"
)


@dataclass(frozen=True, slots=True, eq=False)
class PhysicsFit:
    """A motion of poses at rest, with its energies and its convergence."""

    motion: Motion
    residual_m: Float[Array, "frame marker"]
    """Distance of every marker from its position on the body, in metres; NaN where
    unseen."""

    is_cut_off: Bool[Array, "frame marker"]
    """Whether a marker's spring was longer than the cutoff, and therefore off."""

    spring_energy: Float[Array, " frame"]
    """Energy of markers, sensors and holds, in joules."""

    neutral_energy: Float[Array, " frame"]
    """Energy of the torques to the neutral posture, in joules."""

    steps: Int[Array, " frame"]
    """Steps taken: of the simulation, or of the minimisation."""

    not_converged: Bool[Array, " frame"]
    """Frames that did not come to rest within the most steps."""

    def table(self) -> Table:
        """Return the residuals of the markers, the energies and the convergence."""
        residual = np.where(self.is_cut_off, np.nan, self.residual_m)
        seen = residual[np.isfinite(residual)]
        mean, worst = (seen.mean(), seen.max()) if len(seen) else (np.nan, np.nan)
        cut_off = self.is_cut_off.mean() if self.is_cut_off.size else 0.0
        return Table(
            ("what", "value"),
            (
                ("residual of markers, mean mm", round(1e3 * float(mean), 3)),
                ("residual of markers, worst mm", round(1e3 * float(worst), 3)),
                ("springs cut off, share", round(float(cut_off), 5)),
                ("energy of springs, mean mJ", _mean_millijoules(self.spring_energy)),
                (
                    "energy of the neutral posture, mean mJ",
                    _mean_millijoules(self.neutral_energy),
                ),
                ("energy of limits, which are rigid, mJ", 0.0),
                ("steps per frame", round(float(self.steps.mean()), 1)),
                ("frames not at rest", float(self.not_converged.sum())),
            ),
        )


def _mean_millijoules(joules: Float[Array, " frame"]) -> float:
    return float(f"{1e3 * joules.mean():.4g}")


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion of poses at rest between the recording's springs.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `PhysicsOptions`.

    Returns:
        The motion, and its findings; `fit_physics` returns the energies as well.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors, or a hold names a joint that does not exist.
        MissingExtraError: If a simulation is asked for and MuJoCo is not installed.
        OptionError: If an option is not known or out of range.
    """
    system, (rest, info) = _find_rest(skeleton, take, options)
    found = [*pose_findings(take, system.tracker, rest)]
    found.extend(warn_of_runs("pose-not-at-rest", info[:, 1] > 0.0, NOT_CONVERGED))
    found.append(_report_energy(*_energies(system, rest)))
    if not system.has_contact:
        found.append(report_no_contact())
    return system.tracker.motion(take, rest), tuple(found)


def fit_physics(skeleton: Skeleton, take: Take, **options: Any) -> PhysicsFit:
    r"""Return the poses at rest, with the energy and the steps of every frame.

    Implements Zordan2003. The skeleton is a body of rigid capsules along the bones. A
    spring leads from every recorded marker to its position on the body,
    :math:`F = -k X`, with one stiffness for all; a sensor has a torsional spring as
    well; every body is damped by its velocity, :math:`F = -b V` (Eq. 1). Torques

    .. math:: \tau = k_t (\theta_d - \theta) - b_t \dot\theta

    in proportion to the inertia that each joint carries lead to a neutral posture with
    arms at the side (Eq. 2). There is no gravity. Every frame starts from the pose of
    the frame before, and its pose is the one at which the body comes to rest.

    At rest all forces balance: the pose minimises the energy, whatever masses and
    damping are. `settle="direct"` minimises it with the Gauss-Newton steps of
    `marey.pose.gauss_newton`; `settle="simulation"` runs the dynamics in MuJoCo.

    Departures, and why:

    - The difference :math:`\theta_d - \theta` of a ball joint is the rotation vector
      between both rotations, which does not depend on an order of axes.
    - The neutral posture pulls only joints of which markers do not determine every
      rotation, because it draws the others off their markers; `pull="all"` is as
      printed.
    - Damping is in proportion to mass, so that all bodies come to rest in the same
      time; it is reduced in a frame that takes long. Every spring adds some mass, so
      that steps of 0.01 s are stable for any skeleton.
    - Springs longer than `cutoff` are off, which the paper plans. They are measured at
      the pose of a robust fit, so that outliers are off before they act; the first
      frame starts there as well.
    - Joints have limits, which the paper plans too; they are rigid.
    - Markers near joints pull both bodies only if asked (`shared_within`): a marker
      that is not on the axis of a joint fits both bodies at one angle only.

    With a `ground`, soles feel the contact forces of Sec. 3: the normal force pushes
    them out of the ground whether planted or not; friction holds those that are
    planted. Departures: the ground is rigid, so that nothing stays below it; its plane
    and the foot plants are found in the motion (`marey.pose.contact.ground_contacts`);
    and unless a `friction` is given, plants keep to anchors. The printed friction
    :math:`\mu F_z` is almost zero where gravity presses no foot down, and makes a pose
    depend on those before it.
    """
    system, (rest, info) = _find_rest(skeleton, take, options)
    tracker = system.tracker
    residual_m = tracker.marker_residuals(take.points, rest)
    is_on = np.isfinite(system.points[:, tracker.matches.column, 0])
    return PhysicsFit(
        tracker.motion(take, rest),
        residual_m,
        np.isfinite(residual_m) & ~is_on,
        *_energies(system, rest),
        info[:, 0].astype(np.int64),
        info[:, 1] > 0.0,
    )


def _find_rest(
    skeleton: Skeleton, take: Take, options: dict[str, Any]
) -> tuple[SpringSystem, Rest]:
    chosen = options_from(PhysicsOptions, options)
    system = build_spring_system(skeleton, take, chosen)
    is_simulated = chosen.settle == "simulation"
    return system, (simulate_to_rest if is_simulated else minimise_energy)(system)


def _energies(
    system: SpringSystem, rest: PoseTrace
) -> tuple[Float[Array, " frame"], Float[Array, " frame"]]:
    """Return the energy of springs and of the neutral posture, in joules."""
    targets = system.targets
    residual = marker_residuals(
        targets, system.nodes.tree, system.free_points, rest.root, rest.q
    )
    springs = np.nansum(targets.weight * residual**2, axis=1)
    springs += _hold_energy(system, rest)
    sensors = system.sensors[:, targets.sensor_column]
    difference = system.tracker.sensor_poses(rest) - sensors
    # The unit vectors of a frame rotated by a small angle move by twice its square.
    angle2 = 0.5 * np.sum(difference[..., :3, :3] ** 2, axis=(-1, -2))
    squares = np.stack([np.sum(difference[..., 3] ** 2, -1), angle2], axis=-1)
    springs += np.nansum(targets.sensor_weight * squares, axis=(1, 2))
    inverse = geometry.quat_conjugate(rest.q)
    angle = geometry.quat_log(geometry.quat_multiply(inverse, system.neutral))
    torques = np.sum(system.neutral_weight[:, 1:] * np.sum(angle**2, axis=-1), axis=1)
    half = 0.5 * system.force_unit
    return half * springs, np.asarray(half * torques)


def _hold_energy(system: SpringSystem, rest: PoseTrace) -> Float[Array, " frame"]:
    """Return twice the energy of holds between bodies, in joules by `force_unit`.

    Such a hold is two springs from its midpoint, of equal length.
    """
    nodes, targets, energy = system.nodes, system.targets, np.zeros(len(rest.q))
    T_world_joint = system.tracker.joint_poses(rest)
    node = node_of_target(targets.start)
    for *ends, column in system.hold_pairs:
        joints = [int(np.flatnonzero(nodes.node_of_joint == node[k])[0]) for k in ends]
        offset = targets.position[ends] - nodes.joint_position[joints]
        position = geometry.apply(T_world_joint[:, joints], offset)
        half = 0.5 * np.linalg.norm(position[:, 1] - position[:, 0], axis=-1)
        is_on = np.isfinite(system.points[:, column, 0])
        energy += is_on * targets.weight[ends].sum() * half**2
    return energy


def _report_energy(
    springs: Float[Array, " frame"], neutral: Float[Array, " frame"]
) -> Finding:
    """Return the finding of the mean energies; limits are rigid and store none."""
    return Finding(
        "pose-energy",
        "pose",
        "info",
        f"at rest the mean frame stores {_mean_millijoules(springs):.3g} mJ in springs "
        f"and {_mean_millijoules(neutral):.3g} mJ in the neutral posture",
        value=float(springs.mean() + neutral.mean()),
    )
