"""Poses of the skeletons of a stream, frame by frame."""
