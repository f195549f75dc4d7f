"""How the tests are shared out when they run in parallel.

Groups need pytest before 9.1: xdist 3.8 can't write a group into the names that later ones give to tests.
"""

import pytest

# They mostly wait for processes that they start and kill: a second process has them at its end, with a session of its own.
APART = {"test_demo.py", "test_pipeline.py", "test_provisional.py", "test_restart.py"}


def group(item: pytest.Item) -> str | None:
    """Which tests must share a process with this one."""
    if item.get_closest_marker("spark") is not None:
        return "spark apart" if item.path.name in APART else "spark"
    return "site" if item.path.name == "test_site.py" else None  # they share one build of the docs


@pytest.hookimpl(tryfirst=True)  # before xdist writes the groups into the names of the tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send the tests of Spark to one process, and let it begin with them; the second one ends with those apart.

    They share a session, and many of them would take memory and cores from each other. They take longest, so the others run beside them.
    """
    items.sort(key=lambda item: {"spark": 0, "spark apart": 2}.get(group(item) or "", 1))
    for item in items:
        if (name := group(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(name))
