"""What is known about people, where the motion leaves a choice of bodies and trees."""
