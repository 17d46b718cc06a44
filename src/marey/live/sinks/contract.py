"""What every sink of a stream does."""

from marey.live.address import Address
from marey.live.frame import Frame
from marey.report import Finding


class Sink:
    """Sends frames to others; nobody there to read them is no error."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def findings(self) -> tuple[Finding, ...]:
        """Return what is worth knowing of the sink before anything is sent."""
        return ()

    def send(self, frame: Frame) -> None:
        """Send a frame, without waiting for anybody."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop sending."""
