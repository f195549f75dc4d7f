"""How the tests are shared out when they run in parallel.

Groups need pytest before 9.1: xdist 3.8 can't write a group into the names that later ones give to tests.
"""

import pytest


def needs_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None


@pytest.hookimpl(tryfirst=True)  # before xdist writes the groups into the names of the tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send all tests of Spark to one process, and let it begin with them.

    They share a session, and a second one would take memory and cores from the first. They take longest, so the others run beside them.
    """
    items.sort(key=needs_spark, reverse=True)
    for item in items:
        if needs_spark(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path.name == "test_site.py":  # they share one build of the docs
            item.add_marker(pytest.mark.xdist_group("site"))
