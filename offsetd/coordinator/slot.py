"""Which slot a group belongs to: Kafka's arithmetic, so that offsetd and Kafka agree on every group."""


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: 31-fold over UTF-16 units in signed 32 bits."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be")
        for place in range(0, len(units), 2):
            value = (31 * value + (units[place] << 8 | units[place + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def slot_of(group_id: str, slots: int) -> int:
    """Return the slot of a group among `slots`."""
    value = java_hash(group_id)
    # Java has no positive twin of its smallest int, and Kafka takes zero for it.
    return 0 if value == -(1 << 31) else abs(value) % slots


def utf16_units(text: str) -> int:
    """Return a text's length as Java counts it, which is what Kafka's limit on metadata counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be")) // 2
