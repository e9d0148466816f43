"""Every command in the README and in docs/ is executed, and does what the page shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aniso.cli import app
from docs import command_options
from tests.docs.test_docs_snippets import program
from tests.io import sample_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

# The set-up lines of the README are executed by .ci/run; the others are not about the command.
SKIPPED = (
    "python3 -m venv .venv && ",
    "{ test -d .venv ||",
    "pip install ",
    ".venv/bin/pip ",
    ".venv/bin/pytest",
    ".venv/bin/sphinx-build ",
    ".venv/bin/ruff ",
    "pytest",
    "python -m benchmarks.",
    "aniso explore",  # serves until it is interrupted; tests of its pages start it
    "python examples/",
)
# The files of these pages are written by their Python blocks.
WITH_FILES_OF_THEIR_OWN = ("cases.md",)
SETTINGS = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def blocks(text):
    """(commands, shown) of every block of commands; `shown` is the text block right after it, or None."""
    found = re.findall(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.DOTALL | re.MULTILINE)
    return [(commands.replace("\\\n", " ").strip().splitlines(), shown or None) for commands, shown in found]


def runnable(line):
    """The line as it is to be run; None if it is skipped by rule or a comment."""
    line = line.split("  #")[0].strip()
    if not line or line.startswith("#"):
        return None
    if line.startswith(SKIPPED):
        return None
    line = line.removeprefix(".venv/bin/")
    assert line.startswith("aniso"), f"no rule says what to do with: {line}"
    return line


def run(line):
    """Exit code and everything that it says; in this process where no shell is needed."""
    words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
    if any(word in words for word in ("|", ">", "<", "&&", ";", ">>", "&")):
        answer = subprocess.run(
            ["sh", "-c", f'aniso() {{ "{sys.executable}" -m aniso "$@"; }}; {line}'],
            env={**os.environ, **SETTINGS}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return answer.returncode, answer.stdout
    answer = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="aniso", env=SETTINGS)
    return answer.exit_code, answer.output


def without_figures(text):
    """Numbers differ from machine to machine; the words are compared."""
    text = re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", text)
    return [" ".join(line.split()) for line in text.strip().splitlines()]


@pytest.fixture
def samples(tmp_path, monkeypatch):
    sample_files.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WITH_COMMANDS = [page for page in PAGES if "```sh" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page(page, samples):
    if page.name in WITH_FILES_OF_THEIR_OWN:
        exec(compile(program(page), str(page), "exec"), {})
    for lines, shown in blocks(page.read_text("utf-8")):
        said = ""
        for line in filter(None, map(runnable, lines)):
            code, output = run(line)
            assert code == 0, f"{line}\n{output}"
            said += output
        if shown is not None:
            assert without_figures(said) == without_figures(shown), "\n".join([*lines, said])


def test_blocks_are_found():
    text = "a\n```sh\naniso denoise \\\n  a.png\n```\n\n```text\nshown\n```\n\n```sh\npip install x\n```\n"
    assert blocks(text) == [(["aniso denoise    a.png"], "shown\n"), (["pip install x"], None)]
    assert runnable("pip install x") is runnable("# a comment") is None
    assert runnable(".venv/bin/aniso demo") == "aniso demo"
    with pytest.raises(AssertionError, match="no rule"):
        runnable("rm -r /")


def test_a_failing_command_and_another_output_are_noticed(samples):
    assert run("aniso denoise missing.png")[0] == 1
    assert run("aniso stencil | grep nothing")[0] == 1
    assert without_figures("a  1.5e-3 b") == without_figures("a 22 b") != without_figures("a c")


def test_the_tables_of_options_are_those_of_the_commands():
    page = command_options.PAGE.read_text("utf-8")
    assert page == command_options.filled(page), "run: python -m docs.command_options"
    for marker in command_options.tables():
        assert f"<!-- options: {marker} -->" in page
