"""Addresses of the tasks room: what comes in from outside, signed."""

from django.urls import path

from tasks.intake import hook

urlpatterns = [path("feedback/<str:slug>", hook.feedback)]
