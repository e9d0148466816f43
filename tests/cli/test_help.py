"""Help, examples and completion."""

import dataclasses
import importlib
import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import aniso
from aniso import models
from aniso.cli import app, commands
from aniso.cli.options.shared import describe
from aniso.parameters import About, of_model
from tests.cli.command_calls import PROGRAM, WIDE, aniso_command, called

COMMANDS = tuple(commands.summaries())


class TestHelp:
    def test_nothing_prints_help(self):
        answer = aniso_command(".")
        assert answer.returncode == 2
        shown = answer.stdout + answer.stderr
        for name, summary in commands.summaries().items():
            assert re.search(rf"{name} +{re.escape(summary)}", shown)
        assert "aniso demo" in shown

    def test_version(self):
        assert aniso_command(".", "--version").stdout == f"aniso {aniso.__version__}\n"

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_examples_that_can_be_called(self, name):
        answer = called(".", name, "--help")
        assert answer.exit_code == 0
        for example in commands.examples(name):
            assert example in answer.stdout
            assert example.startswith(f"aniso {name}")
        # Markup must not have eaten anything.
        assert "{stem}" in answer.stdout or name in ("explore", "info", "status", "stencil", "demo", "bench")

    @pytest.mark.parametrize("name", ["diffuse", "scale-space"])
    def test_every_field_of_every_model_is_an_option(self, name):
        shown = " ".join(called(".", name, "--help").stdout.replace("│", " ").split())
        for title, kind in models.kinds().items():
            assert title in shown
            for field in of_model(kind).values():
                about = field.about
                assert f"--{field.name.replace('_', '-')}" in shown
                assert describe(about) in shown
                default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
                default = {"True": "yes", "False": "no"}.get(default, default)
                assert re.search(rf"{re.escape(default)} \([a-z, -]*{title}", shown), (title, field.name)
                for choice in about.choices:
                    assert choice in shown

    def test_a_new_model_appears_by_itself(self, camera, monkeypatch):
        @dataclasses.dataclass(frozen=True)
        class SlowHeat(models.ImageDriven):
            """Slow heat: as it says."""

            thickness: float = About(
                symbol="d", unit="length", high=9.0, meaning="how thick the plate is"
            ).field(2.0)

            def tensor_formula(self, channels, values=None, ndim=2):
                return models.Homogeneous().tensor_formula(channels)

        monkeypatch.setattr(models.image_driven, "SlowHeat", SlowHeat, raising=False)
        monkeypatch.setattr(models.image_driven, "__all__", [*models.image_driven.__all__, "SlowHeat"])
        modules = [f"aniso.cli.{name}" for name in ("commands.diffusion", "options.diffusion_options")]
        for name in modules:
            importlib.import_module(name)  # so that there is something to come back to
            monkeypatch.delitem(sys.modules, name)
        shown = " ".join(called(".", "diffuse", "--help").stdout.replace("│", " ").split())
        assert "slow-heat (as it says)" in shown
        assert (
            "--thickness NUMBER d in units of length: how thick the plate is. Values: from 0 to 9. "
            "Default: 2 (slow-heat)" in shown
        )
        words = ("--model", "slow-heat", "--thickness", 3, "--time", 1, "--json")
        answer = called(camera, "diffuse", "camera.png", *words)
        assert json.loads(answer.stdout)["model"] == {"name": "SlowHeat", "thickness": 3.0}
        for name in modules:
            monkeypatch.delitem(sys.modules, name, raising=False)

    @pytest.mark.parametrize(
        ("words", "heavy"),
        [
            (["--help"], ("numpy", "scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
            # The options are those of the function, whose module imports NumPy.
            (["denoise", "--help"], ("scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
            (["diffuse", "--help"], ("scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
        ],
    )
    def test_help_imports_nothing_heavy(self, words, heavy):
        program = (
            "import sys; from aniso.__main__ import main\n"
            f"sys.argv[1:] = {words!r}\n"
            "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=WIDE)
        loaded = set(answer.stderr.split())
        assert "typer" in loaded
        assert not loaded.intersection(heavy)

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_scripts(self, shell, monkeypatch):
        monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
        answer = CliRunner().invoke(app, ["--show-completion", shell], prog_name="aniso")
        assert answer.exit_code == 0
        assert "_ANISO_COMPLETE" in answer.stdout

    def test_completion(self):
        def completed(*words):
            settings = {"_ANISO_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words)}
            settings["COMP_CWORD"] = str(len(words) - 1)
            answer = subprocess.run(PROGRAM, env={**WIDE, **settings}, capture_output=True, text=True)
            return answer.stdout.split()

        assert completed("aniso", "de") == ["denoise", "demo"]
        assert completed("aniso", "diffuse", "--min") == ["--min-diffusivity"]

    def test_installing_completion(self, tmp_path):
        settings = {**WIDE, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        answer = subprocess.run(
            [*PROGRAM, "--install-completion", "bash"], env=settings, capture_output=True, text=True
        )
        assert answer.returncode == 0
        assert "aniso" in (tmp_path / ".bashrc").read_text("utf-8")


class TestHelpTexts:
    @pytest.mark.parametrize("name", ["", *commands.summaries()])
    def test_no_types_of_python(self, name, monkeypatch):
        monkeypatch.setitem(WIDE, "COLUMNS", "80")
        shown = called(".", *filter(None, [name]), "--help").stdout
        assert "<" not in shown.replace("<=", "")
        assert "{FILES}" not in shown
        assert max(map(len, shown.splitlines())) <= 80

    @pytest.mark.parametrize("name", commands.summaries())
    def test_examples_fit_a_terminal(self, name):
        assert max(map(len, commands.examples(name))) <= 78

    def test_a_choice_that_is_none(self, camera):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "--model", "eed")
        assert (answer.exit_code, "Value error" in answer.stderr) == (2, False)
        assert "'eed' is not one of" in answer.stderr
