"""The counts: python -m tests.fuzz [CASES] [BASE SEED] [ROOM]."""

import sys
from collections import Counter

from tests.fuzz.judge import CLEAR, ELSE, RIGHT
from tests.fuzz.rooms import ROOMS, run


def main(count: int = 2500, base: int = 0, only: str = "") -> None:
    total: Counter[str] = Counter()
    for room in ROOMS:
        if only and room != only:
            continue
        verdicts = run(room, count, base)
        counts = Counter(verdict.outcome for verdict in verdicts)
        total += counts
        for verdict in verdicts:
            if verdict.outcome == ELSE:
                print(f"    {verdict}")
        print(f"{room:12} " + ", ".join(f"{counts[name]} {name}" for name in (CLEAR, RIGHT, ELSE)))
    print(f"{'all':12} " + ", ".join(f"{total[name]} {name}" for name in (CLEAR, RIGHT, ELSE)))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]), *sys.argv[3:4])
