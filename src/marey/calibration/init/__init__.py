"""Starting values of a calibration."""
