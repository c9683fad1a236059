"""Actions that were requested by people, by programs and by rules for alerts."""

from panels import link, query, says, series, table, timeline
from words import BLUE, GREEN, GREY, ORANGE, RED, YELLOW, events, its

OUTCOMES = {
    "executed": GREEN,
    "resolved": "#96D98D",
    "dry_run": BLUE,
    "duplicate": GREY,
    "cooldown": "#A1887F",
    "no_match": "#6E7681",
    "nothing_to_do": "#8AB8FF",
    "paused": YELLOW,
    "budget": ORANGE,
    "not_synced": "#B877D9",
    "queue_full": "#FF85C0",
    "breaker_open": RED,
    "gave_up": "#C4162A",
    "failed": "#E02F44",
    "unknown": "#FA6400",
    "invalid": "#8F3BB8",
    "unauthorized": "#701313",
}
DONE = {
    "done": GREEN,
    "in_part": YELLOW,
    "dry_run": BLUE,
    "cancelled": GREY,
    "conflict": ORANGE,
    "failed": RED,
    "unknown": "#FA6400",
}
RULE = "queuekeeper_alert_rule_"
TO_RULES = link("Rules", "/rules")
TO_AUDIT = link("Audit trail", "/audit")


def of_actions():
    """Actions executed by operators, programs and rules."""
    actions = events("action, source", its("queuekeeper_actions_total", 'outcome!="dry_run"'))
    outcomes = events("outcome", its("queuekeeper_actions_total"))
    alerts = events("outcome", its("queuekeeper_alerts_total"))
    breaker, acted = its(RULE + "breaker_open"), its(RULE + "last_action_timestamp_seconds")
    return [
        (
            8,
            [
                series(
                    "Actions",
                    "Actions executed, by kind and source: an operator on the pages, a program through the API, or a rule on an alert. Dry runs are not counted. The Audit page shows who requested each, and why.",
                    query(actions, "{{action}} ({{source}})"),
                    "short",
                    decimals=0,
                    events=True,
                    empty="No actions",
                    links=[TO_AUDIT],
                ),
                series(
                    "Outcome of actions",
                    "Actions by outcome. `conflict`: the queue had changed in the meantime. `unknown`: the connection was lost; requesting the same action again is safe.",
                    query(outcomes, "{{outcome}}"),
                    "short",
                    names=DONE,
                    decimals=0,
                    events=True,
                    empty="No actions",
                    links=[TO_AUDIT],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Alerts received, by outcome",
                    "Decisions on the alerts of Alertmanager. `breaker_open`, `gave_up` and `failed` need an operator; `budget` and `cooldown` are the limits of the rules.",
                    query(alerts, "{{outcome}}"),
                    "short",
                    names=OUTCOMES,
                    decimals=0,
                    events=True,
                    empty="No alerts",
                    links=[TO_RULES],
                ),
                table(
                    "Rules, now",
                    "When each rule last acted, whether its breaker is open, how many items it may still change, and how many collections it holds. A rule that has never acted shows Never.",
                    [
                        query(f"max by (rule) ({metric})", instant=True, shape="table")
                        for metric in (f"{acted} * 1000", breaker, its(RULE + "budget_left"), its(RULE + "holds"))
                    ],
                    "short",
                    {
                        "rule": "Rule",
                        "Value #A": "Last action",
                        "Value #B": "Breaker",
                        "Value #C": "Budget left",
                        "Value #D": "Holds",
                    },
                    empty="No rules",
                    links=[TO_RULES],
                    overrides=[
                        {
                            "matcher": {"id": "byName", "options": "Last action"},
                            "properties": [
                                {"id": "unit", "value": "dateTimeFromNow"},
                                {"id": "noValue", "value": "Never"},
                            ],
                        },
                        {
                            "matcher": {"id": "byName", "options": "Breaker"},
                            "properties": [{"id": "mappings", "value": says(_0=("closed", GREEN), _1=("open", RED))}],
                        },
                    ],
                ),
            ],
        ),
        (
            6,
            [
                timeline(
                    "Breakers",
                    "When the breaker of a rule was open because the rule had exceeded its budget. The rule does nothing until an operator resets the breaker on the Rules page. This many actions at once usually have one cause: find it first.",
                    query(f"max by (rule) ({breaker})", "{{rule}}"),
                    width=6,
                    mappings=says(_0=("closed", GREEN), _1=("open", RED)),
                    empty="No rules",
                ),
                timeline(
                    "Leader",
                    "Of several queuekeepers that watch one queue, one executes the actions of rules. Without a leader none is executed: check that they are connected and have rules.",
                    query(its("queuekeeper_alert_actions_leader"), "{{instance}}"),
                    width=6,
                    mappings=says(_0=("standby", GREY), _1=("leader", GREEN)),
                ),
                timeline(
                    "Automatic action paused",
                    "When the znode /queuekeeper/paused existed, which stops all automatic action of all processes.",
                    query(its("queuekeeper_alert_actions_paused"), "{{instance}}"),
                    width=6,
                    mappings=says(_0=("on", GREEN), _1=("off", ORANGE)),
                ),
                series(
                    "Pending decisions",
                    "Decisions that were accepted and are not executed yet, of all queuekeepers. They should be executed within seconds; if they are not, automatic action is paused or there is no leader.",
                    query(its("queuekeeper_alert_decisions_pending"), "{{instance}}"),
                    "short",
                    width=6,
                    decimals=0,
                ),
            ],
        ),
    ]
