"""When acks wait for one another."""

import pytest
from dqueue.working.ackbuffer import MANY, SOON, AckBuffer

GAP = SOON / (MANY - 1)
"""Seconds from one ack to the next at which they do not come fast any more."""


def after_fast_acks(gap=GAP / 2):
    """Returns a buffer to which acks were added that far apart, and the time of the next one."""
    acks = AckBuffer()
    for number in range(MANY - 1):
        assert not acks.add(number, number * gap, 100)
    acks.take()
    return acks, (MANY - 1) * gap


def test_acks_that_come_slowly_do_not_wait():
    acks, now = after_fast_acks(gap=GAP)
    assert not acks.add("x", now, 100)


def test_two_tasks_that_end_together_do_not_make_an_ack_wait():
    acks = AckBuffer()
    for end in range(10):
        for thread in range(2):
            assert not acks.add("x", end * 0.1 + thread * GAP / 10, 100)


@pytest.mark.parametrize("window, most", [(1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (8, 3), (100, 49)])
def test_acks_wait_for_half_of_what_a_worker_holds(window, most):
    acks, now = after_fast_acks()
    assert [acks.add(number, now, window) for number in range(window)].count(True) == most
    assert acks.take() == [*range(window)]


def test_an_ack_that_waited_in_vain_makes_the_next_ones_go_at_once():
    acks, now = after_fast_acks()
    assert acks.add("a", now, 100) and acks.add("b", now, 100)
    acks.patience_is_over()
    acks.take()
    assert acks.add("c", now, 100)
    acks.patience_is_over()
    assert [acks.add(number, now, 100) for number in range(MANY)] == [False] * (MANY - 1) + [True]


def test_a_pause_ends_the_haste():
    acks, now = after_fast_acks()
    assert acks.add("a", now, 100)
    assert not acks.add("b", now + MANY * GAP, 100)


def test_acks_that_were_not_sent_wait_again_with_those_that_have_come_meanwhile():
    acks, now = after_fast_acks()
    acks.add("a", now, 100)
    with pytest.raises(OSError):
        with acks.sending() as taken:
            assert (taken, len(acks)) == (["a"], 0)
            acks.add("b", now, 100)
            raise OSError
    assert sorted(acks.take()) == ["a", "b"]
    with acks.sending() as taken:
        assert taken == []
