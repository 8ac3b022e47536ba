"""Asks a running version 6 broker for its state, by metatopics, and collects the answers (guide 7.5; ``extract``).

First the administration stream: which streams there are. Then each stream: subscribers, publishers, retained
publications. One question at a time, so that its answers are what arrives until its response. The answers to each are
kept in a directory: if a run is interrupted, or the broker refuses a question, the next run asks only what is missing.
The result is a capture, which ``strmqbrk`` reads.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from commands.broker.objects import ADMIN_STREAM
from commands.disk.files import make_directory, private, put_in_place, to_disk
from commands.qmgr.store.messages import StoredMessage
from migrate.contents import disk
from migrate.extract import Question, asking, questions_about_streams, questions_on_streams
from migrate.legacy_state import Source, Stream
from migrate.live.loading import Messages, answers_until_response
from migrate.readers import metatopics
from rfh2.captured import CapturedMessage
from rfh2.constants import MQRCCF_NO_RETAINED_MSG, MQRCCF_NOT_REGISTERED
from rfh2.errors import MigrationError, QPubSubError
from streams.topic_objects import DEFAULT_STREAM

# Nothing is retained: that is an answer.
_NO_ERRORS: Final = frozenset({0, MQRCCF_NO_RETAINED_MSG})


@dataclass(slots=True)
class Interrogation:
    """One run. clock: UTC. wait_s: for each answer. say: called with what is asked. work: where answers are kept."""

    messages: Messages
    qmgr: str
    reply_queue: str
    work: Path
    wait_s: float
    clock: Callable[[], datetime]
    say: Callable[[str], None]

    def ask(self, streams: tuple[str, ...]) -> list[CapturedMessage]:
        """All answers, numbered in order. streams: those to ask about besides what the broker says.

        Raises MigrationError where a question was refused or not answered; the others need not be asked again.
        """
        with disk(self.work):
            make_directory(self.work)
        about = [answer for question in questions_about_streams(self.qmgr) for answer in self._answers(question)]
        found = [name for name in _streams_in(about) if name not in (DEFAULT_STREAM, ADMIN_STREAM)]
        if not found and not any(_is_metatopic(message) for message in about):
            why = "it publishes nothing on metatopics: it is not a version 6 broker. Run extract without --metatopics"
            raise MigrationError(f"queue manager {self.qmgr}: {why}")
        refused: list[str] = []
        answers = list(about)
        for question in questions_on_streams(self.qmgr, (*found, *streams)):
            try:
                answers += self._answers(question)
            except MigrationError as error:
                refused.append(str(error))
        if refused:
            raise MigrationError(f"{'; '.join(refused)}. Run the same command again: it asks only this once more")
        return [answer.model_copy(update={"seq": number}) for number, answer in enumerate(answers, 1)]

    def forget(self) -> None:
        """The answers are in the result: discard the directory."""
        shutil.rmtree(self.work, ignore_errors=True)

    def _answers(self, question: Question) -> list[CapturedMessage]:
        file = self.work / _file_name(question)
        if file.exists():
            lines = file.read_text(encoding="utf-8").splitlines()
            return [CapturedMessage.model_validate_json(line) for line in lines]
        self.say(f"{question.what} of {question.stream}")
        found = self._asked(question)
        partial = file.with_suffix(".partial")
        with disk(file):
            with open(partial, "w", encoding="utf-8", opener=private) as stream:
                stream.writelines(f"{answer.model_dump_json()}\n" for answer in found)
                to_disk(stream)
            put_in_place(partial, file)
        return found

    def _asked(self, question: Question) -> list[CapturedMessage]:
        self._drain()
        found: list[CapturedMessage] = []

        def take(message: StoredMessage) -> None:
            found.append(message.captured(self.qmgr))

        *asked, last = asking(question, self.qmgr, self.clock(), self.reply_queue)
        for command in (*asked, last):
            with self.messages.unit_of_work() as unit:
                unit.put(command.queue, command.md, command.body, application="qpubsub extract")
            try:
                reason = answers_until_response(self.messages, self.reply_queue, self.wait_s, take)
            except MigrationError as error:
                raise MigrationError(f"{question.what} of {question.stream}: {error}") from error
            # Not registered any more: an anonymous registration has ended. Before the end, nothing was answered.
            if reason not in _NO_ERRORS and not (command is last and reason == MQRCCF_NOT_REGISTERED):
                raise MigrationError(f"{question.what} of {question.stream}: the broker refuses with reason {reason}")
        return found

    def _drain(self) -> None:
        """Discard the answers to a question whose run was killed."""
        try:
            with self.messages.unit_of_work() as unit:
                while unit.get(self.reply_queue) is not None:
                    pass
        except QPubSubError as error:
            why = f"DEFINE QLOCAL({self.reply_queue}) on {self.qmgr} first, or name another queue with --reply-queue"
            raise MigrationError(f"{error}: {why}") from error


def _file_name(question: Question) -> str:
    plain = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{question.stream}-{question.what}")
    return f"{plain}.jsonl"


def _is_metatopic(message: CapturedMessage) -> bool:
    try:
        found = metatopics.pcf_of(message.decode())
    except QPubSubError:
        return False
    return found is not None and metatopics.metatopic_published(found) is not None


def _streams_in(answers: list[CapturedMessage]) -> Iterator[str]:
    for message in answers:
        if _is_metatopic(message):
            found = metatopics.pcf_of(message.decode())
            assert found is not None
            for item in metatopics.read(found, Source(file="answer")):
                if isinstance(item, Stream):
                    yield item.name
