"""What is written is whole: paths, existing files, interruptions, and missing packages."""

import dataclasses
import errno
import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import imagecodecs
import mrcfile
import nibabel
import numpy as np
import pytest
from PIL import Image

import aniso
from aniso.io import FileError, check_output, read, write
from tests.io.files import (
    MAKERS,
    contents,
    denied,
    pixels,
    refused,
    tiff,
)
from tests.processes import started


class TestPaths:
    def test_missing(self, tmp_path):
        refused(lambda: read(tmp_path / "a.png"), "a.png does not exist")

    def test_a_folder(self, tmp_path):
        (tmp_path / "a.png").mkdir()
        refused(lambda: read(tmp_path / "a.png"), "is a folder")
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7)), force=True), "is a folder")

    def test_a_pipe(self, tmp_path):
        if sys.platform == "win32":
            return  # pipes have no place among the files there
        os.mkfifo(tmp_path / "a.png")
        refused(lambda: read(tmp_path / "a.png"), "a device or a pipe")
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7)), force=True), "a device or a pipe")

    @pytest.mark.parametrize("name", ["a.gif", "a", "a.png.bak", ".png", "a.gz", "png"])
    def test_unknown_suffix(self, tmp_path, name):
        parts = (
            name,
            "PNG (.png)",
            "JPEG (.jpg, .jpeg)",
            "TIFF (.tif, .tiff, .ome.tif, .ome.tiff)",
            "NPY (.npy)",
            "MRC (.mrc",
        )
        refused(lambda: read(tmp_path / name), *parts, "NIfTI (.nii, .nii.gz)")
        refused(lambda: write(tmp_path / name, pixels((5, 7))), *parts, folder=tmp_path)

    @pytest.mark.parametrize(
        "name", ["A.PNG", "b.Tif", "c.NII.GZ", "d.e.f.npy", "é ü.jpeg", "x" * 240 + ".png"]
    )
    def test_names(self, tmp_path, name):
        write(tmp_path / name, pixels((8, 8)))
        assert read(str(tmp_path / name)).shape == (8, 8)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_relative_paths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write("a.png", pixels((5, 7)))
        assert read("a.png").source == tmp_path / "a.png"

    def test_no_permission_to_read(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        monkeypatch.setattr(Path, "open", denied)
        refused(lambda: read(path), "may not be read", "permissions")

    def test_no_permission_to_write(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "open", denied)
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7))), "may not write there")
        assert not contents(tmp_path)

    def test_a_folder_that_is_not_there(self, tmp_path):
        refused(lambda: write(tmp_path / "no" / "a.png", pixels((5, 7))), "folder does not exist")

    def test_an_existing_file(self, tmp_path):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        refused(lambda: write(path, np.zeros((5, 7), np.uint8)), "exists already", "force", folder=tmp_path)
        write(path, np.zeros((5, 7), np.uint8), force=True)
        assert not read(path).pixels.any()

    def test_the_input_itself(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        picture = read(path)
        (tmp_path / "sub").mkdir()
        names = [path, tmp_path / "sub" / ".." / "a.png", Path("a.png"), tmp_path / "hard.png"]
        os.link(path, tmp_path / "hard.png")
        if os.name == "posix":
            names.append(tmp_path / "soft.png")
            (tmp_path / "soft.png").symlink_to("a.png")
        monkeypatch.chdir(tmp_path)
        for name in names:
            call = lambda name=name: write(name, picture.pixels, like=picture)  # noqa: E731
            refused(call, "is the input itself", "force", folder=tmp_path)
            refused(lambda name=name: check_output(name, source=path), "is the input itself")
        write(path, np.zeros((5, 7)), like=picture, force=True)
        assert not read(path).pixels.any()
        assert read(tmp_path / "hard.png").pixels.any()

    def test_a_symbolic_link_is_written_through(self, tmp_path):
        if os.name != "posix":
            return  # making links takes privileges elsewhere
        (tmp_path / "sub").mkdir()
        write(tmp_path / "sub" / "a.png", pixels((5, 7)))
        (tmp_path / "link.png").symlink_to(Path("sub", "a.png"))
        write(tmp_path / "link.png", np.zeros((5, 7), np.uint8), force=True)
        assert (tmp_path / "link.png").is_symlink()
        assert not read(tmp_path / "sub" / "a.png").pixels.any()

    def test_outputs_are_checked_before_the_work(self, tmp_path):
        check_output(tmp_path / "a.png")
        write(tmp_path / "a.png", pixels((5, 7)))
        refused(lambda: check_output(tmp_path / "a.png"), "exists already")
        check_output(tmp_path / "a.png", force=True)
        refused(lambda: check_output(tmp_path / "a.gif", force=True), "a.gif")

    def test_permissions_are_ordinary_and_kept(self, tmp_path):
        if os.name != "posix":
            return  # there are no such permissions elsewhere
        (tmp_path / "other").touch()
        path = write(tmp_path / "a.png", pixels((5, 7)))
        assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
        path.chmod(0o640)
        write(path, pixels((5, 7)), force=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


ENCODERS = {
    ".png": (imagecodecs, "png_encode"),
    ".jpg": (Image.Image, "save"),
    ".tif": (tiff.TiffWriter, "write"),
    ".npy": (np, "save"),
    ".nii": (nibabel.Nifti1Image, "to_filename"),
    ".mrc": (mrcfile, "new"),
}


class TestInterruptions:
    @pytest.mark.parametrize("suffix", ENCODERS)
    @pytest.mark.parametrize(
        "error", [KeyboardInterrupt, SystemExit, OSError(errno.ENOSPC, "full"), RuntimeError("?")]
    )
    def test_the_old_file_stays(self, tmp_path, monkeypatch, suffix, error):
        path = write(tmp_path / f"a{suffix}", pixels((8, 8), "uint8" if suffix != ".mrc" else "int16"))
        before = contents(tmp_path)

        def fails(*_, **__):
            (temporary,) = (found for found in tmp_path.iterdir() if found != path)
            temporary.write_bytes(b"half of it")
            raise error

        monkeypatch.setattr(*ENCODERS[suffix], fails)
        expected = FileError if isinstance(error, Exception) else error
        with pytest.raises(expected, match=None if expected is error else "cannot be written"):
            write(path, np.zeros((8, 8), "uint8" if suffix != ".mrc" else "int16"), force=True)
        assert contents(tmp_path) == before

    def test_a_full_disk(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7))), "the disk is full", folder=tmp_path)

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".nii", ".nii.gz", ".mrc"])
    def test_a_disk_that_fills_up_in_the_middle(self, tmp_path, suffix):
        """A limit on the length of files cuts writes short, as a disk does on which there is little room."""
        pytest.importorskip("resource")  # not on Windows
        path = write(tmp_path / f"a{suffix}", pixels((8, 8)))
        before = contents(tmp_path)
        program = textwrap.dedent(
            """
            import resource, signal, sys
            import numpy as np
            from aniso import io

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
            noise = np.random.default_rng(0).integers(0, 255, (200, 200)).astype(np.uint8)
            try:
                io.write(sys.argv[1], noise, force=True)
            except io.FileError as error:
                print(error)
            """
        )
        source = str(Path(aniso.__file__).parents[1])
        result = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": source},
        )  # fmt: skip
        assert re.search("cannot be written: (the disk is full|file too large)", result.stdout)
        assert contents(tmp_path) == before

    def test_the_last_moment(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        monkeypatch.setattr(os, "replace", denied)
        call = lambda: write(path, np.zeros((5, 7), np.uint8), force=True)  # noqa: E731
        refused(call, "may not write", folder=tmp_path)

    @pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
    def test_killed_in_the_middle(self, tmp_path, suffix):
        """Another process is killed with half of the bytes written: nobody sees the half."""
        folder = tmp_path / "killed"
        folder.mkdir()
        path = write(folder / f"a{suffix}", pixels((50, 70)))
        before = path.read_bytes()
        program = textwrap.dedent(
            """
            import os, sys, time
            import numpy as np
            from aniso import io

            def slow(descriptor):
                # the file is complete but for its name; cut it, as if the bytes were still on their way
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
                print("half", flush=True)
                time.sleep(1e4)

            os.fsync = slow
            io.write(sys.argv[1], np.zeros((50, 70), np.uint8), force=True)
            """
        )
        source = str(Path(aniso.__file__).parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        }
        with started(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout.readline() == "half\n"
            process.kill()
        assert path.read_bytes() == before
        assert read(path).pixels.any()
        (left,) = (found for found in folder.iterdir() if found != path)  # a kill leaves no time to tidy up
        assert left.name.startswith(".a-")
        left.unlink()


class TestExtras:
    @pytest.mark.parametrize(
        ("suffix", "name", "extra"),
        [(".nii", "nibabel", "volumes"), (".mrc", "mrcfile", "volumes"), (".nrrd", "SimpleITK", "medical")],
    )
    def test_what_is_not_installed_is_named(self, tmp_path, monkeypatch, suffix, name, extra):
        MAKERS[suffix](tmp_path / f"a{suffix}")
        monkeypatch.setitem(sys.modules, name, None)
        refused(lambda: read(tmp_path / f"a{suffix}"), name, f'pip install "aniso[{extra}]"')
        refused(
            lambda: write(tmp_path / f"b{suffix}", pixels((5, 7), "int16")),
            f'pip install "aniso[{extra}]"',
            folder=tmp_path,
        )

    def test_nothing_is_imported_before_it_is_used(self):
        program = "import sys, aniso.io; print(*sys.modules)"
        output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        heavy = {"PIL", "tifffile", "imagecodecs", "nibabel", "mrcfile", "numba"}
        assert not heavy.intersection(output.stdout.split())

    def test_pictures_say_what_they_are(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((5, 7, 4), "uint16")))
        assert repr(picture) == "<Picture: 5 × 7 pixels, 3 channels, uint16 PNG, with alpha>"
        with pytest.raises(dataclasses.FrozenInstanceError):
            picture.alpha = None  # type: ignore[misc]

    def test_a_picture_can_be_diffused_and_written(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((16, 16, 4), "uint16")))
        result = aniso.diffuse(picture.pixels, aniso.Homogeneous(), 1.0, channel_axis=picture.channel_axis)
        after = read(write(tmp_path / "b.png", result, like=picture))
        np.testing.assert_allclose(after.pixels, result, atol=0.5)
