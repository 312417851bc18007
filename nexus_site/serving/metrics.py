"""What the site counts about itself, over all its processes."""

from prometheus_client import Histogram

# Few buckets, few labels: a call pays for each of them.
REQUESTS = Histogram(
    "nexus_http_request_seconds",
    "Time to answer, by method, route and status",
    ["method", "route", "status"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
)
