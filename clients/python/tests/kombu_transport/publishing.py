"""The messages that the tests of the transport send and get."""

from kombu import Producer


def publish(connection, body="x", queue="jobs", **options):
    Producer(connection.default_channel).publish(body, routing_key=queue, serializer="json", **options)


def get(connection, **options):
    return connection.default_channel.basic_get("jobs", **options)
