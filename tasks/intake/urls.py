"""Addresses of the tasks room: what comes in from outside, signed."""

from django.urls import path

from tasks.intake import hook as hooks

urlpatterns = [path("feedback/<str:slug>", hooks.feedback)]
