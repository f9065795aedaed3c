"""Partitions of Dask collections that are read inside of the tasks that use them.

As a task of its own, a partition is a result that Dask may send to another worker to balance the load: documents would
travel. What one partition alone needs is therefore carried to the task that sums over it, and read there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

# Tasks that make one partition, above which they are better left to the scheduler.
_MOST_TASKS = 100


class Enclosed:
    """The tasks that make one partition, as one object."""

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self._graph, self._key = graph, key

    def read(self) -> Any:
        """The partition, made on this thread."""
        import dask

        return dask.get(self._graph, self._key)


def enclose(parts: Sequence[Any]) -> list[Any]:
    """Delayed partitions as `Enclosed` ones where nobody else needs their tasks; as they are elsewhere.

    Elsewhere are collections in the workers' memory (`persist`), partitions that share tasks (a shuffle: each would
    repeat it), and those with annotations, which are for the scheduler.
    """
    graphs: dict[int, Mapping[Any, Any]] = {}
    found = [_tasks_of(part, graphs) for part in parts]
    users = Counter(key for tasks in found if tasks is not None for key in tasks)
    return [
        part if tasks is None or any(users[key] > 1 for key in tasks) else Enclosed(tasks, part.key)
        for part, tasks in zip(parts, found, strict=True)
    ]


def _tasks_of(part: Any, graphs: dict[int, Mapping[Any, Any]]) -> dict[Any, Any] | None:
    """All tasks that a partition needs; None where they cannot be carried. `graphs` holds those seen before."""
    from dask.core import get_dependencies

    whole = part.__dask_graph__()
    if id(whole) not in graphs:
        graphs[id(whole)] = {} if _annotated(whole) else dict(whole)
    graph = graphs[id(whole)]
    tasks: dict[Any, Any] = {}
    waiting = [part.key]
    while waiting:
        key = waiting.pop()
        if key not in graph or len(tasks) == _MOST_TASKS:  # the result of a task that ran before is in no graph
            return None
        needed = get_dependencies(graph, key)
        if key in needed:  # a future: what it stands for is in no graph either
            return None
        tasks[key] = graph[key]
        waiting += [other for other in needed if other not in tasks]
    return tasks


def _annotated(graph: Any) -> bool:
    return any(layer.annotations for layer in getattr(graph, "layers", {}).values())
