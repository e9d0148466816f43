"""Loops over cells of a volume for functions of eigenvalues: as the formulas that they are made of."""

import ctypes

import numpy as np
import pytest

import aniso
from aniso.engines.cpu import generate
from aniso.engines.cpu.placeholders import SPARE
from aniso.engines.cpu.placeholders import VOLUME_STRIDE as STRIDE
from aniso.formulas import volume_tensors, volume_weights

MODELS = {
    "plates and lines": aniso.CoherenceEnhancing(contrast=2.0, min_diffusivity=0.02),
    "lines": aniso.CoherenceEnhancing(contrast=2.0, min_diffusivity=0.02, plates=False),
}
NUMBERS = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}
ROWS, COUNT = 3, 112
PER_AXIS = 0.5, 1.0, 2.0


def structures(seed=0):
    """Tensors of any rank and size, also with two or three equal eigenvalues: (rows, entries, cells)."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(ROWS, COUNT, 3, 3)))[0]
    values = np.where(rng.uniform(size=(ROWS, COUNT, 3)) < 0.3, 1.0, rng.uniform(-0.3, 1, (ROWS, COUNT, 3)))
    values = np.maximum(values, 0) * 10.0 ** rng.uniform(-3, 3, (ROWS, COUNT, 1))
    tensors = np.einsum("rnij,rnj,rnkj->rnik", vectors, values, vectors)
    places = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    return np.stack([tensors[:, :, i, j] for i, j in places], axis=1)


def compiled(formula, given, dtype, per_axis):
    """What the compiled function makes of rows of cells that begin after a row of others."""
    kernel = generate.tensor_loops(formula, dtype, per_axis != (1.0, 1.0, 1.0), 3).tensor_row
    cells = np.full((ROWS + 2) * 6 * STRIDE + SPARE * STRIDE, 7.0, dtype)
    rows = cells[: (ROWS + 2) * 6 * STRIDE].reshape(ROWS + 2, 6, STRIDE)
    rows[1 : ROWS + 1, :, :COUNT] = given
    numbers = np.array(formula.parameters, dtype)
    integer, number, pointer = ctypes.c_int64, NUMBERS[dtype], ctypes.c_void_p
    call = ctypes.CFUNCTYPE(
        None, pointer, integer, ctypes.c_uint64, number, number, number, pointer, integer, integer, integer
    )(kernel.address)
    begin = 6 * STRIDE
    call(cells.ctypes.data, cells.size, begin, *per_axis, numbers.ctypes.data, numbers.size, COUNT, ROWS)
    others = np.concatenate([rows[[0, -1]].ravel(), rows[1:-1, :, COUNT:].ravel()])
    return rows[1:-1, :, :COUNT].copy(), others


def test_all_functions_of_eigenvalues_are_tried():
    formulas = {model.tensor_formula(1, ndim=3).function for model in MODELS.values()}
    assert formulas == set(volume_tensors.VALUES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_axis", [(1.0, 1.0, 1.0), PER_AXIS])
@pytest.mark.parametrize("name", MODELS)
def test_loops_compute_the_formula(name, per_axis, dtype):
    formula, dtype = MODELS[name].tensor_formula(1, ndim=3), np.dtype(dtype)
    given = structures().astype(dtype)
    found, others = compiled(formula, given, dtype, per_axis)
    expected = volume_weights.volume_scaled(*formula(*np.moveaxis(given, 1, 0)), *per_axis)
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=0, atol=60 * np.finfo(dtype).eps)
    assert (others == 7).all()
    assert np.ptp(found) > 0.5
