"""Calls of what takes parameters and small fields: models, stencils, schemes, bounds, estimates, samples."""

from typing import Any

import numpy as np

import aniso
from aniso import estimates, samples, stability, stencil, volumes
from aniso.models import kinds
from aniso.parameters import of_model
from tests.fuzzing.array_calls import MODELS, SCHEMES, SPACINGS, STENCILS, values_of
from tests.fuzzing.judging import Case, not_a_number, not_finite
from tests.fuzzing.odd_values import Draw, call_text

# A function serves as a diffusivity, too.
_FUNCTIONS = (lambda r: 1 / (1 + r), np.exp)
_MODELS: dict[Any, dict[str, tuple[Any, ...]]] = {
    kind: {
        name: (*values_of(each), *(_FUNCTIONS if name == "diffusivity" else ()))
        for name, each in of_model(kind).items()
    }
    for kind in kinds().values()
}
_SMALL = np.random.default_rng(0).normal(100, 20, (9, 10))


def models(draw: Draw) -> Case:
    """A model that can be made can diffuse, too."""
    if draw.chance(0.4):
        return _fixed_tensor(draw)
    kind = draw.choice(list(_MODELS))
    options = draw.options(_MODELS[kind], odd=0.4)

    def call() -> Any:
        model = kind(**options)
        hash(model), repr(model)
        return aniso.diffuse(_SMALL, model, 0.5, threads=1)

    return Case(call, call_text(kind.__name__, (), options), not_finite)


def _fixed_tensor(draw: Draw) -> Case:
    if draw.chance(0.5):
        matrix = draw.number(
            np.eye(2), [[1, 0.5], [0.5, 1]], draw.array(0.3, (2, 2)), np.eye(3), [[2.0]], odd=0.2
        )
        shape = draw.number((9, 10), (9,), (2, 3, 4), 5, (0, 3), (-1, 2), (2.5, 3), "ab", odd=0.2)
        return Case(
            lambda: aniso.FixedTensor.from_matrix(matrix, shape).tensor,
            call_text("FixedTensor.from_matrix", (matrix, shape), {}),
            not_finite,
        )
    if draw.chance(0.5):
        entries = [draw.number(*(draw.array(0.2, s) for s in ((4, 5), (4, 5), (1, 5), (5,)))) for _ in "abc"]
        return Case(
            lambda: aniso.FixedTensor.from_entries(*entries).entries,
            call_text("FixedTensor.from_entries", entries, {}),
            not_finite,
        )
    tensor = draw.number(
        draw.array(0.3, draw.choice(((2, 2, 4, 5), (3, 3, 2, 3, 4), (1, 1, 6), (2, 2)))), odd=0.2
    )
    return Case(lambda: aniso.FixedTensor(tensor).tensor, call_text("FixedTensor", (tensor,), {}), not_finite)


def stencils(draw: Draw) -> Case:
    kind = draw.randint(0, 3)
    if kind == 0:
        options = draw.options(
            {"alpha": (0.0, 0.25, 0.5), "gamma": (-1.0, 0.0, 1.0), "beta": (None, 0.1)}, odd=0.4
        )
        return Case(
            lambda: aniso.DeltaStencil(**options).delta(1.0, 0.5, 1.0),
            call_text("DeltaStencil", (), options) + ".delta(1.0, 0.5, 1.0)",
            not_finite,
        )
    if kind == 1:
        name = draw.number("standard", "nonnegativity", "quality", "Standard", "", odd=0.4)
        return Case(lambda: aniso.DeltaStencil.named(name), call_text("DeltaStencil.named", (name,), {}))
    if kind == 2:
        delta = draw.number(draw.array(0.4), odd=0.2)
        return Case(lambda: repr(aniso.FreeStencil(delta)), call_text("FreeStencil", (delta,), {}))
    alpha = draw.number(0.0, 0.3, 0.5, 0.6, odd=0.5)
    return Case(lambda: hash(stencil.SplitStencil(alpha)), call_text("SplitStencil", (alpha,), {}))


def schemes(draw: Draw) -> Case:
    kind, name = draw.choice(((aniso.Explicit, "step"), (aniso.FED, "cycles"), (aniso.FSI, "cycles")))
    options = draw.options({name: (None, 0.1, 1, 5, 100)}, odd=0.4)
    time, limit = draw.choice((0, 0.1, 3.0, 1e3, 1e-300, 1e30, 1e300)), draw.choice((0.5, 0.25, 1e-9, 1e20))

    def call() -> Any:
        cycles = iter(kind(**options).plan(time, limit))
        return [step for cycle in [next(cycles, None)] if cycle for step in cycle.steps[:10]]

    return Case(call, call_text(kind.__name__, (), options) + f".plan({time}, {limit})", not_finite)


def bounds(draw: Draw) -> Case:
    which = draw.choice(("spectral_bound", "paper_bound", "stable_step"))
    given = draw.number(*STENCILS, odd=0.1)
    spacing = draw.number(*SPACINGS, odd=0.1)
    if which == "stable_step":
        positional = (draw.number(*MODELS, odd=0.1), given, spacing, draw.number(2, 3, 1, 4))
    else:
        positional = (given, draw.number(1.0, 2.0, 0.0), draw.number(0.0, 0.5, 1.0), spacing)
    function = getattr(stability, which)
    return Case(lambda: function(*positional), call_text(which, positional, {}), not_a_number)


def tensor_fields(draw: Draw) -> Case:
    """Functions of a, b, c over cells."""
    which: Any = draw.choice(
        (
            *(stability.image_bound, stability.cell_bound, stability.gershgorin_bound),
            *(stencil.entries, stencil.matrix, stencil.collapse_ghost_cells),
            *(volumes.matrix, volumes.cell_bound, volumes.collapse_ghost_cells),
        )
    )
    options = {"stencil": draw.number(*STENCILS, odd=0.1), "spacing": draw.number(*SPACINGS, odd=0.1)}
    if "collapse" in which.__name__:
        options = {}
    elif draw.chance(0.4):
        options.pop(draw.choice(list(options)))
    if which is stencil.matrix and draw.chance(0.3):
        options["boundary"] = draw.number("mirror", "natural", "open")
    if which.__module__.endswith("volumes"):
        shape = draw.choice(((3, 3, 3, 4, 3), (3, 3, 2, 2, 2), (3, 3, 1, 2, 2)))
        scale = draw.choice((1.0, 0.0, 1e-300, 1e30, 1e300))
        field: Any = scale * np.eye(3)[:, :, None, None, None] * np.ones(shape)
        positional: list[Any] = [draw.number(field, draw.array(0.2, shape), odd=0.1)]
    elif draw.chance(0.6):
        scale = draw.choice((1.0, 0.0, 1e-300, 1e30, 1e150, 1e300))
        entry = scale * draw.array_source().random((6, 8))
        positional = [entry + scale, 0.5 * entry, entry + scale]
    else:
        positional = [
            draw.number(draw.array(0.3, draw.choice(((4, 5), (2, 2), (1, 3)))), 1.0, odd=0.1) for _ in "abc"
        ]

    def check(result: Any) -> str | None:
        if hasattr(result, "toarray"):
            result = result.toarray()
        parts = result if isinstance(result, tuple) else (result,)
        return next(filter(None, map(not_finite, parts)), None)

    return Case(
        lambda: which(*positional, **options),
        call_text(which.__name__, positional, options),
        check,
        [each for each in positional if isinstance(each, np.ndarray)],
    )


def estimate(draw: Draw) -> Case:
    which = draw.choice(("noise_level", "contrast", "wavelength"))
    known: dict[str, tuple[Any, ...]] = {"channel_axis": (None, -1, 0, 5)}
    if which != "noise_level":
        known |= {"noise": (None, 0.0, 1.0, 1e30), "spacing": SPACINGS}
    if which == "contrast":
        known |= {"sigma": (0.0, 0.5, 1e9), "rho": (0.0, 2.0, 1e9), "quantile": (0.0, 0.5, 1.0, 2.0)}
    image, options = draw.image(), draw.options(known, odd=0.1)
    return Case(
        lambda: getattr(estimates, which)(image, **options),
        call_text(which, (image,), options),
        not_finite,
        [image] if isinstance(image, np.ndarray) else [],
    )


def sample(draw: Draw) -> Case:
    which = draw.choice(
        (
            *("rings", "fingerprint", "shapes", "lighthouse", "fibres", "layers", "balls"),
            *("ring_pattern", "ring_tensor", "shell_pattern", "shell_tensor", "photograph"),
        )
    )
    if which == "photograph":
        name = draw.number("camera", "cat", "", odd=0.5)
        return Case(lambda: samples.photograph(name), call_text(which, (name,), {}), not_finite)
    function = getattr(samples, which)
    names = function.__code__.co_varnames[
        : function.__code__.co_argcount + function.__code__.co_kwonlyargcount
    ]
    usual: dict[str, tuple[Any, ...]] = {
        "period": (3.0, 9.0),
        "noise": (0.0, 10.0),
        "seed": (0, 1),
        "count": (0, 1, 3),
        "radius": (0.5, 2.0),
        "gaps": (0, 2),
        "k_max": (0.5, 3.0),
        "width": (1.0, 3.0),
    }
    flat = which not in ("fibres", "layers", "balls", "shell_pattern", "shell_tensor")
    sizes: tuple[Any, ...] = (1, 2, 16, 33) if flat else (1, 2, 5, 12)
    if "shape" in names:
        sizes += ((4, 5, 6), (1, 1, 9), (2, 3), (0, 2, 2), 5.0)
    size = draw.number(*sizes, odd=0.15)
    options = draw.options({name: usual[name] for name in names if name in usual}, odd=0.2)

    def check(result: Any) -> str | None:
        parts = vars(result).values() if isinstance(result, samples.Sample) else np.atleast_1d(result)
        return next(filter(None, map(not_finite, parts)), None)

    return Case(lambda: function(size, **options), call_text(which, (size,), options), check)


def figure(draw: Draw) -> Case:
    image, model = draw.image(), draw.choice(MODELS)
    times = draw.number([0], [0, 0.5], (1, 2, 3), np.array([0.5]), [2, 1], [])
    known = {"columns": (None, 1, 2), "channel_axis": (None, -1, 0), "scheme": SCHEMES, "spacing": SPACINGS}
    options = draw.options(known, odd=0.1)

    def call() -> Any:
        drawn = aniso.scale_space_figure(image, model, times, **options)
        if draw.chance(0.05):
            drawn.canvas.draw()

    return Case(call, call_text("scale_space_figure", (image, model, times), options))
