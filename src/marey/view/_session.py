"""What the worker does: open a recording, solve it, try edits, keep them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from marey.edits import Edit, edit_of, read_edits, write_edits
from marey.errors import DataError, FormatError, MareyError, OptionError
from marey.io import load, read, read_motion, recognise
from marey.io.html import MOST_DRAWN, Beside, scene_of
from marey.motion import Motion
from marey.solution import Solution
from marey.solve import Desk, Trial
from marey.take import Take
from marey.view._series import series_of

Thing = Solution | Motion | Take
Tell = Callable[[dict[str, Any], bytes], None]
Answer = tuple[dict[str, Any], bytes]


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
        self._title = ""
        self._unsolved = ""
        self._thing: Thing | None = None
        self._desk: Desk | None = None
        self._trial: Trial | None = None
        self._saved: Path | None = None

    def do(self, request: Mapping[str, Any]) -> Answer:
        """Return the answer to a request: plain values and a scene.

        Raises:
            MareyError: If it cannot be done; nothing is changed then.
        """
        kind = request["do"]
        if kind == "open":
            edits = Path(request["edits"]) if request["edits"] else None
            return self._open(Path(request["path"]), request["title"], edits)
        if kind == "series":
            return {}, self._series(request["of"])
        if kind == "try":
            return self._try(request["edit"])
        return self._change(kind)

    def _open(self, path: Path, title: str, edits: Path | None) -> Answer:
        """Put what a file holds on the desk; what was there stays if that fails."""
        self._tell({"stage": "read"}, b"")
        thing = _read(path)
        known, notes = _known_edits(edits)
        desk, unsolved = None, ""
        if not isinstance(thing, Motion):
            if isinstance(thing, Take):
                why = "being solved"
                waiting = Beside(title=title, unsolved=why, drawn=self._drawn)
                self._tell({"scene": True}, scene_of(thing, waiting))
            try:
                desk = self._laid_out(thing, known, notes)
            except MareyError as error:
                unsolved = str(error)
        if notes and edits is not None:
            edits = _free(edits)
        self._thing, self._desk, self._trial = thing, desk, None
        self._title, self._unsolved, self._saved = title, unsolved, edits
        note = f"opened without its edits: {notes[0]}" if notes else ""
        return {**self._state(), "note": note}, self._scene()

    def _laid_out(
        self, thing: Solution | Take, known: tuple[Edit, ...], notes: list[str]
    ) -> Desk:
        """Return the desk with the edits, or without where they do not fit."""
        if known:
            try:
                return Desk(thing, edits=known, progress=self._stage)
            except (OptionError, DataError) as error:
                notes.append(str(error))
        return Desk(thing, progress=self._stage)

    def _stage(self, name: str) -> None:
        self._tell({"stage": name}, b"")

    def _shown(self) -> Thing | None:
        return self._desk.solution if self._desk else self._thing

    def _scene(self) -> bytes:
        desk = self._desk
        beside = Beside(
            title=self._title,
            unsolved=self._unsolved,
            editable=desk is not None,
            edits=[edit.record() for edit in desk.edits] if desk else (),
            drawn=self._drawn,
        )
        return scene_of(self._shown(), beside)

    def _state(self) -> dict[str, Any]:
        desk = self._desk
        return {
            "title": self._title,
            "edits": [{"text": str(e), **e.record()} for e in desk.edits]
            if desk
            else [],
            "can_undo": desk.can_undo if desk else False,
            "can_redo": desk.can_redo if desk else False,
            "trial": self._trial is not None,
            "saved": self._saved.name if self._saved else "",
        }

    def _series(self, of: Mapping[str, int]) -> bytes:
        thing = self._shown()
        if thing is None:
            raise DataError("series", found="nothing open", needed="a recording")
        return series_of(thing, **of)

    def _try(self, record: Mapping[str, Any]) -> Answer:
        desk = self._needed_desk()
        trial = desk.attempt(edit_of(record))
        self._trial = trial
        beside = Beside(
            title=self._title,
            editable=True,
            edits=[edit.record() for edit in (*desk.edits, trial.edit)],
            drawn=self._drawn,
        )
        return _told(trial), scene_of(trial.solution, beside)

    def _change(self, kind: str) -> Answer:
        desk = self._needed_desk()
        if kind == "keep":
            if self._trial is None:
                raise OptionError("keep", found="no edit being tried", needed="one")
            desk.keep(self._trial)
        elif kind == "undo":
            desk.undo()
        elif kind == "redo":
            desk.redo()
        self._trial = None
        if kind == "drop":
            return self._state(), b""
        if self._saved is not None:
            write_edits(desk.edits, self._saved, overwrite=True)
        return self._state(), self._scene()

    def _needed_desk(self) -> Desk:
        if self._desk is None:
            raise DataError(
                "edit",
                found=self._unsolved or "a motion, which is shown as it is",
                needed="a solution",
            )
        return self._desk


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


def _known_edits(path: Path | None) -> tuple[tuple[Edit, ...], list[str]]:
    """Return the edits of a file, and what is wrong with it; none if there is none."""
    if path is None or not path.exists():
        return (), []
    try:
        return read_edits(path), []
    except (FormatError, OptionError) as error:
        return (), [str(error)]


def _told(trial: Trial) -> dict[str, Any]:
    return {
        "before": asdict(trial.before),
        "after": asdict(trial.after),
        "changes": [asdict(change) for change in trial.changes],
        "findings": [asdict(finding) for finding in trial.findings],
        "text": trial.text,
    }


def _free(path: Path) -> Path:
    """Return a name beside a file of edits that no file has: that one is kept."""
    stem = path.name.removesuffix(".edits.toml")
    number = 2
    while (free := path.with_name(f"{stem}-{number}.edits.toml")).exists():
        number += 1
    return free
