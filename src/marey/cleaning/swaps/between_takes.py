"""Labels that stand on each other's markers in one take, and not in another."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import EIGHT_TENTHS, quantiles, spreads_to
from marey.cleaning.swaps.within_take import Swap, traded_back
from marey.report import Finding
from marey.take import Take

Array = np.ndarray

MATES = 8
"""Markers that two labels are held to: those that keep their distance to both best."""

FEWEST_MATES = 3

STEADY = 0.02
"""How far the distance to a mate may vary, in metres."""

PLAY = 0.002
"""Metres by which distances differ between takes anyway."""

FRAMES = 100
"""Frames of each take that are looked at."""

CLEAR = 0.005
"""Misfit below which nothing is told, in metres."""

UNUSUAL = 2.0
"""The same in what is usual between the two takes: markers that were put on anew sit a
little elsewhere, all of them."""

BETTER, ALIKE = 1.0 / 3.0, 0.01
"""Share of the misfit that may be left when labels are exchanged, and metres."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two labels that stand on each other's markers in the whole of one take."""

    take: int
    """The take, by index."""

    labels: tuple[str, str]

    others: tuple[int, ...]
    """The takes that say so, by index."""

    certain: bool
    """Whether more takes say so than not; else it is only known that they differ."""

    before: float
    """How far apart the takes are in how much nearer the one is to the markers around
    than the other, root mean square in metres."""

    after: float
    """The same when the labels are exchanged."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two labels that stand on each other's markers, going by another take."""

    labels: tuple[str, str]
    before: float
    after: float


def find_exchanges(takes: Sequence[Take]) -> tuple[Exchange, ...]:
    """Return the labels that were exchanged between takes of one subject.

    A marker that keeps company with two others is nearer to one of them, by as much in
    every take; joints in between hardly change that. Two labels that agree with another
    take far better on each other's places were exchanged. No bodies are needed, and
    markers that were put on anew, all of them a little elsewhere, do not count. Markers
    that are as near as each other to all around cannot be told apart.

    All takes are held to the one that shows most. Wrong are the takes that are fewer;
    of as many on either side, those with fewer frames. Frames in which the very labels
    were traded within a take (`find_swaps`) speak for the other side.

    Args:
        takes: The recordings, with labels traded back within each.
    """
    if len(takes) < 2:
        return ()
    base = int(np.argmax([take.seen.sum() for take in takes]))
    found: dict[tuple[str, str], dict[int, _Pair]] = {}
    for number, take in enumerate(takes):
        for pair in _compared(takes[base], take) if number != base else ():
            found.setdefault(pair.labels, {})[number] = pair
    blamed = [x for labels, of in found.items() for x in _blamed(takes, labels, of)]
    return tuple(sorted(blamed, key=lambda one: (one.take, one.labels)))


def unexchanged(
    takes: Sequence[Take], exchanges: Sequence[Exchange]
) -> tuple[Take, ...]:
    """Return the takes with labels back on their markers, and with word of it.

    Positions move to the label that they belong to, to the bit; nothing else changes.

    Args:
        takes: The recordings.
        exchanges: From `find_exchanges`.
    """
    out = []
    for number, take in enumerate(takes):
        mine = [one for one in exchanges if one.take == number]
        swaps = [_for_all_of(take, one) for one in mine]
        findings = tuple(_finding(one, take.n_frames) for one in mine)
        out.append(traded_back(take, swaps, findings) if mine else take)
    return tuple(out)


def _for_all_of(take: Take, one: Exchange) -> Swap:
    columns = tuple(take.full_labels.index(label) for label in one.labels)
    return Swap(one.labels, columns, 0, take.n_frames - 1, one.before, one.after)


def _blamed(
    takes: Sequence[Take], labels: tuple[str, str], by_take: dict[int, _Pair]
) -> Iterator[Exchange]:
    """Return the takes in which two labels are wrong.

    Args:
        takes: All of them.
        labels: The two.
        by_take: The takes that differ from the one that all were held to.
    """
    telling = [i for i, take in enumerate(takes) if set(labels) <= set(_labels(take))]
    odd, plain = sorted(by_take), [i for i in telling if i not in by_take]
    weight = [
        (len(side), sum(_frames(takes[number], labels) for number in side))
        for side in (odd, plain)
    ]
    if weight[0] > weight[1]:
        odd, plain = plain, odd
    before, after = (
        float(np.mean([getattr(pair, name) for pair in by_take.values()]))
        for name in ("before", "after")
    )
    for number in odd:
        certain = len(odd) < len(plain)
        yield Exchange(number, labels, tuple(plain), certain, before, after)


def _frames(take: Take, labels: tuple[str, str]) -> int:
    """Return the frames that speak for labels as they are, less those against."""
    columns = [take.full_labels.index(label) for label in labels]
    subjects = {"-".join(labels), "-".join(labels[::-1])}
    traded = sum(
        finding.frames[1] - finding.frames[0] + 1
        for finding in take.source.findings
        if finding.code == "labels-swapped" and finding.subject in subjects
    )
    return int(take.seen[:, columns].all(axis=1).sum()) - 2 * traded


def _labels(take: Take) -> list[str]:
    """Return the labels that one marker alone has, of those seen."""
    count = Counter(take.full_labels)
    seen: list[bool] = np.any(take.seen, axis=0).tolist()
    pairs = zip(take.full_labels, seen, strict=True)
    return [label for label, there in pairs if there and count[label] == 1]


def _compared(base: Take, take: Take) -> list[_Pair]:
    """Return the labels of a take that stand elsewhere than in another."""
    there = set(_labels(take))
    labels = sorted(label for label in _labels(base) if label in there)
    if len(labels) < FEWEST_MATES + 2:
        return []
    two = _two(base, take, labels)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    order = np.arange(len(labels))
    for _ in range(len(labels) // 2):
        # One at a time: labels on each other's places make those around look so too.
        likeliest = two.likeliest(order)
        if likeliest is None or likeliest[0] in found:
            break
        pair, off = likeliest
        order[list(pair)] = order[list(pair[::-1])]
        found[pair] = off
    return [_Pair((labels[a], labels[b]), *off) for (a, b), off in found.items()]


@dataclass(frozen=True, slots=True, eq=False)
class _Two:
    """The same labels in two takes.

    An order says which label of the second take stands on each marker of the first.
    """

    first: Float[Array, "frame label 3"]
    second: Float[Array, "time label 3"]
    spread: tuple[Float[Array, "label label"], Float[Array, "label label"]]
    """How far distances vary in each, in metres."""

    def likeliest(
        self, order: Int[Array, " label"]
    ) -> tuple[tuple[int, int], tuple[float, float]] | None:
        """Return the two labels that gain most exchanged, with their misfits.

        None where no two fit far better.
        """
        known = {pair: self._misfits(order, pair) for pair in self._pairs(order)}
        usual = float(np.median([x for x, _ in known.values() if np.isfinite(x)] or 0))
        least = max(CLEAR, UNUSUAL * usual)
        fits = {
            pair: (before, after)
            for pair, (before, after) in known.items()
            if before > least and after < min(ALIKE, BETTER * before)
        }
        by_gain = sorted(fits.items(), key=lambda one: one[1][0] - one[1][1])
        return by_gain[-1] if by_gain else None

    def _pairs(self, order: Int[Array, " label"]) -> list[tuple[int, int]]:
        """Return the labels that keep each other company, in both takes."""
        spread = np.hypot(self.spread[0], self.spread[1][np.ix_(order, order)])
        np.fill_diagonal(spread, np.inf)
        mates = np.argsort(spread, axis=1, kind="stable")[:, :MATES].tolist()
        near = ((min(a, b), max(a, b)) for a, of in enumerate(mates) for b in of)
        return sorted(set(near))

    def _misfits(
        self, order: Int[Array, " label"], pair: tuple[int, int]
    ) -> tuple[float, float]:
        """Return by how much two labels differ between the takes, and exchanged.

        In metres, in how much nearer one is to their mates than the other; the root
        mean square over the mates. NaN where too few tell.
        """
        around = self._around(order, pair)
        here, noise = _nearer(self.first, pair, around)
        a, b = order[list(pair)].tolist()
        there, more = _nearer(self.second, (a, b), order[around])
        weight = 1.0 / (noise**2 + more**2 + PLAY**2)
        if np.isfinite(weight).sum() < FEWEST_MATES:
            return float("nan"), float("nan")
        weight /= np.nansum(weight)
        before, after = (
            float(np.sqrt(np.nansum(weight * (0.5 * off) ** 2)))
            for off in (here - there, here + there)
        )
        return before, after

    def _around(
        self, order: Int[Array, " label"], pair: tuple[int, int]
    ) -> Int[Array, " mate"]:
        """Return the mates of two labels: the same, whichever of them is which."""
        mine = list(pair)
        there = self.spread[1][order[mine]].max(axis=0)[order]
        spread = np.hypot(self.spread[0][mine].max(axis=0), there)
        spread[mine] = np.inf
        nearest = np.argsort(spread, kind="stable")[:MATES]
        return np.asarray(nearest[spread[nearest] < STEADY])


def _two(first: Take, second: Take, labels: list[str]) -> _Two:
    points = []
    for take in (first, second):
        columns = [take.full_labels.index(label) for label in labels]
        some = slice(None, None, max(take.n_frames // FRAMES, 1))
        points.append(take.points[some][:, columns])
    every = np.arange(len(labels))
    spread = spreads_to(points[0], every), spreads_to(points[1], every)
    return _Two(points[0], points[1], spread)


def _nearer(
    points: Float[Array, "frame label 3"],
    pair: tuple[int, int],
    around: Int[Array, " mate"],
) -> tuple[Float[Array, " mate"], Float[Array, " mate"]]:
    """Return how much nearer mates are to the second, and how far that varies."""
    there = points[:, around]
    one, two = (np.linalg.norm(there - points[:, k, None], axis=-1) for k in pair)
    low, usual, high = quantiles((one - two).T, (0.1, 0.5, 0.9))
    return usual, (high - low) / EIGHT_TENTHS


def _finding(one: Exchange, n_frames: int) -> Finding:
    who = " and ".join(one.labels)
    others = " and ".join(f"take {number + 1}" for number in one.others)
    here = f"take {one.take + 1}"
    message = (
        f"{who} stand on each other's markers in all of {here}, unlike {others}: "
        "traded back"
        if one.certain
        else f"{who} are exchanged between {here} and {others}, which do not tell who "
        f"is right: traded in all of {here}, as fewer frames speak for it"
    )
    message += (
        f"; distances to the markers around are then {1e3 * one.after:.1f} mm off "
        f"instead of {1e3 * one.before:.1f}"
    )
    return Finding(
        "labels-exchanged",
        "clean",
        "warning",
        message,
        "-".join(one.labels),
        (0, n_frames - 1),
        one.before,
    )
