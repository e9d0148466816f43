"""No parameters and no predictions make a module unstable, however extreme."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import aniso
from aniso.nn import (
    CellBlock,
    DiffusionBlock,
    DiffusionNet,
    Interval,
    LearnedDiffusivity,
    Positive,
    TensorDiffusion,
)
from tests.nn.nn_registry import (
    BLOCKS,
    COHERENCE,
    DIFFUSIVITIES,
    EDGE,
    LINES,
    SCALAR,
    SPECIMENS,
    STENCIL_AND_STEP,
    batch,
    learnable,
    redraw,
)

every_specimen = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)

SIZE = 12
SCALES = (1.0, 10.0, 1e3, 1e30)


def images(channels=1, dtype=torch.float32):
    """What is likely to grow: the highest frequencies, without a mean that would hide them."""
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    grey = torch.stack(
        [
            (-1.0) ** (x + y),
            (-1.0) ** x,
            (-1.0) ** y + 0.01 * x,
            2.0 * (2 * x + y > 17) - 1,
            1.0 * ((x == 4) & (y == 7)),
            batch((1, 1, SIZE, SIZE), dtype=torch.float32)[0, 0] - 0.5,
        ]
    )
    return torch.stack([grey * (1 + 0.3 * k) + 0.1 * k * grey.mT for k in range(channels)], 1).to(dtype)


def volumes(channels=1, dtype=torch.float32):
    """The same for volumes, in layers that alternate."""
    image = images(channels, dtype)
    return torch.stack([image, image.flip(-1), image, image.flip(-2)], dim=2)


def norms(tensor):
    return tensor.detach().double().flatten(1).norm(dim=1)


def assert_no_growth(result, image, slack=1e-5):
    assert result.isfinite().all()
    growth = (norms(result) / norms(image)).max()
    assert growth <= 1 + slack, f"grew by {growth - 1:.3g}"


def draws(module, count, seed=0):
    """Random numbers of one size, of mixed sizes, and at the ends, for all that is learned."""
    generator = torch.Generator().manual_seed(seed)
    for number in range(count):
        kind = number % (len(SCALES) + 2)
        if kind < len(SCALES):
            redraw(module, generator, SCALES[kind])
        else:
            with torch.no_grad():
                for parameter in module.parameters():
                    choice = torch.randint(len(SCALES), parameter.shape, generator=generator)
                    sign = 2.0 * torch.randint(2, parameter.shape, generator=generator) - 1
                    size = torch.tensor(SCALES)[choice]
                    extreme = torch.full_like(size, torch.finfo(torch.float32).max)
                    parameter.copy_(sign * (size if kind == len(SCALES) else extreme))
        yield module


def test_a_block_in_hundreds_of_draws():
    image = images()
    with torch.no_grad():
        for block in draws(DiffusionBlock(EDGE, learn=learnable(EDGE), max_sigma=0.6), 300):
            assert_no_growth(block(image), image)


@pytest.mark.parametrize("channels", [1, 3])
@every_specimen
def test_every_module_in_random_draws(specimen, channels):
    image, *others = specimen.inputs(images(channels))
    with torch.no_grad():
        for module in draws(specimen.make(), 24, seed=channels):
            assert_no_growth(module(image, *others), image)


@every_specimen
def test_double_precision_leaves_no_slack(specimen):
    image, *others = specimen.inputs(images(2, torch.float64))
    with torch.no_grad():
        for module in draws(specimen.make(dtype=torch.float64), 12):
            assert_no_growth(module(image, *others), image, 1e-12)


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("spacing", [1.0, (0.5, 1.0)], ids=str)
def test_again_and_again_at_the_largest_step(kind, spacing):
    """Whatever grows at all grows out of rounding noise in the end."""
    model = aniso.CoherenceEnhancing(0.3, 0.0, 0.0, 0.5)
    block = kind(model, learn=("min_diffusivity", *STENCIL_AND_STEP), spacing=spacing, dtype=torch.float64)
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        redraw(block, generator, 3.0)
        with torch.no_grad():
            block.learned["step"].raw.fill_(1e30)
            u = images(1, torch.float64)
            for _ in range(30):
                u, before = block(u), u
                assert_no_growth(u, before, 1e-12)


@pytest.mark.parametrize("kind", [DiffusionBlock, CellBlock], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("spacing", [1.0, (0.5, 1.0, 0.8)], ids=str)
def test_again_and_again_in_volumes(kind, spacing):
    model = aniso.CoherenceEnhancing(0.3, 0.0, 0.0, 0.5)
    learn = ("min_diffusivity", *STENCIL_AND_STEP)
    block = kind(model, learn=learn, spacing=spacing, ndim=3, dtype=torch.float64)
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        redraw(block, generator, 3.0)
        with torch.no_grad():
            block.learned["step"].raw.fill_(1e30)
            u = volumes(1, torch.float64)
            for _ in range(20):
                u, before = block(u), u
                assert_no_growth(u, before, 1e-12)


@pytest.mark.parametrize("contrast", [1e-15, 1e-6, 1e-3])
@pytest.mark.parametrize("model", [aniso.EdgeEnhancing, aniso.EdgeContinuing, aniso.CoherenceEnhancing])
def test_edges_of_volumes_far_above_the_contrast(model, contrast):
    """Channels that agree have a structure of rank one: its other eigenvalues are nothing but rounding."""
    image = volumes(1).expand(-1, 3, -1, -1, -1) * torch.tensor([1.0, 0.7, 0.3])[:, None, None, None]
    for switch in ({}, {"plates": False}) if model is aniso.CoherenceEnhancing else ({},):
        sharp = replace(model(contrast, 0.0), **switch)
        for diffusivity in DIFFUSIVITIES if hasattr(sharp, "diffusivity") else (None,):
            given = sharp if diffusivity is None else replace(sharp, diffusivity=diffusivity)
            block = DiffusionBlock(given, step=aniso.stability.stable_step(given, ndim=3), ndim=3)
            u = image
            for _ in range(5):
                u, before = block(u), u
                assert_no_growth(u, before)


@pytest.mark.parametrize("spacing", [1.0, (0.5, 1.0), (2.0, 0.7), (0.5, 1.0, 0.8), (1.0, 1.0, 2.0)], ids=str)
@pytest.mark.parametrize(
    "model", [EDGE, COHERENCE, LINES, SCALAR, aniso.Homogeneous()], ids=lambda m: type(m).__name__
)
def test_the_learned_step_follows_the_learned_stencil(model, spacing):
    """As aniso.stability computes the limit for a stencil that does not change."""
    ndim = np.size(spacing) if np.size(spacing) > 1 else 2
    module = DiffusionBlock(model, learn=STENCIL_AND_STEP, spacing=spacing, ndim=ndim, dtype=torch.float64)
    for block in draws(module, 24):
        values = block.values()
        stencil = aniso.DeltaStencil(values["alpha"].item(), values["gamma"].item())
        limit = aniso.stability.stable_step(model, stencil, spacing, ndim)
        assert block.largest_step(values).item() == pytest.approx(limit, rel=1e-9)
        assert 0 <= values["step"].item() <= 1


def test_a_learned_minimal_diffusivity_keeps_the_step_small_enough():
    """It may rise to 1, whatever it was at the start."""
    model = aniso.CoherenceEnhancing(0.3, 0.0, 0.0, 0.0)
    stencil = aniso.DeltaStencil.named("standard")
    block = DiffusionBlock(model, stencil, learn=["min_diffusivity", "step"])
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.fill_(1e30)
        assert_no_growth(block(images()), images())
    values = block.values()
    limit = aniso.stability.stable_step(aniso.Homogeneous(), stencil)
    assert (values["step"] * block.largest_step(values)).item() == pytest.approx(limit)


class TestPredictions:
    @pytest.mark.parametrize("numbers", [3, 4])
    @pytest.mark.parametrize("cells", [0, 1], ids=["pixels", "cells"])
    @pytest.mark.parametrize(
        ("steps", "scheme"), [(5, None), (8, aniso.FED(2)), (8, aniso.FSI(2))], ids=["Explicit", "FED", "FSI"]
    )
    def test_hundreds_in_one_batch(self, numbers, cells, steps, scheme):
        generator = torch.Generator().manual_seed(numbers)
        image, spacing = images(2).repeat(50, 1, 1, 1), (0.5, 0.8) if cells else 1.0
        shape = (len(image), numbers, SIZE + cells, SIZE + cells)
        sizes = torch.tensor([0.0, 1e-3, 1.0, 10.0, 1e3, 1e30, torch.inf])
        chosen = torch.randint(1, len(sizes), (len(image), numbers, 1, 1), generator=generator)
        given = (torch.randn(shape, generator=generator) * sizes[chosen]).nan_to_num(
            0.0, torch.inf, -torch.inf
        )
        given[:7] = sizes[:, None, None, None]
        for sharpest in (
            aniso.DeltaStencil(),
            aniso.DeltaStencil(0.0, -1.0),
            aniso.DeltaStencil(0.0, beta=1.0),
        ):
            limit = aniso.stability.stable_step(aniso.Homogeneous(), sharpest, spacing)
            module = TensorDiffusion(steps, scheme=scheme, stencil=sharpest, step=limit, spacing=spacing)
            with torch.no_grad():
                assert_no_growth(module(image, given), image)

    @pytest.mark.parametrize("numbers", [6, 7])
    @pytest.mark.parametrize("cells", [0, 1], ids=["voxels", "cells"])
    def test_in_volumes(self, numbers, cells):
        generator = torch.Generator().manual_seed(numbers)
        image, spacing = volumes(2).repeat(10, 1, 1, 1, 1), (0.5, 0.8, 1.1) if cells else 1.0
        shape = (len(image), numbers, 4 + cells, SIZE + cells, SIZE + cells)
        sizes = torch.tensor([0.0, 1e-30, 1e-3, 1.0, 10.0, 1e3, 1e30, torch.inf])
        chosen = torch.randint(1, len(sizes), (len(image), numbers, 1, 1, 1), generator=generator)
        given = (torch.randn(shape, generator=generator) * sizes[chosen]).nan_to_num(
            0.0, torch.inf, -torch.inf
        )
        given[:8] = sizes[:, None, None, None, None]  # eigenvalues that coincide
        given[8:12, 1] = given[8:12, 3:5] = 0.0
        for stencil in (
            aniso.DeltaStencil(),
            aniso.DeltaStencil(0.0, -1.0),
            aniso.DeltaStencil(0.0, beta=1.0),
        ):
            limit = aniso.stability.stable_step(aniso.Homogeneous(), stencil, spacing, 3)
            module = TensorDiffusion(4, stencil=stencil, step=limit, spacing=spacing, ndim=3)
            with torch.no_grad():
                assert_no_growth(module(image, given), image)

    def test_tensors_of_volumes_are_semidefinite_and_at_most_one(self):
        generator = torch.Generator().manual_seed(0)
        module = TensorDiffusion(1, stencil=aniso.DeltaStencil(0.0, 0.3), ndim=3).double()
        for scale in (0.1, 3.0, 20.0):
            numbers = scale * torch.randn((1, 6, 20, 20, 20), generator=generator, dtype=torch.float64)
            entries, inner = module._weights(numbers, module.values())
            xx, xy, yy, xz, yz, zz = (entry[0, 0] for entry in entries)
            rows = [torch.stack(row, -1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
            eigenvalues = torch.linalg.eigvalsh(torch.stack(rows, -1))
            assert eigenvalues.min() >= -1e-15
            assert eigenvalues.max() <= 1 + 2e-15
            assert all(weight.min() >= 0 for weight in inner)

    def test_tensors_are_semidefinite_and_at_most_one(self):
        """As seen by diffusion of single pixels with the predicted tensors."""
        generator = torch.Generator().manual_seed(0)
        module = TensorDiffusion(1, stencil=aniso.DeltaStencil(0.0, 0.3)).double()
        for scale in (0.1, 3.0, 20.0):
            numbers = scale * torch.randn((1, 3, 200, 200), generator=generator, dtype=torch.float64)
            entries, inner = module._weights(numbers, module.values())
            a, b, c, zeta = (x[0, 0].numpy() for x in (*entries, *inner))
            smaller = 0.5 * (a + c) - np.hypot(0.5 * (a - c), b)
            larger = 0.5 * (a + c) + np.hypot(0.5 * (a - c), b)
            assert smaller.min() >= -1e-15
            assert larger.max() <= 1 + 1e-15
            assert zeta.min() >= 0


class TestHalfPrecisionParameters:
    """A limit that is rounded to half precision would be passed by half a per cent."""

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_of_a_block(self, dtype):
        block: Any = DiffusionBlock(aniso.Homogeneous(), learn=STENCIL_AND_STEP).to(dtype)
        generator = torch.Generator().manual_seed(2)
        for _ in range(60):
            redraw(block, generator, 3.0)
            with torch.no_grad():
                block.learned["step"].raw.fill_(1e4)
                values = block.values()
                tau = (values["step"] * block.largest_step(values)).item()
            stencil = aniso.DeltaStencil(values["alpha"].item(), values["gamma"].item())
            assert tau <= aniso.stability.stable_step(aniso.Homogeneous(), stencil) * (1 + 1e-6)

    def test_of_the_diffusivity(self):
        g = LearnedDiffusivity(lambda r: 1 / (1 + r), dtype=torch.bfloat16)
        assert g(torch.linspace(0, 5, 7)).dtype == torch.float32


class TestRanges:
    RAW = (0.0, 1.0, -1.0, 88.0, -88.0, 1e30, -1e30, float(torch.finfo(torch.float32).max))

    @pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (-1.0, 1.0), (0.1, 2.0)])
    def test_an_interval_holds(self, low, high):
        module = Interval(0.25, low, high)
        for raw in self.RAW:
            module.raw.data.fill_(raw)
            assert low <= module().item() <= np.float32(high)

    @pytest.mark.parametrize("value", [-1.0, -0.3, 0.0, 0.7, 1.0])
    def test_an_interval_starts_where_it_is_told_or_just_inside(self, value):
        assert Interval(value, -1.0, 1.0)().item() == pytest.approx(min(max(value, -0.98), 0.98), abs=1e-6)

    def test_a_positive_number_stays_positive_and_finite(self):
        for start in (1e-20, 3.5, 1e20):
            module = Positive(start)
            assert module().item() == pytest.approx(start)
            for raw in self.RAW:
                module.raw.data.fill_(raw)
                assert start * math.exp(-8.01) <= module().item() <= start * math.exp(8.01)

    @pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e30])
    def test_a_diffusivity_is_1_at_0_and_within_0_and_1(self, scale):
        g = LearnedDiffusivity(lambda r: 1 / (1 + r), dtype=torch.float64)
        r = torch.cat([torch.zeros(1), torch.logspace(-12, 18, 400)]).double()
        generator = torch.Generator().manual_seed(1)
        for _ in range(20):
            redraw(g, generator, scale)
            values, declines = g(r), g.decline(r)
            assert values[0] == 1
            assert values.min() >= 0
            assert values.max() <= 1
            torch.testing.assert_close(values, 1 - r * declines, rtol=0, atol=1e-13)

    def test_a_diffusivity_need_not_fall(self):
        g = LearnedDiffusivity(lambda r: 1 / (1 + r))
        with torch.no_grad():
            g.coefficients.copy_(torch.tensor([0.0, -5.0, 0, 0, 0, 0, 0, 0, 0]))
        values = g(torch.linspace(0, 20, 100))
        assert (values.diff() > 0.001).any()
        assert (values.diff() < -0.001).any()

    @pytest.mark.parametrize("start", ["weickert", "charbonnier", "perona-malik", "exponential"])
    def test_a_diffusivity_starts_close_to_the_models(self, start):
        model = aniso.PeronaMalik(0.5, 0.0, start)
        image = batch((1, 1, 12, 12))
        learned = DiffusionBlock(model, learn=["diffusivity"])(image)
        assert (learned - DiffusionBlock(model)(image)).abs().max() < 0.05

    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [
            ("contrast", 0.5 * math.exp(-8.01), 0.5 * math.exp(8.01)),
            ("sigma", 0.1, 1.5),
            ("alpha", 0.0, 0.5),
            ("gamma", -1.0, 1.0),
            ("step", 0.0, 1.0),
        ],
    )
    def test_of_a_block(self, name, low, high):
        block = DiffusionBlock(EDGE, learn=[name], max_sigma=1.5)
        (parameter,) = block.parameters()
        for raw in self.RAW:
            parameter.data.fill_(raw)
            assert low <= block.values()[name].item() <= high

    def test_of_coherence(self):
        block = DiffusionBlock(COHERENCE, learn=["rho", "min_diffusivity"], max_rho=3.0)
        for raw in self.RAW:
            for parameter in block.parameters():
                parameter.data.fill_(raw)
            assert 0.1 <= block.values()["rho"].item() <= 3.0
            assert 0.0 <= block.values()["min_diffusivity"].item() <= 1.0

    @pytest.mark.parametrize(("sigma", "largest"), [(0.0, 2.0), (0.5, 2.0), (3.0, 6.0)])
    def test_scales_may_double_by_default(self, sigma, largest):
        block = DiffusionBlock(aniso.EdgeEnhancing(1.0, sigma), learn=["sigma"])
        (parameter,) = block.parameters()
        parameter.data.fill_(1e30)
        assert block.values()["sigma"].item() == pytest.approx(largest)

    def test_the_widest_kernel_is_cut_where_the_engine_cuts_it(self):
        """At the largest value the learned kernel has the radius that it would have as a constant."""
        net = DiffusionNet(
            aniso.EdgeEnhancing(0.5, 1.0), 2, learn=["sigma"], max_sigma=1.5, dtype=torch.float64
        )
        next(net.parameters()).data.fill_(1e30)
        image = batch((1, 1, 12, 12))
        expected = DiffusionNet(aniso.EdgeEnhancing(0.5, 1.5), 2)(image)
        torch.testing.assert_close(net(image), expected, rtol=0, atol=1e-12)


class TestTheLimitIsReached:
    """On a wave that changes its sign from pixel to pixel, a step at the limit turns the sign, no more."""

    WAVES = torch.cos(math.pi * 399 * (2 * torch.arange(400, dtype=torch.float64) + 1) / 800)
    IMAGE = (WAVES[:, None] * WAVES)[None, None]

    @staticmethod
    def at_the_limit(module):
        with torch.no_grad():
            module.learned["step"].raw.fill_(60.0)
        return module

    @pytest.mark.parametrize("kind", BLOCKS)
    def test_by_blocks(self, kind):
        standard = aniso.DeltaStencil.named("standard")
        block = kind(aniso.Homogeneous(), standard, learn=["step"], dtype=torch.float64)
        growth = self.at_the_limit(block)(self.IMAGE).norm() / self.IMAGE.norm()
        assert 0.9999 < growth <= 1 + 1e-12

    def test_in_volumes(self):
        """Along two axes and along all three, with the kernels of either block and with predicted tensors."""
        wave = torch.cos(math.pi * 59 * (2 * torch.arange(60, dtype=torch.float64) + 1) / 120)
        image = (wave[:, None, None] * wave[:, None] * wave)[None, None]
        flat = (wave[:, None] * wave).expand(3, 60, 60)[None, None]
        standard = aniso.DeltaStencil.named("standard")
        for kind in (DiffusionBlock, CellBlock):
            block = kind(aniso.Homogeneous(), standard, learn=["step"], ndim=3, dtype=torch.float64)
            for given in (image, flat):
                growth = self.at_the_limit(block)(given).norm() / given.norm()
                assert 0.99 < growth <= 1 + 1e-12
        block = self.at_the_limit(TensorDiffusion(learn=["step"], ndim=3, dtype=torch.float64))
        prediction = torch.full((1, 7, 61, 61, 61), 50.0, dtype=torch.float64)
        prediction[:, [1, 3, 4]] = 0.0
        growth = block(image, prediction).norm() / image.norm()
        assert 0.99 < growth <= 1 + 1e-12

    def test_by_predicted_tensors(self):
        block = self.at_the_limit(TensorDiffusion(learn=["step"], dtype=torch.float64))
        prediction = torch.full((1, 4, 401, 401), 50.0, dtype=torch.float64)
        prediction[:, 1] = 0.0
        waves = self.WAVES[None, None, None] * torch.ones(400, 1, dtype=torch.float64)
        for image in (waves, waves.mT, self.IMAGE):
            growth = block(image, prediction).norm() / image.norm()
            assert 0.9999 < growth <= 1 + 1e-12
