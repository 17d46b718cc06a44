"""People, animals and mechanisms with known dimensions."""
