"""Edit "rename": the names that users give, put on the solution at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.anatomy.names import without_subject
from marey.editing.draft import EditStep, PlanDraft
from marey.report import Finding
from marey.solution import Solution, Subject


def plan_rename(draft: PlanDraft, step: EditStep) -> None:
    """Give a body, or a joint that is not a body's, another name.

    A name that is not a body's may be the end of a bone, which can be checked only
    after the skeleton is built (`apply_names`).
    """
    edit = step.edit
    bodies = draft.bodies_named(edit.name)
    if len(bodies) == 1:
        draft.give_name(step, bodies[0], edit.to)
        return
    if bodies:
        draft.find_body(step, edit.name)
    joint = draft.find_end_joint(step, edit.name)
    draft.check_unused(step, edit.to)
    draft.given_names[joint] = edit.to
    draft.steps.append(replace(step, joint=joint))


def apply_names(
    solution: Solution,
    names: Mapping[str, str],
    subject_of: Mapping[str, int],
    steps: Sequence[EditStep],
) -> Solution:
    """Return the solution with the names that the user gave.

    Args:
        solution: In the names before.
        names: New name of bodies, and of joints that are not a body's.
        subject_of: Index of the subject that each body belongs to.
        steps: All edits; the joints that they rename must exist.

    Raises:
        OptionError: If a joint does not exist, or two would have one name.
    """
    if not names:
        return solution
    _check_joints_exist(solution, steps)
    subjects = []
    for number, subject in enumerate(solution.subjects):
        of_subject = {
            before: name
            for before, name in names.items()
            if subject_of.get(before.removesuffix("_end"), number) == number
        }
        subjects.append(_rename_subject(subject, of_subject))
    bodies = tuple(
        one.rename([names.get(name, name) for name in one.names])
        for one in solution.bodies
    )
    findings = solution.report.findings
    renamed = rename_findings(findings, names, solution.bodies[0].names)
    report = replace(solution.report, findings=renamed)
    return replace(solution, subjects=tuple(subjects), bodies=bodies, report=report)


def _check_joints_exist(solution: Solution, steps: Sequence[EditStep]) -> None:
    skeletons = [one.skeleton for one in solution.subjects]
    joints = [name for skeleton in skeletons for name in skeleton.names]
    for step in steps:
        if step.edit.do != "rename" or not step.joint:
            continue
        if not any(one.joint_of(step.joint) in one.names for one in skeletons):
            found = f"{step.edit.name}, the name of nothing"
            raise step.refuse("name", found, f"one of {', '.join(joints)}")


def _rename_subject(subject: Subject, body_names: Mapping[str, str]) -> Subject:
    names = {}
    for before, name in body_names.items():
        joint = subject.skeleton.joint_of(before)
        names[joint] = name if ":" in joint else without_subject(name)
    all_names = _with_bone_ends(names)
    is_root = subject.name == subject.skeleton.names[0]
    return Subject(
        names.get(subject.name, subject.name) if is_root else subject.name,
        subject.skeleton.rename(all_names, "edits: rename"),
        tuple(one.rename(all_names, "edits: rename") for one in subject.motions),
    )


def _with_bone_ends(names: Mapping[str, str]) -> dict[str, str]:
    """Return names, and those of the ends of bones, which contain them."""
    ends = {f"{before}_end": f"{name}_end" for before, name in names.items()}
    return ends | dict(names)


def rename_findings(
    findings: Sequence[Finding], names: Mapping[str, str], bodies: Sequence[str]
) -> tuple[Finding, ...]:
    """Return findings with the names that the user gave.

    Args:
        findings: In the names before.
        names: New name of bodies, and of joints that are not a body's.
        bodies: All bodies' names before; a finding may be about two of them, "a-b".
    """
    all_names = _with_bone_ends(names)
    pairs = {
        f"{a}-{b}": f"{all_names.get(a, a)}-{all_names.get(b, b)}"
        for a in bodies
        for b in bodies
    }

    def rename_subject(subject: str) -> str:
        if subject in pairs:
            return pairs[subject]
        return ", ".join(all_names.get(name, name) for name in subject.split(", "))

    return tuple(
        replace(finding.rename(all_names), subject=rename_subject(finding.subject))
        for finding in findings
    )
