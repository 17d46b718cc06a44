"""Anthropometric priors on a person's bones: symmetry and proportions."""

from marey.calibration.model import MEAN_STATURE_M
from marey.calibration.priors import LengthPrior, Prior

BONE_OF_STATURE = {
    "LowerLeg": 0.2425,
    "Foot": 0.249,
    "LowerArm": 0.1618,
    "Hand": 0.1545,
}
"""Length of the bone that ends in each joint (thigh, shank, upper arm, forearm) as a
share of the stature, men of de Leva 1996."""

BONE_OF_STATURE_SD = 0.05
"""Relative standard deviation of these shares between people. Lower pulls bones towards
the usual proportions. Chosen by hand, mostly on CMU 02 and 07, Uhlrich 2 and Plug-in
Gait, like all standard deviations here."""

HIP_WIDTH_OF_STATURE, HIP_WIDTH_OF_STATURE_SD = 0.100, 0.08
"""Distance of the hip joints as a share of the stature, and its relative standard
deviation. Lower pulls the hips towards the usual width."""

EQUAL_BONES_SD_M, EQUAL_CLAVICLES_SD_M = 0.005, 0.010
"""Standard deviation of the difference of left and right bones, in metres. Lower makes
both sides more equal."""

MIRRORED_HIPS_SD_M, MIRRORED_CLAVICLES_SD_M, MIRRORED_SHOULDERS_SD_M = (
    0.008,
    0.010,
    0.015,
)
"""Standard deviation of a joint from the mirror image of the other side, in metres.
Lower makes both sides more equal."""


def add_symmetry_and_proportions(prior: Prior, *, mirror: bool) -> None:
    """Add priors: bones are equal on both sides and have the usual proportions.

    Args:
        prior: Where to add them.
        mirror: Whether hips and shoulders are mirror images too; the y axes of pelvis
            and chest must then point to the left.
    """
    model, lengths = prior.model, prior.lengths

    def both_sides(name: str) -> tuple[int, int]:
        return model.index(f"Left{name}"), model.index(f"Right{name}")

    for name, share in BONE_OF_STATURE.items():
        left, right = both_sides(name)
        if left > 0 and right > 0:
            lengths.append(LengthPrior(left, right, 0.0, EQUAL_BONES_SD_M))
        sd = BONE_OF_STATURE_SD * share * MEAN_STATURE_M
        lengths += [LengthPrior(i, -1, share, sd) for i in (left, right) if i > 0]
    hips, clavicles = both_sides("UpperLeg"), both_sides("Shoulder")
    shoulders = both_sides("UpperArm")
    sd = HIP_WIDTH_OF_STATURE_SD * HIP_WIDTH_OF_STATURE * MEAN_STATURE_M
    lengths.append(LengthPrior(*hips, HIP_WIDTH_OF_STATURE, sd, is_distance=True))
    if mirror:
        prior.add_mirror_prior(*hips, MIRRORED_HIPS_SD_M)
    if min(clavicles) > 0:
        lengths.append(LengthPrior(*shoulders, 0.0, EQUAL_CLAVICLES_SD_M))
        if mirror:
            prior.add_mirror_prior(*clavicles, MIRRORED_CLAVICLES_SD_M)
    elif mirror and min(shoulders) > 0:
        prior.add_mirror_prior(*shoulders, MIRRORED_SHOULDERS_SD_M)
