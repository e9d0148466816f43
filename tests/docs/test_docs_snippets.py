"""Every Python block of the README and of the documentation runs, page by page, from top to bottom."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aniso

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_REFERENCE = re.compile(r"\{(?:func|class|meth)\}`(?:[^`<]*<)?aniso\.([\w.]+)>?`")
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def program(page):
    """All blocks of a page as one program, each line where it stands in the page."""
    text = page.read_text("utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for number, line in enumerate(block[1].splitlines()):
            lines[first + number] = line
    return "\n".join(lines)


WITH_CODE = [page for page in PAGES if program(page).strip()]


def test_the_pages_that_should_have_code_have_it():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "index.md", "start.md", "parameters.md", "models.md", "networks.md"} <= names


def test_what_the_readme_links_to_is_there():
    text = (ROOT / "README.md").read_text("utf-8")
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert "docs/start.md" in targets
    for target in targets:
        path, _, anchor = target.partition("#")
        assert (ROOT / path).is_file(), target
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text("utf-8"), re.M) if anchor else []
        anchors = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in anchors, target


def test_pictures_are_small_enough_to_be_looked_at_on_the_way():
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert "demo.png" in {picture.name for picture in pictures}
    for picture in pictures:
        assert picture.stat().st_size < 300_000, picture.name
    for picture in (ROOT / "benchmarks" / "results").glob("*.png"):
        assert picture.stat().st_size < 160_000, picture.name


def test_an_error_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\ntext\n\n```python\nx += undefined\n```\n", "utf-8")
    with pytest.raises(NameError) as caught:
        exec(compile(program(page), str(page), "exec"), {})
    assert caught.traceback[-1].lineno + 1 == 10


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, tmp_path):
    # In a process of its own, as a reader would: no leftovers of other tests, and no windows.
    source = tmp_path / f"{page.stem}.py"
    source.write_text(program(page), "utf-8")
    (tmp_path / "run").mkdir()
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8", str(source)],
        cwd=tmp_path / "run",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=1200,
    )
    assert answer.returncode == 0, f"{page.name} (lines as in the page):\n{answer.stderr}"


def documented_names():
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    return set(re.findall(r"^\.\. auto\w+:: (aniso\.\S+)$", text, re.M))


def test_the_reference_lists_every_public_name():
    listed = documented_names()
    for name in aniso.__all__:
        if not inspect.ismodule(getattr(aniso, name)):
            assert f"aniso.{name}" in listed
        elif f"aniso.{name}" not in listed:
            members = set(getattr(aniso, name).__all__) - set(aniso.__all__)
            assert {f"aniso.{name}.{member}" for member in members} <= listed, name


def test_cross_references_use_public_names():
    for page in PAGES:
        for target in _REFERENCE.findall(page.read_text("utf-8")):
            if f"aniso.{target}" in documented_names():  # perhaps in a module that is not imported yet
                continue
            found = aniso
            for part in target.split("."):
                assert part in dir(found), f"{page.name}: aniso.{target}"
                found = getattr(found, part)
