"""A replay on a terminal, forwards and backwards: the messages, the result of one, what it changed, and the state.

It shows what ``commands.replay.step.views`` says, and decides nothing. Textual is an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, Static, TabbedContent, TabPane

from commands.explain.selection import SelectionError, Where, compile_where
from commands.replay.step.state import SnapshotError, StepState
from commands.replay.step.timeline import Timeline
from commands.replay.step.views import change_lines, queue_lines, retained_lines, step_lines, subscription_lines
from commands.terminal.counted import counted
from rfh2.terminal_escape import visible

_AROUND: Final = 100
"""So many messages before and behind the present one are in the list."""
_MOST_LINES: Final = 1_000
_KEYS: Final = """\
n → next message    p ← the one before    home, end    g  go to a number
b  stop where a condition is true    c, r  to a stop    x  no stops
s  state before or after the message    tab, enter  choose a tab    q  quit"""


class StepApp(App[None]):
    """The terminal. label: what the capture is called. breakpoints: conditions at which it stops."""

    CSS = """
    #where { height: 1; background: $primary; color: $text; }
    #list { width: 2fr; max-width: 42; border-right: solid $primary; }
    #list Static { width: auto; }
    TabPane { padding: 0 1; }
    #tabs { width: 3fr; }
    #input { dock: bottom; display: none; }
    #said { height: auto; max-height: 4; color: $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,n,j", "forward", "Next", key_display="→", priority=True),
        Binding("left,p,k", "backward", "Back", key_display="←", priority=True),
        Binding("c", "continue", "Continue"),
        Binding("r", "reverse", "Reverse"),
        Binding("b", "ask_breakpoint", "Break"),
        Binding("x", "clear", "No breakpoints", show=False),
        Binding("g", "ask_number", "Go to"),
        Binding("s", "before", "Before", show=False),
        Binding("home", "first", "First", show=False, priority=True),
        Binding("end", "last", "Last", show=False, priority=True),
        Binding("escape", "dismiss_input", "Close", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None

    def __init__(self, timeline: Timeline, label: str, breakpoints: Sequence[Where] = ()) -> None:
        super().__init__()
        self.timeline, self.label = timeline, label
        self.breakpoints = list(breakpoints)
        self.at = 0
        self.shows_before = False
        self.said = ""
        self._asks = ""

    def compose(self) -> ComposeResult:
        yield Static("", id="where", markup=False)
        with Horizontal():
            with VerticalScroll(id="list"):
                yield Static("", id="messages", markup=False)
            with TabbedContent(id="tabs"):
                for name, title in (
                    ("step", "Message"),
                    ("subscriptions", "Subscriptions"),
                    ("retained", "Retained"),
                    ("queues", "Queues"),
                ):
                    with TabPane(title, id=f"tab-{name}"), VerticalScroll():
                        yield Static("", id=name, markup=False)
        yield Static("", id="said", markup=False)
        yield Input(id="input", disabled=True)
        yield Footer()

    def on_mount(self) -> None:
        if self.breakpoints:
            self.action_first_stop()
        self.refresh_views()

    def on_resize(self) -> None:
        self.call_after_refresh(self.refresh_views)

    # Moving

    def action_forward(self) -> None:
        """To the next message."""
        self._go(self.at + 1, "this is the last message")

    def action_backward(self) -> None:
        """To the message before."""
        self._go(self.at - 1, "this is the first message")

    def action_first(self) -> None:
        """To the first message."""
        self._go(0, "")

    def action_last(self) -> None:
        """To the last message."""
        self._go(len(self.timeline) - 1, "")

    def action_first_stop(self) -> None:
        """To the first message at which a breakpoint stops, which may be the first one."""
        self._to_stop(self.timeline.next_stop(-1, self.breakpoints))

    def action_continue(self) -> None:
        """To the next message at which a breakpoint stops."""
        if self._has_breakpoints():
            self._to_stop(self.timeline.next_stop(self.at, self.breakpoints))

    def action_reverse(self) -> None:
        """To the last message before this one at which a breakpoint stops."""
        if self._has_breakpoints():
            self._to_stop(self.timeline.previous_stop(self.at, self.breakpoints))

    def _has_breakpoints(self) -> bool:
        if not self.breakpoints:
            self._say("there is no breakpoint: b makes one")
        return bool(self.breakpoints)

    def _to_stop(self, at: int | None) -> None:
        if at is None:
            self._say("no further message is at a breakpoint")
        else:
            self._go(at, "")

    def _go(self, at: int, else_say: str) -> None:
        if not 0 <= at < len(self.timeline):
            self._say(else_say)
            return
        self.at, self.said = at, ""
        self.refresh_views()

    def action_before(self) -> None:
        """Show the state before the message instead of the one after it, or the reverse."""
        self.shows_before = not self.shows_before
        self.refresh_views()

    def action_help(self) -> None:
        """Say what each key does."""
        self._say(_KEYS)

    # Asking

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a person types, arrows and letters are what they type."""
        return action in ("dismiss_input", "quit") or not self._asks or action.startswith("app.")

    def action_ask_breakpoint(self) -> None:
        """Ask for a condition."""
        self._ask("breakpoint", "stop where: reason = 3072    topic like 'Sport/%'    queue = 'BOARD'")

    def action_ask_number(self) -> None:
        """Ask for a number."""
        seqs = self.timeline.seqs
        self._ask("number", "seq" if seqs is None else f"seq, {seqs[0]} to {seqs[1]}")

    def _ask(self, what: str, hint: str) -> None:
        self._asks = what
        asking = self.query_one("#input", Input)
        asking.placeholder, asking.value, asking.disabled = hint, "", False
        asking.display = True
        asking.focus()

    def action_dismiss_input(self) -> None:
        """Ask no longer."""
        self._asks = ""
        asking = self.query_one("#input", Input)
        asking.display, asking.disabled = False, True
        self.set_focus(None)

    def action_clear(self) -> None:
        """Remove all breakpoints."""
        self.breakpoints.clear()
        self._say("there are no breakpoints")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What a person typed."""
        asked, text = self._asks, event.value.strip()
        self.action_dismiss_input()
        if asked == "number":
            at = self.timeline.position_of(int(text)) if text.isascii() and text.isdecimal() else None
            if at is None:
                self._say(f"no message has the number {visible(text)}")
            else:
                self._go(at, "")
        elif text:
            try:
                self.breakpoints.append(compile_where(text))
            except SelectionError as error:
                self._say(error.pointed)
                return
            self._say(f"{counted(len(self.breakpoints), 'breakpoint')}: c goes to the next one, r back")

    # Showing

    def _say(self, text: str) -> None:
        self.said = text
        self.query_one("#said", Static).update(text)

    def refresh_views(self) -> None:
        """Show the present message."""
        try:
            self._show()
        except SnapshotError as error:
            self._say(str(error))

    def _show(self) -> None:
        line, at = self.timeline, self.at
        if not len(line):
            self._put("where", f" {self.label}: no messages")
            return
        step = line.step(at)
        which = "before" if self.shows_before else "after"
        stops = f", {counted(len(self.breakpoints), 'breakpoint')}" if self.breakpoints else ""
        self._put("where", visible(f" {self.label}: message {at + 1:,} of {len(line):,}; state {which} it{stops}"))
        lines = [*step_lines(at, len(line), step), "", "Changed:", *change_lines(step.changes, _MOST_LINES)]
        self._put("step", "\n".join(lines))
        state: StepState = line.before(at) if self.shows_before else line.after(at)
        self._put("subscriptions", "\n".join(subscription_lines(state, _MOST_LINES)) or "no subscription")
        self._put("retained", "\n".join(retained_lines(state, _MOST_LINES)) or "nothing retained")
        self._put("queues", "\n".join(queue_lines(state, _MOST_LINES)) or "no message was put")
        self._put("messages", "\n".join(self._messages()))
        self._put("said", self.said)
        first = max(0, at - _AROUND)
        self.query_one("#list", VerticalScroll).scroll_to(y=max(0, at - first - 8), animate=False)

    def _messages(self) -> list[str]:
        """The messages around the present one, with a mark at it."""
        lines = []
        for at in range(max(0, self.at - _AROUND), min(len(self.timeline), self.at + _AROUND + 1)):
            facts = self.timeline.facts(at)
            mark = ">" if at == self.at else " "
            reason = f" {facts.reason}" if facts.reason else ""
            topic = facts.topics[0] if facts.topics else facts.queues[0] if facts.queues else ""
            about = visible(f"{mark} {facts.seq} {facts.command or '?'}{reason} ")
            topic, room = visible(topic), max(8, self.query_one("#list").scrollable_content_region.width - len(about))
            # Topics differ at the end.
            lines.append(about + (topic if len(topic) <= room else f"...{topic[3 - room :]}"))
        return lines

    def _put(self, name: str, text: str) -> None:
        self.query_one(f"#{name}", Static).update(text)
