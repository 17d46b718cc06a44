"""The whole answer: what every stage found, for every subject."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.motion import Motion
from marey.report import Report
from marey.skeleton import Skeleton
from marey.take import Take
from marey.tree import Tree

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One performer, animal or prop: its skeleton and its motion in every take."""

    name: str
    skeleton: Skeleton
    motions: tuple[Motion, ...]
    """One motion per take, in the order of `Solution.takes`."""

    def __repr__(self) -> str:
        return f"Subject({self.name}: {self.skeleton}, motions: {len(self.motions)})"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Solution:
    """What `marey.solve` returns; every stage's result is kept."""

    takes: tuple[Take, ...]
    bodies: tuple[Bodies, ...]
    """The bodies of each take."""

    joints: JointFits
    tree: Tree
    subjects: tuple[Subject, ...]
    report: Report = field(default_factory=Report)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every option as it was resolved."""

    def __repr__(self) -> str:
        names = ", ".join(subject.name for subject in self.subjects) or "no subject"
        return f"Solution({names}; takes: {len(self.takes)}; {self.report!r})"

    def _repr_html_(self) -> str:
        """Return the report for a notebook, headed by what was solved."""
        return f"<p><b>{escape(repr(self))}</b></p>{self.report._repr_html_()}"

    @property
    def take(self) -> Take:
        """The take, when there is exactly one."""
        return _only(self.takes, "take", self._take_names(), "takes[0]")

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton, when there is exactly one subject."""
        return self._subject().skeleton

    @property
    def motion(self) -> Motion:
        """The motion, when there is exactly one subject in exactly one take."""
        subject = self._subject()
        choice = "subjects[0].motions[0]"
        return _only(subject.motions, "motion", self._take_names(), choice)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the poses of all joints in the world as one table.

        Rows are take and time in seconds; columns are subject, joint and component: x,
        y, z in metres and the quaternion qw, qx, qy, qz.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        from marey.tables import solution_to_pandas  # pandas is slow to import

        return solution_to_pandas(self)

    def _subject(self) -> Subject:
        names = tuple(subject.name for subject in self.subjects)
        return _only(self.subjects, "subject", names, "subjects[0]")

    def _take_names(self) -> tuple[str, ...]:
        paths = (take.source.path for take in self.takes)
        return tuple(path or f"take {i}" for i, path in enumerate(paths))


def _only(items: tuple[T, ...], what: str, names: tuple[str, ...], choice: str) -> T:
    if len(items) != 1:
        raise DataError(
            f"the only {what} of the solution",
            found=f"{len(items)}: {', '.join(names)}" if items else "none",
            needed=f"exactly one; choose, such as solution.{choice}",
        )
    return items[0]
