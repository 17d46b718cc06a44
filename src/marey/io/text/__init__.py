"""Tables of numbers in text files: what the text formats share."""
