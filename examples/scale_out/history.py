"""The journals of the processes of the example, and whether each user's events were handled in order."""

import collections
import json
import os
import time


class Journal:
    """One process's lines. A line written survives the process, even if it is killed."""

    def __init__(self, folder, name):
        self.file = os.open(os.path.join(folder, name), os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, what, user=None, number=None):
        line = {"what": what, "user": user, "number": number, "at": time.monotonic()}
        os.write(self.file, (json.dumps(line) + "\n").encode())


def read(folder, prefix=""):
    """All lines of the journals of that prefix, in order of time: the monotonic clock is one for all processes."""
    lines = []
    for name in os.listdir(folder):
        if name.startswith(prefix):
            with open(os.path.join(folder, name)) as file:
                lines += [json.loads(line) | {"by": name} for line in file]
    return sorted(lines, key=lambda line: line["at"])


def check(folder):
    """Compares what was sent with what was handled.

    Returns (sent, handled, again, lost, violations). Handled again, in its place, is an event whose handler ended but
    whose ACK did not come through: at least once. A violation is an event that began before the one before it had been
    handled, or after the one behind it, or while another of its user was being handled.
    """
    sent = {(line["user"], line["number"]) for line in read(folder, "producer")}
    done, current, last = collections.Counter(), {}, collections.defaultdict(int)
    violations = []
    for line in read(folder, "worker"):
        if line["what"] == "killed":
            current = {user: begun for user, begun in current.items() if begun["by"] != line["by"]}
        elif line["what"] == "begin":
            user, number = line["user"], line["number"]
            if user in current:
                violations.append(f"{user}: {number} began while {current[user]['number']} was being handled")
            if number not in (last[user], last[user] + 1):
                violations.append(f"{user}: {number} began after {last[user]}")
            current[user] = line
        elif line["what"] == "done":
            current.pop(line["user"], None)
            last[line["user"]] = line["number"]
            done[line["user"], line["number"]] += 1
    again = sum(done.values()) - len(done)
    return len(sent), len(done), again, sorted(sent - done.keys()), violations


def report(folder):
    """Prints the comparison; returns True if everything was handled, in order."""
    sent, handled, again, lost, violations = check(folder)
    print(f"events sent              {sent}")
    print(f"events handled           {handled}, {again} of them again as their ACK was lost")
    print(f"lost                     {len(lost)}   (must be 0)")
    print(f"order violations         {len(violations)}   (must be 0)")
    for text in [f"lost: {user} {number}" for user, number in lost[:10]] + violations[:10]:
        print(f"  {text}")
    return sent > 0 and not lost and not violations
