"""What an image looks like around each pixel: structure tensors, orientation and coherence.

Also the diffusion tensors that a model makes of them. All of it comes from the cells of the engines: a cell
lies between 2 × 2 pixels (2 × 2 × 2 in volumes), and a pixel has the mean of the cells around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks, engines
from aniso.blocks import halo, lazy
from aniso.blocks.halo import Region
from aniso.blocks.lazy import BlockTask
from aniso.cancelling import check_cancelled
from aniso.checks import Spacing
from aniso.dispatch import takes_arrays
from aniso.formulas import orientation as formulas
from aniso.formulas import views
from aniso.formulas.dimensions import ENTRY_AXES
from aniso.formulas.operations import maximum, where
from aniso.models import ImageDriven, TensorFormula
from aniso.parameters import PLATES, RHO, SIGMA
from aniso.settings import check_widths
from aniso.stencil import DeltaStencil

__all__ = ["coherence", "diffusion_tensor", "orientation", "structure_tensor"]

#: xx, xy, yy and, for volumes, xz, yz, zz.
Entries = tuple[Any, ...]
#: From the entries of tensors, the unit of grey values per length in which they are, and a type to a result.
Quantity = Callable[[Entries, float, str], Any]

# Pixels for which a quantity is computed at once.
_AT_ONCE = 2**17
# Labels of axes would not fit the results, which have other axes.
_takes_arrays = takes_arrays(torch=None, dask=None, labelled="image.data")


@_takes_arrays
def structure_tensor(
    image: Any,
    *,
    sigma: Annotated[float, SIGMA] = 1.0,
    rho: Annotated[float, RHO] = 4.0,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Compute the structure tensor at each pixel.

    The products of the derivatives of the image, smoothed by a Gaussian of standard deviation `sigma`,
    averaged by a Gaussian of standard deviation `rho`. Derivatives are taken in the cells between pixels, as
    the diffusion models do, and a pixel has the mean of the cells around it. The image is mirrored at its
    boundary.

    Parameters
    ----------
    image : array, tensor or Dask array
        An image (H, W) or a volume (D, H, W), with channels along `channel_axis`, whose tensors are averaged.
        A PyTorch tensor may also be a batch (N, C, H, W) or (N, C, D, H, W): it is computed on its device,
        and gradients flow through. Dask arrays are computed lazily, block by block.
    sigma : float
        Noise scale σ, in the units of `spacing`: structures below it are ignored.
    rho : float
        Integration scale ρ, in the units of `spacing`: the neighbourhood in which structure is averaged.
    spacing : float or sequence of float, optional
        Pixel spacing along each axis, axis 0 first. Derivatives are per unit length.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    array, tensor or Dask array
        Shape (2, 2, H, W) or (3, 3, D, H, W), symmetric, in the order of the array's axes: ``[0, 0]`` is
        along axis 0. A batch has the images in front, (N, 2, 2, H, W). float64 is kept, other types give
        float32.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> ramp = np.tile(3.0 * np.arange(32.0), (32, 1))   # rises by 3 per pixel along axis 1
    >>> aniso.structure_tensor(ramp, rho=1)[..., 16, 16].round(6)
    array([[0., 0.],
           [0., 9.]])
    """
    return _Map.compute(image, _Structure(sigma, rho), _matrix, 2, spacing, channel_axis)


@_takes_arrays
def orientation(
    image: Any,
    *,
    sigma: Annotated[float, SIGMA] = 1.0,
    rho: Annotated[float, RHO] = 4.0,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Compute the direction along the structure at each pixel: that in which the image changes least.

    It is the eigenvector of :func:`structure_tensor` with the smallest eigenvalue. :func:`coherence`
    measures how well it is determined.

    Parameters
    ----------
    image, sigma, rho, spacing, channel_axis
        As for :func:`structure_tensor`.

    Returns
    -------
    array, tensor or Dask array
        For images, the angle in radians, in (−π/2, π/2], from axis 1 (x) towards axis 0 (y, downwards);
        shape (H, W), of a batch (N, H, W). For volumes, unit vectors in the order of the array's axes, shape
        (3, D, H, W) or (N, 3, D, H, W), whose last component that is not 0 is positive. 0 where there is no
        structure. With `spacing`, directions are in space, not in pixels.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> y, x = np.mgrid[:32, :32]
    >>> stripes = np.sin(0.5 * (x - y))   # constant along x = y
    >>> float(np.rad2deg(aniso.orientation(stripes)[16, 16]).round(3))
    45.0
    """
    return _Map.compute(image, _Structure(sigma, rho), _direction, None, spacing, channel_axis)


@_takes_arrays
def coherence(
    image: Any,
    *,
    sigma: Annotated[float, SIGMA] = 1.0,
    rho: Annotated[float, RHO] = 4.0,
    plates: Annotated[bool, PLATES] = True,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Compute how clearly the structure at each pixel has a direction, from 0 to 1.

    With μ1 ≥ μ2 the eigenvalues of :func:`structure_tensor` it is ((μ1 − μ2)/(μ1 + μ2))²: 1 for straight
    lines and edges, 0 where all directions occur equally and where there is no structure. In volumes it is
    ((μ1 − μ3)/(μ1 + μ3))², 1 for lines and for plates; with ``plates=False`` it is ((μ2 − μ3)/(μ1 + μ3))²,
    1 for lines and 0 for plates.

    Parameters
    ----------
    image, sigma, rho, spacing, channel_axis
        As for :func:`structure_tensor`.
    plates : bool
        For volumes: whether plates are structures too.

    Returns
    -------
    array, tensor or Dask array
        Shape (H, W) or (D, H, W), of a batch (N, H, W) or (N, D, H, W).

    Examples
    --------
    >>> import numpy as np, aniso
    >>> stripes = np.tile(np.sin(0.5 * np.arange(32)), (32, 1))
    >>> float(aniso.coherence(stripes)[16, 16].round(6))
    1.0
    >>> float(aniso.coherence(stripes + stripes.T)[16, 16].round(3))
    0.0
    """
    if not isinstance(plates, bool):
        raise TypeError(f"plates must be True or False, got {plates!r}: {PLATES.meaning}.")
    quantity = partial(_coherence, plates=plates)
    return _Map.compute(image, _Structure(sigma, rho), quantity, 0, spacing, channel_axis)


@_takes_arrays
def diffusion_tensor(
    image: Any, model: ImageDriven, *, spacing: Spacing | None = None, channel_axis: int | None = None
) -> Any:
    """Compute the diffusion tensors that the first step of :func:`aniso.diffuse` uses.

    They lie in the cells between pixels. There is one more cell than pixels along each axis: the outer ones
    lie on the boundary. :class:`aniso.FixedTensor` takes them as they are; one explicit step with it is the
    first step of the model.

    Parameters
    ----------
    image, channel_axis
        As for :func:`structure_tensor`.
    model : EdgeEnhancing, CoherenceEnhancing, …
        A model whose tensor follows the image.
    spacing : float or sequence of float, optional
        Pixel spacing along each axis, axis 0 first, as for :func:`aniso.diffuse`.

    Returns
    -------
    array, tensor or Dask array
        Shape (2, 2, H+1, W+1) or (3, 3, D+1, H+1, W+1), in the order of the array's axes, with the images
        of a batch in front. Cell (i, j) has pixel (i, j) at its lower right corner: the mean of the cells
        (i, j), (i+1, j), (i, j+1) and (i+1, j+1) is the tensor at that pixel.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> image = np.random.default_rng(0).normal(0, 20, (32, 32))
    >>> model, step = aniso.EdgeEnhancing(contrast=5), aniso.Explicit(0.2)
    >>> tensors = aniso.diffusion_tensor(image, model)
    >>> tensors.shape
    (2, 2, 33, 33)
    >>> first = aniso.diffuse(image, model, 0.2, scheme=step)
    >>> np.allclose(first, aniso.diffuse(image, aniso.FixedTensor(tensors), 0.2, scheme=step))
    True
    """
    what = "a model whose tensor follows the image"
    checks.instance("model", model, (ImageDriven,), what, "aniso.EdgeEnhancing(contrast=3.5)")
    return _Map.compute(image, model, _matrix, 2, spacing, channel_axis)


@dataclass(frozen=True)
class _Structure(ImageDriven):
    """A model whose diffusion tensor is the structure tensor itself: then engines compute both alike."""

    sigma: float = SIGMA.field(1.0)
    rho: float = RHO.field(4.0)

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = J."""
        return TensorFormula(lambda *structure: structure, (), ())


@dataclass(frozen=True)
class _Map:
    """A quantity computed from the tensors of a model: structure over pixels, other tensors over cells."""

    model: ImageDriven
    spacings: tuple[float, ...]
    quantity: Quantity
    dtype: str

    @classmethod
    def compute(
        cls,
        image: Any,
        model: ImageDriven,
        quantity: Quantity,
        vectors: int | None,
        spacing: Spacing | None,
        channel_axis: int | None,
    ) -> Any:
        """The quantity, with `vectors` axes in front of those of the image; None: 0 for images, else 1."""
        lazily, tensors = arrays.is_dask(image), arrays.is_tensor(image)
        if lazily:
            lazy.check_chunks(image, channel_axis)
            start = lazy.check_finite(arrays.channels_first(image, channel_axis).rechunk({0: -1}))
            shape, dtype = start.shape[1:], arrays.result_type(image.dtype).name
        else:
            layout: Any = arrays.layout(image, channel_axis, tensors=tensors)
            start, shape, dtype = layout.start, layout.shape, layout.dtype
        if len(shape) == 1:
            raise ValueError(
                f"image must be an image (H, W) or a volume (D, H, W), got a signal of shape {shape}: it has "
                "only one direction."
            )
        spacings = checks.axis_spacing(spacing, len(shape))
        check_widths(model, spacings)
        task = cls(model, spacings, quantity, dtype)
        if lazily:
            return task._compute_lazily(start, len(shape) - 2 if vectors is None else vectors)
        result = task._of(start)
        if tensors and not arrays.is_batch(image, channel_axis):
            result = result[0]
        arrays.check_range(result)
        return result

    @property
    def over_pixels(self) -> bool:
        """Whether there is one value per pixel and not one per cell."""
        return isinstance(self.model, _Structure)

    def _of(self, u: Any) -> Any:
        """From an array (channels, …), in double precision, or a tensor (images, channels, …)."""
        tensors = arrays.is_tensor(u)
        engine = engines.default("torch") if tensors else "reference"
        largest = float(abs(u.detach() if tensors else u).max())
        # Structure follows the grey values: it is computed in numbers of order 1.
        unit = _unit(largest, min(self.spacings), self.dtype) if self.over_pixels else 1.0
        problem = engines.Problem(self.model, DeltaStencil(), self.spacings, engine=engine)
        evolution: Any = problem.start((u if tensors else u.astype(np.float64)) / unit)
        entries = tuple(entry[:, 0] if tensors else entry for entry in evolution.tensor())
        if self.over_pixels:
            entries = tuple(views.pixel_means(entry, len(self.spacings)) for entry in entries)
        with np.errstate(over="ignore"):  # the result is looked at
            if tensors:
                return self.quantity(entries, unit, self.dtype)
            ndim, length = len(self.spacings), len(entries[0])
            rows = max(1, _AT_ONCE * length // max(1, entries[0].size))
            parts = []
            for first in range(0, length, rows):
                check_cancelled()
                slab = tuple(entry[first : first + rows] for entry in entries)
                parts.append(self.quantity(slab, unit, self.dtype))
        return np.concatenate(parts, axis=-ndim)

    def _compute_lazily(self, source: Any, vectors: int) -> Any:
        """From a Dask array (channels, …), with `vectors` axes in front."""
        ndim, extra = len(self.spacings), int(not self.over_pixels)
        chunks = tuple((*lengths[:-1], lengths[-1] + extra) for lengths in source.chunks[1:])
        reach = tuple(1 + far for far in halo.tensor_reach(self.model, self.spacings))
        tasks = []
        for region in halo.regions(source.chunks[1:], reach):
            window = [(source, (slice(0, source.shape[0]), *region.needed))]
            # The last cells belong to the last blocks.
            further = tuple(
                extra * (k == len(lengths) - 1) for k, lengths in zip(region.index, chunks, strict=True)
            )
            block = partial(_block, task=self, region=region, further=further)
            tasks.append(BlockTask((0,) * vectors + region.index, block, window))
        return lazy.from_windows(tasks, ((ndim,),) * vectors + chunks, np.dtype(self.dtype), self)


def _block(pixels: npt.NDArray[Any], task: _Map, region: Region, further: tuple[int, ...]) -> Any:
    """One block, from its pixels and those of its halo, (channels, …)."""
    layout = arrays.ArrayLayout(pixels, 0)
    inner: list[Any] = [
        slice(part.start, part.stop + more) for part, more in zip(region.inner, further, strict=True)
    ]
    block = np.ascontiguousarray(task._of(layout.start)[(..., *inner)])
    if block.size:
        arrays.check_range(block)
    return block


def _unit(largest: float, spacing: float, dtype: str) -> float:
    """About the steepest slope that an image can have; a power of two, by which numbers divide exactly."""
    most = 1000 if dtype == "float64" else 120
    exponent = math.frexp(largest)[1] - math.frexp(spacing)[1] if largest else 0
    return math.ldexp(1.0, max(-most, min(exponent, most)))


def _matrix(entries: Entries, unit: float, dtype: str) -> Any:
    """The tensors as matrices, in the order of the array's axes."""
    ndim = 2 if len(entries) == 3 else 3
    named = {
        pair: _as(entry * unit * unit, dtype)
        for axes, entry in zip(ENTRY_AXES, entries, strict=False)
        for pair in (axes, axes[::-1])
    }
    axes = range(-ndim, 0)
    return _stack([_stack([named[i, j] for j in axes], ndim) for i in axes], ndim + 1)


def _direction(entries: Entries, unit: float, dtype: str) -> Any:
    """The angle in an image, the unit vector in a volume."""
    relative = _relative(entries)
    if len(entries) == 3:
        angle = _as(formulas.least_angle(*relative), dtype)
        # What is −π/2 within the precision of the result is the same direction as π/2.
        return where(angle <= -math.pi / 2, -angle, angle)
    vector = formulas.least_direction(*relative)
    return _stack([_as(part, dtype) for part in reversed(vector)], 3)


def _coherence(entries: Entries, unit: float, dtype: str, plates: bool) -> Any:
    relative = _relative(entries)
    if len(entries) == 3:
        return _as(formulas.image_coherence(*relative), dtype)
    return _as(formulas.volume_coherence(*relative, plates=plates), dtype)


def _relative(entries: Entries) -> Entries:
    """Tensors over their trace; 0 where there is no structure."""
    trace = sum(entry for axes, entry in zip(ENTRY_AXES, entries, strict=False) if axes[0] == axes[1])
    least = 1e-280 if _as(trace, "float64") is trace else 1e-35
    per_trace = (trace > least) / maximum(trace, least)
    return tuple(entry * per_trace for entry in entries)


def _as(values: Any, dtype: str) -> Any:
    """Values of a type; themselves if they have it."""
    if isinstance(values, np.ndarray):
        return values.astype(dtype, copy=False)
    import torch

    return values.to(getattr(torch, dtype))


def _stack(parts: list[Any], before: int) -> Any:
    """Arrays or tensors along a new axis, with `before` axes after it."""
    if isinstance(parts[0], np.ndarray):
        return np.stack(parts, axis=-before - 1)
    import torch

    return torch.stack(parts, dim=-before - 1)
