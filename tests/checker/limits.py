"""Limits with names (DQ.LIMIT), counted again from the begins and ends: whether one was ever exceeded in any window."""

import re
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limit:
    """A rule. rates: (n, ms) of each RATE n PER ms; concurrency 0: none; weight: both count costs."""

    concurrency: int = 0
    rates: tuple = ()
    weight: bool = False

    def words(self) -> list:
        """The options of DQ.LIMIT."""
        words = ["CONCURRENCY", self.concurrency] if self.concurrency else []
        for most, per in self.rates:
            words += ["RATE", most, "PER", per]
        return words + ["WEIGHT"] * self.weight

    def amount(self, cost: int) -> int:
        """The amount that a message of this cost takes."""
        return cost if self.weight else 1


@dataclass(eq=False)
class Begun:
    """One delivery, and the windows that still count it."""

    at: int
    cost: int
    windows: set = field(default_factory=set)


class Window:
    """The number of deliveries, or their cost, that began within the last `per` ms."""

    def __init__(self, limit: Limit, most: int, per: int):
        self.amount, self.most, self.per, self.taken = limit.amount, most, per, 0
        self.begun = deque()

    def move(self, at: int) -> None:
        while self.begun and self.begun[0].at <= at - self.per:
            gone = self.begun.popleft()
            gone.windows.discard(self)
            self.taken -= self.amount(gone.cost)

    def add(self, begun: Begun) -> None:
        self.begun.append(begun)
        begun.windows.add(self)
        self.taken += self.amount(begun.cost)

    def free_at(self, at: int, cost: int) -> int | None:
        """The time from which on the limit has room for this cost. None means never."""
        self.move(at)
        over = self.taken + self.amount(cost) - self.most
        if over <= 0:
            return at
        for begun in self.begun:
            over -= self.amount(begun.cost)
            if over <= 0:
                return begun.at + self.per
        return None


class Name:
    """The counters of one name."""

    def __init__(self, limit: Limit):
        self.limit, self.running = limit, {}
        self.windows = [Window(limit, most, per) for most, per in limit.rates]

    def used(self) -> int:
        """The number, or the cost, that CONCURRENCY counts."""
        return sum(self.running.values()) if self.limit.weight else len(self.running)


class Limits:
    """All names of a queue. Deliveries are told in the order of their times; `faults` says in words what was above a limit."""

    def __init__(self, rules: dict):
        self.rules, self.names, self.begun, self.faults = rules, {}, {}, []

    def begins(self, at: int, id, names, cost: int = 1) -> None:
        """A message that names these limits is delivered."""
        begun = self.begun[id] = Begun(at, cost)
        for name in names:
            if (counted := self.of(name)) is None:
                continue
            counted.running[id] = cost
            most = counted.limit.concurrency
            if most and counted.used() > most:
                self.faults.append(f"{at}: {id} made it {counted.used()} of {name} at once, of {most}")
            for window in counted.windows:
                window.move(at)
                window.add(begun)
                if window.taken > window.most:
                    self.faults.append(f"{at}: {id} made it {window.taken} of {name} within {window.per} ms, of {window.most}")

    def ends(self, id, names) -> None:
        """The lease has ended, for whatever reason."""
        for name in names:
            if (counted := self.of(name)) is not None:
                counted.running.pop(id, None)

    def books(self, id, cost: int) -> None:
        """DQ.ACK ... COST: what its delivery has really taken, in the windows that still count it."""
        begun = self.begun.get(id, Begun(0, cost))
        for window in begun.windows:
            window.taken += window.amount(cost) - window.amount(begun.cost)
        begun.cost = cost

    def used(self, name) -> int:
        """The part of its CONCURRENCY that is used."""
        counted = self.of(name)
        return counted.used() if counted else 0

    def free_at(self, name, at: int, cost: int = 1) -> int | None:
        """From when on a message of that cost has room, if none ends before. None means that only an end makes room."""
        counted = self.of(name)
        if counted is None:
            return at
        most = counted.limit.concurrency
        if most and counted.used() + counted.limit.amount(cost) > most:
            return None
        times = [window.free_at(at, cost) for window in counted.windows]
        return None if None in times else max(times, default=at)

    def of(self, name) -> Name | None:
        """The counters of a name; None if no rule holds for it."""
        if name not in self.names:
            rule = self._rule(name)
            self.names[name] = Name(rule) if rule else None
        return self.names[name]

    def _rule(self, name) -> Limit | None:
        """The name's own rule, or that of the longest pattern which it matches."""
        if name in self.rules:
            return self.rules[name]
        patterns = sorted((rule for rule in self.rules if "*" in rule), key=lambda rule: (-len(rule), rule))
        found = (rule for rule in patterns if re.fullmatch(".*".join(map(re.escape, rule.split("*"))), name))
        return self.rules.get(next(found, None))
