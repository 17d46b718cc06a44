"""Live streams: frames of markers and sensors as they come, and poses of a skeleton.

Codecs turn packets into frames and back, without sockets. Sources receive, sinks send,
and `stream` ties a source to skeletons, which are known or learnt from it.
"""

from marey.live.frame import Frame as Frame
from marey.live.learning import Learnt as Learnt
from marey.live.live_stream import Stream as Stream
from marey.live.live_stream import stream as stream
from marey.live.posing.tracking import LivePose as LivePose
from marey.live.posing.tracking import SkeletonTracker as SkeletonTracker
from marey.live.posing.tracking import SubjectPose as SubjectPose
from marey.live.recording.recorder import Recorder as Recorder
from marey.live.sinks import open_sink as open_sink
from marey.live.sources import open_source as open_source
from marey.live.statistics import StreamClock as StreamClock
from marey.live.statistics import StreamStatistics as StreamStatistics
