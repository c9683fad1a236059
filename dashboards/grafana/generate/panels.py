"""Panels: what Grafana's classic schema wants of each kind, and nothing that is its default anyway."""

from words import AGES, STATES

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def query(expr, legend="", instant=False, shape="time_series"):
    """A query; `legend` may name labels as {{label}}."""
    target = {"datasource": SOURCE, "editorMode": "code", "expr": expr, "format": shape}
    target["legendFormat"] = legend or "__auto"
    target["instant"], target["range"] = instant, not instant
    if "$__interval" in expr:
        target["interval"] = "1m"
    return target


def steps(*pairs):
    """Thresholds: the colour from each value on, the first of them from below."""
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in pairs]}


def says(**texts):
    """Words in the place of numbers: `_1=("yes", colour)`."""
    options = {
        name.lstrip("_"): {"text": text, "color": color, "index": index}
        for index, (name, (text, color)) in enumerate(texts.items())
    }
    return [{"type": "value", "options": options}]


def link(title, url):
    """A way on from a value, to the status page (`/jobs`) or to another dashboard (`state?...`)."""
    if url.startswith("/"):
        return {"title": title, "url": "${url:raw}" + url, "targetBlank": True}
    keep = "${__url_time_range}&${datasource:queryparam}&${job:queryparam}&${url:queryparam}"
    board, _, rest = url.partition("?")
    return {"title": title, "url": f"/d/queuekeeper-{board}?{keep}" + (f"&{rest}" if rest else "")}


# From a series with the label state.
TO_STATE = link("This state in depth", "state?var-state=${__field.labels.state}")
TO_JOBS = link("The jobs in this state", "/jobs?state=${__field.labels.state}")


def fixed(names):
    """Overrides that give each series its colour by its name."""
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for name, color in names.items()
    ]


def dashed(name, color):
    """An override that draws a limit as a limit."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [
            {"id": "color", "value": {"mode": "fixed", "fixedColor": color}},
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "custom.stacking", "value": {"group": "A", "mode": "none"}},
        ],
    }


def panel(kind, title, description, queries, unit, width, **more):
    """What all kinds have."""
    queries = [queries] if isinstance(queries, dict) else queries
    defaults = {
        "unit": unit,
        "noValue": more.get("empty", "No data"),
        "thresholds": more.get("thresholds", steps((None, "text"))),
        "color": {"mode": more.get("color", "palette-classic")},
    }
    for name in ("mappings", "min", "max", "decimals", "custom", "links"):
        if name in more:
            defaults[name] = more[name]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": [{"refId": ref(index), **target} for index, target in enumerate(queries)],
        "fieldConfig": {"defaults": defaults, "overrides": more.get("overrides", [])},
        "options": more.get("options", {}),
        "transformations": more.get("transformations", []),
        "width": width,
    }


def ref(index):
    """A, B, C and so on; no panel has more than 26."""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[index]


def last(values=False):
    """Of a series, its last value."""
    return {"calcs": ["lastNotNull"], "fields": "", "values": values}


def stat(title, description, expr, unit, width=3, legend="", **more):
    """One figure, as it is now."""
    queries = expr if isinstance(expr, list) else query(expr, legend, instant=True)
    options = {
        "reduceOptions": last(),
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": more.pop("text", "auto"),
    }
    return panel("stat", title, description, queries, unit, width, options=options, color="thresholds", **more)


def colours(queries):
    """The colours that go with the names which the queries give their series."""
    names = {}
    for each in [queries] if isinstance(queries, dict) else queries:
        legend = each["legendFormat"]
        names.update(STATES if legend in ("{{state}}", "{{to}}") else AGES if legend == "{{age}}" else {})
        names.update({legend: STATES[legend]} if legend in STATES else {})
    return names


def series(title, description, queries, unit, width=12, stacked=False, events=False, names=None, overrides=(), **more):
    """Curves over time, or bars for `events`, which are few. States and ages have their colours by themselves."""
    custom = {
        "drawStyle": "bars" if events else "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if events else 25 if stacked else 8,
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked or events else "none"},
        "axisSoftMin": 0,
        "thresholdsStyle": {"mode": "dashed" if "thresholds" in more else "off"},
    }
    options = {
        "legend": {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    overrides = [*fixed(colours(queries) if names is None else names), *overrides]
    more.update(custom=custom, options=options, overrides=overrides)
    return panel("timeseries", title, description, queries, unit, width, **more)


def bars(title, description, queries, unit, width=12, **more):
    """A bar for each series, as it is now, in the order of the queries."""
    options = {
        "reduceOptions": last(),
        "displayMode": "gradient" if more.get("thresholds") else "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "minVizHeight": 10,
        "minVizWidth": 8,
        "valueMode": "color",
    }
    overrides = more.pop("overrides", fixed(colours(queries)))
    # Else the shortest bar would be drawn as if it were nothing.
    more.setdefault("min", 0)
    return panel("bargauge", title, description, queries, unit, width, options=options, overrides=overrides, **more)


def timeline(title, description, queries, width=12, **more):
    """What was so, and when: a line of time for each series."""
    options = {
        "showValue": "never",
        "mergeValues": True,
        "rowHeight": 0.8,
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    custom = {"lineWidth": 0, "fillOpacity": 70}
    more.update(custom=custom, options=options, color="thresholds")
    return panel("state-timeline", title, description, queries, "none", width, **more)


def heatmap(title, description, expr, unit, width=12, **more):
    """How a histogram's counts move over time."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "steps": 64,
            "exponent": 0.5,
            "reverse": False,
            "fill": "orange",
        },
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
    }
    return panel(
        "heatmap", title, description, query(expr, "{{le}}", shape="heatmap"), "short", width, options=options, **more
    )


def table(title, description, queries, unit, columns, width=12, **more):
    """A line for each series; `columns` says which labels and values there are, in their order and under which name. The
    queries have no other labels."""
    hidden = [name for name in ("Time", "Value") if name not in columns]
    organize = {
        "excludeByName": {name: True for name in hidden},
        "indexByName": {name: index for index, name in enumerate(columns)},
        "renameByName": columns,
    }
    options = {"showHeader": True, "cellHeight": "sm"}
    if "sort" in more:
        options["sortBy"] = [{"displayName": more["sort"], "desc": True}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False}
    transformations = [{"id": "merge", "options": {}}] if isinstance(queries, list) else []
    transformations.append({"id": "organize", "options": organize})
    more.update(custom=custom, options=options, color="thresholds", transformations=transformations)
    return panel("table", title, description, queries, unit, width, **more)
