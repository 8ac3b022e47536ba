"""Every command that README, docs and help pages print runs as printed, on a package installed as the README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures import PICTURES, pictures
from tests.tour.journey import not_printed
from tests.tour.pages import blocks

PAGE = """\
# A page

```
qpubsub create QM1     # a comment
qpubsub encode --command Publish \\
    --topic a/b
```

<!-- exits 1: one message is damaged -->
```
$ qpubsub decode a.dat
...
1 message, 1 error
$ qpubsub decode b.dat
```

<!-- not run: needs IBM MQ -->

    qpubsub check --queues ibmmq://mq

```python
print(1)
```

    legacy programs ── qpubsub

```toml
qpubsub = "no command"
```
"""


def test_what_is_read_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    found = [
        (one.line, one.language, one.commands, one.not_run, one.exits)
        for one in blocks(tmp_path / "page.md", "page.md")
    ]
    created = ("qpubsub create QM1     # a comment", None)
    encoded = ("qpubsub encode --command Publish     --topic a/b", None)
    decoded = (("qpubsub decode a.dat", "...\n1 message, 1 error"), ("qpubsub decode b.dat", None))
    assert found == [
        (4, "sh", (created, encoded), None, 0),
        (11, "sh", decoded, None, 1),
        (19, "sh", (("qpubsub check --queues ibmmq://mq", None),), "needs IBM MQ", 0),
        (22, "python", (("print(1)", None),), None, 0),
    ]


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        ("a\nb", None),
        ("a\n...\nd", None),
        ("...\nc", None),
        ("a\nc", "a\nc"),
        ("a\n...\nx", "x"),
    ],
)
def test_what_a_page_says_is_printed(output: str, missing: str | None) -> None:
    assert not_printed(output, "a\nb  \nc\nd\n") == missing


@pytest.mark.parametrize("name", ["console.svg", "differences.svg", "tree.svg"])
def test_the_pictures_show_what_the_program_prints(name: str) -> None:
    assert (PICTURES / name).read_text() == pictures()[name], "write them again: python -m tests.pictures"
