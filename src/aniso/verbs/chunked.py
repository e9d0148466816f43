"""enhance() on Dask arrays: one diffusion, chosen from a sample of the array."""

from __future__ import annotations

from functools import partial
from typing import Any

from aniso import arrays, checks
from aniso.arrays import Array
from aniso.blocks import halo, lazy, worker
from aniso.blocks.sample import windows
from aniso.settings import Settings, check_progress
from aniso.verbs.chunked_recipes import RECIPES, Recipe


def enhance(image: Any, **options: Any) -> Any:
    """Enhance a Dask array lazily; the arguments are those of :func:`aniso.enhance`."""
    checks.instance("plates", options["plates"], (bool,), "True or False", "plates=False for fibres")
    return _filter_by_recipe("enhance", image, **options)


def _filter_by_recipe(
    verb: str,
    image: Any,
    *,
    channel_axis: int | None,
    stencil: Any,
    spacing: Any,
    engine: Any,
    threads: int | None,
    progress: Any,
    return_info: bool,
    **choices: Any,
) -> Any:
    """Return the array after the diffusion that is best for a sample of it, lazily."""
    check_progress(progress)
    lazy.check_chunks(image, channel_axis)
    lazy.reject_progress(progress)
    settings = Settings.check(
        image.ndim - (channel_axis is not None),
        stencil=stencil,
        spacing=spacing,
        engine=engine,
        threads=1 if threads is None else threads,
    )
    recipe = RECIPES[verb](_sample(image, channel_axis), settings.spacings, stencil=stencil, **choices)
    result = _follow_recipe(image, recipe, settings, channel_axis)
    return (result, recipe.info) if return_info else result


def _sample(image: Any, channel_axis: int | None) -> list[Array]:
    """Return windows (channels, …) of the array, computed now."""
    from dask.base import compute

    channels = arrays.channels_first(image, channel_axis)
    chosen = windows(channels.shape[1:])
    found = compute(*(channels[(slice(None), *window)] for window in chosen))
    dtype, block_of = arrays.result_type(image.dtype), partial(halo.block_of, channels.chunks[1:])
    for pixels, window in zip(found, chosen, strict=True):
        worker.check_pixels(pixels, [part.start for part in window], block_of)
    return [pixels.astype(dtype) for pixels in found]


def _follow_recipe(image: Any, recipe: Recipe, settings: Settings, channel_axis: int | None) -> Any:
    if recipe.model is None:
        return image.astype(arrays.result_type(image.dtype))
    prepared = settings.prepare(recipe.model, arrays.channels_first(image, channel_axis).shape[1:])
    cycles = tuple(recipe.scheme.plan(recipe.time, prepared.limit))
    return lazy.evolve(image, channel_axis, cycles, prepared)
