"""`python -m tests.fuzzing`: many cases, and a table of what became of them."""

import argparse
import collections
import os
import sys

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main() -> int:
    """Run the cases; 1 if any failed."""
    from tests.fuzzing.targets import TARGETS, verdict

    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="about how many in all")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", nargs="*", choices=list(TARGETS), help="these targets alone")
    parser.add_argument("--again", metavar="SEED/TARGET/NUMBER", help="one case alone, as a failure names it")
    given = parser.parse_args()
    if given.again:
        seed, name, number = given.again.split("/")
        case, found = verdict(name, f"{seed}/{number}")
        print(case.text, found.kind, found.fault, sep="\n")
        return found.kind == "failed"
    names = given.only or list(TARGETS)
    whole = sum(TARGETS[name][1] for name in names)
    counts: dict[str, collections.Counter[str]] = {}
    for name in names:
        counts[name] = collections.Counter()
        for number in range(round(given.cases * TARGETS[name][1] / whole)):
            case, found = verdict(name, f"{given.seed}/{number}")
            counts[name][found.kind] += 1
            if found.kind == "failed":
                print(f"{given.seed}/{name}/{number}: {case.text}\n    {found.fault}", flush=True)
    print(f"{'target':<16}{'cases':>8}{'accepted':>10}{'refused':>10}{'failed':>8}")
    counts["all"] = sum(counts.values(), collections.Counter())
    for name, count in counts.items():
        kinds = [count[kind] for kind in ("accepted", "refused", "failed")]
        print(
            f"{name:<16}{sum(kinds):>8}"
            + "".join(f"{n:>{w}}" for n, w in zip(kinds, (10, 10, 8), strict=True))
        )
    return int(counts["all"]["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
