"""Bulk work: many offsets from files into a broker, out of it again, and two dumps side by side."""
