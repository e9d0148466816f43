"""What the scripts have in common: their arguments, and the run."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager
from typing import Any

import aniso


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--verb", default="denoise", choices=["denoise", "enhance"])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--pyramid", action="store_true")
    return parser.parse_args(words)


def run(cluster: AbstractContextManager[Any], given: argparse.Namespace) -> None:
    """Filter the store on a cluster, which is ended afterwards."""
    with cluster as started:
        done = aniso.filter_store(
            given.source,
            given.target,
            given.verb,
            scheduler=started.scheduler_address,
            pyramid=given.pyramid,
            note=lambda kind, text: print(text, file=sys.stderr),
            watch=lambda now: print(f"{now.blocks} of {now.total} blocks", file=sys.stderr),
        )
    print(done.plan)
