"""Contact with the ground: plants found in a motion, and held where they stand."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from marey.articulated.tables import nodes_of
from marey.articulated.targets import worn
from marey.errors import DataError
from marey.motion import Contact, Motion
from marey.numerics import geometry
from marey.pose.contact.goals import floor_of, settled, wishes_of
from marey.pose.contact.ground import STEP, Ground, ground_of, on_ground, over
from marey.pose.contact.ground import Floor as Floor
from marey.pose.contact.hmm import standing
from marey.pose.contact.inverse_kinematics import held
from marey.pose.contact.points import Spots, spots_at, spots_of, tall
from marey.pose.contact.stance import Plant, plants_of
from marey.report import Finding, mark_name
from marey.take import Take

Array = np.ndarray

# So many markers of a body tell where it is; fewer leave it a turn that moves its sole,
# and what they say counts for so much.
ENOUGH, GUESSED = 3, 0.1

# A plant that asks a joint to move further than this, in metres, is worth a word.
FAR = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class Footing:
    """Where and when a figure stands, and on what."""

    spots: Spots
    """The points that are ever planted."""

    plants: tuple[Plant, ...]
    ground: Ground

    def contacts(self, motion: Motion) -> tuple[Contact, ...]:
        """Return the plants on the clock of a motion."""
        return tuple(
            Contact(
                self.spots.names[plant.spot],
                motion.start + plant.start / motion.rate,
                motion.start + plant.end / motion.rate,
                plant.anchor,
            )
            for plant in self.plants
        )

    def skate(self, motion: Motion) -> float:
        """Return the mean speed of planted points, in m/s; NaN without plants."""
        paths = self.spots.paths(motion.T_world_joint())
        steps = [np.diff(paths[p.frames, p.spot], axis=0) for p in self.plants]
        speed = np.linalg.norm(np.concatenate([np.zeros((0, 3)), *steps]), axis=-1)
        return float(np.nanmean(speed) * motion.rate) if len(speed) else float("nan")

    def depth(self, motion: Motion) -> float:
        """Return how far the end of a bone is below the ground at worst, in metres."""
        paths = self.spots.paths(motion.T_world_joint())
        floor = floor_of(self.spots, self.plants, self.ground, len(paths))
        below = floor - paths @ self.ground.normal
        return float(np.nanmax(below, initial=0.0))


def find_footing(motion: Motion, take: Take | None = None) -> Footing:
    """Return where and when a figure stands, found in its motion.

    Points of the outermost bodies, such as heels and toes, are told standing from
    moving by a model of two states; stands get their edges to a fraction of a frame;
    those count that are the lowest points of the figure for a moment at least. The
    ground is the plane that most of them are on; steps and boxes may stand out.

    Beyond Zordan2003, Sec. 3, which has one speed for a whole foot, a threshold set by
    hand, and ground at a known height: here heel and toe are told apart, thresholds
    follow from the noise, and the ground from the plants.

    Args:
        motion: A motion at one rate.
        take: The recording that it is from: where markers of a body were unseen, its
            pose is a guess, and counts for less.

    Raises:
        DataError: If the frames of the motion are not evenly spaced.
    """
    if np.isnan(motion.rate):
        raise DataError(
            "motion", found="unevenly spaced frames", needed="frames at one rate"
        )
    spots, high = spots_of(motion), tall(motion)
    paths = spots.paths(motion.T_world_joint())
    if not high > 0.0 or len(paths) < 2:
        spots, paths = spots.only(np.zeros(0, dtype=np.int64)), paths[:, :0]
    trust = _trust(motion, take, spots)
    state = standing(paths, trust, motion.rate, high)
    plants = plants_of(state, paths, trust, motion.rate, high)
    lowest = motion.T_world_joint()[..., 2, 3].min(axis=1)
    plants, ground = on_ground(plants, paths, lowest, high)
    used = np.unique(np.array([plant.spot for plant in plants], dtype=np.int64))
    mine = {int(spot): i for i, spot in enumerate(used)}
    return Footing(
        spots.only(used),
        tuple(replace(plant, spot=mine[plant.spot]) for plant in plants),
        replace(ground, height=ground.height[used]),
    )


def _trust(
    motion: Motion, take: Take | None, spots: Spots
) -> Float[Array, "frame spot"]:
    """Return how well each point's body is seen, 0 to 1."""
    trust = np.ones((motion.n_frames, len(spots.joint)))
    if take is None:
        return trust
    skeleton = motion.skeleton
    nodes = nodes_of(skeleton, limits=False)
    have = worn(skeleton, nodes, take.labels, take.full_labels, take.sensor_names)
    on = nodes.of_joint[skeleton.marker_joint[have.marker]]
    on_sensor = nodes.of_joint[skeleton.sensor_joint[have.sensor]]
    for k, node in enumerate(nodes.of_joint[spots.joint]):
        seen = take.seen[:, have.column[on == node]]
        posed = take.sensor_seen[:, have.sensor_column[on_sensor == node]]
        count = seen.sum(axis=1) + ENOUGH * posed.sum(axis=1)
        most = min(ENOUGH, seen.shape[1] + ENOUGH * posed.shape[1])
        if most:
            share = count / most
            trust[:, k] = np.where(share < 1.0, GUESSED * share, 1.0)
    return trust


def hold(motion: Motion, footing: Footing) -> tuple[Motion, Footing]:
    """Return the motion with planted points held and none underground, and the plants.

    Planted points are moved to the middle of their stand, and all joints as little as
    possible with them; before and after, the correction comes and goes within 0.2 s.
    Points below the ground are lifted onto it. This is the friction and the ground
    force of Zordan2003, Sec. 3, in the form of anchors: the pose does not depend on
    the poses before it, and a foot that markers pull does not creep.

    Args:
        motion: The motion in which the footing was found.
        footing: Where and when it stands.

    Returns:
        The motion, its contacts filled in, and the footing with the anchors held.
    """
    if not footing.plants:
        return replace(motion, contacts=()), footing
    footing = firmed(motion, footing)
    paths = footing.spots.paths(motion.T_world_joint())
    wishes = wishes_of(
        footing.spots, footing.plants, paths, footing.ground, motion.rate
    )
    done = held(motion, footing.spots, wishes)
    return replace(done, contacts=footing.contacts(motion)), footing


def held_point(motion: Motion, contact: Contact) -> Float[Array, " 3"]:
    """Return the place on the bone of a contact, in its joint; NaN if it has no frame.

    It is what was at the contact's anchor, on the median of its frames.
    """
    on = contact_frames(motion, contact)
    back = geometry.inverse(
        motion.T_world_joint()[on, motion.skeleton.index(contact.joint)]
    )
    points = geometry.apply(back, contact.anchor)
    points = points[np.isfinite(points).all(axis=1)]
    return np.median(points, axis=0) if len(points) else np.full(3, np.nan)


def contact_frames(motion: Motion, contact: Contact) -> Bool[Array, " frame"]:
    """Return the frames of a motion in which a contact lasts."""
    # Frames are told to a thousandth of their spacing: times are rounded.
    away = np.abs(motion.times - 0.5 * (contact.start + contact.end))
    half = 0.5 * (contact.end - contact.start)
    return np.asarray(away <= half + 1e-3 / motion.rate)


def footing_of(motion: Motion) -> Footing:
    """Return where and when a figure stands, as the contacts of its motion say.

    For measuring: an end of a bone is one point, each other contact one of its own.
    """
    skeleton, spots, plants = motion.skeleton, list[tuple[int, Array]](), []
    for contact in motion.contacts:
        joint, point = skeleton.index(contact.joint), held_point(motion, contact)
        if not np.isfinite(point).all():
            continue
        known = [i for i, (j, _) in enumerate(spots) if j == joint]
        at_end = bool(skeleton.is_end[joint])
        spot = known[0] if known and at_end else len(spots)
        if spot == len(spots):
            spots.append((joint, np.zeros(3) if at_end else point))
        start, end = (
            (time - motion.start) * motion.rate for time in (contact.start, contact.end)
        )
        plants.append(Plant(spot, start, end, contact.anchor))
    joints = np.array([joint for joint, _ in spots], dtype=np.int64)
    places = np.array([place for _, place in spots]).reshape(-1, 3)
    points = spots_at(skeleton, joints, places, skeleton.is_end[joints])
    return Footing(points, tuple(plants), ground_of(plants, len(spots)))


def firmed(motion: Motion, footing: Footing) -> Footing:
    """Return plants that a foot can keep: on the ground, and as far apart as it is."""
    paths = footing.spots.paths(motion.T_world_joint())
    whole = paths[np.isfinite(paths).all(axis=(1, 2))][:1]
    apart = np.linalg.norm(whole[:, :, None] - whole[:, None], axis=-1).sum(axis=0)
    plants = settled(footing.spots, footing.plants, footing.ground, apart)
    return replace(footing, plants=tuple(plants))


def with_contacts(
    motion: Motion, take: Take, floor: Floor | None = None
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion with its feet held where they are planted, and what was found.

    Args:
        motion: A motion of any method.
        take: The recording that it is from.
        floor: What feet stand on, if it is known; when they do is found all the same.
    """
    footing = find_footing(motion, take)
    if not footing.plants:
        return replace(motion, contacts=()), (nothing_stands(),)
    if floor is not None:
        ground = over(floor, footing.ground, footing.plants)
        footing = replace(footing, ground=ground)
    done, held_at = hold(motion, footing)
    return done, _findings(motion, done, footing, held_at)


def nothing_stands() -> Finding:
    """Return the finding that a figure stands on nothing."""
    return Finding(
        "contact-none",
        "pose",
        "info",
        "no outer point of the figure stands on anything, so no contact was asked of "
        "it: it has no feet, or +Z is not up",
        value=0.0,
    )


def _findings(
    before: Motion, after: Motion, footing: Footing, firm: Footing
) -> tuple[Finding, ...]:
    """Return plants, skate and penetration before and after, and the ground."""
    names = ", ".join(map(mark_name, sorted(set(footing.spots.names))))
    skate, still = footing.skate(before), firm.skate(after)
    return (
        _told(
            "contact-plants",
            f"{len(firm.plants)} plants of {names}",
            float(len(firm.plants)),
        ),
        _told(
            "contact-skate",
            f"planted points move by {1e3 * still:.2g} mm/s, "
            f"{1e3 * skate:.2g} before they were held",
            still,
        ),
        *_about_depth(before, after, firm),
        *_about_ground(firm),
        *_about_reach(before, after),
    )


def _told(code: str, message: str, value: float) -> Finding:
    return Finding(code, "pose", "info", message, value=value)


def _about_depth(before: Motion, after: Motion, firm: Footing) -> list[Finding]:
    if not firm.spots.sole.any():
        return []
    depth, lifted = firm.depth(before), firm.depth(after)
    message = (
        f"points are at most {1e3 * lifted:.2g} mm below the ground, "
        f"{1e3 * depth:.2g} before they were lifted"
    )
    return [_told("contact-depth", message, lifted)]


def _about_ground(firm: Footing) -> list[Finding]:
    ground = firm.ground
    slope = np.degrees(ground.angle)
    found = [
        _told(
            "contact-ground",
            f"the ground falls by {slope:.1f}°; the lowest points stand on it at "
            f"{ground.height.min():.3f} m over the origin",
            float(ground.height.min()),
        )
    ]
    off = [abs(ground.off(plant)) for plant in firm.plants]
    raised = sum(away >= STEP for away in off)
    if raised:
        found.append(
            _told(
                "contact-uneven",
                f"{raised} of {len(off)} plants are up to {max(off):.2f} m off the "
                "plane of the others: steps, or things stood on",
                max(off),
            )
        )
    return found


def _about_reach(before: Motion, after: Motion) -> list[Finding]:
    away = (after.T_world_joint() - before.T_world_joint())[..., :3, 3]
    far = np.nan_to_num(np.linalg.norm(away, axis=-1))
    frame, joint = np.unravel_index(int(far.argmax()), far.shape)
    if far[frame, joint] < FAR:
        return []
    return [
        Finding(
            "contact-far",
            "pose",
            "warning",
            f"was moved by {1e2 * far[frame, joint]:.0f} cm to hold a plant: what was "
            "planted may have slid in truth",
            subject=after.skeleton.names[joint],
            frames=(int(frame), int(frame)),
            value=float(far[frame, joint]),
        )
    ]
