"""The triton engine and devices: which ones it takes, large images, and on a GPU streams and graphs."""

import contextlib
import dataclasses
import shutil
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime.interpreter import interpreter_builder

import aniso
from aniso import engines
from aniso.engines.triton import devices, launches
from aniso.engines.triton.evolution import Evolution
from aniso.engines.triton.launches import Launch
from aniso.engines.triton.net import learned_part
from aniso.formulas.gaussian import edge_fold
from benchmarks.gpu_launches import record
from tests.conftest import HAS_GPU
from tests.engines.test_torch_engine import NoSynchronisation
from tests.engines.test_triton import operands
from tests.nn.nn_registry import EDGE, assert_close, batch
from tests.registry import random_tensors

pytestmark = pytest.mark.slow

CARD = torch.device("cuda", 1)


class TestChoice:
    """What is chosen on machines with a GPU, none of which is here."""

    @pytest.fixture
    def capability(self, monkeypatch):
        found = [(8, 6)]
        monkeypatch.setattr(engines, "_has_compiler", lambda: True)
        monkeypatch.setattr(torch.version, "hip", None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: found[0])
        return found

    def test_old_cards_have_no_kernels(self, capability, monkeypatch):
        image = types.SimpleNamespace(device=CARD)
        monkeypatch.setattr(devices, "INTERPRETED", False)
        assert engines.default_for(image) == "triton"
        devices.check_device(CARD)
        capability[0] = (6, 1)
        assert engines.default_for(image) == "torch"
        with pytest.raises(ValueError, match=r"compute capability 7.0 or later, and cuda:1 is an older one"):
            devices.check_device(CARD)
        monkeypatch.setattr(torch.version, "hip", "6.4")  # numbers of AMD mean something else
        assert engines.default_for(image) == "triton"

    def test_nor_do_machines_without_a_c_compiler(self, capability, monkeypatch):
        monkeypatch.undo()
        monkeypatch.setattr(shutil, "which", lambda name: None)
        monkeypatch.delenv("CC", raising=False)
        assert engines.default("torch", "cuda") == "torch"
        monkeypatch.setenv("CC", "cc")
        assert engines.default("torch", "cuda") == "triton"

    @pytest.mark.parametrize("platform", ["darwin", "win32"])
    def test_on_other_systems_the_error_says_so(self, platform, monkeypatch):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(engines, "_missing", lambda engine: engine.needs[-1])
        assert engines.default("torch", "cuda") == "torch"
        with pytest.raises(
            ImportError, match=r'pip install "aniso\[triton\]"\. Triton exists for Linux only'
        ):
            aniso.diffuse(torch.eye(4), EDGE, 1.0, engine="triton")

    @pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
    def test_the_interpreter_takes_no_other_tensors(self):
        with pytest.raises(ValueError, match="on cuda:1, but TRITON_INTERPRET is set"):
            devices.check_device(CARD)


def test_kernels_start_on_the_device_of_the_image(monkeypatch):
    """Which need not be the current one; Triton takes that, and its current stream."""
    current, started = [0], []

    @contextlib.contextmanager
    def device(other):
        before, current[0] = current[0], other.index
        yield
        current[0] = before

    class Kernel:
        def __getitem__(self, grid):
            return lambda **arguments: started.append((grid, current[0]))

    monkeypatch.setattr(torch.cuda, "device", device)
    out: Any = types.SimpleNamespace(device=CARD)
    Launch(Kernel(), {"out": out}, {}, 70_000, 4).run()  # more than 65,535, in the first dimension
    assert started == [((70_000,), 1)]
    assert current == [0]


class TestTorch:
    def test_operators_are_watched_for_synchronisation(self, monkeypatch):
        """An operator that waits is found, though PyTorch does not show what happens inside one."""
        from aniso.engines.triton import steering

        step = steering.FusedSteering.fused_step
        monkeypatch.setattr(
            steering.FusedSteering, "fused_step", lambda self, u, tau: step(self, u, tau * u.max().item())
        )
        evolution, _, _ = operands((1, 1, 5, 4))
        with pytest.raises(AssertionError, match="makes the host wait"), NoSynchronisation(), record():
            evolution.advance(next(iter(aniso.Explicit(0.1).plan(0.1, 0.1))))

    def test_a_function_that_calls_diffuse_can_be_compiled(self):
        images = batch((1, 1, 5, 4))
        torch._dynamo.reset()
        compiled = torch.compile(lambda u: aniso.diffuse(u, EDGE, 0.3, engine="triton"), backend="aot_eager")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
            for u in (images, images + 1):  # the second one has a steering of its own
                assert_close(compiled(u), aniso.diffuse(u, EDGE, 0.3, engine="torch"), 1e-12)

    def test_keys_are_never_used_again(self):
        keys = set()
        for _ in range(5):
            evolution, _, (_, key) = operands((1, 1, 5, 4))
            assert key not in keys
            keys.add(key)
            del evolution

    def test_layouts(self):
        """Channels last, expanded and transposed images, in inference mode."""
        images = batch((2, 2, 5, 4))
        for view in (
            images.contiguous(memory_format=torch.channels_last),
            images[:1].expand(3, 2, 5, 4),
            images.transpose(2, 3),
        ):
            with torch.inference_mode():
                found = aniso.diffuse(view, EDGE, 0.2, engine="triton")
            assert_close(found, aniso.diffuse(view.contiguous(), EDGE, 0.2, engine="torch"), 1e-12)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
class TestLargeImages:
    """The last tile of images with more than 2³¹ pixels, in files with holes, against a corner of them."""

    HEIGHT, WIDTH = 36_002, 64_062  # the last tiles of pixels and of cells are not whole
    CORNER = (12, 80)

    @pytest.fixture(autouse=True)
    def only_the_last_program(self, monkeypatch):
        monkeypatch.setattr(launches, "INTERPRETED", False)  # tiles of a GPU
        self.last = 0
        monkeypatch.setattr(
            interpreter_builder,
            "set_grid_idx",
            lambda x, y, z: setattr(interpreter_builder, "grid_idx", (self.last, 0, 0)),
        )

    def enlarge(self, corner, path):
        """A tensor (entries, …) of the large size with values at its end, not in memory."""
        more = np.array(corner.shape[1:]) - self.CORNER  # cells
        shape = (len(corner), *(np.array([self.HEIGHT, self.WIDTH]) + more))
        large = np.memmap(path, np.float32, "w+", shape=tuple(map(int, shape)))
        large[:, -corner.shape[1] :, -corner.shape[2] :] = corner
        return torch.from_numpy(large)

    def run_last(self, launch, folder):
        """Start the last program of a launch for the corner, as it would be for the large image."""
        lengths = {"height": self.HEIGHT, "width": self.WIDTH}
        cells = (self.HEIGHT + 1) * (self.WIDTH + 1)
        if "per_entry" in launch.arguments:
            lengths["per_entry"] = cells
        arguments: dict[str, Any] = {**launch.arguments, **lengths}
        for name, tensor in launch.arguments.items():
            if isinstance(tensor, torch.Tensor) and tensor.shape[-2:] in (
                self.CORNER,
                tuple(n + 1 for n in self.CORNER),
            ):
                corner = tensor.reshape(-1, *tensor.shape[-2:]).numpy()
                arguments[name] = self.enlarge(corner, folder / f"{name}.raw")
        if "fold" in arguments:
            length = self.WIDTH if launch.constants["ALONG_X"] else self.HEIGHT
            arguments["fold"] = torch.from_numpy(edge_fold(length, arguments["reach"]).astype(np.int32))
        over_cells = arguments["out"].shape[-1] == self.WIDTH + 1
        shape = (self.HEIGHT + over_cells, self.WIDTH + over_cells)
        tile = launches.Tile(launch.constants["HEIGHT"], launch.constants["WIDTH"])
        self.last = tile.over(1, *shape)[1] - 1
        dataclasses.replace(launch, arguments=arguments, programs=1).run()
        rows, columns = (
            length % size or size for length, size in zip(shape, (tile.height, tile.width), strict=True)
        )
        return arguments["out"][:, -rows:, -columns:]

    def check(self, compute, tmp_path, count):
        """Compare all launches of a function with what they return for the corner."""
        recorded: list[Launch] = []
        start = Launch.run

        def keep(launch):
            recorded.append(launch)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    interpreter_builder,
                    "set_grid_idx",
                    lambda x, y, z: setattr(interpreter_builder, "grid_idx", (x, y, z)),
                )
                start(launch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Launch, "run", keep)
            compute()
        assert len(recorded) == count
        for number, launch in enumerate(recorded):
            folder = tmp_path / str(number)
            folder.mkdir()
            corner = launch.arguments["out"]
            found = self.run_last(launch, folder)
            expected = corner.reshape(found.shape[0], *corner.shape[-2:])[
                :, -found.shape[1] :, -found.shape[2] :
            ]
            assert_close(found, expected, 1e-6)
            assert found.abs().max() > 0
            shutil.rmtree(folder)

    def evolution(self, model):
        image = batch((1, 1, *self.CORNER), dtype=torch.float32)
        return Evolution(image, engines.Problem(model, aniso.DeltaStencil(), (1.0, 1.0), engine="triton"))

    def test_steps(self, tmp_path):
        evolution = self.evolution(aniso.EdgeEnhancing(12.0, 0.5))
        step, inner = (next(iter(scheme.plan(0.4, 0.1))) for scheme in (aniso.Explicit(0.1), aniso.FED(1)))
        self.check(lambda: evolution.advance(step), tmp_path, 3)
        two = dataclasses.replace(inner, steps=inner.steps[:2])
        self.check(lambda: evolution.advance(two), tmp_path, 5)
        given = self.evolution(random_tensors(self.CORNER))
        self.check(lambda: given.advance(step), tmp_path, 1)

    def test_stages_of_a_net(self, tmp_path):
        image = batch((1, 1, *self.CORNER), dtype=torch.float32)
        net: Any = aniso.nn.KernelDiffusionNet([1], kernels=2, side=3).requires_grad_(False)
        level = torch.full((1, 1), 20.0)
        self.check(
            lambda: net.stages[0](
                (image,), (image,), level, aniso.nn.kernels.chebyshev(level), None, learned_part
            ),
            tmp_path,
            4,
        )


@pytest.mark.cuda
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
class TestOnAGpu:
    def test_steps_and_nets_can_be_captured(self):
        """By a CUDA graph, which is then replayed with another image."""
        net: Any = aniso.nn.pretrained("denoise-2-75", device="cuda").requires_grad_(False)
        images = batch((2, 1, 67, 53), dtype=torch.float32).cuda()
        problem = engines.Problem(EDGE, aniso.DeltaStencil(), (1.0, 1.0), engine="triton")
        cycle = next(iter(aniso.FSI(1).plan(0.4, 0.1)))

        def run(u):
            evolution._u = u
            evolution.advance(cycle)
            return net(evolution.image, 20.0)

        evolution, given = Evolution(images, problem), images.clone()
        run(given)  # compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = run(given)
        given.copy_(images.flip(0))
        graph.replay()
        assert_close(result, run(images.flip(0)), 1e-6)

    def test_streams(self):
        images = batch((1, 1, 500, 500), dtype=torch.float32).cuda()
        expected = aniso.diffuse(images, EDGE, 2.0, engine="triton")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            found = aniso.diffuse(images, EDGE, 2.0, engine="triton")
        stream.synchronize()
        assert torch.equal(found, expected)

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one GPU")
    def test_another_card_than_the_current_one(self):
        images = batch((1, 1, 67, 53), dtype=torch.float32).cuda(1)
        found = aniso.diffuse(images, EDGE, 2.0, engine="triton")
        assert found.device == images.device
        assert_close(found, aniso.diffuse(images, EDGE, 2.0, engine="torch"), 2e-6)
