from .broker.exit_values import (
    ExitAnswer as ExitAnswer,
    ExitMessage as ExitMessage,
    ExitParms as ExitParms,
    ExitReason as ExitReason,
    ExitResponse as ExitResponse,
    PublicationContext as PublicationContext,
    SubscriptionContext as SubscriptionContext,
)
from .broker.outcome import Arrival as Arrival, Outcome as Outcome
from .broker.puts import Put as Put, PutKind as PutKind
from .client.asynchronous import connect_async as connect_async
from .client.errors import MqError as MqError
from .client.queue_manager import connect as connect
from .headers.registry import parse as parse
from .headers.response import Completion as Completion
from .model import (
    Command as Command,
    DeletePublication as DeletePublication,
    DelOpt as DelOpt,
    DeregisterPublisher as DeregisterPublisher,
    DeregisterSubscriber as DeregisterSubscriber,
    Publish as Publish,
    PubOpt as PubOpt,
    RegisterPublisher as RegisterPublisher,
    RegisterSubscriber as RegisterSubscriber,
    RegOpt as RegOpt,
    RequestUpdate as RequestUpdate,
)
from .mqsc.broker import Broker as Broker
from .replay.analysis.facts import analysis_to_batches as analysis_to_batches
from .replay.frames import (
    CapturedMessage as CapturedMessage,
    captures_to_arrow as captures_to_arrow,
    captures_to_batches as captures_to_batches,
    captures_to_pandas as captures_to_pandas,
    puts_to_batches as puts_to_batches,
    read_captures as read_captures,
)
from .testing.queue_manager import DevError as DevError, DevQueueManager as DevQueueManager

__version__: str
