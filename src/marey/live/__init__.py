"""Live streams: frames of markers and sensors as they come, and poses of a skeleton.

Codecs turn packets into frames and back, without sockets. Sources receive, sinks send,
and `stream` ties a source to a skeleton that is known.
"""

from marey.live.frame import Frame as Frame
from marey.live.recorder import Recorder as Recorder
from marey.live.statistics import StreamClock as StreamClock
from marey.live.statistics import StreamStatistics as StreamStatistics
