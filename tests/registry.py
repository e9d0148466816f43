"""What the laws are tested over: one list each of engines, models, schemes, samples and verbs.

A new engine, model, scheme or verb is one line here, and every law holds for it or fails.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import aniso


@dataclass(frozen=True)
class Engine:
    """An engine and how far rounding may carry its results, relative to the largest grey value."""

    name: Any
    float32: float
    float64: float

    def diffuse(self, image, model, time, **options):
        return aniso.diffuse(image, model, time, engine=self.name, **options)

    def scale_space(self, image, model, times, **options) -> Iterator[tuple[float, Any]]:
        return aniso.scale_space(image, model, times, engine=self.name, **options)

    def tolerance(self, dtype) -> float:
        return getattr(self, np.dtype(dtype).name)

    def assert_equal(self, actual, expected) -> None:
        """Equal up to rounding, in the less precise of both types."""
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape
        slack = max(self.tolerance(actual.dtype), self.tolerance(expected.dtype))
        wide = expected.astype(np.float64)
        error, largest = abs(actual.astype(np.float64) - wide).max(), abs(wide).max()
        assert error <= slack * largest, f"differs by {error:.3g}, the largest value is {largest:.3g}"


ENGINES = (
    Engine("reference", float32=5e-7, float64=2e-13),
    Engine("cpu", float32=2e-6, float64=1e-12),
    Engine("torch", float32=2e-6, float64=1e-12),
)

#: Tested with fewer cases, see tests/engines/test_triton.py: Triton's interpreter is slow.
INTERPRETED_ENGINE = Engine("triton", float32=2e-6, float64=1e-12)

#: The engines that serve volumes.
VOLUME_ENGINES = ENGINES

DTYPES = ("float32", "float64")


# Not among the models, since an engine may have to compile it again: it has laws of its own.
def rational(r):
    """A diffusivity as a user may write it."""
    return 1 / (1 + 0.2 * r)


def random_tensors(shape, seed=5, largest=1.0) -> aniso.FixedTensor:
    """Tensors that turn and stretch from cell to cell, on the boundary too; some of rank one."""
    rng = np.random.default_rng(seed)
    cells = tuple(n + 1 for n in shape)
    if len(shape) == 1:
        return aniso.FixedTensor(rng.uniform(0, largest, (1, 1, *cells)))
    if len(shape) == 3:
        frames, _ = np.linalg.qr(rng.normal(size=(*cells, 3, 3)))
        values = rng.uniform([0.2, -0.2, -0.2], [largest, 0.2, 0.2], (*cells, 3)).clip(0)
        tensor = np.einsum("...ik,...k,...jk->ij...", frames, values, frames)
        return aniso.FixedTensor(0.5 * (tensor + tensor.swapaxes(0, 1)))
    angle = rng.uniform(0, np.pi, cells)
    along, across = rng.uniform(0.2, largest, cells), rng.uniform(-0.2, 0.2, cells).clip(0)
    cos, sin = np.cos(angle), np.sin(angle)
    return aniso.FixedTensor.from_entries(
        along * cos**2 + across * sin**2,
        (along - across) * sin * cos,
        along * sin**2 + across * cos**2,
    )


#: Name → the model for an image of a given shape, without channels. Contrasts suit `SAMPLES`.
MODELS: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "edge, weickert": lambda _: aniso.EdgeEnhancing(contrast=12.0),
    "edge, charbonnier": lambda _: aniso.EdgeEnhancing(12.0, 0.5, "charbonnier"),
    "edge, perona-malik": lambda _: aniso.EdgeEnhancing(12.0, 0.0, "perona-malik"),
    "edge, exponential": lambda _: aniso.EdgeEnhancing(12.0, 2.0, "exponential"),
    "edge, continuing": lambda _: aniso.EdgeContinuing(12.0, rho=1.0),
    "coherence": lambda _: aniso.CoherenceEnhancing(contrast=8.0, rho=2.0),
    "coherence, local": lambda _: aniso.CoherenceEnhancing(8.0, 0.0, 0.0, 0.1),
    "perona-malik": lambda _: aniso.PeronaMalik(contrast=12.0),
    "perona-malik, weickert": lambda _: aniso.PeronaMalik(12.0, 1.0, "weickert"),
    "homogeneous": lambda _: aniso.Homogeneous(),
    "fixed tensor": random_tensors,
}

#: The same for volumes.
VOLUME_MODELS: dict[str, Callable[[tuple[int, ...]], Any]] = MODELS | {
    "coherence, lines only": lambda _: aniso.CoherenceEnhancing(8.0, rho=2.0, plates=False),
}


def in_turn(options, name) -> list[Any]:
    """Return all of these options, for each model from another one on.

    A test of every model that takes sizes (or blocks, or precisions) with one scheme each meets every model
    with every size and, over the models, every size with every scheme: less than the product of all three.
    """
    start = list(VOLUME_MODELS).index(name)
    return [options[(start + number) % len(options)] for number in range(len(options))]


SCHEMES = (aniso.Explicit(), aniso.Explicit(step=0.1), aniso.FED(cycles=2), aniso.FSI(cycles=2))


def _noise(shape, seed=1):
    return np.random.default_rng(seed).normal(100, 20, shape)


def _edges(shape):
    """A bright slanted half plane with a bright corner pixel, under little noise."""
    height, width = shape if len(shape) == 2 else (1, *shape)
    y, x = np.indices((height, width))
    image = np.where(2 * x + y > width, 180.0, 60.0)
    image[0, 0] = 250.0
    return (image + _noise((height, width), 2) / 20).reshape(shape)


#: Name → a grey image of a given shape, float64, values of order 100.
SAMPLES: dict[str, Callable[[tuple[int, ...]], Any]] = {"noise": _noise, "edges": _edges}


def _blocks(shape):
    """A bright slanted half space with a bright corner voxel, under little noise."""
    z, y, x = np.indices(shape)
    volume = np.where(2 * x + y - z > shape[2], 180.0, 60.0)
    volume[0, 0, 0] = 250.0
    return volume + _noise(shape, 2) / 20


#: The same for volumes.
VOLUME_SAMPLES: dict[str, Callable[[tuple[int, ...]], Any]] = {"noise": _noise, "edges": _blocks}


def colours(grey_sample, shape, count=3):
    """Channels (last axis) that share some structure and differ in some."""
    image = grey_sample(shape)
    return np.stack([(1 - 0.2 * k) * image + _noise(shape, 10 + k) / 2 for k in range(count)], -1)


#: What the verbs are tried on, and the pixels that inpainting fills in.
RINGS = aniso.samples.rings(48, noise=20.0)
UNKNOWN = np.random.default_rng(0).random((48, 48)) > 0.3

#: Name → the verb, as a function of an image of this size and of options.
VERBS: dict[str, Any] = {
    "denoise": aniso.denoise,
    "enhance": aniso.enhance,
    "inpaint": lambda image, **options: aniso.inpaint(image, **({"mask": UNKNOWN} | options)),
    "upsample": lambda image, **options: aniso.upsample(image, 2, **options),
}


def scaled_contrast(model, factor):
    """The model for an image whose grey values were multiplied by this factor."""
    return replace(model, contrast=factor * model.contrast) if hasattr(model, "contrast") else model


# The symmetries of the grid, for images and for tensors over cells alike.


@dataclass(frozen=True)
class Symmetry:
    """A transposition (or not) after mirroring some axes."""

    name: str
    mirrored: tuple[int, ...]
    transposed: bool

    def _moved(self, array, axes):
        array = np.flip(array, tuple(axes[k] for k in self.mirrored))
        return np.swapaxes(array, *axes) if self.transposed else array

    def image(self, image):
        """For an image (H, W) or (H, W, channels)."""
        return self._moved(image, (0, 1))

    def spacing(self, spacing):
        return spacing[::-1] if self.transposed else spacing

    def model(self, model):
        """Vectors turn with the image, and tensors with the vectors."""
        if not isinstance(model, aniso.FixedTensor):
            return model
        tensor = self._moved(model.tensor, (2, 3)).copy()
        for axis in self.mirrored:
            tensor[axis] *= -1
            tensor[:, axis] *= -1
        return aniso.FixedTensor(tensor[::-1, ::-1] if self.transposed else tensor)


SYMMETRIES = (
    Symmetry("transposition", (), True),
    Symmetry("left-right", (1,), False),
    Symmetry("top-bottom", (0,), False),
    Symmetry("half turn", (0, 1), False),
    Symmetry("quarter turn", (1,), True),
    Symmetry("quarter turn back", (0,), True),
    Symmetry("other diagonal", (0, 1), True),
)


@dataclass(frozen=True)
class VolumeSymmetry:
    """One of the 48 symmetries of the cube: mirroring some axes, then putting the axes into another order."""

    mirrored: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.order}, mirrored {self.mirrored}"

    def image(self, volume):
        """For a volume (D, H, W) or (D, H, W, channels)."""
        return np.flip(volume, self.mirrored).transpose(*self.order, *range(3, volume.ndim))

    def spacing(self, spacing):
        return tuple(spacing[axis] for axis in self.order)

    def model(self, model):
        """Vectors turn with the volume, and tensors with the vectors."""
        if not isinstance(model, aniso.FixedTensor):
            return model
        tensor = np.flip(model.tensor, tuple(axis + 2 for axis in self.mirrored)).copy()
        for axis in self.mirrored:
            tensor[axis] *= -1
            tensor[:, axis] *= -1
        tensor = tensor[np.ix_(self.order, self.order)].transpose(0, 1, *(axis + 2 for axis in self.order))
        return aniso.FixedTensor(tensor)


VOLUME_SYMMETRIES = tuple(
    VolumeSymmetry(mirrored, order)
    for order in itertools.permutations(range(3))
    for count in range(4)
    for mirrored in itertools.combinations(range(3), count)
)


@dataclass(frozen=True)
class Grid:
    """Images or volumes: size, spacing and step, and the models, samples and symmetries that they have."""

    name: str
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    step: float
    models: dict[str, Callable[[tuple[int, ...]], Any]]
    samples: dict[str, Callable[[tuple[int, ...]], Any]]
    symmetries: tuple[Any, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def model(self, name) -> Any:
        return self.models[name](self.shape)

    def image(self, dtype, channels=None, sample="edges") -> Any:
        """A sample; channels, if any, along the last axis."""
        draw = self.samples[sample]
        image = draw(self.shape) if channels is None else colours(draw, self.shape, channels)
        return image.astype(dtype)

    def mean(self, image) -> Any:
        """Of every channel."""
        return image.mean(axis=tuple(range(self.ndim)), dtype=np.float64)


# Steps are below the limit of all models for these spacings and the default stencil.
IMAGES = Grid("images", (16, 13), (0.8, 1.3), 0.25, MODELS, SAMPLES, SYMMETRIES)
VOLUMES = Grid("volumes", (7, 6, 5), (0.8, 1.3, 1.0), 0.2, VOLUME_MODELS, VOLUME_SAMPLES, VOLUME_SYMMETRIES)
GRIDS = (IMAGES, VOLUMES)
