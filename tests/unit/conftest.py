"""Properties are checked here alone, and hypothesis takes a second to import."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How quick a machine is decides no verdict.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
