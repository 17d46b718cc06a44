"""Bodies of a marker set that is recognised by its labels."""

from marey.bodies import Bodies
from marey.errors import DataError
from marey.segmentation.body_poses import bodies_from_members
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.marker_sets import known_marker_sets
from marey.segmentation.labels.match import MarkerSetMatch
from marey.segmentation.labels.props import find_props
from marey.take import Take


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return whether all takes have trusted labels of known marker sets.

    Labels that the motion contradicts are reported.
    """
    if task.n_bodies:
        return Suitability(suits=False)
    matches = task.label_matches
    return Suitability(
        suits=all(match is not None and match.trusted for match in matches),
        findings=tuple(
            () if match is None or match.trusted else match.findings
            for match in matches
        ),
    )


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return the bodies of the marker set of every take.

    Raises:
        DataError: If the labels are of no known set, or the motion contradicts them.
    """
    return tuple(map(bodies_from_labels, task.takes, task.label_matches))


def bodies_from_labels(take: Take, match: MarkerSetMatch | None) -> Bodies:
    """Return the bodies of a known marker set, each with its pose in every frame.

    Names are those of the VRM humanoid: Hips, Chest, Head, LeftUpperArm; of several
    subjects "JOE:Hips". Bodies without markers of their own are left out. Other
    subjects of the take ("Stick:1") are props, whose bodies follow from the distances
    that their markers keep. Poses are as with a template (`bodies_from_template`).
    Markers that do not move with their bodies have a small `marker_confidence`.

    Args:
        take: The recording.
        match: Its marker set, see `recognise_marker_set`.

    Raises:
        DataError: If the labels are of no known set, or the motion contradicts them.
    """
    if match is None or not match.trusted:
        names = ", ".join(known.name for known in known_marker_sets())
        labels = ", ".join(take.labels) or "no markers"
        raise DataError(
            "labels",
            found=match.findings[-1].message if match else labels,
            needed=f"markers of a known set ({names}), or a marker map (template=)",
        )
    members = {**match.members, **find_props(take, match)}
    bodies = bodies_from_members(
        take, members, match.parents, match.findings, match.stats
    )
    for marker, probability in match.label_probability.items():
        bodies.marker_confidence[marker] = probability
    return bodies
