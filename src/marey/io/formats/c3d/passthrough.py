"""Parameters of a C3D source that still hold for the take written from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from marey.io.formats.c3d.computed import computed_lists
from marey.io.formats.c3d.parameters import MOST, Parameter, Parameters
from marey.take import Take

_REBUILT_GROUPS = (
    "ANALOG",
    "EVENT",
    "MANUFACTURER",
    "ROTATION",
    "DATA_BLOCKS",
    "MAREY",
)
_ABOUT_POINTS = re.compile(r"(LABELS|DESCRIPTIONS|ORIGINAL_LAST_FRAME|LONG_FRAMES)\d*")


def kept(take: Take, own: Sequence[Parameter]) -> list[Parameter]:
    """Return the source's parameters to write beside the take's own.

    Args:
        take: The take; one that does not come from a C3D keeps nothing.
        own: The parameters that describe the take, which replace the source's.
    """
    if take.source.format != "c3d":
        return []
    source = restored(take.source.parameters)
    written = {(parameter.group, parameter.name) for parameter in own}
    same_subjects = source.texts("SUBJECTS", "NAMES") == _texts(
        own, "SUBJECTS", "NAMES"
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
            found.append(_wide_enough(parameter))
        elif not _ABOUT_POINTS.fullmatch(parameter.name):
            found += _of_markers(parameter, source, take)
    found += _descriptions(source, take)
    # In an order that does not depend on the source: written twice, the same bytes.
    return sorted(found, key=lambda parameter: (parameter.group, parameter.name))


def restored(plain: Mapping[str, Any]) -> Parameters:
    """Return parameters from the plain data in `Source.parameters`."""
    return Parameters(
        {
            group: {
                name: Parameter(
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


def _texts(own: Sequence[Parameter], group: str, name: str) -> tuple[str, ...]:
    return next((p.values for p in own if (p.group, p.name) == (group, name)), ())


def _of_markers(
    parameter: Parameter, source: Parameters, take: Take
) -> list[Parameter]:
    """Return a POINT parameter, lists of computed points without those now gone."""
    if parameter.name not in computed_lists(source):
        return [_wide_enough(parameter)]
    present = {*take.labels, *take.full_labels}
    left = tuple(label for label in parameter.values if label in present)
    if not left:
        return []
    shape = (parameter.shape[0], len(left))
    return [_wide_enough(replace(parameter, shape=shape, values=left))]


def _descriptions(source: Parameters, take: Take) -> list[Parameter]:
    """Return the descriptions of the markers that are left, found by their labels."""
    labels = source.texts("POINT", "LABELS")
    texts = source.texts("POINT", "DESCRIPTIONS")
    by_label = dict(zip(labels, texts, strict=False))
    wanted = [by_label.get(label, "") for label in take.full_labels]
    if not any(wanted):
        return []
    found = []
    for i, start in enumerate(range(0, len(wanted), MOST)):
        part = tuple(wanted[start : start + MOST])
        name = "DESCRIPTIONS" if i == 0 else f"DESCRIPTIONS{i + 1}"
        shape = (1, len(part))
        found.append(_wide_enough(Parameter("POINT", name, "char", shape, part)))
    return found


def _wide_enough(parameter: Parameter) -> Parameter:
    """Return strings with room for their UTF-8 bytes, which may be more than before."""
    if parameter.kind != "char" or not parameter.shape or not parameter.values:
        return parameter
    width = max(len(text.encode()) for text in parameter.values)
    first = min(max(width, parameter.shape[0]), MOST)
    return replace(parameter, shape=(first, *parameter.shape[1:]))
