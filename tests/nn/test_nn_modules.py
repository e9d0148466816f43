"""Modules behave as PyTorch's own do: saved, copied, compiled, exported, trained, in half precision."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import nn

import aniso
from aniso.nn import DiffusionBlock, DiffusionNet, DirectionalBlock, TensorDiffusion
from tests.nn.nn_registry import BLOCKS, EDGE, SPECIMENS, assert_close, batch, learnable, redraw

every_specimen = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)


def changed(specimen, **options):
    """A module that has been trained a little."""
    module = specimen.make(**options)
    redraw(module, torch.Generator().manual_seed(3), 0.5)
    return module


#: PyTorch has two tracers, and both take long: modules take them in turn, so that each meets all families.
traced_by_the_compiler = pytest.mark.parametrize("specimen", SPECIMENS[::2], ids=lambda each: each.name)
traced_for_export = pytest.mark.parametrize("specimen", SPECIMENS[1::2], ids=lambda each: each.name)


def traceable(specimen):
    """Tracing takes long: all that is learned is traced once, in the first block, else only the step."""
    options = {} if specimen is SPECIMENS[0] else {"learn": ["step"]}
    return changed(specimen, **options)


def inputs(specimen, dtype=torch.float32):
    return specimen.inputs(batch((2, 2, 6, 5), dtype=dtype))


@every_specimen
class TestCopies:
    def test_state_dict(self, specimen):
        module, fresh = changed(specimen), specimen.make()
        assert not torch.equal(fresh(*inputs(specimen)), module(*inputs(specimen)))
        assert fresh.load_state_dict(module.state_dict()) == nn.modules.module._IncompatibleKeys([], [])
        assert torch.equal(fresh(*inputs(specimen)), module(*inputs(specimen)))

    def test_only_what_is_learned_is_saved_with_its_range(self, specimen):
        module = specimen.make()
        learned = {name for name, _ in module.named_parameters()}
        ranges = set(module.state_dict()) - learned
        assert learned <= set(module.state_dict())
        assert {name.rpartition(".")[2] for name in ranges} <= {"bounds", "start"}

    def test_weights_in_a_file_without_pickle(self, specimen):
        module, fresh, file = changed(specimen), specimen.make(), io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        fresh.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(fresh(*inputs(specimen)), module(*inputs(specimen)))

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_copies_are_equal_and_independent(self, specimen, duplicate):
        module = changed(specimen)
        twin = duplicate(module)
        before = module(*inputs(specimen))
        assert torch.equal(twin(*inputs(specimen)), before)
        redraw(twin, torch.Generator().manual_seed(9), 1.0)
        assert torch.equal(module(*inputs(specimen)), before)
        assert not torch.equal(twin(*inputs(specimen)), before)

    def test_the_type_of_parameters(self, specimen):
        assert {p.dtype for p in specimen.make().parameters()} == {torch.float32}
        assert {p.dtype for p in specimen.make(dtype=torch.float64).parameters()} == {torch.float64}
        assert {p.dtype for p in specimen.make().double().parameters()} == {torch.float64}

    def test_the_result_has_the_type_of_the_image(self, specimen):
        for module in (specimen.make(), specimen.make(dtype=torch.float64)):
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                assert module(*inputs(specimen, dtype)).dtype == dtype

    def test_another_device(self, specimen):
        """Everything moves; the meta device has no values, so that images on it are rejected."""
        for module in (specimen.make(device="meta"), specimen.make().to("meta")):
            held = [*module.parameters(), *module.buffers()]
            assert all(each.device.type == "meta" for each in held)
            with pytest.raises(TypeError, match="device meta, which has no values"):
                module(*(x.to("meta") for x in inputs(specimen)))

    def test_its_repr_says_what_it_holds(self, specimen):
        assert "in [" in repr(specimen.make())


def test_without_learning_there_are_no_parameters():
    for kind in BLOCKS:
        block = kind(EDGE)
        assert not list(block.parameters())
        assert not block.state_dict()
        assert not block(batch()).requires_grad
    assert not list(DiffusionNet(EDGE, 4, shared=False).parameters())
    assert not list(TensorDiffusion().parameters())


@pytest.mark.parametrize("learn", [["contrast"], ["alpha", "step"], ("sigma",), "gamma", learnable(EDGE)])
def test_only_what_was_asked_for_is_learned(learn):
    block = DiffusionBlock(EDGE, learn=learn)
    names = {name.split(".")[1] for name, _ in block.named_parameters()}
    assert names == ({learn} if isinstance(learn, str) else set(learn))


@pytest.mark.parametrize(("shared", "copies"), [(True, 1), (False, 3)])
def test_shared_or_separate_parameters(shared, copies):
    for scheme, steps in ((None, 3), (aniso.FED(3), 9), (aniso.FSI(3), 6)):
        net = DiffusionNet(EDGE, steps, scheme=scheme, learn=["contrast", "step"], shared=shared)
        assert len(list(net.parameters())) == 2 * copies


def test_a_hundred_steps_stay_a_small_module():
    net = DiffusionNet(EDGE, 100, learn=learnable(EDGE))
    assert sum(p.numel() for p in net.parameters()) == 14


@pytest.mark.slow
class TestCompiled:
    @staticmethod
    def compiled(module, backend):
        torch._dynamo.reset()
        return torch.compile(module, fullgraph=True, backend=backend)

    @traced_by_the_compiler
    def test_one_graph(self, specimen):
        """Without breaks; run as it was traced."""
        module, given = traceable(specimen), inputs(specimen)
        with torch.no_grad():
            assert_close(self.compiled(module, "eager")(*given), module(*given), 1e-6)

    @pytest.mark.parametrize("name", ["SixChannelBlock", "tensors and ζ per cell"])
    def test_gradients(self, name):
        (specimen,) = (specimen for specimen in SPECIMENS if specimen.name == name)
        gradients = []
        for run in (lambda module: module, lambda module: self.compiled(module, "aot_eager")):
            module = changed(specimen, learn=["alpha", "step"])
            run(module)(*inputs(specimen)).square().sum().backward()
            gradients.append([p.grad for p in module.parameters()])
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
    def test_by_the_default_compiler(self, monkeypatch, tmp_path):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
        block = DiffusionBlock(aniso.PeronaMalik(0.5, 0.0))
        image = batch((2, 1, 8, 8), dtype=torch.float32)
        from torch._inductor import config

        with torch.no_grad(), config.patch(compile_threads=1):
            assert_close(self.compiled(block, "inductor")(image), block(image), 1e-6)


@pytest.mark.slow
@traced_for_export
def test_exported(specimen):
    module, given = traceable(specimen), inputs(specimen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's own
        program = torch.export.export(module, given)
    other = tuple(x.flip(0) for x in given)
    assert_close(program.module()(*other), module(*other), 1e-6)


def test_exported_for_any_batch_and_size():
    block, image = DiffusionBlock(aniso.PeronaMalik(0.5, 0.0)), batch((2, 1, 9, 8), dtype=torch.float32)
    dims = {0: torch.export.Dim("n", min=1), 2: torch.export.Dim("h", min=4), 3: torch.export.Dim("w", min=4)}
    program = torch.export.export(block, (image,), dynamic_shapes=(dims,))
    other = batch((3, 1, 12, 17), dtype=torch.float32)
    assert_close(program.module()(other), block(other), 1e-6)


@pytest.mark.parametrize("scheme", [None, aniso.FED(3), aniso.FSI(3)])
def test_checkpointing_changes_no_gradient(scheme):
    results = []
    for checkpoint in (False, True):
        net = DiffusionNet(EDGE, 6, scheme=scheme, learn=learnable(EDGE), checkpoint=checkpoint)
        image = batch(dtype=torch.float32).requires_grad_()
        net(image).square().sum().backward()
        results.append([image.grad, *(p.grad for p in net.parameters())])
    for plain, again in zip(*results, strict=True):
        assert torch.equal(plain, again)


def test_checkpointing_stores_less():
    stored = []
    for checkpoint in (False, True):
        total = 0

        def count(tensor):
            nonlocal total
            total += tensor.numel()
            return tensor

        net = DiffusionNet(EDGE, 6, checkpoint=checkpoint)
        image = batch((1, 1, 32, 32), dtype=torch.float32).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            net(image)
        stored.append(total)
    assert stored[1] < 0.1 * stored[0]


class TestTraining:
    @staticmethod
    def train(seed, **options):
        torch.manual_seed(seed)
        clean = torch.zeros(4, 1, 16, 16)
        clean[..., 4:12, 6:] = 1.0
        noisy = clean + 0.2 * torch.randn(clean.shape)
        net = DiffusionNet(EDGE, 3, learn=learnable(EDGE), **options)
        optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
        losses = []
        for _ in range(12):
            optimiser.zero_grad()
            loss = (net(noisy) - clean).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, net.state_dict()

    @pytest.mark.parametrize(
        "options", [{"shared": True}, {"shared": False}, {"scheme": aniso.FSI(1)}], ids=str
    )
    def test_it_lowers_the_loss_and_can_be_repeated(self, options):
        losses, weights = self.train(0, **options)
        assert losses[-1] < 0.9 * losses[0]
        again, same = self.train(0, **options)
        assert again == losses
        assert all(torch.equal(weights[name], same[name]) for name in weights)
        assert self.train(1, **options)[0] != losses

    def test_an_optimiser_with_absurd_steps_breaks_nothing(self):
        torch.manual_seed(0)
        image = torch.randn(2, 1, 12, 12)
        net = DiffusionNet(EDGE, 3, learn=learnable(EDGE))
        optimiser = torch.optim.SGD(net.parameters(), lr=1e12)
        for _ in range(10):
            optimiser.zero_grad()
            result = net(image)
            assert result.norm() <= image.norm() * (1 + 1e-5)
            (-result.square().sum()).backward()  # towards growth
            optimiser.step()

    def test_tensors_predicted_by_a_network(self):
        torch.manual_seed(0)
        clean = torch.zeros(2, 1, 12, 12)
        clean[..., 6:] = 1.0
        noisy = clean + 0.2 * torch.randn(clean.shape)
        network, diffusion = nn.Conv2d(1, 4, 3, padding=1), TensorDiffusion(3, learn=["step"])
        optimiser = torch.optim.Adam([*network.parameters(), *diffusion.parameters()], lr=0.05)
        losses = []
        for _ in range(12):
            optimiser.zero_grad()
            loss = (diffusion(noisy, network(noisy)) - clean).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.9 * losses[0]


@every_specimen
class TestHalfPrecision:
    def test_images(self, specimen):
        module, given = changed(specimen), inputs(specimen)
        for dtype, slack in ((torch.bfloat16, 1 / 128), (torch.float16, 1 / 1024)):
            # What is computed from the rounded image is exact but for rounding the result.
            halves = tuple(x.to(dtype) for x in given)
            expected = module(*(x.float() for x in halves))
            assert_close(module(*halves), expected, slack)

    def test_autocast_changes_nothing(self, specimen):
        module, given = changed(specimen), inputs(specimen)
        expected = module(*given)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = module(*given)
        assert result.dtype == torch.float32
        assert torch.equal(result, expected)


def test_autocast_around_a_network_that_predicts():
    torch.manual_seed(0)
    image, network = torch.randn(1, 1, 8, 8), nn.Conv2d(1, 3, 3, padding=1)
    diffusion = TensorDiffusion(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        numbers = network(image)
        result = diffusion(image, numbers)
        result.sum().backward()
    assert numbers.dtype == torch.bfloat16
    assert result.dtype == torch.float32
    assert_close(result, diffusion(image, network(image)), 1e-2)


def test_the_kernels_are_made_on_the_device_asked_for():
    block = DirectionalBlock(EDGE, learn=["contrast"], device="meta")
    assert {held.device.type for held in (*block.parameters(), *block.buffers())} == {"meta"}


def test_loading_gives_the_learned_numbers_back_whatever_the_net_was_built_with():
    image = batch()
    learn = ["contrast", "sigma", "min_diffusivity", "rho"]
    saved = DiffusionNet(aniso.CoherenceEnhancing(0.3, 0.4, 0.6, 0.05), 2, learn=learn, max_sigma=2.0)
    other = DiffusionNet(aniso.CoherenceEnhancing(7.0, 1.0, 0.9, 0.5), 2, learn=learn, max_sigma=2.0)
    assert not torch.allclose(saved(image), other(image))
    other.load_state_dict(saved.state_dict())
    torch.testing.assert_close(saved(image), other(image))


def test_a_learned_number_starts_where_the_model_says():
    model = aniso.CoherenceEnhancing(contrast=0.37, sigma=0.3, rho=1.1, min_diffusivity=1e-3)
    learn = ["contrast", "sigma", "rho", "min_diffusivity", "step"]
    block = DiffusionBlock(model, aniso.DeltaStencil(0.0, 0.0), learn=learn, step=0.2, dtype=torch.float64)
    values = block.values()
    for name in ("contrast", "sigma", "rho", "min_diffusivity"):
        assert values[name].item() == pytest.approx(getattr(model, name), rel=1e-12)
    assert (values["step"] * block.largest_step(values)).item() == pytest.approx(0.2, rel=1e-12)


def test_the_batch_may_be_dynamic_in_an_exported_net():
    (specimen,) = (specimen for specimen in SPECIMENS if specimen.name == "steered")  # as the presets are
    net, image = specimen.make(), batch((2, 1, 12, 10), dtype=torch.float32)
    exported = torch.export.export(net, (image,), dynamic_shapes=({0: torch.export.Dim("images", min=1)},))
    five = image.repeat(3, 1, 1, 1)[:5]
    torch.testing.assert_close(exported.module()(five), net(five))


def test_a_preset_uses_up_nobodys_random_numbers():
    before = torch.get_rng_state()
    with torch.device("meta"):
        net = aniso.nn.pretrained("denoise-20")
    assert torch.equal(torch.get_rng_state(), before)
    assert next(net.parameters()).device.type == "cpu"


def test_the_step_is_given_once():
    with pytest.raises(ValueError, match=r"given twice.*0\.1.*0\.4"):
        DiffusionNet(EDGE, 2, scheme=aniso.Explicit(0.1), step=0.4)


def test_what_is_printed_tells_model_and_step():
    text = repr(DiffusionBlock(aniso.PeronaMalik(contrast=4.0), learn=["sigma"], step=0.4))
    assert "PeronaMalik, contrast=4" in text
    assert "step=0.8 of the largest stable one" in text
    assert "?" in repr(DiffusionBlock(EDGE, learn=["contrast"], device="meta"))


def test_a_tiny_contrast_gives_numbers():
    for contrast in (1e-40, 1e-20):
        assert DiffusionBlock(aniso.EdgeEnhancing(contrast))(torch.ones(1, 1, 4, 4)).isfinite().all()
