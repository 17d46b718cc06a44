"""Options of `marey.solve`."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from os import PathLike

from marey.edits import Edit
from marey.joints import REGISTRY as JOINT_METHODS
from marey.motion import Motion
from marey.options import Options, choice, number
from marey.pipeline.posing.holds import HoldSource, read_holds
from marey.pipeline.posing.limits import LimitSource, read_limits
from marey.pipeline.posing.settings import (
    check_ground,
    check_pose_options,
    read_reference,
)
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
    """The session of each take, any number or word: markers are attached again in each
    session. When empty, takes whose markers sit in the same places are one session."""

    n_bodies: int = number(0, low=0)
    """Number of bodies of unlabelled markers; 0 = estimated."""

    calibrate: bool = True
    """Whether bones and marker offsets are fitted together over all takes, see
    `marey.calibrate`; skeletons of sensors are not calibrated."""

    pose: str = choice("auto", *POSE_SOLVERS)
    """Pose method, see `marey.solve_pose`; "auto": playback for sensors, else
    gauss_newton, unless another option needs a method that can take it."""

    contacts: bool = False
    """Whether planted feet are held in place, see `marey.solve_pose`."""

    limits: LimitSource = "safe"
    """Limits of the joints of people: "safe" keeps knees and elbows from bending more
    than 10° past straight, and knees from twisting by more than 40°; "human" has the
    published ranges of all joints, 20° wider (`marey.anatomy.limits`); "none". A TOML
    file or a mapping has limits by hand, in degrees, for any figure: the rows
    `LowerLeg = {swing_x = [-5, 150]}` and so on, see
    `marey.anatomy.limits.parse_ranges`. Limits of a given skeleton come first."""

    hold: HoldSource = "none"
    """Points that are held for a while: "none"; "auto": hands and feet that stay on a
    rail, a hip or a prop (`marey.pose.contact.holds.find_holds`); a TOML file with rows
    [[hold]], or a list of `Hold`. Holds need physics, which `pose="auto"` then is."""

    ground: str | float = "auto"
    """The ground below planted feet: "auto": estimated; "none"; or its height in
    metres, level, which physics then pushes soles up to."""

    friction: float | None = number(None, low=0.0, infinite=True)
    """Coefficient of friction of planted soles, for physics, which `pose="auto"` then
    is; infinite keeps them at their anchors. Between 0 and infinity it takes a
    simulation by MuJoCo."""

    reference: Motion | str | PathLike[str] | None = None
    """A similar motion, or its file: its rotations decide what the recording leaves
    open, see `marey.solve_pose`."""

    outlier: float | None = number(None, low=0.0)
    """Residual beyond which a marker loses its weight, or the spring of physics is
    switched off, in standard deviations of a marker, 2 mm; 0 for never. Left out, it is
    that of the pose method."""

    whole: bool = True
    """Whether people get the joints that the recording does not observe: spine, neck,
    clavicles, hands and toes. They are placed by anatomy and do not move by themselves;
    `Skeleton.observed` is False for them."""

    root: str = ""
    """Root body of its tree; the most central body when empty."""

    tree: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, when the hierarchy is known."""

    clean: bool = True
    """Whether outliers of sensors and markers are masked, and swapped labels and slips
    are undone."""

    min_confidence: float = number(0.0, low=0.0, high=1.0)
    """Smallest confidence of a keypoint, 0 to 1; less sure positions are gaps. The
    confidence of the others is the factor of their weight in calibration and pose."""

    max_gap: float = number(0.0, low=0.0, infinite=True)
    """Longest gap of a marker that is filled in the takes of the solution, in seconds.
    Filled positions are never fitted to."""

    field: bool = False
    """Whether a distortion of the magnetic field is removed, if it is significant."""

    rigid_pair: tuple[str, str, float] | None = None
    """Two sensors on one stick and their true distance in metres, to set the scale."""

    time_offset: float | None = None
    """Seconds by which sensors show a motion later than markers do, where a take has
    both; None: estimated, and corrected if it is significant."""

    edits: tuple[Edit, ...] = ()
    """Corrections by hand, in order, see `marey.edits.read_edits`."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        Options.__post_init__(self)
        read_limits(self.limits)
        object.__setattr__(self, "hold", read_holds(self.hold))
        if self.reference is not None:
            object.__setattr__(self, "reference", read_reference(self.reference))
        check_ground(self.ground)
        check_pose_options(self)


def performer_known(options: SolveOptions) -> bool:
    """Return whether markers or sensors on the given skeleton determine the bodies.

    Options must be those of `marey.pipeline.stages.given_skeleton.prepare_skeleton`.
    """
    skeleton = options.skeleton
    if not isinstance(skeleton, Skeleton):
        return False
    return bool(skeleton.marker_labels or skeleton.sensor_names)


def session_numbers(options: SolveOptions) -> tuple[int, ...]:
    """Return the number of each take's session, in order of appearance."""
    order = list(dict.fromkeys(options.sessions))
    return tuple(order.index(session) for session in options.sessions)
