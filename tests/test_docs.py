"""The examples in the README and in docs/ run: sessions as doctests, pipeline files through the reader, links to files that are there.

Spark's are run by tests/spark/test_docs.py.
"""

import ast
import doctest
import html
import importlib
import pathlib
import re
import shlex

import pytest

from sash import cli
from sash.bench import headlines
from sash.pipeline import document

ROOT = pathlib.Path(__file__).parents[1]
REFERENCE = {f"{name}.md" for name in ("sash", "agg", "swag", "wheel", "spark", "serve", "errors")}  # tools/reference.py
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page):
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_readme_has_examples_that_run():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        made_with_the_site = target.removeprefix("reference/") in REFERENCE
        assert made_with_the_site or (page.parent / target).exists(), target


def test_anchors_lead_to_headings():
    def anchors(page):
        heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
        return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}

    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            assert anchor in anchors(page.parent / target if target else page), f"{page.name}: {target}#{anchor}"


def test_the_figures_of_the_readme_are_those_of_the_report():
    readme, report = (ROOT / "README.md").read_text(), (ROOT / "docs" / "benchmarks.md").read_text()
    assert headlines.written(readme) == headlines.figures(report), "write them anew: sash.bench.headlines.update(Path('docs'))"
    # No figure with a unit stands in the README outside of them, but in the examples' results and the picture.
    rest = readme.replace(headlines.written(readme), "")
    assert not re.findall(r"\d[\d,.]* (?:million|thousand|rows/s|ms\b|µs|GB|MiB)", rest)


def test_the_picture_of_the_readme_has_the_figures_of_the_report():
    drawn = html.unescape((ROOT / "docs" / headlines.PICTURE).read_text())
    raced = headlines.race((ROOT / "docs" / "benchmarks.md").read_text())
    assert ", ".join(f"{name} {rate:,.0f}" for name, rate in raced.items()) in drawn


def test_a_report_writes_the_readme_above_it(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (tmp_path / "docs").mkdir()
    page = (ROOT / "docs" / "benchmarks.md").read_text().replace("417,537", "400,000")
    (tmp_path / "docs" / "benchmarks.md").write_text(page)
    (tmp_path / "README.md").write_text(f"before\n{headlines.BEGIN}\nold\n{headlines.END}\nafter\n")
    assert headlines.update(tmp_path / "docs")
    readme = (tmp_path / "README.md").read_text()
    assert readme.startswith("before\n")
    assert readme.endswith(f"{headlines.END}\nafter\n")
    assert "400,000 rows/s" in readme
    assert "Sash 400,000" in (tmp_path / "docs" / headlines.PICTURE).read_text()
    (tmp_path / "README.md").write_text("no place for figures")
    assert not headlines.update(tmp_path / "docs")


def test_pipeline_files_in_the_docs_are_right(tmp_path):
    blocks = [block for page in PAGES for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S)]
    assert blocks
    for block in blocks:
        (tmp_path / "trips").mkdir(exist_ok=True)
        file = tmp_path / "pipeline.toml"
        file.write_text(block)
        assert document.read(file).sections


def test_commands_in_the_docs_are_known(capsys):
    said = [line for page in PAGES for line in re.findall(r"^ *(sash [a-z]+ .*?)(?:\s+#.*)?$", page.read_text(), re.M)]
    assert len(said) > 10
    for line in said:
        try:
            cli.parse(shlex.split(line)[1:])
        except SystemExit:
            pytest.fail(f"{line}: {capsys.readouterr().err}")


# Blocks that need a cluster, a broker or a running query. They are compiled, and what they import is looked up.
NOT_RUN = {"cluster.md", "serve.md", "pipelines.md", "features.md", "reliability.md"}
RUN_ON_SPARK = {"README.md", "spark.md", "tutorial.md"}  # by tests/spark/test_docs.py


def plain_blocks(page):
    return [block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if ">>>" not in block]


def test_code_that_no_test_runs_is_known_and_compiles():
    for page in PAGES:
        blocks = plain_blocks(page)
        assert not blocks or page.name in NOT_RUN | RUN_ON_SPARK, f"{page.name} has code that no test runs: write it as a session (>>>)"
        for block in blocks:
            tree = ast.parse(block)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sash"):
                    home = importlib.import_module(node.module)
                    assert [alias.name for alias in node.names if not hasattr(home, alias.name)] == [], page.name
