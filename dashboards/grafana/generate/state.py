"""A state of jobs in depth."""

from frame import board, variable
from panels import dashed, heatmap, link, query, series, stat, steps
from words import GREEN, RED, YELLOW, age, of, per_minute, shared_quantile, top

THIS = 'state="$state"'
ENTERED = "merritt_job_oldest_entered_timestamp_seconds"
LIMIT = top("queuekeeper_fault_limit_seconds", 'fault="stuck_state"', THIS)
NAMED = 'collection!="overflow"'
QUANTILES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
TO_JOBS = link("The jobs in this state", "/jobs?state=${state}")
TO_LOCKED = link("Locked jobs", "/jobs?state=${state}&locked=true")


def figures():
    """Single figures."""
    return [
        stat("Jobs", "Jobs whose status is this state.", top("merritt_jobs", THIS), "short", links=[TO_JOBS]),
        stat(
            "Held by daemons",
            "Jobs of this state that are locked by a daemon, which is working on them, or hangs.",
            top("merritt_jobs_locked", THIS),
            "short",
            links=[TO_LOCKED],
        ),
        stat(
            "Oldest waiting",
            "How long the oldest unlocked job has been in this state. If this grows while no job is locked, no daemon polls: check that it is running.",
            age(ENTERED, THIS, 'locked="false"'),
            "s",
            empty="None waits",
            links=[link("Jobs that wait", "/jobs?state=${state}&locked=false")],
        ),
        stat(
            "Oldest locked",
            "How long the oldest locked job has been in this state. A large deposit takes long; a daemon that hangs keeps its lock until its session ends.",
            age(ENTERED, THIS, 'locked="true"'),
            "s",
            empty="None held",
            links=[TO_LOCKED],
        ),
        stat(
            "Of the limit",
            "The age of the oldest job relative to the limit of this state. Above 100 %, while no job has left the state for an hour, an alert fires. States outside of the success path have no limit.",
            f"{top('merritt:state_age:seconds', THIS)} / {LIMIT}",
            "percentunit",
            thresholds=steps((None, GREEN), (0.5, YELLOW), (1, RED)),
            empty="No limit",
        ),
        stat(
            "Left within the hour",
            "Jobs that left this state in the last hour. If none did, and there are jobs in it, it is stuck or has just started. From the recording rules.",
            top("merritt:state_exits:increase1h", THIS),
            "short",
            decimals=0,
            empty="None yet",
        ),
        stat(
            "Resumed before",
            "Jobs of this state that had failed and were resumed at least once.",
            top("merritt_jobs_retried", THIS),
            "short",
        ),
        stat(
            "Space needed",
            "Total working storage that the jobs of this state need. It is known once they have been estimated.",
            top("merritt_jobs_space_needed_bytes", THIS),
            "bytes",
            links=[link("By space", "/jobs?state=${state}&sort=space_needed&direction=desc")],
        ),
    ]


def curves():
    """The last hours of this state."""
    took = of("merritt_job_state_duration_seconds_bucket", THIS)
    since_last = f"max by (le) (clamp_min({took} - {took} offset $__interval, 0))"
    moves = "merritt_job_transitions_total"
    return [
        (
            9,
            [
                series(
                    "Jobs over time",
                    "Jobs in this state, and how many of them are locked.",
                    [
                        query(top("merritt_jobs", THIS), "in the state"),
                        query(top("merritt_jobs_locked", THIS), "held by daemons"),
                    ],
                    "short",
                    links=[TO_JOBS],
                ),
                series(
                    "Jobs by time in this state",
                    "Young jobs at the bottom, old ones at the top. Where the bands of old jobs widen, jobs leave out of order, or not at all.",
                    query(top("merritt_jobs_by_age", THIS, by="age"), "{{age}}"),
                    "short",
                    stacked=True,
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "In and out",
                    "Jobs that entered this state, by the state before, and below zero jobs that left it, by the next state: per minute, averaged over half an hour.",
                    [
                        query(per_minute("from", moves, 'to="$state"'), "from {{from}}"),
                        query("-" + per_minute("to", moves, 'from="$state"'), "to {{to}}"),
                    ],
                    "suffix:/min",
                ),
                series(
                    "Age of the oldest job",
                    "Unlocked and locked jobs, with the limit of this state. A straight rising line is one job that does not move.",
                    [
                        query(age(ENTERED, THIS, 'locked="false"'), "waiting"),
                        query(age(ENTERED, THIS, 'locked="true"'), "worked on"),
                        query(LIMIT, "limit"),
                    ],
                    "s",
                    overrides=[dashed("limit", RED)],
                    empty="No job is in this state",
                    links=[TO_JOBS],
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Time spent in this state",
                    "Time in this state of jobs that left it within the last hour: median, 90th and 99th percentile. Estimated from the histogram's buckets.",
                    [
                        query(shared_quantile(share, "merritt_job_state_duration_seconds", "1h", THIS), name)
                        for share, name in QUANTILES
                    ],
                    "s",
                    empty="No job left it",
                ),
                heatmap(
                    "Time spent in this state, distribution",
                    "How many jobs took how long. Two bands are two kinds of jobs, such as small and large ones; a rising band is work that becomes slower.",
                    since_last,
                    "s",
                    empty="No job left it",
                ),
            ],
        ),
        (
            9,
            [
                series(
                    title,
                    description + " of jobs that left the state within the last hour: median, 90th and 99th percentile.",
                    [
                        query(shared_quantile(share, f"merritt_job_state_{part}_duration_seconds", "1h", THIS), name)
                        for share, name in QUANTILES
                    ],
                    "s",
                    empty="No job left it",
                )
                for part, title, description in (
                    ("wait", "Waiting for a daemon", "Time from entering this state to the lock of the daemon"),
                    ("work", "Work of a daemon", "Time from the lock of the daemon to leaving this state"),
                )
            ],
        ),
        (
            8,
            [
                series(
                    "Oldest lock",
                    "The age of the oldest lock on a job of this state. A lock ends with the session of its daemon: one that is much older than the work takes belongs to a daemon that hangs.",
                    query(age("merritt_job_lock_oldest_created_timestamp_seconds", THIS), "oldest lock"),
                    "s",
                    empty="No job is locked",
                    links=[link("Locks on jobs", "/locks?kind=job")],
                ),
                series(
                    "Jobs of the largest collections",
                    "Jobs in this state by collection, for the collections with the most unfinished jobs.",
                    query(f"topk(10, {top('merritt_collection_jobs', THIS, NAMED, by='collection')} > 0)", "{{collection}}"),
                    "short",
                    empty="No collection",
                    links=[
                        link("Jobs of this collection", "/jobs?state=${state}&collection=${__field.labels.collection}")
                    ],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Space needed over time",
                    "Total working storage that the jobs of this state need.",
                    query(top("merritt_jobs_space_needed_bytes", THIS), "needed"),
                    "bytes",
                ),
                series(
                    "Retries",
                    "Jobs of this state that were resumed before, and the total number of retries. Jobs that fail again and again need an operator.",
                    [
                        query(top("merritt_jobs_retried", THIS), "jobs resumed before"),
                        query(top("merritt_job_retries", THIS), "retries in total"),
                    ],
                    "short",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    names = "label_values(merritt_jobs, state)"
    extra = variable("state", "State", names, "The state of jobs to show.", start="provisioning")
    pages = {"Jobs in this state": "/jobs?state=${state}", "Failures": "/failures"}
    return board(
        "state",
        "queuekeeper / A state in depth",
        "The jobs of one state, how long they take, and how many enter and leave it.",
        [("$state on $job", [(4, figures()), *curves()])],
        pages,
        [extra],
    )
