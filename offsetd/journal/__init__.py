"""The embedded engine: one journal per broker, its recovery, its checkpoint and its history."""
