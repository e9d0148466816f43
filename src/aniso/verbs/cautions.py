"""Reasons to doubt a denoised image, which a plan reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aniso.arrays import Array
from aniso.noise.correlation import SIDES
from aniso.noise.estimate import NoiseEstimate
from aniso.noise.statistics import average_blocks
from aniso.verbs.risk import Judge, Stop

# Expected error over the noise level from which on an image is hardly changed, and certainty below which the
# noise is in doubt.
_HARDLY, _DOUBTFUL = 0.9, 0.25
# A given level is too high if what was removed corresponds to less than this part of it.
_TOO_HIGH = 0.9
# A level that was rejected is reported if it is larger than the one that is used by this factor.
_CLEARLY_MORE = 1.5
# Share of the blocks, those with the least energy, in which noise is compared along the axes; the part of the
# energy of second differences along one axis that it has along another one, if it is coarser there; and the
# least number of blocks.
_CALM, _COARSER, _ENOUGH = 0.15, 0.6, 20


def list_cautions(
    judge: Judge, used: Stop, found: NoiseEstimate, windows: Sequence[Array], *, noise: float, fits: bool
) -> tuple[str, ...]:
    """Return what is doubtful about the windows that are used, in sentences.

    `windows` are those of the image, neither turned nor stabilised; `noise` is the level in grey values, and
    `fits` whether a learned diffusion is for images like this one.
    """
    cautions = []
    if not fits:
        cautions.append(
            "the learned diffusion was not trained for images of single photons, and its expected error is "
            "not reliable. Give method='auto' (on the command line --method auto)."
        )
    if found.certainty == 1 and judge.level > 0 and used.change > 0:
        ratio = math.sqrt(used.highest_variance(judge.remaining)) / judge.level
        if ratio < _TOO_HIGH:
            cautions.append(
                f"the given noise level {noise:.3g} seems too high: what was removed corresponds to about "
                f"{ratio * noise:.2g}. Details may be lost, and the expected error is too low."
            )
    if found.compressed:
        cautions.append(
            "the image was stored as a JPEG file, which removed fine noise and details. The expected error "
            "contains what is seen of this at the borders of its blocks."
        )
    if found.rejected is not None and found.rejected.level > _CLEARLY_MORE * found.level:
        other = found.rejected
        cautions.append(
            f"texture or coarse noise of level {other.level:.2g} covers the image. It is preserved as "
            "texture, and the expected error allows for either. To remove it, give "
            f"noise=aniso.noise.Gaussian({other.level:.2g}, correlation={other.correlation:.2g})."
        )
    axis = find_coarser_axis(windows) if judge.level > 0 else None
    if axis is not None:
        cautions.append(
            f"the noise is coarser along axis {axis} than along another one, which no model describes: its "
            "level and the expected error may be too low. If noise remains, give a higher level."
        )
    return tuple(cautions)


def find_coarser_axis(windows: Sequence[Array]) -> int | None:
    """Return the axis, without channels, along which noise is clearly coarser than along another; or None.

    Second differences are compared where they are smallest, so that hardly anything but noise is seen.
    """
    channels = [channel for window in windows for channel in window]
    ndim = channels[0].ndim
    parts = []
    for channel in channels:
        inner = tuple(slice(0, n - 2) for n in channel.shape)
        squares = (np.square(np.diff(channel, 2, axis)) for axis in range(ndim))
        parts.append([average_blocks(square[inner], SIDES[ndim]) for square in squares])
    energies = np.concatenate(parts, axis=1)
    total = energies.sum(axis=0)
    energies, total = energies[:, total > 0], total[total > 0]
    if ndim == 1 or len(total) < _ENOUGH / _CALM:
        return None
    means = energies[:, total <= np.quantile(total, _CALM)].mean(axis=1)
    coarsest = int(np.argmin(means))
    return coarsest if means[coarsest] < _COARSER * means.max() else None


def remark_on_change(
    noise: float, certainty: float, expected_error: float, *, smoothing: bool, filling: bool
) -> str | None:
    """Return why an image is not, or hardly, changed; or that the noise is in doubt.

    `smoothing` means that the image is diffused, and `filling` that impulses are replaced.
    """
    example = f"{2 * noise:.2g}" if noise > 0 else "4"
    advice = (
        f"give a higher level: begin with noise={example} (on the command line --noise {example}), and "
        "double it until the result is smooth enough"
    )
    doubt = (
        f"the noise level {noise:.3g} is in doubt, since hardly any part of the image is flat"
        if certainty < _DOUBTFUL
        else ""
    )
    if not smoothing and not filling:
        why = doubt or (
            f"noise of {noise:.3g} grey values is so weak here that any diffusion would change the "
            "image more than the noise does"
        )
        if noise == 0:
            why = "no noise was found"
        return f"the image is left unchanged: {why}. To smooth anyway, {advice}."
    if smoothing and expected_error > _HARDLY * noise:
        why = doubt or "most of the noise cannot be distinguished from texture"
        return f"the image is hardly changed: {why}. To smooth more, {advice}."
    return f"{doubt}. If too much or too little is removed, give a level." if doubt else None
