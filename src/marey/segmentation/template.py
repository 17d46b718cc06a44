"""Templates: maps of which markers sit on which body, from a file or a skeleton."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from importlib.resources.abc import Traversable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from marey.errors import DataError, FormatError, reason
from marey.skeleton import Skeleton


@dataclass(frozen=True, slots=True)
class Template:
    """The markers of each body, and the parents of the bodies.

    Marker names may hold * and ? and may begin with a subject, "JOE:RTHI".
    """

    markers: Mapping[str, tuple[str, ...]]
    """Names of the markers of each body, by the body's name."""

    parent: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body that has one, by the body's name."""

    path: str = ""
    """The file that it was read from."""


TemplateSource = str | PathLike[str] | Mapping[str, Any] | Template | Skeleton
"""A TOML file, a mapping of the same form, a template, or a skeleton with markers."""


def read_template(source: TemplateSource) -> Template:
    """Return a marker map from a TOML file, a mapping of the same form or a skeleton.

    [bodies]
    pelvis = ["LFWT", "RFWT", "LBWT", "RBWT"]
    thigh = { markers = ["LTHI", "LKNE"], parent = "pelvis" }

    A marker may be in two bodies: one on a joint line belongs to both.

    A skeleton with markers, such as Vicon's subject file
    (`marey.read_skeleton("joe.vsk")`), is a marker map too: each joint with markers is
    a body.

    Raises:
        FormatError: If the file is not TOML.
        DataError: If a body has no markers, or its parent is missing or in a cycle; if
            a skeleton has no markers.
    """
    if isinstance(source, Template):
        return source
    if isinstance(source, Skeleton):
        return _template_of_skeleton(source)
    path = "" if isinstance(source, Mapping) else fspath(source)
    table = source if isinstance(source, Mapping) else read_toml(Path(path), path)
    bodies = table.get("bodies", None if path else table)
    what = path or "template"
    if not isinstance(bodies, Mapping) or not bodies:
        raise DataError(what, found=sorted(table), needed="a table [bodies]")
    markers = {str(name): _markers(what, name, body) for name, body in bodies.items()}
    parent = {
        str(name): str(body["parent"])
        for name, body in bodies.items()
        if isinstance(body, Mapping) and body.get("parent")
    }
    _check_parents(what, markers, parent)
    return Template(markers, parent, path)


def _template_of_skeleton(skeleton: Skeleton) -> Template:
    """Return the joints that have markers as bodies."""
    markers: dict[str, tuple[str, ...]] = {}
    for joint, name in enumerate(skeleton.names):
        indices = np.flatnonzero(skeleton.marker_joint == joint)
        if len(indices):
            markers[name] = tuple(skeleton.marker_labels[i] for i in indices)
    if not markers:
        raise DataError(
            "skeleton as a marker map", found="no markers", needed="markers on joints"
        )
    parents = {
        name: skeleton.names[parent]
        for name, parent in zip(skeleton.names, skeleton.parent, strict=True)
        if parent >= 0
    }
    return Template(markers, contract_tree(parents, markers))


def read_toml(file: Traversable, path: str) -> Mapping[str, Any]:
    """Return the table of a TOML file.

    Args:
        file: The file.
        path: Its name in error messages.

    Raises:
        FormatError: If the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        expected = "TOML (for a VSK, pass marey.read_skeleton(path))"
        raise FormatError(path, expected=expected, found=reason(error)) from None


def _markers(what: str, name: str, body: Any) -> tuple[str, ...]:
    """Return the marker names of one body of a table."""
    listed = body.get("markers") if isinstance(body, Mapping) else body
    listed = [listed] if isinstance(listed, str) else listed
    unknown = set(body) - {"markers", "parent"} if isinstance(body, Mapping) else set()
    valid = isinstance(listed, list | tuple) and all(isinstance(m, str) for m in listed)
    if not valid or not listed or unknown:
        raise DataError(
            f"{what}, body {name}",
            found=f"keys {sorted(unknown)}" if unknown else repr(listed),
            needed='["LTHI", ...] or { markers = ["LTHI", ...], parent = "pelvis" }',
        )
    return tuple(listed)


def _check_parents(
    what: str, markers: Mapping[str, Any], parent: Mapping[str, str]
) -> None:
    """Raise a DataError if a parent is no body, or if bodies form a cycle."""
    for name, above in parent.items():
        if above not in markers:
            needed = f"one of {', '.join(markers)}"
            raise DataError(f"{what}, parent of {name}", found=above, needed=needed)
    try:
        TopologicalSorter({name: [above] for name, above in parent.items()}).prepare()
    except CycleError as error:
        cycle = " - ".join(sorted(set(error.args[1])))
        raise DataError(what, found=f"a cycle {cycle}", needed="a tree") from None


def contract_tree(
    parent: Mapping[str, str], present: Collection[str]
) -> dict[str, str]:
    """Return the parents after the bodies that are not present are contracted.

    The parent of a body is its nearest ancestor that is present. If a root is not
    present, the first of its descendants that is takes its position.

    Args:
        parent: Parent of each body that has one, by name.
        present: The bodies that stay; their order says which is first.
    """
    tree: dict[str, str] = {}
    substitute: dict[str, str] = {}
    for body in present:
        ancestor = body
        while ancestor in parent and (ancestor == body or ancestor not in present):
            ancestor = parent[ancestor]
        if ancestor not in present:
            ancestor = substitute.setdefault(ancestor, body)
        if ancestor != body:
            tree[body] = ancestor
    return tree
