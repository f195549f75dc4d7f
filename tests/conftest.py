"""How the tests are shared out when they run in parallel."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Send all tests of Spark to one process: they share a session, and a second one would take memory and cores from the first."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.get_closest_marker("spark"):
                item.add_marker(pytest.mark.xdist_group("spark"))
