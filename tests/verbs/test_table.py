"""The table of verbs: a new row appears in the explorer and on the command line without further code."""

import ast
import collections
import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import aniso
from aniso.cli import app
from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import Choices, methods
from aniso.explorer.choosing.controls import controls
from aniso.explorer.choosing.scene import Part, Scene, Source
from aniso.explorer.computing import previews, results
from aniso.explorer.computing.previews import BUDGET, Pace
from aniso.parameters import NOISE, About
from aniso.verbs.plan import describe
from aniso.verbs.table import DIFFUSE, VERBS, Verb
from docs import command_options
from tests import registry

SOURCE = Path(aniso.__file__).parent
STRENGTH = About(meaning="how much is mirrored", low=0.0, high=1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MirrorPlan(aniso.Plan):
    """What :func:`mirror` chose."""

    verb: ClassVar[str] = "mirror"

    noise: float = describe("noise level", "grey values")

    def steering(self, options: Any) -> Any:
        return aniso.EdgeEnhancing(), 3.0

    def pipeline(self, shape: Any, settings: Any) -> Any:
        raise NotImplementedError


def mirror(
    image: Any,
    times: Annotated[int, About(meaning="how often to mirror", low=1, high=3, whole=True, choices=(1, 2, 3))],
    *,
    noise: Annotated[float | str, NOISE] = "auto",
    strength_used: Annotated[float, STRENGTH] = 1.0,
    careful: Annotated[bool | None, About(meaning="take care", switch=True)] = None,
    spacing: Any = None,
    channel_axis: Any = None,
    engine: Any = None,
    threads: Any = None,
    progress: Any = None,
    return_info: bool = False,
) -> Any:
    """Mirror the columns, as a verb would."""
    mirrored = image[:, ::-1] if times % 2 else image
    result = (strength_used * mirrored + (1 - strength_used) * image).astype(image.dtype)
    plan = MirrorPlan(
        noise=1.5, spacings=(1.0, 1.0), channel_axis=None, channels=1, stencil=aniso.DeltaStencil()
    )
    return (result, plan) if return_info else result


def choose(source: Any, settings: Any, **options: Any) -> Any:
    """Make a plan, as each verb's module does."""
    raise NotImplementedError


ROW = Verb(
    name="mirror",
    summary="Mirror an image.",
    description="The columns are reversed.",
    participle="mirrored",
    examples=("aniso mirror photo.jpg --times 1",),
    seconds=1e-7,
    arrays=17,
    preview={"careful": False, "strength_used": 0.25},
    preview_note="without care",
    output="{stem}_mirrored{suffix}",
)


@pytest.fixture(autouse=True)
def new_verb(monkeypatch):
    monkeypatch.setattr(aniso, ROW.name, mirror, raising=False)
    monkeypatch.setitem(VERBS, ROW.name, ROW)


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aniso.io.write("photo.npy", np.random.default_rng(0).normal(100, 20, (128, 128)))
    return Scene(Source.of_file(Path("photo.npy")))


def test_it_is_a_method_with_controls(scene):
    assert list(methods()) == [*VERBS, DIFFUSE.name]
    shown = {control.name: control for control in controls(Choices(ROW.name), scene, {"noise": 1.5})}
    assert list(shown) == ["times", "noise", "strength_used", "careful"]
    assert shown["times"].value == 1
    assert shown["noise"].chosen == 1.5
    assert shown["strength_used"].label == "Strength used"
    assert (shown["strength_used"].low, shown["strength_used"].high) == (0.0, 1.0)


def test_pace_and_memory_are_those_of_the_row(scene):
    call = Choices(ROW.name).call(scene)
    assert Pace().affordable(call) == pytest.approx(BUDGET / 1e-7)
    assert results.needed_memory(call, scene) == 17 * 128 * 128 * 8


def test_plans_of_every_row_can_be_read(monkeypatch):
    """The modules of all rows are imported first, so that those of new verbs need not be listed elsewhere."""
    looked = []

    class Row:
        @property
        def function(self):
            looked.append(self)

    row = Row()
    monkeypatch.setitem(VERBS, ROW.name, row)
    _, plan = mirror(np.zeros((4, 4)), 1, return_info=True)
    assert aniso.Plan.from_json(plan.to_json()) == plan
    assert looked == [row]


def test_a_preview_takes_its_options_and_scales_the_noise(scene):
    call = Choices(ROW.name).with_value("noise", 8.0).with_value("strength_used", 0.1).call(scene)
    assert call.options == {"times": 1, "noise": 8.0, "strength_used": 0.1}
    quick = previews.rehearse(call, scene)
    assert quick.options == {"times": 1, "noise": 8.0, "strength_used": 0.25, "careful": False}
    trial = previews.coarsen(quick, scene, Part(0, 64, 0, 64, 2))
    assert trial.call.options["noise"] == 4.0
    assert trial.call.options["spacing"] == (2.0, 2.0)
    assert trial.words == " without care"
    result, info = trial.call(trial.slab.volume, lambda done, total: None)
    assert result.shape == (64, 64)
    assert trial.call.steering(info) == (aniso.EdgeEnhancing(), 3.0)


def test_it_is_exported_as_python_and_as_a_command(scene, tmp_path):
    choices = Choices(ROW.name).with_value("strength_used", 0.25).with_value("careful", False)
    expected, _ = choices.call(scene)(scene.image, lambda done, total: None)
    program = export.to_python(choices, scene)
    assert "aniso.mirror(image, 1, strength_used=0.25, careful=False)" in program
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    assert np.array_equal(namespace["result"], expected)
    Path("photo_mirrored.npy").unlink()
    command = export.to_command(choices, scene)
    words = "aniso mirror photo.npy --times 1 --strength-used 0.25 --no-careful -o photo_mirrored.npy"
    assert command.strip() == words
    answer = CliRunner().invoke(app, shlex.split(words)[1:])
    assert answer.exit_code == 0, answer.output
    assert "noise level" in answer.output
    assert np.array_equal(np.load("photo_mirrored.npy"), expected)


def test_it_has_help_and_a_table_in_the_documentation():
    overview = CliRunner().invoke(app, ["--help"]).output
    assert "Mirror an image." in overview
    own = " ".join(CliRunner().invoke(app, ["mirror", "--help"]).output.replace("│", " ").split())
    for words in (
        "The columns are reversed.",
        "photo_mirrored.jpg",
        "--strength-used",
        "aniso mirror photo.jpg --times 1",
    ):
        assert words in own
    assert "How much is mirrored. Default: 1." in command_options.tables()["mirror"]


def test_every_verb_has_a_row_that_is_complete():
    functions = {name for name, home in aniso._HOMES.items() if home.startswith("verbs.") and name != "Plan"}
    assert functions == set(VERBS) - {ROW.name}
    for name, row in VERBS.items():
        assert row.name == name
        assert row.parameters
        assert row.seconds > 0
        assert row.arrays > 0
        assert set(row.preview) <= set(row.parameters)
        assert row.takes("mask") == (name in ("denoise", "enhance", "inpaint"))
        assert row.refines == ("factor" in row.parameters)
    assert DIFFUSE.takes("model")
    assert not any(row.takes("model") for row in VERBS.values())


@pytest.mark.parametrize("name", registry.VERBS)
def test_every_plan_says_what_steered(name):
    _, plan = registry.VERBS[name](registry.RINGS.image, return_info=True)
    model, time = plan.steering({})
    assert isinstance(model, aniso.models.ImageDriven)
    assert time > 0


def trees(*folders):
    return {
        path: ast.parse(path.read_text("utf-8"))
        for folder in folders
        for path in sorted((SOURCE / folder).rglob("*.py"))
    }


def test_no_code_asks_for_a_verb_by_name():
    names = {*VERBS, DIFFUSE.name}
    for path, tree in trees("cli", "explorer").items():
        found = [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
        ]
        assert not found, f"{path.relative_to(SOURCE)}, lines {found}: use a field of the table instead"


def test_the_explorer_does_not_need_the_command_line():
    for path, tree in trees("explorer").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom | ast.Import):
                modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                assert not [name for name in modules if name.startswith("aniso.cli")], path


def test_classes_of_the_outer_packages_have_names_of_their_own():
    homes = collections.defaultdict(list)
    for path, tree in trees("").items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.relative_to(SOURCE).as_posix())
    shared = {
        name: paths
        for name, paths in homes.items()
        if len(paths) > 1 and any(path.startswith(("cli/", "explorer/")) for path in paths)
    }
    assert not shared
