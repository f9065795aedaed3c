"""More than three views as three."""

from __future__ import annotations


def three_groups(sizes: list[int], limit: int) -> list[list[int]]:
    """Three groups of views (or of columns) whose sums of ``min(size, limit)`` are about equal; largest first.

    Views that are independent given h stay so when they are joined: more than three become three.
    """
    groups: list[list[int]] = [[], [], []]
    totals = [0, 0, 0]
    for index in sorted(range(len(sizes)), key=lambda i: (-min(sizes[i], limit), i)):
        g = min(range(3), key=lambda i: (totals[i], i))
        groups[g].append(index)
        totals[g] += min(sizes[index], limit)
    return [sorted(group) for group in groups]
