"""Numbers that IBM MQ's error log has for events of queued publish/subscribe, its instances and its listener:
operators have alarms for these.

A log record has them in ``numbers``. The log shows each as IBM does, with a letter for its severity: ``AMQ5882W``.
"""

from __future__ import annotations

from typing import Final

STARTED: Final = 5806
"""Queued publish/subscribe was started for a queue manager; programs that start a container wait for AMQ5806I."""
ENDED: Final = 5807
"""It has ended."""
LOST_OWNERSHIP: Final = 7279
"""The queue manager lost the ownership of its data: another instance has taken over."""
PUBLISH_FAILED: Final = 5856
"""A command on a stream queue could not be processed."""
CONTROL_FAILED: Final = 5857
"""A command on the control queue could not be processed."""
RESPONSE_FAILED: Final = 5864
"""A response could not be put on the queue that it was for."""
DISCARDED: Final = 5866
"""A command was discarded, as PSNPMSG says."""
DEAD_LETTER: Final = 5882
"""A message was put on the dead-letter queue."""
NO_CHANNEL: Final = 9519
"""A program connected by a channel that there is not."""
CHANNEL_STARTED: Final = 9002
"""A program has connected by a channel."""
CHANNEL_ENDED: Final = 9001
"""It has disconnected, or ended with the listener."""
CHANNEL_BROKEN: Final = 9999
"""It ended without MQDISC: it has died, its connection broke, or somebody ended it."""
CHANNEL_STOPPED: Final = 9528
"""Somebody asked that a program, or a channel, be stopped."""
CHANNEL_DISABLED: Final = 9534
"""A program connected by a channel that was stopped."""
TOO_MANY_INSTANCES: Final = 9489
"""A channel has as many connections as it may have (MAXINST)."""
TOO_MANY_CHANNELS: Final = 9513
"""There are as many connections as there may be."""
WRONG_PASSWORD: Final = 5534
"""The password of a program's user is wrong."""
NO_PASSWORD: Final = 5540
"""A program gave none, and has to."""
USER_BLOCKED: Final = 9776
"""A program's user is blocked on its channel."""
ADDRESS_BLOCKED: Final = 9777
"""No program of this address may use the channel."""
LOGIN_REFUSED: Final = 9557
"""A program may not connect for another reason: no user, a name that none can have, no authority."""
