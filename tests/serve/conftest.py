"""Stores and callers for the tests of the server."""

import dataclasses

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is not installed")

from sash.serve import app
from sash.serve.limits import Limits
from tests.serve import streams
from tests.serve.client import Client

FRESH = dataclasses.replace(Limits(), fresh=0.0)  # every question looks at the manifest


@pytest.fixture(scope="session")
def trips(tmp_path_factory):
    """A store of a day of minutes."""
    path = tmp_path_factory.mktemp("serve") / "trips"
    streams.written(path, 1440)
    return path


@pytest.fixture
def client(trips):
    with Client(app(trips)) as made:
        yield made


@pytest.fixture
def ask():
    """Callers of applications over given stores; closed in the end."""
    made = []

    def make(stores, **options):
        token = options.get("token")
        options.setdefault("limits", FRESH)
        made.append(Client(app(stores, **options), token if isinstance(token, str) else None))
        return made[-1]

    yield make
    for one in made:
        one.close()
