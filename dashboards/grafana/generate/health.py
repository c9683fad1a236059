"""Is queuekeeper itself healthy?"""

from panels import link, query, says, series, stat, steps, timeline
from words import GREEN, ORANGE, RED, of, shared_quantile, top

TO_ITSELF = link("queuekeeper itself", "queuekeeper")


def figures():
    """Single figures."""
    return [
        stat(
            "Instances",
            "queuekeepers of this queue that are scraped and whose mirror follows the queue.",
            f"sum({of('queuekeeper_mirror_synced')})",
            "short",
            width=4,
            thresholds=steps((None, RED), (1, GREEN)),
            empty="Not scraped",
            links=[TO_ITSELF],
        ),
        stat(
            "Connected",
            "Whether a queuekeeper has a session with ZooKeeper. If not, the log and /-/ready have the reason.",
            top("queuekeeper_zookeeper_connected"),
            "none",
            width=4,
            mappings=says(_1=("Connected", GREEN), _0=("No", RED)),
            empty="Not scraped",
            links=[TO_ITSELF],
        ),
        stat(
            "Drift",
            "Differences between mirror and tree that no event reported, since the start. It should always be 0: any difference is a bug, please report it with the log.",
            top("queuekeeper_mirror_drift_total"),
            "short",
            width=4,
            thresholds=steps((None, GREEN), (1, RED)),
            links=[TO_ITSELF],
        ),
        stat(
            "Unreadable",
            "Znodes that cannot be decoded, are not readable with the credentials of queuekeeper, or have an unexpected name. Their contents are missing from all figures.",
            top("queuekeeper_mirror_unreadable_znodes"),
            "short",
            width=4,
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[TO_ITSELF],
        ),
        stat(
            "Volume",
            "Whether queuekeeper can measure working storage. If not, it is unknown which jobs wait for space, and alerts on the volume do not fire.",
            top("merritt_working_storage_up"),
            "none",
            width=4,
            mappings=says(_1=("Measured", GREEN), _0=("Unknown", RED)),
            empty="Set --storage.path",
        ),
        stat(
            "Delay, 99 %",
            "99th percentile of the time from a change in ZooKeeper until it is visible here, within five minutes. Estimated from the histogram's buckets.",
            shared_quantile(0.99, "queuekeeper_mirror_delay_seconds", "5m"),
            "s",
            width=4,
            empty="No changes",
            links=[TO_ITSELF],
        ),
    ]


def rows():
    """The panels."""
    delay = [
        query(shared_quantile(share, "queuekeeper_mirror_delay_seconds", "5m"), name)
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    ]
    return [
        (4, figures()),
        (
            7,
            [
                timeline(
                    "Mirror",
                    "Green while the mirror of at least one queuekeeper was complete and followed the queue.",
                    query(top("queuekeeper_mirror_synced"), "mirror"),
                    mappings=says(_1=("synced", GREEN), _0=("stale", RED)),
                    links=[TO_ITSELF],
                ),
                series(
                    "Delay",
                    "Time from a change in ZooKeeper until it is visible here, median and 99th percentile.",
                    delay,
                    "s",
                    empty="No changes",
                    links=[TO_ITSELF],
                ),
            ],
        ),
    ]
