"""queuekeeper itself: whether its figures are current, its actions, and its resources."""

from frame import board, variable
from actions import of_actions
from panels import query, says, series, stat, steps, table, timeline
from words import GREEN, ORANGE, RED, its, quantile


def since(metric):
    """The time since a timestamp, for each queuekeeper."""
    return f"time() - {its(metric)}"


def per_minute(by, metric):
    """Requests per minute, of all queuekeepers together. A window of 5 minutes covers several scrapes."""
    return f"sum by ({by}) (rate({its(metric)}[5m])) * 60"


def figures():
    """Single figures for each queuekeeper."""
    named = {"legend": "{{instance}}", "text": "value_and_name"}
    started = since("process_start_time_seconds")
    return [
        stat(
            "Connected",
            "Whether there is a session with ZooKeeper. If not, the log and /-/ready have the reason.",
            its("queuekeeper_zookeeper_connected"),
            "none",
            mappings=says(_1=("Connected", GREEN), _0=("No", RED)),
            empty="Not scraped",
            **named,
        ),
        stat(
            "Mirror",
            "Whether the mirror is complete and follows the queue. While it is stale, no alerts on the queue fire.",
            its("queuekeeper_mirror_synced"),
            "none",
            mappings=says(_1=("Synced", GREEN), _0=("Stale", RED)),
            empty="Not scraped",
            **named,
        ),
        stat(
            "Drift",
            "Differences between mirror and tree that no event reported, since the start. It should always be 0: any difference is a bug, please report it with the log.",
            its("queuekeeper_mirror_drift_total"),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            **named,
        ),
        stat(
            "Unreadable",
            "Znodes that cannot be decoded, are not readable with these credentials, or have an unexpected name. Their contents are missing from all figures. If access is denied, grant the credentials in --zookeeper.auth-file the right to read them.",
            its("queuekeeper_mirror_unreadable_znodes"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            **named,
        ),
        stat("Znodes", "Znodes in the mirror.", its("queuekeeper_mirror_znodes"), "short", **named),
        stat("Uptime", "Time since the start. Counters and histograms are reset at the start.", started, "s", **named),
        stat(
            "Last event",
            "Time since the last watch event from ZooKeeper. It may be long in a quiet queue.",
            since("queuekeeper_mirror_last_event_timestamp_seconds"),
            "s",
            empty="None yet",
            **named,
        ),
        stat(
            "Last walk",
            "Time since the whole tree was last read, which happens at the start and every --mirror.drift-interval.",
            since("queuekeeper_mirror_last_walk_timestamp_seconds"),
            "s",
            empty="None yet",
            **named,
        ),
    ]


def of_image():
    """The mirror."""
    delay = [
        query(quantile(share, ["instance"], "queuekeeper_mirror_delay_seconds", "5m"), name + " {{instance}}")
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    ]
    flow = "sum by (instance) (rate({}[$__rate_interval]))"
    return [
        (
            8,
            [
                timeline(
                    "Mirror state",
                    "Green while the mirror was complete and followed the tree.",
                    query(its("queuekeeper_mirror_synced"), "{{instance}}"),
                    width=8,
                    mappings=says(_1=("synced", GREEN), _0=("stale", RED)),
                ),
                series(
                    "Delay",
                    "Time from a change in ZooKeeper until it is visible here, median and 99th percentile. Estimated from the histogram's buckets.",
                    delay,
                    "s",
                    width=8,
                    empty="No changes",
                ),
                series(
                    "Traffic",
                    "Watch events received, and znodes read, per second. Reads without events are walks.",
                    [
                        query(flow.format(its("queuekeeper_mirror_events_total")), "events {{instance}}"),
                        query(flow.format(its("queuekeeper_mirror_reads_total")), "znodes read {{instance}}"),
                    ],
                    "suffix:/s",
                    width=8,
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Walks by cause",
                    "How often the whole tree was read within the last hour: after a lost connection, and every --mirror.drift-interval to compare it with the mirror.",
                    query(
                        f"sum by (instance, cause) (increase({its('queuekeeper_mirror_walks_total')}[1h]))",
                        "{{cause}} {{instance}}",
                    ),
                    "short",
                    width=8,
                    decimals=0,
                    empty="None within the hour",
                ),
                series(
                    "Duration of the last walk",
                    "How long reading the whole tree took.",
                    query(its("queuekeeper_mirror_walk_duration_seconds"), "{{instance}}"),
                    "s",
                    width=8,
                ),
                series(
                    "Drift within the hour",
                    "Differences that no event reported. They are corrected, but each is a bug.",
                    query(f"increase({its('queuekeeper_mirror_drift_total')}[1h])", "{{instance}}"),
                    "short",
                    width=8,
                    decimals=0,
                    thresholds=steps((None, GREEN), (1, RED)),
                ),
            ],
        ),
    ]


def of_server():
    """Requests and resources."""
    asked = "queuekeeper_http_request_duration_seconds"
    versions = "job, instance, version, revision, rustc"
    per = "sum by (instance) (rate({}[$__rate_interval]))"
    return [
        (
            8,
            [
                series(
                    "Requests by code",
                    "Requests to the pages, the API and the metrics per minute. 421: a client uses a host name that is not in --web.external-url; 5xx: see the log.",
                    query(per_minute("code", "queuekeeper_http_requests_total"), "{{code}}"),
                    "suffix:/min",
                    width=8,
                ),
                series(
                    "Response time, 99th percentile",
                    "By route, without static files. A scrape or a page reads nothing from ZooKeeper, so this should be a matter of milliseconds.",
                    query(quantile(0.99, ["route"], asked, "5m") + " > 0", "{{route}}"),
                    "s",
                    width=8,
                    empty="No request",
                ),
                series(
                    "Logins",
                    "Requests with a password or a token per minute. Many rejected ones indicate that a client guesses credentials; repeated failures are delayed.",
                    query(per_minute("method, outcome", "queuekeeper_http_logins_total"), "{{method}}, {{outcome}}"),
                    "suffix:/min",
                    width=8,
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Memory",
                    "Resident memory. During a walk there are two copies of the mirror.",
                    query(its("process_resident_memory_bytes"), "{{instance}}"),
                    "bytes",
                    width=6,
                ),
                series(
                    "CPU",
                    "CPU usage, as a fraction of one core.",
                    query(per.format(its("process_cpu_seconds_total")), "{{instance}}"),
                    "percentunit",
                    width=6,
                ),
                series(
                    "File descriptors",
                    "Open file descriptors as a fraction of the limit. The event stream of each open page takes one.",
                    query(f"({its('process_open_fds')} / {its('process_max_fds')})", "{{instance}}"),
                    "percentunit",
                    width=6,
                    max=1,
                ),
                series(
                    "Scrapes",
                    "How long Prometheus takes to read its metrics.",
                    query(its("scrape_duration_seconds"), "{{instance}}"),
                    "s",
                    width=6,
                ),
            ],
        ),
        (
            6,
            [
                table(
                    "Versions",
                    "The version of each instance. All instances that watch one queue should have the same.",
                    query(f"max by ({versions}) ({its('queuekeeper_build_info')})", instant=True, shape="table"),
                    "short",
                    {"job": "Queue", "instance": "queuekeeper", "version": "Version", "revision": "Revision", "rustc": "Compiler"},
                    width=12,
                    empty="Not scraped",
                ),
                timeline(
                    "Configuration",
                    "Whether the last reload of --config.file and --web.config.file, and of the files that they name, succeeded. After a failed reload the previous configuration stays in use; the log has the error.",
                    [
                        query(its("queuekeeper_config_last_reload_successful"), "--config.file {{instance}}"),
                        query(its("queuekeeper_web_config_last_reload_successful"), "--web.config.file {{instance}}"),
                    ],
                    width=12,
                    mappings=says(_1=("loaded", GREEN), _0=("failed", RED)),
                    empty="No configuration file",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    pages = {"Status page": "/", "Audit": "/audit", "Rules": "/rules"}
    rows = [(4, figures()), *of_image(), *of_actions(), *of_server()]
    instance = variable(
        "instance",
        "queuekeeper",
        'label_values(queuekeeper_mirror_synced{job=~"$job"}, instance)',
        "Which queuekeeper of these queues. This dashboard shows each separately.",
        several=True,
    )
    return board(
        "queuekeeper",
        "queuekeeper / Itself",
        "Whether queuekeeper's figures are current, which actions were executed, and what resources it uses.",
        [(None, rows)],
        pages,
        [instance],
    )
