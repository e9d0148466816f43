"""`aniso demo`: one picture and its parts, in a folder of its own."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from aniso.cli.jobs import demonstration
from aniso.io import FileError, read
from tests.cli.command_calls import called

pytestmark = pytest.mark.slow

NAMES = {
    *(f"{verb}-{state}.png" for verb in ("denoise", "enhance", "inpaint", "upsample")
      for state in ("before", "after", "truth")),
    *(f"rings-{state}.png" for state in ("before", "standard", "nonnegativity", "aniso")),
    "demo.png",
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that the command writes, and what it says."""
    place = tmp_path_factory.mktemp("demo")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", "from aniso.__main__ import main; main()", "demo"],
        cwd=place,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=1200,
    )
    assert answer.returncode == 0, answer.stderr
    assert [entry.name for entry in place.iterdir()] == ["aniso-demo"]
    return place / "aniso-demo", answer.stdout


def test_all_files_are_there_and_named(written):
    folder, said = written
    assert {entry.name for entry in folder.iterdir()} == NAMES
    for name in NAMES:
        if "truth" not in name:
            assert name in said
    assert "demo.png" in said.splitlines()[-1]


def test_the_results_are_better_than_what_they_were_made_from(written):
    folder, _ = written

    def error(name):
        truth = read(folder / f"{name.split('-')[0]}-truth.png").pixels.astype(float)
        return np.sqrt(np.mean((read(folder / f"{name}.png").pixels - truth) ** 2))

    for verb, factor in (("denoise", 0.25), ("enhance", 0.35), ("inpaint", 0.15), ("upsample", 0.7)):
        assert error(f"{verb}-after") < factor * error(f"{verb}-before"), verb


def test_the_stencils_are_told_apart(written):
    folder, _ = written
    rings = read(folder / "rings-before.png").pixels.astype(float)
    changes = [
        np.linalg.norm(read(folder / f"rings-{name}.png").pixels - rings)
        for name in ("standard", "nonnegativity", "aniso")
    ]
    assert changes[0] > 1.3 * changes[1] > 2 * changes[2]


def test_the_sheet_has_ink_in_every_part_and_a_clean_edge(written):
    folder, _ = written
    with Image.open(folder / "demo.png") as image:
        assert image.mode == "RGB"
        pixels = np.asarray(image)
    assert 900 < pixels.shape[1] < 1300
    edge = np.concatenate(
        [pixels[:8].ravel(), pixels[-8:].ravel(), pixels[:, :8].ravel(), pixels[:, -8:].ravel()]
    )
    assert (edge == 255).all(), "something is cropped"
    for rows in np.array_split(pixels, 3):
        for part in np.array_split(rows, 4, axis=1):
            assert part.std() > 20


def plain_block(name="plain"):
    flat = np.full((demonstration._SIDE, demonstration._SIDE), 100.0, np.float32)
    return demonstration.Block("Title", "call()", [demonstration.Panel(name, "label", "", flat)])


class TestFolder:
    def test_an_existing_folder_is_left_alone_and_it_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(demonstration, "BLOCKS", (plain_block,))
        taken = tmp_path / "mine"
        taken.mkdir()
        (taken / "demo.png").write_text("something of value")
        said: list[str] = []
        picture = demonstration.run(taken, said.append)
        assert picture == tmp_path / "mine-2" / "demo.png"
        assert (taken / "demo.png").read_text() == "something of value"
        assert "mine exists" in said[0]
        assert "mine-2" in said[0]
        assert demonstration.run(taken, said.append).parent.name == "mine-3"

    def test_parents_are_made(self, tmp_path, monkeypatch):
        monkeypatch.setattr(demonstration, "BLOCKS", (plain_block,))
        assert demonstration.run(tmp_path / "a" / "b", lambda text: None).is_file()

    def test_a_folder_that_cannot_be_made_is_one_sentence(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(FileError, match=r"cannot be created.*--output"):
            demonstration.run(tmp_path / "file" / "folder", lambda text: None)

    def test_a_failure_leaves_nothing(self, tmp_path, monkeypatch):
        def broken():
            raise KeyboardInterrupt

        monkeypatch.setattr(demonstration, "BLOCKS", (plain_block, broken))
        with pytest.raises(KeyboardInterrupt):
            demonstration.run(tmp_path / "mine", lambda text: None)
        assert not list(tmp_path.iterdir())

    def test_the_command_names_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(demonstration, "BLOCKS", (plain_block,))
        for place, where in (([], "aniso-demo"), (["-o", ""], "aniso-demo-2"), (["-o", "."], "aniso-demo-3")):
            assert f"Wrote {where}/demo.png" in called(tmp_path, "demo", *place).stdout
        again = json.loads(called(tmp_path, "demo", "--json").stdout)
        assert again["results"] == [{"output": "aniso-demo-4/demo.png"}]
        (tmp_path / "file").write_text("mine")
        assert called(tmp_path, "demo", "-o", "file/folder").exit_code == 1
