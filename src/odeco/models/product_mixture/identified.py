"""Whether columns can tell k components apart at all: Kruskal's condition.

Part discrete columns into three groups. A group whose columns have c_1, c_2, ... categories has c_1 c_2 ... patterns:
its table of pattern probabilities given the component has rank min(k, c_1 c_2 ...) for almost all parameters. Where the
three ranks add up to 2k + 2 or more, almost all parameters are determined by the joint table up to the order of the
components (Kruskal 1977; Allman, Matias and Rhodes, Annals of Statistics 37:3099-3132, 2009, theorem 4). Where no
partition does, other parameters may fit just as well, however many rows there are.

Numbers and counts need no partners: mixtures of Gaussians or of Poisson distributions are determined by one column.
"""

from __future__ import annotations

from math import prod

from odeco.sources.tables import Schema


def advice_on(schema: Schema, n_components: int) -> list[str]:
    """What is to be said of the columns, each by itself and all together."""
    doubt = not_identified(schema, n_components)
    return [*schema.notes, *([doubt] if doubt else [])]


def not_identified(schema: Schema, n_components: int) -> str:
    """What to say where the columns cannot tell `n_components` apart; nothing where they can."""
    sizes = [column.n_categories for column in schema.columns]
    k = n_components
    if k == 1 or 0 in sizes or _best_ranks(sizes, k) >= 2 * k + 2:
        return ""
    useful = [size for size in sizes if size > 1]
    enough = max(m for m in range(1, k) if m == 1 or _best_ranks(sizes, m) >= 2 * m + 2)
    n_parameters, n_cells = k - 1 + k * sum(size - 1 for size in useful), prod(useful)
    if n_parameters > n_cells - 1:
        verdict = "are not identified: other parameters fit exactly as well"
        reason = f"{n_parameters} free parameters, but only {n_cells - 1} free cells in the table of all patterns"
    else:
        verdict = "may not be identified: other parameters may fit exactly as well"
        reason = f"three groups of columns reach ranks that add up to {_best_ranks(sizes, k)}, not {2 * k + 2}"
    return (
        f"{k} components of {len(useful)} discrete column{'' if len(useful) == 1 else 's'} {verdict}, and which are "
        f"found depends on the start ({reason}). Lower n_components to {enough}, or add columns."
    )


def _best_ranks(sizes: list[int], k: int) -> int:
    """The largest sum of ranks of three groups, or 2k + 2 if that is reached."""
    reached = {(1, 1, 1)}  # patterns of each group, up to k
    for size in sorted(sizes, reverse=True):
        reached = {
            tuple(sorted(min(k, p * size) if j == group else p for j, p in enumerate(patterns)))  # type: ignore[misc]
            for patterns in reached
            for group in range(3)
        }
        if max(map(sum, reached)) >= 2 * k + 2:
            return 2 * k + 2
    return max(map(sum, reached))
