"""OpenSim: a model (.osim), its coordinates over time (.mot) and its markers (.trc).

Hinges are pin joints, all others custom joints; the root has six coordinates. People
have the names of coordinates that OpenSim's models use (`conventions.py`). Markers on
bony landmarks are fixed, so that OpenSim's scaling leaves them; all others are not.
Metres, Y up. Written, not read.
"""

from dataclasses import replace

import numpy as np

from marey.io.contract import Chunks, Format, Output
from marey.io.formats import trc
from marey.io.formats.osim.model import OsimModel, render_model, spell_name, to_file
from marey.io.multibody.motion import hold_motion, hold_rest
from marey.io.options import WriteOptions
from marey.io.text.names import spell_names
from marey.io.text.numbers import format_lines
from marey.io.text.rotations import ANGLE_FORMAT
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution
from marey.take import Take

POSITION_FORMAT = "%.9f"
"""Format of positions in metres and times in seconds."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like a document of OpenSim."""
    return b"<OpenSimDocument" in head


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the model of a motion and its coordinates; gaps hold the last known pose.

    Raises:
        DataError: If the frames are not evenly spaced.
        OptionError: If another unit or up axis is asked for.
    """
    model, table = write_model_and_table(motion, options)
    return {"": model, ".mot": table}


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the model of a skeleton at rest."""
    options.check_world("m", "y")
    model = OsimModel.of(hold_rest(skeleton), options)
    return {"": [render_model(model, options.provenance_text())]}


def write_solution(solution: Solution, options: WriteOptions) -> Output:
    """Return the model, its coordinates and the recorded markers of a solution.

    Raises:
        DataError: If there are several subjects or takes.
    """
    motion, take = solution.motion, solution.take
    output = dict(write_motion(motion, options))
    if motion.skeleton.marker_labels and take.labels:
        markers = _model_markers(motion.skeleton, take)
        output[".trc"] = trc.write_take(markers, WriteOptions(unit="mm", up="y"))[""]
    return output


def write_model_and_table(
    motion: Motion, options: WriteOptions
) -> tuple[Chunks, Chunks]:
    """Return the bytes of the model and of the table of coordinates of a motion."""
    options.check_world("m", "y")
    model = OsimModel.of(hold_motion(motion, options), options)
    return [render_model(model, options.provenance_text())], _table(model)


def coordinate_table(
    motion: Motion, options: WriteOptions
) -> tuple[tuple[str, ...], Float[Array, "frame column"]]:
    """Return names and values of the coordinates of a motion, after the time.

    Degrees and metres, the time in seconds in the first column.
    """
    return _columns(OsimModel.of(hold_motion(motion, options), options))


def _columns(
    model: OsimModel,
) -> tuple[tuple[str, ...], Float[Array, "frame column"]]:
    """Return the names of the coordinates, and time and coordinates of each frame."""
    held, names = model.held, [named.coordinates for named in model.joints.values()]
    root, *others = (np.rad2deg(values) for values in model.angles.values())
    columns = [*names[0], *model.translations, *(n for row in names[1:] for n in row)]
    values = [held.times[:, None], root, to_file(held.root), *others]
    return tuple(columns), np.concatenate(values, axis=1) + 0.0


def _table(model: OsimModel) -> Chunks:
    """Return the table of coordinates: degrees and metres."""
    columns, rows = _columns(model)
    head = ["Coordinates", "version=1", f"nRows={len(rows)}"]
    head += [f"nColumns={rows.shape[1]}", "inDegrees=yes", "endheader"]
    text = "\n".join([*head, "\t".join(["time", *columns])]) + "\n"
    n_root = len(model.joints[0].coordinates)
    formats = [POSITION_FORMAT, *[ANGLE_FORMAT] * n_root, *[POSITION_FORMAT] * 3]
    formats += [ANGLE_FORMAT] * (len(columns) + 1 - len(formats))
    return format_lines(text, "\t".join(formats) + "\n", rows)


def _model_markers(skeleton: Skeleton, take: Take) -> Take:
    """Return the recorded markers that sit on a skeleton, named as in its model."""
    columns = marker_columns(skeleton, take)
    present = np.flatnonzero(columns >= 0)
    names = spell_names(skeleton.marker_labels, spell_name, WriteOptions())
    chosen = take.select([int(columns[k]) for k in present])
    labels = tuple(names[k] for k in present)
    nothing = np.zeros((take.n_frames, 0, 4, 4))
    return replace(
        chosen, labels=labels, subjects=(), T_world_sensor=nothing, sensor_names=()
    )


FORMAT = Format(
    name="osim",
    title="OpenSim model",
    suffixes=(".osim",),
    sniff=sniff,
    write_motion=write_motion,
    write_skeleton=write_skeleton,
    write_solution=write_solution,
    companions=(".mot", ".trc"),
    one_subject=True,
    renames=True,
    loses=("gaps", "uncertainty", "contacts"),
    precision=1e-8,
)
