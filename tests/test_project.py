"""Files around the package agree with it: recipe, citation, changelog, workflows."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = PROJECT["project"]["version"]
SUPPORTED = ["3.11", "3.12", "3.13", "3.14"]


def load(*parts):
    return yaml.safe_load(ROOT.joinpath(*parts).read_text("utf-8"))


def without_spaces(requirements):
    return {requirement.replace(" ", "") for requirement in requirements}


def test_the_recipe_has_the_version_and_the_requirements_of_the_package():
    recipe = load("packaging", "conda", "recipe.yaml")
    assert recipe["context"]["version"] == VERSION
    needed = {*PROJECT["project"]["dependencies"], "python>=3.11"}
    assert without_spaces(recipe["requirements"]["run"]) == needed
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def test_the_recipe_builds_without_node_because_sdists_carry_the_page():
    """A hook of wheels alone would leave sdists without the page."""
    recipe = load("packaging", "conda", "recipe.yaml")
    tools = {"python>=3.11", "pip", *PROJECT["build-system"]["requires"]}
    assert "hatchling" in tools
    assert without_spaces(recipe["requirements"]["host"]) == tools
    assert not any("node" in tool for tool in tools)
    assert "build" not in recipe["requirements"]
    build = PROJECT["tool"]["hatch"]["build"]
    assert build["hooks"]["custom"]["path"] == "hatch_build.py"
    assert "src/marey/viewer/page.html" in build["artifacts"]


def test_citation_and_changelog_have_the_version():
    assert load("CITATION.cff")["version"] == VERSION
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## (.*)$", changelog, re.M)[1] == VERSION


@pytest.mark.parametrize("name", ["test", "docs", "release"])
def test_workflows_use_targets_and_files_that_are_there(name):
    text = ROOT.joinpath(".github", "workflows", f"{name}.yml").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"run: make (\w+)", text):
        assert re.search(rf"^{target}:", makefile, re.M)
    for script in re.findall(r"run: bash (\S+)", text):
        assert (ROOT / script).is_file()


def test_workflows_try_every_supported_python_on_every_system():
    test = load(".github", "workflows", "test.yml")["jobs"]["test"]["strategy"]
    wheels = load(".github", "workflows", "release.yml")["jobs"]["kernels"]["strategy"]
    for matrix in (test["matrix"], wheels["matrix"]):
        assert matrix["python"] == SUPPORTED
        systems = {name.partition("-")[0] for name in matrix["os"]}
        assert systems == {"ubuntu", "macos", "windows"}


def test_templates_ask_for_what_is_needed_to_repeat_a_fault():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml")):
        fields = {field.get("id"): field for field in load(path)["body"]}
        assert fields["doctor"]["validations"]["required"]
