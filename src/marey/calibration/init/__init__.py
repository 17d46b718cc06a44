"""Initial parameters, priors and poses of a calibration.

There are three initialisations: from a known skeleton and generic (`generic`), and from
the landmarks of a person (`person`, with `joint_regression` and `reference_frame`).
"""
