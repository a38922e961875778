"""Profiles travel in parts and as changes, and nothing that a stranger sends makes a wrong one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.systems.gossip import interests, messages, profiles
from grapevine.systems.gossip.interests import Interests, array_of, whole_profile
from grapevine.systems.gossip.messages import Profile, Topics, pack
from grapevine.systems.gossip.profiles import KnownProfiles, NewProfile, PendingProfiles
from tests.effort import examples

WORDS = st.integers(0, 9) | st.integers(0, 2**64 - 1)
ME, ASKER = 2**64 - 1, 5


@pytest.fixture(autouse=True)
def parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (messages, interests, profiles):
        monkeypatch.setattr(module, "TOPICS_A_PART", 3)


def pending_of(version: int = 0, topics: Topics | None = None, most: int = 1_000) -> PendingProfiles:
    """Somebody who has asked for the profile, of which it knows this version."""
    known = KnownProfiles(most)
    if version:
        known.put(ME, version, topics if topics is not None else array_of([]), first_hand=True)
    pending = PendingProfiles(known, most)
    pending.ask(0.0, ME, ME)
    return pending


def last(pending: PendingProfiles, parts: list[Profile]) -> NewProfile | None:
    *before, update = [pending.take(ME, part) for part in parts]
    assert not any(before)
    return update


@examples(2)
@given(
    st.sets(WORDS, max_size=12),
    st.lists(st.tuples(st.booleans(), WORDS), max_size=40),
    st.data(),
)
def test_any_history_and_any_version_of_the_asker_gives_the_right_set(
    topics: set[int], changes: list[tuple[bool, int]], data: st.DataObject
) -> None:
    with patch.object(interests, "LOGGED", 3):
        own = Interests(topics, 7, 100)
    history = {own.version: own.array()}
    for wanted, topic in changes:
        (own.add if wanted else own.remove)(topic)
        history[own.version] = own.array()
    version = data.draw(st.sampled_from([0, *history]))
    pending = pending_of(version, history.get(version))
    sent = own.profile_for(ME, version)
    update = last(pending, data.draw(st.permutations(sent)))
    assert update is not None and update.version == own.version
    assert update.topics.tolist() == sorted(own.topics)
    if update.added is not None:
        missed = [topic for _, topic in changes][max(version - 7, 0) :] if version else []
        assert set(update.added.tolist()) <= own.topics
        assert len(sent) == 1 and (missed or not len(update.added))


def test_a_topic_that_went_and_came_back_is_told_as_new() -> None:
    """Who follows has dropped what it was sent for it."""
    own = Interests([1, 2, 3], 1, 10)
    own.remove(2)
    own.add(2)
    update = last(pending_of(1, array_of([1, 2, 3])), own.profile_for(ME, 1))
    assert update is not None and update.topics.tolist() == [1, 2, 3]
    assert update.added is not None and update.added.tolist() == [2]


@examples(2)
@given(
    st.sets(WORDS, max_size=20),
    st.sets(WORDS, max_size=20),
    st.lists(
        st.tuples(st.integers(0, 13), st.sampled_from(Profile.__struct_fields__[1:]), st.integers(-1, 9)), max_size=8
    ),
    st.randoms(),
)
def test_parts_that_do_not_fit_together_make_no_profile(
    one: set[int], other: set[int], spoilt: list[tuple[int, str, int]], random: Any
) -> None:
    """Whatever is mixed, doubled or changed: what is taken is one of the sets that were sent whole."""
    parts = [*whole_profile(ME, 3, array_of(one)), *whole_profile(ME, 3, array_of(other))]
    for at, name, value in spoilt:
        old = parts[at % len(parts)]
        new: Any = value if isinstance(getattr(old, name), int) else bytes(8 * max(value, 0) + (value == 7))
        parts.append(msgspec.structs.replace(old, **{name: new}))
    random.shuffle(parts)
    pending = pending_of()
    for part in parts:
        update = pending.take(ME, part)
        if update is not None:
            sums = {(len(s), sum(s) % 2**64) for s in (one, other)}
            assert (np.diff(update.topics.astype(object)) > 0).all()
            assert (len(update.topics), int(update.topics.sum())) in sums or spoilt
            return


def test_a_profile_comes_only_from_whom_it_was_asked() -> None:
    (sent,) = whole_profile(ME, 3, array_of([1]))
    pending = pending_of()
    assert pending.take(ASKER, sent) is None
    assert PendingProfiles(KnownProfiles(9), 9).take(ME, sent) is None
    assert pending.take(ME, sent) is not None
    assert pending.take(ME, sent) is None, "it was answered"


def test_what_exceeds_the_bounds_is_ignored_and_late_parts_are_dropped() -> None:
    pending = pending_of(most=5)
    assert pending.take(ME, whole_profile(ME, 3, array_of(range(6)))[0]) is None
    assert pending.buffered == 0
    first, second = whole_profile(ME, 3, array_of(range(5)))
    assert pending.take(ME, first) is None and pending.buffered == 3
    pending.drop_stale(1.0, {ME})
    assert pending.buffered == 0 and pending.take(ME, second) is None
    assert pending.may_ask(ME) and pending.times_asked(ME) == 1


def test_a_change_of_what_is_not_known_so_makes_the_next_question_ask_for_all() -> None:
    pending = pending_of(4, array_of([1, 2]))
    wrong = Profile(ME, 5, 4, 0, 1, 3, 99, pack(array_of([3])))
    assert pending.take(ME, wrong) is None and pending._known.version(ME) == 0


def test_all_profiles_together_are_bounded() -> None:
    known = KnownProfiles(2)
    for node in range(40):
        known.put(node, 1, array_of([1, 2]), first_hand=True)
    assert sum(known.version(node) for node in range(40)) == profiles._KEPT
    assert known.version(39) == 1
    known.meet([30])
    for node in range(50, 90):
        known.put(node, 1, array_of([1, 2]), first_hand=True)
    assert known.version(30) == 1, "neighbours' profiles go last"
    known.trim({30, 85}, 2)
    assert [node for node in range(90) if known.version(node)] == [30, 85, 88, 89]


@given(st.sets(WORDS), st.sets(WORDS))
def test_the_overlap_is_that_of_the_sets(mine: set[int], theirs: set[int]) -> None:
    known, own = KnownProfiles(1_000), array_of(mine)
    known.compare_with(own)
    known.put(8, 1, array_of(theirs), first_hand=True)
    assert known.overlap(8) == (len(mine & theirs), len(theirs))
    assert own[known.shared_at(8)].tolist() == sorted(mine & theirs)
    assert all(known.wants(8, topic) == (topic in theirs) for topic in mine | theirs)


def test_subscriptions_are_bounded_in_one_clear_line() -> None:
    own = Interests([4, 5], 1, 2)
    own.add(4)
    with pytest.raises(UsageError, match=r"topic 6: there are 2 subscriptions already; raise most_topics"):
        own.add(6)
    with pytest.raises(UsageError, match="topic -1: topics are numbers from 0 to"):
        own.add(-1)


def test_what_others_told_of_a_neighbour_is_confirmed_or_replaced_by_its_own_word() -> None:
    own = Interests([1, 2, 3], 4, 10)
    for said, is_right in (([1, 2, 3], True), ([1, 2, 9], False)):
        pending = pending_of()
        pending._known.put(ME, 4, array_of(said), first_hand=False)
        assert not pending._known.has(ME, 4)
        (answer,) = own.profile_for(ME, 4)
        assert not answer.added, "no topics travel"
        assert (pending.take(ME, answer) is not None) == is_right
        assert pending._known.version(ME) == (4 if is_right else 0)
        assert pending.may_ask(ME)
