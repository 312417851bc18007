"""The type of texts for people: plain, or translated at the moment they are shown."""

from django.utils.functional import Promise

Text = str | Promise
