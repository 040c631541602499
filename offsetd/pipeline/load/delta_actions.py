"""What one load commits to a Delta table, as actions of Delta's open protocol in JSON. Pure.

A commit holds the files, the load's number (`txn`, by which a second loader is refused) and its manifest without the
files (`domainMetadata`, with the positions of all partitions). Delta keeps both in every checkpoint for as long as the
table lives; what it says of a commit's origin (`commitInfo`) it forgets after a month, so nothing that counts is there.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from offsetd.pipeline.load import manifest as manifests
from offsetd.pipeline.load.manifest import DataFile, Manifest

#: Whose number it is that rises with each load; a table has one group, so it needs no other name.
APP: Final = "offsetd.load"
DOMAIN: Final = "offsetd.load"


def mark(number: int) -> str:
    """Return what the table's history says of a load, for people who read it."""
    return f"offsetd load {number}"


def actions(manifest: Manifest, *, directory: str, day: str, time_ms: int) -> list[str]:
    """Return what a load commits.

    Args:
        directory: where its files are, below the table's.
        day: of the load, which all its rows carry.
    """
    # Files are in the log already, each with its bounds.
    text = manifests.encode(replace(manifest, files=()), indent=None)
    return [
        json.dumps({"txn": {"appId": APP, "version": manifest.number}}),
        json.dumps({"domainMetadata": {"domain": DOMAIN, "configuration": text, "removed": False}}),
        *_additions(manifest.files, manifest.number, directory, day, time_ms),
    ]


def _additions(files: Iterable[DataFile], number: int, directory: str, day: str, time_ms: int) -> Iterable[str]:
    for file in files:
        bounds = ({"load": number, "partition": file.partition, "offset": offset} for offset in (file.first, file.last))
        low, high = bounds
        yield json.dumps(
            {
                "add": {
                    "path": quote(f"{directory}/{file.path}", safe="/="),
                    "partitionValues": {"topic": file.topic, "day": day},
                    "size": file.bytes,
                    "modificationTime": time_ms,
                    "dataChange": True,
                    "stats": json.dumps({"numRecords": file.rows, "minValues": low, "maxValues": high}),
                }
            }
        )
