"""The pipeline from recordings to skeletons and motions: ten stages, ten lines."""

from collections.abc import Callable, Sequence

from marey.errors import OptionError
from marey.pipeline.options import SolveOptions, use_known_performer
from marey.pipeline.progress import Clock
from marey.pipeline.report import add_tables, assemble_solution
from marey.pipeline.stages_bodies import (
    fit_bodies,
    fit_pair_joints,
    fit_tree,
    name_by_anatomy,
    repair_with_joints,
    segment_takes,
)
from marey.pipeline.stages_subjects import (
    build_subjects,
    calibrate_subjects,
    pose_subjects,
    set_root,
)
from marey.pipeline.stages_takes import Recording, clean_takes, read_takes
from marey.solution import Solution


def solve(
    recordings: Recording | Sequence[Recording],
    *,
    options: SolveOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Return the skeletons and motions of one recording, or of several of one subject.

    Args:
        recordings: Files or takes. Several share one skeleton, fitted to all of them.
        options: How to solve; without edits, which `marey.solve` applies.
        progress: Called with the name of each stage as it begins, and once more, with a
            note, if the stage has to be compiled first.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        OptionError: If no subject has the name asked for, or an option does not fit.
        FormatError: If a file cannot be read.
    """
    chosen = use_known_performer(options or SolveOptions())
    if chosen.edits:
        needed = "marey.solve, which applies them"
        raise OptionError("edits", found=f"{len(chosen.edits)} edits", needed=needed)
    clock = Clock(progress)
    run = clock.run
    takes = run("read", read_takes, recordings, chosen.subject)
    takes = run("clean", clean_takes, takes, chosen)
    bodies = run("segment", segment_takes, takes, chosen)
    joints = run("joints", fit_pair_joints, bodies, chosen)
    fit = run("tree", fit_tree, bodies, joints, chosen)
    fit = run("repair", repair_with_joints, fit, chosen, fit_bodies)
    fit = run("name", name_by_anatomy, fit, chosen)
    subjects = run("skeleton", build_subjects, fit, chosen)
    subjects = run("calibrate", calibrate_subjects, subjects, fit, chosen)
    subjects, fit = set_root(subjects, fit, chosen)
    posed, findings = run("pose", pose_subjects, subjects, fit.takes, chosen)
    solution = assemble_solution(fit, posed, findings, chosen, clock.seconds)
    return add_tables(solution)
