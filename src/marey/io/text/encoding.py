"""Encodings and line ends of text files: bytes in, UTF-8 or text out."""

BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
"""First bytes of UTF-16 (little and big endian) and UTF-8 text."""


def normalize_text(data: bytes) -> bytes:
    r"""Return text as UTF-8 bytes with \n line ends and no byte order mark."""
    if data.startswith(BYTE_ORDER_MARKS[:2]):
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(BYTE_ORDER_MARKS[2])
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def decode_text(data: bytes) -> str:
    """Return a name or header line as text: UTF-8, else Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
