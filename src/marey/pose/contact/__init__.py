"""Contact: foot plants, the ground, footskate removal, and hand holds."""

from marey.motion import GroundPlane as GroundPlane
from marey.pose.contact.foot_plants import FootPlant as FootPlant
from marey.pose.contact.ground import GroundContacts as GroundContacts
from marey.pose.contact.ground_contacts import add_contacts as add_contacts
from marey.pose.contact.ground_contacts import enforce_contacts as enforce_contacts
from marey.pose.contact.ground_contacts import (
    find_ground_contacts as find_ground_contacts,
)
from marey.pose.contact.ground_contacts import ground_contacts_of as ground_contacts_of
from marey.pose.contact.holds import Hold as Hold
from marey.pose.contact.holds import contacts_as_holds as contacts_as_holds
from marey.pose.contact.holds import find_holds as find_holds
