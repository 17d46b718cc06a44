"""What went wrong in a recording, found and, where it can be, put right.

A sensor's own motion shows jumps, flips and frozen values; the markers that keep a
marker company show spikes and labels that were traded (`clean`), in several takes also
labels exchanged between them (`find_exchanges`), and sensors that tell nothing in any
(`without_idle`). Once bodies and joints are known they
show more: markers that slipped (`find_marker_slips`), smaller jumps of
sensors (`find_gaping`), sensors that slipped (`find_slips`), a volume that is bent
(`fit_field`). `marey.solve` does all but the last by itself. Nothing is done silently:
every repair is a finding in the take's source and a line of its history.
"""

from dataclasses import fields
from typing import Any

from marey.cleaning.field import Field as Field
from marey.cleaning.field import fit_field as fit_field
from marey.cleaning.field import straightened as straightened
from marey.cleaning.gaps import fill_gaps as fill_gaps
from marey.cleaning.joint_outliers import find_gaping as find_gaping
from marey.cleaning.outliers import CleanOptions as CleanOptions
from marey.cleaning.outliers import Outlier as Outlier
from marey.cleaning.outliers import blanked as blanked
from marey.cleaning.outliers import find_outliers as find_outliers
from marey.cleaning.scale import rescale as rescale
from marey.cleaning.slips.markers import MarkerSlip as MarkerSlip
from marey.cleaning.slips.markers import find_marker_slips as find_marker_slips
from marey.cleaning.slips.markers import put_back as put_back
from marey.cleaning.slips.sensors import find_slips as find_slips
from marey.cleaning.slips.sensors import repaired as repaired
from marey.cleaning.slips.slip import Slip as Slip
from marey.cleaning.spikes import find_spikes as find_spikes
from marey.cleaning.swaps.between_takes import Exchange as Exchange
from marey.cleaning.swaps.between_takes import find_exchanges as find_exchanges
from marey.cleaning.swaps.between_takes import unexchanged as unexchanged
from marey.cleaning.swaps.within_take import Swap as Swap
from marey.cleaning.swaps.within_take import find_swaps as find_swaps
from marey.cleaning.swaps.within_take import unswapped as unswapped
from marey.cleaning.unused_sensors import without_idle as without_idle
from marey.errors import OptionError
from marey.take import Take


def clean(take: Take, **options: Any) -> Take:
    """Return the recording without the errors of the instrument and its software.

    Sensors that jump away and back, turn over and back, or repeat their last value
    while they move are blanked in those frames: NaN, as anything that was not seen. So
    are markers that jump away and back. Labels that traded their markers for a while
    are traded back. Nothing is filled in, unless `max_gap` says how long a gap of a
    marker may be for that. Every repair is a finding in `take.source.findings`; a
    recording without errors is returned as it is.

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
    chosen = CleanOptions(**options)
    take = blanked(take, find_outliers(take, chosen))
    take = blanked(take, find_spikes(take, chosen))
    swaps = find_swaps(take) if chosen.swaps else ()
    if swaps:
        take = unswapped(take, swaps)
        take = blanked(take, find_spikes(take, chosen))
    return fill_gaps(take, chosen.max_gap)
