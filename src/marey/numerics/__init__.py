"""Mathematics without capture: rotations, rigid fits, robust estimates."""

__all__ = ["geometry", "robust"]
