"""Arrays that functions of this package take and return, by their shape."""

import numpy as np

from marey.numerics import Float, Int

Array = np.ndarray

Points = Float[Array, "frame marker 3"]
"""Positions of markers in metres; NaN where a marker was not seen."""

Path = Float[Array, "frame 3"]
"""Positions of one point in metres; NaN where it was not seen."""

Poses = Float[Array, "frame 4 4"]
"""Poses of one body in the world; NaN where unknown."""

Labelling = Int[Array, "frame label"]
"""The marker of each label in every frame."""

Markers = Int[Array, " _"]
"""Columns of markers or labels."""

Frames = Int[Array, " _"]
"""Numbers of frames, or counts of frames."""

Values = Float[Array, " _"]
"""One number for each step, run, joint or the like."""

Vectors = Float[Array, "_ 3"]
"""One vector for each of them."""
