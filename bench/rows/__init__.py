"""One file, one row: each has `measure() -> Row`; found by name, so there is no list to edit."""
