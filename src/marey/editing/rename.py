"""The names that users gave, put on an answer in the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.editing.plan import Step
from marey.errors import OptionError
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject


def called(
    solution: Solution,
    names: Mapping[str, str],
    homes: Mapping[str, int],
    steps: Sequence[Step],
) -> Solution:
    """Return the answer with the names that the user gave.

    Args:
        solution: In the names inside.
        names: What bodies, and joints that are no body's, are called.
        homes: The number of the subject that each body is in.
        steps: All steps; renamed joints must be there.

    Raises:
        OptionError: If a joint is not there, or two would have one name.
    """
    if not names:
        return solution
    _check_there(solution, steps)
    subjects = []
    for number, subject in enumerate(solution.subjects):
        mine = {}
        for inside, shown in names.items():
            if homes.get(inside, number) == number:
                joint = subject.skeleton.joint_of(inside)
                mine[joint] = shown if ":" in joint else shown.rpartition(":")[2]
        subjects.append(_subject(subject, mine))
    bodies = tuple(
        replace(
            one,
            names=tuple(names.get(name, name) for name in one.names),
            parents={
                names.get(child, child): names.get(parent, parent)
                for child, parent in one.parents.items()
            },
        )
        for one in solution.bodies
    )
    found = told(solution.report.findings, names, solution.bodies[0].names)
    report = replace(solution.report, findings=found)
    return replace(solution, subjects=tuple(subjects), bodies=bodies, report=report)


def _check_there(solution: Solution, steps: Sequence[Step]) -> None:
    joints = [name for one in solution.subjects for name in one.skeleton.names]
    for step in steps:
        if step.edit.do == "rename" and step.joint and step.joint not in joints:
            told = f"{step.edit.name}, the name of nothing"
            raise step.refused("name", told, f"one of {', '.join(joints)}")


def _subject(subject: Subject, names: Mapping[str, str]) -> Subject:
    motions, whole = [], _with_ends(names)
    for motion in subject.motions:
        contacts = tuple(
            replace(contact, joint=whole.get(contact.joint, contact.joint))
            for contact in motion.contacts
        )
        skeleton = _skeleton(motion.skeleton, names)
        motions.append(replace(motion, skeleton=skeleton, contacts=contacts))
    is_root = subject.name == subject.skeleton.names[0]
    return Subject(
        names.get(subject.name, subject.name) if is_root else subject.name,
        _skeleton(subject.skeleton, names),
        tuple(motions),
    )


def _skeleton(skeleton: Skeleton, names: Mapping[str, str]) -> Skeleton:
    """Return a skeleton with other names; the ends of bones go along."""
    whole = _with_ends(names)
    new = tuple(whole.get(name, name) for name in skeleton.names)
    twice = [name for name, times in Counter(new).items() if times > 1]
    if twice:
        told = f"{twice[0]}, which another joint has"
        raise OptionError("edits: rename", found=told, needed="a name of its own")
    return replace(skeleton, names=new)


def _with_ends(names: Mapping[str, str]) -> dict[str, str]:
    """Return names, and those of the ends of bones that are called after them."""
    ends = {f"{inside}_end": f"{shown}_end" for inside, shown in names.items()}
    return ends | dict(names)


def told(
    findings: Sequence[Finding], names: Mapping[str, str], bodies: Sequence[str]
) -> tuple[Finding, ...]:
    """Return what was found in the names that the user gave.

    Args:
        findings: In the names inside.
        names: What bodies, and joints that are no body's, are called.
        bodies: The names of all bodies inside: a finding may be about two, "a-b".
    """
    whole = _with_ends(names)
    pairs = {
        f"{a}-{b}": f"{whole.get(a, a)}-{whole.get(b, b)}"
        for a in bodies
        for b in bodies
    }

    def shown(subject: str) -> str:
        if subject in pairs:
            return pairs[subject]
        return ", ".join(whole.get(name, name) for name in subject.split(", "))

    return tuple(replace(f.rename(whole), subject=shown(f.subject)) for f in findings)
