"""A diffusion with larger kernels: stable for all parameters, symmetric, the same on every way to run it."""

import copy
import math
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import aniso
from aniso.engines.torch.net import responses, responses_adjoint
from aniso.nn import KernelDiffusionNet, kernels, presets
from aniso.noise.correlation import blur_noise, power_at_zero
from examples import train_denoiser, train_steered_net

SYMMETRIES = {
    "mirror x": lambda u: u.flip(-1),
    "mirror y": lambda u: u.flip(-2),
    "transpose": lambda u: u.transpose(-2, -1),
    "quarter turn": lambda u: u.rot90(1, (-2, -1)),
}
#: Smaller than a kernel, odd, and ordinary.
SHAPES = [(1, 1), (1, 7), (2, 3), (4, 4), (9, 14)]
SIZE = {torch.float32: 1e-5, torch.float64: 1e-12}


def images(*shape, seed=0, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    return (128 + 50 * torch.randn(*shape, generator=random, dtype=torch.float64)).to(dtype)


def a_net(dilations=(1, 2, 4), *, size=0.3, seed=1, dtype=torch.float64, **options):
    """A net whose parameters are all disturbed."""
    random = torch.Generator().manual_seed(seed)
    net = KernelDiffusionNet(dilations, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=random))
    return net


def open_stage(dilation, side, dtype=torch.float64) -> Any:
    """The largest step with all weights 1 and no way back: I − 2KᵀK/B."""
    stage = a_net([dilation], side=side, kernels=2, dtype=dtype).stages[0]
    with torch.no_grad():
        stage.levels.zero_()
        stage.levels[2 * 2 : -1, 0] = 1e6  # b and s
        stage.levels[-1, 0] = -1e6
    return stage


def norms(u):
    return u.double().flatten(1).norm(dim=1)


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
@pytest.mark.slow
class TestStability:
    @pytest.mark.parametrize("dtype", SIZE, ids=str)
    def test_no_parameters_make_the_norm_grow_or_change_the_mean(self, dtype, colour):
        random = torch.Generator().manual_seed(2)
        net = KernelDiffusionNet([1, 2], kernels=2, side=3, colour=colour, correlated=True, dtype=dtype)
        for draw in range(1000):
            shape = SHAPES[draw % len(SHAPES)]
            size, grey = [(1.0, 100.0), (30.0, 1.0), (1e30, 1e10), (1e-25, 255.0)][draw % 4]
            with torch.no_grad():
                for parameter in net.parameters():
                    kind = torch.randn if draw % 3 else torch.rand
                    parameter.copy_(size * kind(parameter.shape, generator=random, dtype=dtype))
                image = grey * torch.randn(2, 3 if colour else 1, *shape, generator=random, dtype=dtype)
                result = net(image, torch.tensor([2.0, 1e-3 * grey]), torch.tensor([0.0, 0.1 * (draw % 20)]))
            assert (norms(result) <= norms(image) * (1 + SIZE[dtype])).all(), draw
            change = (result.double() - image.double()).mean(dim=(2, 3)).abs()
            assert (change.amax(dim=1) <= norms(image) * SIZE[dtype]).all(), draw

    @pytest.mark.parametrize("dtype", SIZE, ids=str)
    def test_parameters_that_learn_to_break_it_do_not(self, dtype, colour):
        torch.manual_seed(0)
        net = KernelDiffusionNet([1, 2], kernels=2, colour=colour, dtype=dtype)
        image = images(1, 3 if colour else 1, 12, 11, dtype=dtype).sub(128).requires_grad_()
        optimiser = torch.optim.Adam([image, *net.parameters()], 0.3)
        for _ in range(60):
            growth = net(image, 20.0).norm() / image.norm()
            assert growth <= 1 + SIZE[dtype]
            optimiser.zero_grad()
            (-growth).backward()
            optimiser.step()
        assert growth > 0.8  # it did try


class TestBound:
    @pytest.mark.parametrize(("dilation", "side"), [(1, 3), (1, 5), (1, 7), (2, 5), (3, 3), (4, 5)])
    def test_the_bound_is_attained_but_for_the_frequencies_between_samples(self, dilation, side):
        stage = open_stage(dilation, side)
        kernel, u = stage.kernels(torch.float64).detach(), images(1, 1, 48, 45)
        u = u - u.mean()
        for _ in range(400):
            u = responses_adjoint(responses(u, kernel, dilation), kernel, u.shape, dilation)
            largest = u.norm().item()
            u = u / largest
        assert 0.85 < largest <= 1
        # The whole stage: the eigenvector changes its sign.
        level = torch.ones(1, 1).double()
        (result,) = stage((u,), (u,), level, kernels.chebyshev(level))
        torch.testing.assert_close(result, (1 - 2 * largest) * u, rtol=0, atol=1e-3)

    @pytest.mark.parametrize(("dilation", "side"), [(1, 3), (1, 5), (2, 5), (3, 3)])
    def test_no_frequency_exceeds_the_bound(self, dilation, side):
        """Kernels that oscillate between the samples, against a much finer grid."""
        for seed in range(20):
            torch.manual_seed(seed)
            stage: Any = KernelDiffusionNet([dilation], kernels=2, side=side, dtype=torch.float64).stages[0]
            kernel = stage.kernels(torch.float64).detach()[:, 0]
            hat = torch.tensor([dilation - abs(n) for n in range(1 - dilation, dilation)]).double()
            wide = torch.zeros(len(kernel), 1, dilation * (side - 1) + 1, dilation * (side - 1) + 1).double()
            wide[:, 0, ::dilation, ::dilation] = kernel
            smooth = torch.outer(hat, hat)[None, None] / dilation**4
            wide = torch.nn.functional.conv_transpose2d(wide, smooth)
            transfer = torch.fft.fft2(wide[:, 0], s=(509, 509)).abs().square().sum(dim=0)
            assert 0.8 < transfer.max() <= 1

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("dilation", [1, 2, 4])
    def test_the_second_convolution_is_the_adjoint_of_the_first(self, shape, dilation):
        (stage,) = a_net([dilation]).stages
        kernel, u = stage.kernels(torch.float64), images(2, 1, *shape)
        v = images(2, len(kernel), *shape, seed=5)
        left = (responses(u, kernel, dilation) * v).sum()
        right = (u * responses_adjoint(v, kernel, u.shape, dilation)).sum()
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-8)


class TestForm:
    @pytest.mark.parametrize("symmetry", SYMMETRIES.values(), ids=SYMMETRIES)
    def test_turning_the_image_turns_the_result(self, symmetry):
        net, image = a_net(), images(2, 2, 9, 13)
        torch.testing.assert_close(net(symmetry(image), 20.0), symmetry(net(image, 20.0)), rtol=0, atol=1e-9)

    def test_grey_values_may_be_shifted_and_negated(self):
        net, image = a_net(), images(2, 1, 9, 13)
        result = net(image, 20.0)
        torch.testing.assert_close(net(image + 50, 20.0), result + 50, rtol=0, atol=1e-9)
        torch.testing.assert_close(net(-image, 20.0), -result, rtol=0, atol=1e-9)

    def test_equal_channels_give_the_grey_result(self):
        net, image = a_net(), images(1, 1, 8, 9)
        torch.testing.assert_close(
            net(image.expand(1, 3, 8, 9), 20.0), net(image, 20.0).expand(1, 3, 8, 9), rtol=0, atol=1e-9
        )

    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_batch_with_one_level_per_image_gives_what_each_image_gives(self, shape):
        net, image, levels = a_net(), images(3, 2, *shape), (2.0, 20.0, 75.0)
        each = [net(one[None], level) for one, level in zip(image, levels, strict=True)]
        torch.testing.assert_close(net(image, torch.tensor(levels)), torch.cat(each), rtol=0, atol=1e-9)

    def test_the_level_counts_and_lies_between_its_ends(self):
        net, image = a_net(), images(1, 1, 9, 9)
        assert (net(image, 20.0) - net(image, 30.0)).abs().max() > 0.01
        polynomials = kernels.chebyshev(torch.tensor([[1.0], [2.0], [75.0], [200.0]]))
        torch.testing.assert_close(polynomials[0], polynomials[1])
        torch.testing.assert_close(polynomials[2], polynomials[3])
        torch.testing.assert_close(polynomials[1], torch.tensor([1.0, -1.0, 1.0, -1.0]))

    def test_kernels_have_no_mean_and_a_parity(self):
        (stage,) = a_net([1]).stages
        kernel = stage.kernels(torch.float64).detach()[:, 0]
        assert kernel.sum(dim=(1, 2)).abs().max() < 1e-12
        odd, even = kernel.chunk(2)
        torch.testing.assert_close(odd.flip((1, 2)), -odd)
        torch.testing.assert_close(even.flip((1, 2)), even)

    def test_the_default_net_is_small(self):
        assert sum(p.numel() for p in KernelDiffusionNet().parameters()) < 10_000

    @pytest.mark.parametrize(
        "options",
        [
            {"dilations": []},
            {"dilations": 3},
            {"dilations": "12"},
            {"dilations": [0]},
            {"kernels": 3},
            {"kernels": 0},
            {"side": 4},
            {"side": 1},
        ],
    )
    def test_bad_options_are_refused(self, options):
        with pytest.raises((TypeError, ValueError), match="Try dilations"):
            KernelDiffusionNet(**options)

    @pytest.mark.parametrize("noise", [-1.0, float("nan"), torch.ones(3), torch.ones(2, 1)])
    def test_bad_levels_are_refused(self, noise):
        with pytest.raises(ValueError, match="noise must"):
            a_net([1])(images(2, 1, 8, 8), noise)

    def test_without_noise_the_result_is_finite(self):
        assert a_net([1, 2])(images(2, 1, 8, 8), 0.0).isfinite().all()


class TestColour:
    @pytest.mark.parametrize("symmetry", SYMMETRIES.values(), ids=SYMMETRIES)
    def test_turning_the_image_turns_the_result(self, symmetry):
        net, image = a_net(colour=True), images(2, 3, 9, 13)
        torch.testing.assert_close(net(symmetry(image), 20.0), symmetry(net(image, 20.0)), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1)])
    def test_channels_may_be_exchanged_shifted_and_negated(self, order):
        net, image = a_net(colour=True), images(2, 3, 9, 13)
        result = net(image, 20.0)
        shift = torch.tensor([50.0, -20.0, 5.0]).double()[:, None, None]
        torch.testing.assert_close(net(image[:, order], 20.0), result[:, order], rtol=0, atol=1e-9)
        torch.testing.assert_close(net(image + shift, 20.0), result + shift, rtol=0, atol=1e-9)
        torch.testing.assert_close(net(-image, 20.0), -result, rtol=0, atol=1e-9)

    def test_brightness_is_what_the_grey_net_gives(self):
        net, image, levels = a_net(colour=True), images(2, 3, 9, 13), torch.tensor([20.0, 60.0]).double()
        brightness = net(image.mean(dim=1, keepdim=True), levels / 3**0.5)
        torch.testing.assert_close(
            net(image, levels).mean(dim=1, keepdim=True), brightness, rtol=0, atol=1e-9
        )

    def test_colours_depend_on_brightness_and_on_weights_of_their_own(self):
        net, image = a_net(colour=True), images(1, 3, 9, 13)

        def difference(image):
            result = net(image, 20.0).detach()
            return result[:, 0] - result[:, 1]

        first = difference(image)
        brighter = difference(image + images(1, 1, 9, 13, seed=3))
        assert (brighter - first).abs().max() > 0.01
        with torch.no_grad():
            for stage in net.stages:
                stage.colour_mixing[2].zero_()  # P
        alone = difference(image)
        torch.testing.assert_close(difference(image + images(1, 1, 9, 13, seed=3)), alone, rtol=0, atol=1e-9)
        assert (alone - first).abs().max() > 0.01

    @pytest.mark.parametrize("channels", [1, 2, 4])
    def test_other_images_do_not_use_the_weights_for_colours(self, channels):
        net, grey, image = (
            a_net(colour=True),
            KernelDiffusionNet([1, 2, 4], dtype=torch.float64),
            images(2, channels, 9, 13),
        )
        missing, unexpected = grey.load_state_dict(net.state_dict(), strict=False)
        assert missing == []
        assert all(".colour_" in name for name in unexpected)
        assert torch.equal(net(image, 20.0), grey(image, 20.0))
        three = images(2, 3, 9, 13)
        assert (net(three, 20.0) - grey(three, 20.0)).abs().max() > 0.01

    def test_the_default_net_is_small(self):
        assert sum(p.numel() for p in KernelDiffusionNet(colour=True).parameters()) < 10_000


class TestCorrelation:
    def test_white_noise_does_not_use_its_parameters(self):
        net = a_net([1, 2], colour=True, correlated=True)
        white = KernelDiffusionNet([1, 2], colour=True, dtype=torch.float64)
        missing, unexpected = white.load_state_dict(net.state_dict(), strict=False)
        assert missing == []
        assert unexpected == ["stages.0.correlation", "stages.1.correlation"]
        for channels in (1, 3):
            image = images(2, channels, 9, 13)
            assert torch.equal(net(image, 20.0), white(image, 20.0))
            assert (net(image, 20.0, 1.0) - white(image, 20.0)).abs().max() > 0.01

    def test_powers_are_those_of_the_power_at_low_frequencies(self):
        widths = [0.0, 0.3, 0.5, 1.0, 1.5]
        powers = kernels.correlation_powers(torch.tensor(widths).double()[:, None])
        logarithm = torch.tensor([math.log(power_at_zero(width, 2)) / 2 for width in widths]).double()
        torch.testing.assert_close(powers, torch.stack([logarithm, logarithm**2], 1), rtol=1e-4, atol=1e-9)
        assert (powers[0] == 0).all()
        assert torch.equal(kernels.correlation_powers(torch.tensor([[9.0]]).double())[0], powers[-1])

    def test_a_batch_with_one_correlation_per_image_gives_what_each_image_gives(self):
        net, image, widths = a_net(colour=True, correlated=True), images(3, 3, 9, 13), (0.0, 0.5, 1.5)
        each = [net(one[None], 20.0, width) for one, width in zip(image, widths, strict=True)]
        result = net(image, 20.0, torch.tensor(widths).double())
        torch.testing.assert_close(result, torch.cat(each), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("correlation", [-1.0, float("nan"), torch.ones(3), torch.ones(2, 1)])
    def test_bad_correlations_are_refused(self, correlation):
        with pytest.raises(ValueError, match="correlation must"):
            a_net([1], correlated=True)(images(2, 1, 8, 8), 20.0, correlation)

    def test_a_net_for_white_noise_refuses_correlated_noise(self):
        with pytest.raises(ValueError, match="no parameters for correlated noise"):
            a_net([1])(images(2, 1, 8, 8), 20.0, 1.0)

    def test_initial_values_are_what_the_kernels_see_of_the_noise(self):
        net: Any = KernelDiffusionNet([1, 2], correlated=True, dtype=torch.float64)
        train_denoiser.begin(net, a_net([1, 2]).state_dict())
        random = np.random.default_rng(0)
        white = random.standard_normal((1, 1, 256, 256))
        for width in (0.5, 1.0, 1.5):
            blurred = blur_noise(white, width, first_axis=2)
            powers = kernels.correlation_powers(torch.tensor([[width]]).double())[0]
            stage: Any
            for stage in net.stages:
                kernel = stage.kernels(torch.float64).detach()
                seen, before = (
                    responses(torch.from_numpy(noise), kernel, stage.dilation).std(dim=(0, 2, 3))[::4]
                    for noise in (blurred, white)
                )
                shift = stage.correlation.detach() @ powers
                torch.testing.assert_close((before / seen).log(), shift[:6], rtol=0, atol=0.15)
                assert (shift[6:] == 0).all()


@pytest.mark.slow
class TestPyTorch:
    @pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
    def test_gradients_are_right(self, colour):
        net = a_net([1, 2], kernels=2, side=3, colour=colour)
        image, level = (
            images(1, 3 if colour else 2, 4, 5).requires_grad_(),
            torch.tensor(20.0).double().requires_grad_(),
        )
        names, numbers = zip(*net.named_parameters(), strict=True)

        def result(image, level, *numbers):
            return torch.func.functional_call(net, dict(zip(names, numbers, strict=True)), (image, level))

        assert torch.autograd.gradcheck(result, (image, level, *numbers), atol=1e-4)

    @pytest.mark.parametrize("value", [0.0, 255.0, 1e-30, 1e30])
    @pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
    def test_no_gradient_is_nan_in_single_precision(self, value, colour):
        torch.manual_seed(0)
        net, shape = KernelDiffusionNet([1, 2], kernels=2, colour=colour), (1, 3 if colour else 1, 6, 6)
        for image in (torch.full(shape, value), value * (torch.rand(shape) > 0.5)):
            image = image.clone().requires_grad_()
            net.zero_grad()
            (net(image, 20.0) / max(value, 1)).square().sum().backward()
            gradients = [tensor.grad for tensor in (image, *net.parameters())]
            assert all(g is not None and g.isfinite().all() for g in gradients)

    @pytest.mark.parametrize("channels", [1, 3])
    def test_it_can_be_copied_and_compiled(self, channels):
        net = a_net([1, 2], dtype=torch.float32, kernels=2, colour=True)
        image = images(2, channels, 12, 10, dtype=torch.float32)
        result = net(image, 20.0)
        assert torch.equal(copy.deepcopy(net)(image, 20.0), result)
        torch._dynamo.reset()
        compiled = torch.compile(net, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(image, 20.0), result)
        torch.testing.assert_close(compiled(image, 25.0), net(image, 25.0))

    @pytest.mark.parametrize("channels", [1, 3])
    def test_it_is_exported_for_any_height_and_width(self, channels):
        net = a_net([1, 2], dtype=torch.float32, kernels=2, colour=True)
        example = (images(2, channels, 20, 24, dtype=torch.float32), torch.tensor([20.0, 30.0]))
        names = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
        exported = torch.export.export(
            net, example, dynamic_shapes=(names, {0: torch.export.Dim.DYNAMIC})
        ).module()
        for count, *size in ((2, 20, 24), (3, 31, 17), (5, 8, 40)):
            image = images(count, channels, *size, dtype=torch.float32)
            levels = torch.linspace(10, 50, count)
            torch.testing.assert_close(exported(image, levels), net(image, levels))

    def test_half_precision_and_autocast(self):
        net, image = a_net([1, 2], dtype=torch.float32), images(1, 1, 12, 10, dtype=torch.float32)
        assert net(image.half(), 20.0).dtype == torch.float16
        with torch.autocast("cpu", torch.bfloat16):
            inside = net(image, 20.0)
        assert torch.equal(inside, net(image, 20.0))


class TestPreset:
    @pytest.mark.parametrize("level", [5.0, 15.0, 50.0])
    def test_it_is_better_than_a_net_for_one_level(self, level):
        truths = [image[:128, :128].astype(np.float32) for image in train_steered_net.tested_images()]
        net, other = (
            np.mean(train_denoiser.qualities(train_denoiser.denoiser(name), truths, level))
            for name in ("denoise-2-75", "denoise-20")
        )
        assert net > other

    def test_it_knows_correlated_noise(self):
        truths = [image[:128, :128].astype(np.float32) for image in train_steered_net.tested_images()]
        net: Any = presets.pretrained("denoise-2-75")
        for width, gain in ((0.5, 0.5), (1.0, 2.0), (1.5, 2.0)):
            white = train_denoiser.qualities(lambda z, level, _: net(z, level), truths, 25.0, width)
            correlated = train_denoiser.qualities(net, truths, 25.0, width)
            assert np.mean(correlated) > np.mean(white) + gain

    def test_colours_have_less_noise_than_by_the_weights_for_grey_images(self):
        truth = aniso.samples.photograph("astronaut")[100:228, 160:288].astype(np.float32)
        net: Any = presets.pretrained("denoise-2-75")
        grey = KernelDiffusionNet()
        grey.load_state_dict(net.state_dict(), strict=False)
        for level in (15.0, 25.0, 50.0):
            (found,) = train_denoiser.qualities(net, [truth], level)
            (other,) = train_denoiser.qualities(grey, [truth], level)
            assert found > other + 0.5

    def test_it_does_not_increase_the_norm(self):
        net = presets.pretrained("denoise-2-75")
        image = images(3, 1, 21, 18, dtype=torch.float32)
        assert (norms(net(image, torch.tensor([2.0, 20.0, 75.0]))) <= norms(image) * (1 + 1e-6)).all()

    def test_it_has_a_card(self):
        card = (files("aniso.nn") / "trained" / "denoise-2-75.md").read_text("utf-8")
        count = sum(p.numel() for p in presets.pretrained("denoise-2-75").parameters())
        assert f"{count:,} parameters" in card


@pytest.mark.slow
class TestTraining:
    @pytest.fixture
    def folder(self, tmp_path):
        """A folder with a few images."""
        folder = tmp_path / "images"
        folder.mkdir()
        for seed in range(4):
            truth = aniso.samples.shapes(48, seed=seed).truth.clip(0, 255).astype(np.uint8)
            Image.fromarray(np.stack([truth, truth, 255 - truth], -1)).save(folder / f"{seed}.png")
        return folder

    @pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
    def test_an_interrupted_run_gives_the_same_and_learns(self, folder, tmp_path, colour):
        sources = [(train_denoiser.read_images(folder, colour=colour), False)]
        options = {"dilations": [1], "kernels": 2, "side": 3, "colour": colour}

        def a_run(name):
            (tmp_path / name).mkdir(exist_ok=True)
            return train_denoiser.Run(tmp_path / name, options, 0.03, 0)

        whole, part = a_run("whole"), a_run("part")
        for iteration in range(30):
            whole.step(sources, 2, 24, 30)
            part.step(sources, 2, 24, 30)
            if iteration == 11:
                part.save()
                part = a_run("part")
        assert part.iteration == 30
        assert part.losses == whole.losses
        for parameter, other in zip(part.averaged.parameters(), whole.averaged.parameters(), strict=True):
            assert torch.equal(parameter, other)
        assert np.mean(whole.losses[-5:]) < np.mean(whole.losses[:5]) - 0.3

    def test_the_commands_train_measure_and_write(self, folder, tmp_path, monkeypatch, capsys):
        def command(*arguments):
            monkeypatch.setattr("sys.argv", ["train_denoiser", *map(str, arguments), "--threads", "1"])
            threads = torch.get_num_threads()
            try:
                train_denoiser.main()
            finally:
                torch.set_num_threads(threads)
            return capsys.readouterr().out

        other = tmp_path / "colour"
        colour = ("--colour", "--start", "denoise-2-75", "--only", "colour", "--patch", 24, "--batch", 1)
        command("train", folder, other, "--iterations", 2, "--hold", 2, *colour)
        assert "noise 25: " in command("measure", other, folder, "--noise", 25, "--colour")
        command("write", other, folder, tmp_path / "other.json", "--hold", 2, "--colour")
        net = presets.from_text((tmp_path / "other.json").read_text("utf-8"))
        old = presets.pretrained("denoise-2-75").state_dict()
        for name, numbers in net.state_dict().items():
            first = numbers[: len(old[name.replace("colour_", "")])]
            kept = torch.equal(first, old[name.replace("colour_", "")])
            assert kept != (".colour_" in name), name
        assert "on 2 images" in (tmp_path / "other.md").read_text("utf-8")
        together = ("--start", "denoise-2-75", "--colour-images", folder, "--patch", 16, "--batch", 2)
        command("train", folder, tmp_path / "together", "--iterations", 5, "--hold", 2, *together)
        parameters = train_denoiser.saved_net(tmp_path / "together")[0].state_dict()
        assert not any(torch.equal(numbers, old[name]) for name, numbers in parameters.items())
        run = tmp_path / "run"
        net = ("--dilations", 1, "--kernels", 2, "--side", 3, "--patch", 24, "--batch", 1)
        command("train", folder, run, "--iterations", 2, *net)
        assert "noise 25: " in command("measure", run, folder, "--held-out")
        assert "noise 20: " in command("measure", "denoise-20", folder, "--noise", 20)
        command("write", run, folder, tmp_path / "net.json")
        restored = presets.from_text((tmp_path / "net.json").read_text("utf-8"))
        saved, _ = train_denoiser.saved_net(run)
        image = torch.rand(1, 1, 9, 9)
        assert torch.equal(restored(image, 20.0), saved(image, 20.0))
        assert "on 3 images" in (tmp_path / "net.md").read_text("utf-8")
        assert (run / "curve.csv").read_text().count("\n") == 2
        assert (run / "curve.png").exists()
