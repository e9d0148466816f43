"""The table of benchmarks has all of them, its README follows it, and `benchmarks.all` runs what it lists."""

import re
from pathlib import Path

import pytest

from benchmarks import all as all_benchmarks
from benchmarks import table
from benchmarks.report import Report, Target
from benchmarks.table import BENCHMARKS, OTHERS, Benchmark

FOLDER = Path(table.__file__).parent


def test_the_readme_follows_the_table():
    text = table.README.read_text("utf-8")
    assert table.filled(text) == text, "run: python -m benchmarks.table"


def test_a_missing_marker_is_an_error():
    with pytest.raises(ValueError, match="the markers of commands once"):
        table.filled("# Benchmarks\n")


def test_every_command_is_in_the_table():
    commands = {
        path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")
    }
    listed = [*(one.name for one in BENCHMARKS), *OTHERS]
    assert len(listed) == len(set(listed))
    prefixes = tuple(
        f"{name}_" for name in listed
    )  # files that belong to a command, for processes of its own
    assert {name for name in commands - {"table"} if not name.startswith(prefixes)} <= set(listed)
    assert set(listed) <= {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.name)
def test_short_runs_write_only_to_the_folder_of_the_report(one, tmp_path):
    command = one.command(tmp_path, tmp_path, quick=True)
    assert "benchmarks/results" not in command
    assert not re.search(r"[{}]", command + one.command(tmp_path, tmp_path))


def test_a_failure_is_reported_and_does_not_stop_the_others(tmp_path, monkeypatch):
    rows = [
        Benchmark("compare", "--no-such-option", "", "fails"),
        Benchmark("report", "", "", "does nothing"),
    ]
    monkeypatch.setattr(all_benchmarks, "BENCHMARKS", rows)
    assert all_benchmarks.main(["--apart", "--folder", str(tmp_path)]) == 1
    report = (tmp_path / "report.md").read_text("utf-8")
    assert re.search(r"\| `python -m benchmarks.compare --no-such-option` \| .* \| \*\*2\*\* \|", report)
    assert re.search(r"\| `python -m benchmarks.report` \| .* \| 0 \| no output \|", report)
    assert "2 benchmarks in 0 minutes, 1 of them failed" in report
    assert re.search(r"^# Benchmarks, \d{4}-\d\d-\d\d$", report, re.M)
    for condition in ("processor", "cores", "load before", "versions", "commit"):
        assert f"\n- {condition}: " in report
    assert "unrecognized arguments" in (tmp_path / "compare.txt").read_text("utf-8")
    assert all_benchmarks.main(["report", "--apart", "--folder", str(tmp_path)]) == 0


def test_an_unknown_name_is_an_error(capsys):
    with pytest.raises(SystemExit):
        all_benchmarks.main(["eeed"])
    assert "no benchmark 'eeed'; there are eed, " in capsys.readouterr().err


class TestMainFigures:
    def test_of_a_report(self, tmp_path):
        found = Report("x", {}, {}, targets=[Target("fast", 2.0, 1.0), Target("small", 2.0, 1.0, "at most")])
        found.add("EED", 18.2, "ms", "ours")
        found.add("plain C", 400.0, "ms", "theirs")
        found.save(tmp_path / "x.json")
        assert all_benchmarks.main_figures(tmp_path / "x.json", "", 0) == "1 of 2 targets met; EED: 18.2 ms"
        later = (tmp_path / "x.json").stat().st_mtime + 1
        assert all_benchmarks.main_figures(tmp_path / "x.json", "failed\n", later) == "failed"

    def test_of_other_figures(self, tmp_path):
        (tmp_path / "x.json").write_text('{"psnr": 1}', "utf-8")
        assert all_benchmarks.main_figures(tmp_path / "x.json", "a\nmean 31 dB\n\n", 0) == "mean 31 dB"
        assert all_benchmarks.main_figures(None, "", 0) == "no output"
