"""The triton engine: every kernel under the laws, on odd shapes; gradients, operators and errors.

Without a GPU the kernels run in Triton's interpreter, see tests/conftest.py. Where there is one, they run
there: this file is the check of a card.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import aniso
from aniso import engines
from aniso.engines.triton import arithmetic, operators
from aniso.engines.triton.evolution import Evolution
from benchmarks.gpu_launches import moved, record
from tests.conftest import HAS_GPU
from tests.engines.test_torch_engine import NoSynchronisation
from tests.nn.nn_registry import COHERENCE, EDGE, assert_close, batch
from tests.registry import GRIDS, IMAGES, INTERPRETED_ENGINE, SCHEMES, VOLUMES, random_tensors, rational

pytestmark = pytest.mark.slow

DEVICE = "cuda" if HAS_GPU else "cpu"
EVERY = [(grid, name) for grid in GRIDS for name in grid.models]
every_model = pytest.mark.parametrize(("grid", "name"), EVERY, ids=lambda part: getattr(part, "name", part))
CYCLES = (aniso.Explicit(0.2), aniso.FED(1), aniso.FSI(1))


def diffuse(image, model, time, **options):
    """Diffuse a NumPy array or a tensor on the device of the kernels, and return one of the same kind."""
    tensor = torch.as_tensor(image).to(DEVICE)
    result = aniso.diffuse(tensor, model, time, engine="triton", **options)
    return result.cpu().numpy() if isinstance(image, np.ndarray) else result.to(image.device)


def assert_like_the_reference(image, model, time, **options):
    expected = aniso.diffuse(image.astype(np.float64), model, time, engine="reference", **options)
    result = diffuse(image, model, time, **options)
    assert result.dtype == image.dtype
    INTERPRETED_ENGINE.assert_equal(result, expected)
    return result


class TestEveryModel:
    @every_model
    def test_computes_what_the_reference_does(self, grid, name):
        """Grey images in double precision, colour images in single precision, in turn with all schemes."""
        model, turn = grid.model(name), EVERY.index((grid, name))
        for dtype, channels, scheme in (
            ("float64", None, (SCHEMES[0], SCHEMES[2], SCHEMES[3])[turn % 3]),
            ("float32", 2, SCHEMES[0]),
        ):
            image = grid.image(dtype, channels)
            options: dict[str, Any] = {"scheme": scheme, "spacing": grid.spacing}
            options["channel_axis"] = None if channels is None else -1
            result = assert_like_the_reference(image, model, grid.step, **options)
            slack = INTERPRETED_ENGINE.tolerance(dtype) * abs(image).max()
            assert (abs(grid.mean(result) - grid.mean(image)) <= slack).all()
            assert abs(result - image).max() > 0.1  # something happened

    @every_model
    def test_a_constant_image_stays(self, grid, name):
        image = np.full(grid.shape, -7.3, "float32")
        INTERPRETED_ENGINE.assert_equal(diffuse(image, grid.model(name), 0.1), image)

    @pytest.mark.parametrize("name", IMAGES.models)
    def test_turning_the_image_turns_the_result(self, name):
        image, model, scheme = IMAGES.image("float64"), IMAGES.model(name), aniso.Explicit(IMAGES.step)
        straight = diffuse(image, model, IMAGES.step, scheme=scheme)
        for symmetry in IMAGES.symmetries[:3]:
            turned = np.ascontiguousarray(symmetry.image(image))
            result = diffuse(turned, symmetry.model(model), IMAGES.step, scheme=scheme)
            INTERPRETED_ENGINE.assert_equal(result, symmetry.image(straight))

    @pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
    def test_fixed_pixels_keep_their_bits(self, grid):
        image = grid.image("float32", 2)
        mask = np.random.default_rng(0).random(grid.shape) < 0.3
        mask[(0,) * grid.ndim] = mask[(-1,) * grid.ndim] = True
        for name, scheme in (("edge, weickert", SCHEMES[0]), ("fixed tensor", SCHEMES[3])):
            for u, axis in ((image, -1), (np.ascontiguousarray(image[..., 0]), None)):
                options: dict[str, Any] = {"scheme": scheme, "fixed": mask, "channel_axis": axis}
                result = assert_like_the_reference(u, grid.model(name), 2 * grid.step, **options)
                np.testing.assert_array_equal(result[mask], u[mask])
                assert (result[~mask] != u[~mask]).mean() > 0.9


class TestSizes:
    """Smaller than a cell, smaller than a Gaussian, larger than a tile."""

    SHAPES = ((1, 1), (1, 7), (6, 1), (2, 2), (67, 53), (1, 1, 1), (1, 5, 4), (3, 1, 2), (9, 11, 7))

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_images_and_volumes(self, shape):
        image = np.random.default_rng(1).normal(100, 20, shape)
        assert_like_the_reference(image, aniso.EdgeEnhancing(12.0, 1.0), 0.3)
        assert_like_the_reference(image, aniso.EdgeContinuing(12.0, rho=2.0), 0.3, scheme=aniso.FED(1))

    def test_signals(self):
        signal = np.random.default_rng(1).normal(100, 20, 20)
        for model in (
            aniso.EdgeEnhancing(12.0),
            aniso.CoherenceEnhancing(8.0, rho=1.0),
            random_tensors((20,)),
        ):
            assert_like_the_reference(signal, model, 0.4, spacing=0.8)

    def test_kernels_of_many_tiles(self, monkeypatch):
        """In the interpreter tiles are large; with those of a GPU, nothing changes."""
        from aniso.engines.triton import launches

        image, volume = (grid.image("float64", sample="noise") for grid in GRIDS)
        monkeypatch.setattr(launches, "INTERPRETED", False)
        for u in (image, volume):
            assert_like_the_reference(u, EDGE, 0.2)
            assert_like_the_reference(u, aniso.CoherenceEnhancing(8.0, rho=1.0), 0.1)


class TestProblems:
    def test_stencils(self):
        image, volume = (grid.image("float64") for grid in GRIDS)
        delta = np.random.default_rng(0).uniform(-0.2, 0.0, tuple(n + 1 for n in image.shape))
        members = [aniso.DeltaStencil.named(name) for name in ("forward-backward", "quality")]
        for stencil in (*members, aniso.FreeStencil(delta)):
            options: dict[str, Any] = {"stencil": stencil, "spacing": IMAGES.spacing}
            assert_like_the_reference(image, EDGE, 0.1, **options)
            assert_like_the_reference(image, IMAGES.model("fixed tensor"), 0.1, **options)
        for stencil in (aniso.DeltaStencil(0.1, -0.5), aniso.stencil.SplitStencil(0.3)):
            options = {"stencil": stencil, "spacing": VOLUMES.spacing}
            assert_like_the_reference(volume, EDGE, 0.1, **options)
            assert_like_the_reference(volume, VOLUMES.model("fixed tensor"), 0.1, **options)

    @pytest.mark.parametrize("shape", [(3, 2, 9, 7), (2, 1, 4, 5, 3)], ids=str)
    def test_a_batch_is_one_image_after_the_other(self, shape):
        images = batch(shape)
        for model in (EDGE, COHERENCE, random_tensors(shape[2:])):
            for scheme in (aniso.Explicit(), aniso.FSI(1)):
                expected = aniso.diffuse(images, model, 0.5, scheme=scheme, engine="torch")
                assert_close(diffuse(images, model, 0.5, scheme=scheme), expected, 1e-12)

    def test_diffusivities_of_the_user(self):
        for grid in GRIDS:
            model = aniso.EdgeEnhancing(12.0, 0.5, rational)
            for channels in (None, 2):
                axis = None if channels is None else -1
                assert_like_the_reference(grid.image("float64", channels), model, 0.1, channel_axis=axis)

    def test_half_precision_is_computed_in_single_precision(self):
        half = batch(dtype=torch.float16)
        result = diffuse(half, EDGE, 0.5)
        assert result.dtype == torch.float32
        assert_close(result, aniso.diffuse(half.float(), EDGE, 0.5, engine="torch"), 2e-6)

    def test_huge_and_tiny_grey_values(self):
        image = batch(dtype=torch.float32)[0, 0]
        for scale in (1e-30, 1e15, 1e30):
            model = aniso.PeronaMalik(1.0, 0.5)
            expected = aniso.diffuse(image * scale, model, 0.5, engine="torch")
            assert_close(diffuse(image * scale, model, 0.5), expected, 2e-6)

    def test_views_and_snapshots(self):
        images = batch((2, 2, 14, 7))[:, :, ::2].to(DEVICE)
        times = [0.2, 0.5]
        for (_, result), (_, expected) in zip(
            aniso.scale_space(images, EDGE, times, engine="triton"),
            aniso.scale_space(images, EDGE, times, engine="torch"),
            strict=True,
        ):
            assert_close(result, expected, 1e-12)
            result.zero_()  # the caller's own

    def test_a_plan_is_applied_on_the_device(self):
        noisy = aniso.samples.rings(24, noise=20.0).image
        _, plan = aniso.enhance(noisy, return_info=True)
        tensor = torch.as_tensor(noisy).to(DEVICE)
        assert_close(plan.apply(tensor, engine="triton"), plan.apply(tensor, engine="torch"), 1e-5)


class TestGradients:
    """Against differences, and twice; tensors that are given have the same kernel as adjoint."""

    @staticmethod
    def function(model, scheme, **options):
        return lambda u: aniso.diffuse(u, model, 0.4, scheme=scheme, engine="triton", **options)

    @pytest.mark.parametrize("scheme", CYCLES, ids=repr)
    def test_of_given_tensors(self, scheme):
        mask = np.zeros((4, 3), bool)
        mask[1, 1] = mask[0, 2] = True
        image = batch((2, 2, 4, 3)).to(DEVICE).requires_grad_()
        for fixed in (None, mask):
            function = self.function(random_tensors((4, 3)), scheme, fixed=fixed)
            assert fixed is None or gradcheck(function, image, fast_mode=True)
            eager = aniso.diffuse(
                image, random_tensors((4, 3)), 0.4, scheme=scheme, fixed=fixed, engine="torch"
            )
            cotangent = torch.randn_like(image)
            (expected,) = torch.autograd.grad(eager, image, cotangent)
            (found,) = torch.autograd.grad(function(image), image, cotangent)
            assert_close(found, expected, 1e-12)

    @pytest.mark.parametrize("channels", [1, 2])
    @pytest.mark.parametrize("model", [EDGE, COHERENCE, aniso.Homogeneous()], ids=lambda m: type(m).__name__)
    def test_of_tensors_that_follow_the_image(self, model, channels):
        image = batch((1, channels, 4, 3)).to(DEVICE).requires_grad_()
        scheme = (aniso.Explicit(0.2), aniso.FSI(1))[channels - 1]
        assert gradcheck(self.function(model, scheme), image, fast_mode=True)

    def test_of_volumes(self):
        volume = batch((1, 1, 3, 2, 3)).to(DEVICE).requires_grad_()
        for model in (EDGE, random_tensors((3, 2, 3))):
            assert gradcheck(self.function(model, aniso.Explicit(0.2)), volume, fast_mode=True)

    def test_twice(self):
        image = batch((1, 1, 3, 3)).to(DEVICE).requires_grad_()
        for model, scheme in ((EDGE, CYCLES[0]), (EDGE, CYCLES[2]), (random_tensors((3, 3)), CYCLES[2])):
            assert gradgradcheck(self.function(model, scheme), image, fast_mode=True)

    def test_only_if_asked_for(self):
        image = batch((1, 1, 4, 3)).to(DEVICE).requires_grad_()
        function = self.function(EDGE, CYCLES[0])
        assert function(image).requires_grad
        assert not function(image.detach()).requires_grad


def operands(shape=(2, 2, 5, 4), model=EDGE, fixed=None):
    """An evolution, images, and what the operators for it take besides images."""
    images = batch(shape).to(DEVICE)
    stencil, spacings = aniso.DeltaStencil(), (1.0,) * (len(shape) - 2)
    evolution = Evolution(images, engines.Problem(model, stencil, spacings, fixed, engine="triton"))
    return evolution, images, evolution._context


class TestOperators:
    @pytest.mark.parametrize("shape", [(2, 1, 5, 4), (1, 1, 3, 2, 3)], ids=str)
    def test_are_what_they_are_registered_as(self, shape):
        evolution, images, context = operands(shape)

        def check(operator, arguments):
            tests = ("test_schema", "test_faketensor", "test_autograd_registration")
            torch.library.opcheck(operator, arguments, test_utils=tests)

        check(operators.fused_step, (images.clone().requires_grad_(), *context, 0.1))
        check(operators.stored_tensors, (images.clone().requires_grad_(), *context))
        tensors = operators.stored_tensors(images, *context).requires_grad_()
        for before in (None, images.flip(-1).requires_grad_()):
            check(
                operators.frozen_step,
                (images.clone().requires_grad_(), before, tensors, *context, 1.5, 0.1, True),
            )
        del evolution

    def test_can_be_compiled(self):
        evolution, images, context = operands()

        def two_steps(u):
            tensors = torch.ops.aniso.stored_tensors(u, *context)
            first = torch.ops.aniso.frozen_step(u, None, tensors, *context, 1.0, 0.1, True)
            return torch.ops.aniso.frozen_step(first, u, tensors, *context, 1.4, 0.1, True)

        compiled = torch.compile(two_steps, fullgraph=True, backend="aot_eager")
        u, v = (images.clone().requires_grad_() for _ in range(2))
        result, expected = compiled(u), two_steps(v)
        assert torch.equal(result, expected)
        result.square().sum().backward()
        expected.square().sum().backward()
        assert u.grad is not None
        assert v.grad is not None
        assert_close(u.grad, v.grad, 1e-12)
        del evolution

    def test_gradients_of_stored_tensors(self):
        evolution, images, context = operands((1, 2, 3, 3))
        tensors = operators.stored_tensors(images, *context).detach().requires_grad_()
        assert gradcheck(
            lambda t: operators.frozen_step(images, None, t, *context, 1.0, 0.1, True),
            tensors,
            fast_mode=True,
        )
        del evolution

    @pytest.mark.parametrize("scheme", [aniso.Explicit(), aniso.FSI(1)], ids=repr)
    def test_never_make_the_host_wait(self, scheme):
        for model in (EDGE, COHERENCE, random_tensors((5, 4))):
            evolution, _, _ = operands((2, 1, 5, 4), model, np.zeros((5, 4), bool))
            cycle = next(iter(scheme.plan(0.4, 0.1)))
            with NoSynchronisation(), record() as launches:
                evolution.advance(cycle)
                evolution.advance(cycle)
            assert launches

    def test_release_what_they_use(self):
        """Neither an evolution nor its gradients keep anything alive when they are gone."""
        import gc
        import weakref

        evolution, images, _ = operands()
        evolution._u = images.requires_grad_()
        evolution.advance(next(iter(aniso.FED(1).plan(0.4, 0.1))))
        steering, loss = weakref.ref(evolution._steering), evolution.image.sum()
        del evolution
        loss.backward()  # which still needs it
        del loss
        gc.collect()
        assert steering() is None


class TestTraffic:
    """Bytes per pixel of large images in single precision; an eager explicit step moves 1047."""

    @pytest.mark.parametrize(
        ("shape", "scheme", "first", "others"),
        [
            ((256, 256), aniso.Explicit(), 28, 0),
            ((256, 256), aniso.FED(1), 16 + 16.2 + 20.2, 20.2),
            ((256, 256), aniso.FSI(1), 16 + 16.2 + 20.2, 24.2),
            ((64, 64, 64), aniso.Explicit(), 36, 0),
            ((64, 64, 64), aniso.FED(1), 24 + 29.2 + 33.2, 33.2),
        ],
        ids=["explicit", "FED", "FSI", "volume, explicit", "volume, FED"],
    )
    def test_edge_enhancing_diffusion(self, shape, scheme, first, others):
        evolution = Evolution(
            torch.zeros(1, 1, *shape, device=DEVICE),
            engines.Problem(aniso.EdgeEnhancing(3.5), aniso.DeltaStencil(), (1.0,) * len(shape)),
        )
        cycle = next(iter(scheme.plan(2.0, 0.25)))
        with record() as launches:
            evolution.advance(cycle)
        per_pixel = sum(map(moved, launches)) / np.prod(shape)
        assert per_pixel <= (first + others * (len(cycle.steps) - 1)) * 1.01


def test_kernels_compile_without_spilling(tmp_path):
    """For a GPU of each maker, neither of which is needed; `python -m benchmarks.gpu --compile` tries all."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "benchmarks.gpu", "--compile", "--quick"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert "H100" in done.stdout
    assert "MI300X" in done.stdout
    assert "No kernel spills registers" in done.stdout


class TestWhoComputes:
    def test_a_gpu_has_fused_kernels_if_triton_is_there(self, monkeypatch):
        monkeypatch.setattr(engines, "_has_compiler", lambda: True)
        assert engines.default("torch", "cuda") == engines.default("torch", "xpu") == "triton"
        assert engines.default("torch") == engines.default("torch", "mps") == "torch"
        assert engines.default("numpy") == engines.default_for(np.zeros(3)) == "cpu"
        assert engines.default_for(torch.zeros(3)) == "torch"
        monkeypatch.setattr(engines, "_installed_version", lambda package: (3, 3))
        assert engines.default("torch", "cuda") == "torch"
        with pytest.raises(
            ImportError, match=r'needs the package triton>=3.4. Install it with: pip install "aniso'
        ):
            diffuse(np.eye(3), EDGE, 1.0)

    @pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
    def test_the_interpreter_runs_here(self):
        assert arithmetic.INTERPRETED

    def run(self, program, **variables):
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment | variables)
        return done.stdout + done.stderr.strip().split("\n")[-1]

    def test_on_the_cpu_only_the_interpreter_does(self):
        program = (
            "import aniso, numpy; aniso.diffuse(numpy.eye(4), aniso.Homogeneous(), 1.0, engine='triton')"
        )
        answer = self.run(program)
        assert answer.startswith(
            "ValueError: the triton engine takes PyTorch tensors on a GPU, got an image on cpu"
        )
        assert "TRITON_INTERPRET is 1" in answer
        assert self.run(program, TRITON_INTERPRET="1") == ""

    def test_without_triton_the_rest_works(self):
        hide = (
            "import importlib.machinery as m, sys\n"
            "class Blind:\n"
            "    @staticmethod\n"
            "    def find_spec(name, path=None, target=None):\n"
            "        hidden = name.split('.')[0] == 'triton'\n"
            "        return None if hidden else m.PathFinder.find_spec(name, path, target)\n"
            "sys.meta_path[:] = [Blind if f is m.PathFinder else f for f in sys.meta_path]\n"
            "import aniso, torch\n"
            "u, d = torch.eye(4), aniso.EdgeEnhancing(1.0)\n"
        )
        assert self.run(hide + "print(aniso.diffuse(u, d, 1.0).sum().round().item())").strip() == "4.0"
        answer = self.run(hide + "aniso.diffuse(u, d, 1.0, engine='triton')")
        assert answer.startswith("ImportError: the triton engine needs the package triton")
        assert 'pip install "aniso[triton]"' in answer

    def test_only_this_engine_imports_it(self):
        program = (
            "import aniso, numpy, torch, sys\n"
            "aniso.diffuse(torch.eye(4), aniso.EdgeEnhancing(1.0), 1.0)\n"
            "aniso.nn.pretrained('denoise-2-75')(torch.eye(4)[None, None], 20.0)\n"
            "print([name for name in sys.modules if name.startswith('aniso.engines.triton')])"
        )
        assert self.run(program).strip() == "[]"
