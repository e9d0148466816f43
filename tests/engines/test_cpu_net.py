"""Trained nets on the cpu engine: the results of the PyTorch modules, whatever the sizes and parameters."""

import sys
from typing import Any

import numba
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import aniso
from aniso.engines.cpu import net as cpu_net
from aniso.nets.design import join, separate
from aniso.nets.folds import Folds
from aniso.nets.net import Net, load_net, make_net, net_names
from aniso.nn import KernelDiffusionNet
from tests import bounds
from tests.processes import PATIENCE, started

#: Smaller than a kernel, odd, a little wider or higher than a tile, and as wide as several of them.
SHAPES = [(1, 1), (1, 9), (3, 2), (13, 30), (140, 5), (20, 250), (131, 45), (9, 1290)]
CASES = [
    {"dilations": [1, 2, 4], "kernels": 6, "side": 5},
    {"dilations": [3], "kernels": 2, "side": 3},
    {"dilations": [1, 2], "kernels": 4, "side": 7},
    {"dilations": [2, 1], "kernels": 4, "side": 5, "colour": True, "correlated": True},
]


def noisy(*shape, seed=0):
    return 128 + 40 * np.random.default_rng(seed).standard_normal(shape)


def run(image, net, level, correlation=0.0, **options):
    coloured = net.takes_colours(len(image))
    f = separate(image) if coloured else image
    found = cpu_net.run_net(f, f, net, net.at_level(level, len(image), correlation), **options)
    return join(found) if coloured else found


def a_pair(options: dict[str, Any], seed=1) -> tuple[KernelDiffusionNet, Net]:
    """A module with random parameters, and the same net without PyTorch."""
    random = torch.Generator().manual_seed(seed)
    module = KernelDiffusionNet(**options, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    parameters = {name: tensor.tolist() for name, tensor in module.state_dict().items()}
    return module, make_net(options, parameters)


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_are_those_of_the_module(options, shape):
    module, net = a_pair(options)
    for channels in (1, 2, 3):
        image = noisy(channels, *shape)
        for width in (0.0, 0.7, 3.0) if net.takes_correlation else (0.0,):
            with torch.no_grad():
                expected = module(torch.from_numpy(image)[None], 20.0, width)[0].numpy()
            np.testing.assert_allclose(run(image, net, 20.0, width), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", net_names())
@pytest.mark.parametrize("level", [2.0, 25.0, 75.0, 200.0])
@pytest.mark.parametrize("channels", [1, 3])
def test_trained_nets_in_single_precision(name, level, channels):
    image = noisy(channels, 90, 131).astype(np.float32)
    module: Any = aniso.nn.pretrained(name)
    with torch.no_grad():
        expected = module(torch.from_numpy(image)[None], level)[0].numpy()
    found = run(image, load_net(name), level)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_bits_depend_neither_on_threads_nor_on_tiles(monkeypatch):
    net, image = load_net("denoise-2-75"), noisy(2, 140, 700).astype(np.float32)
    whole = run(image, net, 20.0, threads=2)
    assert np.array_equal(run(image, net, 20.0, threads=1), whole)
    reach = sum(net.reaches)
    part = run(image[:, :, 7:], net, 20.0)
    assert np.array_equal(part[:, :, reach:], whole[:, :, 7 + reach :])
    monkeypatch.setattr(cpu_net, "_ROWS", 37)
    assert np.array_equal(run(image, net, 20.0), whole)


@pytest.mark.parametrize("width", [1, 17, 40, 130])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_in_one_array_are_independent(channels, width, monkeypatch):
    net, images = load_net("denoise-2-75"), noisy(3, 2, channels, 31, width).astype(np.float32)
    stages = net.at_level(20.0, channels)
    for tasks in (1, 3, 6):  # up to six, two and one of them side by side
        monkeypatch.setattr(cpu_net, "_TASKS", tasks)
        found = cpu_net.run_net(images, images, net, stages)
        for place in np.ndindex(3, 2):
            assert np.array_equal(found[place], cpu_net.run_net(images[place], images[place], net, stages))


def test_colours_of_several_images():
    images = noisy(4, 3, 6, 7)
    np.testing.assert_array_equal(separate(images)[2], separate(images[2]))
    np.testing.assert_array_equal(join(images)[2], join(images[2]))


@given(length=st.integers(1, 5000), most=st.integers(16, 700))
def test_tiles_have_nearly_the_same_size(length, most):
    spans = cpu_net.even_spans(length, most)
    assert [start for start, _ in spans] == [0, *(stop for _, stop in spans[:-1])]
    assert spans[-1][1] == length
    sizes = [stop - start for start, stop in spans]
    assert max(sizes) <= most
    assert len(spans) == -(-length // most) or max(sizes) % 16 == 0
    assert max(sizes) < length / -(-length // most) + 16


def test_pixels_beyond_the_reach_have_no_influence():
    net = load_net("denoise-2-75")
    reach = sum(net.reaches)
    image = noisy(1, 8, 2 * reach + 40).astype(np.float32)
    other = image.copy()
    other[..., 0] += 100
    changed = np.nonzero((run(image, net, 30.0) != run(other, net, 30.0)).any(axis=(0, 1)))[0]
    assert changed.size > 0
    assert changed.max() <= reach


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_parameters_preserve_the_mean_and_never_increase_the_norm(dtype):
    random = np.random.default_rng(2)
    options: dict[str, Any] = {"dilations": [1, 2], "kernels": 4, "side": 5, "colour": True}
    shapes = {name: tensor.shape for name, tensor in KernelDiffusionNet(**options).state_dict().items()}
    error = 1e-5 if dtype == np.float32 else 1e-12
    for draw in range(60):
        size = (0.1, 1.0, 30.0, 1e6)[draw % 4]
        parameters = {name: size * random.standard_normal(shape) for name, shape in shapes.items()}
        image = (50 * random.standard_normal((1 + draw % 3, *SHAPES[draw % 5]))).astype(dtype)
        result = run(image, make_net(options, parameters), 10.0)
        before = float(np.linalg.norm(image.astype(float)))
        assert np.linalg.norm(result.astype(float)) <= before * (1 + error), draw
        assert abs(result.mean(dtype=float) - image.mean(dtype=float)) <= error * before, draw


@pytest.mark.parametrize("symmetry", [np.fliplr, np.flipud, np.transpose, np.rot90])
def test_turning_the_image_turns_the_result(symmetry):
    net, image = load_net("denoise-2-75"), noisy(40, 57)
    turned = run(np.ascontiguousarray(symmetry(image))[None], net, 20.0)[0]
    np.testing.assert_allclose(turned, symmetry(run(image[None], net, 20.0)[0]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_folds_cover_the_square_forwards_and_backwards(radius):
    folds = Folds(radius, 2)
    assert len(folds.table) == (2 * radius + 1) ** 2 == len(folds.backward_spans)
    # Each kernel is a sum of folds with as many numbers as it has free ones, forwards and backwards.
    kernels = np.random.default_rng(0).standard_normal((2, 2 * radius + 1, 2 * radius + 1))
    kernels[0] -= kernels[0, ::-1, ::-1].copy()
    kernels[1] += kernels[1, ::-1, ::-1].copy()
    forward, backward = folds.numbers(kernels)
    assert len(forward) == folds.forward_spans[:, 1].sum()
    assert len(backward) == folds.backward_spans[:, 1].sum()
    assert np.isclose((forward**2).sum(), (backward**2).sum())


def test_stages_can_be_run_one_by_one():
    net, image = load_net("denoise-2-75"), noisy(1, 60, 50)
    stages = net.at_level(15.0)  # of one channel
    half = cpu_net.run_net(image, image, net, stages[:4])
    assert np.array_equal(cpu_net.run_net(half, image, net, stages[4:]), run(image, net, 15.0))


def run_all_shapes():
    """Run nets on images of all shapes, with bounds checking."""
    assert numba.config.BOUNDSCHECK == 1  # type: ignore[attr-defined]
    for options in (CASES[0], CASES[-1]):  # the widest kernels, and colour
        net = a_pair(options)[1]
        for shape in SHAPES:
            run(noisy(3, *shape).astype(np.float32), net, 20.0, threads=1)
        several = noisy(45, 3, 20, 48).astype(np.float32)
        cpu_net.run_net(several, several, net, net.at_level(20.0, 3), threads=1)


def test_loops_stay_within_their_arrays():
    program = "from tests.engines.test_cpu_net import run_all_shapes; run_all_shapes()"
    with started([sys.executable, "-c", program], env=bounds.environment()) as process:
        assert process.wait(5 * PATIENCE) == 0
