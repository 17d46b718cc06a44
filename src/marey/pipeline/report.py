"""The report of a solve: findings, and tables of joints and motions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from marey.anatomy import names as vrm
from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.joints import JointFits, joint_name_and_exercise
from marey.joints.ball.pair_frames import correlation_length
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages_bodies import BodyFit
from marey.pose.measure import measure_motion, sensor_deviations
from marey.report import Finding, Report, Severity, Table, mark_name
from marey.rig.ground import GroundEstimate, estimate_ground, find_other_up_axis
from marey.solution import Solution, Subject
from marey.take import Take
from marey.topology import DOUBTFUL_EDGE_COST, edge_costs
from marey.topology.spanning_forest import DOUBTFUL_MARGIN
from marey.tree import Loop, Tree

MIN_SIDE_AGREEMENT = 0.3
"""Agreement of the cues on left and right (`Naming.side_confidence`, 0 to 1) below
which the side is doubtful. Higher warns more often. Chosen by hand."""

NEXT_OUTWARD = dict(pairwise(vrm.ARM[1:])) | dict(pairwise(vrm.LEG[:3]))
"""The next part outward along a person's limbs."""


def assemble_solution(
    fit: BodyFit,
    subjects: tuple[Subject, ...],
    pose_findings: tuple[Finding, ...],
    options: SolveOptions,
    seconds: Mapping[str, float],
) -> Solution:
    """Return the solution with its findings, in the order of the stages."""
    findings = (
        *(finding for take in fit.takes for finding in take.source.findings),
        *fit_findings(fit),
        *pose_findings,
    )
    return Solution(
        takes=fit.takes,
        bodies=fit.bodies,
        joints=fit.joints,
        tree=fit.tree,
        subjects=subjects,
        report=Report(findings=findings, seconds=seconds),
        options=asdict(options),
    )


def add_tables(solution: Solution, joint_used: Bool[np.ndarray, " pair"]) -> Solution:
    """Return the solution with the tables of its joints and motions in the report.

    Args:
        solution: The solution.
        joint_used: Whether a skeleton depends on the joint fit of each pair.
    """
    bodies = solution.bodies[0]
    joints = joint_table(solution.joints, solution.tree, bodies, joint_used)
    poses = pose_table(solution.subjects, solution.takes)
    tables = {"joints": joints, "pose": poses}
    if any(subject.skeleton.marker_labels for subject in solution.subjects):
        sensors = sensor_table(solution.subjects, solution.takes)
        tables |= {"sensors": sensors} if sensors.rows else {}
    report = replace(solution.report, tables=tables)
    return replace(solution, report=report)


# --- findings -------------------------------------------------------------------------


def fit_findings(fit: BodyFit) -> Iterator[Finding]:
    """Return the findings about bodies, names, ground, joints and tree.

    Of the joints of all pairs only those matter that the tree uses or could use.
    """
    bodies = fit.bodies[0]
    yield from dict.fromkeys(f for one in fit.bodies for f in one.findings)
    yield from map(naming_finding, fit.namings)
    if fit.namings:
        yield from part_findings(fit.tree, bodies)
    yield from ground_findings(fit.takes)
    irrelevant = _irrelevant_pairs(fit)
    yield from (f for f in fit.joint_findings if f.subject not in irrelevant)
    if not fit.candidates.tree_known:
        yield from tree_findings(fit.joints, fit.tree, bodies)
    yield from loop_findings(fit.joints, fit.tree, fit.bodies)


def _irrelevant_pairs(fit: BodyFit) -> set[str]:
    """Return the pairs ("a-b") that are no joint of the tree and no loop.

    A body without parent and children may lack any joint: all its pairs matter.
    """
    tree, pair = fit.tree, fit.joints.pair
    is_used = np.zeros(len(pair), dtype=bool)
    is_used[tree.edge[tree.edge >= 0]] = True
    is_used[[loop.pair for loop in tree.loops]] = True
    is_single = (tree.parent < 0) & ~np.isin(np.arange(len(tree.parent)), tree.parent)
    names = fit.bodies[0].names
    unused = pair[~(is_used | is_single[pair].any(axis=1))]
    return {f"{names[a]}-{names[b]}" for a, b in unused.tolist()}


def naming_finding(naming: Naming) -> Finding:
    """Return the finding about an anatomy after which bodies were named."""
    is_unsure = naming.side_confidence < MIN_SIDE_AGREEMENT
    axis = "xyz"[int(np.abs(naming.up).argmax())]
    sign = "-" if naming.up.sum() < 0 else ""
    lies = "" if naming.up[2] > 0 else f" lying along {sign}{axis}: check the up axis"
    doubt = "; which side is left is not certain" if is_unsure else ""
    severity: Severity = "warning" if is_unsure or lies else "info"
    message = f"recognised as a {naming.kind}{lies}; its bodies are named so{doubt}"
    value = naming.side_confidence
    return Finding("named-by-looks", "skeleton", severity, message, value=value)


def part_findings(tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the limbs that end early: the next part never moved or has no markers.

    Args:
        tree: Tree of the bodies, a person's rooted at the hips.
        bodies: Bodies named by anatomy.
    """
    leaves = np.setdiff1d(np.flatnonzero(tree.parent >= 0), tree.parent)
    for last in sorted(bodies.names[body] for body in leaves):
        bare = vrm.without_subject(last)
        part = vrm.side_of(bare) + NEXT_OUTWARD.get(vrm.without_side(bare), "")
        joint = joint_name_and_exercise(bare, part)
        if joint is not None:
            message = (
                f"the limb ends here: {part} has no markers, or the {joint[0]} never "
                f"moved; {joint[1]} to get the joint"
            )
            yield Finding("part-missing", "skeleton", "info", message, last)


def ground_findings(takes: Sequence[Take]) -> Iterator[Finding]:
    """Return the height of the ground in each take, and whether it is doubtful."""
    for number, take in enumerate(takes, start=1):
        subject = f"take {number}" if len(takes) > 1 else ""
        ground = estimate_ground(take)
        if ground is None:
            message = (
                "no low point ever holds still: the ground is unknown and z = 0 is "
                f"assumed{_up_doubt(take, doubtful=True)}"
            )
            yield Finding("ground-unknown", "skeleton", "info", message, subject)
            continue
        doubts = _ground_doubts(ground)
        up, height = _up_doubt(take, doubtful=bool(doubts)), ground.height
        severity: Severity = "warning" if doubts else "info"
        where = f"z = {1e3 * height:.0f} mm{doubts}{up}"
        message = f"the lowest points that hold still are at {where}"
        yield Finding("ground", "skeleton", severity, message, subject, value=height)


def _ground_doubts(ground: GroundEstimate) -> str:
    doubts = ""
    if ground.is_far_from_zero:
        doubts += ": the ground is not at z = 0, or another axis is up"
    if ground.is_uneven:
        spread = 1e3 * ground.spread
        doubts += f"; they differ by {spread:.0f} mm: not all stand on one floor"
    return doubts


def _up_doubt(take: Take, *, doubtful: bool) -> str:
    """Return that the up axis is not certain, and which other one fits, if any."""
    how = take.source.up.how
    if how in ("stated", "given"):
        return ""
    other = find_other_up_axis(take) if doubtful else ""
    better = f", and {other} fits: read it with up={other}" if other else ""
    return f"; that z is up is {how}{better}"


def tree_findings(joints: JointFits, tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the joints of the tree that may be wrong."""

    def finding(code: str, body: int, message: str, value: float) -> Finding:
        parent = mark_name(bodies.names[tree.parent[body]])
        text = message.format(parent=parent)
        name = bodies.names[body]
        return Finding(code, "tree", "warning", text, subject=name, value=value)

    for body in np.flatnonzero(tree.margin < DOUBTFUL_MARGIN).tolist():
        message = (
            "its parent is {parent}, but another body fits almost as well: check it, "
            "or give the tree"
        )
        yield finding("tree-unsure", body, message, float(tree.margin[body]))
    if not np.isfinite(joints.looseness).any():
        return
    cost = edge_costs(joints)
    for body in np.flatnonzero(tree.edge >= 0).tolist():
        edge_cost = float(cost[tree.edge[body]])
        if edge_cost > DOUBTFUL_EDGE_COST:
            message = (
                "its joint to {parent} is loose, far above the noise of its markers: a "
                "body between the two may have no markers"
            )
            yield finding("tree-loose", body, message, edge_cost)


def loop_findings(
    joints: JointFits, tree: Tree, takes: Sequence[Bodies]
) -> Iterator[Finding]:
    """Return the joints that close loops, which the tree leaves out."""
    for loop in tree.loops:
        a, b = (takes[0].names[body] for body in joints.pair[loop.pair])
        centers = joints.center_a[loop.pair], joints.center_b[loop.pair]
        if loop.center_a is not None and loop.center_b is not None:
            centers = np.array(loop.center_a), np.array(loop.center_b)
        where = " and ".join(
            f"{1e3 * np.linalg.norm(center):.0f} mm from {mark_name(name)} at "
            f"({', '.join(f'{1e3 * v:.0f}' for v in center)})"
            for name, center in zip((a, b), centers, strict=True)
        )
        residual = float(joints.residual[loop.pair])
        message = (
            f"closes a loop that the tree leaves open: a joint {where}, with a gap of "
            f"{1e3 * residual:.1f} mm"
        )
        period = _loop_period(loop, several_takes=len(takes) > 1)
        if period:
            message = f"linked {period} only: a {loop.kind or 'joint'} link {where}"
        subject = f"{a}-{b}"
        yield Finding("loop", "tree", "info", message, subject=subject, value=residual)


def _loop_period(loop: Loop, *, several_takes: bool) -> str:
    """Return the time for which a loop is closed; "" if it always is."""
    begins, ends = np.isfinite(loop.first), np.isfinite(loop.last)
    take = f"take {loop.take + 1}" if several_takes and loop.take >= 0 else ""
    if not (begins or ends):
        return take and f"in {take}"
    first = f"{loop.first:.2f}" if begins else "the start"
    last = f"{loop.last:.2f} s" if ends else "the end"
    return f"from {first} to {last}{take and f' of {take}'}"


# --- tables ---------------------------------------------------------------------------


def joint_table(
    joints: JointFits, tree: Tree, bodies: Bodies, joint_used: Bool[np.ndarray, " pair"]
) -> Table:
    """Return the joint fits of the tree: kind, residual, sd of the centre and margin.

    The last column says whether the skeleton depends on the fit; joints may also come
    from landmarks or from a skeleton that is known.
    """
    rows = []
    for body in np.flatnonzero(tree.edge >= 0).tolist():
        edge = int(tree.edge[body])
        names = bodies.names[body], bodies.names[tree.parent[body]]
        residual = 1e3 * float(joints.residual[edge])
        center_sd = 1e3 * float(np.sqrt(np.trace(joints.covariance[edge, :3, :3])))
        margin = float(tree.margin[body])
        used = "yes" if joint_used[edge] else "no"
        rows.append((*names, joints.kind[edge], residual, center_sd, margin, used))
    numbers = ("residual mm", "centre ± mm", "margin")
    return Table(("joint", "parent", "kind", *numbers, "used"), tuple(rows))


def pose_table(subjects: Sequence[Subject], takes: Sequence[Take]) -> Table:
    """Return the marker residuals of every motion, and its contacts with the ground."""
    rows = []
    for subject in subjects:
        for number, (motion, take) in enumerate(
            zip(subject.motions, takes, strict=True), start=1
        ):
            found = measure_motion(motion, take)
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


def sensor_table(subjects: Sequence[Subject], takes: Sequence[Take]) -> Table:
    """Return the body of each sensor, its residuals, and the sd of its offset on it.

    The offset is a mean over the take: its standard deviation is that of the residuals
    over the square root of the number of independent ones.
    """
    rows: list[tuple[str | float, ...]] = []
    for subject in subjects:
        for number, (motion, take) in enumerate(
            zip(subject.motions, takes, strict=True), start=1
        ):
            skeleton = motion.skeleton
            for name, vectors in sensor_deviations(motion, take).items():
                joint = int(skeleton.sensor_joint[skeleton.sensor_names.index(name)])
                markers = int((skeleton.marker_joint == joint).sum())
                off, sd = zip(*map(_spread_and_mean_sd, vectors), strict=True)
                numbers = (1e3 * off[0], 1e3 * sd[0], *np.degrees((off[1], sd[1])))
                row = (name, number, skeleton.names[joint], markers, *numbers)
                rows.append(row)
    columns = ("sensor", "take", "body", "markers on it", "off mm", "offset ± mm")
    return Table((*columns, "off deg", "offset ± deg"), tuple(rows))


def _spread_and_mean_sd(vectors: Float[np.ndarray, "frame 3"]) -> tuple[float, float]:
    """Return the rms length of residual vectors, and the sd of their mean."""
    if not len(vectors):
        return float("nan"), float("nan")
    rms = float(np.sqrt(np.mean(np.sum(vectors**2, axis=-1))))
    return rms, rms * float(np.sqrt(correlation_length(vectors) / len(vectors)))
