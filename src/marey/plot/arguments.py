"""Arguments of pictures: one take of a solution, one of its subjects."""

from marey.errors import DataError, OptionError
from marey.skeleton import Skeleton
from marey.solution import Solution


def check_take_number(solution: Solution, take: int) -> int:
    """Return the number of a take after checking that it exists.

    Raises:
        OptionError: If the take does not exist.
    """
    count = len(solution.takes)
    if not 0 <= take < count:
        raise OptionError("take", found=take, needed=f"a number from 0 to {count - 1}")
    return take


def skeleton_of_subject(solution: Solution, subject: str) -> Skeleton:
    """Return the skeleton of a subject by name; "" = the only one.

    Raises:
        DataError: If there is no such subject.
    """
    if not subject:
        return solution.skeleton
    for one in solution.subjects:
        if one.name == subject:
            return one.skeleton
    names = ", ".join(one.name for one in solution.subjects)
    raise DataError("subject", found=repr(subject), needed=f"one of {names}")
