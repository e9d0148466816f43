"""The pictures of docs/cases.md are made of the code of the page."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def cases():
    return runpy.run_path(str(DOCS / "figures" / "cases.py"))


def test_every_section_has_a_picture_and_every_picture_a_section(cases):
    text = cases["PAGE"].read_text("utf-8")
    sections = text.split("\n## ")[1:]
    assert len(sections) == 6
    for section in sections:
        name = section.split(".. plot:: figures/cases.py ")[1].split("\n")[0]
        title = section.split("\n")[0]
        assert title in cases[name].__code__.co_consts
        assert "If it is not right:" in section


def test_the_code_of_a_section_is_run_in_a_folder_of_its_own(cases, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n## A\n\n```python\nopen('a', 'w').close()\nx += 1\n```\n\n## B\n\n"
        "```python\nx = 'wrong'\n```\n",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(cases["run"].__globals__, "PAGE", page)
    assert cases["run"]("A")["x"] == 2
    assert not (tmp_path / "a").exists()
