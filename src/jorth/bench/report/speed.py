"""Times to a gap as ratios to the fastest."""

from __future__ import annotations

from jorth.bench.report.groups import Group


def ratios(group: Group, gap: float) -> tuple[float | None, dict[str, float | None]]:
    """The least time in which a method reached the gap, and each method's time over it; None where it did not."""
    times = {
        name: row["reached"].get(f"{gap:g}", {}).get("time") for name, row in group.done.items()
    }
    known = [time for time in times.values() if time is not None]
    if not known:
        return None, dict.fromkeys(times)
    fastest = max(min(known), 1e-9)
    return min(known), {
        name: None if time is None else time / fastest for name, time in times.items()
    }
