"""What is known about people and animals: names, sides, limits and masses."""
