"""Diffusion in cells of k×k pixels: the theorem of docs/theory_cells.md, and what it contains."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.fft import dctn, idctn

from aniso.formulas.predicted import squashed, weigh
from aniso.nn import CellDiffusion, TensorDiffusion

SIZE = {torch.float32: 1e-5, torch.float64: 1e-12}
SIDES = (2, 3, 5)


def images(*shape, seed=0, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    return (128 + 50 * torch.randn(*shape, generator=random, dtype=torch.float64)).to(dtype)


def numbers(image, side, *, vectors=True, size=2.0, seed=3):
    """What a network might predict."""
    random = torch.Generator().manual_seed(seed)
    shape = (len(image), (1 + vectors) * (side**2 - 1), *(n - side + 1 for n in image.shape[2:]))
    return (size * torch.randn(shape, generator=random, dtype=torch.float64)).to(image)


def disturbed(side, *, size=1.0, seed=1, dtype=torch.float64, **options):
    """Cells with other modes and another step than the first ones."""
    random = torch.Generator().manual_seed(seed)
    cells = CellDiffusion(side, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in cells.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=random))
    return cells


def norms(u):
    return u.double().flatten(1).norm(dim=1)


class TestStability:
    @pytest.mark.parametrize("dtype", SIZE, ids=str)
    def test_no_parameters_and_predictions_make_the_norm_grow_or_change_the_mean(self, dtype):
        modules = [CellDiffusion(side, steps=2, dtype=dtype) for side in SIDES]
        random = torch.Generator().manual_seed(2)
        for draw in range(1000):
            cells: Any = modules[draw % 3]
            size, grey = [(1.0, 100.0), (30.0, 1.0), (1e30, 1e10), (1e-25, 255.0)][draw % 4]
            with torch.no_grad():
                for parameter in cells.parameters():
                    parameter.copy_(size * torch.randn(parameter.shape, generator=random))
                image = grey * torch.randn(2, 1 + draw % 2, 9, 8, generator=random, dtype=dtype)
                given = numbers(image, cells.side, vectors=draw % 5 > 0, size=size, seed=draw)
                result = cells(image, given)
            assert (norms(result) <= norms(image) * (1 + SIZE[dtype])).all(), draw
            change = (result.double() - image.double()).mean(dim=(2, 3)).abs()
            assert (change.amax(dim=1) <= norms(image) * SIZE[dtype]).all(), draw

    @pytest.mark.parametrize("dtype", SIZE, ids=str)
    @pytest.mark.parametrize("side", SIDES)
    def test_predictions_that_learn_to_break_it_do_not(self, side, dtype):
        cells = CellDiffusion(side, steps=2, dtype=dtype)
        image = images(1, 1, 10, 11, dtype=dtype).sub(128)
        free = [image.requires_grad_(), numbers(image.detach(), side).requires_grad_()]
        optimiser = torch.optim.Adam([*free, *cells.parameters()], 0.3)
        for _ in range(60):
            growth = cells(*free).norm() / free[0].norm()
            assert growth <= 1 + SIZE[dtype]
            optimiser.zero_grad()
            (-growth).backward()
            optimiser.step()
        assert growth > 0.8  # it did try

    @pytest.mark.parametrize("side", SIDES)
    def test_the_bound_is_attained(self, side):
        cells = disturbed(side)
        modes, u = cells.modes().detach(), images(1, 1, 40, 40)
        for _ in range(400):
            v = torch.nn.functional.conv2d(u, modes)
            u = torch.nn.functional.conv_transpose2d(v, modes)
            largest = u.norm() / side**2
            u = u / u.norm()
        assert 0.99 < largest <= 1
        with torch.no_grad():
            cells.step.raw.fill_(100.0)  # s = 1
        everything = torch.full_like(numbers(u, side, vectors=False), 50.0)
        torch.testing.assert_close(cells(u, everything), (1 - 2 * largest) * u, rtol=0, atol=1e-3)

    @pytest.mark.parametrize("side", [2, 3, 4, 7])
    def test_modes_stay_orthonormal_with_mean_0(self, side):
        for size in (0.0, 1.0, 1e3):
            modes = disturbed(side, size=size).modes().detach().flatten(1)
            torch.testing.assert_close(modes @ modes.T, torch.eye(side**2 - 1).double(), rtol=0, atol=1e-10)
            assert modes.sum(dim=1).abs().max() < 1e-10

    def test_half_precision_parameters_have_orthonormal_modes(self):
        modes = disturbed(3).half().modes().detach().flatten(1)
        torch.testing.assert_close(modes @ modes.T, torch.eye(8).double(), rtol=0, atol=1e-10)


class TestMembers:
    def test_every_diffusion_tensor_is_one(self):
        """k = 2 inside the image: the weights and the vector that make D of S, against TensorDiffusion."""
        image, random = images(2, 2, 9, 12), torch.Generator().manual_seed(4)
        s_xx, s_xy, s_yy, s = torch.randn(4, 2, 10, 13, generator=random, dtype=torch.float64)
        middle, slant = (s_xx + s_yy) / 2, (s_xx - s_yy) / 2
        gap = (slant**2 + s_xy**2).sqrt()
        # The reflection that maps the axis x to the eigenvector of the larger eigenvalue.
        angle = torch.atan2(s_xy, slant) / 2
        x, y, nothing = angle.cos() - 1, angle.sin(), torch.zeros_like(s)
        # In the order of the modes: along x, along y, hourglass.
        given = torch.stack([middle + gap, middle - gap, s, x, y, nothing], dim=1)[:, :, 1:-1, 1:-1]
        cells = CellDiffusion(2, dtype=torch.float64)
        with torch.no_grad():
            cells.step.raw.fill_(0.0)  # s = ½
        prediction = torch.stack([s_xx, s_xy, s_yy, s], dim=1)
        expected = TensorDiffusion(step=0.25, dtype=torch.float64)(image, prediction)
        inside = (..., slice(1, -1), slice(1, -1))
        torch.testing.assert_close(cells(image, given)[inside], expected[inside], rtol=0, atol=1e-9)

    @pytest.mark.parametrize("side", [3, 4])
    def test_half_of_the_largest_step_is_shrinkage_in_sliding_windows(self, side):
        """Each window by SciPy's cosine transform, responses below a threshold removed, then averaged."""
        image, threshold = images(1, 1, 14, 15), 90.0
        cells = CellDiffusion(side, dtype=torch.float64)
        found = cells(image, lambda v: 1e9 * (threshold - v[:, 0].abs())).detach().numpy()[0, 0]
        pixels, total = image.numpy()[0, 0], np.zeros((14, 15))
        for y in range(15 - side):
            for x in range(16 - side):
                window = (slice(y, y + side), slice(x, x + side))
                coefficients = dctn(pixels[window], norm="ortho")
                kept = np.where(np.abs(coefficients) < threshold, 0.0, coefficients)
                kept[0, 0] = coefficients[0, 0]
                total[window] += idctn(kept, norm="ortho")
        inside = (slice(side - 1, 1 - side),) * 2  # there each pixel has k² windows
        np.testing.assert_allclose(found[inside], (total / side**2)[inside], atol=1e-9)

    def test_weights_are_a_symmetric_matrix_with_eigenvalues_in_0_to_1(self):
        random = np.random.default_rng(0)
        for w in (random.random(8), np.ones(8), np.zeros(8)):
            vector = random.normal(size=(8, 1))
            matrix = weigh(np.eye(8), w[:, None], vector, axis=0)
            np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
            np.testing.assert_allclose(np.linalg.eigvalsh(matrix), np.sort(w), atol=1e-12)

    def test_tensors_are_those_of_the_formula(self):
        """A check of the test above: reflection and weights give the matrix function of S."""
        s_xx, s_xy, s_yy = 0.7, -0.4, -1.1
        values, vectors = np.linalg.eigh([[s_xx, s_xy], [s_xy, s_yy]])
        vector = vectors[:, 1] - [1, 0]
        w = 1 / (1 + np.exp(-values[::-1]))
        (a, b), (_, c) = weigh(np.eye(2), w[:, None], vector[:, None], axis=0)
        np.testing.assert_allclose([a, b, c], squashed(s_xx, s_xy, s_yy), atol=1e-12)


class TestForm:
    @pytest.mark.parametrize("vectors", [False, True])
    def test_gradients_are_right(self, vectors):
        cells, image = disturbed(2, size=0.3), images(1, 2, 4, 5)
        names, values = zip(*cells.named_parameters(), strict=True)

        def result(image, given, *values):
            return torch.func.functional_call(cells, dict(zip(names, values, strict=True)), (image, given))

        given = numbers(image, 2, vectors=vectors).requires_grad_()
        assert torch.autograd.gradcheck(result, (image.requires_grad_(), given, *values))

    def test_a_function_gets_the_responses_of_each_step(self):
        cells, image, seen = disturbed(3, steps=2), images(2, 3, 8, 9), []

        def predict(v):
            seen.append(v)
            return v.mean(dim=1) / 50

        result = cells(image, predict)
        assert [v.shape for v in seen] == [(2, 3, 8, 6, 7)] * 2
        torch.testing.assert_close(seen[0], cells.responses(image))
        assert not torch.equal(seen[0], seen[1])
        assert result.shape == image.shape

    def test_the_modes_learn(self):
        """From the noisy image to the clean one, with weights that only the responses decide."""
        stripes = 40 * torch.sin(torch.arange(24.0) * 1.3 + 0.6 * torch.arange(24.0)[:, None])[None, None]
        noisy = stripes + 20 * torch.randn(stripes.shape, generator=torch.Generator().manual_seed(0))
        cells, errors = CellDiffusion(3), []
        optimiser = torch.optim.Adam(cells.parameters(), 0.03)
        for _ in range(60):
            optimiser.zero_grad()
            error = ((cells(noisy, lambda v: 4 - v.abs().mean(dim=1) / 10) - stripes) ** 2).mean()
            error.backward()
            optimiser.step()
            errors.append(error.item())
        assert errors[-1] < 0.9 * errors[0]

    def test_an_image_without_cells_stays(self):
        image = images(1, 1, 2, 9)
        assert torch.equal(CellDiffusion(3)(image, torch.zeros(1, 8, 0, 7)), image)

    @pytest.mark.parametrize("options", [{"side": 1}, {"side": 16}, {"steps": 0}, {"step": 1.5}])
    def test_bad_options_are_refused(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            CellDiffusion(**options)

    @pytest.mark.parametrize("shape", [(2, 8, 6, 6), (1, 8, 8, 8), (1, 9, 6, 6), (1, 8, 6)])
    def test_predictions_of_other_shapes_are_refused(self, shape):
        with pytest.raises(ValueError, match=r"must have shape \(1, 8 or 16, 6, 6\)"):
            CellDiffusion(3)(images(1, 1, 8, 8, dtype=torch.float32), torch.zeros(shape))
        with pytest.raises(TypeError, match="or a function that returns one"):
            CellDiffusion(3)(images(1, 1, 8, 8, dtype=torch.float32), lambda v: None)
