"""The whole way from recordings to skeletons and their motion."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from os import PathLike

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.io import read
from marey.joints import JointFits, fit_joints
from marey.joints import findings as joint_findings
from marey.pose import solve_pose
from marey.report import Finding, Report, Table
from marey.rig import build_skeletons
from marey.segment import segment
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Take
from marey.topology import infer_tree, named_tree
from marey.tree import Tree

Recorded = str | PathLike[str] | Take

UNSURE = 0.3
"""Margin (log ratio) below which a joint of the tree may well be another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve."""

    joints: str = "ball"
    """Joint method, see `marey.fit_joints`."""

    weight: str = "auto"
    """What a joint costs the tree, see `marey.infer_tree`."""

    pose: str = "playback"
    """Pose method, see `marey.solve_pose`."""

    root: str = ""
    """Body to hang the tree from; the most central one when empty."""

    tree: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, when the hierarchy is known."""


def solve(
    recordings: Recorded | Sequence[Recorded],
    *,
    options: SolveOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Return the skeletons and motions of one recording, or of several of one subject.

    Args:
        recordings: Files or takes. Several share one skeleton: their sums are one fit.
        options: How to solve.
        progress: Called with the name of each stage as it begins.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        FormatError: If a file cannot be read.
    """
    chosen = options or SolveOptions()
    clock = _Clock(progress)
    with clock.stage("read"):
        takes = _takes(recordings)
    with clock.stage("segment"):
        bodies = tuple(segment(take) for take in takes)
    with clock.stage("joints"):
        joints = fit_joints(bodies, method=chosen.joints)
    with clock.stage("tree"):
        tree = _tree(joints, bodies[0], chosen)
    with clock.stage("skeleton"):
        skeletons = build_skeletons(bodies[0], joints, tree)
    with clock.stage("pose"):
        subjects = tuple(_subject(s, takes, chosen.pose) for s in skeletons)
    return Solution(
        takes=takes,
        bodies=bodies,
        joints=joints,
        tree=tree,
        subjects=subjects,
        report=Report(
            findings=(
                *_read_findings(takes),
                *joint_findings(bodies[0], joints),
                *_tree_findings(tree, bodies[0]),
            ),
            tables={"joints": _joint_table(joints, tree, bodies[0])},
            seconds=clock.seconds,
        ),
        options=asdict(chosen),
    )


class _Clock:
    """Seconds per stage, and word of each as it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self._progress is not None:
            self._progress(name)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def _takes(recordings: Recorded | Sequence[Recorded]) -> tuple[Take, ...]:
    alone = isinstance(recordings, str | PathLike | Take)
    several = (recordings,) if alone else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    return tuple(r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]


def _tree(joints: JointFits, bodies: Bodies, options: SolveOptions) -> Tree:
    if options.tree:
        return named_tree(options.tree, bodies.names, joints)
    root = None
    if options.root:
        if options.root not in bodies.names:
            raise DataError(
                "root", found=options.root, needed=f"one of {', '.join(bodies.names)}"
            )
        root = bodies.names.index(options.root)
    return infer_tree(joints, weight=options.weight, root=root)


def _subject(skeleton: Skeleton, takes: tuple[Take, ...], method: str) -> Subject:
    motions = tuple(solve_pose(skeleton, take, method=method) for take in takes)
    return Subject(skeleton.names[0], skeleton, motions)


def _read_findings(takes: tuple[Take, ...]) -> tuple[Finding, ...]:
    return tuple(finding for take in takes for finding in take.source.findings)


def _tree_findings(tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    for body in np.flatnonzero(tree.margin < UNSURE):
        yield Finding(
            "tree-unsure",
            "tree",
            "warning",
            f"hangs from {bodies.names[tree.parent[body]]}, but another body fits "
            "almost as well: look at it, or give the tree",
            subject=bodies.names[body],
            value=float(tree.margin[body]),
        )


def _joint_table(joints: JointFits, tree: Tree, bodies: Bodies) -> Table:
    rows = []
    for body in np.flatnonzero(tree.edge >= 0):
        edge = int(tree.edge[body])
        spread = np.sqrt(np.trace(joints.covariance[edge, :3, :3]))
        rows.append(
            (
                bodies.names[body],
                bodies.names[tree.parent[body]],
                joints.kind[edge],
                float(1e3 * joints.residual[edge]),
                float(1e3 * spread),
                float(tree.margin[body]),
            )
        )
    columns = ("joint", "parent", "kind", "residual mm", "centre ± mm", "margin")
    return Table(columns, tuple(rows))
