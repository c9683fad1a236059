"""A state of jobs in depth."""

from frame import board, variable
from panels import dashed, heatmap, link, query, series, stat, steps
from words import GREEN, RED, YELLOW, age, of, per_minute, top

THIS = 'state="$state"'
ENTERED = "merritt_job_oldest_entered_timestamp_seconds"
LIMIT = top("queuekeeper_fault_limit_seconds", 'fault="stuck_state"', THIS)
NAMED = 'collection!="overflow"'
TO_JOBS = link("The jobs in this state", "/jobs?state=${state}")
TO_LOCKED = link("Those that daemons hold", "/jobs?state=${state}&locked=true")


def figures():
    """What is worth a number of its own."""
    return [
        stat("Jobs", "Jobs whose status is this state.", top("merritt_jobs", THIS), "short", links=[TO_JOBS]),
        stat(
            "Held by daemons",
            "Jobs of this state that a daemon has locked: it works on them, or hangs.",
            top("merritt_jobs_locked", THIS),
            "short",
            links=[TO_LOCKED],
        ),
        stat(
            "Oldest waiting",
            "For how long the oldest job that no daemon holds has been in this state. With none held and this growing, nobody looks: see whether the daemon runs.",
            age(ENTERED, THIS, 'locked="false"'),
            "s",
            empty="None waits",
            links=[link("Jobs that wait", "/jobs?state=${state}&locked=false")],
        ),
        stat(
            "Oldest worked on",
            "For how long the oldest job that a daemon holds has been in this state. A large deposit takes its time; one that hangs keeps its lock until its session ends.",
            age(ENTERED, THIS, 'locked="true"'),
            "s",
            empty="None held",
            links=[TO_LOCKED],
        ),
        stat(
            "Of what it may take",
            "The age of the oldest job over the limit of this state. Past 100 %, with nothing leaving it for an hour, an alert is raised. States out of the success path have no limit.",
            f"{top('merritt:state_age:seconds', THIS)} / {LIMIT}",
            "percentunit",
            thresholds=steps((None, GREEN), (0.5, YELLOW), (1, RED)),
            empty="No limit",
        ),
        stat(
            "Left within the hour",
            "How many jobs left this state in the last hour. None, with jobs in it: it is stuck, or just started. From the recording rules.",
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
            "Working storage that the jobs of this state need, in all. It is known once they are estimated.",
            top("merritt_jobs_space_needed_bytes", THIS),
            "bytes",
            links=[link("By space", "/jobs?state=${state}&sort=space_needed&direction=desc")],
        ),
    ]


def curves():
    """The last hours of this state."""
    took = of("merritt_job_state_duration_seconds_bucket", THIS)
    # Of several queuekeepers each has seen the same.
    within_hour = f"max by (le) (rate({took}[1h]))"
    since_last = f"max by (le) (clamp_min({took} - {took} offset $__interval, 0))"
    moves = "merritt_job_transitions_total"
    return [
        (
            9,
            [
                series(
                    "Jobs over time",
                    "Jobs in this state, and those of them that daemons hold.",
                    [
                        query(top("merritt_jobs", THIS), "in the state"),
                        query(top("merritt_jobs_locked", THIS), "held by daemons"),
                    ],
                    "short",
                    links=[TO_JOBS],
                ),
                series(
                    "Jobs by time in this state",
                    "Young jobs below, old ones above. Where the old bands widen, jobs do not leave in the order in which they came, or do not leave at all.",
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
                    "Jobs that came into this state, by where they came from, and below zero those that left it, by where they went: in a minute, as the mean of half an hour.",
                    [
                        query(per_minute("from", moves, 'to="$state"'), "from {{from}}"),
                        query("-" + per_minute("to", moves, 'from="$state"'), "to {{to}}"),
                    ],
                    "suffix:/min",
                ),
                series(
                    "Age of the oldest job",
                    "Waiting and worked on apart, with the limit of this state. A straight line upwards is one job that does not move.",
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
                    "What the jobs took that left it within the last hour: half of them, nine in ten, 99 in 100 were faster. Estimated from the histogram's buckets.",
                    [
                        query(f"histogram_quantile({share}, {within_hour})", name)
                        for share, name in ((0.5, "half"), (0.9, "9 in 10"), (0.99, "99 in 100"))
                    ],
                    "s",
                    empty="No job left it",
                ),
                heatmap(
                    "Time spent in this state, all of it",
                    "How many jobs took how long. Two bands are two kinds of jobs, such as small and large ones; a band that rises is work that becomes slower.",
                    since_last,
                    "s",
                    empty="No job left it",
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Oldest lock",
                    "For how long the oldest lock on a job of this state has been held. A lock ends with its daemon's session: one that is much older than the work takes is a daemon that hangs.",
                    query(age("merritt_job_lock_oldest_created_timestamp_seconds", THIS), "oldest lock"),
                    "s",
                    empty="No job is locked",
                    links=[link("Locks on jobs", "/locks?kind=job")],
                ),
                series(
                    "Jobs of the largest collections",
                    "Whose jobs these are, of the collections that have most.",
                    query(f"topk(10, {top('merritt_collection_jobs', THIS, NAMED, by='collection')} > 0)", "{{collection}}"),
                    "short",
                    empty="Set --metrics.collections",
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
                    "Working storage that the jobs of this state need, in all.",
                    query(top("merritt_jobs_space_needed_bytes", THIS), "needed"),
                    "bytes",
                ),
                series(
                    "Retries",
                    "Jobs of this state that were resumed before, and how often in all. Jobs that come back again and again need a person.",
                    [
                        query(top("merritt_jobs_retried", THIS), "jobs resumed before"),
                        query(top("merritt_job_retries", THIS), "times in all"),
                    ],
                    "short",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    names = "label_values(merritt_jobs, state)"
    extra = variable("state", "State", names, "The state of jobs to look at.", start="provisioning")
    pages = {"Jobs in this state": "/jobs?state=${state}", "Failures": "/failures"}
    return board(
        "state",
        "queuekeeper / A state in depth",
        "What is in one state of jobs, how long it takes, and what comes in and goes out.",
        [(4, figures()), *curves()],
        pages,
        [extra],
        "$state on $job",
    )
