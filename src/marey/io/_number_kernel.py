"""Compiled number parsing: the inner loop of every text format.

A number is what `float` of Python takes, less underscores, hexadecimal and words: an
optional sign, digits with an optional point, an optional exponent. Up to 18 digits
with a power of ten within 22 are converted here, exactly as Python does; the rare rest
is marked LONG and converted by Python.
"""

from typing import no_type_check

import numpy as np
from numba import njit

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4

POWERS = 10.0 ** np.arange(23)
EXACT = 2**53
MOST_DIGITS = 18

# Veltkamp's constant: splits a double into two halves whose products are exact.
SPLIT = 134217729.0
DOUBT = 2.0**-50

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32


@no_type_check
@njit(cache=True, inline="always")
def is_blank(c):
    """Whether a byte is white space."""
    return c == SPACE or TAB <= c <= RETURN


@no_type_check
@njit(cache=True)
def scan_number(data, i, stop):
    """Return (status, value, next index) of the number that begins at data[i]."""
    negative = data[i] == 45
    if negative or data[i] == 43:
        i += 1
    mantissa = np.int64(0)
    exponent = 0
    digits = 0
    any_digit = False
    point = False
    while i < stop:
        c = np.int64(data[i]) - 48
        if 0 <= c <= 9:
            any_digit = True
            if digits < MOST_DIGITS:
                mantissa = mantissa * 10 + c
            if mantissa > 0:
                digits += 1
            if point:
                exponent -= 1
        elif c == -2 and not point:
            point = True
        else:
            break
        i += 1
    if not any_digit:
        return WORD, np.nan, i
    if i < stop and (data[i] == 101 or data[i] == 69):
        power, after = _exponent(data, i + 1, stop)
        if after == i + 1:
            return WORD, np.nan, i
        exponent += power
        i = after
    if mantissa == 0:
        return NUMBER, -0.0 if negative else 0.0, i
    if digits > MOST_DIGITS or exponent < -22 or exponent > 22:
        return LONG, np.nan, i
    status, value = _scaled(mantissa, exponent)
    return status, -value if negative else value, i


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
        power = min(power * 10 + (np.int64(data[i]) - 48), 100000)
        i += 1
    if i == first:
        return 0, start
    return (-power if negative else power), i


@no_type_check
@njit(cache=True)
def _scaled(mantissa, exponent):
    """Return (status, mantissa * 10**exponent) correctly rounded, or LONG.

    Up to 2**53 both factors are exact and one operation rounds once. Beyond, the
    result is a sum of two doubles; when its small error could tip the rounding, the
    answer is left to Python.
    """
    high = np.float64(mantissa)
    if mantissa <= EXACT:
        if exponent < 0:
            return NUMBER, high / POWERS[-exponent]
        return NUMBER, high * POWERS[exponent]
    low = np.float64(mantissa - np.int64(high))
    if exponent < 0:
        power = POWERS[-exponent]
        first = high / power
        product, error = _product(first, power)
        rest = (((high - product) - error) + low) / power
        doubt = DOUBT * abs(rest)
    else:
        power = POWERS[exponent]
        first, error = _product(high, power)
        rest = error + low * power
        doubt = DOUBT * (abs(error) + abs(low * power))
    if first + (rest - doubt) != first + (rest + doubt):
        return LONG, np.nan
    return NUMBER, first + rest


@no_type_check
@njit(cache=True)
def _product(a, b):
    """Return a * b as the rounded product and its exact error."""
    product = a * b
    t = SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + (
        a_low * b_low
    )
    return product, error


@no_type_check
@njit(cache=True)
def _is_nan(data, start, stop):
    if stop - start != 3:
        return False
    n, a, m = data[start] | 32, data[start + 1] | 32, data[start + 2] | 32
    return n == 110 and a == 97 and m == 110


@no_type_check
@njit(cache=True)
def parse_cell(data, i, stop, delimiter):
    """Return (status, value, index after the cell) of the cell that holds data[i].

    A cell ends at the delimiter, or at any white space when the delimiter is a space.
    """
    spaced = delimiter == SPACE
    while i < stop and data[i] != delimiter and is_blank(data[i]):
        i += 1
    if i == stop or data[i] == delimiter:
        return BLANK, np.nan, i
    status, value, end = scan_number(data, i, stop)
    if not spaced:
        while end < stop and data[end] != delimiter and is_blank(data[end]):
            end += 1
    if end == stop or data[end] == delimiter or (spaced and is_blank(data[end])):
        return status, value, end
    while end < stop and not (
        is_blank(data[end]) if spaced else data[end] == delimiter
    ):
        end += 1
    last = end
    while is_blank(data[last - 1]):
        last -= 1
    return (NAN if _is_nan(data, i, last) else WORD), np.nan, end


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
    columns = values.shape[1]
    while i < data.size:
        stop = i
        blank = True
        while stop < data.size and data[stop] != NEWLINE:
            blank = blank and is_blank(data[stop])
            stop += 1
        if not blank:
            start_of_row[row] = i
            column = 0
            while i <= stop:
                if delimiter == SPACE:
                    while i < stop and is_blank(data[i]):
                        i += 1
                    if i == stop:
                        break
                kind, value, i = parse_cell(data, i, stop, delimiter)
                if column < columns:
                    values[row, column] = value
                    status[row, column] = kind
                column += 1
                if kind != BLANK:
                    cells[row] = column
                i += 1
            row += 1
        i = stop + 1
    return row


@no_type_check
@njit(cache=True)
def parse_stream(data, values):
    """Fill the blank-separated numbers of a text, whatever its lines.

    Returns:
        How many there are; or -1 - i when something at byte i is not a number.
    """
    count = 0
    i = 0
    while True:
        while i < data.size and is_blank(data[i]):
            i += 1
        if i >= data.size:
            return count
        start = i
        kind, value, i = parse_cell(data, i, data.size, SPACE)
        if kind != NUMBER and kind != LONG:
            return -1 - start
        if count < values.size:
            values[count] = value
        count += 1
