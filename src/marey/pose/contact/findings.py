"""Findings about contact: the plants, the ground, and what holding them has changed."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.thresholds import OUTLIER_SD, SKIN_MOTION_M
from marey.pose.contact.ground import GroundContacts, is_level, plant_height
from marey.report import Finding, mark_name

LARGE_CORRECTION_M = OUTLIER_SD * SKIN_MOTION_M
"""Displacement of a joint, in metres, from which holding a plant is a warning. Raising
it reports fewer plants that may have slid."""


def report_no_contact() -> Finding:
    """Return the finding that a figure has no contact with the ground."""
    message = (
        "no point of the figure stands on the ground, so no contact is enforced: "
        "check that the figure has feet and that +Z is up"
    )
    return _info("contact-none", message, 0.0)


def _info(code: str, message: str, value: float) -> Finding:
    return Finding(code, "pose", "info", message, value=value)


def report_contacts(
    motions: tuple[Motion, Motion],
    found: GroundContacts,
    contacts: GroundContacts,
    planted: Mapping[str, Sequence[object]],
) -> Iterator[Finding]:
    """Yield the plants, the ground below them, and what holding them has changed.

    Args:
        motions: The motion before and after its feet were held.
        found: The plants that were found in it.
        contacts: Those that were held.
        planted: The times at which each joint is planted.
    """
    (before, after), ground = motions, contacts.ground
    count = sum(map(len, planted.values()))
    names = ", ".join(map(mark_name, sorted(planted)))
    message = f"found {count} foot plants of {names}"
    yield _info("contact-plants", message, float(count))
    skate = contacts.skate(after)
    message = (
        f"planted points move at {1e3 * skate:.2g} mm/s on average, and at "
        f"{1e3 * found.skate(before):.2g} mm/s before they were held"
    )
    yield _info("contact-skate", message, skate)
    if contacts.points.is_sole.any():
        lifted = contacts.penetration(after)
        message = (
            f"points are at most {1e3 * lifted:.2g} mm below the ground, and "
            f"{1e3 * contacts.penetration(before):.2g} mm before they were lifted"
        )
        yield _info("contact-depth", message, lifted)
    slope, lowest = np.degrees(ground.angle), float(np.min(ground.height))
    message = (
        f"the ground is inclined by {slope:.1f}°, and its lowest points are planted "
        f"at a height of {lowest:.2f} m"
    )
    yield _info("contact-ground", message, lowest)
    raised = [plant for plant in contacts.plants if not is_level(ground, plant)]
    if raised:
        distance = max(abs(plant_height(ground, plant)) for plant in raised)
        message = (
            f"{len(raised)} of {len(contacts.plants)} contacts of heels and toes are "
            f"up to {distance:.2f} m off the ground plane, as on steps or boxes"
        )
        yield _info("contact-uneven", message, distance)
    yield from _report_correction(before, after)


def _report_correction(before: Motion, after: Motion) -> Iterator[Finding]:
    """Yield a warning if a joint was moved far."""
    moved = (after.T_world_joint() - before.T_world_joint())[..., :3, 3]
    distance = np.nan_to_num(geometry.lengths(moved))
    frame, joint = np.unravel_index(int(distance.argmax()), distance.shape)
    largest = float(distance[frame, joint])
    if largest >= LARGE_CORRECTION_M:
        message = (
            f"was moved by {1e2 * largest:.0f} cm to hold a foot plant: check whether "
            "the foot slid in the recording"
        )
        where = after.skeleton.names[joint], (int(frame), int(frame))
        yield Finding("contact-far", "pose", "warning", message, *where, largest)
