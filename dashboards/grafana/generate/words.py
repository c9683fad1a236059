"""States, their colours, and the selectors that all queries share."""

# The success path, in its order.
PATH = ["pending", "estimating", "provisioning", "downloading", "processing", "storing", "recording", "notify"]

# One colour for a state, whichever panel it is in and whether a job, a batch or a request is in it.
STATES = {
    "pending": "#8F9BB3",
    "estimating": "#B877D9",
    "provisioning": "#FF9830",
    "downloading": "#5794F2",
    "processing": "#1FA3B5",
    "storing": "#3D5AFE",
    "recording": "#A1887F",
    "notify": "#C0D860",
    "reporting": "#C0D860",
    "update-reporting": "#9DB34A",
    "completed": "#56A64B",
    "failed": "#E02F44",
    "held": "#F2CC0C",
    "deleted": "#6E7681",
    "other": "#FF85C0",
}

# Time in a state or age of a lock, youngest first.
AGES = {
    "1m": "#96D98D",
    "10m": "#56A64B",
    "1h": "#5794F2",
    "6h": "#F2CC0C",
    "1d": "#FF9830",
    "older": "#E02F44",
}

GREEN, YELLOW, ORANGE, RED, GREY, BLUE = "#56A64B", "#F2CC0C", "#FF9830", "#E02F44", "#8F9BB3", "#5794F2"

# The faults that starve what is behind them, as the alert MerrittQueueHeadBlocked has them.
BLOCKING = (
    "orphan_entry|unloadable_job|unloadable_batch|unloadable_request|unfinished_creation"
    "|priority_out_of_range|deleted_batch_blocks_reporting"
)

# Alerts of our rules that fire, but for those that are for scaling. One on a queuekeeper that is not there has no instance.
FIRING = 'ALERTS{alertstate="firing",severity!="info",' 'alertname=~"Merritt.*|Queuekeeper.*",instance=~"$instance|"}'

# What was ordered, but for what was only tried.
ORDERS = 'queuekeeper_actions_total{instance=~"$instance",outcome!="dry_run"}'


def of(metric, *matchers):
    """A metric of the instances that are shown."""
    return metric + "{" + ",".join(['instance=~"$instance"', *matchers]) + "}"


def state(*names):
    """A matcher for states."""
    return f'state=~"{"|".join(names)}"' if len(names) > 1 else f'state="{names[0]}"'


WORKING = state(*PATH)


def age(metric, *matchers):
    """How long ago an instant was, in seconds."""
    return f"time() - {of(metric, *matchers)}"


def per_minute(by, metric, *matchers):
    """How many of something happen in a minute."""
    return f"sum by ({by}) (rate({of(metric, *matchers)}[$__rate_interval])) * 60"


def quantile(share, by, histogram, *matchers):
    """A quantile of what was seen within the interval."""
    rate = f"rate({of(histogram + '_bucket', *matchers)}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by ({', '.join([*by, 'le'])}) ({rate}))"
