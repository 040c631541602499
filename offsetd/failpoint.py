"""Named places where a test makes the daemon end, sleep, fail or wait. Off unless OFFSETD_FAILPOINTS is set at start.

The variable holds `name=action` pairs joined by commas; an action is `exit`, `sleep:<ms>` or `error:<errno name>`, and
may end with `@<n>`: only the n-th time the place is passed. `sync=...` is read by the sync helper, another process.
`hold:<path>` is for places that ask `held`: they wait, and let the loop go on, for as long as there is such a file;
with `@<n>` only at the n-th.
"""

import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

VARIABLE: Final = "OFFSETD_FAILPOINTS"
EXIT_CODE: Final = 86


@dataclass(slots=True)
class _Action:
    verb: str
    value: str
    hit: int | None
    passed: int = field(default=0)


_actions: dict[str, _Action] = {}


def failpoint(name: str) -> None:
    """Do what a test asked for at this place: nothing, nearly always."""
    if _actions:
        _run(name)


def held(name: str, turn: int) -> bool:
    """Tell whether a test wants this place to wait still, the n-th time that it is passed."""
    action = _actions.get(name)
    if action is None or action.verb != "hold" or action.hit not in (None, turn):
        return False
    return Path(action.value).exists()


def arm(text: str) -> None:
    """Set the failpoints from the text of the variable; an empty text takes them all away.

    Raises:
        ValueError: the text cannot be understood.
    """
    _actions.clear()
    for pair in filter(None, text.split(",")):
        name, equals, action = pair.partition("=")
        action, _, hit = action.partition("@")
        verb, _, value = action.partition(":")
        known = verb == "exit" or (verb == "sleep" and value.isdecimal()) or (verb == "error" and hasattr(errno, value))
        known = known or (verb == "hold" and value != "")
        if not equals or not known or (hit and not hit.isdecimal()):
            raise ValueError(
                f"{VARIABLE} holds {pair!r}; want name=exit, name=sleep:<ms>, name=error:<errno name> "
                "or name=hold:<path>, each with @<n> behind it or not"
            )
        _actions[name] = _Action(verb, value, int(hit) if hit else None)


def _run(name: str) -> None:
    action = _actions.get(name)
    if action is None or action.verb == "hold":
        return
    action.passed += 1
    if action.hit is not None and action.passed != action.hit:
        return
    if action.verb == "exit":
        os._exit(EXIT_CODE)
    if action.verb == "sleep":
        time.sleep(int(action.value) / 1000)
        return
    code = getattr(errno, action.value)
    raise OSError(code, f"{os.strerror(code)} (failpoint {name})")


arm(os.environ.get(VARIABLE, ""))
