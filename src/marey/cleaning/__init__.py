"""Detection and repair of errors in recordings of markers and sensors.

From the recording alone, `clean` masks outliers (jumps, flips and frozen values of
sensors, spikes and zeros of markers) and undoes label swaps within a take. Several
takes also show labels that are swapped between takes (`find_swaps_between_takes`) and
sensors without data of their own (`drop_unused_sensors`).

With bodies and joints more can be found: smaller sensor outliers
(`find_joint_outliers`), slips of sensors (`find_sensor_slips`, beside markers
`find_shared_sensor_slips`) and of markers (`find_marker_slips`), and a distorted
magnetic field (`fit_field`).

`marey.solve` does all of this, the magnetic field on request. No repair is silent: each
is a finding in `Take.source` and a line in `Take.history`.
"""

from typing import Any

from marey.cleaning.field import Field as Field
from marey.cleaning.field import fit_field as fit_field
from marey.cleaning.field import rescale as rescale
from marey.cleaning.field import undistort as undistort
from marey.cleaning.gaps import fill_gaps as fill_gaps
from marey.cleaning.lost_frames import report_lost_frames as report_lost_frames
from marey.cleaning.options import CleanOptions as CleanOptions
from marey.cleaning.outliers.confidence import mask_unsure as mask_unsure
from marey.cleaning.outliers.hemisphere import (
    undo_hemisphere_flips as undo_hemisphere_flips,
)
from marey.cleaning.outliers.joints import find_joint_outliers as find_joint_outliers
from marey.cleaning.outliers.mask import Outlier as Outlier
from marey.cleaning.outliers.mask import mask_outliers as mask_outliers
from marey.cleaning.outliers.sensors import find_sensor_outliers as find_sensor_outliers
from marey.cleaning.outliers.sensors import find_stopped_sensors as find_stopped_sensors
from marey.cleaning.outliers.spikes import find_spikes as find_spikes
from marey.cleaning.outliers.spikes import find_zeros as find_zeros
from marey.cleaning.placeholders import mask_placeholders as mask_placeholders
from marey.cleaning.plausibility import check_flatness as check_flatness
from marey.cleaning.plausibility import check_takes as check_takes
from marey.cleaning.plausibility import correct_unit as correct_unit
from marey.cleaning.plausibility import find_doubtful_unit as find_doubtful_unit
from marey.cleaning.slips.markers import MarkerSlip as MarkerSlip
from marey.cleaning.slips.markers import find_marker_slips as find_marker_slips
from marey.cleaning.slips.markers import undo_marker_slips as undo_marker_slips
from marey.cleaning.slips.sensors import SensorSlip as SensorSlip
from marey.cleaning.slips.sensors import undo_sensor_slips as undo_sensor_slips
from marey.cleaning.slips.shared_sensors import (
    find_shared_sensor_slips as find_shared_sensor_slips,
)
from marey.cleaning.slips.skin_search import find_sensor_slips as find_sensor_slips
from marey.cleaning.swaps.between_takes import SwapBetweenTakes as SwapBetweenTakes
from marey.cleaning.swaps.between_takes import (
    find_swaps_between_takes as find_swaps_between_takes,
)
from marey.cleaning.swaps.between_takes import (
    undo_swaps_between_takes as undo_swaps_between_takes,
)
from marey.cleaning.swaps.within_take import Swap as Swap
from marey.cleaning.swaps.within_take import find_swaps as find_swaps
from marey.cleaning.swaps.within_take import undo_swaps as undo_swaps
from marey.cleaning.unused_sensors import drop_unused_sensors as drop_unused_sensors
from marey.cleaning.up_axis import Person as Person
from marey.cleaning.up_axis import axis_of_people as axis_of_people
from marey.cleaning.up_axis import correct_up as correct_up
from marey.kernels import one_blas_thread
from marey.options import options_from
from marey.take import Take


@one_blas_thread()
def clean(take: Take, **options: Any) -> Take:
    """Return the recording with outliers masked and label swaps undone.

    Outliers of sensors, spikes of markers, their positions of exactly zero and other
    placeholders are set to NaN, like any other missing value, and so are keypoints of
    low confidence.
    Swapped labels get their own positions back. Gaps are filled only if `max_gap` is
    above 0. Every repair is a finding in `take.source.findings`. A recording without
    errors is returned unchanged.

    Args:
        take: The recording.
        **options: Fields of `CleanOptions`.

    Raises:
        OptionError: If an option is not known or out of range.
    """
    chosen = options_from(CleanOptions, options)
    take = mask_placeholders(mask_unsure(take, chosen.min_confidence))
    if chosen.mask_frozen:
        take = mask_outliers(take, find_stopped_sensors(take))
    take = mask_outliers(take, find_zeros(take, chosen))
    take = undo_hemisphere_flips(take, chosen)
    take = mask_outliers(take, find_sensor_outliers(take, chosen))
    take = mask_outliers(take, find_spikes(take, chosen))
    swaps = find_swaps(take) if chosen.undo_swaps else ()
    if swaps:
        take = undo_swaps(take, swaps)
        # A swap hides the spikes at its ends, so search for spikes again.
        take = mask_outliers(take, find_spikes(take, chosen))
    return fill_gaps(take, chosen.max_gap)
