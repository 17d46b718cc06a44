"""What people call joints, and what to do to show them."""

SIDES = ("Left", "Right")

JOINTS = {
    ("Hips", "UpperLeg"): ("hip", "swing the leg forward, sideways and about itself"),
    ("UpperLeg", "LowerLeg"): ("knee", "bend it"),
    ("LowerLeg", "Foot"): ("ankle", "flex it"),
    ("Foot", "Toes"): ("ball of the foot", "rise on the toes"),
    ("Chest", "UpperArm"): ("shoulder", "circle the arm"),
    ("Chest", "Shoulder"): ("collar bone", "shrug"),
    ("Shoulder", "UpperArm"): ("shoulder", "circle the arm"),
    ("UpperArm", "LowerArm"): ("elbow", "bend it"),
    ("LowerArm", "Hand"): ("wrist", "flex it and wave"),
    ("Hips", "Spine"): ("waist", "bend and twist the trunk"),
    ("Hips", "Chest"): ("waist", "bend and twist the trunk"),
    ("Spine", "Chest"): ("back", "bend and twist the trunk"),
    ("Chest", "Neck"): ("neck", "nod and look around"),
    ("Chest", "Head"): ("neck", "nod and look around"),
    ("Neck", "Head"): ("neck", "nod and look around"),
}
"""By the names of the two bodies without their side: the joint, and what to do."""


def spoken(a: str, b: str) -> tuple[str, str] | None:
    """Return what a joint between named bodies is called, and what would show it.

    None for bodies that have no name of a person's.
    """
    one, other = (name.rpartition(":")[2] for name in (a, b))
    side = next((s for s in SIDES for n in (one, other) if n.startswith(s)), "")
    near, far = _bare(one), _bare(other)
    found = JOINTS.get((near, far)) or JOINTS.get((far, near))
    if found is None:
        return None
    joint, motion = found
    return f"{side.lower()} {joint}".strip(), motion


def _bare(name: str) -> str:
    for side in SIDES:
        name = name.removeprefix(side)
    return "Chest" if name == "UpperChest" else name
