"""Parameters of enhancement: how scales and times follow from wavelength, noise and coherence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso import checks, estimates
from aniso.arrays import channels_first
from aniso.checks import Auto, Spacing
from aniso.models import CoherenceEnhancing

Image = npt.NDArray[Any]


@dataclass(frozen=True)
class _Rule:
    """How the parameters follow from wavelength, noise and coherence."""

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


# In a plate diffusion reaches twice as many voxels: it needs less time, and rounds off what is bent sooner.
_PLATES = _Rule(0.1, 0.3, 0.04, 0.1, 0.03, 0.12, 0.05)


_LINES = _Rule(0.06, 0.3, 0.04, 0.3, 0.1, 0.4, 0.2)


# FED cycles of a diffusion.
CYCLES = 4


@dataclass(frozen=True)
class LineScales:
    """All that is known about the image before it diffuses."""

    spacings: tuple[float, ...]
    noise: float
    wavelength: float
    model: CoherenceEnhancing
    time: float
    first: float
    flat: bool

    @classmethod
    def of(
        cls,
        array: Image,
        noise: float | Auto,
        wavelength: float | Auto,
        contrast: float | Auto,
        time: float | Auto,
        plates: bool,
        spacing: Spacing | None,
        channel_axis: int | None,
    ) -> LineScales:
        """From the image and what was given; "auto" is estimated."""
        ndim = array.ndim - (channel_axis is not None)
        rule = _IMAGES if ndim == 2 else _PLATES if plates else _LINES
        spacings = checks.axis_spacing(spacing, ndim)
        estimates.check_squares(array)
        level = estimates.given_noise(noise, array, channel_axis)
        where: dict[str, Any] = {"noise": level, "spacing": spacings, "channel_axis": channel_axis}
        period = checks.number_or_auto("wavelength", wavelength, "the distance of lines")
        shortest = min(
            n * h for n, h in zip(channels_first(array, channel_axis).shape[1:], spacings, strict=True)
        )
        if period is None:
            # Lines further apart than a quarter of the image cannot be told from a slope.
            period = min(estimates.wavelength(array, **where), max(0.25 * shortest, 8 * max(spacings)))
        elif period > 4 * shortest:
            raise ValueError(
                f"a wavelength of {period:g} is more than four times the shorter side of the image, "
                f'{shortest:g}: there are no lines in it at such a distance. Give their distance, or "auto".'
            )
        sigma, rho = rule.sigma * period, rule.rho * period
        typical = estimates.contrast(array, sigma=sigma, rho=rho, **where)
        lam = checks.number_or_auto("contrast", contrast, "the coherence above which lines are enhanced")
        lam = math.sqrt(rule.coherence_share) * typical if lam is None else lam
        # Nothing but a constant, whatever its rounding: any contrast will do.
        flat = lam <= 1e-9 * float(np.abs(array).max(initial=0)) / period or lam < 1e-140
        duration = checks.number_or_auto("time", time, "the diffusion time")
        if duration is None:
            channels = channels_first(array.astype(np.float64), channel_axis)
            variance = sum(float(channel.var()) for channel in channels) / len(channels)
            signal = max(variance - level**2, 0.0)
            share = rule.time_per_noise * level / math.sqrt(signal) if signal > 0 else rule.longest
            duration = period**2 * min(max(share, rule.shortest), rule.longest)
            first = rule.first * period**2
        else:
            first = duration
        model = CoherenceEnhancing(1.0 if flat else lam, sigma, rho, plates=plates)
        return cls(spacings, level, period, model, duration, first, flat)

    def smooth(self, field: Image, part: float) -> Image:
        """A Gaussian whose width is this part of the wavelength; leading axes are left alone."""
        widths = tuple(part * self.wavelength / h for h in self.spacings)
        return ndimage.gaussian_filter(field, (0,) * (field.ndim - len(widths)) + widths, mode="nearest")
