"""Every fault by its name."""

from tests.torture.faults import clients, clocks, cluster, disk, process, replicas, tail

FAULTS = {
    "none": process.Nothing,
    "kill9-always": process.Kill9,
    "kill9-everysec": process.Kill9Everysec,
    "power-always": disk.PowerAlways,
    "power-everysec": disk.PowerEverysec,
    "power-no": disk.PowerNo,
    "torn-tail": tail.TornTail,
    "sigstop": process.Sigstop,
    "bgsave": process.Bgsave,
    "rewrite": process.Rewrite,
    "rewrite-no-preamble": process.RewriteNoPreamble,
    "reload": process.Reload,
    "client-kill": clients.ClientKill,
    "client-pause": clients.ClientPause,
    "lost-replies": clients.LostReplies,
    "partial-resync": replicas.PartialResync,
    "full-resync": replicas.FullResync,
    "failover": replicas.Failover,
    "promotion": replicas.Promotion,
    "sentinel": replicas.SentinelFailover,
    "slot-migration": cluster.SlotMigration,
    "clock-steps": clocks.ClockSteps,
    "disk-full": disk.DiskFull,
    "maxmemory": disk.MaxMemory,
}
