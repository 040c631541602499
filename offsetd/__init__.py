"""offsetd: Kafka's consumer-offset service as a daemon of its own."""

__version__ = "0.1.0"
