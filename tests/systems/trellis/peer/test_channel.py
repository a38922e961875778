"""What a node tells a neighbour arrives as it is, though messages are lost, doubled and late."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.trellis.peer.channel import MOST_FACTS, Incoming, Key, Outgoing
from grapevine.systems.trellis.peer.messages import AnyFact, Fact, Gone, Label, Offer, Update
from tests.effort import examples

MOST = {Fact: 5_000}


def update_of(outgoing: Outgoing) -> Update:
    assert outgoing.unconfirmed is not None
    return Update(1, 0, 0, outgoing.serial, 0, 1, *outgoing.unconfirmed)


@examples(1)
@given(seed=st.integers(0, 2**32), loss=st.sampled_from([0.0, 0.2, 0.6]))
def test_both_tables_are_equal_when_all_is_confirmed(seed: int, loss: float) -> None:
    random, table = Random(seed), dict[Key, AnyFact]()
    outgoing, incoming, wire = Outgoing(), Incoming(MOST), list[Update]()
    links: tuple[int, ...] = ()

    def desired(key: Key) -> AnyFact | None:
        return table.get(key)

    def deliver() -> None:
        update = wire.pop(random.randrange(len(wire)))
        if random.random() < 0.3:
            wire.append(update)
        if random.random() >= loss:
            incoming.take(update)
            outgoing.confirm(incoming.serial)

    for _ in range(300):
        topic, what = random.randrange(6), random.random()
        if what < 0.3:
            table[0, topic] = Label(topic, random.randrange(4))
            outgoing.mark((0, topic))
        elif what < 0.4:
            table.pop((0, topic), None)
            outgoing.mark((0, topic))
        elif what < 0.5:
            table[2, topic] = Offer(topic, random.randrange(4))
            outgoing.mark((2, topic))
        elif what < 0.55:
            links = tuple(range(random.randrange(4)))
        elif what < 0.75:
            if outgoing.next(desired, links) or outgoing.unconfirmed is not None:
                wire.append(update_of(outgoing))
        elif wire:
            deliver()
    loss = 0.0
    while outgoing.unconfirmed is not None or outgoing.next(desired, links):
        wire.append(update_of(outgoing))
        deliver()
    found = {(kind, topic): fact for kind, facts in enumerate(incoming.facts) for topic, fact in facts.items()}
    assert found == table == outgoing.told
    assert incoming.links == links


def test_what_comes_back_to_what_it_was_is_not_sent() -> None:
    outgoing, table = Outgoing(), {(0, 1): Label(1, 7)}
    outgoing.mark((0, 1))
    assert outgoing.next(table.get, ())
    outgoing.confirm(1)
    table[0, 1] = Label(1, 8)
    outgoing.mark((0, 1))
    table[0, 1] = Label(1, 7)
    outgoing.mark((0, 1))
    assert not outgoing.next(table.get, ())


def test_many_facts_go_in_parts_and_more_than_a_node_listens_to_are_counted() -> None:
    count = MOST_FACTS + 10
    outgoing, incoming = Outgoing(), Incoming({Fact: MOST_FACTS + 4})
    table: dict[Key, AnyFact] = {(0, topic): Label(topic, 1) for topic in range(count)}
    for key in table:
        outgoing.mark(key)
    updates = 0
    while outgoing.next(table.get, ()):
        incoming.take(update_of(outgoing))
        outgoing.confirm(incoming.serial)
        updates += 1
    assert updates == 2
    assert len(incoming.facts[0]) == MOST_FACTS + 4 and incoming.excesses == 6


def test_what_was_never_told_cannot_be_withdrawn() -> None:
    incoming = Incoming(MOST)
    assert incoming.take(Update(1, 0, 0, 1, 0, 1, (Gone(3, 0), Gone(3, 99), Label(4, -1)))) == []
