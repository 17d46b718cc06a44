"""The HIERARCHY of a BVH: joints, offsets and channels, however it is laid out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from marey.io.file import File
from marey.io.text.numbers import MAX_NUMBER, parse_number

MAX_JOINTS = 20_000
"""Largest number of joints; bounds the work on damaged files."""

TOKEN = re.compile(
    r"(?P<open>\{)|(?P<close>\})"
    r"|(?P<joint>(?:ROOT|JOINT)\b[ \t]*(?P<name>[^{}\n]*))"
    r"|(?P<end>End\b[^{}\n]*)"
    r"|(?P<word>[^\s{}]+)",
    re.IGNORECASE,
)
CHANNELS = {
    f"{axis}{kind}": code + 3 * (kind == "position")
    for kind in ("rotation", "position")
    for code, axis in enumerate("xyz")
}
"""Codes of the channels: 0 to 2 rotate about x y z, 3 to 5 translate along them."""


@dataclass(slots=True)
class BvhJoint:
    """A joint or End Site of the file."""

    name: str
    parent: int
    is_end: bool = False
    offset: tuple[float, ...] | None = None
    channels: list[int] = field(default_factory=list)
    """Codes of its channels in file order."""


@dataclass(slots=True)
class _HierarchyParser:
    """A parser with an explicit stack, which has no recursion limit."""

    file: File
    text: str
    tokens: Iterator[re.Match[str]]
    joints: list[BvhJoint] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    opened: bool = True
    """Whether the opening brace of the last joint was read."""
    n_further: int = 0
    """Numbers after the third one of an OFFSET."""

    def run(self) -> list[BvhJoint]:
        for token in self.tokens:
            kind = token.lastgroup
            if kind == "open":
                self._open(token)
            elif kind == "close":
                self._close(token)
            elif kind in ("joint", "end"):
                self._begin(token, is_end=kind == "end")
            else:
                self._property(token)
        if self.stack or not self.opened or not self.joints:
            self._fail(None, f"{len(self.stack)} more }}", "the end of the hierarchy")
        self.file.note_count(
            "offsets-longer",
            self.n_further,
            "OFFSETs have {} numbers after the third: these are left out; check the "
            "rest pose",
        )
        return self.joints

    def _begin(self, token: re.Match[str], *, is_end: bool) -> None:
        root = token[0][:4].upper() == "ROOT"
        if not self.opened or root != (not self.joints) or root != (not self.stack):
            self._fail(token, "one ROOT, and JOINTs inside its braces", token[0])
        if self.stack and self.joints[self.stack[-1]].is_end:
            self._fail(token, "} of the End Site", token[0])
        if len(self.joints) >= MAX_JOINTS:
            self._fail(token, f"at most {MAX_JOINTS} joints", "more")
        name = "" if is_end else token["name"].strip()
        parent = self.stack[-1] if self.stack else -1
        self.joints.append(BvhJoint(name, parent, is_end))
        self.opened = False

    def _open(self, token: re.Match[str]) -> None:
        if self.opened:
            self._fail(token, "a ROOT, JOINT or End Site before {", "{")
        self.stack.append(len(self.joints) - 1)
        self.opened = True

    def _close(self, token: re.Match[str]) -> None:
        if not self.stack or not self.opened:
            self._fail(token, "{ before }", "}")
        joint = self.joints[self.stack.pop()]
        if joint.offset is None:
            self._fail(token, f"an OFFSET of {joint.name or 'the End Site'!r}", "}")

    def _property(self, token: re.Match[str]) -> None:
        word = token[0].upper()
        if word == "HIERARCHY" and not self.joints:
            return
        joint = self.joints[self.stack[-1]] if self.stack and self.opened else None
        if (
            joint
            and joint.offset
            and not joint.channels
            and parse_number(word) is not None
        ):
            self.n_further += 1
            return
        if joint is None or word not in ("OFFSET", "CHANNELS"):
            self._fail(token, "OFFSET, CHANNELS, JOINT, End Site or a brace", token[0])
        if word == "OFFSET":
            joint.offset = tuple(self._number(token) for _ in range(3))
            return
        count = self._number(token)
        if not 0 <= count <= 64 or joint.channels:
            self._fail(token, "one list of 0 to 64 CHANNELS", f"{count:g}")
        joint.channels = [self._channel(token) for _ in range(int(count))]

    def _number(self, after: re.Match[str]) -> float:
        token = next(self.tokens, None)
        value = parse_number(token[0]) if token else None
        if value is None or abs(value) > MAX_NUMBER:
            self._fail(token or after, f"a number after {after[0]}", token and token[0])
        return value

    def _channel(self, after: re.Match[str]) -> int:
        token = next(self.tokens, None)
        name = token[0].lower() if token else ""
        if name not in CHANNELS:
            self._fail(
                token or after, "a channel such as Zrotation", token and token[0]
            )
        return CHANNELS[name]

    def _fail(
        self, token: re.Match[str] | None, expected: str, found: str | None
    ) -> NoReturn:
        end = token.start() if token else len(self.text)
        line = 1 + self.text.count("\n", 0, end)
        self.file.fail(expected, (found or "the end of the hierarchy")[:80], line=line)


def parse_hierarchy(file: File, text: str) -> list[BvhJoint]:
    """Return the joints and End Sites, parents first, as the file has them.

    Args:
        file: Named in errors.
        text: Everything before MOTION.

    Raises:
        FormatError: If a brace, an offset or a channel is missing or unknown.
    """
    return _HierarchyParser(file, text, TOKEN.finditer(text)).run()
