"""Rigid bodies out of a recording.

A 6-DoF sensor is a body already. Markers become bodies by a map that says which belong
together.
"""

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.segment.sensors import bodies_of_sensors
from marey.segment.template import Map as Map
from marey.segment.template import Template as Template
from marey.segment.template import bodies_of_template
from marey.segment.template import read_template as read_template
from marey.take import Take

METHODS = ("auto", "sensors", "template")


def segment(
    take: Take,
    *,
    method: str = "auto",
    template: Map | None = None,
) -> Bodies:
    """Return the rigid bodies of a recording.

    Args:
        take: The recording.
        method: "sensors" takes every 6-DoF sensor as a body; "template" takes the
            bodies of a marker map; "auto" chooses: the map when there is one.
        template: The marker map, see `read_template`.

    Raises:
        OptionError: If the method is not known.
        DataError: If the recording holds nothing the method can use.
    """
    if method not in METHODS:
        raise OptionError("method", found=method, needed=f"one of {', '.join(METHODS)}")
    if method == "template" and template is None:
        raise OptionError("template", found=None, needed="a marker map")
    if template is not None and method != "sensors":
        return bodies_of_template(take, template)
    if not take.sensor_names:
        raise DataError(
            "segment",
            found=f"{len(take.labels)} markers and no 6-DoF sensors",
            needed="6-DoF sensors, or a marker map (template=)",
        )
    return bodies_of_sensors(take)
