"""An outlet of Lab Streaming Layer."""

from typing import Any

import numpy as np

from marey.live.address import Address
from marey.live.frame import Frame
from marey.live.lsl_channels import CONTENT, channels_of, load_pylsl, sample_of
from marey.live.sinks.contract import Sink
from marey.report import Finding

NAME = "marey"


class LslSink(Sink):
    """Offers frames as samples; a new outlet replaces the old when names change.

    Option of the address: `network`, to look beyond this machine.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        address.check_options("network")
        self._pylsl = load_pylsl(whole_network="network" in address.options)
        self._outlet: Any = None
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def findings(self) -> tuple[Finding, ...]:
        """Return that the outlet is open to others: liblsl cannot restrict it."""
        text = (
            f"{self.address.text}: other machines can read this outlet, since Lab "
            "Streaming Layer listens on all interfaces; a firewall keeps it in"
        )
        return (Finding("open-to-network", "write", "warning", text),)

    def send(self, frame: Frame) -> None:
        """Push the sample of a frame, with the sender's time if it has one."""
        names = (frame.labels, frame.sensor_names)
        if names == ((), ()):
            return
        if names != self._names:
            self._outlet, self._names = self._make_outlet(frame), names
        time = frame.time if np.isfinite(frame.time) else 0.0
        self._outlet.push_sample(sample_of(frame).tolist(), time)

    def _make_outlet(self, frame: Frame) -> Any:
        pylsl, channels = self._pylsl, channels_of(frame)
        name = self.address.target or NAME
        info = pylsl.StreamInfo(
            name, CONTENT, len(channels), pylsl.IRREGULAR_RATE, "double64", name
        )
        described = info.desc().append_child("channels")
        for channel in channels:
            one = described.append_child("channel")
            one.append_child_value("label", f"{channel.name}_{channel.kind}")
            one.append_child_value("marker", channel.name)
            one.append_child_value("type", channel.kind)
            one.append_child_value("unit", channel.unit)
        return pylsl.StreamOutlet(info)

    def close(self) -> None:
        """Withdraw the outlet."""
        self._outlet = None
