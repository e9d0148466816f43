"""denoise() and enhance() on Dask arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

from aniso import arrays, checks
from aniso.blocks import halo, lazy, worker
from aniso.blocks.sample import windows
from aniso.checks import Spacing
from aniso.evolve import check_progress, diffuse
from aniso.stencil import Stencil
from aniso.verbs.chunked_recipes import RECIPES, Recipe


def filter_by_recipe(
    verb: str,
    image: Any,
    *,
    stencil: Stencil,
    spacing: Spacing | None,
    channel_axis: int | None,
    engine: Any,
    threads: int | None,
    progress: Any,
    return_info: bool,
    **options: Any,
) -> Any:
    """Return the array after the diffusion that suits a sample of it best, lazily."""
    spacings = _spacings(image, spacing, channel_axis)
    recipe = RECIPES[verb](_sample(image, channel_axis), spacings, stencil=stencil, **options)
    return _followed(image, recipe, stencil, spacings, channel_axis, engine, threads, progress, return_info)


def _spacings(image: Any, spacing: Spacing | None, channel_axis: int | None) -> tuple[float, ...]:
    lazy.checked(image, channel_axis)
    return checks.axis_spacing(spacing, image.ndim - (channel_axis is not None))


def _sample(image: Any, channel_axis: int | None) -> list[Any]:
    """Windows (channels, …) of the array, computed now."""
    from dask.base import compute

    channels = arrays.channels_first(image, channel_axis)
    chosen = windows(channels.shape[1:])
    found = compute(*(channels[(slice(None), *window)] for window in chosen))
    dtype, block_of = arrays.result_type(image.dtype), partial(halo.block_of, channels.chunks[1:])
    for pixels, window in zip(found, chosen, strict=True):
        worker.checked(pixels, [part.start for part in window], block_of)
    return [pixels.astype(dtype) for pixels in found]


def _followed(
    image: Any,
    recipe: Recipe,
    stencil: Stencil,
    spacings: tuple[float, ...],
    channel_axis: int | None,
    engine: Any,
    threads: int | None,
    progress: Any,
    return_info: bool,
) -> Any:
    check_progress(progress)
    if recipe.model is None:
        result = image.astype(arrays.result_type(image.dtype))
    else:
        result = diffuse(
            image,
            recipe.model,
            recipe.time,
            stencil=stencil,
            scheme=recipe.scheme,
            spacing=spacings,
            channel_axis=channel_axis,
            engine=engine,
            threads=threads,
            progress=progress,
        )
    return (result, recipe.info) if return_info else result
