"""Publications for new programs: with message properties, or without publish/subscribe data.

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
from commands.model import TopicPut
from rfh2.folders import Element, write_nested

PROPERTIES: Final = "mqps"
_DEFAULT: Final = TopicPut()


def render(content: Content, form: DeliveryForm) -> RenderedPublication:
    """The publication with its properties in an MQRFH2; they replace such folders of the publication itself."""
    own = tuple(folder for folder in content.folders if folder.name not in (PROPERTIES, EXTENSIONS))
    properties = [Element("Top", in_xml(topic)) for topic in form.topics]
    if form.user_data:
        properties.append(Element("Sud", in_xml(form.user_data)))
    properties += (
        Element("Ret", str(int(form.from_retained)), "boolean"),
        Element("Pub", str(content.put_options), "i4"),
        Element("Pbl", str((content.put or _DEFAULT).level), "i4"),
    )
    text = write_nested(Element(PROPERTIES, properties))
    return with_folders(replace(content, folders=own), (text,), content.time_and_number)


def render_bare(content: Content, _form: DeliveryForm) -> RenderedPublication:
    """The publication without its publish/subscribe header; an MQRFH2 keeps its other folders and its user pairs."""
    _, lost = user_folder(content.user)
    lost = (*lost, *(tag for tag, _ in content.data))
    bare = replace(content, data=())
    if content.folders or content.user:
        return RenderedPublication(with_folders(bare, ()).message, lost)
    return RenderedPublication(content.frame.closed(), lost)
