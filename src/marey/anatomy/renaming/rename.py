"""A person's skeleton and motions, renamed and divided as a target scheme has it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.renaming.rows import (
    JointRow,
    dissolve_error,
    dissolve_row,
    insert_row,
    join_rows,
    split_rows,
)
from marey.anatomy.renaming.schemes import TargetScheme
from marey.errors import OptionError
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton

ROUNDING_M = 1e-6
"""Largest change of a joint's position without a finding, in metres: that of files."""


def rename_motions(
    skeleton: Skeleton, motions: Sequence[Motion], scheme: TargetScheme
) -> tuple[Skeleton, tuple[Motion, ...], tuple[Finding, ...]]:
    """Return a person with the joints and names of a target scheme.

    Trunk, neck and clavicles get as many joints as the scheme has. An inserted joint
    divides the longest bone and does not rotate, so nothing moves. If there are
    too many joints, the one that matters least is dissolved: its children get its
    rotations, and their mean positions, so orientations stay; positions stay if it was
    rigid, and a finding reports the largest error if it was not.

    Args:
        skeleton: The skeleton of a person, with the names of any known scheme.
        motions: Its motions.
        scheme: The target scheme.

    Returns:
        Skeleton, motions, and findings about what could not be kept.

    Raises:
        OptionError: If the skeleton is not a person's.
    """
    rows = split_rows(skeleton, motions)
    before = [(row, row.name) for row in rows]
    part = {name: rows[i] for i, name in recognise_joints(skeleton.names).items()}
    bare = [vrm.without_subject(name) for name in skeleton.names]
    if not vrm.is_person(part) or vrm.has_tail(bare):
        raise OptionError(
            "names",
            found=f"joints {', '.join(skeleton.names)}",
            needed="a person's hips and legs, by the names of a known scheme",
        )
    findings = []
    neck_row = part.pop(vrm.NECK, None)
    trunk = _trunk(rows, part)
    head = part.get(vrm.HEAD)
    if head is None and neck_row is not None:
        head, neck_row = neck_row, None
    children = _trunk_children(part, head)
    findings += _fit_chain(
        rows, part[vrm.HIPS], trunk, children, scheme.trunk_names(_names(trunk))
    )
    top = trunk[-1] if trunk else part[vrm.HIPS]
    if head is not None:
        part[vrm.HEAD] = head
        neck = _path(head, top)
        findings += _fit_chain(rows, top, neck, [head], scheme.neck_names(_names(neck)))
    for side in vrm.SIDES:
        findings += _fit_clavicle(rows, part, side, scheme)
    for name, row in part.items():
        row.name = scheme.names.get(name, row.name)
    findings += _report_foreign(part, scheme)
    _name_ends(rows, part, skeleton)
    _make_unique(rows)
    renamed, moved = join_rows(rows, skeleton, motions)
    new = {old: row.name for row, old in before if row.name in renamed.names}
    moved = tuple(_rename_contacts(motion, new) for motion in moved)
    return renamed, moved, tuple(findings)


def _rename_contacts(motion: Motion, new: Mapping[str, str]) -> Motion:
    """Return the motion with the new names of joints in its contacts."""
    contacts = (
        replace(contact, joint=new[contact.joint])
        for contact in motion.contacts
        if contact.joint in new
    )
    return replace(motion, contacts=tuple(contacts))


def _names(rows: Sequence[JointRow]) -> list[str]:
    return [row.name for row in rows]


def _path(row: JointRow, ancestor: JointRow) -> list[JointRow]:
    """Return the joints between a joint and its ancestor, from the ancestor outward."""
    path: list[JointRow] = []
    above = row.parent
    while above is not None and above is not ancestor:
        path.insert(0, above)
        above = above.parent
    return path


def _trunk(rows: Sequence[JointRow], part: dict[str, JointRow]) -> list[JointRow]:
    """Return the joints between the hips and the arms, or the head, outward."""
    hips = part[vrm.HIPS]
    ends = [
        part.get(shoulder) or part.get(arm)
        for shoulder, arm in zip(
            vrm.both_sides(vrm.SHOULDER), vrm.both_sides(vrm.UPPER_ARM), strict=True
        )
    ]
    paths = [_path(end, hips) for end in ends if end is not None]
    if not paths:
        head = part.get(vrm.HEAD)
        return [] if head is None else _path(head, hips)
    return [row for row in paths[0] if all(row in path for path in paths)]


def _trunk_children(part: dict[str, JointRow], head: JointRow | None) -> list[JointRow]:
    """Return the joints that the trunk carries: the heads of arms and of the neck."""
    roots = [
        part.get(side + vrm.SHOULDER) or part.get(side + vrm.UPPER_ARM)
        for side in vrm.SIDES
    ]
    return [row for row in (*roots, head) if row is not None]


def _fit_chain(
    rows: list[JointRow],
    base: JointRow,
    chain: list[JointRow],
    ends: Sequence[JointRow],
    names: Sequence[str],
) -> list[Finding]:
    """Give a chain as many joints as there are names, and these names.

    Args:
        rows: All joints.
        base: The joint that the chain begins at.
        chain: The joints of the chain, outward; changed in place.
        ends: The joints that the chain ends with.
        names: The new names.
    """
    findings: list[Finding] = []
    while len(chain) > len(names):
        errors = [dissolve_error(rows, row) for row in chain]
        least = min(range(len(chain)), key=errors.__getitem__)
        findings += _report_merge(chain[least].name, errors[least])
        dissolve_row(rows, chain.pop(least))
    while ends and len(chain) < len(names):
        _divide_longest(rows, base, chain, ends)
    for row, name in zip(chain, names, strict=False):
        row.name = name
    return findings


def _divide_longest(
    rows: list[JointRow],
    base: JointRow,
    chain: list[JointRow],
    ends: Sequence[JointRow],
) -> None:
    """Insert a joint in the middle of the longest bone of a chain."""
    if not chain:
        outward = [_below(base, end) for end in ends]
        children = list({id(row): row for row in outward}.values())
        chain.append(insert_row(rows, base, children))
        return
    lengths = [float((row.offset**2).sum()) for row in chain]
    longest = max(range(len(chain)), key=lengths.__getitem__)
    before = chain[longest - 1] if longest else base
    inserted = insert_row(rows, before, [chain[longest]])
    chain.insert(longest, inserted)


def _below(base: JointRow, row: JointRow) -> JointRow:
    """Return the child of a joint that leads to another."""
    while row.parent is not None and row.parent is not base:
        row = row.parent
    return row


def _fit_clavicle(
    rows: list[JointRow], part: dict[str, JointRow], side: str, scheme: TargetScheme
) -> list[Finding]:
    """Insert the clavicle of one side if the scheme has one, else dissolve it."""
    name, arm = side + vrm.SHOULDER, part.get(side + vrm.UPPER_ARM)
    new = scheme.names.get(name)
    if (
        arm is None
        or new is None
        or bool(new) == (name in part)
        or new in scheme.optional
    ):
        return []
    if new and arm.parent is not None:
        part[name] = insert_row(rows, arm.parent, [arm])
        return []
    row = part.pop(name)
    findings = _report_merge(row.name, dissolve_error(rows, row))
    dissolve_row(rows, row)
    return findings


def _report_merge(name: str, error: float) -> list[Finding]:
    if error <= ROUNDING_M:
        return []
    message = (
        f"the scheme has no place for {name}: merged with its children, "
        f"whose positions change by up to {1e3 * error:.2g} mm"
    )
    return [Finding("names-merged", "write", "warning", message, name, value=error)]


def _report_foreign(part: dict[str, JointRow], scheme: TargetScheme) -> list[Finding]:
    """Report the parts of a person that a scheme has no names for."""
    kept = [row.name for name, row in part.items() if name not in scheme.names]
    if not kept:
        return []
    message = f"the scheme has no names for {', '.join(kept)}: kept as they are"
    return [Finding("names-kept", "write", "info", message, value=float(len(kept)))]


def _name_ends(
    rows: Sequence[JointRow], part: dict[str, JointRow], skeleton: Skeleton
) -> None:
    """Name the ends of bones after their new parents: "mixamorig:Head_end"."""
    named = list(map(id, part.values()))
    for row in rows:
        is_end = row.old >= 0 and bool(skeleton.is_end[row.old])
        if is_end and row.parent is not None and id(row) not in named:
            row.name = f"{row.parent.name}_end"


def _make_unique(rows: Sequence[JointRow]) -> None:
    used: set[str] = set()
    for row in rows:
        name, number = row.name, 1
        while row.name in used:
            number += 1
            row.name = f"{name}_{number}"
        used.add(row.name)
