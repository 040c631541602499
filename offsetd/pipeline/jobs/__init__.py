"""Spark jobs as groups: a streaming query's position shown in offsetd, and reads that start where a group stands."""

from offsetd.pipeline.jobs.reporting import report_progress
from offsetd.pipeline.jobs.starting import start_from_group

__all__ = ["report_progress", "start_from_group"]
