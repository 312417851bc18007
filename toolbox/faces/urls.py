"""Addresses of the tool API."""

from django.urls import include, path, re_path

from toolbox.faces.docs import views as docs
from toolbox.faces.rest import views

calls = [
    path("me", views.MeView.as_view()),
    path("tools", views.ToolListView.as_view()),
    path("tools/<str:name>", views.ToolCallView.as_view()),
    path("sessions", views.SessionListView.as_view()),
    path("sessions/<str:session_id>", views.SessionDetailView.as_view()),
    path("explain", views.ExplainView.as_view()),
    path("prompt", views.PromptView.as_view()),
]
urlpatterns = [
    path("v1/", include(calls)),
    path("schema/", docs.schema),
    path("docs/", docs.page, name="api_docs"),
    path("docs/<slug:name>/", docs.page, name="api_docs"),
    re_path(r"^.*$", views.UnknownAddressView.as_view()),
]
