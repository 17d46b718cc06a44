"""Feet on ground that the user set."""

from dataclasses import replace

import numpy as np

from marey.edits import Edit
from marey.motion import Motion
from marey.pose._contact_ground import STEP, Ground
from marey.pose.contact import Footing, find_footing, hold, nothing_stands
from marey.pose.contact import _findings as contact_findings
from marey.report import Finding
from marey.take import Take


def held_on(
    motion: Motion, take: Take, ground: Edit
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion with its feet held on a known ground, and what was found.

    When feet stand is found as ever. The slope is the user's, and no point stands
    lower than the plane; a marker or joint that sits above the sole still does.

    Args:
        motion: A motion of any method.
        take: The recording that it is from.
        ground: The edit that set the ground.
    """
    footing = find_footing(motion, take)
    if not footing.plants:
        return replace(motion, contacts=()), (nothing_stands(),)
    footing = replace(footing, ground=_set(footing, ground))
    done, firm = hold(motion, footing)
    return done, contact_findings(motion, done, footing, firm)


def _set(footing: Footing, edit: Edit) -> Ground:
    x, y, z = edit.normal
    slope = -np.array([x, y]) / z
    flat = replace(footing.ground, slope=slope)
    height = flat.height.copy()
    for spot in range(len(height)):
        mine = [plant for plant in footing.plants if plant.spot == spot]
        near = [p for p in mine if abs(footing.ground.off(p)) < STEP] or mine
        stands = [plant.anchor[2] - slope @ plant.anchor[:2] for plant in near]
        height[spot] = max(float(np.median(stands)), edit.height / z)
    return replace(flat, height=height)
