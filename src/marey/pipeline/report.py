"""What a solve says of its answer."""

from collections.abc import Iterator, Sequence

import numpy as np

from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.editing.plan import Step
from marey.edits import Edit
from marey.joints import JointFits, spoken
from marey.pose.measure import measured
from marey.report import Finding, Table, mark_name
from marey.rig.ground import Ground, ground_of, other_up
from marey.solution import Subject
from marey.take import Take
from marey.topology import STRANGE, edge_costs
from marey.tree import Loop, Tree

UNSURE = 0.3
"""Margin (log ratio) below which a joint of the tree may well be another."""

OUTWARD = {
    "UpperArm": "LowerArm",
    "LowerArm": "Hand",
    "UpperLeg": "LowerLeg",
    "LowerLeg": "Foot",
}
"""What comes next along a person's limbs."""


def naming_finding(naming: Naming) -> Finding:
    """Return what a figure looks like, and which doubts there are."""
    unsure = naming.sure < UNSURE
    axis = "xyz"[int(np.abs(naming.up).argmax())]
    sign = "-" if naming.up.sum() < 0 else ""
    lies = "" if naming.up[2] > 0 else f" lying along {sign}{axis}: check the up axis"
    doubt = "; which side is left is not certain" if unsure else ""
    return Finding(
        "named-by-looks",
        "skeleton",
        "warning" if unsure or lies else "info",
        f"looks like a {naming.kind}{lies}; its bodies are named so{doubt}",
        value=naming.sure,
    )


def part_findings(tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the limbs that end early: what is beyond never moved, or has no markers.

    Args:
        tree: How the bodies hang together, a person's from the hips.
        bodies: Named by their looks.
    """
    ends = np.setdiff1d(np.flatnonzero(tree.parent >= 0), tree.parent)
    for beside in sorted(bodies.names[body] for body in ends):
        bare = beside.rpartition(":")[2]
        side = next((side for side in ("Left", "Right") if bare.startswith(side)), "")
        part = side + OUTWARD.get(bare.removeprefix(side), "")
        joint = spoken(bare, part)
        if joint is not None:
            yield Finding(
                "part-missing",
                "skeleton",
                "info",
                f"nothing hangs from it: {part} has no markers, or the {joint[0]} "
                "never moved and the two were recorded as one; "
                f"{joint[1]} to get the joint",
                subject=beside,
            )


def ground_findings(takes: Sequence[Take]) -> Iterator[Finding]:
    """Return where the ground is in each take, and whether that is doubtful."""
    for number, take in enumerate(takes, start=1):
        subject = f"take {number}" if len(takes) > 1 else ""
        ground = ground_of(take)
        if ground is None:
            message = (
                "no low point ever holds still: where the ground is cannot be told, "
                f"and z = 0 is taken for it{_up_doubt(take, doubtful=True)}"
            )
            yield Finding("ground-unknown", "skeleton", "info", message, subject)
            continue
        doubts = _ground_doubts(ground)
        up = _up_doubt(take, doubtful=bool(doubts))
        yield Finding(
            "ground",
            "skeleton",
            "warning" if doubts else "info",
            "the lowest points that hold still are at "
            f"z = {1e3 * ground.height:.0f} mm{doubts}{up}",
            subject,
            value=ground.height,
        )


def _up_doubt(take: Take, *, doubtful: bool) -> str:
    """Return that the up axis is not certain, and which other one fits, if any."""
    how = take.source.up.how
    if how in ("stated", "given"):
        return ""
    other = other_up(take) if doubtful else ""
    better = f", and {other} fits: read it with up={other}" if other else ""
    return f"; that z is up is {how}{better}"


def ground_by_hand(findings: Sequence[Finding], edit: Edit) -> tuple[Finding, ...]:
    """Return what was found with the user's word on the ground instead of a guess."""
    rest = (f for f in findings if f.code not in ("ground", "ground-unknown"))
    size = float(np.linalg.norm(edit.normal))
    slope = np.degrees(np.arccos(np.clip(edit.normal[2] / size, -1.0, 1.0)))
    height = edit.height / size
    told = Finding(
        "ground",
        "edit",
        "info",
        f"the ground was set by hand, {1e3 * height:.0f} mm from the origin and "
        f"{slope:.1f}° off level",
        value=height,
    )
    return (*rest, told)


def early_findings(steps: Sequence[Step]) -> Iterator[Finding]:
    """Return what was placed before bodies or takes changed, which moves frames."""
    for step in steps:
        if step.edit.do in ("place-joint", "place-marker") and not step.firm:
            yield Finding(
                "placed-early",
                "edit",
                "warning",
                "was placed before bodies or frames were changed, by which its frame "
                "may have turned: look whether it is where it should be",
                subject=step.edit.joint or step.edit.marker,
            )


def _ground_doubts(ground: Ground) -> str:
    doubts = ""
    if ground.astray:
        doubts += ": the ground is not at z = 0, or another axis is up"
    if ground.uneven:
        apart = 1e3 * ground.spread
        doubts += f"; they differ by {apart:.0f} mm: not all stand on one floor"
    return doubts


def tree_findings(joints: JointFits, tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the joints of the tree that may well be others, or none."""
    for body in np.flatnonzero(tree.margin < UNSURE):
        yield Finding(
            "tree-unsure",
            "tree",
            "warning",
            f"hangs from {mark_name(bodies.names[tree.parent[body]])}, but another body "
            "fits almost as well: look at it, or give the tree",
            subject=bodies.names[body],
            value=float(tree.margin[body]),
        )
    if not np.isfinite(joints.looseness).any():
        return
    cost = edge_costs(joints)
    for body in np.flatnonzero(tree.edge >= 0):
        price = float(cost[tree.edge[body]])
        if price > STRANGE:
            yield Finding(
                "tree-loose",
                "tree",
                "warning",
                f"hangs loosely from {mark_name(bodies.names[tree.parent[body]])}: its "
                "markers stray far more than their noise; a body between the two may "
                "have no markers",
                subject=bodies.names[body],
                value=price,
            )


def loop_findings(
    joints: JointFits, tree: Tree, takes: Sequence[Bodies]
) -> Iterator[Finding]:
    """Return the joints that the tree leaves out, with their place."""
    for loop in tree.loops:
        a, b = (takes[0].names[body] for body in joints.pair[loop.pair])
        ends = joints.center_a[loop.pair], joints.center_b[loop.pair]
        if loop.center_a is not None and loop.center_b is not None:
            ends = np.array(loop.center_a), np.array(loop.center_b)
        where = " and ".join(
            f"{1e3 * np.linalg.norm(x):.0f} mm from {mark_name(name)} at "
            f"({', '.join(f'{1e3 * v:.0f}' for v in x)})"
            for name, x in zip((a, b), ends, strict=True)
        )
        gap = float(joints.residual[loop.pair])
        message = (
            f"closes a loop that the tree leaves open: a joint {where}, with a gap of "
            f"{1e3 * gap:.1f} mm"
        )
        when = _when(loop, several=len(takes) > 1)
        if when:
            message = f"linked {when} only: a {loop.kind or 'joint'} link {where}"
        yield Finding("loop", "tree", "info", message, subject=f"{a}-{b}", value=gap)


def _when(loop: Loop, *, several: bool) -> str:
    """Return the time for which a link lasts; nothing if it always does."""
    begun, ended = np.isfinite(loop.first), np.isfinite(loop.last)
    there = f"take {loop.take + 1}" if several and loop.take >= 0 else ""
    if not (begun or ended):
        return there and f"in {there}"
    first = f"{loop.first:.2f}" if begun else "the start"
    last = f"{loop.last:.2f} s" if ended else "the end"
    return f"from {first} to {last}{there and f' of {there}'}"


def joint_table(joints: JointFits, tree: Tree, bodies: Bodies) -> Table:
    """Return the joints of the tree: kinds, gaps, doubts and margins."""
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


def pose_table(subjects: Sequence[Subject], takes: Sequence[Take]) -> Table:
    """Return how well every motion meets its markers, and how it stands."""
    rows = []
    for subject in subjects:
        for number, (motion, take) in enumerate(
            zip(subject.motions, takes, strict=True), start=1
        ):
            found = measured(motion, take)
            row = (found.mean, found.worst, found.skate, found.depth)
            mean, worst, skate, depth = ("" if np.isnan(x) else 1e3 * x for x in row)
            rows.append((subject.name, number, mean, worst, found.plants, skate, depth))
    columns = (
        "subject",
        "take",
        "markers off mm, mean",
        "worst",
        "plants",
        "skate mm/s",
        "below the ground mm",
    )
    return Table(columns, tuple(rows))
