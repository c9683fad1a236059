"""The daemons that do the work: `queuekeeper ingest` and `queuekeeper standalone`."""

from frame import board
from panels import TO_JOBS, link, query, series, stat, steps
from words import GREEN, ORANGE, PATH, RED, STATES, of, state, top, total

DAEMON = "{{daemon}}"

# Daemons of states look like their states, on whichever dashboard.
COLOURS = {name: STATES[name] for name in PATH}


def summed(by, metric, *matchers):
    """What the processes of a queue have together: each counts only what it did itself."""
    return f"sum{f' by ({by})' if by else ''} ({of(metric, *matchers)})"


def per_minute(by, metric, *matchers):
    """How much all processes did in a minute."""
    return f"sum{f' by ({by})' if by else ''} (rate({of(metric, *matchers)}[$__rate_interval])) * 60"


def within_the_hour(metric, *matchers):
    """How much all processes did within the last hour."""
    return f"sum (increase({of(metric, *matchers)}[1h]))"


def took(share):
    """A quantile of the time of work, by daemon, over all processes."""
    rate = f"rate({of('merritt_daemon_work_seconds_bucket')}[30m])"
    return f"histogram_quantile({share}, sum by (daemon, le) ({rate})) >= 0"


def figures():
    """Single figures."""
    busy, workers = (summed("", f"merritt_daemon_{name}") for name in ("workers_busy", "workers"))
    return [
        stat("Workers", "Workers of all daemons in all processes that are scraped.", workers, "short"),
        stat(
            "Busy",
            "The share of the workers that are at work. If it stays near 100 %, jobs wait for workers: see which daemons need more.",
            f"{busy} / {workers}",
            "percentunit",
            thresholds=steps((None, GREEN), (0.9, ORANGE)),
        ),
        stat(
            "Failed within the hour",
            "Jobs and batches whose work failed permanently. The jobs are in Failed, each with its cause.",
            within_the_hour("merritt_daemon_ended_total", 'outcome="failed"'),
            "short",
            decimals=0,
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Failed jobs", "/jobs?state=failed")],
        ),
        stat(
            "Delayed within the hour",
            "Attempts that ended with a temporary error or for lack of room; they are repeated. The page of a job shows when and why.",
            within_the_hour("merritt_daemon_ended_total", 'outcome="delayed"'),
            "short",
            decimals=0,
        ),
        stat(
            "Waiting for a grant",
            "Jobs in Provisioning that were not granted working storage in the last round.",
            top("merritt_daemon_space_waiting"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Jobs in Provisioning", "/jobs?state=provisioning")],
        ),
        stat("Granted", "Working storage that is granted to jobs.", top("merritt_daemon_granted_bytes"), "bytes"),
        stat(
            "Messages waiting",
            "Mails and callbacks that have not been delivered yet.",
            total("kind", "merritt_daemon_messages_waiting"),
            "short",
        ),
        stat(
            "Oldest message",
            "Age of the oldest mail or callback that has not been delivered yet. An alert fires for mail after an hour.",
            top("merritt_daemon_message_age_seconds"),
            "s",
            thresholds=steps((None, GREEN), (3600, RED)),
        ),
    ]


def of_work():
    """What the daemons do."""
    return [
        (
            9,
            [
                series(
                    "Done by daemon",
                    "Jobs and batches whose work was done, per minute. A job counts in each daemon that has done its part, and again where it was resumed.",
                    query(per_minute("daemon", "merritt_daemon_ended_total", 'outcome="done"'), DAEMON),
                    "suffix:/min",
                    names=COLOURS,
                ),
                series(
                    "Ended otherwise",
                    "Failed: permanently. Delayed: a temporary error or no room; retried. Lost: the lock or session was lost, or another client changed the job.",
                    query(
                        per_minute("daemon, outcome", "merritt_daemon_ended_total", 'outcome!="done"') + " > 0",
                        "{{daemon}} {{outcome}}",
                    ),
                    "suffix:/min",
                    empty="None",
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Time of work",
                    "How long a daemon worked on a job or batch, the median of the last half hour. Estimated from the histogram's buckets.",
                    query(took(0.5), DAEMON),
                    "s",
                    names=COLOURS,
                    empty="No work ended",
                ),
                series(
                    "Time of work, 99th percentile",
                    "The slowest work of the last half hour. Large deposits take long, and so do hosts that answer slowly.",
                    query(took(0.99), DAEMON),
                    "s",
                    names=COLOURS,
                    empty="No work ended",
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Content",
                    "Bytes fetched into the working storage, and bytes written to stores, per second.",
                    [
                        query(per_minute("", "merritt_daemon_downloaded_bytes_total") + " / 60", "downloaded"),
                        query(per_minute("", "merritt_daemon_stored_bytes_total") + " / 60", "stored"),
                    ],
                    "Bps",
                    width=8,
                ),
                series(
                    "Granted over time",
                    "Working storage that is granted to jobs in Downloading to Notify. An alert fires when nothing uses it for an hour.",
                    query(top("merritt_daemon_granted_bytes"), "granted"),
                    "bytes",
                    width=8,
                ),
                series(
                    "Hosts away",
                    "Hosts that failed so often that a process sends them no requests for a while. Their jobs wait; the page of a job names the host.",
                    query(top("merritt_daemon_hosts_away", by="instance"), "{{instance}}"),
                    "short",
                    decimals=0,
                    width=8,
                ),
            ],
        ),
    ]


def of_workers():
    """Whether there are enough of them."""
    return [
        (
            9,
            [
                series(
                    "Workers by state",
                    "Workers registered for each state, in all processes. Daemons of other programs do not register.",
                    query(top("merritt_state_workers", state(*PATH), by="state"), "{{state}}"),
                    "short",
                    links=[TO_JOBS],
                ),
                series(
                    "Workers needed by state",
                    "The number of workers that each state needs to process arriving jobs, and waiting jobs within merritt:state_workers:target_seconds, at the time per job of the last hour. From the recording rules, for an autoscaler.",
                    query(top("merritt:state_workers:needed", by="state"), "{{state}}"),
                    "short",
                    decimals=0,
                    empty="No job was done within the hour",
                    links=[TO_JOBS],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Busy workers",
                    "The share of a daemon's workers that are at work.",
                    query(
                        f"{summed('daemon', 'merritt_daemon_workers_busy')} / ({summed('daemon', 'merritt_daemon_workers')} > 0)",
                        DAEMON,
                    ),
                    "percentunit",
                    names=COLOURS,
                    max=1,
                ),
                series(
                    "Processes",
                    "Time since the start of each process with daemons. A sawtooth is a process that restarts.",
                    query(
                        f"time() - max by (instance) ({of('process_start_time_seconds')} and on (job, instance) {of('merritt_daemon_workers')})",
                        "{{instance}}",
                    ),
                    "s",
                ),
            ],
        ),
    ]


def of_others():
    """Messages and cleanup."""
    return [
        (
            8,
            [
                series(
                    "Messages waiting over time",
                    "Mails and callbacks that no process has delivered yet.",
                    query(top("merritt_daemon_messages_waiting", by="kind"), "{{kind}}"),
                    "short",
                    width=8,
                ),
                series(
                    "Attempts to deliver",
                    "Attempts per minute, by outcome. Delayed ones are repeated; abandoned ones need an operator.",
                    query(per_minute("kind, outcome", "merritt_daemon_deliveries_total"), "{{kind}} {{outcome}}"),
                    "suffix:/min",
                    width=8,
                ),
                series(
                    "Cleaned up",
                    "Items that cleanup removed per minute, and directories that it left to an operator, because they would have been too many at once.",
                    [
                        query(per_minute("what", "merritt_daemon_cleaned_total"), "{{what}}"),
                        query(top("merritt_daemon_cleanup_withheld"), "withheld"),
                    ],
                    "short",
                    width=8,
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    pages = {"Daemons": "/daemons", "Failed jobs": "/jobs?state=failed"}
    rows = [(4, figures()), *of_work(), *of_workers(), *of_others()]
    return board(
        "daemons",
        "queuekeeper / Ingest daemons",
        "What queuekeeper's own daemons do, how long it takes them, and whether there are enough of them.",
        [(None, rows)],
        pages,
    )
