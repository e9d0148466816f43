"""Help does not load what it does not use, and other programs in the same process find everything."""

import subprocess
import sys


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_loads_neither_markdown_nor_tracebacks():
    program = """
import sys
from aniso.cli import app
sys.argv = ["aniso", "--help"]
try:
    app(prog_name="aniso")
except SystemExit:
    pass
print("loaded:", [name for name in ("markdown_it", "rich.markdown", "rich.traceback") if name in sys.modules])
"""
    output = run(program)
    assert "Commands" in output
    assert "loaded: []" in output


def test_placeholders_stand_for_the_real_classes():
    program = """
from aniso.cli.options.appearance import load_formatter
load_formatter()
load_formatter()
from typer import rich_utils
made = rich_utils.Markdown("# title")
import rich.markdown
import rich.traceback
print(isinstance(made, rich.markdown.Markdown))
print(rich_utils.Traceback.from_exception == rich.traceback.Traceback.from_exception)
"""
    assert run(program).split() == ["True", "True"]
