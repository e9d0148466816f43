"""Files and streams that are not as they should be, or that leave open what they hold."""

import subprocess

import numpy as np
import pytest
import tifffile

from aniso import io
from aniso.io.picture import FileError, Picture
from tests.cli.command_calls import PROGRAM, WIDE, aniso_command, called, noisy
from tests.processes import PATIENCE, started

mrcfile = pytest.importorskip("mrcfile")


class TestImageJWithoutAUnit:
    """The depth of voxels is given without a unit: it is in pixels."""

    @pytest.mark.parametrize(
        ("options", "notes", "spacing"),
        [
            ({}, {}, (3.0, 1.0, 1.0)),
            ({"resolution": (2.0, 4.0), "resolutionunit": "NONE"}, {}, (3.0, 0.25, 0.5)),
            ({"resolution": (2.0, 4.0), "resolutionunit": "NONE"}, {"unit": "pixel"}, (3.0, 1.0, 1.0)),
            ({"resolution": (300, 300), "resolutionunit": "INCH"}, {}, (3.0, 1.0, 1.0)),
        ],
    )
    def test_slices(self, tmp_path, options, notes, spacing):
        path = tmp_path / "stack.tif"
        metadata = {"spacing": 3.0, "axes": "ZYX", **notes}
        tifffile.imwrite(path, noisy((4, 12, 14)), imagej=True, metadata=metadata, **options)
        picture = io.read(path)
        assert picture.spacing == pytest.approx(spacing)
        assert picture.unit is None

    def test_the_command_line_uses_it(self, tmp_path):
        path = tmp_path / "stack.tif"
        tifffile.imwrite(path, noisy((4, 12, 14)), imagej=True, metadata={"spacing": 3.0, "axes": "ZYX"})
        result = called(tmp_path, "diffuse", "stack.tif", "--time", "0.5")
        assert result.exit_code == 0
        assert "spacing 3 × 1 × 1" in result.output

    def test_pages_that_are_times_have_no_depth(self, tmp_path):
        path = tmp_path / "film.tif"
        tifffile.imwrite(path, noisy((4, 12, 14)), imagej=True, metadata={"spacing": 3.0, "axes": "TYX"})
        assert io.read(path).spacing is None


class TestStacksOfImagesInMRC:
    @pytest.fixture
    def stack(self, tmp_path):
        with mrcfile.new(tmp_path / "stack.mrc") as file:
            file.set_data(noisy((4, 12, 14), "float32"))
            file.set_image_stack()
        return tmp_path

    def test_a_note_says_that_it_is_taken_for_a_volume(self, stack):
        result = called(stack, "diffuse", "stack.mrc", "--time", "0.5")
        assert result.exit_code == 0
        assert "stack.mrc is marked as a stack of 4 images" in result.output

    @pytest.mark.parametrize("choice", ["--slices", "--volume"])
    def test_no_note_for_those_who_know(self, stack, choice):
        result = called(stack, "diffuse", "stack.mrc", "--time", "0.5", choice)
        assert result.exit_code == 0
        assert "is marked as a stack" not in result.output

    def test_no_note_on_volumes(self, tmp_path):
        io.write(tmp_path / "volume.mrc", noisy((4, 12, 14), "float32"))
        result = called(tmp_path, "diffuse", "volume.mrc", "--time", "0.5")
        assert result.exit_code == 0
        assert "is marked as a stack" not in result.output


@pytest.mark.parametrize("words", [["--help"], ["denoise", "--help"], []])
def test_help_that_nobody_reads_to_its_end(words):
    """As in `aniso --help | head`: silent, and an exit code as that of other programs."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([*PROGRAM, *words], env=WIDE, **pipes) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(PATIENCE) == 128 + 13
    assert errors == b""


@pytest.mark.parametrize("path", [None, 3, True, (1, 2), b"image.png"])
def test_names_that_are_none(path):
    for call in (io.read, io.check_input, io.check_output, lambda name: io.write(name, np.zeros((3, 3)))):
        with pytest.raises(TypeError, match=r"path must be str or os\.PathLike"):
            call(path)


def test_a_zero_byte_in_a_name():
    with pytest.raises(FileError, match="null byte"):
        io.read("a\0b.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "nothing"}, "dtype must be a numeric type"),
        ({"dtype": 1e-30}, "dtype must be a numeric type"),
        ({"channel_axis": 1.5}, "channel_axis must be a whole number"),
        ({"channel_axis": 1j}, "channel_axis must be a whole number"),
        ({"alpha": 0}, "alpha has shape"),
        ({"alpha": [1.0]}, "alpha has shape"),
        ({"pixels": [[1.0], [1.0, 2.0]]}, "pixels must be an array"),
    ],
)
def test_odd_pictures(options, message):
    with pytest.raises((FileError, TypeError, ValueError), match=message):
        Picture(**{"pixels": np.zeros((3, 3)), **options})


def test_nothing_is_printed_about_a_header_that_nibabel_mends(tmp_path):
    content = bytearray(io.write(tmp_path / "volume.nii", noisy((3, 5, 6), "float32")).read_bytes())
    content[0] ^= 1
    (tmp_path / "volume.nii").write_bytes(content)
    result = aniso_command(tmp_path, "info", "volume.nii", "--no-estimate")
    assert result.returncode == 0
    assert result.stderr == ""


class TestZarrStores:
    @pytest.fixture
    def store(self, tmp_path):
        import zarr

        array = zarr.create_array(tmp_path / "in.zarr", shape=(12, 11), chunks=(6, 6), dtype="float32")
        array[...] = noisy((12, 11), "float32")
        return tmp_path / "in.zarr"

    def test_damaged_chunks(self, store):
        for path in store.rglob("0"):
            if path.is_file():
                path.write_bytes(b"nothing")
        result = called(store.parent, "denoise", "in.zarr", "out.zarr")
        assert result.exit_code == 1
        assert "appears to be corrupt" in " ".join(result.output.split())
        assert not (store.parent / "out.zarr").exists()

    @pytest.mark.parametrize(
        "ome",
        [
            3,
            {"multiscales": 3},
            {"multiscales": [3]},
            {"multiscales": [{"datasets": 3}]},
            {"multiscales": [{"datasets": [{}]}]},
            {"multiscales": [{"datasets": [{"path": "nothing"}]}]},
            {"multiscales": [{"datasets": [{"path": "0"}], "axes": [3, None]}]},
            {"multiscales": [{"datasets": [{"path": "0", "coordinateTransformations": 3}]}]},
        ],
    )
    def test_metadata_that_are_not_as_they_should_be(self, tmp_path, ome):
        import zarr

        group = zarr.create_group(tmp_path / "in.zarr", attributes={"ome": ome})
        group.create_array("0", shape=(12, 11), dtype="float32")
        result = called(tmp_path, "denoise", "in.zarr", "out.zarr")
        assert result.exit_code == 1
        assert "OME-Zarr metadata" in result.output
        assert "unexpected" not in result.output
