"""Learning a skeleton from a stream, beside it, in memory that does not grow."""

from marey.live.learning.estimate import Learnt as Learnt
from marey.live.learning.learner import Learner as Learner
from marey.live.learning.reservoir import FrameReservoir as FrameReservoir
