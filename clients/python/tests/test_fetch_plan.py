"""The plan that the loops of a worker follow, without threads and connections."""

import random

from dqueue.working.fetch_plan import MOST, Ack, Fetch, FetchPlan, acks
from dqueue.working.outcomes import Done

A, B = Done("a"), Done("b")


def idle(plan, loops):
    for _ in range(loops):
        plan.add_idle(None)


def test_one_loop_fetches_for_all_that_are_idle():
    plan = FetchPlan(5)
    idle(plan, 3)
    fetch = plan.task()
    assert fetch == Fetch(3, [], True)
    assert plan.task() is None and not plan.has_work
    plan.end_fetch(fetch, ["a", "b"])
    assert plan.has_work
    assert [plan.task(), plan.task()] == ["a", "b"]
    assert plan.task() == Fetch(1, [], True)


def test_what_is_done_is_acked_with_the_next_fetch():
    plan = FetchPlan(2)
    idle(plan, 2)
    plan.end_fetch(plan.task(), ["a", "b"])
    assert [plan.task(), plan.task()] == ["a", "b"]
    plan.add_idle(A)
    fetch = plan.task()
    # The last reply was full: more messages are probably ready, and a loop that ends now need not send its acks itself.
    assert fetch == Fetch(1, [A], False)
    plan.add_idle(B)
    assert plan.task() is None
    plan.end_fetch(fetch, [])
    assert plan.task() == Fetch(2, [B], True)


def test_while_a_fetch_waits_at_the_server_the_others_ack_what_they_have_done():
    plan = FetchPlan(3)
    idle(plan, 3)
    plan.end_fetch(plan.task(), ["a", "b"])
    assert [plan.task(), plan.task()] == ["a", "b"]
    assert plan.task() == Fetch(1, [], True)
    plan.add_idle(A)
    plan.add_idle(B)
    assert plan.task() == Ack([A, B])
    assert plan.task() is None


def test_after_a_failed_fetch_the_next_one_acks_the_same():
    plan = FetchPlan(1)
    plan.add_idle(A)
    fetch = plan.task()
    plan.end_fetch(fetch, None)
    assert plan.task() == Fetch(1, [A], True)


def test_a_stopping_worker_acks_the_rest_and_gives_back_what_nobody_has_begun():
    plan = FetchPlan(2)
    idle(plan, 2)
    plan.end_fetch(plan.task(), ["a", "b"])
    assert plan.task() == "a"
    plan.add_idle(A)
    assert plan.close() == ([A], ["b"])
    assert plan.close() == ([], [])


def test_a_fetch_is_bounded():
    plan = FetchPlan(MOST * 2)
    idle(plan, MOST * 2)
    assert plan.task().count == MOST


def test_any_interleaving_hands_each_message_out_once_and_acks_it_once():
    for seed in range(200):
        chance = random.Random(seed)
        loops = chance.randrange(1, 8)
        plan, waiting, busy = FetchPlan(loops), loops, []
        sent, begun, acked, fetch = 0, [], [], None
        idle(plan, loops)
        for _ in range(300):
            step = chance.random()
            if step < 0.5 and waiting:
                task = plan.task()
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
                plan.add_idle(Done(message, chance.choice([None, "r"])))
            elif fetch is not None and chance.random() < 0.2:
                plan.end_fetch(fetch, None)
                fetch = None
            elif fetch is not None:
                acked += [one.message for one in fetch.done]
                arrived = [f"m{sent + n}" for n in range(chance.randrange(fetch.count + 1))]
                sent += len(arrived)
                plan.end_fetch(fetch, arrived)
                fetch = None
        if fetch is not None:
            plan.end_fetch(fetch, None)
        done, arrived = plan.close()
        acked += [one.message for one in done]
        assert begun + arrived == [f"m{n}" for n in range(sent)]
        assert sorted(acked) == sorted(set(begun) - set(busy))


def test_results_go_with_the_fetch_and_do_not_become_those_of_others():
    with_results, without = [Done("a", "r"), Done("b", "")], [Done("c"), Done("d")]
    assert acks(with_results) == {"ack": ["a", "b"], "results": ["r", ""]}
    assert acks(without) == {"ack": ["c", "d"]}
    plan = FetchPlan(3)
    for done in with_results:
        plan.add_idle(done)
    fetch = plan.task()
    assert fetch == Fetch(2, with_results, True)
    plan.end_fetch(fetch, None)
    plan.add_idle(without[0])
    assert plan.task() == Ack(with_results)
    assert plan.task() == Fetch(3, without[:1], True)
