"""Addresses of the tool API (wire)."""

from django.urls import path, re_path

from toolbox.faces import docs, rest

urlpatterns = [
    path("v1/me", rest.me),
    path("v1/tools", rest.tools),
    path("v1/tools/<str:name>", rest.call),
    path("v1/sessions", rest.open_session),
    path("v1/sessions/<str:session_id>", rest.session),
    path("v1/explain", rest.explain),
    path("v1/prompt", rest.prompt_text),
    path("schema/", docs.schema),
    path("docs/", docs.page),
    re_path(r"^(?P<path>.*)$", rest.not_found),
]
