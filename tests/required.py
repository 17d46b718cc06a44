"""Whether a test may be skipped without browser, node or OpenGL: not in CI."""

import os

REQUIRED = os.environ.get("MAREY_REQUIRE_BROWSER") == "1"
