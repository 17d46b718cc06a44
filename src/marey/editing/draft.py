"""The draft of a plan: edits with the bodies and markers that their names mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from marey.anatomy.names import without_subject
from marey.editing.assignment import BodyAssignment
from marey.edits import Edit
from marey.errors import OptionError
from marey.pipeline.stages.subjects import bodies_named
from marey.skeleton import Skeleton


@dataclass(frozen=True, slots=True)
class EditStep:
    """One edit with its number and, once they are looked up, its bodies."""

    number: int
    """Position of the edit, counted from 1; 0 is the root that the options ask for."""

    edit: Edit
    """The edit in the user's names."""

    bodies: tuple[str, ...] = ()
    """Bodies that the edit is about, by the names they were found by."""

    joint: str = ""
    """Joint that the edit is about if it is not a body's, such as the end of a bone."""

    bodies_final: bool = True
    """Whether no later edit changes bodies or frames, so that the edit must fit."""

    def refuse(self, field: str, found: object, needed: object) -> OptionError:
        """Return the error that explains why this edit is not possible."""
        what = f"edit {self.number}: {self.edit.do}, {field}" if self.number else "root"
        return OptionError(what, found=found, needed=needed)

    def joint_index(self, skeleton: Skeleton) -> int:
        """Return the index of the edit's joint in a skeleton.

        Raises:
            OptionError: If it is the root, which is no joint.
        """
        name = skeleton.joint_of(self.bodies[0] if self.bodies else self.joint)
        joint = skeleton.names.index(name) if name in skeleton.names else 0
        if joint == 0:
            found = f"{self.edit.joint}, the root"
            raise self.refuse("joint", found, "a joint that has a parent")
        return joint


@dataclass
class PlanDraft:
    """The state of bodies and names after the edits so far."""

    assignment: BodyAssignment
    anatomical_names: Callable[[], Mapping[str, str]]
    """Names by anatomy of bodies that were found without names, after these edits."""

    given_names: dict[str, str] = field(default_factory=dict)
    """Names that the user gave to bodies and to joints that are not a body's."""

    steps: list[EditStep] = field(default_factory=list)
    """Edits of tree, skeletons and names so far."""

    ground: Edit | None = None

    def shown_names(self) -> dict[str, str]:
        """Return the name that the user sees of every body."""
        anatomical = self.anatomical_names()
        return {
            body: self.given_names.get(body, anatomical.get(body, body))
            for body in self.assignment.names
        }

    def bodies_named(self, name: str) -> list[str]:
        """Return the bodies of a name, with the subject's name in front or without."""
        bodies = self.assignment.names
        # Names by anatomy may need a fit: they are asked for only when needed.
        exact = [body for body in bodies if self.given_names.get(body, body) == name]
        if exact:
            return exact
        shown = [*self.shown_names().values()]
        return [bodies[i] for i in bodies_named(name, (), shown)]

    def find_body(self, step: EditStep, name: str) -> str:
        """Return the only body of a name.

        Raises:
            OptionError: If no body, or more than one, has this name.
        """
        found = self.bodies_named(name)
        if len(found) != 1:
            count = f"{len(found)} bodies" if found else "no body"
            needed = f"one of {', '.join(self.shown_names().values())}"
            raise step.refuse("body", f"{name}, the name of {count}", needed)
        return found[0]

    def find_end_joint(self, step: EditStep, name: str) -> str:
        """Return the first name of a joint that is not a body's.

        The end of a bone has the name that its body has after the edits so far.

        Raises:
            OptionError: If the name is one that a body gave up.
        """
        given = self.given_names.items()
        first = next((first for first, shown in given if shown == name), name)
        if first == name and name.endswith("_end"):
            first = self._first_name_of_end(name)
        bodies = self.assignment.names
        if first in {*bodies, *map(without_subject, bodies)}:
            self.find_body(step, name)
        return first

    def _first_name_of_end(self, name: str) -> str:
        """Return the first name of the end of a body's bone, or the name as it is."""
        bodies = self.bodies_named(name.removesuffix("_end"))
        if len(bodies) != 1 or bodies[0] not in self.given_names:
            return name
        first = f"{self.anatomical_names().get(bodies[0], bodies[0])}_end"
        return name if first in self.given_names else first

    def find_marker(self, step: EditStep, label: str) -> str:
        """Return the full label of a marker.

        Raises:
            OptionError: If no marker, or more than one, has this label.
        """
        takes = self.assignment.takes
        labels = dict.fromkeys(full for take in takes for full in take.labels)
        bare = [full for full in labels if without_subject(full) == label]
        found = [label] if label in labels else bare
        is_repeated = any(
            take.labels.count(full) > 1 for full in found for take in takes
        )
        if len(found) != 1 or is_repeated:
            needed = f"one of {', '.join(labels) or 'the markers (there are none)'}"
            count = "several markers" if found else "no marker"
            raise step.refuse("marker", f"{label}, the name of {count}", needed)
        return found[0]

    def find_sensor(self, step: EditStep, name: str) -> str:
        """Return the name of a sensor that a take has.

        Raises:
            OptionError: If no sensor has this name.
        """
        takes = self.assignment.takes
        names = dict.fromkeys(sensor for take in takes for sensor in take.sensors)
        if name not in names:
            needed = f"one of {', '.join(names) or 'the sensors (there are none)'}"
            raise step.refuse("sensor", f"{name}, the name of no sensor", needed)
        return name

    def find_body_of_sensor(self, step: EditStep, sensor: str) -> str:
        """Return the body that a sensor is attached to.

        Raises:
            OptionError: If there is no such sensor, or it is on no body.
        """
        body = self.assignment.body_of_sensor(self.find_sensor(step, sensor))
        if not body:
            needed = "a sensor that sits on a body"
            raise step.refuse("sensor", f"{sensor}, on no body", needed)
        return body

    def give_name(self, step: EditStep, body: str, name: str) -> None:
        """Give a body a name, which no other body may have."""
        if name == self.shown_names()[body]:
            return
        self.check_unused(step, name)
        self.given_names[body] = name
        if name in (body, self.anatomical_names().get(body)):
            del self.given_names[body]

    def check_unused(self, step: EditStep, name: str) -> None:
        """Raise an OptionError if a body or joint has this name."""
        if name in (*self.shown_names().values(), *self.given_names.values()):
            needed = "a name that is not taken"
            raise step.refuse("name", f"{name}, which another has", needed)
