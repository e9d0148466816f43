"""--save-plan and --plan: what is written, that it filters alike, and what is rejected."""

import json
import os
from typing import Any

import numpy as np
import pytest
import zarr

import aniso
from aniso.cli.jobs.file_job import FileJob
from aniso.cli.jobs.reporting import Report
from aniso.cli.options import shared
from aniso.evolve import choose
from aniso.settings import Settings
from aniso.verbs.source import ImageSource
from tests.cli.command_calls import called, contents, noisy

SHAPE = (40, 44)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "a.npy", noisy(SHAPE, "float32"))
    np.save(tmp_path / "b.npy", noisy((50, 36), "float32", seed=1))
    return tmp_path


@pytest.fixture
def plan(folder):
    _, found = aniso.denoise(np.load(folder / "a.npy"), method="diffusion", return_info=True)
    (folder / "p.json").write_text(found.to_json())
    return found


def saving(path, *, force):
    """The job of a command that saves its plan."""
    writing, plans = shared.WritingOptions(force=force), shared.PlanOptions(save_plan=path)
    report = Report("denoise", shared.ReportingOptions())
    return FileJob(report, [], shared.ReadingOptions(), writing, shared.ComputingOptions(), plans)


def words_of(answer):
    """All that was printed, in one line."""
    return " ".join((answer.stdout + answer.stderr).replace("│", " ").split())


def assert_rejected(folder, code, words, *call):
    before = contents(folder)
    answer = called(folder, *call)
    assert answer.exit_code == code, answer.output
    assert words in words_of(answer)
    assert "Traceback" not in words_of(answer)
    assert contents(folder) == before


class TestSaving:
    @pytest.mark.quick
    def test_what_is_saved_filters_other_files_in_the_same_way(self, folder):
        answer = called(folder, "denoise", "a.npy", "--no-mix", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        found: Any = aniso.Plan.from_json((folder / "p.json").read_text())
        expected, chosen = aniso.denoise(np.load(folder / "a.npy"), mix=False, return_info=True)
        assert found == chosen
        np.testing.assert_array_equal(np.load(folder / "a_denoised.npy"), expected)
        answer = called(folder, "denoise", "a.npy", "b.npy", "--plan", "p.json", "-o", "out/", "--json")
        assert answer.exit_code == 0, answer.output
        for name in ("a.npy", "b.npy"):
            result = np.load(folder / "out" / name)
            np.testing.assert_array_equal(result, found.apply(np.load(folder / name)))
        noise = {result["info"][0]["noise"] for result in json.loads(answer.stdout)["results"]}
        assert noise == {found.noise}  # of the plan, not of each file

    def test_the_summary_is_that_of_the_plan(self, folder, plan):
        answer = called(folder, "denoise", "b.npy", "--plan", "p.json")
        assert answer.exit_code == 0, answer.output
        assert f"{plan.noise:.4g}" in answer.output

    def test_several_files_have_one_plan(self, folder):
        frames = np.stack([noisy(SHAPE, "float32", seed=k) + 10 * k for k in range(6)])
        for k, frame in enumerate(frames):
            np.save(folder / f"f{k}.npy", frame)
        answer = called(folder, "denoise", "f?.npy", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        expected, chosen = aniso.denoise(frames, frame_axis=0, return_info=True)
        assert answer.output.count("noise level") == 1
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == chosen
        for k, result in enumerate(expected):
            np.testing.assert_array_equal(np.load(folder / f"f{k}_denoised.npy"), result)
        call = "denoise", "f?.npy", "-o", "again/", "--save-plan", "p.json"
        assert_rejected(folder, 1, "p.json exists already", *call)

    def test_pages_of_several_files_have_one_plan(self, folder):
        pages = np.stack([noisy(SHAPE, "float32", seed=k) + 10 * k for k in range(6)])
        for k in (0, 1):
            np.save(folder / f"s{k}.npy", pages[3 * k : 3 * k + 3])
        call = "enhance", "s*.npy", "--channel-axis", "none"
        assert_rejected(
            folder, 1, "there are 3 pages, and each has its own", *call, "--slices", "--save-plan", "p.json"
        )
        answer = called(folder, *call, "--frames", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        expected, chosen = aniso.enhance(pages, frame_axis=0, return_info=True)
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == chosen
        found = [np.load(folder / f"s{k}_enhanced.npy") for k in (0, 1)]
        np.testing.assert_array_equal(np.concatenate(found), expected)

    def test_one_plan_needs_files_alike(self, folder):
        words = "different shapes ((40, 44), (50, 36)), so that one plan cannot be made"
        assert_rejected(folder, 1, words, "denoise", "*.npy", "--save-plan", "p.json")
        np.save(folder / "c.npy", np.full(SHAPE, np.nan))
        assert_rejected(folder, 1, "c.npy", "denoise", "a.npy", "c.npy", "--save-plan", "p.json")
        words = "--save-plan for several files takes no mask"
        call = "denoise", "a.npy", "b.npy", "--save-plan", "p.json", "--mask-value", "0"
        assert_rejected(folder, 2, words, *call)

    def test_frames_have_one_plan(self, folder):
        pages = np.stack([noisy(SHAPE, "float32", seed=k) + 10 * k for k in range(9)])
        np.save(folder / "series.npy", pages)
        answer = called(folder, "denoise", "series.npy", "--frames", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        expected, chosen = aniso.denoise(pages, frame_axis=0, return_info=True)
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == chosen
        np.testing.assert_array_equal(np.load(folder / "series_denoised.npy"), expected)
        assert_rejected(folder, 2, "contradict", "denoise", "series.npy", "--frames", "--volume")
        answer = called(folder, "denoise", "series.npy", "--frames", "--plan", "p.json", "-o", "again.npy")
        assert answer.exit_code == 0, answer.output
        np.testing.assert_array_equal(np.load(folder / "again.npy"), expected)

    def test_several_pages(self, folder):
        stack = np.stack([noisy(SHAPE, "float32")] * 3)
        np.save(folder / "stack.npy", stack)
        call = "denoise", "stack.npy", "--channel-axis", "none", "--slices", "--save-plan", "p.json"
        assert_rejected(folder, 1, "there are 3 pages, and each has its own", *call)

    def test_an_existing_file_is_kept_without_force(self, folder):
        (folder / "p.json").write_text("mine")
        assert_rejected(
            folder, 1, "p.json exists already. Give another name, or add --force", "denoise", "a.npy",
            "--save-plan", "p.json",
        )  # fmt: skip
        answer = called(folder, "denoise", "a.npy", "--save-plan", "p.json", "--force")
        assert answer.exit_code == 0, answer.output
        assert aniso.Plan.from_json((folder / "p.json").read_text()).verb == "denoise"

    def test_a_file_that_appears_meanwhile_is_kept(self, folder, plan):
        job = saving(folder / "later.json", force=False)
        job.check_saved_plan()
        (folder / "later.json").write_text("mine")
        with pytest.raises(aniso.io.FileError, match="exists already"):
            job.save_plan(plan)
        assert (folder / "later.json").read_text() == "mine"

    def test_it_is_written_completely_or_not_at_all(self, folder, plan, monkeypatch):
        (folder / "p.json").write_text("old")

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(aniso.io.FileError, match="the disk is full"):
            saving(folder / "p.json", force=True).save_plan(plan)
        assert (folder / "p.json").read_text() == "old"
        assert sorted(os.listdir(folder)) == ["a.npy", "b.npy", "p.json"]

    @pytest.mark.parametrize(
        ("place", "code", "words"),
        [
            ("a.npy", 2, "must have the suffix .json, e.g. a.json"),
            ("plan", 2, "must have the suffix .json, e.g. plan.json"),
            ("", 2, "must have the suffix .json"),
            ("nowhere/p.json", 1, "its folder does not exist"),
            ("sub.json", 1, "is a folder, not a file"),
        ],
    )
    def test_bad_places(self, folder, place, code, words):
        (folder / "sub.json").mkdir()
        assert_rejected(folder, code, words, "denoise", "a.npy", "--save-plan", place, "--force")

    def test_no_plan_without_a_result(self, folder):
        np.save(folder / "bad.npy", np.full((20, 20), np.nan))
        assert_rejected(folder, 1, "all pixels are unknown", "denoise", "bad.npy", "--save-plan", "p.json")


class TestApplying:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--noise", "3"), "cannot be combined with --noise"),
            (("--no-mix",), "cannot be combined with --mix"),
            (("--contrast", "3", "--time", "2"), "cannot be combined with --contrast, --time"),
            (("--alpha", "0.3"), "cannot be combined with --stencil"),
            (("--spacing", "2"), "cannot be combined with --spacing"),
            (("--save-plan", "q.json"), "--plan and --save-plan cannot be combined"),
        ],
    )
    def test_other_parameters(self, folder, plan, options, words):
        assert_rejected(folder, 2, words, "denoise", "a.npy", "--plan", "p.json", *options)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "Give a file of --save-plan."),
            ('{"aniso": ', "the plan is damaged: it is not valid JSON"),
            ("[1, 2]", "a JSON object was expected"),
            ("{}", 'it has no key "aniso"'),
            ("[" * 100_000, "the plan is damaged"),
            ('{"aniso": "99.0", "verb": "denoise"}', "the plan was made by aniso 99.0"),
            (f'{{"aniso": "{aniso.__version__}", "verb": "sharpen"}}', "the plan is for 'sharpen'"),
            (f'{{"aniso": "{aniso.__version__}", "verb": "denoise"}}', "lacks the key"),
        ],
        ids=["empty", "truncated", "list", "no plan", "nested", "version", "verb", "keys"],
    )
    def test_damaged_files(self, folder, text, words):
        (folder / "p.json").write_text(text)
        assert_rejected(folder, 1, words, "denoise", "a.npy", "--plan", "p.json")

    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("colour", 3, "unknown key 'colour'"),
            ("noise", "loud", "plan.noise has the value 'loud'"),
            ("channels", 2, "the weights of a plan for 2 channels must be"),
            ("scheme", {"type": "Magic"}, "unknown type 'Magic'"),
        ],
    )
    def test_damaged_values(self, folder, plan, key, value, words):
        damaged = json.loads(plan.to_json()) | {key: value}
        (folder / "p.json").write_text(json.dumps(damaged))
        assert_rejected(folder, 1, words, "denoise", "a.npy", "--plan", "p.json")

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("missing.json", "cannot be read as a plan"),
            ("a.npy", "cannot be read as a plan"),
            (".", "is not the file"),
        ],
    )
    def test_files_that_are_not_plans(self, folder, name, words):
        assert_rejected(folder, 1, words, "denoise", "b.npy", "--plan", name)

    def test_a_plan_of_another_command(self, folder):
        settings: dict[str, Any] = {"model": aniso.EdgeEnhancing(), "time": 1.0}
        source = ImageSource.check(np.load(folder / "a.npy"), None)
        other = choose(source, Settings(spacings=(1.0, 1.0)), **settings)
        (folder / "p.json").write_text(other.to_json())
        assert_rejected(
            folder, 1, "is a plan of diffuse, not of denoise", "denoise", "a.npy", "--plan", "p.json"
        )

    @pytest.mark.parametrize(
        ("shape", "options", "words"),
        [
            (
                (40, 44, 3),
                ("--channel-axis", "-1"),
                "is for one channel, got an array of shape (40, 44, 3) with channel_axis=2, which has 3 "
                "channels. Make a plan for such images, with --save-plan.",
            ),
            ((9, 10, 11), (), "is for images, got an array of shape (9, 10, 11)"),
        ],
    )
    def test_other_images(self, folder, plan, shape, options, words):
        np.save(folder / "c.npy", np.random.default_rng(0).normal(0, 1, shape))
        assert_rejected(folder, 1, words, "denoise", "c.npy", "--plan", "p.json", *options)

    def test_one_of_several_files_does_not_fit(self, folder, plan):
        np.save(folder / "c.npy", np.zeros((9, 10, 11)))
        answer = called(folder, "denoise", "a.npy", "c.npy", "--plan", "p.json")
        assert answer.exit_code == 1
        assert (folder / "a_denoised.npy").exists()
        assert not (folder / "c_denoised.npy").exists()

    def test_another_spacing_is_noted(self, folder, plan):
        changed = json.loads(plan.to_json()) | {"spacings": [2.0, 1.0]}
        (folder / "p.json").write_text(json.dumps(changed))
        answer = called(folder, "denoise", "a.npy", "--plan", "p.json")
        assert answer.exit_code == 0, answer.output
        assert "the plan is for a spacing of 2 × 1, which is used in place of 1 × 1" in words_of(answer)


def test_commands_that_choose_nothing_have_no_such_options(folder):
    answer = called(folder, "diffuse", "a.npy", "--time", "1", "--plan", "p.json")
    assert answer.exit_code == 2
    assert "No such option" in words_of(answer)


@pytest.mark.slow
def test_stores(folder, plan):
    image = np.load(folder / "b.npy")
    zarr.create_array(str(folder / "b.zarr"), data=image, chunks=(20, 20))
    assert_rejected(
        folder, 1, "p.json exists already", "denoise", "b.zarr", "--save-plan", "p.json", "--workers", "1"
    )
    assert_rejected(folder, 2, "with --noise", "denoise", "b.zarr", "--plan", "p.json", "--noise", "3")
    zarr.create_array(str(folder / "v.zarr"), data=np.zeros((9, 10, 11)), chunks=(9, 10, 11))
    assert_rejected(folder, 1, "is for images, got", "denoise", "v.zarr", "--plan", "p.json")
    first = called(folder, "denoise", "b.zarr", "out.zarr", "--plan", "p.json", "--workers", "1")
    assert first.exit_code == 0, first.output
    result = zarr.open_array(str(folder / "out.zarr"), mode="r")[:]
    np.testing.assert_array_equal(result, plan.apply(image))
    again = called(
        folder, "denoise", "b.zarr", "own.zarr", "--save-plan", "q.json", "--workers", "1", "--json"
    )
    assert again.exit_code == 0, again.output
    saved: Any = aniso.Plan.from_json((folder / "q.json").read_text())
    assert saved == aniso.denoise(image, return_info=True)[1]
    (report,) = json.loads(again.stdout)["results"]
    assert report["info"]["noise"] == saved.noise


class TestFillingPlans:
    """inpaint, whose unknown pixels are not part of a plan, and upsample, whose factor is."""

    @pytest.fixture
    def holes(self, folder):
        mask = np.random.default_rng(2).random(SHAPE) < 0.4
        np.save(folder / "mask.npy", mask)
        return mask

    def test_inpaint(self, folder, holes):
        words = "inpaint", "a.npy", "--mask", "mask.npy"
        answer = called(folder, *words, "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        expected, plan = aniso.inpaint(np.load(folder / "a.npy"), holes, return_info=True)
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == plan
        answer = called(folder, *words, "--plan", "p.json", "-o", "again.npy")
        assert answer.exit_code == 0, answer.output
        np.testing.assert_array_equal(np.load(folder / "again.npy"), expected)
        lost = np.load(folder / "b.npy")
        lost[10:20, 5:9] = np.nan
        np.save(folder / "c.npy", lost)
        answer = called(folder, "inpaint", "c.npy", "--plan", "p.json")
        assert answer.exit_code == 0, answer.output
        np.testing.assert_array_equal(np.load(folder / "c_inpainted.npy"), plan.apply(lost))

    def test_upsample(self, folder):
        answer = called(folder, "upsample", "a.npy", "--factor", "3,1", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        expected, plan = aniso.upsample(np.load(folder / "a.npy"), (3, 1), return_info=True)
        np.testing.assert_array_equal(np.load(folder / "a_x3x1.npy"), expected)
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == plan
        answer = called(folder, "upsample", "b.npy", "--plan", "p.json", "--json")
        assert answer.exit_code == 0, answer.output
        np.testing.assert_array_equal(np.load(folder / "b_x3x1.npy"), plan.apply(np.load(folder / "b.npy")))
        (result,) = json.loads(answer.stdout)["results"]
        assert result["shape"] == [150, 36]

    @pytest.mark.parametrize("verb", ["inpaint", "upsample"])
    def test_frames_have_one_plan(self, folder, holes, verb):
        pages = np.stack([noisy(SHAPE, "float32", seed=k) + 10 * k for k in range(5)])
        np.save(folder / "series.npy", pages)
        words, options = {
            "inpaint": (["--mask", "mask.npy"], {"mask": holes}),
            "upsample": (["--factor", "2"], {"factor": 2}),
        }[verb]
        call = verb, "series.npy", "--frames", "--save-plan", "p.json", "-o", "out.npy", *words
        answer = called(folder, *call)
        assert answer.exit_code == 0, answer.output
        expected, plan = getattr(aniso, verb)(pages, **options, frame_axis=0, return_info=True)
        assert aniso.Plan.from_json((folder / "p.json").read_text()) == plan
        np.testing.assert_array_equal(np.load(folder / "out.npy"), expected)

    @pytest.mark.parametrize(
        ("call", "code", "words"),
        [
            (("upsample", "a.npy", "--factor", "2"), 2, "cannot be combined with --factor"),
            (("upsample", "a.npy", "--isotropic"), 2, "cannot be combined with --isotropic"),
            (("upsample", "a.npy", "--spacing", "2"), 2, "cannot be combined with --spacing"),
            (("upsample", "a.npy", "--save-plan", "q.json"), 2, "cannot be combined"),
            (("upsample", "v.npy"), 1, "is for images, got an array of shape (6, 7, 8)"),
            (("inpaint", "a.npy", "--mask", "mask.npy"), 1, "is a plan of upsample, not of inpaint"),
            (("denoise", "a.npy"), 1, "is a plan of upsample, not of denoise. Use aniso upsample."),
        ],
    )
    def test_refusals(self, folder, holes, call, code, words):
        np.save(folder / "v.npy", noisy((6, 7, 8), "float32"))
        _, plan = aniso.upsample(np.load(folder / "a.npy"), 2, return_info=True)
        (folder / "p.json").write_text(plan.to_json())
        assert_rejected(folder, code, words, *call, "--plan", "p.json")

    def test_an_inpaint_plan_rejects_other_parameters(self, folder, holes):
        _, plan = aniso.inpaint(np.load(folder / "a.npy"), holes, return_info=True)
        (folder / "p.json").write_text(plan.to_json())
        for option in ("--contrast", "--tolerance", "--rho"):
            call = "inpaint", "a.npy", "--mask", "mask.npy", "--plan", "p.json", option, "0.5"
            assert_rejected(folder, 2, f"cannot be combined with {option}", *call)


def test_the_summary_says_whose_estimates_these_are(folder, plan):
    words = "p.json, whose estimates are of the image from which it was made"
    assert words in called(folder, "denoise", "b.npy", "--plan", "p.json").stdout
    assert words not in called(folder, "denoise", "a.npy").stdout
