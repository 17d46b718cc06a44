"""`marey solve`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    AS_THEY_ARE,
    DEFAULT_MESSAGES,
    EXIT_ERROR_FINDING,
    EXIT_OK,
    NO_OVERRIDES,
    MessageArguments,
    OutputPaths,
    ReadArguments,
    Switch,
    WriteArguments,
    err,
    out,
    print_json,
    render_cause,
)
from marey.cli.solve_progress import show_solve_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from marey.pipeline import SolveOptions
    from marey.report import Finding


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SolveArguments:
    """How to solve: `SolveOptions`, in words and files."""

    subject: str = ""
    """Name of the subject, or the subject whose markers to use."""

    map_: Path | None = None
    """Marker map, a TOML file or a VSK."""

    bodies: str = "auto"
    """Segmentation: auto, overlap, spectral, labels or a number of bodies."""

    joints: str = "ball"
    """Joint method: ball, gdke, distance."""

    weight: str = "auto"
    """Edge cost of the tree: auto, compact, excess, mediated, normalised, residual."""

    pose: str = "auto"
    """Pose solver: auto, playback, gauss_newton, bfgs or physics."""

    contacts: bool = False
    """Keep planted feet in place."""

    limits: str = "safe"
    """Limits of joints: none, safe, human or a TOML file."""

    hold: str = "none"
    """Points held for a while: none, auto or a TOML file with rows [[hold]]."""

    ground: str = "auto"
    """The ground: auto, none or its height in m."""

    friction: float | None = None
    """Coefficient of friction of planted soles, for physics."""

    reference: Path | None = None
    """A similar motion, which decides what the recording leaves open."""

    outlier: float | None = None
    """Residual of an outlier marker, in standard deviations of 2 mm; 0 for none."""

    skeleton: Path | None = None
    """Skeleton of the subject, whose bones are kept: BVH, ASF, skel.json, MVNX, VSK."""

    fit: str = "rigid"
    """How --skeleton is fitted: rigid, scale (one factor) or lengths (all free)."""

    free_joints: bool = False
    """Drop the limits of --skeleton, and make balls of its hinges."""

    sessions: tuple[str, ...] = ()
    """Session of each take, in order: --sessions monday monday friday."""

    whole: Switch = True
    """Add the joints of people that markers do not determine, by anatomy."""

    root: str = ""
    """Root body of the tree."""

    tree: Path | None = None
    """Known hierarchy: TOML, [tree] child = parent."""

    rigid_pair: tuple[str, str, float] | None = None
    """Two sensors on one rigid rod and their distance in m, for the scale."""

    field: bool = False
    """Correct a distorted magnetic field."""

    time_offset: float | None = None
    """Delay of the sensors behind the markers, in seconds; estimated by default."""

    clean: Switch = True
    """Mask outliers, and undo swaps and slips."""

    min_confidence: float = 0.0
    """Smallest confidence of a keypoint, 0 to 1; less sure positions are gaps."""

    max_gap: float = 0.0
    """Longest gap of a marker that is filled, in seconds."""

    calibrate: Switch = True
    """Calibrate bones and marker positions jointly over all takes."""

    edits: Path | None = None
    """Edits file of `marey view`: walk.c3d.edits.toml."""

    def read_options(self) -> "SolveOptions":
        """Return the options of `marey.solve`, with the content of the files."""
        from marey.cli.solve_output import read_marker_map, read_section
        from marey.edits import read_edits
        from marey.io import read_skeleton
        from marey.pipeline import SolveOptions

        given = asdict(self)
        bodies, map_path = given.pop("bodies"), given.pop("map_")
        contents = {
            "skeleton": read_skeleton(self.skeleton) if self.skeleton else None,
            "template": read_marker_map(map_path) if map_path else None,
            "tree": read_section(self.tree, "tree") if self.tree else {},
            "edits": read_edits(self.edits) if self.edits else (),
            "ground": _number_or_word(self.ground),
            "segment": "auto" if bodies.isdecimal() else bodies,
            "n_bodies": int(bodies) if bodies.isdecimal() else 0,
        }
        return SolveOptions(**(given | contents))


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


DEFAULTS = SolveArguments()
NO_OUTPUTS: list[Path] = []


def _print_written(paths: "Sequence[Path]", lost: "Sequence[Finding]") -> None:
    """Print the files that were written, and what they could not keep as it was."""
    from marey.report import group_findings

    for path in paths:
        err.print(f"wrote {escape(str(path))}")
    for cause in group_findings(lost):
        err.print(render_cause(cause))


def solve(
    files: list[Path],
    /,
    *,
    out_: OutputPaths = NO_OUTPUTS,
    reading: ReadArguments = NO_OVERRIDES,
    solving: SolveArguments = DEFAULTS,
    writing: WriteArguments = AS_THEY_ARE,
    measured: Path | None = None,
    messages: MessageArguments = DEFAULT_MESSAGES,
    json_: bool = False,
) -> int:
    """Estimate the skeleton and its motion from markers, 6-DoF sensors or both.

    Args:
        files: Takes of one subject.
        out_: File to write; its suffix selects the format. May be given several times.
        reading: How to read the files.
        solving: How to solve.
        writing: How to write the output.
        measured: Measured bone lengths in m: TOML, [lengths] joint = 0.4.
        messages: How much to print.
        json_: Print JSON.
    """
    from marey.anatomy.renaming import find_scheme
    from marey.cli.solve_output import (
        lengths_table,
        read_section,
        render,
        report_data,
    )
    from marey.editing import solve as solve_takes
    from marey.io import read
    from marey.io.solution_files import check_solution_files, write_solution

    messages.apply()
    for path in out_:
        check_solution_files(
            path,
            writing.content,
            overwrite=writing.overwrite,
            inputs=tuple(map(str, files)),
        )
    find_scheme(writing.names or "vrm")
    lengths = read_section(measured, "lengths") if measured else {}
    options = solving.read_options()
    takes = [read(file, **asdict(reading)) for file in files]
    with show_solve_progress("solving", messages.quiet) as report_stage:
        solution = solve_takes(takes, options=options, progress=report_stage)
    tables = dict(solution.report.tables)
    if lengths:
        tables["lengths"] = lengths_table(solution.skeleton, lengths)
    for path in out_:
        written = write_solution(solution, path, lengths, **writing.options())
        if not messages.quiet:
            _print_written(*written)
    if json_:
        print_json(report_data(solution.report, tables))
    elif not messages.quiet:
        out.print(render(solution, tables))
    return EXIT_ERROR_FINDING if solution.report.worst == "error" else EXIT_OK
