"""Commands do what functions do: verbs, diffusions, inpainting, volumes and arrays."""

import dataclasses
import json
import re

import numpy as np
import pytest

import aniso
from aniso import io, models
from aniso.io.picture import Picture
from tests.cli.command_calls import aniso_command, called, contents, noisy


class TestVerbs:
    def test_denoise(self, camera):
        answer = aniso_command(camera, "denoise", "camera.png", "--noise", "13", "--threads", "1")
        assert answer.returncode == 0
        assert answer.stdout.startswith("camera.png → camera_denoised.png  (40 × 44 pixels, uint8, ")
        assert re.search(r"noise level +13 grey values", answer.stdout)
        assert answer.stderr == ""

    def test_enhance(self, tmp_path):
        io.write(tmp_path / "fingerprint.png", aniso.samples.fingerprint(64).image.clip(0, 255).astype("u1"))
        answer = called(tmp_path, "enhance", "fingerprint.png", "--wavelength", "9", "--json")
        (result,) = json.loads(answer.stdout)["results"]
        assert result["info"][0]["wavelength"] == 9.0
        assert (tmp_path / "fingerprint_enhanced.png").exists()

    def test_upsample(self, tmp_path):
        alpha = np.arange(48, dtype=np.uint8).reshape(6, 8)
        io.write(tmp_path / "photo.png", Picture(noisy((6, 8, 3)), -1, alpha, resolution=(100.0, 100.0)))
        assert called(tmp_path, "upsample", "photo.png", "--factor", "3").exit_code == 0
        fine = io.read(tmp_path / "photo_x3.png")
        assert fine.shape == (18, 24)
        np.testing.assert_array_equal(fine.alpha, alpha.repeat(3, 0).repeat(3, 1))
        assert fine.resolution == pytest.approx((300, 300), rel=1e-3)

    def test_diffuse_as_in_python(self, camera):
        words = ("--model", "coherence-enhancing", "--contrast", 5, "--rho", 2, "--time", 3, "--alpha", 0.25)
        answer = called(
            camera, "diffuse", "camera.png", *words, "--scheme", "fed", "--cycles", 2, "-o", "a.npy"
        )
        assert answer.exit_code == 0, answer.output
        model = aniso.CoherenceEnhancing(contrast=5, rho=2)
        wanted = aniso.diffuse(noisy(), model, 3.0, stencil=aniso.DeltaStencil(0.25), scheme=aniso.FED(2))
        np.testing.assert_array_equal(np.load(camera / "a.npy"), np.clip(np.rint(wanted), 0, 255))

    @pytest.mark.parametrize("name", models.kinds())
    def test_every_model_runs(self, camera, name):
        answer = called(camera, "diffuse", "camera.png", "--model", name, "--time", 1, "--json")
        found = json.loads(answer.stdout)["model"]
        assert found.pop("name") == models.kinds()[name].__name__
        defaults = {field.name: field.default for field in dataclasses.fields(models.kinds()[name])}
        assert found == defaults

    def test_a_constant_tensor(self, camera):
        answer = called(camera, "diffuse", "camera.png", "--angle", 90, "--time", 4, "-o", "down.png")
        assert answer.exit_code == 0, answer.output
        wanted = aniso.diffuse(noisy(), aniso.FixedTensor.from_matrix([[1, 0], [0, 0]], (40, 44)), 4.0)
        found = io.read(camera / "down.png").pixels
        assert abs(found - np.rint(wanted)).max() <= 1

    def test_engines_and_spacing(self, camera):
        for name in ("cpu", "reference"):
            words = ("--time", 2, "--engine", name, "--spacing", "1,2", "--dtype", "float32")
            assert called(camera, "diffuse", "camera.png", *words, "-o", f"{name}.npy").exit_code == 0
        wanted = aniso.diffuse(noisy(), aniso.EdgeEnhancing(), 2.0, spacing=(1.0, 2.0))
        np.testing.assert_array_equal(np.load(camera / "cpu.npy"), wanted)
        np.testing.assert_allclose(np.load(camera / "reference.npy"), wanted, atol=1e-2)

    def test_scale_space(self, camera):
        answer = called(camera, "scale-space", "camera.png", "--times", "0,1,2.5")
        assert answer.exit_code == 0, answer.output
        assert {"camera_0.png", "camera_1.png", "camera_2.5.png"} <= set(contents(camera))
        np.testing.assert_array_equal(io.read(camera / "camera_0.png").pixels, noisy())
        wanted = aniso.diffuse(noisy(), aniso.EdgeEnhancing(), 1.0)
        np.testing.assert_array_equal(io.read(camera / "camera_1.png").pixels, np.rint(wanted))

    def test_a_scale_space_of_one_time(self, camera):
        assert (
            "camera.png at one time  (" in called(camera, "scale-space", "camera.png", "--times", "1,").stdout
        )

    def test_scale_space_of_pages(self, tmp_path):
        io.write(tmp_path / "scan.tif", Picture(noisy((2, 20, 24))))
        words = ("--times", "1,2", "-o", "{stem}-t{time}.npy", "--json", "--contrast", "4")
        answer = called(tmp_path, "scale-space", "scan.tif", *words)
        outputs = json.loads(answer.stdout)["results"][0]["outputs"]
        assert outputs == [{"time": 1.0, "output": "scan-t1.npy"}, {"time": 2.0, "output": "scan-t2.npy"}]
        assert np.load(tmp_path / "scan-t2.npy").shape == (2, 20, 24)

    def test_a_figure(self, camera):
        answer = called(camera, "scale-space", "camera.png", "--times", "0,4", "--figure", "-q")
        assert answer.exit_code == 0, answer.output
        figure = io.read(camera / "camera_scale-space.png")
        assert figure.channels == 3
        assert min(figure.shape) > 300

    def test_bench(self, tmp_path):
        answer = called(tmp_path, "bench", "--size", 64, "--rounds", 1, "--threads", 1, "--json")
        found = json.loads(answer.stdout)
        assert (found["size"], found["threads"], len(found["results"])) == (64, 1, 3)
        assert all(entry["megapixels_per_second"] > 0 for entry in found["results"])
        assert "64 × 64 pixels, float32, engine cpu, 1 thread\n" in called(
            tmp_path, "bench", "--size", 64, "--rounds", 1, "--threads", 1
        ).stdout  # fmt: skip


class TestInpaint:
    def mask(self, shape=(40, 44)):
        mask = np.zeros(shape, np.uint8)
        mask[..., 15:19, 20:30] = 255
        return mask

    @pytest.mark.parametrize("inverted", [False, True])
    def test_a_mask(self, tmp_path, inverted):
        io.write(tmp_path / "photo.png", noisy((40, 44, 3)))
        io.write(tmp_path / "mask.png", 255 - self.mask() if inverted else self.mask())
        words = ["--mask", "mask.png", *(["--invert"] if inverted else [])]
        assert called(tmp_path, "inpaint", "photo.png", *words).exit_code == 0
        found, known = io.read(tmp_path / "photo_inpainted.png").pixels, self.mask() == 0
        np.testing.assert_array_equal(found[known], noisy((40, 44, 3))[known])
        assert (found[~known] != noisy((40, 44, 3))[~known]).any()

    def test_a_value(self, tmp_path):
        image = noisy(dtype="uint16")
        image[5:9, 5:9] = 0
        io.write(tmp_path / "scan.tif", image)
        answer = called(tmp_path, "inpaint", "scan.tif", "--mask-value", 0, "--json")
        assert json.loads(answer.stdout)["results"][0]["info"][0]["unknown"] == 16 / image.size
        assert io.read(tmp_path / "scan_inpainted.tif").pixels[5:9, 5:9].min() > 10000

    def test_nan_and_pages(self, tmp_path):
        stack = noisy((2, 40, 44), "float32")
        stack[1, 3:5, 3:5] = np.nan
        np.save(tmp_path / "stack.npy", stack)
        assert called(tmp_path, "inpaint", "stack.npy").exit_code == 0
        found = np.load(tmp_path / "stack_inpainted.npy")
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[0], stack[0])

    def test_a_mask_for_each_page_or_for_all(self, tmp_path):
        io.write(tmp_path / "scan.tif", Picture(noisy((2, 40, 44))))
        io.write(tmp_path / "one.png", self.mask())
        io.write(tmp_path / "each.tif", Picture(np.stack([self.mask(), 0 * self.mask()])))
        for name, unknown in (("one.png", [1, 1]), ("each.tif", [1, 0])):
            answer = called(tmp_path, "inpaint", "scan.tif", "--mask", name, "--json", "--force")
            found = [info["unknown"] for info in json.loads(answer.stdout)["results"][0]["info"]]
            assert found == [40 / (40 * 44) * one for one in unknown]

    @pytest.mark.parametrize(
        ("words", "code", "text"),
        [
            ((), 1, "nothing to fill in: no pixel is NaN or infinite. Give --mask or --mask-value."),
            (("--mask", "empty.png"), 1, "empty.png marks no unknown pixels"),
            (("--mask", "small.png"), 1, "small.png has 5 × 5 pixels"),
            (("--mask", "missing.png"), 1, "missing.png does not exist"),
            (("--mask-value", "300"), 1, "no pixel has the value 300"),
            (("--mask", "small.png", "--mask-value", "0"), 2, "Give one of them"),
            (("--invert",), 2, "--invert needs a mask"),
            (("--tolerance", "0", "--mask", "small.png"), 2, "0 is out of range: must be above 0"),
        ],
    )
    def test_refusals(self, camera, words, code, text):
        io.write(camera / "empty.png", 0 * self.mask())
        io.write(camera / "small.png", np.ones((5, 5), np.uint8))
        before = contents(camera)
        answer = called(camera, "inpaint", "camera.png", *words)
        assert answer.exit_code == code
        assert text in answer.stderr
        assert contents(camera) == before


class TestMasksOfOtherVerbs:
    UNKNOWN = np.zeros((40, 44), bool)
    UNKNOWN[15:19, 20:30] = True

    @pytest.mark.parametrize("verb", ["denoise", "enhance"])
    def test_a_mask_a_value_or_nan(self, tmp_path, verb):
        image = noisy(dtype="float32")
        expected = getattr(aniso, verb)(image, mask=self.UNKNOWN)
        io.write(tmp_path / "mask.png", self.UNKNOWN.astype(np.uint8))
        calls = {0.5: ["--mask", "mask.png"], -7.0: ["--mask-value", "-7"], np.nan: []}
        for value, words in calls.items():
            np.save(tmp_path / "a.npy", np.where(self.UNKNOWN, np.float32(value), image))
            answer = called(tmp_path, verb, "a.npy", *words, "-o", "b.npy", "--force")
            assert answer.exit_code == 0, answer.output
            np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), expected)

    def test_a_plan(self, tmp_path):
        np.save(tmp_path / "a.npy", noisy(dtype="float32"))
        np.save(tmp_path / "b.npy", np.where(self.UNKNOWN, np.nan, noisy(dtype="float32", seed=1)))
        assert called(tmp_path, "enhance", "a.npy", "--save-plan", "p.json").exit_code == 0
        answer = called(tmp_path, "enhance", "b.npy", "--plan", "p.json")
        assert answer.exit_code == 0, answer.output
        assert np.isfinite(np.load(tmp_path / "b_enhanced.npy")).all()

    def test_frames_take_none(self, camera):
        answer = called(camera, "enhance", "camera.png", "--frames", "--mask-value", "0")
        assert answer.exit_code == 2
        assert "--frames takes no mask" in answer.stderr


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


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (("denoise",), ("noise", "contrast", "time")),
        (("enhance",), ("noise", "wavelength", "contrast", "time")),
        (("inpaint",), ("contrast", "sigma", "rho")),
        (("upsample", "--factor", 2), ("contrast", "sigma", "rho", "time")),
    ],
    ids=["denoise", "enhance", "inpaint", "upsample"],
)
def test_auto_is_as_if_an_option_were_left_out(tmp_path, command, options):
    image = noisy((24, 28), "float32")
    image[3, 4] = np.nan if command == ("inpaint",) else 0
    np.save(tmp_path / "image.npy", image)
    words = [word for option in options for word in (f"--{option}", "auto")]
    for output, given in (("plain.npy", []), ("auto.npy", words)):
        answer = called(tmp_path, *command, "image.npy", "-o", output, *given)
        assert answer.exit_code == 0, answer.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "auto.npy"), np.load(tmp_path / "plain.npy"))


class TestNpy:
    def test_channels(self, tmp_path):
        np.save(tmp_path / "last.npy", noisy((40, 44, 3), "float32"))
        np.save(tmp_path / "first.npy", np.moveaxis(noisy((40, 44, 3), "float32"), -1, 0))
        for name, axis in (("last", -1), ("first", 0)):
            words = ("--time", 2, "--contrast", 0.05, "--channel-axis", axis)
            assert called(tmp_path, "diffuse", f"{name}.npy", *words).exit_code == 0
        last, first = (np.load(tmp_path / f"{name}_diffused.npy") for name in ("last", "first"))
        np.testing.assert_array_equal(np.moveaxis(first, 0, -1), last)

    def test_colours_or_a_stack(self, tmp_path):
        np.save(tmp_path / "a.npy", noisy((40, 44, 3), "float32"))
        answer = called(tmp_path, "denoise", "a.npy")
        assert answer.exit_code == 1
        assert "Add --channel-axis -1 or --channel-axis none." in answer.stderr
        np.save(tmp_path / "stack.npy", noisy((3, 40, 44), "float32"))
        answer = called(tmp_path, "diffuse", "stack.npy", "--time", 0, "--channel-axis", "none")
        assert (answer.exit_code, "volume 3 × 40 × 44" in answer.stdout) == (0, True)

    def test_other_files_say_it_themselves(self, camera):
        answer = called(camera, "denoise", "camera.png", "--channel-axis", -1)
        assert (answer.exit_code, "--channel-axis is for NPY" in answer.stderr) == (1, True)
        assert called(camera, "denoise", "camera.png", "--channel-axis", "x").exit_code == 2

    def test_too_many_axes(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((2, 2, 2, 8, 8)))
        answer = called(tmp_path, "denoise", "a.npy")
        assert (answer.exit_code, "has 5 axes" in answer.stderr) == (1, True)

    def test_signals(self, tmp_path):
        np.save(tmp_path / "signal.npy", noisy((1, 60), "float64")[0])
        assert called(tmp_path, "diffuse", "signal.npy", "--time", 2, "--contrast", 0.1).exit_code == 0
        wanted = aniso.diffuse(noisy((1, 60), "float64")[0], aniso.EdgeEnhancing(contrast=0.1), 2.0)
        np.testing.assert_array_equal(np.load(tmp_path / "signal_diffused.npy"), wanted)


class TestVolumes:
    """Stacks that are volumes are filtered as such, with the shape of their voxels."""

    VOLUME = aniso.samples.balls((9, 14, 16), noise=20.0).image.clip(0, 255)

    @pytest.mark.parametrize(("name", "unit"), [("v.nii.gz", "mm"), ("v.mrc", "Å"), ("v.tif", "um")])
    def test_the_voxel_size_is_used_and_kept(self, tmp_path, name, unit):
        volume = self.VOLUME.astype(np.float32)
        io.write(tmp_path / name, Picture(volume, spacing=(6.0, 2.0, 2.0), unit=unit))
        answer = called(tmp_path, "denoise", name)
        assert answer.exit_code == 0, answer.stderr
        assert "(volume 9 × 14 × 16, spacing 3 × 1 × 1, float32" in answer.stdout
        found = io.read(tmp_path / name.replace("v.", "v_denoised."))
        assert found.spacing == pytest.approx((6.0, 2.0, 2.0))
        np.testing.assert_array_equal(found.pixels, aniso.denoise(volume, spacing=(3, 1, 1)))

    def test_slices_and_volume(self, tmp_path):
        io.write(tmp_path / "many.tif", Picture(self.VOLUME.astype(np.uint16)))
        io.write(tmp_path / "few.tif", Picture(self.VOLUME.astype(np.uint16)[:4]))
        for words, volume, note in (
            (["many.tif"], True, "filtered as one volume. Add --slices"),
            (["many.tif", "--slices"], False, "filtered one by one"),
            (["few.tif"], False, "filtered one by one. Add --volume"),
            (["few.tif", "--volume"], True, ""),
        ):
            answer = called(tmp_path, "diffuse", *words, "--time", 1, "--force")
            assert answer.exit_code == 0
            assert ("(volume " in answer.stdout) is volume
            assert note in " ".join(answer.stderr.split())

    def test_one_slice_is_an_image(self, tmp_path):
        io.write(tmp_path / "one.mrc", Picture(self.VOLUME.astype(np.float32)[:1]))
        answer = called(tmp_path, "diffuse", "one.mrc", "--time", 1)
        assert (answer.exit_code, "14 × 16 pixels" in answer.stdout) == (0, True)

    def test_all_verbs(self, tmp_path):
        np.save(tmp_path / "v.npy", self.VOLUME)
        io.write(tmp_path / "mask.png", Picture(np.eye(14, 16, dtype=np.uint8) * 255))
        lines = aniso.enhance(self.VOLUME, plates=False)
        assert called(tmp_path, "enhance", "v.npy", "--no-plates").exit_code == 0
        np.testing.assert_array_equal(np.load(tmp_path / "v_enhanced.npy"), lines)
        assert called(tmp_path, "upsample", "v.npy", "--factor", 2).exit_code == 0
        assert np.load(tmp_path / "v_x2.npy").shape == (18, 28, 32)
        assert called(tmp_path, "inpaint", "v.npy", "--mask", "mask.png").exit_code == 0
        found, known = np.load(tmp_path / "v_inpainted.npy"), np.eye(14, 16) == 0
        np.testing.assert_array_equal(found[:, known], self.VOLUME[:, known])
        assert called(tmp_path, "scale-space", "v.npy", "--times", "1,2", "--figure").exit_code == 0
        answer = called(tmp_path, "diffuse", "v.npy", "--tensor", 1, 0, 1, "--time", 1)
        assert (answer.exit_code, "--slices" in answer.stderr) == (1, True)

    def test_spacing_may_be_given(self, tmp_path):
        np.save(tmp_path / "v.npy", self.VOLUME)
        answer = called(tmp_path, "diffuse", "v.npy", "--time", 1, "--spacing", "2,1,1")
        assert (answer.exit_code, "spacing 2 × 1 × 1" in answer.stdout) == (0, True)
        model = aniso.EdgeEnhancing()
        expected = aniso.diffuse(self.VOLUME, model, 1.0, spacing=(2, 1, 1))
        np.testing.assert_array_equal(np.load(tmp_path / "v_diffused.npy"), expected)


class TestFactors:
    """upsample with one factor per axis, given or from the spacing of the file."""

    @pytest.fixture
    def slices(self, tmp_path):
        volume = noisy((8, 10, 12), "float32")
        picture = io.Picture(volume, spacing=(3.0, 1.0, 0.5), unit="mm")
        io.write(tmp_path / "slices.nii", picture)
        return volume

    def test_one_per_axis(self, tmp_path, slices):
        answer = called(tmp_path, "upsample", "slices.nii", "--factor", "3,1,1")
        assert answer.exit_code == 0, answer.stderr
        found = io.read(tmp_path / "slices_x3x1x1.nii")
        assert found.spacing == (1.0, 1.0, 0.5)
        expected = aniso.upsample(slices, (3, 1, 1), spacing=(6, 2, 1))
        np.testing.assert_array_equal(found.pixels, expected)
        assert "volume 24 × 10 × 12, spacing 2 × 2 × 1" in answer.stdout

    def test_isotropic(self, tmp_path, slices):
        answer = called(tmp_path, "upsample", "slices.nii", "--isotropic")
        assert answer.exit_code == 0, answer.stderr
        found = io.read(tmp_path / "slices_isotropic.nii")
        assert found.spacing == (0.5, 0.5, 0.5)
        expected = aniso.upsample(slices, isotropic=True, spacing=(3.0, 1.0, 0.5))
        np.testing.assert_array_equal(found.pixels, expected)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["a.npy", "--isotropic"], "does not store a pixel spacing. Give --spacing Y,X"),
            (["a.npy", "--factor", "2,2,2"], "got 3 values"),
            (["a.npy", "--isotropic", "--spacing", "9,1"], "would need the factors (9, 1)"),
        ],
    )
    def test_refusals(self, tmp_path, words, message):
        np.save(tmp_path / "a.npy", noisy((10, 12), "float32"))
        answer = called(tmp_path, "upsample", *words)
        assert answer.exit_code == 1
        assert message in " ".join(answer.stderr.split())
        assert list(contents(tmp_path)) == ["a.npy"]
