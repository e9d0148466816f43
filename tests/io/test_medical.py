"""NRRD, MetaImage, DICOM and BMP files, compared with what SimpleITK and Pillow find in them."""

import locale
import struct

import numpy as np
import pytest
import SimpleITK as sitk
from PIL import Image

from aniso.io import check_input, check_output, read, write
from tests.cli.command_calls import called
from tests.io.files import as_results, pixels, refused, saved

SPACING, ORIGIN = (0.5, 0.7, 2.0), (10.0, -20.0, 30.0)
DIRECTION = (0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def _image(shape=(4, 12, 14), dtype="int16", **options):
    image = sitk.GetImageFromArray(pixels(shape, dtype), **options)
    image.SetSpacing(SPACING)
    image.SetOrigin(ORIGIN)
    image.SetDirection(DIRECTION)
    return image


def _place(path):
    image = sitk.ReadImage(path)
    return image.GetSpacing(), image.GetOrigin(), image.GetDirection()


@pytest.mark.parametrize("suffix", [".nrrd", ".mha"])
class TestVolumes:
    @pytest.mark.parametrize("compressed", [True, False])
    @pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32", "float64"])
    def test_round_trip(self, tmp_path, suffix, dtype, compressed):
        image = _image(dtype=dtype)
        image.SetMetaData("Operator", "somebody")
        sitk.WriteImage(image, tmp_path / f"a{suffix}", useCompression=compressed)
        picture = read(tmp_path / f"a{suffix}")
        np.testing.assert_array_equal(picture.pixels, sitk.GetArrayFromImage(image))
        assert (picture.spacing, picture.unit) == ((2.0, 0.7, 0.5), "mm")
        write(tmp_path / f"b{suffix}", as_results(picture), like=picture)
        after = sitk.ReadImage(tmp_path / f"b{suffix}")
        np.testing.assert_array_equal(sitk.GetArrayFromImage(after), picture.pixels)
        assert after.GetPixelID() == image.GetPixelID()
        assert _place(tmp_path / f"b{suffix}") == (SPACING, ORIGIN, DIRECTION)
        assert after.GetMetaData("Operator") == "somebody"
        head = (tmp_path / f"b{suffix}").read_bytes()[:600]
        assert (b"gzip" in head or b"CompressedData = True" in head) == compressed

    def test_finer_results_cover_the_same_box(self, tmp_path, suffix):
        image = _image()
        sitk.WriteImage(image, tmp_path / f"a{suffix}")
        picture = read(tmp_path / f"a{suffix}")
        write(tmp_path / f"b{suffix}", picture.with_pixels(np.zeros((8, 36, 14))))
        after = sitk.ReadImage(tmp_path / f"b{suffix}")
        assert after.GetSpacing() == pytest.approx((0.5, 0.7 / 3, 1.0))
        for corner in ((-0.5, -0.5, -0.5), (13.5, 11.5, 3.5)):
            fine = [(c + 0.5) * f - 0.5 for c, f in zip(corner, (1, 3, 2), strict=True)]
            expected = image.TransformContinuousIndexToPhysicalPoint(corner)
            assert after.TransformContinuousIndexToPhysicalPoint(fine) == pytest.approx(expected)

    def test_colours_and_series(self, tmp_path, suffix):
        colours = sitk.GetImageFromArray(pixels((4, 12, 14, 3)), isVector=True)
        sitk.WriteImage(colours, tmp_path / f"a{suffix}")
        assert (read(tmp_path / f"a{suffix}").channels, read(tmp_path / f"a{suffix}").shape) == (
            3,
            (4, 12, 14),
        )
        series = sitk.JoinSeries([_image(), _image()], 0.0, 2.5)
        sitk.WriteImage(series, tmp_path / f"c{suffix}")
        picture = read(tmp_path / f"c{suffix}")
        assert picture.shape == (2, 4, 12, 14)
        write(tmp_path / f"d{suffix}", as_results(picture), like=picture)
        after = sitk.ReadImage(tmp_path / f"d{suffix}")
        assert after.GetSpacing() == (*SPACING, 2.5)
        assert after.GetDirection() == series.GetDirection()
        np.testing.assert_array_equal(sitk.GetArrayFromImage(after), picture.pixels)

    def test_other_units_become_millimetres(self, tmp_path, suffix):
        from aniso.io import Picture

        write(tmp_path / f"a{suffix}", Picture(pixels((4, 5)), spacing=(2.0, 3.0), unit="µm"))
        assert sitk.ReadImage(tmp_path / f"a{suffix}").GetSpacing() == pytest.approx((0.003, 0.002))

    def test_truncated_and_five_axes(self, tmp_path, suffix):
        for compressed in (True, False):
            sitk.WriteImage(_image(), tmp_path / f"a{suffix}", useCompression=compressed)
            content = (tmp_path / f"a{suffix}").read_bytes()
            cut = saved(tmp_path / f"b{suffix}", content[:-200])
            refused(lambda cut=cut: read(cut), "cut short")
        values = sitk.JoinSeries([sitk.JoinSeries([_image()] * 2)] * 2)
        sitk.WriteImage(values, tmp_path / f"c{suffix}")
        refused(lambda: read(tmp_path / f"c{suffix}"), "5 axes", "Split")

    def test_bombs(self, tmp_path, suffix):
        sitk.WriteImage(_image(), tmp_path / f"a{suffix}", useCompression=True)
        content = (tmp_path / f"a{suffix}").read_bytes()
        for old, new in ((b"sizes: 14 12 4", b"sizes: 30000 30000 9000"), (b"14 12 4", b"30000 30000 9000")):
            if old in content:
                bomb = saved(tmp_path / f"b{suffix}", content.replace(old, new))
                refused(lambda bomb=bomb: read(bomb), "decompression bomb")
                return
        pytest.fail("the header was not found")


def test_pixels_in_other_files(tmp_path):
    sitk.WriteImage(_image(), tmp_path / "a.mhd")
    picture = read(tmp_path / "a.mhd")
    np.testing.assert_array_equal(picture.pixels, sitk.GetArrayFromImage(_image()))
    head = (tmp_path / "a.mhd").read_text()
    for other in ("/etc/passwd", "../a.raw", "LIST", "a%03d.raw 1 3 1"):
        path = saved(tmp_path / "b.mhd", head.replace("a.raw", other).encode())
        refused(lambda path=path: read(path), "in the same folder")
    (tmp_path / "a.raw").unlink()
    refused(lambda: read(tmp_path / "a.mhd"), "a.raw", "does not exist")


def test_nrrd_with_another_compression(tmp_path):
    sitk.WriteImage(_image(), tmp_path / "a.nrrd", useCompression=True)
    content = (tmp_path / "a.nrrd").read_bytes().replace(b"encoding: gzip", b"encoding: zstd")
    refused(lambda: read(saved(tmp_path / "b.nrrd", content)), "'zstd'", "gzip or raw")
    detached = content.replace(b"encoding: zstd", b"data file: /etc/passwd\nencoding: raw")
    refused(lambda: read(saved(tmp_path / "c.nrrd", detached)), "in the same folder")


def _write_series(folder, heights, shape=(12, 14), **changes):
    """A DICOM series with slices at these heights; `changes` are tags by the number of the slice."""
    folder.mkdir(exist_ok=True)
    language = locale.setlocale(locale.LC_CTYPE)
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for number, height in enumerate(heights):
        image = sitk.GetImageFromArray(pixels(shape, "int16", seed=number))
        image.SetSpacing(SPACING[:2])
        tags = {
            "0008|0060": "CT",
            "0008|103e": "Head",
            "0010|0010": "Doe^Jane",
            "0020|000d": "1.2.3",
            "0020|000e": "1.2.3.4",
            "0020|0032": f"10\\-20\\{height}",
            "0020|0037": "1\\0\\0\\0\\1\\0",
            **changes.get(f"slice{number}", {}),
        }
        for key, text in tags.items():
            image.SetMetaData(key, text)
        writer.SetFileName(str(folder / f"IM{9 - number}.dcm"))  # names are not in the order of the slices
        writer.Execute(image)
    locale.setlocale(locale.LC_CTYPE, language)  # the writer of DICOM files changes it
    return folder


class TestDicom:
    def test_a_series_is_a_volume(self, tmp_path):
        folder = _write_series(tmp_path / "scan", [30, 32, 34, 36])
        (folder / "notes.txt").write_text("no image")
        picture = read(folder)
        expected = np.stack([pixels((12, 14), "int16", seed=k) for k in range(4)])
        np.testing.assert_array_equal(picture.pixels, expected)
        assert (picture.spacing, picture.unit, picture.description) == ((2.0, 0.7, 0.5), "mm", "Head")
        write(tmp_path / "b.nrrd", as_results(picture), like=picture)
        assert _place(tmp_path / "b.nrrd") == (SPACING, ORIGIN, (1, 0, 0, 0, 1, 0, 0, 0, 1))
        assert b"Doe" not in (tmp_path / "b.nrrd").read_bytes()

    def test_command(self, tmp_path):
        _write_series(tmp_path / "scan", [30, 32, 34, 36])
        for words in (("scan",), ("scan", "-o", "out/")):
            answer = called(tmp_path, "diffuse", *words, "--time", 1, "--contrast", 1000)
            assert answer.exit_code == 0, answer.output
        assert _place(tmp_path / "scan_diffused.nrrd")[0] == SPACING
        assert (tmp_path / "out" / "scan.nrrd").exists()
        answer = called(tmp_path, "denoise", "scan", "-o", "scan.dcm")
        assert answer.exit_code == 1
        assert "read only" in answer.output

    def test_one_file(self, tmp_path):
        folder = _write_series(tmp_path / "scan", [30])
        for path in (folder, folder / "IM9.dcm"):
            picture = read(path)
            assert picture.shape == (1, 12, 14)
            assert picture.details["geometry"].origin == ORIGIN
            assert not picture.details["geometry"].texts

    def test_grey_values_are_scaled(self, tmp_path):
        folder = _write_series(tmp_path / "scan", [0, 2])
        picture, plain = read(folder), read(folder / "IM9.dcm")
        np.testing.assert_array_equal(picture.pixels[0], plain.pixels[0])

    @pytest.mark.parametrize(
        ("heights", "parts"),
        [
            ([30, 32, 36, 38], ("IM8.dcm and IM7.dcm", "4 mm apart, other slices 2 mm", "missing")),
            ([30, 32, 34, 35.5], ("1.5 mm apart", "unequal")),
            ([30, 32, 32, 34], ("at the same place", "folder of its own")),
        ],
        ids=["missing", "unequal", "twice"],
    )
    def test_wrong_distances(self, tmp_path, heights, parts):
        folder = _write_series(tmp_path / "scan", heights)
        refused(lambda: read(folder), *parts)

    def test_slices_that_do_not_fit(self, tmp_path):
        folder = _write_series(tmp_path / "scan", [30, 32, 34])
        _write_series(tmp_path / "other", [30], shape=(8, 14))
        (tmp_path / "other" / "IM9.dcm").rename(folder / "IM0.dcm")
        refused(lambda: read(folder), "IM0.dcm", "14 × 8", "Remove")
        turned = {"slice1": {"0020|0037": "0\\1\\0\\1\\0\\0"}}
        refused(lambda: read(_write_series(tmp_path / "b", [30, 32, 34], **turned)), "another orientation")
        second = {"slice1": {"0020|000e": "1.2.3.5"}}
        refused(lambda: read(_write_series(tmp_path / "c", [30, 32, 34], **second)), "2 DICOM series")
        tilted = {f"slice{k}": {"0020|0032": f"10\\{-20 + 0.5 * k}\\{30 + 2 * k}"} for k in range(3)}
        refused(lambda: read(_write_series(tmp_path / "e", [30, 32, 34], **tilted)), "0.5 mm", "gantry")
        lost = _write_series(tmp_path / "d", [30, 32, 34]) / "IM8.dcm"
        saved(lost, lost.read_bytes().replace(b"\x20\x00\x32\x00", b"\x20\x00\x33\x00"))
        refused(lambda: read(tmp_path / "d"), "0020,0032", "in order")

    def test_another_compression(self, tmp_path):
        folder = _write_series(tmp_path / "scan", [30, 32])
        content = (folder / "IM9.dcm").read_bytes()
        place = content.index(b"1.2.840.10008.1.2", content.index(b"\x02\x00\x10\x00UI"))
        other = content[: place + 16] + b"9" + content[place + 17 :]
        refused(
            lambda: read(saved(tmp_path / "a.dcm", other)), "transfer syntax 1.2.840.10008.1.9", "gdcmconv"
        )
        refused(lambda: read(saved(tmp_path / "b.dcm", content[:-100])), "corrupt")

    def test_other_folders(self, tmp_path):
        (tmp_path / "empty").mkdir()
        refused(lambda: check_input(tmp_path / "empty"), "is a folder")
        refused(lambda: check_output(tmp_path / "a.dcm"), "read only", ".nrrd")

    def test_the_explorer_opens_folders(self, tmp_path, monkeypatch):
        server = pytest.importorskip("aniso.explorer.server")
        opened: list[object] = []
        monkeypatch.setattr(server, "run", lambda image, *words, **options: opened.append(image))
        (tmp_path / "empty").mkdir()
        answer = called(tmp_path, "explore", "empty", "--no-open")
        assert answer.exit_code == 1
        assert "empty is a folder" in answer.output
        _write_series(tmp_path / "scan", [30, 32])
        assert called(tmp_path, "explore", "scan", "--no-open").exit_code == 0
        assert [getattr(image, "name", None) for image in opened] == ["scan"]


class TestBmp:
    @pytest.mark.parametrize("shape", [(13, 17), (13, 17, 3)], ids=["grey", "colour"])
    def test_round_trip(self, tmp_path, shape):
        Image.fromarray(pixels(shape)).save(tmp_path / "a.bmp", dpi=(300, 150))
        picture = read(tmp_path / "a.bmp")
        np.testing.assert_array_equal(picture.pixels, pixels(shape))
        assert picture.resolution == pytest.approx((150, 300), abs=0.1)
        write(tmp_path / "b.bmp", as_results(picture), like=picture)
        with Image.open(tmp_path / "b.bmp") as after:
            np.testing.assert_array_equal(np.array(after), pixels(shape))
            assert after.info["dpi"] == pytest.approx((300, 150), abs=0.1)

    def test_palettes_and_bits(self, tmp_path):
        grey = pixels((9, 8))
        Image.fromarray(grey > 128).save(tmp_path / "a.bmp")
        np.testing.assert_array_equal(read(tmp_path / "a.bmp").pixels, np.where(grey > 128, 255, 0))
        image = Image.fromarray(np.stack([grey, 255 - grey, grey], -1)).quantize(64)
        image.save(tmp_path / "b.bmp")
        np.testing.assert_array_equal(read(tmp_path / "b.bmp").pixels, np.array(image.convert("RGB")))

    def test_errors(self, tmp_path):
        Image.fromarray(pixels((9, 8))).save(tmp_path / "a.bmp")
        content = (tmp_path / "a.bmp").read_bytes()
        refused(lambda: read(saved(tmp_path / "b.bmp", content[:-20])), "corrupt")
        jpeg = content[:30] + struct.pack("<I", 4) + content[34:]
        refused(lambda: read(saved(tmp_path / "c.bmp", jpeg)), "not known (number 4)", "PNG")
        huge = content[:18] + struct.pack("<ii", 60000, 60000) + content[26:]
        refused(lambda: read(saved(tmp_path / "d.bmp", huge)), "decompression bomb")
