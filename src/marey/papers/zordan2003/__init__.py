"""Mapping optical motion capture data to skeletal motion using a physical model."""

from collections.abc import Mapping

from marey.papers.frame import Run
from marey.papers.zordan2003 import contact, performances, templates

EXPERIMENTS: Mapping[str, Run] = {
    "martial": performances.martial_arts,
    "walk": performances.walking,
    "template": templates.templates,
    "contact": contact.ground_contact,
    "gains": performances.gains,
    "recordings": contact.real_recordings,
}
