"""Live streams: frames of markers and sensors as they come, and poses of a skeleton.

Codecs turn packets into frames and back, without sockets. Sources receive, sinks send,
and `stream` ties a source to a skeleton that is known.
"""

from marey.live.frame import Frame as Frame
from marey.live.live_stream import Stream as Stream
from marey.live.live_stream import stream as stream
from marey.live.recorder import Recorder as Recorder
from marey.live.sinks import open_sink as open_sink
from marey.live.sources import open_source as open_source
from marey.live.statistics import StreamClock as StreamClock
from marey.live.statistics import StreamStatistics as StreamStatistics
from marey.live.tracking import LivePose as LivePose
from marey.live.tracking import SkeletonTracker as SkeletonTracker
