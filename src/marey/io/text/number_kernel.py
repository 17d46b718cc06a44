"""Compiled number parsing: the inner loop of every text format.

A number is what `float` of Python takes, less underscores, hexadecimal and words: an
optional sign, digits with an optional point, an optional exponent. Up to 18 digits
with a power of ten within 22 are converted here, exactly as Python does; the rare rest
is marked LONG and converted by Python.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import NO_WRAPPERS, njit

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4

POWERS = 10.0 ** np.arange(23)
EXACT = np.int64(2**53)
MOST_DIGITS = 18

# Veltkamp's constant: splits a double into two halves whose products are exact.
SPLIT = 134217729.0
RELATIVE_ERROR = 2.0**-50

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32

# Indices of the fast path are unsigned: the compiler then drops its checks for
# negative ones, which halves the time.
U0, U1, U10, U48 = np.uint64(0), np.uint64(1), np.uint64(10), np.uint64(48)
FAST_DIGITS = np.uint64(18)


@njit(cache=True, inline="always")
def is_blank(c):
    """Whether a byte is white space."""
    return c == SPACE or TAB <= c <= RETURN


@njit(cache=True, inline="always")
def _digits(data, i, mantissa):
    """Return the mantissa with the digits from data[i] on, and the index after them."""
    digit = np.uint64(data[i]) - U48
    while digit < U10:
        mantissa = mantissa * U10 + digit
        i += U1
        digit = np.uint64(data[i]) - U48
    return mantissa, i


@njit(cache=True, inline="always")
def fast_number(data, i):
    """Return (whether it was plain, value, next index) of a number such as -12.345.

    Only a sign, up to 18 digits and a point are taken; the caller checks what follows
    and leaves all else to `parse_cell`. The text must end in a line end.
    """
    negative = data[i] == 45
    if negative:
        i += U1
    first = i
    mantissa, i = _digits(data, i, U0)
    digits = i - first
    decimals = U0
    if data[i] == 46:
        first = i + U1
        mantissa, i = _digits(data, first, mantissa)
        decimals = i - first
        digits += decimals
    plain = U0 < digits <= FAST_DIGITS and mantissa <= np.uint64(EXACT)
    value = np.float64(np.int64(mantissa)) / POWERS[decimals if plain else U0]
    return plain, -value if negative else value, i


@njit(cache=True, **NO_WRAPPERS)
def scan_number(data, i, stop):
    """Return (status, value, next index) of the number that begins at data[i]."""
    negative = data[i] == 45
    if negative or data[i] == 43:
        i += 1
    first = i
    number, after = _digits(data, np.uint64(i), U0)
    digits = np.int64(after) - first
    exponent = 0
    if data[after] == 46:
        point = after + U1
        number, after = _digits(data, point, number)
        exponent = np.int64(point) - np.int64(after)
        digits -= exponent
    i = np.int64(after)
    mantissa = np.int64(number)
    if digits == 0:
        return WORD, np.nan, i
    if digits > MOST_DIGITS and _significant(data, first, i) > MOST_DIGITS:
        mantissa = np.int64(-1)
    if data[i] == 101 or data[i] == 69:
        power, end = _exponent(data, i + 1, stop)
        if end == i + 1:
            return WORD, np.nan, i
        exponent += power
        i = end
    status, value = _decimal(mantissa, exponent)
    return status, -value if negative else value, i


@njit(cache=True, **NO_WRAPPERS)
def _decimal(mantissa, exponent):
    """Return (status, mantissa * 10**exponent); LONG of a mantissa below zero."""
    if mantissa == 0:
        return NUMBER, 0.0
    if mantissa < 0 or exponent < -22 or exponent > 22:
        return LONG, np.nan
    if mantissa > EXACT:
        return _scale_by_power(mantissa, exponent)
    # Both factors are exact, so one operation rounds once.
    value = np.float64(mantissa)
    if exponent < 0:
        return NUMBER, value / POWERS[-exponent]
    return NUMBER, value * POWERS[exponent]


@njit(cache=True, **NO_WRAPPERS)
def _significant(data, i, stop):
    """Return how many digits follow the leading zeros."""
    count = 0
    while i < stop:
        if data[i] != 46 and (count > 0 or data[i] != 48):
            count += 1
        i += 1
    return count


@njit(cache=True, **NO_WRAPPERS)
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


@njit(cache=True, **NO_WRAPPERS)
def _scale_by_power(mantissa, exponent):
    """Return (status, mantissa * 10**exponent) correctly rounded, or LONG.

    The result is worked out as a sum of two doubles; when its small error could tip
    the rounding, the answer is left to Python.
    """
    high = np.float64(mantissa)
    low = np.float64(mantissa - np.int64(high))
    if exponent < 0:
        power = POWERS[-exponent]
        first = high / power
        product, error = _product(first, power)
        rest = (((high - product) - error) + low) / power
        error_bound = RELATIVE_ERROR * abs(rest)
    else:
        power = POWERS[exponent]
        first, error = _product(high, power)
        rest = error + low * power
        error_bound = RELATIVE_ERROR * (abs(error) + abs(low * power))
    if first + (rest - error_bound) != first + (rest + error_bound):
        return LONG, np.nan
    return NUMBER, first + rest


@njit(cache=True, **NO_WRAPPERS)
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


@njit(cache=True, **NO_WRAPPERS)
def _is_nan(data, start, stop):
    if stop - start != 3:
        return False
    n, a, m = data[start] | 32, data[start + 1] | 32, data[start + 2] | 32
    return n == 110 and a == 97 and m == 110


@njit(cache=True, **NO_WRAPPERS)
def parse_cell(data, i, stop, delimiter):
    """Return (status, value, index after the cell) of the cell that begins at data[i].

    A cell ends at the delimiter, or at any white space when the delimiter is a space,
    and at the end of the line; blanks around it do not count.
    """
    i = _skip_blanks(data, i, stop, delimiter)
    if _ends(data, i, stop, delimiter):
        return BLANK, np.nan, i
    status, value, end = scan_number(data, i, stop)
    if delimiter != SPACE:
        end = _skip_blanks(data, end, stop, delimiter)
    if _ends(data, end, stop, delimiter):
        return status, value, end
    while not _ends(data, end, stop, delimiter):
        end += 1
    last = end
    while is_blank(data[last - 1]):
        last -= 1
    return (NAN if _is_nan(data, i, last) else WORD), np.nan, end


@njit(cache=True, inline="always")
def _skip_blanks(data, i, stop, delimiter):
    """Return the index of the first byte that is not a blank inside the cell."""
    tab = delimiter == TAB
    while i < stop and is_blank(data[i]) and data[i] != NEWLINE:
        if tab and data[i] == TAB:
            break
        i += 1
    return i


@njit(cache=True, inline="always")
def _ends(data, i, stop, delimiter):
    """Whether a cell ends before data[i]."""
    if i == stop or data[i] == delimiter or data[i] == NEWLINE:
        return True
    return delimiter == SPACE and is_blank(data[i])


@njit(cache=True, inline="always")
def parse_number_cell(data, i, delimiter):
    """Return (status, value, next index) of the cell at data[i], plain numbers fast.

    The text must end in a line end. The value of a LONG number is its byte offset.
    """
    plain, value, after = fast_number(data, i)
    end = data[after]
    ends = is_blank(end) if delimiter == SPACE else end in (delimiter, NEWLINE)
    if plain and ends:
        return NUMBER, value, after
    kind, value, stop = parse_cell(data, np.int64(i), data.size, delimiter)
    return kind, np.float64(i) if kind == LONG else value, np.uint64(stop)


@njit(cache=True)
def count_lines(data, least, most):
    """Return how many lines begin with a byte of a range, blanks not counted."""
    count = 0
    fresh = True
    for c in data:
        if c == NEWLINE:
            fresh = True
        elif fresh and not is_blank(c):
            fresh = False
            count += least <= c <= most
    return count


@njit(cache=True)
def parse_rows(data, delimiter, values, status, cells, line_of_row):
    """Fill one row of values per line that is not blank.

    Args:
        data: Text as bytes.
        delimiter: Byte between cells; a space means any run of blanks.
        values: Output (row, column); cells that are missing stay as they are, and of a
            LONG one it is the byte where it begins.
        status: Output (row, column); what each cell is.
        cells: Output (row,); cells on each line, trailing empty ones not counted.
        line_of_row: Output (row,); lines before each row.

    Returns:
        Number of rows.
    """
    row = 0
    column = 0
    line = 0
    i = U0
    size = np.uint64(data.size)
    columns = values.shape[1]
    by_blanks = delimiter == SPACE
    visible = delimiter > SPACE
    holds = False
    while i < size:
        kind, value, i = parse_number_cell(data, i, delimiter)
        if kind != BLANK:
            holds = True
            cells[row] = column + 1
            if column < columns:
                values[row, column] = value
                status[row, column] = kind
        if kind != BLANK or not by_blanks:
            column += 1
        if data[i] != NEWLINE:
            holds |= visible
        else:
            if holds:
                line_of_row[row] = line
                row += 1
            holds = False
            column = 0
            line += 1
        i += U1
    return row
