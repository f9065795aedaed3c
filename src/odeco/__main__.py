"""``python -m odeco`` is the command ``odeco``."""

from odeco.cli import main

if __name__ == "__main__":
    main()
