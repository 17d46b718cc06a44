"""Recognition of marker sets by their labels, and checks of labels by the motion."""
