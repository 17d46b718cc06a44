"""What the words in a label say of a marker: the bodies that it may be on.

Laboratories make labels of words and abbreviations: "LTHI", "R.Knee.Medial",
"Oberschenkel_li_1". A label is split into known words by dynamic programming, so that
the fewest letters are left over, and then the fewest words are used. The words are in
words.toml.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

from marey.anatomy import names as vrm

_SEPARATOR = re.compile(r"[\W_]+")
_CAMEL_CASE = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")
_TRAILING_NUMBER = re.compile(r"\d+$")
_ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th)(?![a-z])", re.IGNORECASE)
"""The letters of "1st" and "5th": numbers count as such."""

CLEAR_WORD = 4
"""Number of letters from which a word is clear: it may stand inside a longer run of
letters, or be written as two words. Higher reads fewer labels. Chosen by hand."""

MAX_CACHED = 4096
"""Labels whose bodies are kept: recordings of one laboratory have the same ones."""

Bodies = tuple[str, ...]
"""Bodies that a marker may be on, the owning one first."""

FINGER_BODIES = tuple(finger + vrm.PHALANGES[0] for finger in vrm.FINGERS)
"""Body of each finger without its side: words name a finger, and no phalanx."""


class Reading(NamedTuple):
    """What the words of a label may mean."""

    side: str
    """"Left" or "Right", "" if the label names none."""

    bodies: Bodies
    """Bodies that the marker may be on, without their sides."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of labels, in lower case."""

    sides: Mapping[str, str]
    """Side of each spelling of one."""

    side_letters: tuple[tuple[str, str], ...]
    """Letters for left and right in languages where they are not those of English."""

    landmarks: Mapping[str, frozenset[Bodies]]
    """What each word may stand for; nothing if it is a position on a body."""

    exact: Mapping[str, frozenset[Bodies]]
    """The same for words that must be the whole label but its side."""

    letters: frozenset[str]
    """Single letters and pairs of letters for a position on a body."""

    parts: frozenset[str]
    """Words that are a position beside another landmark."""

    short: frozenset[str]
    """Words that count only if the whole label is understood."""

    parents: Mapping[str, str]
    """Tree of the bodies, without sides."""

    things: frozenset[str]
    """Words for things that are no one's body."""

    mounts: frozenset[str]
    """Words for things, but on a part of the body for where its marker is."""

    computed: frozenset[str]
    """Words for points that programs compute."""

    animals: frozenset[str]
    """Words for parts that people do not have."""

    clusters: Mapping[str, int]
    """Number of markers that make each body which fewer do not, without sides."""

    trunk: Mapping[str, frozenset[str]]
    """Words for landmarks at the front, back, upper and lower end of the trunk."""

    limbs: tuple[tuple[str, ...], ...]
    """Words for the joints along a limb, from the trunk outward."""

    midline: tuple[str, ...]
    """Words for points that are on no limb."""

    same_joint: Mapping[str, str]
    """Words that count as another one."""

    segments: Mapping[str, str]
    """The joint that moves each segment of a limb, which programs call after it."""


class Split(NamedTuple):
    """A label split into words; the smallest is best."""

    n_unknown: int
    """Number of letters of no word."""

    n_words: int
    shortness: int
    """Negative sum of the squared lengths of the words: long words are best."""

    order: tuple[int, ...]
    """Lengths of the words, negative if long words in front are best."""

    words: tuple[str, ...]

    def add(self, word: str, sign: int) -> "Split":
        """Return the split of a longer label that ends with this word."""
        return Split(
            self.n_unknown,
            self.n_words + 1,
            self.shortness - len(word) ** 2,
            (*self.order, sign * len(word)),
            (*self.words, word),
        )


@cache
def vocabulary() -> Vocabulary:
    """Return the words of words.toml."""
    file = files("marey.segmentation.labels") / "words.toml"
    table: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    words, short = set(table["positions"]["words"]), set(table["positions"]["short"])
    landmarks: dict[str, frozenset[Bodies]] = dict.fromkeys(words | short, frozenset())
    exact: dict[str, frozenset[Bodies]] = {}
    for landmark in table["landmarks"]:
        bodies = frozenset([tuple(landmark["bodies"])])
        for word in (*landmark["words"], *landmark.get("short", ())):
            landmarks[word] = landmarks.get(word, frozenset()) | bodies
        for word in landmark.get("exact", ()):
            exact[word] = exact.get(word, frozenset()) | bodies
        words |= set(landmark["words"])
        short |= set(landmark.get("short", ()))
    return Vocabulary(
        side_letters=tuple(map(tuple, table["sides"]["letters"])),
        sides={
            word: side
            for side, key in zip(vrm.SIDES, ("left", "right"), strict=True)
            for word in table["sides"][key]
        },
        landmarks=landmarks,
        exact=exact,
        letters=frozenset(table["positions"]["short"]),
        parts=frozenset(table["positions"]["parts"]),
        short=frozenset(short - words),
        parents=table["parents"],
        things=frozenset(table["things"]["words"]),
        mounts=frozenset(table["things"]["mounts"]),
        computed=frozenset(table["computed"]["words"]),
        animals=frozenset(table["animals"]["words"]),
        clusters=table["clusters"],
        trunk={where: frozenset(some) for where, some in table["trunk"].items()},
        limbs=tuple(map(tuple, table["joints"]["limbs"])),
        midline=tuple(table["joints"]["midline"]),
        same_joint=table["joints"]["same"],
        segments=table["segments"],
    )


def tree_of_words() -> dict[str, str]:
    """Return the parent of each body that words name, on both sides and on none."""
    parents: dict[str, str] = {}
    for body, parent in vocabulary().parents.items():
        for side in (*vrm.SIDES, ""):
            child = side + body if has_side(body) else body
            parents[child] = side + parent if has_side(parent) else parent
    return parents


@lru_cache(MAX_CACHED)
def bodies_of_label(label: str) -> tuple[Bodies, ...]:
    """Return what a label may say of its marker: the bodies that it may be on.

    None if it has no known words; several if a word is ambiguous, such as "SH" for
    shoulder and shank. A limb without a side is no body, and "RTH2" is no vertebra.
    """
    readings = readings_of_label(label)
    sided = (with_side(one.bodies, one.side) for one in readings)
    return tuple(dict.fromkeys(bodies for bodies in sided if bodies))


@lru_cache(MAX_CACHED)
def readings_of_label(label: str) -> tuple[Reading, ...]:
    """Return what the words of a label may mean, with the sides that it may name."""
    splits = [
        (split, side, chunks)
        for side, chunks in _side_readings(label_chunks(label))
        for split in _splits(chunks)
    ]
    best = min((split[:2] for split, _, _ in splits), default=None)
    if names_no_body(label) or not best:
        return ()
    found: dict[Reading, None] = {}
    for split, side, chunks in splits:
        stem = "".join(chunks)
        sided_number = bool(side) and stem[-1].isdigit()
        exact = [
            bodies
            for bodies in vocabulary().exact.get(stem, ())
            if has_side(bodies[0]) or not sided_number
        ]
        meanings = _meanings(split) if split[:2] == best else []
        for bodies in (*sorted(exact), *meanings):
            found[Reading(side, bodies)] = None
    return tuple(found)


@lru_cache(MAX_CACHED)
def words_of_label(label: str) -> frozenset[str]:
    """Return the known words of a label, and the whole label without a side."""
    splits = [
        (split, "".join(chunks))
        for _, chunks in _side_readings(label_chunks(label))
        for split in _splits(chunks)
    ]
    best = min((split[:2] for split, _ in splits), default=None)
    words = (word for split, _ in splits if split[:2] == best for word in split.words)
    return frozenset((*words, *(stem for _, stem in splits)))


def side_as_position(label: str) -> tuple[str, str]:
    """Return a label without what is behind its last separator, and that word.

    The word is a side or a position; "" and "" for other labels: "hand" and "left" of
    "hand_left", "hand" and "top" of "hand_top".
    """
    *stem, last = label_chunks(label) or ("",)
    is_position = last in vocabulary().landmarks and not vocabulary().landmarks[last]
    if stem and (last in vocabulary().sides or is_position):
        return "_".join(stem), last
    return "", ""


def name_of_thing(label: str) -> str:
    """Return the word for a thing in a label, "Stick" for "stick_03"; "" without.

    A wand on a thigh is a marker of the thigh.
    """
    things = vocabulary().things
    if not _has_landmark(label):
        things = things | vocabulary().mounts
    words = (_TRAILING_NUMBER.sub("", word) for word in label_chunks(label))
    return next((word.title() for word in words if word in things), "")


def _has_landmark(label: str) -> bool:
    """Return whether a label has a clear word for a part of the body."""
    words, short = vocabulary().landmarks, vocabulary().short
    return any(words.get(word) and word not in short for word in words_of_label(label))


def names_no_body(label: str) -> bool:
    """Return whether a label is of a thing, or of a point that a program computes."""
    return bool(name_of_thing(label)) or _has_word(label, vocabulary().computed)


@lru_cache(MAX_CACHED)
def names_an_animal(label: str) -> bool:
    """Return whether a label is of a part that people do not have."""
    return _has_word(label, vocabulary().animals)


def _has_word(label: str, words: frozenset[str]) -> bool:
    """Return whether a part of a label, without side and number, is such a word."""
    return any(
        _TRAILING_NUMBER.sub("", chunk) in words
        for _, chunks in _side_readings(label_chunks(label))
        for chunk in chunks
    )


def label_chunks(label: str) -> tuple[str, ...]:
    """Return the parts of a label between separators and at capitals, in lower case."""
    parts = _SEPARATOR.split(_CAMEL_CASE.sub(" ", _ORDINAL.sub(" ", label)))
    return tuple(part.casefold() for part in parts if part)


def _side_readings(chunks: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the sides that a label may have, with the rest of it."""
    for i, chunk in enumerate(chunks):
        for word, side in vocabulary().sides.items():
            rest = _without_side(chunk, word)
            others = (*chunks[:i], *([rest] if rest else []), *chunks[i + 1 :])
            if rest is not None and any(map(str.isalpha, "".join(others))):
                yield side, others
    yield "", chunks


def _without_side(chunk: str, word: str) -> str | None:
    """Return a chunk without the word of a side; None if it does not have it.

    A side is a whole chunk, or a letter or long word at the beginning or end of one.
    """
    is_clear = len(word) >= CLEAR_WORD
    is_whole = _TRAILING_NUMBER.sub("", chunk) == word
    if is_whole or ((len(word) == 1 or is_clear) and chunk.startswith(word)):
        return chunk.removeprefix(word)
    return chunk.removesuffix(word) if is_clear and chunk.endswith(word) else None


def _splits(chunks: tuple[str, ...]) -> tuple[Split, ...]:
    """Return the best splits of a label into words, one or two that are equally good.

    A position may stand behind its landmark or before: "LEPI" is "lep i" or "l epi".
    """
    return tuple({_split(chunks, sign): None for sign in (-1, 1)})


def _split(chunks: tuple[str, ...], sign: int) -> Split:
    """Return the best split of a label into words (shortest path, from left to right).

    Numbers cost nothing. A word that is not clear lies within one chunk.

    Args:
        chunks: The parts of the label.
        sign: Of equally good splits, -1 prefers long words in front, 1 at the end.
    """
    text = "".join(chunks)
    ends = {sum(map(len, chunks[: i + 1])) for i in range(len(chunks))}
    best = [Split(0, 0, 0, (), ())]
    for end in range(1, len(text) + 1):
        before = best[end - 1]
        lost = 0 if text[end - 1].isdigit() else 1
        options = [before._replace(n_unknown=before.n_unknown + lost)]
        for begin in range(end):
            word = text[begin:end]
            crosses = any(begin < middle < end for middle in ends)
            if word in vocabulary().landmarks and (
                not crosses or len(word) > CLEAR_WORD
            ):
                options.append(best[begin].add(word, sign))
        best.append(min(options))
    return best[-1]


def _meanings(split: Split) -> list[Bodies]:
    """Return the bodies that the words of a label have in common.

    Where they have none, they count without those that are a position beside another
    landmark, the head of the fibula, and then clear words alone. Abbreviations count
    only if they are no shorter than the single letters around them, or else "pollice"
    would be full of them.
    """
    words = vocabulary()
    landmarks = [word for word in split.words if words.landmarks[word]]
    clear = [word for word in landmarks if word not in words.short]
    landmarks = clear if split.n_unknown else landmarks
    whole = [word for word in landmarks if word not in words.parts]
    letters = [word for word in split.words if word in words.letters]
    if not clear and sum(map(len, letters)) > sum(map(len, landmarks)):
        return []
    clear = [word for word in clear if word not in words.parts]
    return _common(landmarks) or _common(whole) or _common(clear)


def _common(landmarks: Sequence[str]) -> list[Bodies]:
    """Return the bodies that all of these words may stand for."""
    found: dict[Bodies, None] = {}
    options = (sorted(vocabulary().landmarks[word]) for word in landmarks)
    for meanings in product(*options):
        first = meanings[0] if meanings else ()
        common = [body for body in first if all(body in m for m in meanings)]
        if common:
            found[tuple(common)] = None
    return list(found)


def with_side(bodies: Bodies, side: str) -> Bodies:
    """Return the bodies of a landmark on a side; "" leaves those of the trunk."""
    return tuple(
        side + body if has_side(body) else body
        for body in bodies
        if side or not has_side(body)
    )


def has_side(body: str) -> bool:
    """Return whether a body, by its name without side, is of a limb."""
    return bool(limb_of(body))


def limb_of(body: str) -> str:
    """Return "arm" or "leg" for a body of a limb, by its name without side, or ""."""
    if body in vrm.ARM or body in FINGER_BODIES:
        return "arm"
    return "leg" if body in vrm.LEG else ""
