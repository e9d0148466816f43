"""What the command writes, and when it refuses to: on real files, most of it in this process."""

import functools
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import ExifTags, Image

import aniso
from aniso import checks, io
from aniso.cli import commands
from aniso.io import exif
from aniso.io.formats import FORMATS
from aniso.io.picture import FileError, Picture
from aniso.verbs.table import VERBS
from tests.cli.command_calls import PROGRAM, WIDE, aniso_command, called, contents, noisy

tiff: Any = tifffile
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def camera(tmp_path):
    """A folder with a noisy grey image."""
    io.write(tmp_path / "camera.png", noisy())
    return tmp_path


@pytest.fixture
def nothing_is_computed(monkeypatch):
    """Whoever computes, fails."""

    def computed(*_, **__):
        raise AssertionError("it was computed")

    for name in VERBS:
        refuse = functools.wraps(getattr(aniso, name))(lambda *_, **__: computed())  # with its options
        monkeypatch.setattr(aniso, name, refuse)
    for module, name in (("evolve", "diffuse"), ("cli.jobs.scales", "scale_space")):
        monkeypatch.setattr(f"aniso.{module}.{name}", computed)


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
        answer = called(tmp_path, "upsample", 2, "a.ome.tif", "-o", "b.ome.tif", "--json")
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
        assert called(tmp_path, "upsample", 2, "a.tif").exit_code == 0
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
            assert called(tmp_path, "upsample", 2, f"{name}.tif").exit_code == 0
            # Pages of a volume get finer with it, those in time do not.
            assert io.read(tmp_path / f"{name}_x2.tif").spacing == tuple(0.5 * h for h in spacing)

    def test_tifffile_s_own(self, tmp_path):
        tiff.imwrite(
            tmp_path / "a.tif", noisy((2, 12, 14)), metadata={"axes": "CYX"}, photometric="minisblack"
        )
        assert io.read(tmp_path / "a.tif").channels == 2
        assert called(tmp_path, "upsample", 2, "a.tif").exit_code == 0
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
        assert called(tmp_path, "upsample", 2, "a.jpg").exit_code == 0
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
            assert called(tmp_path, "upsample", 2, "a.jpg", "-o", f"b{suffix}").exit_code == 0
            assert io.read(tmp_path / f"b{suffix}").orientation == 6

    def test_figures_are_not_turned_and_say_so(self, tmp_path):
        pytest.importorskip("matplotlib")
        with_exif(tmp_path, "a.jpg")
        answer = called(tmp_path, "scale-space", "a.jpg", "--times", "1", "--contrast", 9, "--figure")
        assert answer.exit_code == 0
        assert "a.jpg has an EXIF orientation; the figure shows it as stored." in answer.stderr


class TestListeners:
    """Standard output may be full, or closed by whoever has heard enough."""

    def piped(self, folder, *words):
        """The exit code, and standard error, if only one line is read."""
        with subprocess.Popen(
            [*PROGRAM, *words], cwd=folder, env=WIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        return process.returncode, errors

    def test_enough_was_heard(self, camera):
        io.write(camera / "b.png", noisy(seed=1))
        io.write(camera / "c.png", noisy(seed=2))
        assert self.piped(camera, "info", "camera.png", "b.png", "c.png") == (141, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
    @pytest.mark.parametrize(
        "words", [("stencil",), ("stencil", "--json"), ("info", "camera.png"), ("--help",), ("--version",)]
    )
    def test_it_is_full(self, camera, words):
        with open("/dev/full", "w") as full:
            answer = subprocess.run(
                [*PROGRAM, *words], cwd=camera, env=WIDE, stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert answer.returncode == 1
        assert answer.stderr == "aniso: standard output cannot be written: no space left on device.\n"

    def test_a_folder_that_is_gone_is_not_its_fault(self, camera):
        program = " ".join([*PROGRAM, "diffuse", "camera.png", "--time", "1"])
        script = f"mkdir gone && cd gone && rmdir ../gone && {program}"
        answer = subprocess.run(["sh", "-c", script], cwd=camera, env=WIDE, capture_output=True, text=True)
        assert answer.returncode == 1
        assert answer.stderr == "aniso: the working directory no longer exists. Change to another one.\n"

    def test_there_is_none(self, camera):
        command = " ".join([*PROGRAM, "info", "camera.png", ">&-", "2>&-"])
        assert subprocess.run(command, shell=True, cwd=camera, env=WIDE).returncode == 0


@pytest.mark.usefixtures("nothing_is_computed")
class TestBeforeComputing:
    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (("diffuse", "float.tif", "--time", 1, "-o", "a.png"), "PNG files cannot hold float32 pixels"),
            (("denoise", "float.tif", "-o", "a.jpg"), "add --dtype uint8 if values are from 0 to 255"),
            (("denoise", "stack.tif", "-o", "a.png"), "PNG files hold one image (H, W)"),
            (("denoise", "camera.png", "--dtype", "uint16", "-o", "a.jpg"), "JPEG files cannot hold uint16"),
            (("denoise", "alpha.png", "-o", "a.jpg"), "JPEG files have no transparency"),
            (("denoise", "colour.png", "-o", "a.mrc"), "MRC files hold grey values"),
            (("scale-space", "stack.tif", "--times", "1", "-o", "a{time}.jpg"), "JPEG files hold one image"),
            (("upsample", 8, "wide.png", "-o", "a.jpg"), "at most 65500 pixels along an axis"),
            (("denoise", "heights.npy"), "NaN or infinite, the first at index (1, 3, 4)"),
            (("diffuse", "heights.npy", "--time", 1), "Fill them in first"),
            (("scale-space", "camera.png", "--times", "1", "-o", "there{time}.png"), "there1.png exists"),
            (("denoise", "camera.png", "-o", "camera.png/a/{stem}.png"), "its folder is not a folder"),
        ],
    )  # fmt: skip
    def test_refusals(self, camera, words, text):
        io.write(camera / "float.tif", noisy(dtype="float32"))
        io.write(camera / "stack.tif", Picture(noisy((2, 12, 14))))
        io.write(camera / "alpha.png", Picture(noisy((12, 14)), alpha=noisy((12, 14))))
        io.write(camera / "colour.png", noisy((12, 14, 3)))
        io.write(camera / "wide.png", np.zeros((2, 9000), np.uint8))
        io.write(camera / "there1.png", noisy((12, 14)))
        heights = noisy((2, 12, 14), "float32")
        heights[1, 3, 4] = np.nan
        np.save(camera / "heights.npy", heights)
        before = contents(camera)
        answer = called(camera, *words)
        assert answer.exit_code == 1
        assert text in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert contents(camera) == before

    def test_a_package_that_is_missing(self, camera, monkeypatch):
        monkeypatch.setitem(sys.modules, "mrcfile", None)
        answer = called(camera, "denoise", "camera.png", "-o", "a.mrc")
        assert answer.exit_code == 1
        assert "MRC files need the package mrcfile" in answer.stderr

    if not ROOT:  # who may write everywhere

        def test_a_folder_that_may_not_be_written(self, camera):
            camera.chmod(0o555)
            try:
                answer = called(camera, "denoise", "camera.png")
            finally:
                camera.chmod(0o755)
            assert answer.exit_code == 1
            assert "this user may not write there" in answer.stderr

    @pytest.mark.parametrize(
        ("place", "text"),
        [
            ("result.gif", "result.gif has no suffix that stands for an image file"),
            ("out/{stem}.txt", "out/camera.txt has no suffix"),
            ("results", "For a folder, write results/."),
        ],
    )
    def test_a_bad_suffix_is_a_usage_error(self, camera, place, text):
        before = contents(camera)
        answer = called(camera, "denoise", "camera.png", "-o", place)
        assert answer.exit_code == 2
        assert text in " ".join(answer.stderr.replace("│", " ").split())
        assert contents(camera) == before


class TestFolders:
    @pytest.mark.parametrize("place", ["new/", "new/{stem}.png", "new/of/{folder}/{stem}.png", "new/of/"])
    def test_they_are_made(self, camera, place):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", place)
        assert answer.exit_code == 0, answer.output
        assert len(list((camera / "new").rglob("camera.png"))) == 1

    def test_the_examples_of_the_help_work_in_a_fresh_folder(self, camera):
        for example in commands.examples("scale-space"):
            words = example.replace("'", "").replace("16,64,256", "8").replace("16,64", "8").split()[1:]
            answer = called(camera, *words)
            assert answer.exit_code == 0, answer.output

    @pytest.mark.parametrize("place", ["new/of/", "new/of/{stem}.png"])
    def test_nothing_is_left_where_the_write_fails(self, camera, place, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setitem(FORMATS, "PNG", replace(FORMATS["PNG"], write=full))
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", place)
        assert (answer.exit_code, "the disk is full" in answer.stderr) == (1, True)
        assert set(os.listdir(camera)) == {"camera.png"}

    def test_a_file_s_folder_is_not_made(self, camera):
        assert called(camera, "diffuse", "camera.png", "--time", 1, "-o", "nwe/a.png").exit_code == 1
        assert not (camera / "nwe").exists()


class TestNoOverwriting:
    """Without --force, not even a file that appears while the result is computed."""

    @pytest.mark.parametrize("links", [True, False])
    @pytest.mark.parametrize("force", [True, False])
    def test_a_file_that_appears(self, camera, monkeypatch, force, links):
        write = FORMATS["PNG"].write

        def slow(path, picture):
            write(path, picture)
            (camera / "a.png").write_bytes(b"of somebody else")

        def no_links(*_, **__):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setitem(FORMATS, "PNG", replace(FORMATS["PNG"], write=slow))
        if not links:
            monkeypatch.setattr(os, "link", no_links)
        words = ("diffuse", "camera.png", "--time", 1, "-o", "a.png", *(["--force"] if force else []))
        answer = called(camera, *words)
        if force:
            assert answer.exit_code == 0
            assert io.read(camera / "a.png").shape == (40, 44)
        else:
            assert answer.exit_code == 1
            assert "a.png exists already since a moment ago" in answer.stderr
            assert (camera / "a.png").read_bytes() == b"of somebody else"
        assert set(os.listdir(camera)) == {"camera.png", "a.png"}

    @pytest.mark.parametrize(
        "words",
        [
            ("scale-space", "a.png", "a1.png", "--times", "1,11", "-o", "out/{stem}{time}.png"),
            ("scale-space", "a.png", "--times", "1,2", "-o", "out{time}.png"),
            ("scale-space", "a.png", "--times", "10,16", "-o", "{stem}_{time:.1}.png"),
            ("diffuse", "a.png", "a1.png", "--time", "1", "-o", "{stem}_link.png"),
            ("diffuse", "a.png", "sym.png", "--time", "1", "-o", "{name}"),
            ("diffuse", "sym.png", "a.png", "--time", "1", "-o", "{name}"),
        ],
        ids=["times", "links-of-times", "short-times", "links", "input-link", "input-link-first"],
    )
    def test_two_results_in_one_file(self, tmp_path, nothing_is_computed, words):
        """Not even with --force: one of them would be lost."""
        for name in ("a", "a1"):
            io.write(tmp_path / f"{name}.png", noisy())
        for link, to in (("sym", "a"), ("out1", "one"), ("out2", "one"), ("a_link", "b"), ("a1_link", "b")):
            (tmp_path / f"{link}.png").symlink_to(f"{to}.png")
        before = contents(tmp_path)
        answer = called(tmp_path, *words, "--force")
        assert answer.exit_code == 2
        assert "would be written to" in " ".join(re.sub("[│╭╮╰╯─]", " ", answer.stderr).split())
        assert contents(tmp_path) == before

    def test_without_links_it_is_written_too(self, camera, monkeypatch):
        def no_links(*_, **__):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", no_links)
        assert called(camera, "diffuse", "camera.png", "--time", 0, "-o", "a.png").exit_code == 0
        assert set(os.listdir(camera)) == {"camera.png", "a.png"}


class TestWhatIsReported:
    def test_the_size_and_type_of_the_result(self, camera):
        words = ("upsample", 3, "camera.png", "-o", "a.tif", "--dtype", "float32")
        assert "camera.png → a.tif  (120 × 132 pixels, float32, " in called(camera, *words).stdout
        (found,) = json.loads(called(camera, *words, "--json", "--force").stdout)["results"]
        assert (found["shape"], found["dtype"], found["format"]) == ([120, 132], "float32", "TIFF")

    def test_a_note_is_given_once(self, tmp_path):
        for name in "abc":
            io.write(
                tmp_path / f"{name}.tif", Picture(noisy((2, 12, 14), "float32"), spacing=(1.0, 2.0, 1.0))
            )
        answer = called(tmp_path, "diffuse", "*.tif", "--time", 1, "--slices")
        assert answer.stderr.count("note: ") == 3
        assert answer.stderr.count("the default contrast 3.5") == 1

    def test_a_mask_with_traces(self, camera):
        mask = np.zeros((40, 44), np.uint8)
        mask[15:19, 20:30] = 255
        for name in ("mask.png", "mask.jpg"):
            io.write(camera / name, mask)
            answer = called(camera, "inpaint", "camera.png", "--mask", name, "--force")
            assert answer.exit_code == 0
            assert ("Save masks as PNG" in answer.stderr) == (name == "mask.jpg")

    def test_infinite_values_are_filled_in_too(self, tmp_path):
        image = noisy(dtype="float32")
        image[3, 4], image[5, 6] = np.inf, np.nan
        np.save(tmp_path / "a.npy", image)
        assert called(tmp_path, "inpaint", "a.npy").exit_code == 0
        assert np.isfinite(np.load(tmp_path / "a_inpainted.npy")).all()

    def test_tables_fit_a_terminal(self, monkeypatch):
        from aniso.cli.jobs import reporting

        rows = [("a name", "word " * 30), ("other", "x")]
        assert "\n" not in reporting.columns(rows[:1]).strip()
        monkeypatch.setattr(reporting, "_is_terminal", lambda stream: True)
        monkeypatch.setenv("COLUMNS", "60")
        lines = reporting.columns(rows).splitlines()
        assert max(map(len, lines)) <= 60
        assert lines[1].startswith("          word")


# Ways of Python to say what to do; none of them helps at a prompt.
PYTHON = re.compile(
    r"numpy|astype|\bNone\b|~|dataclasses|channel_axis|[a-z_]=[A-Z0-9]|\(\)|like=|force=|limit="
)


class TestAdvice:
    @pytest.mark.parametrize(
        ("words", "advice"),
        [
            (("diffuse", "nan.npy", "--time", "1"), "with aniso inpaint"),
            (("upsample", "2", "nan.npy"), "with aniso inpaint"),
            (("diffuse", "bool.npy", "--time", "1"), "Convert it to numbers first"),
            (("denoise", "flat.npy", "--channel-axis", "7"), "Give --channel-axis, e.g. -1, or none"),
            (("diffuse", "camera.png", "--time", "1", "--step", "3"), "Use --step 0.5 or less, or leave"),
            (("diffuse", "camera.png", "--time", "1", "--angle", "3", "--step", "3"), "or leave it out"),
            (("inpaint", "camera.png", "--mask", "all.png"), "perhaps --invert was meant"),
            (("inpaint", "nan.npy", "--mask", "some.png"), "Mark them in the mask, too"),
            (("inpaint", "allnan.npy"), "nothing to fill in from"),
            (("denoise", "camera.png", "--spacing", "1,2,3"), "such as --spacing 2,1"),
            (("denoise", "camera.png", "-o", "camera.png"), "or add --force to overwrite it"),
            (("denoise", "float.npy", "-o", "a.png"), "or add --dtype uint8"),
            (("denoise", "alpha.png", "-o", "a.jpg"), "in an image editor"),
            (("denoise", "stack.npy", "-o", "a.png"), "add --channel-axis"),
            (("scale-space", "two.npy", "--channel-axis", "0", "--times", "1", "--figure"), "Leave --figure"),
            (("enhance", "camera.png", "--wavelength", "900"), "Give the distance between lines"),
            (("stencil", "--spacing", "1e300"), "Choose another unit of length"),
            (("diffuse", "camera.png", "--time", "1e25", "--scheme", "fed"), "Take more cycles"),
            (("diffuse", "camera.png", "--time", "1", "--angle", "inf"), "inf is not a finite number"),
            (("diffuse", "camera.png", "--time", "1", "--spacing", "1e-320"), "another unit of length"),
            (("denoise", "."), "Name files in it, such as '*.png'"),
            (("denoise", ""), "the name of a file is empty"),
        ],
    )  # fmt: skip
    def test_it_is_for_the_command_line(self, camera, words, advice):
        nan, image = noisy((12, 14), "float32"), noisy((12, 14), "float32")
        nan[2, 3] = np.nan
        mask = np.zeros((12, 14), np.uint8)
        mask[5:7] = 255
        for name, array in {
            "nan": nan, "bool": image > 0.5, "flat": image, "float": image, "allnan": nan * np.nan,
            "stack": np.stack([image] * 5), "two": np.stack([image] * 2),
        }.items():  # fmt: skip
            np.save(camera / f"{name}.npy", array)
        io.write(camera / "all.png", np.full((40, 44), 255, np.uint8))
        io.write(camera / "some.png", mask)
        io.write(camera / "alpha.png", Picture(mask, alpha=mask))
        answer = called(camera, *words)
        assert answer.exit_code in (1, 2)
        said = " ".join(re.sub("[│╭╮╰╯─]", " ", answer.stderr).split())
        assert advice in said
        assert not PYTHON.search(said), said

    def test_python_has_its_own(self, tmp_path):
        io.write(tmp_path / "a.png", noisy())
        with pytest.raises(FileError, match="force=True") as caught:
            io.write(tmp_path / "a.png", noisy())
        assert "force=True" not in checks.on_command_line(caught.value)
        assert checks.on_command_line(ValueError("as it is")) == "as it is"


def test_a_mask_is_read_once_for_many_files(camera, monkeypatch):
    io.write(camera / "b.png", noisy(seed=1))
    mask = np.zeros((40, 44), np.uint8)
    mask[20:22] = 255
    io.write(camera / "mask.png", mask)
    asked = []
    read = io.read

    def counted(path, **options):
        asked.append(path.name)
        return read(path, **options)

    monkeypatch.setattr(io, "read", counted)
    assert called(camera, "inpaint", "camera.png", "b.png", "--mask", "mask.png").exit_code == 0
    assert sorted(asked) == ["b.png", "camera.png", "mask.png"]


class TestLosses:
    """What a file cannot hold is told."""

    @pytest.mark.parametrize(
        ("values", "dtype", "note"),
        [
            (noisy(dtype="uint16"), "uint8", "100 % of the values of a.tif are clipped: they range from"),
            (noisy(dtype="float32"), "uint8", "leaves almost nothing"),
            (noisy(dtype="float32") * 400, "uint8", "% of the values of a.tif are clipped"),
            (noisy().astype("uint16"), "uint8", ""),
            (noisy(), "uint16", ""),
            (noisy(dtype="float32"), "float64", ""),
        ],
        ids=["16-bit", "share", "a-part", "fits", "wider", "floats"],
    )
    def test_of_another_type(self, tmp_path, values, dtype, note):
        io.write(tmp_path / "in.tif", values)
        answer = called(tmp_path, "diffuse", "in.tif", "--time", 0, "--dtype", dtype, "-o", "a.tif")
        assert answer.exit_code == 0
        assert bool(note) == any(word in answer.stderr for word in ("clipped", "almost nothing"))
        words = ("--dtype", dtype, "-o", "a.tif", "--force", "--json", "--quiet")
        notes = json.loads(called(tmp_path, "diffuse", "in.tif", "--time", 0, *words).stdout)["notes"]
        assert not note or any(note in text for text in notes)
        assert note in answer.stderr

    @pytest.mark.parametrize(("unit", "note"), [(None, "has no unit"), ("furlong", "in furlong"), ("mm", "")])
    def test_of_voxel_sizes(self, tmp_path, unit, note):
        io.write(tmp_path / "in.tif", Picture(noisy(dtype="uint16"), spacing=(2.0, 2.0), unit=unit))
        answer = called(tmp_path, "diffuse", "in.tif", "--time", 0, "-o", "a.mrc")
        assert answer.exit_code == 0
        assert ("is written without voxel size" in answer.stderr) == bool(note)
        assert note in answer.stderr
        assert (io.read(tmp_path / "a.mrc").spacing is None) == bool(note)


class TestInputs:
    def test_a_file_under_two_names_is_read_once(self, camera):
        words = ("./camera.png", "camera.png", f"../{camera.name}/camera.png", camera / "camera.png")
        answer = called(camera, "diffuse", *words, "--time", 0, "--json")
        assert (answer.exit_code, answer.stderr) == (0, "")
        assert [entry["input"] for entry in json.loads(answer.stdout)["results"]] == ["camera.png"]

    def test_a_link_is_a_file_of_its_own(self, camera):
        (camera / "link.png").symlink_to("camera.png")
        answer = called(camera, "diffuse", "camera.png", "link.png", "--time", 0)
        assert answer.exit_code == 0
        assert {"camera_diffused.png", "link_diffused.png"} <= set(os.listdir(camera))

    def test_a_circle_of_links(self, camera):
        (camera / "loop.png").symlink_to("loop.png")
        answer = called(camera, "diffuse", "loop.png", "--time", 0)
        assert (answer.exit_code, answer.stderr.count("\n")) == (1, 1)

    def test_a_name_like_an_option(self, camera):
        (camera / "camera.png").rename(camera / "-dash.png")
        answer = called(camera, "denoise", "-dash.png")
        assert (answer.exit_code, "write ./-dash.png" in answer.stderr) == (2, True)
        assert called(camera, "diffuse", "./-dash.png", "--time", 0).exit_code == 0

    @pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode elsewhere")
    def test_a_name_that_is_not_unicode(self, camera):
        (camera / "camera.png").rename(camera / os.fsdecode(b"caf\xe9.png"))
        answer = aniso_command(
            camera, "diffuse", b"caf\xe9.png".decode("utf-8", "surrogateescape"), "--time", "0"
        )
        assert answer.returncode == 0, answer.stderr
        assert b"caf\xe9_diffused.png" in os.listdir(os.fsencode(camera))

    @pytest.mark.parametrize(
        "pattern",
        ["{stem.__class__}.png", "{stem!r}.png", "{stem:>9}.png", "{stem[0]}.png", "{number:{stem}}.png"],
    )
    def test_patterns_are_of_plain_names(self, camera, pattern):
        answer = called(camera, "diffuse", "camera.png", "--time", 0, "-o", pattern)
        assert (answer.exit_code, "is not a valid pattern" in " ".join(answer.stderr.split())) == (2, True)

    def test_a_name_that_is_too_long_is_found_at_once(self, camera, nothing_is_computed):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", f"{300 * 'a'}.png")
        assert (answer.exit_code, "its name is too long" in answer.stderr) == (1, True)

    def test_numbers_may_have_leading_zeros(self, camera):
        words = ("diffuse", "camera.png", "--time", 0, "-o", "{number:03d}.png")
        assert called(camera, *words).exit_code == 0
        assert (camera / "001.png").is_file()


class TestHelpTexts:
    @pytest.mark.parametrize("name", ["", *commands.summaries()])
    def test_no_types_of_python(self, name, monkeypatch):
        monkeypatch.setitem(WIDE, "COLUMNS", "80")
        shown = called(".", *filter(None, [name]), "--help").stdout
        assert "<" not in shown.replace("<=", "")
        assert "{FILES}" not in shown
        assert max(map(len, shown.splitlines())) <= 80

    @pytest.mark.parametrize("name", commands.summaries())
    def test_examples_fit_a_terminal(self, name):
        assert max(map(len, commands.examples(name))) <= 78

    def test_a_choice_that_is_none(self, camera):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "--model", "eed")
        assert (answer.exit_code, "Value error" in answer.stderr) == (2, False)
        assert "'eed' is not one of" in answer.stderr


class TestAnImpatientFinger:
    @pytest.mark.parametrize("delay", [0.01, 0.05, 0.1, 0.2, 0.4])
    def test_ctrl_c_before_anything_was_done(self, camera, delay):
        """Python itself takes a moment to start; from then on, nothing heavy is imported unguarded."""
        program = "from aniso.__main__ import main; print(flush=True); main()"
        with subprocess.Popen(
            [sys.executable, "-c", program, "denoise", "camera.png"], cwd=camera, env=WIDE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        assert (process.returncode, b"Traceback" in errors) == (130, False)
        assert set(os.listdir(camera)) == {"camera.png"}


def test_demo_in_a_folder_without_a_name(tmp_path, monkeypatch):
    from aniso.cli.jobs import demonstration

    panel = demonstration.Panel(
        "panel", "a panel", "", np.full((demonstration._SIDE, demonstration._SIDE), 100.0, np.float32)
    )
    monkeypatch.setattr(demonstration, "BLOCKS", (lambda: demonstration.Block("Title", "call()", [panel]),))
    for place, where in (("", "aniso-demo"), (".", "aniso-demo-2")):
        answer = called(tmp_path, "demo", "-o", place)
        assert f"Wrote {where}/demo.png" in answer.stdout
