"""Initial parameters, priors and poses of a calibration.

There are four initialisations: from a known skeleton and generic (`generic`), from the
landmarks of one frame (`landmarks`, with `joint_regression` and `reference_frame`), and
the choice of the best frame and shoulder model for these (`select`).
"""
