"""Recipes give the result exactly: as Python and as a command."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import aniso
from aniso.cli import app
from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.scene import Scene, Source
from aniso.explorer.choosing.unknown_pixels import RandomPixels, paint
from aniso.stencil import DeltaStencil

VOLUME = np.random.default_rng(5).normal(100, 20, (6, 48, 40)).astype(np.float32)
PHOTOGRAPH = np.random.default_rng(4).integers(0, 255, (40, 52, 3), dtype=np.uint8)
DEEP = np.random.default_rng(3).integers(0, 60000, (45, 38), dtype=np.uint16)


def drawn(shape, points, radius):
    mask = np.zeros(shape, bool)
    paint(mask, points, radius)
    return mask


RECIPES = {
    "denoise a photograph": ("photo.png", Choices("denoise").with_value("noise", 7.3)),
    "denoise a kind of noise": ("photo.png", Choices("denoise").with_value("noise", "poisson")),
    "a volume, with a kind of noise": ("volume.npy, whole", Choices("denoise").with_value("noise", "rician")),
    "denoise one diffusion": ("deep.tif", Choices("denoise").with_value("mix", False)),
    "enhance": ("deep.tif", replace(Choices("enhance"), stencil=DeltaStencil(0.3, 0.5))),
    "inpaint at random": ("photo.png", Choices("inpaint", random_pixels=RandomPixels(0.63, 4))),
    "inpaint what was drawn": (
        "deep.tif",
        Choices(
            "inpaint",
            random_pixels=None,
            drawn=drawn((45, 38), [[5, 7], [30, 20]], 4.5),
        ).with_value("sigma", 0.9),
    ),
    "inpaint what is missing": ("missing.npy", Choices("inpaint", random_pixels=None)),
    "inpaint what is missing and at random": (
        "missing.npy",
        Choices("inpaint", random_pixels=RandomPixels(0.3)),
    ),
    "inpaint what is missing in colours": (
        "missing colours.npy",
        Choices("inpaint", random_pixels=None, drawn=drawn((40, 52), [[5, 7]], 4.5)),
    ),
    "a name with quotes": ("5\" 'photo'.png", Choices("diffuse")),
    "upsample": ("photo.png", Choices("upsample").with_value("factor", 3).with_value("time", 5.5)),
    "edge-enhancing": ("deep.tif", Choices("diffuse").with_value("contrast", 312.5)),
    "coherence-enhancing": (
        "photo.png",
        replace(Choices("diffuse", "coherence-enhancing"), stencil=DeltaStencil(0.44, 0.98))
        .with_value("scheme", "explicit")
        .with_value("time", 2.7),
    ),
    "homogeneous": ("photo.png", Choices("diffuse", "homogeneous").with_value("scheme", "fsi")),
    "a slice of a volume": ("volume.npy", Choices("diffuse", "perona-malik")),
    "a slice, filled in": ("volume.npy", Choices("inpaint", random_pixels=RandomPixels(0.5))),
    "a volume, denoised": ("volume.npy, whole", Choices("denoise").with_value("noise", 18.5)),
    "a volume, enhanced": ("scan.nii.gz, whole", Choices("enhance").with_value("plates", False)),
    "a volume, filled in": ("scan.nii.gz, whole", Choices("inpaint", random_pixels=RandomPixels(0.6, 2))),
    "a volume, filled in where it was drawn": (
        "volume.npy, whole",
        Choices("inpaint", random_pixels=None, drawn=VOLUME > 120),
    ),
    "a volume, finer": ("pages.tif, whole", Choices("upsample").with_value("time", 1.5)),
    "a volume, diffused": (
        "scan.nii.gz, whole",
        replace(
            Choices("diffuse", "coherence-enhancing"), stencil=DeltaStencil(0.44, 0.98), file_spacing=True
        )
        .with_value("plates", False)
        .with_value("rho", 1.5),
    ),
    "a volume of few slices": ("thin.npy, whole", Choices("diffuse").with_value("time", 1.25)),
    "a sample of a volume": ("fibres, whole", Choices("diffuse").with_value("time", 1.25)),
    "a slice of a sample": ("fibres, slice", Choices("diffuse")),
    "a sample": ("shapes", Choices("denoise")),
    "a sample, filled in": ("fingerprint", Choices("inpaint")),
    "a photograph of the samples": ("page", Choices("diffuse")),
}


def scene_of(name, folder):
    aniso.io.write(folder / "photo.png", PHOTOGRAPH)
    aniso.io.write(folder / "deep.tif", DEEP)
    aniso.io.write(folder / "5\" 'photo'.png", PHOTOGRAPH)
    missing = np.where(np.random.default_rng(1).random(DEEP.shape) < 0.3, np.nan, DEEP)
    aniso.io.write(folder / "missing.npy", missing)
    aniso.io.write(folder / "missing colours.npy", np.where(PHOTOGRAPH > 240, np.nan, PHOTOGRAPH))
    aniso.io.write(folder / "volume.npy", VOLUME)
    aniso.io.write(folder / "thin.npy", VOLUME[:4])
    aniso.io.write(folder / "pages.tif", VOLUME[:3, :12, :15].astype(np.uint16))
    scan = aniso.io.Picture(VOLUME.astype(np.int16), spacing=(2.5, 1.25, 1.25), unit="mm")
    aniso.io.write(folder / "scan.nii.gz", scan)
    name, _, how = name.partition(", ")
    source = Source.of_file(folder / name, name=name) if "." in name else Source.of_sample(name)
    return Scene(source, 1, 17, how == "whole") if source.is_volume else Scene(source)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_give_the_result_exactly(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, choices = RECIPES[name]
    scene = scene_of(file, tmp_path)
    call = choices.call(scene)
    result, _ = call(scene.filtered, lambda done, total: None)

    words: dict[str, Any] = {}
    exec(export.to_python(choices, scene), words)
    assert words["result"].dtype == result.dtype
    assert np.array_equal(words["result"], result)
    target = Path(export.output_name(call, scene))
    as_downloaded = aniso.io.read(aniso.io.write("download" + scene.suffix, result, like=scene.like))
    written = aniso.io.read(target)
    assert written.pixels.dtype == as_downloaded.pixels.dtype == scene.source.picture.dtype
    assert np.array_equal(written.pixels, as_downloaded.pixels)
    target.unlink()

    for line in export.to_command(choices, scene).splitlines():
        program, *arguments = shlex.split(line)
        if program == "aniso":
            answer = CliRunner().invoke(app, arguments, prog_name="aniso")
            assert answer.exit_code == 0, answer.output
        else:
            assert (program, arguments[0], len(arguments)) == ("python", "-c", 2)
            exec(arguments[1], {})
    stem = target.name.removesuffix(scene.suffix)
    by_command = aniso.io.read(next(iter(tmp_path.glob(f"{stem}.*"))))
    assert np.array_equal(by_command.pixels, written.pixels)


def test_there_is_no_recipe_for_filling_in_nothing():
    choices, scene = Choices("inpaint", random_pixels=None), Scene(Source.of_sample("shapes"))
    for recipe in (export.to_python, export.to_command):
        with pytest.raises(ValueError, match=r"no unknown pixels yet\. Mark"):
            recipe(choices, scene)


def test_a_recipe_fits_into_a_command_line():
    missing = np.where(np.random.default_rng(1).random((1200, 1200)) < 0.3, np.nan, np.float32(7))
    scene = Scene(Source(aniso.io.Picture(missing), "missing.npy", "aniso.io.read('missing.npy')", True))
    assert len(export.to_command(Choices("inpaint", random_pixels=None), scene)) < 1000


def test_a_recipe_in_a_shell(tmp_path):
    choices, scene = RECIPES["a slice, filled in"][1], scene_of("volume.npy", tmp_path)
    shell = f'aniso() {{ "{sys.executable}" -m aniso "$@"; }}; python() {{ "{sys.executable}" "$@"; }}\n'
    program = shell + export.to_command(choices, scene)
    subprocess.run(["bash", "-ec", program], check=True, capture_output=True, cwd=tmp_path)
    call = choices.call(scene)
    written = aniso.io.read(tmp_path / export.output_name(call, scene))
    assert np.array_equal(written.pixels, call(scene.image, lambda done, total: None)[0])
