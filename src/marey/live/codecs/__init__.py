"""Codecs of protocols: bytes to frames and back, without sockets.

A packet that is cut or forged raises `marey.StreamError`. Nothing is allocated from a
count before the packet is known to hold as much.
"""

from marey.live.codecs.message import decode_frame as decode_frame
from marey.live.codecs.message import encode_frame as encode_frame
from marey.live.codecs.mxtp import MxtpDecoder as MxtpDecoder
from marey.live.codecs.mxtp import encode_mxtp as encode_mxtp
from marey.live.codecs.natnet import NatNetDecoder as NatNetDecoder
from marey.live.codecs.osc import OscMessage as OscMessage
from marey.live.codecs.osc import decode_osc as decode_osc
from marey.live.codecs.osc import encode_bundle as encode_bundle
from marey.live.codecs.osc import encode_message as encode_message
from marey.live.codecs.qtm import decode_qtm as decode_qtm
from marey.live.codecs.vmc import VmcDecoder as VmcDecoder
from marey.live.codecs.vmc import encode_vmc as encode_vmc
