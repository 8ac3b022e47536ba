"""Options as words and as decimal bit masks: MQREGO_*, MQPUBO_*, MQDELO_* (wire formats 2.4).

An MQRFH gives options as words, one to each occurrence of a name, or as one decimal sum (``MQPSRegOpts  33``); PCF
gives the sum as an integer; psc folders have words, and sums from IBM's JMS clients.

One bit means different things in different sets (4 is Local among registration and delete options, OtherSubsOnly among
publication options): every question is asked of a set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NONE: Final = "None"

# An MQLONG has ten digits; room for leading zeros, none for the time that a number of a million digits takes.
_SUM: Final = re.compile("[0-9]{1,16}")


@dataclass(frozen=True, slots=True)
class Options:
    """Option words in the order in which they were given, and what is no option of the set, as it was given.

    Words that a sum stands for come in the order of their bits. ``None`` is a word like the others: on a
    re-registration it means something else than no option at all (guide 6.7.4).
    """

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionSet:
    """The options that one name takes. prefix: of the constants (``MQREGO_``). bits: word to (bit, its name)."""

    prefix: str
    bits: dict[str, tuple[int, str]]

    def read(self, values: Iterable[str]) -> Options:
        """The options that *values* give: words, several words with blanks between, decimal sums, or a mixture."""
        words: list[str] = []
        unknown: list[str] = []
        for value in values:
            for part in value.split() or [value]:
                if part in self.bits:
                    words.append(part)
                elif _SUM.fullmatch(part):
                    of_sum = self.of_mask(int(part))
                    words += of_sum.words
                    unknown += of_sum.unknown
                else:
                    unknown.append(part)
        return Options(tuple(words), tuple(unknown))

    def of_mask(self, mask: int) -> Options:
        """The options whose bits make up *mask*, in the order of the bits; 0 is ``None``.

        Bits that are no option of the set come back as one decimal sum among the unknown, a negative mask as it is.
        """
        if mask < 0:
            return Options((), (str(mask),))
        if mask == 0:
            return Options((NONE,))
        words = tuple(word for word, (bit, _) in self.bits.items() if bit & mask)
        rest = mask & ~self.all_bits
        return Options(words, (str(rest),) if rest else ())

    def mask(self, words: Iterable[str]) -> int:
        """The sum of the bits of *words*. Raises KeyError for a word that is no option of the set."""
        total = 0
        for word in words:
            total |= self.bits[word][0]
        return total

    def constant(self, word: str) -> str:
        """IBM's name of the option: ``MQREGO_LOCAL``. Raises KeyError for a word that is no option of the set."""
        return self.prefix + self.bits[word][1]

    @property
    def all_bits(self) -> int:
        """The sum of all the options' bits."""
        return self.mask(self.bits)


REGISTRATION: Final = OptionSet(
    "MQREGO_",
    {
        NONE: (0, "NONE"),
        "CorrelAsId": (0x1, "CORREL_ID_AS_IDENTITY"),
        "Anon": (0x2, "ANONYMOUS"),
        "Local": (0x4, "LOCAL"),
        "DirectReq": (0x8, "DIRECT_REQUESTS"),
        "NewPubsOnly": (0x10, "NEW_PUBLICATIONS_ONLY"),
        "PubOnReqOnly": (0x20, "PUBLISH_ON_REQUEST_ONLY"),
        "DeregAll": (0x40, "DEREGISTER_ALL"),
        "InclStreamName": (0x80, "INCLUDE_STREAM_NAME"),
        "InformIfRet": (0x100, "INFORM_IF_RETAINED"),
        "DupsOK": (0x200, "DUPLICATES_OK"),
        "NonPers": (0x400, "NON_PERSISTENT"),
        "Pers": (0x800, "PERSISTENT"),
        "PersAsPub": (0x1000, "PERSISTENT_AS_PUBLISH"),
        "PersAsQueue": (0x2000, "PERSISTENT_AS_Q"),
        "AddName": (0x4000, "ADD_NAME"),
        "NoAlter": (0x8000, "NO_ALTERATION"),
        "FullResp": (0x10000, "FULL_RESPONSE"),
        "JoinShared": (0x20000, "JOIN_SHARED"),
        "JoinExcl": (0x40000, "JOIN_EXCLUSIVE"),
        "LeaveOnly": (0x80000, "LEAVE_ONLY"),
        "VariableUserId": (0x100000, "VARIABLE_USER_ID"),
        "Locked": (0x200000, "LOCKED"),
    },
)

PUBLICATION: Final = OptionSet(
    "MQPUBO_",
    {
        NONE: (0, "NONE"),
        "CorrelAsId": (0x1, "CORREL_ID_AS_IDENTITY"),
        "RetainPub": (0x2, "RETAIN_PUBLICATION"),
        "OtherSubsOnly": (0x4, "OTHER_SUBSCRIBERS_ONLY"),
        "NoReg": (0x8, "NO_REGISTRATION"),
        "IsRetainedPub": (0x10, "IS_RETAINED_PUBLICATION"),
    },
)

DELETE: Final = OptionSet("MQDELO_", {NONE: (0, "NONE"), "Local": (0x4, "LOCAL")})
