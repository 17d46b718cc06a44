"""How right and how fast marey is, beside what people use today."""
