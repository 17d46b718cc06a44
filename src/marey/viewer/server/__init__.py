"""The web server of `marey view`: routes, authentication, state and files."""
