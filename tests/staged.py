"""Scenes to write: two people and a stick in two takes, with truth for an answer."""

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from required import REQUIRED

import marey
from marey.joints import JointFits

NO_POINTS = np.zeros((0, 3))
INTEROP = Path(__file__).parent.parent / "interop"
NODE = shutil.which("node", path=Path(sys.executable).parent) or shutil.which("node")

needs_node = pytest.mark.skipif(
    not REQUIRED and (NODE is None or not (INTEROP / "node_modules").is_dir()),
    reason="needs node and interop/node_modules: make interop/node_modules",
)


def run_node(script, *arguments):
    """What a script of interop/ prints."""
    command = [NODE, INTEROP / script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@cache
def walk():
    """A person who walks for nine frames."""
    return marey.synth.human(seed=0).perform("walk", seconds=0.3, rate=30.0)


@cache
def handover():
    """The solution of two takes, as truth has it; markers have gaps in the second."""
    take = marey.synth.scene("handover", seconds=4.0, rate=25.0, markers="sparse41")
    truth = take.truth.motions
    takes, motions = [], []
    for name, start, stop in (("give", 40, 46), ("take", 60, 64)):
        part = take.cut(start, stop)
        points = part.points.copy()
        if name == "take":
            points[1:3, 0] = np.nan
        source = marey.Source(path=f"/data/{name}.c3d")
        takes.append(replace(part, points=points, source=source))
        motions.append([motion.cut(start, stop) for motion in truth])
    subjects = [
        marey.Subject(name, each[0].skeleton, tuple(each))
        for name, each in zip(
            ("A", "B", "PROP"), zip(*motions, strict=True), strict=True
        )
    ]
    return marey.Solution(
        takes=tuple(takes),
        bodies=(),
        joints=JointFits(
            **dict.fromkeys(("center_a", "center_b", "axis_a", "axis_b"), NO_POINTS),
            **dict.fromkeys(("residual", "noise", "distance", "mediated"), np.zeros(0)),
            pair=np.zeros((0, 2), dtype=int),
            spread=np.zeros((0, 6)),
            covariance=np.zeros((0, 6, 6)),
            kind=(),
        ),
        tree=marey.Tree(
            parent=np.zeros(0, dtype=int),
            edge=np.zeros(0, dtype=int),
            margin=np.zeros(0),
        ),
        subjects=tuple(subjects),
    )


def motions_of(solution, take):
    """The motions of all subjects in one take, by name."""
    return {subject.name: subject.motions[take] for subject in solution.subjects}
