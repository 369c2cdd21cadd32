"""Tests of the foreign suites that are not in scope, by the beginnings of their names, with the reasons."""

REGIONS = "more than one region"
LAMBDA = "needs Lambda"
UNRECORDED = "compares with a record that is not there"
MOTOS = "contradicts AWS as LocalStack's suite has recorded it: "
CLOUDFORMATION = "needs CloudFormation"

LOCALSTACK = {
    "test_list_queues_multi_region": REGIONS,
    "test_get_queue_url_multi_region": REGIONS,
    "test_endpoint_strategy_with_multi_region": REGIONS,
    "test_dead_letter_queue_execution_lambda": LAMBDA,
    "test_delete_message_batch_from_lambda": LAMBDA,
    "test_fifo_delete_message_with_expired_receipt_handle": UNRECORDED,
    "test_invalid_dead_letter_arn_rejected_before_lookup": UNRECORDED,
}

# Run with --long.
LONG = {"test_deduplication_interval": "waits for six minutes"}

MOTO = {
    "test_create_queues_in_multiple_region": REGIONS,
    "test_list_queues_in_different_account": "needs STS and a second account",
    "test_describe_stack_subresources": CLOUDFORMATION,
    "test_list_stack_resources": CLOUDFORMATION,
    "test_create_from_cloudformation_json": CLOUDFORMATION,
    "test_update_stack": CLOUDFORMATION,
    "test_create_queue_passing_integer_as_name": CLOUDFORMATION,
    "test_create_queue_with_different_attributes_fail": MOTOS + "FifoQueue on a standard queue",
    "test_create_fifo_queue_with_dlq": MOTOS + "FifoQueue on a standard queue",
    "test_message_with_invalid_attributes": MOTOS + "names of attributes beyond ASCII",
    "test_change_message_visibility_on_unknown_receipt_handle": MOTOS + "the text of ReceiptHandleIsInvalid",
    "test_delete_message_errors": MOTOS + "the text of ReceiptHandleIsInvalid",
    "test_permissions": MOTOS + "the version of a policy",
    "test_remove_permission_errors": MOTOS + "the text for a label that is not there",
    "test_send_messages_to_fifo_without_message_group_id": MOTOS + "the code for a group that is missing in a batch",
}


def reason(name: str, excluded: dict) -> str:
    """Why a test is not in scope, or an empty text."""
    name = name.split("::")[-1]
    return next((why for start, why in excluded.items() if name.startswith(start)), "")
