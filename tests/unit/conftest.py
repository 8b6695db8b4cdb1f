"""Properties are checked here alone, and hypothesis takes a second to import."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.environments import many

# How quick a machine is decides no verdict.
settings.register_profile(
    "patient",
    deadline=None,
    max_examples=many(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")
