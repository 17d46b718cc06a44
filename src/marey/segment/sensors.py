"""6-DoF sensors as rigid bodies."""

import numpy as np

from marey.bodies import Bodies
from marey.take import Take


def bodies_of_sensors(take: Take) -> Bodies:
    """Return every 6-DoF sensor of a take as a body; markers belong to none."""
    n_bodies, n_markers = len(take.sensor_names), len(take.labels)
    return Bodies(
        take=take,
        names=take.sensor_names,
        T_world_body=take.T_world_sensor,
        determined=np.ones(n_bodies, dtype=bool),
        marker_body=np.full(n_markers, -1, dtype=np.int64),
        shared=np.zeros((n_markers, n_bodies), dtype=bool),
        marker_confidence=np.zeros(n_markers),
        body_confidence=np.ones(n_bodies),
        marker_offset=np.full((n_markers, 3), np.nan),
        rms=np.full(n_bodies, np.nan),
    )
