"""What a topic space keeps for its filters changes no answer."""

from __future__ import annotations

from hypothesis import given, strategies as st

from commands.broker.selection import Selection
from rfh2 import Folder, Message, Mqmd, Rfh2
from streams.operations import Publication
from streams.selectors import compile_selector, message_properties
from tests.commands.scenario import KICK_OFF, Scenario

MESSAGES = [Message(Mqmd(), (Rfh2((Folder.of(f"<usr><n>{n}</n></usr>"),)),)) for n in (1, 2, 1)]
FILTERS = ["n = '1'", "n = '2'", "NOT n = '1'", "m IS NULL"]


@given(st.lists(st.tuples(st.sampled_from(MESSAGES), st.sampled_from(FILTERS)), max_size=30))
def test_kept_properties_select_as_properties_read_anew(asked: list[tuple[Message, str]]) -> None:
    world = Scenario()
    for number, text in enumerate(FILTERS):
        world.register("a", tags=[("Filter", text)], reply_to=f"Q{number}")
    subscriptions = {s.selector: s for s in world.subscriptions}
    selection = Selection()
    for message, text in asked:
        plain = compile_selector(text).matches(message_properties(message))
        assert selection(subscriptions[text], Publication(message, KICK_OFF), "a") is plain
