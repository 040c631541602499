"""Kafka's wire format, pure: frames, headers, messages. No input or output, no clock, no state of the service."""
