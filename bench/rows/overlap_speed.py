"""Contamination scan: CPU beside what merely parsing the same lines costs."""

from bench.paired import cpu_seconds, paired
from bench.row import Row
from bench.scanning import corpus, scan


def parsed() -> None:
    """Every line through orjson, as any tool in Python must that parses."""
    import orjson

    with corpus().file.open("rb") as lines:
        for line in lines:
            orjson.loads(line)


def measure() -> Row:
    """Reading, folding, grams, lookup and sums, on one core; the close look at flagged rows is in the note."""
    file = corpus().file
    size = file.stat().st_size / 1e6
    pair = paired(lambda: scan(file, look=False), parsed)
    whole = cpu_seconds(lambda: scan(file))
    report = scan(file, look=False)
    return Row(
        name="contamination scan, CPU",
        against=f"orjson.loads of each line: {size / pair.theirs:.0f} MB/cpu-s",
        goal=1.25,
        measured=pair.ratio,
        unit="x orjson",
        note=f"{size / pair.ours:.0f} MB/cpu-s on {size:.0f} MB in {report.rows} rows; opening the "
        f"{report.not_looked_at} flagged windows adds {1e3 * (whole - pair.ours) / report.not_looked_at:.1f} ms each",
    )
