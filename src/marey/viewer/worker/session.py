"""What the worker does: open a recording, solve it, try edits, keep them."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from marey.editing import EditSession, Trial
from marey.edits import Edit, parse_edit, parse_edits
from marey.errors import DataError, FormatError, MareyError, OptionError
from marey.io import load, read, read_motion, recognise
from marey.io.formats.html import MOST_DRAWN, Beside, scene_of
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take
from marey.viewer.worker.edits_file import keep_edits, kept_edits
from marey.viewer.worker.exact_values import series_of

Thing = Solution | Motion | Take
Tell = Callable[[dict[str, Any], bytes], None]
Answer = tuple[dict[str, Any], bytes]
Records = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What is open, at one moment: nothing in it changes."""

    title: str = ""
    thing: Thing | None = None
    """What the file held."""

    desk: EditSession | None = None
    """Where it is edited, if it can be."""

    unsolved: str = ""
    """Why it cannot."""

    saved: Path | None = None
    """Where its edits are kept."""

    @property
    def shown(self) -> Thing | None:
        """The answer as it is on the desk, or the thing itself."""
        return self.desk.solution if self.desk else self.thing

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that were kept."""
        return self.desk.edits if self.desk else ()

    def scene(self, drawn: int, trial: Trial | None = None) -> bytes:
        """Return the scene, or that of an edit being tried."""
        edits = (*self.edits, trial.edit) if trial else self.edits
        beside = Beside(
            title=self.title,
            unsolved=self.unsolved,
            editable=self.desk is not None,
            edits=[edit.record() for edit in edits],
            drawn=drawn,
        )
        return scene_of(trial.solution if trial else self.shown, beside)


class Session:
    """One thing on the desk: what is shown, the edits in it and the one being tried.

    Args:
        tell: Called with word of what goes on: each stage as it begins, and the scene
            of the markers while they are being solved.
        drawn: Frames times markers, sensors and joints that are drawn at most.
    """

    def __init__(self, tell: Tell, *, drawn: int = MOST_DRAWN) -> None:
        self._tell = tell
        self._drawn = drawn
        self._now = Opened()
        self._trial: Trial | None = None

    def do(self, request: Mapping[str, Any]) -> Answer:
        """Return the answer to a request: plain values and a scene.

        Raises:
            MareyError: If it cannot be done; nothing is changed then.
        """
        kind = request["do"]
        if kind == "open":
            edits = Path(request["edits"]) if request["edits"] else None
            known = request.get("known")
            return self._open(Path(request["path"]), request["title"], edits, known)
        if kind == "series":
            return {}, self._series(request["of"])
        if kind == "try":
            return self._try(request["edit"])
        return self._drop() if kind == "drop" else self._change(kind)

    def _open(
        self, path: Path, title: str, saved: Path | None, known: Records | None
    ) -> Answer:
        """Put what a file holds on the desk; what was there stays if that fails.

        The edits are those that are known, or else those of their file.
        """
        self._tell({"stage": "read"}, b"")
        thing = _read(path)
        if isinstance(thing, Take) and known is None:
            why = "being solved"
            waiting = Beside(title=title, unsolved=why, drawn=self._drawn)
            self._tell({"scene": True}, scene_of(thing, waiting))
        desk, unsolved, note = None, "", ""
        if not isinstance(thing, Motion):
            desk, unsolved, note = self._laid_out(thing, saved, known)
        opened = Opened(title, thing, desk, unsolved, saved)
        scene = opened.scene(self._drawn)
        self._now, self._trial = opened, None
        return self._answer(scene, note)

    def _laid_out(
        self, thing: Solution | Take, saved: Path | None, known: Records | None
    ) -> tuple[EditSession | None, str, str]:
        """Return the desk; why there is none; and why it is without its edits."""
        note = ""
        try:
            edits = kept_edits(saved) if known is None else parse_edits(known)
            if edits is not None:
                return self._with_edits(thing, edits), "", ""
        except (FormatError, OptionError, DataError) as error:
            note = f"opened without its edits: {error}"
        try:
            return EditSession(thing, progress=self._stage), "", note
        except MareyError as error:
            return None, str(error), note

    def _with_edits(
        self, thing: Solution | Take, edits: tuple[Edit, ...]
    ) -> EditSession:
        desk = EditSession(thing, edits=edits, progress=self._stage)
        # No edits at all are taken for those that an answer came with.
        while not edits and desk.can_undo:
            desk.undo()
        return desk

    def _stage(self, name: str) -> None:
        self._tell({"stage": name}, b"")

    def _answer(self, scene: bytes, note: str = "") -> Answer:
        """Return the state, a scene, and what there is to tell the user."""
        return {**self._state(), "note": note}, scene

    def _state(self) -> dict[str, Any]:
        now, desk = self._now, self._now.desk
        return {
            "title": now.title,
            "edits": [{"text": str(edit), **edit.record()} for edit in now.edits],
            "can_undo": desk.can_undo if desk else False,
            "can_redo": desk.can_redo if desk else False,
            "trial": self._trial is not None,
            "saved": now.saved.name if now.saved else "",
        }

    def _series(self, of: Mapping[str, int]) -> bytes:
        thing = self._now.shown
        if thing is None:
            raise DataError("series", found="nothing open", needed="a recording")
        return series_of(thing, **of)

    def _try(self, record: Mapping[str, Any]) -> Answer:
        trial = self._needed_desk().attempt(parse_edit(record))
        scene = self._now.scene(self._drawn, trial)
        self._trial = trial
        return _told(trial), scene

    def _drop(self) -> Answer:
        self._needed_desk()
        self._trial = None
        return self._answer(b"")

    def _change(self, kind: str) -> Answer:
        """Change a copy of the desk, which is the desk once its file is written."""
        desk, note = copy(self._needed_desk()), ""
        if kind == "undo":
            desk.undo()
        elif kind == "redo":
            desk.redo()
        elif self._trial is not None:
            desk.keep(self._trial)
        else:
            raise OptionError("keep", found="no edit being tried", needed="one")
        now = replace(self._now, desk=desk)
        scene = now.scene(self._drawn)
        if now.saved is not None:
            note = keep_edits(now.saved, self._now.edits, now.edits)
        self._now, self._trial = now, None
        return self._answer(scene, note)

    def _needed_desk(self) -> EditSession:
        now = self._now
        if now.desk is None:
            raise DataError(
                "edit",
                found=now.unsolved or "a motion, which is shown as it is",
                needed="a solution",
            )
        return now.desk


def _read(path: Path) -> Solution | Motion | Take:
    """Return what a file holds: a motion as it is, of a recording the take."""
    found = recognise(path)
    if found.name == "npz":
        try:
            thing = load(path)
        except FormatError:  # An archive of somebody else's, or what reading will say.
            return read(path)
        return thing if isinstance(thing, Solution | Motion | Take) else read(path)
    return read_motion(path) if found.read_motion else read(path)


def _told(trial: Trial) -> dict[str, Any]:
    return {
        "before": asdict(trial.before),
        "after": asdict(trial.after),
        "changes": [asdict(change) for change in trial.changes],
        "findings": [asdict(finding) for finding in trial.findings],
        "text": trial.text,
    }
