"""Options of `marey.solve`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from marey.edits import Edit
from marey.errors import OptionError
from marey.joints import REGISTRY as JOINT_METHODS
from marey.options import Options, choice, number
from marey.pose import REGISTRY as POSE_SOLVERS
from marey.segmentation import REGISTRY as SEGMENTATIONS
from marey.segmentation import TemplateSource
from marey.skeleton import Skeleton
from marey.topology.weights import WEIGHTS


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

    skeleton: Skeleton | None = None
    """Skeleton of a known performer, see `marey.read_skeleton`: its markers or sensors
    determine the bodies, its bones are kept, and only the motion is estimated."""

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

    time_offset: float | None = None
    """Seconds by which sensors show a motion later than markers do, where a take has
    both; None: estimated, and corrected if it is significant."""

    edits: tuple[Edit, ...] = ()
    """Corrections by hand, in order, see `marey.edits.read_edits`."""


def use_known_performer(options: SolveOptions) -> SolveOptions:
    """Return options by which segmentation finds the bodies of a known performer.

    Raises:
        OptionError: If the skeleton has neither markers nor sensors, or another root is
            asked for.
    """
    skeleton = options.skeleton
    if skeleton is None:
        return options
    if options.root:
        raise OptionError(
            "root",
            found="a performer that is known",
            needed="no other root: change the skeleton that was given",
        )
    if skeleton.marker_labels:
        return replace(options, segment="template", template=skeleton, tree={})
    if skeleton.sensor_names:
        return replace(options, tree=_sensor_parents(skeleton))
    raise OptionError(
        "skeleton",
        found="no markers and no sensors on it",
        needed="a performer with markers, as `marey solve -o s01.skel.json` writes it",
    )


def _sensor_parents(skeleton: Skeleton) -> dict[str, str]:
    """Return the parent of each sensor: the next sensor towards the root."""
    sensor_of = dict(
        zip(skeleton.sensor_joint.tolist(), skeleton.sensor_names, strict=True)
    )
    parents = {}
    for joint, name in sensor_of.items():
        ancestor = int(skeleton.parent[joint])
        while ancestor >= 0 and ancestor not in sensor_of:
            ancestor = int(skeleton.parent[ancestor])
        if ancestor >= 0:
            parents[name] = sensor_of[ancestor]
    return parents
