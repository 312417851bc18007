"""The addresses of the product, and the hand-written views that benchmarks compare it with."""

from django.urls import include, path

from nexus_site.urls import handler400, handler403, handler404, handler500
from nexus_site.urls import urlpatterns as product

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [path("api/bench/", include("lab.bench.floor")), *product]
