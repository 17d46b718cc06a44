"""Parts shared by the readers and writers of text formats.

- `numbers`: text to numbers, and the rounding of written numbers.
- `header`: what stands above the numbers of a table.
- `names`: unique and printable names of markers and joints.
- `timing`: frame counts and frame rates.
- `rotations`: quaternions, rotation matrices and Euler angles of a file.
- `columns`: which columns of a table belong to one marker or sensor.
- `xml`: elements of XML of untrusted origin.
- `take`: columns to a take, and a take to columns.
"""
