"""Structure and finer grids are computed without tasks, and stop between their steps all the same."""

import numpy as np
import pytest

import aniso
from aniso.cancelling import watched


@pytest.mark.parametrize(
    "function", [aniso.coherence, aniso.orientation, lambda image: aniso.upsample(image, 2)]
)
def test_long_computations_can_be_stopped(function):
    calls = []

    def check():
        calls.append(1)
        if len(calls) > 3:
            raise TimeoutError

    with watched(check), pytest.raises(TimeoutError):
        function(np.random.default_rng(0).random((12, 14, 16)))
