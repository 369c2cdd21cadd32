"""Which loop of a worker fetches for which: the part of fetching that waits for nothing."""

import random

from dqueue.feed import MOST, Ack, Feed, Fetch, acks
from dqueue.handlers import Done

A, B = Done("a"), Done("b")


def idle(feed, loops):
    for _ in range(loops):
        feed.add_idle(None)


def test_one_loop_fetches_for_all_that_are_idle():
    feed = Feed(5)
    idle(feed, 3)
    fetch = feed.task()
    assert fetch == Fetch(3, [], True)
    assert feed.task() is None and not feed.has_work
    feed.end_fetch(fetch, ["a", "b"])
    assert feed.has_work
    assert [feed.task(), feed.task()] == ["a", "b"]
    assert feed.task() == Fetch(1, [], True)


def test_what_is_done_is_acked_with_the_next_fetch():
    feed = Feed(2)
    idle(feed, 2)
    feed.end_fetch(feed.task(), ["a", "b"])
    assert [feed.task(), feed.task()] == ["a", "b"]
    feed.add_idle(A)
    fetch = feed.task()
    # The last reply was full: there is probably more, and a loop that ends now need not ack by itself.
    assert fetch == Fetch(1, [A], False)
    feed.add_idle(B)
    assert feed.task() is None
    feed.end_fetch(fetch, [])
    assert feed.task() == Fetch(2, [B], True)


def test_while_a_fetch_waits_at_the_server_the_others_ack_what_they_have_done():
    feed = Feed(3)
    idle(feed, 3)
    feed.end_fetch(feed.task(), ["a", "b"])
    assert [feed.task(), feed.task()] == ["a", "b"]
    assert feed.task() == Fetch(1, [], True)
    feed.add_idle(A)
    feed.add_idle(B)
    assert feed.task() == Ack([A, B])
    assert feed.task() is None


def test_after_a_failed_fetch_the_next_one_acks_the_same():
    feed = Feed(1)
    feed.add_idle(A)
    fetch = feed.task()
    feed.end_fetch(fetch, None)
    assert feed.task() == Fetch(1, [A], True)


def test_a_stopping_worker_acks_the_rest_and_gives_back_what_nobody_has_begun():
    feed = Feed(2)
    idle(feed, 2)
    feed.end_fetch(feed.task(), ["a", "b"])
    assert feed.task() == "a"
    feed.add_idle(A)
    assert feed.close() == ([A], ["b"])
    assert feed.close() == ([], [])


def test_a_fetch_is_bounded():
    feed = Feed(MOST * 2)
    idle(feed, MOST * 2)
    assert feed.task().count == MOST


def test_any_interleaving_hands_each_message_out_once_and_acks_it_once():
    for seed in range(200):
        chance = random.Random(seed)
        loops = chance.randrange(1, 8)
        feed, waiting, busy = Feed(loops), loops, []
        sent, begun, acked, fetch = 0, [], [], None
        idle(feed, loops)
        for _ in range(300):
            step = chance.random()
            if step < 0.5 and waiting:
                task = feed.task()
                if isinstance(task, Fetch):
                    assert fetch is None and 1 <= task.count <= waiting
                    fetch = task
                elif isinstance(task, Ack):
                    acked += [one.message for one in task.done]
                elif task is not None:
                    waiting -= 1
                    busy.append(task)
                    begun.append(task)
            elif step < 0.75 and busy:
                waiting += 1
                message = busy.pop(chance.randrange(len(busy)))
                feed.add_idle(Done(message, chance.choice([None, "r"])))
            elif fetch is not None and chance.random() < 0.2:
                feed.end_fetch(fetch, None)
                fetch = None
            elif fetch is not None:
                acked += [one.message for one in fetch.done]
                came = [f"m{sent + n}" for n in range(chance.randrange(fetch.count + 1))]
                sent += len(came)
                feed.end_fetch(fetch, came)
                fetch = None
        if fetch is not None:
            feed.end_fetch(fetch, None)
        done, came = feed.close()
        acked += [one.message for one in done]
        assert begun + came == [f"m{n}" for n in range(sent)]
        assert sorted(acked) == sorted(set(begun) - set(busy))


def test_results_go_with_the_fetch_and_do_not_become_those_of_others():
    with_results, without = [Done("a", "r"), Done("b", "")], [Done("c"), Done("d")]
    assert acks(with_results) == {"ack": ["a", "b"], "results": ["r", ""]}
    assert acks(without) == {"ack": ["c", "d"]}
    feed = Feed(3)
    for done in with_results:
        feed.add_idle(done)
    fetch = feed.task()
    assert fetch == Fetch(2, with_results, True)
    feed.end_fetch(fetch, None)
    feed.add_idle(without[0])
    assert feed.task() == Ack(with_results)
    assert feed.task() == Fetch(3, without[:1], True)
