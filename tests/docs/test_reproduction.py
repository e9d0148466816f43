"""The claims of the paper: measured quickly, with verdicts that can be negative, and a page that has all."""

import json
import math

import numpy as np
import pytest

from aniso.stability import paper_bound, spectral_bound
from benchmarks import reproduce
from benchmarks.claims import acceleration, bound, extensions, networks, splitting, steps
from benchmarks.claims import page as page_module
from benchmarks.claims.claim import Claim, Figure, Finding, Picture, Verdict, at_least, at_most, shown
from benchmarks.claims.page import BEYOND, page, section
from benchmarks.claims.registry import CLAIMS
from oracles import quadrature

UNTIMED = [claim for claim in CLAIMS if not claim.timed]
GOOD, BAD = at_most("error", 1e-15, 1e-12), at_most("error", 1.0, 1e-12)


@pytest.mark.parametrize("claim", UNTIMED, ids=lambda claim: claim.key)
def test_a_quick_measurement_gives_the_expected_verdict(claim):
    """From figures of which one could refute the claim, and one restrict it if it is restricted."""
    finding = claim.measure(True)
    assert finding.verdict == claim.expected, finding.headline
    for figure in finding.figures:
        assert math.isfinite(figure.value)
        assert figure.role == "shown" or math.isfinite(figure.low) or math.isfinite(figure.high)
    restricting = any(figure.role == "restricting" for figure in finding.figures)
    assert restricting == (claim.expected == Verdict.RESTRICTED)


@pytest.mark.parametrize(
    ("key", "module", "name", "wrong"),
    [
        ("splitting", splitting, "DIRECTIONS", splitting.DIRECTIONS[[0, 3, 2, 1]]),
        ("theorem", bound, "paper_bound", lambda *given: 0.9 * paper_bound(*given)),
        ("sharpness", bound, "spectral_bound", lambda *given: 1.1 * spectral_bound(*given)),
        ("anisotropies", steps, "spectral_bound", lambda *given: 0.9 * spectral_bound(*given)),
        ("members", quadrature, "one_sided", lambda corners: quadrature.bilinear(2)),
        ("block-1d", networks, "flux", lambda derivative: derivative),
        ("large-cells", extensions, "attained", lambda size, side: 0.9),
        ("learned", extensions, "photographs", lambda quick: [np.full((9, 9), np.nan)]),
        ("gpu-bytes", extensions, "eager_step", lambda: (100.0, 120)),
        ("backbone", acceleration, "spectral_bound", lambda *given: 0.5 * spectral_bound(*given)),
    ],
)
def test_what_is_wrong_does_not_hold(monkeypatch, key, module, name, wrong):
    (claim,) = (claim for claim in CLAIMS if claim.key == key)
    monkeypatch.setattr(module, name, wrong)
    assert claim.measure(True).verdict == Verdict.FAILS


class TestVerdicts:
    def test_they_follow_from_the_figures(self):
        limit = at_most("elsewhere", 1.0, 1e-12, "restricting")
        assert Finding([GOOD]).verdict == Verdict.HOLDS
        assert Finding([GOOD, limit]).verdict == Verdict.RESTRICTED
        assert Finding([GOOD, limit, BAD]).verdict == Verdict.FAILS
        assert Finding([GOOD, at_least("by the way", 1.0, 2.0, "shown")]).verdict == Verdict.HOLDS

    @pytest.mark.parametrize("figure", [at_most("", math.nan, 1.0), at_least("", math.nan, 1.0)])
    def test_what_is_not_a_number_confirms_nothing(self, figure):
        assert Finding([figure]).verdict == Verdict.FAILS

    def test_bounds_are_included(self):
        assert Figure("", 1.0, 1.0, 1.0).within
        assert not Figure("", math.nextafter(1.0, 2.0), 1.0, 1.0).within

    def test_without_a_figure_that_could_fail_nothing_is_tested(self):
        assert Finding([shown("time", 1.0)]).verdict == Verdict.UNTESTED

    def test_what_refutes_a_claim_counts_more_than_what_is_missing(self):
        assert Finding([GOOD], untestable="There is no such device.").verdict == Verdict.UNTESTED
        assert Finding([BAD], untestable="There is no such device.").verdict == Verdict.FAILS


def claim_with(figure, expected=Verdict.HOLDS):
    return Claim(
        "key", "Title", "It says.", "Section 1", "By test.", lambda quick: Finding([figure]), expected
    )


class TestCommand:
    @pytest.mark.parametrize(
        ("figure", "expected", "code"),
        [
            (GOOD, Verdict.HOLDS, 0),
            (BAD, Verdict.HOLDS, 1),
            (BAD, Verdict.FAILS, 0),
            (GOOD, Verdict.FAILS, 1),
            (BAD, None, 0),
        ],
    )
    def test_the_exit_code_tells_of_unexpected_verdicts(self, monkeypatch, figure, expected, code):
        monkeypatch.setattr(reproduce, "CLAIMS", [claim_with(figure, expected)])
        assert reproduce.main(["--quick"]) == code

    def test_page_figures_and_pictures_are_written_where_told(self, monkeypatch, tmp_path):
        chosen = [claim for claim in CLAIMS if claim.key in ("sharpness", "proof")]
        monkeypatch.setattr(reproduce, "CLAIMS", chosen)
        target, figures = tmp_path / "page.md", tmp_path / "page.json"
        assert reproduce.main(["--quick", "--output", str(target), "--json", str(figures)]) == 0
        text = target.read_text("utf-8")
        assert "quick run" in text
        for claim in chosen:
            assert claim.title in text
            for picture in claim.measure(True).pictures:
                assert (tmp_path / "images" / picture.name).stat().st_size > 1000
                assert f"(images/{picture.name})" in text
        target.write_text("", "utf-8")
        assert reproduce.main(["--rewrite", "--output", str(target), "--json", str(figures)]) == 0
        assert target.read_text("utf-8") == text
        found = json.loads(figures.read_text("utf-8"))
        assert {entry["key"]: entry["verdict"] for entry in found["claims"]} == {
            claim.key: claim.expected for claim in chosen
        }

    def test_claims_of_an_earlier_run_are_kept_and_dated(self, monkeypatch, tmp_path):
        def never(quick):
            raise AssertionError("timed")

        timed = Claim("t", "Timed", "", "", "", never, None, timed=True)
        both = [claim_with(GOOD), timed]
        monkeypatch.setattr(reproduce, "CLAIMS", both)
        monkeypatch.setattr(page_module, "GROUPS", {"Group": both})
        earlier = tmp_path / "earlier.json"
        data = reproduce.as_data([timed], {"t": Finding([shown("seconds", 2.5)])})
        facts = {"date": "2026-01-02", "load before": 0.25}
        earlier.write_text(json.dumps({"environment": facts, "claims": data}), "utf-8")
        target, figures = tmp_path / "page.md", tmp_path / "page.json"
        places = ["--output", str(target), "--json", str(figures)]
        assert reproduce.main(["--untimed", "--earlier", str(earlier), *places]) == 0
        text = target.read_text("utf-8")
        assert (
            "All claims but these are those of an earlier run (2026-01-02, load before: 0.25): Title." in text
        )
        assert "| seconds | 2.5 |" in text
        assert [entry["key"] for entry in json.loads(figures.read_text("utf-8"))["claims"]] == ["key", "t"]
        assert reproduce.main(["--only", "key", "--earlier", str(earlier), *places]) == 0
        with pytest.raises(SystemExit):
            reproduce.main(["--only", "missing"])

    def test_a_refuted_claim_says_so_in_the_page(self):
        claim = claim_with(BAD)
        assert "**Verdict: does not hold.**" in section(1, claim, claim.measure(True))
        assert "| error | 1 | ≤ 1e-12 | no |" in section(1, claim, claim.measure(True))

    def test_pictures_are_drawn_only_for_a_page(self, monkeypatch):
        def never():
            raise AssertionError("drawn")

        finding = Finding([GOOD], pictures=[Picture("a.png", "A", never)])
        claim = Claim("key", "Title", "", "", "", lambda quick: finding)
        monkeypatch.setattr(reproduce, "CLAIMS", [claim])
        assert reproduce.main(["--quick"]) == 0


@pytest.fixture(scope="module")
def text():
    return reproduce.PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def found():
    return json.loads(reproduce.FIGURES.read_text("utf-8"))


class TestCommittedPage:
    def test_every_claim_is_in_it_once_and_nothing_else(self, text, found):
        titles = [line.split(". ", 1)[1] for line in text.splitlines() if line.startswith("### ")]
        assert titles == [claim.title for claim in CLAIMS]
        assert [entry["key"] for entry in found["claims"]] == [claim.key for claim in CLAIMS]
        assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)

    def test_it_is_what_the_figures_give(self, text, found):
        """With the texts of the claims as they are; `python -m benchmarks.reproduce --rewrite` does that."""
        findings = reproduce.from_data(found["claims"])
        run = found["environment"], found["minutes"], found["quick"]
        assert page(findings, *run) == text

    def test_what_goes_beyond_the_paper_is_said_with_figures(self, text):
        for _, _, sentence in BEYOND:
            assert text.count(f"- {sentence.split('{}')[0]}") == 1

    def test_verdicts_are_the_expected_ones(self, found):
        findings = reproduce.from_data(found["claims"])
        for claim, entry in zip(CLAIMS, found["claims"], strict=True):
            assert entry["verdict"] == findings[claim.key].verdict
            assert claim.expected in (None, entry["verdict"])

    def test_it_is_not_of_a_quick_run(self, text):
        assert "quick run" not in text

    def test_its_pictures_are_there(self, text):
        names = [part.split(")")[0] for part in text.split("](images/")[1:]]
        assert len(names) >= 5
        for name in names:
            assert (reproduce.PAGE.parent / "images" / name).is_file()


def test_the_whole_page_can_be_made_of_other_findings():
    findings = {claim.key: Finding([BAD]) for claim in CLAIMS}
    facts = {
        "processor": "p",
        "cores": 1,
        "system": "s",
        "versions": {},
        "load before": 0,
        "date": "2026-01-01",
    }
    text = page(findings, facts, 1.0, quick=False)
    assert text.count("**does not hold**") == len(CLAIMS)
