"""What is particular to volumes on the cpu engine: tiles, threads, compilation, memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aniso
from aniso.engines.cpu import cache, generate, volume_evolution

SOURCE = Path(aniso.__file__).parent
EDGES = aniso.EdgeEnhancing(contrast=12.0)
LINES = aniso.CoherenceEnhancing(contrast=8.0, rho=1.0)

#: More than one tile along each axis, and enough voxels for several threads.
LARGE = (70, 40, 270)
#: The same with the fixture `small_tiles`.
SMALL = (12, 11, 13)


def volume(shape, channels=None, seed=0):
    """A bright oblique half space under noise, values of order 100."""
    rng = np.random.default_rng(seed)
    z, y, x = np.indices(shape)
    grey = np.where(2 * x + y - z > shape[2], 180.0, 60.0) + rng.normal(0, 5, shape)
    if channels is None:
        return grey
    return np.stack([(1 - 0.2 * k) * grey + rng.normal(0, 5, shape) for k in range(channels)], -1)


def turning_tensors(shape, seed=5):
    """Tensors that turn and stretch from cell to cell, on the boundary too; some of rank one."""
    rng = np.random.default_rng(seed)
    cells = tuple(n + 1 for n in shape)
    root = rng.normal(size=(*cells, 3, 3)) * rng.integers(0, 2, (*cells, 1, 3))
    tensor = root @ np.swapaxes(root, -1, -2)
    tensor /= np.maximum(np.trace(tensor, axis1=-2, axis2=-1), 1.0)[..., None, None]
    return aniso.FixedTensor(np.moveaxis(tensor, (-2, -1), (0, 1)))


#: Every way through the engine: fused, stored tensors, averages, channels, cycles, tensors of the user.
WAYS: dict[str, tuple[Any, Any, int | None]] = {
    "fused": (EDGES, aniso.Explicit(), None),
    "averaged": (LINES, aniso.Explicit(), None),
    "averaged FED": (LINES, aniso.FED(cycles=1), None),
    "colour": (EDGES, aniso.Explicit(), 2),
    "FED": (EDGES, aniso.FED(cycles=1), None),
    "FSI": (EDGES, aniso.FSI(cycles=1), 2),
    "fixed tensor": (None, aniso.Explicit(), None),
}


def filtered(way, shape=SMALL, dtype="float32", time=0.9, **options):
    model, scheme, channels = WAYS[way]
    image = volume(shape, channels).astype(dtype)
    axis = None if channels is None else -1
    model = turning_tensors(shape) if model is None else model
    return aniso.diffuse(image, model, time, scheme=scheme, channel_axis=axis, **options)


@pytest.mark.parametrize("way", WAYS)
class TestTiles:
    def test_any_number_of_threads_gives_the_same_bits(self, way, small_tiles):
        alone = filtered(way, threads=1)
        for threads in (2, 3):
            np.testing.assert_array_equal(filtered(way, threads=threads), alone)

    def test_they_do_not_show(self, way, small_tiles):
        expected = filtered(way, dtype="float64", engine="reference")
        np.testing.assert_allclose(filtered(way, dtype="float64"), expected, rtol=0, atol=2e-10)


@pytest.mark.parametrize("way", ["FED", "FSI", "averaged FED", "fixed tensor FSI"])
def test_cycles_longer_than_a_pass(way, small_tiles, monkeypatch):
    """They store the tensors, and pass the volume before on."""
    ways = {"fixed tensor FSI": (None, aniso.FSI(1), None)}
    monkeypatch.setitem(WAYS, way, WAYS.get(way) or ways[way])
    alone = filtered(way, time=6.0, threads=1)  # five steps
    np.testing.assert_array_equal(filtered(way, time=6.0, threads=3), alone)
    expected = filtered(way, dtype="float64", time=6.0, engine="reference")
    np.testing.assert_allclose(filtered(way, dtype="float64", time=6.0), expected, rtol=0, atol=2e-10)


@pytest.mark.parametrize("time", [0.9, 6.0, 40.0], ids=["one pass", "two passes", "many passes"])
@pytest.mark.parametrize("way", ["FED", "FSI", "averaged FED", "wide FSI"])
def test_slabs_do_not_show(way, time, monkeypatch):
    """Passes follow each other slab by slab, with the tensors that are needed at a time."""
    wide = aniso.CoherenceEnhancing(contrast=8.0, sigma=3.0, rho=0.5)  # which sees far, and averages little
    ways = {"averaged FED": (LINES, aniso.FED(1), None), "wide FSI": (wide, aniso.FSI(1), 2)}
    monkeypatch.setitem(WAYS, way, WAYS.get(way) or ways[way])
    counts = []
    hold = volume_evolution.VolumeEvolution._hold_tensors

    def count(*given):
        slabs = hold(*given)
        counts.append(len(slabs))
        return slabs

    monkeypatch.setattr(volume_evolution.VolumeEvolution, "_hold_tensors", count)
    shape = (70, 6, 7)
    whole = filtered(way, shape, time=time)
    monkeypatch.setattr(volume_evolution, "_SLAB", 3)
    monkeypatch.setattr(volume_evolution, "_SLAB_OVER_REACH", 0)
    np.testing.assert_array_equal(filtered(way, shape, time=time), whole)
    if time == 6.0 or (time == 0.9 and way == "averaged FED"):
        assert counts[1] == 24


def test_tiles_of_full_size_do_not_show_either():
    for way, time in (("fused", 0.2), ("averaged", 0.2)):
        expected = filtered(way, LARGE, "float64", time, engine="reference")
        np.testing.assert_allclose(filtered(way, LARGE, "float64", time), expected, rtol=0, atol=2e-10)


#: One voxel, lines and planes of voxels, shorter than any kernel, odd sizes, wide enough for two tiles.
SHAPES = ((1, 1, 1), (1, 7, 1), (9, 1, 1), (2, 3, 1), (1, 5, 300), (3, 40, 17), (6, 5, 8))


class TestAgreement:
    """Float64 to 1e-12 of the largest value, float32 to 2e-6."""

    MODELS = (
        aniso.EdgeEnhancing(contrast=12.0),
        aniso.EdgeEnhancing(12.0, 0.0, "charbonnier"),
        aniso.EdgeContinuing(12.0, rho=1.0),
        aniso.CoherenceEnhancing(contrast=8.0, rho=2.0),
        aniso.CoherenceEnhancing(contrast=8.0, sigma=0.0, rho=0.0, plates=False),
        aniso.CoherenceEnhancing(contrast=8.0, rho=0.05),  # a Gaussian without neighbours
        aniso.PeronaMalik(12.0, 2.0, "exponential"),
        aniso.Homogeneous(),
    )

    @pytest.mark.parametrize("model", MODELS, ids=repr)
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_with_the_reference(self, model, dtype):
        for shape in SHAPES:
            for spacing in (1.0, (0.7, 2.0, 1.3)):
                for channels in (None, 2):
                    self._assert_agree(shape, model, dtype, spacing, channels, aniso.Explicit())

    @pytest.mark.parametrize("scheme", [aniso.FED(cycles=2), aniso.FSI(cycles=2)], ids=repr)
    @pytest.mark.parametrize("model", [EDGES, LINES, None], ids=repr)
    def test_in_cycles_with_fixed_voxels(self, model, scheme):
        for shape in SHAPES:
            fixed = np.random.default_rng(3).random(shape) < 0.2
            used = turning_tensors(shape) if model is None else model
            for channels in (None, 2):
                self._assert_agree(shape, used, "float64", (0.7, 2.0, 1.3), channels, scheme, fixed)

    def _assert_agree(self, shape, model, dtype, spacing, channels, scheme, fixed=None):
        image = volume(shape, channels).astype(dtype)
        axis = None if channels is None else -1
        engines: tuple[Any, ...] = (("cpu", dtype), ("reference", "float64"))
        actual, expected = (
            aniso.diffuse(
                image.astype(kind),
                model,
                1.5,
                engine=engine,
                scheme=scheme,
                spacing=spacing,
                channel_axis=axis,
                fixed=fixed,
            )
            for engine, kind in engines
        )
        slack = {"float64": 1e-12, "float32": 2e-6}[dtype] * abs(expected).max()
        assert abs(actual - expected).max() <= slack, (shape, spacing, channels)

    @pytest.mark.parametrize("rho", [3.0, 9.0])
    def test_with_long_kernels(self, rho):
        for shape in ((30, 21, 40), (4, 50, 3)):
            model = aniso.CoherenceEnhancing(contrast=8.0, sigma=2.0, rho=rho)
            self._assert_agree(shape, model, "float64", 1.0, None, aniso.Explicit())

    def test_with_a_diffusivity_of_ones_own(self):
        model = aniso.EdgeEnhancing(contrast=9, diffusivity=lambda r: 1 / (1 + 0.2 * r))
        self._assert_agree((6, 7, 8), model, "float64", 1.0, None, aniso.Explicit())

    def test_rows_wider_than_the_row_buffers(self):
        self._assert_agree((2, 3, 1200), LINES, "float64", 1.0, None, aniso.FED(cycles=1))


class TestStencils:
    def test_the_splitting_is_left_to_the_reference(self):
        with pytest.raises(NotImplementedError, match=r"SplitStencil.*engine='reference'"):
            aniso.diffuse(
                volume((3, 4, 5)), EDGES, 1.0, stencil=aniso.stencil.SplitStencil(alpha=0.25), engine="cpu"
            )

    def test_the_members_of_the_family(self):
        image = volume((6, 7, 8))
        for stencil in (aniso.DeltaStencil(0.25, -0.5), aniso.DeltaStencil(0.3, beta=0.2)):
            np.testing.assert_allclose(
                aniso.diffuse(image, EDGES, 1.0, stencil=stencil),
                aniso.diffuse(image, EDGES, 1.0, stencil=stencil, engine="reference"),
                rtol=1e-12,
            )


@pytest.mark.slow
def test_single_precision_stays_single(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    caches = generate._loops, generate._tensor_loops
    for known in caches:
        known.cache_clear()
    image = volume((6, 7, 8)).astype(np.float32)
    models = (aniso.EdgeEnhancing(diffusivity="exponential"), LINES)
    for model in models:
        aniso.diffuse(image, model, 1.0, spacing=0.5, engine="cpu")
    # Averages have a kernel of their own in cycles that are longer than a pass.
    aniso.diffuse(image, LINES, 1.0, spacing=0.5, scheme=aniso.FED(cycles=1), engine="cpu")
    loops = generate.loops(image.dtype, True, 3)
    kernels = loops.volume_steps, loops.structure_layers, loops.average_layers
    texts = [text for kernel in kernels for text in kernel.inspect_llvm().values()]
    for model in models:
        formula = model.tensor_formula(1, ndim=3)
        module = generate.tensor_loops(formula, image.dtype, True, 3)
        texts.append(module.tensor_row.inspect_llvm())
        # The loop over cells is vectorised.
        assert " x float>" in texts[-1]
    for known in caches:
        known.cache_clear()
    assert len(texts) == 5
    for llvm in texts:
        assert "fmul" in llvm
        assert "fpext" not in llvm


def test_formulas_are_not_restated():
    """What the loops call comes from the formulas; the loops define none of it themselves."""
    own = "".join(
        (SOURCE / "engines" / "cpu" / f"volume_{name}.py").read_text("utf-8")
        for name in ("kernels", "rows", "tensors")
    )
    for name in (
        "face_modes",
        "modes_between",
        "fluxes",
        "face_fluxes",
        "face_shares",
        "hourglass_weights",
        "explicit_step",
        "volume_structure",
    ):
        assert f"{name}(" in own
        assert f"def {name}(" not in own


class TestMemory:
    """Peak of all arrays besides the caller's, in volumes of float32; buffers of the kernels are small."""

    def peak(self, model, scheme, shape=(64, 64, 64)):
        image = volume(shape).astype(np.float32)
        aniso.diffuse(image, model, 0.5, scheme=scheme)
        tracemalloc.start()
        aniso.diffuse(image, model, 0.5, scheme=scheme)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak / image.nbytes

    def test_an_explicit_step_needs_less_than_three_volumes(self):
        assert self.peak(EDGES, aniso.Explicit()) < 2.4

    def test_stored_tensors_take_six_more(self):
        assert self.peak(LINES, aniso.Explicit()) < 8.9
        assert self.peak(EDGES, aniso.FSI(cycles=1)) < 8.9

    def test_tensors_of_deep_volumes_are_held_in_part(self):
        assert self.peak(LINES, aniso.Explicit(), (240, 40, 40)) < 5.5
