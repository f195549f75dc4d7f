"""The table notices each silent defect when its mend is taken out."""

from __future__ import annotations

import pytest

from tests.truth import mutations


@pytest.mark.stress
def test_the_table_passes_on_a_copy_with_every_mend_in():
    seen, said = mutations.caught(None)
    assert not seen, said


@pytest.mark.stress
@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda m: m.what)
def test_the_table_notices(mutation):
    seen, said = mutations.caught(mutation)
    assert seen, said


def test_every_mutation_is_of_the_present_source():
    for mutation in mutations.MUTATIONS:
        assert (mutations.PACKAGE / mutation.path).read_text().count(mutation.mended) == 1, mutation.what
