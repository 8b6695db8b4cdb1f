"""Equal loads have equal fingerprints, different ones do not."""

from __future__ import annotations

import hashlib

import pytest

from lakeload.documents.spec import canonical_json, fingerprint
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.core.job_ids import job_id_problem, new_attempt_id, new_job_id


def test_the_order_of_keys_does_not_matter() -> None:
    assert fingerprint({"a": 1, "b": [2, 3]}) == fingerprint({"b": (2, 3), "a": 1})


def test_the_order_of_items_matters() -> None:
    assert fingerprint([1, 2]) != fingerprint([2, 1])


def test_fingerprint_distinguishes_types_of_values() -> None:
    values: list[object] = [None, "", 0, False, "0", "null", [], {}]
    assert len({fingerprint(value) for value in values}) == len(values)


def test_fingerprint_is_the_sha_256_of_canonical_json() -> None:
    assert canonical_json({"é": 1, "a": None}) == '{"a":null,"\\u00e9":1}'
    assert fingerprint({}) == hashlib.sha256(b"{}").hexdigest()


def test_dataclasses_are_taken_as_they_are_written() -> None:
    one, other = ColumnsSpec(include=("a",)), ColumnsSpec(include=("b",))
    assert fingerprint(one) == fingerprint(ColumnsSpec(include=("a",))) != fingerprint(other)


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        fingerprint(float("nan"))


def test_new_ids_are_allowed_and_never_the_same() -> None:
    ids = [new_job_id(), new_job_id(), new_attempt_id(), new_attempt_id()]
    assert len(set(ids)) == 4
    assert [job_id_problem(text) for text in ids] == [None] * 4
