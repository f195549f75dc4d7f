"""A checkpoint that an earlier version left goes on under this one, and gives what that one would have given."""

import json

import pytest

from tests.golden import checkpoints

pytestmark = pytest.mark.spark

VERSIONS = sorted(p.parent.name for p in checkpoints.HERE.glob("*/checkpoints"))


@pytest.mark.parametrize("name", sorted(checkpoints.JOBS))
@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_of_an_earlier_version_goes_on(spark, tmp_path, version, name):
    answers = json.loads((checkpoints.HERE / version / "checkpoints" / "answers.json").read_text())
    if spark.version.startswith("4.0"):
        pytest.skip("the checkpoint was written by Spark 4.3, and Spark 4.0 does not read the state of a later one")
    assert checkpoints.run(spark, name, checkpoints.unpack(version, name, tmp_path), checkpoints.MORE) == answers[name]
