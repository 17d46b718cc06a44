"""The kinds of edits, one module each: what an edit asks for, and how it is done."""
