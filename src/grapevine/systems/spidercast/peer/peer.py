"""A SpiderCast node: puts the parts together, drives them once a round, and passes events on whenever they come.

A round of a node lasts `round_s`, give or take a tenth, so that nodes do not act in step. In it the node drops who was
silent, does an iteration of each of its tasks, sends heartbeats to all neighbours, gossips with a random node, asks for
profiles that it lacks, and for subscribers of topics for which it knows nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from grapevine.systems.contracts.peer import (
    Address,
    Deliver,
    Effect,
    Effects,
    Finished,
    LinkDown,
    LinkUp,
    Message,
    Peer,
    Send,
    SetTimer,
)
from grapevine.systems.gossip.interests import Interests, check_topic
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.gossip.messages import WORDS, Ask, Profile
from grapevine.systems.gossip.window import Windows
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.flooding import Flooding
from grapevine.systems.spidercast.peer.links import Links
from grapevine.systems.spidercast.peer.maintenance import Maintenance
from grapevine.systems.spidercast.peer.messages import (
    RANDOM_TASK,
    TASKS,
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Found,
    Heartbeat,
    Leave,
    Notify,
    Redirect,
    Sample,
    WhoElse,
)
from grapevine.systems.spidercast.peer.seeking import Seeking, exceeds
from grapevine.systems.spidercast.peer.setup import Setup
from grapevine.systems.spidercast.peer.view import View
from grapevine.systems.spidercast.rules import has_few_links

_CONTACTS = 20  # that are remembered
_ROLES = "greedy", "random"  # of a neighbour in a task


class SpiderCastPeer(Peer):
    """One session of a node; `Setup` says who it is. What remains of it for the next one is in `memory()`."""

    def __init__(self, setup: Setup, config: SpiderCastPeerConfig) -> None:
        memory, random = setup.memory, setup.random
        self.me, self.config, self._random = setup.me, config, random
        self.topics = set(memory.topics if memory else setup.topics)
        self._published = set(setup.published)
        interests = Interests(self.topics | self._published, memory.version + 1 if memory else 1, config.most_topics)
        self.interests, self.links = interests, Links(config.grace_s)
        self._contacts = tuple(memory.contacts if memory and memory.contacts else setup.contacts)
        self._sequences = dict(memory.sequences) if memory else {}
        self.view = View(setup.me, config, interests, self.links, random)
        wanted = config.greedy_coverage, config.random_coverage
        self.tasks = [Maintenance(t, wanted[t], config, self.links, self.view, random, self._send) for t in TASKS]
        self._checks = config.random_coverage  # coverages reached at which the degree was checked (§3.3.1)
        self._seeking = Seeking(config, self.view, interests, random)
        self.flooding = Flooding(self.links, self.view, interests, memory.seen if memory else Windows())
        self._rounds = 0
        self._linked: set[Address] = set()
        self._out: list[Effect] = []
        self._handlers: dict[type, Callable[[float, Address, Any], None]] = {
            Sample: self._on_sample,
            WhoElse: self._on_seek,
            Found: self._seeking.on_found,
            Ask: self._on_ask,
            Profile: self._on_profile,
            Connect: self._on_connect,
            ConnectOk: self._on_connect_ok,
            Redirect: self._on_redirect,
            Disconnect: self._on_disconnect,
            DisconnectOk: self._on_disconnect_ok,
            Leave: self._on_leave,
            Heartbeat: self._on_heartbeat,
            Notify: self._on_notify,
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        self.view.renew()
        self._call_contacts()
        self._out.append(SetTimer("round", self._random.random() * self.config.round_s))
        return self._take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler = self._handlers.get(type(message))
        if handler is not None and 0 <= sender < WORDS and sender != self.me:
            self.view.book.hear(sender, now)
            handler(now, sender, message)
            self._announce_links()
        return self._take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        if timer == "round":
            self._round(now)
        return self._take()

    def meet(self, now: float, node: Address) -> Effects:
        if node != self.me:
            self._contacts = (*self._contacts, node)[-_CONTACTS:]
            self._send(node, Sample((self.view.me,), is_answer=False))
        return self._take()

    def on_unreachable(self, now: float, node: Address) -> Effects:
        self._forget(now, node)
        return self._take()

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        check_topic(topic)
        if topic not in self.interests.topics:  # §2.1: the interest has what a node publishes in
            self._published.add(topic)
            self._interests_changed(topic)
        self._sequences[topic] = self._sequences.get(topic, 0) + 1 if sequence is None else sequence
        event = Notify(topic, self._sequences[topic], self.me, payload)
        self.flooding.is_new(event)
        self._pass_on(event, None)
        return self._take()

    def subscribe(self, now: float, topic: int) -> Effects:
        check_topic(topic)
        self.interests.add(topic)
        self.topics.add(topic)
        self._interests_changed(topic)
        return self._take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        self.topics.discard(topic)
        self._interests_changed(topic)
        return self._take()

    def leave(self, now: float) -> Effects:
        for node in self.links.neighbours:
            self._send(node, Leave(tuple(TASKS)))
        self._out.append(Finished())
        return self._take()

    def carried(self, now: float) -> Collection[int]:
        return self.interests.topics

    def partners(self, now: float, topic: int) -> Collection[Address]:
        return self.flooding.partners(topic)

    def roles(self) -> dict[Address, list[str]]:
        return {node: [_ROLES[task] for task in self.links.tasks_of(node)] for node in self.links.neighbours}

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        known = *self.links.neighbours, *self.view.newscast.cache, *self._contacts
        contacts = tuple(dict.fromkeys(known))[:_CONTACTS]
        return Memory(self.interests.version, tuple(sorted(self.topics)), contacts, self._sequences, self.flooding.seen)

    @property
    def random_coverage(self) -> int:
        """K_r, which adaptive nodes raise."""
        return self.tasks[RANDOM_TASK].k

    # A round

    def _send(self, to: Address, message: Message) -> None:
        self._out.append(Send(to, message))

    def _take(self) -> Effects:
        taken, self._out = self._out, []
        return taken

    def _call_contacts(self) -> None:
        for node in self._contacts:
            self._send(node, Sample((self.view.me,), is_answer=False))

    def _interests_changed(self, topic: int) -> None:
        """A topic may have come to the interest, or gone from it."""
        if topic in self.topics or topic in self._published:
            self.interests.add(topic)
        else:
            self.interests.remove(topic)
        self.view.renew()
        for task in self.tasks:
            task.want(task.k, len(self.interests.topics))

    def _round(self, now: float) -> None:
        config, view = self.config, self.view
        self._rounds += 1
        for node in self.links.silent(now - config.silence_s):
            self._forget(now, node)
        view.begin_round(now)
        for node in [node for node in self.links.neighbours if view.is_useless(node)]:
            self._part(node)
        self._adapt(now)
        for task in self.tasks:
            task.turn(now)
        self._send_heartbeats()
        self._gossip(now)
        self._announce_links()
        self._out.append(SetTimer("round", config.round_s * self._random.uniform(0.9, 1.1)))

    def _adapt(self, now: float) -> None:
        """§3.3.1: check the degree once for every coverage that is reached."""
        greedy, random = self.tasks
        if not self.config.adaptive or self._checks != random.k:
            return
        if greedy.missing(now) == random.missing(now) == 0:
            topics = len(self.interests.topics)
            self._checks += 1
            if has_few_links(greedy.k, random.k, len(self.links.neighbours), topics):
                random.want(random.k + 1, topics)

    def _send_heartbeats(self) -> None:
        greedy, random = (task.standing for task in self.tasks)
        for node in self.links.neighbours:
            self._send(node, Heartbeat(self.view.me, self.links.tasks_of(node), (greedy, random)))

    def _gossip(self, now: float) -> None:
        """Exchange samples with a random node, and ask for what is missing: profiles, and subscribers."""
        view = self.view
        if not view.book.known:
            self._call_contacts()  # nobody answered: a contact may be there again
        if self._rounds % self.config.sample_rounds == 0 and (partner := view.newscast.partner()) is not None:
            self._send(partner, Sample(view.newscast.sample(now), is_answer=False))
        for node, question in view.asking.questions(now, set(self.links.neighbours)):
            self._send(node, question)
        own = self.interests.array()
        scarce = {int(own[at]) for task in self.tasks for at in task.scarce(now)}
        for node, sought in self._seeking.questions(now, scarce, self._contacts):
            self._send(node, sought)

    def _announce_links(self) -> None:
        linked = self.links.nodes
        if linked == self._linked:
            return
        self._out += [LinkDown(node) for node in sorted(self._linked - linked)]
        self._out += [LinkUp(node) for node in sorted(linked - self._linked)]
        self._linked = set(linked)

    def _forget(self, now: float, node: Address) -> None:
        """The node is gone: neighbours look for others in their next rounds (§2.4)."""
        self.links.drop(node)
        self.view.forget(node, gone=now + self.config.round_s)
        self._announce_links()

    def _part(self, node: Address) -> None:
        """Hold no link to a node any more, and tell it."""
        self._send(node, Leave(self.links.tasks_of(node)))
        self.links.drop(node)
        self.view.changed()

    # Membership

    def _on_sample(self, now: float, sender: Address, message: Sample) -> None:
        if not message.is_answer:
            self._send(sender, Sample(self.view.newscast.sample(now), is_answer=True))
        self.view.merge(now, sender, message.descriptors)

    def _on_seek(self, now: float, sender: Address, message: WhoElse) -> None:
        self.excesses += exceeds(message)
        for node, answer in self._seeking.on_seek(now, sender, message):
            self._send(node, answer)

    def _on_ask(self, now: float, sender: Address, message: Ask) -> None:
        for answer in self.view.asking.answers(sender, message):
            self._send(sender, answer)

    def _on_profile(self, now: float, sender: Address, message: Profile) -> None:
        self.excesses += message.topic_count > self.config.most_topics
        if self.view.asking.take(sender, message) is not None:
            self.view.changed()

    # Agreement on links

    def _on_connect(self, now: float, sender: Address, message: Connect) -> None:
        if self._hear(now, sender, message):
            self.tasks[message.task].on_connect(now, sender, message.standing)
            self._ask_for_profile(now, sender)

    def _on_connect_ok(self, now: float, sender: Address, message: ConnectOk) -> None:
        if self._hear(now, sender, message):
            self.tasks[message.task].on_held(now, sender, message.standing)
            self._ask_for_profile(now, sender)

    def _hear(self, now: float, sender: Address, message: Connect | ConnectOk) -> bool:
        """Learn who speaks; False if the message cannot be what it stands for."""
        is_sound = message.task in TASKS and message.standing.is_sound() and message.me.is_sound()
        if is_sound and message.me.node == sender:
            self.view.learn(now, sender, (message.me,))
            return True
        return False

    def _ask_for_profile(self, now: float, neighbour: Address) -> None:
        """Who has become a neighbour is asked at once what it wants, unless it has said so."""
        question = self.view.asking.question(now, neighbour) if neighbour in self.links else None
        if question is not None:
            self._send(neighbour, question)

    def _on_redirect(self, now: float, sender: Address, message: Redirect) -> None:
        if message.task in TASKS and 0 <= message.node < WORDS:
            self.tasks[message.task].on_redirect(sender, message.node)

    def _on_disconnect(self, now: float, sender: Address, message: Disconnect) -> None:
        if message.task in TASKS:
            self.tasks[message.task].on_disconnect(now, sender)

    def _on_disconnect_ok(self, now: float, sender: Address, message: DisconnectOk) -> None:
        if message.task in TASKS:
            self.tasks[message.task].on_over(sender)

    def _on_leave(self, now: float, sender: Address, message: Leave) -> None:
        for task in set(message.tasks) & set(TASKS):
            self.tasks[task].on_over(sender)

    def _on_heartbeat(self, now: float, sender: Address, message: Heartbeat) -> None:
        standings = message.standings
        if message.me.node != sender or not message.me.is_sound() or not all(s.is_sound() for s in standings):
            return
        self.view.learn(now, sender, (message.me,))
        claimed, over = self.links.compare(now, sender, message.tasks, standings)
        for task in claimed:
            self.tasks[task].on_held(now, sender, standings[task])
        for task in over:
            self.tasks[task].on_over(sender)

    # Events

    def _on_notify(self, now: float, sender: Address, event: Notify) -> None:
        if self.flooding.is_new(event):
            if event.topic in self.topics:
                self._out.append(Deliver(event.topic, event.sequence, event.payload, sender))
            self._pass_on(event, sender)

    def _pass_on(self, event: Notify, sender: Address | None) -> None:
        for node in self.flooding.on_event(event, sender):
            self._send(node, event)
