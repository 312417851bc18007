"""What this process counted for Prometheus."""

from prometheus_client import REGISTRY


def turned_away(status):
    """How many requests and connections were refused so before anything of them was looked at."""
    return REGISTRY.get_sample_value("nexus_http_turned_away_total", {"status": status}) or 0
