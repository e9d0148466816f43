"""What is special to tensors in aniso.diffuse: batches, devices and gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from torch._library.custom_ops import OPDEFS
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import aniso
from aniso import engines
from aniso.engines.torch.evolution import Evolution
from tests.nn.nn_registry import (
    COHERENCE,
    EDGE,
    LINES,
    SCALAR,
    SPECIMENS,
    assert_close,
    batch,
    diffused,
    volume_tensors,
)
from tests.registry import random_tensors, rational

MODELS: dict[str, Any] = {
    "edge": EDGE,
    "coherence": COHERENCE,
    "tensor": random_tensors((9, 7)),
    "linear": aniso.Homogeneous(),
}
every_model = pytest.mark.parametrize("name", MODELS)
every_scheme = pytest.mark.parametrize("scheme", [aniso.Explicit(), aniso.FED(2), aniso.FSI(2)], ids=repr)
TIME = 1.5


@every_model
@every_scheme
class TestShapes:
    def test_an_image(self, name, scheme):
        image = batch()[0, 0]
        result = aniso.diffuse(image, MODELS[name], TIME, scheme=scheme)
        assert isinstance(result, torch.Tensor)
        expected = aniso.diffuse(image.numpy(), MODELS[name], TIME, scheme=scheme, engine="reference")
        assert_close(result, torch.from_numpy(expected), 1e-12)

    def test_a_batch_is_one_image_after_the_other(self, name, scheme):
        images = batch((3, 2, 9, 7))
        result = aniso.diffuse(images, MODELS[name], TIME, scheme=scheme)
        assert_close(result, diffused(images, MODELS[name], TIME, scheme=scheme), 1e-12)
        for axis in (1, -3):
            same = aniso.diffuse(images, MODELS[name], TIME, scheme=scheme, channel_axis=axis)
            assert torch.equal(result, same)
        for image, expected in zip(images, result, strict=True):
            one = aniso.diffuse(image, MODELS[name], TIME, scheme=scheme, channel_axis=0)
            assert_close(one, expected, 1e-14)

    def test_channels_along_any_axis(self, name, scheme):
        image = batch((1, 3, 9, 7))[0]
        expected = aniso.diffuse(image, MODELS[name], TIME, scheme=scheme, channel_axis=0)
        for axis in (1, 2, -1, -2, -3):
            moved = image.movedim(0, axis)
            result = aniso.diffuse(moved, MODELS[name], TIME, scheme=scheme, channel_axis=axis)
            assert torch.equal(result, expected.movedim(0, axis))

    def test_scale_space(self, name, scheme):
        images = batch((2, 1, 9, 7))
        snapshots = list(aniso.scale_space(images, MODELS[name], [0, 1, 2], scheme=scheme))
        arrays = [
            list(aniso.scale_space(i[0].numpy(), MODELS[name], [0, 1, 2], scheme=scheme, engine="reference"))
            for i in images
        ]
        for number, (time, snapshot) in enumerate(snapshots):
            expected = np.stack([array[number][1] for array in arrays])[:, None]
            assert time == number
            assert_close(snapshot, torch.from_numpy(expected), 1e-12)
        assert len({snapshot.data_ptr() for _, snapshot in snapshots}) == 3


@pytest.mark.parametrize("channels", [None, 0, 1])
def test_a_signal(channels):
    signal = batch((1, 2, 1, 20))[0, :, 0]
    signal = signal[0] if channels is None else signal.movedim(0, channels)
    result = aniso.diffuse(signal, EDGE, TIME, channel_axis=channels)
    expected = aniso.diffuse(signal.numpy(), EDGE, TIME, channel_axis=channels, engine="reference")
    assert_close(result, torch.from_numpy(expected), 1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2)], ids=str)
@pytest.mark.parametrize(
    "model", [EDGE, COHERENCE, aniso.EdgeEnhancing(0.5, 3.0)], ids=["edge", "coherence", "wide"]
)
def test_kernels_longer_than_the_image(shape, model):
    images = batch((2, 2, *shape))
    assert_close(aniso.diffuse(images, model, TIME), diffused(images, model, TIME), 1e-12)


VOLUME = (5, 4, 6)
SPLIT: Any = aniso.stencil.SplitStencil(0.3)
VOLUME_MODELS: dict[str, Any] = {
    **{name: model for name, model in MODELS.items() if name != "tensor"},
    "tensor": volume_tensors(VOLUME),
    "edge, unsmoothed": aniso.EdgeEnhancing(0.5, 0.0, "perona-malik"),
    "edge, weickert": aniso.EdgeEnhancing(0.5, 0.5, "weickert"),
    "edge, exponential": aniso.EdgeEnhancing(0.5, 0.5, "exponential"),
    "edge, callable": aniso.EdgeEnhancing(0.5, 0.5, rational),
    "continuing": aniso.EdgeContinuing(0.5, 0.4, 0.6),
    "coherence, local": aniso.CoherenceEnhancing(0.3, 0.0, 0.0, 0.2),
    "lines": LINES,
    "scalar": SCALAR,
}
every_volume_model = pytest.mark.parametrize("name", VOLUME_MODELS)


@every_volume_model
class TestVolumes:
    """As the reference engine has them."""

    @pytest.mark.parametrize(
        ("scheme", "stencil", "channels"),
        [
            (aniso.Explicit(), aniso.DeltaStencil(0.3, 0.6), 3),
            (aniso.Explicit(), SPLIT, 1),
            (aniso.FED(2), SPLIT, 3),
            (aniso.FSI(2), aniso.DeltaStencil(0.3, 0.6), 1),
        ],
        ids=str,
    )
    def test_in_batches(self, name, scheme, stencil, channels):
        model, images = VOLUME_MODELS[name], batch((2, channels, *VOLUME))
        options = {"scheme": scheme, "stencil": stencil, "spacing": (0.8, 1.3, 1.0)}
        result = aniso.diffuse(images, model, TIME, **options)
        assert (result - images).abs().max() > 0.01  # something happened
        assert_close(result, diffused(images, model, TIME, **options), 1e-12)
        for axis in (1, -4):
            assert torch.equal(result, aniso.diffuse(images, model, TIME, channel_axis=axis, **options))

    def test_in_single_precision(self, name):
        images, scheme = batch((1, 3, *VOLUME), dtype=torch.float32), aniso.FSI(2)
        result = aniso.diffuse(images, VOLUME_MODELS[name], TIME, scheme=scheme)
        assert result.dtype == torch.float32
        assert_close(result, diffused(images, VOLUME_MODELS[name], TIME, scheme=scheme), 2e-6)

    def test_one_by_one_with_and_without_channels(self, name):
        model, images = VOLUME_MODELS[name], batch((1, 2, *VOLUME))
        expected = aniso.diffuse(images, model, TIME)[0]
        for axis in (0, 2, 3, -1, -2, -4):  # along axis 1 they would be a batch of images
            moved = images[0].movedim(0, axis)
            assert torch.equal(
                aniso.diffuse(moved, model, TIME, channel_axis=axis), expected.movedim(0, axis)
            )
        grey = images[0, 0]
        result = aniso.diffuse(grey, model, TIME)
        assert torch.equal(result, aniso.diffuse(images[:, :1], model, TIME)[0, 0])
        as_array = aniso.diffuse(grey.numpy(), model, TIME, engine="torch")
        assert isinstance(as_array, np.ndarray)
        np.testing.assert_array_equal(as_array, result.numpy())
        by_reference = aniso.diffuse(grey, model, TIME, engine="reference")
        assert isinstance(by_reference, torch.Tensor)
        assert_close(result, by_reference, 1e-12)

    def test_kernels_longer_than_the_volume(self, name):
        for shape in ((1, 1, 1), (1, 5, 1), (4, 1, 1), (1, 2, 3), (2, 2, 2)):
            model = volume_tensors(shape) if name == "tensor" else VOLUME_MODELS[name]
            images = batch((2, 2, *shape))
            assert_close(aniso.diffuse(images, model, TIME), diffused(images, model, TIME), 1e-12)

    def test_with_voxels_that_stay(self, name):
        images, mask = batch((2, 2, *VOLUME)), torch.zeros(VOLUME, dtype=torch.bool)
        mask[1:3, 2:] = True
        for scheme in (aniso.Explicit(), aniso.FSI(1)):
            result = aniso.diffuse(images, VOLUME_MODELS[name], TIME, fixed=mask, scheme=scheme)
            expected = diffused(images, VOLUME_MODELS[name], TIME, fixed=mask.numpy(), scheme=scheme)
            assert torch.equal(result[..., mask], images[..., mask])
            assert_close(result, expected, 1e-12)

    @pytest.mark.parametrize("channels", [1, 2])
    def test_gradients_flow_through(self, name, channels):
        model = volume_tensors((2, 3, 2)) if name == "tensor" else VOLUME_MODELS[name]
        image = batch((1, channels, 2, 3, 2)).requires_grad_()
        for stencil in (aniso.DeltaStencil(), SPLIT):
            options = {"scheme": aniso.FSI(1), "stencil": stencil}
            assert gradcheck(lambda u, o=options: aniso.diffuse(u, model, 0.6, **o), image, fast_mode=True)

    def test_the_host_never_waits(self, name):
        cycle = next(iter(aniso.FSI(1).plan(TIME, 0.1)))
        for stencil in (aniso.DeltaStencil(), SPLIT):
            problem = engines.Problem(VOLUME_MODELS[name], stencil, (1.0, 0.8, 1.2), np.zeros(VOLUME, bool))
            evolution = Evolution(batch((1, 2, *VOLUME)), problem)
            with NoSynchronisation():
                evolution.advance(cycle)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("model", [EDGE, COHERENCE, SCALAR], ids=["edge", "coherence", "scalar"])
def test_a_volume_that_is_constant_along_an_axis_is_its_slices(axis, channels, model):
    images = batch((2, channels, 7, 6))
    expected = aniso.diffuse(images, model, TIME, scheme=aniso.Explicit(0.1))
    volume = images.unsqueeze(2 + axis).repeat_interleave(4, dim=2 + axis)
    result = aniso.diffuse(volume, model, TIME, scheme=aniso.Explicit(0.1))
    for layer in result.unbind(2 + axis):
        assert_close(layer, expected, 1e-12)


class TestTypes:
    @pytest.mark.parametrize(
        "dtype", [torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float32]
    )
    def test_all_but_double_give_single(self, dtype):
        image = (10 * batch((1, 1, 9, 7)).abs() + 1).to(dtype)
        result = aniso.diffuse(image, EDGE, TIME)
        assert result.dtype == torch.float32
        assert torch.equal(result, aniso.diffuse(image.float(), EDGE, TIME))
        assert aniso.diffuse(image.double(), EDGE, TIME).dtype == torch.float64

    @pytest.mark.parametrize("image", [np.ones((5, 4)), np.ones((5, 4), np.float32), np.ones((5, 4), int)])
    def test_arrays_stay_arrays(self, image):
        result = aniso.diffuse(image, EDGE, TIME, engine="torch")
        assert isinstance(result, np.ndarray)
        assert result.dtype == (np.float64 if image.dtype == np.float64 else np.float32)

    @pytest.mark.parametrize("engine", ["cpu", "reference"])
    def test_the_other_engines_take_single_images(self, engine):
        for image, axis in ((batch()[0, 0], None), (batch((1, 3, 9, 7))[0], 0), (batch((1, 2, 9, 7)), None)):
            result = aniso.diffuse(image, EDGE, TIME, engine=engine, channel_axis=axis)
            assert isinstance(result, torch.Tensor)
            assert_close(result, aniso.diffuse(image, EDGE, TIME, channel_axis=axis), 1e-12)

    @pytest.mark.parametrize("engine", ["cpu", "reference"])
    def test_but_no_batches_gradients_or_devices(self, engine):
        parts = "this engine takes one image on the CPU without gradients"
        for image in (batch((2, 1, 9, 7)), batch((1, 1, 9, 7)).requires_grad_()):
            with pytest.raises(ValueError, match=f"{parts}.*requires_grad={image.requires_grad}"):
                aniso.diffuse(image, EDGE, TIME, engine=engine)

    @pytest.mark.parametrize(
        "image",
        [
            torch.ones(4, 4, dtype=torch.complex64),
            torch.ones(4, 4, dtype=torch.bool),
        ],
        ids=["complex", "bool"],
    )
    def test_no_grey_values(self, image):
        with pytest.raises(TypeError, match=f"a real numeric dtype, got {image.dtype}"):
            aniso.diffuse(image, EDGE, TIME)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
    def test_no_numbers(self, dtype):
        images = batch((2, 1, 9, 7), dtype=dtype)
        images[1, 0, 3, 4], images[1, 0, 5, 5] = torch.nan, torch.inf
        with pytest.raises(ValueError, match=r"image holds 2 values.*index \(1, 0, 3, 4\) \(nan\)"):
            aniso.diffuse(images, EDGE, TIME)


class TestAxes:
    def test_three_axes_are_a_volume_unless_one_holds_channels(self):
        tensor = batch((1, 3, 9, 7))[0]
        volume, colours = (aniso.diffuse(tensor, EDGE, TIME, channel_axis=axis) for axis in (None, 0))
        assert torch.equal(volume, aniso.diffuse(tensor[None, None], EDGE, TIME)[0, 0])
        assert torch.equal(colours, aniso.diffuse(tensor[None], EDGE, TIME)[0])
        assert not torch.allclose(volume, colours, atol=0.01)

    @pytest.mark.parametrize("axis", [0, 2, 3, 4, -1])
    def test_the_channels_of_a_batch_lie_along_axis_1(self, axis):
        with pytest.raises(ValueError, match=f"channels lie along axis 1, got channel_axis={axis}"):
            aniso.diffuse(batch((1, 2, 3, 4, 3)), EDGE, TIME, channel_axis=axis)

    @pytest.mark.parametrize("shape", [(), (1, 1, 1, 1, 4, 4)], ids=str)
    def test_other_ranks(self, shape):
        with pytest.raises(ValueError, match="must be a signal"):
            aniso.diffuse(torch.zeros(shape), EDGE, TIME)

    @pytest.mark.parametrize("shape", [(0, 4), (0, 1, 4, 4), (1, 0, 4, 4), (1, 1, 4, 0)], ids=str)
    def test_nothing(self, shape):
        with pytest.raises(ValueError, match="nothing to diffuse"):
            aniso.diffuse(torch.zeros(shape), EDGE, TIME)

    def test_a_channel_axis_that_is_not_there(self):
        with pytest.raises(ValueError, match="channel_axis=3 does not exist"):
            aniso.diffuse(torch.zeros(3, 4, 4), EDGE, TIME, channel_axis=3)


class TestTheCallersTensor:
    @pytest.mark.parametrize("engine", [None, "cpu", "reference"])
    @pytest.mark.parametrize("time", [0, TIME])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_is_neither_modified_nor_shared(self, engine, time, dtype):
        for image, axis in ((batch(dtype=dtype)[0, 0], None), (batch((1, 3, 9, 7), dtype=dtype)[0], 0)):
            before = image.clone()
            result = aniso.diffuse(image, EDGE, time, engine=engine, channel_axis=axis)
            assert torch.equal(image, before)
            assert torch.equal(result, image) == (time == 0)
            result.zero_()
            assert torch.equal(image, before)

    def test_nor_is_a_batch(self):
        images = batch(dtype=torch.float32)
        before = images.clone()
        for time in (0, TIME):
            aniso.diffuse(images, EDGE, time).zero_()
            assert torch.equal(images, before)

    def test_nor_is_the_array(self):
        image = batch()[0, 0].numpy()
        before = image.copy()
        for time in (0, TIME):
            aniso.diffuse(image, EDGE, time, engine="torch")[:] = 0
            np.testing.assert_array_equal(image, before)

    @pytest.mark.parametrize("engine", ["torch", "cpu", "reference"])
    def test_nor_are_snapshots_the_engines(self, engine):
        """What the caller does to one leaves the next ones alone."""
        image, times = batch()[0, 0], [0, 1, 2]
        expected = [u.clone() for _, u in aniso.scale_space(image, EDGE, times, engine=engine)]
        for (_, snapshot), untouched in zip(
            aniso.scale_space(image, EDGE, times, engine=engine), expected, strict=True
        ):
            assert torch.equal(snapshot, untouched)
            snapshot.zero_()

    def test_may_have_any_strides(self):
        images = batch((4, 2, 18, 7))
        for view in (images[::2, :, ::2], images.mT, images.flip(3), images[:1].expand(3, 2, 18, 7)):
            assert torch.equal(aniso.diffuse(view, EDGE, 1.0), aniso.diffuse(view.contiguous(), EDGE, 1.0))

    def test_a_mask_may_be_a_tensor(self):
        images = batch((2, 3, 9, 7))
        mask = torch.zeros(9, 7, dtype=torch.bool)
        mask[2:4] = True
        for scheme in (aniso.Explicit(), aniso.FED(1), aniso.FSI(1)):
            result = aniso.diffuse(images, EDGE, TIME, fixed=mask, scheme=scheme)
            assert torch.equal(result[..., mask], images[..., mask])
            assert (result != images)[..., ~mask].any()
            same = aniso.diffuse(images, EDGE, TIME, fixed=mask.numpy(), scheme=scheme)
            assert torch.equal(result, same)
        with pytest.raises(TypeError, match="fixed must be boolean"):
            aniso.diffuse(images, EDGE, TIME, fixed=mask.float())
        with pytest.raises(ValueError, match=r"fixed has shape \(7, 9\)"):
            aniso.diffuse(images, EDGE, TIME, fixed=mask.T)


class TestGradients:
    @every_model
    @pytest.mark.parametrize("channels", [1, 2])
    def test_flow_through(self, name, channels):
        model = MODELS[name] if name != "tensor" else random_tensors((4, 3))
        image = batch((2, channels, 4, 3)).requires_grad_()
        for scheme in (aniso.Explicit(0.2), aniso.FSI(1)):
            assert gradcheck(
                lambda u, s=scheme: aniso.diffuse(u, model, 0.6, scheme=s), image, fast_mode=True
            )

    def test_through_pixels_that_stay(self):
        image = batch((1, 1, 4, 3)).requires_grad_()
        mask = torch.zeros(4, 3, dtype=torch.bool)
        mask[1, 1] = True
        assert gradcheck(lambda u: aniso.diffuse(u, EDGE, 0.6, fixed=mask), image, fast_mode=True)

    def test_through_an_image_and_its_channels(self):
        assert gradcheck(
            lambda u: aniso.diffuse(u, EDGE, 0.4), batch()[0, 0].requires_grad_(), fast_mode=True
        )
        colour = batch((1, 3, 4, 3))[0].movedim(0, -1).requires_grad_()
        assert gradcheck(lambda u: aniso.diffuse(u, EDGE, 0.4, channel_axis=-1), colour, fast_mode=True)

    def test_only_if_asked_for(self):
        image = batch().requires_grad_()
        assert aniso.diffuse(image, EDGE, 0.4).requires_grad
        assert not aniso.diffuse(image.detach(), EDGE, 0.4).requires_grad
        with torch.no_grad():
            assert not aniso.diffuse(image, EDGE, 0.4).requires_grad

    def test_no_time_is_the_identity(self):
        image = batch().requires_grad_()
        aniso.diffuse(image, EDGE, 0).sum().backward()
        assert image.grad is not None
        assert torch.equal(image.grad, torch.ones_like(image))


def test_a_diffusivity_that_does_not_know_tensors_is_refused():
    def of_arrays(r):
        return np.exp(-np.asarray(r))

    with pytest.raises(TypeError, match=r"of_arrays.*does not work on tensors"):
        aniso.diffuse(batch(), aniso.PeronaMalik(1.0, 0.0, of_arrays), TIME)
    aniso.diffuse(batch()[0, 0].numpy(), aniso.PeronaMalik(1.0, 0.0, of_arrays), TIME, engine="reference")


class NoSynchronisation(TorchDispatchMode):
    """Fails where the host would have to wait for numbers, or hand some over.

    A mode does not see what operators written in Python do; those of the package are therefore carried out
    here.
    """

    FORBIDDEN = (
        "_local_scalar_dense",
        "item",
        "nonzero",
        "is_nonzero",
        "equal",
        "masked_select",
        "lift_fresh",
    )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket._qualified_op_name.removeprefix("aten::")
        assert name not in self.FORBIDDEN, f"{name} makes the host wait"
        if name in ("_to_copy", "copy_"):
            assert kwargs.get("device") in (None, args[0].device), f"{name} leaves the device"
        if func.namespace == "aniso":
            with self:
                return OPDEFS[f"aniso::{name.removeprefix('aniso::')}"]._init_fn(*args, **kwargs)
        return func(*args, **kwargs)


class TestTheHostNeverWaits:
    def test_the_watch_is_awake(self):
        image = batch()
        for wait in (lambda: image.max().item(), lambda: bool(image.sum() > 0), lambda: image.nonzero()):
            with pytest.raises(AssertionError, match="makes the host wait"), NoSynchronisation():
                wait()
        with pytest.raises(AssertionError, match="leaves the device"), NoSynchronisation():
            image.to("meta")

    @every_model
    @every_scheme
    def test_in_a_cycle(self, name, scheme):
        model, fixed = MODELS[name], np.zeros((9, 7), bool)
        for stencil in (aniso.DeltaStencil(), aniso.FreeStencil(np.zeros((10, 8)))):
            evolution = Evolution(batch(), engines.Problem(model, stencil, (1.0, 0.8), fixed))
            cycle = next(iter(scheme.plan(TIME, 0.1)))
            with NoSynchronisation():
                evolution.advance(cycle)
                evolution.advance(cycle)

    @pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
    def test_in_a_module_and_its_gradients(self, specimen):
        module, given = specimen.make(), specimen.inputs(batch(dtype=torch.float32))
        with NoSynchronisation():
            module(*given).square().sum().backward()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestCuda:
    @every_model
    @every_scheme
    def test_the_same_as_on_the_cpu(self, name, scheme):
        images = batch()
        mask = torch.zeros(9, 7, dtype=torch.bool, device="cuda")
        result = aniso.diffuse(images.cuda(), MODELS[name], TIME, scheme=scheme, fixed=mask)
        assert result.device.type == "cuda"
        assert_close(result.cpu(), aniso.diffuse(images, MODELS[name], TIME, scheme=scheme), 1e-12)

    @pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
    def test_modules_too(self, specimen):
        given = specimen.inputs(batch())
        for module in (specimen.make().cuda(), specimen.make(device="cuda")):
            result = module(*(x.cuda() for x in given))
            assert_close(result.cpu(), specimen.make()(*given), 1e-10)

    def test_the_other_engines_refuse_it(self):
        with pytest.raises(ValueError, match="on cuda"):
            aniso.diffuse(batch()[0, 0].cuda(), EDGE, TIME, engine="cpu")
