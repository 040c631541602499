"""What one peer, and all peers together, may use of this daemon."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bounds with their units; the settings page says what each is for."""

    frame_bytes_max: int = 104_857_600
    connections_max: int = 10_000
    connections_per_host_max: int = 2_147_483_647
    connections_per_second_max: int = 2_147_483_647
    idle_ms_max: int = 600_000
    frame_read_ms_max: int = 30_000
    reply_write_ms_max: int = 60_000
    in_flight_max: int = 64
    memory_bytes_max: int = 268_435_456
