"""What a module cannot work with is refused in words, before anything is computed."""

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

import aniso
from aniso.nn import (
    CellBlock,
    Diffusion1d,
    DiffusionBlock,
    DiffusionNet,
    DirectionalBlock,
    SixChannelBlock,
    SteeredDiffusionNet,
    StencilBlock,
    TensorDiffusion,
    TensorPredictor,
)
from tests.nn.nn_registry import BLOCKS, EDGE, SPECIMENS, batch, prediction

every_specimen = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)


def refused(error, *parts):
    """An error whose message holds these parts."""
    return pytest.raises(error, match=".*".join(re.escape(part) for part in parts))


@every_specimen
class TestImages:
    def test_of_the_wrong_rank(self, specimen):
        module, (image, *others) = specimen.make(), specimen.inputs(batch())
        name = type(module).__name__
        for wrong in (image[0], image[0, 0], image[None], image.flatten()):
            with refused(ValueError, name, "shape (N, C,", str(tuple(wrong.shape)), "[None, None]"):
                module(wrong, *others)

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool, torch.complex64])
    def test_of_whole_numbers(self, specimen, dtype):
        module, (image, *others) = specimen.make(), specimen.inputs(batch())
        with refused(TypeError, "floating point", str(dtype), "gradients need them", "image.float()"):
            module(image.to(dtype), *others)

    def test_that_are_arrays(self, specimen):
        module, (image, *others) = specimen.make(), specimen.inputs(batch())
        with refused(TypeError, "PyTorch tensor", "got ndarray", "torch.from_numpy", "aniso.diffuse"):
            module(image.numpy(), *others)
        with refused(TypeError, "got list"):
            module(image.tolist(), *others)

    def test_on_another_device(self, specimen):
        module, given = specimen.make(), specimen.inputs(batch())
        with refused(ValueError, "image is on cpu", "on meta", "one device", ".to('cpu')"):
            module.to("meta")(*given)

    def test_that_are_empty(self, specimen):
        module, (image, *others) = specimen.make(), specimen.inputs(batch())
        with refused(ValueError, "empty", "nothing to diffuse"):
            module(image[..., :0], *others)
        with refused(ValueError, "empty"):
            module(image[:0], *others)


@pytest.mark.parametrize("kind", BLOCKS[1:4], ids=lambda kind: kind.__name__)
def test_kernels_on_another_device_are_seen_too(kind):
    with refused(ValueError, "image is on cpu", "on meta"):
        kind(EDGE).to("meta")(batch())


class TestDimensions:
    def test_that_do_not_fit_the_module(self):
        volume, image = batch((1, 1, 3, 4, 5)), batch((1, 1, 4, 5))
        for make in (DiffusionBlock, CellBlock, DiffusionNet):
            with refused(ValueError, "(N, C, H, W)", "(1, 1, 3, 4, 5)", "volumes (N, C, D, H, W)", "ndim=3"):
                make(EDGE)(volume)
            with refused(ValueError, "(N, C, D, H, W)", "(1, 1, 4, 5)", "images (N, C, H, W)", "ndim=2"):
                make(EDGE, ndim=3)(image)
        with refused(ValueError, "(N, C, H, W)", "(1, 1, 3, 4, 5)", "ndim=3"):
            TensorDiffusion()(volume, torch.zeros(1, 6, 3, 4, 5))

    @pytest.mark.parametrize("kind", [DirectionalBlock, SixChannelBlock, StencilBlock, Diffusion1d])
    def test_for_which_there_is_no_form(self, kind):
        with refused(ValueError, kind.__name__, "no form for ndim=3", "DiffusionBlock or CellBlock"):
            kind(EDGE, ndim=3)

    @pytest.mark.parametrize("module", [SixChannelBlock(EDGE), SteeredDiffusionNet(), TensorPredictor()])
    def test_modules_for_images_name_those_for_volumes(self, module):
        with refused(
            ValueError, "(1, 1, 3, 4, 5)", "DiffusionNet, CellBlock or TensorDiffusion, with ndim=3"
        ):
            module(batch((1, 1, 3, 4, 5)))

    @pytest.mark.parametrize("ndim", [1, 4, 2.5, Decimal(2), "3", None, True])
    def test_that_are_none(self, ndim):
        for make in (*BLOCKS, DiffusionNet, lambda _, **options: TensorDiffusion(**options)):
            with refused(ValueError, f"no form for ndim={ndim!r}", "2 for (N, C, H, W)"):
                make(EDGE, ndim=ndim)

    def test_spacings(self):
        for make in (DiffusionBlock, DiffusionNet, lambda _, **options: TensorDiffusion(**options)):
            with refused(
                ValueError,
                "spacing must be a number or have one value per axis",
                "got 2 values",
                "for 3 axes",
            ):
                make(EDGE, ndim=3, spacing=(1.0, 2.0))


class TestPredictions:
    IMAGE = batch((2, 3, 6, 5))
    VOLUME = batch((2, 3, 4, 6, 5))

    @pytest.mark.parametrize(
        "shape", [(2, 3, 4, 6, 5), (2, 8, 4, 6, 5), (2, 6, 6, 5), (1, 6, 4, 6, 5), (2, 6, 5, 6, 5)], ids=str
    )
    def test_of_the_wrong_shape_for_a_volume(self, shape):
        wanted = "(2, 6 or 7, 4, 6, 5), one set of numbers per pixel, or (2, 6 or 7, 5, 7, 6), one per cell"
        with refused(ValueError, wanted, f"got {shape}", "six numbers are a tensor"):
            TensorDiffusion(ndim=3)(self.VOLUME, torch.zeros(shape))

    @pytest.mark.parametrize(
        "shape",
        [
            (2, 2, 6, 5),
            (2, 5, 6, 5),
            (1, 3, 6, 5),
            (2, 3, 5, 6),
            (2, 3, 7, 5),
            (2, 3, 8, 7),
            (3, 6, 5),
            (2, 4),
        ],
        ids=str,
    )
    def test_of_the_wrong_shape(self, shape):
        wanted = "(2, 3 or 4, 6, 5), one set of numbers per pixel, or (2, 3 or 4, 7, 6), one per cell"
        with refused(ValueError, wanted, f"got {shape}", "three numbers are a tensor"):
            TensorDiffusion()(self.IMAGE, torch.zeros(shape))

    def test_of_the_wrong_kind(self):
        numbers = prediction(self.IMAGE, 3, cells=False)
        with refused(TypeError, "must be a tensor of shape (2, 3 or 4, 6, 5)", "ndarray"):
            TensorDiffusion()(self.IMAGE, numbers.numpy())
        with refused(TypeError, "floating point", "torch.int64"):
            TensorDiffusion()(self.IMAGE, numbers.long())

    def test_missing(self):
        with pytest.raises(TypeError, match="prediction"):
            TensorDiffusion()(self.IMAGE)


class TestNames:
    @pytest.mark.parametrize(
        ("model", "name"),
        [
            (EDGE, "rho"),
            (EDGE, "lambda"),
            (EDGE, "beta"),
            (aniso.Homogeneous(), "contrast"),
            (aniso.CoherenceEnhancing(), "diffusivity"),
        ],
    )
    def test_of_what_there_is_not_to_learn(self, model, name):
        for make in (DiffusionBlock, DiffusionNet, *BLOCKS[1:]):
            with refused(ValueError, repr(name), "not a parameter of this block", "It can learn:", "step"):
                make(model, learn=["step", name])
        with refused(ValueError, repr(name), "not a parameter of this block", "step, alpha, gamma"):
            TensorDiffusion(learn=[name])

    @pytest.mark.parametrize("name", ["alpha", "gamma"])
    def test_of_a_stencil_that_is_given_by_beta(self, name):
        with refused(ValueError, repr(name), "It can learn"):
            DiffusionBlock(EDGE, aniso.DeltaStencil(0.1, beta=0.3), learn=[name])

    @pytest.mark.parametrize("name", ["alpha", "gamma"])
    def test_signals_have_no_stencil(self, name):
        with refused(ValueError, repr(name), "contrast, sigma, diffusivity, step"):
            Diffusion1d(learn=[name])


class TestSteps:
    @pytest.mark.parametrize("make", [lambda **o: DiffusionNet(EDGE, **o), TensorDiffusion])
    def test_how_many(self, make):
        for steps in (0, -3):
            with refused(ValueError, "steps must be at least 1", str(steps)):
                make(steps=steps)
        for steps in (2.5, "4", None, True):
            with refused(TypeError, "steps must be a whole number", repr(steps)):
                make(steps=steps)
        for scheme in (aniso.FED(3), aniso.FSI(3)):
            with refused(ValueError, "steps=10", "3 equal cycles", "multiple of 3"):
                make(steps=10, scheme=scheme)

    @pytest.mark.parametrize("make", [lambda **o: DiffusionNet(EDGE, **o), TensorDiffusion])
    @pytest.mark.parametrize("scheme", [aniso.FED, "explicit", 3])
    def test_schemes(self, make, scheme):
        with refused(TypeError, "scheme must be Explicit, FED or FSI"):
            make(steps=4, scheme=scheme)

    @pytest.mark.parametrize("step", [0.5001, 7.0, 0.0, -0.1, math.inf])
    def test_how_long(self, step):
        makers = (*BLOCKS, DiffusionNet, Diffusion1d, lambda _, **options: TensorDiffusion(**options))
        for make in makers:
            with refused(ValueError, "step must lie in (0, 0.5]", str(step), "blow up", "Leave it out"):
                make(EDGE, step=step)

    def test_no_numbers(self):
        with refused(ValueError, "step must be a number, got nan"):
            DiffusionBlock(EDGE, step=math.nan)
        wrong: Any = "long"
        with refused(TypeError, "step must be a number", "'long'"):
            DiffusionBlock(EDGE, step=wrong)

    def test_the_limit_follows_stencil_and_spacing(self):
        with refused(ValueError, "step must lie in (0, 0.25]", "0.3"):
            DiffusionBlock(EDGE, aniso.DeltaStencil.named("standard"), step=0.3)
        with refused(ValueError, "step must lie in (0, 0.125]", "0.3"):
            DiffusionNet(EDGE, 2, spacing=0.5, step=0.3)
        with refused(ValueError, "step must lie in (0, 0.5]", "0.7"):
            DiffusionNet(EDGE, 2, scheme=aniso.Explicit(0.7))
        assert DiffusionBlock(EDGE, step=0.5).constants["step"] == 1.0


class TestModels:
    @pytest.mark.parametrize(
        "model",
        [
            aniso.FixedTensor.from_matrix(np.eye(2), (6, 5)),
            aniso.EdgeEnhancing,
            "edge",
            None,
            aniso.DeltaStencil(),
        ],
        ids=["FixedTensor", "class", "name", "None", "stencil"],
    )
    def test_that_follow_no_image(self, model):
        for make in (*BLOCKS, DiffusionNet):
            with refused(TypeError, "model must be a model that follows the image", "EdgeEnhancing("):
                make(model)
        if model is not None:
            with refused(TypeError, "model must be", "TensorDiffusion"):
                Diffusion1d(model)

    @pytest.mark.parametrize(
        "stencil",
        [aniso.FreeStencil(np.zeros((7, 6))), aniso.DeltaStencil, 0.4],
        ids=["free", "class", "number"],
    )
    def test_stencils(self, stencil):
        for make in (*BLOCKS, DiffusionNet):
            with refused(TypeError, "stencil must be a DeltaStencil", "aniso.DeltaStencil()"):
                make(EDGE, stencil=stencil)
        with refused(TypeError, "stencil must be a DeltaStencil"):
            TensorDiffusion(stencil=stencil)

    def test_a_diffusivity_that_does_not_know_tensors(self):
        def of_arrays(r):
            return np.exp(-np.asarray(r))

        for make in (*BLOCKS, DiffusionNet, Diffusion1d):
            with refused(TypeError, "of_arrays", "does not work on tensors", "aniso.formulas.operations"):
                make(aniso.PeronaMalik(1.0, 0.0, of_arrays))

    @pytest.mark.parametrize("spacing", [0.0, -1.0, math.nan, (1.0, 2.0, 3.0), "1"])
    def test_spacings(self, spacing):
        for make in (*BLOCKS, DiffusionNet):
            with pytest.raises((ValueError, TypeError), match="spacing"):
                make(EDGE, spacing=spacing)
        with pytest.raises((ValueError, TypeError), match="spacing"):
            TensorDiffusion(spacing=spacing)

    @pytest.mark.parametrize("largest", [0.4, 0.0, -1.0, math.inf, 1e9])
    def test_largest_scales(self, largest):
        with refused(ValueError, "max_sigma must lie in [0.5, 1e+06]", f"{largest}", "learned sigma"):
            DiffusionBlock(EDGE, learn=["sigma"], max_sigma=largest)
        with refused(ValueError, "max_rho must lie in [4, 1e+06]", f"{largest}", "learned rho"):
            DiffusionBlock(aniso.CoherenceEnhancing(), learn=["rho"], max_rho=largest)

    def test_a_largest_scale_narrower_than_any_kernel(self):
        with refused(ValueError, "max_sigma must lie in [0.2, 1e+06]", "0.05"):
            DiffusionBlock(aniso.EdgeEnhancing(1.0, 0.0), learn=["sigma"], max_sigma=0.05)

    def test_options_that_do_not_exist(self):
        with pytest.raises(TypeError, match="smoothing"):
            DiffusionNet(EDGE, 3, smoothing=1.0)
