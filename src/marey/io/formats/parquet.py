"""Parquet: a take as columns, for pandas, Polars, DuckDB and the like.

The columns are those of the CSV: `time`, `LFHD.x` `LFHD.y` `LFHD.z` of each marker, and
`pelvis.x` `.y` `.z` `.qw` `.qx` `.qy` `.qz` of each sensor, all float64. A gap is NaN;
when reading, null is a gap too. Unit, up axis, rate and the names of markers and
sensors are JSON under `marey` in the metadata of the schema. Tables of other
origin are read by the names of their columns, or by a column map.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from marey.errors import import_extra
from marey.io.contract import Format, Output, QuantityTable
from marey.io.file import File
from marey.io.options import WriteOptions
from marey.io.text import take as tables
from marey.numerics import Float
from marey.take import Take

MAGIC = b"PAR1"
KEY = b"marey"
DECIMALS = 12
"""Decimals of a quaternion: 1e-12 radians."""

MAX_NUMBER = 1e20
"""Numbers beyond this are damage, even as nanoseconds since 1970."""

# A table may take this many times its file's bytes, plus the spare ones.
MAX_GROWTH = 8
SPARE_BYTES = 48 * 2**20
CELL_BYTES = 8
DAMAGE_ERRORS = (
    *(OSError, ValueError, TypeError, KeyError),
    *(OverflowError, MemoryError, RecursionError),
)
"""What damaged bytes make pyarrow and JSON raise."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like Parquet."""
    return head.startswith(MAGIC)


def import_pyarrow() -> Any:
    """Return pyarrow with its Parquet part.

    Raises:
        MissingExtraError: If it is not installed.
    """
    import_extra("pyarrow.parquet", "parquet")
    return import_extra("pyarrow", "parquet")


def read_take(file: File) -> Take:
    """Return the take of a Parquet file."""
    names, values, meta = _table(file)
    columns = tables.decide_columns(file, names, meta)
    return tables.take_of_columns(file, values, columns, meta)


def _table(
    file: File,
) -> tuple[tuple[str, ...], Float[np.ndarray, "frame column"], dict[str, Any]]:
    """Return the columns that hold numbers, their names, and the metadata of marey."""
    pa = import_pyarrow()
    try:
        with pa.parquet.ParquetFile(
            pa.BufferReader(file.content()), page_checksum_verification=True
        ) as content:
            _check_size(file, content.metadata)
            schema = content.schema_arrow
            # `names` and `types` make new lists of all columns at every call.
            names, types = schema.names, schema.types
            columns = [i for i, kind in enumerate(types) if _is_number(pa, kind)]
            values = _values(pa, content, columns)
            meta = json.loads((schema.metadata or {}).get(KEY, b"{}"))
    except (pa.ArrowException, *DAMAGE_ERRORS) as error:
        file.fail("a whole Parquet file", error, cause=error)
    values[~np.isfinite(values)] = np.nan
    if (np.abs(values) > MAX_NUMBER).any():
        file.fail(f"numbers within {MAX_NUMBER:g}", "others")
    numeric = tuple(names[i] for i in columns)
    return numeric, values, meta if isinstance(meta, dict) else {}


def _check_size(file: File, declared: Any) -> None:
    """Refuse a table that would take far more room than its file."""
    rows, columns = declared.num_rows, declared.num_columns
    if rows < 0 or CELL_BYTES * rows * columns > _max_bytes(file.size):
        file.fail(
            f"at most {_max_bytes(file.size)} bytes of numbers",
            f"{rows} rows of {columns} columns",
        )


def _max_bytes(size: int) -> int:
    return MAX_GROWTH * size + SPARE_BYTES


def _is_number(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    )


def _values(
    pa: Any, content: Any, columns: Sequence[int]
) -> Float[np.ndarray, "frame column"]:
    """Return the numbers of these columns, NaN where they are null."""
    values = np.empty((content.metadata.num_rows, len(columns)))
    at = 0
    for batch in content.iter_batches(use_threads=False):
        arrays = batch.columns
        for k, column in enumerate(columns):
            numbers = arrays[column].cast(pa.float64(), safe=False)
            rows = numbers.to_numpy(zero_copy_only=False)
            values[at : at + batch.num_rows, k] = rows
        at += batch.num_rows
    if at != len(values):
        raise ValueError(f"{len(values)} rows declared, {at} present")
    return values


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the Parquet file of a take."""
    pa = import_pyarrow()
    names, values, meta = tables.table_of_take(take, options, decimals=DECIMALS)
    metadata = {KEY: json.dumps(meta).encode(), **_provenance(options)}
    return {"": [_pack(pa, pa.table([*values.T], names=names, metadata=metadata))]}


def write_table(table: QuantityTable, options: WriteOptions) -> Output:
    """Return the Parquet file of a table; units are in the metadata of its columns."""
    pa = import_pyarrow()
    fields = [
        pa.field(name, pa.float64(), metadata={"unit": unit})
        for name, unit in zip(table.names, table.units, strict=True)
    ]
    schema = pa.schema(fields, metadata=_provenance(options) or None)
    columns = pa.table([*table.values.T], schema=schema)
    return {"": [_pack(pa, columns)]}


def _provenance(options: WriteOptions) -> dict[bytes, bytes]:
    text = options.provenance_text()
    return {b"provenance": text.encode()} if text else {}


def _pack(pa: Any, table: Any) -> bytes:
    """Return the file, compressed unless it would then be too small to be trusted."""
    content = _content(pa, table, "zstd")
    if CELL_BYTES * table.num_rows * table.num_columns > _max_bytes(len(content)):
        content = _content(pa, table, "none")
    return content


def _content(pa: Any, table: Any, compression: str) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(
        table,
        sink,
        compression=compression,
        use_dictionary=False,
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


FORMAT = Format(
    name="parquet",
    title="Parquet table of markers and poses",
    suffixes=(".parquet",),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    write_table=write_table,
    loses=("events", "analog", "filled", "computed", "confidence"),
    import_packages=import_pyarrow,
)
