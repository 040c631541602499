"""The ids that a peer gave to members: each peer makes its own, so a script says `~a`, and an answer shows `<a:0>`."""

import re
from typing import Final

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


class MemberIds:
    """What one peer called the clients of one run, in order: one that came back may have several."""

    def __init__(self) -> None:
        self._of: dict[str, list[str]] = {}
        self._shown: dict[str, str] = {}

    def learn(self, client: str, member_id: str) -> None:
        """Take the id that a client was given; how it is made up is shown, its random part is not."""
        if member_id in self._shown:
            return
        known = self._of.setdefault(client, [])
        known.append(member_id)
        self._shown[member_id] = f"<{client}:{len(known) - 1} {_UUID.sub('UUID', member_id)}>"

    def word(self, word: str) -> str:
        """Return the id that a script means: the newest of a client, or by its number."""
        client, _, number = word.partition(":")
        return self._of[client][int(number) if number else -1]

    def shown(self, text: str) -> str:
        """Return a text as it is compared; the id of a member that has not heard of it yet is not known either."""
        return self._shown.get(text) or _UUID.sub("UUID", text)
