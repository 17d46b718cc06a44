"""Contact with the ground: foot plants found in a motion, and footskate removed.

The steps are: contact points (`points`), stance frames and foot plants with fitted
edges (`stance`, `foot_plants`), the ground below them (`ground`), goals with weights
(`goals`), inverse kinematics that reaches them (`inverse_kinematics`), and what is
reported of all this (`findings`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.articulated.tables import make_nodes
from marey.articulated.targets import TargetNames, match_targets
from marey.errors import DataError
from marey.motion import Contact, GroundPlane, Motion
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.resampling import stack_spans
from marey.numerics.robust import group_medians
from marey.numerics.thresholds import (
    FEW,
    MIN_POSE_POINTS,
    MOTION_TIME_S,
)
from marey.pose.contact.findings import report_contacts, report_no_contact
from marey.pose.contact.foot_plants import FootPlant, find_foot_plants
from marey.pose.contact.goals import contact_goals, project_anchors
from marey.pose.contact.ground import (
    GroundContacts,
    fit_contact_planes,
    place_on_ground,
    select_ground_plants,
)
from marey.pose.contact.inverse_kinematics import reach_goals
from marey.pose.contact.points import (
    ContactPoints,
    MotionPoses,
    PointTracks,
    find_contact_points,
    make_contact_points,
)
from marey.pose.contact.stance import detect_stance
from marey.report import Finding
from marey.take import TIME_ROUNDING, Take


def find_ground_contacts(motion: Motion, take: Take | None = None) -> GroundContacts:
    """Return the foot plants of a motion and the ground they stand on.

    A two-state hidden Markov model separates standing from moving frames of every point
    of the outermost bodies, such as heels and toes (Viterbi algorithm). The edges of
    the stances are fitted to half a frame. Those stances are plants whose point is the
    lowest of the figure in at least one frame. The ground is the plane that most plants
    are on; steps and boxes may stand out.

    Zordan2003, Sec. 3, has one speed for a whole foot, a threshold set by hand, and
    ground at a known height. Departures: heel and toe are separate, thresholds follow
    from the noise, and the ground follows from the plants.

    Args:
        motion: A motion at one rate.
        take: The recording of the motion. Where markers of a body were unseen, its pose
            is a guess, and has less weight.

    Raises:
        DataError: If the frames of the motion are not evenly spaced.
    """
    if np.isnan(motion.rate):
        raise DataError(
            "motion", found="unevenly spaced frames", needed="frames at one rate"
        )
    poses = MotionPoses(motion)
    points = find_contact_points(motion, poses)
    figure_height = poses.figure_height
    if not figure_height > 0.0 or motion.n_frames < 2:
        points = points.select(np.zeros(0, dtype=np.int64))
    positions = poses.map(points.positions)
    visibility = _visibility(motion, take, points)
    tracks = PointTracks(positions, visibility, motion.rate, figure_height)
    plants = find_foot_plants(detect_stance(tracks), tracks)
    lowest = poses.map(lambda T: T[..., 2, 3].min(axis=1))
    plants, planes = select_ground_plants(plants, tracks, lowest)
    used, index = np.unique(
        np.array([plant.point for plant in plants], dtype=np.int64), return_inverse=True
    )
    return GroundContacts(
        points.select(used),
        tuple(replace(p, point=int(k)) for p, k in zip(plants, index, strict=True)),
        replace(planes, height=np.asarray(planes.height)[used]),
    )


def _visibility(
    motion: Motion, take: Take | None, points: ContactPoints
) -> Float[Array, "frame point"]:
    """Return how well each point's body is seen, 0 to 1."""
    visibility = np.ones((motion.n_frames, len(points.joint)))
    if take is None:
        return visibility
    skeleton = motion.skeleton
    nodes = make_nodes(skeleton, limits=False)
    matches = match_targets(skeleton, nodes, TargetNames.of(take))
    marker_node = nodes.node_of_joint[skeleton.marker_joint[matches.marker]]
    sensor_node = nodes.node_of_joint[skeleton.sensor_joint[matches.sensor]]
    marker_seen, sensor_seen = take.seen, take.sensor_seen
    for k, node in enumerate(nodes.node_of_joint[points.joint]):
        markers = marker_seen[:, matches.column[marker_node == node]]
        sensors = sensor_seen[:, matches.sensor_column[sensor_node == node]]
        count = markers.sum(axis=1) + MIN_POSE_POINTS * sensors.sum(axis=1)
        n_attached = markers.shape[1] + MIN_POSE_POINTS * sensors.shape[1]
        needed = min(MIN_POSE_POINTS, n_attached)
        if needed:
            share = count / needed
            # A rotation that moves the sole of a body with too few markers is unknown.
            visibility[:, k] = np.where(share < 1.0, FEW * share, 1.0)
    return visibility


def enforce_contacts(
    motion: Motion, contacts: GroundContacts
) -> tuple[Motion, GroundContacts]:
    """Return the motion without footskate and penetration, and the plants it keeps.

    Planted points move to the median of their positions, with the least displacement of
    all joints (inverse kinematics). Before and after a plant the correction fades
    within 0.2 s. Points below the ground are lifted onto it. This replaces the friction
    and the ground force of Zordan2003, Sec. 3, by anchors: the pose does not depend on
    the poses before it, and a foot that markers pull does not creep.

    Args:
        motion: The motion in which the contacts were found.
        contacts: Its plants and ground.

    Returns:
        The motion with its contacts filled in, and the plants with consistent anchors.
    """
    if not contacts.plants:
        return replace(motion, contacts=()), contacts
    contacts = reconcile_anchors(motion, contacts)
    goals = contact_goals(contacts, motion)
    changed = reach_goals(motion, contacts.points, goals)
    return replace(changed, contacts=contacts.contacts(motion)), contacts


def reconcile_anchors(motion: Motion, contacts: GroundContacts) -> GroundContacts:
    """Return plants that a foot can reach: on the ground, and as far apart as it is."""
    positions = contacts.points.positions(motion.T_world_joint())
    first = positions[np.isfinite(positions).all(axis=(1, 2))][:1]
    between = geometry.lengths(first[:, :, None] - first[:, None]).sum(axis=0)
    return project_anchors(contacts, between)


def contact_offsets(
    motion: Motion, contacts: Sequence[Contact], poses: MotionPoses
) -> Float[Array, "contact 3"]:
    """Return the position of each contact in its joint's frame, in metres.

    It is the median, over the frames of the contact, of the point of the bone at the
    anchor; NaN if the contact has no frame.

    Args:
        motion: The motion.
        contacts: Some of its contacts.
        poses: The poses of the motion.
    """
    spans = [contact_frames(motion, contact) for contact in contacts]
    frame, contact = stack_spans(spans)
    joints = [motion.skeleton.index(contact.joint) for contact in contacts]
    T = poses.at(frame, np.array(joints, dtype=np.int64)[contact])
    anchor = np.array([contact.anchor for contact in contacts]).reshape(-1, 3)
    # R^T (x - t): the anchor in the joint's frame.
    offset = np.einsum("nij,ni->nj", T[:, :3, :3], anchor[contact] - T[:, :3, 3])
    known = points_seen(offset)
    return group_medians(offset[known], contact[known], len(contacts))


def contact_frames(motion: Motion, contact: Contact) -> range:
    """Return the frames of a motion in which a contact lasts; none without a rate."""
    if np.isnan(motion.rate):
        return range(0)
    start = (contact.start - motion.start) * motion.rate - TIME_ROUNDING
    end = (contact.end - motion.start) * motion.rate + TIME_ROUNDING
    first = math.ceil(min(max(start, 0.0), motion.n_frames))
    after = math.floor(min(max(end, -1.0), motion.n_frames - 1)) + 1
    return range(first, max(first, after))


def planted_spans(contacts: Sequence[Contact]) -> dict[str, list[tuple[float, float]]]:
    """Return the times between which each joint is planted, in seconds.

    Heel and toes have contacts of their own. Those of one joint that overlap, or that
    follow each other faster than a foot takes a step, are one plant.
    """
    spans: dict[str, list[tuple[float, float]]] = {c.joint: [] for c in contacts}
    for contact in sorted(contacts, key=lambda contact: contact.start):
        start, end = contact.start, contact.end
        of_joint = spans[contact.joint]
        if of_joint and start - of_joint[-1][1] < MOTION_TIME_S:
            start, before = of_joint.pop()
            end = max(before, end)
        of_joint.append((start, end))
    return spans


def ground_contacts_of(
    motion: Motion, poses: MotionPoses | None = None
) -> GroundContacts:
    """Return the foot plants and the ground that the contacts of a motion describe.

    This is for measuring. All contacts at one end of a bone share a point; every other
    contact has a point of its own.

    Args:
        motion: A motion with its contacts.
        poses: The poses of the motion, if they are at hand.
    """
    skeleton, plants = motion.skeleton, []
    ends = skeleton.is_end
    places = contact_offsets(motion, motion.contacts, poses or MotionPoses(motion))
    joints: list[int] = []
    offsets: list[Array] = []
    for contact, offset in zip(motion.contacts, places, strict=True):
        joint = skeleton.index(contact.joint)
        if not np.isfinite(offset).all():
            continue
        is_end = bool(ends[joint])
        point = joints.index(joint) if is_end and joint in joints else len(joints)
        if point == len(joints):
            joints.append(joint)
            offsets.append(np.zeros(3) if is_end else offset)
        start, end = (
            (time - motion.start) * motion.rate for time in (contact.start, contact.end)
        )
        plants.append(FootPlant(point, start, end, contact.anchor))
    joint_of_point = np.array(joints, dtype=np.int64)
    points = make_contact_points(
        skeleton,
        joint_of_point,
        np.array(offsets).reshape(-1, 3),
        ends[joint_of_point],
    )
    return GroundContacts(
        points, tuple(plants), fit_contact_planes(plants, len(joints))
    )


def mark_contacts(motion: Motion, take: Take) -> Motion:
    """Return the same motion with the foot plants that are found in it."""
    found = find_ground_contacts(motion, take)
    return replace(motion, contacts=found.contacts(motion))


def add_contacts(
    motion: Motion, take: Take, ground: GroundPlane | None = None
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion with its feet held where they are planted, and the findings.

    Args:
        motion: A motion of any method.
        take: The recording of the motion.
        ground: The ground, if it is known; the plants are found from the motion anyway.
    """
    found = find_ground_contacts(motion, take)
    if not found.plants:
        return replace(motion, contacts=()), (report_no_contact(),)
    if ground is not None:
        found = place_on_ground(found, ground)
    changed, enforced = enforce_contacts(motion, found)
    planted = planted_spans(changed.contacts)
    findings = report_contacts((motion, changed), found, enforced, planted)
    return changed, tuple(findings)
