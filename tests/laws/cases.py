"""What the laws run over: every engine, precision and model, in images and in volumes."""

import pytest

from tests.registry import DTYPES, ENGINES, GRIDS, IMAGES

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_grid = pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
every_model = pytest.mark.parametrize(
    ("grid", "name"),
    [pytest.param(grid, name, id=f"{grid.name}-{name}") for grid in GRIDS for name in grid.models],
)
every_model_of_images = pytest.mark.parametrize("name", IMAGES.models)
every_diffusivity = pytest.mark.parametrize(
    "diffusivity", ["weickert", "charbonnier", "perona-malik", "exponential"]
)
#: Every engine with every model, in one precision each: all pairs of engine, model and precision are met.
every_pair = pytest.mark.parametrize(
    ("engine", "dtype", "grid", "name"),
    [
        pytest.param(engine, dtype, grid, name, id=f"{engine.name}-{dtype}-{grid.name}-{name}")
        for grid in GRIDS
        for row, engine in enumerate(ENGINES)
        for column, name in enumerate(grid.models)
        for dtype in [DTYPES[(row + column) % len(DTYPES)]]
    ],
)
