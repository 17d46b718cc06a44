"""The findings of a solve, in the order of its stages."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.naming import MIN_SIDE_CONFIDENCE, Naming
from marey.bodies import Bodies
from marey.cleaning import find_doubtful_unit
from marey.joints import JointFits
from marey.numerics import Bool, Float, Shaped
from marey.numerics.thresholds import SKIN_MOTION_M
from marey.pipeline.options import SolveOptions
from marey.pipeline.posing.settings import known_ground, record_options
from marey.pipeline.reporting.readiness import missing_part
from marey.pipeline.stages.bodies import BodyFit
from marey.pipeline.stages.several_takes import concatenate_takes
from marey.report import Finding, Report, Severity, mark_name
from marey.rig import has_default_name, names_by_looks
from marey.rig.ground import (
    MAX_HEIGHT_ERROR,
    GroundEstimate,
    estimate_ground,
    find_other_up_axis,
)
from marey.solution import Solution, Subject
from marey.take import Take
from marey.topology import DOUBTFUL_EDGE_COST, edge_costs
from marey.topology.spanning_forest import DOUBTFUL_MARGIN
from marey.tree import Loop, Tree, ancestors_of


def assemble_solution(
    fit: BodyFit,
    subjects: tuple[Subject, ...],
    pose_findings: tuple[Finding, ...],
    options: SolveOptions,
    seconds: Mapping[str, float],
    joint_decides: Bool[np.ndarray, " pair"],
) -> Solution:
    """Return the solution with its findings, in the order of the stages.

    Args:
        fit: Bodies, joints and tree.
        subjects: Skeletons and motions.
        pose_findings: Findings of calibration, poses and options.
        options: As they were resolved.
        seconds: Wall time per stage.
        joint_decides: Whether a skeleton has the joint of each pair as it was fitted.
    """
    findings = (
        *(finding for take in fit.takes for finding in take.source.findings),
        *fit_findings(fit, joint_decides),
        *pose_findings,
    )
    return Solution(
        takes=fit.takes,
        bodies=fit.bodies,
        joints=fit.joints,
        tree=fit.tree,
        subjects=subjects,
        report=Report(
            findings=_with_given_ground(findings, fit.takes, options), seconds=seconds
        ),
        options=record_options(options),
    )


# --- findings -------------------------------------------------------------------------


def fit_findings(
    fit: BodyFit, joint_decides: Bool[np.ndarray, " pair"]
) -> Iterator[Finding]:
    """Return the findings about bodies, names, ground, joints and tree.

    Joints of pairs are reported only if a skeleton has them as they were fitted;
    calibration reports on its joints itself.
    """
    bodies = fit.bodies[0]
    yield from dict.fromkeys(f for one in fit.bodies for f in one.findings)
    for naming in fit.namings:
        yield naming_finding(naming, _unnamed_bodies(naming, bodies, fit.tree))
    yield from _unit_findings(fit)
    if fit.namings:
        yield from part_findings(fit.tree, bodies)
    yield from contradicted_names(fit)
    has_feet = bool(fit.namings or recognise_joints(bodies.names))
    yield from ground_findings(fit.takes, has_feet=has_feet)
    yield from _relevant_joint_findings(fit, joint_decides)
    if not fit.candidates.tree_known:
        yield from tree_findings(fit.joints, fit.tree, bodies)
    yield from loop_findings(fit.joints, fit.tree, fit.bodies)


def _relevant_joint_findings(
    fit: BodyFit, joint_decides: Bool[np.ndarray, " pair"]
) -> Iterator[Finding]:
    """Yield the findings about the joints of skeletons, and of bodies that lack one.

    A body without parent and children may lack any joint: what keeps its pairs within
    its subject from being one matters. Which of them would be inaccurate does not. That
    a body has no joint matters only where it has none in the tree.
    """
    tree, pair = fit.tree, fit.joints.pair
    is_single = (tree.parent < 0) & ~np.isin(np.arange(len(tree.parent)), tree.parent)
    names, owners = fit.bodies[0].names, _owners(fit.bodies[0])
    a, b = owners[pair].T
    may_miss = is_single[pair].any(axis=1) & ((a == "") | (a == b))
    row_of = {f"{names[a]}-{names[b]}": row for row, (a, b) in enumerate(pair.tolist())}
    joined = {name for name, single in zip(names, is_single, strict=True) if not single}
    for finding in fit.joint_findings:
        if finding.code == "body-separate" and finding.subject in joined:
            continue
        row = row_of.get(finding.subject)
        accuracy = finding.code in ("joint-weak", "joint-free")
        if row is None or joint_decides[row] or (may_miss[row] and not accuracy):
            yield finding


def _owners(bodies: Bodies) -> Shaped[np.ndarray, " body"]:
    """Return the subject that the markers of each body are stated to belong to."""
    owners = np.full(len(bodies.names), "", dtype=object)
    used = bodies.marker_body >= 0
    owners[bodies.marker_body[used]] = np.array(bodies.take.subjects, object)[used]
    return owners


def naming_finding(naming: Naming, unnamed: Sequence[str] = ()) -> Finding:
    """Return the finding about an anatomy after which bodies were named.

    Args:
        naming: The anatomy.
        unnamed: Bodies of the figure whose names are numbers.
    """
    is_unsure = naming.side_confidence < MIN_SIDE_CONFIDENCE
    axis = "xyz"[int(np.abs(naming.up).argmax())]
    sign = "-" if naming.up.sum() < 0 else ""
    lies = "" if naming.up[2] > 0 else f" lying along {sign}{axis}: check the up axis"
    doubt = "; which side is left is not certain" if is_unsure else ""
    severity: Severity = "warning" if is_unsure or lies else "info"
    message = f"recognised as a {naming.kind}{lies}; its bodies are named so{doubt}"
    if unnamed:
        listed = ", ".join(map(mark_name, unnamed))
        message += f"; no part fits {listed}: check these markers, or name them"
    value = naming.side_confidence
    return Finding("named-by-shape", "skeleton", severity, message, value=value)


def _unit_findings(fit: BodyFit) -> Iterator[Finding]:
    """Return where figures that look like people have no size of people."""
    people = [sorted(one.names) for one in fit.namings if one.kind == "human"]
    for bodies in fit.bodies:
        position = bodies.T_world_body[..., :3, 3]
        doubt = find_doubtful_unit(
            bodies.take, [position[:, person] for person in people]
        )
        if doubt:
            yield doubt


def _unnamed_bodies(naming: Naming, bodies: Bodies, tree: Tree) -> tuple[str, ...]:
    """Return the bodies of a figure that no name of its anatomy fits."""
    roots = {ancestors_of(tree.parent, body)[-1] for body in naming.names}
    return tuple(
        name
        for body, name in enumerate(bodies.names)
        if has_default_name(name) and ancestors_of(tree.parent, body)[-1] in roots
    )


def contradicted_names(fit: BodyFit) -> Iterator[Finding]:
    """Return where the names of bodies contradict what their figure looks like.

    The names of labels or sensors are kept: the looks may be wrong.
    """
    bodies = concatenate_takes(fit.bodies)
    for looks in names_by_looks(bodies, fit.joints, fit.tree):
        named = {body: vrm.without_subject(bodies.names[body]) for body in looks.names}
        if looks.kind == "quadruped" and set(vrm.both_sides(vrm.HAND)) & set(
            named.values()
        ):
            message = "the names are of a person, but the figure looks like an animal"
            yield _contradiction(message, looks.fit)
        pairs = [(named[body], name) for body, name in looks.names.items()]
        same = sum(vrm.side_of(a) != "" and a == b for a, b in pairs)
        mirrored = sum(
            vrm.side_of(a) != "" and a == vrm.mirror_name(b) for a, b in pairs
        )
        if looks.side_confidence >= MIN_SIDE_CONFIDENCE and mirrored > same:
            message = (
                "left and right contradict toes, knees and elbows: labels are swapped, "
                "or axes mirrored"
            )
            yield _contradiction(message, looks.side_confidence)


def _contradiction(message: str, value: float) -> Finding:
    text = f"{message}. Check the names"
    return Finding("names-contradicted", "skeleton", "warning", text, value=value)


def part_findings(tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the limbs that end early: the next part never moved or has no markers.

    Args:
        tree: Tree of the bodies, a person's rooted at the hips.
        bodies: Bodies named by anatomy.
    """
    leaves = np.setdiff1d(np.flatnonzero(tree.parent >= 0), tree.parent)
    for last in sorted(bodies.names[body] for body in leaves):
        missing = missing_part(last)
        if missing is not None:
            part, joint, exercise = missing
            message = (
                f"the limb ends here: {part} has no markers, or the {joint} never "
                f"moved; {exercise} to get the joint"
            )
            yield Finding("part-missing", "skeleton", "info", message, last)


def ground_findings(
    takes: Sequence[Take], *, has_feet: bool = True
) -> Iterator[Finding]:
    """Return the height of the ground in each take, and what to do if it is wrong.

    Args:
        takes: The recordings.
        has_feet: Whether a person or an animal should stand on it. Doubts about the
            ground of other figures are no warnings.
    """
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
        severity: Severity = "warning" if doubts and has_feet else "info"
        advice = "check that z is up, or give ground=" if doubts else "the ground"
        message = (
            f"the lowest points stand still at z = {1e3 * height:.0f} mm{doubts}: "
            f"{advice}{up}"
        )
        yield Finding("ground", "skeleton", severity, message, subject, value=height)


def _with_given_ground(
    findings: tuple[Finding, ...], takes: Sequence[Take], options: SolveOptions
) -> tuple[Finding, ...]:
    """Return the findings with a given ground in place of the estimated one."""
    ground = known_ground(options)
    if ground is None:
        return findings
    others = (f for f in findings if f.code not in ("ground", "ground-unknown"))
    height = float(ground.height)
    message = f"the ground was given, level and {1e3 * height:.0f} mm above the origin"
    given = Finding("ground", "pose", "info", message, value=height)
    return (*others, given, *_contradicted_ground(takes, height))


def _contradicted_ground(takes: Sequence[Take], height: float) -> Iterator[Finding]:
    """Return the takes whose feet stand far from a ground that was given.

    Markers sit above the sole, and not below the ground.
    """
    for number, take in enumerate(takes, start=1):
        ground = estimate_ground(take)
        above = 0.0 if ground is None else ground.height - height
        if ground is None or -SKIN_MOTION_M < above < MAX_HEIGHT_ERROR * ground.extent:
            continue
        side = "above" if above > 0.0 else "below"
        message = (
            f"the lowest points that stand still are {1e3 * abs(above):.0f} mm {side} "
            f"the given ground: check its height, about {1e3 * ground.height:.0f} mm"
        )
        subject = f"take {number}" if len(takes) > 1 else ""
        yield Finding("ground-off", "pose", "warning", message, subject, value=above)


def _ground_doubts(ground: GroundEstimate) -> str:
    doubts = ", not at 0" if ground.is_far_from_zero else ""
    if ground.is_uneven:
        doubts += f", up to {1e3 * ground.spread:.0f} mm apart"
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
        where = _spell_centers((a, b), centers)
        residual = float(joints.residual[loop.pair])
        gap = f", with a gap of {1e3 * residual:.1f} mm" * math.isfinite(residual)
        message = (
            f"the tree leaves out a joint {where}{gap}: if it is real, give the tree"
        )
        period = _loop_period(loop, several_takes=len(takes) > 1)
        if period:
            message = f"linked {period} only: a {loop.kind or 'joint'} link {where}"
        subject = f"{a}-{b}"
        yield Finding("loop", "tree", "info", message, subject=subject, value=residual)


def _spell_centers(
    names: tuple[str, str], centers: tuple[Float[np.ndarray, "3"], ...]
) -> str:
    """Return how far a joint is from each of two bodies.

    A body of one or two markers has no axes, and so no joint in them.
    """
    known = zip(names, centers, strict=True)
    places = [
        f"{1e3 * np.linalg.norm(center):.0f} mm from {mark_name(name)}"
        for name, center in known
        if np.isfinite(center).all()
    ]
    return " and ".join(places) or "between " + " and ".join(map(mark_name, names))


def _loop_period(loop: Loop, *, several_takes: bool) -> str:
    """Return the time for which a loop is closed; "" if it always is."""
    begins, ends = np.isfinite(loop.first), np.isfinite(loop.last)
    take = f"take {loop.take + 1}" if several_takes and loop.take >= 0 else ""
    if not (begins or ends):
        return take and f"in {take}"
    first = f"{loop.first:.2f}" if begins else "the start"
    last = f"{loop.last:.2f} s" if ends else "the end"
    return f"from {first} to {last}{take and f' of {take}'}"
