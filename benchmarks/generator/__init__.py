"""People who are generated without marey: kinematics, markers, motion and damage.

Nothing here imports marey, so that its own generator does not mark its own homework.
Metres, seconds and radians; x is forward, y to the left, z up.
"""
