"""Names of other programs for what is written: `names=` of `marey.write`."""

from dataclasses import replace
from os import PathLike

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.renaming import TargetScheme, find_scheme, rename_motions
from marey.errors import OptionError
from marey.io.contract import Format
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Take

Thing = Take | Motion | Skeleton | Solution


def rename_thing(
    thing: Thing, names: str | PathLike[str], format: Format
) -> tuple[Thing, tuple[Finding, ...]]:
    """Return a thing with the joints of a target scheme, and what could not be kept.

    In a solution all people are renamed; animals and props keep their names.

    Args:
        thing: What is to be written.
        names: Name of a scheme, or a TOML file with one.
        format: What it is written as.

    Raises:
        OptionError: If there is no such scheme, or it does not fit the thing.
    """
    scheme = find_scheme(names)
    if isinstance(thing, Motion):
        _, (motion,), findings = rename_motions(thing.skeleton, (thing,), scheme)
        return motion, findings
    if isinstance(thing, Skeleton):
        skeleton, _, findings = rename_motions(thing, (), scheme)
        return skeleton, findings
    if isinstance(thing, Take) or not format.renames:
        raise OptionError(
            "names",
            found=f"a {type(thing).__name__.lower()} as {format.name}",
            needed="a motion or a skeleton, or a solution for another program",
        )
    return _rename_people(thing, scheme)


def _rename_people(
    solution: Solution, scheme: TargetScheme
) -> tuple[Solution, tuple[Finding, ...]]:
    subjects: list[Subject] = []
    findings: list[Finding] = []
    for subject in solution.subjects:
        known = recognise_joints(subject.skeleton.names).values()
        if not vrm.is_person(set(known)) and len(solution.subjects) > 1:
            subjects.append(subject)
            continue
        skeleton, motions, found = rename_motions(
            subject.skeleton, subject.motions, scheme
        )
        subjects.append(Subject(subject.name, skeleton, motions))
        findings += found
    return replace(solution, subjects=tuple(subjects)), tuple(findings)
