"""Sensors that slip on their body during a recording, found and taken back.

OBrien2000 (Sec. 5) expects that a sensor that moves on its limb shows as a change of
the residual and advises to record again. Here the frame, the sensor and the change of
its mounting are estimated, so that the recording can be kept.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from marey.bodies import Bodies
from marey.cleaning.slips.sensor_search import Search
from marey.cleaning.slips.slip import Slip
from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.take import Take
from marey.tree import Tree

Array = np.ndarray

LEVEL = 1e-4
"""Probability of a slip that is none, over all sensors of a take, as theory has it.
Slow noise, whose strength is not well known from one take, makes it larger: up to two
takes in a hundred."""


def find_slips(
    bodies: Bodies | Sequence[Bodies],
    joints: JointFits,
    tree: Tree,
    *,
    level: float = LEVEL,
) -> tuple[Slip, ...]:
    """Return the sensors that slipped, and when, in the order of time.

    Seen from its own sensor a joint stands still. Where a sensor slips, all its joints
    move at once, in its axes, and stay there: at every frame the likelihood ratio of
    such a shift is summed over the sensor's joints, each weighed by the long-run
    variance of its gap, so that slow noise does not pass for a slip. The likeliest slip
    is taken back and the search goes on, until none is left; then each is found again
    with all others taken back.

    Args:
        bodies: The moving bodies, or several takes of them in the order they were
            recorded: a slip lasts into the takes that follow.
        joints: Their joints.
        tree: Which of the joints are real.
        level: Probability of a false alarm that is accepted, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    if not 0.0 < level < 1.0:
        raise OptionError("level", found=level, needed="above 0 and below 1")
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    links = _links(joints, tree)
    search = Search(takes, links, level)
    found = search.all()
    loose = search.loose(links)
    if loose.any():
        search = Search(takes, links[~loose], level)
        found = search.all()
    return search.in_order(found)


def _links(joints: JointFits, tree: Tree) -> Int[Array, "link 2"]:
    """Return the pairs of bodies that are joined.

    A body that a large slip tore from the tree is joined to the one it fits best.
    """
    rows = tree.edge[tree.edge >= 0].tolist()
    bodies = np.arange(len(tree.parent))
    alone = bodies[(tree.parent < 0) & ~np.isin(bodies, tree.parent)]
    for body in alone.tolist() if rows else []:
        mine = np.flatnonzero((joints.pair == body).any(axis=1) & joints.fitted)
        if len(mine):
            rows.append(int(mine[joints.residual[mine].argmin()]))
    return np.asarray(joints.pair[sorted(set(rows))].reshape(-1, 2))


def repaired(takes: Sequence[Take], slips: Sequence[Slip]) -> tuple[Take, ...]:
    """Return takes whose sensors stay where they were before they slipped.

    The frames after each slip, those of later takes too, are brought into the axes that
    the sensor had before. Each repair is a line of the history and a finding of the
    take it happened in.

    Args:
        takes: The takes that the slips were found in.
        slips: From `find_slips`.
    """
    mended = []
    for number, take in enumerate(takes):
        T = take.T_world_sensor.copy()
        for slip in reversed(slips):
            if slip.take <= number and slip.sensor in take.sensor_names:
                sensor = take.sensor_names.index(slip.sensor)
                first = slip.frame if slip.take == number else 0
                T[first:, sensor] = T[first:, sensor] @ geometry.inverse(
                    slip.T_before_after
                )
        mine = [slip for slip in slips if slip.take == number]
        notes = tuple(f"taken back: {slip.sensor} {slip}" for slip in mine)
        found = tuple(slip.finding for slip in mine)
        source = replace(take.source, findings=(*take.source.findings, *found))
        mended.append(
            replace(
                take,
                T_world_sensor=T,
                source=source,
                history=(*take.history, *notes),
            )
        )
    return tuple(mended)
