"""Groups of the newer protocol (KIP-848), which are not served yet: where their rules will live. Pure."""

from protocol.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.errors import Code


def refuse_consumer_group_heartbeat() -> ConsumerGroupHeartbeatResponse:
    """Refuse as a Kafka does that serves classic groups alone: every client then ends with an error of its own.

    Were the API left out of what is served, librdkafka would look for another coordinator for ever, without a word.
    """
    return ConsumerGroupHeartbeatResponse(
        error_code=Code.UNSUPPORTED_VERSION,
        error_message="offsetd serves groups of the classic protocol: set group.protocol=classic",
    )
