"""Slips of sensors, found and undone.

OBrien2000 (Sec. 5) expects that a sensor that moves on its limb changes the residual,
and advises to record again. Here the frame, the sensor and the change of its pose are
estimated, so the recording can be kept.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from marey.bodies import Bodies
from marey.cleaning.repairs import record_repair
from marey.cleaning.slips import change_point
from marey.cleaning.slips.sensor_search import SlipSearch
from marey.cleaning.slips.sensor_slip import SensorSlip
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.take import Take
from marey.tree import Tree

Array = np.ndarray


def find_sensor_slips(
    bodies: Bodies | Sequence[Bodies],
    joints: JointFits,
    tree: Tree,
    *,
    level: float = change_point.FALSE_ALARM_LEVEL,
) -> tuple[SensorSlip, ...]:
    """Return the slips of sensors, in the order of time.

    In the axes of its own sensor a joint centre is constant. A slip displaces all joint
    centres of the sensor at once, and they stay there. For every frame the likelihood
    ratio of such a change is summed over the sensor's joints, relative to the long-run
    variance of each joint's residual, so that slow noise is no slip. The most likely
    slip is undone and the search repeated until none is significant (greedy search).
    Then each slip is estimated again with all others undone.

    Args:
        bodies: The moving bodies, or several takes of them in the order of recording: a
            slip lasts into the takes that follow.
        joints: Their joints.
        tree: Which of the joints are real.
        level: Accepted probability of a false alarm, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    change_point.check_level(level)
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    pairs = _joined_pairs(joints, tree)
    search = SlipSearch(takes, pairs, level)
    slips = search.find_all()
    is_open = search.find_open_joints(pairs)
    if is_open.any():
        search = SlipSearch(takes, pairs[~is_open], level)
        slips = search.find_all()
    return search.in_time_order(slips)


def _joined_pairs(joints: JointFits, tree: Tree) -> Int[Array, "joint 2"]:
    """Return the pairs of bodies that are joined.

    A large slip can separate a body from the tree. A body without joints is therefore
    joined to the body with the smallest residual.
    """
    rows = tree.edge[tree.edge >= 0].tolist()
    bodies = np.arange(len(tree.parent))
    alone = bodies[(tree.parent < 0) & ~np.isin(bodies, tree.parent)]
    for body in alone.tolist() if rows else []:
        fits = np.flatnonzero((joints.pair == body).any(axis=1) & joints.fitted)
        if len(fits):
            rows.append(int(fits[joints.residual[fits].argmin()]))
    return np.asarray(joints.pair[sorted(set(rows))].reshape(-1, 2))


def undo_sensor_slips(
    takes: Sequence[Take], slips: Sequence[SensorSlip]
) -> tuple[Take, ...]:
    """Return the takes with sensors in the axes they had before they slipped.

    Poses after each slip are transformed, also those of later takes. Each slip is a
    finding of the take in which it happened.

    Args:
        takes: The takes in which the slips were found.
        slips: From `find_sensor_slips`.
    """
    repaired = []
    for number, take in enumerate(takes):
        T = take.T_world_sensor.copy()
        for slip in reversed(slips):
            if slip.take <= number and slip.sensor in take.sensor_names:
                sensor = take.sensor_names.index(slip.sensor)
                first = slip.frame if slip.take == number else 0
                T_after_before = geometry.inverse(slip.T_before_after)
                T[first:, sensor] = T[first:, sensor] @ T_after_before
        of_take = [slip for slip in slips if slip.take == number]
        notes = [f"undid slip: {slip.sensor} {slip}" for slip in of_take]
        findings = [slip.finding for slip in of_take]
        repaired.append(record_repair(take, findings, notes, T_world_sensor=T))
    return tuple(repaired)
