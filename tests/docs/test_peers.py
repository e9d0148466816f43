"""The comparison with other packages: its laws can be kept and broken, and its page says which."""

import ast
import atexit
import json
import pathlib
import sys

import numpy as np
import pytest

from benchmarks import other_packages, peers, peers_contestants, peers_lbr, peers_page, peers_quality
from benchmarks.other_packages import Package
from benchmarks.peers_contestants import Filter
from benchmarks.peers_laws import LAWS
from benchmarks.report import Report

RANDOM = np.random.default_rng(0)


def exact(image, grey, spacing):
    """Three steps of homogeneous diffusion with mirrored borders, which keep all laws."""
    result = np.asarray(image, dtype=np.float64)
    for _ in range(3):
        change = np.zeros_like(result)
        for axis, distance in enumerate(spacing or (1.0,) * result.ndim):
            flux = np.diff(result, axis=axis) / distance**2
            ends = [(1, 1) if other == axis else (0, 0) for other in range(result.ndim)]
            change += np.diff(np.pad(flux, ends), axis=axis)
        result = result + 0.15 * change
    return result


def smoothed(image):
    return exact(image, 1.0, None)


def sharpened(image, grey, spacing):
    return 2 * image - smoothed(image)


def darker(image, grey, spacing):
    return 0.99 * smoothed(image)


def along_columns(image, grey, spacing):
    result = smoothed(image)
    result[1:] = 0.5 * (result[1:] + result[:-1])
    return result


def from_one_side(image, grey, spacing):
    # Both axes alike, but towards one corner: transposition is kept, a turn is not.
    result = smoothed(image)
    for axis in range(result.ndim):
        result = 0.5 * (result + np.roll(result, 1, axis))
    return result


def wrapping(image, grey, spacing):
    return image + image if image.dtype == np.uint8 else 2 * smoothed(image)


def different(image, grey, spacing):
    return smoothed(image) + RANDOM.normal(0, 1e-9, image.shape)


def writing(image, grey, spacing):
    image[...] = smoothed(image)
    return image


def with_black_outside(image, grey, spacing):
    return smoothed(np.pad(image, 3))[(slice(3, -3),) * image.ndim]


def with_absolute_contrast(image, grey, spacing):
    result = smoothed(image)
    return np.where(np.abs(result - image) < 5, result, image)


def once_divided(image, grey, spacing):
    return exact(image, grey, None if spacing is None else tuple(np.sqrt(spacing)))


BROKEN = {
    "mean": darker,
    "range": sharpened,
    "transposition": along_columns,
    "90° rotation": from_one_side,
    "integers": wrapping,
    "deterministic": different,
    "input unchanged": writing,
    "grey shift": with_black_outside,
    "grey units": with_absolute_contrast,
    "spacing": once_divided,
}
FEW = [entrant for entrant in peers_contestants.ours() if entrant.name in peers_contestants.MODELS]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
class TestLaw:
    @pytest.mark.parametrize("ndim", [2, 3])
    def test_is_kept_by_a_filter_that_keeps_it(self, law, ndim):
        finding = law.finding(Filter("exact", exact, ndim, takes_spacing=True))
        assert (finding.verdict, finding.note) == ("kept", "")

    @pytest.mark.parametrize("ndim", [2, 3])
    def test_is_broken_by_a_filter_that_breaks_it(self, law, ndim):
        finding = law.finding(Filter("broken", BROKEN[law.name], ndim, takes_spacing=True))
        assert finding.verdict == "broken"
        assert finding.value > law.bound

    def test_is_kept_by_the_models_of_aniso_apart_from_the_range(self, law):
        verdicts = {entrant.name: law.finding(entrant).verdict for entrant in FEW}
        tensors = ("aniso EED", "aniso CED") if law.name == "range" else ()
        assert verdicts == {name: "broken" if name in tensors else "kept" for name in verdicts}

    def test_takes_an_error_for_a_refusal(self, law):
        def refusing(image, grey, spacing):
            raise TypeError("first line\nonly on Sundays")

        finding = law.finding(Filter("refusing", refusing, takes_spacing=True))
        assert (finding.verdict, finding.note) == ("refused", "only on Sundays")

    def test_has_a_text(self, law):
        assert law.text.endswith(".")


def test_a_filter_of_bytes_without_spacing_is_not_asked_for_more():
    entrant = Filter("bytes", lambda image, grey, spacing: image.copy(), only_bytes=True)
    verdicts = {law.name: law.finding(entrant).verdict for law in LAWS}
    unasked = {name for name, verdict in verdicts.items() if verdict == "not offered"}
    assert unasked == {"integers", "grey shift", "grey units", "spacing"}
    assert all(verdict == "kept" for name, verdict in verdicts.items() if name not in unasked)


def test_no_number_breaks_a_law():
    law = next(law for law in LAWS if law.name == "transposition")
    entrant = Filter("nothing", lambda image, grey, spacing: np.full(image.shape, np.nan))
    finding = law.finding(entrant)
    assert (finding.verdict, finding.value) == ("broken", np.inf)


def test_the_command_judges_and_writes_json_page_and_picture(tmp_path, monkeypatch):
    broken = Filter("half a filter", darker)
    monkeypatch.setattr(peers, "contestants", lambda missing: [FEW[0], broken])
    paths = {name: tmp_path / f"peers.{name}" for name in ("json", "picture", "markdown")}
    paths["picture"] = tmp_path / "peers.png"
    options = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    assert peers.main(["laws", "--quick", *options]) == 0
    found = Report.load(paths["json"])
    assert found.measurements["law, mean: half a filter"].note == "broken"
    assert json.loads(paths["json"].read_text("utf-8"))["benchmark"] == "peers"
    page = paths["markdown"].read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| half a filter"))
    assert row.count("✗") == sum(
        found.measurements[f"law, {law.name}: half a filter"].note == "broken" for law in LAWS
    )
    assert "| **aniso EED** | ✓ | ✗" in page
    assert "Not measured in this run." in page
    assert paths["picture"].stat().st_size > 1000
    again = tmp_path / "again.md"
    assert peers.main(["--from", str(paths["json"]), "--markdown", str(again)]) == 0
    assert again.read_text("utf-8") == page


def test_an_unknown_section_is_refused(capsys):
    with pytest.raises(SystemExit):
        peers.main(["spede"])
    assert "the sections are speed, laws, quality" in capsys.readouterr().err


def test_a_package_that_is_missing_is_left_out_with_a_line(monkeypatch):
    absent = Package(
        "Absent", "no_such_module", "pip install absent", lambda *_: lambda n: n, lambda m, r: r, "",
        strength=1.0, steps=((2, None), (3, None)),
    )  # fmt: skip
    monkeypatch.setattr(other_packages, "PACKAGES", (absent,))
    missing: dict[str, str] = {}
    found = peers_contestants.contestants(missing.__setitem__)
    assert "pip install absent" in missing["Absent"]
    assert {entrant.kind for entrant in found} <= {"ours", "theirs"}
    assert not any(entrant.name.startswith("Absent") for entrant in found)


def test_a_filter_that_refuses_constant_images_can_be_deterministic():
    def refusing(image, grey, spacing):
        if image.min() == image.max():
            raise ValueError("constant")
        return smoothed(image)

    law = next(law for law in LAWS if law.name == "deterministic")
    assert law.finding(Filter("refusing", refusing)).verdict == "kept"


def test_a_filter_that_does_nothing_is_not_praised(monkeypatch):
    idle = Package(
        "Idle", "numpy", "", lambda module, image, *_: lambda n: image, lambda m, r: r, "",
        strength=1.0, steps=((2, None), (3, None)),
    )  # fmt: skip
    monkeypatch.setattr(other_packages, "PACKAGES", (idle,))
    missing: dict[str, str] = {}
    found = peers_contestants.contestants(missing.__setitem__)
    assert missing["Idle"] == missing["Idle 3-D"] == "returns its input unchanged"
    assert not any(entrant.name.startswith("Idle") for entrant in found)
    assert not peers_contestants.does_nothing(Filter("exact", exact))


class TestPython39:
    """ITK's LBR runs in another interpreter; here a worker of this one stands for it."""

    WORKER = """
import io, json, sys
import numpy as np
print("ready", flush=True)
for line in iter(sys.stdin.buffer.readline, b""):
    options = json.loads(line)
    image = np.load(io.BytesIO(sys.stdin.buffer.read(options["bytes"])))
    if options["enhancement"] == "CED" and image.shape != (8, 8):
        sys.stdout.buffer.write(json.dumps({"error": "no"}).encode() + b"\\n")
    else:
        content = io.BytesIO()
        np.save(content, image * options["contrast"] + options["time"])
        sys.stdout.buffer.write(json.dumps({"bytes": content.tell()}).encode() + b"\\n" + content.getvalue())
    sys.stdout.buffer.flush()
"""

    @pytest.fixture(autouse=True)
    def fresh(self, tmp_path, monkeypatch):
        worker = tmp_path / "worker.py"
        worker.write_text(self.WORKER, "utf-8")
        monkeypatch.setattr(peers_lbr, "WORKER", worker)
        monkeypatch.setenv("LBR_PYTHON", sys.executable)
        peers_lbr.worker.cache_clear()
        yield
        if peers_lbr.worker.cache_info().currsize:
            process = peers_lbr.worker(sys.executable)
            atexit.unregister(peers_lbr.stop)
            peers_lbr.stop(process)
        peers_lbr.worker.cache_clear()

    def test_arrays_and_options_arrive_and_results_come_back(self):
        image = np.arange(12, dtype=np.float32).reshape(3, 4)
        for _ in range(2):
            result = peers_lbr.EDGE.filtered(image, 5, 1, 2.0, None)
            np.testing.assert_array_equal(result, 2 * image + 1)

    def test_errors_are_raised(self):
        with pytest.raises(RuntimeError, match="no"):
            peers_lbr.COHERENT.filtered(np.zeros((3, 4), np.float32), 5)

    def test_without_the_package_it_is_skipped_with_a_message(self, monkeypatch):
        peers_lbr.WORKER.write_text("import no_such_module", "utf-8")
        monkeypatch.setattr(other_packages, "PACKAGES", ())
        missing: dict[str, str] = {}
        peers_contestants.contestants(missing.__setitem__)
        assert "cannot import itk-anisotropicdiffusionlbr" in missing["ITK LBR EED"]
        assert "LBR_PYTHON" in missing["ITK LBR CED"]

    def test_the_worker_is_python_3_9(self):
        text = (pathlib.Path(peers_lbr.__file__).with_name("peers_lbr_worker.py")).read_text("utf-8")
        ast.parse(text, feature_version=(3, 9))


def test_sections_of_several_runs_are_merged_and_dated():
    runs = []
    for date, names in (
        ("2026-01-01", ("iteration, 2048²: a", "law, mean: a")),
        ("2026-02-02", ("law, mean: b",)),
    ):
        found = Report("peers", {}, {"date": date, "versions": {"aniso": "1"}, "load before": 3.0})
        for name in names:
            found.add(name, 1.0, "", "ours")
        runs.append(found)
    merged = peers.merge(runs)
    assert list(merged.measurements) == ["iteration, 2048²: a", "law, mean: b"]
    assert {section: run["date"] for section, run in merged.settings["runs"].items()} == {
        "speed": "2026-01-01",
        "laws": "2026-02-02",
    }
    assert peers.merge([merged]).settings == merged.settings


class TestQuality:
    def test_the_best_result_of_all_paths_counts_and_a_falling_path_is_left(self):
        seen = []

        def score(value):
            seen.append(float(value))
            return float(value)

        paths = [iter(np.array(path)) for path in ([1, 3, 2, 9], [4])]
        assert peers_quality.best(paths, score) == 4
        assert seen == [1, 3, 2, 4]

    def test_means_and_firsts(self):
        found = Report("peers", {}, {})
        table = peers_quality.Table(found, "denoising", "dB")
        for ours, theirs in ((3.0, 1.0), (1.0, 2.0), (5.0, 3.0)):
            table.enter("aniso denoise", peers_quality.single(np.array, ours), float)
            table.enter("other", peers_quality.single(np.array, theirs), float)
        table.close()
        ours, theirs = (found.measurements[f"denoising: {name}"] for name in ("aniso denoise", "other"))
        assert (ours.value, ours.kind, ours.note) == (3.0, "ours", "best in 2 of 3")
        assert (theirs.value, theirs.kind, theirs.note) == (2.0, "theirs", "best in 1 of 3")

    def test_what_is_missing_is_skipped_once(self):
        def absent():
            raise ImportError("no module")

        found = Report("peers", {}, {})
        table = peers_quality.Table(found, "denoising", "dB")
        for _ in range(2):
            table.enter("absent", absent, float)
            table.enter("aniso denoise", peers_quality.single(np.array, 1.0), float)
        table.close()
        assert list(found.measurements) == ["denoising: aniso denoise"]
        assert found.skipped == {"denoising: absent": "no module"}


def test_the_page_says_where_others_are_better():
    found = Report("peers", {}, {})
    found.add("denoising: aniso denoise", 30.0, "dB", "ours", "best in 1 of 2")
    found.add("denoising: Rival, tuned", 31.5, "dB", "theirs", "best in 1 of 2")
    found.add("iteration, 2048²: aniso Perona–Malik", 2.0, "ms", "ours")
    found.add("iteration, 2048²: MedPy Perona–Malik", 1.0, "ms", "theirs")
    lines = list(peers_page._better(found))
    assert lines == [
        "Speed, 2048²: an iteration of MedPy Perona–Malik is faster than one of aniso Perona–Malik.",
        "Denoising photographs: Rival, tuned has 31.50, 1.50 more than aniso denoise.",
    ]
