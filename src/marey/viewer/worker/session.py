"""The requests that the worker answers: open a file, try an edit, keep it, undo it."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from marey.editing import EditSession, Trial
from marey.edits import Edit, parse_edit, parse_edits
from marey.errors import DataError, FormatError, MareyError, OptionError
from marey.io import load, read, read_motion, recognise, write
from marey.io.formats.html import MAX_DRAWN_ITEMS, SceneOptions, encode_scene
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take
from marey.viewer.server.files import sanitize_file_name
from marey.viewer.server.protocol import PageState
from marey.viewer.worker.edits_file import read_saved_edits, save_edits
from marey.viewer.worker.exact_values import encode_exact_values

FileContent = Solution | Motion | Take
SendProgress = Callable[[dict[str, Any], bytes], None]
Answer = tuple[dict[str, Any], bytes]
EditRecords = Iterable[Mapping[str, Any]]
NO_OVERRIDES: Mapping[str, Any] = MappingProxyType({})

GENERATED_HEIGHT_M = 1.75
"""Height of the synthetic performer, in metres."""

GENERATED_RECORDING: Mapping[str, Any] = {
    "seconds": 5.0,
    "rate": 100.0,
    "markers": "set53",
    "noise": 1e-3,
    "gaps": 0.05,
    "seed": 1,
}
"""Recording of the synthetic performer: 1 mm noise, 5 % missing."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenFile:
    """The open file with its edits; immutable, so a failed change has no effect."""

    title: str = ""
    content: FileContent | None = None
    """The content of the file, without edits."""

    edit_session: EditSession | None = None
    """The solution with its edits; None = the content cannot be edited."""

    unsolved: str = ""
    """Why the recording could not be solved."""

    edits_path: Path | None = None
    """Edits file; None = edits are not saved."""

    @property
    def edited(self) -> FileContent | None:
        """The solution with all edits, or the content if it cannot be edited."""
        return self.edit_session.solution if self.edit_session else self.content

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All edits, without the one on trial."""
        return self.edit_session.edits if self.edit_session else ()

    def scene(self, max_drawn: int, trial: Trial | None = None) -> bytes:
        """Return the scene, with the edit on trial if one is given."""
        edits = (*self.edits, trial.edit) if trial else self.edits
        beside = SceneOptions(
            title=self.title,
            unsolved=self.unsolved,
            editable=self.edit_session is not None,
            edits=[edit.record() for edit in edits],
            max_drawn_items=max_drawn,
        )
        return encode_scene(trial.solution if trial else self.edited, beside)


class WorkerSession:
    """The open file of the worker, its edits and the edit on trial.

    Args:
        send_progress: Called with each stage as it begins, and with a scene of the
            markers before they are solved.
        max_drawn: Largest number of drawn values: frames times markers, sensors and
            joints.
    """

    def __init__(
        self, send_progress: SendProgress, *, max_drawn: int = MAX_DRAWN_ITEMS
    ) -> None:
        self.open_file = OpenFile()
        self._send_progress = send_progress
        self._max_drawn = max_drawn
        self._trial: Trial | None = None

    def handle(self, request: Mapping[str, Any]) -> Answer:
        """Return the answer to a request: a JSON object, and a scene or values.

        Raises:
            MareyError: If the request is impossible; the session is then unchanged.
        """
        handlers: dict[str, Callable[..., Answer]] = {
            "open": self._open,
            "generate": self._generate,
            "export": self._export,
            "series": self._exact_values,
            "try": self._try_edit,
            "drop": self._drop_trial,
        }
        kind = request["do"]
        handler = handlers.get(kind, partial(self._change_edits, kind))
        return handler(**{k: v for k, v in request.items() if k not in ("id", "do")})

    def _open(
        self,
        path: str,
        title: str,
        edits_path: str,
        edit_records: EditRecords | None = None,
        reading: Mapping[str, Any] = NO_OVERRIDES,
    ) -> Answer:
        """Open a file; if that fails, the previous file stays open.

        The edits are `edit_records`; if None, those of the edits file.
        """
        self._send_stage("read")
        content = _read_content(Path(path), **reading)
        saved_path = Path(edits_path) if edits_path else None
        opened, note = OpenFile(title, content, edits_path=saved_path), ""
        if isinstance(content, Take) and edit_records is None:
            preview = replace(opened, unsolved="being solved")
            self._send_progress({"scene": True}, preview.scene(self._max_drawn))
        if not isinstance(content, Motion):
            edit_session, unsolved, note = self._start_editing(
                content, saved_path, edit_records
            )
            opened = replace(opened, edit_session=edit_session, unsolved=unsolved)
        scene = opened.scene(self._max_drawn)
        self.open_file, self._trial = opened, None
        return self._state_answer(scene, note)

    def _start_editing(
        self,
        content: Solution | Take,
        edits_path: Path | None,
        records: EditRecords | None,
    ) -> tuple[EditSession | None, str, str]:
        """Solve a take and apply its edits.

        Returns:
            The edit session, None if the take cannot be solved; why it cannot; and why
            the edits were not applied.
        """
        note = ""
        try:
            edits = (
                read_saved_edits(edits_path)
                if records is None
                else parse_edits(records)
            )
            if edits is not None:
                return self._apply_edits(content, edits), "", ""
        except (FormatError, OptionError, DataError) as error:
            note = f"opened without its edits: {error}"
        try:
            return EditSession(content, progress=self._send_stage), "", note
        except MareyError as error:
            return None, str(error), note

    def _apply_edits(
        self, content: Solution | Take, edits: tuple[Edit, ...]
    ) -> EditSession:
        edit_session = EditSession(content, edits=edits, progress=self._send_stage)
        # Without edits, EditSession keeps those that the solution was saved with. An
        # empty edits file means that all of them were undone.
        while not edits and edit_session.can_undo:
            edit_session.undo()
        return edit_session

    def _send_stage(self, name: str) -> None:
        self._send_progress({"stage": name}, b"")

    def _state_answer(self, scene: bytes, note: str = "") -> Answer:
        """Return the page state with a note for the user, and a scene."""
        return {**asdict(self.page_state()), "note": note}, scene

    def page_state(self) -> PageState:
        """Return title, edits and possible actions, as the page receives them."""
        opened, edit_session = self.open_file, self.open_file.edit_session
        return PageState(
            title=opened.title,
            edits=[{"text": str(edit), **edit.record()} for edit in opened.edits],
            can_undo=edit_session is not None and edit_session.can_undo,
            can_redo=edit_session is not None and edit_session.can_redo,
            trial=self._trial is not None,
            saved=opened.edits_path.name if opened.edits_path else "",
        )

    def _generate(self, path: str) -> Answer:
        """Write the recording of a synthetic performer who walks."""
        from marey.synth import human  # only this request needs it

        self._send_stage("generate")
        performer = human(height=GENERATED_HEIGHT_M, seed=0)
        write(performer.record("walk", **GENERATED_RECORDING), path)
        return {}, b""

    def _export(self, folder: str, suffix: str, content: str) -> Answer:
        """Write the open file with all kept edits in another format.

        Several files, such as ASF and AMC, are put in one ZIP archive.

        Args:
            folder: Empty folder to write to.
            suffix: Suffix of the format.
            content: What a table holds; "" = the format decides.

        Returns:
            The name of the written file, and what the format does not hold.
        """
        edited = self.open_file.edited
        if edited is None:
            raise DataError("export", found="no open file", needed="a recording")
        stem = PurePath(sanitize_file_name(self.open_file.title)).stem
        path = Path(folder) / (stem + suffix)
        findings = write(edited, path, content=content or None)
        written = sorted(Path(folder).iterdir())
        if len(written) > 1:
            path = path.with_suffix(".zip")
            with ZipFile(path, "x", ZIP_DEFLATED) as archive:
                for part in written:
                    archive.write(part, part.name)
        return {"file": path.name, "findings": [str(f.message) for f in findings]}, b""

    def _exact_values(self, indices: Mapping[str, int]) -> Answer:
        content = self.open_file.edited
        if content is None:
            raise DataError("series", found="no open file", needed="a recording")
        return {}, encode_exact_values(content, **indices)

    def _try_edit(self, edit: Mapping[str, Any]) -> Answer:
        trial = self._require_edit_session().attempt(parse_edit(edit))
        scene = self.open_file.scene(self._max_drawn, trial)
        self._trial = trial
        return _trial_summary(trial), scene

    def _drop_trial(self) -> Answer:
        self._require_edit_session()
        self._trial = None
        return self._state_answer(b"")

    def _change_edits(self, kind: str) -> Answer:
        """Keep the edit on trial, undo or redo.

        A copy of the edit session is changed. The copy replaces the session only after
        the edits file is written.
        """
        edit_session, note = copy(self._require_edit_session()), ""
        if kind == "undo":
            edit_session.undo()
        elif kind == "redo":
            edit_session.redo()
        elif self._trial is not None:
            edit_session.keep(self._trial)
        else:
            raise OptionError("keep", found="no edit being tried", needed="one")
        opened = replace(self.open_file, edit_session=edit_session)
        scene = opened.scene(self._max_drawn)
        if opened.edits_path is not None:
            note = save_edits(opened.edits_path, self.open_file.edits, opened.edits)
        self.open_file, self._trial = opened, None
        return self._state_answer(scene, note)

    def _require_edit_session(self) -> EditSession:
        opened = self.open_file
        if opened.edit_session is None:
            raise DataError(
                "edit",
                found=opened.unsolved or "a motion, which cannot be edited",
                needed="a solution",
            )
        return opened.edit_session


def _read_content(path: Path, **reading: Any) -> FileContent:
    """Return the solution, motion or take in a file; a motion if the format has one.

    Args:
        path: The file.
        **reading: Options of `marey.read` that override what the file says. marey's own
            files then count as recordings.
    """
    file_format = recognise(path)
    if file_format.name == "npz" and not reading:
        try:
            content = load(path)
        except FormatError:  # Not an archive of marey's; `read` reports what is wrong.
            return read(path)
        return content if isinstance(content, Solution | Motion | Take) else read(path)
    has_motion = file_format.read_motion and file_format.name != "npz"
    return read_motion(path, **reading) if has_motion else read(path, **reading)


def _trial_summary(trial: Trial) -> dict[str, Any]:
    return {
        "before": asdict(trial.before),
        "after": asdict(trial.after),
        "changes": [asdict(change) for change in trial.changes],
        "findings": [asdict(finding) for finding in trial.findings],
        "text": trial.text,
    }
