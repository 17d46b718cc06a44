"""Names for other programs: the joints of a person as a target scheme has them.

`rename_motions` gives joints the names of a scheme (HumanIK, Mixamo, Unreal, ...), and
the trunk, neck and clavicles as many joints as it has.
"""

from marey.anatomy.renaming.rename import rename_motions as rename_motions
from marey.anatomy.renaming.schemes import TargetScheme as TargetScheme
from marey.anatomy.renaming.schemes import find_scheme as find_scheme
