"""The conformance cases of clients, with redis-py alone, so that their truth does not depend on any client."""

import pytest
import redis

from tests.conformance.runner import CASES, Failure, run

WIRE = [case for case in CASES if all("do" in step for step in case["steps"])]


@pytest.mark.parametrize("case", WIRE, ids=lambda case: case["name"])
def test_a_case(r, case):
    def do(words):
        try:
            return r.execute_command(*words)
        except redis.ResponseError as error:
            raise Failure(error) from error

    run(case, do)
