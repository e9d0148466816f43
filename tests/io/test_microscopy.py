"""CZI, LIF and ND2 files: CZI written with the library of Zeiss, LIF by hand, ND2 as far as possible."""

import sys
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
import tifffile

from aniso.io import check_output, pages, read, write
from tests.cli.command_calls import called
from tests.io.files import as_results, pixels, refused, saved

HAS_CZI = sys.version_info < (3, 14)  # as the extra says: later versions have no wheels of the decoders
if HAS_CZI:
    from pylibCZIrw import czi

SPACING = (0.5, 0.2, 0.1)  # µm, as Z, Y, X
SIZES = {"T": 2, "C": 3, "Z": 4, "Y": 12, "X": 14}
ORDERS = ["YX", "ZYX", "TYX", "CYX", "TCYX", "CZYX", "TZYX", "TCZYX"]


def _stack(order, dtype="uint16"):
    return pixels([SIZES[axis] for axis in order], dtype)


def _channels_last(stack, order):
    return np.moveaxis(stack, order.index("C"), -1) if "C" in order else stack


def _czi(path, stack, order, *, spacing=SPACING):
    """Write a stack with the axes `order`, plane by plane; X and Y are the last ones, or S behind them."""
    before = order.index("Y")
    depth, height, width = (1e-6 * h for h in spacing)
    with czi.create_czi(str(path)) as file:
        for index in np.ndindex(stack.shape[:before]):
            plane = dict(zip(order, index, strict=False))
            file.write(stack[index].reshape(*stack.shape[before : before + 2], -1), plane=plane)
        file.write_metadata(scale_x=width, scale_y=height, scale_z=depth)
    return path


def _lif(path, images):
    """Write images {name: (stack, order)} as Leica does: a text that describes them, then their pixels."""
    elements, blocks = [], []
    for number, (name, (stack, order)) in enumerate(images.items()):
        block = f"MemBlock_{number}"
        blocks.append((block, stack.tobytes()))
        steps = dict(zip(order, stack.strides, strict=True))
        channels = "".join(
            f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="{8 * stack.itemsize}" '
            f'NameOfMeasuredQuantity="" Min="0" Max="1" Unit="" LUTName="{channel}" '
            f'IsLUTInverted="0" BytesInc="{channel * steps.get("C", 0)}" BitInc="0"/>'
            for channel in range(SIZES["C"] if "C" in order else 1)
        )
        axes = "".join(
            f'<DimensionDescription DimID="{place}" NumberOfElements="{SIZES[axis]}" Origin="0" '
            f'Length="{(SIZES[axis] - 1) * size}" Unit="{unit}" BitInc="0" BytesInc="{steps[axis]}"/>'
            for place, (axis, size, unit) in enumerate(
                [
                    ("X", SPACING[2] * 1e-6, "m"),
                    ("Y", SPACING[1] * 1e-6, "m"),
                    ("Z", SPACING[0] * 1e-6, "m"),
                    ("T", 1.5, "s"),
                ],
                1,
            )
            if axis in order
        )
        elements.append(
            f"<Element Name={quoteattr(name)}><Data><Image><ImageDescription><Channels>{channels}</Channels>"
            f"<Dimensions>{axes}</Dimensions></ImageDescription></Image></Data>"
            f'<Memory Size="{stack.nbytes}" MemoryBlockID="{block}"/></Element>'
        )
    text = (
        '<LMSDataContainerHeader Version="2"><Element Name="all"><Memory Size="0" MemoryBlockID="none"/>'
        f"<Children>{''.join(elements)}</Children></Element></LMSDataContainerHeader>"
    )
    content = _part(_text(text))
    for name, data in blocks:
        content += _part(b"\x2a" + len(data).to_bytes(8, "little") + _text(name)) + data
    return saved(path, content)


def _text(text):
    return b"\x2a" + len(text).to_bytes(4, "little") + text.encode("utf-16-le")


def _part(body):
    return b"p\0\0\0" + len(body).to_bytes(4, "little") + body


MAKERS = {
    **({".czi": _czi} if HAS_CZI else {}),
    ".lif": lambda path, stack, order: _lif(path, {"cells": (stack, order)}),
}


@pytest.mark.parametrize("suffix", MAKERS)
class TestImages:
    @pytest.mark.parametrize("order", ORDERS)
    def test_pixels_axes_and_spacing(self, tmp_path, suffix, order):
        stack = _stack(order)
        picture = read(MAKERS[suffix](tmp_path / f"a{suffix}", stack, order))
        np.testing.assert_array_equal(picture.pixels, _channels_last(stack, order))
        assert picture.dtype == np.uint16
        assert picture.channels == (3 if "C" in order else None)
        assert picture.spacing == pytest.approx(SPACING if "Z" in order else SPACING[1:])
        assert picture.unit == "µm"
        assert picture.format == suffix[1:].upper()
        assert pages.is_volume(picture, None) == ("Z" in order)
        assert not pages.is_guess(picture) or order in ("YX", "CYX")

    @pytest.mark.parametrize("order", ORDERS)
    def test_results_as_tiff(self, tmp_path, suffix, order):
        picture = read(MAKERS[suffix](tmp_path / f"a{suffix}", _stack(order), order))
        after = read(write(tmp_path / "a.tif", as_results(picture), like=picture))
        np.testing.assert_array_equal(after.pixels, picture.pixels)
        assert (after.dtype, after.channels) == (picture.dtype, picture.channels)
        assert after.spacing == pytest.approx(picture.spacing)
        assert after.unit == "µm"
        assert pages.is_volume(after, None) == ("Z" in order)
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            axes = order.replace("CZ", "ZC")  # as ImageJ has them
            assert (file.series[0].axes, file.series[0].keyframe.samplesperpixel) == (axes, 1)

    def test_command(self, tmp_path, suffix):
        MAKERS[suffix](tmp_path / f"a{suffix}", _stack("TZYX"), "TZYX")
        done = called(tmp_path, "denoise", f"a{suffix}", "--frames")
        assert done.exit_code == 0, done.output
        picture = read(tmp_path / "a_denoised.tif")
        assert (picture.shape, picture.dtype) == ((2, 4, 12, 14), np.uint16)
        assert picture.spacing == pytest.approx(SPACING)
        assert "µm" in called(tmp_path, "info", f"a{suffix}").output

    def test_cut_short(self, tmp_path, suffix):
        data = MAKERS[suffix](tmp_path / f"a{suffix}", _stack("ZYX"), "ZYX").read_bytes()
        for share in (0.05, 0.3, 0.7, 0.99):
            cut = saved(tmp_path / f"b{suffix}", data[: int(share * len(data))])
            refused(lambda cut=cut: read(cut), "b", suffix[1:].upper(), "corrupt")

    def test_the_suffix_of_another_format(self, tmp_path, suffix):
        MAKERS[suffix](tmp_path / f"a{suffix}", _stack("YX"), "YX").rename(tmp_path / "a.nd2")
        refused(lambda: read(tmp_path / "a.nd2"), f"Rename it to a{suffix}")


PACKAGES = [(".czi", "bioio_czi"), (".lif", "bioio_lif"), (".nd2", "bioio_nd2")]


@pytest.mark.parametrize(("suffix", "package"), PACKAGES if HAS_CZI else PACKAGES[1:])
class TestAllThree:
    HEADS = {".czi": b"ZISRAWFILE\0", ".lif": b"p\0\0\0", ".nd2": b"\xda\xce\xbe\n"}  # noqa: RUF012

    def test_missing_packages(self, tmp_path, monkeypatch, suffix, package):
        path = saved(tmp_path / f"a{suffix}", self.HEADS[suffix])
        for name in (package, "bioio"):
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, name, None)
                refused(lambda: read(path), f"package {name},", 'pip install "aniso[microscopy]"')

    def test_unreadable_files(self, tmp_path, suffix, package):
        path = saved(tmp_path / f"a{suffix}", self.HEADS[suffix] + bytes(pixels((5000,))))
        refused(lambda: read(path), f"a{suffix} cannot be read as {suffix[1:].upper()}")

    def test_read_only(self, tmp_path, suffix, package):
        refused(lambda: check_output(tmp_path / f"a{suffix}"), "read only", ".tif")
        refused(lambda: write(tmp_path / f"a{suffix}", pixels((5, 7))), "read only", folder=tmp_path)


if HAS_CZI:

    class TestCzi:
        @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
        def test_types(self, tmp_path, dtype):
            stack = _stack("YX", dtype)
            np.testing.assert_array_equal(read(_czi(tmp_path / "a.czi", stack, "YX")).pixels, stack)

        def test_colours(self, tmp_path):
            blue_first = pixels((12, 14, 3))
            picture = read(_czi(tmp_path / "a.czi", blue_first, "YXS"))
            np.testing.assert_array_equal(picture.pixels, blue_first[..., ::-1])
            write(tmp_path / "a.tif", picture)
            np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), picture.pixels)
            with tifffile.TiffFile(tmp_path / "a.tif") as file:
                assert file.series[0].keyframe.photometric == tifffile.PHOTOMETRIC.RGB

        def test_several_scenes(self, tmp_path):
            with czi.create_czi(str(tmp_path / "a.czi")) as file:
                for scene in range(6):
                    place = (20 * scene, 0)
                    file.write(pixels((12, 14, 1)), location=place, scene=scene)
                file.write_metadata()
            refused(lambda: read(tmp_path / "a.czi"), "6 images", "OME-TIFF")

        def test_without_a_spacing(self, tmp_path):
            with czi.create_czi(str(tmp_path / "a.czi")) as file:
                file.write(pixels((12, 14, 1)))
            picture = read(tmp_path / "a.czi")
            assert (picture.spacing, picture.unit) == (None, None)


def test_several_images_in_a_lif_file(tmp_path):
    images = {name: (_stack("YX"), "YX") for name in ("one", "two")}
    refused(lambda: read(_lif(tmp_path / "a.lif", images)), "2 images", "one", "two")
