"""Options that had no effect in a solve: which, and why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marey.anatomy.names import is_person, without_subject
from marey.bodies import Bodies
from marey.numerics import Bool
from marey.pipeline.options import SolveOptions, performer_known
from marey.pipeline.posing.limits import LIMIT_WORDS
from marey.pipeline.posing.settings import choose_method
from marey.pipeline.stages.bodies import BodyFit
from marey.report import Finding


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OptionUse:
    """What was asked for, and what the stages made of it."""

    asked: SolveOptions
    """The options as the user gave them."""

    fit: BodyFit
    joint_used: Bool[np.ndarray, " pair"]
    """Whether a skeleton depends on the joint fit of each pair."""

    edited: bool = False
    """Whether there are edits by hand."""

    @property
    def bodies(self) -> Bodies:
        """The bodies of the first take."""
        return self.fit.bodies[0]

    @property
    def has_markers(self) -> bool:
        """Whether some bodies are made of markers rather than sensors."""
        return any(one.shared.any() for one in self.fit.bodies)

    @property
    def has_both(self) -> bool:
        """Whether a take has both markers and sensors."""
        return any(take.labels and take.sensor_names for take in self.fit.takes)

    @property
    def pose_method(self) -> str:
        """The method that estimated the poses."""
        return choose_method(self.asked, has_markers=self.has_markers)

    @property
    def knows_tree(self) -> bool:
        """Whether the hierarchy does not follow from the joint fits."""
        return self.fit.candidates.tree_known

    @property
    def knows_markers(self) -> bool:
        """Whether the skeleton of a known performer has markers."""
        return performer_known(self.asked) and self.has_markers


def _fills_no_gap(outcome: OptionUse) -> bool:
    takes = zip(outcome.fit.takes, outcome.fit.bodies, strict=True)
    return all(np.array_equal(take.filled, one.take.filled) for take, one in takes)


def _bends_no_field(outcome: OptionUse) -> bool:
    findings = (f for take in outcome.fit.takes for f in take.source.findings)
    return all(finding.code != "field-bent" for finding in findings)


def _has_person(outcome: OptionUse) -> bool:
    names = [without_subject(name) for name in outcome.bodies.names]
    return is_person(names)


UNUSED_OPTIONS: Sequence[tuple[str, Callable[[OptionUse], bool], str]] = (
    (
        "joints",
        lambda o: len(o.bodies.names) < 2,
        "there is one body only, and nothing to join",
    ),
    ("joints", lambda o: o.knows_markers, "the bones of the performer are known"),
    (
        "joints",
        lambda o: o.has_markers and o.knows_tree and not o.joint_used.any(),
        "the labels are landmarks, from which all joints are calibrated",
    ),
    (
        "weight",
        lambda o: o.knows_tree and not o.edited,
        "the hierarchy is known",
    ),
    (
        "segment",
        lambda o: o.knows_markers,
        "the markers of the known performer determine the bodies",
    ),
    (
        "template",
        lambda o: o.knows_markers,
        "the markers of the known performer determine the bodies",
    ),
    (
        "template",
        lambda o: o.asked.segment not in ("auto", "template"),
        "another segmentation was asked for",
    ),
    ("n_bodies", lambda o: not o.has_markers, "every sensor is a body"),
    (
        "n_bodies",
        lambda o: bool(o.bodies.parents) or o.bodies.keypoints,
        "labels or a marker map determine the bodies",
    ),
    (
        "tree",
        lambda o: performer_known(o.asked),
        "the skeleton of the known performer determines the hierarchy",
    ),
    (
        "calibrate",
        lambda o: o.bodies.keypoints or not o.has_markers,
        "joints of sensors and keypoints are never calibrated",
    ),
    (
        "limits",
        lambda o: o.asked.limits in LIMIT_WORDS and not _has_person(o),
        "they are limits of people, and no joints here have their names, such as "
        "LeftLowerLeg",
    ),
    (
        "ground",
        lambda o: not o.asked.contacts and o.pose_method != "physics",
        "feet are neither held (contacts) nor pushed up (pose=physics)",
    ),
    ("fit", lambda o: o.asked.skeleton is None, "no skeleton is given"),
    ("free_joints", lambda o: o.asked.skeleton is None, "no skeleton is given"),
    ("sessions", lambda o: len(o.fit.takes) < 2, "there is one take only"),
    (
        "min_confidence",
        lambda o: not any(np.isfinite(t.confidence).any() for t in o.fit.takes),
        "no position has a confidence",
    ),
    ("max_gap", _fills_no_gap, "no marker has a gap as short as this"),
    (
        "field",
        lambda o: not any(take.sensor_names for take in o.fit.takes),
        "there are no sensors",
    ),
    ("field", lambda o: o.has_markers, "the markers beside the sensors show no field"),
    ("time_offset", lambda o: not o.has_both, "no take has both markers and sensors"),
    ("field", _bends_no_field, "the field has no significant distortion"),
)
"""Option, condition under which it cannot change skeletons and motions, and the reason.
If several rows of an option apply, the first is reported."""


def unused_option_findings(outcome: OptionUse) -> Iterator[Finding]:
    """Return the options that the user set without effect, with the reason."""
    reported = set()
    for option, has_no_effect, reason in UNUSED_OPTIONS:
        value, default = (getattr(o, option) for o in (outcome.asked, SolveOptions()))
        is_set = value is not default and value != default
        if is_set and option not in reported and has_no_effect(outcome):
            reported.add(option)
            shown = (
                f"{option}={value}" if isinstance(value, str | int | float) else option
            )
            message = f"the option {shown} has no effect here: {reason}"
            yield Finding("option-unused", "solve", "info", message, subject=option)
