"""Stores and callers for the tests of the server."""

import dataclasses

import pytest

from sash.serve import app
from sash.serve.limits import Limits
from tests.serve.client import Client

FRESH = dataclasses.replace(Limits(), fresh=0.0)  # every question looks at the manifest


@pytest.fixture(scope="session")
def trips(tmp_path_factory):
    """A store of a day of minutes."""
    from tests.serve import streams  # its import skips a module of tests, and must not skip this one

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
