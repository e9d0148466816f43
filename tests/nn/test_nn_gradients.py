"""Gradients through everything are right, and numbers, on any image."""

import warnings
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import aniso
from aniso.nn import DiffusionBlock, DiffusionNet, Interval, LearnedDiffusivity, Positive, TensorDiffusion
from tests.nn.nn_registry import (
    BLOCKS,
    COHERENCE,
    DIFFUSIVITIES,
    EDGE,
    SPECIMENS,
    batch,
    learnable,
    prediction,
    redraw,
)
from tests.registry import rational

every_specimen = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
every_channel_count = pytest.mark.parametrize("channels", [1, 3])

#: A constant image has no structure at all; a constant of 0 would be no other (laws).
IMAGES = {
    "constant": lambda shape: torch.full(shape, 0.7, dtype=torch.float64),
    "random": batch,
}
every_image = pytest.mark.parametrize("kind", IMAGES)


def assert_gradients(module, inputs, fast=True):
    """Of all inputs and of all that is learned, against difference quotients."""
    names = [name for name, _ in module.named_parameters()]
    parameters = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]
    inputs = [x.detach().clone().requires_grad_() for x in inputs]

    def function(*arguments):
        free = dict(zip(names, arguments[len(inputs) :], strict=True))
        return functional_call(module, free, arguments[: len(inputs)])

    assert gradcheck(function, (*inputs, *parameters), fast_mode=fast, atol=1e-6)


@every_image
@every_channel_count
class TestDifferenceQuotients:
    @every_specimen
    def test_every_module_with_all_that_it_learns(self, kind, channels, specimen):
        module = specimen.make(dtype=torch.float64)
        assert_gradients(module, specimen.inputs(IMAGES[kind]((1, channels, 5, 4))))

    @pytest.mark.parametrize("diffusivity", [*DIFFUSIVITIES, rational])
    @pytest.mark.parametrize("model", [aniso.EdgeEnhancing, aniso.PeronaMalik])
    def test_every_diffusivity(self, kind, channels, diffusivity, model):
        learn = ("contrast", "sigma", "alpha", "gamma", "step")
        block = DiffusionBlock(model(0.5, 0.4, diffusivity), learn=learn, max_sigma=0.6, dtype=torch.float64)
        assert_gradients(block, [IMAGES[kind]((1, channels, 5, 4))])

    def test_coherence_entry_by_entry(self, kind, channels):
        learn = learnable(COHERENCE)
        module = DiffusionBlock(COHERENCE, learn=learn, max_sigma=0.5, max_rho=0.8, dtype=torch.float64)
        assert_gradients(module, [IMAGES[kind]((1, channels, 2, 3))], fast=False)


@every_channel_count
@pytest.mark.parametrize("level", [0.0, 0.7, -2.0])
def test_predictions_that_are_the_same_in_all_directions(channels, level):
    """As those of a network may be at the start: all eigenvalues coincide."""
    volume = batch((1, channels, 2, 3, 2))
    numbers = level * torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    given = numbers.reshape(1, 7, 1, 1, 1).expand(1, 7, 3, 4, 3)
    assert_gradients(TensorDiffusion(2, ndim=3), [volume, given[:, :6]])
    assert_gradients(TensorDiffusion(2, ndim=3), [volume, given])


@every_channel_count
@every_specimen
def test_gradients_wherever_training_has_led(channels, specimen):
    module = specimen.make(dtype=torch.float64)
    redraw(module, torch.Generator().manual_seed(8), 0.7)
    assert_gradients(module, specimen.inputs(batch((2, channels, 4, 3))))


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_gradients_of_the_smallest_images(shape, block):
    learn = [name for name in learnable(EDGE) if name != "diffusivity"]
    module = block(EDGE, learn=learn, max_sigma=0.6, dtype=torch.float64)
    assert_gradients(module, [batch((1, 2, *shape))], fast=False)


@pytest.mark.parametrize("raw", [-2.0, 0.0, 1.5])
def test_learned_numbers_one_by_one(raw):
    for module in (Interval(0.3, 0.0, 0.5), Positive(2.0)):
        point = torch.tensor(raw, dtype=torch.float64, requires_grad=True)
        assert gradcheck(lambda raw, module=module: functional_call(module, {"raw": raw}, ()), point)


def test_the_learned_diffusivity_and_its_decline():
    module = LearnedDiffusivity(rational, dtype=torch.float64)
    coefficients = module.coefficients.detach().clone().requires_grad_()
    r = torch.tensor([0.0, 1e-6, 0.3, 1.0, 7.0, 1e4], dtype=torch.float64)

    def decline(coefficients, r):
        return functional_call(_Decline(module), {"g.coefficients": coefficients}, (r,))

    for start in (r[1:], r[2:]):
        point = start.clone().requires_grad_()
        both = (coefficients, point)
        assert gradcheck(lambda c, x: functional_call(module, {"coefficients": c}, (x,)), both, eps=1e-7)
        assert gradcheck(decline, both, eps=1e-7)


class _Decline(torch.nn.Module):
    def __init__(self, g):
        super().__init__()
        self.g = g

    def forward(self, r):
        return self.g.decline(r)


def test_second_derivatives_exist():
    image = batch((1, 1, 4, 4)).requires_grad_()
    (first,) = torch.autograd.grad(DiffusionBlock(COHERENCE)(image).square().sum(), image, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), image)
    assert second.isfinite().all()
    assert second.abs().max() > 0


def test_forward_mode_agrees_with_backward_mode():
    image, direction = batch((1, 2, 4, 4), 1), batch((1, 2, 4, 4), 2)
    block = DiffusionBlock(COHERENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's own, where it loads what it needs
        forward = torch.func.jvp(block, (image,), (direction,))[1]
    expected = torch.func.jacrev(block)(image).reshape(32, 32) @ direction.reshape(32)
    torch.testing.assert_close(forward.reshape(32), expected)


_y, _x = torch.meshgrid(torch.arange(8), torch.arange(7), indexing="ij")
_noise = torch.rand((8, 7), generator=torch.Generator().manual_seed(0))
EXTREMES = {
    "zero": 0.0 * _noise,
    "constant": 0 * _noise + 255.0,
    "checkerboard": 255.0 * ((_x + _y) % 2),
    "step": 255.0 * (_x > 3),
    "slanted step": 255.0 * (2 * _x + _y > 9),
    "tiny": 1e-30 * _noise,
    "subnormal": 1e-40 * _noise,
    "huge": 1e30 * _noise,
    "huge step": 1e30 * (_x > 3),
    "huge and slanted": 1e37 * (2 * _x + _y > 9),
    "one huge pixel": 1e30 * ((_x == 3) & (_y == 2)) + _noise,
}
MODELS: dict[str, Any] = {
    **{f"edge, {g}": aniso.EdgeEnhancing(3.5, 1.0, g) for g in DIFFUSIVITIES},
    **{f"scalar, {g}": aniso.PeronaMalik(3.5, 0.5, g) for g in DIFFUSIVITIES},
    "edge, unsmoothed": aniso.EdgeEnhancing(3.5, 0.0),
    "edge, callable": aniso.EdgeEnhancing(3.5, 1.0, rational),
    "coherence": aniso.CoherenceEnhancing(1.0, 0.5, 1.0),
    "coherence, local": aniso.CoherenceEnhancing(1.0, 0.0, 0.0),
    "continuing": aniso.EdgeContinuing(3.5),
    "homogeneous": aniso.Homogeneous(),
}


def extremes(channels):
    """All of them in one batch: if one gradient is not finite, neither is the sum."""
    return torch.stack([image.float() for image in EXTREMES.values()])[:, None].repeat(1, channels, 1, 1)


@every_channel_count
class TestSinglePrecisionGradientsAreNumbers:
    """No 0/0, no inf · 0: training goes on whatever the image."""

    def assert_finite(self, module, inputs):
        inputs = [x.clone().requires_grad_() for x in inputs]
        result = module(*inputs)
        assert result.isfinite().all()
        weights = torch.rand(result.shape, generator=torch.Generator().manual_seed(4)) - 0.5
        (result * weights).sum().backward()
        for x in inputs:
            assert x.grad is not None
            assert x.grad.isfinite().all(), "gradient of the input"
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name

    @pytest.mark.parametrize("model", MODELS)
    def test_every_model(self, channels, model):
        model, images = MODELS[model], extremes(channels)
        self.assert_finite(DiffusionBlock(model, learn=learnable(model)), [images])
        if hasattr(model, "diffusivity"):
            without = [name for name in learnable(model) if name != "diffusivity"]
            self.assert_finite(DiffusionBlock(model, learn=without), [images])

    @pytest.mark.parametrize("model", [*MODELS, "lines"])
    def test_every_model_in_volumes(self, channels, model):
        """Among them volumes that are constant along an axis, and some with equal structure along all."""
        model = {**MODELS, "lines": aniso.CoherenceEnhancing(1.0, 0.5, 1.0, plates=False)}[model]
        images = extremes(channels)[..., :5]
        layers = images[:, :, None].repeat(1, 1, 4, 1, 1)
        alternating = torch.stack([images, images.flip(-1), images, images.flip(-2)], dim=2)
        cube = (_x[:5, :5] + _y[:5, :5] + torch.arange(5)[:, None, None]).float()
        scales = torch.tensor([1e-18, 1e-9, 1e-6, 1.0, 255.0, 1e7, 1e13])[:, None, None, None, None]
        cubes = (scales * cube).repeat(1, channels, 1, 1, 1)
        for volume in (layers, layers.mT, layers.movedim(2, 4), alternating, cubes):
            self.assert_finite(DiffusionBlock(model, learn=learnable(model), ndim=3), [volume])

    @every_specimen
    def test_every_module(self, channels, specimen):
        self.assert_finite(specimen.make(), specimen.inputs(extremes(channels)))

    @every_specimen
    def test_extreme_parameters(self, channels, specimen):
        images, generator = extremes(channels), torch.Generator().manual_seed(1)
        for scale in (10.0, 1e30):
            module = specimen.make()
            redraw(module, generator, scale)
            self.assert_finite(module, specimen.inputs(images))

    @pytest.mark.parametrize("contrast", [1e-10, 1e10, 1e25])
    def test_extreme_contrasts(self, channels, contrast):
        for kind in (aniso.EdgeEnhancing, aniso.PeronaMalik, aniso.CoherenceEnhancing):
            self.assert_finite(DiffusionBlock(kind(contrast), learn=learnable(kind())), [extremes(channels)])

    def test_extreme_predictions(self, channels):
        images = extremes(channels)[3:5]
        for numbers, ndim in ((3, 2), (4, 2), (6, 3), (7, 3)):
            given_images = images if ndim == 2 else images[:, :, None].repeat(1, 1, 3, 1, 1)
            for scale in (0.0, 1e-30, 1.0, 1e3, 1e30):
                module = TensorDiffusion(3, learn=("alpha", "gamma", "step"), ndim=ndim)
                given = scale * prediction(given_images, numbers, cells=True)
                inputs = [x.clone().requires_grad_() for x in (given_images, given)]
                module(*inputs).square().sum().backward()
                assert all(x.grad is not None and x.grad.isfinite().all() for x in inputs)


def test_gradients_of_strong_but_ordinary_edges_are_not_cut():
    """Only where numbers would overflow does the tensor count as constant."""
    model = aniso.EdgeEnhancing(10.0, 0.0, "charbonnier")
    image = 6e4 * batch((1, 1, 6, 6), dtype=torch.float32)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        net = DiffusionNet(model, 2, learn=["contrast"], dtype=dtype)
        net(image.to(dtype))[..., 2:4, 2:4].sum().backward()
        (raw,) = net.parameters()
        assert raw.grad is not None
        gradients.append(raw.grad.double())
    assert abs(gradients[1]) > 1e-4
    torch.testing.assert_close(*gradients, rtol=2e-2, atol=1e-5)


@every_specimen
def test_every_parameter_moves_the_result(specimen):
    module = specimen.make(dtype=torch.float64)
    module(*specimen.inputs(batch((2, 3, 7, 6)))).square().sum().backward()
    # γ needs a mixed entry to act on; where ζ is predicted, α and γ only limit the step.
    idle = {"scalar, spacing": ["gamma"], "homogeneous": ["gamma"], "net, separate": ["gamma"]}
    idle |= {specimen.name: ["alpha", "gamma"] for specimen in SPECIMENS if "tensors and ζ" in specimen.name}
    for name, parameter in module.named_parameters():
        assert parameter.requires_grad
        assert parameter.grad is not None, name
        if not any(word in name for word in idle.get(specimen.name, [])):
            assert (parameter.grad != 0).all(), name
