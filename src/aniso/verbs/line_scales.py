"""Parameters of enhancement: how scales and times follow from wavelength, noise and coherence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso import checks, estimates
from aniso.arrays import Array
from aniso.checks import Auto
from aniso.line_energy import SCALE, WINDOW, LineScale, coarse_grid, noise_width, spread
from aniso.noise.level import check_squares, choose_noise


@dataclass(frozen=True)
class _Rule:
    """Factors from wavelength, noise and coherence to the parameters."""

    # Scales, as parts of the wavelength.
    sigma: float
    rho: float
    # λ² as a part of the typical coherence μ1 − μ2.
    coherence_share: float
    # Times over the squared wavelength: proportional to noise over signal, between two, and of the first.
    time_per_noise: float
    shortest: float
    longest: float
    first: float


_IMAGES = _Rule(0.12, 0.35, 0.15, 1.2, 0.1, 1.0, 0.35)
# Diffusion in a plate reaches more voxels: it needs less time, and smooths curved plates sooner.
_PLATES = _Rule(0.1, 0.3, 0.04, 0.1, 0.03, 0.12, 0.05)
_LINES = _Rule(0.06, 0.3, 0.04, 0.3, 0.1, 0.4, 0.2)
# FED cycles of a diffusion.
CYCLES = 4


@dataclass(frozen=True)
class LineScales:
    """The parameters of an enhancement."""

    wavelength: float
    contrast: float
    time: float
    first: float
    flat: bool
    #: Of the test for lines, and its result.
    window: float
    lines: float
    rule: _Rule

    @property
    def sigma(self) -> float:
        """The noise scale."""
        return self.rule.sigma * self.wavelength

    @property
    def rho(self) -> float:
        """The integration scale."""
        return self.rule.rho * self.wavelength

    @classmethod
    def estimate(
        cls,
        channels: Array,
        spacings: tuple[float, ...],
        *,
        noise: float | Auto,
        wavelength: float | Auto,
        contrast: float | Auto,
        time: float | Auto,
        plates: bool,
    ) -> LineScales:
        """Return the scales of a checked array (channels, …); "auto" is estimated."""
        rule = _IMAGES if len(spacings) == 2 else _PLATES if plates else _LINES
        check_squares(channels)
        level = choose_noise(noise, channels)
        period = checks.number_or_auto("wavelength", wavelength, "the distance between lines")
        if period is None:
            # Lines farther apart than a quarter of the image cannot be distinguished from a slope.
            shortest = min(n * h for n, h in zip(channels.shape[1:], spacings, strict=True))
            found = estimates.measure_wavelength(channels, spacings)
            period = min(found, max(0.25 * shortest, 8 * max(spacings)))
        sigma, rho = rule.sigma * period, rule.rho * period
        for name, width in (("sigma", sigma), ("rho", rho)):
            checks.not_too_many_pixels(name, width, spacings)
        typical = estimates.measure_contrast(channels, level, sigma, rho, spacings, 0.5)
        lam = checks.number_or_auto("contrast", contrast, "the coherence above which lines are enhanced")
        lam = math.sqrt(rule.coherence_share) * typical if lam is None else lam
        # A constant image, except for rounding: the contrast does not matter.
        flat = lam <= 1e-9 * float(np.abs(channels).max(initial=0)) / period or lam < 1e-140
        duration = checks.number_or_auto("time", time, "the diffusion time")
        if duration is None:
            doubles = channels.astype(np.float64)
            variance = sum(float(channel.var()) for channel in doubles) / len(doubles)
            signal = max(variance - level**2, 0.0)
            share = rule.time_per_noise * level / math.sqrt(signal) if signal > 0 else rule.longest
            duration = period**2 * min(max(share, rule.shortest), rule.longest)
            first = max(duration, rule.first * period**2)
        else:
            first = duration
        window, lines = _find_lines(channels, period, spacings)
        return cls(period, 1.0 if flat else lam, duration, first, flat, window, lines, rule)

    @staticmethod
    def combine(windows: Sequence[LineScales]) -> LineScales:
        """Return the medians over the windows with at least half as many lines as any; not constant ones."""
        scales = [one for one in windows if not one.flat] or windows
        most = max(one.lines for one in scales)
        scales = [one for one in scales if one.lines >= 0.5 * most]
        medians: dict[str, Any] = {
            name: float(np.median([getattr(one, name) for one in scales]))
            for name in ("wavelength", "contrast", "time", "first")
        }
        window = float(np.median([one.window / one.wavelength for one in scales])) * medians["wavelength"]
        lines = float(np.mean([one.lines for one in windows]))
        return replace(scales[0], **medians, window=window, lines=lines)


def _find_lines(channels: Array, wavelength: float, spacings: tuple[float, ...]) -> tuple[float, float]:
    """Return the window of the test for lines, and the share of the image that has lines.

    This is the only place that looks at the correlation of the noise. It is measured in the half of the
    pixels that has the least coherent structure.
    """
    from scipy import ndimage

    shape, doubles, factor = channels.shape[1:], channels.astype(np.float64), WINDOW[len(spacings)]
    places = coarse_grid(wavelength, shape, spacings)
    lines = LineScale(wavelength, spacings, ndimage.gaussian_filter, places)
    tensor = lines.tensor(doubles)
    _, coherence = lines.energy(tensor, factor * SCALE * wavelength)
    quiet = spread(coherence, places, shape) <= np.median(coherence)
    window = factor * noise_width(doubles, wavelength, spacings, quiet)
    return window, float(np.mean(lines.weight(tensor, window)))


def check_wavelength(wavelength: float | Auto, shape: Sequence[int], spacings: Sequence[float]) -> None:
    """Reject a wavelength that is too long for an image of this shape."""
    period = checks.number_or_auto("wavelength", wavelength, "the distance between lines")
    if period is None:
        return
    shortest = min(n * h for n, h in zip(shape, spacings, strict=True))
    if period > 4 * shortest:
        raise ValueError(
            f"wavelength must be at most four times the shorter side of the image, {shortest:g}, got "
            f'{period:g}. Give the distance between lines, or "auto".'
        )
    if period < min(spacings):
        raise ValueError(
            f"wavelength must be at least the pixel spacing, {min(spacings):g}, got {period:g}. Give the "
            'distance between lines in units of spacing, or "auto".'
        )
