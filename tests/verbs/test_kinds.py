"""Kinds of arrays: what comes back, what is rejected, and that one table decides."""

from collections import Counter
from typing import Any

import dask.array as da
import numpy as np
import pytest
import torch
import zarr

import aniso
from aniso import arrays, checks, dispatch, stability
from aniso.dispatch import Kind, handle_as_arrays

IMAGE = aniso.samples.rings(32, noise=10.0).image
MASK = np.random.default_rng(0).random(IMAGE.shape) < 0.3
MODEL = aniso.EdgeEnhancing(contrast=8.0)
CALLS: dict[str, Any] = {
    "diffuse": lambda image, **options: aniso.diffuse(image, MODEL, 1.0, **options),
    "scale_space": lambda image, **options: list(aniso.scale_space(image, MODEL, [0, 1, 2], **options))[-1][
        1
    ],
    "denoise": aniso.denoise,
    "enhance": aniso.enhance,
    "inpaint": lambda image, **options: aniso.inpaint(image, MASK, **options),
    "upsample": lambda image, **options: aniso.upsample(image, 2, **options),
}
every_function = pytest.mark.parametrize("name", CALLS)


def made_by(package: str, name: str, **members: Any) -> Any:
    """A class that claims to come from a package."""
    return type(name, (), {"__module__": package, **members})


class DataArray:
    """As much of xarray's class as is used: data, coordinates and copy(data=...)."""

    def __init__(self, data, coords):
        self.data, self.coords = data, coords

    def copy(self, data):
        assert data.shape == self.data.shape
        return DataArray(data, self.coords)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("loaded")


DataArray.__module__ = "xarray.core.dataarray"


class Wrapped:
    """A kind of array that the library does not know."""

    def __init__(self, data):
        self.data = data


@every_function
def test_a_new_kind_is_one_row(name, monkeypatch):
    with pytest.raises((TypeError, ValueError)):
        CALLS[name](Wrapped(IMAGE))
    is_wrapped = lambda value: isinstance(value, Wrapped)  # noqa: E731
    row = Kind(
        "wrapped", is_wrapped, handle_as_arrays(lambda w: w.data, lambda data, _: Wrapped(data), is_wrapped)
    )
    monkeypatch.setattr(dispatch, "KINDS", [row, *dispatch.KINDS])
    result = CALLS[name](Wrapped(IMAGE))
    assert isinstance(result, Wrapped)
    np.testing.assert_array_equal(result.data, CALLS[name](IMAGE))


@every_function
def test_lists_and_subclasses_are_numpy_arrays(name, tmp_path):
    expected = CALLS[name](IMAGE)
    np.testing.assert_array_equal(CALLS[name](IMAGE.tolist()), expected)
    mapped = np.memmap(tmp_path / "image", IMAGE.dtype, "w+", shape=IMAGE.shape)
    mapped[:] = IMAGE
    np.testing.assert_array_equal(CALLS[name](mapped), expected)
    with pytest.raises(TypeError, match="masked array"):
        CALLS[name](np.ma.masked_array(IMAGE, mask=MASK))


@every_function
def test_labelled_arrays_keep_their_coordinates(name):
    image = DataArray(IMAGE, {"x": 1})
    if name == "upsample":
        with pytest.raises(TypeError, match=r"aniso\.upsample does not accept .*image\.to_numpy\(\)"):
            CALLS[name](image)
        return
    result = CALLS[name](image)
    assert isinstance(result, DataArray)
    assert result.coords is image.coords
    np.testing.assert_array_equal(result.data, CALLS[name](IMAGE))
    lazily = CALLS[name](DataArray(da.from_array(IMAGE, chunks=16), {}))
    assert isinstance(lazily.data, da.Array)


def test_labelled_arrays_with_info_and_labelled_masks():
    filled, info = aniso.inpaint(DataArray(IMAGE, {}), DataArray(MASK, {}), return_info=True)
    assert info.unknown == MASK.mean()
    np.testing.assert_array_equal(filled.data, aniso.inpaint(IMAGE, MASK))


@every_function
@pytest.mark.parametrize(
    ("package", "kind", "remedy"),
    [
        ("pandas.core.frame", "DataFrame", r"image\.to_numpy\(\)"),
        ("polars.dataframe.frame", "DataFrame", r"image\.to_numpy\(\)"),
        ("jaxlib._jax", "ArrayImpl", r"numpy\.asarray\(image\)"),
        ("cupy", "ndarray", r"cupy\.asnumpy\(image\)"),
        ("h5py._hl.dataset", "Dataset", r"image\[\.\.\.\] to load it"),
        ("xarray.core.dataset", "Dataset", r"dataset\['name'\]"),
        ("somebody", "Tensor", r"numpy\.asarray\(image\)"),
    ],
)
def test_other_arrays_are_rejected_with_a_remedy(name, package, kind, remedy):
    image = made_by(package, kind, __array__=lambda *_, **__: pytest.fail("loaded"), __dlpack__=None)()
    with pytest.raises(
        TypeError, match=rf"aniso\.{name} does not accept {package}\.{kind} objects\. .*{remedy}"
    ):
        CALLS[name](image)


@every_function
def test_zarr_arrays_are_rejected_with_a_remedy(name):
    image = zarr.array(IMAGE)
    with pytest.raises(TypeError, match=r"zarr.*objects\. Give dask\.array\.from_zarr\(image\)"):
        CALLS[name](image)


class TestDask:
    def test_a_scale_space_is_lazy_and_as_in_memory(self):
        calls: list[int] = []

        def count(block):
            calls.append(1)
            return block

        image = da.from_array(IMAGE, chunks=11).map_blocks(count, dtype=IMAGE.dtype)
        before = len(calls)
        for scheme in (aniso.Explicit(), aniso.FED(2)):
            steps = list(aniso.scale_space(image, MODEL, [0, 1, 2.5], scheme=scheme))
            assert len(calls) == before
            for (time, lazy), (same, expected) in zip(
                steps, aniso.scale_space(IMAGE, MODEL, [0, 1, 2.5], scheme=scheme), strict=True
            ):
                assert time == same
                assert lazy.chunks == image.chunks
                np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)
            before = len(calls)

    def test_a_scale_space_is_rejected_before_the_first_image(self):
        image = da.from_array(IMAGE, chunks=11)
        with pytest.raises(ValueError, match="largest stable step"):
            aniso.scale_space(image, MODEL, [1.0], scheme=aniso.Explicit(9.0))
        with pytest.raises(ValueError, match="ProgressBar"):
            aniso.scale_space(image, MODEL, [1.0], progress=True)

    def test_upsampling_keeps_the_chunks(self):
        result = aniso.upsample(da.from_array(IMAGE, chunks=11), (2, 3))
        assert result.chunks == tuple(
            tuple(f * n for n in lengths)
            for f, lengths in zip((2, 3), da.from_array(IMAGE, chunks=11).chunks, strict=True)
        )
        expected = aniso.upsample(IMAGE, (2, 3))
        np.testing.assert_array_equal(result.compute(scheduler="synchronous"), expected)

    def test_plans_of_upsampling_do_not_take_labelled_arrays(self):
        _, plan = aniso.upsample(IMAGE, 2, return_info=True)
        with pytest.raises(TypeError, match=r"Plan\.apply does not accept .*image\.to_numpy\(\)"):
            plan.apply(DataArray(IMAGE, {}))


class TestMasks:
    """Masks in memory and of Dask arrays follow the same rules."""

    @pytest.mark.parametrize("wrong", [MASK + 0.5, MASK * 2, MASK.astype(str), MASK[1:], "all", 3])
    def test_wrong_masks(self, wrong):
        lazy = da.from_array(IMAGE, chunks=16)
        messages = set()
        for call in (
            lambda mask, image: aniso.inpaint(image, mask),
            lambda mask, image: aniso.diffuse(image, MODEL, 1.0, fixed=mask),
        ):
            said = []
            for image in (IMAGE, lazy):
                with pytest.raises((TypeError, ValueError)) as caught:
                    call(wrong, image)
                said.append((caught.type, str(caught.value)))
            assert said[0] == said[1]
            messages.add(said[0][1].split(":")[0].replace("fixed", "mask"))
        assert len(messages) == 1

    def test_what_is_a_mask(self):
        image = da.from_array(IMAGE, chunks=16)
        expected = aniso.inpaint(image, MASK, contrast=5.0).compute()
        kept = aniso.diffuse(IMAGE, MODEL, 1.0, fixed=MASK)
        lazy_mask = da.from_array(MASK, chunks=7)
        for mask in (MASK.astype(int), MASK.tolist(), torch.tensor(MASK), lazy_mask, lazy_mask.astype("u1")):
            np.testing.assert_array_equal(aniso.inpaint(image, mask, contrast=5.0).compute(), expected)
            np.testing.assert_array_equal(aniso.diffuse(image, MODEL, 1.0, fixed=mask).compute(), kept)

    def test_values_of_lazy_masks_are_checked_when_they_are_computed(self):
        image, mask = da.from_array(IMAGE, chunks=16), da.from_array(MASK * 2, chunks=16)
        result = aniso.diffuse(image, MODEL, 1.0, fixed=mask)
        with pytest.raises(TypeError, match="fixed must be boolean, or integers that are 0 or 1, got dtype"):
            result.compute()


class TestChecksRunOnce:
    @pytest.fixture
    def calls(self, monkeypatch):
        """How often the real checks are called."""
        counts: Counter[str] = Counter()

        def count(module, function):
            original = getattr(module, function)

            def call(*given, **options):
                counts[function] += 1
                return original(*given, **options)

            monkeypatch.setattr(module, function, call)

        for module, function in (
            (arrays, "check_finite"),
            (checks, "axis_spacing"),
            (stability, "largest_step"),
            (stability, "stable_step"),
        ):
            count(module, function)
        return counts

    @pytest.mark.parametrize("name", ["denoise", "enhance", "upsample", "diffuse", "scale_space"])
    def test_one_look_for_nan_and_one_at_the_spacing(self, name, calls):
        CALLS[name](IMAGE, spacing=0.5)
        assert (calls["check_finite"], calls["axis_spacing"], calls["stable_step"]) == (1, 1, 0)
        # One per diffusion model while choosing, and one while applying.
        assert 1 <= calls["largest_step"] <= 10

    def test_inpainting_looks_at_the_spacing_and_the_step_once(self, calls):
        CALLS["inpaint"](IMAGE)
        assert calls == {"axis_spacing": 1, "largest_step": 1}


class TestWarningsPointAtTheCaller:
    @pytest.mark.parametrize("name", ["diffuse", "denoise", "upsample"])
    def test_of_arrays_and_tensors(self, name):
        colours = np.zeros((32, 32, 3), np.float32)
        for image in (colours, torch.from_numpy(colours), da.from_array(colours, chunks=16)):
            with pytest.warns(UserWarning, match="treated as a volume") as caught:
                CALLS[name](image)
            assert {warning.filename for warning in caught} == {__file__}

    def test_of_batches(self, monkeypatch):
        original = arrays.check_axes

        def warns(*given):
            checks.warn("look")
            return original(*given)

        monkeypatch.setattr(arrays, "check_axes", warns)
        with pytest.warns(UserWarning, match="look") as caught:
            aniso.upsample(torch.zeros(2, 1, 8, 8), 2)
        # Frames of this file lie between those of the package, too: the first outside of it counts.
        assert [warning.filename for warning in caught] == [__file__] * 2
