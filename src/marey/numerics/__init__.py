"""Mathematics without capture: rotations, rigid fits, robust estimates."""
