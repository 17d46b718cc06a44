"""6-DoF sensors as rigid bodies."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from marey.bodies import Bodies
from marey.report import Finding
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.marker_sets import MIN_MATCHED_FRACTION
from marey.segmentation.labels.spelling import normalise_label
from marey.segmentation.template import contract_tree
from marey.take import Take


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return whether all takes have sensors."""
    return Suitability(all(take.sensor_names for take in task.takes))


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return every 6-DoF sensor of each take as a body; markers belong to none.

    The bodies have the hierarchy that the file states (BVH, AMC, HTR, bones of Motive).
    Otherwise, if the names of the sensors are those of a known program (Xsens MVN,
    Theia3D, ART-Human, Rokoko), they have its tree: motion cannot determine the parents
    of legs that never moved.
    """
    return tuple(bodies_of_sensors(take) for take in task.takes)


def bodies_of_sensors(take: Take) -> Bodies:
    """Return every 6-DoF sensor of a take as a body."""
    n_bodies, n_markers = len(take.sensor_names), len(take.labels)
    parents = known_parents(take)
    return Bodies(
        take=take,
        names=take.sensor_names,
        T_world_body=take.T_world_sensor,
        determined=np.ones(n_bodies, dtype=bool),
        marker_body=np.full(n_markers, -1, dtype=np.int64),
        shared=np.zeros((n_markers, n_bodies), dtype=bool),
        marker_confidence=np.zeros(n_markers),
        body_confidence=np.ones(n_bodies),
        marker_offset=np.full((n_markers, 3), np.nan),
        rms=np.full(n_bodies, np.nan),
        parents=parents,
        findings=(_tree_finding(take, len(parents)),) if parents else (),
    )


def known_parents(take: Take) -> Mapping[str, str]:
    """Return the parent of each sensor by the file, or else by a known program."""
    return _stated_parents(take) or recognise_program(take.sensor_names)[1]


def _stated_parents(take: Take) -> Mapping[str, str]:
    """Return the parent of each sensor in the hierarchy that the file states."""
    return contract_tree(take.source.parents, take.sensor_names)


def recognise_program(names: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """Return the program that named the segments, and the parent of each segment.

    An empty name and no parents if the names are of no known program. Names that begin
    with a subject ("Human1:PELV") are read without it, each subject's on their own.
    """
    subjects = dict.fromkeys(name.rpartition(":")[0] for name in names)
    found = [_program_of_subject(names, subject) for subject in subjects]
    programs = dict.fromkeys(program for program, _ in found if program)
    parents = {child: parent for _, tree in found for child, parent in tree.items()}
    return " and ".join(programs), parents


def _program_of_subject(
    names: tuple[str, ...], subject: str
) -> tuple[str, Mapping[str, str]]:
    """Return the program and the parents of the segments of one subject."""
    split = {name: name.rpartition(":") for name in names}
    own = {name: bare for name, (who, _, bare) in split.items() if who == subject}
    name_of = {normalise_label(bare): name for name, bare in own.items()}
    for program, parents in sensor_trees().items():
        present = [segment for segment in parents if segment in name_of]
        if len(present) < MIN_MATCHED_FRACTION * max(len(parents), len(own)):
            continue
        known = {child: parent for child, parent in parents.items() if parent}
        tree = contract_tree(known, present)
        return program, {name_of[child]: name_of[p] for child, p in tree.items()}
    return "", {}


@cache
def sensor_trees() -> Mapping[str, Mapping[str, str]]:
    """Return the parent of every segment by program, names normalised; "" = root."""
    file = files("marey.segmentation") / "sensor_trees.toml"
    programs = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        program: {
            normalise_label(child): normalise_label(parent)
            for child, parent in tree.items()
        }
        for program, tree in programs.items()
    }


def _tree_finding(take: Take, n_joints: int) -> Finding:
    if _stated_parents(take):
        message = (
            f"the file states the hierarchy: its tree of {n_joints} joints is used"
        )
        return Finding("hierarchy-stated", "segment", "info", message)
    program, _ = recognise_program(take.sensor_names)
    return Finding(
        "segments-recognised",
        "segment",
        "info",
        f"the segments are those of {program}; its tree of {n_joints} joints is used, "
        "and standard deviations are of its model, not of the person",
        subject=program,
    )
