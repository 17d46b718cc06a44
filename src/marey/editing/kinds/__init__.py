"""The kinds of edits by what they concern: what each asks for, and how it is done."""
