"""Calls of the functions that take images."""

from typing import Any

import numpy as np

import aniso
from aniso.parameters import Parameter
from aniso.verbs.table import VERBS, Verb
from tests.fuzzing.judging import Case, not_finite
from tests.fuzzing.odd_values import Draw, call_text

# Those that hardly any image can take are at the end.
MODELS: tuple[Any, ...] = (
    aniso.Homogeneous(),
    aniso.EdgeEnhancing(contrast=10.0),
    aniso.EdgeEnhancing(contrast=1e20, sigma=0.5, diffusivity="charbonnier"),
    aniso.EdgeEnhancing(contrast=1e-20, diffusivity="exponential"),
    aniso.EdgeContinuing(contrast=3.0),
    aniso.CoherenceEnhancing(rho=2.0),
    aniso.CoherenceEnhancing(contrast=1e-30, rho=1.0, plates=False),
    aniso.PeronaMalik(contrast=10.0),
    aniso.PeronaMalik(contrast=1e20, diffusivity="charbonnier"),
    aniso.PeronaMalik(contrast=1e30, sigma=0.0),
    aniso.PeronaMalik(contrast=1e-100, sigma=0.0, diffusivity="weickert"),
    aniso.EdgeEnhancing(sigma=1e9),
    aniso.CoherenceEnhancing(rho=1e30),
    aniso.EdgeEnhancing(sigma=5e-324),
)
STENCILS: tuple[Any, ...] = (
    aniso.DeltaStencil(),
    aniso.DeltaStencil(alpha=0.0, gamma=0.0),
    aniso.DeltaStencil(alpha=0.5),
    aniso.DeltaStencil(alpha=0.25, beta=-0.5),
    aniso.DeltaStencil.named("nonnegativity"),
    aniso.stencil.SplitStencil(0.4),
    aniso.FreeStencil(np.zeros((6, 8))),
)
SCHEMES: tuple[Any, ...] = (
    aniso.Explicit(),
    aniso.Explicit(step=0.1),
    aniso.Explicit(step=1e-30),
    aniso.FED(2),
    aniso.FSI(2),
    aniso.FED(1),
)
SPACINGS = (
    *(1.0, None, 2.0, 0.5) * 3,
    *((1.0, 2.0), (1.0, 2.0), (2.0, 1.0, 1.0), (1e-9, 1e-9), 1e-14, 1e14, 1e30),
)
ENGINES = (None, None, "cpu", "cpu", "reference", "torch", "gpu")
_COMPUTING: dict[str, tuple[Any, ...]] = {
    "spacing": SPACINGS,
    "channel_axis": (None, None, None, -1, -1, 0, 1, 5),
    "engine": ENGINES,
    "threads": (1, 2, None),
    "progress": (None, False, lambda done, total: None),
}
_DIFFUSION: dict[str, tuple[Any, ...]] = {**_COMPUTING, "stencil": STENCILS, "scheme": SCHEMES}


def diffuse(draw: Draw) -> Case:
    image, model, time = draw.image(), _model(draw), draw.number(0, 0.3, 1.0, 4, odd=0.06)
    options = draw.options(_DIFFUSION, odd=0.06)
    _add_mask(draw, "fixed", image, options)

    def check(result: Any) -> str | None:
        return _fault(image, result, options) or _lost_law(image, result, options, again)

    def again(other: Any) -> Any:
        return aniso.diffuse(other, model, time, **options)

    return _case("diffuse", lambda: again(image), (image, model, time), options, check)


def structure(draw: Draw) -> Case:
    which = draw.choice(("structure_tensor", "orientation", "coherence", "diffusion_tensor"))
    image = draw.image()
    known: dict[str, tuple[Any, ...]] = {name: _COMPUTING[name] for name in ("spacing", "channel_axis")}
    given: tuple[Any, ...] = (image,)
    if which == "diffusion_tensor":
        given = (image, _model(draw))
    else:
        known |= {"sigma": (0.0, 0.5, 2, 1e9), "rho": (0.0, 2.0, 1e9)}
    if which == "coherence":
        known |= {"plates": (True, False, 1)}
    options = draw.options(known, odd=0.08)
    return _case(which, lambda: getattr(aniso, which)(*given, **options), given, options, not_finite)


def scale_space(draw: Draw) -> Case:
    image, model = draw.image(), _model(draw)
    usual: tuple[Any, ...] = (
        [1.0],
        (0, 1),
        [0.1, 0.2, 3],
        np.array([1, 2]),
        [],
        [2, 1],
        [1, np.nan],
        "12",
        [[1, 2]],
        [None],
    )
    times = draw.number(*usual)
    options = draw.options(_DIFFUSION, odd=0.06)
    _add_mask(draw, "fixed", image, options)

    def call() -> Any:
        return [each for _, each in aniso.scale_space(image, model, times, **options)]

    def check(results: Any) -> str | None:
        return next(filter(None, (_fault(image, result, options) for result in results)), None)

    return _case("scale_space", call, (image, model, times), options, check)


_BY_UNIT: dict[str, tuple[Any, ...]] = {
    "grey values": ("auto", None, 0.0, 0.1, 10.0, 1e-30, 1e30),
    "grey values per unit length": ("auto", 1.0, 30.0, 1e-20, 1e20, "automatic"),
    "length": ("auto", None, 0.0, 0.5, 4.0, 1e9, "long"),
    "length²": ("auto", None, 0.5, 2.0),
}


def values_of(parameter: Parameter) -> tuple[Any, ...]:
    """Return usual values of a parameter, and some that may be rejected."""
    about = parameter.about
    if about.switch:
        return (None, True, False)
    if about.whole:
        return (None, 1, 3)
    if about.choices:
        return (*about.choices, "other")
    return _BY_UNIT.get(about.unit, (parameter.default, 0.1, min(about.high, 1.0)))


def options_of(verb: Verb) -> dict[str, tuple[Any, ...]]:
    """Return the options of a verb, with values of each."""
    own = {name: values_of(each) for name, each in verb.parameters.items() if not each.required}
    stencil = {"stencil": STENCILS} if verb.takes("stencil") else {}
    return {**_COMPUTING, **own, **stencil, "return_info": (False,)}


def call_verb(draw: Draw, verb: Verb) -> Case:
    """Call a verb, by what its row says."""
    if verb.refines:
        return upsample(draw)
    return inpaint(draw) if verb.fills else _verb(draw, verb.name, options_of(verb))


def upsample(draw: Draw) -> Case:
    known = options_of(VERBS["upsample"])
    image, factor = draw.image(), draw.number(1, 2, 3, 2, 4, 8, 9, 2.0)
    options = draw.options(known, odd=0.06)

    def check(result: Any) -> str | None:
        result = result[0] if isinstance(result, tuple) else result
        if fault := not_finite(result) or _wrong_type(result):
            return fault
        given = _float_array(image)
        axis = options.get("channel_axis")
        shape = tuple(n * (1 if axis is not None and k == axis % given.ndim else factor)
                      for k, n in enumerate(given.shape))  # fmt: skip
        return None if np.shape(result) == shape else f"shape {np.shape(result)} and not {shape}"

    return _case(
        "upsample", lambda: aniso.upsample(image, factor, **options), (image, factor), options, check
    )


def inpaint(draw: Draw) -> Case:
    image = draw.image()
    if isinstance(image, np.ndarray) and image.dtype.kind == "f" and image.size and draw.chance(0.4):
        unknown = draw.array_source().random(image.shape) < draw.choice((0.1, 0.5, 0.95))
        image = np.where(unknown, np.nan, image).astype(image.dtype)
    known = options_of(VERBS["inpaint"])
    options = draw.options(known, odd=0.06)
    _add_mask(draw, "mask", image, options)

    def check(result: Any) -> str | None:
        if fault := _fault(image, result, options):
            return fault
        result = result[0] if isinstance(result, tuple) else result
        given, result = _float_array(image), np.asarray(result)
        if (
            options.get("mask") is None
            and (mask := np.isnan(given)).any()
            and not options.get("channel_axis")
        ):
            if options.get("channel_axis") == 0:
                mask = np.broadcast_to(mask.any(axis=0), given.shape)
            if not (result[~mask] == given[~mask]).all():
                return "a known pixel has changed"
            if (result < given[~mask].min()).any() or (result > given[~mask].max()).any():
                return "what was filled in is outside of the known values"
        return None

    return _case("inpaint", lambda: aniso.inpaint(image, **options), (image,), options, check)


def lazily(draw: Draw) -> Case:
    """Dask arrays, through any of the functions."""
    import dask
    import dask.array

    array = draw.array(0.1)
    chunks = tuple(draw.choice((1, 3, 5, -1)) if n > 2 else -1 for n in array.shape)
    image = dask.array.from_array(array, chunks=chunks or -1)
    known = {name: values for name, values in _COMPUTING.items() if name != "progress"}
    verb = draw.choice(("diffuse", "denoise", "enhance", "inpaint"))
    positional: tuple[Any, ...] = ()
    if verb == "diffuse":
        known |= {"stencil": STENCILS, "scheme": SCHEMES, "progress": (None, True)}
        positional = (_model(draw), draw.number(0, 0.3, 1.0, odd=0.05))
    elif verb == "inpaint":
        known |= {
            "max_cycles": (1, 2),
            "mask": (array > array.mean() if array.dtype.kind in "iuf" else None,),
        }
    else:
        known |= {"noise": (None, 1.0), "contrast": ("auto", 5.0), "time": ("auto", 0.5)}
    options = draw.options(known, odd=0.06)

    def call() -> Any:
        result = getattr(aniso, verb)(image, *positional, **options)
        with dask.config.set(scheduler="synchronous"):
            return result.compute()

    return _case(
        f"{verb} of Dask arrays", call, (array, *positional), options, lambda r: _fault(array, r, options)
    )


def _verb(draw: Draw, name: str, known: dict[str, tuple[Any, ...]]) -> Case:
    image, options = draw.image(), draw.options(known, odd=0.06)
    return _case(
        name,
        lambda: getattr(aniso, name)(image, **options),
        (image,),
        options,
        lambda result: _fault(image, result, options),
    )


def _case(name: str, call: Any, positional: tuple[Any, ...], options: dict[str, Any], check: Any) -> Case:
    inputs = [value for value in (*positional, *options.values()) if hasattr(value, "shape")]
    return Case(call, call_text(name, positional, options), check, inputs)


def _model(draw: Draw) -> Any:
    if draw.chance(0.1):
        shape = draw.choice(((5, 7), (12, 11), (7,), (3, 4, 5)))
        return aniso.FixedTensor.from_matrix(draw.choice((1.0, 0.0, 1e-30, 1e30)) * np.eye(len(shape)), shape)
    return draw.number(*(MODELS[:11] * 4), *MODELS, odd=0.03)


def _add_mask(draw: Draw, name: str, image: Any, options: dict[str, Any]) -> None:
    if not draw.chance(0.2):
        return
    shape = np.shape(image) if isinstance(image, np.ndarray) else (5, 7)
    mask = np.atleast_1d(draw.array_source().random(shape) < 0.5)
    options[name] = draw.number(
        mask, mask.tolist(), mask[..., :1], mask.astype(float), ~mask, np.ones(shape, bool)
    )


def _float_array(image: Any) -> np.ndarray:
    if hasattr(image, "detach"):
        image = image.detach().double().numpy()
    array = np.asarray(image)
    return array.astype(np.float64 if array.dtype.itemsize >= 8 and array.dtype.kind == "f" else np.float32)


def _wrong_type(result: Any) -> str | None:
    name = str(result.dtype).removeprefix("torch.")
    return None if name in ("float32", "float64") else f"the result is of type {name}"


def _fault(image: Any, result: Any, options: dict[str, Any]) -> str | None:
    result = result[0] if isinstance(result, tuple) else result  # and what was chosen
    if fault := not_finite(result) or _wrong_type(result):
        return fault
    if np.shape(result) != np.shape(image):
        return f"the result has shape {np.shape(result)}"
    if isinstance(image, np.ndarray) and isinstance(result, np.ndarray) and np.shares_memory(image, result):
        return "the result is in the memory of the image"
    return None


def _lost_law(image: Any, result: Any, options: dict[str, Any], again: Any) -> str | None:
    """The mean is kept and the norm does not grow; single precision comes near double precision."""
    if not isinstance(image, np.ndarray):
        return None
    before, after = image.astype(np.float64), result.astype(np.float64)
    size = float(np.abs(before).max())
    if size == 0:
        return None if not after.any() else "a black image is not black any more"
    before, after = before / size, after / size
    if options.get("fixed") is None:
        if abs(after.mean() - before.mean()) > 1e-4:
            return f"the mean went from {before.mean():.6g} to {after.mean():.6g} of the largest value"
        if np.linalg.norm(after) > np.linalg.norm(before) * (1 + 1e-4):
            return "the norm has grown"
    if result.dtype == np.float32 and options.get("engine") != "reference" and size > 1e-35:
        exact = again(image.astype(np.float64)) / size
        if np.abs(after - exact).max() > 0.02:
            return f"single precision is wrong by {np.abs(after - exact).max():.3g} of the largest value"
    return None
