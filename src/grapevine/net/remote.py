"""A node in another process of this machine: publish and subscribe through its control server (`control`)."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.control_file import CONTROL_FILE, UNIX

NODE_VARIABLE = "GRAPEVINE_NODE"
_ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Remote:
    """Where the node answers, and the token that it asks for."""

    url: str
    token: str

    @classmethod
    def find(cls, given: Path | None = None) -> Remote:
        """By a control file or the folder that has one: the given one, GRAPEVINE_NODE's, or this folder's."""
        chosen = given or Path(os.environ.get(NODE_VARIABLE) or ".")
        path = chosen / CONTROL_FILE if chosen.is_dir() else chosen
        try:
            content = json.loads(path.read_text())
            return cls(str(content["url"]), str(content["token"]))
        except FileNotFoundError:
            raise UsageError(
                f"{path}: there is no control file of a running node; start one with `grapevine node --data-dir DIR`,"
                f" and name it with --node DIR or {NODE_VARIABLE}"
            ) from None
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror}); a node's owner may") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{path}: is no control file of a node; give the one that `grapevine node` names"
            ) from None

    def publish(self, topic: str, payload: bytes, *, acks: int = 0, timeout: float | None = None) -> dict[str, Any]:
        """Publish an event, as `Node.publish`; its publisher, sequence and time."""
        query = {"topic": topic, "acks": acks} | ({} if timeout is None else {"timeout": timeout})
        doubt = "the event may have been published"
        return self._answer("POST", "/publish", query, doubt, payload, _ANSWER_S + (timeout or 0.0))

    def subscribe(
        self,
        topics: list[str],
        *,
        since: float | str = "now",
        policy: str = "block",
        name: str | None = None,
        ordered: bool = True,
    ) -> Generator[dict[str, Any], None, None]:
        """Lines as the node sends them: first `subscribed`, then events, gaps (`reason`), or `lagged`; ends when the
        node stops.

        With a name the stream is durable: it goes on behind what was acknowledged (`ack`).
        """
        query = [("topic", topic) for topic in topics] + [("policy", policy)]
        query += [("since", str(since)), ("ordered", str(ordered).lower())]
        query += [] if name is None else [("name", name)]
        connection, response = self._ask("GET", "/subscribe", query, None, _ANSWER_S)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(None)  # the next event may take a day
            while line := response.readline():
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GrapevineError(f"{self.url}: the stream broke off ({error}); is the node still running?") from None
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        """What the node tells about itself: who it is, its totals, and its conditions."""
        return self._answer("GET", "/stats", {}, "is the node still running?")

    def peers(self) -> list[dict[str, Any]]:
        """Whom the node is linked to (`inspection.peers_of`)."""
        return self._answer("GET", "/peers", {}, "is the node still running?")

    def topics(self) -> list[dict[str, Any]]:
        """What its programs want and publish in (`inspection.topics_of`)."""
        return self._answer("GET", "/topics", {}, "is the node still running?")

    def ack(self, name: str, line: dict[str, Any]) -> None:
        """An event or gap, a line of `subscribe` under this name that is still being read, was handled.

        It is on the node's disk when this returns, and does not come again.
        """
        last = line["last"] if "reason" in line else line["sequence"]
        query = {"topic": line["topic"], "name": name, "publisher": line["publisher"], "sequence": last}
        query |= {"epoch": line.get("epoch", 0)}
        self._answer("POST", "/ack", query, "the event may come again")

    def _answer(
        self,
        method: str,
        path: str,
        query: Any,
        doubt: str,
        body: bytes | None = None,
        timeout: float = _ANSWER_S,
    ) -> Any:
        """The node's answer; `doubt` is what the user has to know if it breaks off."""
        connection, response = self._ask(method, path, query, body, timeout)
        try:
            return json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GrapevineError(f"{self.url}: broke off ({error}); {doubt}") from None
        finally:
            connection.close()

    def _ask(
        self, method: str, path: str, query: Any, body: bytes | None, timeout: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connection(timeout)
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            connection.request(method, f"{path}?{urlencode(query)}", body, headers)
            response = connection.getresponse()
            if response.status == 200:
                return connection, response
            sentence = _sentence(response)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            connection.close()
            raise GrapevineError(f"{self.url}: no node answers ({error}); is it still running?") from None
        connection.close()
        if response.status in (400, 401, 413):
            raise UsageError(sentence)
        raise GrapevineError(sentence)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.url.startswith(UNIX):
            return _UnixConnection(self.url.removeprefix(UNIX), timeout)
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname or not parts.port:
            raise UsageError(
                f"{self.url}: is no address of a control server; give the file that `grapevine node` names"
            )
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _sentence(response: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(response.read(65_536))["error"])
    except (ValueError, KeyError, TypeError):
        return f"the node answered {response.status} {response.reason}"
