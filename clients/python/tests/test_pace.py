"""When acks wait for one another."""

import pytest
from dqueue.pace import FAST, LAST, AckPace


def after_fast_acks(gap=FAST / 2):
    """Returns a pace that has seen acks that far apart, and the time of the next one."""
    pace = AckPace()
    for number in range(LAST - 1):
        assert not pace.may_wait(number * gap, 1, 100)
    return pace, (LAST - 1) * gap


def test_acks_that_come_slowly_do_not_wait():
    pace, now = after_fast_acks(gap=FAST)
    assert not pace.may_wait(now, 1, 100)


def test_two_tasks_that_end_together_do_not_make_an_ack_wait():
    pace = AckPace()
    for end in range(10):
        for thread in range(2):
            assert not pace.may_wait(end * 0.1 + thread * FAST / 10, 1, 100)


@pytest.mark.parametrize("window, most", [(1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (8, 3), (100, 49)])
def test_acks_wait_for_half_of_what_a_worker_holds(window, most):
    pace, now = after_fast_acks()
    assert [pace.may_wait(now, waiting, window) for waiting in range(1, window + 1)].count(True) == most


def test_an_ack_that_waited_in_vain_makes_the_next_ones_go_at_once():
    pace, now = after_fast_acks()
    assert pace.may_wait(now, 1, 100)
    pace.has_waited(2)
    assert pace.may_wait(now, 1, 100)
    pace.has_waited(1)
    assert [pace.may_wait(now, 1, 100) for _ in range(LAST)] == [False] * (LAST - 1) + [True]


def test_a_pause_ends_the_haste():
    pace, now = after_fast_acks()
    assert pace.may_wait(now, 1, 100)
    assert not pace.may_wait(now + LAST * FAST, 1, 100)
