"""Blocks give the bits of the whole image, whatever their place and width."""

import numpy as np
import pytest

import aniso
from aniso.blocks.halo import reach
from aniso.schemes import Scheme
from aniso.settings import Settings

MODELS = {
    "edges": aniso.EdgeEnhancing(8.0, 0.7),
    "averaged edges": aniso.EdgeContinuing(8.0, 0.7, 0.8),
    "coherence": aniso.CoherenceEnhancing(8.0, 0.5, 1.0),
}
SCHEMES: dict[str, Scheme] = {"explicit": aniso.Explicit(), "FED": aniso.FED(1), "FSI": aniso.FSI(1)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(20, 70), (9, 10, 46)])
def test_a_window_with_its_halo_gives_the_bits_of_the_whole(shape, model, scheme, dtype):
    image = np.random.default_rng(0).normal(100, 20, shape).astype(dtype)
    chosen, steps = MODELS[model], SCHEMES[scheme]
    prepared = Settings.check(len(shape), scheme=steps).prepare(chosen, shape)
    time = prepared.limit if scheme == "explicit" else 3 * prepared.limit
    cycles = list(prepared.plan(time))
    far = sum(reach(cycle, chosen, prepared.problem.spacings)[-1] for cycle in cycles)
    whole = aniso.diffuse(image, chosen, time, scheme=steps)
    for start in range(1, 18):
        part = aniso.diffuse(image[..., start:], chosen, time, scheme=steps)
        np.testing.assert_array_equal(part[..., far:], whole[..., start + far :])
