"""The graph of a night on Prefect's server: nodes by name, and edges, with those of nested runs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass
class Graph:
    """`edges`: from a node's name to the names of those that take its result. `top`: the nodes of the night itself."""

    edges: dict[str, set[str]] = field(default_factory=dict)
    top: list[str] = field(default_factory=list)

    def reachable(self, name: str) -> set[str]:
        """Return all nodes that come after a node."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            waiting += (after := self.edges[waiting.pop()] - found)
            found |= after
        return found


def night_graph(api: str, run: str) -> Graph:
    """Read the graph of a flow run, by its id. The nodes of a nested run come before what follows the run."""
    with httpx.Client(base_url=f"{api}/", timeout=60) as client:
        graph = Graph()
        graph.top = list(_add(client, run, "", graph))
        return graph


def _add(client: httpx.Client, run: str, prefix: str, graph: Graph) -> Iterator[str]:
    """Add a run's nodes under a prefix. Yields their names."""
    nodes: list[tuple[str, dict[str, Any]]] = client.get(f"flow_runs/{run}/graph-v2").raise_for_status().json()["nodes"]
    names = {identity: prefix + node["label"].rpartition(" / ")[2] for identity, node in nodes}
    for identity, node in nodes:
        after = {names[child["id"]] for child in node["children"]}
        if node["kind"] == "flow-run":
            inner = list(_add(client, identity, f"{names[identity]} > ", graph))
            for name in inner:
                graph.edges[name] |= after
            after = {*inner, *after}
        graph.edges[names[identity]] = after
        yield names[identity]
