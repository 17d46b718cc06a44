"""The segmentation methods, one module each; see `marey.segmentation.contract`."""
