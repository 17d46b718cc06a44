"""Turn motion capture into an articulated skeleton and its motion.

Names are imported when first used, so that `import marey` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marey import io as io
    from marey import metrics as metrics
    from marey import plot as plot
    from marey import synth as synth
    from marey import virtual as virtual
    from marey.bodies import Bodies as Bodies
    from marey.calibration import CalibrateOptions as CalibrateOptions
    from marey.calibration import Calibration as Calibration
    from marey.calibration import calibrate as calibrate
    from marey.cleaning import CleanOptions as CleanOptions
    from marey.cleaning import clean as clean
    from marey.cleaning import find_sensor_slips as find_sensor_slips
    from marey.cleaning import rescale as rescale
    from marey.editing import EditSession as EditSession
    from marey.editing import solve as solve
    from marey.edits import Edit as Edit
    from marey.edits import read_edits as read_edits
    from marey.edits import write_edits as write_edits
    from marey.errors import ConvergenceError as ConvergenceError
    from marey.errors import DataError as DataError
    from marey.errors import FormatError as FormatError
    from marey.errors import MareyError as MareyError
    from marey.errors import MissingExtraError as MissingExtraError
    from marey.errors import OptionError as OptionError
    from marey.errors import OutputError as OutputError
    from marey.io import load as load
    from marey.io import read as read
    from marey.io import read_motion as read_motion
    from marey.io import read_skeleton as read_skeleton
    from marey.io import write as write
    from marey.io.registry import formats as formats
    from marey.joints import JointFits as JointFits
    from marey.joints import fit_joints as fit_joints
    from marey.joints.streaming import JointAccumulator as JointAccumulator
    from marey.motion import Contact as Contact
    from marey.motion import Motion as Motion
    from marey.numerics import geometry as geometry
    from marey.pipeline import SolveOptions as SolveOptions
    from marey.pose import solve_pose as solve_pose
    from marey.report import Finding as Finding
    from marey.report import Report as Report
    from marey.rig import build_skeleton as build_skeleton
    from marey.rig import build_skeletons as build_skeletons
    from marey.segmentation import segment as segment
    from marey.skeleton import Skeleton as Skeleton
    from marey.solution import Solution as Solution
    from marey.solution import Subject as Subject
    from marey.take import Analog as Analog
    from marey.take import Event as Event
    from marey.take import Source as Source
    from marey.take import Take as Take
    from marey.topology import infer_tree as infer_tree
    from marey.tree import Tree as Tree
    from marey.viewer import view as view

_HOME = {
    "marey.bodies": ("Bodies",),
    "marey.calibration": ("CalibrateOptions", "Calibration", "calibrate"),
    "marey.cleaning": ("CleanOptions", "clean", "find_sensor_slips", "rescale"),
    "marey.editing": ("EditSession", "solve"),
    "marey.edits": ("Edit", "read_edits", "write_edits"),
    "marey.errors": (
        "ConvergenceError",
        "DataError",
        "FormatError",
        "MareyError",
        "MissingExtraError",
        "OptionError",
        "OutputError",
    ),
    "marey.io.registry": ("formats",),
    "marey.io": ("load", "read", "read_motion", "read_skeleton", "write"),
    "marey.joints": ("JointFits", "fit_joints"),
    "marey.joints.streaming": ("JointAccumulator",),
    "marey.motion": ("Contact", "Motion"),
    "marey.pose": ("solve_pose",),
    "marey.report": ("Finding", "Report"),
    "marey.rig": ("build_skeleton", "build_skeletons"),
    "marey.segmentation": ("segment",),
    "marey.skeleton": ("Skeleton",),
    "marey.solution": ("Solution", "Subject"),
    "marey.pipeline": ("SolveOptions",),
    "marey.take": ("Analog", "Event", "Source", "Take"),
    "marey.topology": ("infer_tree",),
    "marey.tree": ("Tree",),
    "marey.viewer": ("view",),
}
_MODULES = {
    "geometry": "marey.numerics.geometry",
    "io": "marey.io",
    "metrics": "marey.metrics",
    "plot": "marey.plot",
    "synth": "marey.synth",
    "virtual": "marey.virtual",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_MODULES])
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'marey' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
