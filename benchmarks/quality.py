"""How good the results of the verbs are: tables, JSON and pictures, section by section.

    python -m benchmarks.quality --json benchmarks/results --pictures benchmarks/results

Ends with exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from benchmarks.timing import CONSOLE

#: Name → module with measure(quick=...) -> Report and picture(report, path).
SECTIONS = {
    "denoise": "benchmarks.quality_denoise",
    "enhance": "benchmarks.quality_enhance",
    "inpaint": "benchmarks.quality_inpaint",
    "upsample": "benchmarks.quality_upsample",
}


def section(name: str) -> Any:
    """The module of a section."""
    return importlib.import_module(SECTIONS[name])


def main() -> int:
    """Run the sections asked for, all by default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="few images, to see that it works")
    parser.add_argument("--json", type=Path, help="folder to write quality_<section>.json to")
    parser.add_argument("--pictures", type=Path, help="folder to write quality_<section>.png to")
    parser.add_argument(
        "--markdown", action="store_true", help="also print the tables as in the documentation"
    )
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}; the sections are {', '.join(SECTIONS)}")
    missed = 0
    for name in options.sections or SECTIONS:
        module = section(name)
        found = module.measure(quick=options.quick)
        found.show()
        if options.markdown and hasattr(module, "table"):
            CONSOLE.print(module.table(found), highlight=False, soft_wrap=True)
        if options.json:
            found.save(options.json / f"quality_{name}.json")
        if options.pictures:
            module.picture(found, options.pictures / f"quality_{name}.png")
        missed += sum(not target.met for target in found.targets)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
