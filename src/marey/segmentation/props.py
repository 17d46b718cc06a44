"""Things that are recorded beside a performer: sticks, rackets, tools."""

import numpy as np

from marey.segmentation.clusters.model_selection import grouped
from marey.take import Take

FEWEST = 3
"""Markers that a thing needs."""

SEEN = 0.1
"""Share of the frames in which a marker must be seen."""


def props_of(take: Take, used: set[int]) -> dict[str, tuple[int, ...]]:
    """Return the markers of things by name, each thing one body or several.

    Things are the subjects of the take none of whose markers is used otherwise. Their
    bodies are found from the distances that their markers keep.
    """
    performers = {take.subjects[i] for i in used}
    often = take.seen.mean(axis=0) >= SEEN
    things: dict[str, tuple[int, ...]] = {}
    for subject in dict.fromkeys(take.subjects):
        mine = np.array([i for i, s in enumerate(take.subjects) if s == subject])
        mine = mine[often[mine]]
        if not subject or subject in performers or len(mine) < FEWEST:
            continue
        bodies = [mine[body] for body in grouped([take.points[:, mine]]).members]
        bodies = [body for body in bodies if len(body) >= FEWEST]
        for k, body in enumerate(bodies, start=1):
            name = subject if len(bodies) == 1 else f"{subject}:body{k}"
            things[name] = tuple(body.tolist())
    return things
