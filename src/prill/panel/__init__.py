"""A panel: a finished run quoted as data, put to models some times, and their answers held against the evidence."""
