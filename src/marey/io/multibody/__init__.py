"""A skeleton as rigid bodies with joints, as the formats of simulators hold it.

`bodies.py` makes bodies with masses from a skeleton, `coordinates.py` angles about axes
from rotations, `motion.py` what a motion needs before it is written, and `markup.py`
the XML.
"""
