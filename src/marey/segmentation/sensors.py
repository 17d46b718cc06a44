"""6-DoF sensors as rigid bodies."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from marey.bodies import Bodies
from marey.report import Finding
from marey.segmentation.labels.spelling import spelled
from marey.segmentation.template import contracted
from marey.take import Take

ENOUGH = 0.8
"""Share of a program's segments, and of the take's sensors, that must agree."""


def bodies_of_sensors(take: Take) -> Bodies:
    """Return every 6-DoF sensor of a take as a body; markers belong to none.

    Segments that a known program named (Xsens MVN, Theia3D, ART-Human) bring its tree
    along: motion cannot tell how legs hang together that never moved.
    """
    n_bodies, n_markers = len(take.sensor_names), len(take.labels)
    program, parents = known_tree(take.sensor_names)
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
        findings=(_recognition(program, len(parents)),) if program else (),
    )


def known_tree(names: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """Return the program whose segments these are and the parent of each, by name.

    An empty name and no parents where no program's names fit.
    """
    mine = {spelled(name): name for name in names}
    for program, parents in _trees().items():
        here = {segment: mine[segment] for segment in parents if segment in mine}
        if len(here) < ENOUGH * max(len(parents), len(names)):
            continue
        above = {child: parent for child, parent in parents.items() if parent}
        tree = contracted(above, list(here))
        return program, {here[child]: here[parent] for child, parent in tree.items()}
    return "", {}


@cache
def _trees() -> Mapping[str, Mapping[str, str]]:
    """Return the parent of every segment of the known programs, in common spelling."""
    text = (files("marey.segmentation") / "sensor_trees.toml").read_text(
        encoding="utf-8"
    )
    return {
        program: {spelled(child): spelled(parent) for child, parent in tree.items()}
        for program, tree in tomllib.loads(text).items()
    }


def _recognition(program: str, n_joints: int) -> Finding:
    return Finding(
        "segments-recognised",
        "segment",
        "info",
        f"segments are named as by {program}, whose tree of {n_joints} joints is used",
        subject=program,
    )
