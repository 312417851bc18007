"""Which path leads to which room."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from nexus_site.serving import health

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("metrics", health.metrics),
    path("language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
]
urlpatterns.append(path("api/v1/hooks/", include("tasks.intake.urls")))
urlpatterns.append(path("api/", include("toolbox.faces.urls")))
handler400 = "nexus_site.serving.errors.bad_request"
handler403 = "nexus_site.serving.errors.forbidden"
handler404 = "nexus_site.serving.errors.not_found"
handler500 = "nexus_site.serving.errors.server_error"
