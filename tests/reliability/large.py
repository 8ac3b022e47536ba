"""Inputs that are large, or whose cost grows faster than they do: each made from a few words, and bounded in time.

The bound is processor time: some times what the input costs where cost grows as size does, and far below what it costs
where it grows as the square. ``tests.reliability.growth`` measures the growth itself.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from commands import parse
from commands.explain.reading import explained
from rfh2 import CapturedMessage, Folder, Mqmd, QPubSubError, Rfh2, decode
from rfh2.captures import read_captures
from streams import parse_topic_pattern
from streams.blocking import NO_BLOCKS
from streams.index import SubscriptionIndex
from streams.selectors import compile_selector
from streams.subscriptions import Subscription, WildcardScheme
from tests.reliability.figures import Table
from tests.reliability.trials import Json, Tally, Target, attempt

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MD: Final = Mqmd(format="MQHRF2", user_identifier="app")


def _message(*folders: str) -> bytes:
    return Rfh2(tuple(Folder.of(text) for text in folders)).encode()


def _parsed(body: bytes) -> None:
    with contextlib.suppress(QPubSubError):
        parse(decode(body, _MD))


def _read(text: bytes, form: str) -> None:
    for _ in read_captures(io.BytesIO(text), form, name="case"):
        pass


def _unclosed_tag(size: int) -> None:
    _parsed(_message("<mcd/><psc><Command>Publish</Command></psc><" + "a" * size))


def _open_tags(size: int) -> None:
    _parsed(_message("<mcd/><psc><Command>Publish</Command></psc>" + "<a " * size))


def _many_topics(count: int) -> None:
    _parsed(_message(f"<psc><Command>Publish</Command>{''.join(f'<Topic>t/{n}</Topic>' for n in range(count))}</psc>"))


def _many_folders(count: int) -> None:
    body = _message(*["<usr><a>1</a></usr>"] * count, "<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    _parsed(body)


def _many_attributes(count: int) -> None:
    attributes = " ".join(f"a{n}='1'" for n in range(count))
    body = _message(f"<psc><Command {attributes}>Publish</Command></psc>")
    _parsed(body)
    explained(CapturedMessage(seq=1, queue="Q", md_hex=_MD.encode().hex(), body_hex=body.hex()))


def _many_references(count: int) -> None:
    _parsed(_message("<psc><Command>Publish</Command><Topic>" + "&amp;" * count + "</Topic></psc>"))


def _char_patterns(count: int) -> None:
    index = SubscriptionIndex()
    for n in range(1, count + 1):
        text = f"*{'a' * n}b*c"
        made = {"dest_qmgr": "QM1", "dest_queue": "Q", "created": _NOW, "wildcard": WildcardScheme.CHAR}
        index.add(Subscription(n.to_bytes(24, "big"), text, **made), NO_BLOCKS)  # type: ignore[arg-type]
    assert index.match("a" * 10_000) == ()


def _wild_levels(count: int) -> None:
    pattern = parse_topic_pattern("/".join(["#", "a"] * count))
    pattern.matches("/".join(["a"] * 5_120))


def _like(size: int) -> None:
    selector = compile_selector(f"a LIKE '%{'a' * size}b%' AND b IS NULL")
    values = {"usr.a": "a" * 100 * size}
    assert not selector.matches(values.get)


def _qload_name(size: int) -> None:
    _read(b"* Queue = a" + b" " * size + b"b\nN\nX 00\n", "qload")


def _qload_data(size: int) -> None:
    _read(b"* Queue = a\nN\nX " + b" " * size + b"g\n", "qload")


def _amqsbcg_quotes(size: int) -> None:
    _read(b"****Message descriptor****\n\n  a : " + b"'' b : ' b : " * (size // 13) + b"\n", "amqsbcg")


RECIPES: Final[dict[str, tuple[Callable[[int], None], int]]] = {
    "unclosed-tag": (_unclosed_tag, 100_000),
    "open-tags": (_open_tags, 30_000),
    "many-topics": (_many_topics, 100_000),
    "many-folders": (_many_folders, 30_000),
    "many-attributes": (_many_attributes, 80_000),
    "many-references": (_many_references, 400_000),
    "char-patterns": (_char_patterns, 400),
    "wild-levels": (_wild_levels, 2_500),
    "like": (_like, 5_000),
    "qload-name": (_qload_name, 100_000),
    "qload-data": (_qload_data, 100_000),
    "amqsbcg-quotes": (_amqsbcg_quotes, 260_000),
}


ALLOWED_S: Final = 10.0


def _made(random: Random) -> Json:
    name = random.choice(sorted(RECIPES))
    return {"recipe": name, "size": RECIPES[name][1]}


def _bounded(case: Any) -> str:
    RECIPES[case["recipe"]][0](case["size"])
    return str(case["recipe"])


TARGETS: Final = (
    Target("large", "inputs whose cost could grow as the square of their size", _made, _bounded, 12, ALLOWED_S),
)


def all_recipes() -> Table:
    """Each of them once."""
    rows, broken = [], []
    for name, (_, size) in RECIPES.items():
        tally = Tally(name)
        failure = attempt(TARGETS[0], {"recipe": name, "size": size}, tally)
        rows.append(
            (name, f"{size:,}", f"{tally.slowest_s:.2f} s" if failure is None else f"> {tally.slowest_s:.0f} s")
        )
        if failure is not None:
            broken.append(f"{name}: {failure.why}")
    return Table("Large inputs", ("input", "size", "processor time"), rows, broken)
