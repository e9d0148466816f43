"""denoise(): contrast and stopping time from the noise, by an unbiased estimate of the error."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy.typing as npt

from aniso import checks, estimates
from aniso.arrays import Array, channels_back, channels_first, check_image, result_type
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.evolve import EvolvingImage
from aniso.models import ImageDriven
from aniso.parameters import CONTRAST, NOISE, TIME, About
from aniso.schemes import FED, Explicit
from aniso.settings import EngineName, Prepared, Progress, Settings, check_progress, report_progress
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs import chunked
from aniso.verbs.candidates import TIMES, choose_models
from aniso.verbs.edge_contrast import check_contrast
from aniso.verbs.info import DenoiseInfo
from aniso.verbs.mixture import mix_stops
from aniso.verbs.risk import Judge, Stop

__all__ = ["denoise"]

# Stops before and after the best one that are mixed.
_BEFORE, _AFTER = 5, 3
_MIX = About(switch=True, meaning="mix several diffusions, or take the best single one")


@takes_arrays(dask=chunked.denoise)
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
    """Remove noise from an image; all parameters are estimated from the data.

    Several diffusions run, and Stein's unbiased risk estimate gives the mean squared error of each of them at
    each time, without knowledge of the image without noise: the squared change, minus the variance of the
    noise, plus twice that variance times the divergence, which is measured with a small random change of the
    image. The smallest estimate gives contrast and stopping time. Then all diffusions, each some time before
    and after its best time, are mixed with the weights that minimise the estimate, one set of weights for
    edges and one for flat regions.

    The candidates are edge-enhancing diffusions with λ = 0.2, 0.45 and 0.9 of the noise level per pixel, and
    coherence-enhancing ones with 0.2 of it and two noise scales.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values, the same in all channels; by default
        :func:`aniso.estimates.noise_level`.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. With a number there is one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The stopping time, in squared units of length.
    mix : bool, optional
        If False, or if `contrast` or `time` are given, the result is the best single diffusion. Dask arrays
        are not mixed; by default all others are.
    stencil : DeltaStencil or FreeStencil
        The spatial discretisation.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, total), in diffusions.
    return_info : bool
        If True, also return the values used.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
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
    given_contrast = check_contrast(contrast)
    given_time = checks.number_or_auto("time", time, "the stopping time")
    array = check_image(image, channel_axis)
    channels = channels_first(array, channel_axis)
    settings = Settings.check(
        channels.ndim - 1,
        stencil=stencil,
        # From one time of the list to the next one tensor is enough; to a given time it is not.
        scheme=FED(1) if given_time is None else Explicit(),
        spacing=spacing,
        engine=engine,
        threads=threads,
    )
    estimates.check_squares(array)
    level = estimates.choose_noise(noise, channels)
    channels = channels.astype(result_type(array.dtype))
    pixel = estimates.pixel_size(settings.spacings)
    models = choose_models(level, given_contrast, pixel, len(settings.spacings))
    times = [t * pixel**2 for t in TIMES] if given_time is None else [given_time]
    mixing = mix is not False and given_contrast is None and given_time is None

    judge = Judge(channels, level)
    # Leaving the image unchanged is a candidate too, unless a time is given.
    best = judge.start if given_time is None or not models else None
    helpers: list[Stop] = []
    with report_progress(progress, len(models)) as report:
        for number, model in enumerate(models):
            prepared = settings.prepare(model, channels.shape[1:])

            # At every time, not only after a whole diffusion, so that the caller can interrupt soon.
            def report_time(now: float, number: int = number) -> None:
                report(number + now / times[-1])

            stop, others = _follow(judge, model, prepared, times, report_time, full=mixing)
            helpers += others
            best = stop if best is None or stop.risk < best.risk else best
            report(number + 1)
    assert best is not None
    result, risk, mixed = best.image, best.risk, 1
    if helpers:
        result, risk, mixed = mix_stops(judge, best, helpers, len(settings.spacings))
    result = channels_back(result, channel_axis)
    if not return_info:
        return result
    return result, DenoiseInfo(
        noise=level,
        model=best.model,
        contrast=float(getattr(best.model, "contrast", math.nan)),
        time=best.time,
        single_error=math.sqrt(max(best.risk, 0.0)),
        expected_error=math.sqrt(max(risk, 0.0)),
        candidates=len(models),
        mixed=mixed,
    )


def _follow(
    judge: Judge,
    model: ImageDriven,
    prepared: Prepared,
    times: list[float],
    report: Callable[[float], None],
    *,
    full: bool,
) -> tuple[Stop, list[Stop]]:
    """Run a diffusion until its risk has clearly passed the minimum, and keep only what may be needed.

    Return the stop of least risk and, if `full`, those before and after it that are mixed.
    """
    stops: list[Stop] = []
    before, past, lowest = _BEFORE if full else 0, 0, 0

    def snapshots(start: Array) -> Any:
        return contextlib.closing(EvolvingImage.of_channels(start, prepared).snapshots(times, report))

    with snapshots(judge.image) as images, snapshots(judge.changed) as changed_images:
        for (time, image), (_, changed) in zip(images, changed_images, strict=True):
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
