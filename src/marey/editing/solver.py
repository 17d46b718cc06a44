"""The pipeline with edits between its stages; an edit costs only what depends on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from marey.editing.assignment import assignment_of
from marey.editing.cache import StageCache
from marey.editing.draft import EditStep
from marey.editing.kinds.ground import floor_of, replace_ground_findings
from marey.editing.kinds.mask_frames import mask_frames, pending_edits
from marey.editing.kinds.moved_sensors import (
    SENSOR_EDITS,
    check_frames,
    edits_of_takes,
    express_as_unmoved,
    hide_moved_sensors,
    is_later_change,
    pose_revealed_bodies,
)
from marey.editing.kinds.rename import apply_names
from marey.editing.kinds.skeletons import (
    early_placement_findings,
    edit_subjects,
    reroot_tree,
)
from marey.editing.plan import Plan, plan_edits
from marey.editing.refit import EditedFit, EditedStages, edit_tree
from marey.edits import Edit, parse_edits
from marey.kernels import one_blas_thread
from marey.motion import Motion
from marey.options import replace_options
from marey.pipeline import SolveOptions, solve_takes
from marey.pipeline.posing.settings import uses_ground
from marey.pipeline.progress import Clock
from marey.pipeline.reporting.findings import assemble_solution
from marey.pipeline.reporting.tables import add_tables
from marey.pipeline.reporting.unused_options import OptionUse, unused_option_findings
from marey.pipeline.run import estimate_bodies, estimate_skeletons
from marey.pipeline.stages.bodies import BodyFit
from marey.pipeline.stages.given_skeleton import prepare_skeleton
from marey.pipeline.stages.repair import repair_with_joints
from marey.pipeline.stages.subjects import (
    SubjectFit,
    complete_subjects,
    final_joint_fits,
    pose_subjects,
    subject_of_each_body,
    used_joint_fits,
)
from marey.pipeline.stages.takes import Recording, clean_takes, read_takes
from marey.report import Finding
from marey.rig import has_default_name
from marey.solution import Solution, Subject
from marey.take import Take


@one_blas_thread()
def solve(
    recordings: Recording | Sequence[Recording],
    *,
    options: SolveOptions | None = None,
    progress: Callable[[str], None] | None = None,
    **fields: Any,
) -> Solution:
    """Return the skeletons and motions of one recording, or of several of one subject.

    Args:
        recordings: Files or takes. Several share one skeleton, fitted to all of them.
        options: How to solve, edits among them.
        progress: Called with the name of each stage as it begins, and once more, with a
            note, if the stage has to be compiled first.
        **fields: Fields of `SolveOptions`, in place of those of `options`.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        OptionError: If a field is not known, an edit does not fit the recordings, or no
            subject has the name asked for.
        FormatError: If a file cannot be read.
    """
    chosen = replace_options(options or SolveOptions(), fields)
    clock = Clock(progress)
    takes = clock.run("read", read_takes, recordings, chosen.subject)
    if not chosen.edits:
        return solve_takes(takes, chosen, clock)
    return EditSolver(takes, chosen).solve(parse_edits(chosen.edits), clock)


class EditSolver:
    """Takes and options, solved with one list of edits after another.

    Args:
        takes: The recordings.
        options: How to solve them; its edits are ignored.
        cleaned: Whether the takes were cleaned, repaired and scaled before.
        masked: Edits of frames and sensors that the takes already contain.
    """

    def __init__(
        self,
        takes: tuple[Take, ...],
        options: SolveOptions,
        *,
        cleaned: bool = False,
        masked: Sequence[Edit] = (),
    ) -> None:
        self._takes = takes
        self._masked = masked
        self._chosen = prepare_skeleton(replace(options, edits=()), takes)
        self._asked = replace(options, skeleton=self._chosen.skeleton)
        self._options = self._chosen
        if cleaned:
            self._options = replace(
                self._chosen, clean=False, field=False, rigid_pair=None
            )
        self._root: tuple[Edit, ...] = ()
        if options.root:
            self._root = (Edit(do="reroot", body=options.root),)
        self._cache = StageCache()
        self._anatomical_names: dict[tuple[Edit, ...], Mapping[str, str]] = {}

    @one_blas_thread()
    def solve(self, edits: tuple[Edit, ...], clock: Clock) -> Solution:
        """Return the solution with these edits.

        Only what depends on edits that were not there before is computed again.

        Raises:
            OptionError: If an edit does not fit, with its number.
            DataError: If there is nothing left to solve.
        """
        for step in self._sensor_steps(edits):
            check_frames(step, self._takes)
        (_, unedited), plan, (fit, hips) = self._fit((*self._root, *edits), clock)
        key = edits_of_takes(edits), plan.fit_key
        subjects = self._cache.get(
            "subjects", key, lambda: estimate_skeletons(fit, self._options, clock)
        )
        _, steps = edit_tree(plan, fit.candidates, unedited, self._options, hips)
        names = dict(zip(plan.assignment.names, fit.bodies[0].names, strict=True))
        steps = tuple(
            replace(step, bodies=tuple(names[body] for body in step.bodies))
            for step in steps
        )
        ground = plan.ground if uses_ground(self._options) else None
        steps_key = tuple((step.edit, step.bodies, step.joint) for step in steps)
        fit, posed, pose_findings = self._cache.get(
            "posed",
            (key, steps_key, ground),
            lambda: self._pose(fit, subjects, edits, steps, plan.ground, clock),
        )
        used = used_joint_fits(subjects, fit, self._options)
        asked, edited = self._asked, bool(edits)
        outcome = OptionUse(asked=asked, fit=fit, joint_used=used, edited=edited)
        findings = (*pose_findings, *unused_option_findings(outcome))
        solution = assemble_solution(
            reroot_tree(fit, steps),
            posed,
            findings,
            self._chosen,
            clock.seconds,
            final_joint_fits(subjects, fit, self._options),
        )
        solution = _add_edits(solution, edits, plan)
        shown = {names.get(found, found): name for found, name in plan.names.items()}
        named = apply_names(solution, shown, self._subject_of(fit), plan.steps)
        return add_tables(named)

    def _fit(
        self, edits: tuple[Edit, ...], clock: Clock
    ) -> tuple[tuple[BodyFit, BodyFit], Plan, EditedFit]:
        """Return the fits without edits, the plan, and the fit with the edits.

        Without edits there are the fit of the cleaned takes, and that of the repaired
        takes, named by anatomy.
        """
        masks = edits_of_takes(edits)
        unedited = self._cache.get(
            "unedited", masks, lambda: self._fit_unedited(edits, clock)
        )
        plan = self._plan(edits, unedited[1], clock)
        if plan.keeps_tree:
            return unedited, plan, (unedited[1], ())
        edited = self._cache.get(
            "edited",
            (masks, plan.fit_key),
            lambda: self._fit_edited(plan, *unedited, clock),
        )
        return unedited, plan, edited

    def _fit_unedited(
        self, edits: Sequence[Edit], clock: Clock
    ) -> tuple[BodyFit, BodyFit]:
        """Return stages 2 to 7 of the pipeline, after bad frames were masked."""
        with clock.stage("clean"):
            takes = self._clean_takes(edits[len(self._root) :])
            steps = self._sensor_steps(edits[len(self._root) :])
            takes = hide_moved_sensors(takes, steps)
        return estimate_bodies(takes, self._options, clock)

    def _clean_takes(self, edits: Sequence[Edit]) -> tuple[Take, ...]:
        """Return the takes without bad frames and errors, all sensors shown."""
        return self._cache.get(
            "cleaned",
            tuple(edit for edit in edits if edit.do == "bad"),
            lambda: clean_takes(
                mask_frames(self._takes, edits, self._masked), self._options
            ),
        )

    def _sensor_steps(self, edits: Sequence[Edit]) -> list[EditStep]:
        return [
            EditStep(index + 1, edit)
            for index, edit in enumerate(edits)
            if edit.do in SENSOR_EDITS
        ]

    def _fit_edited(
        self, plan: Plan, first: BodyFit, named: BodyFit, clock: Clock
    ) -> EditedFit:
        """Return stages 3 to 7 with the edits of bodies and tree."""
        options, run = self._options, clock.run
        found = first.candidates
        if assignment_of(found.bodies, {}).members_key != plan.found.members_key:
            found = named.candidates
        stages = EditedStages(plan, found, named, self._cache)
        fit = run("tree", stages.fit_bodies, first.takes, options)
        fit = run("repair", repair_with_joints, fit, options, stages.fit_bodies)
        return run("name", stages.name_by_anatomy, fit, options)

    def _plan(self, edits: tuple[Edit, ...], fit: BodyFit, clock: Clock) -> Plan:
        found = fit.candidates.bodies
        parents = self._options.tree or found[0].parents
        return plan_edits(
            edits,
            found,
            {child: parent for child, parent in parents.items() if parent},
            first_number=1 - len(self._root),
            performer_known=self._options.skeleton is not None,
            anatomical_names=lambda n: self._names_after(edits[:n], fit, clock),
        )

    def _names_after(
        self, edits: tuple[Edit, ...], unedited: BodyFit, clock: Clock
    ) -> Mapping[str, str]:
        """Return the names by anatomy after some edits, if bodies had no names."""
        if not any(map(has_default_name, unedited.candidates.names)):
            return {}
        if edits not in self._anatomical_names:
            _, plan, (fit, _) = self._fit(edits, clock)
            self._anatomical_names[edits] = dict(
                zip(plan.assignment.names, fit.bodies[0].names, strict=True)
            )
        return self._anatomical_names[edits]

    def _pose(
        self,
        fit: BodyFit,
        subjects: Sequence[SubjectFit],
        edits: Sequence[Edit],
        steps: Sequence[EditStep],
        ground: Edit | None,
        clock: Clock,
    ) -> tuple[BodyFit, tuple[Subject, ...], tuple[Finding, ...]]:
        """Return the motions of the subjects after the edits of their skeletons.

        Before them, the fit with the takes that the motions are fitted to.
        """
        options = self._options
        without_contacts = replace(options, contacts=False, hold="none")

        def estimate_poses(subject: SubjectFit) -> Sequence[Motion]:
            posed, _ = pose_subjects([subject], fit.takes, without_contacts)
            return posed[0].motions

        with clock.stage("pose"):
            subject_of = self._subject_of(fit)
            shown, pending = self._clean_takes(edits), self._pending(steps, edits)
            edited = edit_subjects(
                subjects, pending, subject_of, options, estimate_poses, shown
            )
            if any(is_later_change(step.edit) for step in steps):
                edited, takes = express_as_unmoved(
                    edited, fit.takes, shown, steps, pending
                )
                bodies = tuple(map(pose_revealed_bodies, fit.bodies, takes))
                fit = replace(fit, takes=takes, bodies=bodies)
            floor = None if ground is None else floor_of(ground)
            posed, findings = pose_subjects(edited, fit.takes, options, floor)
        whole, added = complete_subjects(posed, options)
        return fit, whole, (*findings, *added)

    def _pending(
        self, steps: Sequence[EditStep], edits: Sequence[Edit]
    ) -> list[EditStep]:
        """Return the edits of skeletons that the takes do not contain already."""
        pending = {index + 1 for index in pending_edits(edits, self._masked)}
        return [
            step
            for step in steps
            if step.number in pending or not is_later_change(step.edit)
        ]

    def _subject_of(self, fit: BodyFit) -> Mapping[str, int]:
        """Return the index of the subject that each body belongs to, by name."""
        numbers = subject_of_each_body(fit, self._options)
        return dict(zip(fit.bodies[0].names, numbers, strict=True))


def _add_edits(solution: Solution, edits: Sequence[Edit], plan: Plan) -> Solution:
    """Return the solution with its edits, and the findings that follow from them."""
    findings = (*solution.report.findings, *early_placement_findings(plan.steps))
    if plan.ground is not None:
        findings = replace_ground_findings(findings, plan.ground)
    records = tuple(edit.record() for edit in edits)
    return replace(
        solution,
        report=replace(solution.report, findings=findings),
        options={**solution.options, "edits": records},
    )
