"""The pipeline from recordings to skeletons and motions: a stage is a line."""

from dataclasses import replace

from marey.errors import OptionError
from marey.pipeline.options import SolveOptions, performer_known
from marey.pipeline.progress import Clock
from marey.pipeline.reporting.findings import assemble_solution
from marey.pipeline.reporting.tables import add_tables
from marey.pipeline.reporting.unused_options import OptionUse, unused_option_findings
from marey.pipeline.stages.attach import attach_to_given
from marey.pipeline.stages.bodies import (
    BodyFit,
    fit_bodies,
    fit_pair_joints,
    name_by_anatomy,
    segment_takes,
)
from marey.pipeline.stages.given_skeleton import prepare_skeleton
from marey.pipeline.stages.repair import repair_with_joints
from marey.pipeline.stages.subjects import (
    SubjectFit,
    build_subjects,
    calibrate_subjects,
    complete_subjects,
    final_joint_fits,
    limit_subjects,
    pose_subjects,
    set_root,
    used_joint_fits,
)
from marey.pipeline.stages.takes import clean_takes
from marey.pipeline.stages.upright import fit_upright_tree
from marey.solution import Solution
from marey.take import Take


def solve_takes(
    takes: tuple[Take, ...], options: SolveOptions, clock: Clock
) -> Solution:
    """Return the skeletons and motions of the takes of one subject, without edits.

    Args:
        takes: The recordings, after stage 1, `read_takes`.
        options: How to solve; without edits, which `marey.solve` applies.
        clock: Measures and reports the stages.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        OptionError: If an option does not fit the recordings.
    """
    if options.edits:
        found = f"{len(options.edits)} edits"
        raise OptionError(
            "edits", found=found, needed="marey.solve, which applies them"
        )
    chosen = prepare_skeleton(options, takes)
    run = clock.run
    takes = run("clean", clean_takes, takes, chosen)
    _, fit = estimate_bodies(takes, chosen, clock)
    subjects = estimate_skeletons(fit, chosen, clock)
    used = used_joint_fits(subjects, fit, chosen)
    final = final_joint_fits(subjects, fit, chosen)
    asked = replace(options, skeleton=chosen.skeleton)
    outcome = OptionUse(asked=asked, fit=fit, joint_used=used)
    subjects, fit = set_root(subjects, fit, chosen)
    posed, findings = run("pose", pose_subjects, subjects, fit.takes, chosen)
    posed, added = complete_subjects(posed, chosen)
    findings = (*findings, *added, *unused_option_findings(outcome))
    return add_tables(
        assemble_solution(fit, posed, findings, chosen, clock.seconds, final)
    )


def estimate_bodies(
    takes: tuple[Take, ...], options: SolveOptions, clock: Clock
) -> tuple[BodyFit, BodyFit]:
    """Return the fit of cleaned takes, and that of repaired takes, named by anatomy."""
    run = clock.run
    bodies = run("segment", segment_takes, takes, options)
    joints = run("joints", fit_pair_joints, bodies, options)
    first = run("tree", fit_upright_tree, bodies, joints, options)
    fit = run("repair", repair_with_joints, first, options, fit_bodies)
    return first, run("name", name_by_anatomy, fit, options)


def estimate_skeletons(
    fit: BodyFit, options: SolveOptions, clock: Clock
) -> tuple[SubjectFit, ...]:
    """Return a calibrated or given skeleton of every subject, its joints limited."""
    subjects = clock.run("skeleton", build_subjects, fit, options)
    subjects = clock.run("calibrate", calibrate_subjects, subjects, fit, options)
    if options.skeleton is not None and not performer_known(options):
        subjects = clock.run("attach", attach_to_given, subjects, fit, options)
    return limit_subjects(subjects, options)
