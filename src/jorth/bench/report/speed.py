"""Times to a gap as ratios to the fastest."""

from __future__ import annotations

from jorth.bench.records import Row
from jorth.bench.report.groups import Group, group_rows
from jorth.bench.scoring import GAPS


def ratios(group: Group, gap: float) -> tuple[float | None, dict[str, float | None]]:
    """The least time in which a method reached the gap, and each method's time over it; None where it did not."""
    times = {name: row["reached"].get(f"{gap:g}", {}).get("time") for name, row in group.done.items()}
    known = [time for time in times.values() if time is not None]
    if not known:
        return None, dict.fromkeys(times)
    fastest = max(min(known), 1e-9)
    return min(known), {name: None if time is None else time / fastest for name, time in times.items()}


def ratio_lines(rows: list[Row]) -> list[str]:
    """The table as text, a block a problem."""
    lines = []
    for group in group_rows(rows, "procrustes"):
        columns = [ratios(group, gap) for gap in GAPS]
        times = ["-" if best is None else f"{best:.2g} s" for best, _ in columns]
        heads = [f"{gap:.0e} ({time})" for gap, time in zip(GAPS, times, strict=True)]
        lines += ["", f"{group.name}, {group.budget} a run: time to a gap over the fastest time"]
        lines.append(f"{'':<20}" + "".join(f"{head:>18}" for head in heads))
        for name in group.rows:
            cells = [found.get(name) for _, found in columns]
            lines.append(f"{name:<20}" + "".join(f"{'-' if c is None else f'{c:.2f}':>18}" for c in cells))
    return lines
