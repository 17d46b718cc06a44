"""The bodies of a motion with the names that a file gives them."""

from collections.abc import Callable
from dataclasses import dataclass

from marey.io.multibody.bodies import Multibody, make_multibody
from marey.io.multibody.motion import HeldMotion
from marey.io.options import WriteOptions
from marey.io.text.names import spell_names


@dataclass(frozen=True, slots=True, eq=False)
class NamedBodies:
    """A motion as bodies with masses, which is to be written."""

    held: HeldMotion
    multibody: Multibody
    names: tuple[str, ...]
    """Names of the bodies, and of what is fixed to them, by joint."""

    options: WriteOptions

    @classmethod
    def of(
        cls, held: HeldMotion, spell_name: Callable[[str], str], options: WriteOptions
    ) -> "NamedBodies":
        """Return the bodies of a motion.

        Args:
            held: The motion.
            spell_name: Returns a name as the file can hold it.
            options: Collects the findings.
        """
        names = spell_names(held.skeleton.names, spell_name, options)
        return cls(held, make_multibody(held.skeleton), names, options)
