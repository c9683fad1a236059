"""queuekeeper itself: whether its figures can be trusted, what it did, and what it costs."""

from frame import board, variable
from actions import of_actions
from panels import query, says, series, stat, steps, table, timeline
from words import GREEN, ORANGE, RED, its, quantile


def since(metric):
    """For how long, for each queuekeeper."""
    return f"time() - {its(metric)}"


def per_minute(by, metric):
    """How many requests in a minute, of all queuekeepers together. A window of 5 minutes holds a few scrapes at least."""
    return f"sum by ({by}) (rate({its(metric)}[5m])) * 60"


def figures():
    """What is worth a number of its own, for each queuekeeper."""
    named = {"legend": "{{instance}}", "text": "value_and_name"}
    started = since("process_start_time_seconds")
    return [
        stat(
            "Connected",
            "Whether there is a session with ZooKeeper. Its log and /-/ready say why not.",
            its("queuekeeper_zookeeper_connected"),
            "none",
            mappings=says(_1=("Connected", GREEN), _0=("No", RED)),
            empty="Not scraped",
            **named,
        ),
        stat(
            "Image",
            "Whether the image of the queue is complete and follows it. While it is behind, no alert on the queue is raised.",
            its("queuekeeper_mirror_synced"),
            "none",
            mappings=says(_1=("Synced", GREEN), _0=("Behind", RED)),
            empty="Not scraped",
            **named,
        ),
        stat(
            "Drift",
            "Differences between image and tree that events should have brought, since it started. It should stay 0 for ever: one is a defect, please report it with the log.",
            its("queuekeeper_mirror_drift_total"),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            **named,
        ),
        stat(
            "Unreadable",
            "Znodes that hold garbage, or that its credentials may not read. What they hold is in none of the figures. Give --zookeeper.auth-file the right to read them.",
            its("queuekeeper_mirror_unreadable_znodes"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            **named,
        ),
        stat("Znodes", "Znodes in the image.", its("queuekeeper_mirror_znodes"), "short", **named),
        stat("Runs for", "Since it started. Counters and histograms begin anew with it.", started, "s", **named),
        stat(
            "Last event",
            "Since the last change in ZooKeeper that it was told of. In a quiet queue, this may be long.",
            since("queuekeeper_mirror_last_event_timestamp_seconds"),
            "s",
            empty="None yet",
            **named,
        ),
        stat(
            "Last walk",
            "Since it read the whole tree, to begin or to compare. It does so every --mirror.drift-interval.",
            since("queuekeeper_mirror_last_walk_timestamp_seconds"),
            "s",
            empty="None yet",
            **named,
        ),
    ]


def of_image():
    """How the image is kept."""
    delay = [
        query(quantile(share, ["instance"], "queuekeeper_mirror_delay_seconds", "5m"), name + " {{instance}}")
        for share, name in ((0.5, "half"), (0.99, "99 in 100"))
    ]
    flow = "sum by (instance) (rate({}[$__rate_interval]))"
    return [
        (
            8,
            [
                timeline(
                    "When the figures could be trusted",
                    "Green where the image was complete and followed the tree.",
                    query(its("queuekeeper_mirror_synced"), "{{instance}}"),
                    width=8,
                    mappings=says(_1=("synced", GREEN), _0=("behind", RED)),
                ),
                series(
                    "Delay",
                    "From a change in ZooKeeper to its being visible here: half of the changes, and 99 in 100, were faster. Estimated from the histogram's buckets.",
                    delay,
                    "s",
                    width=8,
                    empty="Nothing has changed",
                ),
                series(
                    "Traffic",
                    "Watch events taken, and znodes read for them, in a second. Reads without events are walks.",
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
                    "How often it read the whole tree within the last hour. After a lost connection it has to; every --mirror.drift-interval it compares.",
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
                    "Differences that events should have brought and did not. They are put right; that they came is a defect.",
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
    """What it costs, and who asks it."""
    asked = "queuekeeper_http_request_duration_seconds"
    versions = "job, instance, version, revision, rustc"
    per = "sum by (instance) (rate({}[$__rate_interval]))"
    return [
        (
            8,
            [
                series(
                    "Requests by code",
                    "Requests to its pages, its API and its metrics, in a minute. 421: somebody asks by a name that is not in --web.external-url; 5xx: see its log.",
                    query(per_minute("code", "queuekeeper_http_requests_total"), "{{code}}"),
                    "suffix:/min",
                    width=8,
                ),
                series(
                    "Time to answer, 99 in 100",
                    "By route, but for those that always answer the same. A scrape and a page cost ZooKeeper nothing, so this is a matter of milliseconds.",
                    query(quantile(0.99, ["route"], asked, "5m") + " > 0", "{{route}}"),
                    "s",
                    width=8,
                    empty="No request",
                ),
                series(
                    "Logins",
                    "Requests with a password or a token, in a minute. Many wrong ones are somebody who guesses; after some, each waits.",
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
                    "Resident memory. A walk holds a second image beside the first, for as long as it lasts.",
                    query(its("process_resident_memory_bytes"), "{{instance}}"),
                    "bytes",
                    width=6,
                ),
                series(
                    "Processor",
                    "Of one core.",
                    query(per.format(its("process_cpu_seconds_total")), "{{instance}}"),
                    "percentunit",
                    width=6,
                ),
                series(
                    "File descriptors",
                    "Part of those that may be open. Event streams of open pages take one each.",
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
                    "What runs where. All instances that watch one queue should be the same.",
                    query(f"max by ({versions}) ({its('queuekeeper_build_info')})", instant=True, shape="table"),
                    "short",
                    {"job": "Queue", "instance": "queuekeeper", "version": "Version", "revision": "Revision", "rustc": "Compiler"},
                    width=12,
                    empty="Not scraped",
                ),
                timeline(
                    "Configuration",
                    "Whether the files of --config.file and --web.config.file, and what they name, could be read when they last changed. A wrong one changes nothing; the log says what is wrong with it.",
                    [
                        query(its("queuekeeper_config_last_reload_successful"), "--config.file {{instance}}"),
                        query(its("queuekeeper_web_config_last_reload_successful"), "--web.config.file {{instance}}"),
                    ],
                    width=12,
                    mappings=says(_1=("right", GREEN), _0=("wrong", RED)),
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
        "Which queuekeeper of these queues. Here each is shown apart.",
        several=True,
    )
    return board(
        "queuekeeper",
        "queuekeeper / Itself",
        "Whether queuekeeper's figures can be trusted, what it was requested to do, and what it costs.",
        rows,
        pages,
        [instance],
        repeated=None,
    )
