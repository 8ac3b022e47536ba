"""Calls for asyncio: other tasks go on meanwhile, and a task that is cancelled takes no message with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from commands.client.asynchronous import QueueManager, connect_async
from commands.client.errors import MqError
from tests.waiting import PATIENCE_S

Program = Callable[[QueueManager], Awaitable[None]]


def run(url: str, program: Program) -> None:
    async def connected() -> None:
        async with await connect_async(url) as qmgr:
            await asyncio.wait_for(program(qmgr), PATIENCE_S)

    asyncio.run(connected())


async def _put_and_got(qmgr: QueueManager) -> None:
    queue = qmgr.queue("Q")
    await qmgr.put("Q", "one")
    async with qmgr.unit_of_work():
        await queue.put("two", properties={"Colour": "red"})
    assert [(m.text, dict(m.properties)) async for m in queue.messages()] == [("one", {}), ("two", {"Colour": "red"})]
    assert await queue.get(0.7) is None


async def _backed_out(qmgr: QueueManager) -> None:
    queue = qmgr.queue("Q")
    await queue.put("stays")

    async def fails() -> None:
        async with qmgr.unit_of_work():
            assert await queue.get() is not None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
    got = await queue.get()
    assert got is not None
    assert got.text == "stays"


async def _others_go_on(qmgr: QueueManager) -> None:
    waiting, went_on = asyncio.create_task(qmgr.queue("Q").get(20)), 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        went_on += 1
        if went_on == 20:
            await qmgr.put("Q", "at last")
    got = waiting.result()
    assert got is not None
    assert got.text == "at last"


async def _cancelled(qmgr: QueueManager) -> None:
    """While a message comes: it is what the next get gives."""
    queue = qmgr.queue("Q")

    def slow() -> None:
        time.sleep(0.2)

    before = asyncio.create_task(qmgr.do(slow))
    await asyncio.sleep(0)
    get = asyncio.create_task(queue.get(5))
    await asyncio.sleep(0)
    await asyncio.shield(before)
    get.cancel()
    await qmgr.put("Q", "nobody's")
    with pytest.raises(asyncio.CancelledError):
        await get
    got = await queue.get()
    assert got is not None
    assert got.text == "nobody's"


async def _cancelled_after_it_came(qmgr: QueueManager) -> None:
    queue = qmgr.queue("Q")
    await queue.put("got, and not given")
    get = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    get.cancel()
    with pytest.raises(asyncio.CancelledError):
        await get
    assert qmgr.blocking.queue("Q").get() is None
    got = await queue.get()
    assert got is not None
    assert got.text == "got, and not given"


async def _subscribed(qmgr: QueueManager) -> None:
    async with qmgr.subscribe("Sport/#") as publications:
        await qmgr.publish("Sport/Soccer", "1 0")
        got = await publications.get(10)
        assert got is not None
        assert got.text == "1 0"


async def _refused(qmgr: QueueManager) -> None:
    with pytest.raises(MqError, match="2085"):
        await qmgr.queue("NONE").get()


PROGRAMS = (_put_and_got, _backed_out, _others_go_on, _cancelled, _cancelled_after_it_came, _subscribed, _refused)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_a_program(url: str, program: Program) -> None:
    run(url, program)
