"""A slow and simple model of CRON expressions, to which the module is compared.

Day by day: which local times match, and at which moment each of them happens. A local time that
DST skips happens at the jump, one that comes twice happens the first time. If the minute or the
hour has a * or a step, a skipped time does not happen, and one that comes twice happens twice.
"""

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def ms(*args, tz="UTC") -> int:
    """A local date and time as Unix ms."""
    return int((datetime(*args, tzinfo=ZoneInfo(tz)) - EPOCH).total_seconds() * 1000)


def _values(field, low, high, names=(), first=0):
    def number(word):
        return names.index(word.lower()) + first if word.lower() in names else int(word)

    out = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in "*?":
            a, b = low, high
        elif "-" in span:
            a, b = map(number, span.split("-"))
        else:
            a = number(span)
            b = high if step else a
        out |= set(range(a, b + 1, int(step or 1)))
    return out


def _moment(naive, zone):
    """The Unix second at which a local time happens."""
    early = naive.replace(tzinfo=zone, fold=0)
    utc = early.astimezone(timezone.utc)
    if utc.astimezone(zone).replace(tzinfo=None) == naive:
        return int((utc - EPOCH).total_seconds())
    # The local time is skipped: find the second at which the offset changes.
    low = int((naive.replace(tzinfo=zone, fold=1) - EPOCH).total_seconds())
    high = int((early - EPOCH).total_seconds())

    def offset(second):
        return (EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()

    before = offset(low)
    while high - low > 1:
        middle = (low + high) // 2
        if offset(middle) == before:
            low = middle
        else:
            high = middle
    return high


def _moments(naive, zone):
    """All Unix seconds at which the clocks show a local time: none, one or two."""
    for fold in 0, 1:
        utc = naive.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc)
        if utc.astimezone(zone).replace(tzinfo=None) == naive:
            yield int((utc - EPOCH).total_seconds())


def fires(expr, start, end, tz="UTC") -> list:
    """All fire times of a five- or six-field expression in (start, end], in Unix ms, in order."""
    fields = expr.split()
    if len(fields) == 5:
        fields.insert(0, "0")
    seconds = _values(fields[0], 0, 59)
    minutes = _values(fields[1], 0, 59)
    hours = _values(fields[2], 0, 23)
    days = _values(fields[3], 1, 31)
    months = _values(fields[4], 1, 12, MONTHS, 1)
    weekdays = {d % 7 for d in _values(fields[5], 0, 7, DAYS)}
    any_day, any_weekday = fields[3] in "*?", fields[5] in "*?"
    intervals = any(c in fields[1] + fields[2] for c in "*/")
    zone = ZoneInfo(tz)
    first = (EPOCH + timedelta(milliseconds=start)).date() - timedelta(days=2)
    last = (EPOCH + timedelta(milliseconds=end)).date() + timedelta(days=2)
    moments, day = set(), date(first.year, first.month, first.day)
    while day <= last:
        by_day, by_weekday = day.day in days, (day.weekday() + 1) % 7 in weekdays
        matches = by_day or by_weekday if not any_day and not any_weekday else by_day and by_weekday
        if matches and day.month in months:
            for h in hours:
                for m in minutes:
                    for s in seconds:
                        naive = datetime(day.year, day.month, day.day, h, m, s)
                        found = _moments(naive, zone) if intervals else [_moment(naive, zone)]
                        moments |= {second * 1000 for second in found}
        day += timedelta(days=1)
    return sorted(t for t in moments if start < t <= end)
