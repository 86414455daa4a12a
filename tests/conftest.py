"""Settings for all tests: hypothesis judges no speed, and draws the same examples in every CI run."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Dozens of tests start the program: compiling it anew each time would be most of what they take.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
