"""A stream of Lab Streaming Layer."""

import time
from typing import Any

from marey.errors import StreamError
from marey.live.address import Address
from marey.live.frame import Frame
from marey.live.lsl_channels import (
    CONTENT,
    MAX_CHANNELS,
    POSITION,
    Channel,
    SampleLayout,
    load_pylsl,
)
from marey.live.sources.contract import StreamSource

BUFFER_S = 10
"""Seconds of samples that liblsl keeps while this program is busy. Higher loses fewer
frames in a pause and takes more memory."""


class LslSource(StreamSource):
    """Reads the samples of a stream by its name, or of the first of motion capture.

    Samples have no numbers: they are counted here, since LSL repeats what was lost on
    the network. Option of the address: `network`, to look beyond this machine.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__(address)
        address.check_options("network")
        pylsl = load_pylsl(whole_network="network" in address.options)
        by_name = ("name", address.target) if address.target else ("type", CONTENT)
        found = pylsl.resolve_byprop(*by_name, minimum=1, timeout=timeout)
        if not found:
            expected = f"a stream with the {' '.join(by_name)} within {timeout:g} s"
            raise StreamError(address.text, expected=expected, found="none")
        try:
            self._inlet = pylsl.StreamInlet(
                found[0], max_buflen=BUFFER_S, recover=False, as_numpy=True
            )
            info = self._inlet.info(timeout=max(timeout, 1.0))
            self._inlet.open_stream(timeout=max(timeout, 1.0))
        except RuntimeError as error:  # of liblsl: it went away, or never answered
            expected = f"an answer within {timeout:g} s"
            raise StreamError(
                address.text, expected=expected, found=str(error)
            ) from error
        rate = info.nominal_srate()
        self.rate = rate if rate > 0.0 else self.rate
        self._layout = SampleLayout(_channels(address, info))
        self._number = 0

    def receive(self, timeout: float) -> Frame | None:
        """Return the frame of the next sample."""
        try:
            sample, stamp = self._inlet.pull_sample(timeout=timeout)
        except RuntimeError:  # of liblsl: the outlet is lost
            self.has_ended = True
            return None
        if sample is None:
            return None
        number, self._number = self._number, self._number + 1
        try:
            return self._layout.frame(sample, number, stamp, time.monotonic())
        except StreamError:
            self.n_damaged += 1
            return None

    def close(self) -> None:
        """Close the stream."""
        self._inlet.close_stream()


def _channels(address: Address, info: Any) -> list[Channel]:
    """Return the channels; without meta-data, three are the position of a marker."""
    count = info.channel_count()
    if not 0 < count <= MAX_CHANNELS:
        expected = f"up to {MAX_CHANNELS} channels"
        raise StreamError(address.text, expected=expected, found=str(count))
    described = info.desc().child("channels").child("channel")
    channels: list[Channel] = []
    while not described.empty() and len(channels) < count:
        text = described.child_value
        kind, name = text("type"), text("marker") or text("object")
        channels.append(Channel(name or _stem(text("label")), kind, text("unit")))
        described = described.next_sibling("channel")
    if len(channels) == count:
        return channels
    return [Channel(f"M{i // 3 + 1}", POSITION[i % 3]) for i in range(count)]


def _stem(label: str) -> str:
    """Return the label of a channel without its component: "RTHI" of "RTHI_X"."""
    return label[:-2] if label[-2:-1] in ("_", ".", " ", "-") else label
