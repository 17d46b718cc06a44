"""How to solve."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from marey.edits import Edit
from marey.segmentation import Map
from marey.skeleton import Skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve."""

    joints: str = "ball"
    """Joint method, see `marey.fit_joints`."""

    weight: str = "auto"
    """What a joint costs the tree, see `marey.infer_tree`."""

    subject: str = ""
    """Who is recorded: of takes with markers of several subjects only this one's are
    used, and this one must be among them; else it is the name that the answer gets."""

    segment: str = "auto"
    """How bodies are found, see `marey.segment`."""

    template: Map | None = None
    """Marker map, see `marey.segment`."""

    skeleton: Skeleton | None = None
    """A known performer, see `marey.read_skeleton`: its markers or sensors say which
    bodies there are, its bones are kept, and only the motion is found."""

    n_bodies: int = 0
    """How many bodies unlabelled markers are to make; 0 = found."""

    calibrate: bool = True
    """Whether bones and places of markers are fitted together over all takes, see
    `marey.calibrate`; sensors stay as their joints have them."""

    pose: str = "auto"
    """Pose method, see `marey.solve_pose`; "auto": playback for sensors, else
    gauss_newton."""

    contacts: bool = False
    """Whether feet are held where they are planted, see `marey.solve_pose`."""

    root: str = ""
    """Body to hang the tree from; the most central one when empty."""

    tree: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, when the hierarchy is known."""

    clean: bool = True
    """Whether errors of sensors and markers are blanked, swapped labels traded back and
    slips taken back."""

    max_gap: float = 0.0
    """Longest gap of a marker that is filled in the takes of the solution, in seconds;
    what is filled is never fitted to."""

    field: bool = False
    """Whether to take out a distortion of the magnetic field, if one shows."""

    rigid_pair: tuple[str, str, float] | None = None
    """Two sensors on one stick and their true distance in metres, to set the scale."""

    edits: tuple[Edit, ...] = ()
    """What was put right by hand, in order, see `marey.edits.read_edits`."""
