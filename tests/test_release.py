"""What a release states in several places agrees: version, date, dependencies; actions are pinned."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = PROJECT["project"]["version"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name):
    return (ROOT / name).read_text("utf-8")


def requirements(section):
    """The lines of a list in conda/meta.yaml, as in pyproject.toml: without spaces."""
    listed = re.search(rf"^  {section}:\n((?:    - .*\n)+)", read("conda/meta.yaml"), re.M)
    assert listed
    return [line.removeprefix("    - ").replace(" ", "") for line in listed[1].splitlines()]


class TestVersion:
    def test_the_changelog_begins_with_it(self):
        first = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)
        assert first
        assert first[1] == VERSION

    def test_the_one_to_cite_has_the_date_of_the_changelog(self):
        citation = read("CITATION.cff")
        date = re.search(r"^date-released: (\S+)$", citation, re.M)
        assert date
        assert f"\nversion: {VERSION}\n" in citation
        assert f"\n## {VERSION} - {date[1]}\n" in read("CHANGELOG.md")

    def test_the_page_of_versions_lists_all_releases(self):
        page = read("docs/versions.md")
        for version, date in re.findall(r"^## (\S+) - (\S+)$", read("CHANGELOG.md"), re.M):
            assert f"\n- **{version}**, {date}, " in page

    def test_the_documentation_shows_it(self):
        assert re.findall(r'"version": "(.*)"', read("docs/command_line.md")) == [VERSION]


class TestConda:
    def test_the_package_is_that_of_pyproject(self):
        recipe, project = read("conda/meta.yaml"), PROJECT["project"]
        (script,) = project["scripts"].items()
        assert f'{{% set version = "{VERSION}" %}}' in recipe
        assert f"  name: {project['name']}\n" in recipe
        assert f'  summary: "{project["description"]}"\n' in recipe
        assert f"  license: {project['license']}\n" in recipe
        assert "    - {} = {}\n".format(*script) in recipe
        assert "  noarch: python\n" in recipe

    def test_the_dependencies_are_those_of_pyproject(self):
        python = f"python{PROJECT['project']['requires-python']}"
        assert requirements("run") == [python, *PROJECT["project"]["dependencies"]]
        assert requirements("host") == [python, "pip", *PROJECT["build-system"]["requires"]]


class TestPaper:
    """The form that the Journal of Open Source Software asks for."""

    def test_fields_and_sections(self):
        _, fields, text = read("paper/paper.md").split("---\n", 2)
        for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
            assert re.search(rf"^{field}:", fields, re.M), field
        headings = re.findall(r"^# (.*)$", text, re.M)
        assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
        assert headings[-1] == "References"
        assert 250 <= len(text.split()) <= 1000

    def test_references_are_those_that_are_cited(self):
        cited = set(re.findall(r"@(\w+)", read("paper/paper.md").split("---\n", 2)[2]))
        assert cited == set(re.findall(r"^@\w+\{(\w+),", read("paper/paper.bib"), re.M))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflows:
    def test_actions_are_pinned_to_commits(self, workflow):
        actions = re.findall(r"uses: (.*)", workflow.read_text("utf-8"))
        assert actions
        for action in actions:
            assert re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", action), action

    def test_jobs_may_read_and_end_in_time(self, workflow):
        text = workflow.read_text("utf-8")
        assert "\npermissions:\n  contents: read\n" in text
        assert text.count("runs-on:") == text.count("timeout-minutes:")
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_workflows_are_found():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "wheels.yml"]
