"""The report as one page: no script, no style and no picture from anywhere else; it opens without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from migrate.log import printable

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1d232a; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #cfd6dd; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; vertical-align: top; }
tr:nth-child(even) { background: #f4f6f8; } th { border-bottom: 2px solid #cfd6dd; } td.n { text-align: right; }
.reported { color: #a11; } .changed { color: #95610a; } .migrated { color: #176b37; }
.error { color: #a11; font-weight: 600; } .warning { color: #95610a; } .info { color: #555; }
pre { background: #f4f6f8; padding: .8rem; overflow-x: auto; }
.trees { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
summary { cursor: pointer; } td { overflow-wrap: anywhere; }
"""


def page(facts: dict[str, Any]) -> str:
    """The whole page."""
    title = f"{facts['tool']}: {facts['broker']} to {facts['qmgr']}"
    body = "\n".join(_body(facts, title))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _body(facts: dict[str, Any], title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f"<p>{escape(facts['phase'])} phase, {escape(facts['at'])}, fingerprint {escape(facts['fingerprint'])}</p>"
    yield "<h2>Items</h2>"
    rows = [
        (kind, *(str(verdicts[v]) for v in ("migrated", "changed", "reported")))
        for kind, verdicts in facts["by_kind"].items()
    ]
    counts = facts["counts"]
    rows.append((f"all {facts['items']}", *(str(counts[v]) for v in ("migrated", "changed", "reported"))))
    yield from _table(("", "migrated", "changed", "reported"), rows)
    if facts["warnings"]:
        yield "<h2>Of the whole</h2><ul>"
        yield from (f"<li>{_reason(reason)}</li>" for reason in facts["warnings"])
        yield "</ul>"
    yield from _fates(facts)
    yield "<h2>Known problems and differences</h2>"
    yield from _table(
        ("", "what", "what to do", "times"),
        [
            (p["id"], p["title"], p["advice"], "kept away" if p["cared_for"] else str(p["count"]))
            for p in facts["problems"]
        ],
    )
    yield from _views(facts)
    yield '<h2>Topic tree</h2><div class="trees">'
    for word in ("before", "after"):
        yield f"<div><h3>{word}</h3><pre>{escape(chr(10).join(facts['tree'][word]))}</pre></div>"
    yield "</div>"
    if facts["security"]:
        yield f"<h2>Security commands</h2><pre>{escape(chr(10).join(facts['security']))}</pre>"


def _fates(facts: dict[str, Any]) -> Iterator[str]:
    for verdict in ("reported", "changed", "migrated"):
        listed = [fate for fate in facts["fates"] if fate["verdict"] == verdict]
        yield f'<h2 class="{verdict}">{verdict.capitalize()} ({len(listed)})</h2>'
        is_open = " open" if verdict != "migrated" and len(listed) <= 200 else ""
        yield f"<details{is_open}><summary>show</summary><table>"
        yield "<tr><th>item</th><th>source</th><th>becomes</th><th>why</th></tr>"
        for fate in listed:
            reasons = "<br>".join(_reason(reason) for reason in fate["reasons"])
            cells = (printable(fate["label"]), fate["source"], printable(fate["becomes"]))
            yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{reasons}</td></tr>"
        yield "</table></details>"


def _views(facts: dict[str, Any]) -> Iterator[str]:
    if facts["visibility"]:
        yield "<h2>Subscriptions that see other topics</h2>"
        yield from _table(
            ("subscription", "pattern", "more", "less"),
            [
                (
                    f"[{view['subscription']}]",
                    printable(view["pattern"]),
                    _some(view["gained"], view["gained_count"]),
                    _some(view["lost"], view["lost_count"]),
                )
                for view in facts["visibility"]
            ],
        )
    if facts["collisions"]:
        yield "<h2>Topics that were apart and are one now</h2>"
        rows = [
            (printable(c["topic_string"]), "; ".join(f"{stream}: {topic}" for stream, _, topic in c["topics"]))
            for c in facts["collisions"]
        ]
        yield from _table(("topic string", "from"), rows)


def _some(topics: list[str], count: int) -> str:
    more = f", ... ({count})" if count > len(topics) else ""
    return ", ".join(map(printable, topics)) + more


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table>"


def _reason(reason: dict[str, Any]) -> str:
    ids = f" [{' '.join(reason['ids'])}]" if reason["ids"] else ""
    text = escape(printable(reason["text"]) + ids)
    return f'<span class="{escape(reason["severity"])}">{text}</span>'
