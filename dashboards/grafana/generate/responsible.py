"""Which collection or cause is responsible?"""

from panels import bars, dashed, link, query, series
from words import PATH, RED, of, state, top

UNFINISHED = state(*PATH, "failed", "held", "other")
TO_COLLECTION = link("Jobs of this collection", "/jobs?collection=${__field.labels.collection}")
TO_FAILURES = link("Failures", "/failures")


def by_collection(*matchers):
    """The jobs of the largest collections; those of all others are one of them."""
    return f"sum by (collection) ({top('merritt_collection_jobs', *matchers, by='collection, state')})"


def rows():
    """The panels."""
    failures = of("merritt_job_failures_total")
    return [
        (
            9,
            [
                series(
                    "Unfinished jobs by collection",
                    "Jobs that are neither completed nor deleted, of the collections that have most of them; all others are shown as overflow.",
                    query(by_collection(UNFINISHED), "{{collection}}"),
                    "short",
                    stacked=True,
                    empty="Set --metrics.collections",
                    links=[TO_COLLECTION],
                ),
                series(
                    "Failed jobs by collection",
                    "Failed jobs of the collections that have most unfinished jobs; all others are shown as overflow.",
                    query(by_collection(state("failed")) + " > 0", "{{collection}}"),
                    "short",
                    stacked=True,
                    empty="No job is Failed",
                    links=[TO_COLLECTION],
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Failures by cause",
                    "Jobs that failed within the hour before, by the cause that their message names. One cause that rises for all collections is outside the queue; one collection with one cause is its depositor's.",
                    query(f"max by (cause) (increase({failures}[1h])) > 0", "{{cause}}"),
                    "short",
                    width=8,
                    decimals=0,
                    stacked=True,
                    empty="No job failed",
                    links=[TO_FAILURES],
                ),
                bars(
                    "Failed jobs by cause, now",
                    "Failed jobs that wait for an operator, by the cause that their message names. The Failures page groups them by message.",
                    query(top("merritt_jobs_failed", by="cause") + " > 0", "{{cause}}", instant=True),
                    "short",
                    width=8,
                    overrides=[],
                    empty="No job is Failed",
                    links=[TO_FAILURES],
                ),
                series(
                    "Failure ratio of jobs that finished within the hour",
                    "The fraction that failed. Many failures at once usually have one cause outside the queue; resumed before it is fixed, the jobs fail again.",
                    [query(top("merritt:failure_ratio:1h"), "failed"), query("max(merritt:failure_ratio:limit)", "limit")],
                    "percentunit",
                    width=8,
                    min=0,
                    overrides=[dashed("limit", RED)],
                    empty="No rules, or no job has finished",
                ),
            ],
        ),
    ]
