"""The data pipeline on Spark: loads that never duplicate, offset history as tables, Spark jobs as groups.

It needs no running broker except through `offsetd.client`, and nothing else imports it. What needs pyspark is imported
only when it is asked for, so that the rest (plans, manifests) can be read and tested without Java.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offsetd.pipeline.jobs import report_progress, start_from_group

__all__ = ["report_progress", "start_from_group"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("offsetd.pipeline.jobs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
