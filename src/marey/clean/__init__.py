"""What went wrong in a recording, found and, where it can be, put right.

A sensor's own motion shows jumps, flips and frozen values (`clean`). Once joints are
known they show more: smaller jumps (`find_gaping`), sensors that slipped
(`find_slips`), a volume that is bent (`fit_field`). `marey.solve` does all but the
last by itself. Nothing is done silently: every repair is a finding in the take's
source and a line of its history.
"""

from dataclasses import fields
from typing import Any

from marey.clean._slip import Slip as Slip
from marey.clean.field import Field as Field
from marey.clean.field import fit_field as fit_field
from marey.clean.field import straightened as straightened
from marey.clean.gaping import find_gaping as find_gaping
from marey.clean.outliers import CleanOptions as CleanOptions
from marey.clean.outliers import Outlier as Outlier
from marey.clean.outliers import blanked as blanked
from marey.clean.outliers import find_outliers as find_outliers
from marey.clean.scale import scaled as scaled
from marey.clean.slips import find_slips as find_slips
from marey.clean.slips import repaired as repaired
from marey.errors import OptionError
from marey.take import Take


def clean(take: Take, **options: Any) -> Take:
    """Return the recording without the poses that are errors of the instrument.

    Sensors that jump away and back, turn over and back, or repeat their last value
    while they move are blanked in those frames: NaN, as any pose that was not seen.
    Nothing is filled in, and markers are left as they are. Every error is a finding in
    `take.source.findings`.

    Args:
        take: The recording.
        **options: Fields of `CleanOptions`.

    Raises:
        OptionError: If an option is not known or out of range.
    """
    known = [f.name for f in fields(CleanOptions)]
    for name, value in options.items():
        if name not in known:
            raise OptionError(name, found=value, needed=f"one of {', '.join(known)}")
    return blanked(take, find_outliers(take, CleanOptions(**options)))
