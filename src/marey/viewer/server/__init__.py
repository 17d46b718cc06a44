"""The web server behind the page."""
