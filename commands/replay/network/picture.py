"""The picture of a network after a replay: its queue managers, and how much went along each link."""

from __future__ import annotations

from commands.explain.pictures import NetworkNode, network_svg
from commands.network.network import Network


def network_picture(network: Network, title: str) -> str:
    """The text of an SVG file."""
    retained, links = network.retained_copies, network.topology.links()
    nodes = [
        NetworkNode(
            position.qmgr,
            position.parent,
            position.clusters,
            (f"{network.queue_managers[position.qmgr].proxies_here:,} proxies, {retained[position.qmgr]:,} retained",),
        )
        for position in network.topology.positions
    ]
    number = {qmgr: n for n, qmgr in enumerate(links)}
    pairs = [(qmgr, link.neighbour) for qmgr in links for link in links[qmgr] if number[qmgr] < number[link.neighbour]]
    publications = {channel: each.publications for channel, each in network.traffic.items() if each.publications}
    return network_svg(nodes, list(dict.fromkeys(pairs)), publications, title)
