"""Every kind of file through the command: types, alpha, scales, texts and EXIF stay true."""

import json
import re
import struct
from io import BytesIO
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import ExifTags, Image

import aniso
from aniso import io
from aniso.io import exif
from aniso.io.picture import Picture
from tests.cli.command_calls import called, noisy


def roughness(pixels):
    """Mean absolute difference of neighbours."""
    return float(abs(np.diff(pixels.astype(np.float64), axis=-1)).mean())


def save_all_kinds(folder):
    """A file of each kind, and what it holds."""
    alpha8, alpha16 = (
        np.arange(40 * 44).reshape(40, 44).astype(np.uint8),
        (37 * np.arange(40 * 44).reshape(40, 44)).astype(np.uint16),
    )
    pictures = {
        "grey8.png": Picture(noisy()),
        "grey16.png": Picture(noisy(dtype="uint16")),
        "colour16.png": Picture(noisy((40, 44, 3), "uint16"), channel_axis=-1),
        "alpha8.png": Picture(noisy((40, 44, 3)), channel_axis=-1, alpha=alpha8),
        "alpha16.png": Picture(noisy(dtype="uint16"), alpha=alpha16),
        "colour.jpg": Picture(noisy((40, 44, 3)), channel_axis=-1, resolution=(72.0, 72.0)),
        "grey16.tif": Picture(noisy(dtype="uint16")),
        "colour16.tif": Picture(noisy((40, 44, 3), "uint16"), channel_axis=-1),
        "float.tif": Picture(noisy(dtype="float32")),
        "pages.tif": Picture(noisy((3, 40, 44), "uint16")),
        "plain.npy": Picture(noisy(dtype="float64")),
        "large.npy": Picture(noisy(dtype="int32")),
        "volume.nii.gz": Picture(noisy((2, 40, 44), "int16"), spacing=(2.0, 1.0, 1.0)),
        "map.mrc": Picture(noisy((2, 40, 44), "float32"), spacing=(3.0, 3.0, 3.0), unit="Å"),
    }
    for name, picture in pictures.items():
        io.write(folder / name, picture)
    return pictures


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    """All kinds of files, denoised by one call of the command."""
    folder = tmp_path_factory.mktemp("kinds")
    pictures = save_all_kinds(folder)
    answer = called(folder, "denoise", *pictures, "-o", "out/", "--json")
    return folder, pictures, answer


class TestKindsOfFiles:
    def test_the_call(self, all_kinds):
        folder, pictures, answer = all_kinds
        assert answer.exit_code == 0, answer.stderr
        summary = json.loads(answer.stdout)
        assert [entry["input"] for entry in summary["results"]] == list(pictures)
        assert summary["errors"] == []
        assert {path.name for path in (folder / "out").iterdir()} == set(pictures)
        assert "pages.tif has 3 pages, which are filtered one by one" in answer.stderr

    @pytest.mark.parametrize(
        "name",
        ["grey8.png", "grey16.png", "colour16.png", "alpha8.png", "alpha16.png", "colour.jpg", "grey16.tif",
         "colour16.tif", "float.tif", "pages.tif", "plain.npy", "large.npy", "volume.nii.gz", "map.mrc"],
    )  # fmt: skip
    def test_the_results(self, all_kinds, name):
        folder, pictures, _ = all_kinds
        before, after = io.read(folder / name), io.read(folder / "out" / name)
        assert set(pictures) == {entry.name for entry in folder.iterdir() if entry.is_file()}
        assert after.dtype == before.dtype
        assert after.pixels.shape == before.pixels.shape
        assert after.spacing == before.spacing
        grey = np.moveaxis(after.pixels, -1, 0) if after.channel_axis is not None else after.pixels
        old = np.moveaxis(before.pixels, -1, 0) if before.channel_axis is not None else before.pixels
        assert roughness(grey) < 0.6 * roughness(old)
        assert abs(float(grey.mean()) / float(old.mean()) - 1) < 0.02  # nothing wrapped, nothing scaled
        if before.alpha is None:
            assert after.alpha is None
        else:
            np.testing.assert_array_equal(after.alpha, before.alpha)

    @pytest.mark.parametrize("name", ["grey16.png", "colour16.tif", "pages.tif"])
    def test_the_same_as_in_python(self, all_kinds, name):
        folder, _, _ = all_kinds
        picture = io.read(folder / name)
        pages = picture.pixels if name == "pages.tif" else picture.pixels[np.newaxis]
        axis = None if picture.channel_axis is None else -1
        wanted = np.stack([aniso.denoise(page, channel_axis=axis) for page in pages])
        found = io.read(folder / "out" / name).pixels
        np.testing.assert_array_equal(found.reshape(wanted.shape), np.clip(np.rint(wanted), 0, 65535))

    def test_sixteen_bits_stay_sixteen_bits_where_nothing_happens(self, tmp_path):
        rng = np.random.default_rng(0)
        for name, shape in (("grey.png", (9, 11)), ("colour.png", (9, 11, 3)), ("colour.tif", (9, 11, 3))):
            io.write(tmp_path / name, rng.integers(0, 2**16, shape).astype(np.uint16))
        answer = called(tmp_path, "diffuse", "*.png", "*.tif", "--time", "0", "-q")
        assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "", "")
        for name in ("grey.png", "colour.png", "colour.tif"):
            before, after = (io.read(tmp_path / n) for n in (name, name.replace(".", "_diffused.")))
            assert after.dtype == np.uint16
            np.testing.assert_array_equal(after.pixels, before.pixels)


tiff: Any = tifffile


class TestScaledNifti:
    @pytest.fixture
    def scaled(self, tmp_path):
        image: Any = nibabel.Nifti1Image(noisy((20, 22), "int16").T, np.eye(4))
        image.header.set_slope_inter(0.5, 10.0)
        image.to_filename(tmp_path / "a.nii")
        return tmp_path

    def test_another_type_is_written_without_the_scale(self, scaled):
        answer = called(scaled, "diffuse", "a.nii", "--time", 1, "--contrast", 9, "--dtype", "float32")
        assert answer.exit_code == 0, answer.output
        written: Any = nibabel.load(scaled / "a_diffused.nii")
        assert written.header.get_data_dtype() == np.float32
        assert (written.dataobj.slope, written.dataobj.inter) == (1, 0)
        wanted = aniso.diffuse(io.read(scaled / "a.nii").pixels, aniso.EdgeEnhancing(contrast=9), 1.0)
        np.testing.assert_array_equal(np.asarray(written.dataobj).T, wanted)

    def test_by_default_the_scale_stays(self, scaled):
        assert called(scaled, "diffuse", "a.nii", "--time", 1, "--contrast", 9).exit_code == 0
        written: Any = nibabel.load(scaled / "a_diffused.nii")
        assert written.header.get_data_dtype() == np.int16
        assert (written.dataobj.slope, written.dataobj.inter) == (0.5, 10)

    def test_info_tells_what_is_stored(self, scaled):
        assert re.search(r"stored as +int16, times 0.5 plus 10", called(scaled, "info", "a.nii").stdout)
        (found,) = json.loads(called(scaled, "info", "a.nii", "--json").stdout)["results"]
        assert (found["dtype"], found["stored"]) == (
            "float32",
            {"dtype": "int16", "slope": 0.5, "intercept": 10.0},
        )


NOTES = {"axes": "CYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.25, "PhysicalSizeXUnit": "µm"}


class TestTiffTexts:
    """Channels that are pages stay channels, and what is said of the pixels is true."""

    def test_ome_upsampled(self, tmp_path):
        tiff.imwrite(tmp_path / "a.ome.tif", noisy((2, 12, 14), "uint16"), metadata=NOTES)
        answer = called(tmp_path, "upsample", "a.ome.tif", "--factor", 2, "-o", "b.ome.tif", "--json")
        (found,) = json.loads(answer.stdout)["results"]
        assert (found["shape"], found["channels"]) == ([24, 28], 2)
        after = io.read(tmp_path / "b.ome.tif")
        assert (after.shape, after.channels, after.spacing) == ((24, 28), 2, (0.125, 0.25))
        with tiff.TiffFile(tmp_path / "b.ome.tif") as file:
            assert file.is_ome
            assert file.series[0].axes == "CYX"
            pixels = tiff.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
        assert (pixels["SizeX"], pixels["SizeY"], pixels["SizeC"]) == (28, 24, 2)
        assert (pixels["PhysicalSizeX"], pixels["PhysicalSizeY"]) == (0.25, 0.125)

    @pytest.mark.parametrize("suffix", [".ome.tif", ".OME.TIFF"])
    def test_ome_stays_ome_by_name(self, tmp_path, suffix):
        tiff.imwrite(tmp_path / f"a{suffix}", noisy((2, 12, 14), "uint16"), ome=True, metadata=NOTES)
        assert called(tmp_path, "diffuse", f"a{suffix}", "--time", 1).exit_code == 0
        assert (tmp_path / f"a_diffused{suffix}").exists()

    @pytest.mark.parametrize(
        ("dtype", "name"), [("float32", "float"), ("float64", "double"), ("uint8", "uint8")]
    )
    def test_ome_in_another_type(self, tmp_path, dtype, name):
        tiff.imwrite(tmp_path / "a.ome.tif", noisy((2, 12, 14), "uint16"), metadata=NOTES)
        words = ("--time", 1, "--contrast", 9, "--dtype", dtype, "-o", "b.ome.tif")
        assert called(tmp_path, "diffuse", "a.ome.tif", *words).exit_code == 0
        with tiff.TiffFile(tmp_path / "b.ome.tif") as file:
            assert f' Type="{name}"' in file.ome_metadata
            assert file.series[0].dtype == dtype
            assert file.series[0].axes == "CYX"

    def test_imagej(self, tmp_path):
        notes = {"axes": "CYX", "unit": "um"}
        tiff.imwrite(
            tmp_path / "a.tif", noisy((2, 12, 14), "uint16"), imagej=True, resolution=(2, 4), metadata=notes
        )
        before = io.read(tmp_path / "a.tif")
        assert (before.channels, before.spacing) == (2, (0.25, 0.5))
        assert called(tmp_path, "upsample", "a.tif", "--factor", 2).exit_code == 0
        after = io.read(tmp_path / "a_x2.tif")
        assert (after.shape, after.channels, after.spacing) == ((24, 28), 2, (0.125, 0.25))
        assert after.unit == before.unit
        with tiff.TiffFile(tmp_path / "a_x2.tif") as file:
            assert (file.is_imagej, file.series[0].axes) == (True, "CYX")

    def test_a_stack_in_time_has_no_distance_between_its_pages(self, tmp_path):
        for name, axes, spacing in (("t", "TYX", (0.5, 0.5)), ("z", "ZYX", (3.0, 0.5, 0.5))):
            notes = {"axes": axes, "unit": "um", **({"spacing": 3.0} if axes == "ZYX" else {})}
            options = {"imagej": True, "resolution": (2, 2), "metadata": notes}
            tiff.imwrite(tmp_path / f"{name}.tif", noisy((3, 12, 14), "uint16"), **options)
            assert io.read(tmp_path / f"{name}.tif").spacing == spacing
            assert called(tmp_path, "upsample", f"{name}.tif", "--factor", 2).exit_code == 0
            # Pages of a volume get finer with it, those in time do not.
            assert io.read(tmp_path / f"{name}_x2.tif").spacing == tuple(0.5 * h for h in spacing)

    def test_tifffile_s_own(self, tmp_path):
        tiff.imwrite(
            tmp_path / "a.tif", noisy((2, 12, 14)), metadata={"axes": "CYX"}, photometric="minisblack"
        )
        assert io.read(tmp_path / "a.tif").channels == 2
        assert called(tmp_path, "upsample", "a.tif", "--factor", 2).exit_code == 0
        after = io.read(tmp_path / "a_x2.tif")
        assert (after.shape, after.channels) == ((24, 28), 2)

    def test_a_new_text_where_the_old_one_cannot_be_kept(self, tmp_path):
        tiff.imwrite(tmp_path / "a.ome.tif", noisy((2, 12, 14), "uint16"), metadata=NOTES)
        before = io.read(tmp_path / "a.ome.tif").with_dtype("float16")  # which OME does not know
        after = io.read(io.write(tmp_path / "b.tif", before))
        assert (after.dtype, after.channels, after.spacing) == (np.float16, 2, (0.25, 0.5))
        np.testing.assert_array_equal(after.pixels, before.pixels.astype(np.float16))


def with_exif(folder, name, *, preview=b"", told=True):
    """A JPEG file of 44 × 40 pixels whose EXIF says so, at 100 pixels per inch, on its side."""
    tags: list[tuple[int, int, int, bytes]] = [(274, 3, 1, struct.pack("<HH", 6, 0))]
    start = 8 + 2 + 12 * (4 if told else 2) + 4
    if told:
        tags += [(282, 5, 1, struct.pack("<I", start)), (283, 5, 1, struct.pack("<I", start))]
    rationals = struct.pack("<II", 100, 1)
    inner = start + len(rationals)
    tags.append((34665, 4, 1, struct.pack("<I", inner)))
    sizes = struct.pack("<HHHIIHHII", 2, 40962, 4, 1, 44, 40963, 4, 1, 40) + bytes(4)
    second = inner + len(sizes)
    end = second + 2 + 24 + 4
    block = b"II*\0" + struct.pack("<IH", 8, len(tags))
    block += b"".join(struct.pack("<HHI", tag, kind, count) + value for tag, kind, count, value in tags)
    block += struct.pack("<I", second if preview else 0) + rationals + sizes
    if preview:
        block += struct.pack("<HHHIIHHIII", 2, 513, 4, 1, end, 514, 4, 1, len(preview), 0) + preview
    Image.fromarray(noisy()).save(folder / name, exif=b"Exif\0\0" + block)
    return block


class TestExif:
    def test_sizes_follow_and_the_preview_goes(self, tmp_path):
        stream = BytesIO()
        Image.fromarray(noisy((10, 11))).save(stream, "JPEG")
        with_exif(tmp_path, "a.jpg", preview=stream.getvalue())
        with Image.open(tmp_path / "a.jpg") as image:
            tags = image.getexif()
            assert (tags[274], 513 in tags.get_ifd(ExifTags.IFD.IFD1)) == (
                6,
                True,
            )  # as Pillow sees it, there is a preview
        assert called(tmp_path, "upsample", "a.jpg", "--factor", 2).exit_code == 0
        with Image.open(tmp_path / "a_x2.jpg") as image:
            tags = image.getexif()
            assert (tags[274], tags[282], tags[283]) == (6, 200, 200)
            assert (tags.get_ifd(34665)[40962], tags.get_ifd(34665)[40963]) == (88, 80)
            assert not tags.get_ifd(ExifTags.IFD.IFD1)
        assert stream.getvalue()[-80:-20] not in (tmp_path / "a_x2.jpg").read_bytes()

    def test_a_preview_in_the_middle_is_blotted_out(self, tmp_path):
        block = with_exif(tmp_path, "a.jpg", preview=b"the old pixels") + b"notes of the camera"
        new = exif.with_size(block, (40, 44), (1, 1))
        assert len(new) == len(block)
        assert b"old pixels" not in new
        assert new.endswith(b"notes of the camera")

    @pytest.mark.parametrize("block", [b"", b"II", b"MM\0*\0\0\0\x08", b"II*\0\xff\xff\xff\xff", b"nonsense"])
    def test_broken_blocks_go_back_as_they_came(self, block):
        assert exif.with_size(block, (1, 1), (1, 1)) == block
        assert exif.orientation(block) == 1
        assert exif.resolution(block) is None

    @pytest.mark.parametrize("told", [True, False])
    def test_no_resolution_is_invented(self, tmp_path, told):
        with_exif(tmp_path, "a.jpg", told=told)
        assert io.read(tmp_path / "a.jpg").resolution == ((100, 100) if told else None)
        assert called(tmp_path, "diffuse", "a.jpg", "--time", 1).exit_code == 0
        with Image.open(tmp_path / "a_diffused.jpg") as image:
            assert image.info["jfif_unit"] == int(told)

    def test_other_files_stay_upright_as_they_were(self, tmp_path):
        with_exif(tmp_path, "a.jpg")
        for suffix in (".png", ".tif", ".jpg"):
            assert called(tmp_path, "upsample", "a.jpg", "--factor", 2, "-o", f"b{suffix}").exit_code == 0
            assert io.read(tmp_path / f"b{suffix}").orientation == 6

    def test_figures_are_not_turned_and_say_so(self, tmp_path):
        pytest.importorskip("matplotlib")
        with_exif(tmp_path, "a.jpg")
        answer = called(tmp_path, "scale-space", "a.jpg", "--times", "1", "--contrast", 9, "--figure")
        assert answer.exit_code == 0
        assert "a.jpg has an EXIF orientation; the figure shows it as stored." in answer.stderr
