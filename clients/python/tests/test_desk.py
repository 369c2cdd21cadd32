"""Who is asked for whom: the part of an intake that waits for nothing."""

import pytest
from dqueue.desk import SLOW, Desk


@pytest.fixture
def desk():
    desk = Desk()
    desk.turns.extend([1, 2, 3])
    return desk


def test_nodes_are_asked_in_turn_and_only_for_callers_with_room(desk):
    assert not desk.claim(1, 0.0)
    desk.room = 1
    assert not desk.claim(2, 0.0)
    assert desk.claim(1, 0.0)
    assert not desk.claim(2, 0.0)
    desk.had_nothing(1)
    assert desk.claim(2, 0.0)
    assert desk.hand_over(2, ["m"])
    desk.turns.append(2)
    assert list(desk.turns) == [3, 2] and desk.came.popleft() == ["m"]
    assert not desk.has_callers


def test_nobody_has_room_for_more_than_was_asked_for(desk):
    desk.room = 1
    assert desk.hand_over(1, ["first"])
    assert not desk.hand_over(2, ["second"])
    assert list(desk.came) == [["first"]]


def test_a_node_that_waits_serves_the_caller_for_whom_a_slow_one_is_asked(desk):
    desk.room = 1
    assert desk.claim(1, 0.0)
    assert desk.hand_over(2, ["fast"])
    assert not desk.hand_over(1, ["slow"])


def test_a_node_that_does_not_answer_keeps_no_room(desk):
    desk.room = 1
    assert desk.claim(1, 0.0)
    assert not desk.claim(2, SLOW / 2)
    assert desk.claim(2, SLOW * 1.1)
    # The slow one answers after all.
    desk.had_nothing(1)
    assert desk.room == 0
    assert desk.hand_over(2, ["m"])


def test_a_caller_stays_while_a_node_is_asked_for_it(desk):
    desk.room = 1
    assert desk.claim(1, 0.0)
    assert not desk.leave(0.0)
    assert desk.has_callers
    desk.had_nothing(1)
    assert desk.leave(0.0)
    assert not desk.has_callers
    desk.room = 1
    assert desk.claim(2, 0.0)
    assert desk.leave(SLOW * 1.1)


def test_a_caller_that_ends_at_once_leaves_no_room_behind(desk):
    desk.room = 2
    assert desk.claim(1, 0.0)
    assert desk.abandon() == []
    assert desk.abandon() == []
    assert not desk.has_callers
    assert not desk.hand_over(1, ["m"])
    desk.room = 1
    assert desk.hand_over(1, ["m"])
    assert desk.abandon() == ["m"]
