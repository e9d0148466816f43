"""The blocks compute what the reference engine does, in all their forms, shapes and types."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
import torch.nn.functional as F

import aniso
from aniso.nn import CellBlock, Diffusion1d, DiffusionBlock, DiffusionNet, TensorDiffusion
from aniso.nn.translation import MirroredConvolutions
from tests.nn.nn_registry import (
    BLOCKS,
    COHERENCE,
    DIFFUSIVITIES,
    EDGE,
    LINES,
    SCALAR,
    SPECIMENS,
    assert_close,
    batch,
    diffused,
    prediction,
)
from tests.registry import rational

every_block = pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__)
every_specimen = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
every_channel_count = pytest.mark.parametrize("channels", [1, 3])

MODELS: dict[str, Any] = {
    **{f"edge, {g}": aniso.EdgeEnhancing(0.5, 0.5, g) for g in DIFFUSIVITIES},
    **{f"scalar, {g}": aniso.PeronaMalik(0.5, 0.0, g) for g in DIFFUSIVITIES},
    "edge, callable": aniso.EdgeEnhancing(0.5, 1.0, rational),
    "scalar, callable": aniso.PeronaMalik(0.5, 1.0, rational),
    "coherence": aniso.CoherenceEnhancing(0.3, 0.5, 1.5),
    "coherence, local": aniso.CoherenceEnhancing(0.3, 0.0, 0.0, 0.2),
    "homogeneous": aniso.Homogeneous(),
}
STENCILS = (
    aniso.DeltaStencil(),
    aniso.DeltaStencil(0.1, -0.8),
    aniso.DeltaStencil.named("standard"),
    aniso.DeltaStencil.named("cell-centred"),
    aniso.DeltaStencil(0.2, beta=0.5),
    aniso.DeltaStencil.named("forward-forward"),
)
SHAPES = ((1, 1), (1, 9), (9, 1), (2, 2), (7, 9), (8, 3))
PRECISION = 1e-10


def one_step(image, model, block, **options):
    """The reference engine's step of the length that the block takes."""
    ndim = image.ndim - 2
    limit = aniso.stability.stable_step(model, options.get("stencil"), options.get("spacing", 1.0), ndim)
    tau = block.constants["step"] * limit
    return diffused(image, model, tau, scheme=aniso.Explicit(tau), **options)


@every_block
class TestEveryBlockIsAStepOfTheReference:
    @pytest.mark.quick
    @every_channel_count
    @pytest.mark.parametrize("name", MODELS)
    def test_models(self, kind, name, channels):
        image, block = batch((2, channels, 7, 9)), kind(MODELS[name])
        result = block(image)
        assert (result - image).abs().max() > 0.01  # something happened
        assert_close(result, one_step(image, MODELS[name], block), PRECISION)
        single = block(image.float())
        assert single.dtype == torch.float32
        assert_close(single, one_step(image.float(), MODELS[name], block), 2e-6)

    @pytest.mark.parametrize("model", [EDGE, COHERENCE], ids=["edge", "coherence"])
    def test_shapes(self, kind, model):
        block = kind(model)
        for shape in SHAPES:
            image = batch((2, 2, *shape))
            assert_close(block(image), one_step(image, model, block), PRECISION)

    @pytest.mark.parametrize("stencil", STENCILS, ids=str)
    def test_stencils_and_spacings(self, kind, stencil):
        image = batch((1, 1, 7, 9))
        for spacing in (1.0, (0.7, 1.6)):
            block = kind(EDGE, stencil, spacing=spacing)
            expected = one_step(image, EDGE, block, stencil=stencil, spacing=spacing)
            assert_close(block(image), expected, PRECISION)

    @pytest.mark.parametrize("step", [0.01, 0.5])
    def test_steps(self, kind, step):
        image, block = batch(), kind(EDGE, step=step)
        assert_close(block(image), diffused(image, EDGE, step, scheme=aniso.Explicit(step)), PRECISION)

    def test_what_is_learned_starts_where_the_constants_are(self, kind):
        image, learn = batch((2, 3, 7, 9)), ("contrast", "sigma", "alpha", "step")
        stencil = aniso.DeltaStencil(0.3, 0.5)
        constant = kind(EDGE, stencil, max_sigma=0.6)
        learned = kind(EDGE, stencil, learn=learn, max_sigma=0.6, dtype=torch.float64)
        assert_close(learned(image), constant(image), PRECISION)

    def test_the_mean_of_every_channel_is_kept(self, kind):
        image = batch((2, 3, 7, 9))
        result = kind(EDGE, spacing=(0.7, 1.6))(image)
        torch.testing.assert_close(result.mean((-2, -1)), image.mean((-2, -1)), rtol=0, atol=1e-14)

    def test_constant_images_stay(self, kind):
        image = torch.full((1, 2, 5, 4), 7.3, dtype=torch.float64)
        assert_close(kind(EDGE)(image), image, 1e-15)

    def test_the_input_is_not_touched(self, kind):
        image = batch((1, 1, 5, 4), dtype=torch.float32)
        before = image.clone()
        result = kind(EDGE)(image)
        assert torch.equal(image, before)
        assert result.data_ptr() != image.data_ptr()

    def test_images_need_not_be_contiguous(self, kind):
        image = batch((2, 3, 7, 9))
        strided = image.transpose(2, 3).contiguous().transpose(2, 3)[:, ::2]
        assert_close(kind(EDGE)(strided), kind(EDGE)(strided.contiguous()), 1e-15)

    def test_the_linear_map_is_the_sparse_matrix_and_its_own_transpose(self, kind):
        """−Kᵀ is the transpose of K, at the border too."""
        stencil, spacing = aniso.DeltaStencil(0.2, -0.5), (0.7, 1.6)
        block = kind(COHERENCE, stencil, spacing=spacing)
        values, image = block.values(), batch((1, 1, 5, 6))
        entries = block.tensor(image, values)
        divergence = block.divergence(entries, values)
        units = torch.eye(30, dtype=torch.float64).reshape(30, 1, 5, 6)
        columns = torch.cat([divergence(unit[None]) for unit in units]).reshape(30, 30)
        # The block's tensors are scaled to unit spacing already.
        a, b, c = (entry[0, 0].numpy() for entry in entries)
        expected = aniso.stencil.matrix(a, b, c, stencil).toarray()
        np.testing.assert_allclose(columns.T, expected, rtol=0, atol=1e-13)
        torch.testing.assert_close(columns, columns.T, rtol=0, atol=1e-14)
        assert columns.sum(0).abs().max() < 1e-13  # no flux leaves
        assert np.linalg.eigvalsh(columns.numpy()).max() < 1e-13


VOLUME = (4, 3, 5)


@pytest.mark.parametrize("kind", [DiffusionBlock, CellBlock], ids=lambda kind: kind.__name__)
class TestVolumes:
    @every_channel_count
    @pytest.mark.parametrize("name", [*MODELS, "lines"])
    def test_models(self, kind, name, channels):
        model = {**MODELS, "lines": LINES}[name]
        image, block = batch((2, channels, *VOLUME)), kind(model, ndim=3)
        result = block(image)
        assert (result - image).abs().max() > 0.01
        assert_close(result, one_step(image, model, block), PRECISION)
        single = image.float()
        assert_close(block(single), one_step(single, model, block), 2e-6)

    @pytest.mark.parametrize("model", [EDGE, COHERENCE], ids=["edge", "coherence"])
    def test_shapes(self, kind, model):
        block = kind(model, ndim=3)
        for shape in ((1, 1, 1), (1, 5, 1), (3, 1, 2), (2, 2, 2)):
            image = batch((2, 2, *shape))
            assert_close(block(image), one_step(image, model, block), PRECISION)

    @pytest.mark.parametrize("stencil", STENCILS, ids=str)
    def test_stencils_and_spacings(self, kind, stencil):
        spacing = (0.7, 1.6, 1.1)
        image, block = batch((1, 1, *VOLUME)), kind(EDGE, stencil, spacing=spacing, ndim=3)
        expected = one_step(image, EDGE, block, stencil=stencil, spacing=spacing)
        assert_close(block(image), expected, PRECISION)

    def test_the_linear_map_is_the_sparse_matrix_and_its_own_transpose(self, kind):
        stencil = aniso.DeltaStencil(0.2, -0.5)
        block = kind(COHERENCE, stencil, spacing=(0.7, 1.6, 1.1), ndim=3)
        values, image = block.values(), batch((1, 1, *VOLUME))
        entries = block.tensor(image, values)
        divergence = block.divergence(entries, values)
        units = torch.eye(60, dtype=torch.float64).reshape(60, 1, *VOLUME)
        columns = torch.cat([divergence(unit[None]) for unit in units]).reshape(60, 60)
        xx, xy, yy, xz, yz, zz = (entry[0, 0].numpy() for entry in entries)
        # The block's tensors are scaled to unit spacing already.
        tensor = np.array([[zz, yz, xz], [yz, yy, xy], [xz, xy, xx]])
        expected = aniso.volumes.matrix(tensor, stencil).toarray()
        np.testing.assert_allclose(columns.T, expected, rtol=0, atol=1e-13)
        torch.testing.assert_close(columns, columns.T, rtol=0, atol=1e-14)
        assert columns.sum(0).abs().max() < 1e-13
        assert np.linalg.eigvalsh(columns.numpy()).max() < 1e-13

    def test_what_is_learned_starts_where_the_constants_are(self, kind):
        image, learn = batch((2, 3, *VOLUME)), ("contrast", "sigma", "alpha", "step")
        options: dict[str, Any] = {"stencil": aniso.DeltaStencil(0.3, 0.5), "max_sigma": 0.6, "ndim": 3}
        learned = kind(EDGE, learn=learn, dtype=torch.float64, **options)
        assert_close(learned(image), kind(EDGE, **options)(image), PRECISION)


def test_the_kernels_of_a_volume_are_quarters():
    (kernel,) = CellBlock(EDGE, ndim=3).buffers()
    assert kernel.shape == (7, 1, 2, 2, 2)
    assert (kernel.abs() == 0.25).all()
    rows = kernel.reshape(7, 8)
    torch.testing.assert_close(rows @ rows.T, 0.5 * torch.eye(7))


@pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
def test_nets_of_cycles_for_volumes(kind):
    image = batch((2, 2, *VOLUME))
    limit = aniso.stability.stable_step(COHERENCE, ndim=3)
    net = DiffusionNet(COHERENCE, 6, scheme=kind(2), step=limit, ndim=3)
    expected = diffused(image, COHERENCE, 2 * limit * 3 * 4 / 3, scheme=kind(2))
    assert_close(net(image), expected, PRECISION)


@every_specimen
class TestBatches:
    @pytest.mark.quick
    def test_a_batch_is_one_image_after_the_other(self, specimen):
        module = specimen.make()
        inputs = specimen.inputs(batch((3, 2, 7, 6)))
        together = module(*inputs)
        one_by_one = torch.cat([module(*(x[k : k + 1] for x in inputs)) for k in range(3)])
        assert_close(together, one_by_one, 1e-14)

    def test_equal_channels_are_like_one(self, specimen):
        module = specimen.make(dtype=torch.float64)
        grey = specimen.inputs(batch((1, 1, 7, 6)))
        three = (grey[0].expand(-1, 3, *grey[0].shape[2:]), *grey[1:])
        # A learned diffusivity is a difference quotient for several channels.
        assert_close(module(*three), module(*grey).expand_as(three[0]), 1e-6)

    def test_the_mean_is_kept(self, specimen):
        image, *others = specimen.inputs(batch((3, 2, 7, 6)))
        result = specimen.make()(image, *others)
        assert (result - image).abs().max() > 0.01
        torch.testing.assert_close(result.flatten(2).mean(2), image.flatten(2).mean(2), rtol=0, atol=1e-13)

    def test_single_precision_is_close_to_double(self, specimen):
        inputs = specimen.inputs(batch((3, 2, 7, 6)))
        module = specimen.make()
        result = module(*(x.float() for x in inputs))
        assert result.dtype == torch.float32
        assert_close(result, module(*inputs), 5e-6)


@pytest.mark.parametrize("kernel_size", [2])
@pytest.mark.parametrize("kind", BLOCKS[1:4], ids=lambda kind: kind.__name__)
def test_one_tensor_of_kernels_serves_both_convolutions(kind, kernel_size):
    kernels = [m.kernel for m in kind(EDGE).modules() if isinstance(m, MirroredConvolutions)]
    differences = sum(len(kernel) for kernel in kernels)
    assert differences == {"DirectionalBlock": 6, "SixChannelBlock": 6, "CellBlock": 3}[kind.__name__]
    assert all(kernel.shape[1:] == (1, kernel_size, kernel_size) for kernel in kernels)
    assert all(kernel.sum((1, 2, 3)).abs().max() == 0 for kernel in kernels)
    assert not list(kind(EDGE).parameters())


def test_homogeneous_diffusion_is_one_convolution():
    """With kernels as they stand in textbooks."""
    image = batch((2, 3, 7, 9))
    padded = F.pad(image.reshape(6, 1, 7, 9), (1, 1, 1, 1), mode="replicate")
    textbook = {
        "standard": [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
        "cell-centred": [[0.5, 0, 0.5], [0, -2, 0], [0.5, 0, 0.5]],
        "nine-point": [[1 / 6, 4 / 6, 1 / 6], [4 / 6, -20 / 6, 4 / 6], [1 / 6, 4 / 6, 1 / 6]],
    }
    for name, rows in textbook.items():
        kernel = torch.tensor(rows, dtype=torch.float64)[None, None]
        expected = image + 0.2 * F.conv2d(padded, kernel).reshape(image.shape)
        for kind in BLOCKS:
            block = kind(aniso.Homogeneous(), aniso.DeltaStencil.named(name), step=0.2)
            assert_close(block(image), expected, 1e-14)


class TestNets:
    @every_channel_count
    @pytest.mark.parametrize("model", [EDGE, COHERENCE, SCALAR], ids=["edge", "coherence", "scalar"])
    @pytest.mark.parametrize("shared", [True, False])
    @pytest.mark.parametrize("checkpoint", [True, False])
    def test_explicit(self, model, shared, channels, checkpoint):
        image, step = batch((2, channels, 7, 9)), 0.3
        for given in ({"step": step}, {"scheme": aniso.Explicit(step)}):
            net = DiffusionNet(model, 4, shared=shared, checkpoint=checkpoint, **given)
            expected = diffused(image, model, 4 * step, scheme=aniso.Explicit(step))
            assert_close(net(image), expected, PRECISION)

    def test_nine_tenths_of_the_limit_by_default(self):
        image, spacing = batch(), (0.7, 1.6)
        limit = aniso.stability.stable_step(EDGE, spacing=spacing)
        expected = diffused(image, EDGE, 5 * 0.9 * limit, spacing=spacing)
        assert_close(DiffusionNet(EDGE, 5, spacing=spacing)(image), expected, PRECISION)

    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    @pytest.mark.parametrize("shared", [True, False])
    @pytest.mark.parametrize(("steps", "cycles"), [(6, 2), (5, 1), (3, 3)])
    def test_cycles(self, kind, shared, steps, cycles):
        image, stencil = batch((2, 3, 7, 9)), aniso.DeltaStencil(0.1, -0.5)
        limit = aniso.stability.stable_step(EDGE, stencil)
        length = steps // cycles
        time = cycles * limit * length * (length + 1) / 3
        net = DiffusionNet(EDGE, steps, scheme=kind(cycles), stencil=stencil, step=limit, shared=shared)
        expected = diffused(image, EDGE, time, stencil=stencil, scheme=kind(cycles))
        assert_close(net(image), expected, PRECISION)
        assert len(net.blocks) == (1 if shared else cycles)


class TestSignals:
    MODELS = (
        "edge, charbonnier",
        "edge, callable",
        "scalar, perona-malik",
        "scalar, callable",
        "coherence",
        "homogeneous",
    )

    @every_channel_count
    @pytest.mark.parametrize("name", MODELS)
    def test_a_step_of_the_reference(self, name, channels):
        model = MODELS[name]
        for length, spacing in ((1, 1.0), (2, 1.0), (3, 0.6), (20, 1.0), (20, 0.6)):
            signal, step = batch((2, channels, 1, length))[:, :, 0], 0.4 * spacing**2
            block = Diffusion1d(model, step=step, spacing=spacing)
            expected = diffused(signal, model, step, scheme=aniso.Explicit(step), spacing=spacing)
            assert_close(block(signal), expected, PRECISION)

    def test_as_alt_and_others_write_it(self):
        """u + D⁻(τ g(|D⁺u|²/λ²) D⁺u), with differences as numpy.diff forms them."""
        signal = batch((3, 1, 1, 30))[:, :, 0]
        u = signal.numpy()
        v = np.diff(u, prepend=u[..., :1], append=u[..., -1:])
        flux = 0.3 * v / (1 + (v / 0.5) ** 2)
        expected = torch.from_numpy(u + np.diff(flux))
        block = Diffusion1d(aniso.PeronaMalik(0.5, 0.0), step=0.3)
        assert_close(block(signal), expected, 1e-14)


class TestPredictedTensors:
    @staticmethod
    def expected_tensors(numbers):
        """The logistic function of every matrix, by eigenvectors."""
        s_xx, s_xy, s_yy = numbers.numpy()
        matrices = np.stack([np.stack([s_xx, s_xy], -1), np.stack([s_xy, s_yy], -1)], -2)
        values, vectors = np.linalg.eigh(matrices)
        d = (vectors / (1 + np.exp(-values))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return d[..., 0, 0], d[..., 0, 1], d[..., 1, 1]

    @staticmethod
    def over_cells(numbers, image):
        """Means over four pixels, and nothing mixed on the boundary."""
        numbers = numbers.clamp(-50, 50)
        if numbers.shape[-2:] == image.shape[-2:]:
            kernel = torch.full((len(numbers[0]), 1, 2, 2), 0.25, dtype=numbers.dtype)
            padded = F.pad(numbers, (1, 1, 1, 1), mode="replicate")
            numbers = F.conv2d(padded, kernel, groups=len(numbers[0]))
        numbers = numbers.clone()
        for edge in ((..., 0, slice(None)), (..., -1, slice(None)), (..., 0), (..., -1)):
            numbers[:, 1][edge] = 0
        return numbers

    @pytest.mark.parametrize("cells", [False, True], ids=["pixels", "cells"])
    @pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
    @pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 5)], ids=str)
    @pytest.mark.parametrize("stencil", [STENCILS[1], STENCILS[4]], ids=str)
    def test_three_numbers(self, cells, scale, shape, stencil):
        image, spacing = batch((2, 3, *shape)), (0.8, 1.3)
        numbers = scale * prediction(image, 3, cells=cells)
        module = TensorDiffusion(3, stencil=stencil, spacing=spacing, step=0.05)
        result = module(image, numbers)
        for one, given, got in zip(image, self.over_cells(numbers, image), result, strict=True):
            model = aniso.FixedTensor.from_entries(*self.expected_tensors(given))
            options = {"stencil": stencil, "spacing": spacing, "scheme": aniso.Explicit(0.05)}
            assert_close(got[None], diffused(one[None], model, 0.15, **options), PRECISION)

    @pytest.mark.parametrize("cells", [False, True], ids=["pixels", "cells"])
    def test_a_fourth_number_is_the_weight_of_the_hourglass(self, cells):
        image, spacing = batch((2, 1, 5, 6)), (0.8, 1.3)
        numbers = prediction(image, 4, cells=cells)
        result = TensorDiffusion(2, spacing=spacing, step=0.05)(image, numbers)
        for one, given, got in zip(image, self.over_cells(numbers, image), result, strict=True):
            a, b, c = self.expected_tensors(given[:3])
            per_area = 1 / (spacing[0] * spacing[1])
            zeta = per_area / (1 + np.exp(-given[3].numpy()))
            # The free stencil gives ζ = a + c − 2δ of the scaled tensor.
            delta = 0.5 * (a / spacing[1] ** 2 + c / spacing[0] ** 2 - zeta) / per_area
            matrix = aniso.stencil.matrix(a, b, c, aniso.FreeStencil(delta), spacing).toarray()
            step = np.eye(30) + 0.05 * matrix
            expected = (step @ step @ one.numpy().reshape(30)).reshape(5, 6)
            assert_close(got[0], torch.from_numpy(expected), PRECISION)

    @staticmethod
    def expected_volume_tensors(numbers):
        """The same for six numbers: tensors (3, 3, …) in the order of the axes; outside nothing is mixed."""
        numbers = numbers.clone()
        for number, axes in ((1, (-1, -2)), (3, (-1, -3)), (4, (-2, -3))):
            for axis in axes:
                numbers[number].movedim(axis, 0)[[0, -1]] = 0
        xx, xy, yy, xz, yz, zz = numbers.clamp(-50, 50).numpy()
        matrices = np.moveaxis(np.array([[zz, yz, xz], [yz, yy, xy], [xz, xy, xx]]), (0, 1), (-2, -1))
        values, vectors = np.linalg.eigh(matrices)
        tensors = (vectors / (1 + np.exp(-values))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return np.moveaxis(tensors, (-2, -1), (0, 1))

    @pytest.mark.parametrize("cells", [False, True], ids=["voxels", "cells"])
    @pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
    @pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 1), VOLUME], ids=str)
    def test_six_numbers(self, cells, scale, shape):
        image, spacing = batch((2, 3, *shape)), (0.8, 1.3, 1.0)
        numbers = scale * prediction(image, 6, cells=cells)
        result = TensorDiffusion(3, stencil=STENCILS[1], spacing=spacing, step=0.05, ndim=3)(image, numbers)
        if not cells:
            kernel = torch.full((6, 1, 2, 2, 2), 0.125, dtype=numbers.dtype)
            padded = F.pad(numbers.clamp(-50, 50), (1,) * 6, mode="replicate")
            numbers = F.conv3d(padded, kernel, groups=6)
        for one, given, got in zip(image, numbers, result, strict=True):
            model = aniso.FixedTensor(self.expected_volume_tensors(given))
            options = {"stencil": STENCILS[1], "spacing": spacing, "scheme": aniso.Explicit(0.05)}
            assert_close(got[None], diffused(one[None], model, 0.15, **options), PRECISION)

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_a_seventh_number_is_that_of_an_image_in_every_plane(self, axis):
        """A volume and a prediction that are constant along an axis, and mix it with no other."""
        image, spacings = batch((2, 1, 5, 6)), (0.8, 1.3)
        numbers = prediction(image, 4, cells=True)
        expected = TensorDiffusion(2, spacing=spacings, step=0.05)(image, numbers)
        volume = image.unsqueeze(2 + axis).repeat_interleave(3, dim=2 + axis)
        cells = numbers.unsqueeze(2 + axis).repeat_interleave(4, dim=2 + axis)
        across, along = torch.zeros_like(cells[:, 0]), torch.ones_like(cells[:, 0])
        s_xx, s_xy, s_yy, s = cells.unbind(1)
        six = {
            0: (s_xx, s_xy, s_yy, across, across, along),
            1: (s_xx, across, along, s_xy, across, s_yy),
            2: (along, across, s_xx, across, s_xy, s_yy),
        }[axis]
        spacing = list(spacings)
        spacing.insert(axis, 0.9)
        module = TensorDiffusion(2, spacing=tuple(spacing), step=0.05, ndim=3)
        for layer in module(volume, torch.stack([*six, s], dim=1)).unbind(2 + axis):
            assert_close(layer, expected, 1e-13)

    def test_the_weights_of_all_hourglasses(self):
        spacing = (0.8, 1.3, 2.0)
        module = TensorDiffusion(spacing=spacing, ndim=3)
        numbers = torch.full((1, 7, 2, 2, 2), 0.3, dtype=torch.float64)
        _, inner = module._weights(numbers, module.values())
        zeta = 1 / (1 + np.exp(-0.3))
        per_area = [1 / (0.8 * 1.3), 1 / (0.8 * 2.0), 1 / (1.3 * 2.0)]
        expected = [zeta * per for per in (per_area[0], per_area[1], per_area[2], np.mean(per_area))]
        # ζ_x stands for the plane of y and z.
        np.testing.assert_allclose([weight.flatten()[0] for weight in inner], expected, rtol=1e-14)

    def test_matrix_function_by_scipy(self):
        """One prediction whose tensor SciPy's matrix exponential knows."""
        s = np.array([[0.7, -1.1], [-1.1, 2.0]])
        d = np.linalg.inv(np.eye(2) + scipy.linalg.expm(-s))  # x first
        image = batch((1, 1, 6, 5))
        numbers = torch.tensor([s[0, 0], s[0, 1], s[1, 1]]).reshape(1, 3, 1, 1).expand(1, 3, 7, 6).clone()
        field = np.broadcast_to(d[:, :, None, None], (2, 2, 7, 6)).copy()
        diagonal = 1 / (1 + np.exp(-np.diag(s)))
        for edge in ((..., 0, slice(None)), (..., -1, slice(None)), (..., 0), (..., -1)):
            field[0, 1][edge] = field[1, 0][edge] = 0
            field[0, 0][edge], field[1, 1][edge] = diagonal
        model = aniso.FixedTensor.from_entries(field[0, 0], field[0, 1], field[1, 1])
        result = TensorDiffusion(1, step=0.2)(image, numbers)
        assert_close(result, diffused(image, model, 0.2, scheme=aniso.Explicit(0.2)), PRECISION)

    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    def test_cycles(self, kind):
        image = batch((1, 2, 6, 5))
        numbers = prediction(image, 3, cells=True)
        module = TensorDiffusion(6, scheme=kind(2), step=0.5)
        model = aniso.FixedTensor.from_entries(*self.expected_tensors(self.over_cells(numbers, image)[0]))
        # The reference would make longer steps, since it knows these tensors: so by the matrix.
        a, b, c = model.entries
        matrix = aniso.stencil.matrix(a, b, c).toarray()
        u = image.reshape(2, 30).numpy().T
        for _ in range(2):
            previous = u
            for weight, factor in kind(2).pattern(3):
                u, previous = weight * (u + 0.5 * factor * (matrix @ u)) + (1 - weight) * previous, u
        assert_close(module(image, numbers), torch.from_numpy(u.T.reshape(1, 2, 6, 5).copy()), PRECISION)


def test_a_block_of_a_net_is_a_block():
    net = DiffusionNet(EDGE, 3)
    assert isinstance(net.blocks[0], DiffusionBlock)
    image = batch()
    assert torch.equal(net(image), net.blocks[0](net.blocks[0](net.blocks[0](image))))
