"""CRON expressions: fields, names, steps, shortcuts, time zones with clock changes, and fire times of whole years."""

import pytest

from tests.harness.cronmodel import fires, ms
from tests.harness.scene import Scene

YEAR = ms(2026, 1, 1)
DAY = 86_400_000


def fired(r, key, expr, span, tz=None, start=YEAR):
    """The fire times of one CRON schedule within span ms of the start."""
    q = Scene(r, key, start=start)
    zone = ["TZ", tz] if tz else []
    q.do("SCHEDULE", "c", "CRON", expr, *zone, "PAYLOAD", "x")
    q.to(start + span)
    out = []
    while ids := q.take("COUNT", 10_000, "NOACK"):
        out += [int(id.split("@")[1]) for id in ids]
    # Not the count of TICK: a fire time equal to the start may already have fired in an earlier slice.
    assert q.schedules()["c"]["fired"] == len(out)
    return out


@pytest.mark.parametrize(
    "expr,span",
    [
        ("* * * * *", DAY),
        ("*/5 * * * *", DAY),
        ("7-59/13 * * * *", DAY),
        ("0,15,45 3-5 * * *", 3 * DAY),
        ("30 12 * * *", 30 * DAY),
        ("0 0 1 * *", 365 * DAY),
        ("0 0 31 * *", 365 * DAY),
        ("0 0 29 2 *", 1200 * DAY),
        ("0 9 * * 1-5", 60 * DAY),
        ("0 9 * * MON-FRI", 60 * DAY),
        ("0 9 * * mon,Wed,FRI", 60 * DAY),
        ("0 9 * * 0", 60 * DAY),
        ("0 9 * * 7", 60 * DAY),
        ("0 9 * * SUN", 60 * DAY),
        ("0 0 1 JAN,jul *", 800 * DAY),
        ("0 0 1 1-3 *", 800 * DAY),
        ("0 0 13 * FRI", 365 * DAY),
        ("0 0 1,15 * 3", 120 * DAY),
        ("0 */6 */10 * *", 120 * DAY),
        ("*/10 * * * * *", 3_600_000),
        ("5 0 0 * * *", 10 * DAY),
        ("0 30 8 1 * *", 365 * DAY),
        ("15,45 59 23 31 DEC *", 800 * DAY),
    ],
)
def test_fire_times_are_those_of_the_model(r3, key, expr, span):
    expected = fires(expr, YEAR, YEAR + span)
    assert expected
    got = fired(r3, key, expr, span)
    # A fire time equal to the time of SCHEDULE may fire in the next slice.
    assert [t for t in got if t != YEAR] == expected


@pytest.mark.parametrize(
    "word,expr",
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_a_named_expression_fires_as_its_fields_do(r3, key, word, expr):
    span = 60 * DAY if word == "@hourly" else 400 * DAY
    start = YEAR + 1
    assert fired(r3, key, word, span, start=start) == fires(expr, start, start + span)


@pytest.mark.parametrize("start,end", [(YEAR, YEAR + 365 * DAY), (ms(2028, 1, 1), ms(2029, 1, 1))])
@pytest.mark.parametrize(
    "tz", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "Asia/Kolkata", "UTC"]
)
@pytest.mark.parametrize("expr", ["30 2 * * *", "15 2 * * *", "30 1 * * *", "0 3 1-8 * SUN", "45 23 * * *"])
def test_fire_times_of_a_year_in_a_time_zone_are_those_of_the_model(r3, key, start, end, tz, expr):
    got = fired(r3, key, expr, end - start, tz, start)
    assert [t for t in got if t != start] == fires(expr, start, end, tz)


@pytest.mark.parametrize(
    "tz,expr,day,moment",
    [
        # Skipped hour: fires at the jump. 02:30 does not exist in Berlin on this day, 03:00 is 01:00Z.
        ("Europe/Berlin", "30 2 * * *", (2026, 3, 29), ms(2026, 3, 29, 1, 0)),
        ("America/New_York", "30 2 * * *", (2026, 3, 8), ms(2026, 3, 8, 7, 0)),
        ("Australia/Lord_Howe", "15 2 * * *", (2026, 10, 4), ms(2026, 10, 3, 15, 30)),
        ("America/Santiago", "0 0 * * *", (2026, 9, 6), ms(2026, 9, 6, 4, 0)),
        # Doubled hour: fires the first time.
        ("Europe/Berlin", "30 2 * * *", (2026, 10, 25), ms(2026, 10, 25, 0, 30)),
        ("America/New_York", "30 1 * * *", (2026, 11, 1), ms(2026, 11, 1, 5, 30)),
        ("Australia/Lord_Howe", "45 1 * * *", (2026, 4, 5), ms(2026, 4, 4, 14, 45)),
    ],
)
def test_a_skipped_or_doubled_hour_fires_once(r, key, tz, expr, day, moment):
    start = ms(*day, tz=tz) - 3_600_000 * 20
    got = fired(r, key, expr, 40 * 3_600_000, tz, start)
    assert moment in got
    # The rule fires exactly once on that day.
    assert sum(moment - 2 * 3_600_000 <= t <= moment + 2 * 3_600_000 for t in got) == 1


@pytest.mark.parametrize(
    "tz,day",
    [
        ("Europe/Berlin", (2026, 3, 29)),
        ("Europe/Berlin", (2026, 10, 25)),
        ("America/New_York", (2026, 11, 1)),
        ("Australia/Lord_Howe", (2026, 4, 5)),
        ("Australia/Lord_Howe", (2026, 10, 4)),
    ],
)
@pytest.mark.parametrize("expr", ["*/15 * * * *", "* * * * *", "30 * * * *", "0 */2 * * *", "0 */10 * * * *"])
def test_a_rule_of_intervals_goes_on_over_a_change_of_the_clocks(r, key, tz, day, expr):
    start = ms(*day, tz=tz) - 3_600_000 * 2 + 1
    end = start + 8 * 3_600_000
    got = fired(r, key, expr, end - start, tz, start)
    assert got == fires(expr, start, end, tz)
    if expr == "*/15 * * * *":
        assert {b - a for a, b in zip(got, got[1:])} == {900_000}


@pytest.mark.parametrize(
    "expr,step,field,largest",
    [("*/90 * * * *", 90, "minute", 59), ("0 */25 * * *", 25, "hour", 23), ("0 0 */32 * *", 32, "day-of-month", 30)],
)
def test_a_step_that_is_too_great_for_its_field_is_refused(r, key, expr, step, field, largest):
    q = Scene(r, key)
    error = q.fails("SCHEDULE", "s", "CRON", expr, "PAYLOAD", "x")
    text = f"the step {step} is greater than {largest}, the largest step of the field {field}"
    assert text in error
    assert q.schedules() == {}


def test_the_reply_is_the_next_fire_time(r, key):
    q = Scene(r, key, start=ms(2026, 6, 15, 12, 0, 30))
    assert q.do("SCHEDULE", "a", "CRON", "0 3 * * *", "PAYLOAD", "x") == ms(2026, 6, 16, 3)
    assert q.do("SCHEDULE", "b", "CRON", "0 3 * * *", "TZ", "Asia/Shanghai", "PAYLOAD", "x") == ms(2026, 6, 15, 19)
    assert q.do("SCHEDULE", "c", "CRON", "31 0 12 * * *", "PAYLOAD", "x") == ms(2026, 6, 15, 12, 0, 31)
    assert q.do("SCHEDULE", "d", "TZ", "America/New_York", "PAYLOAD", "x", "CRON", "@daily") == ms(2026, 6, 16, 4)
    assert q.do("SCHEDULE", "e", "CRON", "0 0 29 2 *", "PAYLOAD", "x") == ms(2028, 2, 29)
    assert {n: s["next-at"] for n, s in q.schedules().items()}["e"] == ms(2028, 2, 29)


@pytest.mark.parametrize(
    "expr",
    [
        "", " ", "* * * *", "* * * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
        "* * * * 8", "*/0 * * * *", "5-1-3 * * * *", "a * * * *", "* * * FOO *", "@never", "@", "@dailyy", "-1 * * * *",
        "1,,2 * * * *", "* * * * *\x00", "%n * * * *", "99999999999999999999 * * * *", "60 * * * * *",
    ],
)  # fmt: skip
def test_a_bad_expression_is_refused_and_changes_nothing(r3, key, expr):
    q = Scene(r3, key)
    before = q.digest()
    q.fails("SCHEDULE", "s", "CRON", expr, "PAYLOAD", "x")
    assert q.digest() == before


@pytest.mark.parametrize("tz", ["", "Mars/Olympus", "europe berlin", "UTC+25", "../../etc/passwd", "\x00"])
def test_an_unknown_time_zone_is_refused(r3, key, tz):
    q = Scene(r3, key)
    q.fails("SCHEDULE", "s", "CRON", "0 0 * * *", "TZ", tz, "PAYLOAD", "x")
    assert q.schedules() == {}


def test_a_date_that_never_comes_does_not_hold_the_server(r3, key):
    q = Scene(r3, key, start=YEAR)
    try:
        q.do("SCHEDULE", "s", "CRON", "0 0 30 2 *", "PAYLOAD", "x")
    except Exception as error:
        assert "Connection" not in type(error).__name__
    assert q.advance(1000 * DAY)["fired"] == 0


def test_fire_times_at_the_end_of_time_do_no_harm(r3, key):
    q = Scene(r3, key, start=2**53 - 1 - 10 * DAY)
    for rule in (("CRON", "* * * * *"), ("CRON", "@yearly"), ("EVERY", 2**52)):
        try:
            q.do("SCHEDULE", "s", *rule, "PAYLOAD", "x")
        except Exception as error:
            assert "Connection" not in type(error).__name__
    q.advance(1000)
    assert r3.ping()
