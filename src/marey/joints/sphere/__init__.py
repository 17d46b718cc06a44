"""Joint centres as centres of spheres (Knight2007, GDKE)."""
