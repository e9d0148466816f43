"""All claims, in the order of the paper, then those of the library that go beyond it."""

from __future__ import annotations

from benchmarks.claims import (
    acceleration,
    bound,
    consistency,
    definiteness,
    extensions,
    family,
    invariance,
    networks,
    splitting,
    steps,
    timings,
)
from benchmarks.claims.claim import Claim

GROUPS: dict[str, list[Claim]] = {
    "The stencil (section 2)": [*splitting.CLAIMS, *consistency.CLAIMS, *family.CLAIMS],
    "Semidefiniteness and the bound (section 3)": [*definiteness.CLAIMS, *bound.CLAIMS],
    "Step sizes (section 3)": steps.CLAIMS,
    "Quality (section 3)": invariance.CLAIMS,
    "Residual networks (section 4)": networks.CLAIMS,
    "Speed (section 4)": timings.CLAIMS,
    "Acceleration (section 5)": acceleration.CLAIMS,
    "Beyond the paper": extensions.CLAIMS,
}
CLAIMS = [claim for group in GROUPS.values() for claim in group]
