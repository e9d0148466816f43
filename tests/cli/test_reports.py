"""What the command says on its way: notes, losses, results and progress."""

import json
import re
import sys
import time
from io import StringIO

import numpy as np
import pytest

import aniso
from aniso import io
from aniso.cli.jobs.reporting import Report
from aniso.cli.options.shared import ReportingOptions
from aniso.io.picture import Picture
from tests.cli.command_calls import called, contents, noisy


class TestHints:
    def test_contrast_and_spacing(self, tmp_path):
        io.write(tmp_path / "volume.nii.gz", Picture(noisy(dtype="int16"), spacing=(2.0, 1.0), unit="mm"))
        answer = called(tmp_path, "diffuse", "volume.nii.gz", "--time", 1)
        assert "the default contrast 3.5 suits grey values from 0 to 255" in answer.stderr
        assert "measure 2 × 1 mm but are treated as square. Add --spacing file" in answer.stderr
        words = ("--time", 1, "--contrast", 900, "--spacing", "file", "--force")
        answer = called(tmp_path, "diffuse", "volume.nii.gz", *words)
        assert (answer.exit_code, answer.stderr) == (0, "")
        wanted = aniso.diffuse(noisy(dtype="int16"), aniso.EdgeEnhancing(900), 1.0, spacing=(2.0, 1.0))
        found = io.read(tmp_path / "volume_diffused.nii.gz").pixels
        np.testing.assert_array_equal(found, np.rint(wanted))

    def test_a_file_that_does_not_say(self, camera):
        answer = called(camera, "denoise", "camera.png", "--spacing", "file")
        assert (answer.exit_code, "does not store a pixel spacing" in answer.stderr) == (1, True)

    def test_dtype_and_alpha(self, tmp_path):
        alpha = np.full((40, 44), 128, np.uint8)
        io.write(tmp_path / "a.png", Picture(noisy(), alpha=alpha))
        for dtype, opacity in (("uint16", 32896), ("float32", np.float32(128 / 255))):
            words = ("--time", 1, "--dtype", dtype, "-o", f"{dtype}.tif")
            assert called(tmp_path, "diffuse", "a.png", *words).exit_code == 0
            found = io.read(tmp_path / f"{dtype}.tif")
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.alpha, np.full((40, 44), opacity))
            assert found.pixels.max() < 256  # not scaled
        answer = called(tmp_path, "diffuse", "a.png", "--time", 1, "--dtype", "float32")
        assert (answer.exit_code, "PNG files cannot hold float32" in answer.stderr) == (1, True)


class TestWhatIsReported:
    def test_the_size_and_type_of_the_result(self, camera):
        words = ("upsample", "camera.png", "--factor", 3, "-o", "a.tif", "--dtype", "float32")
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


class TestLosses:
    """What a file cannot hold is reported."""

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


class TestNothingIsLostInSilence:
    def test_alpha_is_clipped_and_not_wrapped(self, tmp_path):
        alpha = np.full((20, 24), 255.0, np.float32)
        io.write(tmp_path / "float.tif", Picture(noisy((20, 24)).astype(np.float32), alpha=alpha))
        answer = called(tmp_path, "diffuse", "float.tif", "--time", "1", "--dtype", "uint8", "-o", "byte.tif")
        assert answer.exit_code == 0, answer.output
        assert np.all(io.read(tmp_path / "byte.tif").alpha == 255)

    def test_no_result_goes_to_another_input(self, tmp_path):
        for name in ("1.png", "2.png"):
            io.write(tmp_path / name, noisy())
        words = ("diffuse", "2.png", "1.png", "--time", "2", "-o", "{number}.png", "--force")
        answer = called(tmp_path, *words)
        assert answer.exit_code == 2
        assert "which is also an input" in " ".join(answer.output.replace("│", " ").split())
        np.testing.assert_array_equal(io.read(tmp_path / "1.png").pixels, noisy())

    def test_close_times_have_files_of_their_own(self, camera):
        answer = called(
            camera, "scale-space", "camera.png", "--times", "100.0001,100.0002", "--scheme", "fed"
        )
        assert answer.exit_code == 0, answer.output
        assert {"camera_100.0001.png", "camera_100.0002.png"} <= set(contents(camera))

    def test_an_empty_output_is_a_usage_error(self, camera):
        assert called(camera, "diffuse", "camera.png", "--time", "1", "-o", "").exit_code == 2


class Terminal(StringIO):
    """A terminal that remembers."""

    def isatty(self):
        return True


def telling(told):
    import contextlib

    @contextlib.contextmanager
    def progress(self, title):
        yield lambda done, total: told.append(done / total)

    return progress


class TestProgress:
    def shown(self, monkeypatch, **wanted):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        with Report("denoise", ReportingOptions(**wanted)).progress("camera.png") as tell:
            tell(1, 4)
            time.sleep(0.3)
        return terminal.getvalue()

    def test_on_a_terminal(self, monkeypatch):
        text = self.shown(monkeypatch)
        assert "camera.png" in text
        assert "25%" in text
        assert "-:--:--" in text or re.search(r"\d:\d\d:\d\d", text)

    def test_quiet(self, monkeypatch):
        assert self.shown(monkeypatch, quiet=True) == ""

    def test_verbs_tell_it(self, camera, monkeypatch):
        told: list[float] = []
        monkeypatch.setattr(Report, "progress", telling(told))
        assert called(camera, "denoise", "camera.png").exit_code == 0
        assert told[-1] == 1.0
        assert told == sorted(told)
        assert len(told) > 3
