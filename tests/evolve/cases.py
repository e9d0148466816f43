"""What the tests of diffuse() and scale_space() run over."""

import pytest

import aniso
from tests.registry import DTYPES, ENGINES, MODELS, SAMPLES, SCHEMES

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
every_model = pytest.mark.parametrize("name", MODELS)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
SHAPE = (11, 9)
EDGE = aniso.EdgeEnhancing(contrast=12.0)


def image_of(shape=SHAPE):
    return SAMPLES["edges"](shape)
