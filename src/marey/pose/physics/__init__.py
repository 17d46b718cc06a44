"""Poses by physics: a simulated body tracks the markers by springs (Zordan2003)."""

from marey.motion import GroundPlane as GroundPlane
from marey.pose.contact.holds import Hold as Hold
from marey.pose.contact.holds import contacts_as_holds as contacts_as_holds
from marey.pose.options import PhysicsOptions as PhysicsOptions
from marey.pose.physics.fit import PhysicsFit as PhysicsFit
from marey.pose.physics.fit import fit_physics as fit_physics
