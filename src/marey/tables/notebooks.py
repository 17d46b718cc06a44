"""Recordings, skeletons and motions as a notebook shows them: facts, then tables.

Tables are folded. Text of files is escaped; fonts and colours are the notebook's.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from marey.numerics import Bool, geometry
from marey.report import Finding, Table, fold_tables_html, list_causes_html

if TYPE_CHECKING:
    from marey.motion import Motion
    from marey.skeleton import Skeleton
    from marey.take import Take


def take_to_html(take: "Take") -> str:
    """Return the facts of a recording, and how often each marker is seen."""
    source = take.source
    facts = {"duration": f"{take.duration:.2f} s", "format": source.format}
    known = {"unit": source.unit, "up axis": source.up, "rate": source.rate}
    facts |= {name: str(fact) for name, fact in known.items() if fact.value}
    tables = {
        "markers": _visibility("marker", take.full_labels, take.seen),
        "sensors": _visibility("sensor", take.sensor_names, take.sensor_seen),
    }
    return _to_html(repr(take), facts, tables, source.findings)


def skeleton_to_html(skeleton: "Skeleton") -> str:
    """Return the joints of a skeleton and the lengths of its bones."""
    return _to_html(repr(skeleton), {}, {"joints": _list_joints(skeleton)})


def motion_to_html(motion: "Motion") -> str:
    """Return how far each joint rotates, and how uncertain its angles are."""
    seconds, contacts = motion.duration, len(motion.contacts)
    facts = {
        "duration": f"{seconds:.2f} s" if np.isfinite(seconds) else "",
        "foot contacts": f"{contacts}" if contacts else "",
    }
    tables = {
        "rotations": _list_rotations(motion),
        "joints": _list_joints(motion.skeleton),
    }
    return _to_html(repr(motion), facts, tables, motion.source.findings)


def _to_html(
    title: str,
    facts: Mapping[str, str],
    tables: Mapping[str, Table],
    findings: Sequence[Finding] = (),
) -> str:
    """Return a title, facts that are not blank, findings and tables with rows."""
    lines = "<br>".join(
        f"{escape(name)}: {escape(value)}" for name, value in facts.items() if value
    )
    heading = f"<p><b>{escape(title)}</b><br>{lines}</p>"
    return heading + list_causes_html(findings) + fold_tables_html(tables)


def _visibility(
    what: str, names: Sequence[str], seen: Bool[np.ndarray, "frame item"]
) -> Table:
    """Return in how many frames each marker or sensor is seen, and its longest gap."""
    rows = []
    for name, column in zip(names, seen.T, strict=True):
        share = round(100.0 * float(column.mean()), 1) if len(column) else ""
        rows.append((name, share, _longest_gap(column)))
    return Table((what, "seen %", "longest gap, frames"), tuple(rows))


def _longest_gap(seen: Bool[np.ndarray, " frame"]) -> int:
    """Return the length of the longest run of frames in which nothing is seen."""
    edges = np.flatnonzero(np.concatenate([[True], seen, [True]]))
    return int(np.diff(edges).max(initial=1)) - 1


def _list_joints(skeleton: "Skeleton") -> Table:
    """Return parent, kind and bone of every joint."""
    rows = []
    for joint, name in enumerate(skeleton.names):
        parent = skeleton.names[skeleton.parent[joint]] if joint else ""
        length = round(1e3 * float(skeleton.lengths[joint]), 1) if joint else ""
        sd_mm = 1e3 * skeleton.length_sd[joint]
        sd = round(float(sd_mm), 1) if joint and np.isfinite(sd_mm) else ""
        rows.append((name, parent, skeleton.kind[joint], length, sd))
    return Table(("joint", "parent", "kind", "bone mm", "± mm"), tuple(rows))


def _list_rotations(motion: "Motion") -> Table:
    """Return how far each joint rotates from the first frame, and its uncertainty."""
    first = np.argmax(np.isfinite(motion.wxyz[..., 0]), axis=0)
    start = motion.wxyz[first, np.arange(motion.skeleton.n_joints)]
    turned = geometry.quat_multiply(geometry.quat_conjugate(start), motion.wxyz)
    angle = np.degrees(np.linalg.norm(geometry.quat_log(turned), axis=-1))
    sd = np.degrees(motion.angle_sd.max(axis=-1))
    rows = []
    for joint, name in enumerate(motion.skeleton.names):
        if motion.skeleton.kind[joint] == "fixed":
            continue
        known = angle[np.isfinite(angle[:, joint]), joint]
        sure = sd[np.isfinite(sd[:, joint]), joint]
        largest = round(float(known.max()), 1) if len(known) else ""
        rows.append(
            (name, largest, round(float(np.median(sure)), 2) if len(sure) else "")
        )
    return Table(("joint", "rotates by, deg", "± deg"), tuple(rows))
