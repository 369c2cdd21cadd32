"""A model of APPLY: a dict of keys, and what each plain command does with one and replies."""

import re

STRINGS, HASH, SET, ZSET, LIST, STREAM, QUEUE = ("k:a", "k:b"), "k:h", "k:s", "k:z", "k:l", "k:x", "k:queue"
PLAIN = (*STRINGS, HASH, SET, ZSET, LIST, STREAM)
"""The keys of random effects. QUEUE holds another queue."""
NUMBERS = ("1", "-1", str(2**63 - 1), str(-(2**63)), "7")
GREATEST = 2**64 - 1
GROWS = {"SET", "INCRBY", "HSET", "HINCRBY", "SADD", "ZADD", "ZINCRBY", "LPUSH", "RPUSH", "XADD"}
"""The commands that a server refuses at maxmemory."""
FORBIDDEN = {"HINCRBY", "SADD"}
"""The commands that the limited user has no right to."""
ANY_ID = object()
"""The reply of XADD, which no model knows."""


class Hash(dict):
    pass


class SortedSet(dict):
    pass


class Stream:
    """Its length, and how many more entries it can take: None without a bound."""

    def __init__(self, length=0, left=None):
        self.length, self.left = length, left


OF_TYPE = {
    "INCRBY": str, "HSET": Hash, "HDEL": Hash, "HINCRBY": Hash, "SADD": set, "SREM": set, "ZADD": SortedSet,
    "ZINCRBY": SortedSet, "ZREM": SortedSet, "LPUSH": list, "RPUSH": list, "XADD": Stream,
}  # fmt: skip
"""The type that a key must have, if it exists. A list is modelled by one item for each of its own."""


def integer(text):
    """The integer that a stored text is, or None."""
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def part_of(effect):
    """The field or member that an effect is about; None if it is about the whole key."""
    match effect[0]:
        case "HSET" | "HDEL" | "HINCRBY" | "SADD" | "SREM" | "ZREM":
            return effect[2]
        case "ZADD" | "ZINCRBY":
            return effect[3]
    return None


def go_together(one, other):
    """Whether two effects may name one key."""
    verbs = {one[0], other[0]}
    if "PEXPIRE" in verbs:
        return one[0] != other[0] and "DEL" not in verbs
    if verbs <= {"LPUSH", "RPUSH"} or verbs == {"XADD"}:
        return True
    return OF_TYPE.get(one[0]) == OF_TYPE.get(other[0]) and None not in (part_of(one), part_of(other)) and part_of(one) != part_of(other)


class Model:
    """The keys, and which of them expire at some time far away."""

    def __init__(self):
        self.keys, self.expiring = {QUEUE: QUEUE}, set()

    def call(self, effects, conditions=(), is_current=True, is_limited=False, is_full=False):
        """The reply of a call: a list, None for a stale receipt, or the beginning of its error."""
        for later, effect in enumerate(effects):
            for earlier, other in enumerate(effects[:later]):
                if other[1] == effect[1] and not go_together(other, effect):
                    return f"ERR APPLY {earlier + 1} and {later + 1} name the same key"
        for number, effect in enumerate(effects, 1):
            if effect[1] == "q":
                return f"ERR APPLY {number} names 'q', which this command changes anyway"
        for number, effect in enumerate(effects, 1):
            if is_limited and effect[0] in FORBIDDEN:
                return f"NOPERM {number} "
        if not is_current:
            return None
        for number, condition in enumerate(conditions, 1):
            if not self.holds(condition):
                return f"CONDITION {number} "
        if is_full and any(effect[0] in GROWS for effect in effects):
            return "OOM "
        for number, effect in enumerate(effects, 1):
            added = sum(other[:2] == effect[:2] for other in effects[: number - 1])
            if why := self.refusal(effect, added):
                return f"{why} {number}"
        return [self.do(*effect) for effect in effects]

    def holds(self, condition):
        value = self.keys.get(condition[1])
        match condition[0]:
            case "EXISTS":
                return value is not None
            case "MISSING":
                return value is None
        return isinstance(value, str) and value == condition[2] and condition[1] != QUEUE

    def refusal(self, effect, added=0):
        """Why an effect cannot be done on the keys as they are. `added`: entries that the call adds to its stream before."""
        verb, key, *words = effect
        value = self.keys.get(key)
        if key == QUEUE or value is not None and not isinstance(value, OF_TYPE.get(verb, object)):
            return "WRONGTYPE"
        if value is None:
            return None
        match verb:
            case "INCRBY" | "HINCRBY":
                stored = integer(value if verb == "INCRBY" else value.get(words[0], "0"))
                if stored is None:
                    return "NOTNUMBER"
                return None if -(2**63) <= stored + int(words[-1]) < 2**63 else "OVERFLOW"
            case "ZINCRBY":
                total = value.get(words[1], 0.0) + float(words[0])
                return "NOTNUMBER" if total != total else None
            case "XADD":
                return "OVERFLOW" if value.left is not None and value.left <= added else None
        return None

    def do(self, verb, key, *words):
        """Does a plain command that nothing refuses, and gives its reply."""
        if verb in ("SET", "DEL") or verb == "PEXPIRE" and int(words[0]) <= 0:
            existed = self.drop(key)
            if verb == "SET":
                self.keys[key] = words[0]
                if "PX" in words:
                    self.expiring.add(key)
                return b"OK"
            return int(existed)
        if verb == "PEXPIRE":
            if key in self.keys:
                self.expiring.add(key)
            return int(key in self.keys)
        value = self.keys.setdefault(key, "0" if verb == "INCRBY" else OF_TYPE[verb]())
        reply = self.change(verb, key, value, words)
        if not isinstance(value, (str, Stream)) and not value:
            self.drop(key)
        return reply

    def change(self, verb, key, value, words):
        match verb:
            case "INCRBY":
                self.keys[key] = str(int(value) + int(words[0]))
                return int(self.keys[key])
            case "HSET":
                return self.put(value, words[0], words[1])
            case "HINCRBY":
                value[words[0]] = str(int(value.get(words[0], "0")) + int(words[1]))
                return int(value[words[0]])
            case "ZADD":
                return self.put(value, words[1], float(words[0]))
            case "ZINCRBY":
                value[words[1]] = value.get(words[1], 0.0) + float(words[0])
                return value[words[1]]
            case "HDEL" | "ZREM":
                return int(value.pop(words[0], None) is not None)
            case "SADD":
                return self.put(dict.fromkeys(value), words[0], value.add(words[0]))
            case "SREM":
                had = words[0] in value
                value.discard(words[0])
                return int(had)
            case "LPUSH" | "RPUSH":
                value.append(None)
                return len(value)
        value.length += 1
        value.left = None if value.left is None else value.left - 1
        if "MAXLEN" in words:
            value.length = min(value.length, int(words[-1]))
        return ANY_ID

    def put(self, value, part, text):
        is_new = part not in value
        value[part] = text
        return int(is_new)

    def drop(self, key):
        self.expiring.discard(key)
        return self.keys.pop(key, None) is not None


def random_key(rng, *usual):
    return rng.choice(usual) if rng.random() < 0.93 else rng.choice((*PLAIN, QUEUE, "q"))


def random_effect(rng):
    """One effect, most on keys that hold what it needs. XADD has its words without the number of pairs."""
    part, number, value = rng.choice("fgh"), rng.choice(NUMBERS), rng.choice(("v", "1", "01", "x y"))
    text = rng.choice((*NUMBERS, "text", "OK"))
    verb = rng.choice(("SET", "DEL", "PEXPIRE", *OF_TYPE, "INCRBY", "HINCRBY"))
    match verb:
        case "SET":
            return [verb, random_key(rng, *STRINGS), text, *(("PX", 10**9) if rng.random() < 0.2 else ())]
        case "DEL":
            return [verb, random_key(rng, *PLAIN)]
        case "PEXPIRE":
            return [verb, random_key(rng, *PLAIN), rng.choice(("1000000000", "1000000000", "0", "-5"))]
        case "INCRBY":
            return [verb, random_key(rng, *STRINGS), number]
        case "HSET":
            return [verb, random_key(rng, HASH), part, text]
        case "HDEL":
            return [verb, random_key(rng, HASH), part]
        case "HINCRBY":
            return [verb, random_key(rng, HASH), part, number]
        case "SADD" | "SREM":
            return [verb, random_key(rng, SET), part]
        case "ZADD":
            return [verb, random_key(rng, ZSET), rng.choice(("1.5", "-inf", "inf", "1e300")), part]
        case "ZINCRBY":
            return [verb, random_key(rng, ZSET), rng.choice(("0.1", "inf", "-inf", "1e300")), part]
        case "ZREM":
            return [verb, random_key(rng, ZSET), part]
        case "LPUSH" | "RPUSH":
            return [verb, random_key(rng, LIST), value]
    return [verb, random_key(rng, STREAM), part, value, *(("MAXLEN", rng.randrange(4)) if rng.random() < 0.5 else ())]


def random_condition(rng):
    key = rng.choice(PLAIN)
    return rng.choice((["EXISTS", key], ["MISSING", key], ["EQUALS", rng.choice(STRINGS), rng.choice((*NUMBERS, "text"))]))


def words_of(effects, conditions=()):
    """The words of APPLY and IF."""
    words = ["APPLY", len(effects)]
    for verb, key, *rest in effects:
        words += [verb, key, *((1, *rest) if verb == "XADD" else rest)]
    if conditions:
        words += ["IF", len(conditions), *(word for condition in conditions for word in condition)]
    return words
