"""Options of `marey.solve`."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from os import PathLike

from marey.edits import Edit
from marey.joints import REGISTRY as JOINT_METHODS
from marey.motion import Motion
from marey.options import Options, choice, number
from marey.pose import REGISTRY as POSE_SOLVERS
from marey.segmentation import REGISTRY as SEGMENTATIONS
from marey.segmentation import TemplateSource
from marey.skeleton import Skeleton
from marey.topology.weights import WEIGHTS

SkeletonSource = str | PathLike[str] | Skeleton | Motion
"""A skeleton, a motion of one, or the file that holds either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(Options):
    """Options of `marey.solve`."""

    joints: str = choice(*JOINT_METHODS)
    """Joint method, see `marey.fit_joints`."""

    weight: str = choice("auto", *WEIGHTS)
    """Edge cost of a joint in the tree, see `marey.infer_tree`."""

    subject: str = ""
    """Name of the subject. If a take has markers of several subjects, only this one's
    are used, and it must be among them; otherwise it is the name of the answer."""

    segment: str = choice("auto", *SEGMENTATIONS)
    """Segmentation method, see `marey.segment`."""

    template: TemplateSource | None = None
    """Marker map, see `marey.segment`."""

    skeleton: SkeletonSource | None = None
    """Skeleton of the subject, whose bones and joints are kept: a skeleton or motion,
    or a file (BVH, ASF, skel.json, MVNX, VSK). Its markers or sensors determine the
    bodies if the takes have them by name; else those of the takes are put on it."""

    fit: str = choice("rigid", "scale", "lengths")
    """How `skeleton` is fitted: "rigid" keeps its bones, "scale" multiplies all by one
    factor, "lengths" gives every bone the length that the recordings show."""

    free_joints: bool = False
    """Whether the joints of `skeleton` lose their limits, and hinges become balls."""

    sessions: tuple[Hashable, ...] = ()
    """Session of each take, as a number or name: markers are attached again in each
    session. When empty, every take is a session of its own."""

    n_bodies: int = number(0, low=0)
    """Number of bodies of unlabelled markers; 0 = estimated."""

    calibrate: bool = True
    """Whether bones and marker offsets are fitted together over all takes, see
    `marey.calibrate`; skeletons of sensors are not calibrated."""

    pose: str = choice("auto", *POSE_SOLVERS)
    """Pose method, see `marey.solve_pose`; "auto": playback for sensors, else
    gauss_newton."""

    contacts: bool = False
    """Whether planted feet are held in place, see `marey.solve_pose`."""

    root: str = ""
    """Root body of its tree; the most central body when empty."""

    tree: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, when the hierarchy is known."""

    clean: bool = True
    """Whether outliers of sensors and markers are masked, and swapped labels and slips
    are undone."""

    max_gap: float = number(0.0, low=0.0, infinite=True)
    """Longest gap of a marker that is filled in the takes of the solution, in seconds.
    Filled positions are never fitted to."""

    field: bool = False
    """Whether a distortion of the magnetic field is removed, if it is significant."""

    rigid_pair: tuple[str, str, float] | None = None
    """Two sensors on one stick and their true distance in metres, to set the scale."""

    edits: tuple[Edit, ...] = ()
    """Corrections by hand, in order, see `marey.edits.read_edits`."""


def performer_known(options: SolveOptions) -> bool:
    """Return whether markers or sensors on the given skeleton determine the bodies.

    Options must be those of `marey.pipeline.given_skeleton.prepare_skeleton`.
    """
    skeleton = options.skeleton
    if not isinstance(skeleton, Skeleton):
        return False
    return bool(skeleton.marker_labels or skeleton.sensor_names)


def session_numbers(options: SolveOptions) -> tuple[int, ...]:
    """Return the number of each take's session, in order of appearance."""
    order = list(dict.fromkeys(options.sessions))
    return tuple(order.index(session) for session in options.sessions)
