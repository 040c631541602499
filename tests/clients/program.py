"""The inside of a client process: calls come in as lines of JSON, answers go out likewise. Knows no Kafka client.

A client library runs in a process of its own, because one of them can take the whole process with it when it crashes,
and because what it warns of and logs is then not mixed with the tests'.
"""

import asyncio
import inspect
import json
import logging
import sys
from typing import Any

#: A row as it travels: topic, partition, and what is said of it.
Row = list[Any]


def serve(client: Any) -> None:
    """Answer calls of the client's methods until the input ends; then close it.

    Args:
        client: the client, or a coroutine that makes it on the loop that it is to live on.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    asyncio.run(_serve(client))


async def _serve(made: Any) -> None:
    client = await _finished(made)
    # Read in a thread, so that a client that lives on the loop goes on between two calls.
    while line := await asyncio.to_thread(sys.stdin.readline):
        method, arguments = json.loads(line)
        try:
            answer = {"result": await _finished(getattr(client, method)(*arguments))}
        except Exception as error:  # noqa: BLE001  whatever the library raises is what the test wants to see
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    await _finished(client.close())


async def _finished(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
