"""Every way to get a destination wrong that has a cause of its own."""

from __future__ import annotations

from tests.integration.probes.misconfigured_bucket import BUCKETS
from tests.integration.probes.misconfigured_identity import IDENTITIES
from tests.integration.probes.misconfigured_keys import KEYS
from tests.integration.probes.misconfigured_network import NETWORKS
from tests.integration.probes.misconfigured_profiles import PROFILES
from tests.integration.probes.misconfigured_stores import STORES

CASES = [*PROFILES, *IDENTITIES, *BUCKETS, *KEYS, *STORES, *NETWORKS]
