"""Edits gathered: what they ask of takes, bodies, tree, figures and names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from marey.bodies import Bodies
from marey.editing.assignment import Layout, layout_of
from marey.edits import Edit
from marey.errors import OptionError
from marey.rig import is_nameless

BODIES = ("move-marker", "merge", "split")
TREE = ("cut", "join")
FIGURE = ("reroot", "kind", "place-joint", "place-marker")


@dataclass(frozen=True, slots=True)
class Step:
    """An edit of the tree or of a figure; its bodies by the names inside."""

    number: int
    """Which edit it is, counted from 1; 0 is the root that the options ask for."""

    edit: Edit
    """As the user gave it, in the user's names."""

    bodies: tuple[str, ...] = ()
    """The bodies it is about; none for a joint that is no body's."""

    joint: str = ""
    """That joint."""

    firm: bool = True
    """Whether it must still fit: bodies or takes did not change after it."""

    def refused(self, field: str, found: object, needed: object) -> OptionError:
        """Return the error that says why this edit cannot be."""
        return refused(self.number, self.edit, field, found, needed)


def refused(
    number: int, edit: Edit, field: str, found: object, needed: object
) -> OptionError:
    """Return the error that says why an edit cannot be."""
    what = f"edit {number}: {edit.do}, {field}" if number else "root"
    return OptionError(what, found=found, needed=needed)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All edits, sorted by what they concern.

    Inside, a body keeps the name it was found by, so that a person whose hips are
    called otherwise is calibrated as a person all the same; the names that users gave
    are put on in the end.
    """

    layout: Layout
    found: Layout
    """The layout before all edits."""

    tree: tuple[Step, ...]
    """Steps of the tree and, among them, those of figures, in order."""

    names: Mapping[str, str]
    """What bodies, and joints that are no body's, are called by the user."""

    ground: Edit | None
    """Where the user says the ground is."""

    @property
    def as_found(self) -> bool:
        """Whether bodies and tree are left as they were found."""
        hung = any(step.edit.do in TREE for step in self.tree)
        return not hung and self.layout.key == self.found.key

    @property
    def fit_key(self) -> tuple[object, ...]:
        """What bodies, joints and tree follow from."""
        hung = (s for s in self.tree if s.edit.do in TREE)
        return self.layout.key, tuple((s.edit.do, s.bodies) for s in hung)


@dataclass
class _Draft:
    """A plan in the making."""

    layout: Layout
    fixed: str
    """Why bodies cannot be changed; "" if they can."""

    looks: Callable[[], Mapping[str, str]]
    """What bodies without names are called by their looks, as they are at this turn."""

    names: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    ground: Edit | None = None

    def shown(self) -> dict[str, str]:
        """Return what every body is called at this turn."""
        looks = self.looks()
        return {
            body: self.names.get(body, looks.get(body, body))
            for body in self.layout.names
        }

    def body(self, number: int, edit: Edit, name: str) -> str:
        """Return the body that the user means by a name."""
        found = self.known(name)
        if len(found) != 1:
            what = "no body" if not found else f"{len(found)} bodies"
            told = f"{name}, the name of {what}"
            needed = f"one of {', '.join(self.shown().values())}"
            raise refused(number, edit, "body", told, needed)
        return found[0]

    def inside(self, number: int, edit: Edit, name: str) -> str:
        """Return what a joint that is no body's was called before it was renamed."""
        inside = next((k for k, shown in self.names.items() if shown == name), name)
        bodies = {body.rpartition(":")[2] for body in self.layout.names}
        if inside in {*self.layout.names, *bodies}:
            # A body that has another name by now.
            self.body(number, edit, name)
        return inside

    def known(self, name: str) -> list[str]:
        """Return the bodies of a name, with the subject's name or without."""
        exact = [b for b in self.layout.names if self.names.get(b, b) == name]
        if exact:
            return exact
        shown = self.shown()
        exact = [body for body, called in shown.items() if called == name]
        bare = [b for b, called in shown.items() if called.rpartition(":")[2] == name]
        return exact or bare

    def marker(self, number: int, edit: Edit, label: str) -> str:
        """Return the full label that the user means."""
        labels = dict.fromkeys(x for worn in self.layout.worn for x in worn.labels)
        bare = [x for x in labels if x.rpartition(":")[2] == label]
        found = [label] if label in labels else bare
        twice = any(
            worn.labels.count(x) > 1 for x in found for worn in self.layout.worn
        )
        if len(found) != 1 or twice:
            needed = f"one of {', '.join(labels) or 'the markers (there are none)'}"
            what = "several markers" if found else "no marker"
            told = f"{label}, the name of {what}"
            raise refused(number, edit, "marker", told, needed)
        return found[0]


def planned(
    edits: Sequence[Edit],
    takes: Sequence[Bodies],
    parents: Mapping[str, str],
    *,
    first: int = 1,
    known: bool = False,
    looks: Callable[[int], Mapping[str, str]],
) -> Plan:
    """Return what edits ask for.

    Args:
        edits: In their order.
        takes: The bodies as they were found, in each take.
        parents: Parent of each of them by name, where that is known beforehand.
        first: Number of the first edit; 0 where the options ask for a root.
        known: Whether the performer is known, and not to be changed.
        looks: What bodies are called by their looks after so many edits, of those that
            were found without names.

    Raises:
        OptionError: If an edit names what is not there, or asks what cannot be.
    """
    found = layout_of(takes, parents)
    fixed = _why_fixed(takes[0], known=known)
    draft = _Draft(found, fixed, partial(looks, 0))
    last = max((n for n, e in enumerate(edits) if e.do in (*BODIES, "bad")), default=-1)
    for index, edit in enumerate(edits):
        number = first + index
        if edit.do in BODIES and draft.fixed:
            raise refused(number, edit, "bodies", draft.fixed, "bodies of markers")
        if known and edit.do in (*TREE, "reroot"):
            needed = "no edits of its tree: change the skeleton that was given"
            raise refused(number, edit, "bodies", "a performer that is known", needed)
        draft.looks = partial(looks, index)
        DO[edit.do](draft, number, edit, index > last)
    layout = draft.layout.beside(found)
    if layout.names == found.names and layout.members == found.members:
        layout = found
    return Plan(layout, found, tuple(draft.steps), dict(draft.names), draft.ground)


def _why_fixed(bodies: Bodies, *, known: bool) -> str:
    if known:
        return "a performer that is known, whose markers the skeleton tells"
    if not bodies.shared.any():
        return "bodies that are sensors"
    return "points that are joints" if bodies.keypoints else ""


def _move_marker(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    label = draft.marker(number, edit, edit.marker)
    to = draft.body(number, edit, edit.to) if edit.to else ""
    home = draft.layout.body_of(label)
    if home == to:
        told = f"{label} on {draft.shown().get(to, 'no body')} already"
        raise refused(number, edit, "to", told, "another body")
    if home and draft.layout.markers_of(home) == [label]:
        told = f"{label}, the last marker of {draft.shown()[home]}"
        needed = f"{draft.shown()[home]} merged with another body instead"
        raise refused(number, edit, "marker", told, needed)
    draft.layout = draft.layout.moved([label], to)


def _merge(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    a, b = (draft.body(number, edit, name) for name in edit.bodies)
    if len(draft.layout.names) < 3:
        told = "two bodies in all"
        needed = "one body more: a single body has no joints"
        raise refused(number, edit, "bodies", told, needed)
    draft.layout = draft.layout.merged(a, b)
    draft.names.pop(b, None)
    if edit.name:
        _call(draft, number, edit, a, edit.name)
    draft.steps = [
        replace(step, bodies=tuple(a if x == b else x for x in step.bodies))
        for step in draft.steps
    ]
    draft.steps = [s for s in draft.steps if len(set(s.bodies)) == len(s.bodies)]


def _split(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    body = draft.body(number, edit, edit.body)
    labels = [draft.marker(number, edit, label) for label in edit.markers]
    mine = draft.layout.markers_of(body)
    strange = [label for label in labels if label not in mine]
    if strange or len(set(labels)) >= len(mine):
        told = f"{strange[0]}, on another body" if strange else "all its markers"
        needed = f"some of {', '.join(mine)}, not all"
        raise refused(number, edit, "markers", told, needed)
    wanted = "body" if is_nameless(body) else edit.name or body
    inside = _free(wanted, (*draft.layout.names, *draft.names.values()))
    if edit.name and edit.name != inside:
        _check_free(draft, number, edit, edit.name)
        draft.names[inside] = edit.name
    draft.layout = draft.layout.with_body(inside, labels, body)


def _free(name: str, taken: Sequence[str]) -> str:
    """Return a name that is not taken: itself, or with a number behind it."""
    number, free = 1, name
    while free in taken or free == "body":
        number += 1
        free = f"{name}{number}"
    return free


def _rename(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    found = draft.known(edit.name)
    if len(found) == 1:
        _call(draft, number, edit, found[0], edit.to)
        return
    if found:
        draft.body(number, edit, edit.name)
    # A joint that is no body's; whether it is there shows when the figure is.
    inside = draft.inside(number, edit, edit.name)
    _check_free(draft, number, edit, edit.to)
    draft.names[inside] = edit.to
    draft.steps.append(Step(number, edit, (), inside, firm))


def _call(draft: _Draft, number: int, edit: Edit, body: str, name: str) -> None:
    if name == draft.shown()[body]:
        return
    _check_free(draft, number, edit, name)
    draft.names[body] = name
    if name in (body, draft.looks().get(body)):
        del draft.names[body]


def _check_free(draft: _Draft, number: int, edit: Edit, name: str) -> None:
    if name in (*draft.shown().values(), *draft.names.values()):
        told = f"{name}, which another has"
        raise refused(number, edit, "name", told, "a name that is not taken")


def _on_tree(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    named = edit.bodies or (edit.body,)
    bodies = tuple(draft.body(number, edit, name) for name in named)
    if len(set(bodies)) != len(bodies):
        needed = "the names of two different bodies"
        raise refused(number, edit, "bodies", list(named), needed)
    draft.steps.append(Step(number, edit, bodies, firm=firm))


def _on_joint(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    found = draft.known(edit.joint)
    if len(found) > 1:
        draft.body(number, edit, edit.joint)
    inside = "" if found else draft.inside(number, edit, edit.joint)
    draft.steps.append(Step(number, edit, tuple(found), inside, firm))


def _place_marker(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    label = draft.marker(number, edit, edit.marker)
    home = draft.layout.body_of(label)
    if not home:
        told = f"{label}, on no body"
        raise refused(number, edit, "marker", told, "a marker that sits on a body")
    whole = replace(edit, marker=label)
    draft.steps.append(Step(number, whole, (home,), firm=firm))


def _ground(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    draft.ground = edit


def _bad(draft: _Draft, number: int, edit: Edit, firm: bool) -> None:
    """Takes were blanked before bodies were found in them."""


DO = {
    "move-marker": _move_marker,
    "merge": _merge,
    "split": _split,
    "rename": _rename,
    **dict.fromkeys((*TREE, "reroot"), _on_tree),
    "kind": _on_joint,
    "place-joint": _on_joint,
    "place-marker": _place_marker,
    "ground": _ground,
    "bad": _bad,
}
