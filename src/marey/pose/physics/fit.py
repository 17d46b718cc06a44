"""Poses by physics: a figure on springs that comes to rest (Zordan2003)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.targets import residuals
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.contact.footing import contact_frames, held_point, nothing_stands
from marey.pose.contact.ground import Floor as Floor
from marey.pose.findings import doubts, stretches
from marey.pose.gauss_newton.driver import Trace
from marey.pose.options import options_of
from marey.pose.physics.equilibrium import settle_directly
from marey.pose.physics.options import Hold as Hold
from marey.pose.physics.options import PhysicsOptions as PhysicsOptions
from marey.pose.physics.rest_pose import Rest
from marey.pose.physics.scene import Scene, placed_sensors, scene_of
from marey.pose.physics.simulation import settle_by_simulation
from marey.pose.reference_prior import motion_of
from marey.report import Finding, Table
from marey.skeleton import Skeleton
from marey.take import Take

Array = np.ndarray

RESTLESS = (
    "the figure does not come to rest in {frames}: allow more steps, or look for "
    "markers that pull against each other"
)


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A motion of postures at rest, and what it took to find them."""

    motion: Motion
    away: Float[Array, "frame marker"]
    """How far every marker is from its place on the body, in metres; NaN where
    unseen."""

    off: Bool[Array, "frame marker"]
    """Whether a marker's spring was too long, and therefore off."""

    springs: Float[Array, " frame"]
    """Energy of markers, sensors and holds, in joule."""

    neutral: Float[Array, " frame"]
    """Energy of the torques that lead to the neutral posture, in joule."""

    steps: Int[Array, " frame"]
    """Steps taken: of the simulation, or of the search for the least energy."""

    restless: Bool[Array, " frame"]
    """Frames that did not come to rest within the most steps."""

    def table(self) -> Table:
        """Return how well markers are met, and how the energy is split."""
        near = np.where(self.off, np.nan, self.away)
        seen = near[np.isfinite(near)]
        mean, worst = (seen.mean(), seen.max()) if len(seen) else (np.nan, np.nan)
        off = self.off.mean() if self.off.size else 0.0
        return Table(
            ("what", "value"),
            (
                ("markers off their places, mean mm", round(1e3 * float(mean), 3)),
                ("markers off their places, worst mm", round(1e3 * float(worst), 3)),
                ("springs off, share", round(float(off), 5)),
                ("energy of springs, mean mJ", _milli(self.springs)),
                ("energy of the neutral posture, mean mJ", _milli(self.neutral)),
                ("energy of limits, which hold exactly, mJ", 0.0),
                ("steps per frame", round(float(self.steps.mean()), 1)),
                ("frames not at rest", float(self.restless.sum())),
            ),
        )


def _milli(joule: Float[Array, " frame"]) -> float:
    return float(f"{1e3 * joule.mean():.4g}")


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion whose postures are at rest between the recording's springs.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `PhysicsOptions`.

    Returns:
        The motion, and what was found about it; `fit` says more.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors, or a hold names a joint that is not there.
        MissingExtraError: If a simulation is asked for and MuJoCo is not installed.
        OptionError: If an option is not known or out of range.
    """
    scene, rest = _settled(skeleton, take, options)
    trace = Trace(rest.q, rest.root, scene.trace.info)
    motion = motion_of(skeleton, take, scene.nodes, rest.root, rest.q)
    found = [*doubts(skeleton, take, scene.fit, trace)]
    found.extend(stretches("pose-restless", rest.restless, RESTLESS))
    found.append(_split(*_energies(scene, rest)))
    if not scene.grounded:
        found.append(nothing_stands())
    return motion, tuple(found)


def fit(skeleton: Skeleton, take: Take, **options: Any) -> Settled:
    """Return the postures at rest, with the energy and the steps of every frame.

    Implements Zordan2003. The skeleton is a figure of rigid bodies (capsules along the
    bones). From every recorded marker a spring leads to its place on the body,
    F = -k X, all alike; a sensor has a torsional spring as well; every body is damped
    by its speed, F = -b V (Eq. 1). Torques k_t (theta_d - theta) - b_t theta' by the
    inertia that each joint carries lead to a neutral posture with arms at the side
    (Eq. 2). There is no gravity. Every frame starts from the posture of the last, and
    where the figure comes to rest is its posture.

    At rest all forces balance: the posture is one of least energy, k/2 times the sum of
    the springs' squared lengths and 1/2 k_t I (theta_d - theta)^2 of all joints,
    whatever masses and damping are. `settle="direct"` looks for that with the engine of
    `gauss_newton`, without running time; `settle="simulation"` runs it in MuJoCo.

    Departures, and why: theta_d - theta of a ball is the rotation vector between the
    two, in which nothing depends on an order of axes. The neutral posture pulls only
    joints of which markers leave some turn open, because it draws the others off their
    markers; `pull="all"` is as printed. Damping goes by mass, so that everything
    settles in the same time, and lets go of a frame that takes long. Every spring has
    some ballast, so that steps of 0.01 s serve any figure. Springs longer than `cutoff`
    are off, which the paper plans: they are measured against an outlier-proof fit, so
    that they are caught before they are applied; the first frame starts there as well.
    Joints have limits, which the paper plans too: stops that hold exactly. Markers near
    joints pull both bodies only where asked (`shared_within`): a marker beside the
    joint is at one place in two bodies for one bend only.

    With a `ground`, soles feel the forces of Sec. 3: F_z pushes them out of it, planted
    or not; friction holds those that are planted. Departures: the ground does not give
    way, so that nothing stays below it; where it is and which points are planted is
    found, see `marey.pose.contact.footing`; and unless a `friction` is given, plants keep to
    anchors, because mu F_z is next to nothing where gravity presses no foot down, and
    makes a posture depend on those before it.
    """
    scene, rest = _settled(skeleton, take, options)
    fit = scene.fit
    away = fit.away(take.points, Trace(rest.q, rest.root, scene.trace.info))
    column = fit.worn.column
    seen = np.isfinite(scene.points[:, column, 0])
    springs, neutral = _energies(scene, rest)
    return Settled(
        motion_of(skeleton, take, scene.nodes, rest.root, rest.q),
        away,
        np.isfinite(away) & ~seen,
        springs,
        neutral,
        rest.steps,
        rest.restless,
    )


def holds_of(motion: Motion, *, strength: float = 10.0) -> tuple[Hold, ...]:
    """Return the contacts of a motion as holds: planted feet, a hand on a rail.

    Args:
        motion: A motion with contacts, such as `solve_pose(..., contacts=True)` gives.
        strength: Stiffness of each hold, as a multiple of a marker's; above 0.
    """
    return tuple(
        Hold(
            joint=contact.joint,
            point=held_point(motion, contact),
            to=contact.anchor,
            start=contact.start,
            end=contact.end,
            strength=strength,
        )
        for contact in motion.contacts
        if contact_frames(motion, contact).any()
    )


def _settled(
    skeleton: Skeleton, take: Take, options: dict[str, Any]
) -> tuple[Scene, Rest]:
    chosen = options_of(PhysicsOptions, options)
    scene = scene_of(skeleton, take, chosen)
    simulated = chosen.settle == "simulation"
    return scene, (settle_by_simulation if simulated else settle_directly)(scene)


def _energies(
    scene: Scene, rest: Rest
) -> tuple[Float[Array, " frame"], Float[Array, " frame"]]:
    """Return the energy of springs and of the neutral posture, in joule."""
    points, tree, targets = scene.points, scene.nodes.tree, scene.targets
    for a, b, column in scene.pairs:
        # To the middle and back: each of both halves is as long as the other.
        points = points.copy()
        on = np.isfinite(points[:, column, 0])
        ends = [_spots(scene, rest, int(t)) for t in (a, b)]
        points[on, column] = 0.5 * (ends[0] + ends[1])[on]
    away = residuals(targets, tree, points, rest.root, rest.q)
    springs = np.nansum(targets.weight * away**2, axis=1)
    mine = scene.sensors[:, targets.sensor_column]
    off = placed_sensors(scene.fit, rest.root, rest.q) - mine
    squares = np.stack([np.sum(off[..., 3] ** 2, -1), _half(off)], axis=-1)
    springs += np.nansum(targets.sensor_weight * squares, axis=(1, 2))
    back = geometry.quat_conjugate(rest.q)
    turn = geometry.quat_log(geometry.quat_multiply(back, scene.neutral))
    bent = np.sum(scene.worth[:, 1:] * np.sum(turn**2, axis=-1), axis=1)
    return 0.5 * scene.unit * springs, np.asarray(0.5 * scene.unit * bent)


def _half(off: Float[Array, "frame sensor 4 4"]) -> Float[Array, "frame sensor"]:
    """Return the square of a small turn: three unit vectors move twice that in all."""
    return np.asarray(0.5 * np.sum(off[..., :3, :3] ** 2, axis=(-1, -2)))


def _spots(scene: Scene, rest: Rest, target: int) -> Float[Array, "frame 3"]:
    """Return where the place of a target is in the world."""
    targets = scene.targets
    node = int(np.searchsorted(targets.start, target, side="right")) - 1
    joint = int(np.flatnonzero(scene.nodes.of_joint == node)[0])
    skeleton = scene.fit.skeleton
    T_world_root = geometry.transform(
        geometry.matrix_from_quat(rest.q[:, 0]), rest.root
    )
    T = skeleton.forward(T_world_root, scene.nodes.rotations(rest.q))[:, joint]
    place = targets.place[target] - scene.nodes.place[joint]
    return np.asarray(T[:, :3, :3] @ place + T[:, :3, 3])


def _split(springs: Float[Array, " frame"], neutral: Float[Array, " frame"]) -> Finding:
    """Return how the energy is split; stops at limits hold exactly, and store none."""
    return Finding(
        "pose-energy",
        "pose",
        "info",
        f"at rest, springs hold {_milli(springs):.3g} mJ in the mean frame, the "
        f"neutral posture {_milli(neutral):.3g} mJ, and limits none",
        value=float(springs.mean() + neutral.mean()),
    )
