"""Edit "reroot": another body as the root of its tree."""

from collections.abc import Sequence
from dataclasses import replace

from marey.editing.draft import EditStep, PlanDraft
from marey.pipeline.stages_bodies import BodyFit, root_at


def plan_reroot(draft: PlanDraft, step: EditStep) -> None:
    """Look up the body that becomes the root."""
    body = draft.find_body(step, step.edit.body)
    draft.steps.append(replace(step, bodies=(body,)))


def reroot_tree(fit: BodyFit, steps: Sequence[EditStep]) -> BodyFit:
    """Return the fit with its trees rooted at the bodies of these edits, in order."""
    names = fit.bodies[0].names
    rerooted = (step.bodies[0] for step in steps if step.edit.do == "reroot")
    return root_at(fit, tuple(map(names.index, rerooted)))
