"""Registration options as a subscription keeps them, and as words; the words are what items hold."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from commands.model import RegOpt
from streams.subscriptions import DeliveryPersistence, SubscriptionOptions

FLAGS: Final = {
    RegOpt.LOCAL: "local",
    RegOpt.NEW_PUBS_ONLY: "new_pubs_only",
    RegOpt.PUB_ON_REQ_ONLY: "pub_on_req_only",
    RegOpt.INFORM_IF_RET: "inform_if_ret",
    RegOpt.VARIABLE_USER_ID: "variable_user_id",
    RegOpt.INCL_STREAM_NAME: "incl_stream_name",
    RegOpt.DUPS_OK: "dups_ok",
    RegOpt.ANON: "anonymous",
}
PERSISTENCE: Final = {
    RegOpt.PERS: DeliveryPersistence.PERSISTENT,
    RegOpt.NON_PERS: DeliveryPersistence.NON_PERSISTENT,
    RegOpt.PERS_AS_PUB: DeliveryPersistence.AS_PUBLISHED,
    RegOpt.PERS_AS_QUEUE: DeliveryPersistence.AS_QUEUE,
}


def options_of(options: SubscriptionOptions, correl_as_id: bool) -> tuple[str, ...]:
    """The words of *options*, CorrelAsId first where it was given; PersAsPub, the default, is left out."""
    words = [RegOpt.CORREL_AS_ID.value] if correl_as_id else []
    words += [word.value for word, field in FLAGS.items() if getattr(options, field)]
    if options.persistence is not DeliveryPersistence.AS_PUBLISHED:
        words.append(next(word.value for word, kept in PERSISTENCE.items() if kept is options.persistence))
    return tuple(words)


@lru_cache(maxsize=4096)
def kept_options(words: tuple[str, ...]) -> SubscriptionOptions:
    """What a subscription keeps of registration options; of the persistence options the last one counts."""
    persistence = DeliveryPersistence.AS_PUBLISHED
    for word in words:
        found = PERSISTENCE.get(RegOpt(word)) if word in RegOpt._value2member_map_ else None
        persistence = found or persistence
    flags = {field: option.value in words for option, field in FLAGS.items()}
    return SubscriptionOptions(**flags, persistence=persistence)
