"""Figures with known truth, their motions and recordings, clean or corrupted.

figure = marey.synth.human(height=1.8, seed=0)
motion = figure.perform("walk", seconds=10.0, rate=120.0)
take = figure.record("walk", markers="sparse41", noise=1e-3, gaps=0.1)
take.truth.points, take.truth.marker_joint, take.truth.log
"""

from marey.synth.corruption.options import Corruption as Corruption
from marey.synth.figures.figure import Figure as Figure
from marey.synth.figures.figure import FigureLimb as FigureLimb
from marey.synth.figures.figures import hinge_pair as hinge_pair
from marey.synth.figures.figures import human as human
from marey.synth.figures.figures import linkage as linkage
from marey.synth.figures.figures import pendulum as pendulum
from marey.synth.figures.figures import quadruped as quadruped
from marey.synth.figures.figures import robot as robot
from marey.synth.figures.figures import snowman as snowman
from marey.synth.figures.figures import universal_pair as universal_pair
from marey.synth.figures.surfaces import Surface as Surface
from marey.synth.markers import place_markers as place_markers
from marey.synth.markers import place_sensors as place_sensors
from marey.synth.performance.curves import smoothstep as smoothstep
from marey.synth.performance.motions import MOTIONS as MOTIONS
from marey.synth.performance.motions import reach as reach
from marey.synth.recording import capture as capture
from marey.synth.recording import record as record
from marey.synth.scenes import prop as prop
from marey.synth.scenes import scene as scene
from marey.synth.truth import CorruptionEvent as CorruptionEvent
from marey.synth.truth import Link as Link
from marey.synth.truth import Recording as Recording
from marey.synth.truth import Truth as Truth
