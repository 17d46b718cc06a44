"""What every source of a stream does."""

from math import nan

from marey.live.address import Address
from marey.live.frame import Frame


class StreamSource:
    """Gives the frames of a stream, one after the other.

    Packets that are damaged are counted and left out.
    """

    rate: float = nan
    """Frames per second that the sender states; NaN if it states none."""

    n_damaged: int = 0
    """Packets that were not what their protocol promises."""

    has_ended: bool = False
    """Whether the sender said that no more frames come, or closed the connection."""

    can_return: bool = True
    """Whether a sender that has ended may come back."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame; None if none comes within so many seconds."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop listening, and free the port."""


class AbsentSource(StreamSource):
    """A sender that is not there yet; whoever reads it connects again."""

    has_ended = True

    def receive(self, timeout: float) -> Frame | None:
        """Return nothing: nobody sends."""
        return None
