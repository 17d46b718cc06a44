"""Parameters of a C3D source that still hold for the take written from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from marey.io.formats.c3d.computed import computed_lists
from marey.io.formats.c3d.parameters import (
    MAX_DIMENSION,
    C3dParameter,
    C3dParameters,
    split_list,
)
from marey.take import Take

_REBUILT_GROUPS = (
    "ANALOG",
    "EVENT",
    "MANUFACTURER",
    "ROTATION",
    "DATA_BLOCKS",
    "MAREY",
)
_POINT_LISTS = re.compile(r"(LABELS|DESCRIPTIONS|ORIGINAL_LAST_FRAME|LONG_FRAMES)\d*")


def passthrough_parameters(
    take: Take, take_parameters: Sequence[C3dParameter]
) -> list[C3dParameter]:
    """Return the source's parameters to write in addition to those of the take.

    Args:
        take: The take; a take of another format has none.
        take_parameters: Parameters of the take, which replace those of the source.
    """
    if take.source.format != "c3d":
        return []
    source = parameters_from_dict(take.source.parameters)
    written = {(parameter.group, parameter.name) for parameter in take_parameters}
    same_subjects = source.texts("SUBJECTS", "NAMES") == _texts(
        take_parameters, "SUBJECTS", "NAMES"
    )
    same_channels = source.texts("ANALOG", "LABELS") == take.analog.labels
    found = []
    for parameter in source:
        group = parameter.group
        if group in _REBUILT_GROUPS or (group, parameter.name) in written:
            continue
        if group == "SUBJECTS" and not same_subjects:
            continue
        if group == "FORCE_PLATFORM" and not same_channels:
            continue
        if group != "POINT":
            found.append(_widen_strings(parameter))
        elif not _POINT_LISTS.fullmatch(parameter.name):
            found += _without_missing_points(parameter, source, take)
    found += _descriptions(source, take)
    # In an order that does not depend on the source: written twice, the same bytes.
    return sorted(found, key=lambda parameter: (parameter.group, parameter.name))


def parameters_from_dict(plain: Mapping[str, Any]) -> C3dParameters:
    """Return parameters from the plain data in `Source.parameters`."""
    return C3dParameters(
        {
            group: {
                name: C3dParameter(
                    group,
                    name,
                    entry["kind"],
                    tuple(entry["shape"]),
                    tuple(entry["values"]),
                    entry["description"],
                )
                for name, entry in members.items()
            }
            for group, members in plain.items()
        }
    )


def _texts(
    take_parameters: Sequence[C3dParameter], group: str, name: str
) -> tuple[str, ...]:
    return next(
        (p.values for p in take_parameters if (p.group, p.name) == (group, name)), ()
    )


def _without_missing_points(
    parameter: C3dParameter, source: C3dParameters, take: Take
) -> list[C3dParameter]:
    """Return a POINT parameter, lists of computed points without those now gone."""
    if parameter.name not in computed_lists(source):
        return [_widen_strings(parameter)]
    present = {*take.labels, *take.full_labels}
    left = tuple(label for label in parameter.values if label in present)
    if not left:
        return []
    shape = (parameter.shape[0], len(left))
    return [_widen_strings(replace(parameter, shape=shape, values=left))]


def _descriptions(source: C3dParameters, take: Take) -> list[C3dParameter]:
    """Return the descriptions of the markers that are left, found by their labels."""
    labels = source.texts("POINT", "LABELS")
    texts = source.texts("POINT", "DESCRIPTIONS")
    by_label = dict(zip(labels, texts, strict=False))
    wanted = [by_label.get(label, "") for label in take.full_labels]
    if not any(wanted):
        return []
    return split_list("POINT", "DESCRIPTIONS", "char", wanted)


def _widen_strings(parameter: C3dParameter) -> C3dParameter:
    """Return strings with room for their UTF-8 bytes, which may be more than before."""
    if parameter.kind != "char" or not parameter.shape or not parameter.values:
        return parameter
    width = max(len(text.encode()) for text in parameter.values)
    first = min(max(width, parameter.shape[0]), MAX_DIMENSION)
    return replace(parameter, shape=(first, *parameter.shape[1:]))
