"""All corruptions in the order of the world: body, instrument, software."""

from collections.abc import Callable

from marey.synth.corruption import signal as signal
from marey.synth.corruption import soft_tissue as body
from marey.synth.corruption.options import Corruption
from marey.synth.corruption.state import Work

EFFECTS: tuple[tuple[tuple[str, ...], Callable[[Work], None]], ...] = (
    (("knee_shift",), body.shift_knees),
    (("soft_tissue", "soft_tissue_turn"), body.soft_tissue),
    (("slips",), body.slip),
    (("field",), signal.distort),
    (("scale",), signal.rescale),
    (("coloured",), signal.colour),
    (("noise",), signal.whiten),
    (("turn_noise",), signal.shake),
    (("gross",), signal.blunder),
    (("phantoms",), signal.haunt),
    (("swaps",), signal.swap),
    (("gaps", "gap_of", "sensor_gaps"), signal.occlude),
    (("dropped",), signal.drop),
)


def corrupt(work: Work) -> Work:
    """Apply every corruption that is switched on."""
    clean = Corruption()
    for switches, effect in EFFECTS:
        if any(getattr(work.options, s) != getattr(clean, s) for s in switches):
            effect(work)
    return work
