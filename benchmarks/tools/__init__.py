"""What looks at the code and its answers, and is no benchmark."""
