"""The rows of the table."""

from dataclasses import dataclass, field

from dqueue import Durable

from tests.torture.losses.places import (
    AllPowerGone,
    Apart,
    Killed,
    Place,
    PowerGone,
    Promoted,
)
from tests.torture.losses.traffic import (
    LASTING,
    LONG,
    QUICK,
    REPLY,
    SECONDS,
    STEADY,
    SYNCED,
    Confirm,
    Pace,
    wait,
    waitaof,
)


@dataclass(frozen=True)
class Row:
    """Servers with these settings, and a fault while clients wait for this confirmation of their commands."""

    name: str
    place: type[Place]
    pace: Pace
    sync: str = "everysec"
    confirm: Confirm = REPLY
    conf: dict = field(default_factory=dict)
    durable: Durable | None = None
    """Clients of the Python package with this option, instead of `confirm`."""
    loses: bool = False
    """Whether it may lose confirmed writes. If not, a loss is a failure."""

    @property
    def settings(self) -> dict:
        return {"appendonly": "yes", "appendfsync": self.sync, **self.conf}


NO_LOG = {"appendonly": "no"}
# A replica that has not answered for more than a second does not count.
NEAR = {"min-replicas-to-write": "1", "min-replicas-max-lag": "1"}

# A primary that is cut off makes its clients try other servers after a second.
IN_MEMORY = Durable(replicas=1, in_memory=True, timeout=1_000)

ROWS = [
    Row("no log, killed", Killed, QUICK, conf=NO_LOG, loses=True),
    Row("no, killed", Killed, QUICK, "no"),
    # While a sync is under way the server answers, and writes up to two seconds later.
    Row("everysec, killed", Killed, QUICK, loses=True),
    Row("always, killed", Killed, QUICK, "always"),
    Row("no, power", PowerGone, SECONDS, "no", loses=True),
    Row("everysec, power", PowerGone, SECONDS, loses=True),
    Row("always, power", PowerGone, QUICK, "always"),
    Row("everysec, WAITAOF 1 0, power", PowerGone, SYNCED, confirm=waitaof(1, 0)),
    Row("replica, promoted", Promoted, QUICK, loses=True),
    Row("WAIT 1, promoted", Promoted, QUICK, confirm=wait(1)),
    Row("WAITAOF 1 1, promoted", Promoted, SYNCED, confirm=waitaof(1, 1)),
    Row("replica, apart", Apart, LONG, loses=True),
    Row("min-replicas 1, apart", Apart, LONG, conf=NEAR, loses=True),
    Row("WAIT 1, apart", Apart, QUICK, confirm=wait(1)),
    Row("WAIT 1, all power", AllPowerGone, SECONDS, confirm=wait(1), loses=True),
    Row("WAITAOF 1 1, all power", AllPowerGone, SYNCED, confirm=waitaof(1, 1)),
    Row("durable, power", PowerGone, LASTING, durable=Durable()),
    Row("durable, replica, promoted", Promoted, STEADY, durable=IN_MEMORY),
    Row("durable, replica, apart", Apart, STEADY, durable=IN_MEMORY),
    Row("durable, replica, all power", AllPowerGone, LASTING, durable=Durable(replicas=1)),
]
BY_NAME = {row.name: row for row in ROWS}
