"""denoise(): contrast and stopping time from the noise, by an estimate of the error that needs no truth."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy.typing as npt

from aniso import checks, estimates
from aniso.arrays import channels_back, channels_first, checked_image, result_type
from aniso.blocks.lazy import is_dask
from aniso.checks import Auto, Spacing
from aniso.evolve import (
    EngineName,
    Progress,
    check_progress,
    reporter,
    scale_space,
)
from aniso.models import ImageDriven
from aniso.parameters import CONTRAST, NOISE, TIME, About
from aniso.schemes import FED, Explicit, Scheme
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.candidates import GIVEN_SIGMA, TIMES, candidates, edge_enhancing
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.edge_contrast import given_contrast
from aniso.verbs.info import DenoiseInfo
from aniso.verbs.mixture import mixture
from aniso.verbs.risk import Image, Judge, Stop

__all__ = ["denoise"]


_BEFORE, _AFTER = 5, 3


_MIX = About(switch=True, meaning="mix several diffusions, or take the best single one")


@takes_tensors
def denoise(
    image: npt.ArrayLike,
    *,
    noise: Annotated[float | Auto, NOISE] = "auto",
    contrast: Annotated[float | Auto, replace(CONTRAST, auto="by the smallest expected error")] = "auto",
    time: Annotated[float | Auto, replace(TIME, auto="by the smallest expected error")] = "auto",
    mix: Annotated[bool | None, _MIX] = None,
    stencil: Stencil = DeltaStencil(),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """The image without its noise; no parameter has to be given.

    Several diffusions run, and Stein's unbiased estimate of the risk says how far each of them is from the
    image without noise, at each time, although that is not known: the squared change, minus the variance
    of the noise, plus twice that variance times the divergence, which says how strongly the result follows
    the noise and is found by changing the image slightly at random. The smallest estimate gives contrast
    and stopping time. Then all diffusions, each a while before and after its best time, are mixed with the
    weights that make the estimate smallest, one set of weights for edges and one for flat regions.

    The candidates are edge-enhancing diffusions with λ = 0.2, 0.45 and 0.9 of the noise level per pixel,
    and coherence-enhancing ones with 0.2 of it and two noise scales.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values, the same in all channels; by default
        :func:`aniso.estimates.noise_level`.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. A number leaves one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The stopping time, in squared units of length.
    mix : bool, optional
        False, or a number for `contrast` or `time`: the result is the best single diffusion. Dask arrays are
        not mixed; by default all others are.
    stencil : DeltaStencil or FreeStencil
        How the diffusion is discretised.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, total), in diffusions.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.
    aniso.info.DenoiseInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.shapes(96, noise=20.0)
    >>> result, info = aniso.denoise(sample.image, return_info=True)
    >>> bool(((result - sample.truth) ** 2).mean() < 0.1 * 20**2)
    True
    >>> bool(19 < info.noise < 21)
    True
    """
    check_progress(progress)
    fixed_contrast = given_contrast(contrast)
    fixed_time = checks.number_or_auto("time", time, "the stopping time")
    if is_dask(image):
        from aniso.verbs.chunked import filter_by_recipe

        return filter_by_recipe(
            "denoise", image, noise=noise, contrast=fixed_contrast, time=fixed_time, mix=mix, stencil=stencil,
            spacing=spacing, channel_axis=channel_axis, engine=engine, threads=threads, progress=progress,
            return_info=return_info,
        )  # fmt: skip
    array = checked_image(image, channel_axis)
    spacings = checks.axis_spacing(spacing, array.ndim - (channel_axis is not None))
    estimates.check_squares(array)
    level = estimates.given_noise(noise, array, channel_axis)
    channels = channels_first(array, channel_axis)
    channels = channels.astype(result_type(array.dtype))
    pixel = estimates.pixel_size(spacings)
    if fixed_contrast is not None:
        models: list[ImageDriven] = [edge_enhancing(fixed_contrast, GIVEN_SIGMA * pixel)]
    elif level > 0:
        models = candidates(level, pixel, len(spacings))
    else:
        models = []
    times = [t * pixel**2 for t in TIMES] if fixed_time is None else [fixed_time]
    # From one time of the list to the next one tensor is enough; to a time asked for it is not.
    scheme: Scheme = FED(1) if fixed_time is None else Explicit()
    mixing = mix is not False and fixed_contrast is None and fixed_time is None

    def evolved(start: Image, model: ImageDriven) -> Iterator[tuple[float, Image]]:
        return scale_space(
            start,
            model,
            times,
            stencil=stencil,
            scheme=scheme,
            spacing=spacings,
            channel_axis=0,
            engine=engine,
            threads=threads,
            # At every time, not only after a whole diffusion: whoever listens can break off soon.
            progress=lambda now, end: report(models.index(model) + now / end),
        )

    judge = Judge(channels, level)
    # To leave the image alone is a candidate too, unless a time was asked for.
    best = judge.start if fixed_time is None or not models else None
    helpers: list[Stop] = []
    with reporter(progress, len(models)) as report:
        for number, model in enumerate(models, 1):
            stop, others = _followed(judge, model, evolved, full=mixing)
            helpers += others
            best = stop if best is None or stop.risk < best.risk else best
            report(number)
    assert best is not None
    result, risk, mixed = best.image, best.risk, 1
    if helpers:
        result, risk, mixed = mixture(judge, best, helpers, len(spacings))
    result = channels_back(result, channel_axis)
    if not return_info:
        return result
    return result, DenoiseInfo(
        level,
        best.model,
        float(getattr(best.model, "contrast", math.nan)),
        best.time,
        math.sqrt(max(best.risk, 0.0)),
        math.sqrt(max(risk, 0.0)),
        len(models),
        mixed,
    )


def _followed(
    judge: Judge,
    model: ImageDriven,
    evolved: Callable[[Image, ImageDriven], Iterator[tuple[float, Image]]],
    *,
    full: bool,
) -> tuple[Stop, list[Stop]]:
    """Follow a diffusion until its risk has clearly passed the minimum, keeping only what may be needed.

    The stop of least risk and, in `full`, those before and after it that help to mix.
    """
    stops: list[Stop] = []
    before, past, lowest = _BEFORE if full else 0, 0, 0
    with (
        contextlib.closing(evolved(judge.image, model)) as way,  # type: ignore[type-var]
        contextlib.closing(evolved(judge.changed, model)) as changed_way,  # type: ignore[type-var]
    ):
        for (time, image), (_, changed) in zip(way, changed_way, strict=True):
            stop = Stop(time, image, changed, judge.risk(image, changed), model)
            if not stops or stop.risk < stops[lowest].risk:
                stops.append(stop)
                del stops[: -before - 1]
                past, lowest = 0, len(stops) - 1
                continue
            past += 1
            if full:
                stops.append(stop)
            if past > _AFTER:
                break
    wanted = {lowest - _BEFORE, lowest + _AFTER} if full else set()
    return stops[lowest], [stops[k] for k in sorted(wanted) if 0 <= k < len(stops)]
