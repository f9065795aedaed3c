"""A plugin of pytest: the compiled module that ODECO_NATIVE names in place of the installed one (`make sanitize`)."""

import importlib.util
import os
import sys

NAME = "odeco.kernels._native"

specification = importlib.util.spec_from_file_location(NAME, os.environ["ODECO_NATIVE"])
assert specification is not None
assert specification.loader is not None
module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(module)
sys.modules[NAME] = module
