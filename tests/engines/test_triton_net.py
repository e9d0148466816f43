"""Learned diffusions by fused kernels: the results and gradients of the PyTorch operations.

Without a GPU the kernels run in Triton's interpreter, see tests/conftest.py.
"""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from torch.autograd import gradcheck, gradgradcheck

import aniso
from aniso import engines
from aniso.engines.torch.net import learned_part
from aniso.engines.triton import net as fused
from aniso.engines.triton.arithmetic import log1p
from aniso.engines.triton.launches import Launch
from aniso.nn import KernelDiffusionNet
from aniso.nn import kernels as modules
from benchmarks.gpu_launches import moved, record
from tests.engines.test_torch_engine import NoSynchronisation
from tests.engines.test_triton import DEVICE

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"dilations": [1, 2], "kernels": 2, "side": 3},
    {"dilations": [3], "kernels": 2, "side": 5, "colour": True, "correlated": True},
]
#: Smaller than a kernel, odd, and larger than a tile along one axis.
SHAPES = [(1, 1), (1, 9), (3, 2), (67, 53)]


def a_net(options, dtype=torch.float64):
    """A net without gradients, whose parameters are all disturbed."""
    random = torch.Generator().manual_seed(1)
    net = KernelDiffusionNet(**options, dtype=dtype).requires_grad_(False)
    for parameter in net.parameters():
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return net.to(DEVICE)


def noisy(*shape, dtype=torch.float64):
    random = torch.Generator().manual_seed(0)
    return (128 + 40 * torch.randn(shape, generator=random, dtype=torch.float64)).to(DEVICE, dtype)


def difference(net, image, *noise):
    """The largest difference between the engines, and what the net changes."""
    expected, found = (net(image, *noise, engine=name) for name in ("torch", "triton"))
    assert found.dtype == image.dtype
    assert found.is_contiguous()
    return (found - expected).abs().max().item(), (found - image).abs().max().item()


class TestResults:
    @pytest.mark.parametrize("options", CASES, ids=["grey", "colour"])
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_are_those_of_the_pytorch_operations(self, options, shape):
        net = a_net(options)
        for channels in (3,) if shape[0] > 9 else (1, 3):
            error, change = difference(net, noisy(1, channels, *shape), 20.0)
            assert error < 1e-11
            assert change > 0.1 or shape == (1, 1)  # nothing to diffuse

    def test_of_batches_with_a_noise_level_for_each_image(self):
        """Views too, and correlated noise."""
        net, levels = a_net(CASES[1]), torch.tensor([5.0, 50.0], device=DEVICE)
        images = noisy(2, 3, 9, 22)[..., ::2].transpose(2, 3)
        assert difference(net, images, levels, torch.tensor([0.0, 0.8], device=DEVICE))[0] < 1e-11
        alone = net(images[1:], 50.0, 0.8, engine="triton")
        torch.testing.assert_close(net(images, levels, 0.8, engine="triton")[1:], alone)

    def test_of_the_trained_net_in_single_precision(self):
        net: Any = aniso.nn.pretrained("denoise-2-75", device=DEVICE)
        with torch.no_grad():
            image = noisy(1, 1, 14, 9, dtype=torch.float32)
            error, change = difference(net, image, 25.0)
        assert error < 1e-4
        assert change > 10

    def test_of_many_tiles(self, monkeypatch):
        """In the interpreter tiles are large; with those of a GPU, nothing changes."""
        from aniso.engines.triton import launches

        monkeypatch.setattr(launches, "INTERPRETED", False)
        assert (
            difference(a_net({"dilations": [2], "kernels": 2, "side": 3}), noisy(1, 1, 3, 70), 20.0)[0]
            < 1e-11
        )

    def test_of_huge_and_half_precise_values(self):
        net = a_net({"dilations": [1], "kernels": 2, "side": 3}, torch.float32)
        image = noisy(1, 1, 5, 4, dtype=torch.float32)
        for scale in (1e-20, 1e20):
            assert difference(net, scale * image, 20.0)[0] <= 2e-6 * 255 * scale
        half = image.half()
        assert difference(net, half, 20.0)[0] <= 0.25  # two neighbouring numbers

    def test_of_plans(self, monkeypatch):
        """A plan of denoise filters tensors with the kernels if these are asked for."""
        image = aniso.samples.rings(20, noise=20.0).image.astype(np.float32)
        _, plan = aniso.denoise(image, method="learned", return_info=True)
        tensor = torch.from_numpy(image).to(DEVICE)
        starts, run = [], Launch.run

        def start(launch):
            starts.append(launch)
            run(launch)

        monkeypatch.setattr(Launch, "run", start)
        expected = plan.apply(tensor, engine="torch")
        assert not starts
        torch.testing.assert_close(plan.apply(tensor, engine="triton"), expected, rtol=0, atol=1e-3)
        assert starts


class TestWhoComputes:
    def launches(self, net, image, **options):
        with record() as launches:
            net(image, 20.0, **options)
        return len(launches)

    def test_fused_kernels_by_name_or_without_gradients_on_a_gpu(self, monkeypatch):
        net, image = a_net(CASES[0]), noisy(1, 1, 4, 4)
        assert self.launches(net, image, engine="torch") == 0
        assert self.launches(net, image, engine="triton") == 4 + 8
        monkeypatch.setattr(engines, "default", lambda arrays, device: "triton")
        assert self.launches(net, image) == 4 + 8
        assert self.launches(net, image.requires_grad_()) == 0
        assert self.launches(net.requires_grad_(), image) == 0
        with torch.no_grad():
            assert self.launches(net, image) == 4 + 8

    def test_other_names_are_rejected(self):
        with pytest.raises(ValueError, match="engine must be None or one of torch, triton, got 'cpu'"):
            a_net(CASES[0])(noisy(1, 1, 4, 4), 20.0, engine="cpu")

    def test_nets_with_many_kernels_have_none(self, monkeypatch):
        net, image = a_net({"dilations": [1], "kernels": 34, "side": 3}), noisy(1, 1, 4, 4)
        monkeypatch.setattr(engines, "default", lambda arrays, device: "triton")
        assert self.launches(net, image) == 0
        with pytest.raises(ValueError, match="nets with at most 32 kernels, and this one has 34"):
            net(image, 20.0, engine="triton")

    def test_never_make_the_host_wait(self):
        for options in CASES:
            net, image = a_net(options), noisy(2, 3, 5, 4)
            for engine in ("torch", "triton"):
                with NoSynchronisation(), record():
                    net(image, 20.0, engine=engine)


def arguments(count=4, side=3, others=True, keeps=True):
    """What the operator takes, in small."""
    random = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(shape, generator=random, dtype=torch.float64).to(DEVICE)

    u = draw(1, 2, 4, 3)
    numbers = torch.cat([draw(1, 3 * count).abs(), torch.full((1, 2), 0.3, device=DEVICE)], 1)
    tensors = (
        u,
        draw(1, 2, 4, 3),
        u.detach(),
        draw(count, 1, side, side),
        draw(2 + others, count, count),
        numbers,
    )
    return *tensors, draw(1, count, 4, 3) if others else None, 2, keeps


class TestOperator:
    """Its gradients are those of the PyTorch operations."""

    @staticmethod
    def with_gradients(given):
        return [
            each.clone().requires_grad_() if isinstance(each, torch.Tensor) and number != 2 else each
            for number, each in enumerate(given)
        ]

    @pytest.mark.parametrize(("others", "keeps"), [(True, False), (False, True)])
    def test_is_what_it_is_registered_as(self, others, keeps):
        given = self.with_gradients(arguments(others=others, keeps=keeps))
        tests = ["test_schema", "test_faketensor", "test_autograd_registration"]
        tests += ["test_aot_dispatch_dynamic"] if keeps else []
        torch.library.opcheck(fused.learned_part, tuple(given), test_utils=tests)

    def test_gradients(self):
        given = self.with_gradients(arguments())
        results = [function(*given) for function in (learned_part, fused.learned_part)]
        tensors = [each for number, each in enumerate(given) if number not in (2, 7, 8)]
        cotangents = [torch.randn_like(each) for each in results[0]]
        expected, found = (torch.autograd.grad(result, tensors, cotangents) for result in results)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
            assert other.abs().max() > 0

    def test_gradients_twice(self):
        _, *others = arguments(others=False, keeps=False)
        u = others[0].clone().requires_grad_()
        assert gradcheck(lambda v: fused.learned_part(v, *others)[0], u, fast_mode=True)
        assert gradgradcheck(lambda v: fused.learned_part(v, *others)[0], u, fast_mode=True)

    def test_a_net_can_be_compiled(self):
        net, image = a_net({"dilations": [2], "kernels": 2, "side": 3}), noisy(1, 1, 5, 4)
        torch._dynamo.reset()
        compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
        result = compiled(image, torch.tensor(20.0, device=DEVICE), engine="triton")
        torch.testing.assert_close(result, net(image, 20.0, engine="torch"))


def test_bytes_moved():
    """Per pixel of a stage, in single precision: energies and fluxes of 24 kernels are written and read."""
    net, image = a_net({"dilations": [1]}, torch.float32), torch.zeros(1, 1, 256, 256, device=DEVICE)
    level = torch.full((1, 1), 20.0, device=DEVICE)
    stage: Any = net.stages[0]
    with record() as launches:
        stage((image,), (image,), level, modules.chebyshev(level), None, fused.learned_part)
    assert sum(map(moved, launches)) / image.numel() <= 4 * 24 * 4 + 4 * 8


@triton.jit
def logarithms(x, out):
    at = tl.arange(0, 8)
    tl.store(out + at, log1p(tl.load(x + at)))


def test_logarithms_of_small_numbers():
    """To rounding, where 1 + x has lost most digits of x."""
    x = torch.tensor([0.0, 1e-30, 1e-9, 3e-8, 1e-6, 0.1, 7.0, 1e15], device=DEVICE)
    out = torch.empty_like(x)
    logarithms[(1,)](x, out)
    torch.testing.assert_close(out, x.log1p(), rtol=5e-7, atol=0)
