"""`python -m examples.paper [NAME ...]`: measure, store, draw, and write the page docs/gallery.md."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from examples.paper import gallery


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(gallery.NAMES)}")
    parser.add_argument("--redraw", action="store_true", help="draw from the stored measurements, measure nothing")
    parser.add_argument("--quick", action="store_true", help="measure little, store and draw nothing, print captions")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(gallery.NAMES))
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(gallery.NAMES)}")
    for name in options.names or gallery.NAMES:
        start = time.perf_counter()
        module = import_module(f"examples.paper.{name}")
        if options.quick:
            print(f"{module.TITLE}: {module.caption(module.measure(quick=True))}\n")
            continue
        if not options.redraw:
            gallery.store(name, module.measure())
        gallery.publish(name)
        print(f"{name}: {time.perf_counter() - start:.0f} s, docs/figures/{gallery.file_name(name)}", flush=True)


if __name__ == "__main__":
    main()
