"""How to solve."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from marey.segment import Map


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve."""

    joints: str = "ball"
    """Joint method, see `marey.fit_joints`."""

    weight: str = "auto"
    """What a joint costs the tree, see `marey.infer_tree`."""

    subject: str = ""
    """Who is recorded: of takes with markers of several subjects only this one's are
    used; else it is the name that the answer gets."""

    segment: str = "auto"
    """How bodies are found, see `marey.segment`."""

    template: Map | None = None
    """Marker map, see `marey.segment`."""

    n_bodies: int = 0
    """How many bodies unlabelled markers are to make; 0 = found."""

    pose: str = "auto"
    """Pose method, see `marey.solve_pose`; "auto": playback for sensors, else
    gauss_newton."""

    root: str = ""
    """Body to hang the tree from; the most central one when empty."""

    tree: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, when the hierarchy is known."""

    clean: bool = True
    """Whether sensors in error are blanked and slips taken back."""

    field: bool = False
    """Whether to take out a distortion of the magnetic field, if one shows."""

    rigid_pair: tuple[str, str, float] | None = None
    """Two sensors on one stick and their true distance in metres, to set the scale."""
