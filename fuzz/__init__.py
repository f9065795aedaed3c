"""A fuzz campaign: every door of the library with what nobody should bring.

`python -m fuzz` (or `make fuzz`) makes cases from a seed, runs each in a worker, and reports what is neither a clean
error nor a valid result: a crash of the interpreter, a hang, too much memory, an error that is not meant for people.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is imported: small cases are slower on two threads than on one
