"""The straight line of a request: decide, append, settled, apply, reply. It knows no socket, no file and no HTTP."""

from offsetd.broker.broker import Broker
from offsetd.broker.client import Client, Clock, MachineClock
from offsetd.broker.slots import SlotState

__all__ = ["Broker", "Client", "Clock", "MachineClock", "SlotState"]
