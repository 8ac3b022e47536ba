"""Publications as new programs get them: with message properties, or without any word of publish/subscribe.

PSPROP(MSGPROP) puts the properties of guide 4.4, table 1, into folders mqps and mqpse; PSPROP(NONE) puts nothing. User
pairs of an MQRFH become properties under both: they are the program's data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.headers.psc import with_folders
from commands.headers.publication import Content, DeliveryForm, RenderedPublication
from commands.headers.user_folders import EXTENSIONS, user_folder
from commands.headers.xml_text import in_xml
from rfh2.folders import write

PROPERTIES: Final = "mqps"
_PUB_LEVEL: Final = 9


def tell(content: Content, telling: DeliveryForm) -> RenderedPublication:
    """The publication with its properties in an MQRFH2; what it had of such folders itself is replaced."""
    own = tuple(folder for folder in content.folders if folder.name not in (PROPERTIES, EXTENSIONS))
    told = tuple(("Top", in_xml(topic)) for topic in telling.topics)
    if telling.user_data:
        told = (*told, ("Sud", in_xml(telling.user_data)))
    text = write(PROPERTIES, told)[: -len(f"</{PROPERTIES}>")]
    text += f'<Ret dt="boolean">{int(telling.from_retained)}</Ret>'
    text += f'<Pub dt="i4">{content.put_options}</Pub><Pbl dt="i4">{_PUB_LEVEL}</Pbl></{PROPERTIES}>'
    return with_folders(replace(content, folders=own), (text,), content.stamps)


def tell_nothing(content: Content, _telling: DeliveryForm) -> RenderedPublication:
    """The publication without its header of publish/subscribe; other folders and user pairs stay, in an MQRFH2."""
    _, lost = user_folder(content.user)
    lost = (*lost, *(tag for tag, _ in content.data))
    bare = replace(content, data=())
    if content.folders or content.user:
        told = with_folders(bare, ())
        return RenderedPublication(told.message, lost)
    return RenderedPublication(content.frame.closed(), lost)
