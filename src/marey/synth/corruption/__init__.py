"""Errors of a motion capture studio, added to a perfect recording.

The order is that in which a studio meets them: first the body (soft tissue, slips),
then the instrument (field, noise), then the software (swaps, gaps).
"""

from collections.abc import Callable

from marey.synth.corruption import signal, soft_tissue
from marey.synth.corruption.options import Corruption
from marey.synth.corruption.state import CorruptionState

CORRUPTION_STEPS: tuple[
    tuple[tuple[str, ...], Callable[[CorruptionState], None]], ...
] = (
    (("knee_shift",), soft_tissue.move_knee_centres),
    (("soft_tissue", "soft_tissue_turn"), soft_tissue.add_soft_tissue_motion),
    (("slips",), soft_tissue.add_slips),
    (("sensor_delay",), signal.delay_sensors),
    (("field",), signal.distort_magnetic_field),
    (("scale",), signal.scale_positions),
    (("coloured",), signal.add_coloured_noise),
    (("noise",), signal.add_white_noise),
    (("turn_noise",), signal.add_orientation_noise),
    (("gross",), signal.add_gross_errors),
    (("phantoms",), signal.add_phantom_markers),
    (("swaps",), signal.swap_labels),
    (("gaps", "gap_of", "sensor_gaps"), signal.add_gaps),
    (("dropped",), signal.drop_frames),
)
"""Each corruption with the options that switch it on."""


def corrupt(state: CorruptionState) -> None:
    """Apply every corruption whose options differ from the defaults."""
    defaults = Corruption()
    for options, add_corruption in CORRUPTION_STEPS:
        if any(getattr(state.options, o) != getattr(defaults, o) for o in options):
            add_corruption(state)
