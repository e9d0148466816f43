"""The command on Zarr stores, with real workers."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import zarr as zarr_package

import aniso
from aniso.picture import stored
from tests.registry import SAMPLES
from tests.test_stores import ome_group

zarr: Any = zarr_package


def command(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "aniso", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        env=dict(os.environ),
    )


@pytest.fixture
def image():
    noise = np.random.default_rng(0).normal(0, 10, (90, 70))
    return (SAMPLES["edges"]((90, 70)) + noise).clip(0, None).astype(np.uint16)


@pytest.fixture
def store(tmp_path, image):
    return ome_group(tmp_path / "in.zarr", image, "yx", (0.5, 1.0), chunks=(32, 32))


def test_diffuse_keeps_the_type_and_uses_the_spacing(tmp_path, store, image):
    options = ("--model", "edge-enhancing", "--contrast", "12", "--sigma", "0.5", "--time", "2", "--json")
    answer = command(tmp_path, "diffuse", "in.zarr", "out.zarr", *options, "--workers", "1")
    assert answer.returncode == 0, answer.stderr
    (result,) = json.loads(answer.stdout)["results"]
    assert result["output"] == "out.zarr"
    found = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:]
    model = aniso.EdgeEnhancing(12.0, 0.5)
    expected = stored(aniso.diffuse(image, model, 2.0, spacing=(1.0, 2.0)), np.uint16)
    assert abs(found.astype(int) - expected.astype(int)).max() <= 1
    assert "Traceback" not in answer.stderr


def test_denoise_and_enhance_choose_by_themselves(tmp_path, store):
    for verb, name in (("denoise", "in_denoised.zarr"), ("enhance", "in_enhanced.zarr")):
        answer = command(tmp_path, verb, "in.zarr", "--workers", "1", "--memory", "1GB")
        assert answer.returncode == 0, answer.stderr
        assert name in answer.stdout
        assert (tmp_path / name).is_dir()
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "in_denoised.zarr", "in_enhanced.zarr"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("denoise", "in.zarr", "in.zarr"), 2, "input itself"),
        (("denoise", "in.zarr", "a.zarr", "b.zarr"), 2, "one by one"),
        (("denoise", "in.zarr", "photo.png"), 2, "one by one"),
        (("denoise", "in.zarr", "-o", "out.png"), 2, "no Zarr store"),
        (("denoise", "in.zarr", "--memory", "much"), 2, "no size"),
        (("denoise", "missing.zarr"), 1, "does not exist"),
        (("denoise", "in.zarr", "nowhere/out.zarr"), 1, "no folder"),
        (("denoise", "in.zarr", "there.zarr"), 1, "exists already"),
        (("denoise", "in.zarr", "--scheduler", "nonsense"), 1, "no Dask scheduler"),
        (("diffuse", "in.zarr", "--time", "1", "--tensor", "1", "0", "1"), 2, "Give a model"),
    ],
)
def test_refusals(tmp_path, store, arguments, code, words):
    (tmp_path / "there.zarr").mkdir()
    answer = command(tmp_path, *arguments)
    assert answer.returncode == code, answer.stderr
    assert words in " ".join(answer.stderr.replace("│", " ").split())
    assert "Traceback" not in answer.stderr
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "there.zarr"]
