"""Partitions read inside of the tasks that use them."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from odeco.sources.dask import open_dask
from odeco.sources.dask_partitions import Enclosed, enclose
from odeco.sources.partitions import Piece

ROWS = np.arange(12.0).reshape(6, 2)


def make(start):
    return ROWS[start : start + 3]


def array():
    return da.concatenate([da.from_delayed(dask.delayed(make)(i), shape=(3, 2), dtype=float) for i in (0, 3)])


COLLECTIONS = {
    "array": array,
    "computed array": lambda: da.from_array(ROWS, chunks=(3, 2)) + 1 - 1,
    "bag": lambda: db.from_delayed([dask.delayed(make)(i) for i in (0, 3)]).map_partitions(np.asarray),
    "frame": lambda: dd.from_pandas(pd.DataFrame(ROWS), npartitions=2),
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_partitions_of_their_own_tasks_are_carried(name):
    readers = open_dask(COLLECTIONS[name]())[0]._readers
    assert all(isinstance(reader, Enclosed) for reader in readers)
    np.testing.assert_array_equal(np.concatenate([np.asarray(reader.read()) for reader in readers]), ROWS)


def test_shared_tasks_and_annotated_ones_are_left_to_the_scheduler():
    whole = dask.delayed(make)(0)
    parts = [dask.delayed(np.add)(whole, 1), dask.delayed(np.add)(whole, 2), dask.delayed(make)(3)]
    assert [isinstance(part, Enclosed) for part in enclose(parts)] == [False, False, True]
    with dask.annotate(retries=2):
        assert not isinstance(enclose([dask.delayed(make)(3)])[0], Enclosed)


def test_many_tasks_are_left_to_the_scheduler():
    total = dask.delayed(sum)([dask.delayed(make)(i % 4) for i in range(200)])
    assert not isinstance(enclose([total])[0], Enclosed)


def test_first_rows_are_found_without_reading_the_others():
    """40 partitions of 3 rows: the first 10 rows are in the first four, and no other is made."""
    seen = []

    def watched(index):
        seen.append(index)
        return np.full((3, 2), index)

    bag = db.from_delayed([dask.delayed(watched)(i) for i in range(40)])
    partitions = open_dask(bag)[0]
    with dask.config.set(scheduler="synchronous"):
        assert partitions.first(lambda block: block.shape) == (3, 2)
        assert sum(partitions.first_sizes(10)) >= 10
        assert [piece.index for piece in partitions.find(np.arange(2, 8))] == [0, 1, 2]
        assert sorted(seen) == [0, 1, 2, 3]
        assert partitions.sizes() == [3] * 40
        assert sorted(seen) == list(range(40))
        assert partitions.fetch(lambda block, rows: int(block[0, 0]), [Piece(7, slice(None))]) == [7]


def test_the_first_partition_with_rows_is_looked_at():
    bag = db.from_delayed([dask.delayed(np.ones)((n, 2)) for n in (0, 0, 4, 1)])
    partitions = open_dask(bag)[0]
    with dask.config.set(scheduler="synchronous"):
        assert partitions.first(lambda block: len(block)) == 4
        assert partitions.first(lambda block: len(block)) == 4
        assert partitions.first_sizes(4) == [0, 0, 4]
        assert partitions.sizes() == [0, 0, 4, 1]
    nothing = open_dask(db.from_delayed([dask.delayed(np.ones)((0, 2))]))[0]
    with pytest.raises(ValueError, match="empty"):
        nothing.first(len)
