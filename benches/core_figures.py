"""The last figures of the Criterion benches of the core, as a table."""

import json
from pathlib import Path

from report import table

RESULTS = Path(__file__).parent.parent / "target" / "criterion"
UNITS = (("ms", 1e6), ("us", 1e3), ("ns", 1))


def core_figures():
    """Returns a table of the benches that were run: the median of each, and that of one of its messages.

    Returns None where none was run.
    """
    rows = []
    for path in RESULTS.glob("*/*/new/benchmark.json"):
        bench = json.loads(path.read_text())
        found = json.loads((path.parent / "estimates.json").read_text())["median"]
        between = found["confidence_interval"]
        messages = (bench["throughput"] or {}).get("Elements", 1)
        each = _time(found["point_estimate"] / messages) if messages > 1 else ""
        bounds = f"{_time(between['lower_bound'])} to {_time(between['upper_bound'])}"
        rows.append([bench["full_id"].replace("/", ": "), _time(found["point_estimate"]), bounds, each])
    return table(["what", "median", "95 % confidence", "a message"], sorted(rows)) if rows else None


def _time(nanoseconds):
    unit, size = next(((unit, size) for unit, size in UNITS if nanoseconds >= size), UNITS[-1])
    return f"{nanoseconds / size:.3g} {unit}"
