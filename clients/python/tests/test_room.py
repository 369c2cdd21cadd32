"""Which node is asked for the room of which caller, without connections."""

import pytest
from dqueue.working.room import SLOW, Room


@pytest.fixture
def room():
    room = Room()
    room.turns.extend([1, 2, 3])
    return room


def test_nodes_are_asked_in_turn_and_only_for_callers_with_room(room):
    assert not room.reserve(1, 0.0)
    room.free = 1
    assert not room.reserve(2, 0.0)
    assert room.reserve(1, 0.0)
    assert not room.reserve(2, 0.0)
    room.had_nothing(1)
    assert room.reserve(2, 0.0)
    assert room.hand_over(2, ["m"])
    room.turns.append(2)
    assert list(room.turns) == [3, 2] and room.arrived.popleft() == ["m"]
    assert not room.has_callers


def test_nobody_has_room_for_more_than_was_asked_for(room):
    room.free = 1
    assert room.hand_over(1, ["first"])
    assert not room.hand_over(2, ["second"])
    assert list(room.arrived) == [["first"]]


def test_a_node_that_waits_serves_the_caller_for_whom_a_slow_one_is_asked(room):
    room.free = 1
    assert room.reserve(1, 0.0)
    assert room.hand_over(2, ["fast"])
    assert not room.hand_over(1, ["slow"])


def test_a_node_that_does_not_answer_keeps_no_room(room):
    room.free = 1
    assert room.reserve(1, 0.0)
    assert not room.reserve(2, SLOW / 2)
    assert room.reserve(2, SLOW * 1.1)
    # The slow node answers at last.
    room.had_nothing(1)
    assert room.free == 0
    assert room.hand_over(2, ["m"])


def test_a_caller_stays_while_a_node_is_asked_for_it(room):
    room.free = 1
    assert room.reserve(1, 0.0)
    assert not room.leave(0.0)
    assert room.has_callers
    room.had_nothing(1)
    assert room.leave(0.0)
    assert not room.has_callers
    room.free = 1
    assert room.reserve(2, 0.0)
    assert room.leave(SLOW * 1.1)


def test_a_caller_that_ends_at_once_leaves_no_room_behind(room):
    room.free = 2
    assert room.reserve(1, 0.0)
    assert room.abandon() == []
    assert room.abandon() == []
    assert not room.has_callers
    assert not room.hand_over(1, ["m"])
    room.free = 1
    assert room.hand_over(1, ["m"])
    assert room.abandon() == ["m"]
