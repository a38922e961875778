"""What a node remembers having done: counts for its operators and, if it keeps one, lines for its diary."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from grapevine.model.identity import PeerId
from grapevine.net.diary import Diary, DiaryError
from grapevine.net.stored_event import StoredEvent
from grapevine.net.traffic import Traffic
from grapevine.systems.contracts.peer import FROM_BEHIND, Address, Peer

_log = logging.getLogger(__name__)


class Chronicle:
    """Told by the parts of a node what happened. A diary that cannot be written is logged, and stops nothing."""

    def __init__(self, me: PeerId, diary: Diary | None) -> None:
        self.published = 0  # events of this node's
        self.delivered = 0  # events for its applications, its own included
        self._me, self._diary = me, diary
        self._traffic_told = Traffic()  # at the diary's last line
        self._is_leaving = False  # from then on links only go

    def on_start(self, system: str, config: Mapping[str, Any]) -> None:
        """A session begins, as a peer of this system with this configuration."""
        if self._diary:
            self._diary.session(system, config)

    def on_subscribed(self, topic_id: int, name: str) -> None:
        """The application wants a topic that it did not want before."""
        if self._diary:
            self._diary.subscribed(topic_id, name)

    def on_unsubscribed(self, topic_id: int, name: str) -> None:
        """The application no longer wants a topic."""
        if self._diary:
            self._diary.unsubscribed(topic_id, name)

    def on_published(self, event: StoredEvent, asked_us: int) -> None:
        """An event of this node's is on the disk; the application asked for it at this time of day.

        Delays are counted from there: an application that publishes waits for the disk, too.
        """
        self.published += 1
        if self._diary:
            self._diary.published(event.topic, self._me.address, event.number, asked_us)

    def on_received(self, event: StoredEvent, sender: Address, *, wanted: bool, again: bool) -> None:
        """A copy of an event was pushed to this node: `wanted` by an application, `again` if it was known."""
        if self._diary:
            self._diary.received(event.topic, event.publisher.address, event.number, sender, wanted=wanted, again=again)

    def on_delivered(self, event: StoredEvent, sender: Address, *, pulled: bool) -> None:
        """An application has the event; `pulled` if it had been missed and was asked for."""
        self.delivered += 1
        if self._diary and event.publisher != self._me:
            self._diary.delivered(event.topic, event.publisher.address, event.number, sender, pulled=pulled)

    def write(self, peer: Peer, traffic: Traffic) -> None:
        """Note links and traffic, and write everything to the disk. Called every second."""
        if self._diary is None:
            return
        if not self._is_leaving:
            self._note_links(self._diary, peer)
        self._note_traffic(self._diary, traffic)
        self._flush(self._diary)

    def on_leaving(self, peer: Peer, traffic: Traffic) -> None:
        """The node is about to leave: its links are noted for the last time, as long as it has them."""
        if self._diary is None:
            return
        self._note_links(self._diary, peer)
        self._note_traffic(self._diary, traffic)
        self._is_leaving = True
        self._diary.leaving()
        self._flush(self._diary)

    @staticmethod
    def _note_links(diary: Diary, peer: Peer) -> None:
        roles = peer.roles()
        chosen = [(node, kind) for node, kinds in roles.items() for kind in kinds if kind not in FROM_BEHIND]
        diary.links(chosen, len(roles))

    def _note_traffic(self, diary: Diary, traffic: Traffic) -> None:
        before, self._traffic_told = self._traffic_told, traffic.copy()
        diary.traffic(**self._traffic_told.since(before))

    @staticmethod
    def _flush(diary: Diary) -> None:
        try:
            diary.flush()
        except DiaryError as error:
            _log.error("the diary was not written: %s", error)

    def close(self, traffic: Traffic) -> None:
        """The session ends in good order; what was said since `on_leaving` counts, if anything was, and links are no
        more."""
        if self._diary:
            if traffic != self._traffic_told:
                self._note_traffic(self._diary, traffic)
            self._diary.end()
            self._diary.close()
