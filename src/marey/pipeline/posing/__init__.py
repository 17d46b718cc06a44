"""What a pose takes besides skeleton and recording: limits, holds, ground and so on."""
