"""A pytest plugin for moto's tests, which run in its server mode: their server is the endpoint."""

import boto3
import pytest
from moto.core import models


def empty(mock) -> None:
    """moto's server has a call that forgets everything. An endpoint has queues, which can be deleted."""
    sqs = boto3.session.Session().client("sqs", "us-east-1", endpoint_url=mock._test_server_mode_endpoint)
    for page in sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1000}):
        for url in page.get("QueueUrls", []):
            sqs.delete_queue(QueueUrl=url)


models.ServerModeMockAWS.reset = empty


@pytest.fixture
def account_id():
    return "123456789012"
