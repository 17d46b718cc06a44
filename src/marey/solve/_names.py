"""The names that users gave, put on an answer in the end."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.errors import OptionError
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.solve._plan import Step


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
        mine = {
            _bare(inside): _bare(shown)
            for inside, shown in names.items()
            if homes.get(inside, number) == number
        }
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
    report = replace(solution.report, findings=told(solution.report.findings, names))
    return replace(solution, subjects=tuple(subjects), bodies=bodies, report=report)


def _bare(name: str) -> str:
    return name.rpartition(":")[2]


def _check_there(solution: Solution, steps: Sequence[Step]) -> None:
    joints = [name for one in solution.subjects for name in one.skeleton.names]
    for step in steps:
        if step.edit.do == "rename" and step.joint and step.joint not in joints:
            told = f"{step.edit.name}, the name of nothing"
            raise step.refused("name", told, f"one of {', '.join(joints)}")


def _subject(subject: Subject, names: Mapping[str, str]) -> Subject:
    motions = []
    for motion in subject.motions:
        contacts = tuple(
            replace(contact, joint=names.get(contact.joint, contact.joint))
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
    ends = {f"{inside}_end": f"{shown}_end" for inside, shown in names.items()}
    both = ends | dict(names)
    new = tuple(both.get(name, name) for name in skeleton.names)
    twice = [name for name, times in Counter(new).items() if times > 1]
    if twice:
        told = f"{twice[0]}, which another joint has"
        raise OptionError("edits: rename", found=told, needed="a name of its own")
    return replace(skeleton, names=new)


def told(findings: Sequence[Finding], names: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return what was found in the names that the user gave."""
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    word = re.compile(rf"(?<![\w:])({pattern})(?!\w)")

    def shown(text: str) -> str:
        return word.sub(lambda match: names[match[1]], text)

    return tuple(
        replace(f, subject=shown(f.subject), message=shown(f.message)) for f in findings
    )
