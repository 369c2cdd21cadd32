"""The conftest.py of LocalStack's tests of SQS: the endpoint stands in for AWS, and all that was recorded is compared."""

import pytest
from localstack_snapshot.pytest import snapshot

# Fields that LocalStack leaves out of a comparison are compared, except in move tasks, whose figures depend on the moment. At
# AWS nothing would be left out.
snapshot.is_aws = lambda: False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        dropped = {"skip"} if "move_task" in item.nodeid else {"skip", "skip_snapshot_verify"}
        for node in item.listchain():
            # Those that another plugin has excluded stay so.
            node.own_markers[:] = [
                mark for mark in node.own_markers if mark.name not in dropped or mark.kwargs.get("reason") == "excluded"
            ]
        if not item.get_closest_marker("aws_validated"):
            item.add_marker(pytest.mark.skip(reason="not validated at AWS"))


# These would ask AWS who we are.
@pytest.fixture(scope="session")
def account_id():
    return "000000000000"


@pytest.fixture(scope="session")
def region_name():
    return "us-east-1"
