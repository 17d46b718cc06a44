"""Corrections by hand: tried, kept and undone, or applied by `marey.solve`.

Editing stands above the pipeline: it runs the same stages with edits between them.
"""

from marey.editing.score import EditChange as EditChange
from marey.editing.score import EditScore as EditScore
from marey.editing.session import EditSession as EditSession
from marey.editing.session import Trial as Trial
from marey.editing.solver import solve as solve
