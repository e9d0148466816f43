"""The README stays short, its commands can be found, and its badges agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
MOST_WORDS = 900


def prose(text):
    """Markdown without code blocks, tables, HTML comments, images and the targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^\|.*$", "", text, flags=re.M)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def count_words(text):
    return sum(bool(re.search(r"\w", word)) for word in prose(text).split())


def test_words_are_counted():
    hidden = "| no | no |\n|---|---|\n\n<!-- no\nno -->\n```sh\nno\n```\n"
    assert count_words(f"# One\n\ntwo [three](far/away.md) – four\n\n{hidden}") == 4
    assert count_words(README) > 300


def test_the_readme_is_short():
    assert count_words(README) <= MOST_WORDS


@pytest.mark.parametrize("name", ["demo", "test"])
def test_each_command_is_one_line_after_its_marker(name):
    blocks = re.findall(rf"^<!-- ci: {name} -->\n```sh\n(.*?)^```$", README, re.M | re.S)
    assert len(blocks) == 1
    assert len(blocks[0].splitlines()) == 1


def test_the_badges_agree_with_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = project["requires-python"].removeprefix(">=")
    badges = [(ROOT / badge).read_text("utf-8") for badge in re.findall(r"docs/images/\S+\.svg", README)]
    assert len(badges) == 2
    assert any(f">Python: {version}+<" in badge for badge in badges)
    assert any(f">licence: {project['license']}<" in badge for badge in badges)
