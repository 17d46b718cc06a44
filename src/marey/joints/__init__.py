"""Joint centres and axes between pairs of rigid bodies."""

from marey.joints._types import JointFits as JointFits
