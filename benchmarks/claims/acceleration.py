"""Section 5: the explicit scheme is the backbone of super time stepping and of extrapolation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import aniso
from aniso.stability import spectral_bound, stable_step
from benchmarks import report
from benchmarks.claims.claim import Claim, Finding, Picture, at_least, at_most, close_to, shown
from benchmarks.claims.fields import ROUNDING, difference, turning_field

SMOOTH = aniso.EdgeEnhancing(contrast=10.0, sigma=1.0, diffusivity="charbonnier")
STEEP = aniso.EdgeEnhancing(contrast=6.0, sigma=1.5, diffusivity="weickert")
TOLERANCE, STEEP_TOLERANCE = 0.01, 0.05


def relative(actual: Any, expected: Any) -> float:
    """The error, relative to what is left of the image apart from its mean."""
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected - expected.mean()))


def explicit_backbone(quick: bool) -> Finding:
    rng = np.random.default_rng(11)
    size, time, stencil = 16, 40.0, aniso.DeltaStencil()
    against_steps, against_each_other, growth, largest = [], [], [], []
    for lambda2 in (1.0, 0.1, 0.0):
        field = turning_field(rng, size, 1.0, lambda2)
        matrix, limit = aniso.stencil.matrix(*field, stencil), 2 / spectral_bound(stencil, 1.0, lambda2)
        image = rng.normal(size=(size, size))
        model = aniso.FixedTensor.from_entries(*field)
        for cycles in (1, 2, 5):
            u = image.ravel()
            for cycle in aniso.FED(cycles).plan(time, limit):
                for _, tau in cycle.steps:
                    u = u + tau * (matrix @ u)
                largest.append(max(tau for _, tau in cycle.steps) / limit)
            fed, fsi = (
                aniso.diffuse(image, model, time, stencil=stencil, scheme=scheme, engine="reference")
                for scheme in (aniso.FED(cycles), aniso.FSI(cycles))
            )
            against_steps.append(difference(fed.ravel(), u))
            against_each_other.append(difference(fed, fsi))
            growth += [float(np.linalg.norm(result) / np.linalg.norm(image)) for result in (fed, fsi)]
    return Finding(
        [
            at_most("FED against a product of explicit steps", max(against_steps), 1e-10),
            at_most("FSI against FED", max(against_each_other), 1e-10),
            at_most("largest growth of the norm at the end of the cycles", max(growth), 1 + ROUNDING),
            at_least("longest step in a cycle over the stable one", max(largest), 2),
        ]
    )


def speed(quick: bool) -> Finding:
    size, time = (32, 100.0) if quick else (96, 400.0)
    counts = (1, 2, 4, 8, 16) if quick else (1, 2, 4, 8, 16, 32, 64)
    image = aniso.samples.shapes(size, noise=15.0).image
    smooth, steep = (race(image, model, time, counts) for model in (SMOOTH, STEEP))
    return Finding(
        [
            at_least(
                f"explicit steps over steps of FED, error ≤ {TOLERANCE:.0%}, Charbonnier's diffusivity",
                smooth.gain("FED"),
                1.5,
            ),
            at_least("the same for FSI", smooth.gain("FSI"), 1.5),
            *(
                close_to(f"{name}: order in the number of cycles", smooth.order(name), 1, 0.25)
                for name in smooth.curves
            ),
            shown(
                f"FED with Weickert's diffusivity, error ≤ {STEEP_TOLERANCE:.0%}: the same ratio",
                steep.gain("FED", STEEP_TOLERANCE),
            ),
            shown(
                "relative error of the explicit scheme at its limit, Charbonnier's diffusivity",
                smooth.explicit,
            ),
        ],
        [
            "Steps within a cycle share one tensor and are cheaper than explicit ones, which compute it "
            "each time: counted in time, the gain is larger. Weickert's diffusivity switches abruptly, so "
            "that a tensor which is kept for a whole cycle costs more accuracy there."
        ],
        [],
        [Picture("reproduction_cycles.png", CAPTION, lambda: drawing(smooth, steep))],
    )


@dataclass(frozen=True)
class Race:
    """Steps and errors of each scheme, with growing numbers of cycles, and of explicit steps at the limit."""

    counts: tuple[int, ...]
    curves: dict[str, list[tuple[int, float]]]
    steps: int
    explicit: float

    def gain(self, name: str, tolerance: float = TOLERANCE) -> float:
        """Explicit steps over those of the shortest run within the tolerance; 0 if there is none."""
        enough = [steps for steps, error in self.curves[name] if error <= tolerance]
        return self.steps / min(enough) if enough else 0.0

    def order(self, name: str) -> float:
        """How fast the error falls with the number of cycles, over the last three."""
        errors = [error for _, error in self.curves[name][-3:]]
        return float(-np.polyfit(np.log(self.counts[-3:]), np.log(errors), 1)[0])


def race(image: Any, model: aniso.EdgeEnhancing, time: float, counts: tuple[int, ...]) -> Race:
    def evolved(scheme: Any) -> Any:
        return aniso.diffuse(image, model, time, scheme=scheme, threads=1)

    limit = stable_step(model)
    truth = evolved(aniso.Explicit(step=limit / 20))
    curves = {
        kind.__name__: [
            (applications(kind(count), time, limit), relative(evolved(kind(count)), truth))
            for count in counts
        ]
        for kind in (aniso.FED, aniso.FSI)
    }
    explicit = relative(evolved(aniso.Explicit(step=limit)), truth)
    return Race(counts, curves, math.ceil(time / limit), explicit)


def applications(scheme: Any, time: float, limit: float) -> int:
    """How often A is applied."""
    return sum(len(cycle.steps) for cycle in scheme.plan(time, limit))


CAPTION = (
    "Edge-enhancing diffusion of one image to one time: relative error over the number of steps, for "
    "cycles of FED and FSI, which coincide, and for the explicit scheme at the largest stable step."
)


def drawing(smooth: Race, steep: Race) -> Any:
    drawn, axes = report.figure_of(1, 1, (7.5, 4.6))
    for label, race, colour in (("Charbonnier", smooth, "#1f6fb4"), ("Weickert", steep, "#d9661f")):
        for (name, curve), style in zip(race.curves.items(), ("o-", "x--"), strict=True):
            axes.plot(*zip(*curve, strict=True), style, color=colour, label=f"{name}, {label}", markersize=7)
        axes.plot([race.steps], [race.explicit], "s", color=colour, label=f"explicit, {label}", markersize=8)
    axes.axhline(TOLERANCE, color="0.6", linewidth=1, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="relative error")
    ticks = (20, 50, 100, 200, 500, 1000)
    axes.set_xticks(ticks, list(map(str, ticks)))
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return drawn


CLAIMS = [
    Claim(
        "backbone",
        "Explicit steps are the backbone of FED and FSI",
        "Explicit schemes form the backbone of acceleration methods based on super time stepping and "
        "extrapolation.",
        "Section 5",
        "Tensors at random angles, λ₂/λ₁ from 1 to 0. Fast explicit diffusion (FED, super time stepping) "
        "against explicit steps with its step sizes, written as products with the matrix; fast "
        "semi-iterative diffusion (FSI, extrapolation) against FED; the norm at the end of the cycles.",
        explicit_backbone,
    ),
    Claim(
        "acceleration",
        "FED and FSI accelerate",
        "Super time stepping and extrapolation are acceleration methods for which the step size limits "
        "serve.",
        "Section 1, “Our Contributions”; Section 5",
        "EED of a noisy image: error against very short explicit steps, over the number of cycles; how "
        "many steps are needed for a given error, against the explicit scheme at its largest stable step.",
        speed,
    ),
]
