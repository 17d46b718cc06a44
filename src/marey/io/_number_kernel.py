"""Compiled number parsing: the inner loop of every text format.

A number is what `float` of Python takes, less underscores, hexadecimal and words: an
optional sign, digits with an optional point, an optional exponent. Up to 15 digits
and a power of ten within 22 convert exactly in one operation; the rare rest is marked
and converted by Python.
"""

from typing import no_type_check

import numpy as np
from numba import njit

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4

POWERS = 10.0 ** np.arange(23)
EXACT = 2**53

TAB, NEWLINE, SPACE = 9, 10, 32


@no_type_check
@njit(cache=True)
def parse_cell(data, start, stop):
    """Return (status, value) of the text data[start:stop], blanks around it ignored."""
    while start < stop and data[start] <= SPACE:
        start += 1
    while stop > start and data[stop - 1] <= SPACE:
        stop -= 1
    if start == stop:
        return BLANK, np.nan
    i = start
    negative = data[i] == 45
    if data[i] == 45 or data[i] == 43:
        i += 1
    mantissa, digits, exponent, i = _mantissa(data, i, stop)
    if digits == 0:
        return (NAN if _is_nan(data, start, stop) else WORD), np.nan
    if i < stop and (data[i] == 101 or data[i] == 69):
        power, i = _exponent(data, i + 1, stop)
        exponent += power
    if i != stop:
        return WORD, np.nan
    if mantissa == 0 and digits < 19:
        return NUMBER, -0.0 if negative else 0.0
    if digits > 18 or mantissa > EXACT or exponent < -22 or exponent > 22:
        return LONG, np.nan
    value = np.float64(mantissa)
    value = value / POWERS[-exponent] if exponent < 0 else value * POWERS[exponent]
    return NUMBER, -value if negative else value


@no_type_check
@njit(cache=True)
def _mantissa(data, i, stop):
    """Return (integer of all digits, their count, power of ten, next index)."""
    mantissa = 0
    digits = 0
    exponent = 0
    point = False
    while i < stop:
        c = data[i]
        if 48 <= c <= 57:
            if digits < 18:
                mantissa = mantissa * 10 + (c - 48)
            digits += 1
            exponent -= point
        elif c == 46 and not point:
            point = True
        else:
            break
        i += 1
    return mantissa, digits, exponent, i


@no_type_check
@njit(cache=True)
def _exponent(data, i, stop):
    """Return (power, next index); the index stays put when no digits follow."""
    start = i
    negative = i < stop and data[i] == 45
    if i < stop and (data[i] == 45 or data[i] == 43):
        i += 1
    first = i
    power = 0
    while i < stop and 48 <= data[i] <= 57:
        power = min(power * 10 + (data[i] - 48), 100000)
        i += 1
    if i == first:
        return 0, start - 1
    return (-power if negative else power), i


@no_type_check
@njit(cache=True)
def _is_nan(data, start, stop):
    if stop - start != 3:
        return False
    n, a, m = data[start] | 32, data[start + 1] | 32, data[start + 2] | 32
    return n == 110 and a == 97 and m == 110


@no_type_check
@njit(cache=True)
def parse_rows(data, delimiter, values, status, cells, start_of_row):
    """Fill one row of values per line that is not blank.

    Args:
        data: Text as bytes.
        delimiter: Byte between cells; a space stands for any run of blanks.
        values: Output (row, column); cells that are missing stay as they are.
        status: Output (row, column); what each cell is.
        cells: Output (row,); cells on each line, trailing empty ones not counted.
        start_of_row: Output (row,); byte where each row begins.

    Returns:
        Number of rows.
    """
    row = 0
    i = 0
    while i < data.size:
        stop = i
        while stop < data.size and data[stop] != NEWLINE:
            stop += 1
        if not _is_blank(data, i, stop):
            start_of_row[row] = i
            cells[row] = _parse_line(data, i, stop, delimiter, values[row], status[row])
            row += 1
        i = stop + 1
    return row


@no_type_check
@njit(cache=True)
def _is_blank(data, i, stop):
    while i < stop and data[i] <= SPACE:
        i += 1
    return i == stop


@no_type_check
@njit(cache=True)
def _parse_line(data, i, stop, delimiter, values, status):
    """Parse data[i:stop] into one row; return how many cells it holds."""
    column = 0
    last = 0
    while i <= stop:
        if delimiter == SPACE:
            while i < stop and data[i] <= SPACE:
                i += 1
            if i == stop:
                break
        end = i
        while end < stop and not _separates(data[end], delimiter):
            end += 1
        kind, value = parse_cell(data, i, end)
        if column < values.size:
            values[column] = value
            status[column] = kind
        column += 1
        if kind != BLANK:
            last = column
        i = end + 1
    return last


@no_type_check
@njit(cache=True)
def _separates(c, delimiter):
    return c <= SPACE if delimiter == SPACE else c == delimiter


@no_type_check
@njit(cache=True)
def split_tokens(data, start, stop):
    """Fill start and stop of every blank-separated token; return how many there are.

    With empty outputs it only counts.
    """
    count = 0
    i = 0
    while True:
        while i < data.size and data[i] <= SPACE:
            i += 1
        if i >= data.size:
            return count
        begin = i
        while i < data.size and data[i] > SPACE:
            i += 1
        if count < start.size:
            start[count] = begin
            stop[count] = i
        count += 1


@no_type_check
@njit(cache=True)
def parse_tokens(data, start, stop, values, status):
    """Fill value and status of every token."""
    for k in range(start.size):
        status[k], values[k] = parse_cell(data, start[k], stop[k])
