"""How long will a new deposit take?"""

from panels import dashed, heatmap, query, series, stat
from words import RED, WORKING, of, shared_quantile, top

JOB, BATCH = "merritt_job_completion_duration_seconds", "merritt_batch_completion_duration_seconds"
TARGET = "The target is at the top of recording.yml."


def in_time(item, window):
    """The share of what was completed within a window that kept the target."""
    this = 'item="' + item + '"'
    return "1 - " + top(f"merritt:completion_late:ratio_rate{window}", this)


def figures():
    """Single figures."""
    took = "from the creation of {} to completion, of those completed within the last six hours. Estimated from the histogram's buckets."
    return [
        stat(
            "Forecast",
            "How long a new job takes if as many are completed as within the last hour: jobs under way divided by the rate of completion. Compare it with the actual times, below.",
            top("merritt:completion:forecast_seconds"),
            "s",
            width=4,
            empty="None completed",
        ),
        stat(
            "Jobs, median",
            "Median of the time " + took.format("a job"),
            shared_quantile(0.5, JOB, "6h"),
            "s",
            width=4,
        ),
        stat(
            "Jobs, 95 %",
            "95th percentile of the time " + took.format("a job"),
            shared_quantile(0.95, JOB, "6h"),
            "s",
            width=4,
        ),
        stat(
            "Batches, 95 %",
            "95th percentile of the time " + took.format("a batch"),
            shared_quantile(0.95, BATCH, "6h"),
            "s",
            width=4,
        ),
        stat(
            "Jobs in time",
            "The share of the jobs completed within three days that met their target. " + TARGET,
            in_time("job", "3d"),
            "percentunit",
            width=4,
            empty="None completed",
        ),
        stat(
            "Batches in time",
            "The share of the batches completed within three days that met their target. " + TARGET,
            in_time("batch", "3d"),
            "percentunit",
            width=4,
            empty="None completed",
        ),
    ]


def by_state(title, part, description):
    """Where jobs spend their time, state by state."""
    return series(
        title,
        f"{description}: 90th percentile of the jobs that left each state within the last hour. Estimated from the histogram's buckets.",
        query(
            shared_quantile(0.9, f"merritt_job_state_{part}_duration_seconds", "1h", WORKING, by=["state"]), "{{state}}"
        ),
        "s",
        empty="No job left a state",
    )


def rows():
    """The panels."""
    done = of(JOB + "_bucket")
    since_last = f"max by (le) (clamp_min({done} - {done} offset $__interval, 0))"
    quantiles = [
        query(shared_quantile(share, histogram, "6h"), f"{name} {percentile}")
        for histogram, name in ((JOB, "jobs"), (BATCH, "batches"))
        for share, percentile in ((0.5, "p50"), (0.95, "p95"))
    ]
    return [
        (4, figures()),
        (
            9,
            [
                by_state(
                    "Waiting for a daemon", "wait", "Time from entering a state to the lock of the daemon that works on it"
                ),
                by_state("Work of the daemons", "work", "Time from the lock of a daemon to leaving the state"),
            ],
        ),
        (
            9,
            [
                series(
                    "Time to completion",
                    "Time from the creation of a job or a batch to completion, of those completed within the last six hours: median and 95th percentile.",
                    quantiles,
                    "s",
                ),
                series(
                    "Forecast and actual time",
                    "The forecast at each moment, and the average time of the jobs completed within the hour before. The forecast was good if the curve of actual times has the same value one forecast later.",
                    [
                        query(top("merritt:completion:forecast_seconds"), "forecast"),
                        query(top("merritt:completion:mean_seconds"), "came"),
                    ],
                    "s",
                    empty="No rules, or none completed",
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Completed in time",
                    "The share of the jobs and batches completed within three days that met their target, and the objective. An alert fires when the budget for the rest is used up too fast. "
                    + TARGET,
                    [
                        query(in_time("job", "3d"), "jobs"),
                        query(in_time("batch", "3d"), "batches"),
                        query("1 - min(merritt:completion_late:budget)", "objective"),
                    ],
                    "percentunit",
                    max=1,
                    overrides=[dashed("objective", RED)],
                    empty="No rules, or none completed",
                ),
                heatmap(
                    "Time to completion of jobs, distribution",
                    "How many jobs took how long from creation to completion.",
                    since_last,
                    "s",
                    empty="None completed",
                ),
            ],
        ),
    ]
