"""The content of JSON files."""

import json
from pathlib import Path
from typing import Any

from marey.io.file import File
from marey.io.text.encoding import decode_text


def load_json(file: File, path: Path) -> Any:
    """Return the content of a JSON file: the one that is read, or one beside it.

    Raises:
        FormatError: If it is no JSON.
    """
    read = file if path == file.path else file.open_other(path)
    try:
        return json.loads(decode_text(read.text()))
    except (OSError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        file.fail("JSON", f"{path.name}: {error}", line=line, cause=error)
