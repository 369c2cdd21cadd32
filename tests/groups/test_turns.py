"""The lines in which groups wait for their turn: fairness, weights, batches, and where a group joins."""


from tests.harness.scene import Scene


def wide(r, key, *options):
    """A queue whose groups can deliver many messages at once, so that only their turns decide."""
    return Scene(r, key, "GROUPCONCURRENCY", 100, *options)


def test_a_group_delivers_one_message_a_turn(r, key):
    q = Scene(r, key)
    q.fill("a", "a1", "a2", "a3")
    q.fill("b", "b1", "b2")
    q.fill("c", "c1")
    assert q.take("COUNT", 10) == ["a1", "b1", "c1"]
    assert q.take("COUNT", 10) == []


def test_a_fetch_goes_round_the_groups_until_count_is_reached(r, key):
    q = wide(r, key)
    q.fill("a", "a1", "a2", "a3", "a4")
    q.fill("b", "b1", "b2")
    q.fill("c", "c1")
    assert q.take("COUNT", 5) == ["a1", "b1", "c1", "a2", "b2"]
    assert q.take("COUNT", 5) == ["a3", "a4"]


def test_the_turns_continue_from_fetch_to_fetch(r, key):
    q = wide(r, key)
    q.fill("a", "a1", "a2", "a3")
    q.fill("b", "b1", "b2", "b3")
    assert [q.take()[0] for _ in range(6)] == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_ungrouped_messages_take_turns_as_one_more_group(r, key):
    q = wide(r, key)
    q.add("u1")
    q.fill("a", "a1", "a2")
    q.add("u2")
    q.add("u3")
    assert q.take("COUNT", 10) == ["u1", "a1", "u2", "a2", "u3"]


def test_each_priority_has_a_line_of_its_own(r, key):
    q = wide(r, key)
    q.fill("a", "a1")
    q.add("b1", "GROUP", "b", "PRIORITY", -1)
    q.add("b2", "GROUP", "b", "PRIORITY", -1)
    q.add("c1", "GROUP", "c", "PRIORITY", 5)
    q.add("u1", "PRIORITY", -2)
    q.add("u2")
    assert q.take("COUNT", 10) == ["u1", "b1", "b2", "a1", "u2", "c1"]


def test_a_group_changes_lines_with_the_priority_of_its_head(r, key):
    q = wide(r, key)
    q.add("a1", "GROUP", "a", "PRIORITY", -5)
    q.add("a2", "GROUP", "a")
    q.fill("b", "b1", "b2")
    assert q.take("COUNT", 10) == ["a1", "b1", "a2", "b2"]


def test_an_urgent_message_moves_its_group_to_the_urgent_line(r, key):
    q = wide(r, key)
    q.fill("a", "a1")
    q.fill("b", "b1")
    q.add("b0", "GROUP", "b", "PRIORITY", -1)
    assert q.take() == ["b0"]


def test_weight_is_the_number_of_messages_a_turn(r, key):
    q = wide(r, key)
    q.do("GROUPSET", "a", "WEIGHT", 2)
    q.fill("a", "a1", "a2", "a3", "a4", "a5")
    q.fill("b", "b1", "b2", "b3", "b4")
    assert q.take("COUNT", 9) == ["a1", "a2", "b1", "a3", "a4", "b2", "a5", "b3", "b4"]


def test_a_turn_continues_over_several_fetches(r, key):
    q = wide(r, key)
    q.do("GROUPSET", "a", "WEIGHT", 3)
    q.fill("a", "a1", "a2", "a3", "a4")
    q.fill("b", "b1", "b2")
    assert [q.take()[0] for _ in range(6)] == ["a1", "a2", "a3", "b1", "a4", "b2"]


def test_a_turn_ends_when_the_group_can_deliver_no_more(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "a", "WEIGHT", 3)
    q.fill("a", "a1", "a2")
    q.fill("b", "b1", "b2")
    got = q.hold("COUNT", 2)
    assert list(got) == ["a1", "b1"]
    assert q.take() == []


def test_pergroup_is_the_size_of_a_batch(r, key):
    q = wide(r, key)
    q.fill("a", "a1", "a2", "a3")
    q.fill("b", "b1", "b2", "b3")
    assert q.take("COUNT", 10, "PERGROUP", 2) == ["a1", "a2", "b1", "b2", "a3", "b3"]


def test_a_batch_is_in_the_order_of_the_group(r, key):
    q = Scene(r, key)
    q.add("a3", "GROUP", "a", "SCORE", 3)
    q.add("a1", "GROUP", "a", "SCORE", 1)
    q.add("a2", "GROUP", "a", "SCORE", 2)
    assert q.take("COUNT", 10, "PERGROUP", 2) == ["a1", "a2"]


def test_count_ends_a_batch_early(r, key):
    q = wide(r, key)
    q.fill("a", "a1", "a2", "a3")
    q.fill("b", "b1")
    assert q.take("COUNT", 2, "PERGROUP", 3) == ["a1", "a2"]


def test_weight_does_not_cut_a_batch(r, key):
    q = wide(r, key)
    q.do("GROUPSET", "a", "WEIGHT", 3)
    q.fill("a", *[f"a{i}" for i in range(1, 7)])
    q.fill("b", "b1", "b2")
    got = q.take("COUNT", 8, "PERGROUP", 2)
    assert got == ["a1", "a2", "a3", "a4", "b1", "b2", "a5", "a6"]


def test_groups_that_fall_due_together_join_by_the_send_order_of_their_heads(r, key):
    q = wide(r, key)
    q.add("a1", "GROUP", "a", "DELAY", 10, "SCORE", 9)
    q.add("b1", "GROUP", "b", "DELAY", 10)
    q.add("c1", "GROUP", "c", "DELAY", 10)
    # The head of `a` is now its last sent message.
    q.add("a0", "GROUP", "a", "DELAY", 10, "SCORE", 1)
    q.advance(10)
    assert q.take("COUNT", 3) == ["b1", "c1", "a0"]


def test_groups_join_in_the_order_of_their_due_times(r, key):
    q = wide(r, key)
    q.add("late", "GROUP", "a", "DELAY", 20)
    q.add("early", "GROUP", "b", "DELAY", 10)
    q.advance(30)
    assert q.take("COUNT", 2) == ["early", "late"]


def test_one_long_advance_has_the_effect_of_many_short_ones(r, key):
    q, other = wide(r, key), wide(r, key + b":steps")
    for scene in (q, other):
        for i in range(40):
            scene.add(f"m{i}", "GROUP", f"g{i % 7}", "DELAY", (i * 37) % 50, "SCORE", (i * 11) % 13)
    q.advance(50)
    for _ in range(50):
        other.advance(1)
    assert q.take("COUNT", 40) == other.take("COUNT", 40)


def test_groups_freed_by_one_ack_join_by_the_send_order_of_their_heads(r, key):
    q = Scene(r, key)
    q.fill("a", "a1")
    q.fill("b", "b1", "b2")
    q.fill("a", "a2")
    got = q.hold("COUNT", 2)
    q.ack(got["a1"].receipt, got["b1"].receipt)
    assert q.take("COUNT", 2) == ["b2", "a2"]


def test_a_freed_group_joins_at_the_end_of_the_line(r, key):
    q = Scene(r, key)
    q.fill("a", "a1", "a2")
    q.fill("b", "b1", "b2")
    q.fill("c", "c1")
    got = q.hold("COUNT", 2)
    q.ack(got["b1"].receipt)
    q.ack(got["a1"].receipt)
    assert q.take("COUNT", 3) == ["c1", "b2", "a2"]


def test_no_group_starves_another(r, key):
    q = Scene(r, key)
    q.fill("big", *[f"big{i}" for i in range(300)])
    for g in range(20):
        q.fill(f"g{g}", f"small{g}")
    seen = []
    for _ in range(21):
        got = q.hold()
        seen += got
        q.ack(*[m.receipt for m in got.values()])
    assert sum(id.startswith("small") for id in seen) == 20


def test_fetch_of_one_group_does_not_change_the_turns_of_the_others(r, key):
    q = wide(r, key)
    q.fill("a", "a1", "a2")
    q.fill("b", "b1", "b2")
    q.fill("c", "c1")
    assert q.take("GROUP", "c") == ["c1"]
    assert q.take("COUNT", 4) == ["a1", "b1", "a2", "b2"]


def test_fetch_group_of_an_unknown_group_is_empty(r, key):
    q = Scene(r, key)
    q.fill("a", "a1")
    q.add("u")
    assert q.take("GROUP", "zzz", "COUNT", 10) == []


def test_paused_groups_do_not_hold_up_the_others(r, key):
    q = Scene(r, key)
    for g in range(50):
        q.fill(f"held{g}", f"h{g}")
        q.do("PAUSE", "GROUP", f"held{g}")
    q.fill("free", "f1")
    assert q.take("COUNT", 10) == ["f1"]


def test_noack_skips_busy_groups_and_makes_none_busy(r, key):
    q = Scene(r, key)
    q.fill("a", "a1", "a2")
    q.fill("b", "b1", "b2", "b3")
    assert q.take() == ["a1"]
    assert q.take("COUNT", 10, "NOACK") == ["b1", "b2", "b3"]
    assert q.take("COUNT", 10, "NOACK") == []


def test_maxbytes_ends_a_batch(r, key):
    q = Scene(r, key)
    for id in ("a1", "a2", "a3"):
        q.do("SEND", b"x" * 100, "ID", id, "GROUP", "a")
    assert q.take("GROUP", "a", "COUNT", 3, "MAXBYTES", 250) == ["a1", "a2"]
